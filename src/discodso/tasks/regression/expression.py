"""Expressions: a design read as a formula over named columns.

Tokens are the names of operators, inputs "x1" to "xd", "const" with its value, and numbers such as "1" or "2.5".
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.checks import is_number
from discodso.base.errors import InvalidDesignError
from discodso.space.design import Design
from discodso.tasks.regression.operators import OPERATORS, Costs, Operator
from discodso.tasks.regression.typeset import markup, mathml

CONST = "const"
_NAMED = 50  # columns in a message
_INPUT = re.compile(r"x([1-9]\d*)")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")
T = TypeVar("T")
Item = str | tuple[str, float]  # a token, perhaps with its value


def input_index(name: str) -> int | None:
    """0 for "x1", 1 for "x2", ..., None for anything else."""
    match = _INPUT.fullmatch(name)
    return int(match[1]) - 1 if match else None


def literal_value(name: str) -> float | None:
    """The number that a token such as "2.5" stands for, None for anything else."""
    try:
        value = float(name)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Expression:
    """A formula.

    Args:
        design: its tokens in pre-order.
        columns: names of the inputs, in order; x1 is the first.
        operators: operators of one's own, beside the built-in ones.
    """

    design: Design
    columns: tuple[str, ...]
    operators: tuple[Operator, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(str(column) for column in self.columns))
        open_slots = 1
        for name, value in self.design:
            if open_slots == 0:
                raise InvalidDesignError(f"{self.design}: {name!r} stands after the end of the expression")
            open_slots += self._arity(name, value) - 1
        if open_slots:
            raise InvalidDesignError(f"{self.design}: the expression ends with {open_slots} operands missing")

    def _arity(self, name: str, value: float | None) -> int:
        operator = self.operator(name)
        if operator is not None:
            return operator.arity
        index = input_index(name)
        if index is not None and index >= len(self.columns):
            raise InvalidDesignError(f"{self.design}: {name!r} needs more than {len(self.columns)} columns")
        if name == CONST and value is None:
            raise InvalidDesignError(f"{self.design}: 'const' needs a value")
        if value is not None and not is_number(value):
            raise InvalidDesignError(f"{self.design}: the value of {name!r} must be a number")
        if index is None and name != CONST and literal_value(name) is None:
            raise InvalidDesignError(f"{self.design}: {name!r} is no operator, input or number")
        return 0

    def operator(self, name: str) -> Operator | None:
        """The operator of this name, None for leaves."""
        return next((own for own in self.operators if own.name == name), OPERATORS.get(name))

    def fold(self, column: Callable[[int], T], number: Callable[[float], T], apply: Callable[..., T]) -> T:
        """Build something from the leaves up: `apply(operator, *operands)`; no recursion, so no depth limit."""
        stack: list[T] = []
        for name, value in reversed(list(self.design)):
            operator, index = self.operator(name), input_index(name)
            if operator is not None:
                stack.append(apply(operator, *[stack.pop() for _ in range(operator.arity)]))
            elif index is not None:
                stack.append(column(index))
            else:
                stack.append(number(float(name) if value is None else value))
        return stack[0]

    def __call__(self, X: Any) -> Floats:
        """Values on the rows of X[n, d], by NumPy; NaN or infinite where the formula is undefined."""
        rows = np.asarray(X, dtype=np.float64)
        with np.errstate(all="ignore"):
            values = self.fold(
                lambda index: rows[:, index],
                lambda number: np.full(len(rows), number),
                lambda operator, *operands: operator.function(*operands),
            )
        return np.array(values, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.design)

    def _repr_html_(self) -> str:
        """Typeset, for notebooks."""
        return markup(mathml(self))

    def cost(self, costs: Costs | None = None) -> float:
        """The sum of what its tokens cost; the complexity if nothing is said of costs."""
        return self.complexity if costs is None else float(sum(costs[name] for name in self.design.tokens))

    @property
    def complexity(self) -> float:
        """The sum of the complexities of its tokens."""
        operators = map(self.operator, self.design.tokens)
        return float(sum(1.0 if operator is None else operator.complexity for operator in operators))

    @property
    def constants(self) -> Floats:
        """Values of the constants, in order."""
        return np.array([value for value in self.design.values if value is not None])

    def with_constants(self, values: Sequence[float] | Floats) -> Expression:
        """The same skeleton with other constants."""
        rest = iter(float(value) for value in values)
        new = tuple(None if value is None else next(rest) for value in self.design.values)
        return replace(self, design=Design(self.design.tokens, new))

    def scaled(self, offset: float, slope: float) -> Expression:
        """offset + slope * this, as an expression; parts that change nothing are left out."""
        items: list[Item] = [] if offset == 0 else ["add", (CONST, offset)]
        items += [] if slope == 1 else ["mul", (CONST, slope)]
        items += [name if value is None else (name, value) for name, value in self.design]
        return replace(self, design=Design.of(*items))

    @classmethod
    def parse(
        cls, text: str, columns: Sequence[str], operators: Sequence[Operator] = (), *, constants: bool = True
    ) -> Expression:
        """Read a formula such as "2.5 * sin(x) + y^2"; names are columns or x1, x2, ..., and pi.

        Columns whose names could be read as something else stand between backticks. Numbers become constants, or
        literal tokens if `constants` is False. Nothing is evaluated: the text is taken apart by Python's own
        parser, and only arithmetic and known functions are accepted.
        """
        tree, quoted = formula_tree(text)
        known = {**OPERATORS, **{o.name: o for o in operators}}
        items = FormulaReader(tuple(columns), known, constants, quoted).read(tree)
        return cls(Design.of(*items), tuple(columns), tuple(operators))


def formula_tree(text: str) -> tuple[ast.expr, dict[str, str]]:
    """A formula as Python's parser takes it apart, and the names between backticks by what stands for them."""
    quoted: dict[str, str] = {}
    mark = "q"
    while mark in text:
        mark += "_q"

    def placed(match: re.Match[str]) -> str:
        name = f"{mark}{len(quoted)}"
        quoted[name] = match[1].replace("``", "`")
        return f" {name} "

    try:
        plain = _QUOTED.sub(placed, text).replace("^", "**").strip()
        return ast.parse(plain, mode="eval").body, quoted
    except (RecursionError, MemoryError):
        raise InvalidDesignError(
            f"not a formula: it has too many parts inside each other: {text!r:.80}"
        ) from None
    except (SyntaxError, ValueError):
        raise InvalidDesignError(f"not a formula: {text!r:.80}") from None


