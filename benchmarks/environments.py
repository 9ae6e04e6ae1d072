"""What a new user meets: 32 environments as they are, each with a random policy, a simple rule and a tree of ours.

The first part gives each search 20 seconds, one worker and the defaults, and looks whether that time is kept: it
works, or it is refused in one line. The second part has the levels that are asked for, on seeds where nothing was
tuned; its searches are limited by calls, not by seconds, so that they can be made again.

    python benchmarks/environments.py                           makes what results/environments.jsonl lacks
    python benchmarks/environments.py --only part=20-seconds    the first part alone (half an hour)
    make bench-environments                                     with the packages of the environments

The mean return of a tree for Blackjack is also computed, which 1000 episodes tell to 0.03 only.

A row whose package is not installed says so; `pip install 'discodso[environments]'` has them all. The rule that
stands beside ours is named; "best constant" is the best of 20 actions that never change, chosen on other seeds.
"""

from __future__ import annotations

import math
import os
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any

import gymnasium
import numpy as np
from harness import Benchmark, Key, Record, main, markdown

from discodso import search_policy
from discodso.base.errors import DiscodsoError
from discodso.tasks.policies.making import as_environment, make

LIMIT = 20  # seconds of a search in the first part
CONSTANTS, TUNED_ON = 20, range(5000, 5010)  # of the best constant
Rule = Callable[[Any], Any]


@dataclass(frozen=True)
class Row:
    """An environment of the table.

    Attributes:
        id, arguments, wrappers: see `search_policy`.
        package: that it needs; "" for Gymnasium's own.
        rule: what the simple policy is called; "" for a row that is refused.
        act: gives that policy for an environment; None for the best constant.
        kinds: of trees, with what differs from the defaults.
        tests: seeds of the test.
        more: options of all its searches.
    """

    id: str
    rule: str = "best constant"
    act: Callable[[Any], Rule] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Sequence[str] = ()
    package: str = ""
    kinds: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"univariate": {}})
    tests: int = 1000
    more: Mapping[str, Any] = field(default_factory=dict)


UNIVARIATE: Mapping[str, Any] = {"univariate": {}}
OBLIQUE: Mapping[str, Any] = {"univariate": {}, "oblique": {"splits": "oblique"}}
LINEAR: Mapping[str, Any] = {"univariate": {}, "linear leaves": {"leaves": "linear"}}
BOTH: Mapping[str, Any] = {
    "univariate": {},
    "oblique, linear leaves": {"splits": "oblique", "leaves": "linear"},
}
FEW: Mapping[str, Any] = {"episodes": 10}  # for environments whose episodes take long


# ---------------------------------------------------------------------------------------- rules


def _plain(rule: Rule) -> Callable[[Any], Rule]:
    return lambda env: rule


def _number(size: float) -> Any:
    return np.array([size], np.float32)


def _pendulum(x: Any) -> Any:
    cosine, sine, speed = map(float, x)
    if cosine > 0.8:  # near the top: a spring and a brake
        return _number(np.clip(-12.0 * sine - 2.5 * speed, -2.0, 2.0))
    energy = speed**2 / 2.0 + 15.0 * (cosine - 1.0)
    return _number(-2.0 * math.copysign(1.0, speed * energy))


def _lander(env: Any) -> Rule:
    from gymnasium.envs.box2d import lunar_lander

    heuristic: Any = lunar_lander.heuristic
    return lambda x: heuristic(env, x)


def _cliff(state: Any) -> int:
    row, column = divmod(int(state), 12)
    return 0 if row == 3 and column < 11 else 2 if column == 11 else 1


def _maze(seen: Any) -> int:
    return 1 if int(seen["image"][3, 5, 0]) == 2 else 2  # turn where the cell ahead is a wall, else go on


def _inventory(env: Any) -> Rule:
    """The best of all rules that fill up to S, chosen on other seeds."""

    def upto(level: int) -> Rule:
        return lambda x: _number(np.clip(level - float(x.sum()), 0.0, 60.0))

    best = max(range(20, 45), key=lambda level: statistics.fmean(returns(env, upto(level), TUNED_ON)))
    return upto(best)


