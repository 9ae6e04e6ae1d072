"""Ask and tell: in parts, in any order, of designs that were never asked for."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from killing import comparable
from spaces import decision_tree, small_open, symbolic

from discodso import (
    DeclarationError,
    Design,
    DesignBatch,
    DisCo,
    DisCoSettings,
    FixedSequence,
    InvalidDesignError,
    NetworkSettings,
    Repeat,
    Space,
    State,
    Task,
    Token,
    TrainingError,
    preset,
    resume,
    search,
)
from discodso.disco.scripts import Scripts, script_of
from discodso.disco.settings import (
    ArchiveSettings,
    LearnerSettings,
    RefinementSettings,
    RestartSettings,
    TaskRefinementSettings,
    VariationSettings,
)
from discodso.disco.training import Baseline
from discodso.run.checkpoint import from_bytes, to_bytes

SMALL = DisCoSettings(batch_size=64, network=NetworkSettings(units=8))


def length_reward(design: Design) -> float:
    return -abs(len(design) - 9) / 10 + sum(v for v in design.values if v is not None) / 100


def weights(disco: DisCo) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in disco.policy.parameters()])


def test_defaults_are_the_papers():
    settings = DisCoSettings()
    s, p = settings.learner, settings.network
    assert (s.learning_rate, s.entropy_coefficient, s.risk_factor, s.baseline_coefficient) == (
        0.001,
        0.01,
        0.2,
        0.5,
    )
    assert (p.cell, p.layers, p.units, p.scale, p.learn_scale, p.shift) == ("lstm", 1, 32, 0.5, False, 0.0)
    assert settings == DisCoSettings(archive=None, variation=None, refinement=None, restarts=None)
    assert not settings.adaptive


def test_the_first_designs_of_a_seed_do_not_change_by_accident():
    """A golden sample: weights and draws come from NumPy's streams, so it holds on every machine."""
    first = DisCo(symbolic(), preset("paper"), seed=0).ask(4)
    assert [len(d) for d in first] == [9, 32, 26, 32]
    assert str(first[0]) == "cos(mul(mul(sub(log(one), x1), x1), x1))"


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
    disco = DisCo(small_open(), replace(SMALL, learner=LearnerSettings(learning_rate=0.02)), seed=0)
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
        (lambda disco: disco.tell(disco.ask(1), ["x"]), "rewards that are numbers"),
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
        small_open(), DisCoSettings(batch_size=np.int64(5), network=NetworkSettings(units=np.int64(4)))
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


def test_the_archive_holds_the_best_distinct_designs():
    disco = DisCo(small_open(), replace(SMALL, archive=ArchiveSettings(size=3)), seed=0)
    seen: dict[Design, float] = {}
    for _ in range(60):
        designs = disco.ask()
        rewards = [hash(d.tokens) % 1 + sum(map(ord, "".join(d.tokens))) % 17 for d in designs]
        seen.update(zip(designs, rewards, strict=True))
        disco.tell(designs, rewards)
    best = sorted(seen.values(), reverse=True)[:3]
    assert disco.archive.members.rewards.tolist() == best
    assert len(set(disco.archive.members.designs)) == 3
    assert all(seen[d] in best for d in disco.archive.members.designs)


def test_the_archive_takes_few_of_one_structure_if_asked():
    space = Space([Token("a", range=(0, 1)), Token("b", range=(0, 1))], FixedSequence(3))
    most = {}
    for niche in (0, 2):
        disco = DisCo(space, replace(SMALL, archive=ArchiveSettings(size=6, niche=niche)), seed=0)
        for _ in range(3):
            designs = disco.ask()
            disco.tell(designs, [d.tokens.count("a") + 1e-3 * d.values[0] for d in designs])
        skeletons = disco.archive.members.designs.skeletons()
        assert len(set(disco.archive.members.designs)) == 6
        most[niche] = max(skeletons.count(s) for s in skeletons)
    assert most == {0: 6, 2: 2}


