"""Options of commands, made from the dataclasses that declare them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from discodso.base.options import declared, taken

Out = Annotated[
    Path | None, typer.Option(help="Folder for the run, new or empty; `discodso resume` goes on with it.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON only.")]
Events = Annotated[Path | None, typer.Option(help="File to append events of the run to, as JSON lines.")]
TensorBoardFolder = Annotated[
    Path | None, typer.Option("--tensorboard", help="Folder for TensorBoard's event files.")
]
PresetName = Annotated[str, typer.Option(help="Settings of the search: default, or paper for the paper's.")]
Changes = Annotated[
    list[str],
    typer.Option("--set", help="Change a setting, as method.batch_size=50; may be given again."),
]


def command(
    *declarations: type[Any], arguments: tuple[str, ...] = (), defaults: dict[str, Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a function that takes `**options` the options of some dataclasses, for Typer.

    Args:
        declarations: dataclasses whose fields were declared by `option`.
        arguments: options that are given by their place.
        defaults: in place of those declared.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        named: dict[str, inspect.Parameter] = {}
        for declaration in declarations:  # of equal names the first counts
            for parameter in _parameters(declaration, arguments, defaults or {}):
                named.setdefault(parameter.name, parameter)
        made = sorted(named.values(), key=lambda p: p.name not in arguments)

        def called(**given: Any) -> None:
            for declaration in declarations:
                for each in fields(declaration):
                    read = declared(each).read
                    if read is not None and each.name in given:
                        given[each.name] = read(given[each.name])
            function(**given)

        changed: Any = called
        keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        changed.__signature__ = signature.replace(parameters=[*made, *keyword])
        changed.__annotations__ = {p.name: p.annotation for p in (*made, *own)}
        changed.__doc__, changed.__name__ = function.__doc__, function.__name__
        return called

    return decorate


def _parameters(
    declaration: type[Any], arguments: tuple[str, ...], defaults: dict[str, Any]
) -> list[inspect.Parameter]:
    hints, found = get_type_hints(declaration), []
    for each in fields(declaration):
        known = declared(each)
        if known.command == "":
            continue
        hint: Any = list[str] if known.read is not None else _plain(hints[each.name])
        default = defaults.get(each.name, each.default)
        if default is MISSING:
            default = inspect.Parameter.empty if each.default_factory is MISSING else []
        elif isinstance(default, tuple):
            default = list(default)
        words = [] if known.command is None else [f"--{known.command}"]
        marked = (
            typer.Argument(help=known.help)
            if each.name in arguments
            else typer.Option(*words, help=known.help)
        )
        found.append(
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[hint, marked],
            )
        )
    return found


def _plain(hint: Any) -> Any:
    """A type that Typer knows."""
    if get_origin(hint) is tuple:
        return list[str]
    if get_origin(hint) in (Union, UnionType) or hint in (int, float, bool, str):
        return hint
    return str if all(isinstance(choice, str) for choice in get_args(hint)) else hint


def split(given: dict[str, Any], *declarations: type[Any]) -> list[Any]:
    """Objects of some dataclasses made from the options of a command."""
    made = []
    for declaration in declarations:
        own = taken(declaration, given)
        lists = {key: tuple(value) if isinstance(value, list) else value for key, value in own.items()}
        made.append(declaration(**lists))
    return made
