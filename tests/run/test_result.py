"""What a search found: its best designs, distinct and in order, and what it says of itself."""

from __future__ import annotations

import numpy as np
from near_task import METHOD, NEAR, count_a
from spaces import roomy_fixed

from discodso import Design, Task, search


def test_top_designs_are_distinct_and_sorted():
    result = search(Task(roomy_fixed(), count_a), budget=400, top=7, method=METHOD)
    assert len(result.top) == 7
    assert len({s.design for s in result.top}) == 7
    rewards = [s.reward for s in result.top]
    assert rewards == sorted(rewards, reverse=True)
    assert result.best == result.top[0]


def test_top_designs_match_a_full_sort_of_everything_evaluated():
    rng = np.random.default_rng(0)
    table = {}

    def objective(design):
        return table.setdefault(design, float(rng.integers(0, 40)))

    result = search(Task(roomy_fixed(), objective), budget=300, top=15, method=METHOD)
    assert [s.reward for s in result.top] == sorted(table.values(), reverse=True)[:15]


def test_a_result_says_what_it_is_and_its_designs_load_back():
    result = search(NEAR, budget=60, method=METHOD)
    assert repr(result).startswith("<Result: best ")
    assert Design.from_dict(result.to_dict()["best"]["design"]) == result.best.design
