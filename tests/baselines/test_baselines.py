"""Every baseline: counted calls, budgets, rules, workers, resuming; inner optimisers; operators of GP."""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from killing import comparable
from scipy import optimize
from spaces import SMALL, decision_tree, mixed_sequence, symbolic

from discodso import (
    DecisionTreeBounds,
    Design,
    DisCoSettings,
    OpenSequence,
    Space,
    Task,
    Token,
    Tree,
    resume,
    search,
)
from discodso.base.errors import InvalidDesignError, SettingsError
from discodso.baselines import inner, methods
from discodso.baselines.bayesian import BOSettings, Frame
from discodso.baselines.decoupled import DecoupledSettings
from discodso.baselines.genetic import GPSettings
from discodso.baselines.random_search import RandomSettings
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.run.executors.registry import Threads
from discodso.run.settings import parse
from discodso.run.start import start
from discodso.space.constraints import Constraint, DifferentLeaves
from discodso.space.skeletons import fill, skeleton_space, units_of
from discodso.space.state import State
from discodso.tasks.bitstring import bitstring

SMALL_DISCO = DisCoSettings(batch_size=10)
SMALL_GP = GPSettings(population=12)
METHODS = {
    "random": RandomSettings(batch_size=10),
    "gp": SMALL_GP,
    "bo": BOSettings(initial=5, candidates=20, fit_steps=2),
    **{
        f"decoupled-{family}-{name}": DecoupledSettings(source, name, inner_calls=40, in_flight=5)
        for family, source in (("rl", SMALL_DISCO), ("gp", SMALL_GP))
        for name in inner.INNER
    },
}
EVERY = pytest.mark.parametrize("name", METHODS)


def drive_train() -> Space:
    tokens = [
        Token("gears", range=(0.2, 5.0), scale="log"),
        Token("belt", range=(0.5, 2.0)),
        Token("coupling"),
    ]
    return Space(tokens, OpenSequence(1, 4))


SPACES = {
    "bits": lambda: bitstring(4).space,
    "tree": decision_tree,
    "expression": lambda: symbolic(4, 12),
    "open": drive_train,
}


def reward(design: Design) -> float:
    """Smooth in the values, and some tokens are better than others."""
    value = sum(-((v - 0.3) ** 2) for v in design.values if v is not None)
    return float(np.tanh(value) + sum(len(name) for name in design.tokens) / 50)


class Counting:
    """An objective that notes every design it is entered with."""

    def __init__(self) -> None:
        self.designs: list[Design] = []

    def __call__(self, design: Design) -> float:
        self.designs.append(design)
        return reward(design)


def budget_for(name: str) -> int:
    return 12 if name == "bo" else 130


# ------------------------------------------------------------------------------------------------ fairness


@EVERY
@pytest.mark.parametrize("where", SPACES)
def test_every_call_is_counted_and_every_design_keeps_the_rules(name, where):
    space, objective = SPACES[where](), Counting()
    result = search(Task(space, objective), budget=budget_for(name), method=METHODS[name], seed=3)
    assert result.calls == len(objective.designs) == budget_for(name)
    for design in objective.designs:
        assert space.violations(design) == []
    assert result.best is not None
    assert result.best.reward == max(map(reward, objective.designs))


@EVERY
def test_the_same_seed_gives_the_same_run_with_any_number_of_workers(name):
    task = Task(decision_tree(), reward)
    alone = search(task, budget=budget_for(name), method=METHODS[name], seed=1)
    with Threads(3) as executor:
        shared = search(task, budget=budget_for(name), method=METHODS[name], seed=1, executor=executor)
    other = search(task, budget=budget_for(name), method=METHODS[name], seed=2)
    assert alone.top == shared.top
    assert alone.top != other.top


@EVERY
@pytest.mark.parametrize("where", ["tree", "open"])
def test_a_run_that_was_stopped_goes_on_exactly(name, where, tmp_path):
    task, half = Task(SPACES[where](), reward), budget_for(name) // 2 + 1
    whole = search(task, budget=2 * half, method=METHODS[name], seed=4, top=20)
    search(task, budget=half, method=METHODS[name], seed=4, top=20, out=tmp_path / "run")
    resumed = resume(tmp_path / "run", budget=2 * half, task=task)
    assert resumed.top == whole.top
    assert [row.mean for row in resumed.history][-3:] == [row.mean for row in whole.history][-3:]


