"""A method that begins anew when it is stuck, with the best designs so far."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from killing import comparable
from spaces import decision_tree

from discodso import (
    Design,
    DisCoSettings,
    FixedSequence,
    NetworkSettings,
    RandomSettings,
    Space,
    Task,
    Token,
    resume,
    search,
)
from discodso.disco.settings import ArchiveSettings, RestartSettings, VariationSettings
from discodso.run.checkpoint import from_bytes, to_bytes

SMALL = DisCoSettings(batch_size=20, network=NetworkSettings(units=8))


def restarting(batches, patience=0.0, least_gain=0.0, recheck=0.0, **changed) -> DisCoSettings:
    restarts = RestartSettings(batches, patience, least_gain)
    return replace(SMALL, archive=ArchiveSettings(size=10, recheck=recheck), restarts=restarts, **changed)


def told(method, rewards):
    """Ask once, and tell these rewards."""
    designs = method.ask()
    method.tell(designs, rewards)
    return list(designs)


def test_a_restart_comes_after_so_many_calls_without_a_better_design():
    method = restarting(2).build(decision_tree(), 0)
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


def strangers(space, count, seed=0):
    """Designs drawn at random."""
    return list(RandomSettings(count).build(space, seed).ask())


def test_with_noise_only_second_rewards_make_a_better_design():
    numbers = Space([Token("v", range=(0, 1))], FixedSequence(2))
    method = restarting(2, recheck=0.2).build(numbers, 0)
    designs = told(method, np.arange(20.0))
    method.tell(designs, np.zeros(20))  # evaluated again: no more than luck, but better than nothing
    method.tell(strangers(numbers, 20, 1), np.full(20, 50.0))
    assert method.restarts == 0
    method.tell(strangers(numbers, 20, 2), np.full(20, 60.0))  # no design twice
    assert method.restarts == 1


def test_every_second_restart_begins_from_nothing():
    method = restarting(1).build(decision_tree(), 0)
    designs = method.ask()
    best = next(design for design in designs if any(design.values))  # not one that is easy to meet again
    method.tell(designs, [10.0 * (design == best) for design in designs])
    told(method, np.zeros(20))
    assert method.restarts == 1
    assert best not in told(method, np.full(20, 5.0))
    assert best not in list(method.archive.members.designs)
    told(method, np.zeros(20))
    assert method.restarts == 2
    assert best not in told(method, np.zeros(20))  # known: it costs no call
    assert method.archive.members.designs[0] == best
    assert method.archive.members.rewards[0] == 10.0


@pytest.mark.parametrize("recheck", [0.0, 0.2])
def test_a_restart_begins_with_the_best_design_of_each_structure_and_a_fresh_network(recheck):
    space = decision_tree()
    method = restarting(2 if recheck else 1, recheck=recheck).build(space, 0)
    designs = [d for d in strangers(space, 80) if any(d.values)]  # a leaf alone is easy to meet again
    last = designs[0]
    twin = Design(last.tokens, tuple(v if v is None else v + 1e-6 for v in last.values))
    others = [d for d in designs if d.tokens[:5] != last.tokens[:5]]
    second, third = others[0], next(d for d in others if d.tokens[:5] != others[0].tokens[:5])
    worse = [d for d in designs if d not in (last, second, third)][:16]
    for _ in range(2 if recheck else 1):  # with noise the second rewards count
        method.tell([last, twin, second, third, *worse], [29.0, 30.0, 25.0, 20.5, *[-np.inf] * 16])
    while method.restarts < 2:
        method.tell(strangers(space, 20, 3), np.full(20, -50.0))
    if recheck:  # evaluated again
        asked = [*method.ask(2), *method.ask(2)]
        assert asked[:3] == [twin, second, third]
        assert len(method.ask()) == 20
        return
    fresh = restarting(1).build(space, 0)
    asked = method.ask()
    assert len(asked) == 20
    assert list(asked) != list(fresh.ask())
    method.tell(asked, np.full(20, -60.0))
    assert list(method.archive.members.designs)[:3] == [twin, second, third]


def test_without_an_archive_the_best_designs_teach_the_network_of_a_new_start():
    space = decision_tree()
    method = replace(SMALL, restarts=RestartSettings(1, 0.0, 0.0)).build(space, 0)
    designs = strangers(space, 20)
    method.tell(designs, np.arange(20.0))
    while method.restarts < 2:
        method.tell(strangers(space, 20, 5), np.full(20, -50.0))
    metrics = method.tell(strangers(space, 20, 6), np.full(20, -60.0))
    assert metrics.quantile > -60  # all that were told are worse: a best design teaches


@pytest.mark.parametrize("recheck", [0.0, 0.2])
def test_the_state_keeps_everything(recheck):
    settings = restarting(3, recheck=recheck)
    method = settings.build(decision_tree(), 3)
    rng = np.random.default_rng(1)
    for step in range(30):
        state = from_bytes(to_bytes(method.state()))
        twin = settings.build(decision_tree(), 3)
        twin.restore(state)
        rewards = rng.normal(size=20)
        assert told(twin, rewards) == told(method, rewards), step
        assert twin.restarts == method.restarts
    assert method.restarts >= 2


def test_a_search_with_restarts_goes_on_exactly(tmp_path):
    task = Task(decision_tree(), lambda design, seed: np.random.default_rng(seed).random(), stochastic=True)
    method = restarting(4)
    whole = comparable(search(task, budget=600, method=method))
    for budget in (20, 130, 333):
        search(task, budget=budget, method=method, out=tmp_path / str(budget))
        found = resume(tmp_path / str(budget), task=task, method=method, budget=600)
        assert comparable(found) == whole


def test_patience_grows_with_the_calls_that_a_start_took_to_its_best():
    method = restarting(1, patience=1.0).build(decision_tree(), 0)
    for best in (1.0, 2.0, 3.0):
        told(method, [*np.zeros(19), best])
    for _ in range(2):
        told(method, np.zeros(20))
        assert method.restarts == 0
    told(method, np.zeros(20))  # as many calls as the best took
    assert method.restarts == 1


def test_tiny_gains_do_not_put_off_a_restart_unless_they_add_up():
    def build():
        return restarting(3, least_gain=0.01).build(decision_tree(), 0)

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
    with_them = search(task, budget=200, method=replace(SMALL, restarts=RestartSettings(1000)), seed=4)
    assert comparable(without) == comparable(with_them)


def test_disco_restarts_by_itself(tmp_path):
    settings = restarting(2, variation=VariationSettings(share=0.3))
    method = settings.build(decision_tree(), 0)
    told(method, np.zeros(20))
    for _ in range(2):
        told(method, np.zeros(20))
    assert method.restarts == 1
    task = Task(decision_tree(), lambda design: -float(len(design.tokens)))
    whole = comparable(search(task, budget=600, method=settings))
    search(task, budget=333, method=settings, out=tmp_path / "run")
    assert comparable(resume(tmp_path / "run", task=task, budget=600)) == whole
