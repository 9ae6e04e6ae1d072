"""Runs of the regression bench."""

from __future__ import annotations

import json

import pytest

from discodso.reproduce.regression_runs import bench, run_problem
from discodso.run.executors.registry import Threads


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_the_bench_keeps_its_runs_and_goes_on_with_them(tmp_path, preset):
    lines: list[str] = []

    def table(seeds, calls):
        with Threads(1) as executor:
            return bench(["Constant-6"], seeds, calls, "A", preset, tmp_path, executor, lines.append)

    first, more = table(1, 400), table(2, 800)
    assert "| Constant-6 | 1 |" in first
    assert "mean, all" in first
    assert len(lines) == 3  # the first run goes on
    assert (table(1, 400), table(2, 800)) == (first, more)
    assert len(lines) == 3
    scores = [json.loads(line) for line in (tmp_path / f"{preset}-A-800.jsonl").read_text().splitlines()]
    assert [own["seed"] for own in scores] == [0, 1]
    assert all(own["calls"] <= 800 and 0 <= own["evaluation"] <= 1 for own in scores)
    alone = run_problem("Constant-6", 1, 800, preset=preset)
    assert all(alone[key] == scores[1][key] for key in ("train", "evaluation", "expression", "calls"))
    (tmp_path / f"runs/regression/constant-6-a/{preset}/seed-1/score-800.json").write_text("{")  # damaged
    assert table(2, 800).count("Constant-6") == 1
    assert len(lines) == 4
