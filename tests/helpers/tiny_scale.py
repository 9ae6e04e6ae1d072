"""The paper's experiments at sizes that take seconds."""

from __future__ import annotations

import csv
from dataclasses import replace

from discodso.reproduce import paper
from discodso.reproduce.scales import SCALES

TINY = replace(
    SCALES["smoke"],
    bits=3,
    bit_calls=30,
    bit_seeds=2,
    tree_calls=dict.fromkeys(paper.ENVIRONMENTS, 4),
    episodes=dict.fromkeys(paper.ENVIRONMENTS, 2),
    tree_seeds=1,
    test_seeds=3,
    problems=("Constant-5",),
    problem_calls=40,
    problem_seeds=1,
    bo_seconds=0.5,
)


def ignore(line: str) -> None:
    """Nobody watches."""


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))