def _thermostat(env: Any) -> Rule:
    """The best of many P-controllers with an offset, chosen on other seeds."""

    def controller(gain: float, offset: float) -> Rule:
        return lambda x: _number(np.clip(offset + gain * float(x[2] - x[0]), 0.0, 1.0))

    pairs = [
        (gain, offset) for gain in (0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6) for offset in (0, 0.1, 0.2, 0.3, 0.4)
    ]
    best = max(pairs, key=lambda pair: statistics.fmean(returns(env, controller(*pair), TUNED_ON)))
    return controller(*best)


def _gears(x: Any) -> Any:
    push = -float(x[0]) - 2.0 * float(x[1])
    return np.array([min(4, round(4 * abs(push))), int(push > 0)])


# ---------------------------------------------------------------------------------------- rows

OWN = "own_environments:"
MUJOCO: dict[str, Any] = {"package": "mujoco", "tests": 20, "more": FEW}
MAZE: dict[str, Any] = {
    "package": "minigrid",
    "tests": 100,
    "wrappers": ('FilterObservation {"filter_keys": ["image", "direction"]}',),
}
ROWS: dict[str, Row] = {
    "CartPole": Row(
        "CartPole-v1", "push to where it leans", _plain(lambda x: int(x[2] + x[3] > 0)), kinds=OBLIQUE
    ),
    "MountainCar": Row(
        "MountainCar-v0", "push the way it goes", _plain(lambda x: 2 * int(x[1] > 0)), kinds=OBLIQUE
    ),
    "Acrobot": Row(
        "Acrobot-v1", "push the way it swings", _plain(lambda x: 2 * int(x[5] > 0)), kinds=OBLIQUE
    ),
    "Pendulum": Row("Pendulum-v1", "energy, then a spring", _plain(_pendulum), kinds=LINEAR),
    "MountainCarContinuous": Row(
        "MountainCarContinuous-v0",
        "push the way it goes",
        _plain(lambda x: _number(math.copysign(1.0, x[1]))),
        kinds=LINEAR,
    ),
    "LunarLander": Row("LunarLander-v3", "Gymnasium's heuristic", _lander, kinds=OBLIQUE, tests=100),
    "LunarLander, continuous": Row(
        "LunarLander-v3",
        "Gymnasium's heuristic",
        _lander,
        {"continuous": True},
        kinds=LINEAR,
        tests=100,
    ),
    "BipedalWalker": Row("BipedalWalker-v3", tests=20, kinds=BOTH, more=FEW),
    "HalfCheetah": Row("HalfCheetah-v5", kinds=BOTH, **MUJOCO),
    "Hopper": Row("Hopper-v5", **MUJOCO),
    "Swimmer": Row("Swimmer-v5", kinds=BOTH, **MUJOCO),
    "Ant": Row("Ant-v5", **MUJOCO),
    "Reacher": Row("Reacher-v5", kinds={"linear leaves": {"leaves": "linear"}}, **MUJOCO),
    "InvertedPendulum": Row(
        "InvertedPendulum-v5",
        "P-controller of the angle",
        _plain(lambda x: _number(np.clip(20.0 * x[1] + 2.0 * x[3], -3.0, 3.0))),
        kinds=LINEAR,
        **MUJOCO,
    ),
    "InvertedDoublePendulum": Row("InvertedDoublePendulum-v5", kinds=LINEAR, **MUJOCO),
    "Blackjack": Row("Blackjack-v1", "stand from 17 on", _plain(lambda x: int(x[0] < 17))),
    "FrozenLake": Row("FrozenLake-v1"),
    "FrozenLake, 8x8": Row("FrozenLake-v1", arguments={"map_name": "8x8"}),
    "CliffWalking": Row("CliffWalking-v1", "up, along, down", _plain(_cliff)),
    "Taxi": Row("Taxi-v4"),
    "MiniGrid": Row("minigrid:MiniGrid-Empty-5x5-v0", package="minigrid", rule=""),
    "MiniGrid, without its text": Row(
        "minigrid:MiniGrid-Empty-5x5-v0", "turn at a wall", _plain(_maze), **MAZE
    ),
    "MiniGrid, door and key": Row("minigrid:MiniGrid-DoorKey-5x5-v0", **MAZE),
    "highway-fast": Row(
        "highway_env:highway-fast-v0", package="highway_env", kinds=OBLIQUE, tests=20, more=FEW
    ),
    "parking": Row("highway_env:parking-v0", package="highway_env", tests=20, more=FEW),
    "CarRacing": Row("CarRacing-v3", ""),
    "a screen": Row(OWN + "Screen-v0", ""),
    "a text": Row(OWN + "Riddle-v0", ""),
    "lamps (MultiBinary)": Row(OWN + "Lamps-v0"),
    "gears (MultiDiscrete)": Row(OWN + "Gears-v0", "spring and brake", _plain(_gears), kinds=OBLIQUE),
    "inventory": Row(OWN + "Inventory-v0", "best order-up-to", _inventory, kinds=BOTH),
    "thermostat": Row(OWN + "Thermostat-v0", "best P-controller", _thermostat, kinds=BOTH),
}
# What is asked for, the least mean return or (None) that of the rule; the trees; and what differs from defaults.
LEVELS: dict[str, tuple[float | None, str, dict[str, Any]]] = {
    "CartPole": (500.0, "one oblique split", {"budget": 5000, "splits": "oblique", "max_nodes": 3}),
    "Pendulum": (
        -200.0,
        "linear leaves",
        {"budget": 20_000, "leaves": "linear", "common_episodes": True},
    ),
    "MountainCarContinuous": (93.0, "linear leaves", {"budget": 10_000, "leaves": "linear", "episodes": 50}),
    "thermostat": (
        None,
        "linear leaves",
        {"budget": 5000, "leaves": "linear", "episodes": 20, "common_episodes": True},
    ),
    "inventory": (
        None,
        "linear leaves",
        {
            "budget": 6000,
            "leaves": "linear",
            "episodes": 20,
            "common_episodes": True,
            "moving_ranges": True,
        },
    ),
    "FrozenLake": (0.70, "univariate", {"budget": 5000}),
    "Blackjack": (
        -0.06,
        "univariate",
        {"budget": 3000, "episodes": 2000, "common_episodes": True, "max_nodes": 15},
    ),
    "Taxi": (-math.inf, "univariate", {"budget": 5000, "episodes": 20, "max_nodes": 101}),
}
LEVEL_SEEDS = range(3)
KEYS = [
    *(
        {"part": f"{LIMIT}-seconds", "environment": name, "trees": kind, "seed": 0}
        for name, row in ROWS.items()
        for kind in row.kinds
    ),
    *(
        {"part": "levels", "environment": name, "trees": trees, "seed": seed}
        for name, (_, trees, _) in LEVELS.items()
        for seed in LEVEL_SEEDS
    ),
]


