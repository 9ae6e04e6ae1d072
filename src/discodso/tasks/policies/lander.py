"""LunarLander for the compiled kernel: which arguments it takes, where episodes start, and the check.

Shapes and masses are read from the installed Box2D. Terrain, first push, wind and the state of the generator come
from a seed as in Gymnasium's `reset`; the kernel makes the first step of the world itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.tasks.policies.environments import check_fits
from discodso.tasks.policies.gymnasium_episodes import plain_episode
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.lunar._episodes import START, run_lander_episodes
from discodso.tasks.policies.lunar._worlds import (
    CERTAIN,
    INERTIA,
    REACH,
    TURNING,
    Settings,
    Shapes,
    new_world,
)
from discodso.tasks.policies.making import Environment, make
from discodso.tasks.policies.splits import Split
from discodso.tasks.policies.tree import DecisionTree, Forest

IDS = ("LunarLander-v3", "LunarLanderContinuous-v3")
_ENTRY = "gymnasium.envs.box2d.lunar_lander:LunarLander"
_DEFAULTS = {
    "continuous": False,
    "gravity": -10.0,
    "enable_wind": False,
    "wind_power": 15.0,
    "turbulence_power": 1.5,
}
_CHECKED_SEEDS, _CHECKED_STEPS = range(4), 500


def settings_of(environment: Environment) -> Settings | None:
    """Arguments of an environment, None if it is not LunarLander as Gymnasium has it."""
    if environment.id not in IDS or environment.wrappers or environment.factory is not None:
        return None
    spec = gymnasium.spec(environment.id)
    given = {**spec.kwargs, **dict(environment.arguments)}
    if spec.entry_point != _ENTRY or spec.additional_wrappers or not given.keys() <= _DEFAULTS.keys():
        return None
    continuous, gravity, windy, wind, turbulence = {**_DEFAULTS, **given}.values()
    if not all(isinstance(number, (int, float)) for number in (gravity, wind, turbulence)):
        return None
    return Settings(bool(continuous), np.float32(gravity), bool(windy), float(wind), float(turbulence))


class Starts(NamedTuple):
    """What `reset` gave for some seeds: states float[S, .] and observations float[S, n]."""

    seeds: tuple[int, ...]
    states: Floats
    observations: Floats


Part = tuple[Ints, Ints, int]  # episodes: the tree of each, its start, and where they are cut off


@dataclass(frozen=True)
class Lander:
    """LunarLander with its arguments, as the kernel runs it."""

    environment: Environment
    settings: Settings
    shapes: Shapes

    def starts(self, seeds: Sequence[int]) -> tuple[Floats, Floats]:
        """float[S, START], what `reset` draws for each seed, as in its code; and no observations."""
        return np.array([self._start(int(seed)) for seed in seeds]).reshape(-1, START), np.empty(
            (len(seeds), 0)
        )

    def _start(self, seed: int) -> Floats:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        top = 400 / 30.0
        height = rng.uniform(0, top / 2, size=12)
        height[3:8] = top / 4
        smooth = [0.33 * (height[i - 1] + height[i + 0] + height[i + 1]) for i in range(11)]
        force = rng.uniform(-1000.0, 1000.0), rng.uniform(-1000.0, 1000.0)
        times = [float(rng.integers(-9999, 9999)) if self.settings.windy else 0.0 for _ in range(2)]
        state: Any = rng.bit_generator.state["state"]
        words = [part >> shift & (2**64 - 1) for part in (state["state"], state["inc"]) for shift in (64, 0)]
        return np.concatenate([smooth, force, times, np.array(words, np.uint64).view(np.float64)])

    def run(self, forest: Forest, starts: Starts, part: Part, visits: Ints, returns: Floats) -> None:
        """See `run_lander_episodes`."""
        given = forest.columns, forest.offset, starts.states, *part
        run_lander_episodes(*given, new_world(), self.shapes, self.settings, visits, returns)

    def is_exact(self) -> bool:
        """Whether whole episodes that land, crash, drift off and fire every engine return what Gymnasium does."""
        env = make(self.environment)
        numbers = check_fits(env, self.environment).numbers
        if numbers is None:
            off, left, main, right = (Leaf(action) for action in range(4))
        else:
            engines = ((-1.0, 0.0), (-1.0, -0.8), (0.3, 0.2), (-0.5, 1.0))
            off, left, main, right = (Leaf(0, (first, second)) for first, second in engines)
        halves = Split(3, -0.2), Split(4, 0.0), main, left, right
        others = Split(5, 0.0), Split(6, 0.5), right, main, off
        trees = [
            DecisionTree(((top, 2), (one, 0), (inner, 2), (two, 0), (three, 0)), numbers=numbers)
            for top, inner, one, two, three in (halves, others)
        ]
        expected = [
            plain_episode(env, tree.columns, seed, _CHECKED_STEPS, numbers)
            for tree in trees
            for seed in _CHECKED_SEEDS
        ]
        env.close()
        found, count = np.empty(len(expected)), len(_CHECKED_SEEDS)
        which, start = np.repeat(np.arange(2), count), np.tile(np.arange(count), 2)
        starts = Starts(tuple(_CHECKED_SEEDS), *self.starts(_CHECKED_SEEDS))
        self.run(Forest.of(trees), starts, (which, start, _CHECKED_STEPS), np.empty(0, np.int64), found)
        return np.array_equal(found, expected)


def lander_of(environment: Environment, settings: Settings) -> Lander:
    """The kernel's LunarLander with shapes and masses of the installed Box2D."""
    env: Any = make(environment).unwrapped
    env.reset(seed=0)
    polygons, bodies = np.zeros((3, 6, 4), np.float32), np.zeros((3, REACH + 1), np.float32)
    for i, body in enumerate((env.legs[1], env.lander, env.legs[0])):
        fixture, side = body.fixtures[0], 1 - i
        polygon, given = fixture.shape, fixture.massData
        sides = len(polygon.vertices)
        polygons[i, :sides, :2], polygons[i, :sides, 2:] = polygon.vertices, polygon.normals
        mass = np.float32(given.mass)
        one = np.float32(1)
        x, y = (mass * np.array(tuple(given.center), np.float32)) * (one / mass)
        inertia = np.float32(given.I) - mass * (x * x + y * y)
        arm = (np.float32(side * 20 / 30) - x, np.float32(18 / 30) - y) if side else (-x, -y)
        joint = (*body.joint.limits, 0.3 * side, 0.05 * side) if side else (0, 0, 0, 0)
        grips = [
            np.sqrt(np.float32(own.friction) * np.float32(fixture.friction)) for own in env.moon.fixtures[:2]
        ]
        bodies[i, :TURNING] = (one / mass, one / inertia, x, y, *polygon.centroid, *arm, *joint, *grips)
        farthest = np.hypot(*(np.array(polygon.vertices) - (x, y)).T).max()
        bodies[i, REACH] = farthest + np.hypot(*(np.array(polygon.centroid) - (x, y))) + CERTAIN
    bodies[:, TURNING] = one / (bodies[1, INERTIA] + bodies[0, INERTIA])
    env.close()
    return Lander(environment, settings, Shapes(polygons, bodies))
