"""Twenty laws of physics, chemistry and engineering, read off noisy tables: is the law itself found?

200 rows, targets with normal noise of 1 % and 10 % of their standard deviation. What is found is compared with the
law itself, without noise, on inputs twice as large: 1 / (1 + NMSE) there, and its length beside the law's. A law
counts as found if that reward is at least 0.999 and what is found is no longer than the law by a half.

    python benchmarks/noisy_laws.py          makes what results/noisy_laws.jsonl lacks, and its table

The rule of choice was tuned on the laws with odd numbers, seeds 0 and 1; even numbers and other seeds only show.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import peers
from harness import Benchmark, Key, Record, main, markdown

from discodso import DisCoRegressor
from discodso.base.arrays import Floats
from discodso.tasks.regression.losses import prediction_reward

ROWS, WIDE_ROWS = 200, 1000
CALLS = 100_000
NOISES = (0.01, 0.1)
TUNED_SEEDS = SEEDS = 2
SYMBOLS = "add sub mul div sin cos exp log sqrt square constant variable".split()  # of pyoperon


@dataclass(frozen=True)
class Law:
    """A formula, the ranges of its inputs, and how many tokens it takes."""

    name: str
    formula: Callable[..., Floats]
    ranges: tuple[tuple[float, float], ...]
    length: int

    def data(self, noise: float, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
        """A noisy table, and one without noise whose inputs are twice as large."""
        rng = np.random.default_rng([seed, sum(map(ord, self.name))])
        low, high = np.array(self.ranges).T
        X, wide = (
            rng.uniform(low, high, (ROWS, len(low))),
            rng.uniform(2 * low, 2 * high, (WIDE_ROWS, len(low))),
        )
        y = self.formula(*X.T)
        return X, y + noise * y.std() * rng.standard_normal(ROWS), wide, self.formula(*wide.T)


UP = (1.0, 5.0)
LAWS = (
    Law("Coulomb", lambda q, p, e, r: q * p / (12.566 * e * r**2), (UP,) * 4, 10),
    Law("two potentials", lambda g, m, r, s: g * m * (1 / s - 1 / r), (UP,) * 4, 11),
    Law("kinetic energy", lambda m, v, u: 0.5 * m * (v**2 + u**2), (UP,) * 3, 9),
    Law("mass at speed", lambda m, v, c: m / np.sqrt(1 - v**2 / c**2), (UP, (1, 2), (3, 10)), 10),
    Law("ideal gas", lambda n, t, v: 8.314 * n * t / v, (UP,) * 3, 7),
    Law("lens", lambda d, e, n: 1 / (1 / d + n / e), (UP,) * 3, 9),
    Law("pendulum", lambda k, g: 6.2832 * np.sqrt(k / g), (UP,) * 2, 6),
    Law("Doppler", lambda w, v, c: w / (1 - v / c), (UP, (1, 2), (3, 10)), 7),
    Law("bell", lambda t, s: np.exp(-((t / s) ** 2) / 2), ((0.5, 3), (1, 3)), 7),
    Law("falling speed", lambda m, g, r, a: np.sqrt(2 * m * g / (r * a)), (UP,) * 4, 10),
    Law("throw", lambda v, t, g: v**2 * np.sin(2 * t) / g, (UP, (0.1, 0.7), UP), 9),
    Law("enzyme", lambda v, s, k: v * s / (k + s), (UP,) * 3, 7),
    Law("reaction rate", lambda a, e, t: a * np.exp(-e / t), (UP,) * 3, 8),
    Law("parallel resistors", lambda r, s: r * s / (r + s), (UP,) * 2, 7),
    Law("pressure of a flow", lambda p, d, v, h: p + 0.5 * d * v**2 + 9.81 * d * h, (UP,) * 4, 14),
    Law("spectral line", lambda r, n, m: r * (1 / n**2 - 1 / m**2), (UP, (1, 2), (2.5, 5)), 11),
    Law("decay with background", lambda n, k, t, b: n * np.exp(-k * t) + b, (UP, (0.2, 1), UP, UP), 10),
    Law(
        "law of cosines",
        lambda a, b, c: a**2 + b**2 - 2 * a * b * np.cos(c),
        (UP, UP, (0.2, 1.5)),
        13,
    ),
    Law("beam", lambda f, k, e, i: f * k**3 / (3 * e * i), (UP,) * 4, 12),
    Law("van der Waals", lambda t, v, a, b: t / (v - b) - a / v**2, (UP, (3, 6), UP, (0.5, 1)), 10),
)


METHODS = ("default", "pyoperon")
KEYS = [
    {"method": method, "law": law, "noise": noise, "seed": seed}
    for method, law, noise, seed in product(METHODS, range(1, len(LAWS) + 1), NOISES, range(SEEDS))
]


def run(key: Key) -> Record:
    """One law from one table."""
    law, noise, seed = LAWS[key["law"] - 1], key["noise"], key["seed"]
    X, y, wide, truth = law.data(noise, seed)
    started = time.process_time()
    if key["method"] == "pyoperon":
        other = peers.operon(X, y, SYMBOLS, seed, CALLS)
        values, length = other.predict(wide), int(other.stats_["model_length"])
        text = other.get_model_string(other.model_, precision=4)
    else:
        own = DisCoRegressor(budget=CALLS, random_state=seed).fit(X, y)
        with np.errstate(all="ignore"):
            values, length, text = own.predict(wide), len(own.expression_), str(own)
    found = prediction_reward(values, truth)
    return {
        "reward": round(found, 5),
        "length": length,
        "found": bool(found >= 0.999 and length <= 1.5 * law.length),
        "cpu_seconds": round(time.process_time() - started, 2),
        "expression": text,
    }


def table(records: Sequence[Record]) -> str:
    """Means, tuned and shown laws and seeds apart, and then by law."""
    kinds: dict[str, Callable[[Record], bool]] = {
        "odd laws, seeds 0 and 1 (tuned on)": lambda r: r["law"] % 2 == 1 and r["seed"] < TUNED_SEEDS,
        "even laws, seeds 0 and 1": lambda r: r["law"] % 2 == 0 and r["seed"] < TUNED_SEEDS,
        "all laws, other seeds": lambda r: r["seed"] >= TUNED_SEEDS,
    }
    head = "method|noise|laws|runs|found|reward|length (law's)|CPU seconds".split("|")
    rows = []
    for (label, belongs), noise, method in product(kinds.items(), NOISES, METHODS):
        own = [r for r in records if belongs(r) and r["noise"] == noise and r["method"] == method]
        if not own:
            continue
        share, score, length, seconds = (
            float(np.mean([r[key] for r in own])) for key in ("found", "reward", "length", "cpu_seconds")
        )
        true = float(np.mean([LAWS[r["law"] - 1].length for r in own]))
        row = f"{method}|{noise:.0%}|{label}|{len(own)}|**{share:.0%}**|{score:.3f}"
        rows.append(f"{row}|{length:.1f} ({true:.1f})|{seconds:.1f}".split("|"))
    by_law = []
    for number, law in enumerate(LAWS, start=1):
        cells = []
        for method, noise in product(METHODS, NOISES):
            own = [r for r in records if (r["law"], r["noise"], r["method"]) == (number, noise, method)]
            found, score = sum(r["found"] for r in own), float(np.mean([r["reward"] for r in own] or [0]))
            cells.append(f"{found} of {len(own)}, {score:.3f}")
        by_law.append([f"{number} {law.name}", f"{law.length}", *cells])
    names = [f"{method}, {noise:.0%}" for method, noise in product(METHODS, NOISES)]
    lines = [
        f"Made by `python benchmarks/noisy_laws.py`; {CALLS:,} calls, {ROWS} rows; seconds of one core.",
        "",
        *markdown(head, rows),
        "",
        *markdown(["law", "length", *names], by_law),
    ]
    return "\n".join(lines)


BENCHMARK = Benchmark("noisy_laws", KEYS, run, table)
if __name__ == "__main__":
    main(BENCHMARK, __doc__)
