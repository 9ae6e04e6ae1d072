"""DisCo's settings by name: the paper's, and the ones that search uses if none are given."""

from __future__ import annotations

from typing import Literal

from discodso.base.checks import require_one_of
from discodso.disco.disco import DisCoSettings, default_settings

Preset = Literal["default", "paper"]
PRESETS: tuple[Preset, ...] = ("default", "paper")


def preset(
    name: Preset = "default", *, noisy: bool = False, refines: bool = False, budget: int | None = None
) -> DisCoSettings:
    """Settings by name.

    Args:
        name: "paper" has the hyperparameters of the paper and nothing else. "default" keeps an archive of the best
            designs, varies them and refines their values, screens proposals while calls are few, shares the calls
            by what each proposer earns, and begins anew when it is stuck; benchmarks/results/learning.md and
            defaults.md have what each part is worth.
        noisy, refines, budget: of the task and the run, for "default"; see `default_settings`.
    """
    require_one_of("preset", name, PRESETS)
    if name == "paper":
        return DisCoSettings()
    return default_settings(noisy=noisy, refines=refines, budget=budget)