# ---------------------------------------------------------------------------------------- runs


def returns(env: Any, act: Rule, seeds: Sequence[int]) -> list[float]:
    """The return of an episode for each seed."""
    found = []
    for seed in seeds:
        observation, _ = env.reset(seed=int(seed))
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total, over = total + float(reward), terminated or truncated
        found.append(total)
    return found


def best_constant(env: Any) -> Rule:
    """The best of some actions that never change."""
    space = env.action_space
    space.seed(0)
    if isinstance(space, gymnasium.spaces.Discrete):
        actions: list[Any] = [int(space.start + n) for n in range(int(space.n))]
        seeds = TUNED_ON
    else:
        seeds = TUNED_ON[:2]
        actions = [space.sample() for _ in range(CONSTANTS - 1)]
        if isinstance(space, gymnasium.spaces.Box):
            actions.append(np.clip(np.zeros(space.shape, space.dtype), space.low, space.high))
    means = [statistics.fmean(returns(env, _always(action), seeds)) for action in actions]
    return _always(actions[int(np.argmax(means))])


def _always(action: Any) -> Rule:
    return lambda x: action


def beside(row: Row, tests: int) -> Record:
    """Means of a random policy and of the rule, on the first seeds of the test."""
    with make(as_environment(row.id, row.arguments, row.wrappers)) as env:
        space = env.action_space
        space.seed(1)
        found = {"random": statistics.fmean(returns(env, lambda x: space.sample(), range(min(tests, 100))))}
        act = best_constant(env) if row.act is None else row.act(env)
        found["rule"] = statistics.fmean(returns(env, act, range(tests)))
    return found


