"""Bounds: the paper's decision-tree figure, its resolution h and its too-narrow rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spaces import decision_tree

from discodso import (
    Bounds,
    DecisionTreeBounds,
    DeclarationError,
    Design,
    FixedSequence,
    Real,
    Space,
    Token,
    Tree,
)
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper

FIGURE = [("x1<", 2.0), ("a2", None), ("x2<", 6.0), ("x1<", 3.0), ("a1", None), ("a3", None), ("a2", None)]


def bounds_before_each_token(space, items):
    """[(low1, high1, low2, high2)] of x1 and x2 at each position, the paper's right-hand picture."""
    prefix, found = space.start(1), []
    for name, value in items:
        low, high = space.bounds.interval(prefix)
        found.append((low[0, 0], high[0, 0], low[0, 1], high[0, 1]))
        prefix = prefix.advance(
            np.array([space.library.id(name)]), np.array([np.nan if value is None else value])
        )
    return found


def test_the_bounds_of_the_papers_figure_come_out_exactly():
    space = decision_tree(resolution=0.0)
    assert bounds_before_each_token(space, FIGURE) == [
        (0, 5, 1, 8),
        (0, 2, 1, 8),
        (2, 5, 1, 8),
        (2, 5, 1, 6),
        (2, 3, 1, 6),
        (3, 5, 1, 6),
        (2, 5, 6, 8),
    ]


def test_the_resolution_keeps_a_distance_from_the_parents_value():
    space = Space(decision_tree().library, Tree(1, 15), bounds=DecisionTreeBounds(0.1, relative=False))
    assert bounds_before_each_token(space, FIGURE)[1:] == [
        (0, 1.9, 1, 8),
        (2.1, 5, 1, 8),
        (2.1, 5, 1, 5.9),
        (2.1, 2.9, 1, 5.9),
        (3.1, 5, 1, 5.9),
        (2.1, 5, 6.1, 8),
    ]


def test_relative_resolution_is_a_share_of_the_range():
    space = decision_tree(resolution=0.1)
    assert bounds_before_each_token(space, FIGURE)[1] == (0, 2 - 0.5, 1, 8)


def test_too_narrow_intervals_are_widened_to_half_h_and_then_forbidden():
    """Appendix: if max - min < h, min = max - h/2 (or max = min + h/2), and the token is not sampled again."""
    space = Space(decision_tree().library, Tree(1, 15), bounds=DecisionTreeBounds(1.0, relative=False))
    right = bounds_before_each_token(space, [("x1<", 3.5), ("a1", None), ("a2", None)])
    assert right[1] == (0, 2.5, 1, 8)
    assert right[2] == (4.5, 5, 1, 8)  # 5 - 4.5 = 0.5 < h, so min = 5 - h / 2
    left = bounds_before_each_token(space, [("x1<", 1.2), ("a1", None)])
    assert left[1] == (0, 0.5, 1, 8)  # 0.2 - 0 < h, so max = 0 + h / 2
    prefix = space.start(1).advance(np.array([0]), np.array([1.2]))
    forbidden = space.options(prefix).forbidden[0]
    assert forbidden[space.library.id("x1<")]
    assert not forbidden[space.library.id("x2<")]


@given(st.floats(1e-3, 0.3), st.integers(0, 2**32 - 1))
def test_thresholds_never_contradict_those_above(resolution, seed):
    space = decision_tree(max_length=25, resolution=resolution)
    drawn = sample(space, UniformStepper(space), 30, np.random.default_rng(seed)).designs
    for design in drawn:
        assert not space.violations(design)
        check_subtree(list(design), {"x1<": (0.0, 5.0), "x2<": (1.0, 8.0)})


def check_subtree(items, box):
    """Every threshold lies strictly inside the box of observations that reach its node; returns the rest."""
    (name, value), rest = items[0], items[1:]
    if value is None:
        return rest
    low, high = box[name]
    assert low < value < high or (value in (low, high) and (low, high) in ((0.0, 5.0), (1.0, 8.0)))
    rest = check_subtree(rest, {**box, name: (low, value)})
    return check_subtree(rest, {**box, name: (value, high)})


def test_finite_ranges_and_h_give_finite_depth():
    """With no room to split left, only actions are allowed, long before max_length."""
    space = Space(
        [Token("x<", 2, range=(0, 1)), Token("a"), Token("b")], Tree(1, 4001), bounds=DecisionTreeBounds(0.2)
    )
    drawn = sample(space, UniformStepper(space), 200, np.random.default_rng(0)).designs
    assert drawn.lengths.max() < 40


def test_bounds_of_ones_own():
    class Increasing(Bounds):
        """Each value is at least the one before it."""

        def interval(self, prefix):
            low = np.tile(prefix.library.low, (len(prefix), 1))
            high = np.tile(prefix.library.high, (len(prefix), 1))
            if prefix.position:
                low[:, 0] = prefix.values[:, -1]
            return low, high

    space = Space([Token("v", range=(0, 1))], FixedSequence(5), bounds=Increasing())
    values = sample(space, UniformStepper(space), 100, np.random.default_rng(0)).designs.values
    assert np.all(np.diff(values, axis=1) >= 0)
    broken = space.violations(Design.of(("v", 0.5), ("v", 0.4), ("v", 0.6), ("v", 0.7), ("v", 0.8)))
    assert [v.position for v in broken] == [1]
    assert "0.4" in str(broken[0])
    assert "Increasing" in str(broken[0])


def test_decisions_with_several_values_stand_beside_bounded_ones():
    tilted = Token("x + w y <", 2, weight=Real(-1, 1), threshold=Real(0, 1))
    tokens = [Token("x <", 2, range=(0, 1)), tilted, Token("a"), Token("b")]
    space = Space(tokens, Tree(1, 15), bounds=DecisionTreeBounds(0.2))
    decided, both = ("x <", 0.5), ("x + w y <", {"weight": 0.5, "threshold": 0.9})
    assert not space.violations(Design.of(both, both, "a", "b", decided, ("x <", 0.2), "a", "b", "a"))
    assert space.violations(Design.of(decided, both, ("x <", 0.6), "a", "b", "a", "b"))


def test_bad_bounds_are_refused():
    leaf = [Token("x<", 2, range=(0, 1)), Token("a"), Token("c", 1, range=(0, 1))]
    with pytest.raises(DeclarationError, match="arity 2"):
        Space(leaf, Tree(), bounds=DecisionTreeBounds())
    with pytest.raises(DeclarationError, match="infinite"):
        Space([Token("x<", 2, range=(0, np.inf)), Token("a")], Tree(), bounds=DecisionTreeBounds())
    with pytest.raises(DeclarationError, match="resolution"):
        DecisionTreeBounds(-0.1)
    with pytest.raises(DeclarationError, match="Tree"):
        Space([Token("a")], FixedSequence(2), bounds=DecisionTreeBounds())
    with pytest.raises(DeclarationError, match="has no token"):
        Space(decision_tree().library, Tree(), bounds=DecisionTreeBounds(resolutions={"x9<": 0.1}))
