"""Random libraries with all kinds of values under random rules: proposals keep them, and no search ends early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discodso import (
    AnyOrder,
    ChildTypes,
    Choice,
    DeadEndError,
    DifferentLeaves,
    EndsWith,
    FixedSequence,
    Follows,
    ForbiddenChild,
    ForbiddenDescendant,
    ForbiddenSiblings,
    Integer,
    InversePairs,
    LeadsTo,
    Needs,
    NoNesting,
    OpenSequence,
    Real,
    Repeat,
    Space,
    StartsWith,
    Sum,
    Task,
    Together,
    Token,
    Tree,
    Where,
    search,
)
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.space.enumeration import all_designs

NAMES = "abcd"
ARITY = dict(zip(NAMES, (2, 1, 0, 0), strict=True))
some = st.sets(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda names: tuple(sorted(names)))
pair = st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True)
pairs = st.lists(pair, min_size=1, max_size=2)
limit = st.one_of(st.integers(-500, 1500).map(lambda hundredths: hundredths / 100), st.integers(-5, 15))
number = st.one_of(
    st.tuples(st.floats(-5, 0), st.floats(0.5, 9)).map(lambda ends: Real(*ends)),
    st.just(Real(1e-3, 1e3, log=True)),
    st.just(Real(0, np.inf)),
    st.tuples(st.integers(-3, 2), st.integers(2, 40)).map(lambda ends: Integer(*ends)),
    st.just(Integer(1, 10**6, log=True)),
)
value = st.one_of(number, st.integers(1, 4).map(lambda count: Choice(*range(count))))
values = st.lists(value, max_size=3).map(lambda own: {f"v{k}": each for k, each in enumerate(own)})
repeat = st.builds(
    lambda names, least, more: Repeat(names, least, None if more > 2 else least + more),
    some,
    st.integers(0, 2),
    st.integers(0, 3),
)
on_both = (
    st.builds(ForbiddenChild, some, some),
    st.builds(ForbiddenDescendant, some, some),
    st.builds(NoNesting, some),
    st.builds(InversePairs, pairs),
    repeat,
    repeat,
)
sequence_rules = st.one_of(
    st.builds(Follows, some, some),
    st.builds(LeadsTo, some, some),
    st.builds(Needs, some, some),
    st.builds(StartsWith, some),
    st.builds(EndsWith, some),
    some.map(lambda names: Together(*names)),
    some.map(lambda names: AnyOrder(*names)),
    *on_both,
)
sums = st.one_of(
    st.builds(lambda end: [Sum("v0", at_most=end)], limit),
    st.builds(lambda end: [Sum("v0", at_least=end)], limit),
    st.builds(lambda a, b: [Sum("v0", at_least=a), Sum("v0", at_least=b)], limit, limit),
)
tree_rules = st.one_of(
    st.builds(ChildTypes, st.sampled_from("ab"), st.sampled_from((None, 0)), some),
    st.builds(ForbiddenSiblings, pairs),
    st.just(DifferentLeaves()),
    *on_both,
)
varied = Where(lambda design: len(set(design.tokens)) != 1 or len(design) < 3, called="varied")
shapes = st.one_of(st.just(FixedSequence(3)), st.integers(0, 2).map(lambda least: OpenSequence(least, 4)))
trees = st.integers(1, 5).map(lambda least: Tree(least, 7))
RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def proposals(space: Space, seed: int) -> None:
    """Random designs of built-in rules never meet a dead end, and no proposer of the default breaks a rule."""
    drawn = sample(space, UniformStepper(space), 20, np.random.default_rng(seed))
    assert drawn.redrawn == 0 or space.conditions
    seen = list(drawn.designs)

    def objective(design):
        seen.append(design)
        return float(len(seen) % 7)

    result = search(Task(space, objective), budget=30, seed=seed)
    assert result.calls == 30 or "all" in result.sentence, result.sentence
    for design in seen:
        assert not space.violations(design), space.violations(design)


def with_values(own: list[dict[str, Any]], arity: dict[str, int]) -> list[Token]:
    return [Token(name, arity.get(name, 0), **each) for name, each in zip(NAMES, own, strict=True)]


@RELAXED
@given(
    st.lists(values, min_size=4, max_size=4),
    st.lists(sequence_rules, max_size=3),
    st.one_of(st.just([]), st.just([varied]), sums),
    shapes,
    st.integers(0, 99),
)
def test_sequences_keep_their_rules(own, rules, others, shape, seed):
    tokens = with_values(own, {})
    carries = any(isinstance(each.get("v0"), (Real, Integer)) for each in own)
    others = [rule for rule in others if carries or not isinstance(rule, Sum)]
    try:
        space = Space(tokens, shape, [*rules, *others])
    except DeadEndError:
        return
    try:
        space.sample(5, seed)
    except DeadEndError:
        assert varied in others  # which nothing meets
        return
    proposals(space, seed)


@RELAXED
@given(st.lists(values, min_size=4, max_size=4), st.lists(tree_rules, max_size=4), trees, st.integers(0, 99))
def test_trees_keep_their_rules(own, rules, shape, seed):
    try:
        space = Space(with_values(own, ARITY), shape, rules)
    except DeadEndError:
        return
    proposals(space, seed)


small = st.tuples(st.integers(-2, 1), st.integers(0, 2)).map(lambda ends: Integer(ends[0], sum(ends)))


@RELAXED
@given(
    st.lists(st.one_of(st.just({}), small.map(lambda each: {"v0": each})), min_size=4, max_size=4),
    st.lists(sequence_rules, max_size=3),
    st.lists(st.builds(lambda a, b: Sum("v0", max(a, b), min(a, b)), limit, limit), max_size=2),
    st.one_of(st.just(FixedSequence(3)), st.integers(0, 2).map(lambda least: OpenSequence(least, 3))),
)
def test_a_sequence_is_refused_exactly_if_there_is_none(own, rules, limits, shape):
    limits = limits if any(own) else []
    refused_exactly(with_values(own, {}), shape, [*rules, *limits])


@RELAXED
@given(st.lists(tree_rules, max_size=4), trees)
def test_a_tree_is_refused_exactly_if_there_is_none(rules, shape):
    refused_exactly(with_values([{}] * 4, ARITY), shape, rules)


def refused_exactly(tokens, shape, rules):
    """Against all designs of the space without rules, of which each rule takes its own."""
    free = Space(tokens, shape)
    designs = all_designs(free, 10**6)
    good = np.ones(len(designs), np.bool_)
    for rule in rules:
        good &= total_within(rule, designs) if isinstance(rule, Sum) else kept(free, rule, designs)
    wanted = designs.select(good)
    if not len(wanted):
        with pytest.raises(DeadEndError, match="no design can begin"):
            Space(tokens, shape, rules)
        return
    space = Space(tokens, shape, rules)
    assert set(map(str, all_designs(space, 10**6))) == set(map(str, wanted))
    assert space.count() == len({design.tokens for design in wanted})
    assert len(list(space.enumerate())) == space.count()


def total_within(rule, designs):
    total = np.nan_to_num(designs.values).sum(axis=1)
    return (total >= rule.at_least) & (total <= rule.at_most)


def kept(space, rule, designs):
    good, prefix = np.ones(len(designs), np.bool_), space.start(len(designs))
    while len(prefix):
        rows, at = prefix.rows, prefix.position
        good[rows[rule.forbidden(prefix)[np.arange(len(rows)), designs.tokens[rows, at]]]] = False
        prefix = prefix.advance(designs.tokens[rows, at], designs.values[rows, at])
    return good
