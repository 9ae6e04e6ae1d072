"""Tree policies: learning curves, the table of found trees, gaps, drawn trees, times."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.files import write_atomically
from discodso.baselines.random_search import UniformStepper
from discodso.disco.sampling import sample
from discodso.reproduce.figures import curve, draw_curves
from discodso.reproduce.jobs import Job, Record, records_of, slug
from discodso.reproduce.paper import (
    DISCO,
    EFFICIENCY,
    ENVIRONMENTS,
    LITERATURE_TREE_GAPS,
    QUOTED_TREES,
    SECONDS,
    TREE_GAPS,
    TREE_NODES,
    TREE_REWARDS,
)
from discodso.reproduce.scales import Scale
from discodso.reproduce.tables import Entry, deviation, mean, write_rows, write_table
from discodso.run.evaluation import child_seeds
from discodso.run.task import Task
from discodso.tasks.policies.environments import as_environment, describe
from discodso.tasks.policies.episodes import returns_of
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.options import PolicyOptions
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import open_tree_task, validation_seeds

_TIMED = 20  # random trees whose evaluation is timed


def jobs(scale: Scale) -> list[Job]:
    """All methods on the four environments, seed by seed."""
    return [
        Job.of(
            "trees",
            environment,
            name,
            PolicyOptions(
                environment=environment,
                episodes=scale.episodes[environment],
                test_seeds=tuple(range(scale.test_seeds)),
            ),
            settings,
            seed,
            scale.tree_calls[environment],
            scale.bo_seconds if name == "BO" else None,
        )
        for seed in range(scale.tree_seeds)
        for environment in ENVIRONMENTS
        for name, settings in scale.tree_methods().items()
    ]


def curves(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Best reward against episodes, mean and standard deviation."""
    panels, rows = {}, list[tuple[object, ...]]()
    for environment in ENVIRONMENTS:
        lines = {}
        for name in scale.tree_methods():
            line = curve(records_of(records, environment, name), "episodes", "deviation")
            lines[name, "-"] = line
            points = zip(line.x, line.mean, line.spread, strict=True)
            rows += [(environment, name, line.runs, *point) for point in points]
        panels[environment] = lines
    header = ("environment", "method", "runs", "episodes", "mean best", "standard deviation")
    write_rows(out / "curves", header, rows)
    draw_curves(out / "curves", panels, "episodes", "best reward")
    entries = [
        Entry(name, environment, mean(best), deviation(best))
        for name in scale.tree_methods()
        for environment in ENVIRONMENTS
        if (best := [r.best for r in records_of(records, environment, name) if r.best is not None])
    ]
    caption = (
        f"Best reward of the search, mean over {scale.tree_seeds} seeds ± standard deviation. {_protocol(scale)} "
        "The best of many noisy means is too high; `policies.md` has means over unseen seeds. The paper shows "
        "these as a figure without numbers."
    )
    write_table(out / "curves-best", "Tree policies: best reward at the end", caption, entries, digits=2)


