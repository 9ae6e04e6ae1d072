"""The examples run, and do what they promise, with a small budget."""

from __future__ import annotations

import json

import filter_front
import gymnasium
import job_schedule
import ladder_filter
import mirror_coating
import numpy as np
import own_proposer
import pid_controller
import pipeline
import pytest
import quantum_circuit
import stopping_distance
import sympy
from gymnasium.utils.env_checker import check_env

from discodso import Design, search_policy
from discodso.base.errors import DeclarationError
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.making import as_environment, make
from discodso.testing import check_proposer, check_task


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


def test_a_small_search_finds_a_front_of_filters(tmp_path, capsys):
    picture = tmp_path / "front.png"
    check_task(filter_front.front_task())
    assert filter_front.main(["--budget", "1000", "--plot", str(picture)]) > 180
    assert "hypervolume" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_proposer_of_ones_own_is_sound_and_searches(capsys):
    check_proposer(own_proposer.Symmetric, ladder_filter.ladder_task(ladder_filter.butterworth()).space)
    own_proposer.main(["--budget", "300"])
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("with the proposer")
    assert first.split(":")[1] != second.split(":")[1]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of bounds that have no end, and of some that are not 1
def test_environments_of_ones_own_are_sound_and_found_by_name():
    for name in ("Inventory", "Thermostat", "Lamps", "Gears"):
        env = gymnasium.make(f"own_environments:{name}-v0", disable_env_checker=True)
        check_env(env.unwrapped, skip_render_check=True)
    filled = {"own_environments:Lamps-v0": 0.6, "own_environments:Gears-v0": -1.0}
    for name, least in filled.items():
        found = search_policy(name, budget=300, episodes=10, test_seeds=range(20), seed=0)
        assert found.test_mean / found.interface.max_steps > least
    for name, why in (("Screen", "image or the like"), ("Riddle", "is a Text")):
        with pytest.raises(DeclarationError, match=why):
            search_policy(f"own_environments:{name}-v0", budget=10)


def test_a_state_that_is_one_number_is_taken_apart():
    names = ("row", "column", "passenger", "destination")
    wrapper = f'own_environments:Decoded {{"sizes": [5, 5, 5, 4], "names": {json.dumps(names)}}}'
    interface = describe(as_environment("Taxi-v4", wrappers=(wrapper,)))
    assert interface.feature_names == names
    assert interface.ranges == ((0, 4), (0, 4), (0, 4), (0, 3))
    with make(interface.environment) as env:
        for seed in range(20):
            seen, _ = env.reset(seed=seed)
            assert tuple(seen) == tuple(env.unwrapped.decode(env.unwrapped.s))
    with pytest.raises(DeclarationError, match=r"sizes \[3, 3\] do not make the Discrete"):
        describe(as_environment("Taxi-v4", wrappers=('own_environments:Decoded {"sizes": [3, 3]}',)))


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


@pytest.mark.parametrize(
    ("example", "budget", "least", "words"),
    [
        (pipeline, 60, 0.4, "steps"),
        (pid_controller, 600, 0.1, "sensitivity"),
        (job_schedule, 600, -2.6, "done at hour"),
        (quantum_circuit, 600, 0.5, "fidelity"),
    ],
    ids=lambda own: getattr(own, "__name__", None),
)
def test_examples_with_several_values_find_something_and_draw_it(
    example, budget, least, words, tmp_path, capsys
):
    picture = tmp_path / "picture.png"
    assert example.main(["--budget", str(budget), "--plot", str(picture)]) > least
    assert words in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_tasks_of_the_examples_are_sound():
    for task in (
        pid_controller.task(),
        job_schedule.task(),
        quantum_circuit.state_task(),
        quantum_circuit.h2_task(),
    ):
        check_task(task, designs=10)
    check_task(pipeline.task(), designs=4)


def test_a_circuit_that_everybody_knows():
    """A rotation by a right angle and a controlled not make a Bell state."""
    bell = Design.of(("ry", {"qubit": 0, "angle": np.pi / 2}), ("cx", {"pair": "0-1"}))
    np.testing.assert_allclose(quantum_circuit.run(bell, 2), np.array([1, 0, 0, 1]) / np.sqrt(2), atol=1e-12)
    flipped = Design.of(("rx", {"qubit": 2, "angle": np.pi}), ("cx", {"pair": "2-0"}))
    assert abs(quantum_circuit.run(flipped, 3)[0b101]) == pytest.approx(1)


def test_the_ground_energy_of_hydrogen_is_found(capsys):
    quantum_circuit.main(["h2", "--budget", "2000"])
    exact = np.linalg.eigvalsh(quantum_circuit.HAMILTONIAN)[0]
    found = float(capsys.readouterr().out.split("energy ")[1].split()[0])
    assert exact - 1e-9 <= found < exact + 1.6e-3  # chemical accuracy


def test_the_response_of_a_loop_is_that_of_scipy():
    from scipy import signal

    design = Design.of(("pi", {"gain": 0.5, "time": 1.0}), ("lowpass", {"frequency": 3.0, "damping": 0.7}))
    _, _, above, below = pid_controller.loop(design)
    times = np.linspace(0, 5, 50)
    _, wanted = signal.step((above.coeffs, (above + below).coeffs), T=times)
    np.testing.assert_allclose(pid_controller.step_response(design, times), wanted, atol=1e-6)


def test_jobs_wait_for_those_before_them():
    for design in job_schedule.SPACE.sample(50):
        done = job_schedule.schedule(design)
        assert set(done) == set(job_schedule.HOURS)
        assert all(done[job][1] >= done[first][2] for job, first in job_schedule.BEFORE.items())
