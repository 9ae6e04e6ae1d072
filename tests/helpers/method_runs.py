"""Every baseline in a small form, and the spaces and the objective that they are tried on."""

from __future__ import annotations

import numpy as np
from spaces import decision_tree, symbolic

from discodso import Design, DisCoSettings, OpenSequence, Space, Token
from discodso.baselines import inner
from discodso.baselines.bayesian import BOSettings
from discodso.baselines.decoupled import DecoupledSettings
from discodso.baselines.genetic import GPSettings
from discodso.baselines.random_search import RandomSettings
from discodso.tasks.bitstring import bitstring

SMALL_DISCO = DisCoSettings(batch_size=10)
SMALL_GP = GPSettings(population=12)
METHODS = {
    "random": RandomSettings(batch_size=10),
    "gp": SMALL_GP,
    "bo": BOSettings(initial=5, candidates=20, fit_steps=2),
    **{
        f"decoupled-{family}-{name}": DecoupledSettings(source, name, inner_calls=40, in_flight=5)
        for family, source in (("rl", SMALL_DISCO), ("gp", SMALL_GP))
        for name in inner.INNER
    },
}


def drive_train() -> Space:
    tokens = [
        Token("gears", range=(0.2, 5.0), scale="log"),
        Token("belt", range=(0.5, 2.0)),
        Token("coupling"),
    ]
    return Space(tokens, OpenSequence(1, 4))


SPACES = {
    "bits": lambda: bitstring(4).space,
    "tree": decision_tree,
    "expression": lambda: symbolic(4, 12),
    "open": drive_train,
}


def reward(design: Design) -> float:
    """Smooth in the values, and some tokens are better than others."""
    value = sum(-((v - 0.3) ** 2) for v in design.values if v is not None)
    return float(np.tanh(value) + sum(len(name) for name in design.tokens) / 50)


class Counting:
    """An objective that notes every design it is entered with."""

    def __init__(self) -> None:
        self.designs: list[Design] = []

    def __call__(self, design: Design) -> float:
        self.designs.append(design)
        return reward(design)


def budget_for(name: str) -> int:
    return 12 if name == "bo" else 130
