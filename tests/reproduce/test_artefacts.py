"""Artefacts of the paper at sizes that take seconds: their files, and runs that are made only once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_scale import TINY, ignore, rows_of

from discodso.base.errors import SettingsError
from discodso.baselines.literature import LITERATURE
from discodso.reproduce import paper
from discodso.reproduce.artefacts import ARTEFACTS, reproduce
from discodso.reproduce.scales import DEFAULT, SCALES
from discodso.run.executors.registry import Processes, Threads
from discodso.tasks.regression.problems import problems


def test_one_artefact_has_all_its_files_and_is_not_run_again(tmp_path):
    lines: list[str] = []
    with Threads(1) as executor:
        reproduce("regression", TINY, tmp_path, executor, lines.append)
        first = len(lines)
        reproduce("regression-gaps", TINY, tmp_path, executor, lines.append)  # of the same runs
    assert first == len(TINY.regression_methods()) + 1
    assert len(lines) == first + 1
    for name in ("regression.csv", "regression.md", "regression.png", "regression-gaps.md"):
        assert (tmp_path / name).stat().st_size > 0
    table = rows_of(tmp_path / "regression.csv")
    assert {row["row"] for row in table} == {*TINY.regression_methods(), *paper.QUOTED_REGRESSION}
    disco = next(row for row in table if row["row"] == "DisCo-DSO" and row["column"] == "all")
    assert disco["paper"] == "0.7045"
    assert float(disco["difference"]) == pytest.approx(float(disco["ours"]) - 0.7045)
    kamienny = next(row for row in table if row["row"].startswith("Kamienny"))
    assert (kamienny["ours"], kamienny["quoted"]) == ("", "yes")
    runs = rows_of(tmp_path / "regression-runs.csv")
    assert all(int(row["calls"]) == 40 for row in runs if row["method"] != "BO")


def test_runs_with_other_settings_are_not_taken_for_these(tmp_path):
    with Threads(1) as executor:
        reproduce("regression", TINY, tmp_path, executor, ignore)
        with pytest.raises(SettingsError, match="other settings; give another folder"):
            reproduce("regression", replace(TINY, inner_calls=7), tmp_path, executor, ignore)


def test_more_calls_go_on_with_the_same_runs(tmp_path):
    with Threads(1) as executor:
        reproduce("regression", TINY, tmp_path, executor, ignore)
        reproduce("regression", replace(TINY, problem_calls=60), tmp_path, executor, ignore)
    runs = rows_of(tmp_path / "regression-runs.csv")
    assert all(int(row["calls"]) == 60 for row in runs if row["method"] != "BO")


@pytest.mark.slow
def test_all_artefacts_are_made(tmp_path):
    with Processes(2) as executor:
        made = reproduce("all", TINY, tmp_path, executor, ignore)
    assert made == list(ARTEFACTS)
    pictures = {path.name for path in tmp_path.glob("*.png")}
    trees = {f"tree-{name.lower()}.png" for name in paper.ENVIRONMENTS}
    assert pictures == {
        *trees,
        *(f"{n}.png" for n in ("landscapes bitstring curves regression lengths".split())),
    }
    tables = {path.stem for path in tmp_path.glob("*.md")} - {"README"}
    assert {"bitstring-gaps", "policies", "policies-nodes", "policy-gaps", "policy-gaps-literature"} <= tables
    assert {"seconds", "efficiency", "regression", "regression-gaps", "architectures", "trees"} <= tables
    assert all((tmp_path / f"{name}.csv").exists() for name in tables)


def test_scales_and_artefacts_cover_what_was_promised():
    small, whole = SCALES["small"], SCALES["full"]
    assert len(small.problems) == 12
    assert list(small.problems) == [problem.name for problem in problems("all")][::4]
    assert len(whole.problems) == 45
    assert (whole.problem_calls, whole.problem_seeds, whole.population) == (1_000_000, 10, 1000)
    decoupled = [f"Decoupled-{kind}-{inner}" for kind in ("RL", "GP") for inner in ("BFGS", "anneal", "evo")]
    for scale in (small, whole, TINY):
        known = ["DisCo-DSO", DEFAULT, *decoupled, "BO", "GP", "Random"]
        assert list(scale.bitstring_methods()) == known
        assert list(scale.tree_methods()) == [*known, paper.UNRULED]
        assert list(scale.literature_methods("Acrobot-v1")) == list(LITERATURE)
