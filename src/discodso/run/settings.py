"""Settings files: one TOML file describes a run. What is wrong with one is said in a line that names the key."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from discodso.base.errors import DeclarationError, InvalidDesignError, SettingsError
from discodso.base.options import check_options, is_optional, option
from discodso.baselines.bayesian import BOSettings
from discodso.baselines.decoupled import DecoupledSettings
from discodso.baselines.genetic import GPSettings
from discodso.baselines.methods import method_kind
from discodso.baselines.random_search import RandomSettings
from discodso.disco.disco import DisCoSettings
from discodso.disco.method import MethodSettings
from discodso.disco.presets import PRESETS, Preset
from discodso.disco.presets import preset as named_preset
from discodso.run.executors.kinds import KINDS as EXECUTORS
from discodso.run.folder import read_settings
from discodso.run.kinds import Kind, kind_named
from discodso.run.plan import Plan
from discodso.space.design import Design


class Table(BaseModel):
    """A table of a settings file: no other keys, and no other types, than declared."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


@dataclass(frozen=True, slots=True)
class ExecutorOptions:
    """[executor]: where designs are evaluated."""

    kind: str = option("none", "none (this process), threads, processes, dask or ray.", choices=EXECUTORS)
    workers: int | None = option(None, "How many, where they are started here.", least=1)
    address: str | None = option(None, "Of a Dask scheduler, or of a Ray cluster.")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class PythonMethod:
    """[method] of a run that began in Python with a method of one's own."""

    name: str = "method"


_SETTINGS_OF: dict[type[Table], type[Any]] = {}  # the dataclass behind a table


def _table_of(settings: type[Any], kind: str | None = None, **replaced: Any) -> Any:
    """A table with the fields of a dataclass, whose own checks apply when it is built.

    Settings inside it are tables, too; where they may be None, `false` in a file stands for it.
    """
    hints = get_type_hints(settings)
    own: dict[str, Any] = {} if kind is None else {"kind": (Literal[kind], kind)}
    for each in fields(settings):
        # A settings file can hold no functions and objects: such options are for Python only.
        hint = getattr(settings, "IN_FILES", {}).get(each.name, hints[each.name])
        if hint is None:
            continue
        default = each.default
        if default is MISSING and each.default_factory is not MISSING:
            default = Field(default_factory=each.default_factory)
        inner = [part for part in (hint, *get_args(hint)) if is_dataclass(part)]
        if len(inner) == 1 and each.name not in replaced:
            table = _table_of(inner[0])  # type: ignore[arg-type]
            optional = is_optional(hint)
            own[each.name] = (table | Literal[False] | None, None) if optional else _nested(table)
        else:
            own[each.name] = replaced.get(each.name, (hint, ... if default is MISSING else default))
    table = create_model(f"{settings.__name__}Table", __base__=Table, **own)
    _SETTINGS_OF[table] = settings
    return table


def _nested(table: Any) -> Any:
    return table, Field(default_factory=table)


_METHODS: dict[str, Any] = {
    "disco": _table_of(DisCoSettings, "disco"),
    "random": _table_of(RandomSettings, "random"),
    "decoupled-rl": _table_of(DecoupledSettings, "decoupled-rl", skeletons=_nested(_table_of(DisCoSettings))),
    "decoupled-gp": _table_of(DecoupledSettings, "decoupled-gp", skeletons=_nested(_table_of(GPSettings))),
    "gp": _table_of(GPSettings, "gp"),
    "bo": _table_of(BOSettings, "bo"),
    "python": _table_of(PythonMethod, "python"),
}
_RUN = _table_of(Plan, top=(int | None, None))
_EXECUTOR = _table_of(ExecutorOptions)
_TABLES = ("task", "method", "run", "executor")
_OTHER_NAMES = {("method", "N"): "batch_size"}  # of the paper


