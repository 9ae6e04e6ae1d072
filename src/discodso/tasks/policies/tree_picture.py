"""A tree policy as a picture: decisions, actions in colour, and how often each node is visited.

Lengths are points, 72 to the inch; x grows to the right and y downwards from the top of the picture.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Transform

from discodso.base.errors import DeclarationError
from discodso.base.files import write_atomically
from discodso.tasks.policies.export.words import (
    action_words,
    checked_shares,
    feature_words,
    one_line,
    percent,
    short_thresholds,
)
from discodso.tasks.policies.tree import DecisionTree

# Okabe and Ito's colours, which people with any colour vision tell apart; their black would hide the border.
_COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
_FAMILY = ("DejaVu Sans", "sans-serif")  # the first comes with Matplotlib, so widths are the same everywhere
_WORDS, _SMALL, _TITLE = 10.0, 8.0, 12.0
_LINE = 1.3  # height of a line of text, in sizes of the font
_PADDING_X, _PADDING_Y = 9.0, 5.0
_WIDEST = 125.0  # of a line in a box; longer names are wrapped
_LONGEST = 72  # characters of a name; longer ones lose their middle
_BESIDE, _BETWEEN_ROWS, _STEM = 14.0, 36.0, 9.0
_MARGIN = 12.0
_DEEP = 6  # deeper trees are drawn with their chains straight down, or they would be as wide as they are high
_DPI, _MOST_PIXELS = 150, 30_000


def draw(policy: DecisionTree, path: str | Path, shares: Any = None, title: str | None = None) -> None:
    """Write the picture as SVG or PNG, as the ending of the path says; see `figure` for the rest."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise DeclarationError(f"the picture must be a file .svg or .png, got {str(path)!r}")
    write_atomically(path, _content(figure(policy, shares, title), kind[1:]))


def svg(policy: DecisionTree, shares: Any = None, title: str | None = None) -> str:
    """The picture as the text of an SVG file."""
    return _content(figure(policy, shares, title), "svg").decode()


def _content(made: Figure, kind: str) -> bytes:
    content = io.BytesIO()
    # Text stays text, and the same tree gives the same bytes whatever the user's style file says.
    with matplotlib.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "discodso",
            "savefig.bbox": None,
            "font.sans-serif": [_FAMILY[0]],
        }
    ):
        if kind == "svg":
            made.savefig(content, format="svg", transparent=False, facecolor="white", metadata={"Date": None})
        else:
            dpi = min(_DPI, _MOST_PIXELS / max(made.get_size_inches()))
            made.savefig(content, format="png", transparent=False, facecolor="white", dpi=dpi)
    return content.getvalue()


def figure(policy: DecisionTree, shares: Any = None, title: str | None = None) -> Figure:
    """The picture as a Matplotlib figure, which belongs to no window and no pyplot state.

    Args:
        policy: what to draw.
        shares: of each node the share of visits, from 0 to 1, as `node_shares` gives; sets widths and percentages.
        title: above the tree.
    """
    visits = checked_shares(policy, shares)
    blocks = _blocks(policy, visits)
    places = _places(policy, blocks)
    tree_width = max(x + block.width / 2 for (x, _), block in zip(places, blocks, strict=True))
    bottom = max(y + block.height for (_, y), block in zip(places, blocks, strict=True))

    heading = _block(_wrapped(one_line(title), _TITLE, max(tree_width, 300.0))) if title else None
    note = _block([("%: share of the steps that pass a node", _SMALL)]) if visits else None
    width = max([tree_width, *(extra.width for extra in (heading, note) if extra)]) + 2 * _MARGIN
    top = _MARGIN + (heading.height if heading else 0.0)
    height = top + bottom + (note.height if note else 0.0) + _MARGIN
    places = [(x + (width - tree_width) / 2, y + top) for x, y in places]

    made = Figure(figsize=(width / 72, height / 72), dpi=72, facecolor="white")
    made.set_layout_engine("none")
    FigureCanvasAgg(made)
    points = Affine2D().translate(0, -height).scale(1 / 72, -1 / 72) + made.dpi_scale_trans
    if heading:
        _write(made, points, heading, width / 2, _MARGIN / 2, "black", "title")
    if note:
        _write(made, points, note, width / 2, height - _MARGIN / 2 - note.height, "#555555", "note")
    _draw_edges(made, points, policy, visits, blocks, places)
    colours = _colours(policy)
    for node, (block, (x, y)) in enumerate(zip(blocks, places, strict=True)):
        leaf = policy.feature[node] < 0
        fill = colours[policy.jump[node]] if leaf else "#FFFFFF"
        words, border = _readable_on(fill), "#444444"
        if visits and visits[node] == 0:
            fill, words, border = "#EEEEEE", "#666666", "#BBBBBB"
        rounding = 12.0 if leaf else 4.0
        box = FancyBboxPatch(
            (x - block.width / 2, y),
            block.width,
            block.height,
            boxstyle=f"round,pad=0,rounding_size={min(rounding, block.height / 2)}",
            facecolor=fill,
            edgecolor=border,
            linewidth=1.0,
            zorder=3,
            gid=f"node-{node}",
            transform=points,
        )
        made.add_artist(box)
        _write(made, points, block, x, y, words, f"words-{node}")
    return made


