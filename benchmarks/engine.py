"""Cost of the engine, as ratios to a plain torch.nn.LSTM in the same process.

One thread, a library of 12 symbolic tokens with one parametrised, lengths 4 to 32, length and trigonometry
constraints, parent and sibling inputs. The floor for sampling 1000 designs is the forward pass of an LSTM with
the same batch, positions and input size; the floor for training on 200 designs is its forward and backward
pass. Medians of 20 in CPU time, measured alternately so that a busy machine slows both sides alike.

    python benchmarks/engine.py            prints, and writes benchmarks/results/engine.json
"""

from __future__ import annotations

import argparse
import math
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from harness import write_result

from discodso import DisCo, DisCoSettings, FixedSequence, NoNesting, Real, Space, Token, Tree
from discodso.disco.network import Policy
from discodso.disco.sampling import sample
from discodso.disco.settings import NetworkSettings
from discodso.disco.training import policy_gradient_loss
from discodso.disco.uniform import UniformStepper
from discodso.space.replay import replay


def memory_mb() -> float:
    """Highest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


AFTER_IMPORT = memory_mb()


def symbolic_space(max_length: int) -> Space:
    """Twelve tokens, one with a value."""
    tokens = [
        *(Token(name, 2) for name in ("add", "sub", "mul", "div")),
        *(Token(name, 1) for name in ("sin", "cos", "exp", "log")),
        *(Token(name) for name in ("x1", "x2", "one")),
        Token("const", range=(-math.inf, math.inf)),
    ]
    return Space(tokens, Tree(4, max_length), [NoNesting(("sin", "cos"))])


def medians(repeats: int, *functions: Callable[[], Any]) -> list[float]:
    """Median CPU milliseconds of each function, called in turns."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions * 3:
        function()
    for _ in range(repeats):
        for own, function in zip(times, functions, strict=True):
            started = time.process_time()
            function()
            own.append(1e3 * (time.process_time() - started))
    return [statistics.median(own) for own in times]


def full_length(space: Space, policy: Policy) -> None:
    """Make leaves unlikely, so that designs grow as long as they may: the worst case of sampling."""
    with torch.no_grad():
        leaves = torch.from_numpy(space.library.arity == 0).nonzero().squeeze(1)
        policy.heads.bias[leaves] -= 20


def valued_space(values: int, positions: int) -> Space:
    """Four tokens that carry so many real numbers each."""
    numbers: dict[str, Any] = {f"x{k}": Real(0, 1) for k in range(values)}
    return Space([Token(name, **numbers) for name in "abcd"], FixedSequence(positions))


def measure(
    batch: int, positions: int, repeats: int, *, longest: bool = False, space: Space | None = None
) -> dict[str, Any]:
    """Times and ratios for one batch size and one maximum length."""
    space = space or symbolic_space(positions)
    policy = Policy(space, NetworkSettings(), np.random.default_rng(0))
    if longest:
        full_length(space, policy)
    rng = np.random.default_rng(1)
    lstm = torch.nn.LSTM(policy.inputs, 32)
    inputs = torch.randn(positions, batch, policy.inputs)
    elite = batch // 5
    elite_inputs = torch.randn(positions, elite, policy.inputs)
    optimiser = torch.optim.Adam(policy.parameters(), lr=1e-9)
    designs = sample(space, policy.stepper(), batch, rng).designs
    longest_first = np.argsort(-designs.lengths, kind="stable")
    teachers = designs.select(longest_first[:elite])  # the longest: the dearest batch to train on
    advantages = np.linspace(0, 1, elite)

    @torch.no_grad()
    def forward() -> None:
        lstm(inputs)

    def forward_and_backward() -> None:
        lstm.zero_grad()
        lstm(elite_inputs)[0].sum().backward()

    def train() -> None:
        score = policy.score(replay(space, teachers))
        loss = policy_gradient_loss(score, advantages, DisCoSettings().learner.entropy_coefficient)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    def draw() -> None:
        sample(space, policy.stepper(), batch, rng)

    sampling, floor, training, training_floor = medians(repeats, draw, forward, train, forward_and_backward)
    return {
        "batch": batch,
        "max_length": positions,
        "mean_length": round(float(designs.lengths.mean()), 2),
        "elite": elite,
        "elite_mean_length": round(float(teachers.lengths.mean()), 2),
        "sampling_ms": round(sampling, 2),
        "lstm_forward_ms": round(floor, 2),
        "sampling_ratio": round(sampling / floor, 3),
        "training_ms": round(training, 2),
        "lstm_forward_backward_ms": round(training_floor, 2),
        "training_ratio": round(training / training_floor, 3),
        "tokens_per_second": round(1e3 * float(designs.lengths.sum()) / sampling),
    }


def memory_of_one_iteration() -> float:
    """MB over the import for ten rounds of sampling 1000 designs and training on 200 of them."""
    disco = DisCo(symbolic_space(32), DisCoSettings(batch_size=1000), seed=0)
    for _ in range(10):
        designs = disco.ask()
        disco.tell(designs, designs.lengths.astype(float) + np.linspace(0, 0.5, len(designs)))
    return memory_mb() - AFTER_IMPORT


def uniform_sampling(repeats: int) -> float:
    """Milliseconds to draw 1000 designs without any network: the cost of rules and bookkeeping alone."""
    space = symbolic_space(32)
    rng = np.random.default_rng(2)
    proposer = UniformStepper(space)
    return medians(repeats, lambda: sample(space, proposer, 1000, rng))[0]


def main() -> None:
    """Measure, print a table, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    memory = memory_of_one_iteration()
    rows = [
        measure(1000, 32, repeats),
        measure(1000, 32, repeats, longest=True),
        measure(1000, 64, repeats, longest=True),
        measure(4000, 32, repeats, longest=True),
    ]
    columns = ["batch", "max_length", "mean_length", "sampling_ms", "lstm_forward_ms", "sampling_ratio"]
    columns += ("training_ms", "lstm_forward_backward_ms", "training_ratio")
    print("  ".join(columns))
    for row in rows:
        print("  ".join(f"{row[c]:>{len(c)}}" for c in columns))
    longest, longer, wider = rows[1:]
    growth = {
        "sampling_time_for_twice_the_length": round(longer["sampling_ms"] / longest["sampling_ms"], 2),
        "sampling_time_for_four_times_the_batch": round(wider["sampling_ms"] / longest["sampling_ms"], 2),
        "training_time_for_twice_the_length": round(longer["training_ms"] / longest["training_ms"], 2),
        "training_time_for_four_times_the_batch": round(wider["training_ms"] / longest["training_ms"], 2),
    }
    for name, value in growth.items():
        print(f"{name}: {value}")
    one, four = (measure(1000, 16, repeats, space=valued_space(values, 16)) for values in (1, 4))
    values = {
        f"{part}_of_four_values_over_one": round(four[f"{part}_ms"] / one[f"{part}_ms"], 2)
        for part in ("sampling", "training")
    }
    print(*(f"{name}: {value}" for name, value in values.items()), sep="\n")
    rules = uniform_sampling(repeats)
    print(f"rules and bookkeeping without a network, 1000 designs: {rules:.1f} ms")
    print(f"memory over the import, batch 1000, length 32: {memory:.0f} MB")
    result = {
        "threads": 1,
        "repeats": repeats,
        "time": "CPU, median",
        "cases": rows,
        "growth": growth,
        "values": values,
        "rules_only_ms": round(rules, 2),
        "memory_over_import_mb": round(memory),
    }
    write_result("engine", result, f"torch {torch.__version__}", shown=False)


if __name__ == "__main__":
    main()
