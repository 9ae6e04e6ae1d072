"""How a search begins: sums, quotients, shifts, bells, exponentials and waves that the data suggest.

Each beginning spends calls of a small share of the budget, until a limit, and offers what it has found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product as product_of
from itertools import zip_longest
from math import comb

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.threads import one_blas_thread
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine import dictionaries, quotients, sweeps
from discodso.tasks.regression.engine._trees import (
    ADD,
    COLUMN,
    CONSTANT,
    COS,
    DIV,
    EXP,
    INV,
    LOG_SIZE,
    MUL,
    N2,
    SIN,
    SUB,
)
from discodso.tasks.regression.engine.products import (
    Part,
    added,
    plain,
    power_of,
    quotient,
    summed,
)
from discodso.tasks.regression.engine.rating import EXACT, PARTS, Rating
from discodso.tasks.regression.engine.views import SLOTS, View

_BELLS = 3  # side by side
_SHIFTS = 0.04  # of the budget, for functions of one input that is shifted
_SWEEP, _PLANES = 0.04, 0.03  # of the budget, for spectra in order
_BEST_WAVES = 8  # that are fitted
_GROWTH, _BEST_GROWTHS = 0.02, 6  # of the budget for exponentials; and how many of a view are fitted
_PERIODIC = 0.9  # share that is explained
_BEST_PERIODIC, _MOST_PERIODIC = 3, 6  # how many sums, of so many waves
_DICTIONARIES = 0.01  # of the budget, for each dictionary in each view


def thin_out(search: Rating, limit: int) -> None:
    """Offer sums of what is left of dictionaries: monomials, and the shortest expressions."""
    inputs, count = search.setting.columns.shape
    found = [
        [_monomial(search.setting.operators, chosen) for chosen in dictionaries.monomials(inputs, degree)]
        for degree in dictionaries.degrees(inputs)
        if MUL in search.setting.operators
    ]
    found.append([search.part(item) for item in range(min(PARTS, search.pool_count))])
    single = [[code, COLUMN + i] for i in range(inputs) for code in search.unary.tolist()]
    sizes = [[LOG_SIZE, *codes] for codes in single if codes[0] != EXP]
    for view in search.views:
        for listed in [[*([COLUMN + i] for i in range(inputs)), *sizes]] if view.products else found:
            terms = search.of_its_unit(view, listed)
            room = limit - search.calls
            small = len(terms) + trees.MOST_TERMS <= min(room, _DICTIONARIES * search.setting.budget)
            if terms and small and 2 * len(terms) <= count:
                _thin_out_one(search, view, terms, limit)
    search.rewrite(limit)


def _thin_out_one(search: Rating, view: View, terms: list[list[int]], limit: int) -> None:
    with np.errstate(all="ignore"):
        table = np.array([search.values(codes) for codes in terms]) * view.roots
    kept = np.flatnonzero(np.isfinite(table).all(axis=1) & (np.abs(table).max(axis=1) < 1e100))
    if not len(kept):
        return
    table = table[kept]
    rest, _, fixed, _ = search.target(view)
    table = table - (table @ fixed.T) @ fixed
    with one_blas_thread():
        steps = list(dictionaries.eliminated(table, rest))
    for left in steps:
        search.spend(view, 1)
        if len(left) > trees.MOST_TERMS:
            continue
        codes = [ADD] * (len(left) - 1) + [code for place in left for code in terms[kept[place]]]
        search.propose(codes, [math.nan] * len(codes), limit, 1, view)


def divide(search: Rating, limit: int) -> None:
    """Offer the quotient of two sums of monomials if there is one that is y, up to an offset."""
    setting, view = search.setting, search.views[0]
    if setting.units is not None or not {ADD, MUL, DIV} <= set(setting.operators):
        return
    for chosen in quotients.exponents(len(setting.columns)):
        left = min(limit - search.calls, _DICTIONARIES * setting.budget)
        terms = [_monomial(search.setting.operators, own) for own in chosen]
        if 2 * len(terms) > left:
            return
        table = np.array([search.values(codes) if codes else np.ones(len(view.rest)) for codes in terms])
        search.counts[0] += len(terms)  # as many columns again as there are terms
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
                [(terms[k], [math.nan] * len(terms[k]))] if terms[k] else [] for k in np.flatnonzero(above)
            ]
        else:
            under, over = _summed(search, chosen, below), _summed(search, chosen, above)
            overs = [[] if over[0][0] == [CONSTANT] else over]
        written = [quotient(over, under, setting.operators) for over in overs]
        parts = [part for part in written if part is not None and part[0]]
        if not parts:
            return
        codes, values = added(parts)
        search.propose(codes, values, limit, 40)
        return


def _summed(search: Rating, chosen: Sequence[tuple[int, ...]], coefficients: Floats) -> list[Part]:
    """A sum of monomials as the only factor of a product, squares of differences written as such."""
    left = {chosen[place]: float(coefficients[place]) for place in np.flatnonzero(coefficients).tolist()}
    squared = {N2, SUB} <= set(search.setting.operators)
    pairs = quotients.squares(left) if squared else []
    powers = quotients.shifted_powers(left) if search.setting.most_constants > 1 else []
    operators = search.setting.operators
    parts = [plain([N2, ADD if sign > 0 else SUB, COLUMN + i, COLUMN + j]) for _, i, j, sign in pairs]
    for _, i, shift, power in powers:
        parts.append(power_of(([ADD, CONSTANT, COLUMN + i], [math.nan, shift, math.nan]), power, operators))
    parts += [plain(_monomial(search.setting.operators, own)) for own in left]
    sizes = [*(factor for factor, *_ in pairs), *(factor for factor, *_ in powers), *left.values()]
    factors = quotients.ratios(np.array(sizes)).tolist()
    return [summed(factors, parts)]


def shift(search: Rating, limit: int) -> None:
    """Offer functions of one input, shifted and scaled, beside inputs and squares, and beside nothing."""
    setting, inputs = search.setting, len(search.setting.columns)
    if setting.units is not None or setting.most_constants < 2:
        return
    squares = [[N2, COLUMN + i] for i in range(inputs)] if N2 in search.unary and 2 * inputs < 8 else []
    terms = [[COLUMN + i] for i in range(inputs)] + squares
    beside = [] if len(terms) >= trees.MOST_TERMS else terms
    end = min(limit, search.calls + int(_SHIFTS * setting.budget))
    views = sorted(search.views, key=lambda view: not view.products)
    for place, view in enumerate(views):
        part_of = 3 if view.products else len(views) - place
        last = search.calls + (end - search.calls) // part_of
        terms = _plain_terms(search, view) if view.products else beside
        list_of = sweeps.sizes if view.products else sweeps.shifted
        unary = search.unary.tolist()
        parts = [list(list_of(setting.columns[i], i, unary)) for i in range(inputs)]
        if not view.products and {EXP, N2, INV} <= set(unary):
            shape = _without_weights(view.rest, view.roots)
            for i in range(inputs):
                parts[i] = [*sweeps.peaks(setting.columns[i], i, shape), *parts[i]]
        best, best_part = math.inf, None
        for part in (part for own in zip_longest(*parts) for part in own if part is not None):
            if search.calls + 60 > last:
                break
            error, values = _beside(search, view, terms, part, limit)
            if error < best:
                best, best_part = error, (part[0], values)
            if terms:
                _beside(search, view, [], part, limit)
        left = list(terms)
        for own in terms if best_part is not None else ():  # without what is not missed
            fewer = [other for other in left if other != own]
            if best_part is not None and search.calls < limit:
                error, values = _beside(search, view, fewer, best_part, limit)
                if error < 1.2 * best + EXACT:
                    left, best, best_part = fewer, error, (best_part[0], values)
    search.rewrite(limit)


def _plain_terms(search: Rating, view: View) -> list[list[int]]:
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
    search: Rating, view: View, terms: list[list[int]], part: Part, limit: int
) -> tuple[float, list[float]]:
    """Rate a term beside others; gives the error, and the values of the term as they were fitted."""
    lead = [token for own in terms for token in (ADD, *own)]
    draft = search.filled([*lead, *part[0]], [*[math.nan] * len(lead), *part[1]])
    if draft is None:
        return math.inf, part[1]
    error = search.rate(draft, limit, 30, view)
    return error, draft[1][len(lead) : draft[2][0]].tolist()


def stack(search: Rating, limit: int) -> None:
    """Offer bells over an input, one more at a time where most is left, on a line, a decay and nothing."""
    setting, view = search.setting, search.views[0]
    needed = {ADD, MUL, EXP, N2} <= set(setting.operators)
    if setting.units is not None or not needed or setting.most_constants < 4 or view.best < EXACT:
        return
    last = min(limit, search.calls + int(_SHIFTS * setting.budget))
    for i, column in enumerate(setting.columns):
        spread = float(np.ptp(column))
        if not 0 < spread < 1e100:
            continue
        decay: Part = [EXP, MUL, CONSTANT, COLUMN + i], [math.nan, math.nan, -1.5 / spread, math.nan]
        for first, pair in product_of(([], [([COLUMN + i], [math.nan])], [decay]), (False, True)):
            parts: list[Part] = list(first)
            for bell in range(_BELLS - pair):
                if search.calls + 60 > last:
                    return
                residual = search.target(view)[0]
                if parts:
                    codes, values = added(parts)
                    residual = search.residual(view, np.array(codes, np.int64), np.array(values))
                if not np.isfinite(residual).all():
                    break
                shape = _without_weights(residual, view.roots)
                more = next(sweeps.peaks(column, i, shape), None)
                if more is None:
                    break
                parts += sweeps.halves(more) if pair and not bell else [more]
                fitted = _fitted(search, parts, limit)
                if fitted is None:
                    break
                parts = fitted


def _fitted(search: Rating, parts: list[Part], limit: int) -> list[Part] | None:
    """Rate a sum; gives its parts with their constants as fitted, None if it cannot be rated."""
    draft = search.filled(*added(parts))
    if draft is None or not search.rate(draft, limit, 50) < math.inf:
        return None
    at, found = 0, list[Part]()
    for place, (own, _) in enumerate(parts):
        at += place < len(parts) - 1  # the sign of the sum stands before all but the last
        found.append((own, draft[1][at : at + len(own)].tolist()))
        at += len(own)
    return found


def grow(search: Rating, limit: int) -> None:
    """Offer exponentials of two inputs: as terms, and in views of products beside a constant."""
    setting = search.setting
    if (
        setting.units is not None
        or setting.most_constants < 2
        or not {ADD, MUL, DIV, EXP} <= set(setting.operators)
    ):
        return
    views = [view for view in search.views if view.code in ((), (INV,)) and view.name != "relative"]
    views.sort(key=lambda view: not view.products)
    end = min(limit, search.calls + int(_GROWTH * setting.budget))
    for place, view in enumerate(views):
        part_of = 2 if view.products else len(views) - place
        _grow_one(search, view, [], search.calls + (end - search.calls) // part_of, limit)
    inputs = [[COLUMN + i] for i in range(len(setting.columns))]
    squares = [[N2, *own] for own in inputs] if N2 in setting.operators else []
    terms = next((own for own in ([*inputs, *squares], inputs) if len(own) < trees.MOST_TERMS), [])
    if len(inputs) > 1 and terms:  # of which one may hide an exponential of others
        _grow_one(
            search, search.views[0], terms, min(limit, search.calls + int(_GROWTH * setting.budget)), limit
        )
    search.rewrite(limit)


def _grow_one(search: Rating, view: View, terms: list[list[int]], last: int, limit: int) -> None:
    """Offer the exponentials that explain most of what terms leave of a view, with each of these and with all."""
    rest, roots, fixed, _ = search.target(view)
    if terms:
        with np.errstate(all="ignore"):
            table = np.array([search.values(codes) for codes in terms]) * roots
        if not np.isfinite(table).all():
            return
        fixed = np.linalg.qr(np.concatenate((fixed, table)).T)[0].T
        rest = rest - (fixed @ rest) @ fixed
    if not rest @ rest > EXACT:
        return
    look = sweeps.saturations if view.products else sweeps.growths
    starts = look(search.setting.columns, rest, roots, fixed)
    found: list[tuple[float, Part]] = []
    while search.calls < last and (start := next(starts, None)) is not None:
        search.spend(view, start.calls)
        if start.part is not None:
            found.append((start.share, start.part))
    for _, part in sorted(found, key=lambda one: -one[0])[:_BEST_GROWTHS]:
        beside = [*([own] for own in terms), terms]
        if not terms and not view.products and part[0][0] != EXP:
            factor = part[0][1] if part[0][0] == MUL else part[0][-1]
            beside.append([[factor] if part[0][0] == MUL else [INV, factor]])
        for others in beside:
            _beside(search, view, others, part, limit)


def sweep(search: Rating, limit: int) -> None:
    """Offer the waves that explain most, of spectra of all inputs; beside nothing, and a polynomial."""
    setting, view = search.setting, search.views[0]
    possible = {ADD, MUL, SIN} <= set(setting.operators) and setting.most_constants > 1
    if setting.units is not None or not possible:
        return
    columns = setting.columns
    rest, roots, fixed, _ = search.target(view)
    size = next((d for d in (2, 1) if comb(len(columns) + d, d) <= trees.MOST_TERMS), 0)
    terms = [
        _monomial(search.setting.operators, chosen) for chosen in dictionaries.monomials(len(columns), size)
    ]
    table = np.array([search.values(codes) for codes in terms]).reshape(len(terms), len(rest)) * roots
    basis = np.linalg.qr(np.concatenate((fixed, table)).T)[0].T
    left = rest - (basis @ rest) @ basis
    decays = EXP in setting.operators
    found: list[tuple[float, Part, bool]] = []

    def look(waves: Iterator[sweeps.StartTerm], most: float, beside: bool) -> None:
        last = min(search.calls + int(most * setting.budget), limit - 100)
        while search.calls < last and (wave := next(waves, None)) is not None:
            search.spend(view, wave.calls)
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
            search.propose([*tokens, *codes], [math.nan] * len(tokens) + values, limit, 40)


def harmonise(search: Rating, limit: int) -> None:
    """Offer sums of waves of multiples of a frequency, with one envelope, of as few waves as may be."""
    setting, view = search.setting, search.views[0]
    needed = {ADD, MUL, DIV, SIN, COS} <= set(setting.operators)
    rest, roots, fixed, _ = search.target(view)
    if setting.units is not None or not needed or setting.most_constants < 4 or not rest @ rest > EXACT:
        return
    last = min(limit, search.calls + int(_SWEEP * setting.budget))
    found: list[sweeps.Harmonics] = []
    for one in sweeps.harmonics(setting.columns, rest, roots, fixed, EXP in setting.operators):
        if search.calls >= last:
            break
        search.spend(view, one.calls)
        if one.share > _PERIODIC:
            found.append(one)
    for one in sorted(found, key=lambda own: -own.share)[:_BEST_PERIODIC]:
        with one_blas_thread():
            steps = list(dictionaries.eliminated(one.table, rest))
        for left in steps:
            search.spend(view, 1)
            if len(left) > _MOST_PERIODIC * (1 + (one.other >= 0)) or search.calls >= limit:
                continue
            part = _periodic(search, one, list(left), rest)
            if part is not None:
                search.propose(*part, limit, 40)


def _periodic(search: Rating, one: sweeps.Harmonics, left: list[int], rest: Floats) -> Part | None:
    """How some waves with their envelope are written; None if the other input has no common factor."""
    factors = np.linalg.lstsq(one.table[left].T, rest, rcond=None)[0]
    half = len(one.table) // (1 + (one.other >= 0))
    above, below = one.envelope(search.setting.operators)
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
    return quotient([*above, summed((factors / largest).tolist(), parts)], below, search.setting.operators)


def _monomial(operators: Sequence[int], chosen: Sequence[int]) -> list[int]:
    """A product of inputs, with squares where there are any."""
    codes: list[int] = []
    for i in dict.fromkeys(chosen):
        power = chosen.count(i)
        while power:
            square = power > 1 and N2 in operators
            codes = [*([MUL] if codes else []), *([N2] if square else []), COLUMN + i, *codes]
            power -= 1 + square
    return codes


def _without_weights(residual: Floats, roots: Floats) -> Floats:
    """A residual by rows as they are, 0 for those that do not count."""
    return np.where(roots > 0, residual / np.where(roots > 0, roots, 1.0), 0.0)


BEGINNINGS = (thin_out, divide, shift, stack, grow, sweep, harmonise)
