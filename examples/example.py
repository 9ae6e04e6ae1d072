"""What the examples share: a command that searches, prints the best design and draws it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from discodso import Design, Task, search


def command(
    about: str,
    task: Task,
    tell: Callable[[Design], str],
    draw: Callable[[Design, Any], None],
    budget: int,
    arguments: list[str] | None = None,
) -> float:
    """Search, print the best design, draw it if asked; returns its reward.

    Args:
        about: a line of help.
        task: what to search.
        tell: a design in words.
        draw: a design on the axes of Matplotlib.
        budget: objective calls by default.
        arguments: of the command line.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--budget", type=int, default=budget)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="PNG")
    parser.add_argument("--out", metavar="FOLDER", help="folder for the run; `discodso report` shows it")
    options = parser.parse_args(arguments)
    result = search(task, budget=options.budget, seed=options.seed, out=options.out)
    assert result.best is not None
    design = result.best.design
    print(f"reward {result.best.reward:.4f} after {result.calls} calls:")
    print(f"  {task.space.render(design)}")
    print(f"  {tell(design)}")
    if options.plot:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
        draw(design, axes)
        axes.grid(alpha=0.3)
        figure.savefig(options.plot, dpi=120)
        plt.close(figure)
        print(f"picture: {options.plot}")
    return result.best.reward
