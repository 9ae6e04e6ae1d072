"""Choosing settings where single comparisons would be chance: random ones, what a value is worth on average.

Every value of every option is drawn equally often; a linear model of the scores tells what it is worth, whatever
the others are. All runs count for all options, so that a few seeds are enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats

Value = Mapping[str, Any]  # of one option: settings by name
Options = Mapping[str, Sequence[Value]]


def drawn(options: Options, count: int) -> list[list[int]]:
    """`count` random choices of a value of each option."""
    rng = np.random.default_rng(0)
    columns = [rng.permutation(np.resize(np.arange(len(values)), count)) for values in options.values()]
    return [list(map(int, row)) for row in zip(*columns, strict=True)]


def settings(options: Options, values: Sequence[int]) -> dict[str, Any]:
    """Settings by name, of a value of each option."""
    chosen = zip(options.values(), values, strict=True)
    return {name: setting for option, value in chosen for name, setting in option[value].items()}


@dataclass(frozen=True)
class Worth:
    """What the values of one option are worth, zero on average, and the standard errors."""

    means: Floats
    errors: Floats

    @property
    def best(self) -> int:
        """The value that is worth most."""
        return int(np.argmax(self.means))


def worth(options: Options, values: ArrayLike, scores: ArrayLike) -> list[Worth]:
    """Of every option, from int[n, options] and float[n], by least squares."""
    drawn_values, own = np.asarray(values), np.asarray(scores, np.float64)
    columns, spans = [np.ones(len(own))], list[slice]()
    for option, names in enumerate(options.values()):
        # The values add up to zero: the last is minus all others.
        last = drawn_values[:, option] == len(names) - 1
        spans.append(slice(len(columns), len(columns) + len(names) - 1))
        columns += [1.0 * (drawn_values[:, option] == value) - last for value in range(len(names) - 1)]
    X = np.stack(columns, axis=1)
    weights, *_ = np.linalg.lstsq(X, own, rcond=None)
    residual = own - X @ weights
    covariance = np.linalg.inv(X.T @ X) * float(residual @ residual) / (len(own) - X.shape[1])
    found = []
    for span in spans:
        size = span.stop - span.start
        sums = np.concatenate((np.eye(size), -np.ones((1, size))))
        variances = np.diag(sums @ covariance[span, span] @ sums.T)
        found.append(Worth(sums @ weights[span], np.sqrt(variances)))
    return found


def table(
    options: Options, values: ArrayLike, scores: ArrayLike, means: Mapping[str, ArrayLike]
) -> list[str]:
    """A row for every value, with plain means of more figures, float[n] by name, and what is chosen."""
    drawn_values, found = np.asarray(values), worth(options, values, scores)
    rows = [
        "| option | value | worth | error | " + " | ".join(means) + " |",
        "|---" * (4 + len(means)) + "|",
    ]
    for option, ((name, names), own) in enumerate(zip(options.items(), found, strict=True)):
        for value, changes in enumerate(names):
            there = drawn_values[:, option] == value
            number = f"{own.means[value]:+.3f}"
            figures = [f"{np.asarray(figure)[there].mean():.2f}" for figure in means.values()]
            rows.append(
                f"| {'' if value else name} | {_text(changes)} | "
                f"{f'**{number}**' if value == own.best else number} | {own.errors[value]:.3f} | "
                + " | ".join(figures)
                + " |"
            )
    chosen = settings(options, [own.best for own in found])
    return [*rows, "", f"Chosen: {_text(chosen)}.", ""]


def _text(changes: Value) -> str:
    return ", ".join(f"`{name}={setting}`" for name, setting in changes.items())
