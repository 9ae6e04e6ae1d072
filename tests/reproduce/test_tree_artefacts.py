"""Artefacts of tree policies."""

from __future__ import annotations

from dataclasses import replace

from tiny_scale import TINY, rows_of

from discodso import Design
from discodso.baselines.literature import LITERATURE
from discodso.reproduce import paper, tree_artefacts
from discodso.reproduce.jobs import Record
from discodso.reproduce.scales import DEFAULT, SCALES


def test_trees_that_were_tested_before_keep_the_names_of_their_features(tmp_path):
    design = Design.of(("velocity <", 0.0), "left", "right")
    (job,) = [
        job for job in tree_artefacts.jobs(TINY) if (job.case, job.method) == ("MountainCar-v0", paper.DISCO)
    ]
    records = [Record(job, -119.0, 1, design, 4, 1.0, ())]
    (tmp_path / "runs/trees/mountaincar-v0/disco-dso").mkdir(parents=True)
    for _ in range(2):  # then from the file
        policy, returns, means = tree_artefacts._tested(
            TINY, records, "MountainCar-v0", paper.DISCO, tmp_path
        )
        assert "velocity" in policy.export("text")
        assert "left" in policy.export("text")
        assert len(returns) == 3
        assert means == (returns.mean(),)


def test_runs_come_seed_by_seed_and_those_that_take_longest_last():
    jobs = tree_artefacts.jobs(SCALES["full"])
    cells = [(job.seed, job.case, job.method) for job in jobs]
    assert cells[0] == (0, "CartPole-v1", paper.DISCO)
    assert cells[13:15] == [(0, "MountainCar-v0", paper.DISCO), (0, "MountainCar-v0", DEFAULT)]
    assert {seed for seed, _, _ in cells[:39]} == {0}
    assert {method for _, case, method in cells[:39] if case == "Acrobot-v1"} == {
        *SCALES["full"].tree_methods(),
        *LITERATURE,
    } - {"BO", paper.UNRULED}
    first = next(place for place, (_, case, _) in enumerate(cells) if case == "LunarLander-v3")
    assert {case for _, case, _ in cells[first:]} == {"LunarLander-v3"}
    counts = [
        sum(own[1:] == ("Acrobot-v1", name) for own in cells)
        for name in ("Random", "Decoupled-RL-BFGS", "BO")
    ]
    assert counts == [10, 3, 3]


def test_gaps_are_differences_of_means_and_efficiency_is_per_hour_of_the_whole_run(tmp_path):
    scale = replace(TINY, tree_seeds=2)
    best = {(paper.DISCO, 0): -100.0, (paper.DISCO, 1): -120.0, ("Random", 0): -90.0, ("Random", 1): -140.0}
    records = [
        Record(job, best[job.method, job.seed], 1, None, 4, 1800.0, ())
        for job in tree_artefacts.jobs(scale)
        if job.case == "MountainCar-v0" and (job.method, job.seed) in best
    ]
    tree_artefacts.gaps(scale, records, tmp_path)
    tree_artefacts.efficiency(scale, records, tmp_path)
    gaps, found = (
        {(row["row"], row["column"]): row["ours"] for row in rows_of(tmp_path / f"{name}.csv")}
        for name in ("policy-gaps", "efficiency")
    )
    assert float(gaps["Random", "MountainCar-v0"]) == 5.0  # the best of both would have given -10
    assert float(found["Random", "MountainCar-v0"]) == -230.0
