"""A schedule of jobs on two machines, where power costs more by day and some jobs wait for others.

    python examples/job_schedule.py --plot schedule.png

A design is the order in which jobs are placed. Each job carries the machine that it goes to and how long it waits
after it could begin. Rules say that every job comes once, and what must come before what.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from example import command

from discodso import Choice, Design, FixedSequence, Needs, Real, Repeat, Space, Task, Token

HOURS = {
    "cut": 2.0,
    "drill": 1.5,
    "mill": 3.0,
    "paint": 2.5,
    "dry": 4.0,
    "pack": 1.0,
    "test": 1.5,
    "ship": 0.5,
}
POWER = {
    "cut": 3.0,
    "drill": 2.0,
    "mill": 5.0,
    "paint": 1.5,
    "dry": 4.0,
    "pack": 0.5,
    "test": 1.0,
    "ship": 0.2,
}
DUE = {"test": 13.0, "pack": 16.0, "ship": 18.0}
BEFORE = {"drill": "cut", "paint": "mill", "dry": "paint", "test": "drill", "pack": "dry", "ship": "pack"}
SLOWER = 1.25  # the second machine, which takes two thirds of the power

SPACE = Space(
    [Token(name, machine=Choice("A", "B"), wait=Real(0, 6)) for name in HOURS],
    FixedSequence(len(HOURS)),
    [*(Repeat(name, 1, 1) for name in HOURS), *(Needs(job, first) for job, first in BEFORE.items())],
)


def price(hour: np.ndarray) -> np.ndarray:
    """Of power: high from 6 to 12, lower by night."""
    return 1 + 1.5 * np.exp(-(((hour - 9) / 2.5) ** 2)) - 0.6 * np.exp(-(((hour - 15) / 2) ** 2))


def schedule(design: Design) -> dict[str, tuple[str, float, float]]:
    """Machine, begin and end of every job."""
    free, done = {"A": 0.0, "B": 0.0}, dict[str, tuple[str, float, float]]()
    for part in design:
        needed = done[BEFORE[part.name]][2] if part.name in BEFORE else 0.0
        begin = max(free[part.machine], needed) + part.wait
        end = begin + HOURS[part.name] * (SLOWER if part.machine == "B" else 1)
        done[part.name] = part.machine, begin, end
        free[part.machine] = end
    return done


def reward(design: Design) -> float:
    """Minus the price of power, and of being late."""
    cost = 0.0
    for name, (machine, begin, end) in schedule(design).items():
        hours = np.linspace(begin, end, 20)
        cost += POWER[name] * (2 / 3 if machine == "B" else 1) * float(np.mean(price(hours))) * (end - begin)
        cost += 4 * max(0.0, end - DUE.get(name, 24.0))
    return -cost / 20


def task() -> Task:
    """The search for a schedule."""
    return Task(SPACE, reward, name="schedule")


def draw(design: Design, axes: Any) -> None:
    """Bars on a line for each machine, the price behind them."""
    done = schedule(design)
    hours = np.linspace(0, max(end for _, _, end in done.values()) + 0.5, 300)
    height = 2 * price(hours) / price(hours).max() - 0.5
    axes.fill_between(hours, -0.5, height, color="0.9", label="price of power")
    for name, (machine, begin, end) in done.items():
        row = "AB".index(machine)
        axes.barh(row, end - begin, left=begin, height=0.5, color="#a9c4e4", edgecolor="tab:blue")
        axes.text((begin + end) / 2, row, name, ha="center", va="center", fontsize=8)
    axes.set(yticks=(0, 1), yticklabels=("A", "B"), xlabel="hour", ylabel="machine", ylim=(-0.5, 1.5))
    axes.legend(loc="upper right")


def tell(design: Design) -> str:
    """When all is done."""
    return f"done at hour {max(end for _, _, end in schedule(design).values()):.1f}"


def main(arguments: list[str] | None = None) -> float:
    """The command."""
    return command(__doc__.splitlines()[0], task(), tell, draw, 10_000, arguments)


if __name__ == "__main__":
    main()
