"""The search for the unknown parts of a template as the method of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats
from discodso.base.errors import DiscodsoError
from discodso.disco.method import Metrics, Searched
from discodso.space.design import Design, DesignBatch
from discodso.space.space import Space
from discodso.space.state import State
from discodso.tasks.regression.canonical import canonical
from discodso.tasks.regression.data import Rows
from discodso.tasks.regression.engine import _form as forms
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine.form_search import Form, FormSearch, Row, part_terms
from discodso.tasks.regression.engine.setting import Setting, make_setting
from discodso.tasks.regression.equation_method import CODE_NAMES, added, announce_compiling, sample
from discodso.tasks.regression.expression import CONST, Expression, Item, input_index, literal_value
from discodso.tasks.regression.expression_space import Fit, RegressionSpace
from discodso.tasks.regression.losses import weighted_variance
from discodso.tasks.regression.operators import OPERATORS
from discodso.tasks.regression.template import PART, Template

_STEP = 3000
_NEWS, _BETTER, _CANDIDATES, _CLOSE = 20, 0.999, 24, 1.5
Parts = Mapping[str, Expression | float]


@dataclass(frozen=True)
class TemplateSettings:
    """The search for the parts of a template as a method of a run; see `EquationSettings`.

    Attributes:
        template: the form.
        description: what its parts may look like.
        fit: the data.
        budget: calls of the run, by which the search plans.
        started: is told the search when it is built.
    """

    template: Template
    description: RegressionSpace
    fit: Fit
    budget: int
    started: Callable[[TemplateMethod], None] = lambda method: None

    def build(self, space: Space, seed: int | np.random.SeedSequence) -> TemplateMethod:
        """A fresh search."""
        announce_compiling(forms.list_parts, "_form.list_parts")
        method = TemplateMethod(self, space, seed)
        self.started(method)
        return method


class TemplateMethod:
    """The search behind the protocol of methods; it rates parts itself."""

    batch_size = _STEP

    def __init__(self, settings: TemplateSettings, space: Space, seed: int | np.random.SeedSequence) -> None:
        self.space, self.fit, self.settings, self.template = space, settings.fit, settings, settings.template
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self.literals = [name for name in settings.description.numbers if name != CONST]
        self.literals += [n for n in self.template.operators if n not in (*OPERATORS, *self.literals)]
        fit = settings.fit
        rows, weights = sample(fit.target, fit.weights)
        self.variance = weighted_variance(fit.target, fit.weights)
        self.form = self._form()
        setting = self._setting(fit.columns[:, rows], fit.target[rows], weights)
        number = int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))
        self.engine = FormSearch(setting, self.form, number)
        self._told: dict[int, float] = {}

    def _form(self) -> Form:
        names, inputs = self.template.constants, len(self.template.columns)
        codes, ties = [], []
        for item in self.template.items:
            kind, _, name = item.partition(" ")
            index = input_index(item)
            ties.append(names.index(name) if kind == CONST else -1)
            if kind == PART:
                codes.append(forms.PART + list(self.template.parts).index(name))
            elif kind == CONST:
                codes.append(trees.CONSTANT)
            elif index is not None:
                codes.append(trees.COLUMN + index)
            else:
                own = OPERATORS.get(item)
                codes.append(trees.LITERAL + self.literals.index(item) if own is None else own.code)
        allowed = np.zeros((len(self.template.parts), inputs), np.bool_)
        for part, own_inputs in enumerate(self.template.parts.values()):
            allowed[part, [input_index(name) or 0 for name in own_inputs]] = True
        return Form(np.array(codes), np.array(ties), len(names), allowed)

    def _setting(self, columns: Floats, target: Floats, weights: Floats) -> Setting:
        names = [operator.name for operator in self.settings.description.operators]
        numbers = [literal_value(name) or 0.0 for name in self.literals]
        made = make_setting(np.ascontiguousarray(columns), target, weights, names, numbers, self.settings)
        return replace(made, weights=weights / (weights.sum() * self.variance))

    def ask(self, size: int | None = None) -> DesignBatch:
        """This method rates expressions itself."""
        raise DiscodsoError("the search for the parts of a template rates them itself; use search(...)")

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """This method rates expressions itself."""
        raise DiscodsoError("the search for the parts of a template rates them itself; use search(...)")

    def search(self, room: int) -> Searched:
        """Search on, and tell what is new on the front."""
        engine = self.engine
        allowed = min(_STEP, room - min(_NEWS, room // 4))
        spent = engine.step(allowed) if allowed > 0 else 0
        exhausted = "variations of the parts repeat what was tried" if spent == 0 and allowed > 0 else ""
        found = [design for row in self._front() if (design := self._news(row)) is not None][: room - spent]
        batch = self.space.encode(found)
        rewards = self.fit(batch) if found else np.zeros(0)
        share = round(float(engine.counts[1]) / max(float(engine.counts[3]), 1.0), 4)
        return Searched(batch, rewards, spent + len(found), share, exhausted, engine.found)

    def _news(self, row: Row) -> Design | None:
        if not row.error < 0.99 * self._told.get(row.price, math.inf):
            return None
        self._told[row.price] = row.error
        return self.written(row)[0].design

    def _front(self) -> list[Row]:
        """The best row of every price that is better than all cheaper ones."""
        found: list[Row] = []
        for row in self.engine.kept(best=True):
            if not found or row.error < _BETTER * found[-1].error:
                found.append(row)
        return found

    # ------------------------------------------------------------------------------------------- results

    def written(self, row: Row) -> tuple[Expression, Parts]:
        """The law, and its parts and constants by name."""
        template = self.template
        parts: dict[str, list[Item]] = {}
        for part, name in enumerate(template.parts):
            base, sums = int(row.bases[part]), list[list[Item]]()
            if row.parameters[base] != 0.0:
                sums.append([(CONST, float(row.parameters[base]))])
            for t, (codes, values) in enumerate(part_terms(row, part)):
                factor = float(row.parameters[base + 1 + t])
                own = [self._item(code, value) for code, value in zip(codes, values, strict=True)]
                if factor != 0.0:
                    sums.append(own if factor == 1.0 else ["mul", (CONST, factor), *own])
            parts[name] = added(sums)
        constants = {name: float(row.parameters[k]) for k, name in enumerate(template.constants)}
        law = template.expression(parts, constants)
        functions = {name: Expression(Design.of(*own), template.columns) for name, own in parts.items()}
        return law, {**functions, **constants}

    def _item(self, code: int, value: float) -> Item:
        if code >= trees.COLUMN:
            return f"x{code - trees.COLUMN + 1}"
        if code == trees.CONSTANT:
            return (CONST, value)
        return self.literals[code - trees.LITERAL] if code >= trees.LITERAL else CODE_NAMES[code]

    def standing(self) -> list[tuple[Design, float]]:
        """The front with mean squared errors."""
        return [(self.written(row)[0].design, row.error * self.variance) for row in self._front()]

    def designs(self) -> tuple[Design, ...]:
        """The front."""
        return tuple(self.written(row)[0].design for row in self._front())

    def laws(self, rows: Rows, room: int) -> tuple[dict[Expression, Parts], int]:
        """What is kept, in canonical form with its parts, fitted to these rows to the end; and the calls."""
        X, y, weights = rows
        setting = self._setting(X.T, y, weights)
        same = np.array_equal(setting.target, self.engine.setting.target)
        fitted = self.engine if same else FormSearch(setting, self.form, 0)
        found: dict[Expression, Parts] = {}
        calls = 0
        front = self._front()[-_CANDIDATES:]
        close = [row for row in front if row.error <= _CLOSE * front[-1].error]
        for row in [*close, *reversed(front[: len(front) - len(close)])]:  # should calls run out
            lean, used = fitted.lean(row, room - calls)
            calls += used
            law, parts = self.written(lean)
            own = {name: p if isinstance(p, float) else canonical(p) for name, p in parts.items()}
            found.setdefault(canonical(law), own)
        return found, calls

    # ------------------------------------------------------------------------------------------ checkpoint

    def state(self) -> State:
        """Everything that later steps depend on."""
        told = {str(price): error for price, error in self._told.items()}
        return State.of_parts({"engine": self.engine.state(), "own": State({}, {"told": told})})

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.engine.restore(state.part("engine"))
        self._told = {int(price): float(error) for price, error in state.part("own").data["told"].items()}
