"""Why our figures differ from the paper's: the runs behind the explanations in docs/reproduction.md.

Part "regression", four problems (every third of those of scale small), seed 0:
  - Decoupled-GP-BFGS with 2,000,000 calls: do its expressions grow to 32 tokens, as in the paper?
  - DisCo-DSO with 200,000 calls and other batches and entropy bonuses: what keeps it near random search?
Part "bitstring", f1 with alpha 0.9, 100,000 calls, seeds 0 to 2:
  - Decoupled-RL-anneal with 25 and 200 calls for one skeleton.
Part "trees", MountainCar and Acrobot, calls of 100 episodes, seeds 0 to 2:
  - DisCo-DSO with more calls, more entropy, and priors on arity and length: what keeps it at three nodes?

    python benchmarks/differences.py [PART...]      prints, and writes benchmarks/results/differences.{json,md}
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

from discodso import DisCoSettings, GPSettings, PolicySettings, preset, search
from discodso.base.files import write_atomically
from discodso.baselines.decoupled import DecoupledSettings
from discodso.baselines.random_search import RandomSettings
from discodso.disco.method import MethodSettings
from discodso.reproduce.scales import scale_named
from discodso.run.result import Result
from discodso.tasks.bitstring import bitstring
from discodso.tasks.policies.environments import as_environment, describe
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.policy_search import paper_settings
from discodso.tasks.policies.tree_space import search_seeds, tree_space, tree_task
from discodso.tasks.regression.expression_space import Fit
from discodso.tasks.regression.problems import problem_task, problems

RESULTS = Path(__file__).parent / "results"
PROBLEMS = scale_named("small").problems[1::3]
LARGE = replace(preset("paper"), batch_size=1000)
GENETIC = DecoupledSettings(GPSettings(), "bfgs")
REGRESSION: dict[str, tuple[MethodSettings, int]] = {
    "Random": (RandomSettings(batch_size=1000), 200_000),
    "DisCo-DSO, batch 1000": (LARGE, 200_000),
    "DisCo-DSO, batch 1000, longer": (LARGE, 1_000_000),
    "DisCo-DSO, batch 100, as in the tables": (replace(LARGE, batch_size=100), 200_000),
    "DisCo-DSO, batch 1000, entropy 0.1": (replace(LARGE, entropy_coefficient=0.1), 200_000),
    "DisCo-DSO, batch 1000, risk factor 0.05": (replace(LARGE, risk_factor=0.05), 200_000),
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
NARROW = PolicySettings(shift=0.5, scale=0.05)
MORE_ENTROPY = replace(paper_settings(), entropy_coefficient=0.1)
TWENTY = 20_000
# Environment, method, priors (on arity, and on this length), calls.
TREES: list[tuple[str, str, DisCoSettings, int | None, int]] = [
    ("MountainCar-v0", "the paper's settings", paper_settings(), None, TWENTY),
    ("MountainCar-v0", "longer", paper_settings(), None, 100_000),
    ("MountainCar-v0", "entropy 0.1", MORE_ENTROPY, None, TWENTY),
    ("MountainCar-v0", "priors: uniform arity, about 13 nodes", paper_settings(), 13, TWENTY),
    ("MountainCar-v0", "priors and entropy 0.1", MORE_ENTROPY, 13, TWENTY),
    ("MountainCar-v0", "learning rate 0.01", replace(paper_settings(), learning_rate=0.01), None, TWENTY),
    ("MountainCar-v0", "scale 0.05 instead of 0.5", DisCoSettings(policy=NARROW), None, TWENTY),
    (
        "MountainCar-v0",
        "scale 0.05, learning rate 0.01",
        DisCoSettings(learning_rate=0.01, policy=NARROW),
        None,
        TWENTY,
    ),
    (
        "MountainCar-v0",
        "scale 0.05, priors and entropy 0.1",
        DisCoSettings(entropy_coefficient=0.1, policy=NARROW),
        13,
        TWENTY,
    ),
    ("Acrobot-v1", "scale 0.05 instead of 0.5", DisCoSettings(policy=NARROW), None, TWENTY),
]


def tree_row(
    environment: str, method: DisCoSettings, typical: int | None, calls: int, seed: int
) -> dict[str, float]:
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


def regression_row(method: MethodSettings, calls: int, name: str) -> dict[str, float]:
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


def last_batches(result: Result) -> dict[str, float]:
    """Mean reward and length of what a method proposed in the last tenth of its batches."""
    last = result.history[-max(1, len(result.history) // 10) :]
    means = [row.mean for row in last if row.mean is not None]
    lengths = [row.mean_length for row in last if row.mean_length is not None]
    return {
        "late mean": round(statistics.fmean(means), 4) if means else float("nan"),
        "late length": round(statistics.fmean(lengths), 2),
    }


def make(part: str, runs: dict[str, Any]) -> None:
    """Make the runs of a part that are not there yet, and write after each."""
    own = runs.setdefault(part, {})
    if part == "bitstring":
        for name, method in BITSTRING.items():
            cells = own.setdefault(name, [])
            for seed in range(len(cells), 3):
                found = search(bitstring(10, 0.9, "f1", seed), budget=100_000, seed=seed, method=method)
                assert found.best is not None
                cells.append(round(found.best.reward, 4))
                write(runs)
        return
    if part == "trees":
        for environment, name, method, typical, calls in TREES:
            rows = own.setdefault(f"{environment}: {name}, {calls:,} calls", [])
            for seed in range(len(rows), 3):
                rows.append(tree_row(environment, method, typical, calls, seed))
                print(name, seed, rows[-1], flush=True)
                write(runs)
        return
    for name, (method, calls) in REGRESSION.items():
        cells = own.setdefault(f"{name}, {calls:,} calls", {})
        for problem in PROBLEMS:
            if problem not in cells:
                cells[problem] = regression_row(method, calls, problem)
                print(name, calls, problem, cells[problem], flush=True)
                write(runs)


def write(runs: dict[str, Any]) -> None:
    """Results as JSON and Markdown."""
    lines = ["Made by `python benchmarks/differences.py`.", ""]
    if cells := runs.get("regression"):
        columns = ("train", "evaluation", "length", "late mean", "late length")
        lines += [
            f"## Regression: means over {', '.join(PROBLEMS)}; seed 0",
            "",
            "Rewards and length of the best expression, and the mean reward and length of what was proposed in",
            "the last tenth of the batches.",
            "",
            "| method | problems | " + " | ".join(columns) + " |",
            "|---" * (len(columns) + 2) + "|",
        ]
        for name, found in cells.items():
            if found:
                means = [statistics.fmean(row[column] for row in found.values()) for column in columns]
                lines.append(
                    f"| {name} | {len(found)} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |"
                )
        lines.append("")
    if cells := runs.get("bitstring"):
        lines += ["## Bitstring: f1, alpha 0.9, 100,000 calls", "", "| method | best rewards |", "|---|---|"]
        lines += [f"| {name} | {', '.join(map(str, found))} |" for name, found in cells.items()]
        lines.append("")
    if cells := runs.get("trees"):
        lines += [
            "## Trees: DisCo-DSO, calls of 100 episodes, seeds 0 to 2",
            "",
            "The best reward of the search, its tree over 1000 unseen seeds and its nodes; then the mean reward",
            "and length of what was proposed in the last tenth of the batches.",
            "",
            "| DisCo-DSO with | best | test | nodes | late mean | late length |",
            "|---|---|---|---|---|---|",
        ]
        for name, rows in cells.items():
            seen = [
                ", ".join(str(row[key]) for row in rows)
                for key in ("best", "test", "nodes", "late mean", "late length")
            ]
            lines.append(f"| {name} | " + " | ".join(seen) + " |")
        lines.append("")
    write_atomically(RESULTS / "differences.md", "\n".join(lines))
    data = {"command": "python benchmarks/differences.py", "runs": runs}
    write_atomically(RESULTS / "differences.json", json.dumps(data, indent=1) + "\n")


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="of regression, bitstring, trees; all by default")
    options = parser.parse_args()
    path = RESULTS / "differences.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    for part in options.parts or ("regression", "bitstring", "trees"):
        make(part, runs)
    write(runs)
    print((RESULTS / "differences.md").read_text())


if __name__ == "__main__":
    main()