@EVERY
def test_designs_may_be_told_in_parts_in_any_order_and_unasked(name):
    space = decision_tree()
    method = METHODS[name].build(space, 5)
    stranger = Design.of(("x1<", 1.5), "a1", "a2")
    method.tell([stranger], [reward(stranger)])
    rng = np.random.default_rng(0)
    for _ in range(10):
        designs = list(method.ask(7))
        assert len(designs) == 7
        order = rng.permutation(7).tolist()
        for part in (order[:3], order[3:]):
            method.tell([designs[i] for i in part], [reward(designs[i]) for i in part])
    if name != "random":  # which does not listen
        with pytest.raises(InvalidDesignError):
            method.tell([Design.of(("x1<", 1.5), "a1", "a1")], [0.0])


def test_a_failed_evaluation_does_not_stop_an_inner_search():
    def sometimes(design: Design) -> float:
        if design.values[0] is not None and design.values[0] > 2.5:
            raise RuntimeError("too large")
        return reward(design)

    for name in inner.INNER:
        method = DecoupledSettings(SMALL_DISCO, name, inner_calls=40, in_flight=5)
        result = search(Task(decision_tree(), sometimes), budget=200, method=method)
        assert result.calls == 200
        assert 0 < result.failure_count < 200


# -------------------------------------------------------------------------------------------- settings files

TASK_TABLES = {
    "bitstring": {"kind": "bitstring", "length": 4},
    "problem": {"kind": "problem", "problem": "Constant-5"},
    "policy": {"kind": "policy", "environment": "MountainCar-v0", "episodes": 4, "max_nodes": 9},
}
METHOD_TABLES = {
    "random": {},
    "gp": {"population": 10},
    "bo": {"initial": 4, "candidates": 10, "fit_steps": 1},
    "decoupled-rl": {"inner_calls": 20, "skeletons": {"batch_size": 5, "network": {"units": 8}}},
    "decoupled-gp": {"inner": "evo", "inner_calls": 20, "skeletons": {"population": 5}},
}


