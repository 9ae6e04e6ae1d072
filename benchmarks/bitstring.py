"""Learning on the parameterised bitstring task: DisCo beside uniform random search, the same calls for both.

T = 10, alpha 0.5 and 0.9, f1 and f2, 50,000 objective calls, 5 seeds: mean of the best reward and its standard
error. The options of "tuned" (learned scale, position) were picked on seeds 0 to 2, their values on seeds 10 to
13; seeds 3 and 4 were never looked at before.

    python benchmarks/bitstring.py         prints, and writes benchmarks/results/bitstring.{json,md}
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from discodso import DisCoSettings, PolicySettings, search
from discodso.baselines.random_search import RandomSettings
from discodso.disco.method import MethodSettings
from discodso.tasks.bitstring import bitstring

RESULTS = Path(__file__).parent / "results"
CASES = [(objective, alpha) for alpha in (0.9, 0.5) for objective in ("f1", "f2")]
TUNED = DisCoSettings(
    learning_rate=0.006,
    risk_factor=0.1,
    entropy_coefficient=0.1,
    policy=PolicySettings(learn_scale=True, inputs=("previous", "position")),
)
METHODS: dict[str, MethodSettings] = {
    "random search": RandomSettings(),
    "DisCo, the paper's settings, batch 1000": DisCoSettings(batch_size=1000),
    "DisCo, the paper's settings, batch 100": DisCoSettings(batch_size=100),
    "DisCo, tuned": TUNED,
}


def one(job: tuple[MethodSettings, str, float, int, int, int]) -> float:
    """Best reward of one run."""
    method, objective, alpha, length, calls, seed = job
    task = bitstring(length, alpha, objective, seed)
    result = search(task, budget=calls, seed=seed, method=method)
    assert result.best is not None
    assert result.calls == calls
    return result.best.reward


def summary(rewards: Sequence[float]) -> dict[str, Any]:
    """Mean, standard error and the runs themselves."""
    error = statistics.stdev(rewards) / math.sqrt(len(rewards))
    return {
        "mean": round(statistics.mean(rewards), 4),
        "error": round(error, 4),
        "runs": [round(r, 4) for r in rewards],
    }


def table(results: dict[str, dict[str, Any]], length: int, calls: int, seeds: int) -> str:
    """The results in Markdown."""
    names = [f"{objective}, alpha {alpha}" for objective, alpha in CASES]
    lines = [
        f"Bitstring, T = {length}, {calls:,} objective calls, {seeds} seeds: mean best reward ± standard error.",
        "Made by `python benchmarks/bitstring.py` (`make bench-bitstring`).",
        "",
        "| method | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for method, cells in results.items():
        shown = [f"{cells[name]['mean']:.4f} ± {cells[name]['error']:.4f}" for name in names]
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    lines += [
        "",
        "Tuned means: " + ", ".join(describe(TUNED)) + "; all other settings are the paper's.",
        "",
    ]
    return "\n".join(lines)


def describe(settings: DisCoSettings) -> list[str]:
    """The settings that differ from the defaults."""
    default, own = asdict(DisCoSettings()), asdict(settings)
    inner, own_inner = default.pop("policy"), own.pop("policy")
    changed = {k: v for k, v in own.items() if v != default[k]}
    changed |= {k: v for k, v in own_inner.items() if v != inner[k]}
    return [f"`{key}={value!r}`" for key, value in changed.items()]


def main() -> None:
    """Run everything, print the table, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--length", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(options.workers) as pool:
        for name, method in METHODS.items():
            jobs = [
                (method, objective, alpha, options.length, options.calls, seed)
                for objective, alpha in CASES
                for seed in range(options.seeds)
            ]
            best = list(pool.map(one, jobs))
            cells = (best[i * options.seeds : (i + 1) * options.seeds] for i in range(len(CASES)))
            results[name] = {
                f"{objective}, alpha {alpha}": summary(runs)
                for (objective, alpha), runs in zip(CASES, cells, strict=True)
            }
            print(name, {case: cell["mean"] for case, cell in results[name].items()}, flush=True)
    text = table(results, options.length, options.calls, options.seeds)
    print(text)
    data = {
        "command": "python benchmarks/bitstring.py",
        "length": options.length,
        "calls": options.calls,
        "seeds": list(range(options.seeds)),
        "settings": {name: asdict(method) for name, method in METHODS.items()},  # type: ignore[call-overload]
        "results": results,
    }
    stem = "bitstring" if options.length == 10 else f"bitstring-{options.length}"
    (RESULTS / f"{stem}.json").write_text(json.dumps(data, indent=1) + "\n")
    (RESULTS / f"{stem}.md").write_text(text)


if __name__ == "__main__":
    main()
