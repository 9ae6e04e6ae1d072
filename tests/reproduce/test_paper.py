"""Figures that the paper prints agree with each other."""

from __future__ import annotations

import pytest

from discodso.reproduce import paper


def test_the_papers_gaps_agree_with_its_own_table():
    # Its gap tables are differences of its table of results: a slip of the pen in our copy would show here.
    for name, gaps in paper.REGRESSION_GAPS.items():
        for column, gap in gaps.items():
            exact = paper.REGRESSION["DisCo-DSO"][column] - paper.REGRESSION[name][column]
            assert gap == pytest.approx(exact, abs=0.01), name
    for name, gaps in paper.LITERATURE_TREE_GAPS.items():
        for environment, gap in gaps.items():
            exact = paper.TREE_REWARDS["DisCo-DSO"][environment] - paper.TREE_REWARDS[name][environment]
            assert gap == pytest.approx(exact, abs=0.011), (name, environment)


def test_the_papers_efficiencies_and_seconds_agree_with_its_gaps():
    """Final rewards are means over seeds, and the time is that of 100,000 calls on 24 cores."""
    for name, gaps in paper.TREE_GAPS.items():
        for environment, gap in gaps.items():
            implied = paper.FINAL["DisCo-DSO"][environment] - paper.FINAL[name][environment]
            rounding = 0.01 * paper.HOURS[environment] + 0.02
            assert gap == pytest.approx(implied, rel=0.005, abs=rounding), (name, environment)
    expected = {"CartPole-v1": 500, "MountainCar-v0": -111.5, "LunarLander-v3": -15.5, "Acrobot-v1": -74.8}
    for environment, final in paper.FINAL["DisCo-DSO"].items():
        assert final == pytest.approx(expected[environment], rel=0.005)
