"""From an environment to a policy that people can read: search, choose on fresh seeds, test on unseen ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.arrays import Floats
from discodso.checks import require, require_integer, require_number, require_one_of
from discodso.design import Design
from discodso.disco import DisCoSettings
from discodso.errors import EvaluationError
from discodso.method import MethodSettings
from discodso.policy import PolicySettings
from discodso.result import HistoryRow, Ranking, Result, Scored, StopReason
from discodso.search import search
from discodso.task import Task
from discodso.tasks.control.environments import Interface, as_environment, describe
from discodso.tasks.control.episodes import Runner, open_runner
from discodso.tasks.control.objective import Racing, TreeObjective
from discodso.tasks.control.simulators import Forest
from discodso.tasks.control.task import (
    EPISODES,
    MAX_NODES,
    RESOLUTION,
    search_seeds,
    tree_space,
    tree_task,
    validation_seeds,
)
from discodso.tasks.control.tree_policy import TreePolicy

TEST_SEEDS = range(1000)
PRESETS = ("tuned", "paper")
TYPICAL_NODES = 13  # the tuned preset prefers trees of about this size, else most runs end with three nodes
_CANDIDATES = 100  # distinct designs that go to validation
_ELITES = 20  # with which a restart begins
_FINALISTS = 10  # of them that get more episodes
_ROUNDS = (1, 10, 50)  # episodes for all, for the finalists, and to break ties, as multiples of N

Progress = Callable[[HistoryRow, Ranking], None]


def paper_settings() -> DisCoSettings:
    """The paper's settings; thresholds begin around the middle of their ranges, which the paper leaves open."""
    return DisCoSettings(policy=PolicySettings(shift=0.5))


def tuned_settings() -> DisCoSettings:
    """What measured best on tree tasks; docs/policies.md has the figures.

    Thresholds begin near the middle of their range, within a tenth of it, and close in on the best ones; the means
    are emitted in that unit, because otherwise their gradients drown those of the tokens. The best 50 trees, no
    more than two of one structure, are imitated ten steps for each batch, since episodes cost more than steps.
    """
    return DisCoSettings(
        learning_rate=0.005,
        risk_factor=0.1,
        entropy_coefficient=0.1,
        queue_size=50,
        queue_weight=1.0,
        queue_niche=2,
        queue_steps=10,
        policy=PolicySettings(scale=0.1, learn_scale=True, min_scale=0.02, shift=0.5, mean_scale=0.1),
    )


@dataclass(frozen=True)
class Candidate:
    """A tree that went to validation: its reward in the search, then the mean of fresh episodes and its error."""

    policy: TreePolicy
    search_reward: float
    mean: float
    error: float
    episodes: int


@dataclass(frozen=True, repr=False)
class PolicySearch:
    """What `search_policy` found.

    Attributes:
        policy: the winner, pruned; chosen on fresh seeds from the best designs of the search.
        test_returns: float[n], its returns for `test_seeds`, which neither search nor choice have seen.
        test_seeds: those seeds.
        candidates: the finalists of the choice, best first.
        interface: the environment, its features, ranges and actions.
        search: the search itself; rewards there are noisy, and the best of noisy rewards is too high.
        calls, episodes: objective calls of the search, and the episodes that they took.
        validation_episodes: for the choice, counted apart.
        seconds: of all of it.
    """

    policy: TreePolicy
    test_returns: Floats
    test_seeds: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    interface: Interface
    search: Result
    validation_episodes: int

    @property
    def calls(self) -> int:
        """Objective calls of the search."""
        return self.search.calls

    @property
    def episodes(self) -> int:
        """Episodes of the search."""
        return int(self.search.cost or 0)

    @property
    def test_mean(self) -> float:
        """Mean return over the test seeds."""
        return float(self.test_returns.mean())

    @property
    def test_error(self) -> float:
        """Standard error of that mean."""
        return float(self.test_returns.std(ddof=1) / math.sqrt(len(self.test_returns)))

    def __repr__(self) -> str:
        return (
            f"<PolicySearch: {self.interface.environment}, {len(self.policy)} nodes, test mean "
            f"{self.test_mean:.2f} +- {self.test_error:.2f} over {len(self.test_returns)} seeds, "
            f"{self.calls} calls, {self.episodes} episodes>"
        )

    def summary(self) -> dict[str, Any]:
        """The figures, for JSON."""
        return {
            "environment": self.interface.environment.to_dict(),
            "test_mean": self.test_mean,
            "test_error": self.test_error,
            "test_seeds": [self.test_seeds[0], self.test_seeds[-1]],
            "nodes": len(self.policy),
            "calls": self.calls,
            "episodes": self.episodes,
            "validation_episodes": self.validation_episodes,
            "failures": self.search.failure_count,
            "seconds": self.search.seconds,
            "stop": self.search.stop.name.lower(),
            "seed": self.search.seed,
            "interface": self.interface.to_dict(),
        }


