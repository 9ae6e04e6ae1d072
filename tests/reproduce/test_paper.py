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
