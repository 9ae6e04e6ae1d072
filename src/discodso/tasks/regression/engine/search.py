"""The search for equations: all short expressions first, then variations of the best of every price.

A view is a way to look at the target: as it is, or through the inverse of a function, so that y = sqrt(a + b) is
the sum a + b for y^2. Errors of a view are weighed by the slope of its function, so that they are about those of y
itself. The view of products looks at log|y|, with the logarithms of all inputs in every fit: their coefficients
are the exponents of c x1^p1 ... xd^pd, and terms such as log|g| are more factors. What a view finds is rewritten
for y and fitted there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.space.state import State
from discodso.tasks.regression.engine import _evolution as evolution
from discodso.tasks.regression.engine import _fitting as fitting
from discodso.tasks.regression.engine import _pool as pools
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine import _units, sweeps
from discodso.tasks.regression.engine import _waves as waves
from discodso.tasks.regression.engine._random import below
from discodso.tasks.regression.engine._trees import (
    ADD,
    COS,
    LOG_SIZE,
    SIN,
)
from discodso.tasks.regression.engine.beginnings import BEGINNINGS
from discodso.tasks.regression.engine.products import (
    times,
)
from discodso.tasks.regression.engine.rating import EXACT, GENERIC, PARTS, UNIT_PRICE, Rating
from discodso.tasks.regression.engine.setting import Setting
from discodso.tasks.regression.engine.views import MOST_PRICE, SLOTS, View

_SMALL_STEP = 1000
VARY = 1 + len(BEGINNINGS)  # the last stage
_LONGER, _LEAST_LONGER = 1.25, 1000  # calls until a search that has explained all digits ends
_LISTING, _LISTING_ONE, _PLAIN = 0.2, 0.35, 0.75  # shares: all short expressions, of one input; then y itself
_AHEAD = 0.1  # of all calls, to each of the views that explain most of their own target
_EARNED = 0.5  # of y's share, goes to other views as far as the front is theirs
_WAVES = 3  # spectra in a step
_PLAIN_WITH_UNITS = 0.5
_PRODUCT_PARTS, _LEADING = 3, 2  # of the calls that all other views share; and how many lead
_UNIT_SHARES = (0.4, 0.5, 0.1)  # for as few units of constants as may be, one more, and as many as may be
MOVES = np.array([3, 2, 2, 1.5, 1.5, 3, 2, 1, 2, 2, 1.5, 0.5, 0.5])


class EquationSearch(Rating):
    """The search; `step` spends calls."""

    def __init__(self, setting: Setting, seed: int) -> None:
        super().__init__(setting, seed)
        self.moves = np.cumsum(MOVES / MOVES.sum())
        self.stage = 0  # 0 for short expressions, then the beginnings, and VARY
        self.solved_at: int | None = None  # calls after which all digits were explained
        self.complete = 0  # price up to which all expressions were rated

    def _phases(self, view: View) -> list[tuple[float, int, bool]]:
        """Shares of calls, how many independent units constants may have, and whether offsets may need one."""
        units = self.setting.units
        if units is None:
            return [(1.0, 0, False)]
        least = self.least(view, units)
        limits = ((least, False), (least + 1, False), (units.most, True))
        found = [
            (share, most, offset)
            for share, (most, offset) in zip(_UNIT_SHARES, limits, strict=True)
            if most <= units.most
        ]
        if len(found) > 1 and _units.ranks_of(units.columns, units.target)[0] == len(units.columns):
            found = found[1:]  # without such a constant there is a single product
        whole = sum(share for share, _, _ in found)
        return [(share / whole, most, offset) for share, most, offset in found]

    def step(self, room: int) -> int:
        """Spend at most so many calls on the next thing to do; returns how many were spent."""
        before = self.calls
        limit = before + room
        share = int((_LISTING if len(self.setting.columns) > 1 else _LISTING_ONE) * self.setting.budget)
        if self.stage == 0 and before + 2 <= share:
            price = 0
            # Where operators are dear there are prices that no new expression has.
            while self.stage == 0 and self.calls == before and price < self.pool_price:
                price = self.pool_price
                self._enumerate(min(limit, share))
        else:
            self.stage = max(self.stage, 1)
        if self.stage and self.calls == before:
            while self.stage < VARY and self.calls == before:
                BEGINNINGS[self.stage - 1](self, limit)
                self.stage += 1
            if self.stage == VARY and self.calls < limit:
                self._evolve(limit)
        self._look()
        return self.calls - before

    def _rate_pool(self, view: View, limit: int) -> bool:
        """Rate what is new in the pool; whether all of it was.

        What needs a constant with a unit waits until the pool has what is as expensive without.
        """
        units = self.setting.units
        if units is None:
            view.next_item = self._rate_items(view, view.next_item, self.pool_count, None, limit, self.counts)
            return view.next_item == self.pool_count
        least = self.least(view, units)
        view.next_item = self._rate_items(view, view.next_item, self.pool_count, least, limit, self.counts)
        late = int(self.first[max(self.pool_price + 1 - UNIT_PRICE, 0)])
        if view.next_item == self.pool_count and least < units.most and view.next_late < late:
            counts = self.counts.copy()
            view.next_late = self._rate_items(view, view.next_late, late, least + 1, limit, counts)
            # What needs no such constant was rated before, which makes no repeats.
            spent = counts[0] - self.counts[0]
            self.counts += np.array([spent, 0, 0, spent])
        return view.next_item == self.pool_count and (least == units.most or view.next_late >= late)

    def _rate_items(
        self, view: View, first: int, last: int, most: int | None, limit: int, counts: Ints
    ) -> int:
        self.make_room(view, (1 + view.products) * (last - first))
        before = int(counts[0])
        item = evolution.rate_pool(
            (self.pool[0], self.pool[1], last),
            first,
            self.problem(view, most),
            view.archive,
            view.seen,
            limit,
            view.products,
            self.probes,
            self.room,
            counts,
        )
        view.calls += int(counts[0]) - before
        return int(item)

    def _enumerate(self, limit: int) -> None:
        for place, view in enumerate(self.views):
            # Other views are for sums of few tokens: they see the short ones only.
            rated = self.pool_count if self.setting.units is None else view.calls
            if place and not view.products and rated > 3000 and view.next_item > 0:
                continue
            if not self._rate_pool(view, limit):
                return
        self.complete = self.pool_price
        self.rewrite(limit)
        if self.pool_full or self.views[0].best < EXACT:
            self.stage = 1
            return
        self._next_level()

    def _next_level(self) -> None:
        self.pool_price += 1
        while 4 * self.pool_count > len(self.known) // 4:
            self.known = trees.grown(self.known)
        units = self.setting.units
        with_constants = units is not None and units.most > units.least and self.setting.most_constants > 0
        constant = float(GENERIC[0]) if with_constants else 0.0
        more = pools.next_level(
            self.pool,
            self.first,
            self.pool_price,
            np.concatenate((self.binary, self.unary)),
            self.setting.prices,
            self.setting.nesting,
            self.known,
            self.pool_units,
            constant,
        )
        if more < 0 or self.pool_price >= MOST_PRICE - 1:
            self.pool_full, self.stage = True, 1  # the level is not whole: what there is of it is left out
            return
        self.pool_count = int(more)
        self.first[self.pool_price + 1 :] = self.pool_count
        self.groups = self.by_unit()

    @property
    def found(self) -> bool:
        """Whether nothing is left to explain, and a shorter equation was looked for as well."""
        return self.solved_at is not None and is_over(self.calls, self.solved_at)

    def _look(self) -> None:
        """Note when all digits were first explained, those of most rows of a target over decades, too."""
        wide = [view for view in self.views if view.name == "relative"]
        if self.solved_at is None and self.views[0].best < EXACT and (not wide or self._right_rows() > 0.9):
            self.solved_at = self.calls

    def _right_rows(self) -> float:
        """The share of the rows of which the best expression gives the first nine digits."""
        view, y = self.views[0], self.setting.target
        codes, values, lengths, errors, _, _, _ = view.archive
        starts, place = np.zeros(trees.MOST_TERMS, np.int64), int(errors.argmin())
        own = codes[place, : lengths[place]].copy()
        count = trees.terms_of(own, len(own), starts)
        data = self.target(view)
        fitting.solve_terms(own, values[place], self.setting.literals, starts, count, data, self.room)
        gaps = np.abs(self.room[4]) * view.scale / np.where(view.roots > 0, view.roots, 1.0)
        return float(np.mean(gaps <= 1e-9 * np.abs(y)))

    def _evolve(self, limit: int) -> None:
        calls = self.calls
        others = len(self.views) - 1
        # What is left of a large step is for rewriting; a small one is for the plain view alone.
        small = limit - calls < _SMALL_STEP
        last = limit if small else limit - 100
        room = last - calls
        shares = [1.0] if small or not others else self._shares()
        for view, share in zip(self.views, shares, strict=False):
            before = self.calls
            allowed = before + int(share * room)
            self.make_room(view, int(share * room) + 64)
            done = 0.0
            for part, most, offset in self._phases(view):
                done += part
                evolution.evolve(
                    view.archive,
                    (self.pool[0], self.pool[1], min(self.pool_count, 20_000)),
                    self.problem(view, most, offset),
                    view.seen,
                    self.random,
                    self.moves,
                    np.append(self.unary, LOG_SIZE) if view.products else self.unary,
                    self.binary,
                    len(self.setting.columns),
                    8,
                    min(allowed if done > 0.999 else before + int(done * share * room), last),
                    self.probes,
                    self.room,
                    self.counts,
                )
            view.calls += self.calls - before
        for codes, values in self.rewrite(limit):
            self.multiply(codes, values, limit)
        if not small and self.setting.most_constants > 1 and {SIN, COS} <= set(self.setting.operators):
            for _ in range(_WAVES):
                self._add_wave(limit)

    def _add_wave(self, limit: int) -> None:
        """Offer the best of a price, or nothing, plus a wave of a short expression, perhaps times another.

        Its frequency is where the spectrum of what is left is highest. Each frequency that is tried is a call.
        """
        view, random = self.views[0], self.random
        tried = min(int(sweeps.CYCLES * sweeps.TO_A_CYCLE), len(view.rest) // 2)
        if self.calls + tried + 20 > limit:
            return
        place = self._one_kept(view)
        inputs, parts = len(self.setting.columns), min(PARTS, self.pool_count)
        inner = self.part(below(random, inputs if below(random, 2) else parts))
        factor = self.part(below(random, parts)) if below(random, 2) else None
        written = 3 + len(inner) + (0 if factor is None else 1 + len(factor))
        if written + (1 + int(view.archive[2][place]) if place >= 0 else 0) > self.setting.longest:
            return  # it would be too long
        mother, values, residual = self._left_by(view, place)
        self.spend(view, tried + (place >= 0))
        argument = self.values(inner)
        size = np.ones(len(residual)) if factor is None else self.values(factor)
        spread = float(np.ptp(argument))
        if not (0 < spread < 1e150 and np.isfinite(residual).all() and np.abs(size).max() < 1e150):
            return
        step = 2 * math.pi / (sweeps.TO_A_CYCLE * spread)
        zeros = np.zeros(len(residual))
        frequency, phase, _ = waves.best_wave(residual, view.roots, size, argument, zeros, step, step, tried)
        if frequency == 0.0:
            return
        factors = [] if factor is None else [(factor, [math.nan] * len(factor))]
        wave, numbers = times([*factors, sweeps.written_wave(inner, frequency, phase)])
        if len(mother):
            wave, numbers = [ADD, *wave], [math.nan, *numbers]
        self.propose([*wave, *mother], [*numbers, *values], limit, 16)

    def _one_kept(self, view: View) -> int:
        """Where the best of a price stands; -1 for nothing."""
        filled = np.flatnonzero(view.archive[6])
        return (
            int(filled[below(self.random, len(filled))]) * SLOTS
            if len(filled) and below(self.random, 3)
            else -1
        )

    def _left_by(self, view: View, place: int) -> tuple[Ints, Floats, Floats]:
        """Codes and values of what is kept at a place, nothing for -1, and the residual that it leaves."""
        if place < 0:
            return np.zeros(0, np.int64), np.zeros(0), self.target(view)[0]
        length = int(view.archive[2][place])
        mother, values = view.archive[0][place, :length].copy(), view.archive[1][place, :length].copy()
        return mother, values, self.residual(view, mother, values)

    def _shares(self) -> list[float]:
        """Of the calls, for each view: more for one that has found a part of the front of y.

        With units half of what is not y's goes to those that explain most.
        """
        if self.setting.units is not None:
            views = self.views[1:]
            parts = [_PRODUCT_PARTS if view.products else 1 for view in views]
            best = sorted(range(len(views)), key=lambda place: views[place].best)[:_LEADING]
            half = 0.5 * (1.0 - _PLAIN_WITH_UNITS)
            own = [
                half * (part / sum(parts) + (place in best) / len(best)) for place, part in enumerate(parts)
            ]
            return [1.0 - sum(own), *own]
        errors, counts = self.views[0].archive[3], self.views[0].archive[6]
        front: set[float] = set()
        for price in np.flatnonzero(counts).tolist():
            if errors[price * SLOTS] < min(front, default=math.inf):
                front.add(float(errors[price * SLOTS]))
        own = [len(front & set(view.written.values())) / max(len(front), 1) for view in self.views[1:]]
        shares = [(1.0 - _PLAIN) / len(own) + _EARNED * part for part in own]
        ahead = [place for place, view in enumerate(self.views[1:]) if view.best < self.views[0].best]
        for place in sorted(ahead, key=lambda place: self.views[1 + place].best)[:_LEADING]:
            shares[place] += _AHEAD
        return [1.0 - sum(shares), *shares]

    def kept(self, best: bool = False) -> Iterator[tuple[Ints, Floats, Floats, float, int]]:
        """Codes, values, coefficients in units of y, error and price of what the archive of y holds.

        The best of each price come first, by rising price; only these if `best`.
        """
        view = self.views[0]
        codes, values, lengths, errors, _, coefficients, counts = view.archive
        for slot in range(1 if best else SLOTS):
            for price in range(MOST_PRICE):
                if slot >= int(counts[price]):
                    continue
                at = price * SLOTS + slot
                yield (
                    codes[at, : lengths[at]],
                    values[at, : lengths[at]],
                    coefficients[at] * view.scale,
                    float(errors[at]),
                    price,
                )

    def state(self) -> State:
        """All that later steps depend on; the pool is made again from its price."""
        parts = {
            "run": State(
                {"random": self.random.copy(), "counts": self.counts.copy()},
                {
                    "stage": self.stage,
                    "complete": self.complete,
                    "solved_at": self.solved_at,
                    "price": self.pool_price,
                    "full": self.pool_full,
                    "budget": self.setting.budget,
                },
            )
        }
        for view in self.views:
            parts[view.name] = view.state()
        return State.of_parts(parts)

    def restore(self, state: State) -> None:
        """Go back to a state of a search with the same data and settings."""
        run = state.part("run")
        self.random, self.counts = run.arrays["random"].copy(), run.arrays["counts"].copy()
        self.setting = replace(self.setting, budget=int(run.data["budget"]))
        while self.pool_price < int(run.data["price"]):
            self._next_level()
        self.stage, self.complete = int(run.data["stage"]), int(run.data["complete"])
        self.pool_full, self.solved_at = bool(run.data["full"]), run.data["solved_at"]
        for view in self.views:
            view.restore(state.part(view.name))


def is_over(calls: int, solved_at: int) -> bool:
    """Whether a search that has explained all digits after so many calls has looked long enough for less."""
    return calls >= _LONGER * solved_at + _LEAST_LONGER
