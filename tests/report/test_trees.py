"""Trees of custom tasks: drawn from the folder alone, nothing overlaps, names are shown as they are."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from report_runs import IMAGE, NASTY, command, own_task, tree_task

from discodso import Choice, Design, RandomSettings, Real, Space, Task, Token, Tree, resume, search
from discodso.report import trees
from discodso.report.folders import read_run
from discodso.report.writing import write_report
from discodso.space.design import value_texts

SVG = "{http://www.w3.org/2000/svg}"
ARITIES = {"one": 1, "two": 2, "three": 3, "leaf": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tree_task(tmp_path_factory.mktemp("tree") / "run")


def data_of(folder, out):
    html = write_report([folder], out).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])["tasks"][0]["groups"][0]


def ends_of(path: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an edge begins and ends."""
    steps = re.findall(r"([MVHQ])([^MVHQ]*)", path)
    start = x, y = tuple(map(float, steps[0][1].split()))
    for letter, rest in steps[1:]:
        numbers = list(map(float, rest.split()))
        x = numbers[-2] if letter == "Q" else numbers[0] if letter == "H" else x
        y = numbers[-1] if letter in "QV" else y
    return start, (x, y)


def check(svg: str, design: Design) -> None:
    """The picture has a box for each token, below its parent and joined to it, and no two overlap."""
    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.get("viewBox").split())
    edges, nodes = root.findall(f"{SVG}g")
    boxes = []
    for group, name, entry in zip(nodes.findall(f"{SVG}g"), design.tokens, design.values, strict=True):
        x, y, wide, high = (float(group.find(f"{SVG}rect").get(k)) for k in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + wide <= width
        assert y + high <= height
        lines = group.findall(f"{SVG}text")
        shown = [
            "".join(line.text for line in lines if line.get("font-size") == size) for size in ("10", "8")
        ]
        plain = [re.sub(r"\s", "", text) for text in (name, "".join(value_texts(entry, ".4g")))]
        assert [text.replace(" ", "") for text in shown] == plain
        for line in lines:
            assert y < float(line.get("y")) < y + high
            half = trees.text_width(line.text, float(line.get("font-size"))) / 2
            assert x <= float(line.get("x")) - half
            assert float(line.get("x")) + half <= x + wide
        boxes.append((x, y, x + wide, y + high))
    for n, a in enumerate(boxes):
        for b in boxes[:n]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    pairs = [(parent, child) for parent, own in enumerate(design.children) for child in own]
    for path, (parent, child) in zip(edges.findall(f"{SVG}path"), pairs, strict=True):
        (x, y), (end_x, end_y) = ends_of(path.get("d"))
        above, below = boxes[parent], boxes[child]
        assert (x, y) == pytest.approx(((above[0] + above[2]) / 2, above[3]), abs=0.2)
        assert (end_x, end_y) == pytest.approx(((below[0] + below[2]) / 2, below[1]), abs=0.2)
        assert above[3] < below[1]
    for own in design.children:
        assert [boxes[child][0] for child in own] == sorted(boxes[child][0] for child in own)


def random_tree(rng: np.random.Generator, most: int) -> Design:
    tokens, slots = [], 1
    while slots:
        room = most - len(tokens) - slots
        token = rng.choice([name for name, arity in ARITIES.items() if arity <= room])
        tokens.append((str(token), float(rng.normal()) if rng.random() < 0.4 else None))
        slots += ARITIES[token] - 1
    return Design.of(*tokens).as_tree(ARITIES)


# ---------------------------------------------------------------------------------------------------- folders


def test_a_report_from_the_folder_alone_draws_the_best_designs(folder, tmp_path):
    assert json.loads((folder / "top.json").read_text())["arities"] == {"mix": 3, "turn": 1, "source": 0}
    group, designs = data_of(folder, tmp_path / "r.html"), [s.design for s in read_run(folder).designs]
    check(group["best"]["svg"], designs[0])
    assert len(group["designs"]) == len(designs) == 10
    for shown, design in zip(group["designs"], designs, strict=True):
        check(shown["svg"], design)
        assert shown["text"] == str(design)
        assert re.match(r"mix\(gain=.*, delay=.*, mode=.*, phase=.*\)\((mix|turn|source)\(", shown["line"])
        assert shown["line"].count("source(") == design.tokens.count("source")
    failed = group["failures"]["listed"][0]["design"]
    assert failed.startswith("turn(")
    assert failed.endswith(")")


def test_without_arities_in_the_folder_there_are_chips(folder, tmp_path):
    kept = (folder / "top.json").read_text()
    try:
        for wrong in (None, [], {"mix": -1}, {"mix": 2.5}, {"mix": True}, {}, {"mix": 10**9}):
            top = json.loads(kept)
            top["arities"] = wrong
            (folder / "top.json").write_text(json.dumps(top))
            best = data_of(folder, tmp_path / "r.html")["best"]
            assert best["svg"] is None
            assert best["tokens"][0] == "mix"
    finally:
        (folder / "top.json").write_text(kept)


def test_sequences_stay_chips(tmp_path):
    own_task(tmp_path / "run")
    assert "arities" not in json.loads((tmp_path / "run" / "top.json").read_text())
    group = data_of(tmp_path / "run", tmp_path / "r.html")
    assert all(shown["svg"] is None and not shown["tree"] for shown in [group["best"], *group["designs"]])


def test_the_commands_print_nested_calls(tmp_path, monkeypatch):
    (tmp_path / "nested_task.py").write_text(
        "from discodso import Space, Task, Token, Tree\n"
        "space = Space([Token('add', 2), Token('x'), Token('c', range=(0, 1))], Tree(3, 3))\n"
        "task = Task(space, lambda design: design.values[1] if design.tokens[1:] == ('c', 'x') else 0.0)\n"
    )
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f"[task]\nkind = 'custom'\ntask = 'nested_task:task'\npath = {str(tmp_path)!r}\n[run]\nbudget = 100\n"
    )
    monkeypatch.setenv("COLUMNS", "120")
    assert re.search(r"add\(c\(0\.\d+\), x\)", command("run", settings, "--out", tmp_path / "run"))
    assert re.search(r"add\(c\(0\.\d+\), x\)", command("show", tmp_path / "run"))
    assert data_of(tmp_path / "run", tmp_path / "r.html")["best"]["svg"].startswith("<svg")


