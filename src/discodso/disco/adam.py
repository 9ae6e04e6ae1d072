"""Adam, to the last bit as `torch.optim.Adam` on a CPU, whose import costs seconds at the start of every run."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import torch

from discodso.space.state import Arrays

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8  # decay of both averages, and what keeps the step finite


class Adam:
    """The optimiser of the policy, with torch's constants.

    Args:
        parameters: to move; those without a gradient stay.
        learning_rate: of every step.
    """

    def __init__(self, parameters: Iterable[torch.Tensor], learning_rate: float) -> None:
        self._parameters = list(parameters)
        self._rate = learning_rate
        self._moments: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by the index of the parameter
        self._steps: dict[int, int] = {}

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move all parameters along their gradients."""
        for index, parameter in enumerate(self._parameters):
            gradient = parameter.grad
            if gradient is None:
                continue
            if index not in self._moments:
                self._moments[index] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            first, second = self._moments[index]
            self._steps[index] = count = self._steps.get(index, 0) + 1
            first.lerp_(gradient, 1 - _FIRST)
            second.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
            spread = (second.sqrt() / math.sqrt(1 - _SECOND**count)).add_(_EPSILON)
            parameter.addcdiv_(first, spread, value=-self._rate / (1 - _FIRST**count))

    def to_arrays(self) -> Arrays:
        """For a checkpoint."""
        arrays: Arrays = {}
        for index, moments in self._moments.items():
            arrays[f"{index}/step"] = np.array(self._steps[index], np.float32)
            for name, tensor in zip(("exp_avg", "exp_avg_sq"), moments, strict=True):
                arrays[f"{index}/{name}"] = tensor.numpy().copy()
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Inverse of `to_arrays`; KeyError or ValueError for anything else."""
        moments, steps = {}, {}
        for index in sorted({int(key.split("/")[0]) for key in arrays}):
            pair = arrays[f"{index}/exp_avg"], arrays[f"{index}/exp_avg_sq"]
            count = arrays[f"{index}/step"]
            if not 0 <= index < len(self._parameters) or not (count.shape == () and 1 <= count < np.inf):
                raise ValueError("an optimiser of another network")
            if any(own.shape != self._parameters[index].shape for own in pair):
                raise ValueError("an optimiser of another network")
            first, second = (torch.from_numpy(own.astype(np.float32)) for own in pair)
            moments[index], steps[index] = (first, second), int(count)
        self._moments, self._steps = moments, steps
