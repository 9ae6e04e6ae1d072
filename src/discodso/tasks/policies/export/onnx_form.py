"""A tree as an ONNX model."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.splits import Oblique, Split
from discodso.tasks.policies.terms import Terms
from discodso.tasks.policies.tree import DecisionTree


def to_onnx(policy: DecisionTree) -> bytes:
    """An ONNX model from "observations" float32[N, n] to "actions" int64[N], or [N, ...] where they are numbers.

    It acts like the tree on every float32, see `Split.onnx`; sums are added up in float64 one by one, as the tree
    does. Names are in its metadata.
    """
    try:
        onnx: Any = importlib.import_module("onnx")
    except ImportError as error:
        raise DeclarationError(
            f"the onnx format needs the package onnx ({error}): pip install discodso[onnx]"
        ) from None
    graph = _Graph(onnx)
    places = [node for node, _ in policy.nodes]
    oblique = [split for split in places if isinstance(split, Oblique)]
    given_width: int | str = max(len(policy.feature_names), policy.width) or "n"
    observations = "observations"
    if oblique or any(leaf.weights for leaf in policy.leaves):
        graph.add("Cast", "observations", out="exact", to=onnx.TensorProto.DOUBLE)
    columns = policy.width  # what follows the features: of each oblique split 1 if it goes left, else 0
    if oblique:
        for place, split in enumerate(oblique):
            total = graph.sum(0.0, split.terms)
            below = graph.add("Less", total, graph.constant(np.array([[split.threshold]])))
            graph.add("Cast", below, out=f"below {place}", to=onnx.TensorProto.FLOAT)
        bounds = [graph.constant(np.array([end], np.int64)) for end in (0, columns, 1)]
        features = graph.add("Slice", "observations", bounds[0], bounds[1], bounds[2])
        names = [features, *(f"below {place}" for place in range(len(oblique)))]
        observations = graph.add("Concat", *names, axis=1)
    modes, branches, values, seen = [], [], [], 0
    for node in places:
        mode, column, value = "LEAF", 0, 0.0
        if isinstance(node, Split):
            mode, column, value = node.onnx()
        elif isinstance(node, Oblique):
            mode, column, value, seen = "BRANCH_GT", columns + seen, 0.5, seen + 1
        modes.append(mode)
        branches.append(column)
        values.append(value)
    leaves = [place for place, node in enumerate(places) if isinstance(node, Leaf)]
    size = len(policy)
    graph.add(
        "TreeEnsembleRegressor",  # gives the place of a leaf: an action may be no exact float32, a place is
        observations,
        out="places",
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * size,
        nodes_nodeids=list(range(size)),
        nodes_modes=modes,
        nodes_featureids=branches,
        nodes_values=values,
        nodes_truenodeids=[0 if n in leaves else n + 1 for n in range(size)],
        nodes_falsenodeids=[0 if n in leaves else n + jump for n, (_, jump) in enumerate(policy.nodes)],
        nodes_missing_value_tracks_true=[0] * size,
        target_treeids=[0] * len(leaves),
        target_nodeids=leaves,
        target_ids=[0] * len(leaves),
        target_weights=[float(place) for place in range(len(leaves))],
    )
    graph.add("Cast", "places", out="indices", to=onnx.TensorProto.INT64)
    rows = graph.add("Reshape", "indices", graph.constant(np.array([-1], np.int64)))
    numbers = policy.numbers
    if numbers is None:
        actions = np.array([leaf.action for leaf in policy.leaves], np.int64)
        graph.add("Gather", graph.constant(actions), rows, out="actions")
        found = onnx.helper.make_tensor_value_info("actions", onnx.TensorProto.INT64, ["N"])
    else:
        parts = [graph.number(policy, place, rows) for place in range(len(numbers))]
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(numbers.dtype))
        joined = graph.add("Concat", *parts, axis=1)
        typed = graph.add("Cast", joined, to=kind)
        graph.add("Reshape", typed, graph.constant(np.array([-1, *numbers.shape], np.int64)), out="actions")
        found = onnx.helper.make_tensor_value_info("actions", kind, ["N", *numbers.shape])
    given = onnx.helper.make_tensor_value_info("observations", onnx.TensorProto.FLOAT, ["N", given_width])
    whole = onnx.helper.make_graph(graph.steps, "policy", [given], [found], graph.constants)
    # Old enough for the oldest onnxruntime that the package allows.
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.helper.make_model(whole, producer_name="discodso", opset_imports=opsets, ir_version=8)
    notes = {key: json.dumps(value) for key, value in policy.header().items() if key != "format"}
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model)
    made: bytes = model.SerializeToString(deterministic=True)
    return made


class _Graph:
    """Steps and constants of a model, with names of their own."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.steps, self.constants = onnx, list[Any](), list[Any]()

    def constant(self, array: Any) -> str:
        """The name of a constant."""
        name = f"constant {len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, step: str, *given: str, out: str = "", **attributes: Any) -> str:
        """The name of what a step gives."""
        name = out or f"step {len(self.steps)}"
        self.steps.append(self.onnx.helper.make_node(step, list(given), [name], **attributes))
        return name

    def feature(self, place: int) -> str:
        """float64[N, 1], one column of the observations."""
        return self.add("Gather", "exact", self.constant(np.array([place], np.int64)), axis=1)

    def sum(self, start: float, terms: Terms) -> str:
        """float64[N, 1], a sum of weighted features."""
        total = self.constant(np.array([[start]]))
        for feature, weight in terms:
            part = self.add("Mul", self.constant(np.array([[weight]])), self.feature(feature))
            total = self.add("Add", total, part)
        return total

    def number(self, policy: DecisionTree, place: int, rows: str) -> str:
        """float64[N, 1], one number of the leaves at some rows, within its bounds."""
        assert policy.numbers is not None
        sums = [leaf.sums[place] for leaf in policy.leaves]
        total = self.add("Gather", self.constant(np.array([[number] for number, _ in sums])), rows)
        for feature in sorted({feature for _, terms in sums for feature, _ in terms}):
            weights = np.array([[dict(terms).get(feature, 0.0)] for _, terms in sums])
            part = self.add("Mul", self.add("Gather", self.constant(weights), rows), self.feature(feature))
            looks = self.add("Gather", self.constant(weights != 0), rows)  # 0 * inf would be NaN
            total = self.add("Where", looks, self.add("Add", total, part), total)
        low, high = (
            self.constant(np.array(ends[place])) for ends in (policy.numbers.low, policy.numbers.high)
        )
        known = self.add("Where", self.add("IsNaN", total), low, total)
        return self.add("Clip", known, low, high)
