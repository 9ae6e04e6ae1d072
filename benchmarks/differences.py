"""Why our figures differ from the paper's: the runs behind the explanations in docs/paper.md.

Part "regression", four problems (every third of those of scale small), seed 0:
  - Decoupled-GP-BFGS with 2,000,000 calls: do its expressions grow to 32 tokens, as in the paper?
  - DisCo-DSO with 200,000 calls and other batches and entropy bonuses: what keeps it near random search?
Part "bitstring", f1 with alpha 0.9, 100,000 calls, seeds 0 to 2:
  - Decoupled-RL-anneal with 25 and 200 calls for one skeleton.
Part "sizes", four environments: how many nodes have the first trees that the network draws, if they may have many?
Part "trees", MountainCar and Acrobot, calls of 100 episodes, seeds 0 to 2:
  - DisCo-DSO with more calls, more entropy, and priors on arity and length: what keeps it at three nodes?

But in "sizes", and where it says so, the paper's settings are those of the preset "paper-scaled".

    python benchmarks/differences.py                      makes what results/differences.jsonl lacks, and its table
    python benchmarks/differences.py --only part=trees    of one part
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from harness import Benchmark, Key, Record, grid, main, markdown

from discodso import DisCo, DisCoSettings, GPSettings, NetworkSettings, preset, search
from discodso.baselines.decoupled import DecoupledSettings
from discodso.baselines.random_search import RandomSettings
from discodso.disco.method import MethodSettings
from discodso.disco.settings import LearnerSettings
from discodso.reproduce.paper import ENVIRONMENTS
from discodso.reproduce.scales import SCALES
from discodso.run.result import Result
from discodso.tasks.bitstring import bitstring
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.making import as_environment
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.policy_kind import scaled_settings
from discodso.tasks.policies.tree_space import search_seeds, tree_space, tree_task
from discodso.tasks.regression.expression_space import Fit
from discodso.tasks.regression.problems import problem_task, problems

PROBLEMS = SCALES["small"].problems[1::3]
LARGE = replace(preset("paper-scaled"), batch_size=1000)
GENETIC = DecoupledSettings(GPSettings(), "bfgs")
FASTER, ENTROPY = LearnerSettings(learning_rate=0.01), LearnerSettings(entropy_coefficient=0.1)
GREEDY = LearnerSettings(risk_factor=0.05)
REGRESSION: dict[str, tuple[MethodSettings, int]] = {
    "Random": (RandomSettings(batch_size=1000), 200_000),
    "DisCo-DSO, batch 1000": (LARGE, 200_000),
    "DisCo-DSO, batch 1000, longer": (LARGE, 1_000_000),
    "DisCo-DSO, batch 100, as in the tables": (replace(LARGE, batch_size=100), 200_000),
    "DisCo-DSO, batch 1000, entropy 0.1": (replace(LARGE, learner=ENTROPY), 200_000),
    "DisCo-DSO, batch 1000, risk factor 0.05": (replace(LARGE, learner=GREEDY), 200_000),
    "DisCo-DSO, default preset": (preset("default", refines=True), 200_000),
    "Decoupled-GP-BFGS, as in the tables": (GENETIC, 200_000),
    "Decoupled-GP-BFGS, longer": (GENETIC, 2_000_000),
}
BITSTRING: dict[str, MethodSettings] = {
    f"Decoupled-RL-anneal, {calls} calls for one skeleton": DecoupledSettings(
        DisCoSettings(), "anneal", inner_calls=calls
    )
    for calls in (25, 200)
}
NARROW = NetworkSettings(shift=0.5, scale=0.05)
MORE_ENTROPY = replace(scaled_settings(), learner=ENTROPY)
TWENTY = 20_000
# Environment, method, priors (on arity, and on this length), calls.
LITERAL = {"preset paper": preset("paper"), "preset paper-scaled": scaled_settings()}
TREES: list[tuple[str, str, DisCoSettings, int | None, int]] = [
    ("MountainCar-v0", "the paper's settings", scaled_settings(), None, TWENTY),
    ("MountainCar-v0", "longer", scaled_settings(), None, 100_000),
    ("MountainCar-v0", "entropy 0.1", MORE_ENTROPY, None, TWENTY),
    ("MountainCar-v0", "priors: uniform arity, about 13 nodes", scaled_settings(), 13, TWENTY),
    ("MountainCar-v0", "priors and entropy 0.1", MORE_ENTROPY, 13, TWENTY),
    ("MountainCar-v0", "learning rate 0.01", replace(scaled_settings(), learner=FASTER), None, TWENTY),
    ("MountainCar-v0", "scale 0.05 instead of 0.5", DisCoSettings(network=NARROW), None, TWENTY),
    (
        "MountainCar-v0",
        "scale 0.05, learning rate 0.01",
        DisCoSettings(learner=FASTER, network=NARROW),
        None,
        TWENTY,
    ),
    (
        "MountainCar-v0",
        "scale 0.05, priors and entropy 0.1",
        DisCoSettings(learner=ENTROPY, network=NARROW),
        13,
        TWENTY,
    ),
    ("Acrobot-v1", "scale 0.05 instead of 0.5", DisCoSettings(network=NARROW), None, TWENTY),
    *(
        (environment, name, settings, None, 10_000)
        for environment in ("CartPole-v1", "MountainCar-v0", "Acrobot-v1")
        for name, settings in LITERAL.items()
    ),
]


def tree_row(environment: str, method: DisCoSettings, typical: int | None, calls: int, seed: int) -> Record:
    """One search: the best reward, its mean over 1000 unseen seeds, its nodes, and those of the last batches."""
    interface = describe(as_environment(environment))
    space = tree_space(interface, balanced=typical is not None, typical_nodes=typical)
    with open_runner(interface.environment, pool=search_seeds(seed)) as runner:
        task = tree_task(interface, runner, space, seed=seed)
        result = search(task, budget=calls, seed=seed, method=method)
        objective = task.batch_objective
        assert isinstance(objective, TreeObjective)
        assert result.best is not None
        policy = objective.policy(result.best.design).pruned()
    returns = policy.evaluate(environment, seeds=range(1000))
    return {
        "best": round(result.best.reward, 2),
        "test": round(float(returns.mean()), 2),
        "nodes": len(policy),
        **last_batches(result),
    }


def size_row(environment: str, most: int) -> Record:
    """Trees that the paper's network draws before it has learned."""
    space = tree_space(describe(as_environment(environment)), most, balanced=False)
    lengths = DisCo(space, preset("paper"), seed=0).ask(200).lengths
    return {"nodes": round(float(lengths.mean()), 1), "at the limit": float((lengths >= most - 1).mean())}


