"""The default method of equations: from data to the compiled search, and from what it keeps to designs."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats, Ints
from discodso.base.errors import DiscodsoError
from discodso.base.streams import Forgiving
from discodso.disco.method import Metrics, Searched
from discodso.space.design import Design, DesignBatch
from discodso.space.space import Space
from discodso.space.state import State
from discodso.tasks.regression.data import Rows
from discodso.tasks.regression.declared_units import DeclaredUnits
from discodso.tasks.regression.engine import _evolution as evolution
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine.search import EquationSearch
from discodso.tasks.regression.engine.setting import WRITTEN, Setting, Units, make_setting
from discodso.tasks.regression.engine.side_by_side import SideBySide
from discodso.tasks.regression.expression import CONST, Expression, Item, input_index, literal_value
from discodso.tasks.regression.expression_space import Fit, RegressionSpace
from discodso.tasks.regression.operators import OPERATORS

NEEDED = ("add", "mul", "div", CONST)  # tokens that results are written with, whatever the library
_MOST_ROWS, _EXTREME_ROWS = 1000, 100  # that the search looks at, and how many of these are the farthest out
_CANDIDATES, _BETTER, _CLOSE = 64, 0.999, 1.3  # for the choice of a model
_NEWS = 60  # designs that are new on the front after a step, at most
_STEP = 5000  # calls between two looks at clocks and limits
_MODERATE = (1e-2, 1e2)  # inputs and targets of this size are not rescaled
CODE_NAMES = {operator.code: name for name, operator in OPERATORS.items()}


@dataclass(frozen=True)
class EquationSettings:
    """The search as a method of a run.

    Attributes:
        description: what expressions may look like.
        fit: the data.
        budget: calls of the run, by which the search plans.
        units: of inputs and target, None if they do not matter.
        guesses: expressions to begin with.
        started: is told the search when it is built, so that what it keeps can be had at the end.
        jobs: searches side by side.
    """

    description: RegressionSpace
    fit: Fit
    budget: int
    units: DeclaredUnits | None = None
    guesses: tuple[Design, ...] = ()
    started: Callable[[EquationMethod], None] = lambda method: None
    jobs: int = 1

    def build(self, space: Space, seed: int | np.random.SeedSequence) -> EquationMethod:
        """A fresh search."""
        announce_compiling()
        method = EquationMethod(self, space, seed)
        self.started(method)
        return method


class EquationMethod:
    """The search behind the protocol of methods; it rates expressions itself."""

    batch_size = _STEP

    def __init__(self, settings: EquationSettings, space: Space, seed: int | np.random.SeedSequence) -> None:
        self.space, self.fit = space, settings.fit
        fit, sequence = (
            settings.fit,
            seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed),
        )
        rows, weights = sample(fit.target, fit.weights)
        columns = np.ascontiguousarray(fit.columns[:, rows])
        self.scale = _scales(fit.columns)
        self.target_scale = _scale(float(np.sqrt(fit.weights @ np.square(fit.target))))
        self.literals, names = _library(settings.description)
        self.setting: Setting = make_setting(
            columns / self.scale[:, None],
            fit.target[rows] / self.target_scale,
            weights,
            names,
            [value for _, value in self.literals],
            settings,
            None if settings.units is None else Units(*settings.units.arrays, settings.units.most),
        )
        number = int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))
        one = settings.jobs == 1
        self._step = _STEP * settings.jobs
        self.engine = (
            EquationSearch(self.setting, number) if one else SideBySide(self.setting, number, settings.jobs)
        )
        self._told: dict[int, float] = {}  # error of the best of each price that the loop knows
        self._guesses = list(settings.guesses)

    def ask(self, size: int | None = None) -> DesignBatch:
        """This method rates expressions itself."""
        raise DiscodsoError("the search for equations rates expressions itself; use search(...)")

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """This method rates expressions itself."""
        raise DiscodsoError("the search for equations rates expressions itself; use search(...)")

    def search(self, room: int) -> Searched:
        """Search on, and tell what is new on the front."""
        engine = self.engine
        spent = 0
        while self._guesses and spent < room:
            spent += self._offer(self._guesses.pop(0), room - spent)
        allowed = min(
            self._step, room - spent - min(_NEWS, room // 4)
        )  # the rest is to rate what is new on all rows
        spent += engine.step(allowed) if allowed > 0 else 0
        exhausted = ""
        if spent == 0 and allowed > 0:
            exhausted = f"all up to complexity {engine.complete} were tried, and variations repeat them"
        designs, rewards, more = self._news(room - spent)
        share = float(engine.counts[1]) / max(float(engine.counts[3]), 1.0)
        return Searched(designs, rewards, spent + more, round(share, 4), exhausted, engine.found)

    def _news(self, room: int) -> tuple[DesignBatch, Floats, int]:
        """Designs of the front that are better than they were, rated on all rows; each is a call."""
        found: list[Design] = []
        smallest = math.inf
        for codes, values, coefficients, error, price in self.engine.kept(best=True):
            if not error < 0.999 * smallest or len(found) >= min(room, _NEWS):
                continue
            smallest = error
            if error < 0.99 * self._told.get(price, math.inf):
                self._told[price] = error
                found.append(self.design(codes, values, coefficients))
        batch = self.space.encode(found)
        rewards = self.fit(batch) if found else np.zeros(0)
        return batch, rewards, len(found)

    def _offer(self, guess: Design, room: int) -> int:
        before = int(self.engine.counts[0])
        codes: list[int] = []
        values: list[float] = []
        literals = {name: trees.LITERAL + place for place, (name, _) in enumerate(self.literals)}
        for name, value in guess:
            index = input_index(name)
            if index is not None:
                if self.scale[index] != 1.0:
                    codes += [trees.MUL, trees.CONSTANT]
                    values += [math.nan, float(self.scale[index])]
                codes.append(trees.COLUMN + index)
                values.append(math.nan)
            elif name in OPERATORS:
                codes.append(OPERATORS[name].code)
                values.append(math.nan)
            elif name in literals:
                codes.append(literals[name])
                values.append(math.nan)
            else:
                codes.append(trees.CONSTANT)
                values.append(float(literal_value(name) or 0.0) if value is None else float(value))
        self.engine.offer(codes, values, before + room)
        return int(self.engine.counts[0]) - before

    # -------------------------------------------------------------------------------------- as expressions

    def design(self, codes: Ints, values: Floats, coefficients: Floats) -> Design:
        """c0 + c1 t1 + ... in the units of the data, as a design of the space."""
        return Design.of(*self._sum(codes, values, coefficients))

    def _sum(self, codes: Ints, values: Floats, coefficients: Floats) -> list[Item]:
        parts: list[list[Item]] = []
        if coefficients[0] != 0.0:
            parts.append([(CONST, float(coefficients[0] * self.target_scale))])
        for factor, term in zip(coefficients[1:].tolist(), self.terms(codes, values), strict=False):
            if factor != 0.0:
                parts.append(["mul", (CONST, factor * self.target_scale), *term])
        return added(parts)

    def terms(self, codes: Ints, values: Floats) -> Iterator[list[Item]]:
        """Tokens of the terms of an expression, for inputs as they are in the data."""
        starts = np.zeros(trees.MOST_TERMS, np.int64)
        own = np.ascontiguousarray(codes)
        count = trees.terms_of(own, len(own), starts)
        for start in starts[:count].tolist():
            end = trees.end_of(own, start)
            yield [
                item
                for code, value in zip(own[start:end].tolist(), values[start:end].tolist(), strict=True)
                for item in self._items(code, value)
            ]

    def _items(self, code: int, value: float) -> list[Item]:
        found: list[Item]
        if code >= trees.COLUMN:
            place = code - trees.COLUMN
            scale = float(self.scale[place])
            found = [f"x{place + 1}"] if scale == 1.0 else ["mul", (CONST, 1.0 / scale), f"x{place + 1}"]
        elif code == trees.CONSTANT:
            found = [(CONST, value)]
        elif code >= trees.LITERAL:
            place = code - trees.LITERAL
            found = [self.literals[place][0]] if place < len(self.literals) else [(CONST, 1.0)]
        elif code == trees.INV and "inv" not in self.space.library.names:
            found = ["div", (CONST, 1.0)]
        else:
            found = [CODE_NAMES[code]]
        return found

    def standing(self) -> list[tuple[Design, float]]:
        """The best of every price that is better than all cheaper ones, with its mean squared error."""
        found, smallest = [], math.inf
        variance = (self.target_scale * self.engine.scale) ** 2
        for codes, values, factors, error, _ in self.engine.kept(best=True):
            if error < _BETTER * smallest:
                smallest = error
                found.append((self.design(codes, values, factors), error * variance))
        return found

    def designs(self) -> tuple[Design, ...]:
        """The best of every price."""
        return tuple(
            self.design(codes, values, factors)
            for codes, values, factors, _, _ in self.engine.kept(best=True)
        )

    def expressions(self, columns: tuple[str, ...], rows: Rows, room: int) -> tuple[list[Expression], int]:
        """What is kept, coefficients fitted to these rows and terms that bring nothing left out, and the calls.

        One call is a solution for coefficients. The best of every price come first.
        """
        found: dict[Expression, None] = {}
        X, y, weights = rows
        calls = 0
        for codes, values, offset in self._promising():
            if calls + 2 > room:
                break
            terms = list(self.terms(codes, values))
            with np.errstate(all="ignore"):
                table = [Expression(Design.of(*term), columns)(X) for term in terms]
            factors, used = _lean(table, y, weights, room - calls, offset)
            calls += used
            if factors is None:
                continue
            parts: list[list[Item]] = []
            for factor, term in zip(factors[1:].tolist(), terms, strict=True):
                if factor != 0.0:
                    parts.append(["mul", (CONST, factor), *term])
            if factors[0] != 0.0:
                parts.insert(0, [(CONST, float(factors[0]))])
            found[Expression(Design.of(*added(parts)), columns)] = None
        return list(found), calls

    def _promising(self) -> list[tuple[Ints, Floats, bool]]:
        """The best of every price that is better than all cheaper ones, and those that come close to them.

        With each is said whether it may have an offset.
        """
        kept = list(self.engine.kept())
        smallest: dict[int, float] = {}
        for _, _, _, error, price in sorted(kept, key=lambda own: own[4]):
            before = min((found for other, found in smallest.items() if other <= price), default=math.inf)
            smallest[price] = min(error, before)
        front, close = [], []
        for codes, values, coefficients, error, price in kept:
            one = codes, values, self.setting.units is None or bool(coefficients[0] != 0.0)
            cheaper = smallest.get(
                price - 1, min((e for p, e in smallest.items() if p < price), default=math.inf)
            )
            if error < _BETTER * cheaper and error == smallest[price]:
                front.append(one)
            elif error < _CLOSE * smallest[price]:
                close.append(one)
        return [*front, *close][:_CANDIDATES]

    # ------------------------------------------------------------------------------------------ checkpoint

    def state(self) -> State:
        """Everything that later steps depend on."""
        told = {str(price): error for price, error in self._told.items()}
        own = State({}, {"told": told, "guesses": [guess.to_json() for guess in self._guesses]})
        return State.of_parts({"engine": self.engine.state(), "own": own})

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.engine.restore(state.part("engine"))
        own = state.part("own").data
        self._told = {int(price): float(error) for price, error in own["told"].items()}
        self._guesses = [Design.from_json(text) for text in own["guesses"]]


def added(parts: list[list[Item]]) -> list[Item]:
    """The sum of parts, 0 for none."""
    items: list[Item] = parts[-1] if parts else [(CONST, 0.0)]
    for part in reversed(parts[:-1]):
        items = ["add", *part, *items]
    return items


def announce_compiling(kernel: Any = evolution.evolve, name: str = "_evolution.evolve") -> None:
    """Say so where the search must be compiled first, which takes a while and is kept on disk."""
    folder = Path(str(getattr(getattr(kernel, "_cache", None), "cache_path", "")))
    if not kernel.signatures and not any(folder.glob(f"{name}-*.nbi")):
        words: Any = Forgiving(sys.stderr)
        print("compiling the search for equations, once, about half a minute", file=words, flush=True)


def is_possible(description: RegressionSpace, squared: bool) -> bool:
    """Whether the compiled search can serve: errors are squared, and no operator is the user's own."""
    return squared and all(operator.is_built_in for operator in description.operators)


