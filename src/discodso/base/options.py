"""Options that are declared once, as fields of a frozen dataclass.

A settings file, a command and a keyword argument all take their options from such a dataclass: `option` declares a
field with its help and limits, `check_options` checks them, `with_options` gives a function the keywords of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from discodso.base.checks import did_you_mean, require, require_integer, require_number, require_one_of

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Declared:
    """What is known of an option beside its type and default.

    Attributes:
        help: a sentence for people.
        least, above, most: limits of a number.
        choices: of a name.
        command: its name on the command line if that is another; "" keeps it off the command line.
        read: makes the value from the words given on the command line, for options that are tables.
    """

    help: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    choices: tuple[str, ...] | None = None
    command: str | None = None
    read: Callable[[list[str]], Any] | None = None


def option(default: Any = MISSING, help: str = "", *, factory: Any = MISSING, **known: Any) -> Any:
    """A field of a dataclass of options; see `Declared` for what may be known of it."""
    return field(default=default, default_factory=factory, metadata={"option": Declared(help, **known)})


def declared(of: Field[Any]) -> Declared:
    """What is known of a field."""
    known: Declared = of.metadata.get("option", Declared(""))
    return known


def is_optional(hint: Any) -> bool:
    """Whether None is among the values of a type."""
    return NoneType in get_args(hint)


def check_options(options: Any) -> None:
    """Check the numbers, flags and names of a dataclass of options; the first bad one is named.

    Numbers of NumPy become those of Python, which files can hold.
    """
    hints = get_type_hints(type(options))
    for own in fields(options):
        value, known, hint = getattr(options, own.name), declared(own), hints[own.name]
        if value is None and is_optional(hint):
            continue
        plain = {hint, *get_args(hint)} if is_optional(hint) else {hint}
        if known.choices is not None:
            if not callable(value):  # a function in place of a name is the caller's own
                require_one_of(own.name, value, known.choices)
        elif bool in plain:
            require(own.name, value, isinstance(value, (bool, np.bool_)), "True or False")
        elif int in plain:
            require_integer(own.name, value, int(known.least or 0))
        elif float in plain:
            limits = {key: getattr(known, key) for key in ("least", "above", "most")}
            require_number(own.name, value, **{k: v for k, v in limits.items() if v is not None})
        if isinstance(value, np.generic):
            object.__setattr__(options, own.name, value.item())


def parameters_of(options: type[Any]) -> list[inspect.Parameter]:
    """The options as keyword parameters of a function."""
    hints, empty = get_type_hints(options), inspect.Parameter.empty
    found = []
    for own in fields(options):
        default = own.default if own.default_factory is MISSING else own.default_factory()
        given = {"default": empty if default is MISSING else default, "annotation": hints[own.name]}
        found.append(inspect.Parameter(own.name, inspect.Parameter.KEYWORD_ONLY, **given))
    return found


def with_options(*declarations: type[Any]) -> Callable[[_Function], _Function]:
    """Give a function that takes `**options` the signature and the help of these options.

    The place of their help in the docstring is a line "{options}".
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        names = {parameter.name for parameter in own}
        more = [p for d in declarations for p in parameters_of(d) if p.name not in names]
        changed: Any = function
        changed.__signature__ = signature.replace(parameters=[*own, *more])
        others = [field for d in declarations for field in fields(d) if field.name not in names]
        lines = ("\n" + " " * 8).join(f"{field.name}: {declared(field).help}" for field in others)
        function.__doc__ = (function.__doc__ or "").replace("{options}", lines)
        return function

    return decorate


def taken(options: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of a dataclass out of keyword arguments; the others stay."""
    names = {own.name for own in fields(options)}
    return {name: given.pop(name) for name in list(given) if name in names}


def require_nothing_left(function: str, given: dict[str, Any], *declarations: type[Any]) -> None:
    """Refuse keyword arguments that are no option, as Python does, naming one that was meant."""
    for name in given:
        known = [own.name for declaration in declarations for own in fields(declaration)]
        hint = did_you_mean(name, known)
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")
