"""A noisy search ends with a race of its best designs on fresh seeds, which chooses the winner."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from killing import comparable, killed_and_resumed

from discodso import (
    CheckpointError,
    DeadEndError,
    DeclarationError,
    Design,
    FixedSequence,
    RandomSettings,
    SettingsError,
    Space,
    StopReason,
    Task,
    Token,
    resume,
    search,
)
from discodso.report.folders import read_run
from discodso.report.page_data import page_data
from discodso.run.curves import Track, batch_rewards, token_shares
from discodso.run.folder import read_history
from discodso.run.plan import Plan
from discodso.run.race import Race
from discodso.run.result import CANDIDATES, Ranking, Scored
from discodso.run.settings import parse
from discodso.run.start import start
from discodso.space.state import State

SPACE = Space([Token("a", range=(0, 1)), Token("b", range=(0, 1))], FixedSequence(2))
NOISE = 0.3


def true_reward(design: Design) -> float:
    """Best where both values are 0.7; b costs a little."""
    return -sum((value - 0.7) ** 2 + 0.02 * (name == "b") for name, value in design)


def noisy(design: Design, seed: int) -> float:
    return true_reward(design) + NOISE * np.random.default_rng(seed).standard_normal()


TASK = Task(SPACE, noisy, stochastic=True)


def scored(*rewards: float) -> list[Scored]:
    return [Scored(Design.of(("a", 0.1), ("a", 0.01 * n)), reward, n + 1) for n, reward in enumerate(rewards)]


def raced(race: Race, values: np.ndarray) -> Race:
    """A whole race, where the design found at call n + 1 is always worth values[n]."""
    calls = {found.design: found.call for found in race.candidates}
    while (designs := race.batch(SPACE)) is not None:
        race = race.told(np.array([values[calls[design] - 1] for design in designs]), None)
    return race


# ------------------------------------------------------------------------------------------------------ the race


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 4, 15, 16, 100, 319, 320, 5000])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 31, 32, 50])
def test_a_race_never_makes_more_calls_than_it_has_and_uses_most_of_them(count, calls):
    race = Race.of(scored(*np.linspace(1, 0, count)), calls)
    used, fields = 0, []
    while (designs := race.batch(SPACE)) is not None:
        assert len(designs) % race.racing == 0
        used += len(designs)
        fields.append(race.racing)
        race = race.told(np.zeros(len(designs)), None)
    assert used <= calls
    assert len(race.candidates) <= min(count, CANDIDATES)
    if count and calls >= (4 if count > 1 else 2):
        assert all(after == before // 2 for before, after in pairwise(fields))
        assert used > calls - 2
        assert all(found is not None and found.evaluations >= 2 for found in race.fresh)
    else:
        assert not used


def test_without_noise_the_best_wins_wherever_the_search_had_it():
    values = np.random.default_rng(0).permutation(32).astype(float)
    race = raced(Race.of(scored(*np.zeros(32)), 400), values)
    assert race.ranked[0].call == int(values.argmax()) + 1
    assert race.ranked[0].reward == 31
    assert [found.reward for found in race.ranked[:2]] == [31, 30]
    counts = [found.evaluations for found in race.ranked]
    assert counts == sorted(counts, reverse=True)  # who goes on has more evidence
    assert sum(counts) == 32 * 2 + 16 * 5 + 8 * 10 + 4 * 22 + 2 * 44


def test_only_fresh_evaluations_count():
    race = raced(Race.of(scored(99.0, 0.0), 10), np.array([1.0, 2.0]))
    assert [(found.reward, found.evaluations) for found in race.ranked] == [(2.0, 5), (1.0, 5)]


def test_failures_tell_nothing_and_all_failures_lose():
    race = Race.of(scored(1.0, 0.5), 8)
    told = race.told(np.array([-np.inf, 3.0, -np.inf, 4.0, -np.inf, 5.0, -np.inf, 6.0]), None)
    assert [(found.call, found.reward) for found in told.ranked] == [(2, 4.5)]


def test_mean_and_error_are_those_of_numpy_with_and_without_weights():
    rng = np.random.default_rng(1)
    rewards, weights = rng.normal(size=9), rng.uniform(1, 5, 9)
    design = Design.of(("a", 0.1), ("a", 0.2))
    for own in (np.ones(9), weights):
        parts = [Scored(design, float(r), 1, float(w)) for r, w in zip(rewards, own, strict=True)]
        assert parts[0].error is None
        left, right = parts[0], parts[5]
        for part in parts[1:5]:
            left = left.joined(part)
        for part in parts[6:]:
            right = right.joined(part)
        both = left.joined(right)  # in any order, by parts
        mean = np.average(rewards, weights=own)
        variance = (own * (rewards - mean) ** 2).sum() / 8
        assert both.reward == pytest.approx(mean)
        assert both.error == pytest.approx(np.sqrt(variance / own.sum()))
        assert both.evaluations == 9
        assert Scored.from_dict(json.loads(json.dumps(both.to_dict()))) == both
    plain = Scored(design, 1.0, 1).joined(Scored(design, 2.0, 1))
    assert plain.error == pytest.approx(np.std([1, 2], ddof=1) / np.sqrt(2))
    assert plain.reward_text() == "1.5 ± 0.5"


@pytest.mark.parametrize("change", [{"weight": 0}, {"evaluations": 0}, {"spread": -1.0}])
def test_evidence_that_cannot_be_is_refused(change):
    data = scored(1.0)[0].joined(scored(2.0)[0]).to_dict()
    with pytest.raises(ValueError, match="evidence"):
        Scored.from_dict({**data, **change})


def test_a_cautious_ranking_prefers_evidence():
    designs = [found.design for found in scored(*np.zeros(3))]

    def fill(cautious: bool) -> Ranking:
        ranking = Ranking(3, noisy=True, cautious=cautious)
        for rewards in ([1.0, 0.9], [0.0, 1.1], [0.2, 1.0]):
            ranking.add(SPACE.encode(designs[:2]), np.array(rewards), np.array([1, 2]))
        ranking.add(SPACE.encode(designs[2:]), np.array([1.1]), np.array([9]))  # one lucky evaluation
        return ranking

    assert fill(cautious=False).best.design == designs[2]
    assert fill(cautious=True).best.design == designs[1]
    ranking = fill(cautious=True)
    again = Ranking(3, noisy=True, cautious=True)
    again.restore(json.loads(json.dumps(ranking.state())))
    more = SPACE.encode(designs), np.array([0.1, 0.2, 0.3]), np.array([10, 11, 12])
    ranking.add(*more)
    again.add(*more)
    assert again.top == ranking.top


# ------------------------------------------------------------------------------------------------------ searches


def test_every_call_is_counted_and_has_a_seed_of_its_own():
    seeds = []

    def objective(design, seed):
        seeds.append(seed)
        return noisy(design, seed)

    result = search(Task(SPACE, objective, stochastic=True), budget=600, seed=1)
    assert len(seeds) == len(set(seeds)) == result.calls
    assert 590 <= result.calls <= 600
    assert result.history[-1].calls == result.calls
    rows = [row.confirming for row in result.history]
    assert rows == sorted(rows)
    assert sum(rows) == 3
    assert result.stop is StopReason.BUDGET
    assert result.best.error == pytest.approx(NOISE / np.sqrt(result.best.evaluations), rel=0.5)
    fresh = [found.evaluations for found in result.top[:8]]
    assert fresh == sorted(fresh, reverse=True)
    assert len(result.top) == 10  # those that were not in the race come behind


def test_the_race_gives_better_winners_and_honest_rewards():
    gaps = {True: [], False: []}
    true = {True: [], False: []}
    for seed in range(12):
        for confirmed in (True, False):
            calls = 100 if confirmed else 0
            result = search(TASK, budget=600, seed=seed, method=RandomSettings(100), confirm_calls=calls)
            true[confirmed].append(true_reward(result.best.design))
            gaps[confirmed].append(result.best.reward - true[confirmed][-1])
    assert np.mean(gaps[False]) > 0.5  # luck alone, more than two standard deviations of the noise
    assert abs(np.mean(gaps[True])) < 0.1
    assert np.mean(true[True]) > np.mean(true[False])


def test_the_paper_and_methods_of_ones_own_have_no_race():
    for own in ({"preset": "paper"}, {"method": RandomSettings(50)}, {"confirm_calls": 0}):
        result = search(TASK, budget=300, **own)
        assert not any(row.confirming for row in result.history)
        assert result.calls == 300
    plain = search(Task(SPACE, true_reward), budget=300)
    assert not any(row.confirming for row in plain.history)


def test_a_search_for_the_paper_is_the_same_with_and_without_a_race_until_then():
    plain = search(TASK, budget=250, preset="paper")
    raced_too = search(TASK, budget=300, preset="paper", confirm_calls=50)
    searching = [row for row in comparable(raced_too)["history"] if "confirming" not in row]
    assert [row["mean"] for row in searching] == [row["mean"] for row in comparable(plain)["history"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confirm_calls": -1}, "confirm_calls must be an integer >= 0"),
        ({"confirm_calls": 100}, "confirm_calls must be below the budget, 100"),
        ({"confirm_calls": 2.5}, "confirm_calls must be an integer"),
        ({"confirm_calls": 3}, "confirm_calls must be 0, or at least 4"),
    ],
)
def test_mistakes_are_told(options, message):
    with pytest.raises(DeclarationError, match=message):
        search(TASK, budget=100, **options)


def test_a_race_is_for_noisy_tasks_only():
    with pytest.raises(DeclarationError, match="stochastic=True"):
        search(Task(SPACE, true_reward), budget=100, confirm_calls=10)


def test_settings_files_know_it_and_policies_refuse_it():
    data = {"task": {"kind": "bitstring"}, "run": {"budget": 100, "confirm_calls": 20}}
    assert parse(data).plan == Plan(100, confirm_calls=20)
    assert parse(parse(data).record()) == parse(data)
    with pytest.raises(SettingsError, match=r"run\.confirm_calls must be below the budget, 100"):
        parse({**data, "run": {"budget": 100, "confirm_calls": 100}})
    policy = {"task": {"kind": "policy", "environment": "CartPole-v1"}, "run": data["run"]}
    with pytest.raises(SettingsError, match="chosen on fresh episodes anyway"):
        start(parse(policy))


def test_a_target_and_patience_leave_the_rest_of_the_budget():
    easy = search(TASK, budget=2000, target=-0.8, confirm_calls=64)
    assert easy.stop is StopReason.TARGET
    assert easy.calls <= 500
    assert easy.best.evaluations > 1
    stuck = Task(SPACE, lambda design, seed: float(seed % 2), stochastic=True)
    patient = search(stuck, budget=5000, patience=200, confirm_calls=64, method=RandomSettings(50))
    assert patient.stop is StopReason.PATIENCE
    assert patient.calls < 1000
    assert patient.history[-1].confirming


def test_a_time_limit_leaves_time_for_the_race():
    def slow(design, seed):
        time.sleep(0.002)
        return noisy(design, seed)

    task = Task(SPACE, slow, stochastic=True)
    result = search(
        task, budget=10_000, time_limit=1.5, confirm_calls=5000, method=RandomSettings(20), seed=2
    )
    assert result.stop is StopReason.TIME
    assert result.history[-1].confirming
    assert result.best.evaluations >= 2
    assert result.seconds < 4


def test_nothing_that_succeeded_means_no_race():
    def fails(design, seed):
        raise ValueError("no")

    result = search(Task(SPACE, fails, stochastic=True), budget=100, on_failure="continue")
    assert result.best is None
    assert result.calls == 90
    assert "every evaluation failed" in result.detail


def test_failures_in_the_race_are_listed_with_all_others():
    def fails_later(design, seed):
        if seed % 7 == 0:
            raise ValueError("sometimes")
        return noisy(design, seed)

    result = search(Task(SPACE, fails_later, stochastic=True), budget=400, confirm_calls=100)
    calls = [failure.call for failure in result.failures]
    assert len(calls) == result.failure_count == result.history[-1].failures
    assert calls == sorted(set(calls))
    assert calls[-1] > 300


def test_the_race_does_not_depend_on_workers():
    alone = search(TASK, budget=400, seed=5)
    with ThreadPoolExecutor(3) as pool:
        assert comparable(search(TASK, budget=400, seed=5, executor=pool)) == comparable(alone)


# -------------------------------------------------------------------------------------------------- going on


def interrupting(*numbers: int) -> Task:
    """The task, but Ctrl-C comes at calls of these numbers."""
    made = 0

    def objective(design, seed):
        nonlocal made
        made += 1
        if made in numbers:
            raise KeyboardInterrupt
        return noisy(design, seed)

    return Task(SPACE, objective, stochastic=True)


@pytest.mark.parametrize("budget", [330, 333, 400])  # with and without a batch that the budget cuts short
@pytest.mark.parametrize("interrupts", [(40,), (290,), (315, 316, 325), (310, 372)])
def test_an_interrupted_race_goes_on_exactly(tmp_path, budget, interrupts):
    options = {"budget": budget, "seed": 3, "confirm_calls": 70}
    whole = search(TASK, **options)
    task = interrupting(*interrupts)
    found, stops = search(task, **options, out=tmp_path / "run"), 0
    while found.stop is StopReason.INTERRUPTED:
        stops += 1
        found = resume(tmp_path / "run", task=task, force=True)
    assert stops
    assert comparable(found) == comparable(whole)
    for _ in range(2):  # ended, and stays so
        assert comparable(resume(tmp_path / "run", task=TASK, force=True)) == comparable(whole)
    last = resume(tmp_path / "run", task=TASK, force=True)
    assert tuple(read_history(tmp_path / "run" / "history.jsonl")) == last.history


def test_a_larger_budget_goes_on_with_the_search_and_races_again(tmp_path):
    for first in (200, 210):
        folder = tmp_path / str(first)
        short = search(TASK, budget=first, seed=4, confirm_calls=40, preset="paper", out=folder)
        long = resume(folder, task=TASK, budget=600)
        assert short.calls <= first
        assert 560 <= long.calls <= 600
        rows = [row.confirming for row in long.history]
        assert rows == sorted(rows)  # that of the first race has made way
        assert sum(rows)
        searched = [row.mean for row in long.history if not row.confirming]
        whole = [row.mean for row in search(TASK, budget=600, seed=4, preset="paper").history]
        assert searched[:-1] == whole[: len(searched) - 1]
        assert comparable(resume(folder, task=TASK)) == comparable(long)


def test_a_budget_that_is_hardly_larger_keeps_the_race(tmp_path):
    first = search(TASK, budget=300, seed=4, confirm_calls=60, out=tmp_path / "run")
    more = resume(tmp_path / "run", task=TASK, budget=310)
    assert comparable(more) == comparable(first)


@pytest.mark.parametrize("at", [245, 255, 283, 299])
def test_an_unfinished_race_stays_counted_where_the_search_goes_on(tmp_path, at):
    seeds, stop = [], [at]

    def objective(design, seed):
        if len(seeds) + 1 in stop:
            stop.clear()
            raise KeyboardInterrupt
        seeds.append(seed)
        return noisy(design, seed)

    task = Task(SPACE, objective, stochastic=True)
    first = search(
        task, budget=300, seed=1, confirm_calls=60, method=RandomSettings(20), out=tmp_path / "run"
    )
    assert first.stop is StopReason.INTERRUPTED
    more = resume(tmp_path / "run", task=task, budget=500)
    assert more.calls == len(seeds) == len(set(seeds)) <= 500
    calls = [row.calls for row in more.history]
    assert calls == sorted(set(calls))


def test_failures_of_earlier_races_stay_listed(tmp_path):
    def fails(design, seed):
        if seed % 5 == 0:
            raise ValueError("sometimes")
        return noisy(design, seed)

    task = Task(SPACE, fails, stochastic=True)
    search(task, budget=150, seed=1, confirm_calls=40, method=RandomSettings(20), out=tmp_path / "run")
    found = resume(tmp_path / "run", task=task, budget=300)
    calls = [failure.call for failure in found.failures]
    assert found.failure_count == len(calls) == len(set(calls))
    assert max(calls) <= found.calls


def test_a_smaller_budget_than_was_spent_is_refused_with_what_was_spent(tmp_path):
    for budget in (300, 305):
        search(TASK, budget=budget, confirm_calls=60, method=RandomSettings(20), out=tmp_path / str(budget))
        with pytest.raises(CheckpointError, match=f"has {budget} calls already"):
            resume(tmp_path / str(budget), task=TASK, budget=budget - 1)


def test_a_race_that_was_short_of_time_stays_so(tmp_path):
    def slow(design, seed):
        time.sleep(0.002)
        return noisy(design, seed)

    task = Task(SPACE, slow, stochastic=True)
    options = {"budget": 10_000, "confirm_calls": 5000, "method": RandomSettings(20)}
    first = search(task, **options, time_limit=1.0, out=tmp_path / "run")
    again = resume(tmp_path / "run", task=task)
    assert first.stop is again.stop is StopReason.TIME
    assert again.calls == first.calls
    seconds = [row.seconds for row in again.history]
    assert seconds == sorted(seconds)
    assert again.seconds >= seconds[-1]


class Drifting:
    """An objective that remembers how often it was called."""

    def __init__(self, interrupt: int = 0) -> None:
        self.calls, self.interrupt = 0, interrupt

    def __call__(self, design: Design, seed: int) -> float:
        if self.calls + 1 == self.interrupt:
            self.interrupt = 0
            raise KeyboardInterrupt
        self.calls += 1
        return noisy(design, seed) + 0.001 * self.calls

    def state(self) -> State:
        return State({}, {"calls": self.calls})

    def restore(self, state: State) -> None:
        self.calls = int(state.data["calls"])


@pytest.mark.parametrize("at", [100, 241, 245, 290])
def test_objectives_that_remember_go_on_exactly(tmp_path, at):
    options = {"budget": 300, "confirm_calls": 60, "method": RandomSettings(20)}
    whole = search(Task(SPACE, Drifting(), stochastic=True), **options)
    search(Task(SPACE, Drifting(at), stochastic=True), **options, out=tmp_path / "run")
    for _ in range(2):
        found = resume(tmp_path / "run", task=Task(SPACE, Drifting(), stochastic=True))
        assert comparable(found) == comparable(whole)


class DeadEnds:
    """Random search that meets a dead end after four batches."""

    def build(self, space, seed):
        method = RandomSettings(10).build(space, seed)
        method.told = 0
        ask, tell, state, restore = method.ask, method.tell, method.state, method.restore

        def asked(count=None):
            if method.told >= 4:
                raise DeadEndError("nothing fits")
            return ask(count)

        def told(*given):
            method.told += 1
            return tell(*given)

        def stated():
            found = state()
            return State(found.arrays, {**found.data, "told": method.told})

        def restored(found):
            restore(found)
            method.told = found.data["told"]

        method.ask, method.tell, method.state, method.restore = asked, told, stated, restored
        return method


def test_a_run_that_met_a_dead_end_and_raced_stays_ended(tmp_path):
    method = DeadEnds()
    options = {"budget": 200, "confirm_calls": 30, "method": method}
    first = search(TASK, **options, out=tmp_path / "run")
    assert first.stop is StopReason.DEAD_END
    assert first.history[-1].confirming
    for _ in range(2):
        assert comparable(resume(tmp_path / "run", task=TASK, method=method)) == comparable(first)


def test_a_race_that_was_hardly_begun_tells_nothing():
    result = search(
        interrupting(246), budget=300, seed=1, confirm_calls=60, method=RandomSettings(20)
    )  # after five calls of the first round
    assert result.stop is StopReason.INTERRUPTED
    assert result.calls == 246
    assert len(result.top) == 10
    assert result.best.reward == max(row.best for row in result.history)


@pytest.mark.parametrize(
    "change",
    [
        {"racing": 0},
        {"racing": 99},
        {"rounds": -1},
        {"calls": 0},
        {"fresh": []},
        {"fresh": None},
        {"candidates": [3]},
    ],
)
def test_a_race_that_cannot_be_is_refused(change):
    race = Race.of(scored(3.0, 2.0, 1.0, 0.0), 20)
    state = race.to_state()
    assert Race.from_state(state).candidates == race.candidates
    with pytest.raises((ValueError, TypeError)):
        Race.from_state(State(state.arrays, {**state.data, **change}))


def test_a_target_is_not_reached_by_a_single_lucky_evaluation():
    hopeless = Task(SPACE, lambda design, seed: noisy(design, seed) - 0.5, stochastic=True)
    result = search(hopeless, budget=2000, target=0.0, seed=2)
    assert max(row.batch_best for row in result.history) > 0.0
    assert result.stop is StopReason.BUDGET
    easy = search(TASK, budget=2000, target=-0.4, seed=2)
    assert easy.stop is StopReason.TARGET
    assert easy.calls < 1000


def _begin(folder):
    return search(TASK, budget=3000, seed=6, confirm_calls=2000, out=folder, checkpoint_seconds=0.02)


def test_killed_runs_go_on_exactly(tmp_path):
    whole = search(TASK, budget=3000, seed=6, confirm_calls=2000)
    for number in range(3):
        found, _ = killed_and_resumed(
            _begin, lambda folder: resume(folder, task=TASK), tmp_path / str(number), 0.2 + 0.3 * number
        )
        assert comparable(found) == comparable(whole)


def test_objectives_whose_rows_depend_on_each_other(tmp_path):
    def ranks(designs, seeds):
        rewards = [noisy(design, int(seed)) for design, seed in zip(designs, seeds, strict=True)]
        return np.argsort(np.argsort(rewards)).astype(float)

    task = Task(SPACE, batch_objective=ranks, stochastic=True, rows_independent=False)
    whole = search(task, budget=300, seed=1)
    first = search(task, budget=300, seed=1, out=tmp_path / "run")
    assert comparable(first) == comparable(whole)
    assert comparable(resume(tmp_path / "run", task=task)) == comparable(whole)


# ---------------------------------------------------------------------------------------------------- to look at


def test_reports_show_the_search_and_the_winner_with_its_error(tmp_path):
    result = search(TASK, budget=400, seed=2, out=tmp_path / "run")
    rewards = batch_rewards(result.history)
    assert rewards.calls[-1] == 360
    assert token_shares(result.history).calls[-1] <= 360
    track = Track.of(result.history)
    assert track.calls[-1] == result.calls
    assert track.best[-1] == result.best.reward
    (task,) = page_data([read_run(tmp_path / "run")])["tasks"]
    (group,) = task["groups"]
    assert group["runs"][0]["score"] == (
        f"± {result.best.error:.2g}, mean of {result.best.evaluations} evaluations on fresh seeds"
    )
    assert group["raced"]
    assert group["designs"][0]["error"] == pytest.approx(result.best.error, rel=0.1)
    assert " ± " in result._repr_html_()
