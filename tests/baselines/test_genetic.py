"""Genetic programming: its operators keep the rules, and it gets better."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import SPACES
from spaces import SMALL, mixed_sequence

from discodso import Real, Space, Task, Token, Tree, search
from discodso.baselines.genetic import GPSettings
from discodso.baselines.random_search import RandomSettings
from discodso.tasks.bitstring import bitstring


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted({**SMALL, **SPACES})), st.integers(0, 10_000))
def test_generations_keep_the_rules(where, seed):
    space = {**SMALL, **SPACES}[where]()
    rng = np.random.default_rng(seed)
    method = GPSettings(population=8, tournament=2, max_depth=3).build(space, seed)
    for _ in range(4):
        designs = method.ask()
        for design in designs:
            assert space.violations(design) == []
        method.tell(designs, rng.random(len(designs)))


def test_generations_get_better_and_leave_pythons_random_stream_alone():
    task = bitstring(6)
    before = random.getstate()
    result = search(task, budget=3000, method=GPSettings(population=50), seed=0)
    assert random.getstate() == before
    lucky = search(task, budget=3000, method=RandomSettings(), seed=0)
    assert result.best.reward > lucky.best.reward


def test_numbers_are_mutated_along_with_tokens():
    task = Task(mixed_sequence(), lambda d: -abs((d.values[0] or 0.0) - 0.123456) - (d.tokens[0] == "d"))
    result = search(task, budget=2000, method=GPSettings(population=50), seed=0)
    assert result.best.reward > -1e-3


def test_trees_may_have_leaves_only():
    space = Space([Token("x", v=Real(0, 1))], Tree(1, 3))
    result = search(
        Task(space, lambda design: design[0].v), budget=200, method=GPSettings(population=20), seed=0
    )
    assert result.best.reward > 0.99
