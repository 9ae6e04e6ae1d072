"""Whether an expression is the law that its data came from.

Without noise, on fresh rows of the same ranges: the normalised mean squared error is at most 1e-6, and 95 of 100
rows are right to a hundred-thousandth of their own value, because targets over decades make the mean blind to
small ones. On wider ranges 90 of 100 rows are right to a thousandth. What nobody can see of a law at its ranges
need not be there.

With noise, the normalised mean squared error against the law without noise is at most ten times what the noise
leaves to a fit of the true formula, noise^2 (k + 2) / n for k constants and n rows; on wider ranges at most a
hundred times as much as that.

An expression has at most half more tokens than the law, and four. If only that fails, SymPy has some seconds to
write it shorter, or to show that the difference is zero.

A table of NIST has no law. An expression fits it if its squared residuals add up to no more than the certified
sum and a twentieth, and it is no longer than permitted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discodso.base.arrays import Floats
from discodso.space.design import Design
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.laws import MOST_ROWS, Law
from discodso.tasks.regression.nist import NistData

_LARGEST_ERROR = 1e-6
_CLOSE, _CLOSE_SHARE = 1e-5, 0.95
_WIDE_CLOSE, _WIDE_SHARE = 1e-3, 0.9
_NOISE_FACTOR, _WIDE_FACTOR, _LARGEST_WIDE_ERROR = 10.0, 100.0, 0.05
_LONGER, _MORE_TOKENS = 1.5, 4
_LONGEST_FOR_SYMPY = 80
_FIT, _EXACT_FIT = 1.05, 1e-12  # of the certified sum of squares, and of the squared targets
SECONDS = 10.0


class Formula(Protocol):
    """An `Expression`, or what another program has found: values on rows of X[n, d], and a number of tokens."""

    def __call__(self, X: Any, /) -> Floats:
        """Values on the rows, float[n]."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Verdict:
    """What was found out about an expression.

    Attributes:
        error, wide_error: normalised mean squared errors on fresh rows, and over wider ranges.
        close, wide_close: shares of rows that are right to 1e-5 and, over wider ranges, to 1e-3.
        agrees: whether the numbers are those of the law.
        length, longest: tokens, and how many are permitted.
        equal: whether SymPy found it equal or short; None if it was not asked or did not know.
    """

    error: float
    wide_error: float
    close: float
    wide_close: float
    agrees: bool
    length: int
    longest: float
    equal: bool | None = None

    @property
    def recovered(self) -> bool:
        """Whether it is the law."""
        return self.agrees and (self.length <= self.longest or self.equal is True)


def recovered(
    expression: Formula, law: Law, seed: int = 0, noise: float = 0.0, *, seconds: float = SECONDS
) -> bool:
    """Whether the expression is the law; see the module for what that means."""
    return judge(expression, law, seed, noise, seconds=seconds).recovered


def judge(
    expression: Formula,
    law: Law,
    seed: int = 0,
    noise: float = 0.0,
    *,
    rows: int | None = None,
    seconds: float = SECONDS,
) -> Verdict:
    """Compare an expression with a law.

    Args:
        expression: over the inputs of the law, in their order; SymPy is asked about an `Expression`, or about
            the one that an attribute of this name holds.
        law: the law.
        seed: of the data that the expression was found on; fresh rows depend on it.
        noise: of that data.
        rows: of that data; as many as `Law.data` gives by default.
        seconds: for SymPy, where only the length is too much; 0 for none.
    """
    error, close = _compare(expression, law, seed, False, _CLOSE)
    wide_error, wide_close = _compare(expression, law, seed, True, _WIDE_CLOSE)
    if noise:
        count = min(law.rows, MOST_ROWS) if rows is None else rows
        permitted = _NOISE_FACTOR * noise**2 * (len(law.truth.constants) + 2) / count
        permitted = max(permitted, _LARGEST_ERROR)
        widest = max(permitted, min(_WIDE_FACTOR * permitted, _LARGEST_WIDE_ERROR))
        agrees = error <= permitted and wide_error <= widest
    else:
        agrees = error <= _LARGEST_ERROR and close >= _CLOSE_SHARE and wide_close >= _WIDE_SHARE
    longest = longest_for(law.tokens)
    equal = None
    written = expression if isinstance(expression, Expression) else getattr(expression, "expression", None)
    if agrees and len(expression) > longest and seconds > 0 and isinstance(written, Expression):
        equal = _equal_by_sympy(written, law.truth, longest, seconds)
    return Verdict(error, wide_error, close, wide_close, agrees, len(expression), longest, equal)


