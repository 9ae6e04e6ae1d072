"""The bitstring task: the plot of f1 and f2, best reward against calls, and the gaps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from discodso.reproduce.figures import curve, draw_curves, draw_functions
from discodso.reproduce.jobs import Job, Record, records_of
from discodso.reproduce.paper import BITSTRING_GAPS, DISCO
from discodso.reproduce.scales import Scale
from discodso.reproduce.tables import Entry, error, mean, write_rows, write_table
from discodso.tasks.bitstring import f1, f2
from discodso.tasks.bitstring_options import BitstringOptions

_LANDSCAPES: tuple[Literal["f1", "f2"], ...] = ("f1", "f2")


def no_jobs(scale: Scale) -> list[Job]:
    """Nothing to run."""
    return []


def landscapes(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """f1 and f2 against the difference x - x*."""
    x = np.linspace(-0.5, 0.5, 2001)
    heights = {"f1": f1(x, np.zeros(1)), "f2": f2(x, np.zeros(1))}
    write_rows(out / "landscapes", ("x - x*", "f1", "f2"), list(zip(x, *heights.values(), strict=True)))
    draw_functions(out / "landscapes", x, heights, "x - x*")


def jobs(scale: Scale) -> list[Job]:
    """All methods on both landscapes with both weights, seed by seed."""
    return [
        Job.of(
            "bitstring",
            f"{objective}, alpha {alpha:g}",
            name,
            BitstringOptions(length=scale.bits, alpha=alpha, objective=objective),
            settings,
            seed,
            scale.bit_calls,
            scale.bo_seconds if name == "BO" else None,
        )
        for seed in range(scale.bit_seeds)
        for objective in _LANDSCAPES
        for alpha in (0.5, 0.9)
        for name, settings in scale.bitstring_methods().items()
    ]


def figure(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Best reward against calls; solid for alpha 0.9, dashed for 0.5; mean and standard error."""
    rows: list[tuple[object, ...]] = []
    panels = {}
    for objective in _LANDSCAPES:
        lines = {}
        for alpha, style in ((0.9, "-"), (0.5, "--")):
            for name in scale.bitstring_methods():
                own = records_of(records, f"{objective}, alpha {alpha:g}", name)
                line = curve(own, "calls", "error")
                lines[name, style] = line
                points = zip(line.x, line.mean, line.spread, strict=True)
                rows += [(objective, alpha, name, line.runs, *point) for point in points]
        panels[f"Parameterised bitstring with {objective}"] = lines
    header = ("objective", "alpha", "method", "runs", "calls", "mean best", "standard error")
    write_rows(out / "bitstring", header, rows)
    draw_curves(out / "bitstring", panels, "objective calls", "best reward")
    entries = [
        Entry(name, case, mean(best), error(best))
        for name in scale.bitstring_methods()
        for case in _cases(records)
        if (best := [r.best for r in records_of(records, case, name) if r.best is not None])
    ]
    caption = (
        f"T = {scale.bits}, {scale.bit_calls} objective calls, {scale.bit_seeds} seeds, mean ± standard error. "
        f"BO had {scale.bo_seconds:g} s, and made {_bo_calls(records)} calls on average. The paper shows these "
        "as a figure without numbers."
    )
    write_table(out / "bitstring-best", "Bitstring: best reward at the end", caption, entries)


def gaps(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """How much better DisCo's best is, seed by seed."""
    entries = []
    for name in scale.bitstring_methods():
        if name == DISCO:
            continue
        for case in _cases(records):
            pairs = zip(records_of(records, case, DISCO), records_of(records, case, name), strict=True)
            found = [a.best - b.best for a, b in pairs if a.best is not None and b.best is not None]
            entries.append(
                Entry(name, case, mean(found), error(found), BITSTRING_GAPS.get(name, {}).get(case))
            )
    caption = (
        f"Best reward of {DISCO} (the paper's settings) less that of each method, mean over {scale.bit_seeds} "
        f"seeds ± standard error; T = {scale.bits}, {scale.bit_calls} objective calls."
    )
    write_table(out / "bitstring-gaps", "Bitstring: objective gaps", caption, entries)


def _cases(records: Sequence[Record]) -> list[str]:
    return sorted({record.job.case for record in records})


def _bo_calls(records: Sequence[Record]) -> int:
    return round(mean([record.calls for record in records if record.job.method == "BO"]) or 0)
