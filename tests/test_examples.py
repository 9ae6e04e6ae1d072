"""The examples run, and do what they promise, with a small budget."""

from __future__ import annotations

import ladder_filter
import mirror_coating
import numpy as np
import pytest
import stopping_distance
import sympy

from discodso import Design
from discodso.testing import check_task


def test_the_ladder_is_simulated_right():
    """The textbook Butterworth of order 3 between 50 ohms: L = Z0 / w, C = 2 / (Z0 w), L again."""
    w = 2 * np.pi * 1e6
    textbook = Design.of(("series_L", 50 / w), ("shunt_C", 2 / (50 * w)), ("series_L", 50 / w))
    np.testing.assert_allclose(ladder_filter.response(textbook), ladder_filter.butterworth(), rtol=1e-9)
    task = ladder_filter.ladder_task(ladder_filter.butterworth())
    assert task.objective(textbook) == pytest.approx(1 - 0.005 * 3)


def test_the_ladder_task_passes_the_checks():
    check_task(ladder_filter.ladder_task(ladder_filter.butterworth()))


def test_a_small_search_finds_a_low_pass(tmp_path, capsys):
    picture = tmp_path / "ladder.png"
    reward = ladder_filter.main(["--budget", "3000", "--plot", str(picture)])
    assert reward > 0.6
    assert "elements" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_mirror_coating_is_a_sound_task(tmp_path, capsys):
    check_task(mirror_coating.coating_task())
    picture = tmp_path / "mirror.png"
    assert mirror_coating.main(["--budget", "2000", "--plot", str(picture)]) > 0.8
    assert "layers" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_reflectance_of_films_that_everybody_knows():
    bare = mirror_coating.reflectance(np.array([[1.38]]), np.array([[0.0]]))
    np.testing.assert_allclose(bare, (0.52 / 2.52) ** 2)
    quarter = mirror_coating.reflectance(np.array([[1.38]]), np.array([[550 / 4 / 1.38]]))
    at_550 = int(np.argmin(abs(mirror_coating.WAVELENGTHS - 550)))
    assert quarter[0, at_550] == pytest.approx(((1.52 - 1.38**2) / (1.52 + 1.38**2)) ** 2)


def test_the_stopping_distance_is_explained(tmp_path, capsys):
    picture = tmp_path / "fit.svg"
    assert stopping_distance.main(["--budget", "10000", "--plot", str(picture)]) > 0.9
    assert "distance = " in capsys.readouterr().out
    assert picture.read_text().startswith("<?xml")


def test_the_srbench_interface():
    from srbench import regressor

    X = np.random.default_rng(0).uniform(1, 2, (60, 2))
    small = regressor.est.set_params(**regressor.eval_kwargs["test_params"])
    regressor.eval_kwargs["pre_train"](small, X, X[:, 0])
    small.fit(X, X[:, 0] * X[:, 1])
    expression = sympy.sympify(regressor.model(small, X))
    assert {str(s) for s in expression.free_symbols} == {"x1", "x2"}
