"""Checks for people who write their own task, constraint, bounds or proposer: they try it and say what is wrong.

    from discodso.testing import check_task
    check_task(my_task)

Every check raises AssertionError with one clear sentence, and returns None if all is well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from discodso.base.errors import DiscodsoError
from discodso.disco.archive import Archive, Pool
from discodso.disco.scripts import Scripts
from discodso.disco.settings import ArchiveSettings
from discodso.run.evaluation import Evaluator
from discodso.run.task import Task
from discodso.space.design import Design, DesignBatch
from discodso.space.rule_checks import Rule, blamed, check_constraint, random_prefixes
from discodso.space.space import Space

__all__ = ["check_constraint", "check_proposer", "check_task", "random_prefixes"]


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
    with blamed(name, f"for an archive of {len(archive)} designs"):
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
        return np.array_equal(first.tokens, second.tokens) and np.array_equal(
            first.values, second.values, equal_nan=True
        )
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
    if task.outside:
        return
    first = _rewards(task, batch, seed)

    def compare(task: Task, seed: int, message: str) -> None:
        for design, one, two in zip(batch, first, _rewards(task, batch, seed), strict=True):
            same = np.isclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True).all()
            assert same, message.format(one=one, two=two, design=design)

    hint = (
        "with the same seed" if task.stochastic else "; a random one needs stochastic=True and takes a seed"
    )
    compare(task, seed, "the objective gave {one} and then {two} for {design} " + hint)
    if task.repeatable and task.rows_independent:
        compare(task, seed + 1, "the task is repeatable, but with other seeds {design} has {one} and {two}")
    if task.objective is not None and task.batch_objective is not None:
        single = replace(task, batch_objective=None)
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


def _rewards(task: Task, batch: DesignBatch, seed: int) -> list[Any]:
    """Rewards, or values of several objectives, NaN for designs that failed."""
    evaluation = Evaluator(task, np.random.SeedSequence(seed)).evaluate(batch)
    if evaluation.failed.all():
        failure = evaluation.failures[0]
        raise AssertionError(f"every design failed; the objective {failure.reason}, for {failure.design}")
    if len(task.objectives):
        return list(evaluation.answer.goals_of(len(task.objectives)))
    return [float(reward) for reward in np.where(evaluation.failed, np.nan, evaluation.rewards)]
