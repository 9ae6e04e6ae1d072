"""Values and errors of whole batches of expressions, compiled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space.design import DesignBatch
from discodso.space.tokens import Library, Token
from discodso.tasks.regression import _evaluator_kernels, _refine_kernels
from discodso.tasks.regression._evaluator_kernels import ABSOLUTE, SCALED, SQUARED
from discodso.tasks.regression.expression import CONST, Expression, input_index, literal_value
from discodso.tasks.regression.losses import scaled_error
from discodso.tasks.regression.operators import INPUT, LITERAL, NO_CODE, OPERATORS, VALUE, Operator

_BY_CODE = {operator.code: operator for operator in OPERATORS.values()}


@dataclass(frozen=True)
class Program:
    """The tokens of a library as the stack machine reads them.

    Attributes:
        code: int[K], operator codes, and what kind of leaf.
        operand: float[K], index of an input or value of a literal.
        own: operators without a code, by token id.
    """

    library: Library
    code: Ints
    operand: Floats
    own: dict[int, Operator]

    @classmethod
    def of(cls, library: Library, operators: tuple[Operator, ...] = ()) -> Program:
        """Translate a library; `operators` are those of one's own."""
        known = {**OPERATORS, **{operator.name: operator for operator in operators}}
        code, operand = np.zeros(len(library), np.int64), np.zeros(len(library))
        own: dict[int, Operator] = {}
        for k, name in enumerate(library.names):
            index, literal = input_index(name), literal_value(name)
            if name in known:
                code[k] = known[name].code
                if code[k] == NO_CODE:
                    own[k] = known[name]
            elif index is not None:
                code[k], operand[k] = INPUT, index
            elif name == CONST:
                code[k] = VALUE
            else:
                assert literal is not None
                code[k], operand[k] = LITERAL, literal
        return cls(library, code, operand, own)

    def predict(self, designs: DesignBatch, columns: Floats, threads: int = 1) -> Floats:
        """float[B, n] on columns[d, n], which is X transposed and contiguous."""
        predictions = np.empty((len(designs), columns.shape[1]))
        slow = self._has_own(designs)
        if not slow.any():
            return self._filled(predictions, threads, _evaluator_kernels.predict, designs, columns)
        predictions[~slow] = self.predict(designs.select(~slow), columns, threads)
        with np.errstate(all="ignore"):
            for row in np.flatnonzero(slow).tolist():
                predictions[row] = self._interpret(designs, row, columns)
        return predictions

    def _interpret(self, designs: DesignBatch, row: int, columns: Floats) -> Floats:
        """One expression by NumPy; on whole batches twice as fast as making an `Expression` of each design."""
        stack: list[Floats] = []
        for position in range(int(designs.lengths[row]) - 1, -1, -1):
            token = int(designs.tokens[row, position])
            code = int(self.code[token])
            if code == INPUT:
                stack.append(columns[int(self.operand[token])])
            elif code in (VALUE, LITERAL):
                number = designs.values[row, position] if code == VALUE else self.operand[token]
                stack.append(np.full(columns.shape[1], number))
            else:
                operator = self.own[token] if code == NO_CODE else _BY_CODE[code]
                stack.append(operator.function(*[stack.pop() for _ in range(operator.arity)]))
        return stack[0]

    def errors(
        self,
        designs: DesignBatch,
        columns: Floats,
        target: Floats,
        weights: Floats,
        *,
        absolute: bool = False,
        scaled: bool = False,
        threads: int = 1,
    ) -> Floats:
        """float[B], sum of weights times squared (or absolute) errors; infinite if a prediction is not finite.

        With `scaled` it is the squared error of the best a + b f(x) for each expression f; weights sum to 1.
        """
        y = target - weights @ target if scaled else target
        if not self._has_own(designs).any():
            kind = SCALED if scaled else ABSOLUTE if absolute else SQUARED
            data = columns, y, weights, kind
            return self._filled(np.empty(len(designs)), threads, _evaluator_kernels.errors, designs, *data)
        predictions = self.predict(designs, columns, threads)
        if scaled:
            return np.array([scaled_error(f, y, weights) for f in predictions])
        with np.errstate(all="ignore"):
            difference = predictions - y
            totals: Floats = (np.abs(difference) if absolute else difference**2) @ weights
        totals[~(np.isfinite(predictions).all(axis=1) & np.isfinite(totals))] = np.inf
        return totals

    def refine(
        self,
        designs: DesignBatch,
        columns: Floats,
        target: Floats,
        weights: Floats,
        allowed: Ints,
        *,
        scaled: bool = False,
        least_gain: float = 1e-3,
        threads: int = 1,
    ) -> tuple[Floats, Floats, Ints]:
        """Least squares over the constants of each expression, by Levenberg-Marquardt, within their range.

        Returns values[B, T], the mean squared errors float[B] (infinite where nothing was tried), and calls
        int[B]: one for every evaluation of the residuals and one for every Jacobian, at most `allowed` int[B].
        Expressions with operators of one's own stay as they are.
        """
        values = np.array(designs.values)
        errors, calls = np.empty(len(designs)), np.zeros(len(designs), np.int64)
        allowed = np.where(self._has_own(designs), 0, allowed)
        ranges = [token.range for token in self.library.tokens if token.range is not None] or [(0.0, 0.0)]
        y = target - weights @ target if scaled else target

        def part(own: slice) -> None:
            tokens, _, lengths, *meaning = self._programs(designs, own)
            programs = tokens, values[own], lengths, *meaning
            options = scaled, *ranges[0], allowed[own], least_gain
            _refine_kernels.levenberg_marquardt(
                *programs, columns, y, weights, *options, errors[own], calls[own]
            )

        self._in_parts(part, len(designs), threads)
        return values, errors, calls

    def _filled(
        self, result: Floats, threads: int, kernel: Callable[..., None], designs: DesignBatch, *data: Any
    ) -> Floats:
        """The result[B, ...] that a kernel writes from programs and data, each thread its own rows."""

        def part(own: slice) -> None:
            kernel(*self._programs(designs, own), *data, result[own])

        self._in_parts(part, len(designs), threads)
        return result

    def _programs(self, designs: DesignBatch, own: slice) -> tuple[Ints, Floats, Ints, Ints, Floats]:
        """What every kernel reads of some designs."""
        part = designs.tokens[own], designs.values[own], designs.lengths[own]
        return *part, self.code, self.operand

    @staticmethod
    def _in_parts(part: Callable[[slice], None], count: int, threads: int) -> None:
        if threads <= 1 or count < 2 * threads:
            part(slice(0, count))
            return
        ends = np.linspace(0, count, threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, [slice(a, b) for a, b in pairwise(ends)]))

    def _has_own(self, designs: DesignBatch) -> Bools:
        """bool[B], expressions with operators of one's own, which NumPy evaluates one by one."""
        if not self.own:
            return np.zeros(len(designs), np.bool_)
        return np.asarray(np.isin(designs.tokens, list(self.own)).any(axis=1), dtype=np.bool_)