@dataclass(frozen=True)
class RunSettings:
    """The description of a run, as settings files, commands and functions of Python make it.

    Attributes:
        task: options of the task; the class has the name of its kind.
        plan: limits, seed and the rest of [run].
        method: settings of the method; None for the preset of the task.
        preset: "default" or "paper".
        changes: of settings of the preset, as nested dictionaries.
        executor: where designs are evaluated.
        initial_designs: to evaluate first.
        given: what was handed over in Python, such as a task or data, which no file can hold.
        is_preset: whether the method is that of the preset, as the folder of a run has it written out.
    """

    task: Any
    plan: Plan
    method: MethodSettings | None = None
    preset: Preset = "default"
    changes: Mapping[str, Any] = field(default_factory=dict)
    executor: ExecutorOptions = ExecutorOptions()
    initial_designs: tuple[Design, ...] = ()
    given: Any = None
    is_preset: bool = False

    @property
    def kind(self) -> Kind:
        """Of the task."""
        return kind_named(self.task.kind)

    def record(self) -> dict[str, Any]:
        """As nested dictionaries, with all defaults written out; `parse` gives equal settings back."""
        first = [design.to_json() for design in self.initial_designs]
        task = {"kind": self.task.kind, **asdict(self.task)}
        if self.given is not None:  # it cannot go on without what was handed over
            task = {"kind": "python", "name": getattr(self.task, "name", self.task.kind)}
        made = {
            "task": task,
            "run": {**self.plan.to_record(), **({"initial_designs": first} if first else {})},
            "executor": asdict(self.executor),
        }
        if self.method is not None:
            made["method"] = self.method_table(self.method)
        elif self.preset != "default" or self.changes:
            made["method"] = {"kind": "disco", "preset": self.preset, **self.changes}
        return made

    def method_table(self, method: MethodSettings) -> dict[str, Any]:
        """The table [method] for the method that is used: it names the preset if there is one."""
        named = self.is_preset or (self.method is None and not self.changes) or self.preset != "default"
        return method_record(method, self.preset if named else None)

    def with_limits(self, budget: int | None, time_limit: float | None) -> RunSettings:
        """The same with another budget or time limit, where given."""
        return replace(self, plan=self.plan.with_limits(budget, time_limit))


def method_record(method: MethodSettings, preset: Preset | None = None) -> dict[str, Any]:
    """A method as settings, with the name of its preset; one of one's own is named only."""
    kind = method_kind(method)
    own_proposers = isinstance(method, DisCoSettings) and bool(method.proposers)
    if kind is None or own_proposers:
        return {"kind": "python", "name": type(method).__name__}
    named = {} if preset is None else {"preset": preset}
    return {"kind": kind, **named, **_written(method)}


def _written(settings: Any) -> dict[str, Any]:
    """Settings as a file has them: `false` for a part that is None."""
    found: dict[str, Any] = {}
    for name, value in asdict(settings).items():
        own = getattr(settings, name)
        if name != "proposers":
            found[name] = _written(own) if is_dataclass(own) else value
    hints = get_type_hints(type(settings))
    parts = {name for name, hint in hints.items() if any(is_dataclass(part) for part in get_args(hint))}
    return {name: False if value is None and name in parts else value for name, value in found.items()}


def read(path: Path, changes: Sequence[str] = ()) -> RunSettings:
    """Read a settings file and apply changes of the form "table.key=value"."""
    data = read_settings(path)
    apply_changes(data, changes)
    return parse(data, str(path))


def apply_changes(data: dict[str, Any], changes: Sequence[str]) -> None:
    """Apply changes of the form "table.key=value" to nested dictionaries."""
    for change in changes:
        _apply(data, change)


def parse(data: Mapping[str, Any], where: str = "settings") -> RunSettings:
    """Check nested dictionaries; `where` is named in errors."""
    unknown = [key for key in data if key not in _TABLES]
    if unknown:
        raise SettingsError(f"{where}: {_unknown(unknown[0], '', _TABLES)}")
    for key in _TABLES:
        if not isinstance(data.get(key, {}), Mapping):
            raise SettingsError(f"{where}: {key} must be a table, [{key}], got {data[key]!r:.60}")
    for key in ("task", "run"):
        if key not in data:
            raise SettingsError(f"{where}: the table [{key}] is missing")
    kind = kind_named(data["task"].get("kind"), f"{where}: task.kind")
    model = _table_of(kind.options, kind.name)
    task = _built(where, "task", _checked(where, "task", model, data["task"]))
    given = {key: value for key, value in data["run"].items() if key != "initial_designs"}
    run = _checked(where, "run", _RUN, given)
    run = run if getattr(run, "top", None) else run.model_copy(update={"top": kind.top})
    plan = _built(where, "run", run)
    executor = _built(where, "executor", _checked(where, "executor", _EXECUTOR, data.get("executor", {})))
    method, preset, changes = _method(where, data.get("method", {}))
    first = data["run"].get("initial_designs", [])
    if not isinstance(first, list) or not all(isinstance(text, str) for text in first):
        raise SettingsError(f"{where}: run.initial_designs must be a list of designs as JSON texts")
    try:
        designs = tuple(Design.from_json(text) for text in first)
    except InvalidDesignError as error:
        raise SettingsError(f"{where}: run.{error}") from None
    named = method is not None and "preset" in data.get("method", {})
    return RunSettings(task, plan, method, preset, changes, executor, designs, is_preset=named)


