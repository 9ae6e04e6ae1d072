"""Skeletons and units: whether rules look at values decides how they are filled, not what comes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from spaces import mixed_sequence, symbolic

from discodso import Constraint
from discodso.space import skeletons


class Walked(Constraint):
    """Forbids nothing, but may look at values for all one knows."""

    def forbidden(self, prefix):
        return prefix.forbid_nothing()


class Declared(Walked):
    sees_values = False


def drawn(space):
    return replace(space.sample(40), origin=None)


@pytest.mark.parametrize("space", [symbolic(), mixed_sequence()])
def test_the_short_way_and_the_walk_agree(space, monkeypatch):
    own = replace(space, constraints=(*space.constraints, Walked()))
    declared = replace(space, constraints=(*space.constraints, Declared()))
    designs = drawn(space)
    short, long = (skeletons.units_of(each, designs) for each in (declared, own))
    np.testing.assert_allclose(short, long, rtol=1e-9)
    for each, units in ((declared, short), (own, long)):
        again, feasible = skeletons.fill(each, designs, units)
        assert feasible.all()
        np.testing.assert_allclose(again.values, designs.values, rtol=1e-9)
    monkeypatch.setattr(skeletons, "_walk", None)  # only the short way does without it
    skeletons.units_of(declared, designs)
    with pytest.raises(TypeError):
        skeletons.units_of(own, designs)