_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}


@dataclass(frozen=True)
class FormulaReader:
    """Turns Python's syntax tree into tokens in pre-order."""

    columns: tuple[str, ...]
    operators: dict[str, Operator]
    constants: bool
    quoted: dict[str, str]  # columns by what stands for them

    def read(self, node: ast.expr) -> list[Item]:
        """The tokens of a node and all below it; no recursion, so a formula may be long."""
        items: list[Item] = []
        waiting = [node]
        while waiting:
            item, operands = self.step(waiting.pop())
            items += item
            waiting += reversed(operands)
        return items

    def step(self, node: ast.expr) -> tuple[list[Item], list[ast.expr]]:
        """The token of a node, if it has one, and its operands."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return [self.number(value)], []
            case ast.Name(id=name):
                return [self.column(name)], []
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return [self.number(-value)], []
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return ["neg"], [operand]
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return [], [operand]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self.call(_BINARY[type(op)], [left, right])
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(name, args)
        try:
            words = ast.unparse(node)
        except (RecursionError, ValueError):
            words = type(node).__name__
        raise InvalidDesignError(f"not a formula: {words!r:.80} is no arithmetic")

    def number(self, value: float) -> Item:
        """A constant, or the token of a number."""
        if not is_number(value):
            raise InvalidDesignError("not a formula: a number is beyond the range of floats")
        return (CONST, float(value)) if self.constants else repr(float(value))

    def column(self, name: str) -> Item:
        """The token of an input, or of pi."""
        own = self.quoted.get(name, name)
        if own in self.columns:
            return f"x{self.columns.index(own) + 1}"
        if name == "pi":
            return repr(math.pi)
        index = None if name in self.quoted else input_index(name)
        if index is None or index >= len(self.columns):
            there = ", ".join(self.columns[:_NAMED]) + (", ..." if len(self.columns) > _NAMED else "")
            raise InvalidDesignError(f"no column {own!r:.80}; there are {there}")
        return name

    def call(self, name: str, args: list[ast.expr]) -> tuple[list[Item], list[ast.expr]]:
        """An operator and its operands."""
        match name, args:
            case "pow", [base, ast.Constant(value=(2 | 3 | 4) as exponent)]:
                return [f"n{exponent:.0f}"], [base]
        operator = self.operators.get(name)
        if operator is None or operator.arity != len(args):
            raise InvalidDesignError(f"no function {name!r:.80} of {len(args)} arguments")
        return [name], list(args)
