"""Settings files: one TOML file describes a run. What is wrong with one is said in a line that names the key."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from discodso.base.errors import DeclarationError, InvalidDesignError, SettingsError
from discodso.baselines.bayesian import BOSettings
from discodso.baselines.decoupled import DecoupledSettings
from discodso.baselines.genetic import GPSettings
from discodso.baselines.methods import method_kind
from discodso.baselines.random_search import RandomSettings
from discodso.disco.disco import DisCoSettings
from discodso.disco.method import MethodSettings
from discodso.disco.network import PolicySettings
from discodso.disco.presets import PRESETS, Preset, preset
from discodso.run.folder import read_settings
from discodso.run.plan import Limits, Plan
from discodso.space.design import Design


class Table(BaseModel):
    """A table of a settings file: no other keys, and no other types, than declared."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    default_top: ClassVar[int] = 10  # of [run], for this task


class BitstringTable(Table):
    """[task] of the paper's bitstring; its own seed, if given, decides the hidden solution."""

    kind: Literal["bitstring"] = "bitstring"
    length: int = Field(default=10, ge=1)
    alpha: float = Field(default=0.9, ge=0, le=1)
    objective: Literal["f1", "f2"] = "f1"
    seed: int | None = Field(default=None, ge=0)


class RegressionTable(Table):
    """[task] of an equation for a column of a table; `DisCoRegressor` explains the keys."""

    kind: Literal["regression"] = "regression"
    table: str
    target: str
    ignore: list[str] = []
    library: list[str] | None = None
    max_length: int = Field(default=32, ge=1)
    const_range: tuple[float, float] = (-math.inf, math.inf)
    need_input: bool = False
    no_constant_subtrees: bool = True
    no_inverses: bool = True
    max_constants: int | None = Field(default=None, ge=0)
    metric: Literal["nmse", "nrmse", "mae", "r2"] = "nmse"
    polish: bool = True
    scaled: bool = True
    selection: Literal["auto", "accuracy", "validation", "complexity"] = "auto"
    must_extrapolate: bool = True
    preset: Preset = "default"
    threads: int = Field(default=1, ge=1)


class RacingTable(Table):
    """[task.racing] of a policy; `Racing` explains the keys. The share is the method's risk factor by default."""

    first: int = Field(default=4, ge=2)
    growth: float = Field(default=2.0, gt=1, allow_inf_nan=False)
    share: float | None = Field(default=None, gt=0, le=1)
    margin: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    places: int = Field(default=0, ge=0)
    settled: int = Field(default=16, ge=2)
    slack: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    alike: int = Field(default=0, ge=0)


class PolicyTable(Table):
    """[task] of a decision tree that acts in an environment; `search_policy` explains the keys."""

    default_top: ClassVar[int] = 100  # all of them go to the choice

    kind: Literal["policy"] = "policy"
    environment: str = Field(min_length=1)
    arguments: dict[str, Any] = {}
    ranges: dict[str, tuple[float, float]] = {}
    probe_ranges: bool = False
    episodes: int = Field(default=100, ge=2)
    max_nodes: int = Field(default=31, ge=3)
    typical_nodes: int | None = Field(default=None, ge=0)
    resolution: float = Field(default=0.01, gt=0, le=0.5)
    preset: Literal["tuned", "paper"] = "tuned"
    racing: bool | RacingTable | None = None
    common_episodes: bool = False
    restart_after: int | None = Field(default=None, ge=1)
    trim: bool | None = None
    workers: int = Field(default=1, ge=1)
    test_seeds: list[int] | None = Field(default=None, min_length=2)


class ProblemTable(Table):
    """[task] of one of the paper's regression problems, by name, with the paper's space and reward."""

    kind: Literal["problem"] = "problem"
    problem: str
    variant: Literal["A", "B"] = "A"
    threads: int = Field(default=1, ge=1)


class TreeTable(Table):
    """[task] of a tree policy for a Gymnasium environment, with the paper's constraints and mean return."""

    kind: Literal["tree"] = "tree"
    environment: str
    episodes: int = Field(default=100, ge=2)
    max_nodes: int = Field(default=31, ge=3)
    balanced: bool = False
    workers: int = Field(default=1, ge=1)


class CustomTable(Table):
    """[task] of one's own: "module:attribute", a Task or a function of `arguments` that returns one."""

    kind: Literal["custom"] = "custom"
    task: str = Field(pattern=r"^[\w.]+:[\w.]+$")
    path: str | None = None
    arguments: dict[str, Any] = {}


class PythonTable(Table):
    """[task] of a run that began in Python; to go on with it the task must be handed over."""

    kind: Literal["python"] = "python"
    name: str = "task"


