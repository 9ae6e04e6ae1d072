"""The checks for people's own classes find what is wrong, and name it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from spaces import decision_tree, mixed_sequence, small_open, small_tree, small_tree_with_priors, symbolic

from discodso import (
    Bounds,
    Constraint,
    DecisionTreeBounds,
    Design,
    DiscodsoError,
    ForbiddenChild,
    NoNesting,
    Prior,
    SoftLength,
    State,
    Task,
)
from discodso.disco.proposers.refinement import Refinement
from discodso.disco.proposers.variation import Variation
from discodso.disco.settings import RefinementSettings, VariationSettings
from discodso.tasks.bitstring import bitstring
from discodso.testing import check_constraint, check_proposer, check_task


@pytest.mark.parametrize(
    "space",
    [symbolic(), decision_tree(), small_open(), small_tree(), small_tree_with_priors(), mixed_sequence()],
)
def test_everything_that_ships_passes(space):
    check_task(Task(space, lambda design: float(len(design))))


class Rule(Constraint):
    """A correct constraint to break in the tests below."""

    def forbidden(self, prefix):
        mask = prefix.forbid_nothing()
        mask[prefix.parent == prefix.library.id("exp"), prefix.library.id("log")] = True
        return mask


def test_a_correct_constraint_of_ones_own_passes():
    check_constraint(Rule(), symbolic())


class LooksAtValues(Constraint):
    """No second sin after a large constant."""

    def forbidden(self, prefix):
        mask = prefix.forbid_nothing()
        large = (np.nan_to_num(prefix.values) > 0.5).any(axis=1)
        mask[large, prefix.library.id("sin")] = True
        return mask


class SaysItDoesNot(LooksAtValues):
    sees_values = False


class OwnLength(SoftLength):
    """A subclass may look at what its parent does not."""


def test_a_declaration_about_values_is_tried():
    check_constraint(LooksAtValues(), symbolic())
    with pytest.raises(AssertionError, match="sees_values = False, but its answer changes"):
        check_constraint(SaysItDoesNot(), symbolic())
    assert not SoftLength(4, 1).sees_values
    assert not NoNesting("sin").sees_values
    assert Rule().sees_values
    assert OwnLength(4, 1).sees_values


class WrongShape(Rule):
    def forbidden(self, prefix):
        return super().forbidden(prefix)[:, :-1]


class WrongType(Rule):
    def forbidden(self, prefix):
        return super().forbidden(prefix).astype(float)


class NotAnArray(Rule):
    def forbidden(self, prefix):
        return super().forbidden(prefix).tolist()


class Raises(Rule):
    def forbidden(self, prefix):
        return super().forbidden(prefix) + prefix.tokens[:, 3:4]


class Remembers(Rule):
    calls = itertools.count()

    def forbidden(self, prefix):
        mask = super().forbidden(prefix)
        mask[:, 0] = next(self.calls) % 2
        return mask


class Writes(Rule):
    def forbidden(self, prefix):
        prefix.open_slots[:] += 1
        return super().forbidden(prefix)


class WritesValues(Rule):
    def forbidden(self, prefix):
        prefix.values[:] = 9
        return super().forbidden(prefix)


class LooksAtTheBatch(Rule):
    def forbidden(self, prefix):
        mask = super().forbidden(prefix)
        mask[:, 0] |= len(prefix) > 10
        return mask


class ForbidsAll(Rule):
    def forbidden(self, prefix):
        mask = super().forbidden(prefix)
        mask[prefix.parent == prefix.library.id("add")] = True
        return mask


class NamesUnknown(Rule):
    def forbidden(self, prefix):
        prefix.library.id("sine")
        return super().forbidden(prefix)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (WrongShape, r"shape \[B, K\]"),
        (WrongType, "booleans"),
        (NotAnArray, "NumPy arrays, got list"),
        (Raises, "raised"),
        (Remembers, "two answers"),
        (Writes, "changed the prefix"),
        (WritesValues, "read-only"),
        (LooksAtTheBatch, "alone"),
        (ForbidsAll, "dead end"),
    ],
)
def test_broken_constraints_are_found_and_named(rule, words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_constraint(rule(), symbolic())
    assert rule.__name__ in str(caught.value)


def test_a_constraint_for_another_space_is_found():
    with pytest.raises(AssertionError, match="does not fit"):
        check_constraint(NoNesting("sinh"), symbolic())
    with pytest.raises(AssertionError, match="subclass"):
        check_constraint("no nesting", symbolic())


def test_priors_and_bounds_are_tried_too():
    class Infinite(Prior):
        def logits(self, prefix):
            return np.full((len(prefix), len(prefix.library)), -np.inf)

    class Half(Bounds):
        def interval(self, prefix):
            low, high = np.broadcast_arrays(prefix.library.low, np.zeros((len(prefix), len(prefix.library))))
            return low, high * np.nan

    check_constraint(SoftLength(5, 2), symbolic())
    check_constraint(DecisionTreeBounds(), decision_tree())
    with pytest.raises(AssertionError, match="use a Constraint"):
        check_constraint(Infinite(), symbolic())
    with pytest.raises(AssertionError, match="NaN"):
        check_constraint(Half(), decision_tree())


class Interval(Bounds):
    """Bounds with some answer of its own."""

    def __init__(self, answer, width=None):
        self.answer, self.width = answer, width

    def interval(self, prefix):
        shape = (len(prefix), len(prefix.library))
        ends = np.broadcast_to(prefix.library.low, shape), np.broadcast_to(prefix.library.high, shape)
        return self.answer(*ends)

    def min_width(self, library):
        return super().min_width(library) if self.width is None else self.width


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (Interval(lambda low, high: (high, low)), "never leaves v an interval"),
        (Interval(lambda low, high: (low, low)), "never leaves v an interval"),
        (Interval(lambda low, high: None), "must return a pair low, high"),
        (Interval(lambda low, high: (low, high), 0.1), "min_width"),
    ],
)
def test_broken_bounds_are_found(bounds, words):
    check_constraint(Interval(lambda low, high: (low, high)), mixed_sequence())
    with pytest.raises(AssertionError, match=words):
        check_constraint(bounds, mixed_sequence())


def test_an_objective_may_fail_for_some_designs_but_not_for_all():
    check_task(Task(mixed_sequence(), lambda d: float("nan") if d.tokens[0] == "d" else 1.0))
    with pytest.raises(AssertionError, match="every design failed"):
        check_task(Task(mixed_sequence(), lambda d: float("nan")))


def test_broken_objectives_are_found():
    space = mixed_sequence()
    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="needs stochastic=True"):
        check_task(Task(space, lambda d: rng.random()))
    with pytest.raises(AssertionError, match="returned None"):
        check_task(Task(space, lambda d: None))
    with pytest.raises(AssertionError, match="for 20 designs"):
        check_task(Task(space, batch_objective=lambda designs: [1.0]))
    with pytest.raises(AssertionError, match=r"batch_objective gives 2\.0 and objective gives 1\.0"):
        check_task(Task(space, lambda d: 1.0, lambda designs: [2.0] * len(designs)))
    with pytest.raises(AssertionError, match="with the same seed"):
        check_task(Task(space, lambda d, seed: rng.random(), stochastic=True))
    with pytest.raises(AssertionError, match="expected a Task"):
        check_task(space)
    check_task(Task(space, lambda d, seed: np.random.default_rng(seed).random(), stochastic=True))
    with pytest.raises(AssertionError, match="is repeatable, but with other seeds"):
        check_task(
            Task(
                space,
                lambda d, seed: np.random.default_rng(seed).random(),
                stochastic=True,
                repeatable=True,
            )
        )
    check_task(Task(space, lambda d, seed: float(len(d)), stochastic=True, repeatable=True))


def test_a_rule_of_the_space_that_breaks_is_found_through_the_task():
    from dataclasses import replace

    space = replace(symbolic(), constraints=(LooksAtTheBatch(), ForbiddenChild("exp", "log")))
    with pytest.raises(AssertionError, match="LooksAtTheBatch"):
        check_task(Task(space, lambda d: 1.0))


class Copies:
    """A sound proposer: archived designs, as they are."""

    name = "copies"

    def __init__(self, space):
        self.calls = 0

    def propose(self, archive, count, rng):
        members = archive.members.designs
        return [members[int(row)] for row in rng.integers(0, len(members), count)] if len(members) else None

    def learn(self, told, archive):
        self.calls += len(told)

    def state(self):
        return State(data={"calls": self.calls})

    def restore(self, state):
        self.calls = int(state.data["calls"])


class TooMany(Copies):
    def propose(self, archive, count, rng):
        found = super().propose(archive, count, rng)
        return found and [*found, found[0]]


class Unlawful(Copies):
    def propose(self, archive, count, rng):
        return [Design.of("nothing")] * count


class Moody(Copies):
    moods = itertools.count()

    def propose(self, archive, count, rng):
        return super().propose(archive, count, np.random.default_rng(next(self.moods)))


class Forgetful(Copies):
    """Proposes by what it has learned, and forgets that in its state."""

    def propose(self, archive, count, rng):
        members = archive.members.designs
        return [members[self.calls // 20 % len(members)]] if len(members) else None

    def state(self):
        return State(data={"calls": 0})


class Shy(Copies):
    def propose(self, archive, count, rng):
        return [archive.members.designs[0]]  # of an empty archive as well


def test_sound_proposers_pass():
    space = bitstring(4).space
    check_proposer(Copies, space)
    check_proposer(lambda space: Variation(space, VariationSettings()), space)
    check_proposer(lambda space: Refinement(space, RefinementSettings()), space)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (TooMany, "asked for 1 designs and proposed 2"),
        (Unlawful, "nothing"),
        (Moody, "randomness"),
        (Forgetful, "equal archive"),
        (Shy, "raised IndexError for an archive of 0 designs"),
        (lambda space: object(), "must have a method propose"),
    ],
)
def test_faults_of_proposers_are_named(kind, words):
    with pytest.raises((AssertionError, DiscodsoError), match=words):
        check_proposer(kind, bitstring(4).space)
