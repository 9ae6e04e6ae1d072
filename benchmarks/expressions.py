"""Speed of the expression evaluator, in nodes times rows per second, beside NumPy and pyoperon in the same run.

1000 random expressions of mean length 15 over + - * / sin cos exp log, two inputs and constants; 100 and 1000
rows; one core. The NumPy side is a plain interpreter, one expression at a time. pyoperon works in float32,
discodso in float64. Best of several, CPU time.

    pip install pyoperon                   for its column; without it the rest is measured
    python benchmarks/expressions.py       prints, and writes benchmarks/results/expressions.json
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import write_result

from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.space.design import DesignBatch
from discodso.tasks.regression.evaluator import Program
from discodso.tasks.regression.export import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import Fit, RegressionSpace

COUNT, MEAN_LENGTH = 1000, 15


def random_expressions() -> tuple[Program, DesignBatch]:
    """1000 expressions whose mean length is 15, from a larger random sample."""
    space = RegressionSpace(min_length=4, max_length=32, nesting={}).build(2)
    drawn = sample(space, UniformStepper(space), 8 * COUNT, np.random.default_rng(0)).designs
    chosen: list[int] = []
    total = 0
    for row, length in enumerate(drawn.lengths.tolist()):
        # Take what brings the mean nearer to the wanted one.
        if (total <= MEAN_LENGTH * len(chosen)) == (length >= MEAN_LENGTH):
            chosen.append(row)
            total += length
        if len(chosen) == COUNT:
            break
    return Program.of(space.library), drawn.select(np.array(chosen))


def best(function: Callable[[], Any], repeats: int) -> float:
    """Least CPU seconds of some calls."""
    function()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        function()
        times.append(time.process_time() - started)
    return min(times)


def operon_times(expressions: list[Expression], X: np.ndarray, repeats: int) -> tuple[float, int] | None:
    """Seconds and nodes of pyoperon on the same expressions; None if it is not installed."""
    try:
        import pyoperon
    except ImportError:
        return None
    rows = len(X)
    dataset = pyoperon.Dataset(np.asfortranarray(X, dtype=np.float32))
    names = {variable.Name: variable.Hash for variable in dataset.Variables}
    renamed = dict(zip(("x1", "x2"), sorted(names), strict=True))
    variables = {ours: names[theirs] for ours, theirs in renamed.items()}
    trees = [pyoperon.InfixParser.Parse(text(e, digits=9), variables) for e in expressions]
    nodes = sum(tree.Length for tree in trees)
    result = np.empty((rows, len(trees)), dtype=np.float32, order="F")
    span = pyoperon.Range(0, rows)
    return best(lambda: pyoperon.EvaluateTrees(trees, dataset, span, result, 1), repeats), nodes


def measure(program: Program, designs: DesignBatch, rows: int, repeats: int = 15) -> dict[str, Any]:
    """Rates for one number of rows."""
    X = np.random.default_rng(1).uniform(0.1, 3, (rows, 2))
    columns = np.ascontiguousarray(X.T)
    expressions = [Expression(design, ("x1", "x2")) for design in designs]
    work = int(designs.lengths.sum()) * rows
    fit = Fit.of(program, X, X[:, 0])
    rates = {
        "predict": work / best(lambda: program.predict(designs, columns), repeats),
        "rewards": work / best(lambda: fit(designs), repeats),
        "numpy": work / best(lambda: [expression(X) for expression in expressions], 3),
    }
    operon = operon_times(expressions, X, repeats)
    if operon is not None:
        rates["pyoperon"] = operon[1] * rows / operon[0]
    row: dict[str, Any] = {"rows": rows, **{name: float(f"{rate:.4g}") for name, rate in rates.items()}}
    row["predict / numpy"] = round(rates["predict"] / rates["numpy"], 2)
    if operon is not None:
        row["predict / pyoperon"] = round(rates["predict"] / rates["pyoperon"], 2)
        row["pyoperon nodes / ours"] = round(operon[1] / int(designs.lengths.sum()), 3)
    return row


def main() -> None:
    """Measure, print, write."""
    program, designs = random_expressions()
    rows = [measure(program, designs, count) for count in (100, 1000)]
    for row in rows:
        print("  ".join(f"{key} {value:.4g}" for key, value in row.items()))
    data = {
        "unit": "nodes times rows per CPU second, one core",
        "expressions": len(designs),
        "mean_length": round(float(designs.lengths.mean()), 2),
        "results": rows,
    }
    write_result("expressions", data, shown=False)


if __name__ == "__main__":
    main()
