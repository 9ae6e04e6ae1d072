"""A tree as an ONNX model."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError
from discodso.tasks.policies.tree import DecisionTree


def to_onnx(policy: DecisionTree) -> bytes:
    """An ONNX model from "observations" float32[N, n] to "actions" int64[N].

    It acts like the tree on every float32, see `Split.onnx`. Names are in its metadata.
    """
    try:
        onnx: Any = importlib.import_module("onnx")
    except ImportError as error:
        raise DeclarationError(
            f"the onnx format needs the package onnx ({error}): pip install discodso[onnx]"
        ) from None
    make = onnx.helper.make_node
    size = len(policy)
    modes, columns, values = zip(
        *(split.onnx() if split else ("LEAF", 0, 0.0) for split, _ in policy.nodes), strict=True
    )
    leaves = {node: action for node, (split, action) in enumerate(policy.nodes) if split is None}
    tree = make(
        "TreeEnsembleRegressor",  # gives the place of a leaf: an action may be no exact float32, a place is
        ["observations"],
        ["places"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * size,
        nodes_nodeids=list(range(size)),
        nodes_modes=modes,
        nodes_featureids=columns,
        nodes_values=values,
        nodes_truenodeids=[0 if n in leaves else n + 1 for n in range(size)],
        nodes_falsenodeids=[0 if n in leaves else n + jump for n, (_, jump) in enumerate(policy.nodes)],
        nodes_missing_value_tracks_true=[0] * size,
        target_treeids=[0] * len(leaves),
        target_nodeids=list(leaves),
        target_ids=[0] * len(leaves),
        target_weights=[float(place) for place in range(len(leaves))],
    )
    actions = np.array(list(leaves.values()), dtype=np.int64)
    width: int | str = max(len(policy.feature_names), policy.width) or "n"
    types = onnx.TensorProto
    steps = [
        tree,
        make("Cast", ["places"], ["indices"], to=types.INT64),
        make("Reshape", ["indices", "flat"], ["rows"]),
        make("Gather", ["leaves", "rows"], ["actions"]),
    ]
    given = [onnx.helper.make_tensor_value_info("observations", types.FLOAT, ["N", width])]
    found = [onnx.helper.make_tensor_value_info("actions", types.INT64, ["N"])]
    known = {"leaves": actions, "flat": np.array([-1], dtype=np.int64)}
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in known.items()]
    graph = onnx.helper.make_graph(steps, "policy", given, found, constants)
    # Old enough for the oldest onnxruntime that the package allows.
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.helper.make_model(graph, producer_name="discodso", opset_imports=opsets, ir_version=8)
    notes = {key: json.dumps(value) for key, value in policy.header().items() if key != "format"}
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model)
    made: bytes = model.SerializeToString(deterministic=True)
    return made
