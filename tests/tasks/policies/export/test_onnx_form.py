"""Trees as ONNX: they act alike on every float32."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
from control_trees import chain, complete_tree, random_tree
from exported import named, observations, seeds, stump
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed_trees import NUMBERS, any_points, mixed_policies, mixed_space
from trees import actions

from discodso.base.errors import DeclarationError
from discodso.tasks.policies import export
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.tree_policy import TreePolicy


def onnx_actions(policy, x):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(export.to_onnx(policy), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"observations": x})
    assert found.dtype == np.int64
    return found


@settings(max_examples=60)
@given(seeds, st.integers(0, 30))
def test_onnx_acts_like_the_tree_on_every_float32(seed, decisions):
    pytest.importorskip("onnx")
    rng = np.random.default_rng(seed)
    policy = random_tree(rng, decisions, features=10, actions=30)
    for rows in (1, 3, 200):
        x = observations(policy, rng, rows, np.float32)
        assert np.array_equal(onnx_actions(policy, x), actions(policy, x))


@pytest.mark.parametrize(
    "threshold", [0.1, -0.1, 0.5, 0.0, -0.0, 1e-50, -1e-50, 1e300, -1e300, 3.4028235e38, 16777217.0, 1e-40]
)
def test_onnx_at_the_edges_of_float32(threshold):
    pytest.importorskip("onnx")
    policy = stump(threshold, 2**31 - 1, 7)
    x = np.concatenate([observations(policy, np.random.default_rng(i), 100, np.float32) for i in range(3)])
    assert np.array_equal(onnx_actions(policy, x), actions(policy, x))


def test_onnx_has_names_and_the_width_of_an_observation():
    onnx = pytest.importorskip("onnx")
    policy = named(complete_tree(2), ("first \ud800", "second", "third", "fourth", "unused"))
    model = onnx.load_from_string(export.to_onnx(policy))
    notes = {note.key: json.loads(note.value) for note in model.metadata_props}
    assert notes["feature_names"] == list(policy.feature_names)
    assert notes["action_names"]["1"] == "second"
    assert model.graph.input[0].type.tensor_type.shape.dim[1].dim_value == 5
    assert export.to_onnx(policy) == export.to_onnx(policy)


def test_onnx_with_no_decision():
    pytest.importorskip("onnx")
    x = np.full((4, 3), np.nan, np.float32)
    assert onnx_actions(TreePolicy(((Leaf(9), 0),)), x).tolist() == [9] * 4


def test_without_onnx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(DeclarationError, match=re.escape("pip install discodso[onnx]")):
        export.to_onnx(chain(2))


@pytest.mark.parametrize("numbers", [NUMBERS, None])
def test_onnx_adds_up_sums_like_the_tree(numbers):
    runtime = pytest.importorskip("onnxruntime")
    x = any_points(np.random.default_rng(0), 60, wild=True).astype(np.float32)
    for policy in mixed_policies(mixed_space(numbers=numbers), 15, 11, numbers):
        session = runtime.InferenceSession(export.to_onnx(policy), providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {"observations": x})
        assert np.array_equal(found, [policy.act(row) for row in x])
