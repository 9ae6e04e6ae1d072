"""The three methods as methods of a run: episodes counted, equal seeds, stopped and gone on with, and refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from environments import Walk

from discodso import Space, Task, Token, resume, search, search_policy
from discodso.base.errors import DeclarationError, SettingsError
from discodso.baselines.literature import (
    CascadingTreesSettings,
    DifferentiableTreesSettings,
    EvolutionaryTreesSettings,
    published,
)
from discodso.run.settings import parse
from discodso.space.tokens import OpenSequence

SMALL = {
    "evolutionary-trees": EvolutionaryTreesSettings(population=12, generations=3, episodes=4, genes=40),
    "oblique": EvolutionaryTreesSettings(
        population=6, generations=4, episodes=9, window=3, splits="oblique", crossover=0.5, rate=0.0
    ),
    "differentiable-trees": DifferentiableTreesSettings(
        runs=2, episodes=25, depth=2, check_every=10, check_episodes=4
    ),
    "cascading-trees": CascadingTreesSettings(episodes=40, check_every=15, check_episodes=4, hidden=8),
}
EVERY = pytest.mark.parametrize("name", SMALL)
FEW = {"episodes": 5, "test_seeds": range(4), "trim": False}


def found(name, budget=30, environment="CartPole-v1", **more):
    return search_policy(environment, budget=budget, method=SMALL[name], seed=2, **FEW, **more)


@EVERY
def test_a_run_ends_with_its_episodes_and_is_the_same_again(name):
    first, second = found(name, 1000), found(name, 1000)
    assert first.search.top == second.search.top
    assert first.search.stop.name == "EXHAUSTED"
    assert first.calls == -(-first.episodes // 5)
    own = SMALL[name]
    if name == "evolutionary-trees":
        assert first.episodes % 4 == 0
        assert first.episodes <= 12 * 4 * 4
    elif name == "differentiable-trees":
        assert first.episodes == 2 * (25 + 4 * 4)  # checked at 0, 10, 20 and 25
    elif name == "cascading-trees":
        assert first.episodes == own.episodes + 4 * 4
    assert first.test_mean > 8


@EVERY
def test_a_run_that_was_stopped_goes_on_exactly(name, tmp_path):
    whole = found(name, 1000)
    part = found(name, 12, out=tmp_path / "run")
    assert (part.calls, part.search.stop.name) == (12, "BUDGET")
    assert part.episodes <= 12 * 5
    assert resume(tmp_path / "run", budget=1000).search.top == whole.search.top


def test_trees_keep_their_numbers_in_designs_and_files(tmp_path):
    run = found("cascading-trees", out=tmp_path / "run")
    best = run.search.best
    assert best is not None
    tree = run.finalists[0].policy
    written = run.space.vocabulary.design(tree.nodes)
    x = np.random.default_rng(0).normal(size=(50, 4))
    again = replace(tree, nodes=run.space.vocabulary.nodes(written))
    assert [again.act(row) for row in x] == [tree.act(row) for row in x]
    assert (tmp_path / "run" / "tree.svg").is_file()


def test_any_environment_with_choices_will_do():
    run = search_policy(Walk, budget=20, method=SMALL["evolutionary-trees"], seed=0, **FEW)
    assert run.calls <= 20


def test_settings_files_name_the_methods_and_every_setting():
    text = {"task": {"kind": "policy", "environment": "CartPole-v1"}, "run": {"budget": 10}}
    for name in SMALL:
        if name != "oblique":
            settings = parse({**text, "method": {"kind": name, "episodes": 7}})
            assert settings.method is not None
            assert settings.method_table(settings.method)["kind"] == name
            assert parse(settings.record()).method == settings.method
    with pytest.raises(SettingsError, match=r"generation is not a setting; did you mean"):
        parse({**text, "method": {"kind": "evolutionary-trees", "generation": 7}})


def test_what_is_no_environment_is_refused():
    task = Task(Space([Token("a"), Token("b")], OpenSequence(max_length=3)), lambda design: 0.0)
    for name in ("evolutionary-trees", "cascading-trees"):
        with pytest.raises(DeclarationError, match=rf"{name}.*is for task.kind 'policy'"):
            search(task, budget=10, method=SMALL[name])


@pytest.mark.parametrize("more", [{"discount": 0.9}, {"common_episodes": True}])
def test_what_the_methods_cannot_heed_is_refused(more):
    with pytest.raises(SettingsError, match=r"not for method.kind 'evolutionary-trees'"):
        found("evolutionary-trees", **more)


def test_actions_that_are_numbers_are_refused():
    with pytest.raises(DeclarationError, match="choose among actions"):
        found("evolutionary-trees", environment="Pendulum-v1")


def test_settings_are_checked():
    with pytest.raises(DeclarationError, match="window"):
        EvolutionaryTreesSettings(episodes=3, window=5)
    with pytest.raises(DeclarationError, match="clip"):
        DifferentiableTreesSettings(clip=0.0)
    kinds = {type(method) for method in published("LunarLander-v3").values()}
    assert kinds == {type(method) for method in published("CartPole-v1").values()}


def test_a_budget_that_is_too_small_for_one_tree_is_refused():
    with pytest.raises(DeclarationError, match="too few for the first tree, which takes 9 episodes"):
        found("oblique", budget=1)


def test_a_run_ends_with_the_published_episodes_and_not_by_patience(monkeypatch):
    monkeypatch.setattr("discodso.tasks.policies.policy_kind._LEAST_PATIENCE", 1)
    monkeypatch.setattr("discodso.tasks.policies.policy_kind._PATIENCE_PART", 10**9)
    assert found("differentiable-trees", 1000).search.stop.name == "EXHAUSTED"
