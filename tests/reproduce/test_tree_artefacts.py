"""Artefacts of tree policies."""

from __future__ import annotations

from tiny_scale import TINY

from discodso import Design
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
        policy, returns = tree_artefacts._tested(TINY, records, "MountainCar-v0", paper.DISCO, tmp_path)
        assert "velocity" in policy.export("text")
        assert "left" in policy.export("text")
        assert len(returns) == 3


def test_runs_come_seed_by_seed_and_those_that_take_longest_last():
    jobs = tree_artefacts.jobs(SCALES["full"])
    cells = [(job.seed, job.case, job.method) for job in jobs]
    assert cells[0] == (0, "CartPole-v1", paper.DISCO)
    assert cells[10:12] == [(0, "MountainCar-v0", paper.DISCO), (0, "MountainCar-v0", DEFAULT)]
    assert {seed for seed, _, _ in cells[:30]} == {0}
    assert {method for _, case, method in cells[:30] if case == "Acrobot-v1"} == {
        *SCALES["full"].tree_methods()
    } - {"BO"}
    first = next(place for place, (_, case, _) in enumerate(cells) if case == "LunarLander-v3")
    assert {case for _, case, _ in cells[first:]} == {"LunarLander-v3"}
    counts = [
        sum(own[1:] == ("Acrobot-v1", name) for own in cells)
        for name in ("Random", "Decoupled-RL-BFGS", "BO")
    ]
    assert counts == [10, 3, 3]