def search_policy(
    environment: Any,
    *,
    calls: int = 10_000,
    episodes: int = EPISODES,
    seed: int = 0,
    max_nodes: int = MAX_NODES,
    workers: int = 1,
    preset: str = "tuned",
    method: MethodSettings | None = None,
    racing: Racing | bool | None = None,
    restart_after: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    ranges: Mapping[str, Sequence[float]] | None = None,
    resolution: float = RESOLUTION,
    target: float | None = None,
    time_limit: float | None = None,
    test_seeds: Sequence[int] = TEST_SEEDS,
    callback: Progress | None = None,
) -> PolicySearch:
    """Search for a decision tree that acts well in a Gymnasium environment.

    Args:
        environment: id, such as "CartPole-v1".
        calls: objective calls, each the mean return of a tree over fresh episodes.
        episodes: N, episodes for one call.
        seed: the same seed gives the same policy, whatever the number of workers.
        max_nodes: decisions and leaves of the largest tree.
        workers: processes, or threads where the environment has a compiled simulator.
        preset: "tuned" for what measured best, "paper" for the paper's settings and protocol.
        method: settings of the method in place of the preset's.
        racing: cut poor designs after few episodes; True, False, or how. By default as the preset has it: on for
            "tuned", off for "paper".
        restart_after: after so many calls without a better design go on with a fresh network, which begins with
            the best trees of different structure so far, evaluated anew; None for never.
        arguments: of the environment, for `gymnasium.make`.
        ranges: (low, high) of thresholds by the name or number of a feature, in place of the found ones.
        resolution: h, closest distance of thresholds on one path, as a share of the range.
        target: stop when a mean over N episodes reaches this.
        time_limit: seconds for the search.
        test_seeds: for the final score; not those from 2^29 on, which search and choice use.
        callback: called after every batch with its history row and the best designs so far.

    Ctrl-C ends the search; what was found until then is still chosen from and tested.
    """
    require_one_of("preset", preset, PRESETS)
    require("racing", racing, racing is None or isinstance(racing, (bool, Racing)), "True, False or a Racing")
    require_integer("calls", calls, 1)
    require_integer("seed", seed, 0)
    if restart_after is not None:
        require_integer("restart_after", restart_after, 1)
    if time_limit is not None:
        require_number("time_limit", time_limit, above=0)
    tests = tuple(test_seeds)
    require("test_seeds", test_seeds, len(tests) >= 2, "at least two seeds")
    chosen = method or (tuned_settings() if preset == "tuned" else paper_settings())
    race = _racing(racing, preset, chosen)
    interface = describe(as_environment(environment, arguments), ranges, seed)
    tuned = preset == "tuned"
    typical = min(TYPICAL_NODES, max_nodes) if tuned else None
    space = tree_space(interface, max_nodes, resolution, tuned, typical)
    with open_runner(interface.environment, workers, search_seeds(seed), interface.max_steps) as runner:
        task = tree_task(interface, runner, space, episodes, race, seed)
        result = _search(task, chosen, calls, seed, restart_after, target, time_limit, callback)
        if result.best is None:
            reason = result.failures[0].reason if result.failures else result.sentence
            raise EvaluationError(f"no episode of {interface.environment} succeeded: {reason}")
        assert isinstance(task.batch_objective, TreeObjective)
        candidates, spent = _validate(task.batch_objective, result.top, runner, episodes, seed)
        winner = candidates[0].policy
        returns, reasons = runner.returns(
            Forest.of([winner]), np.zeros(len(tests), np.int64), np.array(tests, np.int64)
        )
    if reasons:
        raise EvaluationError(f"the test of the best policy failed: {next(iter(reasons.values()))}")
    return PolicySearch(winner, returns, tests, candidates, interface, result, spent)


def _racing(given: Racing | bool | None, preset: str, method: MethodSettings) -> Racing | None:
    if isinstance(given, Racing):
        return given
    wanted = preset == "tuned" if given is None else given
    return Racing(share=getattr(method, "risk_factor", Racing().share)) if wanted else None


def _search(
    task: Task,
    method: MethodSettings,
    calls: int,
    seed: int,
    restart_after: int | None,
    target: float | None,
    time_limit: float | None,
    callback: Progress | None,
) -> Result:
    """One search, or several in a row that share budget, history and ranking, each with a fresh network."""
    parts: list[Result] = []
    while True:
        done = sum(part.calls for part in parts)
        seconds = sum(part.seconds for part in parts)
        result = search(
            task,
            budget=calls - done,
            seed=seed if not parts else _restart_seed(seed, len(parts)),
            method=method,
            initial_designs=_elites(parts),
            target=target,
            patience=restart_after,
            time_limit=None if time_limit is None else max(0.001, time_limit - seconds),
            top=_CANDIDATES,
            callback=None if callback is None else _continued(callback, parts),
        )
        parts.append(result)
        spent = done + result.calls >= calls
        if result.stop is not StopReason.PATIENCE or spent:
            return _joined(parts, seed)


