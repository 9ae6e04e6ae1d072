"""Pictures of policies: nothing overlaps, names are shown as they are, and the same tree gives the same file."""

from __future__ import annotations

import importlib
import math
import re
import sys
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from control_trees import chain, complete_tree, random_tree
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.text import Text
from mixed_trees import NUMBERS

from discodso.base.errors import DeclarationError
from discodso.report import trees
from discodso.tasks.policies import tree_picture as picture
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.splits import Oblique
from discodso.tasks.policies.tree_picture import draw, figure
from discodso.tasks.policies.tree_policy import TreePolicy

LONG_FEATURES = (
    "the angle of the first link measured from straight down in radians",
    "angular_velocity_of_the_second_link",
    "x",
    "W" * 100,
)
LONG_ACTIONS = (
    (0, "apply the strongest torque to the left"),
    (1, "i"),
    (2, "Donaudampfschifffahrtsgesellschaft"),
)
SHORT_FEATURES = ("cart position", "cart velocity", "pole angle", "pole velocity")
SHORT_ACTIONS = ((0, "push left"), (1, "wait"), (2, "push right"))


def shares_of(policy: TreePolicy, rng: np.random.Generator) -> np.ndarray:
    shares = np.ones(len(policy))
    for node, left, right in policy.decisions():
        shares[left] = shares[node] * rng.choice([0.0, 1.0, rng.random(), rng.random()])
        shares[right] = shares[node] - shares[left]
    return shares


def bounding_boxes(made: Figure) -> dict[str, tuple[float, float, float, float]]:
    """Left, bottom, right and top in points of all boxes and lines of text of a figure, y upwards.

    By id: "node-3" is a box, "words-3-0" the first line in it, "answer-3" the yes or no above it.
    """
    canvas = FigureCanvasAgg(made)
    renderer, scale = canvas.get_renderer(), 72 / made.dpi
    found = {}
    for artist in made.get_children():
        if artist.get_gid() and isinstance(artist, (FancyBboxPatch, Text)):
            box = artist.get_window_extent(renderer)
            found[str(artist.get_gid())] = (box.x0 * scale, box.y0 * scale, box.x1 * scale, box.y1 * scale)
    return found


def overlap(a, b, slack=0.0):
    return a[0] < b[2] - slack and b[0] < a[2] - slack and a[1] < b[3] - slack and b[1] < a[3] - slack


def inside(inner, outer):
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def check_layout(policy: TreePolicy, made: Figure) -> None:
    boxes = bounding_boxes(made)
    canvas = (0.0, 0.0, *(made.get_size_inches() * 72))
    assert all(inside(box, canvas) for box in boxes.values())
    apart = [key for key in boxes if not key.startswith("words-")]
    assert sum(key.startswith("node-") for key in apart) == len(policy)
    assert sum(key.startswith("answer-") for key in apart) == len(policy) - 1
    for i, first in enumerate(apart):
        for second in apart[:i]:
            assert not overlap(boxes[first], boxes[second]), (first, second)
    lines: dict[str, list] = {}
    for key, box in boxes.items():
        if key.startswith("words-"):
            node = key.split("-")[1]
            assert inside(box, boxes[f"node-{node}"]), key
            lines.setdefault(node, []).append(box)
    assert len(lines) == len(policy)
    for stack in lines.values():
        assert not any(overlap(a, b) for i, a in enumerate(stack) for b in stack[:i])
    check_edges(policy, made, boxes)
    for node, *children in policy.decisions():  # yes to the left, no to the right, both lower
        (left, _, _, up), (right, *_) = (boxes[f"node-{child}"] for child in children)
        assert left < right
        assert up < boxes[f"node-{node}"][1]


def check_edges(policy, made, boxes):
    """An edge touches its own two boxes only."""
    parents = {child: node for node, *children in policy.decisions() for child in children}
    edges = [a for a in made.get_children() if isinstance(a, PathPatch)]
    assert len(edges) == len(policy) - 1
    for edge in edges:
        child = int(edge.get_gid().removeprefix("edge-"))
        points = edge.get_transform().transform(edge.get_path().vertices) * 72 / made.dpi
        for (x0, y0), (x1, y1) in pairwise(points):
            part = (min(x0, x1) - 0.1, min(y0, y1) - 0.1, max(x0, x1) + 0.1, max(y0, y1) + 0.1)
            for node in set(range(len(policy))) - {child, parents[child]}:
                assert not overlap(part, boxes[f"node-{node}"]), (child, node)