def regression_row(method: MethodSettings, calls: int, name: str) -> Record:
    """One search: rewards and length of its best expression, and of its last batch."""
    (problem,) = problems(name)
    task = problem_task(problem)
    assert isinstance(task.batch_objective, Fit)
    result = search(task, budget=calls, seed=0, method=method)
    assert result.best is not None
    evaluation = Fit.of(task.batch_objective.program, *problem.evaluation_set())
    return {
        "train": round(result.best.reward, 4),
        "evaluation": round(float(evaluation(task.space.encode([result.best.design]))[0]), 4),
        "length": len(result.best.design),
        **last_batches(result),
    }


def last_batches(result: Result) -> Record:
    """Mean reward and length of what a method proposed in the last tenth of its batches."""
    last = result.history[-max(1, len(result.history) // 10) :]
    means = [row.mean for row in last if row.mean is not None]
    lengths = [row.mean_length for row in last if row.mean_length is not None]
    return {
        "late mean": round(statistics.fmean(means), 4) if means else float("nan"),
        "late length": round(statistics.fmean(lengths), 2),
    }


REGRESSION_ROWS = {
    f"{name}, {calls:,} calls": (method, calls) for name, (method, calls) in REGRESSION.items()
}
TREE_ROWS = {
    f"{environment}: {name}, {calls:,} calls": (environment, method, typical, calls)
    for environment, name, method, typical, calls in TREES
}
SIZES = {f"at most {most} nodes": most for most in (31, 127, 511, 2047)}
BITS = "f1, alpha 0.9"
KEYS = [
    *(
        {"part": "regression", "method": name, "case": problem, "seed": 0}
        for name in REGRESSION_ROWS
        for problem in PROBLEMS
    ),
    *(
        {"part": "bitstring", "method": name, "case": BITS, "seed": seed}
        for name in BITSTRING
        for seed in range(3)
    ),
    *(
        {"part": "trees", "method": name, "case": row[0], "seed": seed}
        for name, row in TREE_ROWS.items()
        for seed in range(3)
    ),
    *({"part": "sizes", "method": name, "case": case, "seed": 0} for name in SIZES for case in ENVIRONMENTS),
]


def run(key: Key) -> Record:
    """One search."""
    method, seed = key["method"], key["seed"]
    if key["part"] == "regression":
        return regression_row(*REGRESSION_ROWS[method], key["case"])
    if key["part"] == "sizes":
        return size_row(key["case"], SIZES[method])
    if key["part"] == "trees":
        return tree_row(*TREE_ROWS[method], seed)
    found = search(bitstring(10, 0.9, "f1", seed), budget=100_000, seed=seed, method=BITSTRING[method])
    assert found.best is not None
    return {"best": round(found.best.reward, 4)}


def table(records: Sequence[Record]) -> str:
    """A table for each part."""
    runs: dict[tuple[str, str], list[Record]] = {}
    for r in records:
        runs.setdefault((r["part"], r["method"]), []).append(r)
    parts: dict[str, list[tuple[str, list[Record]]]] = {}
    for (part, method), own in runs.items():
        parts.setdefault(part, []).append((method, own))
    late = ["late mean", "late length"]
    columns, figures = ["train", "evaluation", "length", *late], ["best", "test", "nodes", *late]
    lines = [
        "Made by `python benchmarks/differences.py`.",
        "",
        f"## Regression: means over {', '.join(PROBLEMS)}; seed 0",
        "",
        "Rewards and length of the best expression, and the mean reward and length of what was proposed in",
        "the last tenth of the batches.",
        "",
        *markdown(
            ["method", "problems", *columns],
            [
                [method, f"{len(own)}", *(f"{statistics.fmean(r[c] for r in own):.3f}" for c in columns)]
                for method, own in parts.get("regression", [])
            ],
        ),
        "",
        "## Bitstring: f1, alpha 0.9, 100,000 calls",
        "",
        *markdown(
            ["method", "best rewards"],
            [[method, listed(own, "best")] for method, own in parts.get("bitstring", [])],
        ),
        "",
        "## Trees: DisCo-DSO, calls of 100 episodes, seeds 0 to 2",
        "",
        "The best reward of the search, its tree over 1000 unseen seeds and its nodes; then the mean reward",
        "and length of what was proposed in the last tenth of the batches.",
        "",
        *markdown(
            ["DisCo-DSO with", *figures],
            [
                [method, *(listed(own, figure) for figure in figures)]
                for method, own in parts.get("trees", [])
            ],
        ),
        "",
        "## Sizes: 200 first trees of the paper's network",
        "",
        "Their mean number of nodes, and the share that goes on to the limit.",
        "",
        *grid("trees of", SIZES, ENVIRONMENTS, partial(sizes, records)),
    ]
    return "\n".join(lines)


def sizes(records: Sequence[Record], method: str, case: str) -> str:
    """Nodes, and the share at the limit."""
    own = [r for r in records if (r["part"], r["method"], r["case"]) == ("sizes", method, case)]
    return "-" if not own else f"{own[0]['nodes']}, {own[0]['at the limit']:.0%}"


def listed(records: Sequence[Record], figure: str) -> str:
    """A figure of each run."""
    return ", ".join(str(record[figure]) for record in records)


BENCHMARK = Benchmark("differences", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
