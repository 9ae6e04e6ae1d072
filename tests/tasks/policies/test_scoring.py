"""What an episode is worth where that is not the sum of its rewards."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from environments import Walk, registered
from trees import decision, tree

from discodso import resume, search_policy
from discodso.base.errors import DeclarationError
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.scoring import Scoring, name_of, scoring_of
from discodso.tasks.policies.tree import Forest

BALANCE = tree(decision(2, 0.0, 0, 1))


def least_of(rewards, infos):
    """As good as its worst step; and infos come with every reward."""
    assert len(rewards) == len(infos)
    return rewards.min()


def lost(rewards, infos):
    return float("nan")


def scores(scoring, policy, name, seeds, workers=1):
    with open_runner(Environment(name), workers, scoring=scoring) as runner:
        return runner.returns(Forest.of([policy]), np.zeros(len(seeds), np.int64), np.array(seeds))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_discounted_return_is_that_of_a_plain_loop(workers) -> None:
    env = gymnasium.make("CartPole-v1")
    expected = []
    for seed in range(4):
        observation, _ = env.reset(seed=seed)
        total, factor, over = 0.0, 1.0, False
        while not over:
            observation, reward, ended, cut, _ = env.step(BALANCE.act(observation))
            total, factor, over = total + factor * float(reward), factor * 0.9, ended or cut
        expected.append(total)
    found, failed = scores(Scoring(0.9), BALANCE, "CartPole-v1", range(4), workers)
    assert found == pytest.approx(expected)
    assert not failed


def test_a_search_for_a_score_reports_the_return_beside_it(tmp_path) -> None:
    with registered("Walk-v0", Walk, max_episode_steps=20) as name:
        own = {"budget": 60, "episodes": 4, "seed": 1, "test_seeds": range(6), "max_nodes": 7}
        found = search_policy(name, **own, score=least_of, out=tmp_path / "run")
        again, _ = scores(Scoring(score=least_of), found.policy, name, range(6))
        assert found.test_scores.tolist() == again.tolist()
        assert found.test_returns.tolist() == found.policy.evaluate(name, range(6)).tolist()
        assert found.summary()["test_score"] == found.test_scores.mean()
        assert (found.test_scores > found.test_returns).all()  # one step against the sum of all
        assert f'score = "{__name__}:least_of"' in (tmp_path / "run" / "settings.toml").read_text()
        longer = resume(tmp_path / "run", budget=100)
        whole = search_policy(name, **{**own, "budget": 100}, score=least_of)
        assert longer.search.top == whole.search.top
        plain = search_policy(name, **own)
        assert plain.search.top != found.search.top
        assert len(plain.test_scores) == 0
        discounted = search_policy(name, **own, discount=0.5)
        assert len(discounted.test_scores) == 6


def test_a_score_that_is_no_number_is_a_failed_episode() -> None:
    _, failed = scores(Scoring(score=lost), BALANCE, "CartPole-v1", [3])
    assert failed == {0: "raised ValueError: the score of an episode is nan"}


def test_a_score_has_a_name_that_settings_can_hold() -> None:
    name = name_of(least_of)
    assert name == f"{__name__}:least_of"
    loaded = scoring_of(1.0, name)
    assert loaded is not None
    assert loaded.score is least_of
    assert name_of("module:function") == "module:function"
    assert scoring_of(1.0, None) is None
    with pytest.raises(DeclarationError, match="a function at the top of a module"):
        name_of(lambda rewards, infos: 0.0)
    with pytest.raises(DeclarationError, match="not both"):
        scoring_of(0.9, name)
    with pytest.raises(DeclarationError, match="nowhere:f cannot be loaded: ModuleNotFoundError"):
        scoring_of(1.0, "nowhere:f")
    with pytest.raises(DeclarationError, match="module:function"):
        scoring_of(1.0, "nowhere")
