"""What every search method is: DisCo and each baseline ask for rewards of designs and are told them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats, Ints
from discodso.base.errors import DeclarationError
from discodso.space.design import Design, DesignBatch
from discodso.space.space import Space
from discodso.space.state import State


@dataclass(frozen=True, slots=True)
class Metrics:
    """What one update of a method did; None where a method has no such thing.

    Attributes:
        quantile: of the rewards of the batch.
        kept: designs that taught.
        loss, entropy: of the update; the entropy is the mean over the kept designs.
        shares: in the next batch, by who proposes: "policy", "variation" and "refinement".
        restarted: whether the method begins anew after it.
        redrawn: designs that were drawn again since the last one, since they met a dead end or no condition.
        cost: of what it looked at beside the rewards, in the unit of the task.
    """

    quantile: float | None = None
    kept: int | None = None
    loss: float | None = None
    entropy: float | None = None
    shares: Mapping[str, float] | None = None
    restarted: bool = False
    redrawn: int | None = None
    cost: float = 0.0


class Method(Protocol):
    """A search method in the middle of a run.

    A method whose runs are written to a folder also has `state` and `restore`; see `Resumable`.
    """

    batch_size: int

    # A method that draws again on request may say `redraws = True`: designs that were evaluated before are then
    # replaced by more that are asked for, instead of being told once more.

    def ask(self, size: int | None = None) -> DesignBatch:
        """Designs to evaluate next; `batch_size` of them unless a number is given."""

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Rewards of designs, asked for or not, any number, in any order. Returns metrics after an update.

        With several objectives they are float[B, m], turned so that more is better; settings of methods that can
        do that have `several_objectives = True`.

        `weights` is the evidence behind each reward, such as episodes, None if all are equal.
        """


@runtime_checkable
class Refining(Protocol):
    """A method that picks designs for `Task.refine`, if the task has it.

    Attributes:
        refine_calls: objective calls allowed to each.
    """

    refine_calls: int

    def to_refine(self, designs: DesignBatch, rewards: Floats) -> Ints:
        """Rows of an evaluated batch to refine before it is told, in their order of preference; may be none.

        Rewards that are not finite mark failed designs.
        """


@dataclass(frozen=True)
class Searched:
    """What a method that rates designs itself has done with some objective calls.

    Attributes:
        designs: the best that it has found since the last time; may be none.
        rewards: float[B], of these designs.
        calls: objective calls spent, on these and on all others.
        repeats: share of its proposals that were the same as earlier ones, and so cost no call.
        exhausted: why there is nothing left to try; empty if there is.
        solved: whether nothing better can be found.
        cost: of all that, in the unit of the task.
    """

    designs: DesignBatch
    rewards: Floats
    calls: int
    repeats: float | None = None
    exhausted: str = ""
    solved: bool = False
    cost: float = 0.0


@runtime_checkable
class Searching(Protocol):
    """A method that knows the objective, and rates far more designs than could be handed to and fro."""

    def search(self, room: int) -> Searched:
        """Search on with at most so many objective calls; returns after a fraction of a second."""


@runtime_checkable
class Resumable(Protocol):
    """What can be saved and go on exactly as if nothing had happened: methods, and objectives that remember."""

    def state(self) -> State:
        """All that later steps depend on."""

    def restore(self, state: State) -> None:
        """Go back to a state; KeyError, TypeError or ValueError if it belongs to something else."""


class MethodSettings(Protocol):
    """The settings of a method, which can start it on a space."""

    def build(self, space: Space, seed: int | np.random.SeedSequence) -> Method:
        """A fresh method."""


def told_arrays(
    space: Space, designs: Sequence[Design], rewards: ArrayLike, several: bool = False
) -> tuple[DesignBatch, Floats]:
    """What a method was told, as arrays of its own: designs, encoded, and float[B] rewards, or float[B, m] of
    `several` objectives."""
    batch = space.encode(designs if isinstance(designs, DesignBatch) else list(designs))
    try:
        told = np.array(rewards, dtype=np.float64)  # a copy: the caller may use the buffer again
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"tell needs rewards that are numbers: {error}") from None
    if told.shape[:1] != (len(batch),) or told.ndim != 1 + several:
        raise DeclarationError(f"tell got {len(batch)} designs and rewards of shape {told.shape}")
    return batch, told
