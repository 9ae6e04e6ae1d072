"""Tree policies for the paper's four environments: runs the searches that are missing, and tabulates them all.

    python benchmarks/policies.py                      runs what results/policies/ lacks, then tabulates (hours)
    python benchmarks/policies.py --only MountainCar   only the runs whose name has this
    python benchmarks/policies.py --table              tabulates what is there

Every run is one command, which its summary.json quotes.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "policies"
PAPER = {
    "CartPole-v1": "500 (14)",
    "MountainCar-v0": "-100.97 (15)",
    "Acrobot-v1": "-76.58 (18)",
    "LunarLander-v3": "99.24 (23)",
}
PAPER_SEEDS = range(3)
TUNED_SEEDS = {"CartPole-v1": range(3), "MountainCar-v0": range(10), "Acrobot-v1": range(10)}
TUNED = {
    "CartPole-v1": "--calls 10000",
    "MountainCar-v0": "--calls 20000 --episodes 200 --common-episodes",
    "Acrobot-v1": "--calls 60000 --episodes 600 --restart-after 3000",
}
# Short searches over few episodes find where to look, one over more goes on with the best of them all, and one
# over many looks closely.
LUNAR_LANDER = "LunarLander-v3 --common-episodes --probe-ranges --workers 2"
EXPLORED = [f"LunarLander-v3-explore-seed{seed}" for seed in range(6)]
CHAIN = {
    **{
        name: f"{LUNAR_LANDER} --calls 9000 --episodes 32 --seed {seed}" for seed, name in enumerate(EXPLORED)
    },
    "LunarLander-v3-closer-seed0": f"{LUNAR_LANDER} --calls 12000 --episodes 200 --seed 0 "
    + " ".join(f"--start-from results/policies/{name}" for name in EXPLORED),
    "LunarLander-v3-tuned-seed0": f"{LUNAR_LANDER} --calls 16000 --episodes 1000 --seed 0 "
    "--start-from results/policies/LunarLander-v3-closer-seed0",
    "LunarLander-v3-paper-seed0": (
        "LunarLander-v3 --preset paper --calls 100000 --max-time 900 --workers 2 --seed 0"
    ),
}
PAPER_CALLS = 20_000


def runs() -> dict[str, str]:
    """Folder and arguments of every run."""
    found = {}
    for environment, options in TUNED.items():
        for seed in TUNED_SEEDS[environment]:
            found[f"{environment}-tuned-seed{seed}"] = f"{environment} {options} --seed {seed}"
        for seed in PAPER_SEEDS:
            found[f"{environment}-paper-seed{seed}"] = (
                f"{environment} --preset paper --calls {PAPER_CALLS} --workers 2 --seed {seed}"
            )
    return {**found, **CHAIN}


def run(name: str, arguments: str) -> None:
    """One search, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "discodso",
        "policy",
        *shlex.split(arguments),
        "--out",
        f"results/policies/{name}",  # not the full path, which says nothing to others
    ]
    print("$", "discodso policy", arguments, flush=True)
    subprocess.run(command, check=True, cwd=ROOT)


def rows() -> list[dict[str, Any]]:
    """The summaries of all runs that are there, by name."""
    return [
        {"name": path.parent.name, **json.loads(path.read_text())}
        for path in sorted(RESULTS.glob("*/summary.json"))
    ]


def table() -> str:
    """All runs as Markdown, and the spread over seeds."""
    lines = [
        "# Tree policies found from nothing",
        "",
        "Made by `make policies`; each folder has the policy, its picture, the history and its command.",
        "Test: mean return over the seeds 0 to 999, which neither the search nor the choice has seen.",
        "",
        "| run | test mean | error | nodes | calls | episodes | for the choice | minutes | paper (nodes) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[float]] = {}
    for row in rows():
        environment = row["environment"]["id"]
        groups.setdefault(row["name"].rsplit("-seed", 1)[0], []).append(row["test_mean"])
        lines.append(
            f"| [{row['name']}]({row['name']}/tree.svg) | {row['test_mean']:.2f} | {row['test_error']:.2f} | "
            f"{row['nodes']} | {row['calls']:,} | {row['episodes']:,} | {row['validation_episodes']:,} | "
            f"{row['seconds'] / 60:.1f} | {PAPER[environment]} |"
        )
    lines += [
        "",
        "| runs | seeds | mean | spread (standard deviation) | worst | best |",
        "|---|---|---|---|---|---|",
    ]
    for name, means in groups.items():
        spread = f"{np.std(means, ddof=1):.2f}" if len(means) > 1 else "-"
        lines.append(
            f"| {name} | {len(means)} | {np.mean(means):.2f} | {spread} | {min(means):.2f} | {max(means):.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing, tabulate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="runs whose name has this")
    parser.add_argument("--table", action="store_true", help="tabulate only")
    arguments = parser.parse_args()
    if not arguments.table:
        for name, options in runs().items():
            if arguments.only in name and not (RESULTS / name / "summary.json").exists():
                run(name, options)
    (RESULTS / "README.md").write_text(table())
    print(table())


if __name__ == "__main__":
    main()