# ------------------------------------------------------------------------------------------------ words


@dataclass(frozen=True)
class _Block:
    """Lines of text with their font sizes, and the box that holds them."""

    lines: tuple[tuple[str, float], ...]
    width: float
    height: float


@lru_cache(maxsize=4096)
def _text_width(words: str, size: float) -> float:
    font = FontProperties(family=list(_FAMILY), size=size)
    width: float = text_to_path.get_text_width_height_descent(words, font, ismath=False)[0]
    # The font has no wide characters, but whoever shows the SVG may have.
    return width + 0.5 * size * sum(unicodedata.east_asian_width(c) in "WF" for c in words)


def _block(lines: Sequence[tuple[str, float]]) -> _Block:
    width = max(_text_width(words, size) for words, size in lines) + 2 * _PADDING_X
    height = sum(_LINE * size for _, size in lines) + 2 * _PADDING_Y
    return _Block(tuple(lines), max(width, 4 * _SMALL), height)


def _wrapped(words: str, size: float, widest: float) -> list[tuple[str, float]]:
    """Lines no wider than `widest`, broken at spaces and after _ - . / if possible."""
    lines = [""]
    for piece in re.findall(r"[^\s_\-./]*[\s_\-./]?", words):
        if _text_width((lines[-1] + piece).rstrip(), size) <= widest:
            lines[-1] += piece
            continue
        lines.append("")
        for character in piece if _text_width(piece.rstrip(), size) > widest else [piece]:
            if _text_width((lines[-1] + character).rstrip(), size) > widest:
                lines.append("")
            lines[-1] += character
    return [(line.strip(), size) for line in lines if line.strip()] or [("", size)]


def _shortened(words: str) -> str:
    """Without the middle if too long: names that differ do so at an end more often."""
    keep = _LONGEST // 2
    return words if len(words) <= _LONGEST else f"{words[:keep]}…{words[-keep:]}"


def _blocks(policy: DecisionTree, visits: list[float] | None) -> list[_Block]:
    thresholds = short_thresholds(policy)
    names = [
        _shortened(feature_words(policy, feature) if feature >= 0 else action_words(policy, jump))
        for feature, _, jump in policy.nodes
    ]
    decisions = {n: f"{names[n]} < {thresholds[n]}" for n in range(len(policy)) if policy.feature[n] >= 0}
    fit = all(_text_width(words, _WORDS) <= _WIDEST for words in decisions.values())
    blocks = []
    for node, name in enumerate(names):
        if fit and node in decisions:
            lines = [(decisions[node], _WORDS)]
        else:
            lines = _wrapped(name, _WORDS, _WIDEST)
            lines += [(f"< {thresholds[node]}", _WORDS)] if node in decisions else []
        lines += [(percent(visits[node]), _SMALL)] if visits else []
        blocks.append(_block(lines))
    return blocks


def _write(made: Figure, points: Transform, block: _Block, x: float, y: float, colour: str, gid: str) -> None:
    """Draw the lines of a block whose top centre is (x, y)."""
    y += _PADDING_Y
    for number, (words, size) in enumerate(block.lines):
        y += _LINE * size
        made.text(
            x,
            y - 0.3 * size,
            words,
            size=size,
            color=colour,
            family=list(_FAMILY),
            weight="normal",
            ha="center",
            va="baseline",
            parse_math=False,
            usetex=False,
            zorder=4,
            gid=f"{gid}-{number}",
            transform=points,
        )


# ------------------------------------------------------------------------------------------------ places


