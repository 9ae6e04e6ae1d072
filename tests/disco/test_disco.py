"""Ask and tell: in parts, in any order, of designs that were never asked for."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from spaces import decision_tree, small_open, symbolic

from discodso import (
    DeclarationError,
    Design,
    DesignBatch,
    DisCo,
    DisCoSettings,
    FixedSequence,
    InvalidDesignError,
    PolicySettings,
    Repeat,
    Space,
    Task,
    Token,
    TrainingError,
    search,
)
from discodso.disco.training import Baseline
from discodso.space.replay import replay

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


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda disco: disco.ask(-1), "size must be an integer >= 1"),
        (lambda disco: disco.ask(1.5), "size must be"),
        (lambda disco: disco.tell(disco.ask(1), ["x"]), "one number for each design"),
        (lambda disco: DisCo(disco.space, 5), "settings must be a DisCoSettings"),
        (lambda disco: DisCo(disco), "space must be a Space"),
        (lambda disco: DisCo(disco.space, seed=-1), "seed must be an integer >= 0"),
        (lambda disco: DisCo(disco.space, seed="x"), "seed must be an integer >= 0"),
    ],
)
def test_ordinary_mistakes_get_one_line(do, words):
    with pytest.raises(DeclarationError, match=words):
        do(DisCo(small_open(), SMALL))


def test_designs_may_come_from_a_generator_and_settings_from_numpy():
    disco = DisCo(
        small_open(), DisCoSettings(batch_size=np.int64(5), policy=PolicySettings(units=np.int64(4)))
    )
    designs = list(disco.ask())
    assert disco.tell((d for d in designs), np.arange(5.0)) is not None


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
    assert sorted(disco.elite.rewards, reverse=True) == best
    assert len(set(disco.elite.designs)) == 3
    share = np.mean([d in set(disco.elite.designs) for d in disco.ask(300)])
    assert share > 0.5


def test_the_queue_takes_few_of_one_structure_if_asked():
    space = Space([Token("a", range=(0, 1)), Token("b", range=(0, 1))], FixedSequence(3))
    most = {}
    for niche in (0, 2):
        disco = DisCo(space, replace(SMALL, queue_size=6, queue_niche=niche), seed=0)
        for _ in range(3):
            designs = disco.ask()
            disco.tell(designs, [d.tokens.count("a") + 1e-3 * d.values[0] for d in designs])
        skeletons = disco.elite.designs.skeletons()
        assert len(set(disco.elite.designs)) == 6
        most[niche] = max(skeletons.count(s) for s in skeletons)
    assert most == {0: 6, 2: 2}


def log_prob_of_the_queue(settings: DisCoSettings) -> float:
    """After five updates on the same designs."""
    disco = DisCo(decision_tree(), settings, seed=0)
    designs = disco.ask()
    for _ in range(5):
        disco.tell(designs, np.linspace(0, 1, len(designs)))
    assert disco.updates == 5
    return float(disco.policy.score(replay(disco.space, disco.elite.designs)).log_prob.detach().mean())


def test_more_steps_imitate_the_queue_more_closely():
    once = replace(SMALL, queue_size=4, entropy_coefficient=0.0)
    assert log_prob_of_the_queue(replace(once, queue_steps=10)) > log_prob_of_the_queue(once) + 0.05


def test_more_steps_weigh_imitation_against_entropy():
    heavy = replace(SMALL, queue_size=4, queue_steps=10, queue_weight=1.0, entropy_coefficient=0.1)
    light = replace(heavy, queue_weight=1e-3)
    assert log_prob_of_the_queue(heavy) > log_prob_of_the_queue(light) + 0.05


def test_a_queue_without_weight_teaches_nothing():
    learned = []
    for settings in (SMALL, replace(SMALL, queue_size=4, queue_weight=0.0, queue_steps=5)):
        disco = DisCo(symbolic(), settings, seed=0)
        for _ in range(3):
            designs = disco.ask()
            disco.tell(designs, [length_reward(d) for d in designs])
        learned.append(weights(disco))
    assert len(disco.elite) == 4
    assert np.array_equal(*learned)


def test_the_weight_of_imitation_is_that_in_the_loss():
    losses = []
    for weight in (0.0, 0.5, 2.0):
        disco = DisCo(symbolic(), replace(SMALL, queue_size=4, queue_weight=weight), seed=0)
        designs = disco.ask()
        losses.append(disco.tell(designs, [length_reward(d) for d in designs]).loss)
    none, half, two = losses
    assert two - none == pytest.approx(4 * (half - none), rel=1e-4)
    assert half > none


def test_variation_moves_single_values_as_the_settings_say():
    space = Space([Token("x", range=(0, 1))], FixedSequence(12))
    alone = []
    for single in (0.0, 1.0):
        settings = replace(SMALL, batch_size=2, queue_size=2, variation=0.9, variation_single=single)
        disco = DisCo(space, settings, seed=0)
        disco.tell([Design.of(*[("x", value)] * 12) for value in (0.1, 0.6)], [0.0, 1.0])
        assert len(disco.elite) == 2
        moved = [sum(value not in (0.1, 0.6) for value in design.values) for design in disco.ask(400)]
        alone.append(moved.count(1))
    assert alone[1] > alone[0] + 50


@pytest.mark.parametrize("off_policy", [True, False])
def test_varied_designs_teach_only_if_asked(off_policy):
    settings = replace(SMALL, batch_size=20, queue_size=4, variation=0.5, off_policy=off_policy)
    disco = DisCo(symbolic(), settings, seed=0)
    disco.tell(disco.ask(), np.linspace(0, 1, 20))
    designs = disco.ask()  # the varied ones come first
    quantile = disco.tell(designs, [100.0] * 10 + [0.0] * 10).quantile
    assert quantile == (100.0 if off_policy else 0.0)


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


@pytest.mark.parametrize("constant", [100.0, 1e4, 1e200])
def test_one_absurd_value_does_not_stall_learning(constant):
    space = Space([Token("c", range=(-math.inf, math.inf)), Token("a"), Token("b")], FixedSequence(4))
    task = Task(space, lambda d: sum(name == "ab"[i % 2] for i, name in enumerate(d.tokens)) / 4)
    start = [Design.of("a", "b", "a", ("c", constant))]
    settings = DisCoSettings(learning_rate=0.01, policy=PolicySettings(units=16))
    result, undisturbed = (
        search(task, budget=6000, method=settings, initial_designs=first) for first in (start, [])
    )
    # Ten batches, because the mean of a single one moves by 0.1 from batch to batch.
    level, usual = (np.mean([row.mean for row in r.history[-10:]]) for r in (result, undisturbed))
    assert level > usual - 0.03
    assert usual > 0.75


def test_long_gradients_are_shortened_and_reported():
    disco = DisCo(symbolic(), replace(SMALL, max_gradient_norm=1e-3), seed=0)
    designs = disco.ask()
    assert disco.tell(designs, np.arange(64.0)).gradient_norm > 1e-3
    square = sum(float(p.grad.square().sum()) for p in disco.policy.parameters())
    assert math.sqrt(square) == pytest.approx(1e-3, rel=1e-4)


def test_a_batch_of_another_space_is_refused_and_changes_nothing():
    long, short = (Space([Token("x", range=(0, 1)), Token("a")], FixedSequence(n)) for n in (5, 3))
    disco = DisCo(short, replace(SMALL, batch_size=20), seed=0)
    with pytest.raises(InvalidDesignError, match="longer"):
        disco.tell(DisCo(long).ask(20), np.arange(20.0))
    free = DisCo(Space(short.library, FixedSequence(3)), SMALL).ask(20)
    ruled = DisCo(Space(short.library, FixedSequence(3), [Repeat("a", at_most=0)]), SMALL)
    with pytest.raises(InvalidDesignError, match="Repeat"):
        ruled.tell(free, np.arange(20.0))
    assert (disco.baseline, len(disco._pool), disco.updates) == (Baseline(), 0, 0)


def test_rewards_are_copied_when_told():
    disco = DisCo(small_open(), replace(SMALL, batch_size=20), seed=0)
    designs, buffer = disco.ask(20), np.full(10, 100.0)
    disco.tell(designs[:10], buffer)
    buffer[:] = 0
    assert disco.tell(designs[10:], buffer).quantile == 100


def test_designs_that_were_asked_for_cannot_be_changed():
    designs = DisCo(symbolic(), SMALL, seed=0).ask(5)
    with pytest.raises(ValueError, match="read-only"):
        designs.values[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        designs[1:3].tokens[0, 0] = 1


def test_a_value_that_is_not_a_number_is_refused():
    space = Space([Token("x", range=(0, 1))], FixedSequence(2))
    broken = DesignBatch(space.library, np.zeros((1, 2), np.int64), np.array([[0.5, np.nan]]), np.array([2]))
    with pytest.raises(InvalidDesignError, match="outside"):
        DisCo(space, SMALL).tell(broken, [1.0])


def test_the_state_of_torch_around_a_run_does_not_matter():
    def first_weights():
        disco = DisCo(symbolic(), SMALL, seed=0)
        designs = disco.ask()
        disco.tell(designs, np.arange(64.0))
        return weights(disco)

    plain = first_weights()
    with torch.no_grad():
        assert np.array_equal(plain, first_weights())
    torch.set_default_dtype(torch.float64)
    try:
        assert np.array_equal(plain, first_weights())
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_same_seed_sequence_gives_the_same_run_twice():
    sequence = np.random.SeedSequence(7)
    first, second = (DisCo(symbolic(), SMALL, seed=sequence).ask(5) for _ in range(2))
    assert list(first) == list(second)


def test_two_threads_at_once_do_not_interfere():
    def run(seed):
        return search(Task(symbolic(), length_reward), budget=640, seed=seed, method=SMALL).top

    alone = [run(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, (1, 2))) == alone


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
        ({"queue_steps": 0}, "queue_steps"),
        ({"queue_niche": -1}, "queue_niche"),
        ({"queue_weight": math.nan}, "queue_weight"),
        ({"policy": {}}, "policy"),
    ],
)
def test_bad_settings_name_their_key(bad, word):
    with pytest.raises(DeclarationError, match=word):
        DisCoSettings(**bad)