def test_a_resumed_run_knows_its_trees(tmp_path):
    space = Space([Token("neg", 1), Token("leaf", range=(0, 1))], Tree(1, 4))
    task = Task(space, lambda design: len(design) + design.values[-1])
    search(task, budget=50, method=RandomSettings(50), out=tmp_path / "run")
    result = resume(tmp_path / "run", budget=50, task=task)
    assert all(str(scored.design).startswith("neg(neg(neg(leaf(") for scored in result.top[:3])
    html = result._repr_html_()
    assert html.count('role="img"') == 1  # the best is drawn, the others are text
    assert html.count("neg(neg(neg(leaf(") >= 3


# ---------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("seed", range(25))
def test_trees_of_any_shape_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    design = random_tree(rng, int(rng.integers(1, 80)))
    check(trees.svg(design), design)


def test_a_single_node_is_a_tree(tmp_path):
    design = Design.of(("leaf", 0.5)).as_tree(ARITIES)
    check(trees.svg(design), design)
    assert "<svg" in design._repr_html_()


def test_long_names_and_four_values_are_wrapped_not_shrunk(tmp_path):
    names = tuple(f"a_rather_long_name_of_a_part_{n}_with_much_to_say" for n in range(3))
    folder = tree_task(tmp_path / "run", names, (40, 40))
    svg, design = data_of(folder, tmp_path / "r.html")["best"]["svg"], read_run(folder).designs[0].design
    check(svg, design)
    root = ElementTree.fromstring(svg)
    assert float(root.get("width").removesuffix("pt")) == pytest.approx(
        float(root.get("viewBox").split()[2]), abs=1
    )
    assert max(float(rect.get("width")) for rect in root.iter(f"{SVG}rect") if rect.get("x")) < 150


def test_names_are_text_whatever_they_are(tmp_path):
    folder = tree_task(tmp_path / "run", (NASTY, IMAGE, "\"'&amp; ]]> <"))
    group, design = data_of(folder, tmp_path / "r.html"), read_run(folder).designs[0].design
    check(group["best"]["svg"], design)
    tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(group["best"]["svg"]).iter()}
    assert tags == {"svg", "g", "rect", "path", "text"}
    html = design._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    odd = Design.of(("a\x00\u2028b\ud800", {"kind": "\x1b"}), "漢字🎉").as_tree({"a\x00\u2028b\ud800": 1})
    words = [text.text for text in ElementTree.fromstring(trees.svg(odd)).iter(f"{SVG}text")]
    assert words == ["a b", "kind=", "漢字🎉"]


def test_trees_too_large_to_look_at_are_text(tmp_path):
    design = Design.of(*["one"] * 400, "leaf").as_tree(ARITIES)
    assert trees.svg(design) is None
    space = Space([Token("one", 1), Token("leaf", kind=Choice("a", "b"), v=Real(0, 1))], Tree(401, 401))
    search(Task(space, lambda d: d[-1]["v"]), budget=50, method=RandomSettings(50), out=tmp_path / "run")
    best = data_of(tmp_path / "run", tmp_path / "r.html")["best"]
    assert best["svg"] is None
    assert best["tree"]
