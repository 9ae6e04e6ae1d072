"""Decoupled search: a method proposes skeletons, an inner optimiser finds the values of each (paper, "Baselines").

The method is any that searches a space without values: DisCo gives Decoupled-RL, GP gives Decoupled-GP. Skeletons
are optimised many at a time, in rounds: `ask` gives the designs that all inner searches under way want next, so
that every inner call is an objective call like any other, counted, seeded, shared among workers and kept in the
folder of the run. The reward of a skeleton is the best that its inner search met.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice, pairwise

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import (
    require,
    require_integer,
    require_number,
    require_one_of,
    seed_sequence,
    settle_integers,
)
from discodso.base.compiled import compiled
from discodso.base.errors import DeadEndError, DeclarationError
from discodso.base.threads import one_blas_thread
from discodso.baselines import inner
from discodso.baselines.genetic import GPSettings
from discodso.disco.disco import DisCoSettings
from discodso.disco.method import Method, Metrics, Resumable, told_arrays
from discodso.disco.sampling import Redrawn
from discodso.space.design import Design, DesignBatch
from discodso.space.replay import replay
from discodso.space.skeletons import fill, parameters, skeleton_space, unit_limits, unpacked, without_numbers
from discodso.space.space import Space
from discodso.space.state import Arrays, State, generator_state, restore_generator

_START_ATTEMPTS = 20  # to find values with which a bound forbids no token of a skeleton
_FRUITLESS_BATCHES = 1000


@dataclass(frozen=True, slots=True)
class DecoupledSettings:
    """Which method proposes skeletons, and how their values are found.

    Args:
        skeletons: settings of the method: DisCoSettings for Decoupled-RL, GPSettings for Decoupled-GP.
        inner: "bfgs" (L-BFGS-B), "anneal" (dual annealing) or "evo" (differential evolution), all of SciPy.
        inner_calls: objective calls for one skeleton at most; the paper does not say how many there were.
        in_flight: skeletons that are optimised at the same time. More make larger batches, for workers and
            compiled objectives; the result depends on it, but not on the number of workers.
        reach: where "anneal" and "evo", which need finite ranges, take the ends of infinite ones.
    """

    skeletons: DisCoSettings | GPSettings = field(default_factory=DisCoSettings)
    inner: inner.InnerName = "bfgs"
    inner_calls: int = 200
    in_flight: int = 100
    reach: float = 10.0

    def __post_init__(self) -> None:
        known = isinstance(self.skeletons, (DisCoSettings, GPSettings))
        require("skeletons", self.skeletons, known, "a DisCoSettings or GPSettings object")
        require_one_of("inner", self.inner, inner.INNER)
        settle_integers(self, {"inner_calls": 1, "in_flight": 1})
        require_number("reach", self.reach, above=0)

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> Decoupled:
        """Start the method on a space."""
        return Decoupled(space, self, seed=seed)


@dataclass
class _Skeleton:
    """A skeleton whose values are being found.

    Attributes:
        key: its tokens, as bytes.
        start: float[n], units to begin with.
        seed: of the inner optimiser.
        search: by the inner optimiser.
        answers: all costs so far; with them the search can be made again.
        calls: how many these are.
        best: reward so far.
        worst: cost so far.
    """

    key: bytes
    start: Floats
    seed: int
    search: inner.InnerSearch
    answers: list[Floats] = field(default_factory=list)
    calls: int = 0
    best: float = -np.inf
    worst: float = -np.inf

    def answer(self, costs: Floats) -> None:
        """Costs of its points; those without one count as the worst that is known."""
        least, worst, whole = _summary(costs)
        self.best = max(self.best, -least)
        self.worst = max(self.worst, worst)
        if not whole:
            costs = np.where(np.isfinite(costs), costs, self.worst if np.isfinite(self.worst) else 0.0)
        self.answers.append(costs)
        self.calls += len(costs)
        self.search.answer(costs)

    def is_over(self, limit: int) -> bool:
        """Whether the search has ended, or its next step would take more calls than there are."""
        points = self.search.points
        return points is None or self.calls + len(points) > limit


@dataclass
class _Round:
    """The points of some skeletons, as designs, while they are evaluated.

    Attributes:
        skeletons: whose points these are, in order.
        ends: where the points of each end.
        designs: of the points that can be evaluated.
        rows: int[B], which point each design is.
        costs: float[all points], NaN where not known.
        open: bool[B], designs that have no answer yet.
        handed: how many of the designs were handed out.
    """

    skeletons: list[_Skeleton]
    ends: list[int]
    designs: DesignBatch
    rows: Ints
    costs: Floats
    open: Bools
    handed: int = 0


class Decoupled:
    """A method for skeletons with an inner optimiser below it.

    A skeleton that was met before is not optimised again, unless a whole batch brings no other.
    """

    def __init__(
        self, space: Space, settings: DecoupledSettings, *, seed: int | np.random.SeedSequence = 0
    ) -> None:
        require("space", space, isinstance(space, Space), "a Space")
        if settings.inner == "bfgs" and space.library.has_integers:
            raise DeclarationError("inner 'bfgs' cannot search integers; use inner='anneal' or 'evo'")
        self.space = space
        self.settings = settings
        for_method, own = seed_sequence(seed).spawn(2)
        self.skeleton_space = skeleton_space(space)
        self.method: Method = settings.skeletons.build(self.skeleton_space, for_method)
        self.batch_size = self.method.batch_size
        self.optimised = 0  # skeletons whose search has ended
        self.proposed = 0  # skeletons that the method was told about, those met before included
        self._rng = np.random.default_rng(own)
        self._limits = unit_limits(space)
        self._memory: dict[bytes, float] = {}
        # Skeletons that the method proposed, and those of them that its rewards still wait for.
        self._batches: deque[tuple[list[bytes], set[bytes]]] = deque()
        self._waiting: deque[bytes] = deque()
        self._busy: dict[bytes, _Skeleton] = {}
        self._ready: list[_Skeleton] = []  # of the busy ones, those whose points are in no round
        self._rounds: list[_Round] = []
        self._redrawn = Redrawn()  # designs whose values broke a rule, or met no condition

    def _tokens(self, key: bytes) -> Ints:
        """The tokens of a skeleton."""
        library = self.skeleton_space.library
        numbers = np.frombuffer(key, np.int64)
        return numbers[: len(numbers) // (1 + library.slots * library.has_options)]

    def _numbers(self, key: bytes) -> Bools:
        """bool[T, V], the places of the numbers of a skeleton."""
        return parameters(self.space, self._tokens(key))

    # ---------------------------------------------------------------------------------------------- asking

    def ask(self, size: int | None = None) -> DesignBatch:
        """What the inner searches want to know next: all of it, or as many designs as are asked for."""
        if size is not None:
            require_integer("size", size, 1)
        parts: list[DesignBatch] = []
        count = 0
        while not parts or (size is not None and count < size):
            current = self._open_round()
            end = len(current.designs) if size is None else current.handed + size - count
            part = current.designs.select(slice(current.handed, end))
            current.handed += len(part)
            count += len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else DesignBatch.concatenate(parts)

    def _open_round(self) -> _Round:
        """A round with designs that were not handed out."""
        if self._rounds and self._rounds[-1].handed < len(self._rounds[-1].designs):
            return self._rounds[-1]
        for _ in range(_FRUITLESS_BATCHES):
            if not self._ready and not self._waiting:
                self._propose()
            self._begin_waiting()
            if self._ready:
                found = self._round(self._ready)
                self._redrawn.add(len(found.costs) - len(found.rows))
                self._ready = []
                self._rounds.append(found)
                if len(found.designs):
                    return found
                with one_blas_thread():
                    self._take_answers(found)
            self._settle()
        raise DeadEndError("no values were found that keep the bounds for any of the proposed skeletons")

    def _propose(self) -> None:
        """Skeletons of the method; those that are new wait to be optimised, or all if none is."""
        keys = self.skeleton_space.encode(self.method.ask()).skeletons()
        idle = [key for key in dict.fromkeys(keys) if key not in self._busy]
        new = [key for key in idle if key not in self._memory]
        queued = new or [key for key in idle if self._numbers(key).any()] or idle
        self._waiting.extend(queued)
        self._batches.append((keys, {*queued, *(key for key in keys if key in self._busy)}))

    def _begin_waiting(self) -> None:
        count = min(len(self._waiting), self.settings.in_flight - len(self._ready))
        chosen = [self._waiting.popleft() for _ in range(count)]
        if not chosen:
            return
        batch = unpacked(self.skeleton_space, chosen)
        units = self._starts(batch, np.array([key in self._memory for key in chosen]))
        carries = parameters(self.space, batch.tokens)
        seeds = self._rng.integers(0, 2**63, len(chosen)).tolist()
        for row, key in enumerate(chosen):
            start = units[row, carries[row]]
            if np.isnan(start).any():  # no values keep the bounds
                self._learn(key, -np.inf)
                continue
            self._busy[key] = self._begun(key, start, seeds[row])
            self._ready.append(self._busy[key])

    def _begun(self, key: bytes, start: Floats, seed: int) -> _Skeleton:
        tokens, own = self._tokens(key), self._numbers(key)
        low, high = (limits[tokens][own] for limits in self._limits)
        s = self.settings
        search = inner.start(s.inner, start, low, high, s.inner_calls, s.reach, seed)
        return _Skeleton(key, start, seed, search)

    def _starts(self, batch: DesignBatch, again: Bools) -> Floats:
        """units[B, T, V] to begin with, NaN for skeletons that no values were found for.

        Uniform within finite bounds. Constants of an infinite range begin at 1, as in deep symbolic regression,
        and anywhere near it when their skeleton is optimised again.
        """
        carries = parameters(self.space, batch.tokens)
        low, high = (limit[batch.tokens] for limit in self._limits)
        finite = np.isfinite(low) & np.isfinite(high)
        units = np.full(carries.shape, np.nan)
        missing = np.arange(len(batch))
        for _ in range(_START_ATTEMPTS):
            shape = (len(missing), *carries.shape[1:])
            uniform, normal = self._rng.random(shape), self._rng.standard_normal(shape)
            free = np.clip(1.0 + normal * again[missing, None, None], low[missing], high[missing])
            drawn = np.where(finite[missing], uniform, free)
            units[missing] = np.where(carries[missing], drawn, np.nan)
            _, feasible = fill(self.space, batch.select(missing), units[missing])
            missing = missing[~feasible]
            self._redrawn.add(len(missing))
            if not len(missing):
                break
        units[missing] = np.nan
        return units

    def _round(self, skeletons: list[_Skeleton]) -> _Round:
        points = [skeleton.search.points for skeleton in skeletons if skeleton.search.points is not None]
        counts = [len(array) for array in points]
        packed = unpacked(self.skeleton_space, [skeleton.key for skeleton in skeletons])
        designs = packed.select(np.repeat(np.arange(len(skeletons)), counts))
        carries = parameters(self.space, designs.tokens)
        units = np.full(carries.shape, np.nan)
        units[carries] = np.concatenate([array.ravel() for array in points])
        designs, feasible = fill(self.space, designs, units)
        rows = np.flatnonzero(feasible)
        if len(rows) < len(feasible):
            designs = designs.select(rows)
        costs, unknown = np.full(len(feasible), np.nan), np.ones(len(rows), np.bool_)
        return _Round(skeletons, [*accumulate(counts)], designs, rows, costs, unknown)

    # ---------------------------------------------------------------------------------------------- telling

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Rewards of designs; those of a round that is complete let its inner searches go on.

        A design that was not asked for is told to the method as a skeleton with that reward. Returns what the
        method did last.
        """
        batch, told = told_arrays(self.space, designs, rewards)
        strangers, metrics = self._assign(batch, told), None
        if len(strangers):
            unasked = batch.select(strangers)
            replay(self.space, unasked)  # refuses designs that do not belong to the space
            metrics = self._tell(without_numbers(self.skeleton_space, unasked).skeletons(), told[strangers])
        with one_blas_thread():
            for current in [r for r in self._rounds if not r.open.any()]:
                self._take_answers(current)
        metrics, refused = self._settle() or metrics, self._redrawn.take()
        if not refused:
            return metrics
        metrics = metrics or Metrics()
        return replace(metrics, redrawn=refused + (metrics.redrawn or 0))

    def _assign(self, batch: DesignBatch, rewards: Floats) -> Ints:
        """Write the rewards into the rounds that asked for them; gives the rows of those that nobody asked for."""
        for current in self._rounds:  # as a rule all of a round, or its first part, is told in order
            asked = current.designs.select(slice(0, len(batch)))
            if (
                current.open[: len(batch)].all()
                and len(batch) <= current.handed
                and np.array_equal(asked.tokens, batch.tokens)
                and np.array_equal(asked.values, batch.values, equal_nan=True)
            ):
                current.costs[current.rows[: len(batch)]] = -rewards
                current.open[: len(batch)] = False
                return np.empty(0, np.int64)
        places: dict[bytes, deque[tuple[_Round, int]]] = {}
        for current in self._rounds:
            keys = current.designs.keys()
            for row in np.flatnonzero(current.open[: current.handed]).tolist():
                places.setdefault(keys[row], deque()).append((current, row))
        strangers = []
        for at, key in enumerate(batch.keys()):
            if places.get(key):
                current, row = places[key].popleft()
                current.costs[current.rows[row]] = -rewards[at]
                current.open[row] = False
            else:
                strangers.append(at)
        return np.array(strangers, np.int64)

    def _take_answers(self, current: _Round) -> None:
        self._rounds.remove(current)
        for skeleton, (first, end) in zip(current.skeletons, pairwise([0, *current.ends]), strict=True):
            skeleton.answer(current.costs[first:end])
            if skeleton.is_over(self.settings.inner_calls):
                del self._busy[skeleton.key]
                self.optimised += 1
                self._learn(skeleton.key, skeleton.best)
            else:
                self._ready.append(skeleton)

    def _learn(self, key: bytes, reward: float) -> None:
        self._memory[key] = max(self._memory.get(key, -np.inf), reward)
        for _, missing in self._batches:
            missing.discard(key)

    def _settle(self) -> Metrics | None:
        """Tell the method the batches whose skeletons are all known."""
        metrics = None
        while self._batches and not self._batches[0][1]:
            keys, _ = self._batches.popleft()
            metrics = self._tell(keys, np.array([self._memory[key] for key in keys]))
        return metrics

    def _tell(self, keys: list[bytes], rewards: Floats) -> Metrics | None:
        self.proposed += len(keys)
        for key, reward in zip(keys, rewards.tolist(), strict=True):
            self._memory[key] = max(self._memory.get(key, -np.inf), reward)
        return self.method.tell(unpacked(self.skeleton_space, keys), rewards)

    # ----------------------------------------------------------------------------------------------- state

    def state(self) -> State:
        """Of the method, of what is known, and of the searches under way: their answers, to be given again."""
        assert isinstance(self.method, Resumable)
        busy = list(self._busy.values())
        place = {skeleton.key: number for number, skeleton in enumerate(busy)}
        arrays: Arrays = {
            "memory/rewards": np.array(list(self._memory.values())),
            "busy/seeds": np.array([skeleton.seed for skeleton in busy], np.int64),
            "busy/starts": np.concatenate([np.empty(0), *(s.start for s in busy)]),
            "busy/answers": np.concatenate([np.empty(0), *(a for s in busy for a in s.answers)]),
        }
        lists = {"memory": list(self._memory), "busy": list(self._busy), "waiting": list(self._waiting)}
        for number, (batch, missing) in enumerate(self._batches):
            lists |= {f"batch{number}": batch, f"missing{number}": sorted(missing)}
        for name, keys in lists.items():
            packed = unpacked(self.skeleton_space, keys)
            arrays[f"{name}/tokens"] = packed.tokens.astype(np.int16)
            arrays[f"{name}/options"] = packed.option_numbers().astype(np.int16)
        for number, r in enumerate(self._rounds):
            arrays |= {f"round{number}/costs": r.costs.copy(), f"round{number}/open": r.open.copy()}
        data = {
            "random": generator_state(self._rng),
            "optimised": self.optimised,
            "proposed": self.proposed,
            "steps": [[len(costs) for costs in skeleton.answers] for skeleton in busy],
            "ready": [place[skeleton.key] for skeleton in self._ready],
            "batches": len(self._batches),
            "rounds": [[r.handed, [place[s.key] for s in r.skeletons]] for r in self._rounds],
        }
        parts = {"method": self.method.state(), "own": State(arrays, data), "redrawn": self._redrawn.state()}
        return State.of_parts(parts)

    def restore(self, state: State) -> None:
        """Go on from a state of a method with the same space and settings."""
        assert isinstance(self.method, Resumable)
        self.method.restore(state.part("method"))
        self._redrawn.restore(state.part("redrawn"))
        own = state.part("own")
        arrays, data = own.arrays, own.data
        restore_generator(self._rng, data["random"])
        self.optimised, self.proposed = int(data["optimised"]), int(data["proposed"])

        def keys(name: str) -> list[bytes]:
            tokens, options = (arrays[f"{name}/{part}"].astype(np.int64) for part in ("tokens", "options"))
            values = self.skeleton_space.library.narrow(np.where(options >= 0, options, np.nan))
            lengths = (tokens >= 0).sum(axis=1)
            return DesignBatch(self.skeleton_space.library, tokens, values, lengths).skeletons()

        self._memory = dict(zip(keys("memory"), arrays["memory/rewards"].tolist(), strict=True))
        self._waiting = deque(keys("waiting"))
        numbers = range(int(data["batches"]))
        self._batches = deque((keys(f"batch{n}"), set(keys(f"missing{n}"))) for n in numbers)
        starts, answers = iter(arrays["busy/starts"].tolist()), iter(arrays["busy/answers"].tolist())
        seeds = arrays["busy/seeds"].tolist()
        self._busy = {}
        with one_blas_thread():
            for key, seed, steps in zip(keys("busy"), seeds, data["steps"], strict=True):
                count = int(self._numbers(key).sum())
                self._busy[key] = self._begun(key, np.array([*islice(starts, count)]), seed)
                for size in steps:  # its answers bring it to where it was
                    self._busy[key].answer(np.array([*islice(answers, size)]))
        busy = list(self._busy.values())
        self._ready = [busy[number] for number in data["ready"]]
        self._rounds = []
        for number, (handed, owners) in enumerate(data["rounds"]):
            made = self._round([busy[owner] for owner in owners])
            made.costs[:] = arrays[f"round{number}/costs"]
            made.open[:] = arrays[f"round{number}/open"]
            made.handed = int(handed)
            self._rounds.append(made)


@compiled()
def _summary(costs: Floats) -> tuple[float, float, bool]:
    """The least and the largest finite cost, and whether all are finite."""
    least, largest, whole = np.inf, -np.inf, True
    for cost in costs:
        if np.isfinite(cost):
            least, largest = min(least, cost), max(largest, cost)
        else:
            whole = False
    return least, largest, whole
