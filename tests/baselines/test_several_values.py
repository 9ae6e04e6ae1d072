"""Every method on spaces whose tokens carry several values of all kinds."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from killing import comparable

from discodso import (
    BOSettings,
    Choice,
    DeclarationError,
    DecoupledSettings,
    Design,
    DisCoSettings,
    EndsWith,
    FixedSequence,
    ForbiddenChild,
    GPSettings,
    Integer,
    OpenSequence,
    RandomSettings,
    Real,
    Space,
    Task,
    Token,
    Tree,
    Where,
    preset,
    resume,
    search,
)
from discodso.disco.settings import RefinementSettings
from discodso.testing import check_task

PIPELINE = Space(
    [
        Token("scale", how=Choice("standard", "minmax", None)),
        Token("kbest", k=Integer(1, 20)),
        Token(
            "svc", C=Real(1e-3, 1e3, log=True), gamma=Real(1e-5, 10, log=True), kernel=Choice("rbf", "poly")
        ),
        Token("knn", neighbours=Integer(1, 50, log=True), p=Real(1, 5)),
        Token("drop"),
    ],
    OpenSequence(1, 4),
    [ForbiddenChild("scale", "scale")],
)
TREE = Space(
    [
        Token("if", 2, feature=Choice("x", "y"), threshold=Real(-1, 1)),
        Token("act", force=Real(-2, 2), steps=Integer(1, 3)),
        Token("rest"),
    ],
    Tree(1, 9),
)
SPACES = {"pipeline": PIPELINE, "tree": TREE}


def reward(design: Design) -> float:
    """One best design: svc with certain values, and little before it; of trees one leaf."""
    total = -0.05 * len(design)
    for part in design:
        match part.name:
            case "svc":
                total += 1 - 0.1 * abs(math.log10(part.C) - 1) - 0.1 * abs(math.log10(part.gamma) + 2)
                total += 0.2 * (part.kernel == "rbf")
            case "kbest":
                total -= 0.01 * abs(part["k"] - 7)
            case "knn":
                total -= 0.02 * part.neighbours
            case "scale":
                total += 0.1 * (part.how == "minmax")
            case "act":
                total += 1 - abs(part.force - 1.3) - 0.3 * abs(part.steps - 2)
            case "if":
                total += 0.1 * (part.feature == "y") - 0.1 * abs(part.threshold)
    return total


METHODS = {
    "default": lambda: preset("default", budget=400),
    "paper": lambda: preset("paper"),
    "random": lambda: RandomSettings(batch_size=50),
    "gp": lambda: GPSettings(population=50),
    "bo": lambda: BOSettings(batch_size=20, fit_steps=5, candidates=100),
    "rl-anneal": lambda: DecoupledSettings(DisCoSettings(batch_size=10), "anneal", inner_calls=20),
    "gp-evo": lambda: DecoupledSettings(GPSettings(population=10), "evo", inner_calls=30),
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_to_values_and_finds_better_ones(name, method):
    space, seen = SPACES[name], []

    def objective(design):
        seen.append(design)
        return reward(design)

    result = search(
        Task(space, objective), budget=120 if method == "bo" else 400, seed=0, method=METHODS[method]()
    )
    assert result.best is not None
    assert result.calls == len(seen)
    for design in seen:
        assert not space.violations(design)
        assert Design.from_json(design.to_json()) == design
    first = np.mean([reward(design) for design in seen[:40]])
    assert result.best.reward > first + 0.2


@pytest.mark.parametrize("method", ["default", "gp", "rl-anneal", "gp-evo", "bo"])
def test_a_run_in_two_parts_is_the_same(tmp_path, method):
    task = Task(PIPELINE, reward)
    whole = search(task, budget=200, seed=1, method=METHODS[method]())
    search(task, budget=90, seed=1, method=METHODS[method](), out=tmp_path / "run")
    parts = resume(tmp_path / "run", budget=200, task=task, method=METHODS[method]())
    assert [row.best for row in parts.history][-1] == [row.best for row in whole.history][-1]
    assert parts.best == whole.best
    assert parts.history[-1].values == whole.history[-1].values


def noisy_reward(design, seed):
    return reward(design) + 0.1 * np.random.default_rng(seed).standard_normal()


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("objective", [reward, noisy_reward], ids=["exact", "noisy"])
def test_a_screened_run_is_the_same_in_parts_and_with_workers(tmp_path, name, objective):
    noisy = objective is noisy_reward
    task = Task(SPACES[name], objective, stochastic=noisy)
    own = {"seed": 1, "method": preset("default", noisy=noisy, budget=120), "confirm_calls": 0}
    whole = comparable(search(task, budget=120, **own))
    search(task, budget=77, **own, out=tmp_path / "run")
    assert comparable(resume(tmp_path / "run", budget=120, task=task)) == whole
    with ThreadPoolExecutor(3) as threads:
        assert comparable(search(task, budget=120, **own, executor=threads)) == whole


def odd_neighbours(design):
    """A condition that values decide; module level, so that its code can be compared."""
    return all(part.neighbours % 2 for part in design if part.name == "knn")


@pytest.mark.parametrize("method", METHODS)
def test_designs_that_meet_no_condition_are_counted_and_cost_no_call(tmp_path, method):
    space = Space(PIPELINE.tokens, PIPELINE.shape, [EndsWith("knn"), Where(odd_neighbours)])
    seen = []

    def objective(design):
        seen.append(design)
        return reward(design)

    task, budget = Task(space, objective), 60 if method == "bo" else 200
    whole = search(task, budget=budget, seed=1, method=METHODS[method]())
    assert len(seen) == whole.calls == budget
    assert all(map(odd_neighbours, seen))
    counted = [row.redrawn or 0 for row in whole.history]
    assert sum(counted) > 0
    search(task, budget=budget // 2, seed=1, method=METHODS[method](), out=tmp_path / "run")
    parts = resume(tmp_path / "run", budget=budget, task=task, method=METHODS[method]())
    assert sum(row.redrawn or 0 for row in parts.history) == sum(counted)


def test_refinement_counts_what_a_condition_refuses():
    space = Space([Token("v", x=Real(0, 1))], FixedSequence(2), [Where(not_the_middle)])
    task = Task(space, lambda design: -abs(design[0].x - 0.5) - abs(design[1].x))
    default = preset("default", budget=400)
    method = replace(default, variation=None, screen=None, refinement=RefinementSettings(share=0.9))
    result = search(task, budget=400, seed=0, method=replace(method, adaptive=False))
    drawn = search(task, budget=400, seed=0, method=replace(method, refinement=None, adaptive=False))
    assert sum(row.redrawn or 0 for row in result.history) > sum(row.redrawn or 0 for row in drawn.history)


def not_the_middle(design):
    """Best designs lie at the edge of what it refuses."""
    return abs(design[0].x - 0.5) > 0.01


def test_the_default_finds_the_best_pipeline():
    result = search(Task(PIPELINE, reward), budget=3000, seed=0)
    assert result.best is not None
    (*_, last) = result.best.design
    assert last.name == "svc"
    assert last.kernel == "rbf"
    assert pytest.approx(10, rel=0.05) == last.C
    assert last.gamma == pytest.approx(0.01, rel=0.05)
    assert result.best.reward == pytest.approx(4 * 1.2 - 4 * 0.05, abs=0.01)  # four of them
    assert set(result.history[-1].values or {}) <= {
        "kbest.k",
        "svc.C",
        "svc.gamma",
        "knn.neighbours",
        "knn.p",
    }


def test_integers_alone_are_found_exactly():
    space = Space(
        [Token("a", n=Integer(-1000, 1000)), Token("b", n=Integer(1, 10**6, log=True))], FixedSequence(3)
    )

    def objective(design):
        return -sum(abs(part.n - 37) / 37 for part in design)

    result = search(Task(space, objective), budget=4000, seed=0)
    assert result.best is not None
    assert result.best.reward == 0


def test_a_task_of_all_kinds_of_values_checks_out():
    check_task(Task(PIPELINE, reward))
    check_task(Task(TREE, reward))


def test_what_cannot_search_integers_says_so():
    with pytest.raises(DeclarationError, match=r"'bfgs' cannot search integers; use inner='anneal' or 'evo'"):
        search(Task(PIPELINE, reward), budget=10, method=DecoupledSettings())