def policies(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Mean reward over unseen seeds and the number of nodes of the best tree of each method."""
    rewards, nodes = [], []
    for name in (*scale.tree_methods(), *QUOTED_TREES):
        quoted = name in QUOTED_TREES
        for environment in ENVIRONMENTS:
            paper = TREE_REWARDS.get(name, {}).get(environment)
            size = TREE_NODES.get(name, {}).get(environment)
            found = None if quoted else _tested(scale, records, environment, name, out)
            ours = None if found is None else float(found[1].mean())
            spread = None if found is None else _error(found[1])
            rewards.append(Entry(name, environment, ours, spread, paper, quoted))
            nodes.append(
                Entry(name, environment, None if found is None else len(found[0]), None, size, quoted)
            )
    caption = (
        f"The best tree of {scale.tree_seeds} runs, chosen on fresh seeds, mean over {scale.test_seeds} unseen "
        f"seeds ± standard error. {_protocol(scale)} LunarLander is v3 here, v2 in the paper."
    )
    write_table(out / "policies", "Tree policies: mean reward", caption, rewards, digits=2)
    write_table(out / "policies-nodes", "Tree policies: nodes", "Of the same trees, pruned.", nodes, digits=0)


def gaps(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """The best reward of DisCo less that of the others, and less those of the literature."""
    entries, literature = [], []
    for environment in ENVIRONMENTS:
        disco = _highest(records_of(records, environment, DISCO))
        for name in scale.tree_methods():
            other = _highest(records_of(records, environment, name))
            if name != DISCO:
                ours = None if disco is None or other is None else disco - other
                entries.append(Entry(name, environment, ours, None, TREE_GAPS.get(name, {}).get(environment)))
        mine = _tested(scale, records, environment, DISCO, out)
        for name in (*QUOTED_TREES, "BO"):
            theirs: float | None = TREE_REWARDS[name][environment]
            if name == "BO":
                tested = _tested(scale, records, environment, name, out)
                theirs = None if tested is None else float(tested[1].mean())
            gap = None if mine is None or theirs is None else float(mine[1].mean()) - theirs
            literature.append(Entry(name, environment, gap, None, LITERATURE_TREE_GAPS[name][environment]))
    caption = f"Best reward of the search over {scale.tree_seeds} seeds. {_protocol(scale)}"
    write_table(out / "policy-gaps", "Tree policies: objective gaps", caption, entries, digits=2)
    caption = (
        f"Mean reward of our {DISCO} tree over {scale.test_seeds} unseen seeds, less that of the method: BO as "
        "run here, the others as the paper quotes them."
    )
    name = "Tree policies: objective gaps to the literature"
    write_table(out / "policy-gaps-literature", name, caption, literature, digits=2)


def drawn(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """The best tree of DisCo for each environment, as a picture and as JSON."""
    rows = []
    for environment in ENVIRONMENTS:
        found = _tested(scale, records, environment, DISCO, out)
        if found is None:
            continue
        policy, returns = found
        title = f"{environment}: {returns.mean():.2f} ± {_error(returns):.2f}, {len(policy)} nodes"
        shares = policy.node_shares(environment, range(min(scale.test_seeds, 100)))
        policy.draw(out / f"tree-{slug(environment)}.png", shares=shares, title=title)
        paper = TREE_REWARDS[DISCO][environment]
        rows.append(Entry(environment, "mean reward", float(returns.mean()), _error(returns), paper))
        rows.append(Entry(environment, "nodes", len(policy), None, TREE_NODES[DISCO][environment]))
    caption = "Pictures: tree-ENVIRONMENT.png. " + _protocol(scale)
    write_table(out / "trees", f"The drawn trees of {DISCO}", caption, rows, digits=2)


def seconds(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Time for one objective call, over random trees."""
    entries = []
    for environment in ENVIRONMENTS:
        episodes = scale.episodes[environment]
        with open_tree_task(environment, episodes) as task:
            designs = sample(
                task.space, UniformStepper(task.space), _TIMED + 1, np.random.default_rng(0)
            ).designs
            seeds = child_seeds(np.random.SeedSequence(0), 0, _TIMED + 1)
            assert task.batch_objective is not None
            task.batch_objective(designs.select(slice(0, 1)), seeds[:1])  # compiles
            started = time.perf_counter()
            task.batch_objective(designs.select(slice(1, None)), seeds[1:])
            took = (time.perf_counter() - started) / _TIMED * (100 / episodes)
        entries.append(Entry(environment, "seconds", took, None, SECONDS[environment]))
    caption = (
        f"Wall-clock seconds for 100 episodes, mean over {_TIMED} random trees on one core of this machine; "
        "the paper's are of other trees on another machine. CartPole, MountainCar and Acrobot are compiled here."
    )
    write_table(out / "seconds", "Time per objective call", caption, entries)


def efficiency(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Final reward over the time to reach it."""
    entries = []
    for name in scale.tree_methods():
        for environment in ENVIRONMENTS:
            found = [
                record.best / max(record.seconds_to_best, 1e-9)
                for record in records_of(records, environment, name)
                if record.best is not None
            ]
            paper = EFFICIENCY.get(name, {}).get(environment)
            entries.append(Entry(name, environment, mean(found), deviation(found), paper))
    caption = (
        f"Best reward divided by the seconds until it was reached, mean over {scale.tree_seeds} seeds ± standard "
        f"deviation. {_protocol(scale)} The paper does not give its unit of time, so only the order of the "
        "methods can be compared; and of negative rewards the quotient is the better the slower a method is."
    )
    write_table(out / "efficiency", "Computational efficiency", caption, entries, digits=2)


def _protocol(scale: Scale) -> str:
    parts = [f"{e}: {scale.tree_calls[e]} calls of {scale.episodes[e]} episodes" for e in ENVIRONMENTS]
    return "; ".join(parts) + f". BO had {scale.bo_seconds:g} s."


def _highest(records: Sequence[Record]) -> float | None:
    return max((record.best for record in records if record.best is not None), default=None)


def _error(returns: Floats) -> float:
    return float(returns.std(ddof=1) / math.sqrt(len(returns)))


def _tested(
    scale: Scale, records: Sequence[Record], environment: str, method: str, out: Path
) -> tuple[TreePolicy, Floats] | None:
    """The best tree of a method's runs, chosen on fresh seeds, and its returns for the test seeds.

    Kept in a file, since episodes may take long.
    """
    own = [r for r in records_of(records, environment, method) if r.design is not None]
    if not own:
        return None
    kept = out / "runs" / "trees" / slug(environment) / slug(method) / "tested.json"
    designs = [r.design.to_dict() for r in own if r.design is not None]
    if kept.is_file():
        found = json.loads(kept.read_text())
        if found["designs"] == designs and len(found["returns"]) == scale.test_seeds:
            i = describe(as_environment(environment))
            tree = TreePolicy.from_dict(found["policy"])
            return tree.with_names(i.environment, i.feature_names, i.action_names), np.array(found["returns"])
    trees = []
    for record in own:
        with open_tree_task(environment, 2, record.job.seed) as task:
            trees.append(_policy(task, record).pruned())
    fresh = list(validation_seeds(0, scale.test_seeds))
    chosen = trees[0]
    if len(set(trees)) > 1:
        chosen = max(trees, key=lambda tree: float(returns_of(tree, environment, fresh).mean()))
    returns = returns_of(chosen, environment, range(scale.test_seeds))
    result = {"designs": designs, "policy": chosen.to_dict(), "returns": returns.tolist()}
    write_atomically(kept, json.dumps(result) + "\n")
    return chosen, returns


def _policy(task: Task, record: Record) -> TreePolicy:
    assert isinstance(task.batch_objective, TreeObjective)
    assert record.design is not None
    return task.batch_objective.policy(record.design)