def test_an_archive_alone_teaches_nothing():
    learned = []
    for settings in (SMALL, replace(SMALL, archive=ArchiveSettings(size=4))):
        disco = DisCo(symbolic(), settings, seed=0)
        for _ in range(3):
            designs = disco.ask()
            disco.tell(designs, [length_reward(d) for d in designs])
        learned.append(weights(disco))
    assert len(disco.archive) == 4
    assert np.array_equal(*learned)


def test_variation_moves_single_values_as_the_settings_say():
    space = Space([Token("x", range=(0, 1))], FixedSequence(12))
    alone = []
    for single in (0.0, 1.0):
        settings = replace(
            SMALL,
            batch_size=2,
            archive=ArchiveSettings(size=2),
            variation=VariationSettings(share=0.9, single=single),
        )
        disco = DisCo(space, settings, seed=0)
        disco.tell([Design.of(*[("x", value)] * 12) for value in (0.1, 0.6)], [0.0, 1.0])
        assert len(disco.archive) == 2
        moved = [sum(value not in (0.1, 0.6) for value in design.values) for design in disco.ask(400)]
        alone.append(moved.count(1))
    assert alone[1] > alone[0] + 50


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
    disco = DisCo(space, replace(SMALL, network=NetworkSettings(units=8, learn_scale=True)), seed=0)
    for scale in (1e-300, 1e300, 1.0):
        designs = [*disco.ask(40), *[Design.of(("v", 1e12), ("v", -1e12), ("w", 5e-10))] * 24]
        metrics = disco.tell(designs, np.linspace(-1, 1, 64) * scale)
        assert math.isfinite(metrics.loss)
        assert np.isfinite(weights(disco)).all()


@pytest.mark.parametrize("constant", [100.0, 1e4, 1e200])
def test_one_absurd_value_does_not_stall_learning(constant):
    space = Space([Token("c", range=(-math.inf, math.inf)), Token("a"), Token("b")], FixedSequence(4))
    settings = DisCoSettings(learner=LearnerSettings(learning_rate=0.01), network=NetworkSettings(units=16))

    def means(first):
        disco, found = DisCo(space, settings, seed=0), []
        for _ in range(60):
            designs = [*first, *disco.ask(100 - len(first))]
            rewards = [sum(name == "ab"[i % 2] for i, name in enumerate(d.tokens)) / 4 for d in designs]
            disco.tell(designs, rewards)
            found.append(np.mean(rewards))
            first = []
        return found

    result, undisturbed = means([Design.of("a", "b", "a", ("c", constant))]), means([])
    # Ten batches, because the mean of a single one moves by 0.1 from batch to batch.
    level, usual = (np.mean(found[-10:]) for found in (result, undisturbed))
    assert level > usual - 0.03
    assert usual > 0.75


def test_long_gradients_are_shortened_if_there_is_a_limit():
    def norm(limit: float) -> float:
        settings = LearnerSettings(max_gradient_norm=limit, normalise_advantages=False)
        disco = DisCo(symbolic(), replace(SMALL, learner=settings), seed=0)
        disco.tell(disco.ask(), 100 * np.arange(64.0))
        return math.sqrt(sum(float(p.grad.square().sum()) for p in disco.policy.parameters()))

    assert norm(1e-3) == pytest.approx(1e-3, rel=1e-4)
    assert norm(0) > 100


def test_a_batch_of_another_space_is_refused_and_changes_nothing():
    long, short = (Space([Token("x", range=(0, 1)), Token("a")], FixedSequence(n)) for n in (5, 3))
    disco = DisCo(short, replace(SMALL, batch_size=20), seed=0)
    with pytest.raises(InvalidDesignError, match="longer"):
        disco.tell(DisCo(long).ask(20), np.arange(20.0))
    free = DisCo(Space(short.library, FixedSequence(3)), SMALL).ask(20)
    ruled = DisCo(Space(short.library, FixedSequence(3), [Repeat("a", at_most=0)]), SMALL)
    with pytest.raises(InvalidDesignError, match="Repeat"):
        ruled.tell(free, np.arange(20.0))
    assert (disco._start.learner.baseline, len(disco._start._pool), disco.updates) == (Baseline(), 0, 0)


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
    with pytest.raises(InvalidDesignError, match="finite number"):
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


