"""Settings files: one TOML file describes a run. What is wrong with one is said in a line that names the key."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError

from discodso.base.errors import DeclarationError, InvalidDesignError, SettingsError
from discodso.base.options import check_options, is_optional, option
from discodso.baselines.methods import METHODS, method_kind
from discodso.disco.disco import DisCoSettings
from discodso.disco.method import Method, MethodSettings
from discodso.disco.presets import PRESETS, Preset
from discodso.disco.presets import preset as named_preset
from discodso.run.executors.registry import KINDS as EXECUTORS
from discodso.run.folder import read_settings
from discodso.run.kinds import Kind, kind_named, require_known
from discodso.run.known import KnownDesign, first_designs, known_designs
from discodso.run.plan import Plan
from discodso.space.design import Design
from discodso.space.space import Space

_TABLES = ("task", "method", "run", "executor")
_OTHER_NAMES = {("method", "N"): "batch_size"}  # of the paper


@dataclass(frozen=True, slots=True)
class ExecutorOptions:
    """[executor]: where designs are evaluated."""

    kind: str = option("none", "none (this process), threads, processes, dask or ray.", choices=EXECUTORS)
    workers: int | None = option(None, "How many, where they are started here.", least=1)
    address: str | None = option(None, "Of a Dask scheduler, or of a Ray cluster.")
    renew_after: int | None = option(
        None, "Designs after which a worker process is replaced by a new one; never by default.", least=1
    )
    renew_megabytes: float | None = option(
        None,
        "A worker process that has grown by so much is replaced by a new one; never by default.",
        above=0,
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class OwnMethod:
    """[method] of a run that began in Python with a method of one's own, which must be handed over again."""

    name: str

    def build(self, space: Space, seed: int | np.random.SeedSequence) -> Method:
        """Tell the user so."""
        raise SettingsError(
            f"the run began with a method of one's own, {self.name}; hand it to resume as method=..."
        )


@dataclass(frozen=True)
class RunSettings:
    """The description of a run, as settings files, commands and functions of Python make it.

    Attributes:
        task: options of the task; the class has the name of its kind.
        plan: limits, seed and the rest of [run].
        method: settings of the method; None for the preset of the task.
        preset: "default", "paper" or "paper-scaled".
        changes: of settings of the preset, as nested dictionaries.
        executor: where designs are evaluated.
        initial_designs: to evaluate first; texts are of kinds of tasks whose space is in Python.
        known: designs that were evaluated before; the folder of the run has them in a file of its own.
        begun: what the designs took that a kind of task made before the run began, for people; a run that goes on
            does not make them again.
        given: what was handed over in Python, such as a task or data, which no file can hold.
        is_preset: whether the method is that of the preset, as the folder of a run has it written out.
    """

    task: Any
    plan: Plan
    method: MethodSettings | None = None
    preset: Preset = "default"
    changes: Mapping[str, Any] = field(default_factory=dict)
    executor: ExecutorOptions = ExecutorOptions()
    initial_designs: tuple[Design | str, ...] = ()
    known: tuple[KnownDesign, ...] = ()
    begun: Mapping[str, Any] = field(default_factory=dict)
    given: Any = None
    is_preset: bool = False

    @property
    def kind(self) -> Kind:
        """Of the task."""
        return kind_named(self.task.kind)

    def record(self) -> dict[str, Any]:
        """As nested dictionaries, with all defaults written out; `parse` gives equal settings back."""
        first = {
            **(
                {"initial_designs": [d if isinstance(d, str) else d.to_json() for d in self.initial_designs]}
                if self.initial_designs
                else {}
            ),
            **({"begun": dict(self.begun)} if self.begun else {}),
        }
        # What was handed over is needed to go on, and may be nothing that a file can hold.
        named = {"kind": "python", "name": getattr(self.task, "name", self.task.kind)}
        told = self.given is None or self.kind.told
        task = {"kind": self.task.kind, **asdict(self.task)} if told else named
        made = {
            "task": task,
            "run": {**asdict(self.plan), **first},
            "executor": asdict(self.executor),
        }
        if self.method is not None:
            made["method"] = self.method_table(self.method)
        elif self.preset != "default" or self.changes:
            made["method"] = {"kind": "disco", "preset": self.preset, **self.changes}
        return made

    def method_table(self, method: MethodSettings) -> dict[str, Any]:
        """The table [method] for the method that is used, with the name of its preset if it has one.

        A method of one's own, or with proposers of one's own, is named only.
        """
        kind = method_kind(method)
        if kind is None and self.method is None:  # of the task, which makes it again
            return {"preset": self.preset}
        if kind is None or getattr(method, "proposers", None):
            return {"kind": "python", "name": getattr(method, "name", type(method).__name__)}
        named = self.is_preset or (self.method is None and not self.changes) or self.preset != "default"
        return {"kind": kind, **({"preset": self.preset} if named else {}), **_written(method)}

    def with_limits(self, budget: int | None, time_limit: float | None) -> RunSettings:
        """The same with another budget or time limit, where given."""
        given = {"budget": budget, "time_limit": time_limit}
        limits: dict[str, Any] = {name: limit for name, limit in given.items() if limit is not None}
        return replace(self, plan=replace(self.plan, **limits))