def judge_fit(expression: Formula, table: NistData) -> Verdict:
    """Compare an expression with a model of NIST; `error` is its squared residuals over the certified ones."""
    with np.errstate(all="ignore"):
        residuals = float(np.sum(np.square(expression(table.X) - table.y)))
    residuals = residuals if np.isfinite(residuals) else float("inf")
    spread = float(np.sum(np.square(table.y - table.y.mean())))
    agrees = residuals <= _FIT * table.residuals + _EXACT_FIT * spread
    close = float(agrees)
    ratio = residuals / table.residuals
    return Verdict(ratio, ratio, close, close, agrees, len(expression), longest_for(table.tokens))


def longest_for(tokens: int) -> float:
    """How many tokens an expression may have in place of a formula of so many."""
    return _LONGER * tokens + _MORE_TOKENS


def _compare(
    expression: Formula, law: Law, seed: int, stretched: bool, tolerance: float
) -> tuple[float, float]:
    """Normalised mean squared error, and the share of rows that are right to the tolerance."""
    X, y = law.fresh(seed, stretched=stretched)
    return compare(expression(X), y, tolerance)


def compare(predicted: Floats, y: Floats, tolerance: float) -> tuple[float, float]:
    """Normalised mean squared error, and the share of rows that are right to the tolerance.

    One row in a hundred may be without a finite prediction, as where parts of an equal formula overflow.
    """
    finite = np.isfinite(predicted)
    gap = np.abs(np.where(finite, predicted, 0.0) - y)
    floor = 1e-12 * float(np.median(np.abs(y))) + sys.float_info.min
    close = float(np.mean(finite & (gap <= tolerance * np.maximum(np.abs(y), floor))))
    if finite.mean() < 0.99:
        return float("inf"), close
    scale = float(np.max(np.abs(y))) or 1.0
    with np.errstate(over="ignore"):
        squared = float(np.mean(np.square(gap[finite] / scale)))
    spread = float(np.var(y / scale))
    return (squared / spread if spread > 0 else float("inf") if squared else 0.0), close


# ---------------------------------------------------------------------------------------- by SymPy


def _equal_by_sympy(expression: Expression, truth: Expression, longest: float, seconds: float) -> bool | None:
    """Ask a process of its own, which can be ended: SymPy may take for ever."""
    if expression.operators or len(expression) > _LONGEST_FOR_SYMPY:
        return None
    question = {
        "found": expression.design.to_dict(),
        "truth": truth.design.to_dict(),
        "columns": list(truth.columns),
        "longest": longest,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"from {__name__} import _answer; _answer()"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=True,
        )
        return bool(json.loads(done.stdout))
    except (subprocess.SubprocessError, OSError, ValueError):
        return None


def _answer() -> None:
    """Read a question, and print whether the found expression is short once simplified, or equal."""
    question = json.load(sys.stdin)
    columns = question["columns"]
    found, truth = (
        _rounded(Expression(Design.from_dict(question[key]), columns)) for key in ("found", "truth")
    )
    json.dump(_is_short(found, columns, question["longest"]) or _is_zero(found - truth), sys.stdout)


def _rounded(expression: Expression) -> Any:
    """As SymPy evaluates it, constants to five digits, and whole ones whole."""
    import sympy

    from discodso.tasks.regression.export.sympy_form import to_sympy

    def short(value: float) -> float:
        near = float(f"{value:.5g}")
        return near if near else 0.0

    return sympy.sympify(
        to_sympy(expression.with_constants([short(value) for value in expression.constants])).doit()
    )


def _is_short(found: Any, columns: list[str], longest: float) -> bool:
    import sympy

    for rewrite in (sympy.factor_terms, sympy.simplify):
        try:
            if len(Expression.parse(str(rewrite(found)), columns)) <= longest:
                return True
        except Exception:  # SymPy raises many kinds, and writes functions that no expression has
            continue
    return False


def _is_zero(difference: Any) -> bool:
    import sympy

    return bool(sympy.simplify(difference) == 0)