def test_disco_alone_is_the_default_for_the_budget():
    assert DisCo(small_open()).settings == preset("default")
    for budget in (100, 5000, 10**6):
        assert DisCo(small_open(), budget=budget).settings == preset("default", budget=budget)
    first, second = DisCo(symbolic(), budget=5000, seed=3), DisCo(symbolic(), preset(budget=5000), seed=3)
    for _ in range(4):
        asked, same = first.ask(), second.ask()
        assert list(asked) == list(same)
        first.tell(asked, [length_reward(d) for d in asked])
        second.tell(same, [length_reward(d) for d in same])
    assert first.shares == second.shares
    with pytest.raises(DeclarationError, match="settings or a budget, not both"):
        DisCo(small_open(), preset("paper"), budget=100)
    with pytest.raises(DeclarationError, match="budget must be an integer >= 1"):
        DisCo(small_open(), budget=0)


# ------------------------------------------------------------------------------ proposers of one's own

NUMBERS = Space([Token("x", range=(0, 1)), Token("y", range=(0, 1))], FixedSequence(3))


class Counted:
    """Proposes designs that are counted up by their first value, in one of the ways that a proposer may."""

    name = "counted"
    share = 0.25

    def __init__(self, space: Space, form: str = "designs") -> None:
        self.space, self.form, self.count = space, form, 0
        self.told: list[tuple[Design, float]] = []
        self.archived: list[int] = []

    def propose(self, archive, count, rng):
        if not len(archive):
            return None
        first = np.arange(self.count, self.count + count) / 1000
        self.count += count
        designs = [Design.of(("y", v), ("y", float(rng.random())), ("x", 0.5)) for v in first.tolist()]
        if self.form == "designs":
            return designs
        batch = self.space.encode(designs)
        if self.form == "batch":
            return batch
        return Scripts.of(self.space, [script_of(batch, row) for row in range(len(batch))])

    def learn(self, told, archive):
        self.told += zip(told.designs, told.rewards.tolist(), strict=True)
        self.archived.append(len(archive))

    def state(self):
        return State(data={"count": self.count})

    def restore(self, state):
        self.count = int(state.data["count"])


def with_proposer(make, **changed) -> DisCoSettings:
    return replace(SMALL, batch_size=40, archive=ArchiveSettings(size=10), proposers=(make,), **changed)


def first_value_reward(designs: DesignBatch) -> np.ndarray:
    return np.cos(9 * designs.values[:, 0]) - designs.values[:, 1]


@pytest.mark.parametrize("form", ["designs", "batch", "scripts"])
def test_a_proposer_of_ones_own_gets_its_share_and_is_told_its_own_designs(form):
    built: list[Counted] = []

    def make(space):
        built.append(Counted(space, form))
        return built[-1]

    disco = DisCo(NUMBERS, with_proposer(make), seed=0)
    assert disco.shares == {"policy": 0.75, "counted": 0.25}
    (own,) = built
    rewards: dict[Design, float] = {}
    for batch in range(4):
        asked = disco.ask()
        assert len(asked) == 40
        assert own.count == 10 * batch  # nothing before there is an archive
        assert sum(d.values[0] * 1000 in range(own.count) for d in asked) == (10 if batch else 0)
        told = first_value_reward(asked)
        rewards |= dict(zip(asked, told.tolist(), strict=True))
        metrics = disco.tell(asked, told)
        assert metrics.shares == {"policy": 0.75, "counted": 0.25}
    assert [d.values[0] for d, _ in own.told] == [k / 1000 for k in range(30)]
    assert all(rewards[d] == reward for d, reward in own.told)
    assert own.archived == [10] * 4
    best = {d for d, reward in own.told if reward >= disco.archive.members.rewards[-1]}
    assert best  # they enter the archive like all others
    assert best <= set(disco.archive.members.designs)


