"""A tree policy as a picture: decisions, actions in colour, and how often each node is visited.

Lengths are points, 72 to the inch; x grows to the right and y downwards from the top of the picture.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.transforms import Affine2D, Transform

from discodso.base.checks import is_number
from discodso.base.errors import DeclarationError
from discodso.base.files import write_atomically
from discodso.report import trees
from discodso.space.design import one_line
from discodso.tasks.policies import leaves
from discodso.tasks.policies.export.text_forms import node_words
from discodso.tasks.policies.leaves import ActionNumbers, Leaf
from discodso.tasks.policies.splits import Oblique, Split
from discodso.tasks.policies.tree import DecisionTree

# Okabe and Ito's colours, which people with any colour vision tell apart; their black would hide the border.
_COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
_PLAIN: dict[str, Any] = {
    "family": list(trees.FAMILY),
    "weight": "normal",
    "ha": "center",
    "va": "baseline",
    "parse_math": False,
    "usetex": False,
}
# Text stays text, and the same tree gives the same bytes whatever the user's style file says.
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "discodso",
    "savefig.bbox": None,
    "font.sans-serif": [trees.FAMILY[0]],
}
Place = tuple[float, float]
_TITLE = 12.0
_BETWEEN_ROWS, _STEM = 36.0, 9.0
_DPI, _MOST_PIXELS = 150, 30_000
_MOST_LINES = 15  # of a sum


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
    dpi = min(_DPI, _MOST_PIXELS / max(made.get_size_inches()))
    own: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": dpi}
    with matplotlib.rc_context(_STYLE):
        made.savefig(content, format=kind, transparent=False, facecolor="white", **own)
    return content.getvalue()


def figure(policy: DecisionTree, shares: Any = None, title: str | None = None) -> Figure:
    """The picture as a Matplotlib figure, which belongs to no window and no pyplot state.

    `shares` are of visits, from 0 to 1 for each node, as `node_shares` gives; they set widths and percentages.
    """
    visits = None if shares is None else _checked(list(shares), len(policy))
    blocks = _blocks(policy, visits)
    children = {node: both for node, *both in policy.decisions()}
    places = trees.places([children.get(node, []) for node in range(len(policy))], blocks, _BETWEEN_ROWS)
    tree_width = max(x + block.width / 2 for (x, _), block in zip(places, blocks, strict=True))
    bottom = max(y + block.height for (_, y), block in zip(places, blocks, strict=True))

    heading = trees.boxed(trees.wrapped(one_line(title), _TITLE, max(tree_width, 300.0))) if title else None
    note = trees.boxed([("%: share of the steps that pass a node", trees.SMALL)]) if visits else None
    width = max([tree_width, *(extra.width for extra in (heading, note) if extra)]) + 2 * trees.MARGIN
    top = trees.MARGIN + (heading.height if heading else 0.0)
    height = top + bottom + (note.height if note else 0.0) + trees.MARGIN
    places = [(x + (width - tree_width) / 2, y + top) for x, y in places]

    made = Figure(figsize=(width / 72, height / 72), dpi=72, facecolor="white")
    made.set_layout_engine("none")
    FigureCanvasAgg(made)
    paper = _Paper(made, Affine2D().translate(0, -height).scale(1 / 72, -1 / 72) + made.dpi_scale_trans)
    if heading:
        paper.write(heading, width / 2, trees.MARGIN / 2, "black", "title")
    if note:
        paper.write(note, width / 2, height - trees.MARGIN / 2 - note.height, "#555555", "note")
    edges = [((left, node, "yes"), (right, node, "no")) for node, left, right in policy.decisions()]
    for child, parent, answer in sorted(edge for both in edges for edge in both):
        (x, y), share = places[parent], visits[child] if visits else None
        paper.draw_edge((x, y + blocks[parent].height), places[child], answer, share, child)
    colours = _colours(policy)
    for node, (block, (x, y)) in enumerate(zip(blocks, places, strict=True)):
        shape = policy.nodes[node][0]
        fill, rounding = (colours[shape], 12.0) if isinstance(shape, Leaf) else ("#FFFFFF", 4.0)
        words, border = _readable_on(fill), "#444444"
        if visits and visits[node] == 0:
            fill, words, border = "#EEEEEE", "#666666", "#BBBBBB"
        paper.draw_box(block, x, y, rounding, fill, border, f"node-{node}")
        paper.write(block, x, y, words, f"words-{node}")
    return made


@dataclass(frozen=True)
class _Paper:
    """A figure, and the transform from points to it."""

    made: Figure
    points: Transform

    def text(self, x: float, y: float, words: str, gid: str, **look: Any) -> None:
        self.made.text(x, y, words, gid=gid, transform=self.points, **_PLAIN, **look)

    def write(self, block: trees.Block, x: float, y: float, colour: str, gid: str) -> None:
        """Draw the lines of a block whose top centre is (x, y)."""
        y += trees.PADDING_Y
        for number, (words, size) in enumerate(block.lines):
            y += trees.LINE * size
            self.text(x, y - 0.3 * size, words, f"{gid}-{number}", size=size, color=colour, zorder=4)

    def add(self, patch: Patch, gid: str) -> None:
        patch.set(gid=gid, transform=self.points)
        self.made.add_artist(patch)

    def draw_box(
        self, block: trees.Block, x: float, y: float, rounding: float, fill: str, border: str, gid: str
    ) -> None:
        place, size = (x - block.width / 2, y), (block.width, block.height)
        corners = f"round,pad=0,rounding_size={min(rounding, block.height / 2)}"
        look: dict[str, Any] = {"facecolor": fill, "edgecolor": border, "linewidth": 1.0, "zorder": 3}
        self.add(FancyBboxPatch(place, *size, boxstyle=corners, **look), gid)

    def draw_edge(self, start: Place, end: Place, answer: str, share: float | None, child: int) -> None:
        """Down from a box, along the gap between two rows, down to the child: so no edge meets another box."""
        (from_x, from_y), (x, y) = start, end
        bend = y - _BETWEEN_ROWS + _STEM
        corner = 5.0 * ((x > from_x) - (x < from_x))
        xs = (from_x, from_x, from_x, from_x + corner, x - corner, x, x, x)
        ys = (from_y, bend - 5, bend, bend, bend, bend, bend + 5, y)
        outline = Outline(list(zip(xs, ys, strict=True)), [1, 2, 3, 3, 2, 3, 3, 2])
        seen = share is None or share > 0
        line, words, dashes = ("#666666", "#333333", "-") if seen else ("#BBBBBB", "#666666", (0, (3, 2)))
        width = 1.2 if share is None else 0.8 + 4.2 * share
        order = 1 + (share or 0)  # the busier one on top where they leave together
        look: dict[str, Any] = {"edgecolor": line, "linestyle": dashes, "linewidth": width, "zorder": order}
        self.add(PathPatch(outline, fill=False, capstyle="butt", joinstyle="round", **look), f"edge-{child}")
        box = {"facecolor": "white", "edgecolor": "none", "boxstyle": "square,pad=0.12"}
        look = {"size": trees.SMALL, "color": words, "zorder": 2.5, "bbox": box}
        self.text(x, (bend + y) / 2 + 0.36 * trees.SMALL, answer, f"answer-{child}", **look)


def _blocks(policy: DecisionTree, visits: list[float] | None) -> list[trees.Block]:
    kinds = (Split, Leaf) if policy.numbers is None else Split  # whose words are a name
    words = [
        (trees.shortened(name) if isinstance(node, kinds) else name, compared)
        for (name, compared), (node, _) in zip(node_words(policy, 4), policy.nodes, strict=True)
    ]
    fit = all(trees.text_width(" ".join(parts), trees.WORDS) <= trees.WIDEST for parts in words if parts[1])
    blocks = []
    for node, ((name, compared), (shape, _)) in enumerate(zip(words, policy.nodes, strict=True)):
        if fit and compared:
            lines = [(f"{name} {compared}", trees.WORDS)]
        elif isinstance(shape, Oblique):
            lines = _sum_lines(name)
        elif isinstance(shape, Leaf) and policy.numbers is not None:  # a line or more for each number
            parts = leaves.words(shape, policy.numbers, policy.feature_name, 4)
            lines = [line for part in parts for line in _sum_lines(part)]
        else:
            lines = trees.wrapped(name, trees.WORDS, trees.WIDEST)
        lines += [(compared, trees.WORDS)] if compared and not fit else []
        lines += [(_percent(visits[node]), trees.SMALL)] if visits else []
        blocks.append(trees.boxed(lines))
    return blocks


def _sum_lines(words: str) -> list[tuple[str, float]]:
    """A sum in lines, which begin with a sign; no term is broken that fits into a line."""
    lines, pieces = [""], re.split(r" (?=[+-] )", words)
    for place, piece in enumerate(pieces):
        longer = f"{lines[-1]} {piece}".strip()
        if trees.text_width(longer, trees.WORDS) <= trees.WIDEST or not lines[-1]:
            lines[-1] = longer
        elif len(lines) < _MOST_LINES:
            lines.append(piece)
        else:
            lines.append(f"... and {len(pieces) - place} more")
            break
    return [part for line in lines for part in trees.wrapped(line, trees.WORDS, trees.WIDEST)]


def _percent(share: float) -> str:
    """A share as a percentage; 0% and 100% are exact."""
    if share in (0, 1):
        return f"{share:.0%}"
    if share < 0.001:
        return "<0.1%"
    if share > 0.999:
        return ">99.9%"
    return f"{share:.1%}" if share < 0.0995 or share >= 0.995 else f"{share:.0%}"


def _checked(shares: list[Any], nodes: int) -> list[float]:
    """Shares of visits, one for each node; anything else is refused."""
    if len(shares) != nodes:
        raise DeclarationError(f"shares must have one number for each of {nodes} nodes, got {len(shares)}")
    for node, share in enumerate(shares):
        if not is_number(share) or not 0 <= share <= 1:
            got = f"{share!r:.60} for node {node}"
            raise DeclarationError(f"shares: each must be a number from 0 to 1, got {got}")
    return [float(share) for share in shares]


def _colours(policy: DecisionTree) -> dict[Leaf, str]:
    """One colour for each action: the plain ones, then paler and darker ones, then over again.

    Where an action is one number it runs from blue over white to orange; where it is several, leaves are pale.
    """
    if policy.numbers is not None:
        return {leaf: _shade(leaf, policy.numbers) for leaf in policy.leaves}
    actions = sorted(policy.actions | {action for action, _ in policy.action_names})
    shades = [_mixed(colour, end) for end in (None, 255, 0) for colour in _COLOURS]
    return {Leaf(action): shades[place % len(shades)] for place, action in enumerate(actions)}


def _shade(leaf: Leaf, numbers: ActionNumbers) -> str:
    low, high = numbers.low[0], numbers.high[0]
    if len(numbers) > 1 or leaf.weights or low == high:
        return "#E8EEF4"
    share = 2 * min(max((leaf.numbers[0] - low) / (high - low), 0.0), 1.0) - 1
    end = _COLOURS[0] if share > 0 else _COLOURS[1]
    parts = (round(255 + abs(share) * (int(end[i : i + 2], 16) - 255)) for i in (1, 3, 5))
    return "#" + "".join(f"{part:02X}" for part in parts)


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
