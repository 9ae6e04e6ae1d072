"""From an environment to a policy: the search, the choice on fresh seeds, the test on unseen ones."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from environments import Walk, registered
from killing import comparable

from discodso import (
    DisCoSettings,
    FileError,
    NetworkSettings,
    PolicySearch,
    StopReason,
    TreePolicy,
    preset,
    resume,
    search_policy,
)
from discodso.base.errors import DiscodsoError, EvaluationError
from discodso.disco.settings import RestartSettings
from discodso.run.folder import designs_of
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.making import as_environment
from discodso.tasks.policies.policy_kind import KIND, default_settings
from discodso.tasks.policies.policy_options import read_seeds
from discodso.tasks.policies.tree_picture import svg
from discodso.tasks.policies.tree_space import tree_space, validation_seeds


@pytest.fixture(scope="module")
def found() -> PolicySearch:
    return search_policy("CartPole-v1", budget=600, episodes=10, seed=3)


def test_the_test_score_is_the_return_on_the_test_seeds(found: PolicySearch) -> None:
    env = gymnasium.make("CartPole-v1")
    for seed in (0, 500, 999):
        observation, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(found.policy.act(observation))
            total, over = total + float(reward), terminated or truncated
        assert found.test_returns[seed] == total
    assert found.test_mean == found.test_returns.mean()
    assert found.test_error == pytest.approx(found.test_returns.std(ddof=1) / np.sqrt(1000))


def test_the_winner_is_chosen_on_fresh_episodes(found: PolicySearch) -> None:
    means = [candidate.mean for candidate in found.finalists]
    assert means == sorted(means, reverse=True)
    winner = found.finalists[0].policy
    seeds = validation_seeds(3, 110)[10:]
    assert found.finalists[0].mean == winner.evaluate(seeds=seeds).mean()
    assert found.policy == found.policy.pruned()


def test_calls_and_episodes_are_counted() -> None:
    whole = search_policy("MountainCar-v0", budget=150, episodes=7, seed=0, racing=False)
    assert whole.calls == 150
    assert whole.episodes == 150 * 7
    assert [row.cost for row in whole.search.history] == [*range(140, 1050, 140), 1050]  # batches of 20
    raced = search_policy("CartPole-v1", budget=150, episodes=50, seed=0, racing=True)
    assert 150 * 4 <= raced.episodes < 150 * 50


@pytest.mark.parametrize(
    ("calls", "batch"), [(100, 20), (6000, 30), (20_000, 100), (10**6, 100), (None, 100)]
)
def test_few_calls_have_small_batches(calls: int | None, batch: int) -> None:
    assert default_settings(budget=calls).batch_size == batch
    assert default_settings(common_episodes=True, budget=calls).batch_size == 100


def test_a_raised_budget_leaves_the_batches_as_they_were(tmp_path) -> None:
    own = {"episodes": 2, "racing": False, "test_seeds": range(3)}
    search_policy("MountainCar-v0", budget=100, **own, out=tmp_path / "run")
    again = resume(tmp_path / "run", budget=4_400)  # a search that began with these would have 22
    assert {row.calls % 20 for row in again.search.history} == {0}
    assert len(again.search.history) == 220


def test_the_same_seed_gives_the_same_policy_for_any_number_of_workers(found: PolicySearch) -> None:
    again = search_policy("CartPole-v1", budget=600, episodes=10, seed=3, workers=2)
    assert again.policy == found.policy
    assert [replace(row, seconds=0) for row in again.search.history] == [
        replace(row, seconds=0) for row in found.search.history
    ]
    other = search_policy("CartPole-v1", budget=600, episodes=10, seed=4)
    assert other.search.top != found.search.top


def test_restarts_share_the_budget_and_the_ranking() -> None:
    restarts = RestartSettings(batches=10, patience=0.0, least_gain=0.005)
    method = replace(default_settings(budget=1000), restarts=restarts)
    found = search_policy("MountainCar-v0", budget=1000, episodes=5, seed=0, method=method)
    assert any(row.restarted for row in found.search.history)
    calls = [row.calls for row in found.search.history]
    assert calls == sorted(set(calls))
    assert calls[-1] == 1000
    assert any(scored.weight > 5 for scored in found.search.top)  # the elites were evaluated again
    costs = [row.cost for row in found.search.history]
    assert costs == sorted(costs)
    assert found.search.stop is StopReason.BUDGET
    without = search_policy("MountainCar-v0", budget=1000, episodes=5, seed=0)
    assert without.search.top != found.search.top
    rewards = [scored.reward for scored in found.search.top]
    assert rewards == sorted(rewards, reverse=True)
    assert len({scored.design for scored in found.search.top}) == len(found.search.top)


def test_a_search_starts_from_the_best_trees_of_earlier_ones(tmp_path) -> None:
    """Over the same episodes their rewards are the same, so the new run begins where they ended, and goes on from
    there; it can be resumed without them."""
    own = {"episodes": 20, "seed": 0, "racing": False, "common_episodes": True, "test_seeds": range(3)}
    earlier = [tmp_path / "a", tmp_path / "b"]
    best = max(
        search_policy(
            "MountainCar-v0", budget=400, out=folder, **own, method=DisCoSettings(batch_size=size)
        ).search.best.reward
        for folder, size in zip(earlier, (40, 50), strict=True)
    )
    more = {"start_from": earlier, "out": tmp_path / "c", "method": DisCoSettings(batch_size=200)}
    found = search_policy("MountainCar-v0", budget=200, **own, **more)
    assert found.search.best.reward >= best - 1e-9
    narrow = {
        "ranges": {"position": (-0.4, 0.1)},
        "start_from": earlier[:1],
        "method": DisCoSettings(batch_size=100),
    }
    moved = search_policy(
        "MountainCar-v0", budget=100, **own, **narrow
    )  # thresholds outside move to the ends
    assert {len(scored.design) for scored in moved.search.top} & {
        len(design) for design in designs_of(earlier[0])
    }
    for folder in earlier:
        (folder / "top.json").unlink()
        (folder / "policy.json").unlink()
    whole = resume(tmp_path / "c", budget=600)
    assert whole.search.best.reward >= found.search.best.reward
    with pytest.raises(FileError, match=r"no designs to start from: its top\.json is missing or empty"):
        search_policy("MountainCar-v0", budget=200, **own, start_from=earlier)
    with pytest.raises(DiscodsoError, match="c is a run of MountainCar-v0, not of CartPole-v1"):
        search_policy("CartPole-v1", budget=200, **own, start_from=[tmp_path / "c"])


def test_a_target_ends_the_search() -> None:
    found = search_policy("CartPole-v1", budget=5000, episodes=5, seed=0, target=30)
    assert found.search.stop is StopReason.TARGET
    assert found.calls < 5000


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [("paper", preset("paper")), ("paper-scaled", DisCoSettings(network=NetworkSettings(shift=0.5)))],
)
def test_the_paper_presets_have_no_racing_and_the_paper_settings(name: Any, by_hand: DisCoSettings) -> None:
    found = search_policy("MountainCar-v0", budget=100, episodes=4, preset=name)
    assert found.episodes == 400
    named = search_policy("MountainCar-v0", budget=100, episodes=4, preset=name, method=by_hand)
    assert named.search.top == found.search.top


def test_designs_obey_the_three_constraints(found: PolicySearch) -> None:
    space = tree_space(describe(as_environment("CartPole-v1"), seed=3))
    for scored in found.search.top:
        assert not space.violations(scored.design)


def test_given_ranges_hold_the_thresholds() -> None:
    ranges = {"angle": (0.01, 0.02), "1": (0.1, 0.2)}
    found = search_policy("CartPole-v1", budget=200, episodes=3, ranges=ranges)
    assert found.interface.ranges[2] == (0.01, 0.02)
    assert found.interface.sources[1:3] == ("given", "given")
    for scored in found.search.top:
        for name, value in scored.design:
            if name == "angle <":
                assert 0.01 <= value <= 0.02
            if name == "velocity <":
                assert 0.1 <= value <= 0.2


def test_probed_ranges_hold_the_thresholds_and_are_resumed(tmp_path) -> None:
    found = search_policy(
        "MountainCar-v0",
        budget=100,
        episodes=2,
        probe_ranges=True,
        ranges={"0": (-1, 0)},
        out=tmp_path / "run",
    )
    assert found.interface.sources == ("given", "probed")
    low, high = found.interface.ranges[1]
    assert -0.07 < low < high < 0.07  # the declared bounds
    again = resume(tmp_path / "run", budget=200)
    assert again.interface == found.interface
    for scored in again.search.top:
        assert all(low <= value <= high for name, value in scored.design if name == "velocity <")


def test_a_preferred_size_is_where_trees_begin_and_is_resumed(tmp_path) -> None:
    def sizes(folder: str, nodes: int | None, preset: str = "default") -> list[int]:
        found = search_policy(
            "CartPole-v1",
            budget=100,
            episodes=2,
            typical_nodes=nodes,
            preset=preset,
            racing=False,
            test_seeds=range(3),
            out=tmp_path / folder,
        )
        return [len(scored.design) for scored in found.search.top]

    small, large = sizes("small", 5), sizes("large", 25)
    assert np.mean(small) < 9
    assert np.mean(large) > 17
    assert sizes("none", 0) != sizes("preset", None)  # which has a size that it prefers
    assert sizes("paper", 0, "paper") == sizes("paper-preset", None, "paper")  # which has none
    assert "typical_nodes = 5" in (tmp_path / "small" / "settings.toml").read_text()
    again = resume(tmp_path / "small", budget=200)
    once = search_policy(
        "CartPole-v1", budget=200, episodes=2, typical_nodes=5, racing=False, test_seeds=range(3)
    )
    assert [scored.design for scored in again.search.top] == [scored.design for scored in once.search.top]


def test_environments_with_arguments() -> None:
    found = search_policy(
        "CartPole-v1", budget=100, episodes=2, arguments={"sutton_barto_reward": True}, test_seeds=range(5)
    )
    assert -1 <= found.test_mean <= 0  # the reward of that variant
    assert found.policy.environment == as_environment("CartPole-v1", {"sutton_barto_reward": True})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"budget": 0}, "budget"),
        ({"episodes": 1}, "episodes"),
        ({"max_nodes": 2}, "max_nodes"),
        ({"typical_nodes": 2}, "typical_nodes must be 3 or more, or 0"),
        ({"typical_nodes": -1}, "typical_nodes"),
        ({"workers": 0}, "workers"),
        ({"preset": "best"}, "preset"),
        ({"racing": "yes"}, "racing"),
        ({"ranges": {"tail": (0, 1)}}, "tail"),
        ({"ranges": {"angle": (1, 0)}}, "angle"),
        ({"ranges": {"angle": 5}}, "angle needs a lower and a higher number"),
        ({"ranges": [(0, 1)]}, "ranges must be a dictionary"),
        ({"feature_prices": [5]}, "feature_prices must be a dictionary"),
        ({"test_seeds": [1]}, "test_seeds"),
        ({"test_seeds": 5}, "test_seeds must be 2 to"),
        ({"test_seeds": "0-99"}, "test_seeds must be whole numbers"),
        ({"test_seeds": (1.5, 2)}, "test_seeds must be whole numbers"),
        ({"test_seeds": (5, 5)}, "different seeds"),
        ({"test_seeds": (2**29, 1)}, "test_seeds must be from 0 to"),
        ({"arguments": {"colour": 1}}, "colour"),
    ],
)
def test_mistakes_are_one_line(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(DiscodsoError, match=words) as caught:
        search_policy("CartPole-v1", **{"budget": 100, "episodes": 2, **wrong})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_seeds_on_the_command_line() -> None:
    assert read_seeds(["0-3,7", "9"]) == (0, 1, 2, 3, 7, 9)
    assert read_seeds([]) is None
    for words in ("5-3", "a", "1-", "-1", "0-99999999999"):
        with pytest.raises(DiscodsoError, match=r"^--test-seeds must be "):
            read_seeds([words])


def test_the_folder_has_policy_picture_figures_and_history(found: PolicySearch, tmp_path) -> None:
    folder = tmp_path / "new" / "run"
    kept = search_policy("CartPole-v1", budget=600, episodes=10, seed=3, out=folder)
    assert comparable(kept) == comparable(found)
    assert TreePolicy.load(folder / "policy.json") == found.policy
    assert TreePolicy.load(folder / "policy.json").feature_names == found.policy.feature_names
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["test_mean"] == found.test_mean
    assert summary["command"] == shlex.join(json.loads((folder / "environment.json").read_text())["command"])
    assert summary["interface"]["features"][0]["range"] == list(found.interface.ranges[0])
    rows = (folder / "history.jsonl").read_text().splitlines()
    assert [json.loads(row)["calls"] for row in rows] == [row.calls for row in found.search.history]
    top = json.loads((folder / "top.json").read_text())
    assert [scored["reward"] for scored in top["top"]] == [scored.reward for scored in found.search.top]
    assert (folder / "tree.svg").read_text().startswith("<?xml")
    score = f"{found.test_mean:.2f} ± {found.test_error:.2f} over 1000 seeds"
    shares = found.policy.node_shares(seeds=range(1000))
    drawn = svg(found.policy, shares, f"CartPole-v1: {score}, {len(found.policy)} nodes")
    assert (folder / "tree.svg").read_text() == drawn
    assert (folder / "tree.png").read_bytes().startswith(b"\x89PNG")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(FileError, match="already holds a run"):
        search_policy("CartPole-v1", budget=600, episodes=10, seed=4, out=folder)
    assert before == {file.name: file.read_bytes() for file in folder.iterdir()}


def test_cartpole_is_solved() -> None:
    found = search_policy("CartPole-v1", budget=5000, seed=0, target=500)
    assert found.test_mean > 499  # it ends with the first tree that solves all its 100 episodes


def test_a_search_ends_when_the_best_return_there_is_is_certain() -> None:
    found = search_policy("CartPole-v1", budget=10_000, seed=0, test_seeds=range(50), trim=False)
    assert found.search.stop is StopReason.OPTIMUM
    assert found.calls < 5000
    assert "trees had 500, the highest return there is" in found.search.detail
    perfect = [scored for scored in found.search.top if scored.reward == 500]
    assert len(perfect) >= 10
    assert sum(scored.weight for scored in perfect) >= 1000


def test_a_search_ends_when_nothing_gets_better_for_long(tmp_path) -> None:
    """The best tree of this walk is found at once; by default it takes half of the budget, or 3000 calls."""
    own = {"episodes": 2, "test_seeds": range(2), "max_nodes": 3, "racing": False, "trim": False}
    with registered("Walk-v0", partial(Walk, length=1)) as name:
        by_default = search_policy(name, budget=20_000, **own, common_episodes=True)
        assert by_default.search.stop is StopReason.PATIENCE
        assert 10_000 <= by_default.calls <= 11_000
        given = search_policy(name, budget=20_000, patience=500, **own, common_episodes=True)
        assert given.search.stop is StopReason.PATIENCE
        assert 500 <= given.calls < 1000


class _Broken(Walk):
    def step(self, action: Any) -> Any:
        raise RuntimeError("the motor is off")


def test_where_every_episode_fails_the_run_ends_with_its_first_batch(tmp_path) -> None:
    with registered("Broken-v0", _Broken, max_episode_steps=20) as name:
        words = "no episode of Broken-v0 succeeded: raised RuntimeError: the motor is off"
        with pytest.raises(EvaluationError, match=words):
            search_policy(name, budget=5000, ranges={"0": (0, 1), "1": (0, 20)}, out=tmp_path / "run")
    top = json.loads((tmp_path / "run" / "top.json").read_text())
    assert top["stop"] == "failed"
    assert top["calls"] == 25


def test_equal_returns_are_told_at_once() -> None:
    heard: list[str] = []
    listener = SimpleNamespace(note=heard.append)
    with registered("Level-v0", partial(Walk, length=1), max_episode_steps=5) as name:

        class Level(gymnasium.RewardWrapper):
            def reward(self, reward: Any) -> float:
                return -2.5

        with registered("Leveled-v0", lambda: Level(gymnasium.make(name))) as level:
            found = search_policy(level, budget=60, episodes=2, test_seeds=range(2), callback=listener)
    phases = [words.split(":")[0] for words in heard]
    assert phases == [
        "probing",
        "search",
        "all returns are equal so far",
        "choice",
        "trimming",
        "front",
        "test",
    ]
    assert (
        heard[2] == "all returns are equal so far: -2.5; nothing tells trees apart until one of them differs"
    )
    assert found.notes == ("all trees of the search had the same mean return, -2.5",)


def test_a_limit_that_is_over_before_the_search_leaves_a_first_tree():
    found = search_policy("MountainCar-v0", budget=100, time_limit=1e-6, test_seeds=(0, 1))
    assert found.search.stop is StopReason.TIME
    assert found.calls >= 1


def test_a_time_limit_makes_everything_smaller_and_says_so(tmp_path) -> None:
    """A limit that is over before the search begins leaves a tree, a choice of the best, and two test seeds."""
    own = {"budget": 500, "episodes": 4, "test_seeds": range(30), "trim": False}
    with registered("Walk-v0", Walk, max_episode_steps=20) as name:
        found = search_policy(name, time_limit=0.5, out=tmp_path / "run", **own)
        assert found.search.stop is StopReason.TIME
        assert found.calls < 500
        whole = resume(tmp_path / "run", time_limit=10_000)
        assert whole.calls == 500
        assert len(whole.test_seeds) == 30
        assert whole.interface.ranges == found.interface.ranges
        assert whole.interface.probed == found.interface.probed


def test_where_probing_was_cut_short_a_resumed_run_has_the_same_ranges(tmp_path) -> None:
    class Sleepy(Walk):
        nap = 0.002

        def step(self, action: Any) -> Any:
            time.sleep(self.nap)
            return super().step(action)

    own = {"budget": 40, "episodes": 2, "test_seeds": range(2), "max_nodes": 5, "trim": False}
    with registered("Sleepy-v0", Sleepy, max_episode_steps=20) as name:
        found = search_policy(name, time_limit=2, out=tmp_path / "run", **own)
        assert 2 <= found.interface.probed.steps < 2000
        steps = f"probe_steps = {found.interface.probed.steps}"
        assert steps in (tmp_path / "run" / "settings.toml").read_text()
        Sleepy.nap = 0.0
        again = resume(tmp_path / "run", time_limit=10_000)
    assert again.interface == found.interface
    assert again.calls == 40


def test_the_paper_preset_leaves_the_winner_as_it_was_found() -> None:
    found = search_policy(
        "CartPole-v1", budget=300, episodes=10, seed=1, preset="paper", test_seeds=range(10)
    )
    assert found.policy == found.finalists[0].policy
    trimmed = search_policy(
        "CartPole-v1", budget=300, episodes=10, seed=1, preset="paper", test_seeds=range(10), trim=True
    )
    assert len(trimmed.policy) <= len(found.policy)
    assert trimmed.finalists == found.finalists
    assert trimmed.validation_episodes > found.validation_episodes


def test_over_common_episodes_a_tree_that_is_met_again_keeps_its_reward():
    found = search_policy(
        "MountainCar-v0", budget=3000, episodes=100, common_episodes=True, seed=0, test_seeds=range(3)
    )
    best = [row.best for row in found.search.history]
    assert best == sorted(best)
    assert all(scored.evaluations == 1 for scored in found.search.top)


def test_pages_show_sums_and_numbers_as_trees(tmp_path):
    own = {"episodes": 2, "seed": 0, "test_seeds": (0, 1), "splits": "pair", "leaves": "linear"}
    found = search_policy("Pendulum-v1", budget=60, out=tmp_path, **own)
    designs = [entry.design for entry in found.search.top][:5]
    ending = KIND.read(tmp_path)
    for design, shown in zip(designs, KIND.shown(ending, designs, ()), strict=True):
        assert "torque = " in shown.text, design
        assert "<svg" in shown.svg
    ending["summary"]["vocabulary"] = "[1"
    assert [shown.text for shown in KIND.shown(ending, designs, ())] == list(map(str, designs))
