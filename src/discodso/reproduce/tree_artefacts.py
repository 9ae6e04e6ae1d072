"""Tree policies: learning curves, the table of found trees, gaps, drawn trees, times."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.files import read_object, write_atomically
from discodso.base.statistics import standard_error
from discodso.baselines.literature import LITERATURE, Practising
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.reproduce import paper
from discodso.reproduce.jobs import Job, Record, best_rewards, jobs_of, records_of, slug
from discodso.reproduce.paper import DISCO, ENVIRONMENTS, UNRULED
from discodso.reproduce.paper_figures import curve, draw_curves, write_curves
from discodso.reproduce.scales import DEFAULT, Scale
from discodso.reproduce.tables import Entry, compared, deviation, error, gap, mean, write_table
from discodso.run.evaluation import child_seeds
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.episodes import returns_of
from discodso.tasks.policies.literature.methods import space_of
from discodso.tasks.policies.making import as_environment
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.policy_options import PolicyOptions
from discodso.tasks.policies.tree_policy import TreePolicy
from discodso.tasks.policies.tree_space import open_tree_task, validation_seeds

_TIMED = 20  # random trees whose evaluation is timed


def jobs(scale: Scale) -> list[Job]:
    """All methods on the four environments, in the order that tells most first: seed by seed, the cheap
    environments before the others, methods with L-BFGS-B last. LunarLander, and BO, come after all seeds."""
    tested = tuple(range(scale.test_seeds))
    cases = {}
    for name in ENVIRONMENTS:
        task = PolicyOptions(environment=name, episodes=scale.episodes[name], test_seeds=tested)
        cases[name] = (task, scale.tree_calls[name])
    made = jobs_of("trees", cases, scale.tree_methods(), scale.tree_seeds, scale.bo_seconds)
    for name, case in cases.items():
        made += jobs_of(
            "trees", {name: case}, scale.literature_methods(name), scale.tree_seeds, scale.bo_seconds
        )
    wanted = [job for job in made if job.seed < scale.tree_runs(job.method)]
    methods = (DISCO, DEFAULT, "Random", *(name for name in scale.tree_methods() if "BFGS" not in name))
    rank = {
        name: place
        for place, name in enumerate(dict.fromkeys((*methods, *LITERATURE, *scale.tree_methods())))
    }

    def place(job: Job) -> tuple[bool, bool, int, int, int]:
        late = job.case == "LunarLander-v3", job.method.startswith("BO")
        return *late, job.seed, ENVIRONMENTS.index(job.case), rank[job.method]

    return sorted(wanted, key=place)


def curves(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Best reward against episodes, mean and standard deviation, and the mean at the end."""
    methods = scale.tree_methods()
    lines = {
        (environment, name): curve(own, "episodes", "deviation")
        for environment in ENVIRONMENTS
        for name in methods
        if (own := records_of(records, environment, name))
    }
    write_curves(out / "curves", ("environment", "method"), lines, "episodes", "standard deviation")
    panels = {
        case: {(name, "-"): lines[case, name] for name in methods if (case, name) in lines}
        for case in ENVIRONMENTS
        if any(case == own for own, _ in lines)
    }
    draw_curves(out / "curves", panels, "episodes", "best reward")
    caption = (
        "Best reward of the search, mean over the seeds ± standard deviation, in brackets how many. "
        f"{_protocol(scale)} The best of many noisy means is too high; `policies.md` has means over unseen seeds. "
        "The paper shows these as a figure; its numbers here follow from its efficiencies and seconds per call, "
        "and agree with its gaps."
    )
    ours, runs = partial(best_rewards, records), partial(_runs, records)
    entries = compared(methods, ENVIRONMENTS, ours, paper.FINAL, runs=runs)
    write_table(out / "curves-best", "Tree policies: best reward at the end", caption, entries, digits=2)


