"""Worker processes: the same returns whatever happens to them, a reason for each failure, no process left."""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from environments import Trouble, Walk, registered
from killing import is_running
from killing import pids as worker_pids
from mixed_trees import mixed_policies, mixed_space, naive
from trees import decision, plain_return, random_tree, tree

from discodso.base.errors import EvaluationError, ExecutorError
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.leaves import ActionNumbers
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.splits import Oblique
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.workers import WorkerPool

TREES = [
    random_tree(np.random.default_rng(seed), [(-2.0, 2.0), (0.0, 20.0)], range(3), 2 * seed + 1)
    for seed in range(4)
]
LANDERS = [
    tree(decision(3, -0.3, 2, 0)),
    tree(decision(4, 0.1, decision(3, -0.2, 2, 1), 3)),
    tree(decision(1, 0.5, decision(2, 0.0, 3, 1), decision(5, 0.0, 1, 2))),
]


@pytest.fixture
def trouble():
    """Registers a Trouble with arguments; trouble(...) gives the Environment."""
    contexts = []

    def make(**kwargs):
        name = f"Trouble{len(contexts)}-v0"
        contexts.append(registered(name, Trouble, max_episode_steps=50, kwargs=kwargs))
        contexts[-1].__enter__()
        return Environment(name)

    yield make
    for context in contexts:
        context.__exit__(None, None, None)


def all_pairs(trees, seeds):
    tree_of, position = (index.ravel() for index in np.indices((len(trees), len(seeds))))
    return Forest.of(trees), tree_of, np.array(seeds, dtype=np.int64)[position]


def plain_returns(environment, trees, seeds):
    env = gymnasium.make(environment.id, disable_env_checker=True)
    return np.array([plain_return(env, policy.to_dict(), seed) for policy in trees for seed in seeds])


