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
    frequency, phase = best_wave(residual, roots, factor, argument, step, 60)
    gains = [explained(residual, roots, factor, argument, k * step) for k in range(1, 61)]
    assert frequency == pytest.approx(step * (1 + int(np.argmax(gains))))
    wave = factor * np.sin(frequency * argument + phase)
    table = np.column_stack([np.ones(80), wave]) * roots[:, None]
    _, rest, _, _ = np.linalg.lstsq(table, residual, rcond=None)
    assert residual @ residual - rest[0] == pytest.approx(max(gains), rel=1e-6)


def test_no_wave_of_a_constant_argument():
    roots = np.full(30, 30**-0.5)
    residual = np.random.default_rng(0).standard_normal(30)
    assert best_wave(residual, roots, np.ones(30), np.zeros(30), 1.0, 10) == (0.0, 0.0)
