"""No design is paid for twice where rewards are exact, and a run that has seen all of them says so."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from killing import comparable, duration, killed_and_resumed
from spaces import mixed_sequence

from discodso import (
    Design,
    DisCoSettings,
    FixedSequence,
    GPSettings,
    NetworkSettings,
    OpenSequence,
    RandomSettings,
    Refined,
    Space,
    StopReason,
    Task,
    Token,
    preset,
    resume,
    search,
)
from discodso.disco.settings import TaskRefinementSettings
from discodso.run.checkpoint import from_bytes, to_bytes
from discodso.run.memory import Memory

LETTERS = "abcd"
SPACE = Space([Token(name) for name in LETTERS], FixedSequence(5))
ALL = 4**5
MIXED = mixed_sequence()


def value(design: Design) -> float:
    """Rugged, and different for each design."""
    number = sum(LETTERS.index(name) * 4**place for place, name in enumerate(design.tokens))
    return math.sin(17.0 * number) + 1e-6 * number


BEST = max(
    value(Design.of(*(LETTERS[number // 4**place % 4] for place in range(5)))) for number in range(ALL)
)


class Counting:
    """An objective that notes its designs."""

    def __init__(self, objective=value):
        self.objective = objective
        self.designs: list[Design] = []

    def __call__(self, design: Design) -> float:
        self.designs.append(design)
        return self.objective(design)


# ---------------------------------------------------------------------------------------- the memory


def numbers(*values):
    return MIXED.encode([Design.of(("v", v), "d") for v in values])


def test_of_equal_designs_in_a_batch_the_first_is_new():
    memory = Memory()
    batch = numbers(0.1, 0.2, 0.1, 0.3, 0.2, 0.1)
    assert memory.is_new(batch).tolist() == [True, True, False, True, False, False]
    memory.add(numbers(0.2), np.array([5.0]))
    assert memory.is_new(batch).tolist() == [True, False, False, True, False, False]
    assert memory.holds(batch).tolist() == [False, True, False, False, True, False]
    assert memory.is_new(numbers()).tolist() == []


def test_designs_are_told_apart_by_the_last_bit_and_by_their_tokens():
    memory = Memory()
    memory.add(numbers(0.1), np.array([1.0]))
    other = MIXED.encode([Design.of("d", ("v", 0.1)), Design.of(("v", 0.1), ("v", 0.1))])
    assert memory.is_new(other).all()
    assert memory.is_new(numbers(np.nextafter(0.1, 1.0), 0.1)).tolist() == [True, False]


def test_rewards_are_those_told_last_and_failures_are_remembered():
    memory = Memory()
    memory.add(numbers(0.1, 0.2, 0.3), np.array([1.0, np.nan, 3.0]))
    memory.add(numbers(0.3), np.array([4.0]))
    assert len(memory) == 3
    np.testing.assert_array_equal(memory.rewards(numbers(0.3, 0.2, 0.1, 0.3)), [4.0, np.nan, 1.0, 4.0])
    with pytest.raises(KeyError):
        memory.rewards(numbers(0.9))


def test_a_state_gives_the_same_memory_back():
    memory, again, empty = Memory(), Memory(), Memory()
    memory.add(numbers(0.1, 0.2), np.array([1.0, np.nan]))
    again.restore(from_bytes(to_bytes(memory.state())))
    np.testing.assert_array_equal(again.rewards(numbers(0.2, 0.1)), [np.nan, 1.0])
    assert again.is_new(numbers(0.1, 0.2, 0.3)).tolist() == [False, False, True]
    again.restore(from_bytes(to_bytes(empty.state())))
    assert len(again) == 0
    with pytest.raises(KeyError):
        again.restore(from_bytes(to_bytes(replace(memory.state(), arrays={}))))


def test_unseen_designs_are_listed_until_there_are_none():
    memory = Memory()
    first = memory.unseen(SPACE, 1000)
    assert len(first) == 1000
    assert len(set(first)) == 1000
    memory.add(first, np.zeros(1000))
    rest = memory.unseen(SPACE, 1000)
    assert len(rest) == ALL - 1000
    assert not set(rest) & set(first)
    assert len(memory.unseen(SPACE, 3)) == 3
    memory.add(rest, np.zeros(len(rest)))
    assert len(memory.unseen(SPACE, 10)) == 0
    assert memory.unseen(MIXED, 10) is not None  # of the space that it had listed


@pytest.mark.parametrize("space", [MIXED, Space([Token("a"), Token("b")], FixedSequence(40))])
def test_what_cannot_be_listed_is_unknown(space):
    assert Memory().unseen(space, 10) is None


# ---------------------------------------------------------------------------------------- searches

REDRAWING = {"default": None, "random": RandomSettings(batch_size=100)}


@pytest.mark.parametrize("name", REDRAWING)
def test_a_thousand_calls_are_a_thousand_designs(name):
    objective = Counting()
    result = search(Task(SPACE, objective), budget=1000, seed=1, method=REDRAWING[name])
    assert result.stop is StopReason.BUDGET
    assert result.calls == len(objective.designs) == len(set(objective.designs)) == 1000
    assert all(0 <= row.repeats <= 1 for row in result.history)
    assert result.history[-1].repeats > 0.5  # few are left


@pytest.mark.parametrize("name", REDRAWING)
def test_a_search_of_all_designs_ends_with_the_optimum_and_says_so(name):
    objective = Counting()
    result = search(Task(SPACE, objective), budget=3000, seed=1, method=REDRAWING[name])
    assert result.stop is StopReason.EXHAUSTED
    assert result.calls == len(objective.designs) == len(set(objective.designs)) == ALL
    assert result.best.reward == BEST
    assert result.detail == "all 1024 designs of the space are evaluated, so the best is the optimum"


def test_other_shapes_are_exhausted_as_well():
    objective = Counting(lambda design: float(len(design)))
    space = Space([Token("a"), Token("b")], OpenSequence(0, 4))
    result = search(Task(space, objective), budget=1000)
    assert result.stop is StopReason.EXHAUSTED
    assert result.calls == len(set(objective.designs)) == 31


def test_failed_designs_are_not_tried_again():
    def sometimes(design):
        if design.tokens[0] == "a":
            raise ValueError("no")
        return value(design)

    objective = Counting(sometimes)
    result = search(Task(SPACE, objective), budget=3000)
    assert result.stop is StopReason.EXHAUSTED
    assert len(objective.designs) == len(set(objective.designs)) == ALL
    assert result.failure_count == ALL // 4


SMALL = DisCoSettings(batch_size=50, network=NetworkSettings(units=8))


@pytest.mark.parametrize(
    "method",
    [preset("paper"), GPSettings(population=50)],
    ids=["paper", "gp"],
)
def test_methods_that_do_not_draw_again_are_told_known_designs_without_calls(method):
    class Telling:
        def __init__(self):
            self.told = []

        def build(self, space, seed):
            inside = method.build(space, seed)
            tell = inside.tell

            def noted(designs, rewards, weights=None):
                self.told.append((list(designs), np.asarray(rewards).tolist()))
                return tell(designs, rewards, weights)

            inside.tell = noted
            return inside

    telling, objective = Telling(), Counting()
    result = search(Task(SPACE, objective), budget=400, seed=3, method=telling)
    assert result.calls == len(objective.designs) == len(set(objective.designs)) == 400
    counts = Counter(design for designs, _ in telling.told for design in designs)
    assert set(counts) == set(objective.designs)
    assert counts.total() > 400  # more than were paid for
    for designs, rewards in telling.told:
        assert rewards == [value(design) for design in designs]
    repeats = [row.repeats for row in result.history]
    assert repeats[0] < repeats[-1]


def test_a_method_told_from_memory_goes_the_way_of_one_that_pays():
    settings = replace(preset("paper"), batch_size=50)
    objective = Counting()
    result = search(Task(SPACE, objective), budget=300, seed=3, method=settings)
    assert any(row.repeats > 0.2 for row in result.history)
    method = settings.build(SPACE, np.random.SeedSequence(3).spawn(3)[0])
    seen: set[Design] = set()
    for row in result.history[:-1]:
        designs = method.ask()
        new = set(designs) - seen
        assert row.repeats == pytest.approx(1 - len(new) / 50, abs=1e-3)
        seen |= new
        assert row.calls == len(seen)
        method.tell(designs, [value(design) for design in designs])


def test_stochastic_tasks_pay_for_every_call():
    called = []

    def objective(design, seed):
        called.append(design)
        return len(set(design.tokens)) + np.random.default_rng(seed).normal()

    task = Task(Space([Token("a"), Token("b")], FixedSequence(3)), objective, stochastic=True)
    result = search(task, budget=300, confirm_calls=0, seed=1)
    assert result.stop is StopReason.BUDGET
    assert result.calls == len(called) == 300
    assert len(set(called)) == 8
    assert {row.repeats for row in result.history} == {None}


def test_a_refined_design_is_told_as_it_was_refined():
    """Also in a batch with repeats, of a method that does not draw again."""
    space = Space([Token("v", range=(0, 1)), Token("d")], FixedSequence(1))
    told = []

    def objective(designs):
        return np.where(np.isnan(designs.values[:, 0]), 0.0, designs.values[:, 0])

    def refine(designs, allowed):
        better = replace(designs, values=np.minimum(designs.values + 0.25, 1.0))
        return Refined(better, objective(better), np.ones(len(designs), np.int64))

    class Telling:
        def build(self, space, seed):
            settings = replace(SMALL, task_refinement=TaskRefinementSettings(share=0.5, calls=2))
            inside = settings.build(space, seed)
            tell = inside.tell

            def noted(designs, rewards, weights=None):
                told.append((list(designs), np.asarray(rewards).tolist()))
                return tell(designs, rewards, weights)

            inside.tell = noted
            return inside

    result = search(
        Task(space, batch_objective=objective, refine=refine), budget=400, seed=0, method=Telling()
    )
    assert result.calls == 400
    assert max(row.repeats for row in result.history) > 0.1
    for designs, rewards in told:
        assert rewards == [design.values[0] or 0.0 for design in designs]


# ---------------------------------------------------------------------------------------- resuming


@pytest.mark.parametrize("method", [None, preset("paper"), RandomSettings(batch_size=70)])
@pytest.mark.parametrize("cut", [33, 500, 1001])
def test_a_search_that_stopped_goes_on_exactly(tmp_path, method, cut):
    task = Task(SPACE, value)
    # The default's batches follow the budget.
    options = {"seed": 2, "method": preset("default", budget=3000) if method is None else method}
    whole = search(task, budget=1010, **options)
    search(task, budget=cut, **options, out=tmp_path / "run")
    objective = Counting()
    resumed = resume(tmp_path / "run", task=Task(SPACE, objective), budget=1010, force=True)
    assert comparable(resumed) == comparable(whole)
    assert len(objective.designs) == len(set(objective.designs)) <= 1010 - cut


def test_a_search_that_was_killed_goes_on_exactly(tmp_path):
    task = Task(SPACE, value)
    options = {"seed": 2, "checkpoint_seconds": 0.0}

    def start(folder):
        return search(task, budget=3000, out=folder, **options)

    whole, seconds = duration(start, tmp_path / "whole")
    assert whole.stop is StopReason.EXHAUSTED
    killed = 0
    for number, share in enumerate((0.3, 0.6, 0.9)):
        found, alive = killed_and_resumed(
            start, lambda folder: resume(folder, task=task), tmp_path / str(number), share * seconds
        )
        killed += alive
        assert comparable(found) == comparable(whole)
    assert killed


def test_a_run_that_exhausted_its_space_stays_so(tmp_path):
    objective = Counting()
    first = search(Task(SPACE, objective), budget=3000, out=tmp_path / "run")
    again = resume(tmp_path / "run", task=Task(SPACE, objective), budget=5000, force=True)
    assert again.stop is first.stop is StopReason.EXHAUSTED
    assert (again.calls, again.best, again.detail) == (first.calls, first.best, first.detail)
    assert len(objective.designs) == ALL
