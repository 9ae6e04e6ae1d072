"""Laws as a benchmark."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from discodso.base.errors import DeclarationError
from discodso.cli.main import app
from discodso.reproduce import law_runs
from discodso.tasks.regression.estimator import DisCoRegressor
from discodso.tasks.regression.laws import SETS


def test_the_bench_keeps_its_runs_and_goes_on_with_them(tmp_path):
    arguments = ["bench", "laws", "--sets", "feynman,nist", "--laws", "I.12.5,DanWood", "--budget", "500"]
    arguments += ["--workers", "1", "--noise", "0,0.1", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert "| feynman | 0 | all | 1 | 1 |" in first.stdout
    assert "| feynman | 0.1 | all | 1 | 1 |" in first.stdout
    assert "3/3 laws" in first.stderr  # the tables of NIST have a noise of their own
    records = [json.loads(line) for line in (tmp_path / "laws-500.jsonl").read_text().splitlines()]
    assert [(own["law"], own["noise"]) for own in records] == [("I.12.5", 0), ("DanWood", 0), ("I.12.5", 0.1)]
    assert all(own["calls"] <= 500 and own["cpu_seconds"] > 0 for own in records)
    again = CliRunner().invoke(app, arguments)
    assert (again.exit_code, again.stdout, again.stderr) == (0, first.stdout, "")
    other = CliRunner().invoke(app, [*arguments, "--budget", "400"])  # another budget, other runs
    assert "3/3 laws" in other.stderr


@pytest.mark.parametrize("name", ["I.12.5", "DanWood"])
def test_a_run_is_what_the_estimator_does(name):
    (law,) = law_runs.chosen("all", name, "all")
    X, y = law.data(0.01, 3)
    model = DisCoRegressor(budget=1000, random_state=3, column_names=law.columns).fit(X, y)
    found = law_runs.run(law, 0.01, 3, 1000)
    assert (found["expression"], found["calls"]) == (str(model), model.calls_)
    assert found["length"] == len(model.expression_)


def test_laws_that_are_not_known_are_refused():
    assert {law.set for law in law_runs.chosen("all", "all", "all")} == {*SETS, "nist"}
    with pytest.raises(DeclarationError, match="no law Misra1a"):
        law_runs.chosen("feynman", "Misra1a", "all")
