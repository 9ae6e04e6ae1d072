"""The choice of a policy on fresh seeds, from the best designs of a search, and its test on unseen ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.errors import EvaluationError
from discodso.run.result import Result, Scored
from discodso.space.space import Space
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.episodes import Runner, paired_returns
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.tree import Forest
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import validation_seeds

_FINALISTS = 10  # trees that get more episodes
_TRIED = 3  # cuts that look best on few episodes, and are then tried on many
_PERFECT = 30  # of those that tie for the first place with episodes that all end alike
# Episodes for all, for the finalists, and for perfect ones, as multiples of N; for trimming likewise.
_ROUNDS = (1, 10, 100)
# Where N is more than the first of these, the choice counts N as that, or as the episodes of the search over the
# second, if that is more: it takes about 300 N, and should not take longer than a search that races.
_MOST, _PART = 200, 5000


@dataclass(frozen=True)
class Finalist:
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
        policy: the winner, chosen on fresh seeds from the best designs of the search, then pruned or trimmed.
        test_returns: float[n], its returns for `test_seeds`, which neither search nor choice have seen.
        test_seeds: those seeds.
        finalists: of the choice, best first.
        interface: the environment, its features, ranges and actions.
        search: the search itself; rewards there are noisy, and the best of noisy rewards is too high.
        calls, episodes: objective calls of the search, and the episodes that they took.
        validation_episodes: for the choice and for trimming, counted apart.
        space: of the trees that were searched.
    """

    policy: TreePolicy
    test_returns: Floats
    test_seeds: tuple[int, ...]
    finalists: tuple[Finalist, ...]
    interface: Interface
    search: Result
    validation_episodes: int
    space: Space

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


def choose_and_test(
    objective: TreeObjective, result: Result, test_seeds: tuple[int, ...], seed: int, trimmed: bool = False
) -> PolicySearch:
    """What came of a search: the best of its best designs, trimmed if asked for, and how well it does."""
    interface = objective.interface
    if result.best is None:
        reason = result.failures[0].reason if result.failures else result.sentence
        raise EvaluationError(f"no episode of {interface.environment} succeeded: {reason}")
    rounds = _seeds(_round(objective.episodes, result.cost or 0.0), seed)
    finalists, spent = _validate(objective, result.top, rounds[:3])
    winner = finalists[0].policy
    if trimmed:
        winner, more = trim(winner, objective.runner, *rounds[3:])
        spent += more
    returns, reasons = objective.runner.returns(
        Forest.of([winner]), np.zeros(len(test_seeds), np.int64), np.array(test_seeds, np.int64)
    )
    if reasons:
        raise EvaluationError(f"the test of the best policy failed: {next(iter(reasons.values()))}")
    return PolicySearch(winner, returns, test_seeds, finalists, interface, result, spent, objective.space)


