"""The search for the unknown parts of a known form: short parts first, one part after the other, then variations.

All constants, those of the form and those of the parts, are fitted together at every try.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints
from discodso.space.state import State
from discodso.tasks.regression.engine import _fitting as fitting
from discodso.tasks.regression.engine import _form as forms
from discodso.tasks.regression.engine import _pool as pools
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine._random import below
from discodso.tasks.regression.engine._variation import a_number
from discodso.tasks.regression.engine.rating import GENERIC
from discodso.tasks.regression.engine.search import MOVES, is_over
from discodso.tasks.regression.engine.setting import LARGEST, Setting
from discodso.tasks.regression.engine.views import MOST_PRICE, SLOTS, empty_archive

_POOL, _LISTED = 3000, 0.4  # short expressions of a part, and the share of the budget for them
EXACT = 1e-20  # errors of rounding, where constants may make up for each other
_TRIES = 8  # starts of a function of a scaled and shifted input
_ROUNDS = 2  # of listing, if there are several parts


@dataclass(frozen=True)
class Form:
    """A form as arrays.

    Attributes:
        codes: of its tokens; from `_form.PART` on they are the parts.
        ties: which constant of the form stands at each place.
        constants: how many there are.
        allowed: bool[parts, inputs], which inputs each part may have.
    """

    codes: Ints
    ties: Ints
    constants: int
    allowed: Bools

    @property
    def arrays(self) -> forms.Form:
        """For compiled code."""
        return self.codes, self.ties, self.constants, self.allowed


@dataclass(frozen=True)
class Row:
    """Parts that were found: their codes, what their parameters are, error, price, and where each part begins."""

    codes: Ints
    parameters: Floats
    error: float
    price: int
    begins: Ints
    bases: Ints


class FormSearch:
    """The search; `step` spends calls. The target of the setting has a variance of about 1."""

    def __init__(self, setting: Setting, form: Form, seed: int) -> None:
        self.setting, self.form = setting, form
        n = setting.columns.shape[1]
        rng = np.random.default_rng(seed)
        self.random = np.array([rng.integers(2**63)], np.uint64)
        probes = setting.probes(rng)
        self.parts = len(form.allowed)
        self._binary, self._unary = setting.binary, setting.unary
        self._pools = self._short_parts(probes)
        self._curves = [self._waves(part) for part in range(self.parts)]
        self.work = (
            fitting.fitting_room(setting.columns, LARGEST),
            np.zeros((forms.MOST_PARAMETERS, n)),
            np.zeros(n),
            trees.room_for(probes, LARGEST),
        )
        self._out, self._owners = np.zeros(LARGEST, np.int64), np.zeros(LARGEST, np.int64)
        spread = np.abs(setting.columns).max(axis=1)
        far = [float(s) for s in spread if s > 0 and not 0.1 < s < 100]
        self._scales = np.array([1.0, *(1 / s for s in far), *far])
        self.archive = empty_archive(min(setting.longest * self.parts, LARGEST), forms.MOST_PARAMETERS)
        self.seen = np.zeros(1 << 14, np.uint64)
        self.counts = np.zeros(4, np.int64)  # calls, repeats, invalid drafts, proposals
        self.solved_at: int | None = None
        self._listed, self._round = [0] * self.parts, 0

    def _short_parts(self, probes: Floats) -> tuple[Ints, Ints, Ints]:
        """Codes, lengths and counts of the distinct short expressions of each part."""
        codes = np.zeros((self.parts, _POOL, pools.TOKENS), np.int64)
        lengths, counts = np.zeros((self.parts, _POOL), np.int64), np.zeros(self.parts, np.int64)
        for part, allowed in enumerate(self.form.allowed):
            pool = (codes[part], lengths[part], np.zeros(_POOL, np.int64), np.zeros((_POOL, trees.PROBES)))
            known, first = np.zeros(1 << 16, np.uint64), np.zeros(MOST_PRICE + 2, np.int64)
            count = 0
            for i in np.flatnonzero(allowed).tolist():
                if trees.add_to(known, np.uint64(trees.hashed(probes[i], False))):
                    pool[0][count, 0], pool[1][count], pool[2][count] = trees.COLUMN + i, 1, 1
                    pool[3][count] = probes[i]
                    count += 1
            first[2:] = count
            operators = np.concatenate((self._binary, self._unary))
            for price in range(2, MOST_PRICE - 1):
                more = pools.next_level(
                    pool,
                    first,
                    price,
                    operators,
                    self.setting.prices,
                    self.setting.nesting,
                    known,
                    np.zeros((0, 1)),
                    0.0,
                )
                if more < 0 or 8 * more > len(known):
                    break
                count = int(more)
                first[price + 1 :] = count
            counts[part] = count
        return codes, lengths, counts

    def _waves(self, part: int) -> tuple[Ints, Ints, int]:
        """Functions of a scaled and shifted input, such as sin(a x + b), for a part."""
        found = []
        for i in np.flatnonzero(self.form.allowed[part]).tolist() if self.setting.most_constants > 1 else ():
            column = trees.COLUMN + i
            for code in self._unary.tolist():
                if trees.SIN <= code <= trees.LOG and self.setting.prices[code] < MOST_PRICE:
                    found.append([code, trees.MUL, trees.CONSTANT, column])
                    found.append([code, trees.ADD, trees.CONSTANT, trees.MUL, trees.CONSTANT, column])
        codes, lengths = np.zeros((len(found), pools.TOKENS), np.int64), np.zeros(len(found), np.int64)
        for row, tokens in enumerate(found):
            codes[row, : len(tokens)], lengths[row] = tokens, len(tokens)
        return codes, lengths, len(found)

    # ---------------------------------------------------------------------------------------------- steps

    @property
    def data(self) -> forms.Data:
        """What kernels need to know of the data."""
        own = self.setting
        roots = np.sqrt(own.weights)
        return own.target, roots, own.literals, own.prices, own.nesting, own.most_constants, GENERIC

    @property
    def found(self) -> bool:
        """Whether nothing is left to explain, and shorter parts were looked for as well."""
        return self.solved_at is not None and is_over(int(self.counts[0]), self.solved_at)

    def step(self, room: int) -> int:
        """Spend at most so many calls on the next thing to do; returns how many were spent."""
        before = int(self.counts[0])
        limit = before + room
        while 2 * (before + room + 64) > len(self.seen):
            self.seen = trees.grown(self.seen)
        if not self.archive[6].any():
            self._begin(limit)
        # Where nothing is left to explain, shorter parts are looked for.
        share = limit if self.solved_at is not None else int(_LISTED * self.setting.budget)
        while self._round < self._last_round and int(self.counts[0]) + 3 <= min(share, limit):
            part = next((p for p in range(self.parts) if self._listed[p] < self._items(p)), None)
            if part is None:
                self._listed, self._round = [0] * self.parts, self._round + 1
                continue
            self._list(part, min(share, limit, int(self.counts[0]) + max(share // (2 * self.parts), 50)))
        if int(self.counts[0]) == before or int(self.counts[0]) + 3 > share:
            self._vary(limit)
        if self.solved_at is None and self.archive[3].min() < EXACT:
            self.solved_at = int(self.counts[0])
            self._listed, self._round = [0] * self.parts, self._last_round - 1
        return int(self.counts[0]) - before

    def _items(self, part: int) -> int:
        """How many expressions are listed for a part."""
        return self._curves[part][2] + int(self._pools[2][part])

    @property
    def _last_round(self) -> int:
        return _ROUNDS if self.parts > 1 else 1

    def _begin(self, limit: int) -> None:
        """Rate the form with the first input of each part in its place."""
        size = self.archive[0].shape[1]
        row = np.zeros(size, np.int64), np.full(size, np.nan), np.array([self.parts])
        row[0][: self.parts] = [trees.COLUMN + int(np.flatnonzero(own)[0]) for own in self.form.allowed]
        for _ in range(20):
            parameters = np.array([a_number(self.random) for _ in range(forms.MOST_PARAMETERS)])
            for k in range(self.form.constants):
                parameters[k] *= self._scales[below(self.random, len(self._scales))]
            allowed = min(60, limit - int(self.counts[0]))
            if allowed < 1:
                break
            used, _ = forms.rate_row(
                row, parameters, self.form.arrays, self.data, self.archive, self.seen, True, allowed, self.work,
                self._out, self._owners, np.zeros(trees.MOST_TERMS, np.int64),
            )  # fmt: skip
            self.counts[0] += max(used, 0)

    def _list(self, part: int, limit: int) -> None:
        if not self.archive[6].any():
            self._listed[part] = self._items(part)
            return
        codes, lengths, counts = self._pools
        done, curves = self._listed[part], self._curves[part]
        waves = done < curves[2]
        before = 0 if waves else curves[2]
        self._listed[part] = before + forms.list_parts(
            part,
            done - before,
            curves if waves else (codes[part], lengths[part], int(counts[part])),
            _TRIES if waves else 2,
            self.form.arrays,
            self.data,
            self.archive,
            self.seen,
            self.random,
            limit,
            self._scales,
            self.work,
            self._out,
            self._owners,
            self.counts,
        )

    def _vary(self, limit: int) -> None:
        forms.vary_parts(
            self.form.arrays,
            self._pools,
            self.data,
            self.archive,
            self.seen,
            self.random,
            np.cumsum(MOVES / MOVES.sum()),
            self._unary,
            self._binary,
            len(self.setting.columns),
            limit,
            self._scales,
            self.work,
            self._out,
            self._owners,
            self.counts,
        )

    # ------------------------------------------------------------------------------------------- results

    def kept(self, best: bool = False) -> Iterator[Row]:
        """What the archive holds, the best of every price first, by rising price; only these if `best`."""
        codes, _, lengths, errors, _, parameters, counts = self.archive
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        for slot in range(1 if best else SLOTS):
            for price in range(MOST_PRICE):
                if slot < int(counts[price]):
                    at = price * SLOTS + slot
                    begins, bases = (np.zeros(self.parts + 1, np.int64) for _ in range(2))
                    own = codes[at, : lengths[at]].copy()
                    forms.layout(own, self.parts, begins, bases, self.form.constants, starts)
                    yield Row(own, parameters[at].copy(), float(errors[at]), price, begins, bases)

    def lean(self, row: Row, room: int) -> tuple[Row, int]:
        """The row fitted to the end, with numbers of 0 and 1 where nothing is lost, and the calls it took."""
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        length = forms.written(
            self.form.arrays, row.codes, row.begins, row.bases, self._out, self._owners, starts
        )
        count = int(row.bases[-1])
        free, best, calls = np.ones(count, np.bool_), row.parameters.copy(), 0

        def fitted(start: Floats, moving: Bools, most: int) -> float:
            nonlocal calls
            error, used = forms.fit_form(
                self._out, self._owners, length, start, moving, count, self.data, most, 1e-9, self.work
            )
            calls += used
            return float(error)

        if room < 40:
            return row, 0
        error = fitted(best, free, 40)
        margin = 1.0 + 4.0 / max(len(self.setting.target) - count, 1)
        for part in range(self.parts):
            own = row.codes[row.begins[part] : row.begins[part + 1]]
            base, terms = int(row.bases[part]), trees.terms_of(own, len(own), starts)
            for place in range(base, int(row.bases[part + 1])):
                for simple in (0.0, 1.0, -1.0)[: 3 if base < place <= base + terms else 1]:
                    if calls + 12 > room or not free[place]:
                        continue
                    start, moving = best.copy(), free.copy()
                    start[place], moving[place] = simple, False
                    trial = fitted(start, moving, 12)
                    if trial <= error * margin or trial < EXACT:
                        best, free, error = start, moving, max(trial, 1e-300)
        return replace(row, parameters=best, error=error), calls

    # ---------------------------------------------------------------------------------------- checkpoint

    def state(self) -> State:
        """All that later steps depend on."""
        arrays = {f"archive{place}": array.copy() for place, array in enumerate(self.archive)}
        arrays |= {
            "seen": self.seen[self.seen != 0],
            "random": self.random.copy(),
            "counts": self.counts.copy(),
        }
        data = {"solved_at": self.solved_at, "listed": list(map(int, self._listed)), "round": self._round}
        return State(arrays, {**data, "size": len(self.seen), "budget": self.setting.budget})

    def restore(self, state: State) -> None:
        """Go back to a state of a search with the same data and settings."""
        for place, array in enumerate(self.archive):
            array[...] = state.arrays[f"archive{place}"]
        self.seen = np.zeros(int(state.data["size"]), np.uint64)
        trees.add_all(self.seen, state.arrays["seen"])
        self.random, self.counts = state.arrays["random"].copy(), state.arrays["counts"].copy()
        self.solved_at, self._round = state.data["solved_at"], int(state.data["round"])
        self._listed = [int(item) for item in state.data["listed"]]
        self.setting = replace(self.setting, budget=int(state.data["budget"]))


def part_terms(row: Row, part: int) -> list[tuple[list[int], list[float]]]:
    """Codes of the terms of a part, and the values of their constants."""
    starts = np.zeros(trees.MOST_TERMS, np.int64)
    own = row.codes[row.begins[part] : row.begins[part + 1]]
    count = trees.terms_of(own, len(own), starts)
    inner = int(row.bases[part]) + 1 + count
    found = []
    for first in starts[:count].tolist():
        codes = own[first : trees.end_of(own, first)].tolist()
        values = []
        for code in codes:
            values.append(float(row.parameters[inner]) if code == trees.CONSTANT else math.nan)
            inner += code == trees.CONSTANT
        found.append((codes, values))
    return found
