"""The command that redoes the paper's tables and figures, at sizes that take seconds."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from command import run

from discodso import Design
from discodso.base.errors import DeclarationError, SettingsError
from discodso.reproduce import paper, tree_artefacts
from discodso.reproduce.artefacts import ARTEFACTS, reproduce
from discodso.reproduce.jobs import Record
from discodso.reproduce.paper_figures import MeanCurve, _heights, curve
from discodso.reproduce.regression_runs import bench, run_problem
from discodso.reproduce.scales import DEFAULT, SCALES
from discodso.reproduce.tables import Entry, to_markdown
from discodso.run.executors.registry import Processes, Threads
from discodso.run.result import HistoryRow
from discodso.tasks.regression.problems import problems

TINY = replace(
    SCALES["smoke"],
    bits=3,
    bit_calls=30,
    bit_seeds=2,
    tree_calls=dict.fromkeys(paper.ENVIRONMENTS, 4),
    episodes=dict.fromkeys(paper.ENVIRONMENTS, 2),
    tree_seeds=1,
    test_seeds=3,
    problems=("Constant-5",),
    problem_calls=40,
    problem_seeds=1,
    bo_seconds=0.5,
)


def ignore(line: str) -> None:
    """Nobody watches."""


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_one_artefact_has_all_its_files_and_is_not_run_again(tmp_path):
    lines: list[str] = []
    with Threads(1) as executor:
        reproduce("regression", TINY, tmp_path, executor, lines.append)
        first = len(lines)
        reproduce("regression-gaps", TINY, tmp_path, executor, lines.append)  # of the same runs
    assert first == len(TINY.regression_methods()) + 1
    assert len(lines) == first + 1
    for name in ("regression.csv", "regression.md", "regression.png", "regression-gaps.md"):
        assert (tmp_path / name).stat().st_size > 0
    table = rows_of(tmp_path / "regression.csv")
    assert {row["row"] for row in table} == {*TINY.regression_methods(), *paper.QUOTED_REGRESSION}
    disco = next(row for row in table if row["row"] == "DisCo-DSO" and row["column"] == "all")
    assert disco["paper"] == "0.7045"
    assert float(disco["difference"]) == pytest.approx(float(disco["ours"]) - 0.7045)
    kamienny = next(row for row in table if row["row"].startswith("Kamienny"))
    assert (kamienny["ours"], kamienny["quoted"]) == ("", "yes")
    runs = rows_of(tmp_path / "regression-runs.csv")
    assert all(int(row["calls"]) == 40 for row in runs if row["method"] != "BO")


def test_runs_with_other_settings_are_not_taken_for_these(tmp_path):
    with Threads(1) as executor:
        reproduce("regression", TINY, tmp_path, executor, ignore)
        with pytest.raises(SettingsError, match="other settings; give another folder"):
            reproduce("regression", replace(TINY, inner_calls=7), tmp_path, executor, ignore)


def test_more_calls_go_on_with_the_same_runs(tmp_path):
    with Threads(1) as executor:
        reproduce("regression", TINY, tmp_path, executor, ignore)
        reproduce("regression", replace(TINY, problem_calls=60), tmp_path, executor, ignore)
    runs = rows_of(tmp_path / "regression-runs.csv")
    assert all(int(row["calls"]) == 60 for row in runs if row["method"] != "BO")


@pytest.mark.slow
def test_all_artefacts_are_made(tmp_path):
    with Processes(2) as executor:
        made = reproduce("all", TINY, tmp_path, executor, ignore)
    assert made == list(ARTEFACTS)
    pictures = {path.name for path in tmp_path.glob("*.png")}
    trees = {f"tree-{name.lower()}.png" for name in paper.ENVIRONMENTS}
    assert pictures == {
        *trees,
        *(f"{n}.png" for n in ("landscapes bitstring curves regression lengths".split())),
    }
    tables = {path.stem for path in tmp_path.glob("*.md")} - {"README"}
    assert {"bitstring-gaps", "policies", "policies-nodes", "policy-gaps", "policy-gaps-literature"} <= tables
    assert {"seconds", "efficiency", "regression", "regression-gaps", "architectures", "trees"} <= tables
    assert all((tmp_path / f"{name}.csv").exists() for name in tables)


def test_scales_and_artefacts_cover_what_was_promised():
    small, whole = SCALES["small"], SCALES["full"]
    assert len(small.problems) == 12
    assert list(small.problems) == [problem.name for problem in problems("all")][::4]
    assert len(whole.problems) == 45
    assert (whole.problem_calls, whole.problem_seeds, whole.population) == (1_000_000, 10, 1000)
    decoupled = [f"Decoupled-{kind}-{inner}" for kind in ("RL", "GP") for inner in ("BFGS", "anneal", "evo")]
    for scale in (small, whole, TINY):
        for methods in (scale.bitstring_methods(), scale.tree_methods()):
            assert list(methods) == ["DisCo-DSO", DEFAULT, *decoupled, "BO", "GP", "Random"]


def test_the_papers_gaps_agree_with_its_own_table():
    # Its gap tables are differences of its table of results: a slip of the pen in our copy would show here.
    for name, gaps in paper.REGRESSION_GAPS.items():
        for column, gap in gaps.items():
            exact = paper.REGRESSION["DisCo-DSO"][column] - paper.REGRESSION[name][column]
            assert gap == pytest.approx(exact, abs=0.01), name
    for name, gaps in paper.LITERATURE_TREE_GAPS.items():
        for environment, gap in gaps.items():
            exact = paper.TREE_REWARDS["DisCo-DSO"][environment] - paper.TREE_REWARDS[name][environment]
            assert gap == pytest.approx(exact, abs=0.011), (name, environment)


def test_a_table_shows_ours_the_papers_and_the_difference():
    text = to_markdown("T", "C", [Entry("a", "x", 1.5, 0.25, 1.0), Entry("b", "x", None, None, 2.0, True)], 2)
    assert "| a | 1.50 ± 0.25 | 1.00 | +0.50 |" in text
    assert "| b (quoted) | - | 2.00 | - |" in text


def test_a_curve_is_the_mean_of_the_best_so_far():
    def record(*pairs: tuple[int, float]) -> Record:
        rows = [HistoryRow(c, b, b, b, None, None, 1.0, 1, 0, 0.0, 10.0 * c) for c, b in pairs]
        return Record(None, None, None, None, 0, 0.0, tuple(rows))  # type: ignore[arg-type]

    line = curve([record((10, 1.0), (20, 3.0)), record((10, 2.0), (40, 4.0))], "calls", "deviation")
    assert line.x[-1] == 20  # where the first run ends
    assert line.mean[-1] == 2.5
    assert line.mean[99] == 1.5
    assert line.spread[99] == pytest.approx(0.5**0.5)
    assert curve([record((10, 1.0))], "episodes", "error").x[-1] == 100


def test_curves_are_drawn_where_they_are_told_apart():
    x = np.arange(200.0)
    close = [MeanCurve(x, np.full(200, height), x, 1) for height in (9.0, 9.5, 10.0)]
    steep = MeanCurve(x, np.where(x < 20, -1000.0, 9.0), x, 1)
    low, high = _heights([*close, steep])
    assert 8.5 < low < 9.0 < 10.0 < high < 10.5
    assert _heights([]) == (0.0, 1.0)
    assert _heights([MeanCurve(x, np.full(200, np.nan), x, 1)]) == (0.0, 1.0)


def test_trees_that_were_tested_before_keep_the_names_of_their_features(tmp_path):
    design = Design.of(("velocity <", 0.0), "left", "right")
    (job,) = [
        job for job in tree_artefacts.jobs(TINY) if (job.case, job.method) == ("MountainCar-v0", paper.DISCO)
    ]
    records = [Record(job, -119.0, 1, design, 4, 1.0, ())]
    (tmp_path / "runs/trees/mountaincar-v0/disco-dso").mkdir(parents=True)
    for _ in range(2):  # then from the file
        policy, returns = tree_artefacts._tested(TINY, records, "MountainCar-v0", paper.DISCO, tmp_path)
        assert "velocity" in policy.export("text")
        assert "left" in policy.export("text")
        assert len(returns) == 3


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_the_bench_keeps_its_runs_and_goes_on_with_them(tmp_path, preset):
    lines: list[str] = []

    def table(seeds, calls):
        with Threads(1) as executor:
            return bench(["Constant-6"], seeds, calls, "A", preset, tmp_path, executor, lines.append)

    first, more = table(1, 400), table(2, 800)
    assert "| Constant-6 | 1 |" in first
    assert "mean, all" in first
    assert len(lines) == 3  # the first run goes on
    assert (table(1, 400), table(2, 800)) == (first, more)
    assert len(lines) == 3
    scores = [json.loads(line) for line in (tmp_path / f"{preset}-A-800.jsonl").read_text().splitlines()]
    assert [own["seed"] for own in scores] == [0, 1]
    assert all(own["calls"] <= 800 and 0 <= own["evaluation"] <= 1 for own in scores)
    alone = run_problem("Constant-6", 1, 800, preset=preset)
    assert all(alone[key] == scores[1][key] for key in ("train", "evaluation", "expression", "calls"))
    (tmp_path / f"runs/regression/constant-6-a/{preset}/seed-1/score-800.json").write_text("{")  # damaged
    assert table(2, 800).count("Constant-6") == 1
    assert len(lines) == 4


def test_the_command_lists_names_and_refuses_others(tmp_path):
    listed = run("reproduce")
    assert listed.returncode == 0
    assert all(name in listed.stdout for name in ARTEFACTS)
    wrong = run("reproduce", "figure-7", "--out", str(tmp_path))
    assert wrong.returncode == 1
    assert "NAME must be one of" in wrong.stderr
    made = run("reproduce", "landscapes", "--out", str(tmp_path / "out"), "--workers", "1")
    assert made.returncode == 0
    assert (tmp_path / "out" / "landscapes.png").exists()
    with Threads(1) as executor, pytest.raises(DeclarationError):
        reproduce("nothing", TINY, tmp_path, executor, ignore)
