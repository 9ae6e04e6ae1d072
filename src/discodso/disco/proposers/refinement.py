"""Numbers of promising skeletons, refined without derivatives: a small CMA-ES for each of the best skeletons.

A search works on units (see `skeletons`), so that bounds that depend on values before them hold whatever it tries.
It begins at the best design of the archive with its skeleton, follows that design if others move it far, and is
done when its steps are tiny or bring nothing. A model of the rewards so far (`local_model`) chooses among its
steps. Every design that it proposes is an objective call like all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.threads import one_blas_thread
from discodso.disco.archive import Archive, Pool
from discodso.disco.proposers.local_model import Model, local_model
from discodso.disco.settings import RefinementSettings
from discodso.space.design import DesignBatch
from discodso.space.skeletons import fill, parameters, unit_limits, units_of
from discodso.space.space import Space
from discodso.space.state import State

_FIRST_SCALE = 0.1  # of the first steps, in units
_LEAST_SCALE = 1e-6  # a search with smaller steps is done
_BETTER = 1e-9  # relative gain below which a generation is fruitless
_CANDIDATES = 3  # for each design that the model chooses
_UNSCREENED = 0.2  # share of designs that it does not choose
_PARENTS = 5  # from which its optimum is approached
_SHRUNK = tuple(0.8**k for k in range(15))  # steps on the way there, of 60 points each
_MOST_KNOWN = 200  # designs that the model is fitted to
_NUMBERS = ("scale", "best", "generations", "fruitless")  # all else of a search are arrays
_FULL = 30  # values up to which the covariance is a matrix, else its diagonal


@dataclass(frozen=True)
class LocalSearch:
    """CMA-ES with weighted recombination on the N numbers of one skeleton, between two generations.

    Attributes:
        tokens, options: int[L] and int[L, V], the skeleton; options are empty in spaces that have none.
        mean: float[N], units.
        scale: of the steps.
        covariance: float[N, N] of the steps, or its diagonal float[N].
        path, scale_path: float[N], the ways that the mean went lately, for covariance and scale.
        units, rewards: float[M, N] and float[M], told, not yet a whole generation.
        past, past_rewards: likewise, the last ones with finite rewards, for the model.
        low, high: float[N], limits of the units.
        best: highest reward known of the skeleton.
        generations, fruitless: all of them, and the last ones without a better design.
    """

    tokens: Ints
    options: Ints
    mean: Floats
    scale: float
    covariance: Floats
    path: Floats
    scale_path: Floats
    units: Floats
    rewards: Floats
    past: Floats
    past_rewards: Floats
    low: Floats
    high: Floats
    best: float
    generations: int = 0
    fruitless: int = 0

    @classmethod
    def begin(
        cls, tokens: Ints, options: Ints, units: Floats, reward: float, low: Floats, high: Floats
    ) -> LocalSearch:
        """A search round one design, within limits float[N] of its units; where they are infinite the first steps
        are longer for large numbers."""
        count = len(units)
        spread = np.where(np.isfinite(high - low), 1.0, 1.0 + np.abs(units))
        covariance = np.diag(spread**2) if count <= _FULL else spread**2
        good = math.isfinite(reward)
        return cls(
            tokens=tokens,
            options=options,
            mean=units,
            scale=_FIRST_SCALE,
            covariance=covariance,
            path=np.zeros(count),
            scale_path=np.zeros(count),
            units=np.empty((0, count)),
            rewards=np.empty(0),
            past=units[None][:good],
            past_rewards=np.array([reward])[:good],
            low=low,
            high=high,
            best=reward,
        )

    @property
    def key(self) -> bytes:
        """Of the skeleton, as `DesignBatch.skeletons` has it."""
        return self.tokens.tobytes() + self.options.tobytes()

    @property
    def generation_size(self) -> int:
        """Designs for one step, the usual 4 + 3 ln N."""
        return 4 + int(3 * math.log(len(self.mean)))

    @property
    def done(self) -> bool:
        """Whether more of it is worth nothing."""
        steps = self.covariance if self.covariance.ndim == 1 else np.diag(self.covariance)
        tiny = self.scale * math.sqrt(float(steps.max())) < _LEAST_SCALE
        return tiny or self.fruitless > 10 + 3 * len(self.mean)

    def propose(self, count: int, rng: np.random.Generator, modelled: bool = True) -> Floats:
        """units[count, N] of new designs. As soon as there is a model it chooses from several times as many, and
        the last one is where it expects most."""
        model = self._model if modelled else None
        if model is None:
            return self._drawn(count, rng)
        drawn = self._drawn(_CANDIDATES * count, rng)
        expected = model(drawn)
        top = drawn[np.argsort(-expected, kind="stable")[:_PARENTS]]
        expected[: int(_UNSCREENED * count + rng.random())] = np.inf
        proposed: Floats = drawn[np.argsort(-expected, kind="stable")[:count]]
        for shrunk in _SHRUNK:
            moved = self._drawn(60, rng, shrunk, top[rng.integers(len(top), size=60)])
            tried = np.concatenate((top, moved))
            top = tried[np.argsort(-model(tried), kind="stable")[:_PARENTS]]
        proposed[-1] = top[0]
        return proposed

    def _drawn(
        self, count: int, rng: np.random.Generator, shrunk: float = 1.0, centre: Floats | None = None
    ) -> Floats:
        """units[count, N], normal round a centre, within the limits."""
        axes, lengths = self._axes
        steps = rng.standard_normal((count, len(self.mean))) * lengths
        steps = steps if axes is None else steps @ axes.T
        drawn: Floats = (self.mean if centre is None else centre) + shrunk * self.scale * steps
        return drawn.clip(self.low, self.high, out=drawn)

    @cached_property
    def _model(self) -> Model | None:
        """Expected rewards by units, None while few are known."""
        if len(self.past) < len(self.mean) + 4:
            return None
        fitted = local_model(self._white(self.past), self.past_rewards)
        return None if fitted is None else lambda units: fitted(self._white(units))

    def _white(self, units: Floats) -> Floats:
        """Units[M, N] as steps from the mean, in directions and lengths in which all are alike."""
        white: Floats = self._whitened(units - self.mean) / self.scale
        return white

    @cached_property
    def _axes(self) -> tuple[Floats | None, Floats]:
        """Principal axes of the steps, None for those of the coordinates, and lengths along them."""
        if self.covariance.ndim == 1:
            return None, np.sqrt(self.covariance)
        squares, axes = np.linalg.eigh(self.covariance)
        return axes, np.sqrt(np.maximum(squares, 1e-12 * squares[-1]))

    def _whitened(self, steps: Floats) -> Floats:
        axes, lengths = self._axes
        white: Floats = steps / lengths if axes is None else (steps @ axes / lengths) @ axes.T
        return white

    def distance(self, units: Floats) -> float:
        """How far a design is from the mean, in steps; about sqrt(N) for those that it proposes."""
        return float(np.linalg.norm(self._white(units)))

    def told(self, units: Floats, rewards: Floats) -> LocalSearch:
        """After units[M, N] with rewards[M], those not finite being failed; whole generations make steps."""
        good = np.isfinite(rewards)
        most = min(20 + 8 * len(self.mean), _MOST_KNOWN)
        search = replace(
            self,
            units=np.concatenate((self.units, units)),
            rewards=np.concatenate((self.rewards, np.where(good, rewards, -np.inf))),
            past=np.concatenate((self.past, units[good]))[-most:],
            past_rewards=np.concatenate((self.past_rewards, rewards[good]))[-most:],
        )
        if "_axes" in self.__dict__:  # the covariance is the same
            search.__dict__["_axes"] = self._axes
        return search._step() if len(search.rewards) >= self.generation_size else search

    def _step(self) -> LocalSearch:
        """One generation (Hansen's tutorial, equations for rank-mu and rank-one updates, cumulative step size)."""
        n, size = len(self.mean), len(self.rewards)
        order = np.argsort(-self.rewards, kind="stable")[: size // 2]
        best = float(self.rewards[order[0]])
        nothing = replace(self, units=self.units[:0], rewards=self.rewards[:0])
        if not np.isfinite(self.rewards[order]).all():
            return replace(nothing, fruitless=self.fruitless + 1)
        better = best > self.best + _BETTER * abs(self.best)
        w = math.log(size / 2 + 0.5) - np.log(np.arange(1, len(order) + 1))
        w /= w.sum()
        mass = 1 / float((w**2).sum())
        c_scale = (mass + 2) / (n + mass + 5)
        damping = 1 + c_scale + 2 * max(0.0, math.sqrt((mass - 1) / (n + 1)) - 1)
        c_path = (4 + mass / n) / (n + 4 + 2 * mass / n)
        c_one = 2 / ((n + 1.3) ** 2 + mass)
        c_many = min(1 - c_one, 2 * (mass - 2 + 1 / mass) / ((n + 2) ** 2 + mass))
        steps = self._limited((self.units[order] - self.mean) / self.scale)
        move = w @ steps
        usual = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))  # mean length of a standard normal step
        scale_path = (1 - c_scale) * self.scale_path
        scale_path = scale_path + math.sqrt(c_scale * (2 - c_scale) * mass) * self._whitened(move)
        length, generations = float(np.linalg.norm(scale_path)), self.generations + 1
        settled = length / math.sqrt(1 - (1 - c_scale) ** (2 * generations)) < (1.4 + 2 / (n + 1)) * usual
        path = (1 - c_path) * self.path + settled * math.sqrt(c_path * (2 - c_path) * mass) * move
        kept = 1 - c_one - c_many + (not settled) * c_one * c_path * (2 - c_path)
        if self.covariance.ndim == 1:
            covariance = kept * self.covariance + c_one * path**2 + c_many * (w @ steps**2)
        else:
            covariance = (
                kept * self.covariance + c_one * np.outer(path, path) + c_many * (steps.T * w) @ steps
            )
        return replace(
            nothing,
            mean=self.mean + self.scale * move,
            scale=self.scale * math.exp(min(1.0, c_scale / damping * (length / usual - 1))),
            covariance=covariance,
            path=path,
            scale_path=scale_path,
            best=max(best, self.best),
            generations=generations,
            fruitless=0 if better else self.fruitless + 1,
        )

    def _limited(self, steps: Floats) -> Floats:
        """Steps no longer than the search's own might be: designs may come late, or from elsewhere."""
        n = len(self.mean)
        lengths = np.linalg.norm(self._whitened(steps), axis=1)
        most = math.sqrt(n) + 2 * n / (n + 2)
        limited: Floats = steps * np.minimum(1.0, most / np.maximum(lengths, 1e-300))[:, None]
        return limited

    def to_state(self) -> State:
        """For a checkpoint."""
        names = [f.name for f in fields(self) if f.name not in _NUMBERS]
        arrays = {name: np.array(getattr(self, name)) for name in names}
        return State(arrays | {"numbers": np.array([float(getattr(self, name)) for name in _NUMBERS])})

    @classmethod
    def of_state(cls, state: State) -> LocalSearch:
        """Inverse of `to_state`."""
        arrays: dict[str, Any] = {name: array.copy() for name, array in state.arrays.items()}
        scale, best, generations, fruitless = arrays.pop("numbers").tolist()
        return cls(**arrays, scale=scale, best=best, generations=int(generations), fruitless=int(fruitless))


