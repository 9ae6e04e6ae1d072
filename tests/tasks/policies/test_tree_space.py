""""""

from __future__ import annotations

import itertools

from discodso.tasks.policies.tree_space import search_seeds, validation_seeds


def test_the_seeds_of_searches_choices_and_tests_do_not_meet():
    searches = [search_seeds(seed) for seed in (0, 1, 2, 2**14 - 1)]
    choices = [validation_seeds(seed, 2**14) for seed in (0, 1, 2, 2**14 - 1)]
    ordered = sorted([range(10_000), *searches, *choices], key=lambda seeds: seeds.start)
    for before, after in itertools.pairwise(ordered):
        assert before.stop <= after.start
    assert all(len(seeds) & (len(seeds) - 1) == 0 for seeds in searches)
    assert ordered[-1].stop <= 2**31