def policies(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Mean reward over unseen seeds and the number of nodes of the best tree of each method."""

    def returns(name: str, environment: str) -> list[float]:
        return list(_tested(scale, records, environment, name, out).returns)

    def nodes(name: str, environment: str) -> list[float]:
        policy = _tested(scale, records, environment, name, out).policy
        return [] if policy is None else [len(policy)]

    rows = (*scale.tree_methods(), *LITERATURE)
    runs = partial(_runs, records)
    rewards = compared(rows, ENVIRONMENTS, returns, paper.TREE_REWARDS, error, runs=runs)
    caption = (
        "The best tree of all runs, in brackets how many, chosen on fresh seeds: its mean over "
        f"{scale.test_seeds} unseen seeds ± standard error. {_protocol(scale)} LunarLander is v3 here, "
        "v2 in the paper. The literature's methods end with the episodes that their authors gave them; their "
        "trees have oblique splits where the method has them."
    )
    write_table(out / "policies", "Tree policies: mean reward", caption, rewards, digits=2)
    sizes = compared(rows, ENVIRONMENTS, nodes, paper.TREE_NODES)
    caption = (
        "Of the same trees, pruned. The paper counts the weights of the features of Cascading DTs; here an "
        "oblique split is one node."
    )
    write_table(out / "policies-nodes", "Tree policies: nodes", caption, sizes, digits=0)
    _published(scale, records, out)
    _each_run(scale, records, out)


def _published(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Both figures of the paper beside ours: the mean of the searches, and the best tree on unseen seeds."""
    entries = []
    for environment in ENVIRONMENTS:
        found = best_rewards(records, DISCO, environment)
        returns, count = _tested(scale, records, environment, DISCO, out).returns, len(found)
        tested, spread = mean(returns.tolist()), standard_error(returns) if count else None
        searched, best = paper.FINAL[DISCO][environment], paper.TREE_REWARDS[DISCO][environment]
        heads = "mean of the searches", "best tree, tested"
        entries.append(Entry(environment, heads[0], mean(found), deviation(found), searched, runs=count))
        entries.append(Entry(environment, heads[1], tested, spread, best, runs=count))
    caption = (
        f"{DISCO}, the paper's settings, in brackets how many runs. The mean of the best rewards of the searches "
        "± standard deviation, beside what the paper's efficiencies and gaps agree with; and the best tree of all "
        f"runs, its mean over {scale.test_seeds} unseen seeds ± standard error, beside the paper's table. "
        f"{_protocol(scale)}"
    )
    write_table(
        out / "policies-published", "Tree policies: both published figures", caption, entries, digits=2
    )


def _each_run(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """The five methods of the paper's table: the mean of the best tree of each run, and what others published."""

    def means(name: str, environment: str) -> list[float]:
        return list(_tested(scale, records, environment, name, out).means)

    rows, runs = (DISCO, *LITERATURE, "BO", UNRULED), partial(_runs, records)
    entries = compared(rows, ENVIRONMENTS, means, paper.TREE_REWARDS, runs=runs)
    again: dict[str, dict[str, float]] = {}
    for (name, environment), (reward, _) in paper.TREES_AGAIN.items():
        again.setdefault(name, {})[environment] = reward
    for entry in compared([name for name in rows if name in again], ENVIRONMENTS, means, again, runs=runs):
        if entry.paper is not None:
            entries.append(replace(entry, row=f"{entry.row}, trained again by others"))
    caption = (
        f"The best tree of each run by its reward in the search, over {scale.test_seeds} unseen seeds: mean of "
        f"the runs ± standard deviation, in brackets how many. {_protocol(scale)} The paper has the best of its "
        "runs. Where others trained a method again, their figure stands in its place."
    )
    write_table(out / "policies-runs", "Tree policies: the mean of all runs", caption, entries, digits=2)


def gaps(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """The mean reward of DisCo's searches less that of the others; its best tree less those of the literature."""

    def searched(name: str, environment: str) -> list[float]:
        return gap(*(mean(best_rewards(records, own, environment)) for own in (DISCO, name)))

    def tested(name: str, environment: str) -> float | None:
        returns = _tested(scale, records, environment, name, out).returns
        return float(returns.mean()) if len(returns) else None

    others = [name for name in scale.tree_methods() if name != DISCO]
    entries = compared(others, ENVIRONMENTS, searched, paper.TREE_GAPS)
    caption = (
        f"Best reward of the search, mean over the seeds of {DISCO} less that of the method, as in the paper. "
        f"{_protocol(scale)}"
    )
    write_table(out / "policy-gaps", "Tree policies: objective gaps", caption, entries, digits=2)
    literature = compared(
        (*LITERATURE, "BO", UNRULED),
        ENVIRONMENTS,
        lambda name, environment: gap(tested(DISCO, environment), tested(name, environment)),
        paper.LITERATURE_TREE_GAPS,
    )
    caption = (
        f"Mean reward of our {DISCO} tree over {scale.test_seeds} unseen seeds, less that of the best "
        "tree of the method, all as run here."
    )
    title = "Tree policies: objective gaps to the literature"
    write_table(out / "policy-gaps-literature", title, caption, literature, digits=2)


def drawn(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """The best tree of DisCo for each environment, as a picture and as JSON."""
    rows = []
    for environment in ENVIRONMENTS:
        policy, returns, _ = _tested(scale, records, environment, DISCO, out)
        if policy is None:
            continue
        spread = standard_error(returns)
        title = f"{environment}: {returns.mean():.2f} ± {spread:.2f}, {len(policy)} nodes"
        shares = policy.node_shares(environment, range(min(scale.test_seeds, 100)))
        policy.draw(out / f"tree-{slug(environment)}.png", shares=shares, title=title)
        reward, nodes = paper.TREE_REWARDS[DISCO][environment], paper.TREE_NODES[DISCO][environment]
        rows.append(Entry(environment, "mean reward", float(returns.mean()), spread, reward))
        rows.append(Entry(environment, "nodes", len(policy), None, nodes))
    caption = "Pictures: tree-ENVIRONMENT.png. " + _protocol(scale)
    write_table(out / "trees", f"The drawn trees of {DISCO}", caption, rows, digits=2)


def seconds(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Time for one objective call, over random trees."""
    entries = []
    for environment in ENVIRONMENTS:
        episodes = scale.episodes[environment]
        with open_tree_task(environment, episodes) as task:
            rng = np.random.default_rng(0)
            designs = sample(task.space, UniformStepper(task.space), _TIMED + 1, rng).designs
            seeds = child_seeds(np.random.SeedSequence(0), 0, _TIMED + 1)
            assert task.batch_objective is not None
            task.batch_objective(designs.select(slice(0, 1)), seeds[:1])  # compiles
            started = time.perf_counter()
            task.batch_objective(designs.select(slice(1, None)), seeds[1:])
            took = (time.perf_counter() - started) / _TIMED * (100 / episodes)
        entries.append(Entry(environment, "seconds", took, None, paper.SECONDS[environment]["seconds"]))
    caption = (
        f"Wall-clock seconds for 100 episodes, mean over {_TIMED} random trees on one core of this machine; "
        "the paper's are of other trees on another machine. CartPole, MountainCar and Acrobot are compiled here."
    )
    write_table(out / "seconds", "Time per objective call", caption, entries)


def efficiency(scale: Scale, records: Sequence[Record], out: Path) -> None:
    """Final reward over the time of the whole budget, as the paper's figures have it."""

    def ours(name: str, environment: str) -> list[float]:
        own = records_of(records, environment, name)
        return [r.best / max(r.seconds / 3600, 1e-9) for r in own if r.best is not None]

    runs = partial(_runs, records)
    entries = compared(scale.tree_methods(), ENVIRONMENTS, ours, paper.EFFICIENCY, runs=runs)
    caption = (
        "Best reward of the search divided by the hours of the run, mean over the seeds ± standard deviation, in "
        f"brackets how many. {_protocol(scale)} The paper's are per hour of 24 cores, the same hours for all "
        "methods. Of negative rewards the quotient is the better the slower a method is."
    )
    write_table(out / "efficiency", "Computational efficiency", caption, entries, digits=2)


def _runs(records: Sequence[Record], name: str, environment: str) -> int:
    return len(records_of(records, environment, name))


def _protocol(scale: Scale) -> str:
    parts = [f"{e}: {scale.tree_calls[e]} calls of {scale.episodes[e]} episodes" for e in ENVIRONMENTS]
    return "; ".join(parts) + f". BO had {scale.bo_seconds:g} s."


class Tested(NamedTuple):
    """The best tree of a method's runs, its returns for the test seeds, and the means of the best of each run."""

    policy: TreePolicy | None
    returns: Floats
    means: tuple[float, ...]


def _tested(scale: Scale, records: Sequence[Record], environment: str, method: str, out: Path) -> Tested:
    """What the runs of a method have found, the best of them chosen on fresh seeds; nothing if no run found one.

    Kept in a file, since episodes may take long.
    """
    own = [record for record in records_of(records, environment, method) if record.design is not None]
    if not own:
        return Tested(None, np.empty(0), ())
    file = out / "runs" / "trees" / slug(environment) / slug(method) / "tested.json"
    designs = [record.design.to_dict() for record in own if record.design is not None]
    kept = read_object(file)
    same = kept is not None and kept["designs"] == designs and "means" in kept
    if kept is not None and same and len(kept["returns"]) == scale.test_seeds:
        about = describe(as_environment(environment))
        tree = TreePolicy.from_dict(kept["policy"])
        tree = tree.with_names(about.environment, about.feature_names, about.action_names, about.numbers)
        return Tested(tree, np.array(kept["returns"]), tuple(kept["means"]))
    trees = [_tree(record).pruned() for record in own]
    tests = {tree: returns_of(tree, environment, range(scale.test_seeds)) for tree in dict.fromkeys(trees)}
    means = tuple(float(tests[tree].mean()) for tree in trees)
    fresh = list(validation_seeds(0, scale.test_seeds))
    chosen = trees[0]
    if len(tests) > 1:
        chosen = max(tests, key=lambda tree: float(returns_of(tree, environment, fresh).mean()))
    returns = tests[chosen]
    result = {
        "designs": designs,
        "policy": chosen.to_dict(),
        "returns": returns.tolist(),
        "means": means,
    }
    write_atomically(file, json.dumps(result) + "\n")
    return Tested(chosen, returns, means)


def _tree(record: Record) -> TreePolicy:
    """The best tree of a run."""
    environment, method, design = record.job.case, record.job.settings.method, record.design
    assert design is not None
    if isinstance(method, Practising):
        about = describe(as_environment(environment))
        nodes = space_of(method, about).vocabulary.nodes(design)
        return TreePolicy(nodes, about.environment, about.feature_names, about.action_names)
    with open_tree_task(environment, 2, record.job.seed) as task:
        assert isinstance(task.batch_objective, TreeObjective)
        return task.batch_objective.policy(design)
