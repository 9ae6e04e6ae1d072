"""How a design is shown: a tree as its picture, an expression typeset, anything else token by token."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from discodso.base.errors import DiscodsoError
from discodso.report.folders import RunRecord
from discodso.space.design import Design
from discodso.tasks.regression.expression import Expression, input_index
from discodso.tasks.regression.expression_export import text as formula_text
from discodso.tasks.regression.typeset import mathml

DECISION = " <"  # ends the name of a decision's token
_PICTURES = 20  # trees drawn for one table: all of a hundred would be megabytes


@dataclass(frozen=True)
class Shown:
    """A design for a page.

    Attributes:
        text: in a line, or as indented lines for a tree.
        math: MathML as nested lists; None unless it is an expression.
        svg: a picture; None unless it is a tree.
    """

    text: str
    math: list[Any] | None = None
    svg: str | None = None


def show_designs(run: RunRecord, designs: Sequence[Design]) -> list[Shown]:
    """Each of the designs of a run, in the way of its task."""
    if run.kind == "regression":
        columns = tuple(map(str, (run.equation or {}).get("columns", ())))
        return [_expression(design, columns) for design in designs]
    if run.kind == "policy":
        names = _tree_names(run, designs)
        return [_tree(design, *names, number < _PICTURES) for number, design in enumerate(designs)]
    return [Shown(str(design)) for design in designs]


def show_policy(tree: Mapping[str, Any], picture: str | None) -> Shown | None:
    """The tree of a policy.json, with its picture if there is one; None if it is no tree."""
    from discodso.tasks.policies.tree_policy import TreePolicy

    try:
        policy = TreePolicy.from_dict(dict(tree))
    except DiscodsoError:
        return None
    return Shown(str(policy.export("text")), svg=compact(picture or policy._repr_svg_()))


def compact(svg: str) -> str:
    """An SVG without what no browser needs."""
    svg = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    return re.sub(r">\s+<", "><", svg).strip()


def _expression(design: Design, columns: tuple[str, ...]) -> Shown:
    try:
        if not columns:  # while a run goes on its columns are not written down
            highest = max((input_index(name) or 0 for name in design.tokens), default=0)
            columns = tuple(f"x{i + 1}" for i in range(highest + 1))
        expression = Expression(design, columns)
        return Shown(formula_text(expression), mathml(expression))
    except DiscodsoError:  # an operator of one's own, which only its program knows
        return Shown(str(design))


def _tree_names(run: RunRecord, designs: Sequence[Design]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Features and actions, in the order of the library where the history tells it."""
    known = next((row.tokens for row in run.history if row.tokens), None) or {}
    seen = dict.fromkeys([*known, *(name for design in designs for name in design.tokens)])
    features = tuple(name.removesuffix(DECISION) for name in seen if name.endswith(DECISION))
    return features, tuple(name for name in seen if not name.endswith(DECISION))


@lru_cache(maxsize=512)
def _tree(design: Design, features: tuple[str, ...], actions: tuple[str, ...], picture: bool) -> Shown:
    # Here, because Gymnasium takes a while to import and other tasks do not need it.
    from discodso.tasks.policies.tree_policy import TreePolicy

    waiting: list[Any] = []
    try:
        for name, value in reversed(list(design)):
            if value is None:
                waiting.append({"action": actions.index(name)})
            elif len(waiting) >= 2:
                left, right = waiting.pop(), waiting.pop()
                feature = features.index(name.removesuffix(DECISION))
                waiting.append({"feature": feature, "threshold": value, "left": left, "right": right})
        policy = TreePolicy.from_dict(waiting[0] if len(waiting) == 1 else None)
    except (DiscodsoError, ValueError):  # no tree of this environment
        return Shown(str(design))
    named = policy.with_names(None, features, tuple(enumerate(actions)))
    return Shown(str(named.export("text")), svg=compact(named._repr_svg_()) if picture else None)
