"""Reports and comparisons: what they say, how large they are, and that data stay data. No browser is needed."""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
from dataclasses import replace

import numpy as np
import pytest
from report_runs import EMOJI, IMAGE, NASTY, bitstrings, command, own_task, policy, regression

from discodso import Design, DiscodsoError, FileError, RandomSettings, search
from discodso.report.comparison import compare
from discodso.report.folders import Group, by_method, read_run
from discodso.report.live import LiveReport
from discodso.report.page import embedded, page
from discodso.report.page_data import page_data
from discodso.report.writing import write_figures, write_report
from discodso.run.folder import RunFolder
from discodso.run.result import Scored
from discodso.tasks.bitstring import bitstring


def data_of(html: str):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return bitstrings(tmp_path_factory.mktemp("bitstrings"), seeds=3)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    return regression(tmp_path_factory.mktemp("fit") / "run")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return policy(tmp_path_factory.mktemp("policy") / "run")


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return own_task(tmp_path_factory.mktemp("own") / "run")


# ---------------------------------------------------------------------------------------------------- comparing


def test_runs_are_sorted_by_method_and_named_by_what_differs(folders, tmp_path):
    runs = [read_run(folder) for folder in folders]
    assert [(group.label, len(group.runs)) for group in by_method(runs)] == [
        ("DisCo-DSO", 3),
        ("random search", 3),
    ]
    search(bitstring(length=5), budget=100, method=RandomSettings(100), out=tmp_path / "more")
    labels = [group.label for group in by_method([*runs, read_run(tmp_path / "more")])]
    assert labels == [
        "DisCo-DSO, batch_size=50",
        "random search, batch_size=50",
        "random search, batch_size=100",
    ]
    for preset in ("default", "paper"):
        search(bitstring(length=5), budget=100, preset=preset, out=tmp_path / preset)
    labels = [group.label for group in by_method([read_run(tmp_path / p) for p in ("default", "paper")])]
    assert labels == ["DisCo-DSO, default", "DisCo-DSO, paper"]


def test_a_comparison_is_that_of_the_best_rewards(folders):
    groups = by_method([read_run(folder) for folder in folders])
    found = compare(groups)
    assert found.calls == 500
    for scores, group in zip(found.scores, groups, strict=True):
        assert list(scores) == [run.history[-1].best for run in group.runs]
    early = compare(groups, at=120)
    for scores, group in zip(early.scores, groups, strict=True):
        assert list(scores) == [
            next(r.best for r in reversed(run.history) if r.calls <= 120) for run in group.runs
        ]
    with pytest.raises(DiscodsoError, match="compare at a number from 50 to 500"):
        compare(groups, at=10_000)


def test_a_run_that_reached_its_target_is_compared_with_that(folders):
    group = by_method([read_run(folder) for folder in folders[:3]])[0]
    short = replace(group.runs[0], history=group.runs[0].history[:2], top={"stop": "target"})
    found = compare([Group("a", (short, *group.runs[1:]))])
    assert found.calls == 500
    assert found.scores[0][0] == short.history[-1].best


