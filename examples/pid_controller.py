"""A controller for a resonant plant: PID, and as many filters as it takes, each with its own settings.

    python examples/pid_controller.py --plot controller.png

A design is a chain of parts; a notch has a frequency and a width, a lead a frequency and a ratio. A loop must be
stable, keep a distance from the critical point, and not amplify noise; the reward is larger the better it follows
a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from example import command

from discodso import Design, OpenSequence, Real, Repeat, Space, StartsWith, Task, Token

FREQUENCIES = np.geomspace(1e-2, 1e3, 400)  # rad/s
PLANT = np.poly1d([40.0]), np.poly1d([1, 1.0]) * np.poly1d([1, 0.12, 36.0]) * np.poly1d([0.05, 1])
MOST_SENSITIVE, MOST_NOISE = 1.7, 20.0  # |S| and |C S|

GAIN, TIME = Real(0.01, 20, log=True), Real(0.05, 20, log=True)
SPACE = Space(
    [
        Token("pi", gain=GAIN, time=TIME),
        Token("pid", gain=GAIN, time=TIME, ahead=Real(0.005, 5, log=True)),
        Token(
            "notch",
            frequency=Real(1, 100, log=True),
            width=Real(0.01, 2, log=True),
            depth=Real(0.001, 1, log=True),
        ),
        Token("lead", frequency=Real(0.3, 100, log=True), ratio=Real(1.2, 30, log=True)),
        Token("lowpass", frequency=Real(3, 300, log=True), damping=Real(0.3, 1.5)),
    ],
    OpenSequence(1, 6),
    [StartsWith(("pi", "pid")), Repeat(("pi", "pid"), at_least=1, at_most=1)],
)


def transfer(part: Any) -> tuple[np.poly1d, np.poly1d]:
    """Numerator and denominator of a part, in s."""
    match part.name:
        case "pi":
            return part.gain * np.poly1d([part.time, 1]), np.poly1d([part.time, 0])
        case "pid":
            slow = np.poly1d([part.ahead / 20, 1])
            return part.gain * np.poly1d([part.time * part.ahead, part.time, 1]), np.poly1d(
                [part.time, 0]
            ) * slow
        case "notch":
            w, width = part.frequency, part.width
            top, bottom = ([1, 2 * scale * width * w, w * w] for scale in (part.depth, 1))
            return np.poly1d(top), np.poly1d(bottom)
        case "lead":
            root = part.ratio**0.5
            return np.poly1d([root / part.frequency, 1]), np.poly1d([1 / (root * part.frequency), 1])
    w = part.frequency
    return np.poly1d([w * w]), np.poly1d([1, 2 * part.damping * w, w * w])


def loop(design: Design) -> tuple[np.poly1d, np.poly1d, np.poly1d, np.poly1d]:
    """Numerators and denominators of the controller, and of the open loop."""
    top, bottom = np.poly1d([1.0]), np.poly1d([1.0])
    for part in design:
        above, below = transfer(part)
        top, bottom = top * above, bottom * below
    return top, bottom, top * PLANT[0], bottom * PLANT[1]


def reward(design: Design) -> float:
    """1 / (1 + 3 times the squared error of a step), less what breaks the limits, less a little for a part."""
    top, bottom, above, below = loop(design)
    roots = np.roots((above + below).coeffs)
    price = 0.005 * len(design)
    if roots.real.max() >= -1e-6:
        return -0.2 * min(1.0, float(roots.real.max())) - price
    s = 1j * FREQUENCIES
    sensitivity = below(s) / (above(s) + below(s))
    noise = np.abs(top(s) / bottom(s) * sensitivity).max()
    error = np.trapezoid(np.abs(sensitivity / s) ** 2, FREQUENCIES) / np.pi
    over = max(0.0, np.abs(sensitivity).max() - MOST_SENSITIVE) + max(0.0, np.log(noise / MOST_NOISE))
    return float(1 / (1 + 3 * error) - 0.3 * min(over, 2.0)) - price


def task() -> Task:
    """The search for a controller."""
    return Task(SPACE, reward, worst_reward=-1.0, name="controller")


def step_response(design: Design, times: np.ndarray) -> np.ndarray:
    """The output after a step of the reference."""
    _, _, above, below = loop(design)
    closed = above + below
    poles = closed.roots
    slopes = closed.deriv()
    weights = np.array([above(p) / (slopes(p) * p) for p in poles])
    return (above(0) / closed(0) + (weights[:, None] * np.exp(np.outer(poles, times))).sum(axis=0)).real


def tell(design: Design) -> str:
    """The limits that it keeps."""
    top, bottom, above, below = loop(design)
    s = 1j * FREQUENCIES
    sensitivity = below(s) / (above(s) + below(s))
    noise = np.abs(top(s) / bottom(s) * sensitivity).max()
    return f"largest sensitivity {np.abs(sensitivity).max():.2f}, noise gain {noise:.1f}"


def draw(design: Design, axes: Any) -> None:
    """The response to a step."""
    times = np.linspace(0, 6, 600)
    axes.axhline(1, color="0.6", linewidth=1)
    axes.plot(times, step_response(design, times), color="tab:blue")
    axes.set(xlabel="seconds", ylabel="output", title=" - ".join(design.tokens))


def main(arguments: list[str] | None = None) -> float:
    """The command."""
    return command(__doc__.splitlines()[0], task(), tell, draw, 10_000, arguments)


if __name__ == "__main__":
    main()
