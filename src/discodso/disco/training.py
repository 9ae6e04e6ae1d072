"""The risk-seeking policy gradient (algorithm 1 and the estimator of the appendix), as pure functions.

    grad J_eps ~ 1/M sum_i A_i grad log p(tau_i | theta) 1(A_i >= 0),    A_i = R(tau_i) - R_eps

over the M designs of a batch whose reward reaches the (1 - epsilon) quantile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from discodso.base.arrays import Bools, Floats
from discodso.base.errors import TrainingError
from discodso.disco.network import Score

_LARGEST = 1e150  # rewards beyond it are told apart no more, and their squares stay finite


@dataclass(frozen=True, slots=True)
class Baseline:
    """Running averages over the iterations.

    Attributes:
        quantile: of the batch quantile, the estimate of R_epsilon; None before the first batch.
        spread: of the root mean square of the kept advantages.
    """

    quantile: float | None = None
    spread: float | None = None


@dataclass(frozen=True)
class Selection:
    """The designs that teach: which, and with what advantage.

    Attributes:
        kept: bool[B].
        advantages: float[M], never negative.
        quantile: of this batch.
        baseline: running averages, this batch included.
    """

    kept: Bools
    advantages: Floats
    quantile: float
    baseline: Baseline


def quantile(rewards: Floats, risk_factor: float) -> float:
    """The (1 - epsilon) quantile, always one of the rewards; non-finite (failed) ones count as the worst."""
    worst_last = np.where(np.isfinite(rewards), rewards, -np.inf)
    return float(np.quantile(worst_last, 1 - risk_factor, method="higher"))


def select(
    rewards: Floats, risk_factor: float, baseline: Baseline, coefficient: float, normalise: bool
) -> Selection:
    """Keep the best share of a batch and weigh it against the running baseline."""
    finite = np.isfinite(rewards)
    rewards = np.where(finite, np.clip(rewards, -_LARGEST, _LARGEST), rewards)
    threshold = quantile(rewards, risk_factor)
    if not np.isfinite(threshold):  # more failures than the share to drop: all that worked is kept
        threshold = float(rewards[finite].min())
    level = _average(baseline.quantile, threshold, coefficient)
    kept: Bools = finite & (rewards >= threshold)
    advantages = np.maximum(rewards[kept] - level, 0.0)
    spread = _average(baseline.spread, _root_mean_square(advantages), coefficient)
    if normalise and spread > 0:
        advantages = advantages / spread
    return Selection(kept, advantages, threshold, Baseline(level, spread))


def _average(old: float | None, new: float, coefficient: float) -> float:
    return new if old is None else coefficient * old + (1 - coefficient) * new


def _root_mean_square(x: Floats) -> float:
    largest = float(x.max())
    return largest * float(np.sqrt(np.mean((x / largest) ** 2))) if largest > 0 else 0.0


def policy_gradient_loss(score: Score, advantages: Floats, entropy_coefficient: float) -> Tensor:
    """Minus the estimator of J_epsilon, minus the entropy bonus; both are means over the kept designs."""
    weights = torch.from_numpy(advantages)
    return -(weights * score.log_prob).mean() - entropy_coefficient * score.entropy.mean()


def require_finite(loss: Tensor, score: Score, advantages: Floats) -> None:
    """Raise TrainingError, saying which part is to blame, if the loss is not finite."""
    if bool(torch.isfinite(loss)):
        return
    parts = {
        "the advantages": bool(np.isfinite(advantages).all()),
        "log_prob of the tokens": bool(torch.isfinite(score.token_log_prob).all()),
        "log_prob of the values": bool(torch.isfinite(score.log_prob - score.token_log_prob).all()),
        "the entropy": bool(torch.isfinite(score.entropy).all()),
    }
    blame = [name for name, finite in parts.items() if not finite] or ["their product"]
    raise TrainingError(
        f"the loss is {loss.item()}: non-finite {' and '.join(blame)}; "
        "try a smaller learning rate, or rewards on a smaller scale"
    )


def limit_gradients(module: torch.nn.Module, limit: float) -> None:
    """Scale gradients down to a norm of at most `limit`; 0 for no limit.

    Raises TrainingError naming the weights if a gradient is not finite.
    """
    square = 0.0
    for name, parameter in module.named_parameters():
        if parameter.grad is not None:
            part = float(parameter.grad.double().square().sum())
            if not np.isfinite(part):
                raise TrainingError(
                    f"the gradient of {name} is not finite; try a smaller learning rate, or rewards on a "
                    "smaller scale"
                )
            square += part
    norm = float(np.sqrt(square))
    if limit and norm > limit:
        for parameter in module.parameters():
            if parameter.grad is not None:
                parameter.grad *= limit / norm
