"""A proposer of one's own: symmetric filters, beside what the default method proposes.

A designer of filters knows that good ladders are often symmetric. The class below mirrors the best ladders found
so far; the method gives it a share of every batch, and more of it if its designs are good.

    python examples/own_proposer.py --budget 5000
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from ladder_filter import butterworth, ladder_task

from discodso import Design, Space, State, preset, search


class Symmetric:
    """Proposes the first half of an archived ladder, followed by its mirror image."""

    name = "symmetric"

    def __init__(self, space: Space) -> None:
        self._space = space

    def propose(self, archive: Any, count: int, rng: np.random.Generator) -> list[Design]:
        """At most `count` designs; what breaks a rule of the space is left out."""
        members = archive.members.designs
        chosen = [members[int(row)] for row in rng.integers(0, len(members), count)] if len(members) else []
        mirrored = [self._mirrored(design) for design in chosen]
        return [design for design in mirrored if not self._space.violations(design)]

    def _mirrored(self, design: Design) -> Design:
        half = list(design)[: (len(design) + 1) // 2]
        return Design.of(*half, *reversed(half[: len(design) // 2]))

    def learn(self, told: Any, archive: Any) -> None:
        """It learns nothing from what came of its designs."""

    def state(self) -> State:
        """It remembers nothing."""
        return State()

    def restore(self, state: State) -> None:
        """It remembers nothing."""


def main(arguments: list[str] | None = None) -> None:
    """Search with the proposer and without it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=5000, help="objective calls")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    default = preset("default", budget=options.budget)
    for name, method in (("with", replace(default, proposers=(Symmetric,))), ("without", default)):
        task = ladder_task(butterworth())
        result = search(task, budget=options.budget, seed=options.seed, method=method)
        assert result.best is not None
        print(f"{name} the proposer: {result.best.reward:.4f} {task.space.render(result.best.design)}")


if __name__ == "__main__":
    main()
