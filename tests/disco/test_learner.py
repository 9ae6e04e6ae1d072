"""The learner: updates of the network, none at a learning rate of 0, and its state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from spaces import decision_tree, symbolic

from discodso import DisCo, NetworkSettings, preset
from discodso.disco.archive import Pool
from discodso.disco.learner import Learner
from discodso.disco.sampling import sample
from discodso.disco.settings import LearnerSettings
from discodso.disco.training import Baseline
from discodso.run.checkpoint import from_bytes, to_bytes

SPACE = decision_tree()
NETWORK = NetworkSettings(units=8, learn_scale=True)


def make(**settings) -> Learner:
    return Learner(SPACE, LearnerSettings(**settings), NETWORK, np.random.default_rng(0))


def weights(learner: Learner) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in learner.policy.parameters()])


def drawn(learner: Learner, seed: int, count: int = 50) -> Pool:
    rng = np.random.default_rng(seed)
    designs = sample(SPACE, learner.policy.stepper(), count, rng).designs
    return Pool(designs, rng.normal(size=count), np.ones(count))


def test_an_update_moves_the_weights_and_says_what_it_did():
    learner = make()
    before = weights(learner)
    metrics = learner.learn(drawn(learner, 0))
    assert not np.array_equal(before, weights(learner))
    assert (learner.updates, metrics.kept) == (1, 10)
    assert metrics.loss is not None
    assert metrics.entropy is not None


def test_a_learning_rate_of_0_changes_no_weight():
    learner = make(learning_rate=0)
    before = weights(learner)
    for seed in range(5):
        metrics = learner.learn(drawn(learner, seed))
        assert metrics.kept == 10
        assert metrics.quantile is not None
    assert np.array_equal(before, weights(learner))
    assert learner.updates == 0


def test_a_learning_rate_of_0_is_as_if_it_were_tiny():
    nothing, tiny = make(learning_rate=0), make(learning_rate=1e-30)
    for seed in range(5):
        one, other = drawn(nothing, seed), drawn(tiny, seed)
        assert list(one.designs) == list(other.designs)
        first, second = nothing.learn(one), tiny.learn(other)
        assert (first.quantile, first.kept) == (second.quantile, second.kept)
        assert np.array_equal(weights(nothing), weights(tiny))
        assert nothing.baseline == tiny.baseline


def test_a_method_whose_network_never_learns_asks_as_one_that_hardly_does():
    """Also with variation, refinement and restarts: the rest of the method goes the same way."""

    def reward(designs):
        return -np.nansum((designs.values - 0.7) ** 2, axis=1) - 0.1 * designs.lengths

    default = replace(preset("default", budget=1000), network=NetworkSettings(learn_scale=True))
    methods = [
        DisCo(SPACE, replace(default, learner=LearnerSettings(learning_rate=rate)), seed=1)
        for rate in (0, 1e-30)
    ]
    for _ in range(30):
        asked = [method.ask() for method in methods]
        assert list(asked[0]) == list(asked[1])
        for method, designs in zip(methods, asked, strict=True):
            method.tell(designs, reward(designs))
    assert methods[0].shares == methods[1].shares
    assert methods[0].restarts == methods[1].restarts


def test_a_batch_without_rewards_teaches_nothing():
    learner = make()
    before, pool = weights(learner), drawn(learner, 0)
    assert learner.learn(replace(pool, rewards=np.full(50, np.nan))).kept == 0
    assert np.array_equal(before, weights(learner))
    assert (learner.updates, learner.baseline) == (0, Baseline())


@pytest.mark.parametrize("rate", [0.01, 0])
def test_a_state_gives_the_same_learner_back(rate):
    learner, again = make(learning_rate=rate), make(learning_rate=rate)
    for seed in range(3):
        learner.learn(drawn(learner, seed))
    again.restore(from_bytes(to_bytes(learner.state())))
    assert (again.updates, again.baseline) == (learner.updates, learner.baseline)
    assert np.array_equal(weights(again), weights(learner))
    for seed in range(3, 6):
        one, other = drawn(learner, seed), drawn(again, seed)
        assert list(one.designs) == list(other.designs)
        assert learner.learn(one) == again.learn(other)
        assert np.array_equal(weights(learner), weights(again))


def test_a_state_does_not_change_afterwards():
    learner = make(learning_rate=0.01)
    state = learner.state()
    kept = {name: array.copy() for name, array in state.arrays.items()}
    learner.learn(drawn(learner, 0))
    assert all(np.array_equal(state.arrays[name], array) for name, array in kept.items())


def test_weights_of_another_network_are_refused():
    other = Learner(symbolic(), LearnerSettings(), NETWORK, np.random.default_rng(0))
    with pytest.raises(ValueError, match="another network"):
        make().restore(other.state())
