"""Every baseline behind one ask and tell: counted calls, rules, workers, resuming, settings files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

import numpy as np
import pytest
from killing import comparable
from method_runs import METHODS, SPACES, Counting, budget_for, drive_train, reward
from spaces import decision_tree

from discodso import Design, Space, Task, resume, search
from discodso.base.errors import InvalidDesignError, SettingsError
from discodso.baselines import methods
from discodso.baselines.random_search import RandomSettings
from discodso.run.executors.registry import Threads
from discodso.run.settings import parse
from discodso.run.start import start
from discodso.space.constraints import Constraint
from discodso.space.state import State

EVERY = pytest.mark.parametrize("name", METHODS)


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
        for design, score in zip(designs, rewards, strict=True):
            if score > self.reward:
                self.best, self.reward = design, float(score)

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
