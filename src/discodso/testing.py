"""Checks for people who write their own task, constraint, bounds or proposer: they try it and say what is wrong.

    from discodso.testing import check_task
    check_task(my_task)

Every check raises AssertionError with one clear sentence, and returns None if all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError, DiscodsoError
from discodso.disco.archive import Archive, Pool
from discodso.disco.scripts import Scripts
from discodso.disco.settings import ArchiveSettings
from discodso.run.evaluation import Evaluator
from discodso.run.task import Task
from discodso.space.bounds import Bounds
from discodso.space.constraints import Constraint, Prior
from discodso.space.design import Design, DesignBatch
from discodso.space.prefix import Prefix
from discodso.space.space import Space

Rule = Constraint | Prior | Bounds


def random_prefixes(space: Space, size: int = 64, seed: int = 0) -> Iterator[Prefix]:
    """Prefixes of designs drawn uniformly under the rules of the space, from the empty one on."""
    rng = np.random.default_rng(seed)
    prefix = space.start(size)
    while len(prefix):
        yield prefix
        prefix = prefix.advance(*space.random_step(prefix, rng))


def check_constraint(rule: Rule, space: Space, *, seed: int = 0) -> None:
    """Try a constraint, prior or bounds object on random prefixes of a space.

    Checks the type and shape of what it returns, that it does not change the prefix, that it answers for each
    prefix alone as it does in a batch, that it gives the same answer twice, that a rule with `sees_values = False`
    gives the same answer for other values, and that it leaves every prefix something to go on with.
    """
    good = isinstance(rule, (Constraint, Prior, Bounds))
    assert good, f"{rule!r} must be a subclass of Constraint, Prior or Bounds, got {type(rule).__name__}"
    try:
        rule.check(space.library, space.grammar)
    except DeclarationError as error:
        raise AssertionError(f"{rule.name} does not fit the space: {error}") from None
    usable = np.zeros(space.library.low.shape, np.bool_)  # values that bounds have left an interval for
    for prefix in random_prefixes(space, seed=seed):
        before = _snapshot(prefix)
        with _told(rule.name, f"at position {prefix.position}"):
            first, second = _answer(rule, prefix), _answer(rule, prefix)
        _check_answer(rule, prefix, first)
        if isinstance(rule, Bounds):
            usable |= (first[0] < first[1] + space.library.half).any(axis=0)
        same = _equal(first, second)
        assert same, f"{rule.name} gave two answers for one prefix; it must not keep state between calls"
        assert _equal(before, _snapshot(prefix)), f"{rule.name} changed the prefix, which it must only read"
        _check_alone(rule, space, prefix, first)
        if not rule.sees_values:
            _check_blind(rule, space, prefix, first, seed)
    if isinstance(rule, Bounds):
        shape, widths = space.library.low.shape, rule.min_width(space.library)
        good = isinstance(widths, np.ndarray) and widths.shape == shape
        assert good, f"min_width of {rule.name} must return an array of shape {shape}, got {widths!r:.80}"
        unused = (space.library.numeric & ~space.library.wide(usable)).any(axis=1)
        never = [space.library.names[k] for k in np.flatnonzero(unused)]
        assert not never, f"{rule.name} never leaves {', '.join(never)} an interval with low < high"
        space = replace(space, bounds=rule)
    elif isinstance(rule, Constraint) and rule not in space.rules:
        space = replace(space, constraints=(*space.constraints, rule))
    try:
        for _ in random_prefixes(space, seed=seed):
            pass
    except DiscodsoError as error:
        raise AssertionError(f"{rule.name} leads into a dead end: {error}") from None


def check_proposer(make: Callable[[Space], Any], space: Space, *, seed: int = 0) -> None:
    """Try a proposer of one's own (see `Proposer`) on archives of random designs, from an empty one on.

    Checks that it proposes designs of the space, no more than it was asked for, that all its randomness comes from
    the generator it is given, that two of its kind share nothing, and that it goes on exactly from its state.

    Args:
        make: the class, or the function of a space, that `DisCoSettings(proposers=...)` takes.
        space: to try it on.
    """
    archive = Archive.begin(space, ArchiveSettings(size=20))
    own, twin = make(space), make(space)
    for method in ("propose", "learn", "state", "restore"):
        assert callable(getattr(own, method, None)), f"{make!r} must have a method {method}"
    name = str(getattr(own, "name", type(own).__name__))
    for round_ in range(4):
        for count in (1, 7, 30):
            first, second = (
                _proposed(each, name, archive, space, count, seed + round_) for each in (own, twin)
            )
            assert _same_proposal(first, second), (
                f"{name} proposed other designs to an equal archive with an equal generator; all its randomness "
                "must come from the generator, and nothing may be shared between two of its kind"
            )
        batch = replace(space.sample(20, seed + round_), origin=None)
        rewards = np.random.default_rng((seed, round_)).random(len(batch))
        told = Pool(batch, rewards, np.ones(len(batch)))
        archive = archive.add(told, 0)
        for each in (own, twin):
            each.learn(told, archive)
        twin = make(space)
        twin.restore(own.state())


def _proposed(proposer: Any, name: str, archive: Archive, space: Space, count: int, seed: int) -> Any:
    with _told(name, f"for an archive of {len(archive)} designs"):
        proposed = proposer.propose(archive, count, np.random.default_rng(seed))
    if proposed is None:
        return None
    assert len(proposed) <= count, f"{name} was asked for {count} designs and proposed {len(proposed)}"
    if isinstance(proposed, Scripts):
        return proposed
    for design in proposed:
        assert isinstance(design, Design), f"{name} must propose designs, got {design!r:.60}"
        broken = space.violations(design)
        assert not broken, f"{name} proposed {design}, which breaks a rule: {broken[0]}"
    return list(proposed)


def _same_proposal(first: Any, second: Any) -> bool:
    if isinstance(first, Scripts) and isinstance(second, Scripts):
        return _equal((first.tokens, first.values), (second.tokens, second.values))
    return bool(first == second)


def check_task(task: Task, *, designs: int = 20, seed: int = 0) -> None:
    """Try a task: every rule of its space, designs to JSON and back, and the objective on random designs.

    Calls the objective a few times for each of `designs` designs. Some designs may fail, as they may in a search;
    that all of them fail is taken for a mistake.
    """
    assert isinstance(task, Task), f"expected a Task, got {type(task).__name__}"
    space = task.space
    rules: tuple[Rule, ...] = (*space.constraints, *space.priors, space.bounds)
    for rule in rules:
        check_constraint(rule, space, seed=seed)
    batch = replace(space.sample(designs, seed), origin=None)
    for design in batch:
        assert Design.from_json(design.to_json()) == design, f"{design} does not survive JSON"
        broken = space.violations(design)
        assert not broken, f"{design} was drawn under the rules but breaks one: {broken[0]}"
    first = _rewards(task, batch, seed)

    def compare(task: Task, seed: int, message: str) -> None:
        for design, one, two in zip(batch, first, _rewards(task, batch, seed), strict=True):
            same = np.isclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True)
            assert same, message.format(one=one, two=two, design=design)

    hint = (
        "with the same seed" if task.stochastic else "; a random one needs stochastic=True and takes a seed"
    )
    compare(task, seed, "the objective gave {one} and then {two} for {design} " + hint)
    if task.repeatable and task.rows_independent:
        compare(task, seed + 1, "the task is repeatable, but with other seeds {design} has {one} and {two}")
    if task.objective is not None and task.batch_objective is not None:
        single = Task(space, task.objective, None, task.stochastic, task.worst_reward, task.name)
        compare(single, seed, "batch_objective gives {one} and objective gives {two} for {design}")
    if task.refine is not None:
        _check_refine(task, batch, seed)


def _check_refine(task: Task, batch: DesignBatch, seed: int, each: int = 10) -> None:
    evaluator = Evaluator(task, np.random.SeedSequence(seed))
    evaluation = evaluator.evaluate(batch)
    try:
        refined = evaluator.refine(evaluation, np.arange(len(batch)), each, each * len(batch))
    except DiscodsoError as error:
        raise AssertionError(str(error)) from None
    again = _rewards(task, refined.designs, seed)
    for design, one, two in zip(refined.designs, refined.rewards.tolist(), again, strict=True):
        alike = np.isnan(two) or np.isclose(one, two, rtol=1e-6, atol=1e-9)
        assert alike, f"refine gives the reward {one}, but the objective {two}, for {design}"


def _rewards(task: Task, batch: DesignBatch, seed: int) -> list[float]:
    """Rewards, NaN for designs that failed."""
    evaluation = Evaluator(task, np.random.SeedSequence(seed)).evaluate(batch)
    if evaluation.failed.all():
        failure = evaluation.failures[0]
        raise AssertionError(f"every design failed; the objective {failure.reason}, for {failure.design}")
    return [float(reward) for reward in np.where(evaluation.failed, np.nan, evaluation.rewards)]


@contextmanager
def _told(name: str, where: str) -> Iterator[None]:
    """What a user's object raises, as an AssertionError that says so."""
    try:
        yield
    except (AssertionError, DiscodsoError):
        raise
    except Exception as error:
        raise AssertionError(f"{name} raised {type(error).__name__} {where}: {error}") from error


