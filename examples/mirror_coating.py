"""Find a stack of thin films on glass that reflects blue light and lets green and red pass: a dichroic mirror.

How many layers, of which materials, how thick: structure and numbers are searched together. All layers together
must stay below a thickness, so that each layer bounds those after it. Run it with

    python examples/mirror_coating.py --budget 20000 --plot mirror.png
"""

from __future__ import annotations

import argparse

import numpy as np

from discodso import Bounds, Design, DesignBatch, ForbiddenChild, OpenSequence, Space, Task, Token, search

WAVELENGTHS = np.linspace(400, 700, 61)  # nm
WANTED = np.where(WAVELENGTHS < 500, 1.0, 0.0)  # reflectance
COUNTS = np.abs(WAVELENGTHS - 500) > 15  # where it may rise or fall nothing is asked
MATERIALS = {"MgF2": 1.38, "SiO2": 1.46, "Al2O3": 1.77, "ZrO2": 2.1, "TiO2": 2.4}  # refractive indices
GLASS = 1.52
THICKNESS = (10.0, 200.0)  # nm, of a layer
MAX_TOTAL = 1200.0  # nm, of the stack


class TotalThickness(Bounds):
    """A layer may be as thick as those before it have left."""

    def interval(self, prefix):
        """See `Bounds.interval`."""
        shape = (len(prefix), len(prefix.library))
        left = MAX_TOTAL - np.nansum(prefix.values, axis=1)
        low = np.broadcast_to(prefix.library.low, shape)
        return low, np.minimum(prefix.library.high, left[:, None])


def reflectance(indices: np.ndarray, thickness: np.ndarray) -> np.ndarray:
    """Reflectances [B, W] at normal incidence, from air, of stacks indices[B, T]; thickness 0 is no layer.

    The admittance of glass and the layers on it, from the glass outwards (characteristic matrices).
    """
    field = np.ones((len(indices), len(WAVELENGTHS)), complex)
    magnetic = np.full_like(field, GLASS)
    for n, d in zip(indices.T[::-1, :, None], thickness.T[::-1, :, None], strict=True):
        phase = 2 * np.pi * n * d / WAVELENGTHS
        cosine, sine = np.cos(phase), 1j * np.sin(phase)
        field, magnetic = cosine * field + sine / n * magnetic, n * sine * field + cosine * magnetic
    return np.abs((field - magnetic) / (field + magnetic)) ** 2


def spectra(designs: DesignBatch) -> np.ndarray:
    """Reflectances [B, W] of designs."""
    index_of = np.array([MATERIALS.get(name, 1.0) for name in designs.library.names])
    used = ~np.isnan(designs.values)
    indices = np.where(used, index_of[designs.tokens], 1.0)
    return reflectance(indices, np.where(used, designs.values, 0.0))


def rewards(designs: DesignBatch) -> np.ndarray:
    """1 less the root mean square error of the reflectance, less a little for every layer."""
    error = np.sqrt(np.mean((spectra(designs) - WANTED)[:, COUNTS] ** 2, axis=1))
    return 1 - error - 0.002 * designs.design_lengths()


def coating_task(max_layers: int = 14) -> Task:
    """Layers from the air to the glass; two of one material in a row would be one thicker layer."""
    tokens = [Token(name, range=THICKNESS) for name in MATERIALS]
    rules = [ForbiddenChild(name, name) for name in MATERIALS]
    space = Space(tokens, OpenSequence(1, max_layers), rules, bounds=TotalThickness())
    return Task(space, batch_objective=rewards, name="mirror coating")


def plot(design: Design, path: str) -> None:
    """Wanted and found reflectance, as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    (found,) = spectra(coating_task().space.encode([design]))
    axes.plot(WAVELENGTHS, np.where(COUNTS, WANTED, np.nan), "k--", label="wanted")
    axes.plot(WAVELENGTHS, found, color="tab:blue", label="found")
    axes.set(xlabel="wavelength in nm", ylabel="reflectance", title=f"{len(design)} layers")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> float:
    """Search, print the stack, and draw its spectrum if asked; returns the reward."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="PNG")
    parser.add_argument("--out", metavar="FOLDER", help="folder for the run; `discodso report` shows it")
    options = parser.parse_args(arguments)
    result = search(coating_task(), budget=options.budget, seed=options.seed, out=options.out)
    assert result.best is not None
    design = result.best.design
    total = sum(value for _, value in design)
    print(
        f"{len(design)} layers, {total:.0f} nm, reward {result.best.reward:.4f} after {result.calls} calls:"
    )
    print("  air - " + " - ".join(f"{name} {value:.1f} nm" for name, value in design) + " - glass")
    if options.plot:
        plot(design, options.plot)
        print(f"picture: {options.plot}")
    return result.best.reward


if __name__ == "__main__":
    main()
