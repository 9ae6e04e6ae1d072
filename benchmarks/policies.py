"""Tree policies for the paper's four environments: runs the searches that are missing, and tabulates them all.

    python benchmarks/policies.py                      runs what results/policies/ lacks, then tabulates (hours)
    python benchmarks/policies.py --only MountainCar   only the runs whose name has this
    python benchmarks/policies.py --table              tabulates what is there

Every run is one command, which its summary.json quotes.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from harness import markdown

from discodso.base.files import write_atomically

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "policies"
PAPER = {
    "CartPole-v1": "500 (14)",
    "MountainCar-v0": "-100.97 (15)",
    "Acrobot-v1": "-76.58 (18)",
    "LunarLander-v3": "99.24 (23)",
}
PAPER_SEEDS = range(3)
DEFAULT_SEEDS = {"CartPole-v1": range(3), "MountainCar-v0": range(10), "Acrobot-v1": range(10)}
DEFAULT = {
    "CartPole-v1": "--budget 10000",
    "MountainCar-v0": "--budget 100000 --episodes 100 --common-episodes",
    "Acrobot-v1": "--budget 60000 --episodes 600 --set method.restarts.batches=30",
}
# Short searches over few episodes find where to look, one over more goes on with the best of them all, and one
# over many looks closely.
LUNAR_LANDER = "LunarLander-v3 --common-episodes --probe-ranges --workers 2"
EXPLORED = [f"LunarLander-v3-explore-seed{seed}" for seed in range(6)]
CHAIN = {
    **{
        name: f"{LUNAR_LANDER} --budget 9000 --episodes 32 --seed {seed}"
        for seed, name in enumerate(EXPLORED)
    },
    "LunarLander-v3-closer-seed0": f"{LUNAR_LANDER} --budget 12000 --episodes 200 --seed 0 "
    + " ".join(f"--start-from results/policies/{name}" for name in EXPLORED),
    "LunarLander-v3-default-seed0": f"{LUNAR_LANDER} --budget 16000 --episodes 1000 --seed 0 "
    "--start-from results/policies/LunarLander-v3-closer-seed0",
    "LunarLander-v3-paper-seed0": (
        "LunarLander-v3 --preset paper-scaled --budget 100000 --time-limit 900 --workers 2 --seed 0"
    ),
}
# One command of the present version, all from nothing.
MOVING = {
    f"LunarLander-v3-moving-seed{seed}": (
        f"LunarLander-v3 --moving-ranges --common-episodes --budget 20000 --seed {seed}"
    )
    for seed in range(10)
}
# A teacher, Gymnasium's own heuristic, says where to begin.
TAUGHT = "--teacher heuristic --moving-ranges --common-episodes --set run.top=20"
TEACHER = {
    "LunarLander-v3-teacher": f"LunarLander-v3 {TAUGHT} --budget 6000 --episodes 200",
    "LunarLander-v3-oblique-teacher": f"LunarLander-v3 {TAUGHT} --splits oblique --budget 3000 --episodes 100",
    "LunarLander-v3-continuous-teacher": (
        f"LunarLander-v3 {TAUGHT} --argument continuous=true --leaves linear --max-nodes 9 "
        "--budget 1000 --episodes 100"
    ),
}
TEACHER_SEEDS = range(3)
PAPER_CALLS = 20_000
KEPT = {"settings.toml", "summary.json", "policy.json", "tree.svg"}  # of a run
WHOLE = {"MountainCar-v0-paper-seed0"}  # the tests read one with its history, its designs and its versions
EARLIER = (
    "The chain for LunarLander (explore, closer, default, by hand), which takes hours, and the runs with the",
    "paper's settings are of an earlier version, in which the default had a network; two of the latter (CartPole,",
    "seeds 0 and 1), made anew, had the same means.",
)
LEFT_OUT = "# initial_designs: of the runs, or of the teacher, that the command in summary.json starts from"


def runs() -> dict[str, str]:
    """Folder and arguments of every run."""
    found = {}
    for environment, options in DEFAULT.items():
        for seed in DEFAULT_SEEDS[environment]:
            found[f"{environment}-default-seed{seed}"] = f"{environment} {options} --seed {seed}"
        for seed in PAPER_SEEDS:
            found[f"{environment}-paper-seed{seed}"] = (
                f"{environment} --preset paper-scaled --budget {PAPER_CALLS} --workers 2 --seed {seed}"
            )
    taught = {
        f"{name}-seed{seed}": f"{options} --seed {seed}"
        for name, options in TEACHER.items()
        for seed in TEACHER_SEEDS
    }
    return {**found, **CHAIN, **MOVING, **taught}


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


def prune(folder: Path) -> None:
    """Keep what the results need; designs that other runs found stay with those."""
    extra = {"history.jsonl", "top.json", "environment.json"} if folder.name in WHOLE else set()
    for path in folder.iterdir():
        if path.name not in KEPT | extra:
            path.unlink()
    settings = folder / "settings.toml"
    if folder.name in CHAIN or folder.name.rsplit("-seed", 1)[0] in TEACHER:
        text = re.sub(r"^initial_designs = .*$", LEFT_OUT, settings.read_text(), flags=re.MULTILINE)
        write_atomically(settings, text)


def prune_all() -> None:
    """All runs but those that a run starts from that is still missing: it reads their designs."""
    missing = [words for name, words in runs().items() if not (RESULTS / name / "summary.json").exists()]
    for path in RESULTS.glob("*/summary.json"):
        if not any(f"results/policies/{path.parent.name}" in words for words in missing):
            prune(path.parent)


def rows() -> list[dict[str, Any]]:
    """The summaries of all runs that are there, by name."""
    return [
        {"name": path.parent.name, **json.loads(path.read_text())}
        for path in sorted(RESULTS.glob("*/summary.json"))
    ]


def table() -> str:
    """All runs as Markdown, and the spread over seeds."""
    groups: dict[str, list[float]] = {}
    cells = []
    for row in rows():
        name, environment = row["name"], row["environment"]
        groups.setdefault(name.rsplit("-seed", 1)[0], []).append(row["test_mean"])
        cells.append(
            [
                f"[{name}]({name}/tree.svg)",
                f"{row['test_mean']:.2f}",
                f"{row['test_error']:.2f}",
                f"{row['nodes']}",
                *(f"{row[key]:,}" for key in ("calls", "episodes", "validation_episodes")),
                f"{row['seconds'] / 60:.1f}",
                PAPER[environment["id"]] if not environment["arguments"] else "-",
            ]
        )
    spreads = [
        [
            name,
            f"{len(means)}",
            f"{np.mean(means):.2f}",
            f"{np.std(means, ddof=1):.2f}" if len(means) > 1 else "-",
            f"{min(means):.2f}",
            f"{max(means):.2f}",
        ]
        for name, means in groups.items()
    ]
    lines = [
        "# Tree policies",
        "",
        "Made by `make policies`; each folder has the policy, its picture, its settings and its command.",
        "Test: mean return over the seeds 0 to 999, which neither the search nor the choice has seen.",
        *EARLIER,
        "",
        *markdown(
            "run|test mean|error|nodes|calls|episodes|for the choice|minutes|paper (nodes)".split("|"), cells
        ),
        "",
        *markdown("runs|seeds|mean|spread (standard deviation)|worst|best".split("|"), spreads),
    ]
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
    prune_all()
    write_atomically(RESULTS / "README.md", table())
    print(table())


if __name__ == "__main__":
    main()
