"""What a tree needs to know of a Gymnasium environment: features, ranges of their thresholds, actions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from discodso.base.arrays import Floats
from discodso.base.checks import is_number
from discodso.base.errors import DeclarationError
from discodso.space.design import one_line
from discodso.tasks.policies.leaves import ActionNumbers
from discodso.tasks.policies.making import Environment, family_of, make, step_limit
from discodso.tasks.policies.observations import LARGEST, Feature, features, flat
from discodso.tasks.policies.terms import Limits
from discodso.tasks.policies.timed import Left, always
from discodso.tasks.policies.tree import Names

_WIDEST = 1e4  # a declared range wider than this says nothing
_PROBE_EPISODES = 100
PROBE_STEPS = 20_000
_MOST_NUMBERS = 100
_ROOM = 10  # times the width of what a feature showed, that thresholds may lie beyond it
_OUTSIDE = 0.01  # of what features showed, at either end, if all ranges are probed

_LANDER = ("x", "y", "x velocity", "y velocity", "angle", "angular velocity", "left leg", "right leg")
_NAMES = MappingProxyType(  # of features, and of choices or of the numbers of an action, by family
    {
        "CartPole": (("position", "velocity", "angle", "angular velocity"), ("push left", "push right")),
        "MountainCar": (("position", "velocity"), ("left", "coast", "right")),
        "Acrobot": (
            ("cos 1", "sin 1", "cos 2", "sin 2", "velocity 1", "velocity 2"),
            ("torque -1", "torque 0", "torque +1"),
        ),
        "LunarLander": (_LANDER, ("off", "left engine", "main engine", "right engine")),
        "LunarLanderContinuous": (_LANDER, ("main engine", "side engine")),
        "MountainCarContinuous": (("position", "velocity"), ("force",)),
        "Pendulum": (("cos", "sin", "velocity"), ("torque",)),
    }
)
_LANDER_V2 = (*((-half, half) for half in (1.5, 1.5, 5.0, 5.0, math.pi, 5.0)), (0.0, 1.0), (0.0, 1.0))


class Probed(NamedTuple):
    """Episodes of random actions, and their steps."""

    episodes: int = 0
    steps: int = 0


NOT_PROBED = Probed()


@dataclass(frozen=True)
class Interface:
    """Features and actions of an environment."""

    environment: Environment
    feature_names: tuple[str, ...]  # one for each number of a flattened observation
    ranges: tuple[Limits | None, ...]  # of thresholds; None for a feature that never changes: left out
    sources: tuple[str, ...]  # where each range comes from: declared, "LunarLander-v2", probed, given
    action_names: Names  # choices, as `step` takes them, and what they are called
    max_steps: int  # where an episode is cut off
    numbers: ActionNumbers | None = (
        None  # what `step` takes where actions are numbers; there are no choices then
    )
    whole: tuple[bool, ...] = ()  # which features are integers
    hints: tuple[
        Limits | None, ...
    ] = ()  # where a search that follows its trees begins; None for fixed ranges
    probed: Probed = NOT_PROBED  # what it took to find out

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        features = [
            {"name": name, "range": None if limits is None else list(limits), "source": source}
            for name, limits, source in zip(self.feature_names, self.ranges, self.sources, strict=True)
        ]
        return {
            "environment": self.environment.to_dict(),
            "features": features,
            "actions": self.numbers.to_dict() if self.numbers else dict(self.action_names),
            "max_steps": self.max_steps,
        }


@dataclass(frozen=True)
class EnvironmentShape:
    """What an environment shows and takes: features; choices from `start` on, or numbers."""

    features: tuple[Feature, ...]
    start: int
    choices: int
    numbers: ActionNumbers | None


def check_fits(env: gymnasium.Env[Any, Any], environment: Environment) -> EnvironmentShape:
    """What it shows and what it takes; an environment that a tree cannot act in is refused, with the reason."""
    seen, acts = env.observation_space, env.action_space

    def misfit(reason: str) -> DeclarationError:
        return DeclarationError(f"{environment} does not fit: {reason}")

    try:
        found = tuple(features(seen))
        numbers = None if isinstance(acts, gymnasium.spaces.Discrete) else _numbers(acts)
    except ValueError as error:
        raise misfit(str(error)) from None
    if not found:
        raise misfit("its observation is empty")
    if len(found) > LARGEST:
        raise misfit(f"its observation has {len(found)} numbers, more than {LARGEST}")
    if numbers is not None:
        return EnvironmentShape(found, 0, 0, numbers)
    start, choices = int(acts.start), int(acts.n)  # type: ignore[attr-defined]
    if choices < 2:
        raise misfit("it has one action only, there is nothing to choose")
    if start < 0:
        raise misfit(
            f"its actions begin with {start}; wrap it with TransformAction so that they begin with 0"
        )
    return EnvironmentShape(found, start, choices, None)


def _numbers(acts: gymnasium.spaces.Space[Any]) -> ActionNumbers:
    """Actions that are numbers; ValueError says why they are not."""
    match acts:
        case gymnasium.spaces.Box():
            low, high = acts.low, acts.high
        case gymnasium.spaces.MultiDiscrete():
            low, high = acts.start, acts.start + acts.nvec - 1
        case gymnasium.spaces.MultiBinary():
            low, high = np.zeros(acts.shape), np.ones(acts.shape)
        case _:
            raise ValueError(
                f"its actions are {_kind(acts)}, but a leaf is a choice (Discrete) or some numbers (Box, "
                "MultiDiscrete, MultiBinary); wrap it with gymnasium.wrappers.TransformAction"
            )
    size = int(np.prod(acts.shape))
    if not 1 <= size <= _MOST_NUMBERS:
        raise ValueError(f"its actions are {size} numbers, a leaf has from 1 to {_MOST_NUMBERS}")
    below, above = (tuple(np.asarray(end, np.float64).ravel().tolist()) for end in (low, high))
    if not np.isfinite(below + above).all():
        raise ValueError(
            "its actions have no finite bounds; wrap it with gymnasium.wrappers.TransformAction and a Box that has"
        )
    names = tuple(f"action {place}" for place in range(size)) if size > 1 else ("action",)
    return ActionNumbers(names, below, above, tuple(map(int, acts.shape or ())), np.dtype(acts.dtype).name)


def _kind(space: Any) -> str:
    shape = f" of shape {space.shape}" if getattr(space, "shape", None) else ""
    return f"{type(space).__name__}{shape}"


def describe(
    environment: Environment,
    ranges: Mapping[str, Sequence[float]] | None = None,
    seed: int = 0,
    probe: bool = False,
    moving: bool = False,
    feature_names: Sequence[str] = (),
    action_names: Sequence[str] = (),
    steps: int = PROBE_STEPS,
    left: Left = always,
) -> Interface:
    """Features, ranges and actions of an environment.

    Names that are given go before those that the environment has (`feature_names` and `action_names`, attributes
    or in its metadata), these before what is known of its family and the keys of its observations.

    Ranges that are given, by the name or the number of a feature, go before everything else. Declared bounds are
    used where they are finite and sane, the bounds of LunarLander-v2 for LunarLander; other features get the range
    that they showed in episodes of random actions, which the seed decides. With `probe` all that are not given get
    where 98 % of what they showed lies: declared bounds may be far wider than what ever happens. With `moving`
    ranges are as wide as declared, but no wider than some times that, and that is where the search begins. There
    are so many `steps` at most, and fewer where no seconds are `left`.
    """
    with make(environment) as env:
        fit = check_fits(env, environment)
        limit, size = step_limit(env), len(fit.features)
        _check_first(env, environment, size)
        family = family_of(environment.id)
        family += "Continuous" * (family == "LunarLander" and fit.numbers is not None)
        known = _NAMES.get(family, ((), ()))
        plain = tuple(own.name or f"x{n}" for n, own in enumerate(fit.features))
        names = _names("feature_names", size, feature_names, env, known[0], plain)
        choices, numbers = range(fit.start, fit.start + fit.choices), fit.numbers
        plain = numbers.names if numbers else tuple(f"action {choice}" for choice in choices)
        words = _names("action_names", len(plain), action_names, env, known[1], plain)
        if numbers is not None:
            numbers = replace(numbers, names=words)
        given = dict(_given_range(key, value, names) for key, value in (ranges or {}).items())
        sources, found = [""] * size, dict[int, Limits | None](given)
        for n, own in enumerate(fit.features):
            if n in given:
                sources[n] = "given"
            elif moving and not own.whole:
                sources[n] = "visited"
            elif not probe and family.startswith("LunarLander") and size == len(_LANDER_V2):
                sources[n], found[n] = "LunarLander-v2", _LANDER_V2[n]
            elif not probe and 0 < own.high - own.low <= _WIDEST:
                sources[n], found[n] = "declared", (own.low, own.high)
            else:
                sources[n] = "probed"
        hints, probed = list[Limits | None]([None] * size), NOT_PROBED
        if "probed" in sources or "visited" in sources:
            outside = _OUTSIDE if probe or moving else 0.0
            shown, probed = _probed_ranges(env, environment, seed, outside, steps, left)
            for n, (source, met) in enumerate(zip(sources, shown, strict=True)):
                if source == "visited":
                    found[n], hints[n] = _around(met, fit.features[n])
            found = {**dict(enumerate(shown)), **found}
    if all(limits is None for limits in found.values()):
        raise DeclarationError(
            f"{environment} does not fit: no number of its observation ever changed in "
            f"{_PROBE_EPISODES} random episodes; give ranges if that is wrong"
        )
    limits = tuple(found[n] for n in range(size))
    actions = tuple(zip(choices, words, strict=True)) if numbers is None else ()
    whole = tuple(own.whole for own in fit.features)
    told = tuple(sources), actions, limit, numbers, whole, tuple(hints), probed
    return Interface(environment, names, limits, *told)


def _names(
    key: str,
    size: int,
    given: Sequence[str],
    env: gymnasium.Env[Any, Any],
    known: tuple[str, ...],
    plain: tuple[str, ...],
) -> tuple[str, ...]:
    """Names of features or actions, each different: those given, the environment's, those known, or plain ones."""
    if given:
        chosen = tuple(given)
        if isinstance(given, str) or not all(isinstance(name, str) and one_line(name) for name in chosen):
            raise DeclarationError(f"{key} must be a list of names, got {given!r:.100}")
        if len(chosen) != size:
            raise DeclarationError(f"{key} must have {size} names here, got {len(chosen)}")
        if len(set(chosen)) < size:
            raise DeclarationError(f"{key} has a name twice: {', '.join(chosen)}")
        return chosen
    for own in (_attribute(env, key), (env.metadata or {}).get(key), known):
        # An environment may be wrapped in what changes its observations: its names are then of other things.
        listed = isinstance(own, (list, tuple)) and len(own) == size
        if listed and all(isinstance(name, str) and one_line(name) for name in own or ()):
            return _distinct(own or ())
    return _distinct(plain)