def wait_until(condition, seconds=15.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


# ------------------------------------------------------------------------------------- returns


def test_lunar_lander_returns_what_a_plain_loop_does_with_any_number_of_workers():
    environment, seeds = Environment("LunarLander-v3"), [0, 1, 2**30, 2**40]
    expected = plain_returns(environment, LANDERS, seeds)
    assert len(np.unique(expected)) == 12
    for workers in (1, 2, 3):
        with WorkerPool(environment, workers, 1000) as pool:
            returns, reasons = pool.returns(*all_pairs(LANDERS, seeds))
        assert returns.tolist() == expected.tolist()
        assert reasons == {}


def test_a_custom_environment_returns_what_a_plain_loop_does_with_any_number_of_workers():
    seeds = range(30)
    with registered("Walk-v0", Walk, max_episode_steps=15):
        environment = Environment("Walk-v0")
        expected = plain_returns(environment, TREES, seeds)
        assert len(np.unique(expected)) > 100
        for workers in (1, 2, 3):
            with WorkerPool(environment, workers, 1000) as pool:
                for _ in range(2):
                    returns, reasons = pool.returns(*all_pairs(TREES, seeds))
                    assert returns.tolist() == expected.tolist()
                    assert reasons == {}
                assert pool.processes.replaced == 0


def test_sums_and_numbers_return_what_a_plain_loop_does_with_any_number_of_workers():
    """Oblique splits and linear leaves through Gymnasium, against a loop that reads the tree from its JSON."""
    bounds, numbers = (
        [(-1.0, 1.0), (-1.0, 1.0), (-8.0, 8.0)],
        ActionNumbers(("t",), (-2.0,), (2.0,), (1,), "float32"),
    )
    space = mixed_space("oblique", numbers, ranges=bounds)
    trees, seeds, env = mixed_policies(space, 12, 3, numbers), range(3), gymnasium.make("Pendulum-v1")
    expected = []
    for policy, seed in itertools.product(trees, seeds):
        x, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            action = np.array(naive(policy.to_dict(), list(map(float, x)), numbers), np.float32)
            x, reward, *ends, _ = env.step(action)
            total, over = total + float(reward), any(ends)
        expected.append(total)
    assert any(isinstance(node, Oblique) for policy in trees for node, _ in policy.nodes)
    assert any(leaf.weights for policy in trees for leaf in policy.leaves)
    for workers in (1, 2, 3):
        with WorkerPool(Environment("Pendulum-v1"), workers, 200) as pool:
            assert pool.returns(*all_pairs(trees, seeds))[0].tolist() == expected


def test_episodes_come_back_in_the_order_of_the_question():
    rng = np.random.default_rng(0)
    tree_of, seeds = rng.integers(0, 4, 77), rng.integers(0, 20, 77)
    with registered("Walk-v0", Walk):
        environment = Environment("Walk-v0")
        table = plain_returns(environment, TREES, range(20)).reshape(4, 20)
        with WorkerPool(environment, 2, 1000) as pool:
            returns, _ = pool.returns(Forest.of(TREES), tree_of, seeds)
            nothing, _ = pool.returns(Forest.of(TREES), tree_of[:0], seeds[:0])
    assert returns.tolist() == table[tree_of, seeds].tolist()
    assert nothing.tolist() == []


def test_an_endless_environment_is_cut_off():
    with registered("Endless-v0", Walk, kwargs={"length": None}):
        environment = Environment("Endless-v0")
        env = gymnasium.make(environment.id, disable_env_checker=True)
        expected = [plain_return(env, TREES[1].to_dict(), seed, limit=33) for seed in range(3)]
        with WorkerPool(environment, 1, 33) as pool:
            assert pool.returns(*all_pairs(TREES[1:2], range(3)))[0].tolist() == expected


def test_observations_that_are_not_arrays_are_taken_as_numbers():
    with registered("Lists-v0", Walk, kwargs={"observe": lambda x, t: [x, t]}):
        environment = Environment("Lists-v0")
        with WorkerPool(environment, 1, 100) as pool:
            returns, reasons = pool.returns(*all_pairs(TREES, range(3)))
        assert reasons == {}
        assert returns.tolist() == plain_returns(environment, TREES, range(3)).tolist()


@pytest.mark.slow
def test_workers_that_cannot_be_forked_are_started_anew(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    policy, environment = tree(decision(1, 0.0, 0, 2)), Environment("MountainCar-v0")
    with WorkerPool(environment, 1, 200) as pool:
        returns, _ = pool.returns(*all_pairs([policy], range(3)))
        pids = worker_pids(pool.processes)
    assert returns.tolist() == policy.evaluate("MountainCar-v0", range(3)).tolist()
    assert not any(map(is_running, pids))


# ------------------------------------------------------------------------------------- workers that are killed


def test_a_worker_killed_between_calls_is_replaced(trouble):
    environment = trouble()
    question, expected = all_pairs(TREES, range(20)), plain_returns(environment, TREES, range(20))
    with WorkerPool(environment, 2, 100) as pool:
        before = worker_pids(pool.processes)
        for victims in (before[:1], None):
            for pid in worker_pids(pool.processes) if victims is None else victims:
                os.kill(pid, signal.SIGKILL)
                assert wait_until(lambda pid=pid: not is_running(pid))
            returns, reasons = pool.returns(*question)
            assert returns.tolist() == expected.tolist()
            assert reasons == {}
        assert pool.processes.replaced == 3
        assert len(worker_pids(pool.processes)) == 2
        assert not set(before) & set(worker_pids(pool.processes))


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_workers_killed_while_they_work_are_replaced_and_nothing_changes(trouble, tmp_path, kind):
    environment = trouble(pause=0.002, marks=str(tmp_path))
    question, found = all_pairs(TREES, range(8)), []
    with WorkerPool(environment, 2, 100) as pool:
        first = worker_pids(pool.processes)
        thread = threading.Thread(target=lambda: found.append(pool.returns(*question)))
        thread.start()
        assert wait_until(lambda: len(list(tmp_path.iterdir())) >= 4)
        os.kill(first[0], kind)
        assert wait_until(lambda: pool.processes.replaced == 1)
        os.kill(first[1], kind)
        thread.join(60)
        assert not thread.is_alive()
        assert pool.processes.replaced == 2
    returns, reasons = found[0]
    assert reasons == {}
    assert returns.tolist() == plain_returns(trouble(), TREES, range(8)).tolist()


@pytest.mark.parametrize("count", [10, 100])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_episode_that_kills_its_worker_is_given_up_after_three_attempts(trouble, tmp_path, count, workers):
    """Only that episode: those that happened to be in its chunk are fine."""
    environment = trouble(dies=[7], marks=str(tmp_path))
    with WorkerPool(environment, workers, 100) as pool:
        returns, reasons = pool.returns(*all_pairs(TREES[2:3], range(count)))
        assert pool.processes.replaced == 3
        again, _ = pool.returns(*all_pairs(TREES[2:3], range(6)))
    assert list(reasons) == [7]
    assert "ended its worker process 3 times" in reasons[7]
    assert "-9" in reasons[7]
    expected = plain_returns(trouble(), TREES[2:3], range(count))
    assert np.isnan(returns[7])
    assert np.delete(returns, 7).tolist() == np.delete(expected, 7).tolist()
    assert again.tolist() == expected[:6].tolist()
    starts = Counter(mark.name.split("-")[0] for mark in tmp_path.iterdir())
    assert starts["7"] == 3


# ------------------------------------------------------------------------------------- environments that fail


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("raises", "raised RuntimeError: a wheel came off"),
        ("exits", "raised SystemExit: 5"),
        ("unseen", "the environment gave an observation with NaN, seed 5"),
        ("unpaid", "the rewards of an episode add up to nan, seed 5"),
        ("overpaid", "the rewards of an episode add up to inf, seed 5"),
    ],
)
def test_what_goes_wrong_in_an_episode_is_the_reason_of_that_episode(trouble, argument, reason):
    environment = trouble(**{argument: [5, 11]})
    expected = plain_returns(trouble(), TREES[:2], range(30))
    with WorkerPool(environment, 2, 100) as pool:
        returns, reasons = pool.returns(*all_pairs(TREES[:2], range(30)))
        assert pool.processes.replaced == 0
    assert sorted(reasons) == [5, 11, 35, 41]
    assert reason in reasons[5]
    assert np.isnan(returns[[5, 11, 35, 41]]).all()
    fine = np.setdiff1d(np.arange(60), [5, 11, 35, 41])
    assert returns[fine].tolist() == expected[fine].tolist()


