"""Symbolic regression as a task: the space of expressions, and a reward for how well one fits the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require_integer, require_one_of
from discodso.base.errors import DeclarationError
from discodso.run.task import Refined, Task
from discodso.space import constraints as rule
from discodso.space.design import DesignBatch
from discodso.space.space import Space
from discodso.space.tokens import Token, Tree
from discodso.tasks.regression import _evaluator_kernels as kernels
from discodso.tasks.regression._refine_kernels import levenberg_marquardt
from discodso.tasks.regression.evaluator import Program
from discodso.tasks.regression.expression import CONST, literal_value
from discodso.tasks.regression.losses import nmse_reward, scaled_error, weighted_variance
from discodso.tasks.regression.operators import Costs, Operator, operators_named
from discodso.tasks.regression.options import LOSSES, REALS, LossName, Range, is_squared

DEFAULT_LIBRARY = ("add", "sub", "mul", "div", "sin", "cos", "exp", "log", CONST)
TRIGONOMETRIC = ("sin", "cos", "tan")
INVERSES = (("exp", "log"), ("sqrt", "n2"), ("neg", "neg"), ("inv", "inv"))
Loss = LossName | Callable[[Floats, Floats, Floats], float]


@dataclass(frozen=True)
class RegressionSpace:
    """What expressions may look like; the defaults are the paper's.

    Args:
        library: names of operators (or `Operator` objects of one's own), numbers, and "const".
        min_length, max_length: of the traversal.
        const_range: where constants may lie; infinite ends are drawn near 0.
        nesting: operators by those that they must not stand inside; None for the paper's rule, no trigonometric
            function inside another.
        need_input: every expression has an input.
        no_constant_subtrees: no operator has numbers only for operands.
        no_inverses: no operator directly inside its inverse.
        max_constants: limit on the number of constants; None for none.
        costs: of tokens; None for what operators say themselves, and 1 for all others.
    """

    library: tuple[str | Operator, ...] = DEFAULT_LIBRARY
    min_length: int = 4
    max_length: int = 32
    const_range: Range = REALS
    nesting: Mapping[str, tuple[str, ...]] | None = None
    need_input: bool = False
    no_constant_subtrees: bool = False
    no_inverses: bool = False
    max_constants: int | None = None
    costs: Costs | None = None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Tokens of the library that are numbers."""
        return tuple(
            n for n in self.library if isinstance(n, str) and (n == CONST or literal_value(n) is not None)
        )

    @property
    def operators(self) -> tuple[Operator, ...]:
        """Operators of the library."""
        return operators_named(n for n in self.library if n not in self.numbers)

    def build(self, inputs: int) -> Space:
        """The space for a number of inputs."""
        require_integer("inputs", inputs, 1)
        names = [f"x{i + 1}" for i in range(inputs)]
        cost = {o.name: o.complexity if self.costs is None else self.costs[o.name] for o in self.operators}
        cost |= {n: 1.0 if self.costs is None else self.costs[n] for n in self.numbers}
        tokens = [Token(o.name, o.arity, complexity=cost[o.name]) for o in self.operators]
        tokens += [Token(name) for name in names]
        ranges = {CONST: self.const_range}
        tokens += [Token(n, range=ranges.get(n), complexity=cost[n]) for n in self.numbers]
        return Space(tokens, Tree(self.min_length, self.max_length), self._rules(names))

    def _rules(self, inputs: list[str]) -> list[rule.Constraint]:
        arity = {operator.name: operator.arity for operator in self.operators}
        unary, family = [name for name in arity if arity[name] == 1], [n for n in TRIGONOMETRIC if n in arity]
        pairs, numbers = [pair for pair in INVERSES if set(pair) <= set(arity)], self.numbers
        rules: list[rule.Constraint] = []
        if self.nesting is None and family:
            rules.append(rule.NoNesting(family))
        for outer, inner in (self.nesting or {}).items():
            below = [name for name in inner if name in arity]
            rules += [rule.ForbiddenDescendant([outer], below)] if outer in arity and below else []
        if self.need_input:
            rules.append(rule.Required(inputs))
        if self.no_constant_subtrees and numbers:
            # The innermost operator over numbers only would be one of these.
            rules += [rule.ForbiddenChild(unary, numbers)] if unary else []
            rules.append(rule.ForbiddenSiblings([(a, b) for a in numbers for b in numbers]))
        if self.no_inverses and pairs:
            rules.append(rule.InversePairs(pairs))
        if self.max_constants is not None and CONST in numbers:
            rules.append(rule.Repeat(CONST, at_most=self.max_constants))
        return rules


@dataclass(frozen=True)
class Fit:
    """How well expressions fit data; calling it with a `DesignBatch` gives rewards float[B].

    Attributes:
        columns: float[d, n], X transposed.
        target, weights: float[n]; the weights sum to 1.
        loss: with "nmse" the reward is the paper's 1 / (1 + NMSE), and 0 where a prediction is not finite; of a
            loss of one's own it is the negative.
        threads: of the evaluator.
        scaled: rate the best a + b f(x) in place of f(x), for losses of the squared error.
    """

    program: Program
    columns: Floats
    target: Floats
    weights: Floats
    loss: Loss = "nmse"
    threads: int = 1
    scaled: bool = False

    @classmethod
    def of(cls, program: Program, X: Floats, y: Floats, weights: Floats | None = None, **how: Any) -> Fit:
        """Prepare finite data X[n, d], y[n] and weights[n]; loss, threads and scaled may be given."""
        columns = np.ascontiguousarray(np.asarray(X, dtype=np.float64).T)
        target = np.ascontiguousarray(y, dtype=np.float64)
        if columns.ndim != 2 or target.shape != (columns.shape[1],) or not len(target):
            shapes = f"{np.shape(X)}, {np.shape(y)}"
            raise DeclarationError(f"X and y must be [n, d] and [n] with n >= 1, got {shapes}")
        if not (np.isfinite(columns).all() and np.isfinite(target).all()):
            raise DeclarationError("X and y must be finite; drop or fill rows with NaN or infinity first")
        share = np.full(len(target), 1.0) if weights is None else np.asarray(weights, dtype=np.float64)
        valid = share.shape == target.shape and np.isfinite(share).all() and (share >= 0).all()
        if not valid or share.sum() <= 0:
            raise DeclarationError("sample weights must be as many as rows, >= 0, finite, and not all 0")
        return cls(program, columns, target, share / share.sum(), **how)

    def __post_init__(self) -> None:
        if not callable(self.loss):
            require_one_of("loss", self.loss, LOSSES)
        if self.scaled and not is_squared(self.loss):
            raise DeclarationError(f"scaled needs loss 'nmse', 'nrmse' or 'r2', got {self.loss!r}")

    @property
    def variance(self) -> float:
        """Weighted variance of the target; 1 if the target is constant."""
        return weighted_variance(self.target, self.weights)

    @property
    def _data(self) -> kernels.Data:
        target = self.target - self.weights @ self.target if self.scaled else self.target
        return self.columns, target, self.weights

    def __call__(self, designs: DesignBatch) -> Floats:
        """Rewards; higher is better."""
        if not callable(self.loss):
            return self.reward_of(self.errors(designs))
        predictions = self.program.predict(designs, self.columns, self.threads)
        rewards = np.full(len(designs), -np.inf)
        for row in np.flatnonzero(np.isfinite(predictions).all(axis=1)).tolist():
            found = float(self.loss(self.target, predictions[row], self.weights))
            rewards[row] = -math.inf if math.isnan(found) else -found
        return rewards

    def errors(self, designs: DesignBatch) -> Floats:
        """float[B], sum of weights times squared (or absolute) errors; infinite if a prediction is not finite."""
        data, absolute = self._data, self.loss == "mae"
        if not self.program.has_own(designs).any():
            totals = np.empty(len(designs))
            self.program.in_parts(
                lambda own, rows: kernels.errors(own, data, absolute, self.scaled, totals[rows]),
                designs,
                self.threads,
            )
            return totals
        predictions = self.program.predict(designs, self.columns, self.threads)
        if self.scaled:
            return np.array([scaled_error(f, data[1], self.weights) for f in predictions])
        with np.errstate(all="ignore"):
            difference = predictions - self.target
            totals = (np.abs(difference) if absolute else difference**2) @ self.weights
        totals[~(np.isfinite(predictions).all(axis=1) & np.isfinite(totals))] = np.inf
        return totals

    def refine(self, designs: DesignBatch, allowed: Ints, least_gain: float = 1e-3) -> Refined:
        """Least squares over the constants, within their range, by Levenberg-Marquardt; see `Task.refine`.

        For losses of the squared error. One call is counted for every evaluation of the residuals, and one for
        every Jacobian. Expressions with operators of one's own stay as they are.
        """
        values, errors = np.array(designs.values), np.empty(len(designs))
        calls = np.zeros(len(designs), np.int64)
        allowed = np.where(self.program.has_own(designs), 0, allowed)
        ranges = [token.range for token in self.program.library.tokens if token.range is not None]
        how = self._data, self.scaled, (ranges or [(0.0, 0.0)])[0]

        def fit(own: kernels.Programs, rows: slice) -> None:
            levenberg_marquardt(own, *how, allowed[rows], least_gain, errors[rows], calls[rows])

        self.program.in_parts(fit, designs, self.threads, values)
        return Refined(replace(designs, values=values), self.reward_of(errors), calls)

    def loss_of(self, reward: float) -> float:
        """The loss behind a reward; those that have names are relative to the spread of the target."""
        if callable(self.loss):
            return -reward
        return 1.0 - reward if self.loss == "r2" else 1.0 / reward - 1.0

    def reward_of(self, errors: Floats) -> Floats:
        """Reward from the mean squared (or absolute) error, infinite for failures."""
        if self.loss == "nmse":
            return nmse_reward(errors, self.variance)
        with np.errstate(over="ignore"):
            scaled = errors / (math.sqrt(self.variance) if self.loss == "mae" else self.variance)
        if self.loss == "r2":
            return np.maximum(1.0 - scaled, -1.0)
        return 1.0 / (1.0 + (np.sqrt(scaled) if self.loss == "nrmse" else scaled))


def regression_task(
    X: Floats, y: Floats, space: RegressionSpace | None = None, *, name: str = "regression", **how: Any
) -> Task:
    """The task of fitting y[n] by an expression of X[n, d]; weights, loss and threads as `Fit.of` takes them."""
    description = space or RegressionSpace()
    built = description.build(np.shape(X)[1])
    fit = Fit.of(Program.of(built.library, description.operators), X, y, **how)
    worst = 0.0 if fit.loss in ("nmse", "nrmse", "mae") else -math.inf
    refine = fit.refine if is_squared(fit.loss) else None
    return Task(built, batch_objective=fit, worst_reward=worst, name=name, refine=refine)
