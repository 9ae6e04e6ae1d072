"""The parameterised bitstring task PB(N, f, l*, beta*) of the paper: find hidden bits and hidden numbers.

R = 1/T sum_i 1[l_i = l*_i] (alpha + (1 - alpha) f(beta_i, beta*_i))
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require_integer
from discodso.run.clock import Clock
from discodso.run.kinds import Kind, Prepared
from discodso.run.python_tasks import prepared
from discodso.run.task import Task
from discodso.space.design import DesignBatch
from discodso.space.space import Space
from discodso.space.tokens import FixedSequence, Token
from discodso.tasks.bitstring_options import BUDGET, BitstringOptions


def f1(x: Floats, target: Floats) -> Floats:
    """|sin(50 d) / (50 d)| with d = x - target: one peak among many lower ones."""
    return np.asarray(np.abs(np.sinc(50 * (x - target) / np.pi)))


def f2(x: Floats, target: Floats) -> Floats:
    """1 within 0.05 of the target, 0.5 within 0.1, else 0: flat, with jumps."""
    distance = np.abs(x - target)
    return np.where(distance <= 0.05, 1.0, np.where(distance <= 0.1, 0.5, 0.0))


_OBJECTIVES: dict[str, Callable[[Floats, Floats], Floats]] = {"f1": f1, "f2": f2}


@dataclass(frozen=True)
class Bitstring:
    """A problem instance: hidden bits int[T], hidden betas float[T], the weight alpha and the objective f.

    Calling it with a `DesignBatch` gives the rewards float[B].
    """

    bits: Ints
    betas: Floats
    alpha: float
    objective: str

    def __call__(self, designs: DesignBatch) -> Floats:
        """R(tau, beta) of every design."""
        closeness = _OBJECTIVES[self.objective](designs.values, self.betas)
        share = np.where(designs.tokens == self.bits, self.alpha + (1 - self.alpha) * closeness, 0.0)
        return np.asarray(share.mean(axis=1))


def bitstring(length: int = 10, alpha: float = 0.9, objective: str = "f1", seed: int = 0) -> Task:
    """The task for a seed, which decides the hidden bits and betas (the latter uniform in [0, 1]).

    Args:
        length: T.
        alpha: weight of the bits against the numbers, in [0, 1].
        objective: "f1" (many local maxima) or "f2" (discontinuous).
        seed: of the hidden solution.
    """
    BitstringOptions(length, alpha, objective)  # which checks them
    require_integer("seed", seed, 0)
    rng = np.random.default_rng(np.random.SeedSequence((seed, length)))
    problem = Bitstring(rng.integers(0, 2, length), rng.random(length), float(alpha), objective)
    space = Space((Token("0", range=(0, 1)), Token("1", range=(0, 1))), FixedSequence(length))
    name = f"bitstring-{length}-{alpha:g}-{objective}"
    return Task(space, batch_objective=problem, worst_reward=0.0, name=name)


def _prepare(settings: Any, given: Any, stack: ExitStack, clock: Clock) -> Prepared:
    own: BitstringOptions = settings.task
    seed = settings.plan.seed if own.solution is None else own.solution
    return prepared(settings, bitstring(own.length, own.alpha, own.objective, seed))


KIND = Kind(
    options=BitstringOptions,
    prepare=_prepare,
    title=lambda task, ending: (
        f"Bitstring of {task.get('length')}, {task.get('objective')}, α = {task.get('alpha')}"
    ),
    template="""# The paper's parameterised bitstring: hidden bits, each with a hidden number.

[task]
kind = "bitstring"
length = 10
alpha = 0.9                # weight of the bits against the numbers
objective = "f1"           # f1 has many local maxima, f2 jumps
""",
    budget=BUDGET,
)