def test_fewer_designs_than_wanted_are_made_up_by_the_network():
    class Sparse(Counted):
        def propose(self, archive, count, rng):
            return super().propose(archive, min(count, 3), rng)

    disco = DisCo(NUMBERS, with_proposer(Sparse), seed=0)
    for own in (0, 3, 3):
        asked = disco.ask()
        assert len(asked) == 40
        assert sum(d.values[0] * 1000 in range(10) for d in asked) == own
        disco.tell(asked, first_value_reward(asked))


@pytest.mark.parametrize("form", ["designs", "batch", "scripts"])
def test_a_proposer_of_ones_own_goes_on_exactly_from_a_state(form):
    def build():
        settings = with_proposer(
            lambda space: Counted(space, form), variation=VariationSettings(), adaptive=True
        )
        return DisCo(NUMBERS, settings, seed=2)

    disco = build()
    for _ in range(6):
        state = from_bytes(to_bytes(disco.state()))
        twin = build()
        twin.restore(state)
        asked, same = disco.ask(), twin.ask()
        assert list(asked) == list(same)
        half = slice(0, 15), slice(15, None)
        for method, designs in ((disco, asked), (twin, same)):
            for part in half:
                method.tell(designs.select(part), first_value_reward(designs.select(part)))
        assert disco.shares == twin.shares
        assert np.array_equal(weights(disco), weights(twin))
    assert set(disco.shares) == {"policy", "variation", "counted"}


def test_a_state_between_ask_and_tell_knows_who_proposed():
    built: list[Counted] = []

    def make(space):
        built.append(Counted(space))
        return built[-1]

    disco, twin = (DisCo(NUMBERS, with_proposer(make), seed=0) for _ in range(2))
    asked = disco.ask()
    disco.tell(asked, first_value_reward(asked))
    asked = disco.ask()
    disco.tell(asked.select(slice(5)), first_value_reward(asked.select(slice(5))))
    twin.restore(from_bytes(to_bytes(disco.state())))
    for method in (disco, twin):
        rest = asked.select(slice(5, None))
        method.tell(rest, first_value_reward(rest))
    assert len(built[0].told) == 10
    assert built[0].told == built[-1].told  # restoring begins with a fresh one


def test_illegal_proposals_are_refused():
    def asked(proposed):
        class Wrong(Counted):
            def propose(self, archive, count, rng):
                return proposed(count) if len(archive) else None

        disco = DisCo(NUMBERS, with_proposer(Wrong), seed=0)
        first = disco.ask()
        disco.tell(first, first_value_reward(first))
        return disco.ask()

    good = Design.of(("x", 0.1), ("x", 0.2), ("y", 0.3))
    assert good in list(asked(lambda count: [good]))
    with pytest.raises(InvalidDesignError, match="outside"):
        asked(lambda count: [Design.of(("x", 0.1), ("x", 0.2), ("y", 1.3))])
    with pytest.raises(InvalidDesignError):
        asked(lambda count: [Design.of(("x", 0.1))])
    with pytest.raises(DeclarationError, match="counted proposed 11 designs where 10 were wanted"):
        asked(lambda count: [good] * (count + 1))
    other = Space(NUMBERS.library, FixedSequence(2))
    with pytest.raises(InvalidDesignError):
        asked(lambda count: DisCo(other, SMALL).ask(3))


def test_a_search_with_a_proposer_of_ones_own_goes_on_exactly(tmp_path):
    task = Task(NUMBERS, lambda d: math.cos(9 * d.values[0]) - d.values[1])
    settings = with_proposer(Counted, adaptive=True)
    whole = search(task, budget=400, method=settings)
    assert set(whole.history[-1].shares) == {"policy", "counted"}
    search(task, budget=170, method=settings, out=tmp_path / "run")
    assert comparable(resume(tmp_path / "run", task=task, method=settings, budget=400)) == comparable(whole)