@pytest.mark.parametrize("kind", METHOD_TABLES)
@pytest.mark.parametrize("task", TASK_TABLES)
def test_settings_run_every_method_on_every_task_and_go_on_with_it(kind, task, tmp_path):
    budget = 10 if kind == "bo" else 60
    table = {"kind": kind, **METHOD_TABLES[kind]}
    half = parse({"task": TASK_TABLES[task], "method": table, "run": {"budget": budget // 2}})
    assert parse(half.record()) == half
    whole = start(half.with_limits(budget, None)).result
    start(half, out=tmp_path / "run")
    resumed = resume(tmp_path / "run", budget=budget)
    resumed = getattr(resumed, "search", resumed)  # of a policy search
    assert resumed.calls == whole.calls == budget
    assert resumed.top == whole.top


def test_a_column_of_a_table_by_another_method(tmp_path):
    lines = ["x,y", *(f"{i / 7},{(i / 7) ** 2 + 1}" for i in range(20))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    task = {"kind": "regression", "table": str(tmp_path / "data.csv"), "target": "y"}
    made = parse({"task": task, "method": {"kind": "gp", "population": 50}, "run": {"budget": 1000}})
    assert start(made).result.best.reward > 0.9


def test_a_wrong_setting_inside_a_table_is_named():
    with pytest.raises(SettingsError, match=r"method\.skeletons\.network\.units must be an integer >= 1"):
        parse(
            {
                "task": TASK_TABLES["bitstring"],
                "method": {"kind": "decoupled-rl", "skeletons": {"network": {"units": 0}}},
                "run": {"budget": 5},
            }
        )
    with pytest.raises(SettingsError, match=r"method\.skeletons\.populaton is not a setting; did you mean"):
        parse(
            {
                "task": TASK_TABLES["bitstring"],
                "method": {"kind": "decoupled-gp", "skeletons": {"populaton": 5}},
                "run": {"budget": 5},
            }
        )


# --------------------------------------------------------------------------------------- decoupled search


def test_a_skeleton_is_optimised_once_until_a_batch_brings_no_other():
    task = bitstring(3)
    method = DecoupledSettings(SMALL_DISCO, inner_calls=30).build(task.space, 0)
    first: dict[tuple[str, ...], int] = {}
    for number in range(400):
        designs = method.ask()
        for design in designs:
            first.setdefault(design.tokens, number)
        method.tell(designs, task.batch_objective(designs))
    assert len(first) == 8
    assert method.proposed > method.optimised > 8


def test_the_reward_of_a_skeleton_is_the_best_that_its_search_met():
    task = bitstring(2, alpha=0.5)
    method = DecoupledSettings(SMALL_DISCO, "evo", inner_calls=60).build(task.space, 0)
    best: dict[bytes, float] = {}
    told: list[tuple[bytes, float]] = []
    inside = method.method.tell
    method.method.tell = lambda designs, rewards, weights=None: (
        told.extend(zip(designs.skeletons(), rewards, strict=True)) or inside(designs, rewards)
    )
    while not told:
        designs = method.ask()
        rewards = task.batch_objective(designs)
        for key, value in zip(designs.skeletons(), rewards.tolist(), strict=True):
            best[key] = max(best.get(key, 0.0), value)
        method.tell(designs, rewards)
    assert told
    assert all(value == best[key] for key, value in told)


def test_inner_calls_limit_every_skeleton():
    task = bitstring(6)
    for name in inner.INNER:
        method = DecoupledSettings(DisCoSettings(batch_size=30), name, inner_calls=50, in_flight=3).build(
            task.space, 0
        )
        used: dict[tuple[str, ...], int] = {}
        for _ in range(100):
            designs = method.ask()
            for design in designs:
                used[design.tokens] = used.get(design.tokens, 0) + 1
            method.tell(designs, task.batch_objective(designs))
            if method.optimised >= 20:
                break
        assert max(used.values()) <= 50


def test_bounds_that_depend_on_values_leave_no_room_for_some_skeletons():
    # With h of a quarter of the range a chain of decisions on one feature fits few thresholds, or none.
    tokens = [Token("x<", 2, range=(0.0, 1.0)), Token("a"), Token("b")]
    space = Space(tokens, Tree(1, 11), [DifferentLeaves()], bounds=DecisionTreeBounds(0.25))
    objective = Counting()
    method = DecoupledSettings(SMALL_DISCO, inner_calls=20)
    search(Task(space, objective), budget=300, method=method, seed=0)
    assert all(space.violations(design) == [] for design in objective.designs)


def test_rules_of_ones_own_that_look_at_values_are_kept():
    class NoBeltAfterAFastStage(Constraint):
        def forbidden(self, prefix):
            mask = prefix.forbid_nothing()
            if prefix.position:
                mask[np.nan_to_num(prefix.values[:, -1]) > 3, prefix.library.id("belt")] = True
            return mask

    plain = drive_train()
    space = Space(plain.tokens, plain.shape, [NoBeltAfterAFastStage()])
    for name in ("gp", "decoupled-rl-evo", "bo"):
        objective = Counting()
        search(Task(space, objective), budget=budget_for(name), method=METHODS[name], seed=0)
        assert all(space.violations(design) == [] for design in objective.designs)


# ---------------------------------------------------------------------------------------------- skeletons


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(SPACES)), st.integers(0, 10_000))
def test_units_give_the_designs_back(where, seed):
    space = SPACES[where]()
    designs = sample(space, UniformStepper(space), 20, np.random.default_rng(seed)).designs
    again, feasible = fill(space, designs, units_of(space, designs))
    assert feasible.all()
    assert np.allclose(again.values, designs.values, rtol=1e-9, atol=1e-12, equal_nan=True)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(SPACES)), st.integers(0, 10_000))
