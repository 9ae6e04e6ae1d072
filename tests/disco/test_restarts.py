"""A method that begins anew when it is stuck, with the best designs so far."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from killing import comparable
from spaces import decision_tree, mixed_sequence

from discodso import (
    DeclarationError,
    Design,
    DisCoSettings,
    FixedSequence,
    PolicySettings,
    RandomSettings,
    Space,
    Task,
    Token,
    resume,
    search,
)
from discodso.disco.restarts import RestartSettings
from discodso.run.checkpoint import from_bytes, to_bytes

SMALL = DisCoSettings(batch_size=20, policy=PolicySettings(units=8))


def told(method, rewards):
    """Ask once, and tell these rewards."""
    designs = method.ask()
    method.tell(designs, rewards)
    return list(designs)


def test_a_restart_comes_after_so_many_calls_without_a_better_design():
    method = RestartSettings(SMALL, restart_after=40).build(decision_tree(), 0)
    told(method, np.arange(20.0))  # the last is the best
    told(method, np.zeros(20))
    assert method.restarts == 0
    told(method, [*np.zeros(9), 30.0, *np.zeros(10)])  # better just in time
    told(method, np.zeros(20))
    assert method.restarts == 0
    told(method, np.zeros(20))
    assert method.restarts == 1
    told(method, np.ones(20))
    told(method, [*np.zeros(9), 2.0, *np.zeros(10)])  # no record, but the best since the restart
    told(method, np.zeros(20))
    assert method.restarts == 1
    told(method, np.zeros(20))
    assert method.restarts == 2


def test_with_noise_only_second_rewards_make_a_better_design():
    numbers = Space([Token("v", range=(0, 1))], FixedSequence(2))
    method = RestartSettings(SMALL, restart_after=40, recheck=True).build(numbers, 0)
    designs = told(method, np.arange(20.0))
    method.tell(designs, np.zeros(20))  # evaluated again: no more than luck, but better than nothing
    told(method, np.full(20, 50.0))
    told(method, np.full(20, 60.0))  # no design twice
    assert method.restarts == 1


def test_every_second_restart_begins_from_nothing():
    method = RestartSettings(SMALL, restart_after=20, elites=3).build(decision_tree(), 0)
    designs = method.ask()
    best = next(design for design in designs if any(design.values))  # not one that is easy to meet again
    method.tell(designs, [10.0 * (design == best) for design in designs])
    told(method, np.zeros(20))
    assert method.restarts == 1
    assert best not in told(method, np.full(20, 5.0))
    told(method, np.zeros(20))
    assert method.restarts == 2
    assert method.ask()[0] == best


def test_a_restart_begins_with_the_best_design_of_each_structure_and_a_fresh_network():
    method = RestartSettings(SMALL, restart_after=20, elites=3, every=1).build(decision_tree(), 0)
    designs = told(method, np.arange(20.0))
    last = designs[-1]
    twin = Design(last.tokens, tuple(v if v is None else v + 1e-6 for v in last.values))
    rng = np.random.default_rng(0)
    others = [d for d in decision_tree_designs(rng, 40) if d.tokens != last.tokens]
    second, third = others[0], next(d for d in others if d.tokens != others[0].tokens)
    method.tell([twin, second, third], [30.0, 25.0, 20.5])
    method.tell(designs[:1] * 17, np.full(17, -np.inf))  # failures are no elites
    assert method.restarts == 0
    told(method, np.full(20, 19.0))
    assert method.restarts == 1
    asked = method.ask()
    assert len(asked) == 20
    assert list(asked[:3]) == [twin, second, third]
    assert len(method.ask()) == 20
    fresh = RestartSettings(SMALL, restart_after=20).build(decision_tree(), 0).ask()
    assert list(asked[3:]) != list(fresh[3:])


def decision_tree_designs(rng, count):
    return list(RandomSettings(count).build(decision_tree(), int(rng.integers(100))).ask())


def test_a_small_ask_takes_the_elites_in_parts():
    method = RestartSettings(SMALL, restart_after=20, elites=4, every=1).build(mixed_sequence(), 0)
    told(method, -np.arange(20.0))
    told(method, np.full(20, -100.0))
    assert method.restarts == 1
    parts = [*method.ask(3), *method.ask(3)]
    assert len(parts) == 6
    again = RestartSettings(SMALL, restart_after=20, elites=4, every=1).build(mixed_sequence(), 0)
    told(again, -np.arange(20.0))
    told(again, np.full(20, -100.0))
    assert list(again.ask(4)) == parts[:4]


def test_the_state_keeps_everything():
    settings = RestartSettings(SMALL, restart_after=60, elites=5)
    method = settings.build(decision_tree(), 3)
    rng = np.random.default_rng(1)
    for step in range(30):
        state = from_bytes(to_bytes(method.state(), "search"), "search")
        twin = settings.build(decision_tree(), 3)
        twin.restore(state)
        rewards = rng.normal(size=20)
        assert told(twin, rewards) == told(method, rewards), step
        assert twin.restarts == method.restarts
    assert method.restarts >= 2


def test_a_search_with_restarts_goes_on_exactly(tmp_path):
    task = Task(decision_tree(), lambda design, seed: np.random.default_rng(seed).random(), stochastic=True)
    method = RestartSettings(SMALL, restart_after=70)
    whole = comparable(search(task, budget=600, method=method))
    for budget in (20, 130, 333):
        search(task, budget=budget, method=method, out=tmp_path / str(budget))
        found = resume(tmp_path / str(budget), task=task, method=method, budget=600)
        assert comparable(found) == whole


def test_an_objective_that_compares_designs_hears_of_every_fresh_start():
    class Comparing:
        def __init__(self):
            self.starts = [0]

        def __call__(self, design, seed):
            self.starts[-1] += 1
            return np.random.default_rng(seed).random()

        def begin_anew(self):
            self.starts.append(0)

    objective = Comparing()
    search(
        Task(decision_tree(), objective, stochastic=True),
        budget=600,
        method=RestartSettings(SMALL, restart_after=70),
    )
    assert len(objective.starts) >= 3
    assert sum(objective.starts) == 600
    assert all(calls % 20 == 0 and calls >= 80 for calls in objective.starts[:-1])


def test_patience_grows_with_the_calls_that_a_start_took_to_its_best():
    method = RestartSettings(SMALL, restart_after=20, patience=1.0).build(decision_tree(), 0)
    for best in (1.0, 2.0, 3.0):
        told(method, [*np.zeros(19), best])
    for _ in range(2):
        told(method, np.zeros(20))
        assert method.restarts == 0
    told(method, np.zeros(20))  # as many calls as the best took
    assert method.restarts == 1


def test_tiny_gains_do_not_put_off_a_restart_unless_they_add_up():
    def build():
        return RestartSettings(SMALL, restart_after=60, least_gain=0.01).build(decision_tree(), 0)

    def run(method, gains):
        best = 10.0
        told(method, np.zeros(20))
        told(method, [*np.zeros(19), best])
        for gain in gains:
            best += gain
            told(method, [*np.zeros(19), best])
        return method.restarts

    assert run(build(), [0.02, 0.02, 0.02]) == 1  # 0.01 of the 10 gained would be 0.1
    assert run(build(), [0.04, 0.04, 0.04]) == 0


def test_the_first_start_is_the_search_without_restarts():
    task = Task(decision_tree(), lambda design: float(len(design.tokens)))
    without = search(task, budget=200, method=SMALL, seed=4)
    with_them = search(task, budget=200, method=replace(SMALL, restart_batches=1000), seed=4)
    assert comparable(without) == comparable(with_them)


def test_disco_restarts_by_itself(tmp_path):
    settings = replace(SMALL, restart_batches=2, queue_size=10, variation=0.3)
    method = settings.build(decision_tree(), 0)
    told(method, np.zeros(20))
    for _ in range(2):
        told(method, np.zeros(20))
    assert method.restarts == 1
    task = Task(decision_tree(), lambda design: -float(len(design.tokens)))
    whole = comparable(search(task, budget=600, method=settings))
    search(task, budget=333, method=settings, out=tmp_path / "run")
    assert comparable(resume(tmp_path / "run", task=task, budget=600)) == whole


def test_mistakes():
    with pytest.raises(DeclarationError, match="restart_after"):
        RestartSettings(SMALL, restart_after=0)
    with pytest.raises(DeclarationError, match="elites"):
        RestartSettings(SMALL, restart_after=5, elites=0)
