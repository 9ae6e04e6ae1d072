"""Golden runs go as they always did, bit for bit, on the kinds of machines that they were recorded on."""

from __future__ import annotations

import json

import pytest
from golden_runs import CASES, RECORDS, fingerprint

MACHINES = json.loads(RECORDS.read_text())
KNOWN = MACHINES.get(fingerprint(), {})


def test_every_case_is_recorded():
    assert {case for runs in MACHINES.values() for case in runs} == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_a_golden_run_goes_as_it_did(case):
    if case not in KNOWN:
        pytest.skip("not recorded on this kind of machine")
    assert CASES[case]() == KNOWN[case]
