"""The optimiser against torch's."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from discodso.disco.adam import Adam


def parameters(seed=0):
    torch.manual_seed(seed)
    return [torch.randn(size, requires_grad=True) for size in ((3, 4), (7,), (1,), (2, 2))]


def descend(optimiser, own, steps, first=0):
    for step in range(first, first + steps):
        optimiser.zero_grad()
        # The last takes part in every third step only, so that it has no gradient in the others.
        used = own if step % 3 == 2 else own[:-1]
        sum(((p - step) ** 2 * (k + 1e-3)).sum() for k, p in enumerate(used)).backward()
        optimiser.step()


@pytest.mark.parametrize("rate", [1e-3, 0.05])
def test_every_step_is_that_of_torch(rate):
    own, theirs = parameters(), parameters()
    mine, other = Adam(own, rate), torch.optim.Adam(theirs, lr=rate)
    for step in range(60):
        descend(mine, own, 1, step)
        descend(other, theirs, 1, step)
        for a, b in zip(own, theirs, strict=True):
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_it_goes_on_from_its_arrays():
    own, theirs = parameters(), parameters()
    mine, other = Adam(own, 0.01), Adam(theirs, 0.01)
    descend(mine, own, 30)
    descend(other, theirs, 11)
    fresh = Adam(theirs, 0.01)
    fresh.restore(other.to_arrays())
    descend(fresh, theirs, 19, first=11)
    for a, b in zip(own, theirs, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_arrays_of_another_network_are_refused():
    own = parameters()
    optimiser = Adam(own, 0.01)
    descend(optimiser, own, 3)
    with pytest.raises(ValueError, match="another network"):
        Adam(own[1:], 0.01).restore(optimiser.to_arrays())
    with pytest.raises(ValueError, match="another network"):
        Adam(own[:1], 0.01).restore(optimiser.to_arrays())
    with pytest.raises(ValueError, match="another network"):
        Adam(own, 0.01).restore({**optimiser.to_arrays(), "0/step": np.array(np.inf)})


def test_a_search_does_not_import_what_it_does_not_need():
    """The compiler of torch and SymPy would take longer to import than many a search."""
    code = (
        "import sys; from discodso import search; from discodso.tasks.bitstring import bitstring; "
        "search(bitstring(4), budget=300); print({'torch._dynamo', 'sympy', 'botorch', 'ray'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
