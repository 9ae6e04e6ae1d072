"""Rules that look ahead, against a list of all sequences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discodso import (
    AnyOrder,
    Bounds,
    Choice,
    DeadEndError,
    DeclarationError,
    Design,
    EndsWith,
    FixedSequence,
    Follows,
    ForbiddenChild,
    ForbiddenDescendant,
    Integer,
    InvalidDesignError,
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
some = st.sets(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda names: tuple(sorted(names)))


def follows(own, after):
    def holds(tokens):
        return all(at and tokens[at - 1] in after for at, name in enumerate(tokens) if name in own)

    return Follows(own, after), holds


def leads_to(own, following):
    def holds(tokens):
        last = len(tokens) - 1
        return all(at < last and tokens[at + 1] in following for at, name in enumerate(tokens) if name in own)

    return LeadsTo(own, following), holds


def needs(own, earlier):
    def holds(tokens):
        return all(set(tokens[:at]) & set(earlier) for at, name in enumerate(tokens) if name in own)

    return Needs(own, earlier), holds


def starts_with(own):
    return StartsWith(own), lambda tokens: bool(tokens) and tokens[0] in own


def ends_with(own):
    return EndsWith(own), lambda tokens: bool(tokens) and tokens[-1] in own


def together(own):
    return Together(*own), lambda tokens: len(set(tokens) & set(own)) in (0, len(own))


def any_order(own):
    def holds(tokens):
        pairs = [(a, b) for a, b in itertools.pairwise(tokens) if a in own and b in own]
        return all(own.index(a) <= own.index(b) for a, b in pairs)

    return AnyOrder(*own), holds


def repeat(own, least, more):
    def holds(tokens):
        return least <= sum(name in own for name in tokens) <= least + more

    return Repeat(own, least, least + more), holds


def no_child(own, other):
    def holds(tokens):
        return not any(a in own and b in other for a, b in itertools.pairwise(tokens))

    return ForbiddenChild(own, other), holds


def no_descendant(own, other):
    def holds(tokens):
        return not any(a in own and set(tokens[at + 1 :]) & set(other) for at, a in enumerate(tokens))

    return ForbiddenDescendant(own, other), holds


def once(own):
    return NoNesting(own), lambda tokens: sum(name in own for name in tokens) <= 1


rules = st.one_of(
    st.builds(follows, some, some),
    st.builds(leads_to, some, some),
    st.builds(needs, some, some),
    st.builds(starts_with, some),
    st.builds(ends_with, some),
    st.builds(together, some),
    st.builds(any_order, some),
    st.builds(repeat, some, st.integers(0, 2), st.integers(0, 2)),
    st.builds(no_child, some, some),
    st.builds(no_descendant, some, some),
    st.builds(once, some),
)
shapes = st.one_of(
    st.integers(1, 4).map(FixedSequence),
    st.tuples(st.integers(0, 2), st.integers(2, 4)).map(lambda pair: OpenSequence(*pair)),
)


def sequences(shape):
    lengths = (
        [shape.length] if isinstance(shape, FixedSequence) else range(shape.min_length, shape.max_length + 1)
    )
    return [tokens for length in lengths for tokens in itertools.product(NAMES, repeat=length)]


@settings(max_examples=150, deadline=None)
@given(st.lists(rules, min_size=1, max_size=4), shapes)
def test_rules_together_leave_exactly_the_designs_that_keep_them(chosen, shape):
    wanted = {tokens for tokens in sequences(shape) if all(holds(tokens) for _, holds in chosen)}
    tokens = [Token(name) for name in NAMES]
    constraints = [rule for rule, _ in chosen]
    if not wanted:
        with pytest.raises(DeadEndError, match="no design can begin"):
            Space(tokens, shape, constraints)
        return
    space = Space(tokens, shape, constraints)
    found = all_designs(space, 10_000)
    assert found is not None
    assert {design.tokens for design in found} == wanted  # nothing is lost
    for design in space.sample(20):  # and there is never a dead end
        assert design.tokens in wanted
    for tokens_ in itertools.islice(sequences(shape), 0, None, 7):
        assert (not space.violations(Design.of(*tokens_))) == (tokens_ in wanted)


KINDS = st.one_of(
    st.tuples(st.floats(0.1, 2), st.floats(2.1, 9)).map(lambda pair: Real(*pair)),
    st.tuples(st.integers(1, 2), st.integers(3, 9)).map(lambda pair: Integer(*pair)),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(KINDS, min_size=1, max_size=3),
    st.floats(1, 30),
    st.booleans(),
    st.lists(rules, max_size=2),
    shapes,
    st.integers(0, 3),
)
def test_sums_hold_without_dead_ends(kinds, limit, above, chosen, shape, seed):
    tokens = [Token(name, w=kind, o=Choice("x", "y")) for name, kind in zip(NAMES, kinds, strict=False)]
    tokens += [Token(name) for name in NAMES[len(kinds) :]]
    limits = Sum("w", at_least=limit) if above else Sum("w", at_most=limit)
    try:
        space = Space(tokens, shape, [limits, *(rule for rule, _ in chosen)])
    except DeadEndError:
        return
    drawn = sample(space, UniformStepper(space), 25, np.random.default_rng(seed))
    assert drawn.redrawn == 0
    for design in drawn.designs:
        total = sum(part.w for part in design if "w" in part.values)
        assert limits.at_least - 1e-6 <= total <= limits.at_most + 1e-6
        assert not space.violations(design)


def test_a_sum_with_two_limits_holds():
    tokens = [Token("a", w=Real(1, 5)), Token("b", w=Integer(2, 3)), Token("c")]
    space = Space(tokens, OpenSequence(1, 6), [Sum("w", at_least=9.5, at_most=10)])
    for design in space.sample(200):
        assert 9.5 - 1e-6 <= sum(part.w for part in design if "w" in part.values) <= 10 + 1e-6


def test_sums_over_different_tokens_look_ahead_together():
    tokens = [Token("a", w=Real(1, 2)), Token("b", w=Real(1, 2)), Token("c", h=Integer(1, 3))]
    both = [Sum("w", at_least=3, at_most=4, tokens=name) for name in "ab"]
    space = Space(tokens, FixedSequence(4), both)
    drawn = sample(space, UniformStepper(space), 200, np.random.default_rng(0))
    assert drawn.redrawn == 0  # two of each, whatever comes first
    assert all(sorted(design.tokens) == ["a", "a", "b", "b"] for design in drawn.designs)
    with pytest.raises(DeadEndError, match="contradict each other"):
        Space(tokens, FixedSequence(3), both)
    with pytest.raises(DeadEndError, match="contradict each other"):
        Space(tokens, FixedSequence(5), [*both, Sum("h", at_least=4)])
    assert len(Space(tokens, FixedSequence(6), [*both, Sum("h", at_least=4)]).sample(50)) == 50


def test_a_sum_and_another_over_a_part_of_it_look_ahead_together():
    tokens = [Token("a", w=Real(0, 2)), Token("b", w=Real(0, 2))]
    whole, part = Sum("w", at_least=5), Sum("w", at_most=1, tokens="a")
    with pytest.raises(DeadEndError, match="contradict each other"):
        Space(tokens, FixedSequence(3), [whole, part, Repeat("a", 2)])
    space = Space(tokens, FixedSequence(3), [whole, part])
    drawn = sample(space, UniformStepper(space), 50, np.random.default_rng(0))
    assert drawn.redrawn == 0
    assert {design.tokens.count("b") for design in drawn.designs} == {2, 3}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(KINDS, min_size=3, max_size=3),
    st.tuples(st.floats(1, 15), st.floats(1, 15)),
    st.tuples(st.booleans(), st.booleans()),
    st.lists(rules, max_size=2),
    shapes,
    st.integers(0, 3),
)
def test_several_sums_hold_without_dead_ends(kinds, limits, above, chosen, shape, seed):
    tokens = [Token(name, w=kind) for name, kind in zip(NAMES, kinds, strict=False)]
    tokens += [Token(name) for name in NAMES[len(kinds) :]]
    sums = [
        Sum("w", at_least=limit, tokens=name) if up else Sum("w", at_most=limit, tokens=name)
        for name, limit, up in zip(NAMES, limits, above, strict=False)
    ]
    try:
        space = Space(tokens, shape, [*sums, *(rule for rule, _ in chosen)])
    except DeadEndError:
        return
    drawn = sample(space, UniformStepper(space), 25, np.random.default_rng(seed))
    assert drawn.redrawn == 0
    for design in drawn.designs:
        assert not space.violations(design)


def test_contradictions_name_the_rules():
    tokens = [Token(name) for name in NAMES]
    with pytest.raises(
        DeadEndError, match=r"StartsWith\(tokens=\('a',\)\) and Follows.* contradict each other"
    ):
        Space(
            tokens,
            OpenSequence(1, 5),
            [AnyOrder("c", "d"), StartsWith("a"), Follows("a", "b"), EndsWith(("c", "d"))],
        )
    with pytest.raises(DeadEndError, match="Sum"):
        Space([Token("a", range=(2, 3))], FixedSequence(4), [Sum("value", at_most=7)])


def test_a_condition_on_finished_designs_costs_no_call_and_is_counted():
    space = Space([Token("a", x=Real(0, 1)), Token("b")], OpenSequence(1, 5), [Where(balanced)])
    seen = []

    def objective(design):
        seen.append(design)
        return -abs(len(design) - 4) + sum(part.x for part in design if part.name == "a") / 10

    result = search(Task(space, objective), budget=300, seed=0)
    assert result.calls == len(seen) == 300
    assert all(balanced(design) for design in seen)
    assert sum(row.redrawn or 0 for row in result.history) > 0
    with pytest.raises(InvalidDesignError, match=r"does not meet Where\(balanced\)"):
        search(Task(space, objective), budget=10, initial_designs=[Design.of("b")])


def balanced(design: Design) -> bool:
    return design.tokens.count("a") == design.tokens.count("b")


def test_a_condition_that_nothing_meets_says_so():
    space = Space([Token("a")], OpenSequence(1, 5), [Where(lambda design: False, called="never")])
    with pytest.raises(DeadEndError, match=r"did not meet Where\(never\)"):
        search(Task(space, len), budget=10)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda: Follows("a", "nobody"), "no token 'nobody'"),
        (lambda: StartsWith(()), "names of tokens, strings, and at least one"),
        (lambda: Sum("speed", at_most=3), "no token carries a number called 'speed'"),
        (lambda: Sum("w"), "needs at_most or at_least"),
        (lambda: Sum("w", at_most=1, at_least=2), "above at_most"),
        (lambda: Sum("o", at_most=1), "no token carries a number called 'o'"),
        (lambda: Sum("w", at_most=3, tokens="b"), "token 'b' has no value 'w'"),
        (lambda: Where("a"), "function of a design"),
    ],
)
def test_mistakes_in_rules_are_refused_in_one_line(rule, words):
    tokens = [Token("a", w=Real(0, 1), o=Choice("x", "y")), Token("b")]
    with pytest.raises(DeclarationError, match=words) as caught:
        Space(tokens, OpenSequence(1, 4), [rule()])
    assert "\n" not in str(caught.value)


def test_rules_on_sequences_are_refused_for_trees():
    with pytest.raises(DeclarationError, match="StartsWith is for sequences"):
        Space([Token("a", 1), Token("b")], Tree(), [StartsWith("a")])


def test_the_first_value_leaves_room_for_those_that_must_come():
    space = Space([Token("a", range=(1, 10))], FixedSequence(3), [Sum("value", at_most=12)])
    (low,), (high,) = (
        ends[0] for ends in (space.options(space.start(1)).low, space.options(space.start(1)).high)
    )
    assert (low, high) == (1, 10)
    after = space.start(1).advance(np.array([0]), np.array([8.0]))
    assert space.options(after).high[0, 0] == pytest.approx(3)
    assert math.isclose(space.options(after).low[0, 0], 1)


JOBS = [f"j{at}" for at in range(16)]
ONCE = [Repeat(job, 1, 1) for job in JOBS]


@pytest.mark.parametrize(
    ("count", "others", "words"),
    [
        (16, [EndsWith("j0"), Follows("j0", "j1"), Follows("j2", "j1")], "Follows.* and Follows"),
        (
            12,
            [*(Needs(JOBS[i + 1], JOBS[i]) for i in range(0, 12, 2)), EndsWith("j6")],
            "Needs.* and EndsWith",
        ),
    ],
)
def test_contradictions_of_many_rules_are_found_and_explained(count, others, words):
    tokens = [Token(job) for job in JOBS[:count]]
    with pytest.raises(DeadEndError, match=words) as caught:
        Space(tokens, FixedSequence(count), [*ONCE[:count], *others])
    assert str(caught.value).count(" and ") < 6


def test_tokens_that_are_alike_make_few_states():
    names = [f"t{at}" for at in range(30)]
    space = Space([Token(name) for name in names], OpenSequence(1, 40), [Together(*names)])
    for design in space.sample(5):
        assert set(design.tokens) == set(names)
    tokens = [Token(job) for job in names]
    order = Space(tokens, FixedSequence(30), [*(Repeat(job, 1, 1) for job in names), Needs("t0", "t1")])
    assert order.count() == math.factorial(30) // 2
    assert not order.left_out


def test_rules_that_are_too_many_are_left_out_and_said():
    names = [f"t{at}" for at in range(24)]
    chains = [Follows(names[at], (*names[at + 1 :], *names[:2])) for at in range(22)]
    space = Space(
        [Token(name) for name in names], FixedSequence(24), [*(Repeat(n, 1, 1) for n in names), *chains]
    )
    assert len(space.left_out) == 24
    assert "too many to look ahead" in space.describe(0)


class Half(Bounds):
    def interval(self, prefix):
        shape = (len(prefix), *prefix.library.low.shape)
        low, high = (np.broadcast_to(end, shape) for end in (prefix.library.low, prefix.library.high))
        return low, np.minimum(high, 0.5)


@pytest.mark.parametrize(
    ("kind", "rules", "bounds"),
    [
        (Real(0, 1), [Sum("x", at_least=2.9), Sum("x", at_most=2.5)], {}),
        (Integer(2, 3), [Sum("x", at_least=6.2, at_most=6.8)], {}),
        (Integer(2, 2), [Sum("x", at_least=7, at_most=7)], {}),
        (Real(0, 1), [Sum("x", at_least=2)], {"bounds": Half()}),
    ],
)
def test_sums_out_of_reach_are_refused(kind, rules, bounds):
    with pytest.raises(DeadEndError, match=r"no design can begin: .*Sum"):
        Space([Token("a", x=kind)], FixedSequence(3), rules, **bounds)


def test_sums_know_bounds_that_do_not_change():
    tokens = [Token("a", x=Real(0, 1)), Token("b")]
    space = Space(tokens, FixedSequence(4), [Sum("x", at_least=1.8)], bounds=Half())
    drawn = sample(space, UniformStepper(space), 50, np.random.default_rng(0))
    assert drawn.redrawn == 0
    assert {design.tokens for design in drawn.designs} == {("a",) * 4}


def test_sums_are_for_sequences_and_names_come_once():
    with pytest.raises(DeclarationError, match="Sum is for sequences; in a space of shape Tree use Where"):
        Space([Token("f", 1), Token("x", range=(0, 1))], Tree(1, 3), [Sum("value", at_most=1)])
    for rule in (Together, AnyOrder):
        with pytest.raises(DeclarationError, match="names 'a' more than once"):
            rule("a", "b", "a")