def run(key: Key) -> Record:
    """One search, with what stands beside it; or why there is none."""
    warnings.simplefilter("ignore")
    row = ROWS[key["environment"]]
    if row.package and find_spec(row.package) is None:
        return {"missing": row.package}
    short = key["part"] != "levels"
    options: dict[str, Any] = dict(row.kinds[key["trees"]]) if short else dict(LEVELS[key["environment"]][2])
    if short:
        options |= {"budget": 10_000_000, "time_limit": LIMIT, **row.more}
    begun, used = time.monotonic(), _cpu()
    try:
        found = search_policy(
            row.id,
            arguments=dict(row.arguments),
            wrappers=tuple(row.wrappers),
            seed=key["seed"],
            test_seeds=range(row.tests),
            **options,
        )
    except DiscodsoError as error:
        return {"refused": str(error)}
    figures = {
        "seconds": round(time.monotonic() - begun, 1),
        "cpu": round(_cpu() - used, 1),
        "mean": round(found.test_mean, 4),
        "error": round(found.test_error, 4),
        "tests": len(found.test_seeds),
        "nodes": len(found.policy),
        "calls": found.calls,
        "text": str(found.policy.export("text")),
    }
    if row.id == "Blackjack-v1":
        figures["exact"] = round(worth_at_blackjack(lambda seen: int(found.policy.act(seen))), 4)
    if short and key["trees"] != next(iter(row.kinds)):  # the row above has them
        return figures
    rules = beside(row, min(row.tests, 200) if short else row.tests)
    return {**figures, **{name: round(value, 4) for name, value in rules.items()}}


# Of the cards 1 to 9, and of 10, which are drawn for ever from a full pack.
_CARDS = {**dict.fromkeys(range(1, 10), 1 / 13), 10: 4 / 13}


def worth_at_blackjack(act: Callable[[tuple[int, int, int]], int] | None) -> float:
    """The exact mean return of a policy of Blackjack-v1; None for the best there is.

    A policy sees its sum, the dealer's card and whether it has a usable ace.
    """

    def seen(hard: int, ace: bool) -> tuple[int, int]:
        usable = ace and hard + 10 <= 21
        return hard + 10 * usable, int(usable)

    @cache
    def dealt(hard: int, ace: bool) -> dict[int, float]:
        """Chances of the dealer's last sum, 0 if it is too high."""
        total, _ = seen(hard, ace)
        if total >= 17:
            return {total if total <= 21 else 0: 1.0}
        found: dict[int, float] = defaultdict(float)
        for card, chance in _CARDS.items():
            for last, own in dealt(hard + card, ace or card == 1).items():
                found[last] += chance * own
        return found

    @cache
    def standing(total: int, dealer: int) -> float:
        return sum(
            chance * own * ((total > last) - (total < last))
            for card, chance in _CARDS.items()
            for last, own in dealt(dealer + card, dealer == 1 or card == 1).items()
        )

    @cache
    def value(hard: int, ace: bool, dealer: int) -> float:
        if hard > 21:
            return -1.0
        total, usable = seen(hard, ace)
        stand = standing(total, dealer)
        if act is not None and not act((total, dealer, usable)):
            return stand
        hit = sum(chance * value(hard + card, ace or card == 1, dealer) for card, chance in _CARDS.items())
        return max(hit, stand) if act is None else hit

    hands = product(_CARDS.items(), repeat=3)
    return sum(p * q * r * value(a + b, 1 in (a, b), dealer) for (a, p), (b, q), (dealer, r) in hands)


