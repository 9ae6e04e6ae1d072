"""The space of decision trees for an environment (paper, "Decision tree policies for reinforcement learning")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discodso.base.checks import require, require_integer, require_number
from discodso.run.task import Task
from discodso.space.bounds import DecisionTreeBounds
from discodso.space.constraints import DifferentLeaves, Prior, SoftLength, UniformArity
from discodso.space.space import Space
from discodso.space.tokens import Token, Tree
from discodso.tasks.policies.environments import Interface, as_environment, describe
from discodso.tasks.policies.episodes import Runner, open_runner
from discodso.tasks.policies.objective import RememberingTreeObjective, TreeObjective
from discodso.tasks.policies.options import EPISODES, MAX_NODES, RESOLUTION
from discodso.tasks.policies.racing import Racing, Standings

DECISION = " <"  # ends the name of a decision's token
SEARCH_SEEDS = 2**14  # initial states that a search draws its episodes from


def tree_space(
    interface: Interface,
    max_nodes: int = MAX_NODES,
    resolution: float = RESOLUTION,
    balanced: bool = True,
    typical_nodes: int | None = None,
) -> Space:
    """Univariate trees under the three constraints of the appendix.

    Args:
        interface: features, ranges and actions.
        max_nodes: decisions and leaves together.
        resolution: h, as a share of each range.
        balanced: begin with decisions and leaves equally likely, however many there are of each; otherwise an
            environment with more features than actions begins with trees of the largest size only.
        typical_nodes: prefer trees of about this size, softly; None for no preference.
    """
    require_integer("max_nodes", max_nodes, 3)
    require_number("resolution", resolution, above=0, most=0.5)
    names = [name for name, limits in zip(interface.feature_names, interface.ranges, strict=True) if limits]
    ranges = [limits for limits in interface.ranges if limits]
    decisions = [
        Token(f"{name}{DECISION}", arity=2, range=limits) for name, limits in zip(names, ranges, strict=True)
    ]
    leaves = [Token(word) for _, word in interface.action_names]
    priors: list[Prior] = [UniformArity()] if balanced else []
    if typical_nodes is not None:
        require_integer("typical_nodes", typical_nodes, 3)
        priors.append(SoftLength(typical_nodes, typical_nodes / 3))
    return Space(
        [*decisions, *leaves],
        Tree(min_length=3, max_length=max_nodes),
        constraints=[DifferentLeaves()],
        priors=priors,
        bounds=DecisionTreeBounds(resolution),
    )


def search_seeds(seed: int) -> range:
    """The environment seeds that a search with this seed may use: none below 2^30, which are for tests."""
    return range(2**30 + (seed % 2**14) * SEARCH_SEEDS, 2**30 + (seed % 2**14 + 1) * SEARCH_SEEDS)


def validation_seeds(seed: int, count: int) -> range:
    """Seeds to choose the winner on; apart from those of any search, and from small ones, which are for tests."""
    first = 2**29 + (seed % 2**14) * 2**14
    return range(first, first + count)


def tree_task(
    interface: Interface,
    runner: Runner,
    space: Space,
    episodes: int = EPISODES,
    racing: Racing | None = None,
    seed: int = 0,
    common: bool = False,
) -> Task:
    """Trees and their mean return over fresh episodes, or over the same ones for all (`common`)."""
    require_integer("episodes", episodes, 2)
    require("episodes", episodes, episodes <= SEARCH_SEEDS, f"at most {SEARCH_SEEDS}")
    given = interface, space, runner, search_seeds(seed), episodes, racing, common
    places = 0 if racing is None else racing.places
    require("racing: places", places, common or not places, "0 unless all trees meet the same episodes")
    objective = (
        RememberingTreeObjective(*given, Standings(places, episodes)) if places else TreeObjective(*given)
    )
    return Task(
        space,
        batch_objective=objective,
        stochastic=True,
        repeatable=common,
        name=str(interface.environment),
        cost_unit="episodes",
        rows_independent=racing is None
        and not common,  # in a race the others decide how many episodes a tree gets
    )


@contextmanager
def open_tree_task(
    environment: Any,
    episodes: int = EPISODES,
    seed: int = 0,
    max_nodes: int = MAX_NODES,
    balanced: bool = False,
    workers: int = 1,
) -> Iterator[Task]:
    """The paper's task for an environment, for any method; what runs its episodes is closed on leaving."""
    interface = describe(as_environment(environment, None), None, seed)
    with open_runner(interface.environment, workers, search_seeds(seed), interface.max_steps) as runner:
        yield tree_task(
            interface, runner, tree_space(interface, max_nodes, balanced=balanced), episodes, None, seed
        )
