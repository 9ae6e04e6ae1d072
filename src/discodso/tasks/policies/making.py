"""Which environment is meant, and making it: an id with arguments and wrappers, or a function of the caller's.

Files hold ids, arguments and the names of wrappers. What was handed over in Python and has no such description, a
function that makes an environment above all, is written by its name only and must be handed over again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, WrapperSpec

from discodso.base.errors import DeclarationError, DiscodsoError, InvalidDesignError
from discodso.space.design import one_line
from discodso.tasks.policies.terms import shown

STEP_LIMIT = 10_000  # for environments that declare no limit of their own
_PYTHON = "python:"  # begins the name of what was handed over in Python
_WRAPPERS = "gymnasium.wrappers"  # where those without a module are
_WRITERS = ("RecordVideo",)  # of them those that write files
_NAMES_SOMETHING = re.compile(r"[./\\:]")  # a module, a file, an address


@dataclass(frozen=True)
class Environment:
    """Which environment.

    Attributes:
        id: of Gymnasium; "python:NAME" for what was handed over in Python.
        arguments: for `gymnasium.make`, as sorted pairs; what files can hold, lists in place of tuples.
        wrappers: put around it in this order, as words: "FlattenObservation", "module:Class", or either with
            arguments as JSON, 'FrameStackObservation {"stack_size": 2}'.
        factory: makes it, where it has no id.
        foreign: whether a file says so, which anyone may have written: no module is imported then, and nothing is
            opened, because of what it says.
    """

    id: str
    arguments: tuple[tuple[str, Any], ...] = field(default=(), hash=False)
    wrappers: tuple[str, ...] = ()
    factory: Callable[[], Any] | None = None
    foreign: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        given = ", ".join(f"{key}={value!r}" for key, value in self.arguments)
        name = self.id.removeprefix(_PYTHON) + (f"({given})" if given else "")
        parts = (name, *(words.partition(" ")[0].rpartition(":")[2] for words in self.wrappers))
        return one_line(" in ".join(parts))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        wrappers = {"wrappers": list(self.wrappers)} if self.wrappers else {}
        return {"id": self.id, "arguments": dict(self.arguments), **wrappers}

    @classmethod
    def from_dict(cls, data: Any) -> Environment:
        """Inverse of `to_dict`."""
        good = isinstance(data, dict) and set(data) - {"wrappers"} == {"id", "arguments"}
        wrappers = data.get("wrappers", []) if good else []
        good = good and isinstance(data["id"], str) and isinstance(data["arguments"], dict)
        if not good or not isinstance(wrappers, list) or not all(isinstance(own, str) for own in wrappers):
            raise InvalidDesignError(
                f"environment must be an object with id and arguments, got {shown(data)}"
            )
        frozen = frozen_arguments(data["id"], data["arguments"], InvalidDesignError)
        return cls(data["id"], frozen, tuple(wrappers), foreign=True)


def is_named(environment: Environment) -> bool:
    """Whether it has an id of Gymnasium."""
    return not environment.id.startswith(_PYTHON)


def family_of(name: str) -> str:
    """An id without its module, its namespace and its version."""
    return name.rsplit(":", 1)[-1].rsplit("/", 1)[-1].rsplit("-v", 1)[0]


def frozen_arguments(
    environment: str, arguments: Mapping[str, Any], refusal: type[DiscodsoError]
) -> tuple[tuple[str, Any], ...]:
    """Arguments as sorted pairs, as they are after they were written to a file: tuples are lists."""
    if not isinstance(arguments, Mapping):
        raise refusal(
            f"arguments of {environment} must be a table of names and values, got {shown(arguments)}"
        )
    try:
        return tuple(sorted((key, _as_written(key, value)) for key, value in _named(arguments)))
    except TypeError as error:
        raise refusal(
            f"arguments of {environment} must have names, and be numbers, strings, booleans, lists or tables of "
            f"them, got {error}; in Python hand over a function that makes the environment"
        ) from None


def _named(table: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    for key, value in table.items():
        if not isinstance(key, str):
            raise TypeError(f"{shown(key)}: {shown(value)}")
    return list(table.items())


def _as_written(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _as_written(f"{key}.{name}", own) for name, own in _named(value)}
    if isinstance(value, (list, tuple)):
        return [_as_written(key, own) for own in value]
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"{shown(key)}: {shown(value)}")
    return value


# ------------------------------------------------------------------------------------- which is meant


def as_environment(
    given: Any, arguments: Mapping[str, Any] | None = None, wrappers: Sequence[str] = ()
) -> Environment:
    """An Environment from an id, a specification or an instance of Gymnasium, or a function that makes one."""
    if isinstance(given, Environment):
        return given
    if isinstance(given, gymnasium.Env):
        if given.spec is None:
            raise DeclarationError(
                f"{type(given).__name__} does not know how it was made; hand over its class or a function that "
                "makes it"
            )
        given = given.spec
    if isinstance(given, str) and given:
        if isinstance(wrappers, str) or not all(isinstance(words, str) for words in wrappers):
            raise DeclarationError(
                f"wrappers must be a list of names such as FlattenObservation, got {wrappers!r}"
            )
        return Environment(given, frozen_arguments(given, arguments or {}, DeclarationError), tuple(wrappers))
    if not isinstance(given, EnvSpec) and not callable(given):
        raise DeclarationError(
            "environment must be the id of a Gymnasium environment, a specification or an instance of one, or a "
            f"function that makes one, got {given!r:.100}"
        )
    if arguments or wrappers:
        raise DeclarationError("arguments and wrappers are for ids; make what you hand over as it should be")
    if isinstance(given, EnvSpec):
        return _described(given) or Environment(_PYTHON + given.id, factory=partial(gymnasium.make, given))
    named = given.func if isinstance(given, partial) else given
    return Environment(_PYTHON + getattr(named, "__name__", type(named).__name__), factory=given)


def _described(spec: EnvSpec) -> Environment | None:
    """A specification as files can hold it; None if they cannot."""
    try:
        known = gymnasium.spec(spec.id)
        own = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
        more = {
            key: value for key, value in own.items() if key not in known.kwargs or known.kwargs[key] != value
        }
        same = spec.entry_point == known.entry_point and set(known.kwargs) <= set(own)
        if spec.max_episode_steps != known.max_episode_steps:
            more["max_episode_steps"] = -1 if spec.max_episode_steps is None else spec.max_episode_steps
        arguments = frozen_arguments(spec.id, more, DeclarationError)
        wrappers = tuple(map(_words, spec.additional_wrappers[len(known.additional_wrappers) :]))
    except (gymnasium.error.Error, DeclarationError, TypeError, ValueError):
        return None
    return Environment(spec.id, arguments, wrappers) if same else None


def _words(wrapper: WrapperSpec) -> str:
    """A wrapper as words; TypeError or ValueError if there are none."""
    if wrapper.kwargs is None:
        raise ValueError(f"{wrapper.name} does not know its arguments")
    return f"{wrapper.entry_point} {json.dumps(wrapper.kwargs)}" if wrapper.kwargs else wrapper.entry_point


# ------------------------------------------------------------------------------------- making


def make(environment: Environment, **more: Any) -> gymnasium.Env[Any, Any]:
    """The environment, ready to use; what Gymnasium does not like is one line."""
    if environment.factory is None and environment.id.startswith(_PYTHON):
        raise DeclarationError(
            f"the environment {environment} was handed over in Python; hand over what makes it again (to `resume` "
            "as task=..., to `evaluate` as environment=...)"
        )
    if environment.foreign:
        _require_harmless(environment)
    try:
        if environment.factory is None:
            given = dict(environment.arguments)
            made = gymnasium.make(environment.id, disable_env_checker=True, **{**given, **more})
        else:
            made = environment.factory()
        if not isinstance(made, gymnasium.Env):
            raise TypeError(f"it is a {type(made).__name__} and no gymnasium.Env")
        for words in environment.wrappers:
            made = _wrapped(made, words)
    except DeclarationError:
        raise
    except Exception as error:  # third-party code runs here
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DeclarationError(f"Gymnasium cannot make {environment!s:.200}: {reason:.400}") from None
    return made


def _require_harmless(environment: Environment) -> None:
    """Refuse what would import a module, or open a file, because a file says so."""
    paths = [environment.id, *(words.strip().partition(" ")[0] for words in environment.wrappers)]
    named = [path.rpartition(":")[0] for path in paths]
    unknown = [module for module in named if module and module not in sys.modules]
    texts = [
        text for _, value in environment.arguments for text in _texts(value) if _NAMES_SOMETHING.search(text)
    ]
    writers = [path for path in paths if path.rpartition(":")[2] in _WRITERS]
    if unknown or texts or writers:
        what = f"the module {shown(unknown[0])}" if unknown else shown((texts + writers)[0])
        raise DeclarationError(
            f"the file of the policy says that its environment needs {what}; nothing is imported or opened "
            "because a file says so: name the environment yourself (--env, environment=...), or import the module "
            "first"
        )


def _texts(value: Any) -> list[str]:
    """All texts in an argument."""
    if isinstance(value, str):
        return [value]
    parts = (
        [*value, *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else []
    )
    return [text for part in parts for text in _texts(part)]


def _wrapped(env: gymnasium.Env[Any, Any], words: str) -> gymnasium.Env[Any, Any]:
    """An environment in a wrapper."""
    path, _, text = words.strip().partition(" ")
    module, _, name = path.rpartition(":")
    kind = getattr(import_module(module or _WRAPPERS), name, None)
    if not isinstance(kind, type) or not issubclass(kind, gymnasium.Wrapper):
        raise DeclarationError(
            f"wrappers: {path} is no wrapper; name one of gymnasium.wrappers, or a class as module:Class"
        )
    try:
        arguments = json.loads(text) if text.strip() else {}
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise DeclarationError(
            f"wrappers: the arguments of {path} must be a JSON object, such as "
            f"""'{name} {{"stack_size": 2}}', got {text!r:.60}"""
        )
    made: gymnasium.Env[Any, Any] = kind(env, **arguments)
    return made


def plain_spec(environment: Environment, entry_point: str) -> EnvSpec | None:
    """How Gymnasium has an environment registered; None with arguments, or if someone registered it anew."""
    if environment.arguments or environment.wrappers or environment.factory is not None:
        return None
    spec = gymnasium.spec(environment.id)
    return None if spec.entry_point != entry_point or spec.kwargs or spec.additional_wrappers else spec


def step_limit(env: gymnasium.Env[Any, Any]) -> int:
    """Where an episode is cut off."""
    declared = getattr(env.spec, "max_episode_steps", None) or 0  # -1 for none at all
    return declared if declared > 0 else STEP_LIMIT