def _places(policy: DecisionTree, blocks: Sequence[_Block]) -> list[tuple[float, float]]:
    """Top centre of each box, after Reingold and Tilford: subtrees as close as their outlines allow.

    The leftmost box begins at 0, and so does the first row. Boxes of one depth share their top.
    """
    size, deep = len(policy), policy.depth > _DEEP
    beside = [0.0] * size  # of each node how far it is to the right of its parent
    outlines: dict[
        int, list[tuple[float, float]]
    ] = {}  # of a subtree: left and right of each row, from its root
    for node in reversed(range(size)):
        half = blocks[node].width / 2
        outlines[node] = [(-half, half)]
        if policy.feature[node] >= 0:
            left, right = outlines.pop(node + 1), outlines.pop(policy.jump[node])
            both = min(len(left), len(right))
            apart = max(left[row][1] - right[row][0] for row in range(both)) + _BESIDE
            back, forth = -apart / 2, apart / 2
            if deep and len(left) != len(right) and both == 1:  # one branch is a leaf
                back, forth = (-apart, 0.0) if len(left) == 1 else (0.0, apart)
            beside[node + 1], beside[policy.jump[node]] = back, forth
            outlines[node] += [(left[row][0] + back, right[row][1] + forth) for row in range(both)]
            outlines[node] += [(low + back, high + back) for low, high in left[both:]]
            outlines[node] += [(low + forth, high + forth) for low, high in right[both:]]
    x = [-min(low for low, _ in outlines[0])] * size
    depths = policy.depths()
    rows = [0.0] * (max(depths) + 1)
    for node, depth in enumerate(depths):
        rows[depth] = max(rows[depth], blocks[node].height)
        if policy.feature[node] >= 0:
            for child in (node + 1, policy.jump[node]):
                x[child] = x[node] + beside[child]
    tops = [sum(rows[:depth]) + depth * _BETWEEN_ROWS for depth in range(len(rows))]
    return [(x[node], tops[depths[node]]) for node in range(size)]


def _draw_edges(
    made: Figure,
    points: Transform,
    policy: DecisionTree,
    visits: list[float] | None,
    blocks: Sequence[_Block],
    places: Sequence[tuple[float, float]],
) -> None:
    """Down from a box, along the gap between two rows, down to the child: so no edge meets another box."""
    for child, parent in enumerate(policy.parents()):
        if parent < 0:
            continue
        (x, y), (from_x, from_y) = places[child], places[parent]
        bend = y - _BETWEEN_ROWS + _STEM
        corner = 5.0 * ((x > from_x) - (x < from_x))
        outline = Outline(
            [
                (from_x, from_y + blocks[parent].height),
                (from_x, bend - 5),
                (from_x, bend),
                (from_x + corner, bend),
                (x - corner, bend),
                (x, bend),
                (x, bend + 5),
                (x, y),
            ],
            [1, 2, 3, 3, 2, 3, 3, 2],
        )
        seen = visits is None or visits[child] > 0
        edge = PathPatch(
            outline,
            fill=False,
            edgecolor="#666666" if seen else "#BBBBBB",
            linewidth=1.2 if visits is None else 0.8 + 4.2 * visits[child],
            linestyle="solid" if seen else (0, (3, 2)),
            capstyle="butt",
            joinstyle="round",
            zorder=1 + (visits[child] if visits else 0),  # the busier one on top where they leave together
            gid=f"edge-{child}",
            transform=points,
        )
        made.add_artist(edge)
        middle = (bend + y) / 2
        made.text(
            x,
            middle + 0.36 * _SMALL,
            "yes" if child == parent + 1 else "no",
            size=_SMALL,
            color="#333333" if seen else "#666666",
            family=list(_FAMILY),
            weight="normal",
            ha="center",
            va="baseline",
            usetex=False,
            zorder=2.5,
            gid=f"answer-{child}",
            transform=points,
            bbox={"facecolor": "white", "edgecolor": "none", "boxstyle": "square,pad=0.12"},
        )


# ------------------------------------------------------------------------------------------------ colours


def _colours(policy: DecisionTree) -> dict[int, str]:
    """One colour for each action: the plain ones, then paler and darker ones, then over again."""
    leaves = {jump for feature, _, jump in policy.nodes if feature < 0}
    actions = sorted(leaves | {action for action, _ in policy.action_names})
    shades = [_mixed(colour, end) for end in (None, 255, 0) for colour in _COLOURS]
    return {action: shades[place % len(shades)] for place, action in enumerate(actions)}


def _mixed(colour: str, end: int | None) -> str:
    if end is None:
        return colour
    return "#" + "".join(f"{(int(colour[i : i + 2], 16) + end) // 2:02X}" for i in (1, 3, 5))


def _readable_on(colour: str) -> str:
    """Black or white, whichever has more contrast by the formula of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#FFFFFF"
