"""Golden runs go as they always did, bit for bit, on the kind of machine that they were recorded on."""

from __future__ import annotations

import json

import pytest
from golden_runs import CASES, RECORDS, fingerprint

KNOWN = json.loads(RECORDS.read_text())


def test_every_case_is_recorded():
    assert set(KNOWN["runs"]) == set(CASES)


@pytest.mark.skipif(KNOWN["fingerprint"] != fingerprint(), reason="recorded on another kind of machine")
@pytest.mark.parametrize("case", CASES)
def test_a_golden_run_goes_as_it_did(case):
    assert CASES[case]() == KNOWN["runs"][case]
