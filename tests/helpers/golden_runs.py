"""Golden runs: short searches of every task by every method, whose course must not move when code does."""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from discodso import (
    BOSettings,
    DecoupledSettings,
    GPSettings,
    NetworkSettings,
    RandomSettings,
    Result,
    Task,
    preset,
    search,
)
from discodso.disco.disco import DisCoSettings
from discodso.disco.settings import LearnerSettings, RestartSettings
from discodso.tasks.bitstring import bitstring

RECORDS = Path(__file__).parent / "golden.json"


def fingerprint() -> str:
    """What decides the last digits: the processor, the libraries, and what these make of an example."""
    import torch
    from llvmlite.binding import get_host_cpu_name

    capability = torch.backends.cpu.get_cpu_capability()
    versions = " ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "torch", "numba"))
    return f"{get_host_cpu_name()}, {capability}, {versions}, {_probe()}"


def _probe() -> str:
    """A mark of the results of a few operations that libraries do in another way on another processor."""
    import torch

    matrix = np.sin(np.arange(900.0)).reshape(30, 30)
    parts = [matrix @ matrix, *np.linalg.eigh(matrix + matrix.T), np.exp(matrix), np.log1p(matrix**2)]
    single = torch.from_numpy(matrix.astype(np.float32))
    parts += [(single @ single).numpy(), single.sigmoid().numpy(), single.log_softmax(dim=1).numpy()]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:8]


def digest(result: Result) -> dict[str, Any]:
    """A run in a few numbers; the course has every batch of it, to the last bit."""
    course = hashlib.sha256()
    for row in result.history:
        numbers = (row.calls, row.best, row.batch_best, row.mean, row.mean_length, row.failures)
        course.update(struct.pack("6d", *(np.nan if x is None else float(x) for x in numbers)))
    best = result.best
    return {
        "calls": result.calls,
        "best": None if best is None else best.reward,
        "at": None if best is None else best.call,
        "design": None if best is None else best.design.to_json(),
        "course": course.hexdigest()[:16],
    }


def noisy(task: Task) -> Task:
    """The task with normal noise."""

    def objective(designs: Any, seeds: Any) -> Any:
        assert task.batch_objective is not None
        noise = [np.random.default_rng(int(seed)).standard_normal() for seed in seeds]
        return np.asarray(task.batch_objective(designs)) + 0.1 * np.array(noise)

    return Task(task.space, batch_objective=objective, stochastic=True, name="noisy")


def ladder() -> Task:
    """The example with an open sequence."""
    import ladder_filter

    return ladder_filter.ladder_task(ladder_filter.butterworth())


def coating() -> Task:
    """The example with bounds that depend on values."""
    import mirror_coating

    return mirror_coating.coating_task()


def problem() -> Task:
    """A regression problem of the paper."""
    from discodso.tasks.regression.problems import problem_task, problems

    return problem_task(problems("Jin-1")[0])


def tree(method: Any) -> Result:
    """The paper's tree task."""
    from discodso import search_policy

    options: Any = {"episodes": 5, "max_nodes": 15, "test_seeds": range(2), "top": 10}
    return search_policy("CartPole-v1", budget=600, seed=3, method=method, preset="paper", **options).search


def fitted(**options: Any) -> dict[str, Any]:
    """The estimator."""
    from discodso import DisCoRegressor

    rng = np.random.default_rng(1)
    X = rng.uniform(0.5, 3, (60, 2))
    y = 0.5 * X[:, 1] * X[:, 0] ** 2 + np.sin(X[:, 1])
    model = DisCoRegressor(budget=4000, random_state=1, **options).fit(X, y)
    return {**digest(model.result_), "equation": str(model), "calls_": model.calls_}


def policy(environment: str, **options: Any) -> dict[str, Any]:
    """A whole policy search."""
    from discodso import search_policy

    found = search_policy(environment, seed=2, test_seeds=range(20), **options)
    return {
        **digest(found.search),
        "test": float(found.test_returns.sum()),
        "nodes": len(found.policy),
        "episodes": found.episodes,
    }


def restarting() -> DisCoSettings:
    """The default for trees, beginning anew when no better tree has come for 200 calls."""
    from discodso.tasks.policies.policy_kind import default_settings

    default = default_settings(budget=800)
    return replace(default, restarts=RestartSettings(batches=10, patience=0.0, least_gain=0.005))


