"""What expressions are rated with: views of the target, a pool of short expressions, work space, and calls.

What a view finds is rewritten for y and fitted there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product as product_of

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.tasks.regression.engine import _evolution as evolution
from discodso.tasks.regression.engine import _fitting as fitting
from discodso.tasks.regression.engine import _pool as pools
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine import _units
from discodso.tasks.regression.engine import _variation as variation
from discodso.tasks.regression.engine._trees import (
    ADD,
    COLUMN,
    CONSTANT,
    DIV,
    EXP,
    LITERAL,
    LOG,
    LOG_SIZE,
    MUL,
)
from discodso.tasks.regression.engine.products import (
    Part,
    added,
    exponents,
    product,
    rounded,
    times,
)
from discodso.tasks.regression.engine.setting import LARGEST, Setting, Units
from discodso.tasks.regression.engine.views import LARGEST_POWER, MOST_PRICE, SLOTS, View, views_of

_HALVES = 0.01  # from a half: a power that is none
_POOL = 60_000
UNIT_PRICE = 2  # of each independent unit that constants have, beyond those that they must have
PARTS = 30  # of the pool, in which waves run and by which they are multiplied
GENERIC = np.array([0.7316, 1.2934, 0.4177, 1.871, 0.9123, 1.557, 0.6271, 1.1113])
EXACT = 1e-24  # errors of rounding


class Rating:
    """Rates expressions for views, and counts calls."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting = setting
        rng = np.random.default_rng(seed)
        self.random = np.array([rng.integers(2**63)], np.uint64)
        probes = setting.probes(rng)
        self.probes = trees.room_for(probes, setting.longest)
        self.room = fitting.fitting_room(setting.columns, LARGEST)  # of what is tried, too, not only kept
        self.binary, self.unary = setting.binary, setting.unary
        self.counts = np.zeros(4, np.int64)  # calls, repeats, invalid drafts, proposals
        self.views = views_of(setting)
        self._start_pool(probes, len(setting.columns))

    @property
    def calls(self) -> int:
        """That were spent."""
        return int(self.counts[0])

    def spend(self, view: View, calls: int) -> None:
        """Count calls for a view."""
        self.counts[0] += calls
        view.calls += calls

    @staticmethod
    def least(view: View, units: Units) -> int:
        """How many independent units the constants of a view must have."""
        return 0 if view.factor is not None else units.least

    def _start_pool(self, probes: Floats, inputs: int) -> None:
        tokens = pools.TOKENS
        self.pool = (
            np.zeros((_POOL, tokens), np.int64),
            np.zeros(_POOL, np.int64),
            np.zeros(_POOL, np.int64),
            np.zeros((_POOL, trees.PROBES)),
        )
        units = self.setting.units
        self.pool_units = np.zeros((0, 1)) if units is None else np.zeros((_POOL, len(units.target)))
        self.known = np.zeros(1 << 18, np.uint64)
        self.first = np.zeros(MOST_PRICE + 2, np.int64)
        count = 0
        for i in range(inputs):
            mark = np.uint64(trees.hashed(probes[i], False))
            if mark == 0 or not trees.add_to(self.known, mark):
                continue
            self.pool[0][count, 0], self.pool[1][count], self.pool[2][count] = COLUMN + i, 1, 1
            self.pool[3][count] = probes[i]
            if units is not None:
                self.pool_units[count] = units.columns[i]
            count += 1
        self.one = -1  # where the number 1 stands in the pool
        if units is not None:  # sums with it need pure numbers
            self.one = count
            self.pool[0][count, 0] = LITERAL + len(self.setting.literals) - 1
            self.pool[1][count] = self.pool[2][count] = self.pool[3][count] = 1
            count += 1
        self.first[2:] = count
        self.pool_price, self.pool_count, self.pool_full = 1, count, False
        self.groups = self.by_unit()

    def by_unit(self) -> tuple[Floats, Ints, Ints]:
        """Items of the pool in groups of one unit."""
        count = self.pool_count
        constant = (self.pool[0][:count] == CONSTANT).any(axis=1)
        return _units.by_unit(self.pool_units[:count], constant[: len(self.pool_units)], self.one)

    def problem(self, view: View, most: int | None = None, offset: bool = False) -> evolution.Problem:
        """What kernels need to know of a view.

        `most` and `offset` are how many independent units constants may have, None for as many as the setting
        permits, and whether there is an offset even where it needs one more.
        """
        setting = self.setting
        return (
            (view.rest, view.roots, view.fixed, view.mean),
            setting.literals,
            setting.prices,
            setting.nesting,
            setting.most_constants,
            setting.limits,
            GENERIC,
            self._units(view, most, offset),
        )

    def _units(self, view: View, most: int | None, offset: bool) -> _units.Units:
        units = self.setting.units
        if units is None:
            return _units.NO_UNITS
        least = self.least(view, units)
        target = np.zeros(len(units.target)) if view.unit is None else view.unit
        return (
            True,
            units.columns,
            target,
            units.target if least and view.unit is None else np.zeros(len(target)),
            units.most if most is None else most,
            least,
            UNIT_PRICE,
            not target.any(),
            offset,
            view.whole,
            np.zeros((0, len(view.whole))),
            *self.groups,
        )

    def make_room(self, view: View, more: int) -> None:
        """Let the set of what was rated take so many more; each costs a call at least."""
        while 2 * (view.calls + more) > len(view.seen):
            view.seen = trees.grown(view.seen)

    def rewrite(self, limit: int) -> list[Part]:
        """Offer what other views have found for y, with constants where they had coefficients.

        What the view of y itself has found is offered again if it has constants, whose fit goes on. What is better
        there than before is returned.
        """
        better: list[Part] = []
        for view in self.views:
            codes, values, lengths, errors, _, coefficients, counts = view.archive
            smallest = math.inf
            for price in range(MOST_PRICE):
                place = price * SLOTS
                if not counts[price] or not errors[place] < 0.999 * smallest:
                    continue
                smallest = float(errors[place])
                if not errors[place] < 0.9 * view.told.get(price, math.inf) or self.calls >= limit:
                    continue
                view.told[price] = float(errors[place])
                if view is self.views[0]:
                    better.append(
                        (codes[place, : lengths[place]].tolist(), values[place, : lengths[place]].tolist())
                    )
                if view is self.views[0] and CONSTANT not in codes[place, : lengths[place]]:
                    continue
                error = self._offer(
                    view, codes[place], values[place], int(lengths[place]), coefficients[place], limit
                )
                if error < math.inf:
                    view.written[price] = error
        return better

    def multiply(self, codes: list[int], values: list[float], limit: int) -> None:
        """Offer what is better than before with each of its terms times, and over, each input."""
        starts, own = np.zeros(trees.MOST_TERMS, np.int64), np.array(codes, np.int64)
        count = trees.terms_of(own, len(codes), starts)
        inputs = range(len(self.setting.columns))
        for start, operator, i in product_of(starts[: max(count, 0)].tolist(), (MUL, DIV), inputs):
            if operator not in self.setting.operators:
                continue
            end = trees.end_of(own, start)
            longer = [*codes[:start], operator, *codes[start:end], COLUMN + i, *codes[end:]]
            numbers = [*values[:start], math.nan, *values[start:end], math.nan, *values[end:]]
            self.propose(longer, numbers, limit, 12, again=False)

    def _offer(
        self, view: View, codes: Ints, values: Floats, length: int, coefficients: Floats, limit: int
    ) -> float:
        """Rate what a view has found, written for y; returns its error."""
        if view.products:
            return self._offer_product(view, codes[:length], values[:length], coefficients, limit)
        draft = self._draft()
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        if view.code or view.factor:
            if view.factor:
                variation.put(draft, MUL, math.nan)
                for code in view.factor[0]:
                    variation.put(draft, code, math.nan)
            for code in view.code:
                variation.put(draft, code, math.nan)
            unit = view.scale if view.code and view.code[-1] == EXP else 0.0
            done = variation.sum_with_numbers(draft, codes, values, length, coefficients, starts, unit)
        else:
            done = variation.copy(draft, codes, values, 0, length)
        return self.rate(draft, limit, 40) if done else math.inf

    def _draft(self) -> variation.Draft:
        longest = self.setting.longest
        return np.zeros(longest, np.int64), np.zeros(longest), np.zeros(1, np.int64)

    def filled(self, codes: list[int], values: list[float]) -> variation.Draft | None:
        """A draft of an expression; None if it is too long."""
        draft, length = self._draft(), len(codes)
        if length > len(draft[0]):
            return None
        draft[0][:length], draft[1][:length], draft[2][0] = codes, values, length
        return draft

    def rate(
        self,
        draft: variation.Draft,
        limit: int,
        most_calls: int,
        view: View | None = None,
        again: bool = True,
    ) -> float:
        """Rate an expression for a view, that of y itself if none is given; returns its error.

        What was rated before is rated `again`, or not, without a call.
        """
        view = view or self.views[0]
        self.make_room(view, 1)
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        allowed = min(most_calls, limit - self.calls)
        if allowed < 1:
            return math.inf
        used, error = evolution.rate(
            draft, self.problem(view), view.archive, view.seen, again, allowed, self.probes, self.room, starts
        )
        self.spend(view, max(used, 0))
        return float(error)

    def _offer_product(
        self, view: View, codes: Ints, values: Floats, coefficients: Floats, limit: int
    ) -> float:
        """Offer what a view of products has found, c x1^p1 ... xd^pd g1^q1 exp(q2 g2) ..., with rounded powers."""
        error = self._offer_powers(view, codes, values, coefficients, limit, False)
        if LOG in self.setting.operators and error > EXACT and LOG_SIZE in codes:
            error = min(error, self._offer_powers(view, codes, values, coefficients, limit, True))
        return error

    def _offer_powers(
        self, view: View, codes: Ints, values: Floats, coefficients: Floats, limit: int, free: bool
    ) -> float:
        """The same; `free` powers of what is positive may be others than halves."""
        setting = self.setting
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        count = trees.terms_of(codes, len(codes), starts) if len(codes) else 0
        used = view.roots > 0
        target = np.log(np.abs(setting.target[used] - view.base))
        powers: list[tuple[list[int], list[float], float]] = []
        inside: list[tuple[list[int], list[float], float]] = []
        others = 0
        for t in range(count):
            start, end = int(starts[t]), trees.end_of(codes, int(starts[t]))
            power = float(coefficients[t + 1]) * view.scale
            if power == 0.0:
                continue
            row = trees.forward(codes, values, setting.literals, start, end, self.room[0])
            column = self.room[0][0][row][used].copy()
            part = codes[start:end].tolist(), values[start:end].tolist()
            if codes[start] != LOG_SIZE:
                inside.append((*part, power))
            elif (
                free
                and abs(power - rounded(power)) > _HALVES
                and self._is_positive(codes, values, start + 1, end)
            ):
                inside.append(([LOG, *part[0][1:]], part[1], power))
                others += 1
            else:
                power = rounded(power)
                if not abs(power) <= LARGEST_POWER:
                    return math.inf
                powers.append((part[0][1:], part[1][1:], power))
            target = target - power * column
        if free and not others:
            return math.inf
        logs = [np.log(np.abs(setting.columns[i][used])) for i in view.inputs]
        found = exponents(logs, target, view.roots[used]).tolist()
        if not all(abs(p) <= LARGEST_POWER for p in found):
            return math.inf
        halves = [([COLUMN + i], [math.nan], rounded(p)) for i, p in zip(view.inputs, found, strict=True)]
        error = self._rate_product([*powers, *halves], inside, limit)
        odd = [
            abs(p - rounded(p)) > _HALVES and setting.columns[i].min() > 0
            for i, p in zip(view.inputs, found, strict=True)
        ]
        if any(odd) and LOG in setting.operators:
            kept = [part for part, free in zip(halves, odd, strict=True) if not free]
            inside += [
                ([LOG, COLUMN + i], [math.nan] * 2, p)
                for i, p, free in zip(view.inputs, found, odd, strict=True)
                if free
            ]
            error = min(error, self._rate_product([*powers, *kept], inside, limit))
        return error

    def _is_positive(self, codes: Ints, values: Floats, start: int, end: int) -> bool:
        row = trees.forward(codes, values, self.setting.literals, start, end, self.room[0])
        return bool((self.room[0][0][row] > 0).all())

    def _rate_product(
        self,
        powers: list[tuple[list[int], list[float], float]],
        inside: list[tuple[list[int], list[float], float]],
        limit: int,
    ) -> float:
        """Rate a product of powers and of exp(p1 g1 + p2 g2 + ...)."""
        setting = self.setting
        written = product(powers, setting.operators)
        if written is None:
            return math.inf
        tokens, numbers = written
        if inside:
            if EXP not in setting.operators or not setting.most_constants:
                return math.inf
            more: Part = [EXP], [math.nan]
            for place, (own, own_values, power) in enumerate(inside):
                lead = [ADD] if place < len(inside) - 1 else []
                more[0].extend([*lead, MUL, CONSTANT, *own])
                more[1].extend([*[math.nan] * len(lead), math.nan, power, *own_values])
            tokens, numbers = times([(tokens, numbers), more]) if tokens else more
        if not tokens or len(tokens) > setting.longest:
            return math.inf
        return self.propose(tokens, numbers, limit, 40)

    def offer(self, codes: Sequence[int], values: Sequence[float], limit: int) -> None:
        """Rate an expression from outside, with its constants fitted, until so many calls are spent in all."""
        own, numbers = np.array(codes, np.int64), np.array(values)
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        count = trees.terms_of(own, len(own), starts)
        # Coefficients of the sum are solved: written down they would count as constants.
        parts = [slice(start, trees.end_of(own, start)) for start in starts[: max(count, 0)].tolist()]
        if parts:
            self.propose(*added([(own[at].tolist(), numbers[at].tolist()) for at in parts]), limit, 60)

    def propose(
        self,
        codes: list[int],
        values: list[float],
        limit: int,
        most_calls: int,
        view: View | None = None,
        again: bool = True,
    ) -> float:
        """Rate an expression for a view, that of y itself if none is given; infinite if it is too long."""
        draft = self.filled(codes, values)
        return math.inf if draft is None else self.rate(draft, limit, most_calls, view, again)

    def target(self, view: View) -> fitting.Target:
        """What a view fits, without an offset where that would be a constant with a unit."""
        if view.unit is not None and view.unit.any():
            return view.whole, view.roots, np.zeros((0, len(view.whole))), 0.0
        return view.rest, view.roots, view.fixed, view.mean

    def residual(self, view: View, codes: Ints, values: Floats) -> Floats:
        """What a sum leaves of the target of a view, with its coefficients solved; float[n], times the roots."""
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        count = trees.terms_of(codes, len(codes), starts)
        data = self.target(view)
        fitting.solve_terms(codes, values, self.setting.literals, starts, count, data, self.room)
        left: Floats = self.room[4].copy()
        return left

    def of_its_unit(self, view: View, terms: list[list[int]]) -> list[list[int]]:
        """Terms that may stand in a sum without constants that have units."""
        units = self.setting.units
        if units is None:
            return terms
        problem, starts, found = self.problem(view), np.zeros(1, np.int64), []
        for codes in terms:
            own = np.array(codes, np.int64)
            rank, _ = _units.agreement(own, problem[1], len(own), starts, 1, problem[-1])
            if 0 <= rank <= self.least(view, units) and CONSTANT not in codes:
                found.append(codes)
        return found

    def part(self, item: int) -> list[int]:
        """Codes of a short expression."""
        codes: list[int] = self.pool[0][item, : self.pool[1][item]].tolist()
        return codes

    def values(self, codes: list[int]) -> Floats:
        """Of an expression without constants, on the rows."""
        own = np.array(codes, np.int64)
        with np.errstate(all="ignore"):
            row = trees.forward(own, np.zeros(len(own)), self.setting.literals, 0, len(own), self.room[0])
        found: Floats = self.room[0][0][row].copy()
        return found

    @property
    def scale(self) -> float:
        """Of the target: errors are relative to its square."""
        return self.views[0].scale
