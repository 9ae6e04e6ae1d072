"""From a teacher to small trees: imitation of what it would have done, then pruning by returns.

Imitation is DAgger: in the first episodes the teacher acts, later ever more the tree that was fitted to all
observations so far, and the teacher says what it would have done. A tree that imitates well is too large. So each
way to replace a decision by one of its sides is tried in the same episodes, and what costs the least return gives
way, again and again. The trees on that way are a front of return against size, where a search begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.errors import DeclarationError, DiscodsoError
from discodso.run.clock import Clock
from discodso.run.plan import Plan
from discodso.space.design import Design
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.episodes import paired_returns
from discodso.tasks.policies.growing import Grower
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import make
from discodso.tasks.policies.observations import flat
from discodso.tasks.policies.policy_options import PolicyOptions
from discodso.tasks.policies.splits import Nodes
from discodso.tasks.policies.starts import design_of, placed_in
from discodso.tasks.policies.teachers import Teacher, numbers_of
from discodso.tasks.policies.timed import Runner
from discodso.tasks.policies.tree import DecisionTree, action_of
from discodso.tasks.policies.tree_space import SEARCH_SEEDS, search_seeds
from discodso.tasks.policies.vocabulary import TreeSpace

FIRST, ROUNDS, EPISODES = (
    40,
    15,
    20,
)  # episodes of the teacher; rounds, the first included; episodes of the others
_ROWS = 20_000  # that a tree of a round is fitted to; the last one gets more
_LAST_ROWS = 100_000
_LARGER = (4, 3, 2, 1)  # times the largest size, from which trees are pruned: as the episodes allow
_ROUND = 1024  # episodes in which all cuts of a tree are compared, but from 8 to 64 for each
_PART, _LEAST_STAYING = (
    4,
    8,
)  # of the cuts one in so many stays and gets twice as many episodes; but so many at least
_TRIED = 3  # further cuts of a round that may fail before the next round
_SMALLEST = 4  # pruning ends at a part of the largest size; smaller trees come from imitation alone
PRUNING_SEEDS = 128
_SHARE = 0.25  # of the episodes that a search may take at most, for pruning; of a time limit, for all of it


@dataclass(frozen=True)
class Distilled:
    """What came of a teacher.

    Attributes:
        designs: of trees of all sizes, in the order of the front.
        record: counts and means, for people and files.
    """

    designs: tuple[Design, ...]
    record: dict[str, Any]


def pruning_seeds(seed: int) -> range:
    """Where trees are compared: the last of the seeds of a search."""
    return search_seeds(seed)[SEARCH_SEEDS - PRUNING_SEEDS :]


def distilled(
    teacher: Teacher,
    interface: Interface,
    space: TreeSpace,
    options: PolicyOptions,
    runner: Runner,
    plan: Plan,
    clock: Clock,
) -> Distilled:
    """Trees of a run's space that do what a teacher does, as far as their size lets them."""
    grower = Grower(
        space.vocabulary,
        options.splits == "pair",
        options.splits == "oblique",
        options.leaves == "linear",
        tuple(action for action, _ in interface.action_names),
        interface.numbers is not None and interface.numbers.whole,
    )
    rng = np.random.default_rng(np.random.SeedSequence((plan.seed, 3)))
    lesson = _Lesson(teacher, interface, grower, rng)
    began = clock.seconds
    end = math.inf if clock.limit is None else began + _SHARE * clock.left

    def is_late() -> bool:
        return clock.seconds > end

    mean = lesson.take(None, 1.0, FIRST, is_late)
    seconds = (clock.seconds - began) / lesson.episodes  # of an episode
    allowed = _SHARE * plan.budget * options.episodes
    allowed = min(allowed, (end - clock.seconds) / max(seconds / options.workers, 1e-9))
    largest = (options.max_nodes + 1) // 2  # leaves
    times = next((k for k in _LARGER if _pruning_cost(k * largest) <= allowed), 0)
    about = f"teacher {teacher.name}: {mean:.2f} over {lesson.episodes} episodes"
    clock.say(f"{about}; {(ROUNDS - 1) * EPISODES} more to imitate it")
    for number in range(1, ROUNDS):
        if is_late():
            break
        *_, nodes = lesson.grown(max(times, 1) * largest, _ROWS)
        lesson.take(DecisionTree(nodes, numbers=interface.numbers), 0.5**number, EPISODES, is_late)
    grown = lesson.grown(max(times, 1) * largest, _LAST_ROWS)
    trees = [placed_in(DecisionTree(nodes, numbers=interface.numbers), space, interface) for nodes in grown]
    found: list[tuple[DecisionTree, float]] = []
    spent = 0
    if times:
        clock.say(f"pruning an imitation of {len(trees[-1])} nodes by returns")
        seeds, said = np.array(pruning_seeds(plan.seed), np.int64), len(trees[-1])
        for tree, own, so_far in pruned_by_returns(trees[-1], runner, seeds):
            spent = so_far
            if len(tree) <= options.max_nodes:
                found.append((tree, own))
            if is_late() or len(tree) <= options.max_nodes / _SMALLEST:
                break
            if len(tree) <= said / 2:
                clock.say(f"pruned to {len(tree)} nodes: {own:.2f} over {PRUNING_SEEDS} episodes")
                said = len(tree)
    designs, front = dict[Design, None](), list[list[float]]()
    for tree, own in (*found, *((tree, math.nan) for tree in trees)):
        try:
            designs[design_of(tree, space, interface)] = None
        except DiscodsoError:  # too large, or so small that it does one thing
            continue
        if math.isfinite(own):
            front.append([len(tree), round(own, 6)])
    best = f"; {front[0][1]:.2f} with {front[0][0]:.0f} nodes" if front else ""
    episodes = lesson.episodes + spent
    clock.say(f"{about}; {len(designs)} trees made by {episodes} episodes{best}")
    record = {
        "teacher": teacher.name,
        "teacher_mean": round(mean, 6),
        "steps": len(lesson.rows),
        "episodes": episodes,
        "pruning_episodes": spent,
        "front": front,
    }
    return Distilled(tuple(designs), record)