def _answer(rule: Rule, prefix: Prefix) -> tuple[Any, ...]:
    if isinstance(rule, Constraint):
        return (rule.forbidden(prefix),)
    if isinstance(rule, Prior):
        return (rule.logits(prefix),)
    answer: Any = rule.interval(prefix)
    good = isinstance(answer, tuple) and len(answer) == 2
    assert good, f"{rule.name} must return a pair low, high of arrays, got {type(answer).__name__}"
    return (answer[0], answer[1])


def _check_answer(rule: Rule, prefix: Prefix, answer: tuple[Any, ...]) -> None:
    name, library = rule.name, prefix.library
    own = library.low.shape if isinstance(rule, Bounds) else (len(library),)
    shape, letters = (len(prefix), *own), "[B, K, V]" if len(own) == 2 else "[B, K]"
    for array in answer:
        assert isinstance(array, np.ndarray), f"{name} must return NumPy arrays, got {type(array).__name__}"
        assert array.shape == shape, f"{name} must return shape {letters} = {shape}, got {array.shape}"
    if isinstance(rule, Constraint):
        assert answer[0].dtype == np.bool_, f"{name} must return booleans, got {answer[0].dtype}"
    elif isinstance(rule, Prior):
        finite = np.issubdtype(answer[0].dtype, np.floating) and np.isfinite(answer[0]).all()
        assert finite, f"{name} must return finite floats; use a Constraint to forbid a token"
    else:
        numeric = library.narrow(library.numeric)
        known = not any(np.isnan(array[:, numeric]).any() for array in answer)
        assert known, f"{name} gives NaN bounds for a parametrised token"


