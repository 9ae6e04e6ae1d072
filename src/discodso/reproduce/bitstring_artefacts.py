"""The bitstring task: the plot of f1 and f2, best reward against calls, and the gaps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np

from discodso.reproduce.jobs import Job, Record, best_rewards, jobs_of, records_of
from discodso.reproduce.paper import BITSTRING_CASES, BITSTRING_GAPS, DISCO
from discodso.reproduce.paper_figures import curve, draw_curves, draw_functions, write_curves
from discodso.reproduce.scales import Scale
from discodso.reproduce.tables import compared, error, gap, mean, write_rows, write_table
from discodso.tasks.bitstring import f1, f2
from discodso.tasks.bitstring_options import BitstringOptions

_LANDSCAPES: tuple[Literal["f1", "f2"], ...] = ("f1", "f2")


def landscapes(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """f1 and f2 against the difference x - x*."""
    x = np.linspace(-0.5, 0.5, 2001)
    heights = {"f1": f1(x, np.zeros(1)), "f2": f2(x, np.zeros(1))}
    write_rows(out / "landscapes", ("x - x*", "f1", "f2"), list(zip(x, *heights.values(), strict=True)))
    draw_functions(out / "landscapes", x, heights, "x - x*")


def jobs(scale: Scale) -> list[Job]:
    """All methods on both landscapes with both weights."""
    cases = {}
    for objective, alpha in product(_LANDSCAPES, (0.5, 0.9)):
        task = BitstringOptions(length=scale.bits, alpha=alpha, objective=objective)
        cases[_case(objective, alpha)] = (task, scale.bit_calls)
    return jobs_of("bitstring", cases, scale.bitstring_methods(), scale.bit_seeds, scale.bo_seconds)


def figure(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Best reward against calls; solid for alpha 0.9, dashed for 0.5; mean and standard error."""
    methods = scale.bitstring_methods()
    lines = {
        (objective, alpha, name): curve(records_of(records, _case(objective, alpha), name), "calls", "error")
        for objective, alpha, name in product(_LANDSCAPES, (0.9, 0.5), methods)
    }
    write_curves(out / "bitstring", ("objective", "alpha", "method"), lines, "calls", "standard error")
    panels = {
        f"Parameterised bitstring with {objective}": {
            (name, "-" if alpha == 0.9 else "--"): line
            for (own, alpha, name), line in lines.items()
            if own == objective
        }
        for objective in _LANDSCAPES
    }
    draw_curves(out / "bitstring", panels, "objective calls", "best reward")
    bo_calls = round(mean([record.calls for record in records if record.job.method == "BO"]) or 0)
    caption = (
        f"T = {scale.bits}, {scale.bit_calls} objective calls, {scale.bit_seeds} seeds, mean ± standard error. "
        f"BO had {scale.bo_seconds:g} s, and made {bo_calls} calls on average. The paper shows these "
        "as a figure without numbers."
    )
    entries = compared(methods, BITSTRING_CASES, partial(best_rewards, records), {}, error)
    write_table(out / "bitstring-best", "Bitstring: best reward at the end", caption, entries)


def gaps(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """How much better DisCo's best is, seed by seed."""

    def ours(name: str, case: str) -> list[float]:
        first, second = (
            {r.job.seed: r.best for r in records_of(records, case, own)} for own in (DISCO, name)
        )
        return [found for seed in first.keys() & second.keys() for found in gap(first[seed], second[seed])]

    others = [name for name in scale.bitstring_methods() if name != DISCO]
    caption = (
        f"Best reward of {DISCO} (the paper's settings) less that of each method, mean over {scale.bit_seeds} "
        f"seeds ± standard error; T = {scale.bits}, {scale.bit_calls} objective calls."
    )
    entries = compared(others, BITSTRING_CASES, ours, BITSTRING_GAPS, error)
    write_table(out / "bitstring-gaps", "Bitstring: objective gaps", caption, entries)


def _case(objective: str, alpha: float) -> str:
    return f"{objective}, alpha {alpha:g}"
