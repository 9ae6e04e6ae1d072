"""Settings as TOML: what is written is read back by Python's reader."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discodso.base.toml_text import to_toml

numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
plain = st.booleans() | numbers | texts
tables = st.recursive(
    st.dictionaries(texts, plain | st.lists(plain | st.lists(plain, max_size=2), max_size=3), max_size=3),
    lambda inner: st.dictionaries(texts, plain | inner, max_size=3),
    max_leaves=6,
)


@given(tables)
def test_what_is_written_is_read_back(table):
    assert tomllib.loads(to_toml(table)) == table


def test_the_text_is_what_a_person_would_write():
    settings = {
        "seed": 0,
        "note": None,
        "run": {"budget": 5, "rate": 1e-05, "on": True},
        "top": {"a b": [1, "x"]},
    }
    text = 'seed = 0\n\n[run]\nbudget = 5\nrate = 1.0e-05\non = true\n\n[top]\n"a b" = [1, "x"]\n'
    assert to_toml(settings) == text


def test_what_toml_has_no_form_for_is_refused():
    with pytest.raises(TypeError, match="set has no form in TOML"):
        to_toml({"x": {1, 2}})
