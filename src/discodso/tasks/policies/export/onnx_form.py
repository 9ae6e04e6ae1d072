"""A tree as an ONNX model."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError
from discodso.tasks.policies.export.source import checked_nodes
from discodso.tasks.policies.tree import DecisionTree


def to_onnx(policy: DecisionTree) -> bytes:
    """An ONNX model from "observations" float32[N, n] to "actions" int64[N].

    It acts like the tree on every float32: x < t holds for a float32 x exactly if x is below the smallest float32
    that is not below t, and that one is the threshold of the model. Names are in its metadata.
    """
    onnx = _import_onnx()
    nodes = checked_nodes(policy)
    size = len(nodes)
    decides = [feature >= 0 for feature, _, _ in nodes]
    tree = onnx.helper.make_node(
        "TreeEnsembleRegressor",  # gives the place of a leaf: an action may be no exact float32, a place is
        ["observations"],
        ["places"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * size,
        nodes_nodeids=list(range(size)),
        nodes_modes=["BRANCH_LT" if decision else "LEAF" for decision in decides],
        nodes_featureids=[max(feature, 0) for feature, _, _ in nodes],
        nodes_values=_float32_not_below([threshold for _, threshold, _ in nodes]),
        nodes_truenodeids=[node + 1 if decides[node] else 0 for node in range(size)],
        nodes_falsenodeids=[jump if feature >= 0 else 0 for feature, _, jump in nodes],
        nodes_missing_value_tracks_true=[0] * size,
        target_treeids=[0] * decides.count(False),
        target_nodeids=[node for node in range(size) if not decides[node]],
        target_ids=[0] * decides.count(False),
        target_weights=[float(place) for place in range(decides.count(False))],
    )
    actions = np.array([jump for feature, _, jump in nodes if feature < 0], dtype=np.int64)
    width: int | str = max(len(policy.feature_names), max(policy.feature) + 1) or "n"
    types = onnx.TensorProto
    graph = onnx.helper.make_graph(
        [
            tree,
            onnx.helper.make_node("Cast", ["places"], ["indices"], to=types.INT64),
            onnx.helper.make_node("Reshape", ["indices", "flat"], ["rows"]),
            onnx.helper.make_node("Gather", ["leaves", "rows"], ["actions"]),
        ],
        "policy",
        [onnx.helper.make_tensor_value_info("observations", types.FLOAT, ["N", width])],
        [onnx.helper.make_tensor_value_info("actions", types.INT64, ["N"])],
        [
            onnx.numpy_helper.from_array(actions, "leaves"),
            onnx.numpy_helper.from_array(np.array([-1], dtype=np.int64), "flat"),
        ],
    )
    # Old enough for the oldest onnxruntime that the package allows.
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.helper.make_model(graph, producer_name="discodso", opset_imports=opsets, ir_version=8)
    onnx.helper.set_model_props(
        model, {key: json.dumps(value) for key, value in policy.header().items() if key != "format"}
    )
    onnx.checker.check_model(model)
    made: bytes = model.SerializeToString(deterministic=True)
    return made


def _import_onnx() -> Any:
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise DeclarationError(
            f"the onnx format needs the package onnx ({error}): pip install discodso[onnx]"
        ) from None


def _float32_not_below(thresholds: Sequence[float]) -> list[float]:
    """Of each threshold the smallest float32 that is not below it; inf beyond the largest."""
    exact = np.array(thresholds, dtype=np.float64)
    with np.errstate(all="ignore"):
        near = exact.astype(np.float32)
        return [float(t) for t in np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)]