class RunTable(Table):
    """[run]: what `search` takes beside task, method and executor."""

    budget: int = Field(ge=1)
    seed: int = Field(default=0, ge=0)
    target: float | None = Field(default=None, allow_inf_nan=False)
    patience: int | None = Field(default=None, ge=1)
    time_limit: float | None = Field(default=None, gt=0)
    top: int | None = Field(default=None, ge=1)
    raise_on_failure: bool = False
    overlap: bool = False
    checkpoint_seconds: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    design_seconds: float | None = Field(default=None, gt=0)
    chunk_size: int | None = Field(default=None, ge=1)
    confirm_calls: int | None = Field(default=None, ge=0)
    initial_designs: list[str] = []


class ExecutorTable(Table):
    """[executor]: where designs are evaluated."""

    kind: Literal["none", "threads", "processes", "dask", "ray"] = "none"
    workers: int | None = Field(default=None, ge=1)
    address: str | None = None


class PythonMethodTable(Table):
    """[method] of a run that began in Python with a method of one's own."""

    kind: Literal["python"] = "python"
    name: str = "method"


_SETTINGS_OF: dict[type[Table], type[Any]] = {}  # the dataclass behind a table


def _table_of(name: str, kind: str | None, settings: type[Any], **replaced: Any) -> Any:
    """A table with the fields of a dataclass, whose own checks apply when it is built."""
    hints = get_type_hints(settings)
    own: dict[str, Any] = {} if kind is None else {"kind": (Literal[kind], kind)}
    for field in fields(settings):
        default = field.default if field.default is not MISSING else Field(default_factory=dict)
        own[field.name] = replaced.get(field.name, (hints[field.name], default))
    table = create_model(name, __base__=Table, **own)
    _SETTINGS_OF[table] = settings
    return table


def _nested(table: Any) -> Any:
    return table, Field(default_factory=table)


_NetworkTable = _table_of("NetworkTable", None, PolicySettings)
_SkeletonsByDisCo = _table_of("SkeletonsTable", None, DisCoSettings, policy=_nested(_NetworkTable))
_SkeletonsByGP = _table_of("SkeletonsTable", None, GPSettings)
_METHODS: dict[str, Any] = {
    "disco": _table_of("DisCoTable", "disco", DisCoSettings, policy=_nested(_NetworkTable)),
    "random": _table_of("RandomTable", "random", RandomSettings),
    "decoupled-rl": _table_of(
        "DecoupledTable", "decoupled-rl", DecoupledSettings, skeletons=_nested(_SkeletonsByDisCo)
    ),
    "decoupled-gp": _table_of(
        "DecoupledTable", "decoupled-gp", DecoupledSettings, skeletons=_nested(_SkeletonsByGP)
    ),
    "gp": _table_of("GPTable", "gp", GPSettings),
    "bo": _table_of("BOTable", "bo", BOSettings),
    "python": PythonMethodTable,
}
TASKS: dict[str, type[Table]] = {
    "bitstring": BitstringTable,
    "regression": RegressionTable,
    "problem": ProblemTable,
    "tree": TreeTable,
    "policy": PolicyTable,
    "custom": CustomTable,
    "python": PythonTable,
}
_TABLES = ("task", "method", "run", "executor")
_BRANCHES = ("bool", "RacingTable")  # pydantic's names for what task.racing may be
_OTHER_NAMES = {("method", "epsilon"): "risk_factor", ("method", "N"): "batch_size"}  # of the paper


@dataclass(frozen=True)
class RunSettings:
    """A settings file that has been checked.

    Attributes:
        task: one of the tables of TASKS.
        method: settings of the method; None for the default of the task, or for one made in Python.
        plan: limits, seed and the rest of [run].
        executor: where designs are evaluated.
        initial_designs: to evaluate first.
    """

    task: Any
    method: MethodSettings | None
    plan: Plan
    executor: ExecutorTable
    initial_designs: tuple[Design, ...] = ()

    def record(self) -> dict[str, Any]:
        """As nested dictionaries, with all defaults written out; `parse` gives equal settings back."""
        first = [design.to_json() for design in self.initial_designs]
        made = {
            "task": self.task.model_dump(),
            "run": {**self.plan.to_record(), **({"initial_designs": first} if first else {})},
            "executor": self.executor.model_dump(),
        }
        if self.method is not None:
            own: Any = self.method
            made["method"] = {"kind": method_kind(own), **asdict(own)}
        return made

    def with_limits(self, budget: int | None, time_limit: float | None) -> RunSettings:
        """The same with another budget or time limit, where given."""
        limits = self.plan.limits
        limits = replace(limits, budget=limits.budget if budget is None else budget)
        limits = replace(limits, time_limit=limits.time_limit if time_limit is None else time_limit)
        return replace(self, plan=replace(self.plan, limits=limits))


