"""The bitstring task against its formulas, written out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discodso import DeclarationError, Design, search
from discodso.baselines.random_search import RandomSettings
from discodso.tasks.bitstring import bitstring, f1, f2
from discodso.testing import check_task


def hidden(task):
    """The design of reward 1."""
    problem = task.batch_objective
    return Design(tuple("01"[bit] for bit in problem.bits), tuple(problem.betas.tolist()))


@given(st.floats(0, 1), st.floats(0, 1))
def test_f1_and_f2_are_the_papers(x, target):
    d = x - target
    want = 1.0 if d == 0 else abs(math.sin(50 * d) / (50 * d))
    assert f1(np.array(x), np.array(target)) == pytest.approx(want, abs=1e-12)
    step = 1.0 if abs(d) <= 0.05 else 0.5 if abs(d) <= 0.1 else 0.0
    assert f2(np.array(x), np.array(target)) == step


@pytest.mark.parametrize("objective", ["f1", "f2"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 1.0])
def test_the_reward_is_equation_1(alpha, objective):
    task = bitstring(6, alpha, objective, seed=3)
    solution = hidden(task)
    rng = np.random.default_rng(0)
    bits, betas = rng.integers(0, 2, (40, 6)), rng.random((40, 6))
    designs = [
        Design(tuple("01"[b] for b in row), tuple(beta))
        for row, beta in zip(bits, betas.tolist(), strict=True)
    ]
    rewards = task.batch_objective(task.space.encode([*designs, solution]))
    f = {"f1": f1, "f2": f2}[objective]
    for design, reward in zip(designs, rewards, strict=False):
        total = 0.0
        for (bit, beta), (bit_star, beta_star) in zip(design, solution, strict=True):
            if bit == bit_star:
                total += alpha + (1 - alpha) * float(f(np.array(beta), np.array(beta_star)))
        assert reward == pytest.approx(total / 6, abs=1e-12)
    assert rewards[-1] == pytest.approx(1)


def test_the_seed_decides_the_hidden_solution():
    first, again, other = (hidden(bitstring(12, seed=s)) for s in (1, 1, 2))
    assert first == again
    assert first != other
    assert set(first.tokens) == {"0", "1"}
    assert all(0 <= beta < 1 for beta in first.values)


def test_it_passes_the_checks_for_tasks():
    check_task(bitstring(10, 0.9, "f1"))


def test_random_search_finds_short_strings():
    result = search(bitstring(2, 0.9, "f2"), budget=3000, method=RandomSettings())
    assert result.best.reward > 0.97


@pytest.mark.parametrize(
    "bad", [{"length": 0}, {"length": 2.5}, {"alpha": 1.1}, {"alpha": math.nan}, {"objective": "f3"}]
)
def test_bad_arguments_name_their_key(bad):
    with pytest.raises(DeclarationError, match=next(iter(bad))):
        bitstring(**bad)
