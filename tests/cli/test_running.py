"""The commands that search: from a starting file or from options to a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from command import COMMAND, ORDINARY_INTERRUPT, error_of, invoked, run

from discodso.cli.main import main

ROOT = Path(__file__).parents[2]


def test_a_bitstring_from_its_starting_file_to_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert invoked("init", "bitstring").exit_code == 0
    change = ["--set", "run.budget=300", "--set", "method.archive.size=30"]
    done = invoked("run", "settings.toml", *change, "--out", "run-1", "--events", "events.jsonl", "--json")
    assert done.exit_code == 0, done.output
    first = json.loads(done.stdout)
    assert first["calls"] == 300
    assert len(Path("events.jsonl").read_text().splitlines()) >= 5
    shown = invoked("show", "run-1")
    assert "300 of 300 objective calls" in shown.output
    assert "it has ended: the budget" in shown.output
    assert json.loads(invoked("show", "run-1", "--json").stdout)["top"][0] == first["best"]
    longer = json.loads(invoked("resume", "run-1", "--budget", "500", "--json").stdout)
    whole = json.loads(invoked("run", "settings.toml", *change, "--set", "run.budget=500", "--json").stdout)
    for result in (longer, whole):
        for part in (result, *result["history"]):
            part.pop("seconds")
    assert longer == whole
    assert "already holds a run" in error_of(capsys, "run", "settings.toml", "--out", "run-1")
    assert "left alone" in error_of(capsys, "init", "bitstring")


def test_a_custom_task_from_its_starting_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_task", raising=False)
    assert invoked("init", "custom").exit_code == 0
    checked = invoked("check", "my_task:task")
    assert "sound task" in checked.output, checked.output
    change = ["--set", "run.budget=200", "--set", "executor.kind=processes", "--set", "executor.workers=2"]
    done = invoked("run", "settings.toml", *change, "--out", "run-1", "--json")
    assert json.loads(done.stdout)["calls"] == 200
    monkeypatch.chdir("/")  # a run is gone on with from anywhere
    assert (
        json.loads(invoked("resume", tmp_path / "run-1", "--budget", "250", "--json").stdout)["calls"] == 250
    )
    monkeypatch.delitem(sys.modules, "my_task", raising=False)


def test_an_equation_in_a_folder(tmp_path, monkeypatch):
    table = ROOT / "examples/data/stopping_distance.csv"
    options = [table, "--target", "distance", "--seed", "1", "--json"]
    done = invoked("fit", *options, "--budget", "400", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    again = json.loads(invoked("resume", tmp_path / "run", "--json").stdout)
    assert again == json.loads(done.stdout)
    longer = json.loads(invoked("resume", tmp_path / "run", "--budget", "500", "--json").stdout)
    assert again["calls"] < longer["calls"] <= 500
    assert "An equation for distance" in invoked("show", tmp_path / "run").output


OWN = """
import gymnasium, numpy

