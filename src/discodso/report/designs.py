"""How a design is shown: as its kind of task has it, else token by token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from discodso.report.folders import RunRecord
from discodso.run.kinds import Shown
from discodso.space.design import Design


def show_designs(run: RunRecord, designs: Sequence[Design]) -> list[Shown]:
    """Each of the designs of a run, in the way of its task."""
    shown = run.kind.shown(run.ending, designs, run.history)
    return [own if own.svg is None else replace(own, svg=compact(own.svg)) for own in shown]


def compact(svg: str) -> str:
    """An SVG without what no browser needs."""
    svg = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    return re.sub(r">\s+<", "><", svg).strip()