@pytest.mark.parametrize("batch", range(4))
def test_nothing_overlaps_and_everything_is_inside(batch):
    rng = np.random.default_rng(batch)
    for number in range(50):
        policy = random_tree(rng, int(rng.integers(0, 16)), lean=(None, 0.02, 0.5, 0.98)[number % 4])
        names = (LONG_FEATURES, LONG_ACTIONS) if number % 3 else (SHORT_FEATURES, SHORT_ACTIONS)
        policy = policy.with_names(None, *names) if number % 5 else policy
        shares = shares_of(policy, rng) if number % 2 else None
        check_layout(policy, figure(policy, shares, (None, "A title", "a long title " * 20)[number % 3]))


@pytest.mark.parametrize("policy", [complete_tree(4), chain(15), chain(15, goes_left=True)])
@pytest.mark.parametrize("names", [(SHORT_FEATURES, SHORT_ACTIONS), (LONG_FEATURES, LONG_ACTIONS)])
def test_the_extreme_shapes(policy, names):
    made = figure(policy.with_names(None, *names), shares_of(policy, np.random.default_rng(0)))
    check_layout(policy, made)
    width, height = made.get_size_inches()
    assert max(width, height) < 40
    used = sum(
        (b[2] - b[0]) * (b[3] - b[1]) for key, b in bounding_boxes(made).items() if key.startswith("node-")
    )
    assert used / (72 * 72 * width * height) > 0.15  # the rest is not paper wasted


def test_the_check_of_the_layout_would_notice_an_overlap(monkeypatch):
    monkeypatch.setattr(trees, "_BESIDE", -20.0)
    with pytest.raises(AssertionError):
        check_layout(complete_tree(3), figure(complete_tree(3)))


# ------------------------------------------------------------------------------------------------ what is shown


def words_of(made: Figure) -> dict[str, str]:
    return {text.get_gid(): text.get_text() for text in made.texts}


def faces_of(made: Figure) -> dict[str, str]:
    boxes = [patch for patch in made.get_children() if isinstance(patch, FancyBboxPatch)]
    return {box.get_gid(): matplotlib.colors.to_hex(box.get_facecolor()) for box in boxes}


def small_tree(first=0.5, second=0.50001) -> TreePolicy:
    """Nodes 0 and 1 decide, 2, 3 and 4 are leaves."""
    tree = {"feature": 0, "threshold": second, "left": {"action": 0}, "right": {"action": 1}}
    tree = {"feature": 0, "threshold": first, "left": tree, "right": {"action": 0}}
    return TreePolicy.from_dict(tree).with_names(None, ["angle"], [(0, "left"), (1, "right")])


def test_nodes_show_names_thresholds_answers_and_shares():
    words = words_of(figure(small_tree(), [1.0, 0.25, 0.25, 0.0, 0.75], "Balance"))
    assert words["words-0-0"] == "angle < 0.5"
    assert words["words-1-0"] == "angle < 0.50001"
    assert [words[f"words-{n}-0"] for n in (2, 3, 4)] == ["left", "right", "left"]
    assert [words[f"words-{n}-1"] for n in range(5)] == ["100%", "25%", "25%", "0%", "75%"]
    assert [words[f"answer-{n}"] for n in (1, 2, 3, 4)] == ["yes", "yes", "no", "no"]
    assert words["title-0"] == "Balance"


def test_without_shares_there_is_no_percentage():
    assert not any("%" in text for text in words_of(figure(small_tree())).values())


def test_one_colour_for_each_action_and_grey_for_what_is_never_visited():
    plain = faces_of(figure(small_tree()))
    assert plain["node-2"] == plain["node-4"] != plain["node-3"]
    shown = faces_of(figure(small_tree(), [1.0, 0.25, 0.25, 0.0, 0.75]))
    assert shown["node-3"] not in plain.values()
    assert {key: shown[key] for key in shown if key != "node-3"} == {
        key: plain[key] for key in plain if key != "node-3"
    }


def test_colours_follow_the_action_not_the_tree():
    leaf = TreePolicy(((Leaf(1), 0),)).with_names(None, ["angle"], [(0, "left"), (1, "right")])
    assert faces_of(figure(leaf))["node-0"] == faces_of(figure(small_tree()))["node-3"]


def luminance(colour: str) -> float:
    parts = np.array(matplotlib.colors.to_rgb(colour))
    return float(
        np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
    )


def test_text_can_be_read_on_every_colour():
    policy = random_tree(np.random.default_rng(5), 60, actions=21)
    made = figure(policy, [0.5] * 60 + [0.0] * 61)
    faces, colours = faces_of(made), {t.get_gid(): t.get_color() for t in made.texts}
    assert len({faces[f"node-{n}"] for n in range(60)}) > 12
    for node in range(len(policy)):
        light, dark = sorted((luminance(faces[f"node-{node}"]), luminance(colours[f"words-{node}-0"])))[::-1]
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_edges_are_as_wide_as_their_share():
    made = figure(small_tree(), [1.0, 0.25, 0.25, 0.0, 0.75])
    widths = {e.get_gid(): e.get_linewidth() for e in made.get_children() if isinstance(e, PathPatch)}
    assert widths["edge-4"] > widths["edge-2"] > widths["edge-3"]


