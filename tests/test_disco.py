"""Ask and tell: in parts, in any order, of designs that were never asked for."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from spaces import decision_tree, small_open, symbolic

from discodso import (
    DeclarationError,
    Design,
    DisCo,
    DisCoSettings,
    FixedSequence,
    InvalidDesignError,
    PolicySettings,
    Space,
    Token,
    TrainingError,
)

SMALL = DisCoSettings(batch_size=64, policy=PolicySettings(units=8))


def length_reward(design: Design) -> float:
    return -abs(len(design) - 9) / 10 + sum(v for v in design.values if v is not None) / 100


def weights(disco: DisCo) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in disco.policy.parameters()])


def test_defaults_are_the_papers():
    s = DisCoSettings()
    assert (s.learning_rate, s.entropy_coefficient, s.risk_factor, s.baseline_coefficient) == (
        0.001,
        0.01,
        0.2,
        0.5,
    )
    p = s.policy
    assert (p.cell, p.layers, p.units, p.scale, p.learn_scale, p.shift) == ("lstm", 1, 32, 0.5, False, 0.0)
    assert p.distribution == "normal"


def test_the_first_designs_of_a_seed_do_not_change_by_accident():
    """A golden sample: weights and draws come from NumPy's streams, so it holds on every machine."""
    first = DisCo(symbolic(), seed=0).ask(4)
    assert [len(d) for d in first] == [9, 32, 26, 32]
    assert str(first[0]) == "⟨cos, mul, mul, sub, log, one, x1, x1, x1⟩"


def test_one_ask_and_tell_is_one_update():
    disco = DisCo(symbolic(), SMALL, seed=0)
    before = weights(disco)
    designs = disco.ask()
    assert len(designs) == 64
    metrics = disco.tell(designs, [length_reward(d) for d in designs])
    assert metrics.kept >= 13
    assert disco.updates == 1
    assert not np.array_equal(before, weights(disco))


def test_telling_in_parts_waits_for_a_full_batch():
    disco = DisCo(symbolic(), SMALL, seed=0)
    designs = list(disco.ask())
    rewards = [length_reward(d) for d in designs]
    assert disco.tell(designs[:10], rewards[:10]) is None
    assert disco.tell(designs[50:], rewards[50:]) is None
    assert disco.tell(designs[10:49], rewards[10:49]) is None
    assert disco.tell([], []) is None
    assert disco.updates == 0
    assert disco.tell(designs[49:50], rewards[49:50]) is not None
    assert disco.updates == 1


def test_the_order_of_telling_does_not_matter():
    def after(order):
        disco = DisCo(symbolic(), SMALL, seed=3)
        designs = list(disco.ask())
        shuffled = [designs[i] for i in order]
        for part in (shuffled[:20], shuffled[20:]):
            disco.tell(part, [length_reward(d) for d in part])
        return weights(disco)

    np.testing.assert_allclose(after(range(64)), after(np.random.default_rng(0).permutation(64)), atol=1e-5)


def test_telling_as_batch_or_as_designs_is_the_same():
    first, second = (DisCo(small_open(), SMALL, seed=5) for _ in range(2))
    for _ in range(3):
        one, two = first.ask(), second.ask()
        first.tell(one, [length_reward(d) for d in one])
        second.tell(list(two), [length_reward(d) for d in two])
    assert np.array_equal(weights(first), weights(second))


def test_designs_never_asked_for_teach():
    """A design told again and again with the highest reward becomes likely."""
    disco = DisCo(small_open(), replace(SMALL, learning_rate=0.02), seed=0)
    wanted = Design.of("c", "b", "c", "b")
    for _ in range(80):
        designs = [*disco.ask(56), *[wanted] * 8]
        disco.tell(designs, [float(d == wanted) + 0.1 * len(d) for d in designs])
    assert sum(d == wanted for d in disco.ask(200)) > 40


def test_told_designs_must_belong_to_the_space():
    disco = DisCo(symbolic(), SMALL, seed=0)
    with pytest.raises(InvalidDesignError, match="NoNesting"):
        disco.tell([Design.of("sin", "cos", "add", "x1", "x2")], [1.0])
    with pytest.raises(InvalidDesignError, match="open slot"):
        disco.tell([Design.of("add", "x1")], [1.0])
    with pytest.raises(InvalidDesignError, match="outside"):
        DisCo(decision_tree(), SMALL).tell([Design.of(("x1<", 9.0), "a1", "a2")], [1.0])
    with pytest.raises(DeclarationError, match="2 designs and rewards of shape"):
        disco.tell([Design.of("add", "x1", "exp", "x2")] * 2, [1.0])


