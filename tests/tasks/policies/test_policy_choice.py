"""The choice of a policy on fresh episodes, and what is then cut out of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from environments import Walk, registered

from discodso import TreePolicy, resume, search_policy
from discodso.base.arrays import Floats, Ints
from discodso.base.errors import DiscodsoError
from discodso.report.folders import read_run
from discodso.report.writing import write_report
from discodso.tasks.policies.episodes import open_runner, paired_returns
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import as_environment
from discodso.tasks.policies.policy_choice import _affordable, _round, meet, trim
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.tree_space import validation_seeds


@pytest.mark.parametrize(("episodes", "expected"), [(30, 300), (200, 2000), (450, 2000)])
def test_many_episodes_for_a_call_do_not_make_the_choice_long(episodes: int, expected: int) -> None:
    found = search_policy("MountainCar-v0", budget=100, episodes=episodes, seed=0, test_seeds=range(3))
    assert {candidate.episodes for candidate in found.finalists} == {expected}


@pytest.mark.parametrize(
    ("episodes", "spent", "expected"), [(450, 1e4, 200), (600, 2e6, 400), (1000, 6.4e6, 1000), (30, 1e9, 30)]
)
def test_after_a_long_search_the_choice_takes_its_time(episodes: int, spent: float, expected: int) -> None:
    assert _round(episodes, spent) == expected


def test_decisions_that_earn_nothing_are_cut_out() -> None:
    """Around a perfect tree for CartPole: a decision that is never reached and one between equal ends."""
    perfect = {
        "feature": 2,
        "threshold": 0.0167507,
        "left": {"feature": 3, "threshold": 0.407984, "left": {"action": 0}, "right": {"action": 1}},
        "right": {"action": 1},
    }
    idle = {"feature": 0, "threshold": 4.0, "left": {"action": 1}, "right": {"action": 0}}
    padded = {"feature": 1, "threshold": 50.0, "left": {**perfect, "right": idle}, "right": {"action": 0}}
    policy = TreePolicy.from_dict(padded)
    seeds = np.arange(2**29, 2**29 + 1200)
    with open_runner(as_environment("CartPole-v1")) as runner:
        path, spent = trim(policy, runner, seeds[:50], seeds[50:200], seeds[200:])
    assert path[0] == policy
    assert path[-1].to_dict() == perfect
    assert [len(tree) for tree in path] == [9, 7, 5]
    assert spent > 0
    assert policy.pruned() == policy  # no action would change on some observation: pruning cannot do it


class _Lucky:
    """Returns of trees that lack an action are better on the few seeds and worse on all others; 8 is never met."""

    def returns(self, forest: Forest, tree: Ints, seeds: Ints) -> tuple[Floats, dict[int, str]]:
        actions = [
            {node.action for node, _ in forest.columns_of(m).nodes() if isinstance(node, Leaf)}
            for m in range(len(forest.offset) - 1)
        ]
        whole = np.array([{0, 1, 2, 3} <= own for own in actions])[tree]
        return seeds % 7 + np.where(whole, 0.0, np.where(seeds < 100, 1.0, -5.0)), {}


def test_what_no_episode_reaches_is_cut_out_though_other_cuts_look_better() -> None:
    leaves = [{"action": action} for action in range(4)]
    idle = {"feature": 1, "threshold": 9.0, "left": leaves[3], "right": {"action": 8}}
    policy = TreePolicy.from_dict(_chain(leaves[:3], idle))
    path, spent = trim(policy, _Lucky(), np.arange(50), np.arange(100, 300), np.arange(300, 400))
    assert path[-1].to_dict() == _chain(leaves[:3], leaves[3])
    # Each round: the tree and its cuts on the few; the whole tree once, then what is tried, on the many.
    assert spent == 200 + (1 + 8) * 50 + 4 * 200 + (1 + 6) * 50 + 3 * 200


def _chain(leaves: list[Any], last: Any) -> Any:
    for place, leaf in reversed(list(enumerate(leaves))):
        last = {"feature": 0, "threshold": float(place), "left": leaf, "right": last}
    return last


def test_trimming_keeps_what_earns_something() -> None:
    seeds = np.arange(2**29, 2**29 + 700)
    policy = TreePolicy.from_dict(
        {"feature": 1, "threshold": 0.0, "left": {"action": 0}, "right": {"action": 2}}
    )
    with open_runner(as_environment("MountainCar-v0")) as runner:
        path, _ = trim(policy, runner, seeds[:50], seeds[50:250], seeds[250:])
    assert path == [policy]


@pytest.mark.parametrize(
    ("affordable", "expected"),
    [
        (1e9, (100, 100, 10, 1000)),
        (20_000, (100, 100, 10, 1000)),
        (10_000, (100, 50, 10, 500)),
        (1000, (62, 8, 6, 83)),
        (100, (6, 8, 2, 25)),
        (3, (2, 2, 2, 2)),
        (0, (2, 2, 2, 2)),
    ],
)
def test_where_few_episodes_are_affordable_fewer_trees_are_compared_on_fewer(affordable, expected) -> None:
    assert _affordable(100, 100, 1000, affordable) == expected
    assert _affordable(1, 100, 1000, affordable)[0] == 1


class _Moody(Walk):
    """Every tenth seed makes it fail."""

    def reset(self, **given: Any) -> Any:
        if given.get("seed") is not None and given["seed"] < 1000 and given["seed"] % 10 == 3:
            raise RuntimeError("out of order")
        return super().reset(**given)


def test_a_test_episode_that_fails_is_told_and_the_others_count() -> None:
    with registered("Moody-v0", _Moody, max_episode_steps=20) as name:
        found = search_policy(name, budget=40, episodes=2, test_seeds=range(25), max_nodes=7)
        alone = found.policy.evaluate(seeds=[seed for seed in range(25) if seed % 10 != 3])
    assert found.test_seeds == tuple(seed for seed in range(25) if seed % 10 != 3)
    assert found.test_returns.tolist() == alone.tolist()
    assert [seed for seed, _ in found.test_failures] == [3, 13, 23]
    assert found.notes[-1] == "3 of 25 episodes of the test failed; seed 3 raised RuntimeError: out of order"
    assert found.summary()["test_failures"][0] == [3, "raised RuntimeError: out of order"]


def test_phases_tell_what_each_part_of_a_run_took() -> None:
    found = search_policy("MountainCar-v0", budget=60, episodes=4, moving_ranges=True, test_seeds=range(7))
    episodes = {phase.name: phase.episodes for phase in found.phases}
    after = ["choice", "trimming", "front", "writing", "test"]
    assert list(episodes) == ["probing", "set-up", "visits", "search", *after]
    assert episodes["probing"] == found.interface.probed.episodes == 100
    assert episodes["visits"] > 0
    assert episodes["visits"] + episodes["search"] == found.episodes
    assert episodes["choice"] + episodes["trimming"] == found.validation_episodes
    assert episodes["test"] == 7
    assert found.seconds == sum(phase.seconds for phase in found.phases)
    assert found.summary()["phases"][0]["episodes"] == 100
    assert all(phase.seconds >= 0 for phase in found.phases)
    assert found.notes == ()


def test_the_test_is_the_last_thing_that_a_search_does(tmp_path, monkeypatch) -> None:
    """Policy and picture are there before it, and the summary says that there is no test yet."""
    own = {"budget": 60, "episodes": 4, "test_seeds": range(3)}

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("discodso.tasks.policies.policy_choice._tested", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search_policy("MountainCar-v0", **own, out=tmp_path / "run")
    untested = read_run(tmp_path / "run")
    assert untested.status == "stopped"
    assert untested.ending["summary"]["test_mean"] is None
    assert untested.kind.summary(untested.ending) == (None, "policy.json has no test")
    assert "not tested yet" in (tmp_path / "run" / "tree.svg").read_text()
    found = resume(tmp_path / "run")
    assert TreePolicy.load(tmp_path / "run" / "policy.json") == found.policy
    assert read_run(tmp_path / "run").status == "ended"
    assert read_run(tmp_path / "run").ending["summary"]["test_mean"] == found.test_mean


def test_a_search_that_was_interrupted_before_a_tree_was_rated_says_so(monkeypatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("discodso.tasks.policies.objective.TreeObjective.__call__", interrupted)
    with pytest.raises(DiscodsoError, match=r"MountainCar-v0 ended before a tree was rated, .* resume it$"):
        search_policy("MountainCar-v0", budget=60, episodes=4)


class Gusts(gymnasium.Env[Any, Any]):
    """One step; in three episodes of a hundred there is a gust, and whoever does not steer then loses 1000.

    All returns are noisy besides, so that few episodes tell nothing of the gusts.
    """

    observation_space = gymnasium.spaces.Box(-3.0, 3.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """A state that says whether there is a gust."""
        super().reset(seed=seed)
        self.gust = bool(self.np_random.random() < 0.03)
        return np.array([float(self.gust), self.np_random.normal()], np.float32), {}

    def step(self, action: Any) -> Any:
        """The end."""
        reward = self.np_random.normal(0, 100) - 1000 * (self.gust and action == 0) - action
        return np.zeros(2, np.float32), float(reward), True, False, {}


gymnasium.register("Gusts-v0", entry_point=f"{__name__}:Gusts", max_episode_steps=5)
STEERING = TreePolicy.from_dict(
    {"feature": 0, "threshold": 0.5, "left": {"action": 0}, "right": {"action": 1}}
)


def test_a_tree_that_minds_rare_states_is_left_whole() -> None:
    """Twenty episodes have no gust, so that the one decision seems to earn nothing; a thousand fresh ones know."""
    seeds = np.arange(100)
    with open_runner(as_environment("Gusts-v0")) as runner:
        calm = TreePolicy.from_dict({"action": 0})
        both = paired_returns([STEERING, calm], runner, seeds)
        quiet = seeds[both[0] == both[1]]
        path, _ = trim(STEERING, runner, quiet[:20], quiet[20:40], quiet[:0])
        assert path == [STEERING, calm]
        met = meet(path, runner, seeds, np.arange(2**29, 2**29 + 1000))
    assert not met.holds
    assert met.policy == STEERING
    assert met.other == calm
    assert met.fall == pytest.approx(29, abs=12)
    assert met.fall > 2 * met.error
    assert "from 3 to 1 nodes" in met.sentence
    assert met.sentence.endswith("so it was left whole")
    assert met.to_dict()["chosen"] is False


def test_a_small_loss_is_taken_if_it_is_certain_to_be_small() -> None:
    """Not to steer where it is calm is worth 1, to steer in gusts 29: what may be lost is a tenth of that."""
    fresh, few = np.arange(2**29, 2**29 + 4000), np.arange(400)
    calm, always = (TreePolicy.from_dict({"action": action}) for action in (0, 1))
    with open_runner(as_environment("Gusts-v0")) as runner:
        met = meet([STEERING, calm], runner, few, fresh)
        assert not met.holds
        assert met.earned == pytest.approx(0.97, abs=0.02)  # above to steer always
        assert met.allowed == pytest.approx(0.097, abs=0.002)  # the spread of 100 allows nothing
        assert not meet([STEERING, always], runner, few, fresh).holds
        better = meet([always, STEERING], runner, few, fresh[:1000])
        assert better.fall == pytest.approx(-0.97, abs=0.02)
        assert better.earned == 0
        assert better.holds  # no fall at all
        assert replace(better, error=2.0).holds  # even where it is not certain
        assert "the mean return rises by 0.9" in better.sentence
        idle = {"feature": 1, "threshold": 9.0, "left": STEERING.to_dict(), "right": {"action": 0}}
        padded = TreePolicy.from_dict(idle)
        path = meet([padded, STEERING, calm], runner, few, fresh)
    assert path.policy == STEERING  # the smallest that holds
    assert (path.fall, path.error) == (0.0, 0.0)
    assert path.sentence == "trimmed from 5 to 3 nodes: all returns stay the same over 4000 fresh episodes"
    assert path.other == padded
    spread = replace(path, trimmed=calm, fall=9.0, error=0.1, spread=100.0, earned=200.0)
    assert spread.allowed == pytest.approx(10)
    assert spread.holds
    assert not replace(spread, error=1.0).holds


def test_both_trees_are_kept_and_told(tmp_path: Path) -> None:
    found = search_policy("CartPole-v1", budget=600, episodes=20, seed=3, out=tmp_path / "run")
    trimming, summary = found.trimming, json.loads((tmp_path / "run" / "summary.json").read_text())
    assert trimming is not None
    assert trimming.whole == found.finalists[0].policy
    assert found.policy == trimming.policy
    assert summary["trimming"] == trimming.to_dict()
    other = "untrimmed.json" if trimming.holds else "trimmed.json"
    assert TreePolicy.load(tmp_path / "run" / other) == trimming.other
    assert trimming.episodes == 1000


def test_the_front_has_the_best_tree_of_each_size(tmp_path) -> None:
    own = {"budget": 300, "episodes": 10, "seed": 2, "test_seeds": range(5)}
    found = search_policy("MountainCar-v0", **own, out=tmp_path / "run")
    sizes = [len(tree.policy) for tree in found.front]
    assert sizes == sorted(set(sizes))
    assert sizes[0] == 1
    assert sum(tree.policy == found.policy for tree in found.front) == 1
    others = [tree.mean for tree in found.front if tree.policy != found.policy]
    assert others == sorted(set(others))
    known = {finalist.policy for finalist in found.finalists}
    seeds = validation_seeds(2, 110)[10:]
    for tree in found.front:  # over the same episodes
        assert tree.policy in known or tree.mean == tree.policy.evaluate(seeds=seeds).mean()
    data = json.loads((tmp_path / "run" / "front.json").read_text())["trees"]
    assert [TreePolicy.from_dict(point["policy"]) for point in data] == [tree.policy for tree in found.front]
    assert [point["mean"] for point in data] == [tree.mean for tree in found.front]
    run = read_run(tmp_path / "run")
    front = run.kind.page(run.ending)["front"]
    assert [point["x"] for point in front["points"]] == sizes
    assert [point["chosen"] for point in front["points"]] == [t.policy == found.policy for t in found.front]
    assert all(point["svg"].startswith("<") for point in front["points"])
    page = write_report([tmp_path / "run"], tmp_path / "report.html").read_text()
    assert "Return and size" in page
    assert "front" in {phase.name for phase in found.phases}