def test_evaluate_says_how_many_episodes_failed_and_why(trouble):
    environment = trouble(raises=[5, 11])
    with pytest.raises(EvaluationError, match=r"2 of 20 episodes of .* failed; seed 5 .*a wheel came off"):
        TREES[1].evaluate(environment, range(20))
    assert len(TREES[1].evaluate(environment, range(5))) == 5


def test_infinite_observations_are_numbers(trouble):
    def observe(x, t):
        return np.array([np.inf, -np.inf])

    with registered("Infinite-v0", Walk, kwargs={"observe": observe}):
        environment = Environment("Infinite-v0")
        with WorkerPool(environment, 1, 100) as pool:
            returns, reasons = pool.returns(*all_pairs(TREES, range(2)))
        assert reasons == {}
        assert returns.tolist() == plain_returns(environment, TREES, range(2)).tolist()


# ------------------------------------------------------------------------------------- ending


def test_nothing_is_left_after_closing_once_or_twice(trouble):
    with WorkerPool(trouble(), 3, 100) as pool:
        pids = worker_pids(pool.processes)
        assert len(set(pids)) == 3
        assert all(map(is_running, pids))
        os.kill(pids[1], signal.SIGKILL)
    assert not any(map(is_running, pids))
    assert worker_pids(pool.processes) == ()
    pool.processes.close()
    assert not multiprocessing.active_children()


def test_a_worker_that_ignores_the_polite_signal_is_ended_too(trouble):
    with WorkerPool(trouble(), 1, 100) as pool:
        (pid,) = worker_pids(pool.processes)
        os.kill(pid, signal.SIGSTOP)
    assert not is_running(pid)


def test_workers_that_cannot_be_started_are_an_error_and_leave_nothing(monkeypatch, trouble):
    process = multiprocessing.get_context("fork").Process
    begun, start = [], process.start

    def start_once(self):
        if begun:
            raise OSError(11, "Resource temporarily unavailable")
        start(self)
        begun.append(self.pid)

    monkeypatch.setattr(process, "start", start_once)
    with pytest.raises(
        ExecutorError, match="cannot start a worker process: Resource temporarily unavailable"
    ):
        WorkerPool(trouble(), 2, 100)
    assert len(begun) == 1
    assert not is_running(begun[0])


