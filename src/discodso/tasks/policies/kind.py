"""Tree policies as a kind of task: from an environment to a tree that people can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.checks import require
from discodso.base.errors import DeclarationError, DiscodsoError, SettingsError
from discodso.base.options import require_nothing_left, taken, with_options
from discodso.baselines.random_search import UniformStepper
from discodso.disco.disco import DisCoSettings, batch_for
from discodso.disco.method import MethodSettings
from discodso.disco.network import NetworkSettings
from discodso.disco.presets import Preset
from discodso.disco.sampling import sample
from discodso.disco.scripts import unchanged
from discodso.disco.settings import ArchiveSettings, LearnerSettings, VariationSettings
from discodso.run.folder import SETTINGS, designs_of, read_settings
from discodso.run.kinds import Kind, Outcome, Prepared, Shown
from discodso.run.plan import Plan
from discodso.run.result import Result
from discodso.run.settings import RunSettings
from discodso.run.start import start
from discodso.space.design import Design
from discodso.space.space import Space
from discodso.tasks.policies.environments import Interface, as_environment, describe
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.options import BUDGET, PolicyOptions
from discodso.tasks.policies.policy_choice import PolicySearch, choose_and_test
from discodso.tasks.policies.policy_files import SUMMARY, read_policy, write
from discodso.tasks.policies.racing import Racing
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import (
    DECISION,
    search_seeds,
    tree_space,
    tree_task,
)

TEST_SEEDS = range(1000)
# Over common episodes means differ by less than their errors would allow, and the best of the run draw a line.
_COMMON_RACES = Racing(margin=0.3, places=10, slack=0.0)
TYPICAL_NODES = 13  # the default prefers trees of about this size, else most runs end with three nodes


def paper_settings() -> DisCoSettings:
    """The paper's settings; thresholds begin around the middle of their ranges, which the paper leaves open."""
    return DisCoSettings(network=NetworkSettings(shift=0.5))


def default_settings(common_episodes: bool = False, budget: int | None = None) -> DisCoSettings:
    """What measured best on tree tasks; docs/experiments/policies.md has the figures.

    Thresholds begin near the middle of their range and are drawn within a tenth of it; the means are emitted in
    that unit, because otherwise their gradients drown those of the tokens. A learned scale closes in too soon, on
    trees that are easy to find. The best 50 trees are kept, no more than ten with the same first three nodes.
    Three designs of five are variations of them; where episodes are fresh, one of five
    is one of them, and budgets below 20,000 have smaller batches, so that there are 200 of them.
    """
    return DisCoSettings(
        batch_size=batch_for(None if common_episodes else budget),
        network=NetworkSettings(scale=0.1, shift=0.5, mean_scale=0.1),
        learner=LearnerSettings(learning_rate=0.005, risk_factor=0.1, entropy_coefficient=0.1),
        archive=ArchiveSettings(size=50, niche=10, niche_length=3, recheck=0.0 if common_episodes else 0.2),
        variation=VariationSettings(share=0.6),
    )


@with_options(Plan, PolicyOptions)
def search_policy(
    environment: Any,
    *,
    budget: int = BUDGET,
    preset: Preset = "default",
    method: MethodSettings | None = None,
    start_from: Sequence[str | Path] = (),
    callback: Any = None,
    out: str | Path | None = None,
    **options: Any,
) -> PolicySearch:
    """Search for a decision tree that acts well in a Gymnasium environment.

    Args:
        environment: id, such as "CartPole-v1".
        budget: objective calls, each the mean return of a tree over fresh episodes.
        preset: "default" for what measured best, "paper" for the paper's settings and protocol.
        method: settings of the method in place of the preset's.
        start_from: folders of earlier runs of this environment; their best trees are evaluated first, and learned
            from. A few short searches with few episodes find where to look, one with many then looks closely.
        callback: watches the search; see `search`.
        out: folder for the run, which must be new or empty; at the end it has the policy and its picture as well.
            `resume` goes on with it.
        {options}

    Ctrl-C ends the search; what was found until then is still chosen from and tested.
    """
    given = as_environment(environment, options.pop("arguments", None))
    plan = Plan(budget, **{"top": KIND.top, **taken(Plan, options)})
    own = taken(PolicyOptions, options)
    require_nothing_left("search_policy", options, Plan, PolicyOptions)
    if own.get("test_seeds") is not None:
        tests = tuple(int(test) for test in own["test_seeds"])
        own["test_seeds"] = None if tests == tuple(TEST_SEEDS) else tests
    own["ranges"] = {str(name): tuple(ends) for name, ends in (own.get("ranges") or {}).items()}
    task = PolicyOptions(environment=given.id, arguments=dict(given.arguments), **own)
    require("start_from", start_from, not isinstance(start_from, (str, Path)), "a list of folders")
    first = earlier_designs(start_from, task, preset, plan.seed)
    settings = RunSettings(task, plan, method, preset, initial_designs=first)
    found: PolicySearch = start(settings, out=out, callback=callback).found
    return found


