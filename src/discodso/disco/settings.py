"""Settings of the parts of DisCo: a frozen object for each; `DisCoSettings` in `disco` puts them together.

The defaults have the numbers of the paper's tables, with what makes them fit any range of values and any scale of
rewards; preset "paper" is without that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from discodso.base.checks import require, require_number, require_one_of, settle_integers
from discodso.base.errors import DeclarationError
from discodso.space.space import Space

NEIGHBOURS = ("previous", "parent", "sibling")
SCALE_LIMITS = (1e-4, 1e2)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The model and its distributions; the defaults are those of preset "paper-scaled".

    Args:
        cell: "lstm" or "gru".
        layers, units: size of the recurrent network.
        inputs: what the network is shown of the slot, from "previous", "parent", "sibling" (token and value
            each) and "position"; "neighbours" are the first three in trees and the first in sequences, and so
            is None.
        coordinates: what scale, shift and means are counted in, and what the network sees of values: "range" for
            shares of a finite range, from 0 to 1, and "value" for the units of the value itself, as in the paper
            (of its logarithm where a range is logarithmic).
        scale: of the normal distribution of values, which is truncated wherever bounds are finite, in coordinates.
        learn_scale: whether the network also emits the scale; it then begins near `scale`.
        min_scale: a learned scale does not fall below this, so that values near the best ones are always tried.
        shift: added to the mean that the network emits.
        mean_scale: unit of that mean, in coordinates. With narrow distributions a unit near `scale` keeps the
            gradients of means about as large as those of tokens, and lets means begin close to `shift`.
    """

    cell: Literal["lstm", "gru"] = "lstm"
    layers: int = 1
    units: int = 32
    inputs: tuple[str, ...] | None = None
    coordinates: Literal["range", "value"] = "range"
    scale: float = 0.5
    learn_scale: bool = False
    min_scale: float = SCALE_LIMITS[0]
    shift: float = 0.0
    mean_scale: float = 1.0

    def __post_init__(self) -> None:
        require_one_of("cell", self.cell, ("lstm", "gru"))
        require_one_of("coordinates", self.coordinates, ("range", "value"))
        settle_integers(self, {"layers": 1, "units": 1})
        require_number("scale", self.scale, least=SCALE_LIMITS[0], most=SCALE_LIMITS[1])
        require_number("min_scale", self.min_scale, least=SCALE_LIMITS[0], most=self.scale)
        require_number("shift", self.shift)
        require_number("mean_scale", self.mean_scale, above=0)
        if self.inputs is not None:
            names = (self.inputs,) if isinstance(self.inputs, str) else tuple(self.inputs)
            object.__setattr__(self, "inputs", names)
            choices = (*NEIGHBOURS, "neighbours", "position")
            unknown = [name for name in self.inputs if name not in choices]
            if unknown or len(set(self.inputs)) != len(self.inputs):
                known = ", ".join(choices)
                raise DeclarationError(f"inputs must be distinct names from {known}, got {self.inputs!r}")


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """Designs that are drawn evenly, where there is no network.

    Args:
        spread: standard deviation of the values, round the middle of their range and as a share of it; 0 to draw
            them evenly.
        focus: a class, or another function of the space, that gives a `Focus`: where values are drawn, and by what
            steps variations move them; None for their whole ranges.
    """

    spread: float = 0.0
    focus: Callable[[Space], Any] | None = None

    IN_FILES: ClassVar[Mapping[str, Any]] = {"focus": None}

    def __post_init__(self) -> None:
        require_number("spread", self.spread, least=0)
        good = self.focus is None or callable(self.focus)
        require("focus", self.focus, good, "a class or function, or None")


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """The risk-seeking update of the paper.

    Args:
        learning_rate: of Adam; 0 for a network that never learns.
        entropy_coefficient: lambda_H, weight of the entropy bonus.
        risk_factor: epsilon, the share of the batch that teaches; 1 is the plain policy gradient.
        baseline_coefficient: weight of the past in the running average of the quantile.
        normalise_advantages: divide advantages by their running root mean square.
        max_gradient_norm: longer gradients are shortened to it; 0 for no limit. With normalised advantages
            ordinary ones are about 1, so that only freaks are touched, which would stall Adam for a long time.
    """

    learning_rate: float = 0.001
    entropy_coefficient: float = 0.01
    risk_factor: float = 0.2
    baseline_coefficient: float = 0.5
    normalise_advantages: bool = True
    max_gradient_norm: float = 10.0

    def __post_init__(self) -> None:
        require_number("learning_rate", self.learning_rate, least=0)
        require_number("entropy_coefficient", self.entropy_coefficient, least=0)
        require_number("risk_factor", self.risk_factor, above=0, most=1)
        require_number("baseline_coefficient", self.baseline_coefficient, least=0, most=0.999)
        require_number("max_gradient_norm", self.max_gradient_norm, least=0)


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """The best distinct designs seen, to be varied and refined.

    Args:
        size: how many.
        niche: how many of them may have the same structure; 0 for any number. Without a limit variants of one
            design fill the archive, and other structures are no longer tried.
        niche_length: designs have the same structure if they agree in so many tokens from the start; 0 for all
            tokens. Few tokens keep designs apart that differ from the root on.
        recheck: share of a batch that evaluates good designs again, for noisy objectives. A design then joins the
            archive with its second reward, and the rewards of those in it are averaged.
    """

    size: int = 50
    niche: int = 0
    niche_length: int = 0
    recheck: float = 0.0

    def __post_init__(self) -> None:
        settle_integers(self, {"size": 1, "niche": 0, "niche_length": 0})
        require_number("recheck", self.recheck, least=0, most=0.5)


