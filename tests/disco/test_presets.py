"""Presets: the paper's settings stay what they are, to the bit; the default is what search uses."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from spaces import decision_tree, mixed_sequence

from discodso import (
    DeclarationError,
    Design,
    DisCo,
    DisCoSettings,
    NetworkSettings,
    SettingsError,
    Task,
    preset,
    resume,
    search,
)
from discodso.run.executors.registry import Threads
from discodso.run.settings import changed, parse
from discodso.tasks.bitstring import bitstring

TASK = bitstring(6, 0.5, "f1", 1)


@pytest.mark.parametrize(
    ("space", "mark", "sums"),
    [
        (
            mixed_sequence(),
            "87a9b49477950a49",
            [37.587, 38.224, 35.117, 37.159, 46.824, 34.693, 33.429, 38.668],
        ),
        (
            decision_tree(),
            "28ff6ecac2c394f9",
            [409.73, 391.926, 311.035, 472.84, 269.516, 429.002, 438.159, 328.098],
        ),
        (
            bitstring().space,
            "2dd4d0324d84f6c6",
            [364.233, 371.09, 370.283, 390.188, 365.315, 381.642, 377.578, 381.292],
        ),
    ],
    ids=["mixed sequence", "decision tree", "bitstring"],
)
def test_the_scaled_preset_asks_for_the_designs_that_it_always_did(space, mark, sums):
    """The same tokens in every batch, and the same values but for the last digits, in which processors differ."""
    method, seen, found = DisCo(space, preset("paper-scaled"), seed=7), hashlib.sha256(), []
    for _ in range(8):
        batch = method.ask()
        seen.update(np.ascontiguousarray(batch.tokens).tobytes())
        found.append(float(np.nansum(batch.values)))
        method.tell(batch, np.nansum(np.tanh(batch.values), axis=1) - 0.1 * batch.lengths)
    assert seen.hexdigest()[:16] == mark
    assert found == pytest.approx(sums, abs=0.002)


def test_the_papers_preset_scales_nothing():
    paper, scaled = preset("paper"), preset("paper-scaled")
    assert scaled == DisCoSettings()
    assert (paper.network.coordinates, paper.network.shift, paper.network.scale) == ("value", 0.0, 0.5)
    assert (paper.learner.normalise_advantages, paper.learner.max_gradient_norm) == (False, 0.0)
    assert replace(paper, network=scaled.network, learner=scaled.learner) == scaled
    with pytest.raises(DeclarationError, match="preset must be one of 'default', 'paper', 'paper-scaled'"):
        preset("strong")


def test_search_uses_the_default_and_knows_the_other():
    def best(**more):
        return search(TASK, budget=600, seed=0, **more).top

    assert best() == best(preset="default") == best(method=preset("default", budget=600))
    assert best(preset="paper-scaled") == best(method=DisCoSettings())
    assert best() != best(preset="paper")
    with pytest.raises(DeclarationError, match="a method or a preset, not both"):
        best(preset="paper", method=DisCoSettings())


def test_small_budgets_have_small_batches():
    sizes = [preset(budget=calls).batch_size for calls in (1, 250, 251, 5_000, 10_000, 10**6)]
    assert sizes == [10, 10, 20, 25, 50, 100]
    assert [preset(refines=True, budget=calls).batch_size for calls in (1, 10_000, 10**6)] == [20, 100, 500]
    assert preset("paper", budget=100) == preset("paper")
    with pytest.raises(DeclarationError, match="budget"):
        preset(budget=0)


def test_constants_that_are_fitted_are_drawn_with_a_fixed_scale():
    assert preset(refines=True).network == NetworkSettings()


def test_the_default_of_designs_has_no_network():
    assert [preset(noisy=noisy, refines=False).network for noisy in (False, True)] == [None, None]


def test_noisy_tasks_evaluate_good_designs_again():
    def objective(design: Design, seed: int) -> float:
        return len(design) + np.random.default_rng(seed).normal()

    result = search(Task(decision_tree(), objective, stochastic=True), budget=600)
    assert any(scored.weight > 1 for scored in result.top)


def test_with_noise_the_archive_is_rechecked_and_several_values_move():
    exact, noisy = preset(), preset(noisy=True)
    assert (exact.archive.recheck, exact.variation.single) == (0.0, 0.5)
    assert (noisy.archive.recheck, noisy.variation.single) == (0.2, 0.0)
    assert replace(noisy, archive=exact.archive, variation=exact.variation) == exact


def settings_with(**method):
    return parse({"task": {"kind": "bitstring"}, "run": {"budget": 100}, "method": method})


def test_settings_files_name_presets_and_change_them():
    for name in ("default", "paper", "paper-scaled"):
        made = settings_with(preset=name)
        assert (made.method, made.preset, made.changes) == (None, name, {})
    with pytest.raises(SettingsError, match="learner needs a network"):
        settings_with(learner={"risk_factor": 0.3})
    made = settings_with(preset="default", learner={"risk_factor": 0.3}, network={"units": 8})
    assert (made.method, made.preset) == (None, "default")
    default = preset("default")
    assert changed(default, made.changes) == replace(
        default,
        learner=replace(default.learner, risk_factor=0.3),
        network=NetworkSettings(units=8),
    )
    with pytest.raises(
        SettingsError, match=r"method\.preset must be one of default, paper, paper-scaled, got 'papr'"
    ):
        settings_with(preset="papr")
    made = settings_with(variation={"share": 0.5}, screen={"candidates": 5}, refinement=False)
    assert changed(default, made.changes) == replace(
        default,
        variation=replace(default.variation, share=0.5),
        screen=replace(default.screen, candidates=5),
        refinement=None,
    )
    with pytest.raises(SettingsError, match="variation needs an archive"):
        settings_with(preset="paper", variation={"share": 0.5})


@pytest.mark.parametrize(("noisy", "stop"), [(False, 777), (True, 300)])
def test_the_default_is_resumed_exactly(tmp_path, noisy, stop):
    def objective(design, seed=0):
        return -sum((v - 0.7) ** 2 for v in design.values if v is not None) + 0.01 * noisy * (seed % 97)

    task = Task(decision_tree(), objective, stochastic=noisy)
    options = {"seed": 3, "confirm_calls": 0}  # test_confirmation.py has the race
    whole = search(task, budget=1500, **options)
    search(task, budget=stop, **options, out=tmp_path / "run")
    resumed = resume(tmp_path / "run", budget=1500, task=task)
    assert resumed.top == whole.top
    assert [row.best for row in resumed.history] == [row.best for row in whole.history]


def test_the_default_does_not_depend_on_the_number_of_workers():
    alone = search(TASK, budget=1200, seed=2)
    for workers in (1, 3):
        with Threads(workers) as executor:
            shared = search(TASK, budget=1200, seed=2, executor=executor)
        assert shared.top == alone.top
        assert [row.mean for row in shared.history] == [row.mean for row in alone.history]


def test_designs_told_in_parts_and_out_of_order_teach_the_same():
    def reward(designs):
        return -np.nansum((designs.values - 0.7) ** 2, axis=1) - 0.1 * designs.lengths

    space = decision_tree()
    whole, parts = DisCo(space, preset(), seed=0), DisCo(space, preset(), seed=0)
    for _ in range(8):
        asked, same = whole.ask(), parts.ask()
        assert list(asked) == list(same)
        whole.tell(asked, reward(asked))
        for part in (slice(0, 30), slice(30, 31), slice(31, None)):
            parts.tell(same.select(part), reward(same.select(part)))
    assert whole.shares == parts.shares