def _pruning_cost(leaves: int) -> float:
    """About how many episodes it takes to prune a tree."""
    return 400.0 * leaves


# ------------------------------------------------------------------------------------------------ DAgger


class _Lesson:
    """Observations, and what the teacher would have done."""

    def __init__(
        self, teacher: Teacher, interface: Interface, grower: Grower, rng: np.random.Generator
    ) -> None:
        self.teacher, self.interface, self.grower, self.rng = teacher, interface, grower, rng
        self.rows: list[list[float]] = []
        self.actions: list[list[float]] = []
        self.episodes = 0

    def take(self, tree: DecisionTree | None, share: float, count: int, is_late: Callable[[], bool]) -> float:
        """The mean return of some episodes in which the teacher acts in a share of the steps, else the tree."""
        returns = list[float]()
        with make(self.interface.environment) as env:
            while len(returns) < count and not (returns and is_late()):
                returns.append(self._episode(env, tree, share))
        return float(np.mean(returns))

    def grown(self, leaves: int, most: int) -> Iterator[Nodes]:
        """Trees with 1, 2, ... leaves, fitted to all observations so far, or to `most` of them."""
        x, y = np.array(self.rows, np.float64), np.array(self.actions, np.float64)
        known = np.flatnonzero(np.isfinite(x).all(axis=1))
        if len(known) > most:
            known = np.sort(self.rng.choice(known, most, replace=False))
        return self.grower.grow(x[known], y[known], leaves)

    def _episode(self, env: Any, tree: DecisionTree | None, share: float) -> float:
        """The return of an episode; see `take`."""
        observation, _ = env.reset(seed=int(self.rng.integers(2**30, 2**31)))
        self.episodes += 1
        acting, total = self._asked(self.teacher.begin, env), 0.0
        for _ in range(self.interface.max_steps):
            said = numbers_of(self._asked(acting, observation), self.teacher, self.interface)
            self.rows.append(flat(observation))
            self.actions.append(said)
            if tree is not None and self.rng.random() >= share:
                action = action_of(tree.columns, tree.numbers, self.rows[-1])
            else:
                numbers = self.interface.numbers
                action = int(said[0]) if numbers is None else numbers.array(said)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return total

    def _asked(self, function: Callable[[Any], Any], given: Any) -> Any:
        try:
            return function(given)
        except DiscodsoError:
            raise
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise DeclarationError(f"teacher {self.teacher.name} raised {reason}") from None


