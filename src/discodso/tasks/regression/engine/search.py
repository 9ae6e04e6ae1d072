"""The search for equations: all short expressions first, then variations of the best of every price.

A view is a way to look at the target: as it is, or through the inverse of a function, so that y = sqrt(a + b) is
the sum a + b for y^2. Errors of a view are weighed by the slope of its function, so that they are about those of y
itself. The view of products looks at log|y|, with the logarithms of all inputs in every fit: their coefficients
are the exponents of c x1^p1 ... xd^pd, and terms such as log|g| are more factors. What a view finds is rewritten
for y and fitted there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product as product_of
from itertools import zip_longest
from math import comb

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.threads import one_blas_thread
from discodso.space.state import State
from discodso.tasks.regression.engine import _evolution as evolution
from discodso.tasks.regression.engine import _fitting as fitting
from discodso.tasks.regression.engine import _pool as pools
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine import _units, dictionaries, quotients, sweeps
from discodso.tasks.regression.engine import _variation as variation
from discodso.tasks.regression.engine import _waves as waves
from discodso.tasks.regression.engine._random import below
from discodso.tasks.regression.engine._trees import (
    ADD,
    COLUMN,
    CONSTANT,
    COS,
    DIV,
    EXP,
    INV,
    LITERAL,
    LOG,
    LOG_SIZE,
    MUL,
    N2,
    SIN,
    SUB,
)
from discodso.tasks.regression.engine.products import (
    Part,
    added,
    exponents,
    plain,
    power_of,
    product,
    quotient,
    rounded,
    summed,
    times,
)
from discodso.tasks.regression.engine.setting import LARGEST, Setting, Units
from discodso.tasks.regression.engine.views import LINKS, MOST_PRICE, SLOTS, View, centre

_SMALL_STEP = 1000
_LARGEST_POWER = 8
EXACT = 1e-24  # errors of rounding
VARY = 8  # the last stage
_LONGER, _LEAST_LONGER = 1.25, 1000  # calls until a search that has explained all digits ends
_LISTING, _LISTING_ONE, _PLAIN = 0.2, 0.35, 0.75  # shares: all short expressions, of one input; then y itself
_AHEAD = 0.1  # of all calls, to each of the views that explain most of their own target
_EARNED = 0.5  # of y's share, goes to other views as far as the front is theirs
_WAVES = 3  # spectra in a step
_BELLS = 3  # side by side
_SHIFTS = 0.04  # of the budget, for functions of one input that is shifted
_SWEEP, _PLANES, _BEST_WAVES = (
    0.04,
    0.03,
    8,
)  # of the budget for spectra in order; and how many waves are fitted
_GROWTH, _BEST_GROWTHS = 0.02, 6  # of the budget for exponentials; and how many of a view are fitted
_PERIODIC, _BEST_PERIODIC, _MOST_PERIODIC = (
    0.9,
    3,
    6,
)  # share that is explained; how many sums, of so many waves
_PARTS = 30  # of the pool, in which waves run and by which they are multiplied
_DICTIONARIES = 0.01  # of the budget, for each dictionary in each view
_HALVES = 0.01  # from a half: a power that is none
_POOL = 60_000
_SURE, _ROWS_FOR_POWERS = 0.15, 50  # standard error of a power that stands out, and the fewest rows for it
_UNIT_PRICE = 2  # of each independent unit that constants have, beyond those that they must have
_PLAIN_WITH_UNITS = 0.5
_PRODUCT_PARTS, _LEADING = 3, 2  # of the calls that all other views share; and how many lead
_UNIT_SHARES = (0.4, 0.5, 0.1)  # for as few units of constants as may be, one more, and as many as may be
GENERIC = np.array([0.7316, 1.2934, 0.4177, 1.871, 0.9123, 1.557, 0.6271, 1.1113])
MOVES = np.array([3, 2, 2, 1.5, 1.5, 3, 2, 1, 2, 2, 1.5, 0.5, 0.5])


class EquationSearch:
    """The search; `step` spends calls."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting = setting
        inputs, n = setting.columns.shape
        rng = np.random.default_rng(seed)
        self.random = np.array([rng.integers(2**63)], np.uint64)
        self.probe_rows = rng.choice(n, trees.PROBES, replace=n < trees.PROBES)
        probes = np.ascontiguousarray(setting.columns[:, self.probe_rows])
        if n < trees.PROBES:  # few rows: rows in between tell as well
            probes = probes * np.exp(0.1 * rng.standard_normal(probes.shape))
        self.probes = trees.room_for(probes, setting.longest)
        self.room = fitting.fitting_room(setting.columns, LARGEST)  # of what is tried, too, not only kept
        binary = [code for code in setting.operators if trees.is_binary(code)]
        self.binary = np.array(binary, np.int64)
        self.unary = np.array([code for code in setting.operators if code not in binary], np.int64)
        self.moves = np.cumsum(MOVES / MOVES.sum())
        self.counts = np.zeros(4, np.int64)  # calls, repeats, invalid drafts, proposals
        self.views = self._views()
        self._start_pool(probes, inputs)
        self.stage = 0  # 0 for short expressions, then dictionaries, quotients, shifts and waves, and VARY
        self.solved_at: int | None = None  # calls after which all digits were explained
        self.complete = 0  # price up to which all expressions were rated

    # ------------------------------------------------------------------------------------------- beginning

    def _views(self) -> list[View]:
        setting = self.setting
        y, w, longest, units = setting.target, setting.weights, setting.longest, setting.units
        unit = None if units is None else units.target
        found = [View("plain", (), y, w, longest, unit=unit)]
        size = np.abs(y)
        low, middle, high = np.quantile(size, [0.1, 0.5, 0.9])
        if high > 30 * max(low, 1e-300) and middle > 0:
            relative = w / (np.square(size / middle) + 0.03**2)
            found.append(View("relative", (), y, relative / relative.sum(), longest, unit=unit))
        base = centre(y) if units is None else 0.0
        size = np.abs(y - base)
        middle = float(np.median(size))
        if middle > 0 and (size > 0).mean() > 0.9 and MUL in setting.operators:
            weights = np.where(size > 0, w * np.square(size / (size + 0.1 * middle)), 0.0)
            inputs = [i for i in range(len(setting.columns)) if (setting.columns[i] != 0).all()]
            target = np.log(np.where(size > 0, size, 1.0))
            logs = [np.log(np.abs(setting.columns[i])) for i in inputs]
            product = [View("product", (), target, weights, longest, logs, inputs, base=base)]
        else:
            product = []
        looked_at: list[tuple[str, Part | None, Floats, Floats]] = [("", None, y, w)]
        factor = self._outstanding() if units is None else self._factor(units)
        if factor is not None:
            part, values, unit = factor
            reduced, weights = y / values, w * np.square(values)
            found.append(View("reduced", (), reduced, weights, longest, unit=unit, factor=part))
            if units is not None:
                looked_at = []
            looked_at.append((" reduced", part, reduced, weights / weights.sum()))
        for (name, written, y, w), link in product_of(looked_at, LINKS):
            if not (all(code in setting.operators for code in link.code) and link.possible(y)):
                continue
            if not link.power and unit is not None and unit.any():
                continue  # a logarithm of what is no pure number
            with np.errstate(all="ignore"):
                target, slope = link.there(y), link.slope(y)
                weights = w * np.square(slope)
            if np.isfinite(target).all() and np.isfinite(weights).all() and weights.sum() > 0:
                own = None if unit is None else link.power * unit
                whole = weights / weights.sum()
                named = link.name + (name if units is None else "")
                found.append(View(named, link.code, target, whole, longest, unit=own, factor=written))
        return found + product

    def _factor(self, units: Units) -> tuple[Part, Floats, Floats] | None:
        """The product of powers that units alone give to every law without constants that have units.

        It is of those inputs that are the only ones with some base unit, such as the only mass. Returns how it is
        written, its values[n], and the unit of what is left; None if there is none.
        """
        columns = self.setting.columns
        if units.least:
            return None
        alone = [i for i in range(len(columns)) if units.is_alone(i) and (columns[i] != 0).all()]
        powers = [(i, rounded(p)) for i, p in enumerate(units.powers()) if i in alone and abs(p) > 1e-6]
        if not powers or any(abs(p) > _LARGEST_POWER for _, p in powers):
            return None
        written = product([([COLUMN + i], [math.nan], p) for i, p in powers], self.setting.operators)
        if not written or not written[0] or (columns[[i for i, p in powers if p % 1]] < 0).any():
            return None
        values = np.prod([columns[i] ** p for i, p in powers], axis=0)
        left = units.target - sum(p * units.columns[i] for i, p in powers)
        if not (np.isfinite(values).all() and np.isfinite(self.setting.target / values).all()):
            return None
        return written, values, np.where(np.abs(left) < 1e-9, 0.0, left)

    def _outstanding(self) -> tuple[Part, Floats, None] | None:
        """A product of whole powers of inputs that y is surely made of, beside what is no such product.

        Powers are those of least squares of logarithms, where they lie near whole numbers and cannot be others.
        """
        y, columns = self.setting.target, self.setting.columns
        inputs = [i for i in range(len(columns)) if (columns[i] != 0).all()]
        used = y != 0
        if not used.mean() > 0.9 or len(y) < _ROWS_FOR_POWERS or not inputs:
            return None
        table = np.column_stack([np.ones(used.sum()), *(np.log(np.abs(columns[i][used])) for i in inputs)])
        log_size = np.log(np.abs(y[used]))
        solved, _, rank, _ = np.linalg.lstsq(table, log_size, rcond=1e-10)
        rest = log_size - table @ solved
        if rank < table.shape[1] or not rest @ rest > 1e-16 * (log_size @ log_size):
            return None
        variance = float(rest @ rest) / len(rest)
        errors = np.sqrt(variance * np.diag(np.linalg.inv(table.T @ table)))
        powers = [
            (i, float(round(p)))
            for i, p, error in zip(inputs, solved[1:].tolist(), errors[1:].tolist(), strict=True)
            if round(p) and abs(p) < 4.5 and error < _SURE and abs(p - round(p)) < 3 * error
        ]
        written = product([([COLUMN + i], [math.nan], p) for i, p in powers], self.setting.operators)
        if not written or not written[0] or len(powers) == len(columns):
            return None
        values = np.prod([columns[i] ** p for i, p in powers], axis=0)
        return (written, values, None) if np.isfinite(y / values).all() else None

    @staticmethod
    def _least(view: View, units: Units) -> int:
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
        self.groups = self._by_unit()

    def _by_unit(self) -> tuple[Floats, Ints, Ints]:
        count = self.pool_count
        constant = (self.pool[0][:count] == CONSTANT).any(axis=1)
        return _units.by_unit(self.pool_units[:count], constant[: len(self.pool_units)], self.one)

    # ---------------------------------------------------------------------------------------------- steps

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
        least = self._least(view, units)
        target = np.zeros(len(units.target)) if view.unit is None else view.unit
        return (
            True,
            units.columns,
            target,
            units.target if least and view.unit is None else np.zeros(len(target)),
            units.most if most is None else most,
            least,
            _UNIT_PRICE,
            not target.any(),
            offset,
            view.whole,
            np.zeros((0, len(view.whole))),
            *self.groups,
        )

    def _phases(self, view: View) -> list[tuple[float, int, bool]]:
        """Shares of calls, how many independent units constants may have, and whether offsets may need one."""
        units = self.setting.units
        if units is None:
            return [(1.0, 0, False)]
        least = self._least(view, units)
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

    def _make_room(self, view: View, more: int) -> None:
        """Let the set of what was rated take so many more; each costs a call at least."""
        while 2 * (view.calls + more) > len(view.seen):
            view.seen = trees.grown(view.seen)

    def step(self, room: int) -> int:
        """Spend at most so many calls on the next thing to do; returns how many were spent."""
        before = int(self.counts[0])
        limit = before + room
        share = int((_LISTING if len(self.setting.columns) > 1 else _LISTING_ONE) * self.setting.budget)
        if self.stage == 0 and before + 2 <= share:
            price = 0
            # Where operators are dear there are prices that no new expression has.
            while self.stage == 0 and int(self.counts[0]) == before and price < self.pool_price:
                price = self.pool_price
                self._enumerate(min(limit, share))
        else:
            self.stage = max(self.stage, 1)
        if self.stage and int(self.counts[0]) == before:
            beginnings = (
                self._thin_out,
                self._divide,
                self._shift,
                self._stack,
                self._grow,
                self._sweep,
                self._harmonise,
            )
            while self.stage < VARY and int(self.counts[0]) == before:
                beginnings[self.stage - 1](limit)
                self.stage += 1
            if self.stage == VARY and int(self.counts[0]) < limit:
                self._evolve(limit)
        self._look()
        return int(self.counts[0]) - before

    def _rate_pool(self, view: View, limit: int) -> bool:
        """Rate what is new in the pool; whether all of it was.

        What needs a constant with a unit waits until the pool has what is as expensive without.
        """
        units = self.setting.units
        if units is None:
            view.next_item = self._rate_items(view, view.next_item, self.pool_count, None, limit, self.counts)
            return view.next_item == self.pool_count
        least = self._least(view, units)
        view.next_item = self._rate_items(view, view.next_item, self.pool_count, least, limit, self.counts)
        late = int(self.first[max(self.pool_price + 1 - _UNIT_PRICE, 0)])
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
        self._make_room(view, (1 + view.products) * (last - first))
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
        self._rewrite(limit)
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
        self.groups = self._by_unit()

    @property
    def scale(self) -> float:
        """Of the target: errors are relative to its square."""
        return self.views[0].scale

    @property
    def found(self) -> bool:
        """Whether nothing is left to explain, and a shorter equation was looked for as well."""
        return self.solved_at is not None and is_over(int(self.counts[0]), self.solved_at)

    def _look(self) -> None:
        """Note when all digits were first explained, those of most rows of a target over decades, too."""
        wide = [view for view in self.views if view.name == "relative"]
        if self.solved_at is None and self.views[0].best < EXACT and (not wide or self._right_rows() > 0.9):
            self.solved_at = int(self.counts[0])

    def _right_rows(self) -> float:
        """The share of the rows of which the best expression gives the first nine digits."""
        view, y = self.views[0], self.setting.target
        codes, values, lengths, errors, _, _, _ = view.archive
        starts, place = np.zeros(trees.MOST_TERMS, np.int64), int(errors.argmin())
        own = codes[place, : lengths[place]].copy()
        count = trees.terms_of(own, len(own), starts)
        data = self._target(view)
        fitting.solve_terms(own, values[place], self.setting.literals, starts, count, data, self.room)
        gaps = np.abs(self.room[4]) * view.scale / np.where(view.roots > 0, view.roots, 1.0)
        return float(np.mean(gaps <= 1e-9 * np.abs(y)))

    def _thin_out(self, limit: int) -> None:
        """Offer sums of what is left of dictionaries: monomials, and the shortest expressions."""
        inputs, count = self.setting.columns.shape
        found = [
            [self._monomial(chosen) for chosen in dictionaries.monomials(inputs, degree)]
            for degree in dictionaries.degrees(inputs)
            if MUL in self.setting.operators
        ]
        found.append([self._part(item) for item in range(min(_PARTS, self.pool_count))])
        single = [[code, COLUMN + i] for i in range(inputs) for code in self.unary.tolist()]
        sizes = [[LOG_SIZE, *codes] for codes in single if codes[0] != EXP]
        for view in self.views:
            for listed in [[*([COLUMN + i] for i in range(inputs)), *sizes]] if view.products else found:
                terms = self._of_its_unit(view, listed)
                room = limit - int(self.counts[0])
                small = len(terms) + trees.MOST_TERMS <= min(room, _DICTIONARIES * self.setting.budget)
                if terms and small and 2 * len(terms) <= count:
                    self._thin_out_one(view, terms, limit)
        self._rewrite(limit)

    def _divide(self, limit: int) -> None:
        """Offer the quotient of two sums of monomials if there is one that is y, up to an offset."""
        setting, view = self.setting, self.views[0]
        if setting.units is not None or not {ADD, MUL, DIV} <= set(setting.operators):
            return
        for chosen in quotients.exponents(len(setting.columns)):
            left = min(limit - int(self.counts[0]), _DICTIONARIES * setting.budget)
            terms = [self._monomial(own) for own in chosen]
            if 2 * len(terms) > left:
                return
            table = np.array([self._values(codes) if codes else np.ones(len(view.rest)) for codes in terms])
            self.counts[0] += len(terms)  # as many columns again as there are terms
            view.calls += len(terms)
            with one_blas_thread():
                found = quotients.relation(table, setting.target, view.roots)
            if found is None:
                continue
            above, _ = quotients.without_offset(*found)
            below = found[1]
            if not above.any() or np.count_nonzero(below) > trees.MOST_TERMS:
                return
            if np.count_nonzero(below) == 1:
                (place,) = np.flatnonzero(below)
                under = [(terms[place], [math.nan] * len(terms[place]))] if terms[place] else []
                overs = [
                    [(terms[k], [math.nan] * len(terms[k]))] if terms[k] else []
                    for k in np.flatnonzero(above)
                ]
            else:
                under, over = self._summed(chosen, below), self._summed(chosen, above)
                overs = [[] if over[0][0] == [CONSTANT] else over]
            written = [quotient(over, under, setting.operators) for over in overs]
            parts = [part for part in written if part is not None and part[0]]
            if not parts:
                return
            codes, values = added(parts)
            self._propose(codes, values, limit, 40)
            return

    def _summed(self, chosen: Sequence[tuple[int, ...]], coefficients: Floats) -> list[Part]:
        """A sum of monomials as the only factor of a product, squares of differences written as such."""
        left = {chosen[place]: float(coefficients[place]) for place in np.flatnonzero(coefficients).tolist()}
        squared = {N2, SUB} <= set(self.setting.operators)
        pairs = quotients.squares(left) if squared else []
        powers = quotients.shifted_powers(left) if self.setting.most_constants > 1 else []
        operators = self.setting.operators
        parts = [plain([N2, ADD if sign > 0 else SUB, COLUMN + i, COLUMN + j]) for _, i, j, sign in pairs]
        for _, i, shift, power in powers:
            parts.append(
                power_of(([ADD, CONSTANT, COLUMN + i], [math.nan, shift, math.nan]), power, operators)
            )
        parts += [plain(self._monomial(own)) for own in left]
        sizes = [*(factor for factor, *_ in pairs), *(factor for factor, *_ in powers), *left.values()]
        factors = quotients.ratios(np.array(sizes)).tolist()
        return [summed(factors, parts)]

    def _shift(self, limit: int) -> None:
        """Offer functions of one input, shifted and scaled, beside inputs and squares, and beside nothing."""
        setting, inputs = self.setting, len(self.setting.columns)
        if setting.units is not None or setting.most_constants < 2:
            return
        squares = [[N2, COLUMN + i] for i in range(inputs)] if N2 in self.unary and 2 * inputs < 8 else []
        terms = [[COLUMN + i] for i in range(inputs)] + squares
        beside = [] if len(terms) >= trees.MOST_TERMS else terms
        end = min(limit, int(self.counts[0]) + int(_SHIFTS * setting.budget))
        views = sorted(self.views, key=lambda view: not view.products)
        for place, view in enumerate(views):
            part_of = 3 if view.products else len(views) - place
            last = int(self.counts[0]) + (end - int(self.counts[0])) // part_of
            terms = self._plain_terms(view) if view.products else beside
            list_of = sweeps.sizes if view.products else sweeps.shifted
            unary = self.unary.tolist()
            parts = [list(list_of(setting.columns[i], i, unary)) for i in range(inputs)]
            if not view.products and {EXP, N2, INV} <= set(unary):
                shape = _without_weights(view.rest, view.roots)
                for i in range(inputs):
                    parts[i] = [*sweeps.peaks(setting.columns[i], i, shape), *parts[i]]
            best, best_part = math.inf, None
            for part in (part for own in zip_longest(*parts) for part in own if part is not None):
                if int(self.counts[0]) + 60 > last:
                    break
                error, values = self._beside(view, terms, part, limit)
                if error < best:
                    best, best_part = error, (part[0], values)
                if terms:
                    self._beside(view, [], part, limit)
            left = list(terms)
            for own in terms if best_part is not None else ():  # without what is not missed
                fewer = [other for other in left if other != own]
                if best_part is not None and int(self.counts[0]) < limit:
                    error, values = self._beside(view, fewer, best_part, limit)
                    if error < 1.2 * best + EXACT:
                        left, best, best_part = fewer, error, (best_part[0], values)
        self._rewrite(limit)

    def _plain_terms(self, view: View) -> list[list[int]]:
        """Terms of the best expression of a view that has no constants inside; none if it has too many."""
        codes, _, lengths, errors, _, _, _ = view.archive
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        for place in np.argsort(errors, kind="stable")[:SLOTS].tolist():
            own = codes[place, : lengths[place]]
            if errors[place] < math.inf and CONSTANT not in own:
                count = trees.terms_of(own, len(own), starts)
                found = [own[start : trees.end_of(own, start)].tolist() for start in starts[:count].tolist()]
                return found if count < trees.MOST_TERMS else []
        return []

    def _beside(
        self, view: View, terms: list[list[int]], part: Part, limit: int
    ) -> tuple[float, list[float]]:
        """Rate a term beside others; gives the error, and the values of the term as they were fitted."""
        lead = [token for own in terms for token in (ADD, *own)]
        draft = self._filled([*lead, *part[0]], [*[math.nan] * len(lead), *part[1]])
        if draft is None:
            return math.inf, part[1]
        error = self._rate(draft, limit, 30, view)
        return error, draft[1][len(lead) : draft[2][0]].tolist()

    def _propose(
        self,
        codes: list[int],
        values: list[float],
        limit: int,
        most_calls: int,
        view: View | None = None,
        again: bool = True,
    ) -> float:
        """Rate an expression for a view, that of y itself if none is given; infinite if it is too long."""
        draft = self._filled(codes, values)
        return math.inf if draft is None else self._rate(draft, limit, most_calls, view, again)

    def _stack(self, limit: int) -> None:
        """Offer bells over an input, one more at a time where most is left, on a line, a decay and nothing."""
        setting, view = self.setting, self.views[0]
        needed = {ADD, MUL, EXP, N2} <= set(setting.operators)
        if setting.units is not None or not needed or setting.most_constants < 4 or view.best < EXACT:
            return
        last = min(limit, int(self.counts[0]) + int(_SHIFTS * setting.budget))
        for i, column in enumerate(setting.columns):
            spread = float(np.ptp(column))
            if not 0 < spread < 1e100:
                continue
            decay: Part = [EXP, MUL, CONSTANT, COLUMN + i], [math.nan, math.nan, -1.5 / spread, math.nan]
            for first, pair in product_of(([], [([COLUMN + i], [math.nan])], [decay]), (False, True)):
                parts: list[Part] = list(first)
                for bell in range(_BELLS - pair):
                    if int(self.counts[0]) + 60 > last:
                        return
                    residual = self._target(view)[0]
                    if parts:
                        codes, values = added(parts)
                        residual = self._residual(view, np.array(codes, np.int64), np.array(values))
                    if not np.isfinite(residual).all():
                        break
                    shape = _without_weights(residual, view.roots)
                    more = next(sweeps.peaks(column, i, shape), None)
                    if more is None:
                        break
                    parts += sweeps.halves(more) if pair and not bell else [more]
                    fitted = self._fitted(parts, limit)
                    if fitted is None:
                        break
                    parts = fitted

    def _fitted(self, parts: list[Part], limit: int) -> list[Part] | None:
        """Rate a sum; gives its parts with their constants as fitted, None if it cannot be rated."""
        draft = self._filled(*added(parts))
        if draft is None or not self._rate(draft, limit, 50) < math.inf:
            return None
        at, found = 0, list[Part]()
        for place, (own, _) in enumerate(parts):
            at += place < len(parts) - 1  # the sign of the sum stands before all but the last
            found.append((own, draft[1][at : at + len(own)].tolist()))
            at += len(own)
        return found

    def _grow(self, limit: int) -> None:
        """Offer exponentials of two inputs: as terms, and in views of products beside a constant."""
        setting = self.setting
        if (
            setting.units is not None
            or setting.most_constants < 2
            or not {ADD, MUL, DIV, EXP} <= set(setting.operators)
        ):
            return
        views = [view for view in self.views if view.code in ((), (INV,)) and view.name != "relative"]
        views.sort(key=lambda view: not view.products)
        end = min(limit, int(self.counts[0]) + int(_GROWTH * setting.budget))
        for place, view in enumerate(views):
            rest, roots, fixed, _ = self._target(view)
            if not rest @ rest > EXACT:
                continue
            part_of = 2 if view.products else len(views) - place
            last = int(self.counts[0]) + (end - int(self.counts[0])) // part_of
            look = sweeps.saturations if view.products else sweeps.growths
            starts = look(setting.columns, rest, roots, fixed)
            found: list[tuple[float, Part]] = []
            while int(self.counts[0]) < last and (start := next(starts, None)) is not None:
                self.counts[0] += start.calls
                view.calls += start.calls
                if start.part is not None:
                    found.append((start.share, start.part))
            for _, part in sorted(found, key=lambda one: -one[0])[:_BEST_GROWTHS]:
                self._beside(view, [], part, limit)
                if not view.products and part[0][0] != EXP:
                    factor = part[0][1] if part[0][0] == MUL else part[0][-1]
                    self._beside(view, [[factor] if part[0][0] == MUL else [INV, factor]], part, limit)
        self._rewrite(limit)

    def _harmonise(self, limit: int) -> None:
        """Offer sums of waves of multiples of a frequency, with one envelope, of as few waves as may be."""
        setting, view = self.setting, self.views[0]
        needed = {ADD, MUL, DIV, SIN, COS} <= set(setting.operators)
        rest, roots, fixed, _ = self._target(view)
        if setting.units is not None or not needed or setting.most_constants < 4 or not rest @ rest > EXACT:
            return
        last = min(limit, int(self.counts[0]) + int(_SWEEP * setting.budget))
        found: list[sweeps.Harmonics] = []
        for one in sweeps.harmonics(setting.columns, rest, roots, fixed, EXP in setting.operators):
            if int(self.counts[0]) >= last:
                break
            self.counts[0] += one.calls
            view.calls += one.calls
            if one.share > _PERIODIC:
                found.append(one)
        for one in sorted(found, key=lambda own: -own.share)[:_BEST_PERIODIC]:
            with one_blas_thread():
                steps = list(dictionaries.eliminated(one.table, rest))
            for left in steps:
                self.counts[0] += 1
                view.calls += 1
                if len(left) > _MOST_PERIODIC * (1 + (one.other >= 0)) or int(self.counts[0]) >= limit:
                    continue
                part = self._periodic(one, list(left), rest)
                if part is not None:
                    self._propose(*part, limit, 40)

    def _periodic(self, one: sweeps.Harmonics, left: list[int], rest: Floats) -> Part | None:
        """How some waves with their envelope are written; None if the other input has no common factor."""
        factors = np.linalg.lstsq(one.table[left].T, rest, rcond=None)[0]
        half = len(one.table) // (1 + (one.other >= 0))
        above, below = one.envelope(self.setting.operators)
        if one.other >= 0:  # a (u + v z) with the same u / v for all waves is a product with z + u / v
            both = np.zeros((2, half))
            both.flat[left] = factors
            turn, strengths, waves = np.linalg.svd(both, full_matrices=False)
            if strengths[1] > 1e-6 * strengths[0] or not turn[1, 0]:
                return None
            shift = float(turn[0, 0] / turn[1, 0])
            above.insert(0, ([ADD, CONSTANT, COLUMN + one.other], [math.nan, shift, math.nan]))
            left = np.flatnonzero(np.abs(waves[0]) > 1e-6).tolist()
            factors = waves[0][left]
        parts = [one.wave(number) for number in left]
        if not above and not below:
            return added(parts)
        largest = float(factors[np.abs(factors).argmax()])
        return quotient([*above, summed((factors / largest).tolist(), parts)], below, self.setting.operators)

    def _sweep(self, limit: int) -> None:
        """Offer the waves that explain most, of spectra of all inputs; beside nothing, and a polynomial."""
        setting, view = self.setting, self.views[0]
        possible = {ADD, MUL, SIN} <= set(setting.operators) and setting.most_constants > 1
        if setting.units is not None or not possible:
            return
        columns = setting.columns
        rest, roots, fixed, _ = self._target(view)
        size = next((d for d in (2, 1) if comb(len(columns) + d, d) <= trees.MOST_TERMS), 0)
        terms = [self._monomial(chosen) for chosen in dictionaries.monomials(len(columns), size)]
        table = np.array([self._values(codes) for codes in terms]).reshape(len(terms), len(rest)) * roots
        basis = np.linalg.qr(np.concatenate((fixed, table)).T)[0].T
        left = rest - (basis @ rest) @ basis
        decays = EXP in setting.operators
        found: list[tuple[float, Part, bool]] = []

        def look(waves: Iterator[sweeps.StartTerm], most: float, beside: bool) -> None:
            last = min(int(self.counts[0]) + int(most * setting.budget), limit - 100)
            while int(self.counts[0]) < last and (wave := next(waves, None)) is not None:
                self.counts[0] += wave.calls
                view.calls += wave.calls
                if wave.part is not None:
                    found.append((wave.share, wave.part, beside))

        if rest @ rest > EXACT:
            look(sweeps.single_waves(columns, rest, roots, decays), _SWEEP / 2, False)
            look(sweeps.fast_waves(columns, rest, roots), _SWEEP / 2, False)
        if terms and left @ left > EXACT * (rest @ rest):
            look(sweeps.single_waves(columns, left, roots, decays), _SWEEP / 2, True)
            if setting.most_constants > 2:
                look(sweeps.plane_waves(columns, left, roots), _PLANES, True)
        for share, (codes, values), beside in sorted(found, key=lambda one: -one[0])[:_BEST_WAVES]:
            tokens = [token for own in terms for token in (ADD, *own)] if beside else []
            if share > 0:  # in prefix order each + takes a term, the last one the wave
                self._propose([*tokens, *codes], [math.nan] * len(tokens) + values, limit, 40)

    def _thin_out_one(self, view: View, terms: list[list[int]], limit: int) -> None:
        with np.errstate(all="ignore"):
            table = np.array([self._values(codes) for codes in terms]) * view.roots
        kept = np.flatnonzero(np.isfinite(table).all(axis=1) & (np.abs(table).max(axis=1) < 1e100))
        if not len(kept):
            return
        table = table[kept]
        rest, _, fixed, _ = self._target(view)
        table = table - (table @ fixed.T) @ fixed
        with one_blas_thread():
            steps = list(dictionaries.eliminated(table, rest))
        for left in steps:
            self.counts[0] += 1
            view.calls += 1
            if len(left) > trees.MOST_TERMS:
                continue
            codes = [ADD] * (len(left) - 1) + [code for place in left for code in terms[kept[place]]]
            self._propose(codes, [math.nan] * len(codes), limit, 1, view)

    def _target(self, view: View) -> fitting.Target:
        """What a view fits, without an offset where that would be a constant with a unit."""
        if view.unit is not None and view.unit.any():
            return view.whole, view.roots, np.zeros((0, len(view.whole))), 0.0
        return view.rest, view.roots, view.fixed, view.mean

    def _of_its_unit(self, view: View, terms: list[list[int]]) -> list[list[int]]:
        """Terms that may stand in a sum without constants that have units."""
        units = self.setting.units
        if units is None:
            return terms
        problem, starts, found = self.problem(view), np.zeros(1, np.int64), []
        for codes in terms:
            own = np.array(codes, np.int64)
            rank, _ = _units.agreement(own, problem[1], len(own), starts, 1, problem[-1])
            if 0 <= rank <= self._least(view, units) and CONSTANT not in codes:
                found.append(codes)
        return found

    def _monomial(self, chosen: Sequence[int]) -> list[int]:
        """A product of inputs, with squares where there are any."""
        codes: list[int] = []
        for i in dict.fromkeys(chosen):
            power = chosen.count(i)
            while power:
                square = power > 1 and N2 in self.setting.operators
                codes = [*([MUL] if codes else []), *([N2] if square else []), COLUMN + i, *codes]
                power -= 1 + square
        return codes

    def _evolve(self, limit: int) -> None:
        calls = int(self.counts[0])
        others = len(self.views) - 1
        # What is left of a large step is for rewriting; a small one is for the plain view alone.
        small = limit - calls < _SMALL_STEP
        last = limit if small else limit - 100
        room = last - calls
        shares = [1.0] if small or not others else self._shares()
        for view, share in zip(self.views, shares, strict=False):
            before = int(self.counts[0])
            allowed = before + int(share * room)
            self._make_room(view, int(share * room) + 64)
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
            view.calls += int(self.counts[0]) - before
        self._rewrite(limit)
        if not small and self.setting.most_constants > 1 and {SIN, COS} <= set(self.setting.operators):
            for _ in range(_WAVES):
                self._add_wave(limit)

    def _add_wave(self, limit: int) -> None:
        """Offer the best of a price, or nothing, plus a wave of a short expression, perhaps times another.

        Its frequency is where the spectrum of what is left is highest. Each frequency that is tried is a call.
        """
        view, random = self.views[0], self.random
        tried = min(int(sweeps.CYCLES * sweeps.TO_A_CYCLE), len(view.rest) // 2)
        if int(self.counts[0]) + tried + 20 > limit:
            return
        place = self._one_kept(view)
        inputs, parts = len(self.setting.columns), min(_PARTS, self.pool_count)
        inner = self._part(below(random, inputs if below(random, 2) else parts))
        factor = self._part(below(random, parts)) if below(random, 2) else None
        written = 3 + len(inner) + (0 if factor is None else 1 + len(factor))
        if written + (1 + int(view.archive[2][place]) if place >= 0 else 0) > self.setting.longest:
            return  # it would be too long
        mother, values, residual = self._left_by(view, place)
        self.counts[0] += tried + (place >= 0)
        view.calls += tried + (place >= 0)
        argument = self._values(inner)
        size = np.ones(len(residual)) if factor is None else self._values(factor)
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
        self._propose([*wave, *mother], [*numbers, *values], limit, 16)

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
            return np.zeros(0, np.int64), np.zeros(0), self._target(view)[0]
        length = int(view.archive[2][place])
        mother, values = view.archive[0][place, :length].copy(), view.archive[1][place, :length].copy()
        return mother, values, self._residual(view, mother, values)

    def _residual(self, view: View, codes: Ints, values: Floats) -> Floats:
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        count = trees.terms_of(codes, len(codes), starts)
        data = self._target(view)
        fitting.solve_terms(codes, values, self.setting.literals, starts, count, data, self.room)
        left: Floats = self.room[4].copy()
        return left

    def _part(self, item: int) -> list[int]:
        codes: list[int] = self.pool[0][item, : self.pool[1][item]].tolist()
        return codes

    def _values(self, codes: list[int]) -> Floats:
        """Of an expression without constants, on the rows."""
        own = np.array(codes, np.int64)
        with np.errstate(all="ignore"):
            row = trees.forward(own, np.zeros(len(own)), self.setting.literals, 0, len(own), self.room[0])
        found: Floats = self.room[0][0][row].copy()
        return found

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

    # ---------------------------------------------------------------------------------- from views to y

    def _rewrite(self, limit: int) -> None:
        """Offer what other views have found for y, with constants where they had coefficients.

        What the view of y itself has found is offered again if it has constants, whose fit goes on.
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
                if not errors[place] < 0.9 * view.told.get(price, math.inf) or int(self.counts[0]) >= limit:
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
        if self.stage == VARY:
            for part in better:
                self._multiply(*part, limit)

    def _multiply(self, codes: list[int], values: list[float], limit: int) -> None:
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
            self._propose(longer, numbers, limit, 12, again=False)

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
        return self._rate(draft, limit, 40) if done else math.inf

    def _draft(self) -> variation.Draft:
        longest = self.setting.longest
        return np.zeros(longest, np.int64), np.zeros(longest), np.zeros(1, np.int64)

    def _filled(self, codes: list[int], values: list[float]) -> variation.Draft | None:
        """A draft of an expression; None if it is too long."""
        draft, length = self._draft(), len(codes)
        if length > len(draft[0]):
            return None
        draft[0][:length], draft[1][:length], draft[2][0] = codes, values, length
        return draft

    def _rate(
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
        self._make_room(view, 1)
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        allowed = min(most_calls, limit - int(self.counts[0]))
        if allowed < 1:
            return math.inf
        used, error = evolution.rate(
            draft, self.problem(view), view.archive, view.seen, again, allowed, self.probes, self.room, starts
        )
        self.counts[0] += max(used, 0)
        view.calls += max(used, 0)
        return float(error)

    # ------------------------------------------------------------------------------------------ products

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
                if not abs(power) <= _LARGEST_POWER:
                    return math.inf
                powers.append((part[0][1:], part[1][1:], power))
            target = target - power * column
        if free and not others:
            return math.inf
        logs = [np.log(np.abs(setting.columns[i][used])) for i in view.inputs]
        found = exponents(logs, target, view.roots[used]).tolist()
        if not all(abs(p) <= _LARGEST_POWER for p in found):
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
        return self._propose(tokens, numbers, limit, 40)

    # ------------------------------------------------------------------------------------------- results

    def offer(self, codes: Sequence[int], values: Sequence[float], limit: int) -> None:
        """Rate an expression from outside, with its constants fitted, until so many calls are spent in all."""
        own, numbers = np.array(codes, np.int64), np.array(values)
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        count = trees.terms_of(own, len(own), starts)
        # Coefficients of the sum are solved: written down they would count as constants.
        parts = [slice(start, trees.end_of(own, start)) for start in starts[: max(count, 0)].tolist()]
        if parts:
            self._propose(*added([(own[at].tolist(), numbers[at].tolist()) for at in parts]), limit, 60)

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

    # ---------------------------------------------------------------------------------------- checkpoint

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


def _without_weights(residual: Floats, roots: Floats) -> Floats:
    """A residual by rows as they are, 0 for those that do not count."""
    return np.where(roots > 0, residual / np.where(roots > 0, roots, 1.0), 0.0)


def is_over(calls: int, solved_at: int) -> bool:
    """Whether a search that has explained all digits after so many calls has looked long enough for less."""
    return calls >= _LONGER * solved_at + _LEAST_LONGER
