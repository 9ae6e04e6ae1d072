"""The operators of expressions: what each is called, computes, and looks like in every language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from discodso.base.checks import is_integer, require, require_integer
from discodso.base.errors import DeclarationError

NO_CODE = -1
HIGHEST_COST = 40


@dataclass(frozen=True)
class Operator:
    """An operator of one's own, or one of `OPERATORS`.

    Args:
        name: token name.
        arity: 1, 2 or more operands.
        function: of `arity` NumPy arrays, elementwise; NaN or infinity where it is undefined.
        sympy: name of the SymPy function if it is another; an unknown name becomes an undefined function.
        code: number of its loop in the compiled evaluator; operators of one's own have none and are
            evaluated by `function`.
        complexity: what it adds to the complexity of an expression.
    """

    name: str
    arity: int
    function: Callable[..., Any]
    sympy: str = ""
    code: int = NO_CODE
    complexity: float = 1.0

    def __post_init__(self) -> None:
        identifier = isinstance(self.name, str) and self.name.isidentifier()
        require("operator name", self.name, identifier, "an identifier such as 'cube'")
        require_integer(f"operator {self.name!r}: arity", self.arity, 1)
        require(f"operator {self.name!r}: function", self.function, callable(self.function), "a function")

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of `OPERATORS`."""
        return self is OPERATORS.get(self.name)


def _cube(x: Any) -> Any:
    return x * x * x


def _fourth(x: Any) -> Any:
    return (x * x) * (x * x)


# An operator's place here is its code in the compiled evaluator.
_BUILT_IN: tuple[tuple[str, int, Callable[..., Any]], ...] = (
    ("add", 2, np.add),
    ("sub", 2, np.subtract),
    ("mul", 2, np.multiply),
    ("div", 2, np.divide),
    ("sin", 1, np.sin),
    ("cos", 1, np.cos),
    ("tan", 1, np.tan),
    ("tanh", 1, np.tanh),
    ("exp", 1, np.exp),
    ("log", 1, np.log),
    ("sqrt", 1, np.sqrt),
    ("n2", 1, np.square),
    ("n3", 1, _cube),
    ("n4", 1, _fourth),
    ("pow", 2, np.power),
    ("neg", 1, np.negative),
    ("inv", 1, np.reciprocal),
    ("abs", 1, np.abs),
    ("asin", 1, np.arcsin),
    ("acos", 1, np.arccos),
    ("atan", 1, np.arctan),
)
OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {own[0]: Operator(*own, code=code) for code, own in enumerate(_BUILT_IN)}
)
_ALIASES = {"+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "**": "pow"}
_ALIASES |= {"square": "n2", "cube": "n3"}
# Codes of leaves in the compiled evaluator, behind those of the operators.
INPUT, VALUE, LITERAL = len(_BUILT_IN), len(_BUILT_IN) + 1, len(_BUILT_IN) + 2


def operators_named(names: Iterable[str | Operator]) -> tuple[Operator, ...]:
    """Operators by name, alias, or as they are; unknown and doubled names are refused."""
    found: list[Operator] = []
    for given in names:
        own = given if isinstance(given, Operator) else OPERATORS.get(_ALIASES.get(given, given))
        if own is None:
            raise DeclarationError(f"unknown operator {given!r}; built in are {', '.join(OPERATORS)}")
        if own.name in OPERATORS and not own.is_built_in:
            raise DeclarationError(f"operator {own.name!r} is built in; give yours another name")
        found.append(own)
    count = Counter(own.name for own in found)
    if twice := sorted(name for name in count if count[name] > 1):
        raise DeclarationError(f"operators must be distinct, but {', '.join(twice)} is given twice")
    return tuple(found)


# What an equation is written with beside the operators that were given costs as much as what it stands for.
_WRITTEN_FOR = {"sub": "add", "neg": "add", "n2": "mul", "n3": "mul", "n4": "mul", "div": "mul", "inv": "div"}


@dataclass(frozen=True)
class Costs:
    """What tokens add to the complexity of an equation, where a user has said so.

    Args:
        of: costs by the names of tokens; all others cost 1.
    """

    of: Mapping[str, int]

    def __getitem__(self, name: str) -> int:
        while name not in self.of and name in _WRITTEN_FOR:
            name = _WRITTEN_FOR[name]
        is_number = name not in self.of and name.lstrip("-")[:1].isdigit()  # one that constants became
        return self.of.get("const" if is_number else name, 1)


def library_and_costs(given: Any) -> tuple[tuple[str | Operator, ...], Costs | None]:
    """The tokens that a user has named, and their costs if there are any.

    Args:
        given: names, numbers and `Operator` objects, or a mapping from each to its cost.
    """
    tokens = tuple(given) if isinstance(given, (Mapping, list, tuple)) else ()
    good = bool(tokens) and all(isinstance(token, (str, Operator)) for token in tokens)
    require("operators", given, good, 'names such as ("add", "mul", "sin", "const"), or a mapping to costs')
    if not isinstance(given, Mapping):
        return tokens, None
    costs: dict[str, int] = {}
    for token, cost in given.items():
        name = token.name if isinstance(token, Operator) else str(_ALIASES.get(token, token))
        fits = is_integer(cost) and 1 <= cost <= HIGHEST_COST
        require(f"operators: the cost of {name!r}", cost, fits, f"an integer from 1 to {HIGHEST_COST}")
        costs[name] = int(cost)
    return tokens, Costs(costs)


def operators_in_words(words: Iterable[str]) -> Any:
    """What `library_and_costs` takes, from words such as "add,mul,sin=4"; those without a cost have 1."""
    found: dict[str, Any] = {}
    names = [name.strip() for word in words for name in word.split(",") if name.strip()]
    for name in names:
        token, equals, cost = name.partition("=")
        digits = cost.strip().isdigit()
        found[token.strip()] = int(cost) if digits else (cost if equals else 1)
    return found if any("=" in name for name in names) else tuple(names)


def nesting_rules(given: Any, own: Iterable[Any] = ()) -> dict[str, tuple[str, ...]] | None:
    """Operators by those that they must not stand inside, by their own names; None where nothing is said.

    Args:
        given: a mapping from the name of an operator to one or more others.
        own: tokens of the library, among which operators of one's own may be.
    """
    if given is None:
        return None
    require("nesting", given, isinstance(given, Mapping), 'a mapping such as {"sin": ["sin", "cos"]}')
    known = {*OPERATORS, *(token.name for token in own if isinstance(token, Operator))}
    found: dict[str, tuple[str, ...]] = {}
    for outer, inner in given.items():
        names = [
            _ALIASES.get(name, name) for name in (outer, *((inner,) if isinstance(inner, str) else inner))
        ]
        for name in names:
            require("nesting", name, name in known, f"names of operators, which are {', '.join(OPERATORS)}")
        found[names[0]] = tuple(names[1:])
    return found


def nesting_in_words(words: Iterable[str]) -> dict[str, tuple[str, ...]] | None:
    """What `nesting_rules` takes, from words such as "sin:sin,cos"; None for none, no rules for "none"."""
    own = [word.partition(":") for word in words if word.strip() != "none"]
    rules = {
        outer.strip(): tuple(name.strip() for name in inner.split(",") if name.strip())
        for outer, _, inner in own
    }
    return rules if list(words) else None
