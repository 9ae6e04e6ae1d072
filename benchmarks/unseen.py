"""Four small design problems on which next to nothing was tuned: a sequence, a tree, numbers only, structure only.

Only the screen was chosen by them, on other seeds; two settings were changed after a first look, for what the
bitstring and the filter showed (`variation.single` of the default). `benchmarks/defaults.py --only part=unseen`
searches them with the default, the paper's settings, genetic programming and random search.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from discodso import Design, FixedSequence, OpenSequence, Space, Task, Token, Tree
from discodso.space.design import Part

THRUST = {"coast": (0, 0), "up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}
GOAL = np.array([6.0, -1.0])
STEPS = 8  # of the motion during one thrust
TIMES = np.linspace(0, 6, 120)
RESPONSE = 1.5 * np.sin(2.3 * TIMES) * np.exp(-0.4 * TIMES) - 0.7 * np.sin(5.1 * TIMES) * np.exp(-0.9 * TIMES)
TRAP, TRAPS = 5, 6  # bits of a trap, number of traps


def manoeuvre() -> Task:
    """Up to twelve thrusts of some length bring a craft to rest at a goal behind a wall."""

    def reward(design: Design) -> float:
        place, speed, hits = np.zeros(2), np.zeros(2), 0
        for name, seconds in design:
            assert seconds is not None
            for _ in range(STEPS):
                speed = speed + np.array(THRUST[name]) * seconds / STEPS
                place = place + speed * seconds / STEPS
                hits += bool(2 < place[0] < 3 and place[1] < 3)
        off, fast = np.linalg.norm(place - GOAL), np.linalg.norm(speed)
        return float(-off - 0.5 * fast - 0.02 * hits - 0.01 * len(design))

    return Task(Space([Token(name, range=(0, 2)) for name in THRUST], OpenSequence(1, 12)), reward)


def vibration() -> Task:
    """A response over time as a tree of sines, decays, factors, sums and products, without least squares."""
    tokens = [
        Token("add", arity=2),
        Token("mul", arity=2),
        Token("scale", arity=1, range=(-3, 3)),
        Token("sin", arity=0, range=(0.3, 12)),
        Token("decay", arity=0, range=(0.05, 5)),
    ]

    def curve(nodes: Iterator[Part]) -> np.ndarray:
        name, value = next(nodes)
        if name in ("add", "mul"):
            left, right = curve(nodes), curve(nodes)
            return np.asarray(left + right if name == "add" else left * right)
        assert value is not None
        if name == "scale":
            return np.asarray(value * curve(nodes))
        return np.asarray(np.sin(value * TIMES) if name == "sin" else np.exp(-value * TIMES))

    def reward(design: Design) -> float:
        error = np.mean((curve(iter(design)) - RESPONSE) ** 2) / np.var(RESPONSE)
        return float(1 / (1 + error))

    return Task(Space(tokens, Tree(max_length=25)), reward)


def valley() -> Task:
    """Rosenbrock's valley in six numbers, -log10: nothing but values to find."""

    def reward(design: Design) -> float:
        x = np.array(design.values, float)
        height = 100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2
        return float(-np.log10(1e-12 + height.sum()))

    return Task(Space([Token("x", range=(-3, 3))], FixedSequence(6)), reward)


def traps() -> Task:
    """Six traps of five bits, each of which leads away from its best: nothing but structure to find."""

    def reward(design: Design) -> float:
        ones = np.array([name == "1" for name in design.tokens]).reshape(TRAPS, TRAP).sum(axis=1)
        return float(np.where(ones == TRAP, TRAP, TRAP - 1 - ones).sum() / (TRAP * TRAPS))

    return Task(Space([Token("0"), Token("1")], FixedSequence(TRAP * TRAPS)), reward)


UNSEEN = {"manoeuvre": manoeuvre, "vibration": vibration, "valley": valley, "traps": traps}
