"""The space of decision trees for an environment (paper, "Decision tree policies for reinforcement learning")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from discodso.base.checks import require, require_integer
from discodso.base.errors import DeclarationError
from discodso.disco.presets import Preset
from discodso.run.task import Task
from discodso.space.bounds import DecisionTreeBounds
from discodso.space.constraints import DifferentLeaves, Prior, SoftLength, UniformArity
from discodso.space.tokens import Tree
from discodso.tasks.policies.environments import PROBE_STEPS, Interface, describe
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.limits import MaxDepth, MaxFeatures
from discodso.tasks.policies.making import Environment, as_environment
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.policy_options import EPISODES, MAX_NODES, RESOLUTION, PolicyOptions, Splits
from discodso.tasks.policies.racing import Racing
from discodso.tasks.policies.timed import Left, Runner, always
from discodso.tasks.policies.vocabulary import TreeSpace, Vocabulary

_TYPICAL_NODES = 13  # the default prefers trees of about this size, else most runs end with three nodes
SEARCH_SEEDS = 2**14  # initial states that a search draws its episodes from


def tree_space(
    interface: Interface,
    max_nodes: int = MAX_NODES,
    resolution: float = RESOLUTION,
    balanced: bool = True,
    typical_nodes: int | None = None,
    splits: Splits = "univariate",
    together: Sequence[str] = (),
    linear: bool = False,
    max_depth: int | None = None,
    max_features: int | None = None,
) -> TreeSpace:
    """Trees under the three constraints of the appendix; see `PolicyOptions`.

    With `balanced` decisions and leaves are equally likely at first, however many there are of each; otherwise an
    environment with more features than actions begins with trees of the largest size only. Trees of about
    `typical_nodes` are preferred, softly.
    """
    priors: list[Prior] = [UniformArity()] if balanced else []
    if typical_nodes is not None:
        priors.append(SoftLength(typical_nodes, typical_nodes / 3))
    names = interface.feature_names
    if strange := [name for name in together if name not in names]:
        raise DeclarationError(f"split_features: no feature {strange[0]!r}; there are {', '.join(names)}")
    vocabulary = Vocabulary.of(
        names,
        interface.ranges,
        interface.action_names,
        interface.numbers,
        interface.whole,
        splits,
        [names.index(name) for name in together] or None,
        linear,
        interface.hints if any(interface.hints) else (),
    )
    for token, own in zip(vocabulary.tokens, vocabulary.looks, strict=True):
        if max_features is not None and len(own) > max_features:
            raise DeclarationError(
                f"max_features: {token.name!r} looks at {len(own)} features, more than {max_features}; name those "
                "that sums are made of by split_features"
            )
    choices = interface.numbers is None
    close = DecisionTreeBounds(resolution)
    if any(interface.hints):
        # Where ranges move, distances are shares of where the search begins.
        widths = {
            vocabulary.tokens[k].name: resolution * (ends[1] - ends[0])
            for k, n in vocabulary.thresholds()
            if (ends := interface.hints[n] or interface.ranges[n]) is not None
        }
        close = DecisionTreeBounds(resolution, False, widths)
    return TreeSpace(
        vocabulary.tokens,
        Tree(min_length=3 if choices else 1, max_length=max_nodes),
        constraints=[
            *([DifferentLeaves()] if choices else []),
            *([MaxDepth(max_depth)] if max_depth else []),
            *([MaxFeatures(max_features, vocabulary.looks)] if max_features else []),
        ],
        priors=priors,
        bounds=close,
        vocabulary=vocabulary,
    )


def space_for(
    options: PolicyOptions,
    preset: Preset,
    seed: int,
    given: Environment | None = None,
    left: Left = always,
) -> tuple[Interface, TreeSpace]:
    """What trees see and do, and which there are, as the options of a task have it.

    The environment may be given, where options hold only its name. Where no seconds are `left` features are
    watched no longer, unless the options say how long.
    """
    given = given or as_environment(options.environment, options.arguments, options.wrappers)
    default = preset == "default"
    ranges = options.ranges, seed, options.probe_ranges, default and options.moving_ranges
    watched = (PROBE_STEPS, left) if options.probe_steps is None else (options.probe_steps, always)
    interface = describe(given, *ranges, options.feature_names, options.action_names, *watched)
    typical = (_TYPICAL_NODES if default else 0) if options.typical_nodes is None else options.typical_nodes
    preferred = min(typical, options.max_nodes) or None
    linear = options.leaves == "linear"
    if linear and (interface.numbers is None or interface.numbers.whole):
        raise DeclarationError(
            f"leaves: linear ones need actions that are real numbers, and those of {interface.environment} are "
            "not; leave it out"
        )
    sized = options.max_nodes, options.resolution, default, preferred
    limits = options.max_depth, options.max_features
    return interface, tree_space(interface, *sized, options.splits, options.split_features, linear, *limits)


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
    space: TreeSpace,
    episodes: int = EPISODES,
    racing: Racing | None = None,
    seed: int = 0,
    common: bool = False,
    left: Left = always,
    prices: Sequence[float] = (),
) -> Task:
    """Trees and their mean return over fresh episodes, or over the same ones for all (`common`).

    A batch ends early where no seconds are `left`. Trees pay `prices` for the features that they look at.
    """
    require_integer("episodes", episodes, 2)
    require("episodes", episodes, episodes <= SEARCH_SEEDS, f"at most {SEARCH_SEEDS}")
    return Task(
        space,
        batch_objective=TreeObjective(
            interface, space, runner, search_seeds(seed), episodes, racing, common, left, tuple(prices)
        ),
        stochastic=True,
        repeatable=common,
        name=str(interface.environment),
        cost_unit="episodes",
        # In a race the others decide how many episodes a tree gets.
        rows_independent=racing is None and not common,
    )


@contextmanager
def open_tree_task(environment: Any, episodes: int = EPISODES, seed: int = 0) -> Iterator[Task]:
    """The paper's task for an environment, for any method; what runs its episodes is closed on leaving."""
    interface = describe(as_environment(environment), None, seed)
    with open_runner(interface.environment, pool=search_seeds(seed)) as runner:
        yield tree_task(interface, runner, tree_space(interface, balanced=False), episodes, None, seed)
