"""DisCo's settings by name: the paper's, and the ones that search uses if none are given."""

from __future__ import annotations

from typing import Literal

from discodso.base.checks import require_integer, require_one_of
from discodso.disco.disco import DisCoSettings
from discodso.disco.network import PolicySettings

Preset = Literal["default", "paper"]
PRESETS: tuple[Preset, ...] = ("default", "paper")


def preset(
    name: Preset = "default", *, noisy: bool = False, refines: bool = False, budget: int | None = None
) -> DisCoSettings:
    """Settings by name.

    Args:
        name: "paper" has the hyperparameters of the paper and nothing else. "default" keeps an archive of the best
            designs, varies them and refines their values, learns from what comes of it, shares the calls between
            these by what each earns, and begins anew when it is stuck; benchmarks/results/defaults.md has what
            each part is worth.
        noisy: whether rewards are noisy; good designs of "default" are then evaluated again before they count, and
            the archive is imitated and no value moved alone; docs/defaults.md has how far that is measured.
        refines: whether the task has `refine`, which serves "default" better than refining from rewards alone.
        budget: objective calls; batches of "default" are smaller for small ones, so that it learns often enough.
    """
    require_one_of("preset", name, PRESETS)
    if budget is not None:
        require_integer("budget", budget, 1)
    if name == "paper":
        return DisCoSettings()
    if refines:
        return DisCoSettings(
            batch_size=batch_for(budget, 500, batches=100),
            learning_rate=0.003,
            queue_size=100,
            queue_niche=1,
            queue_sample=20,
            variation=0.7,
            task_refinement=0.5,
        )
    return DisCoSettings(
        batch_size=batch_for(budget),
        learning_rate=0.005,
        entropy_coefficient=0.05,
        queue_size=20,
        queue_weight=1.0 if noisy else 0.0,
        queue_niche=2,
        queue_recheck=0.2 if noisy else 0.0,
        variation=0.35,
        variation_single=0.0 if noisy else 0.5,
        refinement=0.3,
        allocation=True,
        restart_batches=20,
        policy=PolicySettings(learn_scale=True, min_scale=0.01, inputs=("neighbours", "position")),
    )


def batch_for(budget: int | None, most: int = 100, batches: int = 200) -> int:
    """Designs for one update: so many that a budget has so many updates, 20 at least."""
    return most if budget is None else max(20, min(most, budget // batches))