def learning(budget: int) -> DisCoSettings:
    """The default with a network that learns, and without a screen."""
    network = NetworkSettings(learn_scale=True, min_scale=0.01, inputs=("neighbours", "position"))
    learner = LearnerSettings(learning_rate=0.005, entropy_coefficient=0.05)
    return replace(preset("default", budget=budget), network=network, learner=learner, screen=None)


METHODS: dict[str, Callable[[], Any]] = {
    "paper": lambda: preset("paper"),
    "random": lambda: RandomSettings(batch_size=100),
    "gp": lambda: GPSettings(population=100),
    **{
        f"decoupled-{kind}-{inner}": lambda skeletons=skeletons, inner=inner: DecoupledSettings(
            skeletons, inner, inner_calls=40, in_flight=10
        )
        for kind, skeletons in (("rl", DisCoSettings(batch_size=10)), ("gp", GPSettings(population=20)))
        for inner in ("bfgs", "anneal", "evo")
    },
}
TASKS: dict[str, Callable[[], Task]] = {
    "bitstring": lambda: bitstring(6, 0.5, "f1", 1),
    "ladder": ladder,
    "coating": coating,
    "problem": problem,
}


def plain(task: Callable[[], Task], budget: int = 1500, **options: Any) -> dict[str, Any]:
    """One search."""
    return digest(search(task(), budget=budget, seed=3, **options))


def resumed(budget: int = 1500) -> dict[str, Any]:
    """The default in two parts, by way of a folder."""
    from discodso import resume

    task = TASKS["ladder"]()
    with tempfile.TemporaryDirectory() as place:
        search(task, budget=budget // 2, seed=3, method=preset("default", budget=budget), out=f"{place}/run")
        return digest(resume(f"{place}/run", budget=budget, task=task))


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    **{f"{name}, default": partial(plain, task) for name, task in TASKS.items()},
    **{
        f"{name}, {method}": lambda task=task, build=build: plain(task, method=build())
        for name, task in TASKS.items()
        for method, build in METHODS.items()
    },
    **{f"tree, {method}": lambda build=build: digest(tree(build())) for method, build in METHODS.items()},
    "bitstring, bo": lambda: plain(TASKS["bitstring"], 30, method=BOSettings()),
    "bitstring with noise, default": lambda: plain(lambda: noisy(TASKS["bitstring"]())),
    "bitstring with noise, paper": lambda: plain(lambda: noisy(TASKS["bitstring"]()), preset="paper"),
    "ladder, default with restarts": lambda: plain(TASKS["ladder"], 3000),
    "ladder, network with restarts": lambda: plain(TASKS["ladder"], 3000, method=learning(3000)),
    **{
        f"{name}, network": lambda task=task: plain(task, method=learning(1500))
        for name, task in TASKS.items()
    },
    "ladder, default, in two parts": resumed,
    "fit, default": fitted,
    "fit, paper": lambda: fitted(preset="paper"),
    "fit, validation": lambda: fitted(selection="validation"),
    "policy CartPole": lambda: policy("CartPole-v1", budget=600, episodes=10),
    "policy MountainCar, common episodes": lambda: policy(
        "MountainCar-v0", budget=600, episodes=20, common_episodes=True
    ),
    "policy Acrobot, restarts": lambda: policy("Acrobot-v1", budget=800, episodes=8, method=restarting()),
    "policy CartPole, paper": lambda: policy("CartPole-v1", budget=600, episodes=10, preset="paper"),
    "policy LunarLander": lambda: policy("LunarLander-v3", budget=60, episodes=4),
}


def record(cases: dict[str, Any] = CASES) -> dict[str, Any]:
    """All golden runs as they go now."""
    return {name: run() for name, run in cases.items()}


def write(cases: dict[str, Any] = CASES) -> None:
    """Replace the records of these cases on this kind of machine: only after a change that is meant to move them,
    and listed in CHANGELOG.md. On other kinds they are forgotten where they moved.
    """
    machines, found = json.loads(RECORDS.read_text()), record(cases)
    here = machines.setdefault(fingerprint(), {})
    moved = [name for name in found if here.get(name, found[name]) != found[name]]
    for runs in machines.values():
        for name in moved:
            runs.pop(name, None)
    here |= found
    RECORDS.write_text(json.dumps(machines, indent=1) + "\n")


if __name__ == "__main__":
    write({name: CASES[name] for name in sys.argv[1:]} or CASES)