def compiled(
    expression: Expression, const_range: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Program, DesignBatch]:
    """One expression as the evaluator reads it: a program, and a batch of one design."""
    names = dict.fromkeys(expression.design.tokens)
    arity = {name: o.arity if (o := expression.operator(name)) else 0 for name in names}
    library = Library(Token(n, arity[n], range=const_range if n == CONST else None) for n in names)
    tokens = library.ids(expression.design.tokens)[None]
    values = np.array([[np.nan if v is None else v for v in expression.design.values]])
    batch = DesignBatch(library, tokens, values, np.array([tokens.shape[1]]))
    return Program.of(library, expression.operators), batch


def evaluate(expression: Expression, X: Floats) -> Floats:
    """Values float[n] of one expression on X[n, d] by the compiled evaluator, which a search uses."""
    program, batch = compiled(expression)
    result: Floats = program.predict(batch, np.ascontiguousarray(np.asarray(X, dtype=np.float64).T))[0]
    return result


def jacobian(expression: Expression, X: Floats) -> Floats:
    """float[k, n], the derivative of an expression by each of its constants; its operators must be built in."""
    program, batch = compiled(expression)
    result = np.empty((len(expression.constants), len(X)))
    arrays = batch.tokens[0], batch.values[0], batch.tokens.shape[1]
    _refine_kernels.jacobian(*arrays, program.code, program.operand, np.ascontiguousarray(X.T), result)
    return result
