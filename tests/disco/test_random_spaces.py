"""Random libraries with all kinds of values under random rules: proposals keep them, and no search ends early."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discodso import (
    AnyOrder,
    ChildTypes,
    Choice,
    DeadEndError,
    DisCo,
    EndsWith,
    FixedSequence,
    Follows,
    ForbiddenChild,
    Integer,
    LeadsTo,
    Needs,
    NoNesting,
    OpenSequence,
    Real,
    Repeat,
    Space,
    StartsWith,
    Sum,
    Together,
    Token,
    Tree,
    Where,
)

NAMES = "abcd"
some = st.sets(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda names: tuple(sorted(names)))
value = st.one_of(
    st.tuples(st.floats(-5, 0), st.floats(0.5, 9)).map(lambda ends: Real(*ends)),
    st.just(Real(1e-3, 1e3, log=True)),
    st.just(Real(0, np.inf)),
    st.tuples(st.integers(-3, 2), st.integers(2, 40)).map(lambda ends: Integer(*ends)),
    st.just(Integer(1, 10**6, log=True)),
    st.integers(1, 4).map(lambda count: Choice(*range(count))),
)
values = st.lists(value, max_size=3).map(lambda own: {f"v{k}": each for k, each in enumerate(own)})
sequence_rules = st.one_of(
    st.builds(Follows, some, some),
    st.builds(LeadsTo, some, some),
    st.builds(Needs, some, some),
    st.builds(StartsWith, some),
    st.builds(EndsWith, some),
    some.map(lambda names: Together(*names)),
    some.map(lambda names: AnyOrder(*names)),
    st.builds(ForbiddenChild, some, some),
    st.tuples(some, st.integers(0, 2)).map(lambda pair: Repeat(pair[0], pair[1], pair[1] + 2)),
    st.just(Where(lambda design: len(set(design.tokens)) != 1 or len(design) < 3, called="varied")),
)
tree_rules = st.one_of(
    st.tuples(st.sampled_from("ab"), some).map(lambda pair: ChildTypes(pair[0], None, (*pair[1], "d"))),
    st.builds(NoNesting, some),
    st.builds(ForbiddenChild, some, some),
)
RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def proposals(space: Space, seed: int) -> None:
    """Some rounds of the default method: network, variation and refinement all propose."""
    disco = DisCo(space, budget=200, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        designs = disco.ask()
        assert len(designs) == disco.batch_size
        for design in designs:
            assert not space.violations(design), space.violations(design)
        disco.tell(designs, rng.random(len(designs)))


@RELAXED
@given(
    st.lists(values, min_size=4, max_size=4),
    st.lists(sequence_rules, max_size=3),
    st.one_of(st.just(FixedSequence(3)), st.just(OpenSequence(1, 4))),
    st.booleans(),
    st.integers(0, 99),
)
def test_sequences_keep_their_rules(own, rules, shape, limited, seed):
    tokens = [Token(name, **values_) for name, values_ in zip(NAMES, own, strict=True)]
    numbers = [v["v0"] for v in own if isinstance(v.get("v0"), (Real, Integer))]
    if limited and numbers and all(np.isfinite(v.high) for v in numbers):
        rules = [*rules, Sum("v0", at_most=3 * max(abs(v.high) for v in numbers))]
    try:
        space = Space(tokens, shape, rules)
        space.sample(5, seed)
    except (
        DeadEndError
    ):  # rules that contradict each other, at declaration, or a condition that nothing meets
        return
    proposals(space, seed)


@RELAXED
@given(st.lists(values, min_size=4, max_size=4), st.lists(tree_rules, max_size=3), st.integers(0, 99))
def test_trees_keep_their_rules(own, rules, seed):
    arity = dict(zip(NAMES, (2, 1, 0, 0), strict=True))
    tokens = [Token(name, arity[name], **values_) for name, values_ in zip(NAMES, own, strict=True)]
    try:
        space = Space(tokens, Tree(1, 9), rules)
    except DeadEndError:
        return
    proposals(space, seed)
