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


def test_search_validation_and_test_seeds_never_meet() -> None:
    for seed in (0, 1, 2**14 - 1, 2**14, 10**6):
        searching, choosing = search_seeds(seed), validation_seeds(seed, 11_000)
        assert searching[0] > validation_seeds(2**14 - 1, 2**14)[-1] or searching[0] >= 2**30
        assert choosing[0] >= 2**29
        assert choosing[-1] < 2**30
        assert len(searching) & (len(searching) - 1) == 0  # the stride of the objective needs a power of two