def read(path: Path, changes: Sequence[str] = ()) -> RunSettings:
    """Read a settings file and apply changes of the form "table.key=value"."""
    data = read_settings(path)
    for change in changes:
        _apply(data, change)
    return parse(data, str(path))


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
    task = _checked(where, "task", _chosen(where, "task", data["task"], TASKS, None), data["task"])
    run: Any = _checked(where, "run", RunTable, data["run"])
    executor: Any = _checked(where, "executor", ExecutorTable, data.get("executor", {}))
    method = _method(where, data["method"]) if "method" in data else None
    try:
        limits = Limits(run.budget, run.target, run.patience, run.time_limit)
        own = run.model_dump(exclude={"budget", "target", "patience", "time_limit", "initial_designs"})
        plan = Plan(limits, **{**own, "top": run.top or task.default_top})
        first = tuple(Design.from_json(text) for text in run.initial_designs)
    except (DeclarationError, InvalidDesignError) as error:
        raise SettingsError(f"{where}: run.{error}") from None
    return RunSettings(task, method, plan, executor, first)


def _method(where: str, data: Mapping[str, Any]) -> MethodSettings | None:
    if data.get("kind", "disco") == "disco" and "preset" in data:
        if data["preset"] not in PRESETS:
            names = ", ".join(PRESETS)
            raise SettingsError(f"{where}: method.preset must be one of {names}, got {data['preset']!r:.60}")
        own = {key: value for key, value in data.items() if key not in ("kind", "preset") and value != {}}
        if data["preset"] == "default" and not own:
            return None
        data = _merged(asdict(preset(data["preset"])), own)
    model = _chosen(where, "method", data, _METHODS, "disco")
    table = _checked(where, "method", model, data)
    if isinstance(table, PythonMethodTable):
        return None
    built: MethodSettings = _built(where, "method", table)
    return built


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A table with other values for some keys, also of the tables inside it."""
    named = {_OTHER_NAMES.get(("method", key), key): value for key, value in changes.items()}
    inner = {
        key: _merged(base[key], value)
        for key, value in named.items()
        if isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
    }
    return {**base, **named, **inner}


def _built(where: str, place: str, table: Table) -> Any:
    """The settings that a table stands for, those inside it first."""
    own = {key: getattr(table, key) for key in type(table).model_fields if key != "kind"}
    for key, value in own.items():
        if isinstance(value, Table):
            own[key] = _built(where, f"{place}.{key}", value)
    try:
        return _SETTINGS_OF[type(table)](**own)
    except DeclarationError as error:
        raise SettingsError(f"{where}: {place}.{error}") from None


def _chosen(
    where: str, name: str, data: Mapping[str, Any], models: Mapping[str, Any], default: str | None
) -> Any:
    kind = data.get("kind", default)
    if not isinstance(kind, str) or kind not in models:
        choices = [choice for choice in models if choice != "python"]
        close = get_close_matches(kind, choices, 1) if isinstance(kind, str) else []
        hint = f"; did you mean {close[0]!r}?" if close else ""
        got = "nothing" if kind is None else f"{kind!r:.60}"
        raise SettingsError(f"{where}: {name}.kind must be one of {', '.join(choices)}, got {got}{hint}")
    return models[kind]


def _checked(where: str, name: str, model: type[Table], data: Mapping[str, Any]) -> Table:
    named = {_OTHER_NAMES.get((name, key), key): value for key, value in data.items()}
    if len(named) < len(data):
        raise SettingsError(f"{where}: {name} has a key and its other name; leave one of them out")
    try:
        # By way of JSON, where a list may become a tuple but a string never a number.
        return model.model_validate_json(json.dumps(named, default=repr))
    except ValidationError as error:
        raise SettingsError(f"{where}: {_first(error, name, model)}") from None
    except (ValueError, RecursionError, OverflowError) as error:
        raise SettingsError(f"{where}: {name} cannot be read: {type(error).__name__}") from None


def _first(error: ValidationError, name: str, model: type[Table]) -> str:
    """The first thing that is wrong, in a line."""
    found = error.errors(include_url=False)
    # Where a key may be one thing or another there is an error for each: that which went deepest was meant.
    same = [other for other in found if other["loc"][:1] == found[0]["loc"][:1]]
    return _said(max(same, key=lambda other: len(other["loc"])), name, model)


def _said(found: Any, name: str, model: type[Table]) -> str:
    place = [str(part) for part in found["loc"] if part not in _BRANCHES]
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
