"""Looking ahead in sequences: automata, their product, and what completions can still add."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discodso import FixedSequence, OpenSequence, Token
from discodso.space.look_ahead import Automaton, LookAhead, SumLimits, TokenCounts, _Box, _merged
from discodso.space.prefix import Prefix
from discodso.space.tokens import Grammar, library_for


def made(shape, names="abc"):
    library = library_for([Token(name) for name in names], shape)
    return library, Grammar.of(shape, library)


# After an "a" the next token is a "b", and the last is no "a".
AFTER_A = Automaton(
    False, lambda owed, token: None if owed and token != 1 else token == 0, lambda owed: not owed
)


def keeps(word):
    return all(word[i + 1 : i + 2] == "b" for i, letter in enumerate(word) if letter == "a")


def walked(library, grammar, ahead):
    """All words that the look ahead lets through, and whether it ever leaves nothing to say."""
    words, stack = set(), [""]
    while stack:
        word = stack.pop()
        prefix = Prefix.start(library, grammar, 1)
        for letter in word:
            prefix = prefix.advance(np.array([library.id(letter)]), np.array([np.nan]))
        if not len(prefix):
            words.add(word)
            continue
        allowed = np.flatnonzero(~ahead.forbidden(prefix)[0])
        assert len(allowed), word
        for token in allowed.tolist():
            if token == library.end:
                words.add(word)
            else:
                stack.append(word + library.names[token])
    return words


@pytest.mark.parametrize("shape", [FixedSequence(4), OpenSequence(1, 4)], ids=["fixed", "open"])
def test_exactly_the_words_that_keep_all_rules_can_be_said(shape):
    library, grammar = made(shape)
    counts = TokenCounts({2: (1, 2)}, groups=[(0, 2)])  # one or two "c", and with them an "a"
    ahead = LookAhead.of(library, grammar, [AFTER_A], counts=counts)
    lengths = (4,) if shape == FixedSequence(4) else (1, 2, 3, 4)
    every = ("".join(letters) for n in lengths for letters in itertools.product("abc", repeat=n))
    good = {w for w in every if keeps(w) and 1 <= w.count("c") <= 2 and "a" in w}
    assert walked(library, grammar, ahead) == good


def test_tokens_that_no_rule_tells_apart_share_their_states():
    library, grammar = made(FixedSequence(8), "abcdefgh")
    once = TokenCounts(dict.fromkeys(range(8), (1, 1)))
    ahead = LookAhead.of(library, grammar, [], counts=once)
    assert ahead.states == 9  # how many were said, not which
    apart = LookAhead.of(library, grammar, [AFTER_A], counts=once)
    assert 9 < apart.states < 2**8


def test_a_product_with_too_many_states_is_none(monkeypatch):
    library, grammar = made(FixedSequence(6), "abcdef")
    once = TokenCounts({token: (0, token + 1) for token in range(6)})
    assert LookAhead.of(library, grammar, [], counts=once) is not None
    monkeypatch.setattr("discodso.space.look_ahead._MOST_STATES", 20)
    assert LookAhead.of(library, grammar, [], counts=once) is None


def test_limits_on_one_sum_are_joined_and_those_of_integers_are_integers():
    slot, low, high = np.array([0, -1]), np.array([1.0, 0.0]), np.array([4.0, 0.0])
    first = SumLimits(slot, low, high, -np.inf, 9.5, whole=True)
    second = SumLimits(slot, low, high, 2.5, np.inf, whole=True)
    (both,) = SumLimits.joined([first, second])
    assert (both.at_least, both.at_most) == (3.0, 9.0)
    other = SumLimits(np.array([0, 0]), low, high, 12.0, np.inf)
    rest = SumLimits.joined([first, other])[2]  # of the second token
    assert rest.slot.tolist() == [-1, 0]
    assert (round(rest.at_least, 6), rest.at_most) == (2.5, np.inf)


def merged(pairs, gap):
    boxes = [_Box((low,), (high,)) for low, high in pairs]
    return [(low, high) for (low,), (high,) in _merged(boxes, (gap,))]


def test_intervals_are_joined_where_they_meet_and_where_they_are_too_many():
    assert merged([(4, 5), (0, 1), (1, 2)], 0.0) == [(0, 2), (4, 5)]
    assert merged([(0, 1), (2, 3)], 1.0) == [(0, 3)]  # integers: nothing lies between
    many = [(10.0 * n, 10.0 * n + 1) for n in range(16)] + [(151.5, 152.0)]
    found = merged(many, 0.0)
    assert len(found) == 16
    assert found[-1] == (150.0, 152.0)


@given(st.lists(st.tuples(*[st.integers(0, 6)] * 4), min_size=1, max_size=12))
def test_boxes_are_joined_without_a_loss(corners):
    boxes = [_Box((min(a, b), min(c, d)), (max(a, b), max(c, d))) for a, b, c, d in corners]

    def covered(some, x, y):
        return any(low[0] <= x <= high[0] and low[1] <= y <= high[1] for low, high in some)

    found = _merged(boxes, (0.0, 0.0))
    assert len(found) <= len(boxes)
    for x in np.arange(0, 6.5, 0.5):
        for y in np.arange(0, 6.5, 0.5):
            assert covered(found, x, y) == covered(boxes, x, y)
