"""Settings of the parts of DisCo: a frozen object for each; `DisCoSettings` in `disco` puts them together.

The defaults of the learner are the paper's, and where it is silent those of ARCHITECTURE.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from discodso.base.checks import require_number, settle_integers


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """The risk-seeking update of the paper.

    Args:
        learning_rate: of Adam; 0 for a network that never learns.
        entropy_coefficient: lambda_H, weight of the entropy bonus.
        risk_factor: epsilon, the share of the batch that teaches; 1 is the plain policy gradient.
        baseline_coefficient: weight of the past in the running average of the quantile.
        normalise_advantages: divide advantages by their running root mean square.
        max_gradient_norm: longer gradients are shortened to it. Ordinary ones are about 1, so that only freaks are
            touched, which would stall Adam for a long time.
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
        require_number("max_gradient_norm", self.max_gradient_norm, above=0)


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
    """

    share: float = 0.3

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