def _written(settings: Any) -> dict[str, Any]:
    """Settings as a file has them: `false` for a part that is None."""
    found: dict[str, Any] = {}
    for name, hint in _settings_in_files(type(settings)).items():
        value = getattr(settings, name)
        off = value is None and bool(_parts(hint))
        found[name] = False if off else _written(value) if is_dataclass(value) else value
    return found


def _settings_in_files(settings: type[Any]) -> dict[str, Any]:
    """The type of each setting of a dataclass that a file can hold: no functions, no objects (see `IN_FILES`)."""
    hints = get_type_hints(settings) | dict(getattr(settings, "IN_FILES", {}))
    return {own.name: hints[own.name] for own in fields(settings) if hints[own.name] is not None}


def _parts(hint: Any) -> list[type[Any]]:
    """The dataclasses of settings among the values of a type: they are tables inside a table."""
    return [part for part in (hint, *get_args(hint)) if is_dataclass(part)]  # type: ignore[misc]


def read(path: Path, changes: Sequence[str] = (), *, follow: bool = False) -> RunSettings:
    """Read a settings file and apply changes of the form "table.key=value"; see `read_settings`."""
    data = read_settings(path, follow=follow)
    apply_changes(data, changes)
    return parse(data, str(path), path.parent)


def apply_changes(data: dict[str, Any], changes: Sequence[str]) -> None:
    """Apply changes of the form "table.key=value" to nested dictionaries."""
    for change in changes:
        key, equals, text = change.partition("=")
        parts = [part.strip() for part in key.split(".")]
        if not equals or len(parts) < 2 or not all(parts):
            raise SettingsError(f"--set needs table.key=value, such as run.seed=3, got {change!r:.60}")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):
            value = text.strip()  # a word without quotes
        parts[-1] = _OTHER_NAMES.get((".".join(parts[:-1]), parts[-1]), parts[-1])
        table: Any = data
        for part in parts[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise SettingsError(f"--set {key.strip()}: {part} is not a table")
        table[parts[-1]] = value


def parse(data: Mapping[str, Any], where: str = "settings", folder: Path = Path()) -> RunSettings:
    """Check nested dictionaries.

    Args:
        where: named in errors.
        folder: from which files of designs are looked for: that of the settings file.
    """
    for key in data:
        if key not in _TABLES:
            raise SettingsError(f"{where}: {_unknown(key, '', _TABLES)}")
        if not isinstance(data[key], Mapping):
            raise SettingsError(f"{where}: {key} must be a table, [{key}], got {data[key]!r:.60}")
    for key in ("task", "run"):
        if key not in data:
            raise SettingsError(f"{where}: the table [{key}] is missing")
    kind = kind_named(data["task"].get("kind"), f"{where}: task.kind")
    run = {"top": kind.top, **data["run"]}
    if run.pop("raise_on_failure", False):  # of records from before `on_failure`
        run["on_failure"] = "raise"
    first, known, begun = run.pop("initial_designs", []), run.pop("known", []), run.pop("begun", {})
    task = _built(where, "task", kind.options, _without(data["task"], "kind"))
    plan = _built(where, "run", Plan, run)
    executor = _built(where, "executor", ExecutorOptions, data.get("executor", {}))
    method, preset, changes = _method(where, data.get("method", {}))
    if not isinstance(first, (list, str)) or not all(isinstance(text, str) for text in first):
        raise SettingsError(f"{where}: run.initial_designs must be a file, or a list of designs as texts")
    paths = [known] if isinstance(known, str) else known
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise SettingsError(f"{where}: run.known must be a file or a run folder, or a list of these")
    if not isinstance(begun, Mapping):
        raise SettingsError(f"{where}: run.begun must be a table, which a run writes into its folder")
    try:
        designs = first_designs(folder / first if isinstance(first, str) else first)
    except InvalidDesignError as error:
        raise SettingsError(f"{where}: run.{error}") from None
    named = method is not None and "preset" in data.get("method", {})
    before = known_designs([folder / path for path in paths])
    return RunSettings(task, plan, method, preset, changes, executor, designs, before, begun, is_preset=named)


def _method(where: str, data: Mapping[str, Any]) -> tuple[MethodSettings | None, Preset, dict[str, Any]]:
    """The settings of a method, or None, a preset and changes of it."""
    kind = data.get("kind", "disco")
    preset: Any = data.get("preset", "default")
    require_known(f"{where}: method.preset", preset, PRESETS)
    if kind == "python":
        return OwnMethod(f"{data.get('name', 'method')!s:.60}"), preset, {}
    own = _without(data, "kind", "preset")
    whole = own.keys() >= _settings_in_files(DisCoSettings).keys()  # as in the folder of a run
    if kind == "disco" and not whole:
        changes = {key: value for key, value in own.items() if value != {}}
        changed(named_preset(preset), changes, where)  # refuses what is no setting
        return None, preset, changes
    require_known(f"{where}: method.kind", kind, tuple(METHODS))
    return changed(METHODS[kind], own, where), preset, {}


def _without(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def changed(base: Any, changes: Mapping[str, Any], where: str = "settings") -> Any:
    """Settings of a method with other values for some of them, also of the tables inside it."""
    return _built(where, "method", type(base), changes, base) if changes else base


def _built(where: str, place: str, settings: type[Any], table: Mapping[str, Any], base: Any = None) -> Any:
    """Settings from a table.

    Args:
        where, place: the file, and where the table stands in it.
        settings: a dataclass.
        table: values of some of its fields, tables for those that are settings themselves.
        base: has the values of the others; None for their defaults.
    """
    known = _settings_in_files(settings)
    named = {_OTHER_NAMES.get((place, key), key): value for key, value in table.items()}
    if len(named) < len(table):
        raise SettingsError(f"{where}: {place} has a key and its other name; leave one of them out")
    for key in named:
        if key not in known:
            raise SettingsError(f"{where}: {_unknown(key, place, tuple(known))}")
    for own in fields(settings):
        needed = base is None and own.default is MISSING and own.default_factory is MISSING
        if needed and own.name not in named:
            raise SettingsError(f"{where}: {place}.{own.name} is missing")
    made = {
        key: _value(where, f"{place}.{key}", known[key], value, getattr(base, key, None))
        for key, value in named.items()
    }
    try:
        return settings(**made) if base is None else replace(base, **made)
    except DeclarationError as error:
        raise SettingsError(f"{where}: {place}.{error}") from None


def _value(where: str, place: str, hint: Any, value: Any, base: Any) -> Any:
    """A value of a table, of this type; settings inside it where that is a dataclass, and None for `false`."""
    parts = _parts(hint)
    if not parts:
        return _checked(where, place, hint, value)
    if is_optional(hint) and (value is False or value is None):
        return None
    if not isinstance(value, Mapping):
        raise SettingsError(f"{where}: {place} must be a table, got {value!r:.60}".replace("\n", " "))
    return _built(where, place, parts[0] if base is None else type(base), value, base)


def _checked(where: str, place: str, hint: Any, value: Any) -> Any:
    """A plain value, of exactly this type."""
    try:
        # By way of JSON, where a list may become a tuple but a string never a number.
        return TypeAdapter(hint).validate_json(json.dumps(value, default=repr), strict=True)
    except ValidationError as error:
        # Where a key may be one thing or another there is an error for each: that which went deepest was meant.
        found = max(error.errors(include_url=False), key=lambda other: len(other["loc"]))
    except (ValueError, RecursionError, OverflowError) as error:
        raise SettingsError(f"{where}: {place} cannot be read: {type(error).__name__}") from None
    # Where a key may be one type or another, the type is among the places.
    key = ".".join((place, *(str(part) for part in found["loc"] if "[" not in str(part))))
    if found["type"] == "missing":
        raise SettingsError(f"{where}: {key} is missing")
    message = found["msg"].removeprefix("Input should be ")
    raise SettingsError(f"{where}: {key} must be {message}, got {found['input']!r:.60}".replace("\n", " "))


def _unknown(key: str, table: str, known: Sequence[str]) -> str:
    others = [other for owner, other in _OTHER_NAMES if owner == table]
    close = get_close_matches(key, (*known, *others), 1, cutoff=0.5)
    start = f"{table}." if table else ""
    hint = f"did you mean {start}{close[0]}?" if close else f"known are {', '.join(known)}"
    return f"{start}{key:.60} is not a setting; {hint}".replace("\n", " ")