def _attribute(env: gymnasium.Env[Any, Any], key: str) -> Any:
    try:
        return env.get_wrapper_attr(key)
    except AttributeError:
        return None


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, numbered where two are equal."""
    found: list[str] = []
    for name in names:
        others = (f"{name} ({number})" for number in count(2))
        found.append(next(other for other in chain((name,), others) if other not in found))
    return tuple(found)


def _check_first(env: gymnasium.Env[Any, Any], environment: Environment, size: int) -> None:
    """Refuse an environment that cannot begin, or whose observations are not as it declares."""
    try:
        seen = len(flat(env.reset(seed=0)[0]))
    except Exception as error:
        raise DeclarationError(f"{environment} failed at its first reset: {_reason(error)}") from None
    if seen != size:
        raise DeclarationError(
            f"{environment} does not fit: its observation_space has {size} numbers, what reset gave has {seen}"
        )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _around(met: Limits | None, feature: Feature) -> tuple[Limits | None, Limits | None]:
    """Where thresholds may lie, and where to begin, by what a feature showed; None if it never changed."""
    declared = feature.low, feature.high
    if met is None:
        known = declared if 0 < feature.high - feature.low <= _WIDEST else None
        return known, known
    room = _ROOM * (met[1] - met[0])
    return (max(declared[0], met[0] - room), min(declared[1], met[1] + room)), met


def _given_range(key: str, value: Any, names: tuple[str, ...]) -> tuple[int, Limits]:
    """The number of a feature that is given by its name or number, and its range."""
    text = str(key)
    by_number = int(text) if text.isascii() and text.isdigit() else len(names)
    feature = names.index(text) if text in names else by_number
    if feature >= len(names):
        known = f"{', '.join(names)} (or 0 to {len(names) - 1})"
        raise DeclarationError(f"ranges: there is no feature {text!r}; the features are {known}")
    pair = list(value) if isinstance(value, (list, tuple, np.ndarray)) else []
    if len(pair) != 2 or not all(is_number(end) for end in pair) or not pair[0] < pair[1]:
        raise DeclarationError(f"ranges: {key} needs a lower and a higher number, got {value!r}")
    return feature, (float(pair[0]), float(pair[1]))


def _probed_ranges(
    env: gymnasium.Env[Any, Any],
    environment: Environment,
    seed: int,
    outside: float,
    steps: int,
    left: Left,
) -> tuple[list[Limits | None], Probed]:
    """Ranges that the features showed while random actions were held for random times, rounded outwards; None for
    those that never changed, and what it took. A share may lie outside at either end."""
    fit = check_fits(env, environment)
    rng = np.random.default_rng(np.random.SeedSequence((seed, 1)))
    rows: list[Floats] = []
    episodes = 0

    def enough() -> bool:
        return len(rows) >= steps or left() <= 0

    try:
        while episodes < _PROBE_EPISODES and not (episodes and enough()):
            episodes += 1
            observation, _ = env.reset(seed=int(rng.integers(2**31)))
            over, held, action = False, 0, None
            while not over and not (len(rows) > 1 and enough()):
                rows.append(np.array(flat(observation)).reshape(len(fit.features)))
                if held == 0:
                    action, held = _drawn(fit, rng), int(rng.integers(1, 10))
                held -= 1
                observation, _, terminated, truncated, _ = env.step(action)
                over = terminated or truncated
    except Exception as error:
        raise DeclarationError(
            f"{environment} failed while its ranges were probed: {_reason(error)}"
        ) from None
    shown = [_shown_range(column[np.isfinite(column)], outside) for column in np.array(rows).T]
    return shown, Probed(episodes, len(rows))


def _drawn(fit: EnvironmentShape, rng: np.random.Generator) -> Any:
    """Any action."""
    numbers = fit.numbers
    if numbers is None:
        return int(fit.start + rng.integers(fit.choices))
    if numbers.whole:
        return numbers.array(rng.integers(np.array(numbers.low, int), np.array(numbers.high, int) + 1))
    return numbers.array(rng.uniform(numbers.low, numbers.high))


def _shown_range(seen: Floats, outside: float) -> Limits | None:
    """Where the numbers of a feature lie, with two significant digits of the width; None if they are all equal."""
    if not len(seen) or seen.min() == seen.max():
        return None
    low, high = map(float, np.quantile(seen, (outside, 1 - outside)))
    if low == high:
        low, high = float(seen.min()), float(seen.max())
    if not 1e-300 < high - low < 1e300:
        return low, high
    unit = 10.0 ** (math.floor(math.log10(high - low)) - 1)
    below, above = (float(f"{end * unit:.12g}") for end in (math.floor(low / unit), math.ceil(high / unit)))
    return min(below, low), max(above, high)