def test_with_rechecking_designs_of_an_exact_task_still_join_the_archive():
    """They join with their second reward, which an exact task gives without a call."""
    space = Space([Token("a"), Token("b")], FixedSequence(8))
    settings = replace(SMALL, batch_size=10, archive=ArchiveSettings(size=4, recheck=0.5))
    built, paid = [], []

    class Noted:
        def build(self, space, seed):
            built.append(settings.build(space, seed))
            return built[-1]

    def objective(design):
        paid.append(design)
        return float(design.tokens.count("a"))

    search(Task(space, objective), budget=100, method=Noted())
    assert len(built[0].archive) == 4
    assert len(paid) == len(set(paid)) == 100
    assert replace(settings, archive=ArchiveSettings(size=4)).build(space, 0).redraws
    assert not settings.build(space, 0).redraws
    assert not SMALL.build(space, 0).redraws


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 10.0}, "batch_size"),
        ({"network": {}}, "network must be of type NetworkSettings"),
        ({"network": None, "learner": LearnerSettings(risk_factor=0.3)}, "learner needs a network"),
        ({"screen": 10}, "screen must be of type ScreenSettings, or None"),
        ({"learner": 0.001}, "learner must be of type LearnerSettings"),
        ({"archive": 20}, "archive must be of type ArchiveSettings, or None"),
        ({"variation": 0.3}, "variation must be of type VariationSettings, or None"),
        ({"refinement": 0.3}, "refinement must be of type RefinementSettings, or None"),
        ({"task_refinement": 0.3}, "task_refinement must be of type TaskRefinementSettings, or None"),
        ({"restarts": 20}, "restarts must be of type RestartSettings, or None"),
        ({"proposers": (5,)}, "proposers"),
        ({"proposers": "ab"}, "proposers must be a tuple"),
        ({"proposers": object}, "proposers must be a tuple"),
        (
            {
                "archive": ArchiveSettings(),
                "variation": VariationSettings(share=0.6),
                "refinement": RefinementSettings(share=0.4),
            },
            "at most 0.9 together",
        ),
    ],
)
def test_bad_settings_name_their_key(bad, word):
    with pytest.raises(DeclarationError, match=word):
        DisCoSettings(**bad)


@pytest.mark.parametrize(
    ("part", "bad", "word"),
    [
        (LearnerSettings, {"learning_rate": -1e-3}, "learning_rate"),
        (LearnerSettings, {"learning_rate": "fast"}, "learning_rate"),
        (LearnerSettings, {"learning_rate": math.nan}, "learning_rate"),
        (LearnerSettings, {"risk_factor": 0.0}, "risk_factor"),
        (LearnerSettings, {"risk_factor": 1.5}, "risk_factor"),
        (LearnerSettings, {"entropy_coefficient": -1}, "entropy_coefficient"),
        (LearnerSettings, {"baseline_coefficient": 1.0}, "baseline_coefficient"),
        (LearnerSettings, {"max_gradient_norm": -1}, "max_gradient_norm"),
        (NetworkSettings, {"coordinates": "log"}, "coordinates"),
        (ArchiveSettings, {"size": 0}, "size"),
        (ArchiveSettings, {"niche": -1}, "niche"),
        (ArchiveSettings, {"niche_length": -1}, "niche_length"),
        (ArchiveSettings, {"recheck": 0.6}, "recheck"),
        (VariationSettings, {"share": 0.0}, "share"),
        (VariationSettings, {"single": 1.1}, "single"),
        (RefinementSettings, {"share": 0.95}, "share"),
        (TaskRefinementSettings, {"share": 0.0}, "share"),
        (TaskRefinementSettings, {"calls": 0}, "calls"),
        (RestartSettings, {"batches": 0}, "batches"),
        (RestartSettings, {"patience": -1}, "patience"),
        (RestartSettings, {"least_gain": -1}, "least_gain"),
    ],
)
def test_bad_settings_of_parts_name_their_key(part, bad, word):
    with pytest.raises(DeclarationError, match=word):
        part(**bad)