def test_an_interrupt_while_waiting_leaves_no_process_and_no_old_answers(monkeypatch, trouble):
    environment = trouble(pause=0.001)
    expected = plain_returns(trouble(), TREES, range(8, 12))
    waits = []
    real = multiprocessing.connection.wait

    def interrupted(connections, timeout=None):
        waits.append(1)
        if len(waits) == 3:
            raise KeyboardInterrupt
        return real(connections, timeout)

    with WorkerPool(environment, 2, 100) as pool:
        pids = set(worker_pids(pool.processes))
        with monkeypatch.context() as patched:
            patched.setattr(multiprocessing.connection, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                pool.returns(*all_pairs(TREES, range(8)))
        assert len(waits) >= 3
        returns, reasons = pool.returns(*all_pairs(TREES, range(8, 12)))
        assert returns.tolist() == expected.tolist()
        assert reasons == {}
        pids |= set(worker_pids(pool.processes))
    assert not any(map(is_running, pids))


def test_an_interrupt_while_reading_an_answer_leaves_no_old_answers(monkeypatch, trouble):
    environment = trouble()
    expected = plain_returns(environment, TREES, range(8, 12))
    connection, parent = multiprocessing.connection.Connection, os.getpid()
    real = connection.recv

    def interrupted(self):
        if os.getpid() == parent:
            raise KeyboardInterrupt
        return real(self)

    with WorkerPool(environment, 2, 100) as pool:
        with monkeypatch.context() as patched:
            patched.setattr(connection, "recv", interrupted)
            with pytest.raises(KeyboardInterrupt):
                pool.returns(*all_pairs(TREES, range(8)))
        returns, reasons = pool.returns(*all_pairs(TREES, range(8, 12)))
    assert returns.tolist() == expected.tolist()
    assert reasons == {}


def test_an_error_inside_the_context_ends_the_workers(trouble):
    environment = trouble()
    pids = ()

    def fail():
        nonlocal pids
        with open_runner(environment, 2) as pool:
            pids = worker_pids(pool.runner.processes)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert len(pids) == 2
    assert not any(map(is_running, pids))


PROGRAM = """
import os, signal, sys
import numpy as np
from environments import Trouble, registered
from killing import pids as worker_pids
from mixed_trees import mixed_policies, mixed_space, naive
from trees import tree
from discodso.tasks.policies.leaves import ActionNumbers
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.splits import Oblique
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.workers import WorkerPool

def ask(pool, count):
    return pool.returns(Forest.of([tree(1)]), np.zeros(count, np.int64), np.arange(count))

with registered("Trouble-v0", Trouble, kwargs={"pause": 0.005}):
    what = (Environment("Trouble-v0"), 2, 100)
    with WorkerPool(*what) as first, WorkerPool(*what) as pool:
        os.kill(worker_pids(first.processes)[0], signal.SIGKILL)  # its successor inherits the pipes of both pools
        ask(first, 2)
        print(*worker_pids(first.processes), *worker_pids(pool.processes), flush=True)
        if "busy" in sys.argv:
            ask(pool, 1000)
        else:
            signal.pause()
"""


@pytest.fixture
def program():
    """Starts the program above in a session of its own; gives the process and the pids of its workers."""
    begun = []

    def start(*words):
        here = str(Path(__file__).parents[2] / "helpers")
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([here, *sys.path])},
        )
        line = process.stdout.readline()
        begun.append((process, [int(word) for word in line.split()]))
        assert len(begun[-1][1]) == 4, process.communicate()
        return begun[-1]

    yield start
    for process, pids in begun:
        for pid in filter(is_running, [process.pid, *pids]):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def test_ctrl_c_ends_the_program_and_all_workers(program):
    """A terminal sends the signal to every process of the group."""
    process, pids = program("busy")
    assert all(map(is_running, pids))
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode != 0
    assert errors.count("KeyboardInterrupt") == 1  # one traceback, the parent's
    assert not any(map(is_running, pids))


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_workers_end_when_their_parent_was_killed(program, state):
    process, pids = program(state)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    assert wait_until(lambda: not any(map(is_running, pids)), 5.0)  # the rest of the chunk would take longer
