"""Waves and shifted functions that a search begins from."""

import math

import numpy as np
import pytest

from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine import sweeps

COUNT = 400
ROOTS = np.full(COUNT, COUNT**-0.5)
RNG = np.random.default_rng(0)
COLUMNS = RNG.uniform(-3, 3, (2, COUNT))
A, B = COLUMNS


def residual(y):
    rest = y * ROOTS
    return rest - (rest @ ROOTS) * ROOTS


def best(waves):
    return max(waves, key=lambda wave: wave.share)


def values(part, columns=COLUMNS):
    codes, numbers = np.array(part[0]), np.array(part[1])
    room = trees.room_for(columns, len(codes))
    return room[0][trees.forward(codes, numbers, np.zeros(1), 0, len(codes), room)].copy()


def explained(part, y, columns=COLUMNS):
    return float(np.corrcoef(values(part, columns), y)[0, 1] ** 2)


@pytest.mark.parametrize(
    "y",
    [
        np.sin(5 * A + 1) + 0.05 * B,
        B * np.sin(7 * A),
        A * np.sin(2 * math.pi * A),
        np.exp(-0.25 * A) * np.sin(6 * A),
    ],
)
def test_waves_of_one_input_explain_most(y):
    found = best(sweeps.single_waves(COLUMNS, residual(y), ROOTS, True))
    assert found.share > 0.85
    assert explained(found.part, y) > 0.85


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_fast_wave_is_found_in_the_rows_that_lie_closest(power):
    columns = np.random.default_rng(1).uniform(-50, 50, (1, 1000))
    y = 6.87 + 11 * np.cos(7.23 * columns[0] ** power)
    roots = np.full(1000, 1000**-0.5)
    rest = (y - y.mean()) * roots
    waves = list(sweeps.fast_waves(columns, rest, roots))
    assert best(waves).share > 0.9
    assert explained(best(waves).part, y, columns) > 0.9
    assert sum(wave.calls for wave in waves) < 500  # where a spectrum of all rows would take 700,000


@pytest.mark.parametrize(
    "y", [np.cos(3 * A - 2.1 * B + 0.3), np.sin(A * B - 2 * A + 3.1 * B), np.cos(4 * A) * np.sin(2 * B)]
)
def test_waves_of_two_inputs(y):
    assert best(sweeps.plane_waves(COLUMNS, residual(y), ROOTS)).share > 0.4


def test_noise_has_no_wave():
    y = np.random.default_rng(2).standard_normal(COUNT)
    assert best(sweeps.single_waves(COLUMNS, residual(y), ROOTS, True)).share < 0.1


def test_a_constant_column_has_none():
    columns = np.ones((1, COUNT))
    assert not list(sweeps.single_waves(columns, residual(A), ROOTS, True))
    assert not list(sweeps.shifted(columns[0], 0, [trees.LOG, trees.EXP, trees.N2]))
    assert all(wave.part is None for wave in sweeps.fast_waves(columns, residual(A), ROOTS))


def test_shifted_functions_are_defined_where_the_data_are():
    unary = [trees.LOG, trees.SQRT, trees.INV, trees.EXP, trees.N2]
    parts = list(sweeps.shifted(A, 0, unary))
    assert len(parts) == 12
    for part in parts:
        assert np.isfinite(values(part)).all()
        assert trees.CONSTANT in part[0]


X = RNG.uniform(0.5, 3, (3, COUNT))
P, Q, R = X
OFFSET = ROOTS[None]


@pytest.mark.parametrize("y", [2 + P * np.exp(-0.7 * Q * R), np.exp(Q / R) / P, 3 - np.exp(P * (Q - 1.4))])
def test_an_exponential_of_several_inputs_explains_most(y):
    found = best(sweeps.growths(X, residual(y), ROOTS, OFFSET))
    assert found.share > 0.8
    assert explained(found.part, y, X) > 0.8


@pytest.mark.parametrize(
    "y", [P / (1 + 9 * np.exp(-Q * R)), P**3 / (np.exp(2 * Q / R) - 1), 1 / (np.exp((P - Q) / R) + 1)]
)
def test_a_factor_with_an_exponential_and_a_constant_explains_most(y):
    logs = np.concatenate((OFFSET, np.log(X) * ROOTS))
    basis = np.linalg.qr(logs.T)[0].T
    rest = np.log(y) * ROOTS
    rest = rest - (basis @ rest) @ basis
    found = best(sweeps.saturations(X, rest, ROOTS, basis))
    assert found.share > 0.7
    assert sum(start.calls for start in sweeps.saturations(X, rest, ROOTS, basis)) < 500


def test_a_sum_of_harmonics_with_an_envelope_is_explained_to_the_last_digit():
    t = np.linspace(0, 10, COUNT)[None]
    y = t[0] ** 3 * np.exp(-t[0]) * (np.sin(t[0]) - 0.3 * np.cos(5 * t[0]))
    found = max(sweeps.harmonics(t, residual(y), ROOTS, OFFSET, True), key=lambda own: own.share)
    assert found.share == pytest.approx(1, abs=1e-12)
    assert (found.power, found.decays, found.base) == (3, True, 1.0)
    assert np.allclose(values(found.wave(10), t), np.cos(5 * t[0]))


def test_a_bell_begins_where_most_is_left():
    x = np.linspace(0, 10, COUNT)
    y = 0.2 * np.sin(x) - 3 * np.exp(-0.5 * ((x - 7) / 0.4) ** 2)
    bell, _ = sweeps.peaks(x, 0, y)
    assert -bell[1][5] == pytest.approx(7, abs=0.1)
    assert bell[1][2] == pytest.approx(-0.5 / 0.4**2, rel=0.5)
    shifts = sorted(-codes[1][5] for codes in sweeps.halves(bell))
    assert shifts[0] < 7 < shifts[1]
