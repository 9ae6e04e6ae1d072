"""A small method, and tasks that it solves in a few hundred calls."""

from __future__ import annotations

from spaces import valued_sequence

from discodso import Design, DisCoSettings, NetworkSettings, Task

METHOD = DisCoSettings(batch_size=50, network=NetworkSettings(units=8))


def count_a(design: Design) -> float:
    return float(design.tokens.count("a"))


def near(design: Design) -> float:
    """Best at two values of 0.7."""
    return -sum(1.0 if v is None else (v - 0.7) ** 2 for v in design.values)


NEAR = Task(valued_sequence(), near)
