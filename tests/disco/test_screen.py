"""The screen: an exact Gaussian process that finds good candidates, and remembers all that it needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, rankdata
from spaces import decision_tree, valued_sequence

from discodso import DisCo, State, Task, preset, search
from discodso.disco import screen as module
from discodso.disco.archive import Pool
from discodso.disco.features import features
from discodso.disco.screen import Process, Screen, normal_scores
from discodso.disco.settings import ScreenSettings

SPACE = valued_sequence()


def reward(design):
    return -sum(abs((value or 0.0) - 0.3) for value in design.values) - 0.1 * len(design)


def pool(count, seed=0):
    designs = SPACE.sample(count, seed=seed)
    return Pool(designs, np.array([reward(design) for design in designs]), np.ones(count))


def test_normal_scores_are_those_of_ranks():
    rewards = np.array([3.0, -1.0, 2.0, 2.0, -np.inf, np.nan])
    ranks = rankdata(np.where(np.isfinite(rewards), rewards, -np.inf))
    assert normal_scores(rewards) == pytest.approx(norm.ppf((ranks - 0.5) / 6))
    assert normal_scores(10 * rewards) == pytest.approx(normal_scores(rewards))


def test_the_process_is_that_of_the_textbook():
    """Rasmussen and Williams, equations 2.23 and 2.24, with plain inverses."""
    known, other = pool(40), pool(10, seed=1)
    blocks, targets = features(SPACE, known.designs), normal_scores(known.rewards)
    noise = np.linspace(0.5, 2, 40)
    process = Process.fit(blocks, targets, noise, ((0.5, 0.3, 0.2), 0.7, 0.1))

    def kernel(one, two):
        distances = np.zeros((len(one[0]), len(two[0])))
        for weight, a, b, all_ in zip((0.5, 0.3, 0.2), one, two, blocks, strict=True):
            pairs = ((all_[:, None] - all_[None]) ** 2).sum(axis=2)
            distances += weight * ((a[:, None] - b[None]) ** 2).sum(axis=2) / pairs.mean()
        return np.exp(-distances / 0.7)

    new = features(SPACE, other.designs)
    inverse = np.linalg.inv(kernel(blocks, blocks) + 0.1 * np.diag(noise))
    cross = kernel(new, blocks)
    mean, deviation = process.predict(new)
    assert mean == pytest.approx(cross @ inverse @ targets, abs=1e-6)
    assert deviation**2 == pytest.approx(1 - np.einsum("ij,jk,ik->i", cross, inverse, cross), abs=1e-6)


def test_the_shape_has_the_highest_likelihood():
    known = pool(60)
    blocks, targets = features(SPACE, known.designs), normal_scores(known.rewards)
    chosen = Process.fit(blocks, targets, np.ones(60), None)

    def likelihood(process):
        covariance = process._kernel(process._scaled(blocks)) + (process.shape[2] + 1e-9) * np.eye(60)
        sign, determinant = np.linalg.slogdet(covariance)
        assert sign > 0
        return -0.5 * targets @ np.linalg.solve(covariance, targets) - 0.5 * determinant

    for shape in [((0.15, 0.15, 0.7), 0.1, 0.3), ((1 / 3, 1 / 3, 1 / 3), 1.0, 0.03)]:
        assert likelihood(chosen) >= likelihood(replace(chosen, shape=shape)) - 1e-9


def test_what_passes_is_better_than_chance():
    screen, rng = Screen(SPACE, ScreenSettings(unscreened=0.0)), np.random.default_rng(0)
    screen.add(pool(200))
    candidates = pool(500, seed=2)
    chosen = screen.choose(candidates.designs, 50, rng)
    assert len(set(chosen.tolist())) == 50
    assert candidates.rewards[chosen].mean() > np.quantile(candidates.rewards, 0.75)


def test_many_candidates_are_rated_in_parts(monkeypatch):
    screen, candidates = Screen(SPACE, ScreenSettings()), pool(300, seed=2).designs
    screen.add(pool(100))
    whole = screen.choose(candidates, 40, np.random.default_rng(0))
    monkeypatch.setattr(module, "_AT_ONCE", 70)
    assert np.array_equal(screen.choose(candidates, 40, np.random.default_rng(0)), whole)


def test_some_places_are_not_screened():
    screen, rng = Screen(SPACE, ScreenSettings(unscreened=1.0)), np.random.default_rng(0)
    screen.add(pool(100))
    assert sorted(screen.choose(pool(50, seed=3).designs, 10, rng).tolist()) == list(range(10))


def test_equal_candidates_pass_once_if_there_are_others():
    screen, rng = Screen(SPACE, ScreenSettings()), np.random.default_rng(0)
    screen.add(pool(100))
    few = pool(5, seed=4).designs
    chosen = screen.choose(few.select(np.array([0, 0, 0, 1, 2, 2])), 3, rng)
    assert {0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 2}[int(chosen[0])] in (0, 1, 2)
    assert len({(0, 0, 0, 1, 2, 2)[row] for row in chosen.tolist()}) == 3


def test_it_works_between_its_first_and_last_call():
    screen = Screen(SPACE, ScreenSettings(candidates=7, first=40, last=100))
    seen = []
    for seed in range(6):
        screen.add(pool(20, seed))
        seen.append(screen.candidates)
    assert seen == [1, 7, 7, 7, 1, 1]


def test_it_keeps_the_best_and_the_last_designs():
    screen = Screen(SPACE, ScreenSettings(last=10_000))
    whole = pool(2_000)
    for at in range(0, 2_000, 100):
        screen.add(whole.select(np.arange(at, at + 100)))
    known = screen.state().arrays["rewards"]
    assert len(known) <= 600
    assert np.isin(np.sort(whole.rewards)[-100:], known).all()
    assert np.isin(whole.rewards[-300:], known).all()


def test_it_goes_on_from_a_state():
    first, second = (Screen(SPACE, ScreenSettings()) for _ in range(2))
    first.add(pool(60))
    first.choose(pool(30, seed=5).designs, 3, np.random.default_rng(0))
    second.restore(first.state())
    for screen in (first, second):
        screen.add(pool(20, seed=6))
    candidates = pool(100, seed=7).designs
    one, two = (
        screen.choose(candidates, 10, np.random.default_rng(1)).tolist() for screen in (first, second)
    )
    assert one == two


@pytest.mark.parametrize("space", [SPACE, decision_tree()])
def test_a_method_with_a_screen_asks_for_as_many_designs_as_are_wanted(space):
    disco = DisCo(space, preset(budget=200), seed=0)
    for _ in range(6):
        designs = disco.ask(17)
        assert len(designs) == 17
        disco.tell(designs, [reward(design) for design in designs])
    assert disco.policy is None


def test_the_screen_saves_calls():
    def best(settings):
        return np.mean(
            [search(Task(SPACE, reward), budget=150, seed=s, method=settings).best.reward for s in range(5)]
        )

    default = preset(budget=150)
    assert best(default) > best(replace(default, screen=None))


def test_failed_designs_do_no_harm():
    def failing(design):
        if len(design) % 2:
            raise ValueError
        return reward(design)

    result = search(Task(SPACE, failing), budget=150, seed=0)
    assert result.best is not None
    assert result.calls == 150


class Asked:
    """A proposer that notes how many designs are wanted, and draws them."""

    name = "asked"

    def __init__(self, space):
        self.counts = []

    def propose(self, archive, count, rng):
        self.counts.append(count)
        return list(SPACE.sample(count, seed=rng))

    def learn(self, told, archive):
        pass

    def state(self):
        return State()

    def restore(self, state):
        pass


def test_variation_fresh_draws_and_proposers_that_ask_for_it_are_screened(monkeypatch):
    plain, screened = Asked(SPACE), Asked(SPACE)
    screened.name, screened.screened = "also asked", True
    method = replace(preset(budget=1000), proposers=(lambda space: plain, lambda space: screened))
    disco, choose, seen = DisCo(SPACE, method, seed=0), Screen.choose, []

    def noting(self, designs, count, rng):
        seen.append((len(designs), count))
        return choose(self, designs, count, rng)

    monkeypatch.setattr(Screen, "choose", noting)
    for _ in range(3):
        designs = disco.ask(40)
        assert len(designs) == 40
        disco.tell(designs, [reward(design) for design in designs])
    assert len(seen) == 2 * 3  # the last two batches: variation, fresh draws, and one of the proposers
    assert all(many == 10 * count for many, count in seen)
    assert max(plain.counts) < 10 <= max(screened.counts)
