"""The choice of a policy on fresh seeds, from the best designs of a search, and its test on unseen ones.

All of it keeps to the time limit of the run: what is left is shared out. Where it is not enough fewer trees get
fewer episodes and the test has fewer seeds; a note says so.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.errors import EvaluationError
from discodso.run.clock import Clock
from discodso.run.result import Result, Scored
from discodso.space.space import Space
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.episodes import paired_returns
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.timed import (
    Hurried,
    Left,
    OutOfTimeError,
    Runner,
    TimedRunner,
    paired_within,
    timed,
)
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
_FEW = 8  # episodes for a tree, below which rather fewer trees are compared
_AFTER = 0.25  # of the time limit, for all that comes after the search, at most
_REST = 0.4  # of what is left of it when the search begins, likewise
_WRITING = 1.0  # seconds for pictures and files
_LEAST = 2  # episodes of a test
_ALLOWED = 0.1  # of the spread of returns, or of what decisions earn, by which a trimmed tree may be worse
_CERTAIN = 1.645  # standard errors: the upper end of a 95 % interval to one side
_MEETING = 1000  # fresh episodes of both trees, at least
_SHORT = 0.02  # of the time limit, for a test, even if pictures took longer than was thought
_TESTING = 0.35  # of the time after the search: for the test at most; then, of the rest:
_CHOOSING, _TRIMMING = (
    0.5,
    0.8,
)  # until which the choice and the trimming are to end; the front has what is left


@dataclass(frozen=True)
class Finalist:
    """A tree that went to validation: its reward in the search, then the mean of fresh episodes and its error.

    Where there was no time for two episodes the mean is that of the search, and there is no error (NaN). Where
    features have prices the reward of the search is less what the tree pays, the `price`; the mean is not.
    """

    policy: TreePolicy
    search_reward: float
    mean: float
    error: float
    episodes: int
    price: float = 0.0

    @property
    def worth(self) -> float:
        """The mean less the price."""
        return self.mean - self.price


@dataclass(frozen=True)
class Phase:
    """A part of a run, with what it took."""

    name: str
    episodes: int
    seconds: float


@dataclass(frozen=True)
class Trimming:
    """A tree before and after it was trimmed, over the same fresh episodes.

    Attributes:
        whole, trimmed: the trees.
        fall: by how much the mean return of the trimmed one is lower.
        error: the standard error of that.
        spread: the standard deviation of the returns of the whole tree.
        earned: by how much the mean return of the whole tree is above that of its best leaf alone.
        episodes: of each.
    """

    whole: TreePolicy
    trimmed: TreePolicy
    fall: float
    error: float
    spread: float
    earned: float
    episodes: int

    @property
    def allowed(self) -> float:
        """How large the fall may be: a tenth of the spread of returns, or of what decisions earn, the smaller."""
        return _ALLOWED * max(min(self.spread, self.earned), 0.0)

    @property
    def holds(self) -> bool:
        """Whether there is no fall, or it is at most that with a certainty of 95 %."""
        return self.fall <= 0 or self.fall + _CERTAIN * self.error <= self.allowed

    @property
    def policy(self) -> TreePolicy:
        """The trimmed tree if it holds, else the whole one."""
        return self.trimmed if self.holds else self.whole

    @property
    def other(self) -> TreePolicy:
        """The tree that was not taken."""
        return self.whole if self.holds else self.trimmed

    @property
    def sentence(self) -> str:
        """For people."""
        sizes = f"from {len(self.whole)} to {len(self.trimmed)} nodes"
        fresh = f"over {self.episodes} fresh episodes"
        if self.fall == self.error == 0:
            return f"trimmed {sizes}: all returns stay the same {fresh}"
        change = f"{abs(self.fall):.2g} ± {self.error:.2g} {fresh}"
        if self.fall <= 0:
            return f"trimmed {sizes}: the mean return rises by {change}"
        end = "so it was trimmed" if self.holds else "so it was left whole"
        allowed = f"where {self.allowed:.2g} is allowed with 95 % certainty: {end}"
        return f"trimmed {sizes} the mean return falls by {change}, {allowed}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        nodes = {"nodes_before": len(self.whole), "nodes_after": len(self.trimmed)}
        figures = {name: getattr(self, name) for name in ("fall", "error", "earned", "allowed", "episodes")}
        return {**nodes, **{name: _finite(value) for name, value in figures.items()}, "chosen": self.holds}


@dataclass(frozen=True, repr=False)
class PolicySearch:
    """What `search_policy` found.

    Attributes:
        policy: the winner, chosen on fresh seeds from the best designs of the search, then pruned or trimmed.
        test_returns: float[n], its returns for `test_seeds`, which neither search nor choice have seen.
        test_seeds: those seeds; without any that failed, or that there was no time for.
        test_scores: float[n], for the same seeds what the search was for, where that is a discounted return or a
            score of one's own; empty else.
        test_failures: for each seed of the test that failed, what happened.
        finalists: of the choice, best first.
        front: the best tree of each size that no smaller one is as good as, and the policy itself, by rising size,
            over the episodes of the finalists. Its smaller trees are finalists, or cut out of the policy.
        interface: the environment, its features, ranges and actions.
        search: the search itself; rewards there are noisy, and the best of noisy rewards is too high.
        calls, episodes: objective calls of the search, and the episodes that they took.
        validation_episodes: for the choice and for trimming, counted apart.
        space: of the trees that were searched.
        phases: what each part of the run took, in episodes and seconds.
        notes: what was odd, such as a test that was cut short.
        begun: what the search began with, and what that took, such as episodes of a teacher; empty for nothing.
        trimming: the winner and what trimming made of it, and which of them is the policy; None if it was not
            trimmed, or nothing could be cut.
    """

    policy: TreePolicy
    test_returns: Floats
    test_seeds: tuple[int, ...]
    finalists: tuple[Finalist, ...]
    interface: Interface
    search: Result
    validation_episodes: int
    space: Space
    test_failures: tuple[tuple[int, str], ...] = ()
    phases: tuple[Phase, ...] = ()
    notes: tuple[str, ...] = ()
    begun: Mapping[str, Any] = field(default_factory=dict)
    trimming: Trimming | None = None
    front: tuple[Finalist, ...] = ()
    test_scores: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def calls(self) -> int:
        """Objective calls of the search."""
        return self.search.calls

    @property
    def episodes(self) -> int:
        """Episodes of the search."""
        return int(self.search.cost or 0)

    @property
    def is_tested(self) -> bool:
        """Whether the test is done."""
        return len(self.test_seeds) + len(self.test_failures) > 0

    @property
    def test_mean(self) -> float:
        """Mean return over the test seeds; NaN before the test, and if all of it failed."""
        return float(self.test_returns.mean()) if len(self.test_returns) else math.nan

    @property
    def test_error(self) -> float:
        """Standard error of that mean; NaN for fewer than two episodes."""
        count = len(self.test_returns)
        return float(self.test_returns.std(ddof=1) / math.sqrt(count)) if count > 1 else math.nan

    @property
    def seconds(self) -> float:
        """Of all phases."""
        return sum(phase.seconds for phase in self.phases)

    def __repr__(self) -> str:
        return (
            f"<PolicySearch: {self.interface.environment}, {len(self.policy)} nodes, test mean "
            f"{self.test_mean:.2f} +- {self.test_error:.2f} over {len(self.test_returns)} seeds, "
            f"{self.calls} calls, {self.episodes} episodes>"
        )

    def summary(self) -> dict[str, Any]:
        """The figures, for JSON."""
        tested = len(self.test_seeds) > 0
        return {
            "environment": self.interface.environment.to_dict(),
            "test_mean": _finite(self.test_mean),
            "test_error": _finite(self.test_error),
            "test_seeds": [self.test_seeds[0], self.test_seeds[-1]] if tested else None,
            "test_count": len(self.test_seeds),
            "test_failures": [list(failure) for failure in self.test_failures],
            **({"test_score": _finite(float(self.test_scores.mean()))} if len(self.test_scores) else {}),
            "nodes": len(self.policy),
            "calls": self.calls,
            "episodes": self.episodes,
            "validation_episodes": self.validation_episodes,
            "failures": self.search.failure_count,
            "seconds": self.seconds,
            "phases": [asdict(phase) for phase in self.phases],
            "notes": list(self.notes),
            "begun": dict(self.begun),
            "trimming": None if self.trimming is None else self.trimming.to_dict(),
            "stop": self.search.stop.name.lower(),
            "seed": self.search.seed,
            "interface": self.interface.to_dict(),
        }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


class _Course:
    """What comes after a search: phase after phase, each with its share of the time that is left."""

    def __init__(self, runner: TimedRunner, clock: Clock, phases: Sequence[Phase], tests: int) -> None:
        self.runner, self.clock, self.phases, self.notes = runner, clock, list(phases), list[str]()
        left = max(clock.left - 2 * _writing(clock), 0.0)  # before the test, and with it
        testing = max(min(tests * runner.pace, _TESTING * left), _LEAST * runner.pace)
        now, rest = clock.seconds, left - testing
        self._short_test = 0.0 if clock.limit is None else min(testing, _SHORT * clock.limit)
        parts = _CHOOSING * rest, _TRIMMING * rest, rest, left + _writing(clock)
        ends = (math.inf,) * 4 if math.isinf(left) else tuple(now + part for part in parts)
        self._choice_end, self._trim_end, self._front_end, self._end = ends

    def keep(self, seconds: float) -> None:
        """Keep so many seconds for pictures and files after the test, if that is more than was thought."""
        now = self.clock.seconds
        self._end = max(min(self._end, now + self.clock.left - seconds), now + self._short_test)

    def note(self, words: str) -> None:
        """Say something that is to be kept."""
        self.clock.say(words)
        self.notes.append(words)

    def for_choice(self) -> float:
        """Seconds."""
        return self._choice_end - self.clock.seconds

    def for_trimming(self) -> float:
        """Seconds."""
        return self._trim_end - self.clock.seconds

    def for_front(self) -> float:
        """Seconds."""
        return self._front_end - self.clock.seconds

    def for_test(self) -> float:
        """Seconds."""
        return self._end - self.clock.seconds

    def begin(self, name: str, words: str) -> Callable[[], None]:
        """Say what phase begins; what this gives ends it."""
        self.clock.say(f"{name}: {words}")
        began, before = time.monotonic(), self.runner.episodes

        def end() -> None:
            self.phases.append(Phase(name, self.runner.episodes - before, time.monotonic() - began))

        return end


def _writing(clock: Clock) -> float:
    return 0.0 if clock.limit is None else min(_WRITING, 0.05 * clock.limit)


def seconds_after(
    clock: Clock, runner: TimedRunner, episodes: int, tests: int, trimmed: bool, prepared: float
) -> float:
    """What choice, trimming and test of a run with a time limit need, as far as its search, which began after so
    many seconds, can tell; it may not be granted in full."""
    assert clock.limit is not None
    each = _round(episodes, runner.episodes)
    wanted = (3 + trimmed) * _TOP * each + tests
    most = min(_AFTER * clock.limit, _REST * (clock.limit - prepared))
    return max(min(most, wanted * runner.pace + 2 * _writing(clock)), 0.0)


_TOP = 100  # designs of a search that go to the choice, about


def choose_and_test(
    objective: TreeObjective,
    result: Result,
    test_seeds: tuple[int, ...],
    seed: int,
    trimmed: bool = False,
    clock: Clock | None = None,
    phases: Sequence[Phase] = (),
    notes: Sequence[str] = (),
    write: Callable[[PolicySearch], None] = lambda found: None,
    begun: Mapping[str, Any] | None = None,
    plain: TimedRunner | None = None,
) -> PolicySearch:
    """What came of a search: the best of its best designs, trimmed if asked for, and how well it does.

    Args:
        objective: of the search.
        result: what it has found.
        test_seeds: for the score.
        seed: of the run.
        trimmed: whether what earns nothing is cut out.
        clock: of the run.
        phases, notes: of the run until now.
        write: is told what is found before the test, and again with it.
        begun: what the search began with.
        plain: runs episodes for their returns, where the objective is for scores.
    """
    interface = objective.interface
    if result.best is None:
        reasons = Counter(failure.reason for failure in result.failures)
        if not reasons:
            raise EvaluationError(
                f"the search for {interface.environment} ended before a tree was rated, so that there is none to "
                "choose; resume it"
            )
        raise EvaluationError(
            f"no episode of {interface.environment} succeeded: {reasons.most_common(1)[0][0]}"
        )
    runner = timed(objective.runner)
    clock = clock or Clock()
    course = _Course(runner, clock, phases, len(test_seeds))
    rounds = _seeds(_round(objective.episodes, result.cost or 0.0), seed)
    finalists, spent = _validate(objective, result.top, rounds[:3], course)
    winner, trimming = finalists[0].policy, None
    if trimmed:
        winner, trimming, more = _trimmed(winner, course, rounds[3:])
        spent += more
    front = _front(objective, winner, finalists, rounds[:2], course)
    own = finalists, interface, result, spent, objective.space
    told = tuple(course.phases), (*notes, *course.notes), dict(begun or {}), trimming, front
    found = PolicySearch(winner, np.empty(0), (), *own, (), *told)
    before = clock.seconds
    write(found)
    course.keep(clock.seconds - before)
    course.phases.append(Phase("writing", 0, clock.seconds - before))
    end = course.begin("test", f"{len(test_seeds)} unseen seeds")
    returns, reasons_by_seed = _tested(winner, plain or runner, test_seeds, course)
    good, scores = np.isfinite(returns), np.empty(0)
    if plain is not None:
        given = Forest.of([winner]), np.zeros(good.sum(), np.int64), np.array(test_seeds)[: len(good)][good]
        scores, _ = runner.returns_within(*given, course.for_test, least=_LEAST)
        scores = scores[np.isfinite(scores)]
    end()
    found = replace(
        found,
        test_returns=returns[good],
        test_seeds=tuple(np.array(test_seeds[: len(returns)])[good].tolist()),
        test_failures=reasons_by_seed,
        test_scores=scores,
        phases=tuple(course.phases),
        notes=(*notes, *course.notes),
    )
    write(found)
    return found


def _trimmed(
    winner: TreePolicy, course: _Course, rounds: Sequence[Ints]
) -> tuple[TreePolicy, Trimming | None, int]:
    """The winner without what earns nothing, if that holds on fresh episodes, and the episodes that took."""
    before = course.runner.episodes
    few, many, more, meeting = rounds
    # About three cuts, and for each all ways to cut, and four of them with many episodes.
    ways = len(winner)
    wanted = len(many) + 3 * ((1 + ways) * len(few) + 4 * len(many)) + ways / 2 * len(few) + 3 * len(meeting)
    share = course.for_trimming() / max(wanted * course.runner.pace, 1e-9)
    if share < 1:
        few, many, meeting = (seeds[: int(share * len(seeds))] for seeds in (few, many, meeting))
        if len(few) < _FEW:
            course.note("the time limit left none for trimming: the tree is as it was chosen")
            return winner, None, 0
        course.note(f"the time limit made the trimming coarser: by {len(few)} and {len(many)} episodes")
    end = course.begin("trimming", f"a tree of {len(winner)} nodes")
    winner, trimming = winner.pruned(), None
    try:
        hurried = Hurried(course.runner, course.for_trimming)
        path, _ = trim(winner, hurried, few, many, more)
        if len(path) > 1:
            trimming = meet(path, hurried, few, meeting)
            winner = trimming.policy
    except OutOfTimeError:
        course.note("the time limit ended the trimming: the tree is as it was chosen")
    end()
    return winner, trimming, course.runner.episodes - before


def meet(path: Sequence[TreePolicy], runner: Runner, few: Ints, seeds: Ints) -> Trimming:
    """The first and the smallest tree of a path that holds, or else the last, over the same fresh episodes.

    Beside them stands the leaf of the first that alone is best over the few seeds.
    """
    whole = path[0]
    leaves = [replace(whole, nodes=((leaf, 0),)) for leaf in dict.fromkeys(whole.leaves)]
    alone = leaves[int(np.argmax(_means(paired_returns(leaves, runner, few))))]
    before, without = paired_returns([whole, alone], runner, seeds)
    spread, earned = float(before.std(ddof=1)), float((before - without).mean())

    def trimmed_to(tree: TreePolicy) -> Trimming:
        fall = before - paired_returns([tree], runner, seeds)[0]
        error = float(fall.std(ddof=1)) / math.sqrt(len(seeds))
        return Trimming(whole, tree, float(fall.mean()), error, spread, earned, len(seeds))

    last = trimmed_to(path[-1])
    others = (trimmed_to(tree) for tree in reversed(path[1:-1]))
    return next((own for own in chain([last], others) if own.holds), last)


def _front(
    objective: TreeObjective,
    winner: TreePolicy,
    finalists: Sequence[Finalist],
    rounds: Sequence[Ints],
    course: _Course,
) -> tuple[Finalist, ...]:
    """The best tree of each size that is better than all smaller ones, and the winner; by rising size.

    Smaller trees come from the winner: again and again that decision gives way to one of its sides which costs the
    least return over the episodes of the first round of the choice. They are compared with the finalists over
    those of the second.
    """
    few, many = rounds
    runner, path, tree = course.runner, [winner], winner
    end = course.begin("front", f"trees of fewer than {len(winner)} nodes")
    hurried = Hurried(runner, lambda: course.for_front() / 2)
    try:
        while cuts := tree.cuts():
            worths = _means(paired_returns(cuts, hurried, few)) - objective.charges(Forest.of(cuts))
            tree = max(zip(worths.tolist(), cuts, strict=True), key=lambda pair: (pair[0], -len(pair[1])))[1]
            path.append(tree)
    except OutOfTimeError:
        course.note("the time limit left the front without its smallest trees")
    known = {finalist.policy for finalist in finalists}
    new = [policy for policy in dict.fromkeys(path) if policy not in known]
    prices = objective.charges(Forest.of(new)).tolist() if new else []
    entries = [
        Finalist(policy, math.nan, math.nan, math.nan, 0, price)
        for policy, price in zip(new, prices, strict=True)
    ]
    met = _ranked(entries, runner, many, course.for_front) if entries else []
    end()
    return _best_of_sizes([*finalists, *(own for own in met if own.episodes)], winner)


def _best_of_sizes(trees: Sequence[Finalist], winner: TreePolicy) -> tuple[Finalist, ...]:
    found: list[Finalist] = []
    for own in sorted(trees, key=lambda own: (len(own.policy), -own.worth)):
        better = math.isfinite(own.worth) and all(own.worth > other.worth for other in found)
        if own.policy == winner or better:
            found.append(own)
    return tuple(found)


def _tested(
    policy: TreePolicy, runner: TimedRunner, seeds: tuple[int, ...], course: _Course
) -> tuple[Floats, tuple[tuple[int, str], ...]]:
    """Returns for the first seeds, as many as there is time for, and what failed; NaN there."""
    given = Forest.of([policy]), np.zeros(len(seeds), np.int64), np.array(seeds, np.int64)
    returns, reasons = runner.returns_within(*given, course.for_test, least=_LEAST)
    if len(returns) < len(seeds):
        course.note(f"the time limit left the test {len(returns)} of its {len(seeds)} seeds")
    failed = tuple((seeds[episode], reason) for episode, reason in sorted(reasons.items()))
    if failed:
        first, reason = failed[0]
        course.note(f"{len(failed)} of {len(returns)} episodes of the test failed; seed {first} {reason}")
    return returns, failed


def _round(episodes: int, spent: float) -> int:
    """What counts as N, after a search that has taken so many episodes."""
    return min(episodes, max(_MOST, int(spent) // _PART))


def _seeds(episodes: int, seed: int) -> list[Ints]:
    """Of the three rounds of the choice, then of those of trimming, and where the trimmed tree meets the whole."""
    counts = np.array([*(part * episodes for part in 2 * _ROUNDS), max(_MEETING, _ROUNDS[1] * episodes)])
    return np.split(np.array(validation_seeds(seed, int(counts.sum())), np.int64), np.cumsum(counts)[:-1])


def _affordable(trees: int, first: int, second: int, episodes: float) -> tuple[int, int, int, int]:
    """How many trees get how many episodes, and how many of them how many more: half of those affordable each."""
    finalists = min(trees, _FINALISTS)
    if trees * first + finalists * second <= episodes:
        return trees, first, finalists, second
    half = int(episodes / 2)
    trees = min(trees, max(2, half // min(first, _FEW)))
    finalists = min(trees, max(2, min(_FINALISTS, trees // 10)))
    return trees, min(first, max(2, half // trees)), finalists, min(second, max(2, half // finalists))


def _validate(
    objective: TreeObjective, top: Sequence[Scored], rounds: Sequence[Ints], course: _Course
) -> tuple[tuple[Finalist, ...], int]:
    """Finalists on fresh seeds, best first, and the episodes that took.

    All designs get N episodes (see `_MOST`), the best of them ten times as many on other seeds; there the
    winner is chosen. At equal means the smaller tree goes first. Where that is the mean of episodes which all end
    alike, as those of perfect trees do, the smallest tree wins that ends a hundred times N more likewise.
    """
    rewards: dict[TreePolicy, float] = {}
    for scored in top:
        rewards.setdefault(objective.policy(scored.design).pruned(), scored.reward)
    runner, (first, second, third), left = course.runner, rounds, course.for_choice
    prices = objective.charges(Forest.of(list(rewards))).tolist()
    entries = [
        Finalist(policy, reward, reward + price, math.nan, 0, price)
        for (policy, reward), price in zip(rewards.items(), prices, strict=True)
    ]
    pace, seconds = runner.pace, left()
    half = seconds / 2 if math.isfinite(seconds) else 0.0
    affordable = seconds / pace if pace > 0 and math.isfinite(seconds) else math.inf
    count, few, chosen, many = _affordable(len(entries), len(first), len(second), affordable)
    before = runner.episodes
    if math.isfinite(seconds) and (count == 1 or affordable < count * few + chosen * many):
        course.note("the time limit left no choice: the tree is the best of the search")
        return tuple(entries[:1]), 0
    end = course.begin(
        "choice", f"{count} trees, {few} fresh episodes each, then {many} for the best {chosen}"
    )
    if (count, few, many) != (len(entries), len(first), len(second)):
        wanted = f"{len(entries)} trees, {len(first)} and {len(second)} episodes"
        course.note(f"the time limit made the choice smaller: {wanted} without it")
    ranked = _ranked(entries[:count], runner, first[:few], lambda: left() - half)
    chosen = max(chosen, min(_PERFECT, len(_perfect(ranked)))) if math.isinf(left()) else chosen
    finalists = _ranked(ranked[:chosen], runner, second[:many], left)
    perfect = _perfect(finalists)
    for row, finalist in enumerate(perfect if len(perfect) > 1 else []):
        (finalists[row],) = _ranked([finalist], runner, third, left)
        if finalists[row].mean == finalist.mean:
            break
    finalists.sort(key=lambda finalist: (-finalist.worth, len(finalist.policy)))
    end()
    return tuple(finalists), runner.episodes - before


def _perfect(ranked: Sequence[Finalist]) -> list[Finalist]:
    return [finalist for finalist in ranked if finalist.mean == ranked[0].mean and finalist.error == 0]


def _ranked(finalists: Sequence[Finalist], runner: TimedRunner, seeds: Ints, left: Left) -> list[Finalist]:
    """Finalists with their mean over the same seeds and its error, best first, small ones before large.

    Of those with the same returns, seed by seed, which differ in what is never visited, the smallest stays; unless
    all their episodes end alike, as those of perfect policies do, which says little. As they were if there is no
    time for two episodes.
    """
    table = paired_within([finalist.policy for finalist in finalists], runner, seeds, left)
    count = table.shape[1]
    if count < 2:
        return list(finalists)
    means, errors = _means(table), table.std(axis=1, ddof=1) / math.sqrt(count)
    measured = [
        replace(finalist, mean=float(mean), error=float(error), episodes=count)
        for finalist, mean, error in zip(finalists, means, errors, strict=True)
    ]
    smallest: dict[bytes, Finalist] = {}
    rows = sorted(range(len(measured)), key=lambda row: (-measured[row].worth, len(measured[row].policy)))
    for row in rows:
        alike = len(set(table[row].tolist())) == 1
        smallest.setdefault(row.to_bytes(4) if alike else table[row].tobytes(), measured[row])
    return list(smallest.values())


def _means(table: Floats) -> Floats:
    """Of each row; -inf where an episode failed, whose return is NaN, unless some fail in every row."""
    means: Floats = table.mean(axis=1)
    if np.isnan(means).all() and not np.isnan(table).all(axis=1).any():
        means = np.nanmean(table, axis=1)
    return np.nan_to_num(means, nan=-np.inf)


def trim(
    policy: TreePolicy, runner: Runner, few: Ints, many: Ints, more: Ints
) -> tuple[list[TreePolicy], int]:
    """The tree, and step by step without what earns nothing, and the episodes that it took to find out.

    `DecisionTree.pruned` keeps every action; this looks at returns. A decision gives way to one of its sides if
    the mean return does not fall by more than the standard error of that fall, measured on the same episodes. So
    nodes that are never visited go, and those that earn nothing. All steps together are held to the tree at the
    beginning, so that small losses do not add up.

    All cuts are compared on the few seeds; the best of them, then all that change no return there, must hold
    on the many. Where all episodes end alike, as those of perfect policies do, there is no error to go by:
    they must end so on more seeds, too.
    """
    policy = policy.pruned()
    path, base, spent = [policy], paired_returns([policy], runner, many)[0], len(many)
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
                path.append(policy)
                break
        else:
            break
    return path, spent