def test_the_command_prints_a_table_and_writes_csv_and_figure(folders, tmp_path, capsys):
    shown = command("compare", *folders, "--csv", tmp_path / "c.csv", "--figure", tmp_path / "c.pdf")
    assert "DisCo-DSO" in shown
    assert "P(DisCo-DSO > random search)" in shown
    lines = (tmp_path / "c.csv").read_text().splitlines()
    assert len(lines) == 3
    assert "interquartile mean" in lines[0]
    assert (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF")
    data = json.loads(command("compare", *folders, "--json"))
    scores = np.array(data["methods"][0]["scores"])
    assert data["methods"][0]["mean"] == pytest.approx(scores.mean())
    assert float(lines[1].split(",")[3]) == pytest.approx(scores.mean())


def test_different_tasks_are_not_compared(folders, own):
    from typer.testing import CliRunner

    from discodso.cli.main import app

    done = CliRunner().invoke(app, ["compare", str(folders[0]), str(own)])
    assert "different tasks" in str(done.exception)


# ---------------------------------------------------------------------------------------------------- the page


def test_a_report_of_each_task_has_what_belongs_to_it(folders, fitted, tree, own, tmp_path):
    path = write_report([*folders, fitted, tree, own], tmp_path / "all.html")
    data = data_of(path.read_text())
    assert [task["kind"] for task in data["tasks"]] == ["python", "regression", "policy", "python"]
    equation = next(t for t in data["tasks"] if t["kind"] == "regression")["groups"][0]
    assert equation["best"]["math"][0] == "mrow"
    assert len(equation["best"]["plot"]["given"]) == 60
    assert [own["name"] for own in equation["best"]["plot"]["inputs"]] == ["speed", "mass"]
    assert equation["best"]["rows"] == 60
    assert equation["front"]["error"] == "leave-one-out error"
    assert sum(point["chosen"] for point in equation["front"]["points"]) == 1
    assert equation["designs"][0]["math"]
    trees = next(t for t in data["tasks"] if t["kind"] == "policy")["groups"][0]
    assert trees["best"]["svg"].startswith("<svg")
    assert "unseen seeds" in trees["runs"][0]["score"]
    circuit = next(t for t in data["tasks"] if t["title"] == "circuit")["groups"][0]
    assert circuit["failures"]["count"] > 0
    assert "cannot come first" in circuit["failures"]["reasons"][0][0]
    assert circuit["best"]["tokens"]
    assert set(circuit["values"]) <= {"resistor", "coil"}
    bits = next(t for t in data["tasks"] if t["comparison"])
    assert len(bits["groups"]) == 2
    assert len(bits["groups"][0]["curve"]["runs"]) == 3


def test_the_command_names_the_file(own, tmp_path):
    shown = command("report", own, "--figures", tmp_path / "figures", "--figure-format", "svg")
    assert f"report: {own / 'report.html'}" in shown
    assert {"learning.svg", "tokens.svg", "values.svg"} <= {f.name for f in (tmp_path / "figures").iterdir()}


def test_figures_of_several_tasks_and_methods(folders, fitted, tmp_path):
    names = [path.name for path in write_figures([*folders, fitted], tmp_path, "svg")]
    assert len(set(names)) == len(names)
    assert {"1-learning.svg", "1-2-lengths.svg", "2-front.svg", "2-fit.svg"} <= set(names)


def test_what_is_no_folder_of_a_run_is_refused(tmp_path):
    with pytest.raises(FileError, match="there is no folder"):
        write_report([tmp_path / "nothing"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="is no run folder"):
        write_report([tmp_path / "empty"])


def test_a_folder_that_is_torn_or_young_still_gives_a_report(own, tmp_path):
    shutil.copytree(own, tmp_path / "torn")
    (tmp_path / "torn" / "top.json").write_text('{"top": [{"reward": 1}], "failures": null}')
    (tmp_path / "torn" / "environment.json").write_text("{")
    with (tmp_path / "torn" / "history.jsonl").open("a") as file:
        file.write('{"calls": 7')
    assert data_of(write_report([tmp_path / "torn"]).read_text())["tasks"][0]["groups"][0]["designs"] == []
    (tmp_path / "torn" / "history.jsonl").write_text("")
    data = data_of(write_report([tmp_path / "torn"]).read_text())
    assert data["tasks"][0]["groups"][0]["curve"]["calls"] == []


def test_nothing_in_the_page_leads_outside(own):
    html = write_report([own]).read_text()
    outside = re.sub(r'<script type="application/json".*?</script>', "", html, flags=re.DOTALL)
    addresses = set(re.findall(r"https?://[^\s\"']+", outside))
    assert addresses == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1998/Math/MathML",
    }  # names, not places
    assert "default-src 'none'" in html
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert way not in html


def test_data_cannot_end_their_element(tmp_path):
    folder = own_task(tmp_path / "run <b>&", (NASTY, IMAGE, EMOJI), NASTY)
    html = write_report([folder]).read_text()
    assert html.count("<script") == 2
    assert "<img" not in html
    assert NASTY not in html
    data = data_of(html)
    assert data["title"] == NASTY
    assert data["tasks"][0]["groups"][0]["tokens"]["names"][0] in (NASTY, IMAGE, EMOJI)
    assert json.loads(embedded({"a": EMOJI + "\ud800"}))["a"].startswith(EMOJI)


def test_a_report_of_a_million_calls_is_small(own, tmp_path):
    run = read_run(own)
    rng = np.random.default_rng(0)
    use = {f"component {k}": (0.01, *np.sort(rng.random(5)).round(5).tolist()) for k in range(100)}
    rows = tuple(
        replace(
            run.history[-1],
            calls=100 * n,
            best=rng.random(),
            mean=rng.random(),
            tokens=use if n % 20 == 0 else None,
        )
        for n in range(1, 10_001)
    )
    designs = tuple(
        Scored(Design.of(*((f"component {k}", rng.random()) for k in range(32))), 1 / (n + 1), n)
        for n in range(100)
    )
    runs = [replace(run, path=tmp_path / str(n), history=rows, designs=designs) for n in range(10)]
    assert len(page(page_data(runs)).encode()) < 2e6


def test_pictures_of_many_trees_stay_small(tree):
    run = read_run(tree)
    names = ("position <", "velocity <", "angle <", "angular velocity <")
    rng = np.random.default_rng(0)

    def grown(depth):
        if depth == 0:
            return [f"push {rng.choice(['left', 'right'])}"]
        return [(str(rng.choice(names)), float(rng.normal())), *grown(depth - 1), *grown(depth - 1)]

    designs = tuple(Scored(Design.of(*grown(4)), 500 - n, n) for n in range(100))
    html = page(page_data([replace(run, designs=designs)]))
    assert len(html.encode()) < 2e6
    shown = data_of(html)["tasks"][0]["groups"][0]["designs"]
    assert sum(design["svg"] is not None for design in shown) == 20
    assert "if " in shown[50]["text"]


def test_the_tree_of_a_design_is_the_design(tree):
    from discodso.report.page_data import show_designs

    design = Design.of(("angle <", 0.25), "push left", ("velocity <", -1.5), "push right", "push left")
    shown = show_designs(read_run(tree), [design])[0]
    lines = [line.strip() for line in shown.text.splitlines() if line.strip()]
    assert lines[:2] == ["if angle < 0.25:", "push left"]
    assert "if velocity < -1.5:" in lines


# ---------------------------------------------------------------------------------------------------- live


@pytest.mark.parametrize("limit", ["SILENCE", "LONGEST_CONNECTION", "MOST_CONNECTIONS"])
def test_slow_and_many_connections_are_ended(own, tmp_path, monkeypatch, limit):
    monkeypatch.setattr("discodso.report.live._Handler.timeout", 0.2 if limit == "SILENCE" else 60.0)
    if limit != "SILENCE":
        monkeypatch.setattr(f"discodso.report.live.{limit}", 0.2 if limit.startswith("L") else 1)
    shutil.copytree(own, tmp_path / "run")
    folder = RunFolder.reopen(tmp_path / "run")
    live = LiveReport([tmp_path / "run"])
    thread = threading.Thread(target=live.serve)
    thread.start()
    with socket.create_connection(("127.0.0.1", live.port), timeout=30) as slow:
        slow.sendall(f"GET /{live.token}/ HT".encode())
        if limit == "MOST_CONNECTIONS":
            assert ask(live).status == 200
        assert slow.recv(1) == b""
    folder.close()
    thread.join(30)


def test_a_live_report_waits_for_the_equation(fitted, tmp_path):
    shutil.copytree(fitted, tmp_path / "run")
    last = tmp_path / "run" / "equation.json"
    content = last.read_text()
    last.unlink()
    folder = RunFolder.reopen(tmp_path / "run")
    live = LiveReport([tmp_path / "run"])
    thread = threading.Thread(target=live.serve)
    thread.start()
    time.sleep(0.6)  # the search has ended, the choice goes on, and a run holds its folder until it is made
    assert thread.is_alive()
    assert json.loads(ask(live).read())["running"] is True
    last.write_text(content)
    folder.close()
    thread.join(10)
    assert not thread.is_alive()


def test_a_run_that_does_not_go_on_is_not_served(own, tmp_path):
    with pytest.raises(DiscodsoError, match="no run is going on"):
        LiveReport([own])
    with pytest.raises(FileError, match="there is no folder"):
        LiveReport([tmp_path / "nothing"])


def ask(live, path="data.json", **headers):
    return urllib.request.urlopen(urllib.request.Request(live.url + path, headers=headers), timeout=10)


def test_the_server_answers_here_only_and_ends_with_the_run(own, tmp_path):
    shutil.copytree(own, tmp_path / "run")
    folder = RunFolder.reopen(tmp_path / "run")
    live = LiveReport([tmp_path / "run"])
    thread = threading.Thread(target=live.serve)
    thread.start()
    try:
        first = ask(live)
        assert json.loads(first.read())["running"] is True
        mark = first.headers["ETag"]
        with pytest.raises(urllib.error.HTTPError, match="304"):
            ask(live, **{"If-None-Match": mark})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(live, Host="evil.example")
        for path in ("settings.toml", "../run/lock", "..%2f", "../", "../data.json", "../x/data.json"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                ask(live, path)  # what has no token, too: other users of this machine
        assert "connect-src 'self'" in ask(live, "").read().decode()
    finally:
        folder.close()
    end = time.monotonic() + 20
    while json.loads(ask(live).read())["running"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    thread.join(10)
    assert not thread.is_alive()


def test_a_picture_is_made_smaller_in_time_that_grows_like_it():
    from discodso.report.page_data import _compact

    assert (
        _compact("<?xml v?><!DOCTYPE svg><svg> <metadata>a\n</metadata> <g/><!-- b --></svg>")
        == "<svg><g/></svg>"
    )
    for part in ("<!--", "<metadata>", "<?xml", "<!---->", "> ", "<!DOCTYPE"):
        assert len(_compact(part * 400_000)) <= len(part) * 400_000  # hours, once
