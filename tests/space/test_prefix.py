"""The bookkeeping of prefixes against trees built node by node."""

from __future__ import annotations

import numpy as np
from enumeration import as_nodes
from hypothesis import given
from hypothesis import strategies as st
from spaces import small_open, symbolic

from discodso import Space, Token, Tree
from discodso.testing import random_prefixes


def check_against_nodes(space: Space, seed: int) -> None:
    walks = list(random_prefixes(space, size=20, seed=seed))
    traversals = walks[-1].traversals
    names = space.library.names
    for prefix in walks:
        for i, row in enumerate(prefix.rows.tolist()):
            finished = traversals.tokens[row]
            skeleton = tuple(names[k] for k in finished[finished >= 0])
            nodes = as_nodes(space, skeleton)
            at = prefix.position
            node = nodes[at]
            assert prefix.tokens[i].tolist() == finished[:at].tolist()
            above = [] if node.parent is None else list(node.ancestors())
            assert prefix.depth[i] == len(above)
            where = {id(n): k for k, n in enumerate(nodes)}
            assert prefix.path[i][prefix.path[i] >= 0].tolist() == [where[id(n)] for n in reversed(above)]
            assert {names[k] for k in np.flatnonzero(prefix.ancestors[i])} == {n.name for n in above}
            assert prefix.parent[i] == (-1 if node.parent is None else space.library.id(node.parent.name))
            assert prefix.previous[i] == (finished[at - 1] if at else -1)
            left = [] if node.parent is None else node.parent.children[: node.parent.children.index(node)]
            assert prefix.child_index[i] == len(left)
            assert prefix.sibling[i] == (space.library.id(left[-1].name) if left else -1)
            assert prefix.counts[i].sum() == at
            if isinstance(space.shape, Tree):
                assert prefix.open_slots[i] == 1 + sum(
                    space.library.arity[space.library.id(n.name)] - 1 for n in nodes[:at]
                )


@given(st.integers(0, 2**32 - 1))
def test_prefixes_of_trees(seed):
    check_against_nodes(symbolic(1, 20), seed)


@given(st.integers(0, 2**32 - 1))
def test_prefixes_of_trees_with_three_children(seed):
    tokens = [Token("if", 3), Token("not", 1), Token("a"), Token("b", range=(0, 1))]
    check_against_nodes(Space(tokens, Tree(1, 16)), seed)


@given(st.integers(0, 2**32 - 1))
def test_prefixes_of_sequences(seed):
    check_against_nodes(small_open(), seed)