def test_any_units_that_are_feasible_keep_the_bounds(where, seed):
    space, rng = SPACES[where](), np.random.default_rng(seed)
    bare = skeleton_space(space)
    skeletons = sample(bare, UniformStepper(bare), 20, rng).designs
    units = rng.choice([0.0, 1.0, 0.5, rng.random()], (*skeletons.tokens.shape, 1))
    designs, feasible = fill(space, skeletons, units)
    for row in np.flatnonzero(feasible).tolist():
        assert space.violations(designs[row]) == []
    for row in np.flatnonzero(~feasible).tolist():
        assert space.violations(designs[row]) != []


def test_a_space_without_values_spares_leaves_that_carried_one():
    tokens = [Token("add", 2), Token("x"), Token("const", range=(0, 1))]
    bare = skeleton_space(Space(tokens, Tree(3, 3), [DifferentLeaves()]))
    assert bare.violations(Design.of("add", "const", "const")) == []
    assert bare.violations(Design.of("add", "x", "x")) != []


# ---------------------------------------------------------------------------------------- inner optimisers


def minimise(name, cost, n, *, calls=3000, seed=0, point=None, low=0.0, high=1.0):
    start = np.full(n, 0.5) if point is None else point
    box = np.full(n, low), np.full(n, high)
    running = inner.start(name, start, *box, calls, 10.0, seed)
    best, used = (np.inf, None), 0
    while running.points is not None and used + len(running.points) <= calls:
        points = running.points.copy()
        costs = np.array([cost(x) for x in points])
        used += len(costs)
        at = int(costs.argmin())
        if costs[at] < best[0]:
            best = float(costs[at]), points[at]
        running.answer(costs)
    return best, used


TARGET = np.array([0.31, 0.62, 0.17])


def smooth(x):
    return float(((x - TARGET) ** 2).sum())


def many_optima(x):
    return float(-np.abs(np.sinc(50 * (x - TARGET) / np.pi)).sum())


def stepped(x):
    return float(-(np.abs(x - TARGET) <= 0.05).sum() - 0.5 * (np.abs(x - TARGET) <= 0.1).sum())


@pytest.mark.parametrize("name", inner.INNER)
def test_a_smooth_optimum_is_found(name):
    (least, where), _ = minimise(name, smooth, 3)
    assert least < 1e-4
    assert np.allclose(where, TARGET, atol=0.02)


@pytest.mark.parametrize("name", ["anneal", "evo"])
@pytest.mark.parametrize("cost", [many_optima, stepped])
def test_global_optimisers_find_the_optimum_among_many_and_on_steps(name, cost):
    # A single run may end on a lower peak, as it may in a search; most do not.
    found = [minimise(name, cost, 3, calls=5000, seed=seed)[0][0] for seed in range(5)]
    assert sorted(found)[2] <= cost(TARGET) + 0.05


def test_a_local_optimiser_finds_the_peak_that_it_begins_on_and_stays_on_a_step():
    (least, _), _ = minimise("bfgs", many_optima, 3, point=TARGET + 0.01)
    assert least < many_optima(TARGET) + 1e-3
    (_, where), used = minimise("bfgs", stepped, 3)
    assert np.array_equal(where, np.full(3, 0.5))
    assert used == 4  # one gradient, which is zero


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000))
def test_bfgs_makes_the_calls_and_the_steps_of_scipy(n, seed):
    rng = np.random.default_rng(seed)
    low = np.where(rng.random(n) < 0.5, 0.0, -np.inf)
    high = np.where(rng.random(n) < 0.5, 1.0, np.inf)
    point, centre = rng.random(n), rng.normal(0.5, 1.0, n)

    def cost(x):
        return float(((x - centre) ** 2).sum() + 0.1 * np.sin(5 * x).sum())

    mine = inner.start("bfgs", point, low, high, 1000, 10.0, 0)
    calls = 0
    while mine.points is not None:
        last = mine.points[0]
        calls += len(mine.points)
        mine.answer(np.array([cost(x) for x in mine.points]))
    theirs = optimize.minimize(
        cost, point, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)), options={"maxfun": 10**6}
    )
    assert calls == theirs.nfev
    assert np.allclose(last, theirs.x, atol=1e-6) or cost(last) >= theirs.fun


