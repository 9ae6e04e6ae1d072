"""Artefacts of the bitstring."""

from __future__ import annotations

import pytest
from tiny_scale import TINY, rows_of

from discodso.reproduce import bitstring_artefacts, paper
from discodso.reproduce.jobs import Record


def test_gaps_are_taken_seed_by_seed(tmp_path):
    """As in the paper; a seed that one of the two lacks does not count."""
    case, other = "f2, alpha 0.5", "Decoupled-RL-evo"
    best = {(paper.DISCO, 0): 0.9, (paper.DISCO, 1): 0.5, (other, 1): 0.2}
    records = [
        Record(job, best[job.method, job.seed], 1, None, 30, 1.0, ())
        for job in bitstring_artefacts.jobs(TINY)
        if job.case == case and (job.method, job.seed) in best
    ]
    bitstring_artefacts.gaps(TINY, records, tmp_path)
    cells = {(row["row"], row["column"]): row for row in rows_of(tmp_path / "bitstring-gaps.csv")}
    assert float(cells[other, case]["ours"]) == pytest.approx(0.3)
    assert cells[other, case]["paper"] == "0.0833"
    assert cells["Random", case]["ours"] == ""
