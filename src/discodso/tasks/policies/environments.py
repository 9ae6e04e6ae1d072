"""What a tree needs to know of a Gymnasium environment: features, ranges of their thresholds, actions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import gymnasium
import numpy as np

from discodso.base.arrays import Floats
from discodso.base.checks import is_number
from discodso.base.errors import DeclarationError, InvalidDesignError
from discodso.tasks.policies.tree import Environment, freeze_arguments

STEP_LIMIT = 10_000  # for environments that declare no limit of their own
_WIDEST = 1e4  # a declared range wider than this says nothing
_PROBE_EPISODES = 100
_PROBE_STEPS = 20_000
_OUTSIDE = 0.01  # of what features showed, at either end, if all ranges are probed
_LARGEST_OBSERVATION = 1000

_NAMES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "CartPole": (
            ("position", "velocity", "angle", "angular velocity"),
            ("push left", "push right"),
        ),
        "MountainCar": (("position", "velocity"), ("left", "coast", "right")),
        "Acrobot": (
            ("cos 1", "sin 1", "cos 2", "sin 2", "velocity 1", "velocity 2"),
            ("torque -1", "torque 0", "torque +1"),
        ),
        "LunarLander": (
            ("x", "y", "x velocity", "y velocity", "angle", "angular velocity", "left leg", "right leg"),
            ("off", "left engine", "main engine", "right engine"),
        ),
    }
)
_V2 = (1.5, 1.5, 5.0, 5.0, math.pi, 5.0)
_KNOWN_RANGES: Mapping[str, tuple[tuple[float, float], ...]] = MappingProxyType(
    {"LunarLander": (*((-half, half) for half in _V2), (0.0, 1.0), (0.0, 1.0))}
)


@dataclass(frozen=True)
class Interface:
    """Features and actions of an environment.

    Attributes:
        environment: which one.
        feature_names: one for each number of a flattened observation.
        ranges: of the threshold of each feature; None for a feature that never changes, which trees leave out.
        sources: where each range comes from: declared, "LunarLander-v2", probed, given.
        actions: what `step` takes.
        action_names: for people.
        max_steps: where an episode is cut off.
    """

    environment: Environment
    feature_names: tuple[str, ...]
    ranges: tuple[tuple[float, float] | None, ...]
    sources: tuple[str, ...]
    actions: tuple[int, ...]
    action_names: tuple[tuple[int, str], ...]
    max_steps: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        features = [
            {"name": name, "range": None if limits is None else list(limits), "source": source}
            for name, limits, source in zip(self.feature_names, self.ranges, self.sources, strict=True)
        ]
        return {
            "environment": self.environment.to_dict(),
            "features": features,
            "actions": dict(self.action_names),
            "max_steps": self.max_steps,
        }


def as_environment(given: Any, arguments: Mapping[str, Any] | None = None) -> Environment:
    """An Environment from an id, or from one."""
    if isinstance(given, Environment):
        return given
    if not isinstance(given, str) or not given:
        raise DeclarationError(f"environment must be the id of a Gymnasium environment, got {given!r}")
    try:
        return Environment(given, freeze_arguments(given, arguments or {}))
    except InvalidDesignError as error:
        raise DeclarationError(str(error)) from None


def make(environment: Environment, **more: Any) -> gymnasium.Env[Any, Any]:
    """The environment, ready to use; what Gymnasium does not like is one line."""
    try:
        return gymnasium.make(environment.id, disable_env_checker=True, **dict(environment.arguments), **more)
    except Exception as error:  # third-party code runs here
        text = " ".join(str(error).split())
        raise DeclarationError(
            f"Gymnasium cannot make {environment}: {text or type(error).__name__}"
        ) from None


def check_fits(env: gymnasium.Env[Any, Any], environment: Environment) -> None:
    """Refuse an environment that a univariate tree cannot act in, with the reason."""
    seen, acts = env.observation_space, env.action_space
    if not isinstance(acts, gymnasium.spaces.Discrete):
        raise DeclarationError(
            f"{environment} does not fit: its actions are {_kind(acts)}, but a leaf of the tree is one of "
            "finitely many actions (Discrete); wrap the environment with a few fixed actions"
        )
    if not isinstance(seen, gymnasium.spaces.Box):
        raise DeclarationError(
            f"{environment} does not fit: its observations are {_kind(seen)}, but a tree compares numbers (Box); "
            "wrap it with gymnasium.wrappers.FlattenObservation"
        )
    size = int(np.prod(seen.shape))
    if (len(seen.shape) >= 2 and seen.dtype == np.uint8) or size > _LARGEST_OBSERVATION:
        raise DeclarationError(
            f"{environment} does not fit: its observation is an image or the like (shape {seen.shape}, "
            f"{seen.dtype}), and a threshold on one pixel says nothing; use a version with a short list of numbers"
        )
    if size == 0:
        raise DeclarationError(f"{environment} does not fit: its observation is empty")
    if acts.n < 2:
        raise DeclarationError(
            f"{environment} does not fit: it has one action only, there is nothing to choose"
        )
    if acts.start < 0:
        raise DeclarationError(
            f"{environment} does not fit: its actions begin with {acts.start}, a tree's with 0"
        )


def _kind(space: Any) -> str:
    shape = f" of shape {space.shape}" if getattr(space, "shape", None) else ""
    return f"{type(space).__name__}{shape}"


def describe(
    environment: Environment,
    ranges: Mapping[str, Sequence[float]] | None = None,
    seed: int = 0,
    probe: bool = False,
) -> Interface:
    """Features, ranges and actions of an environment.

    Declared bounds are used where they are finite and sane, the bounds of LunarLander-v2 for LunarLander;
    other features get the range that they showed in episodes of random actions.

    Args:
        environment: which one.
        ranges: (low, high) by the name or the number of a feature; goes before everything else.
        seed: of the random actions.
        probe: look at such episodes for all features that are not given: where 98 % of what they showed lies.
            Declared bounds may be far wider than what ever happens.
    """
    env = make(environment)
    try:
        check_fits(env, environment)
        spec, seen = env.spec, env.observation_space
        assert isinstance(seen, gymnasium.spaces.Box)
        assert isinstance(env.action_space, gymnasium.spaces.Discrete)
        family = environment.id.rsplit(":", 1)[-1].rsplit("/", 1)[-1].rsplit("-v", 1)[0]
        size, count = int(np.prod(seen.shape)), int(env.action_space.n)
        start = int(env.action_space.start)
        features, labels = _NAMES.get(family, ((), ()))
        names = features if len(features) == size else tuple(f"x{i}" for i in range(size))
        words = labels if len(labels) == count else tuple(f"action {start + i}" for i in range(count))
        low, high = (np.asarray(end, np.float64).ravel() for end in (seen.low, seen.high))
        sources, found = _choose_ranges(family, names, low, high, ranges or {}, probe)
        if "probed" in sources:
            outside = _OUTSIDE if probe else 0.0
            found = _fill_probed(env, environment, seed, sources, found, outside)
        if all(limits is None for limits in found):
            raise DeclarationError(
                f"{environment} does not fit: no number of its observation ever changed in "
                f"{_PROBE_EPISODES} random episodes; give ranges if that is wrong"
            )
        limit = getattr(spec, "max_episode_steps", None) or STEP_LIMIT
    finally:
        env.close()
    actions = tuple(range(start, start + count))
    return Interface(
        environment, names, found, sources, actions, tuple(zip(actions, words, strict=True)), limit
    )


Ranges = tuple[tuple[float, float] | None, ...]


def _choose_ranges(
    family: str,
    names: tuple[str, ...],
    low: Floats,
    high: Floats,
    given: Mapping[str, Sequence[float]],
    probe: bool,
) -> tuple[tuple[str, ...], Ranges]:
    known = _KNOWN_RANGES.get(family, ())
    wanted = {_feature_index(key, names): _limits(key, value) for key, value in given.items()}
    sources: list[str] = []
    found: list[tuple[float, float] | None] = []
    for index in range(len(names)):
        width = float(high[index]) - float(low[index])  # NumPy's numbers would warn of an overflow
        if index in wanted:
            sources.append("given")
            found.append(wanted[index])
        elif probe:
            sources.append("probed")
            found.append(None)
        elif len(known) == len(names):
            sources.append(f"{family}-v2")
            found.append(known[index])
        elif 0 < width <= _WIDEST:
            sources.append("declared")
            found.append((float(low[index]), float(high[index])))
        else:
            sources.append("probed")
            found.append(None)
    return tuple(sources), tuple(found)


def _feature_index(key: str, names: tuple[str, ...]) -> int:
    text = str(key)
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and int(text) < len(names):
        return int(text)
    raise DeclarationError(
        f"ranges: there is no feature {text!r}; the features are {', '.join(names)} (or 0 to {len(names) - 1})"
    )


def _limits(key: str, value: Any) -> tuple[float, float]:
    pair = list(value) if isinstance(value, (list, tuple, np.ndarray)) else []
    if len(pair) != 2 or not all(is_number(end) for end in pair) or not pair[0] < pair[1]:
        raise DeclarationError(f"ranges: {key} needs a lower and a higher number, got {value!r}")
    return float(pair[0]), float(pair[1])


def _fill_probed(
    env: gymnasium.Env[Any, Any],
    environment: Environment,
    seed: int,
    sources: tuple[str, ...],
    found: Ranges,
    outside: float,
) -> Ranges:
    """Ranges that the features showed while random actions were held for random times, rounded outwards; a share
    may lie outside at either end."""
    rng = np.random.default_rng(np.random.SeedSequence((seed, 1)))
    space = env.action_space
    assert isinstance(space, gymnasium.spaces.Discrete)
    rows: list[Floats] = []
    try:
        for _ in range(_PROBE_EPISODES):
            observation, _ = env.reset(seed=int(rng.integers(2**31)))
            over, left, action = False, 0, 0
            while not over and len(rows) < _PROBE_STEPS:
                rows.append(np.asarray(observation, np.float64).reshape(len(sources)))
                if left == 0:
                    action, left = int(space.start + rng.integers(space.n)), int(rng.integers(1, 10))
                left -= 1
                observation, _, terminated, truncated, _ = env.step(action)
                over = terminated or truncated
    except Exception as error:
        raise DeclarationError(
            f"{environment} failed while its ranges were probed: {type(error).__name__}: {error}"
        ) from None
    seen = np.array(rows)
    result: list[tuple[float, float] | None] = []
    for index, (source, limits) in enumerate(zip(sources, found, strict=True)):
        column = seen[:, index][np.isfinite(seen[:, index])]
        if source != "probed":
            result.append(limits)
        elif not len(column) or column.min() == column.max():
            result.append(None)
        else:
            low, high = np.quantile(column, (outside, 1 - outside))
            low, high = (low, high) if low < high else (column.min(), column.max())
            result.append(_rounded_outwards(float(low), float(high)))
    return tuple(result)


def _rounded_outwards(low: float, high: float) -> tuple[float, float]:
    """Two significant digits of the width."""
    if not 1e-300 < high - low < 1e300:
        return low, high
    unit = 10.0 ** (math.floor(math.log10(high - low)) - 1)
    below, above = (float(f"{end * unit:.12g}") for end in (math.floor(low / unit), math.ceil(high / unit)))
    return min(below, low), max(above, high)
