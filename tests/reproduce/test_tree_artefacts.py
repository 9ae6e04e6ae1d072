"""Artefacts of tree policies."""

from __future__ import annotations

from tiny_scale import TINY

from discodso import Design
from discodso.reproduce import paper, tree_artefacts
from discodso.reproduce.jobs import Record


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