def _cpu() -> float:
    """Seconds of the processor, those of workers that have ended too."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


# ---------------------------------------------------------------------------------------- tables


def table(records: Sequence[Record]) -> str:
    """Markdown of both parts."""
    parts = (_short(records), _refusals(records), _levels(records))
    return "\n\n".join((*map("\n".join, parts), _trees(records)))


def _refusals(records: Sequence[Record]) -> list[str]:
    """What is said where there is no search."""
    return [
        f"- {r['environment']}: {r.get('refused') or 'package ' + r['missing'] + ' is not installed'}"
        for r in records
        if "refused" in r or "missing" in r
    ]


def _mean(record: Record) -> str:
    exact = f"; exactly {record['exact']:.4f}" if "exact" in record else ""
    return f"{_rounded(record['mean'])} ± {_rounded(record['error'])} ({record['nodes']}{exact})"


def _rounded(number: float) -> str:
    return f"{number:.3f}" if abs(number) < 1 else f"{number:.1f}" if abs(number) < 1000 else f"{number:.0f}"


def _short(records: Sequence[Record]) -> list[str]:
    known = {(r["environment"], r["trees"]): r for r in records if r["part"] != "levels"}
    lines = []
    for name, row in ROWS.items():
        for kind in row.kinds:
            record = known.get((name, kind))
            if record is None:
                continue
            first = next(iter(row.kinds)) == kind
            head = [name if first else "", row.id if first else ""]
            if "refused" in record or "missing" in record:
                lines.append([*head, "", "", "refused in one line, see below", "", "", ""])
                continue
            beside = ["", ""]
            if first:
                beside = [_rounded(record["random"]), f"{_rounded(record['rule'])} ({row.rule})"]
            spent = [f"{record['calls']:,}", f"{record['seconds']:.1f}", f"{record['cpu']:.1f}"]
            lines.append([*head, *beside, f"{kind}: {_mean(record)}", *spent])
    head = ["environment", "id", "random", "simple rule", "ours (nodes)", "calls", "seconds", "CPU"]
    return markdown(head, lines)


def _levels(records: Sequence[Record]) -> list[str]:
    lines = []
    for name, (least, trees, options) in LEVELS.items():
        own = sorted((r for r in records if r["part"] == "levels" and r["environment"] == name), key=_seed)
        if not own:
            continue
        rule = own[0]["rule"]
        asked = (
            f"above {_rounded(rule)}" if least is None else "as found" if least < -1e9 else _rounded(least)
        )
        means = ", ".join(map(_mean, own))
        reached = sum(r["mean"] > rule if least is None else r["mean"] >= least for r in own)
        cpu = statistics.fmean(r["cpu"] for r in own)
        beside = f"{_rounded(rule)} ({ROWS[name].rule})"
        ending = [means, f"{reached} of {len(own)}", f"{cpu:.0f}"]
        lines.append([name, trees, f"{options['budget']:,}", asked, beside, *ending])
    asked_for = ["environment", "trees", "calls", "asked", "simple rule"]
    return markdown([*asked_for, "ours, seeds 0 to 2", "reached", "CPU seconds"], lines)


def _seed(record: Record) -> int:
    return int(record["seed"])


def _trees(records: Sequence[Record]) -> str:
    """The smallest tree of each level, whole."""
    parts = []
    for name in LEVELS:
        own = [r for r in records if r["part"] == "levels" and r["environment"] == name]
        if own:
            best = max(own, key=lambda r: r["mean"])
            parts.append(f"{name}, seed {best['seed']}, {_mean(best)}:\n\n```\n{best['text'].rstrip()}\n```")
    return "\n\n".join(parts)


BENCHMARK = Benchmark("environments", KEYS, run, table)

if __name__ == "__main__":
    main(BENCHMARK, __doc__)
