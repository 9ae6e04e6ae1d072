"""Bayesian optimisation with BoTorch: a Gaussian process over a fixed frame of slots, and expected improvement.

Its space has a fixed number of dimensions: for a sequence the slots of the longest one; for trees, as in the paper
a complete tree whose inner nodes and leaves each choose a token (of a token with fewer children the first subtrees
count). Every slot has a category, its token, and a number for each value that some choice carries; for options it
says which. Candidates are drawn at
random and near the best designs so far; those that break a rule of the space are left out. Its own time grows with
the cube of the designs, so give it a time limit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require, require_integer, require_number, seed_sequence, settle_integers
from discodso.base.errors import DeadEndError, DiscodsoError
from discodso.disco.method import Metrics, told_arrays
from discodso.space.design import Design, DesignBatch
from discodso.space.replay import replay
from discodso.space.skeletons import (
    fill,
    keeps_rules,
    skeleton_space,
    unit_limits,
    units_of,
    without_numbers,
)
from discodso.space.space import Space
from discodso.space.state import State, generator_state, restore_generator

_ROUNDS = 200  # of candidates, to find one that keeps the rules
_PARENTS = 5  # best designs that candidates are made from


@dataclass(frozen=True, slots=True)
class BOSettings:
    """Settings of Bayesian optimisation.

    Args:
        batch_size: designs for one fit of the process.
        initial: designs drawn at random before the first fit.
        candidates: designs that expected improvement chooses from.
        fit_steps: of L-BFGS, for the hyperparameters of the process.
        depth: levels of inner nodes of the complete tree; 2 gives the 7 nodes of the paper's table.
        reach: infinite ranges are searched up to here.
        value_step: how far candidates lie from the best designs, as a share of the range.
    """

    batch_size: int = 1
    initial: int = 20
    candidates: int = 1000
    fit_steps: int = 20
    depth: int = 2
    reach: float = 10.0
    value_step: float = 0.1

    def __post_init__(self) -> None:
        settle_integers(self, {"batch_size": 1, "initial": 2, "candidates": 2, "fit_steps": 1, "depth": 1})
        require_number("reach", self.reach, above=0)
        require_number("value_step", self.value_step, above=0)

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> BO:
        """Start the method on a space."""
        return BO(space, self, seed=seed)


@dataclass(frozen=True)
class Frame:
    """The slots of a space.

    Attributes:
        choices: for each slot the tokens that may fill it.
        children: for each slot the slots of its children in a tree, or the next one in a sequence.
        numbered: pairs of a slot and one of the values that some choice there carries; a point has a number for
            each.
        low, high: float[K, V], limits of the units of each value; of options 0 and how many there are.
        options: bool[K, V], which values are options.
    """

    choices: tuple[Ints, ...]
    children: tuple[tuple[int, ...], ...]
    numbered: tuple[tuple[int, int], ...]
    low: Floats
    high: Floats
    options: Bools

    @classmethod
    def of(cls, space: Space, depth: int, reach: float) -> Frame:
        """The slots of the longest sequence, or of a complete tree."""
        library, grammar = space.library, space.grammar
        everything = np.arange(len(library))
        choices: list[Ints] = []
        children: list[tuple[int, ...]] = []
        if grammar.chain:
            choices = [everything] * grammar.max_positions
            children = [(slot + 1,) for slot in range(grammar.max_positions)]
        else:
            inner, leaves = everything[library.arity > 0], everything[library.arity == 0]
            width = int(library.arity.max())

            def grow(level: int) -> int:
                slot = len(choices)
                choices.append(inner if level < depth and len(inner) else leaves)
                children.append(())
                below = range(width) if level < depth and len(inner) else ()
                children[slot] = tuple(grow(level + 1) for _ in below)
                return slot

            grow(0)
        carried = [(library.column_of[tokens] >= 0).any(axis=0) for tokens in choices]
        numbered = tuple((slot, int(v)) for slot, own in enumerate(carried) for v in np.flatnonzero(own))
        low, high = unit_limits(space)
        chosen = library.options > 0
        low = np.where(chosen, 0.0, np.maximum(low, -reach))
        high = np.where(chosen, library.options, np.minimum(high, reach))
        return cls(tuple(choices), tuple(children), numbered, low, high, chosen)

    @property
    def size(self) -> int:
        """Slots; the first coordinates of a point are their choices."""
        return len(self.choices)

    def random(self, count: int, rng: np.random.Generator) -> Floats:
        """float[count, D], points drawn evenly."""
        picked = [rng.integers(0, len(tokens), count) for tokens in self.choices]
        return np.concatenate((np.array(picked, float).T, rng.random((count, len(self.numbered)))), axis=1)

    def near(self, parents: Floats, step: float, rng: np.random.Generator) -> Floats:
        """A neighbour of each point: another token in a slot or two, and other numbers."""
        points = parents.copy()
        fresh = self.random(len(points), rng)
        share = rng.integers(0, 3, (len(points), 1)) / self.size
        change = rng.random((len(points), self.size)) < share
        points[:, : self.size] = np.where(change, fresh[:, : self.size], points[:, : self.size])
        numbers = points[:, self.size :]
        moved = rng.random(numbers.shape) < rng.random((len(points), 1))
        noise = step * rng.standard_normal(numbers.shape)
        points[:, self.size :] = np.clip(numbers + np.where(moved, noise, 0.0), 0.0, 1.0)
        return points

    def decode(self, space: Space, points: Floats) -> tuple[Ints, Ints, Floats]:
        """tokens[B, T], lengths[B] and units[B, T, V], whether or not they keep the rules; length 0 if unfinished.
        For options units are their numbers."""
        grammar = space.grammar
        shape = len(points), max(grammar.max_positions, self.size)
        tokens, units = np.full(shape, -1, np.int64), np.full((*shape, self.low.shape[1]), np.nan)
        lengths = np.zeros(len(points), np.int64)
        for row in range(len(points)):
            slots, at, remaining = [0], 0, grammar.start
            while slots and remaining:
                slot = slots.pop()
                token = int(self.choices[slot][int(points[row, slot])])
                tokens[row, at] = token
                for value in np.flatnonzero(np.isfinite(self.low[token])).tolist():
                    low, high = self.low[token, value], self.high[token, value]
                    unit = low + points[row, self._column[slot, value]] * (high - low)
                    option = self.options[token, value]
                    units[row, at, value] = min(int(unit), high - 1) if option else unit
                at += 1
                remaining += int(grammar.opens[token]) - 1
                slots.extend(self._below(space, slot, token))
            lengths[row] = 0 if remaining else at
        return tokens, lengths, units

    def _below(self, space: Space, slot: int, token: int) -> list[int]:
        """Slots that follow a token, the next one last."""
        opens = 1 if space.grammar.chain else int(space.grammar.opens[token])
        return [child for child in reversed(self.children[slot][:opens]) if child < self.size]

    @cached_property
    def _column(self) -> dict[tuple[int, int], int]:
        """Where the number of a value of a slot stands in a point."""
        return {place: self.size + at for at, place in enumerate(self.numbered)}

    def encode(self, space: Space, designs: DesignBatch) -> tuple[Floats, Bools]:
        """Points of designs, and which of them have a place in the frame."""
        points = np.concatenate(
            (np.zeros((len(designs), self.size)), np.full((len(designs), len(self.numbered)), 0.5)), axis=1
        )
        units, options = units_of(space, designs), designs.option_numbers()
        units = np.where(options >= 0, options + 0.5, units)
        fits = np.ones(len(designs), np.bool_)
        for row, count in enumerate(designs.lengths.tolist()):
            slots = [0]
            for at in range(count):
                slot = slots.pop() if slots else self.size
                token = int(designs.tokens[row, at])
                place = np.flatnonzero(self.choices[slot] == token) if slot < self.size else np.empty(0, int)
                if not len(place):
                    fits[row] = False
                    break
                points[row, slot] = place[0]
                for value in np.flatnonzero(np.isfinite(self.low[token])).tolist():
                    low, high = self.low[token, value], self.high[token, value]
                    unit = (units[row, at, value] - low) / (high - low)
                    points[row, self._column[slot, value]] = np.clip(unit, 0.0, 1.0)
                slots.extend(self._below(space, slot, token))
        return points, fits


class BO:
    """A Gaussian process over the frame of a space, and all that it was told."""

    def __init__(self, space: Space, settings: BOSettings, *, seed: int | np.random.SeedSequence = 0) -> None:
        require("space", space, isinstance(space, Space), "a Space")
        self.space = space
        self.settings = settings
        self.batch_size = settings.batch_size
        self.frame = Frame.of(space, settings.depth, settings.reach)
        self._botorch = _botorch()
        self._skeletons = skeleton_space(space)
        self._rng = np.random.default_rng(seed_sequence(seed))
        self._points = np.empty((0, self.frame.size + len(self.frame.numbered)))
        self._rewards = np.empty(0)

    def ask(self, size: int | None = None) -> DesignBatch:
        """Designs of the largest expected improvement; random ones in the beginning."""
        count = self.batch_size if size is None else size
        require_integer("size", count, 1)
        known = np.isfinite(self._rewards)
        if known.sum() < self.settings.initial:
            points, designs = self._candidates(count, near=False)
            return designs.select(slice(0, count))
        points, designs = self._candidates(max(self.settings.candidates, count), near=True)
        order = np.argsort(-self._improvement(points), kind="stable")
        return designs.select(order[:count])

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Remember rewards; designs that have no place in the frame are passed over."""
        batch, told = told_arrays(self.space, designs, rewards)
        if batch.origin is not self.space:
            replay(self.space, batch)
        points, fits = self.frame.encode(self.space, batch)
        self._points = np.concatenate((self._points, points[fits]))
        self._rewards = np.concatenate((self._rewards, told[fits]))
        return None

    def state(self) -> State:
        """What it was told, and the random stream."""
        arrays = {"points": self._points.copy(), "rewards": self._rewards.copy()}
        return State(arrays, {"random": generator_state(self._rng)})

    def restore(self, state: State) -> None:
        """Go on from a state of a method with the same space and settings."""
        points, rewards = state.arrays["points"], state.arrays["rewards"]
        if points.shape != (len(rewards), self._points.shape[1]):
            raise ValueError("points of another space")
        self._points, self._rewards = points.copy(), rewards.copy()
        restore_generator(self._rng, state.data["random"])

    def _candidates(self, count: int, near: bool) -> tuple[Floats, DesignBatch]:
        """Points and their designs, which keep the rules of the space and differ from each other."""
        kept: list[Floats] = []
        found: list[DesignBatch] = []
        seen: set[bytes] = set()
        for _ in range(_ROUNDS):
            points = self.frame.random(count, self._rng)
            if near:
                best = np.argsort(
                    -np.where(np.isfinite(self._rewards), self._rewards, -np.inf), kind="stable"
                )
                parents = self._points[self._rng.choice(best[:_PARENTS], count - count // 2)]
                points[count // 2 :] = self.frame.near(parents, self.settings.value_step, self._rng)
            points, designs = self._valid(points)
            new = {key: row for row, key in enumerate(designs.keys()) if key not in seen}
            seen |= new.keys()
            rows = np.array(list(new.values()), np.int64)
            kept.append(points[rows])
            found.append(designs.select(rows))
            if len(seen) >= count:
                break
        if not seen:
            raise DeadEndError(
                "no design on the frame of Bayesian optimisation keeps the rules; try another method.depth"
            )
        return np.concatenate(kept), DesignBatch.concatenate(found)

    def _valid(self, points: Floats) -> tuple[Floats, DesignBatch]:
        """Those points whose designs keep the rules, and the designs."""
        grammar = self.space.grammar
        tokens, lengths, units = self.frame.decode(self.space, points)
        rows = np.flatnonzero((lengths >= grammar.min_positions) & (lengths <= grammar.max_positions))
        width = grammar.max_positions
        tokens, lengths, units = tokens[rows, :width], lengths[rows], units[rows, :width]
        library = self.space.library
        values = np.where((library.options > 0)[tokens], units, np.nan)
        skeletons = DesignBatch(library, tokens, library.narrow(values), lengths)
        fine = keeps_rules(self._skeletons, without_numbers(self._skeletons, skeletons))
        designs, feasible = fill(self.space, skeletons.select(fine), units[fine])
        return points[rows[fine][feasible]], designs.select(feasible)

    def _improvement(self, points: Floats) -> Floats:
        """Log of the expected improvement at points[N, D]."""
        import torch  # here, so that other methods start without it

        from discodso.disco.network import one_thread

        b = self._botorch
        finite = np.isfinite(self._rewards)
        worst = self._rewards[finite].min()
        targets = np.where(finite, self._rewards, worst)
        targets = (targets - targets.mean()) / max(float(targets.std()), 1e-12)
        x, y = torch.from_numpy(self._points), torch.from_numpy(targets)[:, None]
        seed = int(self._rng.integers(0, 2**62))
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = b.model(x, y, cat_dims=list(range(self.frame.size)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a fit that was cut short, and of small data
                b.fit(b.likelihood(model.likelihood, model), options={"maxiter": self.settings.fit_steps})
            acquisition = b.improvement(model, best_f=float(targets.max()))
            with torch.no_grad():
                values: Floats = acquisition(torch.from_numpy(points)[:, None, :]).numpy()
        return values


def _botorch() -> Any:
    try:
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.models.gp_regression_mixed import MixedSingleTaskGP
        from botorch.optim.fit import fit_gpytorch_mll_scipy
        from gpytorch.mlls import ExactMarginalLogLikelihood
    except ImportError:
        raise DiscodsoError("BO needs BoTorch; install it by `pip install discodso[baselines]`") from None
    return SimpleNamespace(
        improvement=LogExpectedImprovement,
        fit=fit_gpytorch_mll_scipy,
        model=MixedSingleTaskGP,
        likelihood=ExactMarginalLogLikelihood,
    )
