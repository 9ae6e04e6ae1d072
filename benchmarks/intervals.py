"""A mean and its 95 % interval by Student's t, as the tables show it."""

from __future__ import annotations

import math
import statistics

from scipy.stats import t


def shown(numbers: list[float], wanted: int, digits: int) -> str:
    """Mean and half the width of its interval; the number of runs where some of those wanted are missing."""
    if not numbers:
        return "-"
    mean = f"{statistics.fmean(numbers):.{digits}f}"
    if len(numbers) != wanted:
        return f"{mean} ({len(numbers)} runs)"
    half = t.ppf(0.975, wanted - 1) * statistics.stdev(numbers) / math.sqrt(wanted)
    return f"{mean} ± {half:.{digits}f}"
