"""What benchmarks/screening.py says of settings, on scores whose parts are known."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import numpy as np

PATH = Path(__file__).parent.parent / "benchmarks" / "screening.py"
SPEC = importlib.util.spec_from_file_location("screening", PATH)
assert SPEC is not None
assert SPEC.loader is not None
screening = importlib.util.module_from_spec(SPEC)
sys.modules["screening"] = screening  # dataclasses look their module up
SPEC.loader.exec_module(screening)

OPTIONS = {
    "rate": ({"rate": 1}, {"rate": 2}, {"rate": 3}),
    "size": ({"size": 10}, {"size": 20, "deep": True}),
    "colour": tuple({"colour": name} for name in "abcd"),
}
TRUE = [np.array([-1.0, 0.25, 0.75]), np.array([0.5, -0.5]), np.array([0.0, 1.0, -3.0, 2.0])]


def test_every_value_is_drawn_equally_often_and_the_same_each_time() -> None:
    values = screening.drawn(OPTIONS, 48)
    assert values == screening.drawn(OPTIONS, 48)
    for option, names in enumerate(OPTIONS.values()):
        counts = Counter(row[option] for row in values)
        assert set(counts.values()) == {48 // len(names)}
    assert len({tuple(row) for row in values}) > 15  # of 24: options are drawn apart from each other


def test_settings_are_those_of_the_values() -> None:
    assert screening.settings(OPTIONS, [2, 1, 0]) == {"rate": 3, "size": 20, "deep": True, "colour": "a"}


def test_parts_of_additive_scores_are_found_exactly() -> None:
    values = screening.drawn(OPTIONS, 48)
    scores = [5 + sum(own[value] for own, value in zip(TRUE, row, strict=True)) for row in values]
    found = screening.worth(OPTIONS, values, scores)
    for own, expected in zip(found, TRUE, strict=True):
        np.testing.assert_allclose(own.means, expected, atol=1e-12)
        np.testing.assert_allclose(own.errors, 0, atol=1e-7)
    assert [own.best for own in found] == [2, 0, 3]
    table = screening.table(OPTIONS, values, scores, {"score": scores})
    assert table[-2] == "Chosen: `rate=3`, `size=10`, `colour=d`."


def test_errors_are_those_of_the_noise() -> None:
    """The spread of what is found over many draws of the noise is what one draw says of it."""
    values, rng = screening.drawn(OPTIONS, 48), np.random.default_rng(0)
    found = [screening.worth(OPTIONS, values, rng.normal(size=48)) for _ in range(400)]
    for option in range(len(OPTIONS)):
        spread = np.std([own[option].means for own in found], axis=0)
        told = np.sqrt(np.mean([own[option].errors ** 2 for own in found], axis=0))
        np.testing.assert_allclose(told, spread, rtol=0.12)
