"""The highest return that an environment can give, where that is certain."""

from __future__ import annotations

import math
from typing import Any

import gymnasium

from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.making import make

# Of Gymnasium's own environments, by entry point: what a step can give at most, and how often in an episode.
_EVERY_STEP, _ONCE = "every step", "once"
_KNOWN = {
    "gymnasium.envs.classic_control.cartpole:CartPoleEnv": (1.0, _EVERY_STEP),
    "gymnasium.envs.mujoco.inverted_pendulum_v4:InvertedPendulumEnv": (1.0, _EVERY_STEP),
    "gymnasium.envs.mujoco.inverted_pendulum_v5:InvertedPendulumEnv": (1.0, _EVERY_STEP),
    "gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv": (1.0, _ONCE),
}
_SAME_REWARDS = (  # wrappers that leave rewards as they are
    gymnasium.ObservationWrapper,
    gymnasium.ActionWrapper,
    gymnasium.wrappers.TimeLimit,
    gymnasium.wrappers.OrderEnforcing,
    gymnasium.wrappers.PassiveEnvChecker,
)
_CHANGING = ("sutton_barto_reward", "reward_schedule")  # arguments by which rewards are others


def highest_return(interface: Interface) -> float | None:
    """A return that no episode exceeds, None if that is not known.

    Rewards are bounded by what the environment declares as `reward_range`, or by what is known of it.
    """
    environment = interface.environment
    with make(environment) as env:
        spec: Any = env.spec
        inner: Any = env
        while isinstance(inner, _SAME_REWARDS):
            inner = inner.env
        if isinstance(inner, gymnasium.Wrapper):
            return None
        declared = getattr(inner, "reward_range", None)
    known = None if spec is None else _KNOWN.get(str(spec.entry_point))
    changed = {*dict(environment.arguments), *getattr(spec, "kwargs", {})} & set(_CHANGING)
    if known is not None and not changed:
        most, when = known
        return most * interface.max_steps if when == _EVERY_STEP else most
    try:
        most = float(declared[1])  # type: ignore[index]
    except (TypeError, ValueError, IndexError):
        return None
    if not math.isfinite(most):
        return None
    return most * interface.max_steps if most > 0 else most