def _elites(parts: Sequence[Result]) -> list[Design]:
    """The best designs of earlier parts, one for each structure."""
    best: dict[tuple[str, ...], Scored] = {}
    for scored in sorted((s for part in parts for s in part.top), key=lambda s: -s.reward):
        best.setdefault(scored.design.tokens, scored)
    return [scored.design for scored in best.values()][:_ELITES]


def _restart_seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])


def _continued(callback: Progress, parts: Sequence[Result]) -> Progress:
    """A callback that goes on counting from the earlier parts."""

    def report(row: HistoryRow, ranking: Ranking) -> None:
        callback(_shifted(row, parts), ranking)

    return report


def _shifted(row: HistoryRow, parts: Sequence[Result]) -> HistoryRow:
    earlier = [part.best.reward for part in parts if part.best is not None]
    return replace(
        row,
        calls=row.calls + sum(part.calls for part in parts),
        best=max([*earlier, *([] if row.best is None else [row.best])], default=None),
        failures=row.failures + sum(part.failure_count for part in parts),
        cost=(row.cost or 0.0) + sum(part.cost or 0.0 for part in parts),
        seconds=row.seconds + sum(part.seconds for part in parts),
    )


def _joined(parts: Sequence[Result], seed: int) -> Result:
    """Several searches as one."""
    history: list[HistoryRow] = []
    top: list[Scored] = []
    for number, part in enumerate(parts):
        before = sum(p.calls for p in parts[:number])
        history += [_shifted(row, parts[:number]) for row in part.history]
        top += [replace(scored, call=scored.call + before) for scored in part.top]
    top = sorted({s.design: s for s in reversed(top)}.values(), key=lambda s: (-s.reward, s.call))
    kept = tuple(top[:_CANDIDATES])
    return Result(
        best=kept[0] if kept else None,
        top=kept,
        history=tuple(history),
        calls=sum(part.calls for part in parts),
        failure_count=sum(part.failure_count for part in parts),
        failures=tuple(failure for part in parts for failure in part.failures),
        stop=parts[-1].stop,
        detail=parts[-1].detail,
        seconds=sum(part.seconds for part in parts),
        seed=seed,
        cost=sum(part.cost or 0.0 for part in parts),
    )


def _validate(
    objective: TreeObjective, top: Sequence[Scored], runner: Runner, episodes: int, seed: int
) -> tuple[tuple[Candidate, ...], int]:
    """Finalists on fresh seeds, best first, and the episodes that took.

    All candidates get N episodes, the best of them ten times as many on other seeds; there the winner is chosen.
    Those that tie for the first place, as perfect ones do, get another fifty times N. At equal means the smaller
    tree goes first.
    """
    rewards: dict[TreePolicy, float] = {}
    for scored in top:
        rewards.setdefault(objective.policy(scored.design).pruned(), scored.reward)
    seeds = np.array(validation_seeds(seed, sum(_ROUNDS) * episodes), np.int64)
    first, second, third = np.split(seeds, np.cumsum(_ROUNDS)[:-1] * episodes)
    entries = [Candidate(policy, reward, 0.0, 0.0, 0) for policy, reward in rewards.items()]
    ranked = _ranked(entries, runner, first)
    finalists = _ranked(ranked[:_FINALISTS], runner, second)
    spent = len(ranked) * len(first) + len(finalists) * len(second)
    tied = [candidate for candidate in finalists if candidate.mean == finalists[0].mean]
    if len(tied) > 1:
        others = finalists[len(tied) :]
        finalists = _ranked(tied, runner, third) + others
        spent += len(tied) * len(third)
    return tuple(finalists), spent


def _ranked(candidates: Sequence[Candidate], runner: Runner, seeds: Any) -> list[Candidate]:
    """Candidates with their mean over the same seeds and its error, best first, small ones before large."""
    forest = Forest.of([candidate.policy for candidate in candidates])
    tree = np.repeat(np.arange(len(candidates)), len(seeds))
    returns, _ = runner.returns(forest, tree, np.tile(seeds, len(candidates)))
    table = returns.reshape(len(candidates), -1)
    means = np.where(np.isfinite(table).all(axis=1), table.mean(axis=1), -np.inf)  # failed episodes are NaN
    errors = table.std(axis=1, ddof=1) / math.sqrt(len(seeds))
    measured = [
        replace(candidate, mean=float(mean), error=float(error), episodes=len(seeds))
        for candidate, mean, error in zip(candidates, means, errors, strict=True)
    ]
    return sorted(measured, key=lambda c: (-c.mean, len(c.policy)))
