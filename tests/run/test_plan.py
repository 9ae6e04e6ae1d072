"""Plans: limits of a run, and the calls that a noisy search keeps for its end."""

from __future__ import annotations

import pytest

from discodso import DeclarationError
from discodso.run.plan import Plan


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"budget": 0}, "budget must be an integer >= 1"),
        ({"budget": 5, "time_limit": 0}, "time_limit must be a finite number above 0"),
        ({"budget": 5, "patience": 1.5}, "patience must be an integer >= 1"),
        ({"budget": 5, "top": 0}, "top must be an integer >= 1"),
        ({"budget": 5, "confirm_calls": 5}, "confirm_calls must be below the budget, 5"),
        ({"budget": 50, "confirm_calls": 3}, "confirm_calls must be 0, or at least 4"),
    ],
)
def test_limits_that_cannot_be_are_named(given, words):
    with pytest.raises(DeclarationError, match=words):
        Plan(**given)


@pytest.mark.parametrize(("budget", "kept"), [(1000, 100), (40, 4), (39, 0), (1, 0)])
def test_a_noisy_search_keeps_a_tenth_for_its_end_where_that_is_a_race(budget, kept):
    assert Plan(budget).confirming_noise(True).confirm_calls == kept
    assert Plan(budget).confirming_noise(False).confirm_calls is None


def test_what_the_user_has_said_stays():
    for calls in (0, 20):
        plan = Plan(1000, confirm_calls=calls)
        assert plan.confirming_noise(True) is plan
