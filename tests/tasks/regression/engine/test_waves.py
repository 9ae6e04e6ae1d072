"""The highest place of a spectrum against least squares for every frequency."""

import numpy as np
import pytest

from discodso.tasks.regression.engine._waves import best_wave


def explained(residual, roots, factor, argument, frequency):
    table = np.column_stack(
        [np.ones(len(residual)), factor * np.sin(frequency * argument), factor * np.cos(frequency * argument)]
    )
    _, rest, _, _ = np.linalg.lstsq(table * roots[:, None], residual, rcond=None)
    return residual @ residual - rest[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_frequency_is_the_one_that_explains_most(seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 1, 80)
    roots = np.sqrt(weights / weights.sum())
    argument, factor = rng.uniform(-2, 5, 80), rng.uniform(0.5, 2, 80)
    y = factor * np.sin(7.3 * argument + 0.4) + 0.5 * rng.standard_normal(80)
    residual = y * roots
    residual = residual - (residual @ roots) * roots
    step = 0.31
    frequency, phase, gain = best_wave(residual, roots, factor, argument, np.zeros(80), step, step, 60)
    gains = [explained(residual, roots, factor, argument, k * step) for k in range(1, 61)]
    assert frequency == pytest.approx(step * (1 + int(np.argmax(gains))))
    assert gain == pytest.approx(max(gains), rel=1e-6)
    wave = factor * np.sin(frequency * argument + phase)
    table = np.column_stack([np.ones(80), wave]) * roots[:, None]
    _, rest, _, _ = np.linalg.lstsq(table, residual, rcond=None)
    assert residual @ residual - rest[0] == pytest.approx(max(gains), rel=1e-6)


def test_no_wave_of_a_constant_argument():
    roots = np.full(30, 30**-0.5)
    residual = np.random.default_rng(0).standard_normal(30)
    zeros = np.zeros(30)
    assert best_wave(residual, roots, np.ones(30), zeros, zeros, 1.0, 1.0, 10) == (0.0, 0.0, 0.0)


def test_a_base_is_added_to_the_argument():
    roots = np.full(60, 60**-0.5)
    argument, base = np.random.default_rng(1).uniform(-3, 3, (2, 60))
    y = np.sin(base - 2 * argument + 1)
    residual = (y - y.mean()) * roots
    frequency, phase, gain = best_wave(residual, roots, np.ones(60), argument, base, -3.0, 0.5, 13)
    assert (frequency, phase) == (pytest.approx(-2.0), pytest.approx(1.0))
    assert gain == pytest.approx(residual @ residual)
