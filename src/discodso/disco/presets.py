"""DisCo's settings by name: the paper's, and the ones that search uses if none are given."""

from __future__ import annotations

from typing import Literal

from discodso.base.checks import require_one_of
from discodso.disco.disco import DisCoSettings, default_settings
from discodso.disco.settings import LearnerSettings, NetworkSettings

Preset = Literal["default", "paper", "paper-scaled"]
PRESETS: tuple[Preset, ...] = ("default", "paper", "paper-scaled")


def preset(
    name: Preset = "default", *, noisy: bool = False, refines: bool = False, budget: int | None = None
) -> DisCoSettings:
    """Settings by name.

    Args:
        name: "paper" is the method of the paper to the letter: values in their own units, rewards as they are.
            "paper-scaled" has the same hyperparameters, but values as shares of finite ranges, advantages divided
            by a running scale, and a limit on gradients. "default" keeps an archive of the best designs, varies
            them and refines their values, screens proposals while calls are few, shares the calls by what each
            proposer earns, and begins anew when it is stuck; benchmarks/results/learning.md and defaults.md have
            what each part is worth.
        noisy, refines, budget: of the task and the run, for "default"; see `default_settings`.
    """
    require_one_of("preset", name, PRESETS)
    if name == "paper":
        learner = LearnerSettings(normalise_advantages=False, max_gradient_norm=0.0)
        return DisCoSettings(network=NetworkSettings(coordinates="value"), learner=learner)
    if name == "paper-scaled":
        return DisCoSettings()
    return default_settings(noisy=noisy, refines=refines, budget=budget)