def _round(episodes: int, spent: float) -> int:
    """What counts as N, after a search that has taken so many episodes."""
    return min(episodes, max(_MOST, int(spent) // _PART))


def _seeds(episodes: int, seed: int) -> list[Ints]:
    """Of the three rounds of the choice, then of those of trimming."""
    counts = np.array(2 * _ROUNDS) * episodes
    return np.split(np.array(validation_seeds(seed, int(counts.sum())), np.int64), np.cumsum(counts)[:-1])


def _validate(
    objective: TreeObjective, top: Sequence[Scored], rounds: Sequence[Ints]
) -> tuple[tuple[Finalist, ...], int]:
    """Finalists on fresh seeds, best first, and the episodes that took.

    All designs get N episodes (see `_MOST`), the best of them ten times as many on other seeds; there the
    winner is chosen. At equal means the smaller tree goes first. Where that is the mean of episodes which all end
    alike, as those of perfect trees do, the smallest tree wins that ends a hundred times N more likewise.
    """
    rewards: dict[TreePolicy, float] = {}
    for scored in top:
        rewards.setdefault(objective.policy(scored.design).pruned(), scored.reward)
    runner, (first, second, third) = objective.runner, rounds
    entries = [Finalist(policy, reward, 0.0, 0.0, 0) for policy, reward in rewards.items()]
    ranked = _ranked(entries, runner, first)
    chosen = max(_FINALISTS, min(_PERFECT, len(_perfect(ranked))))
    finalists = _ranked(ranked[:chosen], runner, second)
    spent = len(rewards) * len(first) + len(ranked[:chosen]) * len(second)
    perfect = _perfect(finalists)
    for row, finalist in enumerate(perfect if len(perfect) > 1 else []):
        (finalists[row],) = _ranked([finalist], runner, third)
        spent += len(third)
        if finalists[row].mean == finalist.mean:
            break
    finalists.sort(key=lambda finalist: (-finalist.mean, len(finalist.policy)))
    return tuple(finalists), spent


def _perfect(ranked: Sequence[Finalist]) -> list[Finalist]:
    return [finalist for finalist in ranked if finalist.mean == ranked[0].mean and finalist.error == 0]


def _ranked(finalists: Sequence[Finalist], runner: Runner, seeds: Any) -> list[Finalist]:
    """Finalists with their mean over the same seeds and its error, best first, small ones before large.

    Of those with the same returns, seed by seed, which differ in what is never visited, the smallest stays; unless
    all their episodes end alike, as those of perfect policies do, which says little.
    """
    table = paired_returns([finalist.policy for finalist in finalists], runner, seeds)
    means, errors = _means(table), table.std(axis=1, ddof=1) / math.sqrt(len(seeds))
    measured = [
        replace(finalist, mean=float(mean), error=float(error), episodes=len(seeds))
        for finalist, mean, error in zip(finalists, means, errors, strict=True)
    ]
    smallest: dict[bytes, Finalist] = {}
    rows = sorted(range(len(measured)), key=lambda row: (-measured[row].mean, len(measured[row].policy)))
    for row in rows:
        alike = len(set(table[row].tolist())) == 1
        smallest.setdefault(row.to_bytes(4) if alike else table[row].tobytes(), measured[row])
    return list(smallest.values())


def _means(table: Floats) -> Floats:
    """Of each row, -inf where an episode failed, whose return is NaN."""
    means: Floats = np.nan_to_num(table.mean(axis=1), nan=-np.inf)
    return means


def trim(policy: TreePolicy, runner: Runner, few: Ints, many: Ints, more: Ints) -> tuple[TreePolicy, int]:
    """The tree without what earns nothing, and the episodes that it took to find out.

    `DecisionTree.pruned` keeps every action; this looks at returns. A decision gives way to one of its sides if
    the mean return does not fall by more than the standard error of that fall, measured on the same episodes. So
    nodes that are never visited go, and those that earn nothing. All steps together are held to the tree at the
    beginning, so that small losses do not add up.

    All cuts are compared on the few seeds; the best of them, then all that change no return there, must hold
    on the many. Where all episodes end alike, as those of perfect policies do, there is no error to go by:
    they must end so on more seeds, too.
    """
    policy = policy.pruned()
    base, spent = paired_returns([policy], runner, many)[0], len(many)
    perfect = len(set(base.tolist())) == 1
    while cuts := policy.cuts():
        current, *changed = paired_returns([policy, *cuts], runner, few)
        spent += (1 + len(cuts)) * len(few)
        screened = _means(np.array(changed))
        order = sorted(range(len(cuts)), key=lambda row: (-screened[row], len(cuts[row])))
        idle = [row for row in order[_TRIED:] if np.array_equal(changed[row], current)]
        for row in [*order[:_TRIED], *idle]:
            spent += len(many)
            fall = base - paired_returns([cuts[row]], runner, many)[0]
            holds = fall.mean() <= fall.std(ddof=1) / math.sqrt(len(fall))  # never with NaN
            if holds and perfect:
                spent += len(more)
                holds = (paired_returns([cuts[row]], runner, more) == base[0]).all()
            if holds:
                policy = cuts[row]
                break
        else:
            break
    return policy, spent