def with_needed(description: RegressionSpace, guesses: Sequence[Design] = ()) -> RegressionSpace:
    """The space that results and guesses belong to: all that these are written with, and no rules."""
    used = [name for guess in guesses for name in guess.tokens if input_index(name) is None]
    more = dict.fromkeys(name for name in (*NEEDED, *used) if name not in description.library)
    library = (*description.library, *more)
    return replace(
        RegressionSpace(library, min_length=1, max_length=WRITTEN, nesting={}),
        const_range=(-math.inf, math.inf),
    )


def _library(description: RegressionSpace) -> tuple[list[tuple[str, float]], list[str]]:
    literals = [(name, literal_value(name) or 0.0) for name in description.numbers if name != CONST]
    return literals, [operator.name for operator in description.operators]


def sample(target: Floats, weights: Floats) -> tuple[Ints, Floats]:
    """Rows for the search and their weights: all, or those farthest from the mean and some of the others.

    The data come in random order. Squared errors are mostly those of the rows far out, so that none of them is
    left to chance; the others stand for all that are like them.
    """
    count = len(target)
    if count <= _MOST_ROWS:
        return np.arange(count), weights
    order = np.argsort(-np.abs(target - weights @ target), kind="stable")
    far, near = order[:_EXTREME_ROWS], np.sort(order[_EXTREME_ROWS:])[: _MOST_ROWS - _EXTREME_ROWS]
    rest = 1.0 - weights[far].sum()
    share = weights[near] * (rest / weights[near].sum())
    return np.concatenate((far, near)), np.concatenate((weights[far], share))