@dataclass(frozen=True, slots=True)
class VariationSettings:
    """Variations of archived designs: values moved, parts drawn anew, exchanged, inserted or taken out.

    Args:
        share: of a batch, unless shares follow what each proposer earns.
        single: share of the moves of values that move one value only, half of them to anywhere within its range.
            That gets on where rewards have steps, which hide how far a value is off, and where a move of several
            values spoils one that was right.
    """

    share: float = 0.35
    single: float = 0.0

    def __post_init__(self) -> None:
        require_number("share", self.share, above=0, most=0.9)
        require_number("single", self.single, least=0, most=1)


@dataclass(frozen=True, slots=True)
class RefinementSettings:
    """Values of the best skeletons of the archive, refined by CMA-ES.

    Args:
        share: of a batch, unless shares follow what each proposer earns.
        model: whether a model of the rewards of each skeleton chooses among its steps.
    """

    share: float = 0.3
    model: bool = True

    def __post_init__(self) -> None:
        require_number("share", self.share, above=0, most=0.9)


@dataclass(frozen=True, slots=True)
class TaskRefinementSettings:
    """Refinement by the task, if it can (see `Task`): of the best designs of a batch, one for each skeleton. The
    method learns from them in place of those they come from.

    Args:
        share: of a batch.
        calls: objective calls allowed to each of them, beside those of the batch.
    """

    share: float = 0.5
    calls: int = 10

    def __post_init__(self) -> None:
        require_number("share", self.share, above=0, most=1)
        settle_integers(self, {"calls": 1})


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """Many designs are proposed for each place in a batch, and a Gaussian process chooses.

    Args:
        candidates: for each place.
        unscreened: share of the places that go to any of the candidates.
        first, last: objective calls from which on and up to which it works.
    """

    candidates: int = 10
    unscreened: float = 0.2
    first: int = 40
    last: int = 1000

    def __post_init__(self) -> None:
        settle_integers(self, {"candidates": 2, "first": 2, "last": 1})
        require_number("unscreened", self.unscreened, least=0, most=1)


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """When to begin anew with a fresh network, by turns from nothing and from the best designs so far.

    Args:
        batches: without a better design since the last start.
        patience: a start that has made many calls may also wait so many times as long as it took to get there.
        least_gain: what counts as better: so much of what the start has gained since its first batch.
    """

    batches: int = 20
    patience: float = 1.0
    least_gain: float = 0.001

    def __post_init__(self) -> None:
        settle_integers(self, {"batches": 1})
        require_number("patience", self.patience, least=0)
        require_number("least_gain", self.least_gain, least=0)