class Refinement:
    """Proposes other values for the best skeletons of an archive."""

    name = "refinement"
    floor = 0.1

    def __init__(self, space: Space, settings: RefinementSettings) -> None:
        self.share = settings.share
        self._space = space
        self._model = settings.model
        self._searches = LocalSearches()

    @property
    def refused(self) -> int:
        """How many designs of the last proposal were left out."""
        return self._searches.refused

    def propose(self, archive: Archive, count: int, rng: np.random.Generator) -> DesignBatch:
        """At most so many designs."""
        with one_blas_thread():
            self._searches, designs = self._searches.ask(
                self._space, archive.members, count, rng, self._model
            )
        return designs

    def learn(self, told: Pool, archive: Archive) -> None:
        """Let the searches know what came of their designs."""
        self._searches = self._searches.tell(self._space, told, archive.members)

    def state(self) -> State:
        """That of all searches."""
        return self._searches.to_state()

    def restore(self, state: State) -> None:
        """Go on from a state."""
        self._searches = LocalSearches.of_state(state)


@dataclass(frozen=True)
class LocalSearches:
    """The searches that are going on, by skeleton, and how many designs of the last proposal some rule refused."""

    searches: Mapping[bytes, LocalSearch] = field(default_factory=dict)
    refused: int = 0

    def ask(
        self, space: Space, elites: Pool, count: int, rng: np.random.Generator, model: bool = True
    ) -> tuple[LocalSearches, DesignBatch]:
        """At most `count` designs, a generation for each skeleton from the best elite on, then more for each; and
        the searches. `model` says whether a model of rewards chooses among them."""
        searches, live, seen = dict(self.searches), list[int](), set[bytes]()
        keys, tokens = elites.designs.skeletons(), elites.designs.tokens
        wanted = count
        for row, key in enumerate(keys):
            if wanted <= 0:
                break
            if key in seen or not parameters(space, tokens[row]).any():
                continue
            seen.add(key)
            if key not in searches:
                searches[key] = _begin(space, elites.select(np.array([row])))
            if not searches[key].done:
                live.append(row)
                wanted -= searches[key].generation_size
        if not live:
            return LocalSearches(searches), elites.designs.select(slice(0, 0))
        rounds = max(1, count // (count - wanted))
        parts, refused = list[DesignBatch](), 0
        for row in live:
            search = searches[keys[row]]
            proposed = search.propose(min(count, rounds * search.generation_size), rng, model)
            parts.append(_designs(space, elites.designs.select(np.array([row])), proposed))
            count, refused = count - len(proposed), refused + len(proposed) - len(parts[-1])
        return LocalSearches(searches, refused), DesignBatch.concatenate(parts)

    def tell(self, space: Space, told: Pool, elites: Pool) -> LocalSearches:
        """Learn from designs that were asked for; searches whose skeletons have left the elite end."""
        rows: dict[bytes, list[int]] = {}
        for row, key in enumerate(told.designs.skeletons()):
            rows.setdefault(key, []).append(row)
        units = units_of(space, told.designs) if len(told) else np.empty((0, 0, 0))
        best: dict[bytes, int] = {}
        for row, key in enumerate(elites.designs.skeletons()):
            best.setdefault(key, row)
        searches = {}
        for key, search in self.searches.items():
            if key not in best:
                continue
            if key in rows:
                own = np.array(rows[key])
                places = parameters(space, search.tokens)
                search = search.told(units[own][:, : len(places)][:, places], told.rewards[own])
            known = max(search.best, float(search.rewards.max(initial=-np.inf)))
            if elites.rewards[best[key]] > known:
                search = _met(space, search, elites.select(np.array([best[key]])))
            searches[key] = search
        return LocalSearches(searches)

    def to_state(self) -> State:
        """For a checkpoint."""
        return State.of_parts({str(k): search.to_state() for k, search in enumerate(self.searches.values())})

    @classmethod
    def of_state(cls, state: State) -> LocalSearches:
        """Inverse of `to_state`."""
        found = [LocalSearch.of_state(state.part(name)) for name in state.data]
        return cls({search.key: search for search in found})


def _begin(space: Space, elite: Pool) -> LocalSearch:
    count = int(elite.designs.lengths[0])
    tokens, options = elite.designs.tokens[0, :count], np.empty(0, np.int64)
    if space.library.has_options:
        options = elite.designs.option_numbers()[0, :count]
    units = _own_units(space, elite)
    low, high = (ends[tokens][parameters(space, tokens)] for ends in unit_limits(space))
    return LocalSearch.begin(tokens.copy(), options, units, float(elite.rewards[0]), low, high)


def _own_units(space: Space, elite: Pool) -> Floats:
    units: Floats = units_of(space, elite.designs)[0, parameters(space, elite.designs.tokens[0])]
    return units


def _met(space: Space, search: LocalSearch, elite: Pool) -> LocalSearch:
    """After a better design of its skeleton that came from elsewhere: it joins the generation, or if it is far the
    search begins anew round it."""
    units = _own_units(space, elite)
    if search.done or search.distance(units) > 3 * math.sqrt(len(units)):
        return _begin(space, elite)
    return replace(
        search,
        units=np.concatenate((search.units, units[None])),
        rewards=np.concatenate((search.rewards, elite.rewards)),
    )


def _designs(space: Space, elite: DesignBatch, proposed: Floats) -> DesignBatch:
    """Designs of one skeleton with such units; those that some bound forbids are left out."""
    skeletons = elite.select(np.zeros(len(proposed), np.int64))
    own = parameters(space, elite.tokens[0])
    units = np.full((len(skeletons), *own.shape), np.nan)
    units[:, own] = proposed
    designs, feasible = fill(space, skeletons, units)
    return designs.select(feasible)
