"""Bayesian optimisation: its frame, and what few calls bring."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import SPACES
from spaces import decision_tree

from discodso import Task, resume, search
from discodso.baselines.bayesian import BOSettings, Frame, UnruledBOSettings
from discodso.baselines.random_search import RandomSettings
from discodso.tasks.bitstring import bitstring


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["bits", "tree", "open"]), st.integers(0, 10_000))
def test_points_of_a_frame_are_designs_and_back(where, seed):
    space = SPACES[where]()
    method = BOSettings().build(space, seed)
    frame: Frame = method.frame
    points, designs = method._candidates(10, near=False)
    again, fits = frame.encode(designs)
    assert fits.all()
    tokens, lengths, _ = frame.decode(again)
    assert np.array_equal(lengths, designs.lengths)
    for row, count in enumerate(lengths.tolist()):
        assert np.array_equal(tokens[row, :count], designs.tokens[row, :count])
    assert len(points) == len(designs)


def test_bayesian_optimisation_beats_chance_on_few_calls():
    task = bitstring(4, alpha=0.9)
    mine = [search(task, budget=27, method=BOSettings(initial=15), seed=s).best.reward for s in range(3)]
    chance = [search(task, budget=27, method=RandomSettings(), seed=s).best.reward for s in range(3)]
    assert np.mean(mine) >= np.mean(chance)


def test_on_the_papers_frame_no_rule_holds(tmp_path):
    space, seen = decision_tree(), []

    def objective(design):
        seen.append(design)
        return float(len(design)) - abs(next(value for value in design.values if value is not None))

    task, method = Task(space, objective), UnruledBOSettings(initial=8, candidates=20, fit_steps=2)
    whole = search(task, budget=12, method=method, seed=0)
    assert {len(design) for design in seen} == {7}
    assert any(space.violations(design) for design in seen)
    search(task, budget=6, method=method, seed=0, out=tmp_path / "run")
    assert resume(tmp_path / "run", budget=12, task=task).top == whole.top