# ----------------------------------------------------------------------------------------------- pruning

Edit = tuple[int, bool]  # a decision by its place, and whether its left side stays


def pruned_by_returns(
    tree: DecisionTree, runner: Runner, seeds: Ints
) -> Iterator[tuple[DecisionTree, float, int]]:
    """Ever smaller trees, each with its mean return over the seeds and the episodes so far.

    In each round all cuts meet a few episodes, and the better ones more. The best is made; so are the next, as
    long as the return does not fall below that of the tree at the beginning of the round, or of the best cut.
    """
    base, spent = float(_means([tree], runner, seeds)[0]), len(seeds)
    yield tree, base, spent
    while len(tree) > 3:
        edits, trees = _distinct(tree)
        left = np.arange(len(edits))
        returns, count = np.empty((len(edits), 0)), 0
        upto = min(max(_ROUND // len(edits), 8), 64, len(seeds))
        while count < len(seeds):
            more = paired_returns([trees[row] for row in left], runner, seeds[count:upto])
            spent, count, upto = spent + more.size, upto, min(2 * upto, len(seeds))
            returns = np.hstack([returns, np.nan_to_num(more, nan=-np.inf)])
            if count < len(seeds):
                order = _order(returns, [trees[row] for row in left])
                staying = order[: max(_LEAST_STAYING, len(order) // _PART)]
                left, returns = left[staying], returns[staying]
        order = _order(returns, [trees[row] for row in left])
        first = int(left[order[0]])
        start, made, tree = tree, {edits[first]}, trees[first]
        mean = float(returns[order[0]].mean())
        line = min(base, mean)
        yield tree, mean, spent
        failed = 0
        for row in left[order[1:]].tolist():
            both = replace(start, nodes=_edited(start.nodes, {*made, edits[row]})).pruned()
            if len(both) >= len(tree):
                continue
            own, spent = float(_means([both], runner, seeds)[0]), spent + len(seeds)
            if own >= line:
                tree, mean = both, own
                made.add(edits[row])
                yield tree, mean, spent
            elif (failed := failed + 1) == _TRIED:
                break
        base = mean


def _means(trees: Sequence[DecisionTree], runner: Runner, seeds: Ints) -> Floats:
    found: Floats = np.nan_to_num(paired_returns(trees, runner, seeds).mean(axis=1), nan=-np.inf)
    return found


def _order(returns: Floats, trees: Sequence[DecisionTree]) -> list[int]:
    means = returns.mean(axis=1)
    return sorted(range(len(trees)), key=lambda row: (-means[row], len(trees[row]), row))


def _distinct(tree: DecisionTree) -> tuple[list[Edit], list[DecisionTree]]:
    """The cuts of a tree whose results differ, and these."""
    found: dict[DecisionTree, Edit] = {}
    for place, _, _ in tree.decisions():
        for left in (True, False):
            cut = replace(tree, nodes=_edited(tree.nodes, {(place, left)})).pruned()
            if len(cut) < len(tree):
                found.setdefault(cut, (place, left))
    return list(found.values()), list(found)


def _edited(nodes: Nodes, edits: set[Edit], place: int = 0) -> Nodes:
    """A tree in which decisions have given way to one of their sides."""
    node, jump = nodes[0]
    if isinstance(node, Leaf):
        return nodes
    left, right = nodes[1:jump], nodes[jump:]
    if (place, True) in edits:
        return _edited(left, edits, place + 1)
    if (place, False) in edits:
        return _edited(right, edits, place + jump)
    left, right = _edited(left, edits, place + 1), _edited(right, edits, place + jump)
    return ((node, 1 + len(left)), *left, *right)
