"""A run that others drive: any order, days apart, at once, killed anywhere, and still one search."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from near_task import near
from spaces import small_fixed, valued_sequence
from typer.testing import CliRunner

from discodso import DeclarationError, Design, Task, search
from discodso.base.files import FileError
from discodso.cli.main import app
from discodso.report.folders import read_run
from discodso.run import queue as queues
from discodso.run.known import known_designs, read_known
from discodso.run.plan import Plan
from discodso.run.python_tasks import PythonOptions
from discodso.run.queue import Queue, pending_in, results_of
from discodso.run.settings import RunSettings
from discodso.tasks.custom import load_task
from discodso.testing import check_task

SPACE = valued_sequence()
TASK = Task(SPACE, outside=True, name="lab")


def settings(budget: int = 60, task: Task = TASK, **plan: object) -> RunSettings:
    return RunSettings(PythonOptions(task.name), Plan(budget, **plan), given=task)


def results(asked):
    return [{"id": own.id, "reward": near(own.design)} for own in asked]


def opened(folder: Path, budget: int = 60, task: Task = TASK, **plan: object) -> Queue:
    return Queue(folder, settings(budget, task, **plan), given=task)


def driven(folder: Path, each_opens: bool, task: Task = TASK) -> list[tuple[int, Design]]:
    """Asks and tells in an order that a generator decides; gives the designs by id."""
    rng, seen, waiting = random.Random(3), dict[int, Design](), list[dict]()
    queue = opened(folder, task=task)
    while True:
        if each_opens:
            queue.close()
            queue = opened(folder, task=task)
        if rng.random() < 0.5:
            asked = queue.ask(rng.randint(1, 4))
            seen |= {own.id: own.design for own in asked}
            waiting += results(asked)
            rng.shuffle(waiting)
        else:
            count = rng.randint(0, len(waiting))
            assert set(queue.tell(waiting[:count]).taken) == {own["id"] for own in waiting[:count]}
            waiting = waiting[count:]
        assert set(queue.pending) == {own["id"] for own in waiting}
        if queue.over:
            queue.close()
            return sorted(seen.items())


def test_days_may_lie_between_two_steps_and_nothing_changes(tmp_path):
    one = driven(tmp_path / "one", each_opens=False)
    many = driven(tmp_path / "many", each_opens=True)
    assert one == many
    assert [number for number, _ in one] == list(range(1, 61))
    assert len({design for _, design in one}) == 60
    first, second = (read_run(tmp_path / name) for name in ("one", "many"))
    assert first.designs == second.designs
    assert first.status == "ended"
    assert first.designs[0].reward > -0.05
    assert [row.best for row in first.history] == [row.best for row in second.history]
    known = read_known(tmp_path / "many")  # the journal has all of them
    assert {own.design: own.outcome for own in known} == {design: near(design) for _, design in one}


def test_what_is_pending_is_not_handed_out_twice_unless_it_is_forgotten(tmp_path, monkeypatch):
    with opened(tmp_path / "run") as queue:
        first = queue.ask(3)
        assert len(queue.ask(2)) == 2
    monkeypatch.setattr(queues.time, "time", lambda: 4e9)
    with opened(tmp_path / "run") as queue:
        assert sorted(queue.pending) == [1, 2, 3, 4, 5]
        assert queue.forget([first[1].id]) == (2,)
        assert queue.ask(1) == [first[1]]
        assert queue.forget(older_than=3600.0) == (1, 3, 4, 5)
        with pytest.raises(DeclarationError, match="id 3 cannot be forgotten: it is not pending"):
            queue.forget([3])
        assert pending_in(tmp_path / "run") == {2: 4e9}
        assert [own.id for own in queue.ask(3)] == [1, 3, 4]
        late = queue.tell([{"id": 5, "reward": 1.0}])  # who was forgotten may tell all the same
        assert late.taken == (5,)
    assert set(pending_in(tmp_path / "run")) == {1, 2, 3, 4}


def test_results_that_cannot_count_are_named_and_others_are_not_lost(tmp_path):
    with opened(tmp_path / "run") as queue:
        queue.ask(6)
        queue.tell([{"id": 1, "reward": 0.5}, {"id": 2, "error": "no power"}])
        told = queue.tell(
            [
                {"id": 3, "reward": 0.25, "design": "x", "more": 1},
                {"id": 3, "reward": 0.75},
                {"id": 99, "reward": 1.0},
                {"id": 1, "reward": 0.5},
                {"id": 2, "error": "no  power"},
                {"id": 1, "reward": 0.75},
                {"id": 4},
                {"id": 4, "reward": math.nan},
                {"id": 4, "reward": 1.0, "error": "both"},
                {"id": "4", "reward": 1.0},
                3,
                {"id": 5, "reward": None, "violation": {"size": 2.0}},
                {"id": 6, "reward": 0.125, "violation": -1, "cost": 3},
            ]
        )
        assert told.taken == (3, 5, 6)
        assert told.repeated == (1, 2)
        assert list(told.refused) == [
            "result 2: id 3 is there twice; the first counts",
            "result 3: id 99 was never handed out",
            "result 6: id 1 has another result already, which counts",
            "id 4 has no reward: give a finite number, or an error in words",
            "id 4: the reward must be a finite number, got nan",
            "id 4 needs a reward, or an error that is a text, not both",
            "result 10 needs the id that its design was asked with, got '4'",
            "result 11 must be an object with id and reward, got 3",
        ]
        assert set(queue.pending) == {4}
        result = queue.result
    assert (result.calls, result.failure_count, result.feasible_count) == (5, 1, 1)


def killed_in(folder: Path, step: int) -> None:
    """Tell four results and end without a word at the `step`-th time that something is brought to the disk."""
    count = 0

    def sync(handle):
        nonlocal count
        count += 1
        if count == step:
            os._exit(9)

    queue = opened(folder)
    os.fsync = sync
    queue.tell([{"id": number, "reward": float(number)} for number in (4, 2, 3, 1)])
    queue.close()
    os._exit(0)


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 6])
def test_a_file_of_results_counts_as_a_whole_or_not_at_all(step, tmp_path):
    with opened(tmp_path / "run") as queue:
        queue.ask(4)
    process = multiprocessing.get_context("fork").Process(target=killed_in, args=(tmp_path / "run", step))
    process.start()
    process.join()
    assert process.exitcode == 9
    with opened(tmp_path / "run") as queue:
        assert len(queue.pending) in (0, 4)
        assert queue.told == 4 - len(queue.pending)
        assert step == 1 or not queue.pending  # the first sync is that of the results themselves
        queue.tell([{"id": number, "reward": float(number)} for number in (4, 2, 3, 1)])
        assert queue.result.best.call == 4
    assert not (tmp_path / "run" / queues.TOLD).exists()


def test_the_budget_and_the_space_are_the_end(tmp_path):
    every = [Design.of(*tokens) for tokens in small_fixed().enumerate()]
    task = Task(small_fixed(), outside=True)
    with opened(tmp_path / "run", 1000, task) as queue:
        asked = queue.ask(1000)
        assert {own.design for own in asked} == set(every)
        assert queue.over == ""
        queue.tell([{"id": own.id, "reward": 1.0} for own in asked])
        assert queue.ask(1) == []
        assert "all 56 designs of the space are evaluated" in queue.over
    with opened(tmp_path / "small", 5) as queue:
        asked = queue.ask(9)
        assert len(asked) == 5
        assert queue.ask() == []
        queue.tell(results(asked))
        assert queue.over.startswith("the budget of objective calls is spent")
    with opened(tmp_path / "good", 50, target=0.5) as queue:
        asked = queue.ask(4)
        queue.tell([{"id": asked[2].id, "reward": 0.5}])
        assert queue.ask() == []
        assert queue.over == "a design reached the target reward"
        assert len(queue.pending) == 3


def test_seeds_of_stochastic_tasks_and_known_designs(tmp_path):
    task = Task(SPACE, outside=True, stochastic=True)
    with opened(tmp_path / "run", 40, task) as queue:
        asked = queue.ask(5)
        assert len({own.seed for own in asked}) == 5
        assert queue.forget([2]) == (2,)
        assert queue.ask(1) == [asked[1]]  # the same seed again
    good = Design.of(("v", 0.7), ("v", 0.7))
    known = RunSettings(PythonOptions("lab"), Plan(5), given=TASK, initial_designs=(good,))
    with Queue(tmp_path / "first", known) as queue:
        assert queue.ask(1)[0].design == good
    rated = known_designs([(good, 0.5), *((design, near(design)) for design in SPACE.sample(30, seed=2))])
    before = RunSettings(PythonOptions("lab"), Plan(30), given=TASK, initial_designs=(good,), known=rated)
    with Queue(tmp_path / "known", before) as queue:
        assert queue.result.best.call == 0
        asked = queue.ask(4)
    with Queue(tmp_path / "known", given=TASK) as queue:
        queue.tell(results(asked))
        asked += queue.ask(26)
        assert (queue.result.best.design, queue.result.best.call) == (good, 0)
    assert (
        len({own.design for own in asked} | {own.design for own in rated}) == 61
    )  # none of them is paid for


def test_what_is_no_queue_is_refused(tmp_path):
    with pytest.raises(
        FileError, match=r"is no run folder; begin one there by `discodso ask .* --settings FILE`"
    ):
        Queue(tmp_path / "none")
    task = Task(SPACE, near)
    search(task, budget=20, out=tmp_path / "run")
    with pytest.raises(Exception, match="is not driven by ask and tell"):
        Queue(tmp_path / "run", given=task)
    with pytest.raises(
        DeclarationError, match="has no objective; run it by `discodso ask` and `discodso tell`"
    ):
        search(TASK, budget=20)
    with pytest.raises(DeclarationError, match="outside=True"):
        Task(SPACE)
    with pytest.raises(DeclarationError, match="outside=True if rewards come by ask and tell"):
        Task(SPACE, near, outside=True)


def test_results_are_read_in_each_of_their_forms():
    two = [{"id": 1, "reward": 0.5}, {"id": 2, "error": "x"}]
    lines = "\n".join(map(json.dumps, two))
    assert results_of(json.dumps(two)) == results_of(json.dumps({"results": two})) == results_of(lines) == two
    assert results_of(json.dumps(two[0])) == two[:1]
    with pytest.raises(FileError, match="line 2 of the results is no JSON: 'oops'"):
        results_of(f"{json.dumps(two[0])}\noops\n")


# --------------------------------------------------------------------------------------------------- the commands


@pytest.fixture
def lab(tmp_path):
    (tmp_path / "lab.py").write_text(
        "from discodso import *\nspace = Space([Token('v', range=(0, 1)), Token('d')], OpenSequence(1, 3))\n"
    )
    place = json.dumps(str(tmp_path))
    (tmp_path / "lab.toml").write_text(
        f'[task]\nkind = "custom"\ntask = "lab:space"\npath = {place}\n[run]\nbudget = 30\n'
    )
    return tmp_path


def command(*words, code=0, **more):
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False, **more)
    assert done.exit_code == code, done.output
    return done.stdout


def test_a_run_by_its_commands(lab):
    asked = json.loads(command("ask", lab / "run", "-n", 3, "--settings", lab / "lab.toml", "--json"))
    assert [own["id"] for own in asked["designs"]] == [1, 2, 3]
    assert (asked["told"], asked["pending"], asked["budget"], asked["over"]) == (0, 3, 30, None)
    design = Design.from_dict(asked["designs"][0]["design"])
    assert [part["token"] for part in asked["designs"][0]["parts"]] == list(design.tokens)
    (lab / "a.json").write_text(json.dumps([{"id": 1, "reward": 0.5}, {"id": 7, "reward": 0.5}]))
    out = command("tell", lab / "run", lab / "a.json", code=1)
    assert "1 results taken; 1 of 30 told, 2 pending, best reward 0.5" in out
    again = json.loads(command("tell", lab / "run", "-", "--json", input='{"id": 1, "reward": 0.5}\n'))
    assert (again["taken"], again["repeated"], again["best"]["call"]) == ([], [1], 1)
    assert "1 results are told, 2 designs are pending: 2, 3" in command("show", lab / "run")
    assert json.loads(command("show", lab / "run", "--json"))["pending"].keys() == {"2", "3"}
    assert command("ask", lab / "run", "--forget", 2).startswith("2\t")
    command("report", lab / "run")
    check_task(load_task("lab:space", str(lab)))
    assert command("export", lab / "run").splitlines()[1].startswith("1,0.5,,")


def test_two_at_once_take_turns(lab):
    command("ask", lab / "run", "-n", 1, "--settings", lab / "lab.toml")
    words = [sys.executable, "-m", "discodso", "ask", str(lab / "run"), "-n", "4", "--json"]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=lab) for _ in range(2)]
    ids = [own["id"] for process in both for own in json.loads(process.communicate()[0])["designs"]]
    assert sorted(ids) == list(range(2, 10))


@pytest.mark.skipif(not (shutil.which("sh") and shutil.which("awk")), reason="needs a shell and awk")
def test_a_shell_drives_a_run(tmp_path):
    script = Path(__file__).parents[2] / "examples" / "laboratory.sh"
    environment = {**os.environ, "DISCODSO": f"{sys.executable} -m discodso"}
    words = ["sh", str(script), str(tmp_path / "run"), "12", "12"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert "12 results taken; 12 of 12 told, 0 pending, best reward" in done.stdout
    run = read_run(tmp_path / "run")
    assert (run.status, run.top["calls"]) == ("ended", 12)
    for scored in run.designs:  # awk has read the numbers right
        assert scored.reward == pytest.approx(hardness(scored.design), rel=1e-9)


def hardness(design: Design) -> float:
    """The same as in awk."""
    hard, stress, hot, cost = 20.0, 0.0, 0.0, 0.0
    for part in design:
        if part.name == "heat":
            hot = part.minutes / (part.minutes + 8) if 780 < part.celsius < 900 else 0.0
            if part.celsius < 400:
                stress *= 1 - part.celsius / 400 * part.minutes / (part.minutes + 20)
                hard -= part.celsius / 80
            cost += part.minutes / 200
        elif part.name == "cool":
            hard, cost, hot = hard + 10 * hot / (1 + part.minutes / 60), cost + part.minutes / 600, 0.0
        else:
            hard, stress, hot = hard + 45 * hot, stress + 30 * hot, 0.0
    return hard - stress - cost


def test_several_objectives_are_told_by_name_or_in_order(tmp_path):
    task = Task(SPACE, outside=True, objectives=("gain", "mass"), directions=("max", "min"))
    with opened(tmp_path / "run", 30, task) as queue:
        queue.ask(4)
        told = queue.tell(
            [
                {"id": 1, "reward": {"mass": 1.0, "gain": 2.0}},
                {"id": 2, "reward": [3.0, 5.0]},
                {"id": 3, "reward": 3.0},
                {"id": 4, "reward": [0.0, 2.0]},
            ]
        )
        assert told.taken == (1, 2, 4)
        assert told.refused == ("id 3 returned 3.0 instead of 2 numbers (gain, mass)",)
        assert queue.tell([{"id": 1, "reward": [2.0, 1.0]}]).repeated == (1,)
    with opened(tmp_path / "run", 30, task) as queue:
        assert {own.call for own in queue.result.front} == {1, 2}
        assert (2.0, 1.0) in {own.outcome.rewards for own in read_known(tmp_path / "run")}