def _scales(columns: Floats) -> Floats:
    """A power of ten for each input, 1 where its size is moderate."""
    scales = []
    for column in columns:
        sizes = np.abs(column[column != 0])
        size = float(np.exp(np.log(sizes).mean())) if len(sizes) else 1.0
        scales.append(_scale(size))
    return np.array(scales)


def _scale(size: float) -> float:
    """By which numbers of this size are divided; laws such as log(x) have them as they are."""
    return 1.0 if _MODERATE[0] <= size <= _MODERATE[1] else _power_of_ten(size)


def _power_of_ten(size: float) -> float:
    return 10.0 ** round(math.log10(size)) if 0 < size < math.inf else 1.0


def _lean(
    table: list[Floats], y: Floats, weights: Floats, room: int, offset: bool = True
) -> tuple[Floats | None, int]:
    """Offset and coefficients of a sum, those that bring nothing 0, and how often coefficients were solved."""
    columns = [np.ones(len(y)), *table]
    if not all(np.isfinite(column).all() for column in columns):
        return None, 0
    roots = np.sqrt(weights)
    sizes = [float(np.sqrt(np.square(column * roots).sum())) for column in columns]
    active = [place for place, size in enumerate(sizes) if 0 < size < 1e150 and (place or offset)]
    target = y * roots
    scale = float(np.abs(target).max()) or 1.0
    target = target / scale

    def solve(places: list[int]) -> tuple[float, Floats]:
        if not places:
            return float(target @ target), np.zeros(0)
        matrix = np.column_stack([columns[place] * roots / sizes[place] for place in places])
        found = np.linalg.lstsq(matrix, target, rcond=1e-13)[0]
        rest = target - matrix @ found
        more = np.linalg.lstsq(matrix, rest, rcond=1e-13)[0]
        rest = target - matrix @ (found + more)
        return float(rest @ rest), found + more

    error, found = solve(active)
    calls = 1
    floor = 1e-28 * float(target @ target)
    while len(active) > 1 and calls < room:
        # The part that matters least is tried first; sizes are equal, so its coefficient tells.
        order = np.argsort(np.abs(found), kind="stable")
        place = int(order[0])
        rest = [other for k, other in enumerate(active) if k != place]
        without, kept = solve(rest)
        calls += 1
        free = max(len(y) - len(active), 1)
        if without > error * (1.0 + 4.0 / free) and without > floor:
            if 0 in active and active[place] != 0 and calls < room:  # an offset is tried in any case
                rest = [other for other in active if other != 0]
                without, kept = solve(rest)
                calls += 1
                if without > error * (1.0 + 4.0 / free) and without > floor:
                    break
            else:
                break
        active, error, found = rest, without, kept
    factors = np.zeros(len(columns))
    for place, factor in zip(active, found.tolist(), strict=True):
        factors[place] = factor * scale / sizes[place]
    return factors, calls
