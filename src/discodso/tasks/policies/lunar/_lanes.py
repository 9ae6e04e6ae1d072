"""Lanes for numba: LANES float32s in a vector of LLVM, with the operations that a float32 has, lane by lane.

Each operation is the scalar one in every lane: nothing is fused or reordered, so that a lane has the bits that a
scalar program has. A processor without such long vectors has LLVM split them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 16
FLOATS, BITS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(32), LANES)
TRUTHS = ir.VectorType(ir.IntType(1), LANES)


class _Vector(types.Type):
    """A type of numba that is a vector of LLVM."""


lanes, truths = _Vector(f"lanes{LANES}"), _Vector(f"truths{LANES}")


@register_model(_Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, FLOATS if kind is lanes or kind == lanes else TRUTHS)


def _as_lanes(builder: Any, kind: Any, value: Any) -> Any:
    """A number in all lanes; lanes as they are."""
    if kind == lanes:
        return value
    undefined = ir.Constant(FLOATS, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(BITS, [0] * LANES))


def _define(function: Callable[..., Any], result: Any, generate: Callable[..., Any]) -> None:
    """A function of two lanes, or of lanes and a number."""
    kinds = (lanes, lanes), (lanes, types.float32), (types.float32, lanes)

    class _OfTwo(ConcreteTemplate):
        cases = [signature(result, *given) for given in kinds]  # noqa: RUF012

    infer_global(function)(_OfTwo)

    def lower(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        a, b = (_as_lanes(builder, kind, value) for kind, value in zip(given.args, arguments, strict=True))
        return generate(builder, a, b)

    for given in kinds:
        lower_builtin(function, *given)(lower)


def _least(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _most(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def least(a: Any, b: Any) -> Any:
    """The first where it is less, else the second."""


def most(a: Any, b: Any) -> Any:
    """The first where it is greater, else the second."""


_define(operator.add, lanes, lambda builder, a, b: builder.fadd(a, b))
_define(operator.sub, lanes, lambda builder, a, b: builder.fsub(a, b))
_define(operator.mul, lanes, lambda builder, a, b: builder.fmul(a, b))
_define(operator.truediv, lanes, lambda builder, a, b: builder.fdiv(a, b))
_define(operator.lt, truths, lambda builder, a, b: builder.fcmp_ordered("<", a, b))
_define(operator.le, truths, lambda builder, a, b: builder.fcmp_ordered("<=", a, b))
_define(operator.gt, truths, lambda builder, a, b: builder.fcmp_ordered(">", a, b))
_define(operator.ge, truths, lambda builder, a, b: builder.fcmp_ordered(">=", a, b))
_define(operator.eq, truths, lambda builder, a, b: builder.fcmp_ordered("==", a, b))
_define(least, lanes, _least)
_define(most, lanes, _most)


@infer_global(operator.and_)
@infer_global(operator.or_)
class _Logic(ConcreteTemplate):
    cases = [signature(truths, truths, truths)]  # noqa: RUF012


@infer_global(operator.neg)
class _Negative(ConcreteTemplate):
    cases = [signature(lanes, lanes)]  # noqa: RUF012


@lower_builtin(operator.and_, truths, truths)
def _and(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
    return builder.and_(*arguments)


@lower_builtin(operator.or_, truths, truths)
def _or(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
    return builder.or_(*arguments)


@lower_builtin(operator.neg, lanes)
def _negative(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
    return builder.fneg(*arguments)


@intrinsic
def where(typing_context: Any, truth: Any, a: Any, b: Any) -> Any:
    """The second argument in lanes where the first is true, else the third."""

    def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        a, b = (_as_lanes(builder, *pair) for pair in zip(given.args[1:], arguments[1:], strict=True))
        return builder.select(arguments[0], a, b)

    return lanes(truth, a, b), generate


@intrinsic
def alike(typing_context: Any, a: Any, b: Any) -> Any:
    """Where two have the same bits."""

    def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        a, b = (builder.bitcast(value, BITS) for value in arguments)
        return builder.icmp_signed("==", a, b)

    return truths(a, b), generate


def _pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    """Address of a row."""
    data = context.make_array(kind)(context, builder, array).data
    place = builder.mul(row, ir.Constant(row.type, LANES))
    return builder.bitcast(builder.gep(data, [place]), FLOATS.as_pointer())


@intrinsic
def load(typing_context: Any, array: Any, row: Any) -> Any:
    """A row of a float32[rows * LANES]."""

    def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, given.args[0], *arguments), align=4)

    return lanes(array, types.int64), generate


@intrinsic
def store(typing_context: Any, array: Any, row: Any, value: Any) -> Any:
    """Fill a row of a float32[rows * LANES] with lanes or a number."""

    def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        value = _as_lanes(builder, given.args[2], arguments[2])
        builder.store(value, _pointer(context, builder, given.args[0], *arguments[:2]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), generate
