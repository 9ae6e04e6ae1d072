"""Checkpoint files: what was saved comes back, and everything else is refused in one line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from safetensors.numpy import save
from spaces import valued_sequence

from discodso import CheckpointError, Design, DisCo, DiscodsoError, DisCoSettings, NetworkSettings, State
from discodso.disco.settings import ArchiveSettings
from discodso.run.checkpoint import from_bytes, to_bytes
from discodso.run.folder import history_row


def a_method():
    method = DisCo(
        valued_sequence(),
        DisCoSettings(batch_size=20, archive=ArchiveSettings(size=3), network=NetworkSettings(units=4)),
    )
    for _ in range(3):
        designs = method.ask()
        method.tell(designs, np.arange(20.0))
    method.tell(method.ask(5), np.arange(5.0))
    return method


METHOD = a_method()
GOOD = to_bytes(METHOD.state())


def equal(first: State, second: State) -> bool:
    return (
        first.data == second.data
        and first.arrays.keys() == second.arrays.keys()
        and all(np.array_equal(first.arrays[k], second.arrays[k], equal_nan=True) for k in first.arrays)
        and all(first.arrays[k].dtype == second.arrays[k].dtype for k in first.arrays)
    )


def test_a_state_comes_back_bit_for_bit():
    assert equal(from_bytes(GOOD), METHOD.state())


def test_a_restored_method_goes_on_as_the_other_would_have():
    other = DisCo(valued_sequence(), METHOD.settings, seed=99)
    other.restore(from_bytes(GOOD))
    twin = DisCo(valued_sequence(), METHOD.settings, seed=98)
    twin.restore(METHOD.state())
    for method in (other, twin):
        for _ in range(3):
            designs = method.ask()
            method.tell(designs, np.linspace(0, 1, 20))
    assert equal(other.state(), twin.state())


def test_a_state_is_not_changed_by_what_comes_after():
    method = a_method()
    state = method.state()
    before = {key: array.copy() for key, array in state.arrays.items()}
    method.tell(method.ask(), np.arange(20.0))
    assert all(np.array_equal(before[key], state.arrays[key], equal_nan=True) for key in before)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "ends too early"),
        (b"\x00" * 100, "header cannot be read"),
        (GOOD[:-1], "damaged"),
        (GOOD[: len(GOOD) // 3], "damaged"),
        (GOOD + b"x", "damaged"),
        (GOOD[:-9] + b"\x01" + GOOD[-8:], "checksum"),
        (save({"a": np.zeros(3)}), "header cannot be read"),
        (save({"a": np.zeros(3)}, {"format": "other"}), "no checkpoint of discodso"),
        (GOOD.replace(b'"version":"1"', b'"version":"2"'), "version 2"),
    ],
)
def test_what_is_no_checkpoint_is_refused(content, words):
    with pytest.raises(CheckpointError, match=words) as caught:
        from_bytes(content)
    assert "\n" not in str(caught.value)


def require_one_line(error: Exception) -> None:
    assert "\n" not in str(error)


def check_damage(content: bytes) -> None:
    """Never a traceback, and never a state that was not saved."""
    try:
        state = from_bytes(content)
    except CheckpointError as error:
        require_one_line(error)
    else:
        assert equal(state, METHOD.state())


def flipped(position: int, value: int) -> bytes:
    position %= len(GOOD)
    return GOOD[:position] + bytes([value]) + GOOD[position + 1 :]


damaged = (
    st.builds(flipped, st.integers(0, len(GOOD) - 1), st.integers(0, 255))
    | st.builds(
        flipped, st.integers(0, 4000), st.integers(0, 255)
    )  # the header, which has most of the structure
    | st.integers(0, len(GOOD)).map(lambda n: GOOD[:n])
    | st.binary(max_size=300)
    | st.binary(max_size=50).map(lambda b: len(b).to_bytes(8, "little") + b)
    | st.builds(lambda n, b: GOOD[:n] + b + GOOD[n:], st.integers(0, len(GOOD)), st.binary(max_size=9))
)


@given(damaged)
@example((2).to_bytes(8, "little") + b"{}")
@example((2**63).to_bytes(8, "little") + b"{}")
@example((30000).to_bytes(8, "little") + b"[" * 30000)
def test_no_damage_gets_a_traceback_or_a_wrong_load(content):
    check_damage(content)


@pytest.mark.slow
def test_ten_thousand_damaged_checkpoints():
    effort(max_examples=10_000, deadline=None)(given(damaged)(check_damage))()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=7), inner, max_size=4),
    max_leaves=8,
)
design_like = st.fixed_dictionaries(
    {
        "tokens": json_values | st.lists(st.text(max_size=3)),
        "values": json_values | st.lists(st.none() | st.floats()),
    }
)


def check_design(text: str) -> None:
    try:
        design = Design.from_json(text)
    except DiscodsoError as error:
        require_one_line(error)
    else:
        assert Design.from_json(design.to_json()) == design


@given((json_values | design_like).map(json.dumps) | st.text(max_size=40))
@example("[" * 100_000)
@example('{"tokens": ["a"], "values": [1e999]}')
def test_no_json_design_gets_a_traceback(text):
    check_design(text)


@pytest.mark.slow
def test_ten_thousand_json_designs():
    effort(max_examples=10_000, deadline=None)(
        given((json_values | design_like).map(json.dumps))(check_design)
    )()


@given(st.binary(max_size=80) | json_values.map(lambda v: json.dumps(v).encode()))
def test_no_line_of_a_history_gets_a_traceback(line):
    assert history_row(line) is None