def _method(where: str, data: Mapping[str, Any]) -> tuple[MethodSettings | None, Preset, dict[str, Any]]:
    """The settings of a method, or None, a preset and changes of it."""
    kind = data.get("kind", "disco")
    preset: Any = data.get("preset", "default")
    if preset not in PRESETS:
        names = ", ".join(PRESETS)
        raise SettingsError(f"{where}: method.preset must be one of {names}, got {preset!r:.60}")
    own = {key: value for key, value in data.items() if key != "preset"}
    if kind == "disco" and not _is_whole(own):
        changes = {key: value for key, value in own.items() if key != "kind" and value != {}}
        changed(named_preset(preset), changes, where)  # refuses what is no setting
        return None, preset, changes
    if kind not in _METHODS:
        choices = [choice for choice in _METHODS if choice != "python"]
        close = get_close_matches(kind, choices, 1) if isinstance(kind, str) else []
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise SettingsError(
            f"{where}: method.kind must be one of {', '.join(choices)}, got {kind!r:.60}{hint}"
        )
    built = _built(where, "method", _checked(where, "method", _METHODS[kind], own))
    return None if isinstance(built, PythonMethod) else built, preset, {}


def _is_whole(table: Mapping[str, Any]) -> bool:
    """Whether a table has all settings of DisCo, as the folder of a run does; else they change a preset."""
    return all(own.name in table for own in fields(DisCoSettings) if own.name != "proposers")


def changed(base: Any, changes: Mapping[str, Any], where: str = "settings") -> Any:
    """Settings of DisCo with other values for some of them, also of the tables inside it."""
    if not changes:
        return base
    data = _merged(_written(base), _named(where, "method", changes))
    return _built(where, "method", _checked(where, "method", _METHODS["disco"], data))


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A table with other values for some keys, also of the tables inside it."""
    inner = {
        key: _merged(base[key], value)
        for key, value in changes.items()
        if isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
    }
    return {**base, **changes, **inner}


def _built(where: str, place: str, table: Table) -> Any:
    """The settings that a table stands for, those inside it first."""
    hints = get_type_hints(_SETTINGS_OF[type(table)])
    known = {each.name for each in fields(_SETTINGS_OF[type(table)])}
    own = {key: getattr(table, key) for key in type(table).model_fields if key in known}
    for key, value in own.items():
        if isinstance(value, Table):
            own[key] = _built(where, f"{place}.{key}", value)
        elif value is False and any(is_dataclass(part) for part in get_args(hints[key])):
            own[key] = None  # a part of the method that is off
    try:
        return _SETTINGS_OF[type(table)](**own)
    except DeclarationError as error:
        raise SettingsError(f"{where}: {place}.{error}") from None


def _checked(where: str, name: str, model: type[Table], data: Mapping[str, Any]) -> Table:
    named = _named(where, name, data)
    try:
        # By way of JSON, where a list may become a tuple but a string never a number.
        return model.model_validate_json(json.dumps(named, default=repr))
    except ValidationError as error:
        raise SettingsError(f"{where}: {_first(error, name, model)}") from None
    except (ValueError, RecursionError, OverflowError) as error:
        raise SettingsError(f"{where}: {name} cannot be read: {type(error).__name__}") from None


def _named(where: str, name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """A table with the names of settings in place of those of the paper."""
    named = {_OTHER_NAMES.get((name, key), key): value for key, value in data.items()}
    if len(named) < len(data):
        raise SettingsError(f"{where}: {name} has a key and its other name; leave one of them out")
    return named


def _first(error: ValidationError, name: str, model: type[Table]) -> str:
    """The first thing that is wrong, in a line."""
    found = error.errors(include_url=False)
    # Where a key may be one thing or another there is an error for each: that which went deepest was meant.
    same = [other for other in found if other["loc"][:1] == found[0]["loc"][:1]]
    return _said(max(same, key=lambda other: len(other["loc"])), name, model)


def _said(found: Any, name: str, model: type[Table]) -> str:
    place = [str(part) for part in found["loc"]]
    key = ".".join((name, *place))
    if found["type"] == "extra_forbidden":
        owner: Any = model
        for part in place[:-1]:
            annotation: Any = owner.model_fields[part].annotation
            tables = [a for a in get_args(annotation) if isinstance(a, type) and issubclass(a, Table)]
            owner = tables[0] if tables else annotation
        return _unknown(place[-1], ".".join((name, *place[:-1])), tuple(owner.model_fields))
    if found["type"] == "missing":
        return f"{key} is missing"
    message = found["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{key} must be {message}, got {found['input']!r:.60}".replace("\n", " ")


def _unknown(key: str, table: str, known: Sequence[str]) -> str:
    others = [other for owner, other in _OTHER_NAMES if owner == table]
    close = get_close_matches(key, (*known, *others), 1, cutoff=0.5)
    start = f"{table}." if table else ""
    hint = f"did you mean {start}{close[0]}?" if close else f"known are {', '.join(known)}"
    return f"{start}{key:.60} is not a setting; {hint}".replace("\n", " ")


def _apply(data: dict[str, Any], change: str) -> None:
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