def earlier_designs(
    folders: Sequence[str | Path], options: PolicyOptions, preset: Preset, seed: int
) -> tuple[Design, ...]:
    """The best trees of earlier runs, each once; thresholds outside the ranges of this run move to their ends."""
    known: dict[Design, None] = {}
    for folder in folders:
        known |= dict.fromkeys(designs_of(folder))
        task = read_settings(Path(folder) / SETTINGS).get("task", {})
        if task.get("environment") != options.environment:
            theirs = task.get("environment", "another task")
            raise DeclarationError(f"start_from: {folder} is a run of {theirs}, not of {options.environment}")
    if not known:
        return ()
    _, space = _space(options, preset, seed)
    scripts = unchanged(space, space.encode(list(known)))
    fitted = sample(space, UniformStepper(space), len(known), np.random.default_rng(seed), scripts=scripts)
    return tuple(dict.fromkeys(fitted.designs))


def _prepare(settings: Any, given: Any, stack: ExitStack) -> Prepared:
    options, plan = settings.task, settings.plan
    if plan.confirm_calls:
        raise SettingsError(
            "run.confirm_calls is not for a policy, whose winner is chosen on fresh episodes anyway"
        )
    plan = replace(plan, confirm_calls=0)
    for name, value in options.arguments.items():
        if value is None or (isinstance(value, (list, tuple)) and None in value):
            raise DeclarationError(
                f"arguments: {name} is or has None, which the settings of a run cannot hold; leave it out"
            )
    paper = settings.preset == "paper"
    method = paper_settings() if paper else default_settings(options.common_episodes, plan.budget)
    race = _racing(options, settings.method or method, paper)
    interface, space = _space(options, settings.preset, plan.seed)
    tests = tuple(TEST_SEEDS if options.test_seeds is None else options.test_seeds)
    runner = stack.enter_context(
        open_runner(interface.environment, options.workers, search_seeds(plan.seed), interface.max_steps)
    )
    task = tree_task(
        interface, runner, space, options.episodes, race, plan.seed, common=options.common_episodes
    )
    objective = task.batch_objective
    assert isinstance(objective, TreeObjective)

    def finish(result: Result, folder: Path | None) -> PolicySearch:
        trimmed = not paper if options.trim is None else options.trim
        found = choose_and_test(objective, result, tests, plan.seed, trimmed)
        if folder is not None:
            write(found, folder)
        return found

    return Prepared(task, plan, method, finish, lambda: _introduction(interface))


def _space(options: PolicyOptions, preset: Preset, seed: int) -> tuple[Interface, Space]:
    """What trees see and do, and which there are."""
    given = as_environment(options.environment, options.arguments)
    interface = describe(given, options.ranges, seed, options.probe_ranges)
    default = preset == "default"
    typical = (TYPICAL_NODES if default else 0) if options.typical_nodes is None else options.typical_nodes
    preferred = min(typical, options.max_nodes) or None
    return interface, tree_space(interface, options.max_nodes, options.resolution, default, preferred)


def _racing(options: PolicyOptions, method: MethodSettings, paper: bool) -> Racing | None:
    if paper if options.racing is None else not options.racing:
        return None
    share = method.learner.risk_factor if isinstance(method, DisCoSettings) else Racing().share
    return replace(_COMMON_RACES if options.common_episodes else Racing(), share=share)


# ------------------------------------------------------------------------------------------ to look at


def _introduction(interface: Interface) -> list[Any]:
    from rich.table import Table

    table = Table("feature", "thresholds from", "to", "because", title=str(interface.environment))
    for name, limits, source in zip(
        interface.feature_names, interface.ranges, interface.sources, strict=True
    ):
        low, high = ("-", "-") if limits is None else (f"{limits[0]:g}", f"{limits[1]:g}")
        table.add_row(name, low, high, source if limits is not None else "never changes, left out")
    return [table, "actions: " + ", ".join(word for _, word in interface.action_names)]


