"""Run folders of every kind, small and quick, for the tests of reports."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from discodso import (
    Choice,
    DisCoSettings,
    Integer,
    NetworkSettings,
    OpenSequence,
    RandomSettings,
    Real,
    Space,
    Task,
    Token,
    Tree,
    search,
)
from discodso.cli.main import app
from discodso.tasks.bitstring import bitstring

NASTY = "</script><script>window.hacked=1</script>"
IMAGE = "<img src=x onerror=window.hacked=1>"
EMOJI = "🎉 \u2028 ' \" & ${x} {{x}} \\u003c"
SMALL = DisCoSettings(batch_size=50, network=NetworkSettings(units=8))


def command(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def bitstrings(folder: Path, seeds: int = 2) -> list[Path]:
    """Two methods, some seeds."""
    made = []
    for name, method in (("disco", SMALL), ("random", RandomSettings(50))):
        for seed in range(seeds):
            made.append(folder / f"{name}-{seed}")
            search(bitstring(length=5, seed=seed), budget=500, seed=seed, method=method, out=made[-1])
    return made


def regression(folder: Path, columns: tuple[str, ...] = ("speed", "mass"), target: str = "energy") -> Path:
    """An equation by the command line, from a table with any column names."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (60, len(columns)))
    y = X[:, 0] ** 2 * (X[:, 1] if len(columns) > 1 else 1.0) * 0.5
    folder.parent.mkdir(parents=True, exist_ok=True)
    table = folder.parent / f"{folder.name}.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[*columns, target], *np.column_stack((X, y)).tolist()])
    command("fit", table, "--target", target, "--budget", 1000, "--out", folder, "--json")
    return folder


def policy(folder: Path) -> Path:
    command("policy", "CartPole-v1", "--budget", 300, "--episodes", 5, "--out", folder, "--json")
    return folder


def own_task(
    folder: Path, names: tuple[str, ...] = ("resistor", "coil", "wire"), title: str = "circuit"
) -> Path:
    """A task of one's own that fails now and then."""
    first, second, third = names
    space = Space(
        [Token(first, range=(1, 1e4), scale="log"), Token(second, range=(0, 1)), Token(third)],
        OpenSequence(1, 6),
    )

    def objective(design):
        if design.tokens[0] == third:
            raise ValueError(f"{third} cannot come first")
        return 1 / (1 + sum((v - 0.5) ** 2 for v in design.values if v is not None)) - 0.01 * len(design)

    search(Task(space, objective, name=title), budget=600, method=SMALL, out=folder)
    return folder


def tree_task(
    folder: Path, names: tuple[str, ...] = ("mix", "turn", "source"), length: tuple[int, int] = (5, 15)
) -> Path:
    """A task of one's own whose designs are trees with several values; some fail."""
    first, second, third = names
    values = {
        "gain": Real(0, 1),
        "delay": Integer(1, 1000),
        "mode": Choice("an option with a long name", "b"),
    }
    space = Space(
        [Token(first, 3, **values, phase=Real(-3, 3)), Token(second, 1), Token(third, range=(0, 1))],
        Tree(*length),
    )

    def objective(design):
        if design.tokens[0] == second:
            raise ValueError("no turn comes first")
        return sum(part["gain"] for part in design if part.name == first)

    search(Task(space, objective, name="tree"), budget=300, method=RandomSettings(50), out=folder)
    return folder
