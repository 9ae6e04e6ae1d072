"""Where a run writes does not follow a change of the current folder."""

from __future__ import annotations

import os

import numpy as np
import pytest
from spaces import roomy_fixed
from typer.testing import CliRunner

from discodso import DisCoSettings, NetworkSettings, Task, resume, search, search_policy
from discodso.cli.main import app
from discodso.run.callbacks import JsonLines, TensorBoard
from discodso.run.plan import Plan
from discodso.run.settings import RunSettings
from discodso.run.start import start
from discodso.tasks.regression.data import GivenData
from discodso.tasks.regression.options import RegressionOptions

METHOD = DisCoSettings(batch_size=20, network=NetworkSettings(units=4))


@pytest.fixture
def wander(tmp_path, monkeypatch):
    """Goes elsewhere; there is nothing there at the end."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    yield lambda *_: os.chdir(tmp_path / "elsewhere")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_an_objective_that_changes_the_folder_takes_no_file_along(tmp_path, wander):
    def objective(design):
        wander()
        return float(design.tokens.count("c"))

    task = Task(roomy_fixed(), objective)
    search(
        task, budget=60, method=METHOD, out="run", callback=JsonLines("events.jsonl"), checkpoint_seconds=0
    )
    assert os.getcwd() == str(tmp_path / "elsewhere")
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
    assert "end" in (tmp_path / "events.jsonl").read_text()
    os.chdir(tmp_path)
    assert resume("run", task=task, budget=100).calls == 100


def test_curves_stay_where_they_began(tmp_path, wander):
    pytest.importorskip("tensorboard")
    search(
        Task(roomy_fixed(), lambda design: 1.0),
        budget=60,
        method=METHOD,
        callback=[TensorBoard("curves"), wander],
    )
    assert list((tmp_path / "curves").iterdir())


def test_policy_and_picture_stay_with_their_run(tmp_path, wander):
    search_policy(
        "CartPole-v1", budget=20, episodes=2, workers=1, test_seeds=range(2), out="run", callback=wander
    )
    assert (tmp_path / "run" / "policy.json").exists()


def test_the_equation_stays_with_its_run(tmp_path, wander):
    x = np.linspace(0, 1, 20)[:, None]
    data = GivenData(x, 2 * x[:, 0], np.ones(20), ("x1",))
    settings = RunSettings(RegressionOptions(table="", target="y"), Plan(300), given=data)
    start(settings, out="run", callback=wander)
    assert list((tmp_path / "run").glob("equation*"))


def test_a_plot_is_drawn_where_it_was_asked_for(tmp_path, wander, monkeypatch):
    monkeypatch.setattr("discodso.cli.running.callbacks_for", lambda *_: wander)
    (tmp_path / "data.csv").write_text("a,y\n" + "".join(f"{i},{2 * i}\n" for i in range(20)))
    words = ["fit", "data.csv", "--target", "y", "--budget", "300", "--plot", "plot.svg"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "plot.svg").exists()