# ---------------------------------------------------------------------------------------------- operators


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted({**SMALL, **SPACES})), st.integers(0, 10_000))
def test_generations_keep_the_rules(where, seed):
    space = {**SMALL, **SPACES}[where]()
    rng = np.random.default_rng(seed)
    method = GPSettings(population=8, tournament=2, max_depth=3).build(space, seed)
    for _ in range(4):
        designs = method.ask()
        for design in designs:
            assert space.violations(design) == []
        method.tell(designs, rng.random(len(designs)))


def test_generations_get_better_and_leave_pythons_random_stream_alone():
    task = bitstring(6)
    before = random.getstate()
    result = search(task, budget=3000, method=GPSettings(population=50), seed=0)
    assert random.getstate() == before
    lucky = search(task, budget=3000, method=RandomSettings(), seed=0)
    assert result.best.reward > lucky.best.reward


def test_numbers_are_mutated_along_with_tokens():
    task = Task(mixed_sequence(), lambda d: -abs((d.values[0] or 0.0) - 0.123456) - (d.tokens[0] == "d"))
    result = search(task, budget=2000, method=GPSettings(population=50), seed=0)
    assert result.best.reward > -1e-3


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["bits", "tree", "open"]), st.integers(0, 10_000))
def test_points_of_a_frame_are_designs_and_back(where, seed):
    space = SPACES[where]()
    method = BOSettings().build(space, seed)
    frame: Frame = method.frame
    points, designs = method._candidates(10, near=False)
    again, fits = frame.encode(designs)
    assert fits.all()
    tokens, lengths, _ = frame.decode(again)
    assert np.array_equal(lengths, designs.lengths)
    for row, count in enumerate(lengths.tolist()):
        assert np.array_equal(tokens[row, :count], designs.tokens[row, :count])
    assert len(points) == len(designs)


def test_bayesian_optimisation_beats_chance_on_few_calls():
    task = bitstring(4, alpha=0.9)
    mine = [search(task, budget=27, method=BOSettings(initial=15), seed=s).best.reward for s in range(3)]
    chance = [search(task, budget=27, method=RandomSettings(), seed=s).best.reward for s in range(3)]
    assert np.mean(mine) >= np.mean(chance)


@dataclass(frozen=True)
class EliteSettings:
    """A random search of one's own, which asks for its best design again in every batch."""

    batch_size: int = 20

    def build(self, space, seed=0):
        return Elite(space, self.batch_size, seed)


class Elite:
    def __init__(self, space, batch_size, seed):
        self.batch_size = batch_size
        self.random = RandomSettings(batch_size).build(space, seed)
        self.space, self.best, self.reward = space, None, -np.inf

    def ask(self, size=None):
        drawn = list(self.random.ask(size))
        return self.space.encode(drawn if self.best is None else [self.best, *drawn[1:]])

    def tell(self, designs, rewards, weights=None):
        for design, reward in zip(designs, rewards, strict=True):
            if reward > self.reward:
                self.best, self.reward = design, float(reward)

    def state(self):
        known = {"best": self.best and self.best.to_dict(), "reward": self.best and self.reward}
        return State.of_parts({"random": self.random.state(), "own": State(data=known)})

    def restore(self, state):
        self.random.restore(state.part("random"))
        known = state.part("own").data
        if known["best"] is not None:
            self.best, self.reward = Design.from_dict(known["best"]), known["reward"]


def test_a_new_method_is_a_module_and_a_line(tmp_path, monkeypatch):
    monkeypatch.setitem(methods.METHODS, "elite", EliteSettings())
    task = "[task]\nkind = 'bitstring'\nlength = 4\n"
    text = f"{task}[run]\nbudget = 200\n[method]\nkind = 'elite'\nbatch_size = 25\n"
    whole = start(parse(tomllib.loads(text)), out=tmp_path / "whole").result
    assert len(whole.history) == 9  # the best of a batch comes again for nothing
    start(parse(tomllib.loads(text.replace("200", "75"))), out=tmp_path / "part")
    assert comparable(resume(tmp_path / "part", budget=200)) == comparable(whole)
