"""Which environments have a compiled simulator, where its episodes start, and the check that it is exact.

Starts are those of Gymnasium's own `reset(seed=...)`. Before a simulator is used for the first time in a process
it replays the installed Gymnasium and must reproduce it to the last bit; if it cannot (another Gymnasium, another
C library), the environment runs through Gymnasium like any other.
"""

from __future__ import annotations

import ctypes
import math
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies import _simulators
from discodso.tasks.policies._simulators import Maths
from discodso.tasks.policies.lander import Lander, Part, Starts, lander_of, settings_of
from discodso.tasks.policies.making import Environment, plain_spec
from discodso.tasks.policies.tree import Forest

KINDS = {
    "CartPole-v1": (0, "gymnasium.envs.classic_control.cartpole:CartPoleEnv"),
    "MountainCar-v0": (1, "gymnasium.envs.classic_control.mountain_car:MountainCarEnv"),
    "Acrobot-v1": (2, "gymnasium.envs.classic_control.acrobot:AcrobotEnv"),
    "Pendulum-v1": (3, "gymnasium.envs.classic_control.pendulum:PendulumEnv"),
    "MountainCarContinuous-v0": (
        4,
        "gymnasium.envs.classic_control.continuous_mountain_car:Continuous_MountainCarEnv",
    ),
}
_CHECKED_STEPS = 1000


@dataclass(frozen=True)
class Classic:
    """An environment of Gymnasium's classic control, as the kernels run it."""

    environment: Environment
    kind: int  # its number in the kernels

    def starts(self, seeds: Sequence[int]) -> tuple[Floats, Floats]:
        """States and observations after `reset` with each seed."""
        env = gymnasium.make(self.environment.id).unwrapped
        states, observations = [], []
        for seed in seeds:
            observations.append(env.reset(seed=int(seed))[0].astype(np.float64))
            states.append(np.array(env.state, dtype=np.float64))  # type: ignore[attr-defined]
        env.close()
        return np.array(states), np.array(observations)

    def run(self, forest: Forest, starts: Starts, part: Part, visits: Ints, returns: Floats) -> None:
        """See `_simulators.run_episodes`."""
        given = self.kind, forest.columns, forest.offset, starts.states, starts.observations
        episodes = _simulators.run_number_episodes if self.kind >= 3 else _simulators.run_episodes
        episodes(*given, *part, gymnasium_maths(), visits, returns)

    def is_exact(self) -> bool:
        """Whether states, observations and rewards of a long trajectory equal Gymnasium's, to the last bit."""
        rng = np.random.default_rng(0)
        env = gymnasium.make(self.environment.id).unwrapped
        acts: Any = env.action_space
        if isinstance(acts, gymnasium.spaces.Box):
            actions = rng.choice([-1.0, 0.0, 1.0, *rng.uniform(-1.0, 1.0, 6)], _CHECKED_STEPS) * acts.high[0]
            actions = actions.astype(np.float32).astype(np.float64)
        else:
            actions = rng.integers(0, int(acts.n), _CHECKED_STEPS)
        actions = np.repeat(actions, rng.integers(1, 12, _CHECKED_STEPS))[
            :_CHECKED_STEPS
        ]  # swings, not a tremor
        maths, over, seed = gymnasium_maths(), True, 0
        for at, action in enumerate(actions.tolist()):
            if first := over or at % 200 == 0:
                x = env.reset(seed=seed)[0].astype(np.float64)
                s, seed = np.array(env.state, np.float64), seed + 1  # type: ignore[attr-defined]
            given = np.array([action], np.float32) if isinstance(acts, gymnasium.spaces.Box) else action
            observation, reward, over, _, _ = env.step(given)
            seen = np.ones(len(x), np.int64)
            found = _simulators.step(self.kind, s, x, float(action), first, seen, maths)
            same = np.array_equal(s, env.state) and np.array_equal(x, observation)  # type: ignore[attr-defined]
            if not same or found != (reward, over):
                return False
        env.close()
        return True


