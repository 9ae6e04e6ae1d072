"""Inner optimisers: SciPy's, turned round into ask and tell.

An inner search has `points` that it wants the costs of, and is given them by `answer`; it has no points left when
it has ended. L-BFGS-B is SciPy's own code, called step by step through its reverse communication, since hundreds
of searches go on at once and `minimize` costs a millisecond each. The others run as they are in a greenlet, which
is left whenever they call their function and entered again with the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
from numba import njit
from scipy import optimize

from discodso.base.arrays import Floats
from discodso.base.errors import DiscodsoError

InnerName = Literal["bfgs", "anneal", "evo"]
INNER: tuple[InnerName, ...] = ("bfgs", "anneal", "evo")

_STEP = 1e-8  # of the finite differences; this and what follows are the defaults of SciPy's L-BFGS-B
_CORRECTIONS = 10
_COST_TOLERANCE = 2.220446049250313e-09 / np.finfo(float).eps
_GRADIENT_TOLERANCE = 1e-5
_LINE_SEARCH_STEPS = 20
_WANTS_COST, _NEW_ITERATION = 3, 1


class InnerSearch(Protocol):
    """A search for the point of least cost.

    Attributes:
        points: float[k, n], whose costs it needs next; None when it has ended.
    """

    points: Floats | None

    def answer(self, costs: Floats) -> None:
        """The costs float[k] of its points, all finite."""
        ...


def start(
    name: InnerName, point: Floats, low: Floats, high: Floats, calls: int, reach: float, seed: int
) -> InnerSearch:
    """Begin a search at a point[n] within low[n] and high[n].

    Args:
        name: "bfgs", "anneal" or "evo".
        point, low, high: units; infinite ends are taken at `reach` by those that need finite ones.
        calls: how many costs it will be given at most, which decides the size of a population.
        reach: see there.
        seed: of what it draws.
    """
    if not len(point):
        return OneCall()
    if name == "bfgs":
        return LBFGSB(point, low, high)
    low, high = np.maximum(low, -reach), np.minimum(high, reach)
    point = np.clip(point, low, high)
    rng = np.random.default_rng(seed)
    box = list(zip(low.tolist(), high.tolist(), strict=True))
    if name == "anneal":
        return Inverted(lambda cost: optimize.dual_annealing(cost, box, x0=point, rng=rng))
    # SciPy's population is this multiple of n, 15 by default; ten generations should fit into the calls.
    multiple = int(np.clip(round(calls / 10 / len(point)), 1, 15))
    return Inverted(
        lambda cost: optimize.differential_evolution(
            cost, box, x0=point, popsize=multiple, rng=rng, vectorized=True, updating="deferred"
        )
    )


class OneCall:
    """Nothing to optimise: a skeleton without parameters is called once."""

    def __init__(self) -> None:
        self.points: Floats | None = np.empty((1, 0))

    def answer(self, costs: Floats) -> None:
        """That was all."""
        self.points = None


class LBFGSB:
    """SciPy's L-BFGS-B with two-point differences: the iterates and the calls of `scipy.optimize.minimize`."""

    def __init__(self, point: Floats, low: Floats, high: Floats) -> None:
        n, m = len(point), _CORRECTIONS
        self._call = _setulb()
        self._low, self._high = low, high
        self._x = np.clip(point, low, high)
        self._gradient = np.zeros(n)
        self._ends = _ends(low, high)
        self._work = np.zeros(2 * m * n + 5 * n + 11 * m * m + 8 * m), np.zeros(3 * n, np.int32)
        self._task, self._line_task = np.zeros(2, np.int32), np.zeros(2, np.int32)
        self._saved = np.zeros(4, np.int32), np.zeros(44, np.int32), np.zeros(29)
        self.points: Floats | None = None
        self._advance(0.0)

    def answer(self, costs: Floats) -> None:
        """Of the iterate, and of its neighbours for the gradient."""
        assert self.points is not None
        _gradient(self.points, costs, self._gradient)
        self._advance(float(costs[0]))

    def _advance(self, cost: float) -> None:
        while True:
            self._call(
                _CORRECTIONS,
                self._x,
                *self._ends,
                cost,
                self._gradient,
                _COST_TOLERANCE,
                _GRADIENT_TOLERANCE,
                *self._work,
                self._task,
                *self._saved,
                _LINE_SEARCH_STEPS,
                self._line_task,
            )
            if self._task[0] != _NEW_ITERATION:
                break
        wants = self._task[0] == _WANTS_COST
        self.points = _with_neighbours(self._x, self._low, self._high) if wants else None


def _setulb() -> Callable[..., None]:
    try:
        from scipy.optimize._lbfgsb import setulb
    except ImportError:
        raise DiscodsoError("inner 'bfgs' needs SciPy 1.15 or newer; upgrade scipy") from None
    call: Callable[..., None] = setulb
    return call


@njit(cache=True)
def _ends(low: Floats, high: Floats) -> Any:
    """Finite ends, and which there are, as the code counts them: 0 none, 1 the lower, 2 both, 3 the upper."""
    lower, upper, kinds = np.zeros(len(low)), np.zeros(len(low)), np.zeros(len(low), np.int32)
    for i in range(len(low)):
        below, above = np.isfinite(low[i]), np.isfinite(high[i])
        lower[i] = low[i] if below else 0.0
        upper[i] = high[i] if above else 0.0
        kinds[i] = (2 if below else 3) if above else (1 if below else 0)
    return lower, upper, kinds


@njit(cache=True)
def _with_neighbours(x: Floats, low: Floats, high: Floats) -> Floats:
    """float[n + 1, n]: x, and a neighbour in every direction, on the other side where a bound is in the way."""
    n = len(x)
    points = np.empty((n + 1, n))
    points[:] = x
    for i in range(n):
        step = _STEP
        if (x[i] + step) - x[i] == 0:
            step = np.sqrt(np.finfo(np.float64).eps) * max(1.0, abs(x[i])) * (1 if x[i] >= 0 else -1)
        below, above = x[i] - low[i], high[i] - x[i]
        if x[i] + step < low[i] or x[i] + step > high[i]:
            away = above if above >= below else -below
            step = -step if abs(step) <= max(below, above) else away
        points[i + 1, i] = x[i] + step
    return points


@njit(cache=True)
def _gradient(points: Floats, costs: Floats, gradient: Floats) -> None:
    for i in range(len(gradient)):
        gradient[i] = (costs[i + 1] - costs[0]) / (points[i + 1, i] - points[0, i])


class Inverted:
    """A function that minimises another, stopped in the middle of each call that it makes."""

    def __init__(self, minimise: Callable[[Callable[[Floats], Any]], Any]) -> None:
        try:
            from greenlet import getcurrent, greenlet
        except ImportError:
            raise DiscodsoError(
                "inner 'anneal' and 'evo' need greenlet; install it by `pip install discodso[baselines]`"
            ) from None

        def cost(x: Floats) -> Any:
            whole = np.asarray(x, dtype=np.float64)
            costs = getcurrent().parent.switch(np.atleast_2d(whole.T).copy())
            return costs if whole.ndim == 2 else float(costs[0])

        def run() -> None:
            minimise(cost)

        self._greenlet = greenlet(run)
        self.points: Floats | None = self._greenlet.switch()

    def answer(self, costs: Floats) -> None:
        """Go on where the function was called."""
        self._greenlet.parent = _here()
        self.points = self._greenlet.switch(np.array(costs))


def _here() -> Any:
    from greenlet import getcurrent

    return getcurrent()