class Drift(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9, 9, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.normal()
        return numpy.array([self.x], numpy.float32), {}
    def step(self, action):
        self.x += action - 0.5 + self.np_random.normal()
        return numpy.array([self.x], numpy.float32), -abs(self.x), False, False, {}

class Doubled(gymnasium.RewardWrapper):
    def reward(self, reward):
        return 2 * reward

gymnasium.register("Drift-v0", Drift, max_episode_steps=9)
"""


def test_an_environment_of_a_module_in_the_current_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_drift.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(ROOT))])
    limits = "--budget 20 --episodes 2 --workers 2 --set task.test_seeds=[0,1] --json".split()
    names = ["--feature-names", "place", "--action-names", "down, up"]
    found = []
    for more in ([], ["--wrapper", "own_drift:Doubled"]):
        monkeypatch.delitem(sys.modules, "own_drift", raising=False)
        with pytest.raises(SystemExit) as ended:
            main(["policy", "own_drift:Drift-v0", *limits, *names, *more])
        assert ended.value.code in (0, None)
        found.append(json.loads(capsys.readouterr().out))
    assert found[1]["test_mean"] == 2 * found[0]["test_mean"]
    assert [own["name"] for own in found[0]["interface"]["features"]] == ["place"]
    assert found[0]["interface"]["actions"] == {"0": "down", "1": "up"}


def test_a_policy_from_its_starting_file_to_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert invoked("init", "policy").exit_code == 0
    change = ["--set", "run.budget=130", "--set", "task.episodes=5"]
    done = invoked("run", "settings.toml", *change, "--out", "run-1")
    assert done.exit_code == 0, done.output
    assert "test mean" in done.stdout
    assert "episodes" in done.stderr  # in the lines on how it goes
    shown = invoked("show", "run-1").output
    assert "A tree policy for CartPole-v1" in shown
    assert "130 of 130 objective calls" in shown
    assert "policy.json after 130 calls" in shown
    assert "it has ended: the budget" in shown
    longer = json.loads(invoked("resume", "run-1", "--budget", "250", "--json").stdout)
    whole = json.loads(invoked(*"policy CartPole-v1 --budget 250 --episodes 5 --json".split()).stdout)
    assert longer.pop("seconds")
    assert whole.pop("seconds")
    spent = [[(own["name"], own["episodes"]) for own in found.pop("phases")] for found in (longer, whole)]
    assert spent[0] == spent[1]
    assert longer == whole
    assert "already holds a run" in error_of(capsys, "run", "settings.toml", "--out", "run-1")
    assert "left alone" in error_of(capsys, "init", "policy")
    wrong = ["--set", "executor.kind=processes"]
    assert "see task.workers" in error_of(capsys, "run", "settings.toml", *wrong)


def test_a_file_of_another_kind_is_no_settings_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("a,b\n1,2\n")
    assert "table.csv is not TOML" in error_of(capsys, "run", "table.csv")


def test_the_page_on_running_is_true(tmp_path, monkeypatch, capsys):
    """Its Python blocks run, and its commands and keys exist."""
    import re
    import shlex

    text = (ROOT / "docs/running.md").read_text()
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "running.md", "exec"), {"__name__": "running"})  # our own text
    commands = [shlex.split(line)[1:] for line in re.findall(r"^\$ (discodso [^#\n]*)", text, re.MULTILINE)]
    known = {"run", "show", "resume", "init", "ask", "tell"}
    assert {command[0] for command in commands} == known
    for command in commands:
        if "executor.kind=dask" not in command:
            calls = ["--budget", "300"] if command[:2] == ["run", "bitstring"] else []
            done = (
                invoked(*command, *calls)
                if command[0] != "resume"
                else invoked(*command[:2], "--budget", "400")
            )
            assert done.exit_code == 0, done.output
            if command[0] == "ask":  # what the laboratory says
                ids = [asked["id"] for asked in json.loads(done.stdout)["designs"]]
                Path("results.json").write_text(json.dumps([{"id": own, "reward": 0.5} for own in ids]))


def test_the_bitstring_task_runs_and_prints_its_best_design():
    done = run(
        *"run bitstring --length 6 --objective f2 --budget 3000 --seed 0 --set method.batch_size=100".split()
    )
    assert done.returncode == 0
    assert "best reward 1.000000 at call" in done.stdout
    assert "3000 objective calls, 0 failed" in done.stdout
    assert "300 calls, best" in done.stderr  # plain lines where the output is not a terminal
    assert "\x1b" not in done.stdout + done.stderr


def test_json_is_for_programs():
    done = run(*"run bitstring --length 4 --budget 500 --json".split())
    result = json.loads(done.stdout)
    assert done.stderr == ""
    assert result["calls"] == 500
    assert result["stop"] == "budget"
    assert len(result["best"]["design"]["tokens"]) == 4


def test_a_run_that_broke_down_does_not_exit_with_zero():
    done = run(*"run bitstring --budget 3000 --preset paper --set method.learner.learning_rate=1e30".split())
    assert done.returncode == 1
    assert "non-finite" in done.stdout
    assert "Traceback" not in done.stderr


def test_ctrl_c_prints_the_best_so_far_and_exits_with_130():
    arguments = "run bitstring --budget 30000 --length 20 --set method.batch_size=100".split()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        **ORDINARY_INTERRUPT,
    )
    assert "calls, best" in process.stderr.readline()  # it is searching
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "best reward 0." in out
    assert "interrupted by the user" in out
    assert "Traceback" not in err
    assert time.monotonic() - started < 20  # a second on an idle machine; this only guards against hanging


def test_operators_with_costs_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_text("a,b,y\n" + "".join(f"{a},{b},{a * b + 1}\n" for a in range(1, 6) for b in range(2, 6)))
    words = ["fit", str(path), "--target", "y", "--budget", "300", "--json", "--operators", "add,mul=7,const"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    front = json.loads(capsys.readouterr().out)["front"]
    chosen = next(row for row in front if row["chosen"])
    assert (chosen["expression"], chosen["complexity"]) == ("a * b + 1", 11)
    with pytest.raises(SystemExit):
        main([*words[:-1], "add,mul=x"])
    assert "the cost of 'mul' must be an integer from 1 to 40, got 'x'" in capsys.readouterr().err


def test_rules_of_nesting_on_the_command_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,y\n" + "".join(f"{a},{a * a + 1}\n" for a in range(1, 9)))
    for place, (words, wanted) in enumerate(
        [
            (["sin:sin,cos", "exp:exp"], {"sin": ["sin", "cos"], "exp": ["exp"]}),
            (["none"], {}),
            ([], None),
        ]
    ):
        out, more = tmp_path / str(place), [part for word in words for part in ("--nesting", word)]
        with pytest.raises(SystemExit) as ended:
            main(["fit", str(path), "--target", "y", "--budget", "100", "--json", "--out", str(out), *more])
        assert ended.value.code == 0
        assert tomllib.loads((out / "settings.toml").read_text())["task"].get("nesting") == wanted


def test_options_of_a_policy_on_the_command_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "scores_of_mine.py").write_text("def least(rewards, infos):\n    return min(rewards)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    asked = "policy CartPole-v1 --budget 40 --episodes 2 --max-depth 1 --max-features 1 --no-trim".split()
    more = ["--test-seeds", "3-5,9", "--feature-price", "angle=1000", "--score", "scores_of_mine:least"]
    found = json.loads(invoked(*asked, *more, "--out", "run", "--json").stdout)
    assert (found["test_count"], found["test_seeds"]) == (4, [3, 9])
    assert found["test_score"] == 1.0
    assert found["tree"].get("feature", 0) != 2
    assert not set(found["tree"].get("left", {})) & {"left", "right"}
    settings = tomllib.loads(Path("run/settings.toml").read_text())["task"]
    assert settings["feature_prices"] == {"angle": 1000.0}
    assert (settings["max_depth"], settings["max_features"], settings["score"]) == (1, 1, more[-1])
    wrong = error_of(capsys, *asked, "--test-seeds", "a-b")
    assert wrong == "discodso: --test-seeds must be FIRST-LAST or SEED,SEED,..., got 'a-b'"
    assert "--feature-price must be FEATURE=PRICE" in error_of(capsys, *asked, "--feature-price", "angle")
    assert "give score or discount, not both" in error_of(capsys, *asked, *more[-2:], "--discount", "0.9")
