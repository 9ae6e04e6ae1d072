"""Inner optimisers: SciPy's, turned round into ask and tell.

L-BFGS-B is SciPy's own code, called step by step through its reverse communication, since hundreds of searches
go on at once and `minimize` costs a millisecond each. The others run as they are in a greenlet, which is left
whenever they call their function and entered again with the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import optimize

from discodso.base.arrays import Floats
from discodso.base.compiled import compiled
from discodso.base.errors import DiscodsoError
from discodso.baselines.common import extra

InnerName = Literal["bfgs", "anneal", "evo"]
INNER: tuple[InnerName, ...] = ("bfgs", "anneal", "evo")
_Steps: TypeAlias = Generator[
    Floats, Floats, None
]  # yields points float[k, n], and is sent their costs float[k]

_STEP = 1e-8  # of the finite differences; this and what follows are the defaults of SciPy's L-BFGS-B
_CORRECTIONS = 10
_TOLERANCES = 2.220446049250313e-09 / np.finfo(float).eps, 1e-5  # of the cost and of the gradient
_LINE_SEARCH_STEPS = 20
_WANTS_COST, _NEW_ITERATION = 3, 1


class InnerSearch:
    """A search for the point of least cost.

    Attributes:
        points: float[k, n], whose costs it needs next; None when it has ended.
    """

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self.points: Floats | None = next(steps)

    def answer(self, costs: Floats) -> None:
        """Give it the costs float[k] of its points, all finite."""
        try:
            self.points = self._steps.send(costs)
        except StopIteration:
            self.points = None


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
        return InnerSearch(_one_call())
    if name == "bfgs":
        return InnerSearch(_bfgs(point, low, high))
    low, high = np.maximum(low, -reach), np.minimum(high, reach)
    point = np.clip(point, low, high)
    rng = np.random.default_rng(seed)
    box = list(zip(low.tolist(), high.tolist(), strict=True))
    if name == "anneal":
        return InnerSearch(_inverted(lambda cost: optimize.dual_annealing(cost, box, x0=point, rng=rng)))
    # SciPy's population is this multiple of n, 15 by default; ten generations should fit into the calls.
    multiple = int(np.clip(round(calls / 10 / len(point)), 1, 15))
    options: dict[str, Any] = {"popsize": multiple, "rng": rng, "vectorized": True, "updating": "deferred"}
    evolution = optimize.differential_evolution
    return InnerSearch(_inverted(lambda cost: evolution(cost, box, x0=point, **options)))


def _one_call() -> _Steps:
    """A skeleton without parameters is called once."""
    yield np.empty((1, 0))


def _bfgs(point: Floats, low: Floats, high: Floats) -> _Steps:
    """SciPy's L-BFGS-B with two-point differences: the iterates and the calls of `scipy.optimize.minimize`."""
    try:
        from scipy.optimize._lbfgsb import setulb
    except ImportError:
        raise DiscodsoError("inner 'bfgs' needs SciPy 1.15 or newer; upgrade scipy") from None
    n, m = len(point), _CORRECTIONS
    x, gradient, cost = np.clip(point, low, high), np.zeros(n), 0.0
    below, above = np.isfinite(low), np.isfinite(high)
    # Which ends there are, as the code counts them: 0 none, 1 the lower, 2 both, 3 the upper.
    kinds = np.where(above, 3 - below.astype(np.int32), below).astype(np.int32)
    ends = np.where(below, low, 0.0), np.where(above, high, 0.0), kinds
    work = np.zeros(2 * m * n + 5 * n + 11 * m * m + 8 * m), np.zeros(3 * n, np.int32)
    task, line_task = np.zeros(2, np.int32), np.zeros(2, np.int32)
    saved = np.zeros(4, np.int32), np.zeros(44, np.int32), np.zeros(29)
    last = *work, task, *saved, _LINE_SEARCH_STEPS, line_task
    while True:
        setulb(m, x, *ends, cost, gradient, *_TOLERANCES, *last)
        if task[0] == _NEW_ITERATION:
            continue
        if task[0] != _WANTS_COST:
            return
        points = _with_neighbours(x, low, high)
        costs = yield points
        _gradient(points, costs, gradient)
        cost = float(costs[0])


@compiled()
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


@compiled()
def _gradient(points: Floats, costs: Floats, gradient: Floats) -> None:
    for i in range(len(gradient)):
        gradient[i] = (costs[i + 1] - costs[0]) / (points[i + 1, i] - points[0, i])


def _inverted(minimise: Callable[[Callable[[Floats], Any]], Any]) -> _Steps:
    """A function that minimises another, stopped in the middle of each call that it makes."""
    (module,) = extra("inner 'anneal' and 'evo' need greenlet", "greenlet")

    def cost(x: Floats) -> Any:
        whole = np.asarray(x, dtype=np.float64)
        costs = module.getcurrent().parent.switch(np.atleast_2d(whole.T).copy())
        return costs if whole.ndim == 2 else float(costs[0])

    def run() -> None:
        minimise(cost)

    worker = module.greenlet(run)
    points = worker.switch()
    while points is not None:
        costs = yield points
        worker.parent = module.getcurrent()
        points = worker.switch(np.array(costs))