def _lines(outcome: Outcome, width: int) -> list[Any]:
    found: PolicySearch = outcome.found
    best = found.candidates[0]
    cut = len(best.policy) - len(found.policy)
    trimmed = f"; {cut} of its {len(best.policy)} nodes earned nothing and were cut out" if cut else ""
    failed = f", {found.search.failure_count} failed" if found.search.failure_count else ""
    return [
        str(found.policy.export("text")),
        f"test mean {found.test_mean:.2f}, standard error {found.test_error:.2f}, over {len(found.test_seeds)} "
        f"seeds that the search never saw; {len(found.policy)} nodes",
        f"chosen from {len(found.candidates)} finalists by {best.mean:.2f} on {best.episodes} fresh episodes each "
        f"(in the search it had {best.search_reward:.2f}){trimmed}",
        f"{found.calls} objective calls{failed}, {found.episodes} episodes and {found.validation_episodes} "
        f"for the choice, {found.search.seconds:.1f} s: {found.search.sentence}",
    ]


def _data(outcome: Outcome) -> dict[str, Any]:
    found: PolicySearch = outcome.found
    return {**found.summary(), "tree": found.policy.to_dict()}


_PICTURES = 20  # trees drawn for one table: all of a hundred would be megabytes


def _shown(ending: Any, designs: Sequence[Design], history: Sequence[Any]) -> list[Shown]:
    """Trees as text and pictures; features and actions in the order of the library where the history tells it."""
    known = next((row.tokens for row in history if row.tokens), None) or {}
    names = dict.fromkeys([*known, *(name for design in designs for name in design.tokens)])
    features = tuple(name.removesuffix(DECISION) for name in names if name.endswith(DECISION))
    actions = tuple(name for name in names if not name.endswith(DECISION))
    return [_tree(design, features, actions, number < _PICTURES) for number, design in enumerate(designs)]


@lru_cache(maxsize=512)
def _tree(design: Design, features: tuple[str, ...], actions: tuple[str, ...], picture: bool) -> Shown:
    waiting: list[Any] = []
    try:
        for name, value in reversed(list(design)):
            if value is None:
                waiting.append({"action": actions.index(name)})
            elif len(waiting) >= 2:
                left, right = waiting.pop(), waiting.pop()
                feature = features.index(name.removesuffix(DECISION))
                waiting.append({"feature": feature, "threshold": value, "left": left, "right": right})
        policy = TreePolicy.from_dict(waiting[0] if len(waiting) == 1 else None)
    except (DiscodsoError, ValueError):  # no tree of this environment
        return Shown(str(design))
    named = policy.with_names(None, features, tuple(enumerate(actions)))
    return Shown(str(named.export("text")), svg=named._repr_svg_() if picture else None)


def _page(ending: Any) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    tree, summary = (ending or {}).get("policy"), (ending or {}).get("summary") or {}
    if tree is not None:
        try:
            policy = TreePolicy.from_dict(dict(tree))
        except DiscodsoError:
            return {}
        svg = ending.get("picture") or policy._repr_svg_()
        found["best"] = {"kind": "policy", "text": str(policy.export("text")), "math": None, "svg": svg}
    mean, error = summary.get("test_mean"), summary.get("test_error")
    if isinstance(mean, (int, float)) and isinstance(error, (int, float)):
        found["score"] = f"{mean:.2f} ± {error:.2f} on unseen seeds"
    return found


def _title(task: Mapping[str, Any], ending: Any) -> str:
    summary = (ending or {}).get("summary") or {}
    known = summary.get("environment")
    name = task.get("environment") or (known.get("id") if isinstance(known, Mapping) else None)
    return f"A tree policy for {name or 'an environment'}"


KIND = Kind(
    options=PolicyOptions,
    prepare=_prepare,
    title=_title,
    template="""# A decision tree that acts in a Gymnasium environment.

[task]
kind = "policy"
environment = "CartPole-v1"   # an id, or module:Id-v0
episodes = 100             # N, for one objective call: its reward is their mean return
# max_nodes = 31           # decisions and leaves of the largest tree
# typical_nodes = 7        # begin with trees of about this size, 0 for any; by default as the preset has it
# workers = 1              # processes, or threads where the environment is compiled
# racing = true            # cut poor trees after few episodes; by default as the preset has it
# common_episodes = true   # all trees meet the same episodes instead of fresh ones
# trim = true              # at the end, cut out decisions that earn nothing; by default as the preset has it
# resolution = 0.01        # closest distance of thresholds on one path, as a share of their range
# test_seeds = [0, 1, 2]   # for the final score; 0 to 999 by default
# probe_ranges = true      # thresholds where features lie in random episodes, instead of in declared bounds
# [task.arguments]         # of the environment
# [task.ranges]            # of thresholds, by feature
# angle = [-0.2, 0.2]
""",
    top=100,  # all of them go to the choice
    executors="it has workers of its own; see task.workers",
    lines=_lines,
    data=_data,
    read=read_policy,
    last=SUMMARY,
    shown=_shown,
    page=_page,
)
