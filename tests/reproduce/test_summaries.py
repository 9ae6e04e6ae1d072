"""Summaries of runs: a run that has one is not made again, and artefacts need nothing else."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_scale import TINY, ignore, rows_of

from discodso.base.errors import SettingsError
from discodso.reproduce import tree_artefacts
from discodso.reproduce.artefacts import reproduce
from discodso.reproduce.jobs import execute_all, kept, read_record
from discodso.reproduce.paper import DISCO
from discodso.reproduce.scales import SCALES
from discodso.reproduce.summaries import history_of, read_summary, thinned
from discodso.run.executors.registry import Threads
from discodso.run.folder import HISTORY, read_history

TWO = replace(TINY, tree_seeds=2, tree_calls=dict.fromkeys(TINY.tree_calls, 30))
CHOSEN = [
    job
    for job in tree_artefacts.jobs(TWO)
    if (job.case, job.method)
    in (("MountainCar-v0", DISCO), ("MountainCar-v0", "Random"), ("CartPole-v1", DISCO))
    and (job.method == DISCO or job.seed == 0)
]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    place = tmp_path_factory.mktemp("summaries")
    with Threads(1) as executor:
        execute_all(CHOSEN, place, executor, ignore)
    return place


def test_without_its_folder_a_run_is_what_it_was_and_is_not_made_again(out, tmp_path):
    shutil.copytree(out / "summaries", tmp_path / "summaries")
    lines: list[str] = []
    with Threads(1) as executor:
        execute_all(CHOSEN, tmp_path, executor, lines.append)
    assert not lines
    for job in CHOSEN:
        assert read_record(job, tmp_path) == read_record(job, out)
        rows = read_history(job.folder(out) / HISTORY)
        record = read_record(job, tmp_path)
        assert record.best == rows[-1].best
        assert record.history[-1].mean_length == pytest.approx(rows[-1].mean_length, abs=1e-6)
        assert (record.history[-1].calls, record.history[-1].cost) == (rows[-1].calls, rows[-1].cost)


def test_other_settings_and_other_budgets_are_not_taken_for_these(out):
    job = CHOSEN[0]
    plan, task = job.settings.plan, job.settings.task
    longer = replace(job, settings=replace(job.settings, plan=replace(plan, budget=99)))
    assert (kept(job, out), kept(longer, out)) == (True, False)
    other = replace(job, settings=replace(job.settings, task=replace(task, episodes=7)))
    with pytest.raises(SettingsError, match="other settings; give another folder"):
        kept(other, out)


def test_tables_of_what_has_ended_tell_how_many_runs_they_stand_on(out):
    with Threads(1) as executor:
        reproduce("curves", TWO, out, executor, ignore, finished=True)
        reproduce("policy-gaps", TWO, out, executor, ignore, finished=True)
    cells = {(row["row"], row["column"]): row for row in rows_of(out / "curves-best.csv")}
    own = [
        read_record(job, out).best for job in CHOSEN if (job.case, job.method) == ("MountainCar-v0", DISCO)
    ]
    assert cells[DISCO, "MountainCar-v0"]["runs"] == "2"
    assert float(cells[DISCO, "MountainCar-v0"]["ours"]) == pytest.approx(sum(own) / 2)
    assert (cells["Random", "MountainCar-v0"]["runs"], cells["Random", "CartPole-v1"]["runs"]) == ("1", "0")
    assert f"{sum(own) / 2:.2f}" in (out / "curves-best.md").read_text()
    gaps = {(row["row"], row["column"]): row["ours"] for row in rows_of(out / "policy-gaps.csv")}
    other = next(read_record(job, out).best for job in CHOSEN if job.method == "Random")
    assert float(gaps["Random", "MountainCar-v0"]) == pytest.approx(sum(own) / 2 - other)
    assert gaps["Random", "CartPole-v1"] == ""


def test_a_thinned_history_has_its_ends():
    rows = history_of([[calls, 2.0 * calls, 0.1, -1.0 * calls, None, 3.5] for calls in range(1, 102)])
    few = history_of(thinned(rows))
    assert len(few) == 25
    assert (few[0], few[-1]) == (rows[0], rows[-1])
    assert thinned(rows[:1]) == [[1, 2.0, 0.1, -1.0, None, 3.5]]
    assert thinned(()) == []


def test_summaries_that_are_older_than_an_option_are_still_of_these_runs():
    """Those that are committed; some of their settings are not known any more, others were not known then."""
    committed = Path(__file__).parents[2] / "results" / "reproduction" / "full"
    jobs = [job for job in tree_artefacts.jobs(SCALES["full"]) if job.seed == 0]
    found = [read_summary(job.summary_file(committed), job.settings) for job in jobs]
    assert sum(summary is not None for summary in found) >= 10