@dataclass(frozen=True)
class Simulator:
    """A compiled environment, which runs episodes."""

    environment: Environment
    kernel: Classic | Lander
    max_steps: int  # where episodes are cut off
    pool: Starts | None = None  # for consecutive seeds, drawn once; other seeds are drawn when they are met
    threads: int = 1

    def starts(self, seeds: Sequence[int]) -> Starts:
        """Where Gymnasium begins with each seed."""
        return Starts(tuple(map(int, seeds)), *self.kernel.starts(seeds))

    def returns(
        self, forest: Forest, tree: Ints, seeds: Ints, visits: Ints | None = None
    ) -> tuple[Floats, dict[int, str]]:
        """See `Runner.returns`; none fails. `visits` int[N], if given, counts how often each leaf was reached; it
        needs one thread."""
        returns = np.empty(len(tree))
        counts = np.empty(0, np.int64) if visits is None else visits
        starts, start = self.starts_of(seeds)

        def run(part: slice) -> None:
            episodes = tree[part], start[part], self.max_steps
            self.kernel.run(forest, starts, episodes, counts, returns[part])

        if self.threads == 1 or len(tree) < 2 * self.threads:
            run(slice(0, len(tree)))
        else:
            edges = np.linspace(0, len(tree), 4 * self.threads + 1).astype(int).tolist()
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(run, [slice(a, b) for a, b in pairwise(edges)]))
        return returns, {}

    def starts_of(self, seeds: Ints) -> tuple[Starts, Ints]:
        """Starts, and which of them each seed has."""
        if self.pool is not None and len(seeds):
            start = seeds - self.pool.seeds[0]
            if start.min() >= 0 and start.max() < len(self.pool.seeds):
                return self.pool, start
        distinct, start = np.unique(seeds, return_inverse=True)
        return self.starts(distinct.tolist()), start


@lru_cache(maxsize=16)
def simulator_for(environment: Environment) -> Simulator | None:
    """The compiled simulator of an environment, None if it has none or differs from the installed Gymnasium."""
    kernel: Classic | Lander
    if (settings := settings_of(environment)) is not None:
        kernel = lander_of(environment, settings)
    elif environment.id in KINDS and plain_spec(environment, KINDS[environment.id][1]) is not None:
        kernel = Classic(environment, KINDS[environment.id][0])
    else:
        return None
    if not (limit := gymnasium.spec(environment.id).max_episode_steps):
        return None
    if not kernel.is_exact():
        warnings.warn(
            f"the compiled {environment.id} differs from the installed Gymnasium {gymnasium.__version__}; "
            "episodes run through Gymnasium, which is slower",
            stacklevel=2,
        )
        return None
    return Simulator(environment, kernel, limit)


@lru_cache(maxsize=1)
def gymnasium_maths() -> Maths:
    """NumPy's loops for cosine and sine of float64, unless the C library gives the same."""
    x = np.random.default_rng(0).uniform(-10, 10, 100_000)
    for ufunc, function in ((np.cos, math.cos), (np.sin, math.sin)):
        if not np.array_equal(ufunc(x), list(map(function, x.tolist()))):
            return Maths(loop_address(np.cos), loop_address(np.sin))
    return Maths(None, None)


class _Ufunc(ctypes.Structure):
    """The beginning of NumPy's public PyUFuncObject (numpy/ufuncobject.h), after the head of any object."""

    _fields_ = (
        ("head", ctypes.c_ssize_t * 2),
        ("nin_nout_nargs_identity", ctypes.c_int * 4),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
    )


def loop_address(ufunc: np.ufunc) -> int:
    """Where NumPy's compiled loop over float64 of a function such as np.cos is in memory."""
    inside = _Ufunc.from_address(id(ufunc))
    address = inside.functions[ufunc.types.index("d->d")]
    assert address is not None
    return int(address)
