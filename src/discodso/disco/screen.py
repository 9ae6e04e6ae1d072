"""The screen: of many proposed designs it lets those pass that a Gaussian process expects most of.

While few designs have been evaluated, a model of the reward is worth more than many proposals. The process is
fitted to all designs so far. Its targets are normal scores of the ranks of rewards, so that no scale of rewards
matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.special import ndtri

from discodso.base.arrays import Floats, Ints
from discodso.base.threads import one_blas_thread
from discodso.disco.archive import Pool
from discodso.disco.features import Blocks, features
from discodso.disco.settings import ScreenSettings
from discodso.space.design import DesignBatch
from discodso.space.space import Space
from discodso.space.state import State

_POINTS = 600  # that the process is fitted to: the best half, and the last ones
_FITTED = 200  # of them for its parameters
_AGAIN = 1.25  # so many times as many points before its parameters are fitted again
_WEIGHTS = ((1 / 3, 1 / 3, 1 / 3), (0.7, 0.15, 0.15), (0.15, 0.7, 0.15), (0.15, 0.15, 0.7))
_LENGTHS = (0.1, 0.3, 1.0, 3.0)
_NOISES = (1e-3, 0.03, 0.3)
_AT_ONCE = 500  # candidates, which bounds the memory
_OPTIMISM = 2.0  # standard deviations that are added to the mean
Shape = tuple[tuple[float, ...], float, float]  # weights of blocks, length, noise


@dataclass(frozen=True)
class Process:
    """A Gaussian process with kernel exp(-d^2 / length), where d^2 is a weighted sum over blocks of features.

    Attributes:
        blocks: float[N, D] of each block, of the points.
        scales: mean squared distances of each block.
        targets: float[N].
        noise: float[N], its variance at each point, times `shape[2]`.
        shape: weights of the blocks, length, noise.
    """

    blocks: Blocks
    scales: tuple[float, ...]
    targets: Floats
    noise: Floats
    shape: Shape

    @classmethod
    def fit(cls, blocks: Blocks, targets: Floats, noise: Floats, shape: Shape | None) -> Process:
        """With this shape, or the one with the highest marginal likelihood."""
        scales = tuple(max(2.0 * float(block.var(axis=0).sum()), 1e-12) for block in blocks)
        if shape is None:
            few = np.linspace(0, len(targets) - 1, min(len(targets), _FITTED)).astype(np.int64)
            some = tuple(block[few] for block in blocks)
            own = [squared_distances(a, a) / scale for a, scale in zip(some, scales, strict=True)]
            best = -np.inf
            for weights in _WEIGHTS:
                squares = sum(w * d for w, d in zip(weights, own, strict=True))
                for length in _LENGTHS:
                    kernel = np.asfortranarray(np.exp(-squares / length))
                    for share in _NOISES:
                        likelihood = _likelihood(kernel, targets[few], share * noise[few])
                        if likelihood > best:
                            best, shape = likelihood, (weights, length, share)
            assert shape is not None
        return cls(blocks, scales, targets, noise, shape)

    def _scaled(self, blocks: Blocks) -> Floats:
        """All features of some points, of which the kernel takes plain distances."""
        weights, length, _ = self.shape
        roots = [(w / (s * length)) ** 0.5 for w, s in zip(weights, self.scales, strict=True)]
        return np.concatenate([root * block for root, block in zip(roots, blocks, strict=True)], axis=1)

    @cached_property
    def _known(self) -> tuple[Floats, Floats]:
        """The points, scaled, and their squared norms."""
        points = self._scaled(self.blocks)
        return points, squared_norms(points)

    def _kernel(self, points: Floats) -> Floats:
        """float[M, N], between scaled points and those that are known."""
        squares = squared_distances(points, *self._known)
        return np.exp(np.negative(squares, out=squares), out=squares)

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        kernel = self._kernel(self._known[0])
        factor = cholesky(_with_noise(kernel, self.shape[2] * self.noise), lower=True, overwrite_a=True)
        return factor, cho_solve((factor, True), self.targets)

    def predict(self, blocks: Blocks) -> tuple[Floats, Floats]:
        """Mean and standard deviation float[M] at other points."""
        factor, weights = self._solved
        cross = self._kernel(self._scaled(blocks))
        known = solve_triangular(factor, cross.T, lower=True)
        return cross @ weights, np.sqrt(np.maximum(1.0 - (known**2).sum(axis=0), 1e-12))


def squared_norms(points: Floats) -> Floats:
    """float[N], of points[N, D]."""
    norms: Floats = (points**2).sum(axis=1)
    return norms


def squared_distances(one: Floats, other: Floats, norms: Floats | None = None) -> Floats:
    """float[N, M], of points[N, D] from others[M, D], whose squared norms may be given."""
    distances: Floats = (-2 * one) @ other.T  # in place from here on: the largest arrays of a search
    distances += squared_norms(one)[:, None] + (squared_norms(other) if norms is None else norms)
    return np.maximum(distances, 0.0, out=distances)


def _likelihood(kernel: Floats, targets: Floats, noise: Floats) -> float:
    """Log marginal likelihood, without its constant."""
    noisy = _with_noise(kernel.copy(order="F"), noise)
    factor, broken = dpotrf(noisy, lower=True, clean=False, overwrite_a=True)
    if broken:
        return -np.inf
    weights = dpotrs(factor, targets, lower=True)[0]
    return float(-0.5 * targets @ weights - np.log(factor.diagonal()).sum())


def _with_noise(kernel: Floats, noise: Floats) -> Floats:
    """The same array, with noise[N] on its diagonal."""
    kernel.flat[:: len(kernel) + 1] += noise + 1e-9
    return kernel


def normal_scores(rewards: Floats) -> Floats:
    """Ranks as quantiles of the normal distribution; equal rewards have the same score, failed ones the lowest."""
    rewards = np.where(np.isfinite(rewards), rewards, -np.inf)
    _, where, counts = np.unique(rewards, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - 0.5 * (counts + 1)
    return np.asarray(ndtri((ranks[where] + 0.5) / len(rewards)))


class Screen:
    """What has been evaluated, and the process that was fitted to it."""

    def __init__(self, space: Space, settings: ScreenSettings) -> None:
        self._space = space
        self._settings = settings
        self._known = Pool.empty(space)
        self._blocks = features(space, self._known.designs)  # of what is known
        self._calls = 0
        self._shape: Shape | None = None
        self._fitted = 0  # points that the shape was fitted to
        self._process: Process | None = None

    @property
    def candidates(self) -> int:
        """How many to propose for each place now; 1 as long as the screen does not work."""
        works = self._settings.first <= self._calls < self._settings.last
        return self._settings.candidates if works else 1

    def add(self, told: Pool) -> None:
        """Take evaluated designs."""
        self._calls += len(told)
        self._process = None
        if self._calls >= self._settings.last:
            if len(self._known):
                self._know(Pool.empty(self._space))
            return
        known, more = self._known.join(told), features(self._space, told.designs)
        blocks = tuple(np.concatenate(both) for both in zip(self._blocks, more, strict=True))
        if len(known) > _POINTS:
            best = np.argsort(-known.rewards, kind="stable")[: _POINTS // 2]
            last = np.arange(len(known) - _POINTS // 2, len(known))
            kept = np.union1d(best, last)
            known, blocks = known.select(kept), tuple(block[kept] for block in blocks)
        self._know(known, blocks)

    def _know(self, known: Pool, blocks: Blocks | None = None) -> None:
        self._known = known
        self._blocks = features(self._space, known.designs) if blocks is None else blocks

    def choose(self, designs: DesignBatch, count: int, rng: np.random.Generator) -> Ints:
        """int[count], which designs to evaluate: a few as they come, then those that promise most."""
        score = np.empty(len(designs))
        with one_blas_thread():
            process = self._fit()
            for at in range(0, len(designs), _AT_ONCE):
                some = slice(at, at + _AT_ONCE)
                mean, deviation = process.predict(features(self._space, designs.select(some)))
                score[some] = mean + _OPTIMISM * deviation
        score[: int(self._settings.unscreened * count + rng.random())] = np.inf
        order = np.argsort(-score, kind="stable").tolist()
        keys, seen, twice = designs.keys(), set[bytes](), list[int]()
        chosen: list[int] = []
        for row in order:
            (twice if keys[row] in seen else chosen).append(row)
            seen.add(keys[row])
        return np.array((chosen + twice)[:count], np.int64)

    def _fit(self) -> Process:
        if self._process is None:
            known = self._known
            again = self._shape is None or len(known) >= _AGAIN * self._fitted
            noise = known.weights.mean() / known.weights
            shape = None if again else self._shape
            self._process = Process.fit(self._blocks, normal_scores(known.rewards), noise, shape)
            if again:
                self._shape, self._fitted = self._process.shape, len(known)
        return self._process

    def state(self) -> State:
        """The designs, and the shape of the process."""
        shape = None if self._shape is None else [list(self._shape[0]), *self._shape[1:]]
        data = {"calls": self._calls, "shape": shape, "fitted": self._fitted}
        return State(self._known.to_arrays(), data)

    def restore(self, state: State) -> None:
        """Go on from a state."""
        self._know(Pool.of_arrays(self._space, state.arrays))
        self._calls, self._fitted = int(state.data["calls"]), int(state.data["fitted"])
        shape = state.data["shape"]
        self._shape = None if shape is None else (tuple(shape[0]), float(shape[1]), float(shape[2]))
        self._process = None
