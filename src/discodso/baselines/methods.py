"""The methods by name: the kinds of settings files, and the paper's names."""

from __future__ import annotations

from typing import Any

from discodso.baselines.bayesian import BOSettings, UnruledBOSettings
from discodso.baselines.decoupled import DecoupledSettings
from discodso.baselines.genetic import GPSettings, NSGA2Settings
from discodso.baselines.inner import INNER
from discodso.baselines.literature import (
    CascadingTreesSettings,
    DifferentiableTreesSettings,
    EvolutionaryTreesSettings,
)
from discodso.baselines.random_search import RandomSettings
from discodso.disco.disco import DisCoSettings
from discodso.disco.fronts import FrontSettings
from discodso.disco.method import MethodSettings

# The one place where methods are registered: the kind that a settings file names, and what it stands for.
METHODS: dict[str, MethodSettings] = {
    "disco": DisCoSettings(),
    "front": FrontSettings(),
    "random": RandomSettings(),
    "decoupled-rl": DecoupledSettings(DisCoSettings()),
    "decoupled-gp": DecoupledSettings(GPSettings()),
    "gp": GPSettings(),
    "nsga2": NSGA2Settings(),
    "bo": BOSettings(),
    "bo-unruled": UnruledBOSettings(),
    "evolutionary-trees": EvolutionaryTreesSettings(),
    "differentiable-trees": DifferentiableTreesSettings(),
    "cascading-trees": CascadingTreesSettings(),
}


def method_kind(settings: Any) -> str | None:
    """The kind that stands in a settings file, None for a method of one's own."""

    def types(of: Any) -> tuple[type[Any], type[Any]]:
        return type(of), type(getattr(of, "skeletons", None))

    return next((kind for kind, method in METHODS.items() if types(method) == types(settings)), None)


def paper_methods(
    disco: DisCoSettings,
    genetic: GPSettings | None = None,
    *,
    inner_calls: int = DecoupledSettings().inner_calls,
    reach: float = DecoupledSettings().reach,
) -> dict[str, MethodSettings]:
    """Every method of the paper's comparison by its name there, and the two lower bounds.

    Args:
        disco: of DisCo-DSO; the Decoupled-RL methods have the same network and training.
        genetic: of all that use genetic programming; the paper's table by default.
        inner_calls, reach: of all decoupled methods; see `DecoupledSettings`.
    """
    genetic = genetic or GPSettings()
    found: dict[str, MethodSettings] = {"DisCo-DSO": disco}
    sources: list[tuple[str, DisCoSettings | GPSettings]] = [("RL", disco), ("GP", genetic)]
    for family, skeletons in sources:
        for inner in INNER:
            name = f"Decoupled-{family}-{'BFGS' if inner == 'bfgs' else inner}"
            found[name] = DecoupledSettings(skeletons, inner, inner_calls=inner_calls, reach=reach)
    return {**found, "BO": BOSettings(reach=reach), "GP": genetic, "Random": RandomSettings(batch_size=100)}
