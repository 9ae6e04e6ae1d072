"""Checks of arguments: what counts as a number, and messages that name the key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from discodso import DeclarationError
from discodso.base.checks import (
    did_you_mean,
    is_integer,
    is_number,
    module_of_extra,
    require_integer,
    require_number,
    require_one_of,
    seed_sequence,
    settle_integers,
)


def test_numbers_are_told_by_their_type():
    assert all(map(is_integer, (3, -1, np.int32(4))))
    assert not any(map(is_integer, (True, 3.0, "3", None, np.bool_(True))))
    assert all(map(is_number, (3, 2.5, np.float32(1), np.int64(7))))
    assert not any(map(is_number, (True, "1", None, float("nan"), float("inf"), 10**400, 1j)))


@pytest.mark.parametrize(
    ("limits", "good", "bad", "words"),
    [
        ({"least": 0, "most": 1}, (0, 1), (-0.1, 1.1, "x"), "x must be a finite number >= 0 and <= 1, got"),
        ({"above": 0}, (1e-300,), (0, -1), "x must be a finite number above 0, got"),
        ({}, (-1e300,), (float("inf"), True), "x must be a finite number, got"),
    ],
)
def test_a_number_keeps_its_limits(limits, good, bad, words):
    for value in good:
        require_number("x", value, **limits)
    for value in bad:
        with pytest.raises(DeclarationError, match=words):
            require_number("x", value, **limits)


def test_integers_of_settings_become_plain_ones():
    @dataclass(frozen=True)
    class Settings:
        size: int

    settings = Settings(np.int64(5))
    settle_integers(settings, {"size": 1})
    assert type(settings.size) is int
    with pytest.raises(DeclarationError, match="size must be an integer >= 6, got 5"):
        settle_integers(settings, {"size": 6})
    with pytest.raises(DeclarationError, match=r"n must be an integer >= 1, got 2\.0"):
        require_integer("n", 2.0, 1)


def test_a_seed_is_not_used_up_by_those_who_take_it():
    given = np.random.SeedSequence(7)
    first = seed_sequence(given).spawn(1)[0].generate_state(2)
    assert np.array_equal(first, seed_sequence(given).spawn(1)[0].generate_state(2))
    assert np.array_equal(first, seed_sequence(7).spawn(1)[0].generate_state(2))
    with pytest.raises(DeclarationError, match="seed must be an integer >= 0"):
        seed_sequence(-1)


def test_names_are_checked_and_the_nearest_is_told():
    require_one_of("mode", "fast", ("fast", "slow"))
    with pytest.raises(DeclarationError, match="mode must be one of 'fast', 'slow', got 'quick'"):
        require_one_of("mode", "quick", ("fast", "slow"))
    assert did_you_mean("bugdet", ["seed", "budget"]) == "; did you mean 'budget'?"
    assert did_you_mean("zzz", ["seed", "budget"]) == did_you_mean(3, ["seed"]) == ""


def test_a_missing_extra_says_what_to_install():
    assert module_of_extra("json", "JSON").dumps([]) == "[]"
    with pytest.raises(DeclarationError, match=r'Dask is not installed; .*pip install "discodso\[dask\]"'):
        module_of_extra("no_such_module", "Dask")
