"""How good can a low-pass filter be with how few parts? The front of two objectives, each filter with its circuit.

The filter of ladder_filter.py, with its error and the number of its parts as two objectives, and a requirement: no
part may be larger than a shop has. Run it with

    python examples/filter_front.py --budget 5000 --plot front.png
"""

from __future__ import annotations

import argparse

import numpy as np
from ladder_filter import butterworth, decibels, describe, ladder_task, response

from discodso import Design, Measured, Task, search

TARGET = decibels(butterworth())
LARGEST = {"R": 1e3, "L": 2e-5, "C": 1e-8}  # ohm, henry, farad


def error(design: Design) -> float:
    """Root mean square error of the response, in dB."""
    return float(np.sqrt(np.mean((decibels(response(design)) - TARGET) ** 2)))


def objective(design: Design) -> Measured:
    """Error and parts, and by how many decades each part is too large."""
    beyond = {"R": 0.0, "L": 0.0, "C": 0.0}
    for kind, value in design:
        beyond[kind[-1]] += max(0.0, float(np.log10(value / LARGEST[kind[-1]])))
    return Measured({"error": error(design), "parts": len(design)}, violation=beyond)


def front_task() -> Task:
    """Two objectives, both to be small. Hypervolumes count down to an error of 30 dB and 9 parts."""
    return Task(
        ladder_task(butterworth()).space,
        objective,
        objectives=("error", "parts"),
        directions=("min", "min"),
        reference=(30, 9),
        name="filters by error and parts",
    )


def main(arguments: list[str] | None = None) -> float:
    """Search, print the front, and draw it if asked; returns the hypervolume."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="PNG")
    parser.add_argument("--out", metavar="FOLDER", help="folder for the run; `discodso report` shows it")
    options = parser.parse_args(arguments)
    result = search(front_task(), budget=options.budget, seed=options.seed, out=options.out)
    for scored in result.front:
        off, parts = scored.goals
        print(f"{parts:.0f} parts, {off:.3f} dB from the wanted response:")
        print("\n".join(f"  {line}" for line in describe(scored.design)))
    most = max(result.broken, key=lambda name: result.broken[name])
    print(
        f"hypervolume {result.hypervolume:.1f}; {result.feasible_count} of {result.calls} are feasible, ",
        end="",
    )
    print(f"most others have too large {most}")
    if options.plot:
        result.plot_front(options.plot)
        print(f"picture: {options.plot}")
    return result.hypervolume or 0.0


if __name__ == "__main__":
    main()
