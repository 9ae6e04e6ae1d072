"""Options of commands, made from the dataclasses that declare them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from discodso.base.options import declared, option, taken

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]


@dataclass(frozen=True)
class Watching:
    """Who follows a run, and how its result is printed."""

    as_json: bool = option(False, "Print the result as JSON only.", command="json")
    events: Path | None = option(None, "File to append events of the run to, as JSON lines.")
    tensorboard: Path | None = option(None, "Folder for TensorBoard's event files.")


@dataclass(frozen=True)
class Starting:
    """A run that begins: settings that are others than those of a file or a preset, and its folder."""

    changes: tuple[str, ...] = option(
        (), "Change a setting, as method.batch_size=50; may be given again.", command="set"
    )
    out: Path | None = option(None, "Folder for the run, new or empty; `discodso resume` goes on with it.")
    known: tuple[str, ...] = option(
        (), "Designs that were evaluated before: a CSV file, or the folder of a run; may be given again."
    )
    initial_designs: Path | None = option(None, "CSV file of designs to evaluate first.")


@dataclass(frozen=True)
class Search(Starting):
    """The search of a task."""

    preset: str = option("default", "Settings of the search: default, paper or paper-scaled.")


def command(
    *declarations: type[Any], arguments: tuple[str, ...] = (), defaults: dict[str, Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a function the options of some dataclasses, for Typer: it gets an object of each, then its own options.

    Args:
        declarations: dataclasses whose fields were declared by `option`.
        arguments: options that are given by their place.
        defaults: in place of those declared.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        own = list(signature.parameters.values())[len(declarations) :]
        named: dict[str, inspect.Parameter] = {}
        for declaration in declarations:  # of equal names the first counts
            for parameter in _parameters(declaration, arguments, defaults or {}):
                named.setdefault(parameter.name, parameter)
        made = sorted(named.values(), key=lambda p: p.name not in arguments)

        def called(**given: Any) -> None:
            objects = [_built(declaration, given) for declaration in declarations]
            function(*objects, **given)

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
        words = [] if known.command is None else [f"--{known.command}"]
        kind: Any = typer.Argument if each.name in arguments else partial(typer.Option, *words)
        hint: Any = hints[each.name]
        if known.read is not None or get_origin(hint) is tuple:
            hint = list[str]
        about: Any = {"annotation": Annotated[hint, kind(help=known.help)]}
        default = defaults.get(each.name, _default(each))
        found.append(inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, **about))
    return found


def _default(of: Field[Any]) -> Any:
    if of.default is MISSING:
        return inspect.Parameter.empty if of.default_factory is MISSING else []
    return list(of.default) if isinstance(of.default, tuple) else of.default


def _built(declaration: type[Any], given: dict[str, Any]) -> Any:
    """An object of a dataclass, whose options are taken out of those given."""
    own = taken(declaration, given)
    for each in fields(declaration):
        read, value = declared(each).read, own.get(each.name)
        if isinstance(value, list):
            own[each.name] = tuple(value) if read is None else read(value)
    return declaration(**own)