def test_failed_designs_never_teach():
    disco = DisCo(symbolic(), SMALL, seed=0)
    before = weights(disco)
    designs = disco.ask()
    assert disco.tell(designs, np.full(64, -math.inf)).kept == 0
    assert np.array_equal(before, weights(disco))
    designs = disco.ask()
    rewards = np.array([length_reward(d) for d in designs])
    rewards[::2] = np.nan
    metrics = disco.tell(designs, rewards)
    assert metrics.kept > 0
    assert np.isfinite(weights(disco)).all()


def test_the_queue_holds_the_best_distinct_designs_and_is_imitated():
    settings = replace(SMALL, queue_size=3, queue_weight=5.0, learning_rate=0.01, entropy_coefficient=0.0)
    disco = DisCo(small_open(), settings, seed=0)
    seen: dict[Design, float] = {}
    for _ in range(60):
        designs = disco.ask()
        rewards = [hash(d.tokens) % 1 + sum(map(ord, "".join(d.tokens))) % 17 for d in designs]
        seen.update(zip(designs, rewards, strict=True))
        disco.tell(designs, rewards)
    best = sorted(seen.values(), reverse=True)[:3]
    assert sorted(disco._queue.rewards, reverse=True) == best
    assert len(set(disco._queue.designs)) == 3
    share = np.mean([d in set(disco._queue.designs) for d in disco.ask(300)])
    assert share > 0.5


def test_two_runs_interleaved_do_not_meet():
    def steps(disco, count):
        for _ in range(count):
            designs = disco.ask()
            disco.tell(designs, [length_reward(d) for d in designs])

    alone = [DisCo(symbolic(), SMALL, seed=s) for s in (1, 2)]
    for disco in alone:
        steps(disco, 4)
    together = [DisCo(symbolic(), SMALL, seed=s) for s in (1, 2)]
    for _ in range(4):
        for disco in together:
            steps(disco, 1)
    for a, b in zip(alone, together, strict=True):
        assert np.array_equal(weights(a), weights(b))


def test_the_number_of_torch_threads_is_left_as_it_was():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        disco = DisCo(symbolic(), SMALL, seed=0)
        designs = disco.ask()
        disco.tell(designs, np.arange(64.0))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_extreme_rewards_and_values_give_finite_updates():
    space = Space([Token("v", range=(-math.inf, math.inf)), Token("w", range=(0, 1e-9))], FixedSequence(3))
    disco = DisCo(space, replace(SMALL, policy=PolicySettings(units=8, learn_scale=True)), seed=0)
    for scale in (1e-300, 1e300, 1.0):
        designs = [*disco.ask(40), *[Design.of(("v", 1e12), ("v", -1e12), ("w", 5e-10))] * 24]
        metrics = disco.tell(designs, np.linspace(-1, 1, 64) * scale)
        assert math.isfinite(metrics.loss)
        assert np.isfinite(weights(disco)).all()


def test_broken_weights_are_reported_not_silently_trained_on():
    disco = DisCo(symbolic(), SMALL, seed=0)
    designs = disco.ask()
    with torch.no_grad():
        disco.policy.heads.weight[0, 0] = math.nan
    with pytest.raises(TrainingError, match="non-finite log_prob of the tokens"):
        disco.tell(designs, np.arange(64.0))
    with torch.no_grad():
        disco.policy.heads.weight[:] = math.nan
    with pytest.raises(TrainingError, match="NaN"):
        disco.ask()


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 10.0}, "batch_size"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"risk_factor": 0.0}, "risk_factor"),
        ({"risk_factor": 1.5}, "risk_factor"),
        ({"entropy_coefficient": -1}, "entropy_coefficient"),
        ({"baseline_coefficient": 1.0}, "baseline_coefficient"),
        ({"queue_size": -1}, "queue_size"),
        ({"queue_weight": math.nan}, "queue_weight"),
        ({"policy": {}}, "policy"),
    ],
)
def test_bad_settings_name_their_key(bad, word):
    with pytest.raises(DeclarationError, match=word):
        DisCoSettings(**bad)
