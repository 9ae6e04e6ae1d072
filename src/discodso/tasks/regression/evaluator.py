"""Values of whole batches of expressions, compiled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space.design import DesignBatch
from discodso.space.tokens import Library, Token
from discodso.tasks.regression import _evaluator_kernels as kernels
from discodso.tasks.regression._refine_kernels import jacobian as jacobian_kernel
from discodso.tasks.regression.expression import CONST, Expression, input_index, literal_value
from discodso.tasks.regression.operators import INPUT, LITERAL, NO_CODE, OPERATORS, VALUE, Operator
from discodso.tasks.regression.options import REALS, Range

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
        code, operand = np.full(len(library), LITERAL), np.zeros(len(library))
        own: dict[int, Operator] = {}
        for k, name in enumerate(library.names):
            index = input_index(name)
            if name in known:
                code[k] = known[name].code
                own |= {k: known[name]} if code[k] == NO_CODE else {}
            elif index is not None:
                code[k], operand[k] = INPUT, index
            elif name == CONST:
                code[k] = VALUE
            else:
                operand[k] = literal_value(name)
        return cls(library, code, operand, own)

    def predict(self, designs: DesignBatch, columns: Floats, threads: int = 1) -> Floats:
        """float[B, n] on columns[d, n], which is X transposed and contiguous."""
        predictions = np.empty((len(designs), columns.shape[1]))
        slow = self.has_own(designs)
        if slow.any():
            predictions[~slow] = self.predict(designs.select(~slow), columns, threads)
            with np.errstate(all="ignore"):
                for row in np.flatnonzero(slow).tolist():
                    predictions[row] = self._interpret(designs, row, columns)
        else:
            self.in_parts(
                lambda own, rows: kernels.predict(own, columns, predictions[rows]), designs, threads
            )
        return predictions

    def in_parts(
        self,
        work: Callable[[kernels.Programs, slice], None],
        designs: DesignBatch,
        threads: int = 1,
        values: Floats | None = None,
    ) -> None:
        """Have each thread work on some rows of the designs, as kernels read them; perhaps with other values."""
        given = designs.values if values is None else values

        def part(rows: slice) -> None:
            arrays = designs.tokens[rows], given[rows], designs.lengths[rows]
            work((*arrays, self.code, self.operand), rows)

        if threads <= 1 or len(designs) < 2 * threads:
            part(slice(0, len(designs)))
            return
        ends = np.linspace(0, len(designs), threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, [slice(a, b) for a, b in pairwise(ends)]))

    def has_own(self, designs: DesignBatch) -> Bools:
        """bool[B], expressions with operators of one's own, which NumPy evaluates one by one."""
        if not self.own:
            return np.zeros(len(designs), np.bool_)
        return np.asarray(np.isin(designs.tokens, list(self.own)).any(axis=1), dtype=np.bool_)

    def _interpret(self, designs: DesignBatch, row: int, columns: Floats) -> Floats:
        """One expression by NumPy; on whole batches twice as fast as making an `Expression` of each design."""
        stack: list[Floats] = []
        for position in range(int(designs.lengths[row]) - 1, -1, -1):
            token = int(designs.tokens[row, position])
            operator = self.own.get(token) or _BY_CODE.get(int(self.code[token]))
            if operator is not None:
                stack.append(operator.function(*[stack.pop() for _ in range(operator.arity)]))
            elif self.code[token] == INPUT:
                stack.append(columns[int(self.operand[token])])
            else:
                value = designs.values[row, position] if self.code[token] == VALUE else self.operand[token]
                stack.append(np.full(columns.shape[1], value))
        return stack[0]


def compiled(expression: Expression, const_range: Range = REALS) -> tuple[Program, DesignBatch]:
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
    result, columns = np.empty((len(expression.constants), len(X))), np.ascontiguousarray(X.T)
    values = np.array(batch.values)  # kernels that fit have an array that they may change
    program.in_parts(lambda own, _: jacobian_kernel(own, columns, result), batch, values=values)
    return result
