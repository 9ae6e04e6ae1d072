"""Bayesian optimisation with BoTorch: a Gaussian process over a fixed frame of slots, and expected improvement.

Its space has a fixed number of dimensions: for a sequence the slots of the longest one; for trees, as in the paper
a complete tree whose inner nodes and leaves each choose a token (of a token with fewer children the first subtrees
count). Every slot has a category, its token, and a number for each value that some choice carries; for options it
says which. Candidates are drawn at random and near the best designs so far; those that break a rule of the space
are left out. Its own time grows with the cube of the designs, so give it a time limit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Bools, Floats, Ints
from discodso.base.checks import require, require_integer, require_number, seed_sequence, settle_integers
from discodso.base.errors import DeadEndError
from discodso.baselines.common import all_units, extra, sound_designs
from discodso.disco.method import Metrics, told_arrays
from discodso.disco.sampling import Redrawn
from discodso.space.bounds import FixedRanges
from discodso.space.design import Design, DesignBatch
from discodso.space.replay import replay
from discodso.space.skeletons import skeleton_space, unit_limits
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


@dataclass(frozen=True, slots=True)
class UnruledBOSettings(BOSettings):
    """The same on the paper's frame, where no rule of the space holds: any complete tree with any values."""

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> BO:
        """Start the method on a space."""
        require("space", space, isinstance(space, Space), "a Space")
        return BO(replace(space, constraints=(), priors=(), bounds=FixedRanges()), self, seed=seed)


class Frame:
    """The slots of a space: of the longest sequence, or of a complete tree.

    A point has the place of a choice for each slot, then a number from 0 to 1 for each value that some choice of a
    slot carries.

    Attributes:
        choices: for each slot the tokens that may fill it.
        children: for each slot the slots of its children in a tree, or the next one in a sequence.
        column: by slot and value, where its number stands in a point.
        carried: for each token its values: which it is, the limits of its unit, and whether it is an option; of
            options the limits are 0 and how many there are.
    """

    def __init__(self, space: Space, depth: int, reach: float) -> None:
        library, grammar = space.library, space.grammar
        self.space = space
        everything = np.arange(len(library))
        self.choices: list[Ints] = []
        self.children: list[list[int]] = []
        if grammar.chain:
            self.choices = [everything] * grammar.max_positions
            self.children = [[slot + 1] for slot in range(grammar.max_positions)]
        else:
            self._grow(everything[library.arity > 0], everything[library.arity == 0], depth)
        self.size = len(self.choices)
        low, high = unit_limits(space)
        options = library.options > 0
        low = np.where(options, 0.0, np.maximum(low, -reach))
        high = np.where(options, library.options, np.minimum(high, reach))
        carries = library.column_of >= 0
        self.column: dict[tuple[int, int], int] = {}
        for slot, tokens in enumerate(self.choices):
            for value in np.flatnonzero(carries[tokens].any(axis=0)).tolist():
                self.column[slot, value] = self.size + len(self.column)
        self.carried = [
            [(v, low[k, v], high[k, v], options[k, v]) for v in np.flatnonzero(carries[k]).tolist()]
            for k in everything
        ]

    def _grow(self, inner: Ints, leaves: Ints, levels: int) -> int:
        """Add a complete tree with so many levels of inner nodes; gives its first slot."""
        slot = len(self.choices)
        width = int(self.space.library.arity.max()) if levels and len(inner) else 0
        self.choices.append(inner if width else leaves)
        self.children.append([])
        self.children[slot] = [self._grow(inner, leaves, levels - 1) for _ in range(width)]
        return slot

    def random(self, count: int, rng: np.random.Generator) -> Floats:
        """float[count, D], points drawn evenly."""
        picked = [rng.integers(0, len(tokens), count) for tokens in self.choices]
        return np.concatenate((np.array(picked, float).T, rng.random((count, len(self.column)))), axis=1)

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

    def decode(self, points: Floats) -> tuple[Ints, Ints, Floats]:
        """tokens[B, T], lengths[B] and units[B, T, V], whether or not they keep the rules; length 0 if unfinished.
        For options units are their numbers."""
        grammar = self.space.grammar
        shape = len(points), max(grammar.max_positions, self.size)
        tokens, units = np.full(shape, -1, np.int64), np.full((*shape, self.space.library.slots), np.nan)
        lengths = np.zeros(len(points), np.int64)
        for row, point in enumerate(points):
            slots, at, remaining = [0], 0, grammar.start
            while slots and remaining:
                slot = slots.pop()
                token = int(self.choices[slot][int(point[slot])])
                tokens[row, at] = token
                for value, low, high, option in self.carried[token]:
                    unit = low + point[self.column[slot, value]] * (high - low)
                    units[row, at, value] = min(int(unit), high - 1) if option else unit
                at += 1
                remaining += int(grammar.opens[token]) - 1
                slots += self._below(slot, token)
            lengths[row] = 0 if remaining else at
        return tokens, lengths, units

    def _below(self, slot: int, token: int) -> list[int]:
        """Slots that follow a token, the next one last."""
        grammar = self.space.grammar
        opens = 1 if grammar.chain else int(grammar.opens[token])
        return [child for child in reversed(self.children[slot][:opens]) if child < self.size]

    def encode(self, designs: DesignBatch) -> tuple[Floats, Bools]:
        """Points of designs, and which of them have a place in the frame."""
        points = np.zeros((len(designs), self.size + len(self.column)))
        points[:, self.size :] = 0.5
        units, fits = all_units(self.space, designs), np.ones(len(designs), np.bool_)
        for row, count in enumerate(designs.lengths.tolist()):
            slots = [0]
            for at, token in enumerate(designs.tokens[row, :count].tolist()):
                slot = slots.pop() if slots else -1
                place = np.flatnonzero(self.choices[slot] == token)
                if slot < 0 or not len(place):
                    fits[row] = False
                    break
                points[row, slot] = place[0]
                for value, low, high, option in self.carried[token]:
                    unit = (units[row, at, value] + 0.5 * option - low) / (high - low)
                    points[row, self.column[slot, value]] = np.clip(unit, 0.0, 1.0)
                slots += self._below(slot, token)
        return points, fits