def _check_alone(rule: Rule, space: Space, prefix: Prefix, answer: tuple[Any, ...]) -> None:
    for row in range(0, len(prefix), max(1, len(prefix) // 3)):
        alone = space.start(1)
        for token, value in zip(prefix.tokens[row], prefix.values[row], strict=True):
            alone = alone.advance(np.array([token]), np.array([value]))
        same = _equal((array[row] for array in answer), (array[0] for array in _answer(rule, alone)))
        where = prefix.batch()[int(prefix.rows[row])]
        assert same, f"{rule.name} answers otherwise for a prefix alone than in a batch, for {where}"


def _check_blind(rule: Rule, space: Space, prefix: Prefix, answer: tuple[Any, ...], seed: int) -> None:
    """The same tokens with other values, drawn anew for every length, must get the same answer."""
    rng = np.random.default_rng((seed, prefix.position))
    library = space.library
    changed = space.start(len(prefix))
    for tokens in prefix.tokens.T:
        z = library.wide(rng.random((len(tokens), *library.low.shape[1:])))
        values = library.coordinates.to_value(tokens, library.narrow(z))
        if not library.plain:
            whole = library.half[tokens] > 0
            values = np.where(whole, np.round(values), values)
            options = library.options[tokens]
            chosen = np.floor(z * np.maximum(options, 1))
            values = library.narrow(np.where(options > 0, chosen, library.wide(values)))
        values = np.clip(values, library.low[tokens], library.high[tokens])
        carries = library.narrow(library.column_of >= 0)[tokens]
        changed = changed.advance(tokens, np.where(carries, values, np.nan))
    same = _equal(answer, _answer(rule, changed))
    assert same, (
        f"{rule.name} declares sees_values = False, but its answer changes with the values of a prefix"
    )


def _snapshot(prefix: Prefix) -> tuple[Any, ...]:
    t = prefix.traversals
    arrays = (
        prefix.slots,
        prefix.path,
        prefix.previous,
        t.tokens,
        t.values,
        t.coordinates,
        t.parents,
        t.siblings,
    )
    return tuple(array.copy() for array in arrays)


def _equal(first: Iterable[Any], second: Iterable[Any]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))
