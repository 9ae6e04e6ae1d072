"""Find an L-C-R ladder filter of unknown length for a wanted frequency response.

How many elements, which ones, in series or in shunt, and what values: structure and numbers are searched
together, one circuit simulation for each candidate. Run it with

    python examples/ladder_filter.py --budget 20000 --plot ladder.png
"""

from __future__ import annotations

import argparse

import numpy as np

from discodso import Design, ForbiddenChild, OpenSequence, Space, Task, Token, search

IMPEDANCE = 50.0  # ohms, of source and load
FREQUENCIES = np.logspace(5, 7, 61)  # Hz
RANGES = {"R": (1.0, 1e4), "L": (1e-8, 1e-4), "C": (1e-12, 1e-7)}  # ohm, henry, farad
KINDS = [f"{place}_{element}" for place in ("series", "shunt") for element in RANGES]


def response(design: Design) -> np.ndarray:
    """Transmission |S21| at all frequencies, from the product of the elements' chain matrices."""
    s = 2j * np.pi * FREQUENCIES
    a, b, c, d = np.ones_like(s), np.zeros_like(s), np.zeros_like(s), np.ones_like(s)
    for kind, value in design:
        place, element = kind.split("_")
        z = {"R": value + 0 * s, "L": value * s, "C": 1 / (value * s)}[element]
        if place == "series":
            b, d = a * z + b, c * z + d
        else:
            a, c = a + b / z, c + d / z
    return np.abs(2 / (a + b / IMPEDANCE + c * IMPEDANCE + d))


def butterworth(order: int = 3, cutoff: float = 1e6) -> np.ndarray:
    """The wanted response: a Butterworth low-pass."""
    return 1 / np.sqrt(1 + (FREQUENCIES / cutoff) ** (2 * order))


def decibels(gain: np.ndarray) -> np.ndarray:
    """Gain in dB, not below -80 dB: nobody hears the rest."""
    return 20 * np.log10(np.maximum(gain, 1e-4))


def ladder_task(wanted: np.ndarray, max_elements: int = 8) -> Task:
    """Reward 1 / (1 + e), with e the root mean square error in dB, less a little for every element."""
    tokens = [Token(kind, range=RANGES[kind[-1]], scale="log") for kind in KINDS]
    # Two equal elements in a row are one element of another value.
    rules = [ForbiddenChild(kind, kind) for kind in KINDS]
    space = Space(tokens, OpenSequence(1, max_elements), rules)
    target = decibels(wanted)

    def objective(design: Design) -> float:
        error = np.sqrt(np.mean((decibels(response(design)) - target) ** 2))
        return 1 / (1 + error) - 0.005 * len(design)

    return Task(space, objective, name="ladder filter")


def plot(wanted: np.ndarray, design: Design, path: str) -> None:
    """Wanted and found response, as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.semilogx(FREQUENCIES, decibels(wanted), "k--", label="wanted")
    axes.semilogx(FREQUENCIES, decibels(response(design)), color="tab:blue", label="found")
    axes.set(xlabel="frequency in Hz", ylabel="transmission in dB", title="\n".join(describe(design)))
    axes.title.set_fontsize(9)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def describe(design: Design) -> list[str]:
    """The circuit from source to load, four elements to a line."""
    units = {"R": "Ω", "L": "H", "C": "F"}
    parts = [f"{kind.replace('_', ' ')} {value:.3g} {units[kind[-1]]}" for kind, value in design]
    return [" - ".join(parts[i : i + 4]) for i in range(0, len(parts), 4)]


def main(arguments: list[str] | None = None) -> float:
    """Search, print the circuit, and draw it if asked; returns the reward."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="PNG")
    parser.add_argument("--out", metavar="FOLDER", help="folder for the run; `discodso report` shows it")
    options = parser.parse_args(arguments)
    wanted = butterworth()
    result = search(ladder_task(wanted), budget=options.budget, seed=options.seed, out=options.out)
    assert result.best is not None
    design = result.best.design
    error = np.sqrt(np.mean((decibels(response(design)) - decibels(wanted)) ** 2))
    print(
        f"{len(design)} elements, {error:.3f} dB from the wanted response, after {result.calls} simulations:"
    )
    print("\n".join(f"  {line}" for line in describe(design)))
    if options.plot:
        plot(wanted, design, options.plot)
        print(f"picture: {options.plot}")
    return result.best.reward


if __name__ == "__main__":
    main()