class BO:
    """A Gaussian process over the frame of a space, and all that it was told."""

    def __init__(self, space: Space, settings: BOSettings, *, seed: int | np.random.SeedSequence = 0) -> None:
        require("space", space, isinstance(space, Space), "a Space")
        extra("BO needs BoTorch", "botorch", "gpytorch")
        self.space = space
        self.settings = settings
        self.batch_size = settings.batch_size
        self.frame = Frame(space, settings.depth, settings.reach)
        self._skeletons = skeleton_space(space)
        self._rng = np.random.default_rng(seed_sequence(seed))
        self._points = np.empty((0, self.frame.size + len(self.frame.column)))
        self._rewards = np.empty(0)
        self._redrawn = Redrawn()  # candidates that broke a rule on values, or met no condition

    def ask(self, size: int | None = None) -> DesignBatch:
        """Designs of the largest expected improvement; random ones in the beginning."""
        count = self.batch_size if size is None else size
        require_integer("size", count, 1)
        if np.isfinite(self._rewards).sum() < self.settings.initial:
            return self._candidates(count, near=False)[1].select(slice(0, count))
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
        points, fits = self.frame.encode(batch)
        self._points = np.concatenate((self._points, points[fits]))
        self._rewards = np.concatenate((self._rewards, told[fits]))
        return Metrics(redrawn=self._redrawn.take())

    def state(self) -> State:
        """What it was told, and the random stream."""
        arrays = {"points": self._points.copy(), "rewards": self._rewards.copy()}
        own = State(arrays, {"random": generator_state(self._rng)})
        return own.with_part("redrawn", self._redrawn.state())

    def restore(self, state: State) -> None:
        """Go on from a state of a method with the same space and settings."""
        points, rewards = state.arrays["points"], state.arrays["rewards"]
        if points.shape != (len(rewards), self._points.shape[1]):
            raise ValueError("points of another space")
        self._points, self._rewards = points.copy(), rewards.copy()
        restore_generator(self._rng, state.data["random"])
        self._redrawn.restore(state.part("redrawn"))

    def _candidates(self, count: int, near: bool) -> tuple[Floats, DesignBatch]:
        """Points and their designs, which keep the rules of the space and differ from each other."""
        kept: list[Floats] = []
        found: list[DesignBatch] = []
        seen: set[bytes] = set()
        for _ in range(_ROUNDS):
            points = self.frame.random(count, self._rng)
            if near:
                worth = np.where(np.isfinite(self._rewards), self._rewards, -np.inf)
                best = np.argsort(-worth, kind="stable")[:_PARENTS]
                parents = self._points[self._rng.choice(best, count - count // 2)]
                points[count // 2 :] = self.frame.near(parents, self.settings.value_step, self._rng)
            sound, designs, refused = sound_designs(self.space, self._skeletons, *self.frame.decode(points))
            self._redrawn.add(refused)
            new = {key: row for row, key in enumerate(designs.keys()) if key not in seen}
            seen |= new.keys()
            rows = np.array(list(new.values()), np.int64)
            kept.append(points[sound[rows]])
            found.append(designs.select(rows))
            if len(seen) >= count:
                break
        if not seen:
            raise DeadEndError(
                "no design on the frame of Bayesian optimisation keeps the rules; try another method.depth"
            )
        return np.concatenate(kept), DesignBatch.concatenate(found)

    def _improvement(self, points: Floats) -> Floats:
        """Log of the expected improvement at points[N, D]."""
        import torch  # here, so that other methods start without it
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.models.gp_regression_mixed import MixedSingleTaskGP
        from botorch.optim.fit import fit_gpytorch_mll_scipy
        from gpytorch.mlls import ExactMarginalLogLikelihood

        from discodso.disco.network import one_thread

        finite = np.isfinite(self._rewards)
        targets = np.where(finite, self._rewards, self._rewards[finite].min())
        targets = (targets - targets.mean()) / max(float(targets.std()), 1e-12)
        x, y = torch.from_numpy(self._points), torch.from_numpy(targets)[:, None]
        seed = int(self._rng.integers(0, 2**62))
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = MixedSingleTaskGP(x, y, cat_dims=list(range(self.frame.size)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a fit that was cut short, and of small data
                likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
                fit_gpytorch_mll_scipy(likelihood, options={"maxiter": self.settings.fit_steps})
            acquisition = LogExpectedImprovement(model, best_f=float(targets.max()))
            with torch.no_grad():
                values: Floats = acquisition(torch.from_numpy(points)[:, None, :]).numpy()
        return values
