"""Templates: a known outer form with unknown parts, such as "f(t) * exp(-k*t)".

A letter with inputs in parentheses is an unknown function of these inputs; a name that is no input is a constant.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from discodso.base.errors import DeclarationError, InvalidDesignError
from discodso.space.design import Design
from discodso.tasks.regression.expression import (
    CONST,
    Expression,
    FormulaReader,
    Item,
    formula_tree,
    input_index,
)
from discodso.tasks.regression.operators import OPERATORS

PART = "part"


@dataclass(frozen=True)
class Template:
    """A form over some columns.

    Attributes:
        items: its tokens; a part is "part f", a constant "const k".
        parts: names of the unknown functions, with the inputs of each as tokens.
        constants: names of the constants.
    """

    items: tuple[str, ...]
    parts: Mapping[str, tuple[str, ...]]
    constants: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, columns: Sequence[str]) -> Template:
        """Read a template; nothing is evaluated."""
        try:
            tree, quoted = formula_tree(text)
            reader = _TemplateReader(tuple(columns), dict(OPERATORS), False, quoted)
            items = reader.read(tree)
        except InvalidDesignError as error:
            raise DeclarationError(f"template: {error}") from None
        if not reader.parts:
            raise DeclarationError(
                f"template must have an unknown function, such as f({columns[0]}), got {text!r:.80}"
            )
        return cls(tuple(map(str, items)), reader.parts, tuple(reader.found), tuple(columns))

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators and numbers that the form itself is written with."""
        own = (name for name in self.items if " " not in name and input_index(name) is None)
        return tuple(dict.fromkeys(own))

    def expression(self, parts: Mapping[str, Sequence[Item]], constants: Mapping[str, float]) -> Expression:
        """The form with these parts and constants."""
        tokens: list[Item] = []
        for item in self.items:
            kind, _, name = item.partition(" ")
            if kind == PART:
                tokens += parts[name]
            else:
                tokens.append((CONST, constants[name]) if name else item)
        return Expression(Design.of(*tokens), self.columns)


@dataclass(frozen=True)
class _TemplateReader(FormulaReader):
    """Reads unknown functions and constants as well."""

    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    found: dict[str, None] = field(default_factory=dict)

    def column(self, name: str) -> Item:
        try:
            return super().column(name)
        except InvalidDesignError:
            if name in self.quoted:
                raise
            self.found[name] = None
            return f"{CONST} {name}"

    def call(self, name: str, args: list[ast.expr]) -> tuple[list[Item], list[ast.expr]]:
        if name in self.operators or name == "pow":
            return super().call(name, args)
        if not args or not all(isinstance(own, ast.Name) for own in args):
            raise InvalidDesignError(f"{name}(...) must have inputs between its parentheses")
        inputs = tuple(str(FormulaReader.column(self, own.id)) for own in args if isinstance(own, ast.Name))
        if self.parts.setdefault(name, inputs) != inputs:
            raise InvalidDesignError(f"{name} stands with different inputs; give each its own letter")
        return [f"{PART} {name}"], []
