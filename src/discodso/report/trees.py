"""Trees as pictures: boxes of text, where to put them so that none overlap, and the tree of a design as SVG.

Lengths are points, 72 to the inch; x grows to the right and y downwards from the top of the picture.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from discodso.space.design import Design, Entry, one_line, value_texts

FAMILY = ("DejaVu Sans", "sans-serif")  # the first comes with Matplotlib, so widths are the same everywhere
WORDS, SMALL = 10.0, 8.0  # sizes of fonts
LINE = 1.3  # height of a line of text, in sizes of the font
PADDING_X, PADDING_Y = 9.0, 5.0
WIDEST = 125.0  # of a line in a box; longer names are wrapped
MARGIN = 12.0
_LONGEST = 72  # characters of a name; longer ones lose their middle
_BESIDE, _BETWEEN_ROWS = 14.0, 24.0
_DEEP = 6  # deeper trees are drawn with their chains straight down, or they would be as wide as they are high
_MOST = 300  # nodes; larger trees are for programs
_CORNER = 5.0


@dataclass(frozen=True)
class Block:
    """Lines of text with their font sizes, and the box that holds them."""

    lines: tuple[tuple[str, float], ...]
    width: float
    height: float


@lru_cache(maxsize=4096)
def text_width(words: str, size: float) -> float:
    """How wide a line of text is."""
    font = FontProperties(family=list(FAMILY), size=size)
    # The font has no wide characters, but whoever shows the SVG may have.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        width: float = text_to_path.get_text_width_height_descent(words, font, ismath=False)[0]
    return width + 0.5 * size * sum(unicodedata.east_asian_width(c) in "WF" for c in words)


def boxed(lines: Sequence[tuple[str, float]]) -> Block:
    """The box for some lines."""
    width = max(text_width(words, size) for words, size in lines) + 2 * PADDING_X
    height = sum(LINE * size for _, size in lines) + 2 * PADDING_Y
    return Block(tuple(lines), max(width, 4 * SMALL), height)


def wrapped(words: str, size: float, widest: float) -> list[tuple[str, float]]:
    """Lines no wider than `widest`, broken at spaces and after _ - . / if possible, not in a number or term."""
    lines = [""]
    for piece in re.findall(r"(?:[^\s_\-./]|[-.](?=\d)| \* )*[\s_\-./]?", words):
        if text_width((lines[-1] + piece).rstrip(), size) <= widest:
            lines[-1] += piece
            continue
        lines.append("")
        for character in piece if text_width(piece.rstrip(), size) > widest else [piece]:
            if text_width((lines[-1] + character).rstrip(), size) > widest:
                lines.append("")
            lines[-1] += character
    return [(line.strip(), size) for line in lines if line.strip()] or [("", size)]


def shortened(words: str) -> str:
    """Without the middle if too long: names that differ do so at an end more often."""
    keep = _LONGEST // 2
    return words if len(words) <= _LONGEST else f"{words[:keep]}…{words[-keep:]}"


def places(
    children: Sequence[Sequence[int]], blocks: Sequence[Block], between: float = _BETWEEN_ROWS
) -> list[tuple[float, float]]:
    """Top centre of each box, after Reingold and Tilford: subtrees as close as their outlines allow.

    The leftmost box begins at 0, and so does the first row. Boxes of one depth share their top.

    Args:
        children: of each node, left to right; nodes are numbered so that they come after their parents.
        blocks: of each node.
        between: room between two rows.
    """
    depths = [0] * len(blocks)
    for node, own in enumerate(children):
        for child in own:
            depths[child] = depths[node] + 1
    deep = max(depths) > _DEEP
    beside = [0.0] * len(blocks)  # of each node how far it is to the right of its parent
    # Of each subtree the left and the right of each row, from its root.
    outlines = [[(-block.width / 2, block.width / 2)] for block in blocks]
    for node in reversed(range(len(blocks))):
        shifts = _beside_each_other([outlines[child] for child in children[node]], deep)
        for child, shift in zip(children[node], shifts, strict=True):
            beside[child] = shift
            for row, (low, high) in enumerate(outlines[child], 1):
                if row < len(outlines[node]):
                    outlines[node][row] = (outlines[node][row][0], high + shift)
                else:
                    outlines[node].append((low + shift, high + shift))
    x = [-min(low for low, _ in outlines[0])] * len(blocks)
    rows = [0.0] * (max(depths) + 1)
    for node, depth in enumerate(depths):
        rows[depth] = max(rows[depth], blocks[node].height)
        for child in children[node]:
            x[child] = x[node] + beside[child]
    tops = [sum(rows[:depth]) + depth * between for depth in range(len(rows))]
    return [(x[node], tops[depth]) for node, depth in enumerate(depths)]


def _beside_each_other(outlines: Sequence[Sequence[tuple[float, float]]], deep: bool) -> list[float]:
    """How far each of some subtrees is to the right of their parent."""
    shifts: list[float] = []
    reach: list[float] = []  # the right of each row of those before
    for outline in outlines:
        both = min(len(reach), len(outline))
        shift = max(reach[row] - outline[row][0] for row in range(both)) + _BESIDE if both else 0.0
        shifts.append(shift)
        reach[: len(outline)] = [high + shift for _, high in outline]
    middle = shifts[-1] / 2 if shifts else 0.0
    if deep and len(outlines) == 2:
        first, second = map(len, outlines)
        if first != second and min(first, second) == 1:  # one branch is a leaf
            middle = shifts[1] if first == 1 else 0.0
    return [shift - middle for shift in shifts]


# ------------------------------------------------------------------------------------------------ designs


def svg(design: Design) -> str | None:
    """The tree of a design as SVG: a box for each token with its values, in pre-order, and an edge to each but the
    first; None if it is not known to be a tree, or too large to look at."""
    children = design.children
    if children is None or len(design) > _MOST:
        return None
    blocks = [_node(*named) for named in zip(design.tokens, design.values, strict=True)]
    found = [(x + MARGIN, y + MARGIN) for x, y in places(children, blocks)]
    width = max(x + block.width / 2 for (x, _), block in zip(found, blocks, strict=True)) + MARGIN
    height = max(y + block.height for (_, y), block in zip(found, blocks, strict=True)) + MARGIN
    edges = [
        f'<path d="{_edge(*found[parent], blocks[parent].height, *found[child])}"/>'
        for parent, own in enumerate(children)
        for child in own
    ]
    boxes = [
        _box(block, x, y, leaf=not own) for block, (x, y), own in zip(blocks, found, children, strict=True)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}pt" height="{height:.0f}pt" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" data-root="{found[0][0] / width:.3f}">'
        f'<rect width="100%" height="100%" fill="#fff"/>'
        f'<g fill="none" stroke="#666" stroke-width="1.2">{"".join(edges)}</g>'
        f'<g font-family="{", ".join(FAMILY)}" text-anchor="middle">{"".join(boxes)}</g></svg>'
    )


def _node(name: str, entry: Entry) -> Block:
    lines = wrapped(shortened(one_line(name)), WORDS, WIDEST)
    for text in value_texts(entry, ".4g"):
        lines += wrapped(shortened(one_line(text)), SMALL, WIDEST)
    return boxed(lines)


def _edge(from_x: float, from_y: float, from_height: float, x: float, y: float) -> str:
    """Down from a box, along the gap between two rows, down to the child: so no edge meets another box."""
    start = f"M{from_x:.1f} {from_y + from_height:.1f}"
    bend, corner = y - _BETWEEN_ROWS / 2, min(_CORNER, abs(x - from_x) / 2)
    if corner < 0.1:
        return f"{start}V{y:.1f}"
    side = corner if x > from_x else -corner
    first = f"V{bend - corner:.1f}Q{from_x:.1f} {bend:.1f} {from_x + side:.1f} {bend:.1f}"
    return f"{start}{first}H{x - side:.1f}Q{x:.1f} {bend:.1f} {x:.1f} {bend + corner:.1f}V{y:.1f}"


def _box(block: Block, x: float, y: float, leaf: bool) -> str:
    fill, rounding = ("#eaf2fb", 12.0) if leaf else ("#fff", 4.0)
    parts = [
        f'<rect x="{x - block.width / 2:.1f}" y="{y:.1f}" width="{block.width:.1f}" height="{block.height:.1f}" '
        f'rx="{min(rounding, block.height / 2):g}" fill="{fill}" stroke="#444"/>'
    ]
    y += PADDING_Y
    for words, size in block.lines:
        y += LINE * size
        grey = ' fill="#444"' if size == SMALL else ""
        parts.append(
            f'<text x="{x:.1f}" y="{y - 0.3 * size:.1f}" font-size="{size:g}"{grey}>{escape(words)}</text>'
        )
    return f"<g>{''.join(parts)}</g>"