def test_names_are_shown_as_they_are(tmp_path):
    policy = small_tree().with_names(
        None, [r"$\frac{a}{b}$"], [(0, "<b> & 100% $x_1$"), (1, "line\nbreak \x00")]
    )
    draw(policy, tmp_path / "tree.svg", title="$title_1$")
    texts = [
        e.text for e in ElementTree.parse(tmp_path / "tree.svg").iter("{http://www.w3.org/2000/svg}text")
    ]
    assert {r"$\frac{a}{b}$", "< 0.5", "< 0.50001", "<b> & 100% $x_1$"} <= set(texts)
    assert "line break" in texts
    assert "$title_1$" in texts


# ------------------------------------------------------------------------------------------------ files


def test_files_are_the_same_every_time_and_whatever_the_style(tmp_path):
    for ending in ("svg", "PNG"):
        first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
        draw(small_tree(), first, [1.0, 0.25, 0.25, 0.0, 0.75])
        style = {"savefig.bbox": "tight", "font.size": 30, "text.color": "red", "figure.facecolor": "black"}
        with matplotlib.rc_context(style):
            before = dict(matplotlib.rcParams)
            draw(small_tree(), second, [1.0, 0.25, 0.25, 0.0, 0.75])
            assert dict(matplotlib.rcParams) == before
        assert first.read_bytes() == second.read_bytes()
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "a.svg").read_text()
    assert not re.search(r"20\d\d-\d\d-\d\d", text)
    assert 'id="node-0"' in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.PNG", "a.svg", "b.PNG", "b.svg"]


@pytest.mark.parametrize("name", ["tree.pdf", "tree", "tree.svgz", "tree.jpg"])
def test_other_formats_are_refused(tmp_path, name):
    with pytest.raises(DeclarationError, match=r"\.svg or \.png"):
        draw(small_tree(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("last", [[], [2.0, 0.0], [-0.1, 0.0], [math.nan, 0.0], ["a", 0]])
def test_bad_shares_are_refused(tmp_path, last):
    with pytest.raises(DeclarationError, match="shares"):
        draw(chain(1), tmp_path / "a.svg", [1.0, *last])
    assert not list(tmp_path.iterdir())


def test_pyplot_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it is an error now
    importlib.reload(picture).draw(small_tree(), tmp_path / "a.png")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (1e-9, "<0.1%"),
        (0.9999, ">99.9%"),
        (0.5, "50%"),
        (0.042, "4.2%"),
        (0.996, "99.6%"),
    ],
)
def test_percentages(share, text):
    assert picture._percent(share) == text


def test_numbers_of_a_leaf_have_lines_of_their_own_and_are_not_broken():
    first, second = ((0, -12.125), (1, 0.3345), (2, 3.625)), ((2, 4.774),)
    leaf = Leaf(0, (332.25, -0.4144), (first, second))
    policy = TreePolicy(((leaf, 0),), None, ("angle", "speed", "height"), (), NUMBERS)
    lines = [own.get_text() for own in figure(policy).findobj(Text) if own.get_text()]
    for part in ("steer = 332.2", "12.12 * angle", "0.3345 * speed", "3.625 * height", "4.774 * height"):
        assert sum(part in line for line in lines) == 1, (part, lines)
    assert any(line.startswith("gas = -0.4144") for line in lines)


def test_sums_of_a_decision_are_whole_and_broken_before_signs():
    terms = ((0, 0.4098), (1, 0.4078), (2, -1.0), (3, -0.5042))
    names = ("height", "speed across", "angle", "turning speed")
    nodes = ((Oblique(terms, 0.01156), 2), (Leaf(0), 0), (Leaf(1), 0))
    lines = [own.get_text() for own in figure(TreePolicy(nodes, None, names)).findobj(Text)]
    first, *others = lines[2 : lines.index("< 0.01156")]  # behind yes and no
    assert all(line[:2] in ("+ ", "- ") for line in others)
    assert " ".join([first, *others]) == (
        "0.4098 * height + 0.4078 * speed across - angle - 0.5042 * turning speed"
    )
    many = Oblique(tuple((n, 1.5) for n in range(300)), 0.0)
    lines = [own.get_text() for own in figure(TreePolicy(((many, 2), *nodes[1:]))).findobj(Text)]
    assert any(re.fullmatch(r"\.\.\. and \d+ more", line) for line in lines)
    assert len(lines) < 30
