"""An expression as an ONNX model."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError
from discodso.tasks.regression.canonical import canonical
from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import Operator

_NODES = {name: name.capitalize() for name in "add sub mul div pow neg abs sin cos tanh exp log sqrt".split()}
_NODES["inv"] = "Reciprocal"


def onnx_model(expression: Expression) -> bytes:
    """An ONNX model from "X" double[N, d] to "y" double[N]; names of the columns are in its metadata."""
    try:
        onnx: Any = importlib.import_module("onnx")
    except ImportError as error:
        raise DeclarationError(
            f"the onnx format needs the package onnx ({error}): pip install discodso[onnx]"
        ) from None
    steps: list[Any] = []
    known: dict[str, Any] = {}

    def node(kind: str, *operands: str, **options: Any) -> str:
        name = f"value{len(steps)}"
        steps.append(onnx.helper.make_node(kind, operands, [name], **options))
        return name

    def number(value: float) -> str:
        name = f"number{len(known)}"
        known[name] = np.array(value, dtype=np.float64)
        return name

    def column(index: int) -> str:
        known[f"column{index}"] = np.array(index, dtype=np.int64)
        return node("Gather", "X", f"column{index}", axis=1)

    def apply(operator: Operator, *operands: str) -> str:
        if not operator.is_built_in:
            raise DeclarationError(f"operator {operator.name!r} is your own, and ONNX has no node for it")
        if operator.name in _NODES:
            return node(_NODES[operator.name], *operands)
        if operator.name == "tan":
            return node("Div", node("Sin", *operands), node("Cos", *operands))
        if operator.name in ("asin", "acos", "atan"):
            raise DeclarationError(f"ONNX has no {operator.name!r} in double precision; choose another form")
        square = node("Mul", operands[0], operands[0])  # n2, n3 and n4
        if operator.name == "n2":
            return square
        return node("Mul", square, operands[0] if operator.name == "n3" else square)

    value = canonical(expression).fold(column, number, apply)
    zero = node("Mul", column(0), number(0.0)) if not any(s.op_type == "Gather" for s in steps) else None
    steps.append(onnx.helper.make_node(*(("Add", [value, zero]) if zero else ("Identity", [value])), ["y"]))
    double = onnx.TensorProto.DOUBLE
    given = [onnx.helper.make_tensor_value_info("X", double, ["N", len(expression.columns)])]
    found = [onnx.helper.make_tensor_value_info("y", double, ["N"])]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in known.items()]
    graph = onnx.helper.make_graph(steps, "equation", given, found, constants)
    # Old enough for the oldest onnxruntime that the package allows.
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, producer_name="discodso", opset_imports=opsets, ir_version=8)
    notes = {"columns": json.dumps(expression.columns), "equation": text(expression)}
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model)
    made: bytes = model.SerializeToString(deterministic=True)
    return made
