"""What is known before a run: read from files and folders, never paid for, the same after a resume."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from killing import comparable
from near_task import METHOD, NEAR, near
from spaces import decision_tree, small_fixed, valued_sequence
from typer.testing import CliRunner

from discodso import (
    DeclarationError,
    Design,
    DiscodsoError,
    GPSettings,
    InvalidDesignError,
    Measured,
    StopReason,
    Task,
    resume,
    search,
)
from discodso.base.files import FileError
from discodso.baselines.bayesian import BOSettings
from discodso.baselines.decoupled import DecoupledSettings
from discodso.baselines.random_search import RandomSettings
from discodso.cli.main import app
from discodso.run.known import csv_of, known_designs, read_known
from discodso.run.objective_calls import Rated

GOOD = Design.of(("v", 0.7), ("v", 0.69))


def counted():
    calls = []
    return calls, Task(NEAR.space, lambda design: calls.append(design) or near(design))


METHODS = [None, METHOD, RandomSettings(20), GPSettings(), BOSettings(), DecoupledSettings()]


@pytest.mark.parametrize("method", METHODS, ids=lambda own: type(own).__name__)
def test_known_designs_teach_are_ranked_and_cost_nothing(method, tmp_path):
    calls, task = counted()
    pairs = [(design, near(design)) for design in NEAR.space.sample(30, seed=5)]
    result = search(task, budget=40, method=method, known=[*pairs, (GOOD, near(GOOD))], out=tmp_path / "run")
    assert result.calls == len(calls) == 40
    assert not {design for design, _ in pairs} & set(calls)
    assert GOOD in {scored.design for scored in result.top}
    assert {scored.call for scored in result.top if scored.design == GOOD} == {0}
    assert result.history[0].best >= near(GOOD)
    assert result.best.reward >= near(GOOD)


def test_a_design_that_the_method_proposes_is_not_paid_for_if_it_is_known():
    space = small_fixed()
    every = [Design.of(*tokens) for tokens in space.enumerate()]
    calls = []
    task = Task(space, lambda design: calls.append(design) or float(design.tokens.count("b")))
    result = search(
        task, budget=1000, known=[(design, float(design.tokens.count("b"))) for design in every[3:]]
    )
    assert set(calls) == set(every[:3])
    assert (result.calls, result.stop) == (3, StopReason.EXHAUSTED)


def test_with_known_designs_a_run_resumes_bit_for_bit(tmp_path):
    pairs = [(design, near(design)) for design in NEAR.space.sample(30, seed=5)]
    failing = Design.of("d", ("v", 0.1))
    (tmp_path / "known.csv").write_text(
        csv_of([*((d, r, None) for d, r in pairs), (failing, "raised it", 3)])
    )
    more = {"known": tmp_path / "known.csv", "method": METHOD, "seed": 3, "initial_designs": [GOOD]}
    whole = search(NEAR, budget=150, **more)
    search(NEAR, budget=70, out=tmp_path / "run", **more)
    (tmp_path / "known.csv").unlink()  # the folder has its own
    assert comparable(resume(tmp_path / "run", task=NEAR, budget=150)) == comparable(whole)
    (tmp_path / "run" / "checkpoint.safetensors").unlink()
    assert comparable(resume(tmp_path / "run", task=NEAR, budget=150)) == comparable(whole)
    assert whole.failure_count == 0


def test_a_target_that_is_known_already_costs_no_call():
    calls, task = counted()
    result = search(task, budget=50, target=-0.01, known=[(GOOD, near(GOOD))])
    assert (result.stop, result.calls, calls) == (StopReason.TARGET, 0, [])
    assert result.best.design == GOOD


def test_one_run_feeds_another(tmp_path):
    """By the folder, by an exported file, and by the same in a settings file."""
    (tmp_path / "mine.py").write_text(
        "from discodso import *\n"
        "space = Space([Token('v', range=(0, 1)), Token('d')], FixedSequence(2), [Repeat('d', at_most=1)])\n"
        "def near(design):\n    return -sum(1.0 if v is None else (v - 0.7) ** 2 for v in design.values)\n"
        "task = Task(space, near)\n"
    )
    place = json.dumps(str(tmp_path))
    settings = f'[task]\nkind = "custom"\ntask = "mine:task"\npath = {place}\n[run]\nbudget = 40\n'
    (tmp_path / "a.toml").write_text(settings)

    def command(*words):
        done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    first = json.loads(command("run", tmp_path / "a.toml", "--json", "--out", tmp_path / "a"))
    found = read_known(tmp_path / "a")
    assert {scored["reward"] for scored in first["top"]} <= {own.outcome for own in found}
    command("export", tmp_path / "a", "--out", tmp_path / "a.csv")
    assert command("export", tmp_path / "a") == (tmp_path / "a.csv").read_text()
    (tmp_path / "first.csv").write_text("design\nv(0.7) v(0.6)\nd v(0.5)\n")
    words = ("--known", tmp_path / "a.csv", "--initial-designs", tmp_path / "first.csv", "--json")
    by_file = json.loads(command("run", tmp_path / "a.toml", *words, "--set", "run.seed=1"))
    by_folder = command(
        "run", tmp_path / "a.toml", "--known", tmp_path / "a", *words[2:], "--set", "run.seed=1"
    )
    (tmp_path / "b.toml").write_text(f'{settings}seed = 1\nknown = "a.csv"\ninitial_designs = "first.csv"\n')
    by_settings = json.loads(command("run", tmp_path / "b.toml", "--json", "--out", tmp_path / "b"))
    for other in (json.loads(by_folder), by_settings):
        assert other["top"] == by_file["top"]
    assert by_file["best"]["reward"] >= first["best"]["reward"]
    assert 0 in {scored["call"] for scored in by_file["top"]}
    again = command("run", tmp_path / "a.toml", "--set", "run.budget=1", "--known", tmp_path / "b")
    assert "known before the run" in again


def test_requirements_and_evidence_are_kept(tmp_path):
    designs = list(valued_sequence().sample(4, seed=1))
    outcomes = [0.5, Rated(0.25, {"size": 0.0, "mass": 2.5}), Rated(math.nan, {"size": 1.0}), "raised =1"]
    file = tmp_path / "a.csv"
    file.write_text(csv_of(zip(designs, outcomes, [1, 2, 3, 4], strict=True)))
    again = read_known(file)
    assert [own.design for own in again] == [design.to_json() for design in designs]
    assert again[0].outcome == 0.5
    assert again[1].outcome == Rated(0.25, {"size": 0.0, "mass": 2.5})
    assert np.isnan(again[2].outcome.reward)
    assert (again[2].outcome.broken, again[3].outcome) == ({"size": 1.0}, "raised =1")

    def objective(design):
        return Measured(near(design), violation={"size": 1.0, "mass": 0.0})

    found = search(Task(valued_sequence(), objective), budget=20, known=file)
    assert found.best.design == designs[0]


BAD = {
    "reward,text\n1,x\n": r"needs a header with a column 'design'",
    "design,reward\nv(0.1) d\n": "line 2 has 1 cells, its header 2",
    'design,reward\n"v(0.1) d",\n': "line 2 has no reward; write one, or what",
    "design,reward\nv(0.1) d,nan\n": "line 2: reward must be a finite number, got 'nan'",
    "design,reward\nd v(0.1),1\n\nv(0.1) e,1\n": "line 4: the library has no token 'e'; it has v, d, at",
    "design,reward\nv(1.5) d,1\n": r"line 2: .* does not belong to the space: .*value 1.5 lies outside \[0, 1\]",
    "design,reward\nd v(0.1),1\nd d,1\n": r"line 3: .* forbidden by Repeat",
    "design,reward\nd,1\n": "line 2: .* ends with 1 open slot",
    "design,reward,reward\nd,1,2\n": "two columns 'reward'",
    'design,reward\n"d,1\n': "is no CSV file",
    'design,reward\n"{""tokens"": 1}",1\n': "line 2: a design in JSON is an object",
}


@pytest.mark.parametrize("content", BAD)
def test_a_wrong_row_is_named_and_what_to_change(content, tmp_path):
    (tmp_path / "bad.csv").write_text(content)
    with pytest.raises(DiscodsoError, match=BAD[content]) as caught:
        search(NEAR, budget=10, known=tmp_path / "bad.csv")
    assert "bad.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_known_design_is_refused(tmp_path):
    with pytest.raises(DeclarationError, match="item 2: the reward must be a finite number, got nan"):
        known_designs([(GOOD, 1.0), (GOOD, math.nan)])
    with pytest.raises(DeclarationError, match=r"known, item 1 must be a pair \(design, reward\) or a path"):
        known_designs([GOOD])
    with pytest.raises(DeclarationError, match="known must be a list, got a single Design"):
        known_designs(GOOD)
    with pytest.raises(FileError, match="No such file"):
        known_designs(tmp_path / "none.csv")
    with pytest.raises(FileError, match="is no run folder"):
        known_designs(tmp_path)
    with pytest.raises(InvalidDesignError, match="initial_designs, item 2: the library has no token 'w'"):
        search(NEAR, budget=10, initial_designs=["v(0.1) d", "w d"])


def test_trees_have_a_text_as_well():
    space = decision_tree()
    task = Task(space, lambda design: float(len(design)))
    text = "x1<(2.5)(a1, x2<(3)(a2, a1))"
    found = search(task, budget=10, known=[(text, 99.0)], initial_designs=["a1"])
    assert str(found.best.design) == text
    assert "a1" in {str(scored.design) for scored in found.top}


def test_designs_of_several_objectives_are_known_by_name_and_in_order(tmp_path):
    calls = []

    def goals(design):
        calls.append(design)
        return near(design), sum(value or 0.0 for value in design.values)

    task = Task(valued_sequence(), goals, objectives=("gain", "mass"), directions=("max", "min"))
    first = search(task, budget=40, out=tmp_path / "run")
    assert (
        CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--out", str(tmp_path / "a.csv")]).exit_code
        == 0
    )
    assert (tmp_path / "a.csv").read_text().startswith("call,reward,goal.gain,goal.mass,")
    best = Design.of(("v", 0.7), ("v", 0.7))
    more = [(best, {"mass": 1.4, "gain": 0.0})]
    del calls[:]
    for known in (tmp_path / "run", tmp_path / "a.csv"):
        found = search(task, budget=10, seed=1, known=[known, *more], out=tmp_path / f"from {known.name}")
        assert best in {own.design for own in found.front if own.goals == (0.0, 1.4)}
        assert found.hypervolume >= 0
        assert not {own.design for own in first.front} & set(calls)
        whole = search(task, budget=20, seed=1, known=[known, *more])
        assert comparable(resume(tmp_path / f"from {known.name}", task=task, budget=20)) == comparable(whole)
    with pytest.raises(
        DeclarationError, match=r"item 1: the reward was 3.0 instead of 2 numbers \(gain, mass\)"
    ):
        search(task, budget=10, known=[(best, 3.0)])
    with pytest.raises(DeclarationError, match="item 1: the reward was an array of shape"):
        search(NEAR, budget=10, known=[(best, (3.0, 1.0))])
