"""How much of the paper's protocol is run: smoke (minutes), small (hours) and full (all of it)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from discodso.baselines.bayesian import BOSettings, UnruledBOSettings
from discodso.baselines.genetic import GPSettings
from discodso.baselines.literature import EvolutionaryTreesSettings, SoftTreesSettings, published
from discodso.baselines.methods import paper_methods
from discodso.disco.disco import DisCoSettings
from discodso.disco.method import MethodSettings
from discodso.disco.presets import preset
from discodso.disco.settings import LearnerSettings, NetworkSettings
from discodso.reproduce.paper import DISCO, UNRULED
from discodso.tasks.policies.policy_kind import default_settings
from discodso.tasks.regression.problems import problems

DEFAULT = f"{DISCO}, default"


@dataclass(frozen=True)
class Scale:
    """Sizes of all experiments.

    Attributes:
        bits, bit_calls, bit_seeds: of the bitstring task.
        tree_calls, episodes: by environment; `episodes` is N of one call.
        tree_seeds, test_seeds: runs, and the seeds that a found tree is tested on.
        problems, problem_calls, problem_seeds: of the regression.
        network_seeds: of the regression with other networks.
        batch: designs, or skeletons, for one update.
        population: of genetic programming; 1000 in the paper.
        inner_calls: of decoupled methods, for one skeleton.
        bo_seconds: wall-clock budget of Bayesian optimisation.
    """

    name: str
    bits: int
    bit_calls: int
    bit_seeds: int
    tree_calls: Mapping[str, int]
    episodes: Mapping[str, int]
    tree_seeds: int
    test_seeds: int
    problems: tuple[str, ...]
    problem_calls: int
    problem_seeds: int
    network_seeds: int
    batch: int
    population: int
    inner_calls: int
    bo_seconds: float

    def bitstring_methods(self) -> dict[str, MethodSettings]:
        """The paper's settings for all; beside them DisCo with those that benchmarks/bitstring.py found."""
        default = DisCoSettings(
            batch_size=self.batch,
            network=NetworkSettings(learn_scale=True, inputs=("previous", "position")),
            learner=LearnerSettings(learning_rate=0.006, entropy_coefficient=0.1, risk_factor=0.1),
        )
        return self._methods(self._paper(), default)

    def _paper(self) -> DisCoSettings:
        return replace(preset("paper"), batch_size=self.batch)

    def tree_methods(self) -> dict[str, MethodSettings]:
        """The paper's settings for all; beside them DisCo with those of `search_policy`."""
        default = replace(default_settings(), batch_size=self.batch)
        found = self._methods(self._paper(), default)
        known = found["BO"]
        assert isinstance(known, BOSettings)
        unruled = UnruledBOSettings(**{own.name: getattr(known, own.name) for own in fields(known)})
        return {**found, UNRULED: unruled}

    def literature_methods(self, environment: str) -> dict[str, MethodSettings]:
        """The methods that the paper compares its trees with, as published for an environment."""
        found: dict[str, MethodSettings] = {**published(environment)}
        for name, method in found.items() if self.name == "smoke" else ():  # few episodes for each tree
            if isinstance(method, EvolutionaryTreesSettings):
                found[name] = replace(method, episodes=2, window=0)
            elif isinstance(method, SoftTreesSettings):
                found[name] = replace(method, check_episodes=2)
        return found

    def tree_runs(self, method: str) -> int:
        """Seeds of a method on trees: those by L-BFGS-B and BO, which get nowhere, have three at most."""
        return min(self.tree_seeds, 3) if method.startswith("BO") or "BFGS" in method else self.tree_seeds

    def regression_methods(self) -> dict[str, MethodSettings]:
        """The paper's settings for all; beside them DisCo with those of `search`."""
        return self._methods(self._paper(), preset("default", refines=True))

    def architectures(self) -> dict[str, MethodSettings]:
        """DisCo with each network of the paper's last table."""
        paper = NetworkSettings(coordinates="value")
        return {
            f"{DISCO}-{'GRU' if cell == 'gru' else 'LSTM'}{units}": replace(
                self._paper(), network=replace(paper, cell=cell, units=units)
            )
            for cell in ("gru", "lstm")
            for units in (16, 32, 64)
        }

    def _methods(self, disco: DisCoSettings, default: DisCoSettings) -> dict[str, MethodSettings]:
        found = paper_methods(disco, GPSettings(population=self.population), inner_calls=self.inner_calls)
        if self.name == "smoke":
            found["BO"] = BOSettings(initial=5, candidates=50, fit_steps=5)
        return {DISCO: found[DISCO], DEFAULT: default, **found}


def _each(most: int, lander: int) -> dict[str, int]:
    """For the compiled environments, and for LunarLander, which is not."""
    compiled = dict.fromkeys(("CartPole-v1", "MountainCar-v0", "Acrobot-v1"), most)
    return {**compiled, "LunarLander-v3": lander}


def _every(step: int) -> tuple[str, ...]:
    """Every so many of the paper's problems, in the order of its table, from the first on."""
    return tuple(problem.name for problem in problems("all")[::step])


_NAMES = ("smoke", "small", "full")
_SIZES: dict[str, tuple[Any, Any, Any]] = {
    "bits": (5, 10, 10),
    "bit_calls": (600, 100_000, 100_000),
    "bit_seeds": (2, 3, 5),
    "tree_calls": (_each(150, 30), _each(20_000, 600), _each(100_000, 100_000)),
    "episodes": (_each(10, 3), _each(100, 20), _each(100, 100)),
    "tree_seeds": (2, 3, 10),
    "test_seeds": (20, 1000, 1000),
    "problems": (("Livermore2-Vars4-23", "Jin-1", "Constant-5"), _every(4), _every(1)),
    "problem_calls": (1000, 200_000, 1_000_000),
    "problem_seeds": (2, 3, 10),
    "network_seeds": (2, 1, 10),
    "batch": (15, 100, 100),
    "population": (20, 1000, 1000),
    "inner_calls": (30, 200, 200),
    "bo_seconds": (2.0, 30.0, 600.0),
}
SCALES = {
    name: Scale(name, **{key: sizes[place] for key, sizes in _SIZES.items()})
    for place, name in enumerate(_NAMES)
}
