"""Compiled loops over the rows of a batch: the bookkeeping of prefixes, and drawing tokens.

Plain loops are shorter here than the equivalent array expressions, and several times faster. Nothing in this
module checks its arguments; the modules that call it do.
"""

from __future__ import annotations

import numpy as np

from discodso.base.arrays import Bools, Floats, Ints, Singles
from discodso.base.compiled import compiled
from discodso.space.tokens import Coordinates
from discodso.space.traversals import Traversals


@compiled()
def advance(
    t: Traversals,
    position: int,
    slots: Ints,
    chosen: Ints,
    chosen_values: Floats,
    opens: Ints,
    chain: bool,
    coordinates: Coordinates,
    next_slots: Ints,
) -> int:
    """Append one token to every unfinished design and find the slot that comes next in pre-order.

    chosen_values is float[B, V]. The traversals hold the designs themselves and are written in place, each cell
    once (`missing` and `last_child` excepted, they describe the open end of the traversal). `slots` is
    int[8, B]: row, open slots, parent position, sibling position, child index, depth, parent token, sibling token.
    Rows of `next_slots` are filled for the designs that are still unfinished; their number is returned.
    """
    log, offset, width = coordinates
    alive = 0
    for i in range(chosen.shape[0]):
        row, token = slots[0, i], chosen[i]
        parent, depth = slots[2, i], slots[5, i]
        t.tokens[row, position] = token
        for j in range(chosen_values.shape[1]):
            value = chosen_values[i, j]
            t.values[row, position, j] = value
            if not np.isnan(value):
                raw = np.log(value) if log[token, j] else value
                t.coordinates[row, position, j] = (raw - offset[token, j]) / width[token, j]
        t.lengths[row] = position + 1
        open_slots = slots[1, i] - 1 + opens[token]
        t.parents[row, position] = parent
        t.siblings[row, position] = slots[3, i]
        t.missing[row, position] = opens[token]
        t.last_child[row, position] = -1
        if parent >= 0 and not chain:
            t.missing[row, parent] -= 1
            t.last_child[row, parent] = position
        if open_slots == 0:
            continue
        sibling, child = -1, 0
        above = position
        if chain:
            depth = position + 1
        else:
            # Climb to the nearest ancestor that still lacks a child.
            while t.missing[row, above] == 0:
                above = t.parents[row, above]
                depth -= 1
            depth += 1
            sibling = t.last_child[row, above]
            child = opens[t.tokens[row, above]] - t.missing[row, above]
        next_slots[0, alive] = row
        next_slots[1, alive] = open_slots
        next_slots[2, alive] = above
        next_slots[3, alive] = sibling
        next_slots[4, alive] = child
        next_slots[5, alive] = depth
        next_slots[6, alive] = t.tokens[row, above]
        next_slots[7, alive] = t.tokens[row, sibling] if sibling >= 0 else -1
        alive += 1
    return alive


@compiled()
def count_tokens(tokens: Ints, rows: Ints, position: int, counts: Ints) -> None:
    """Add to counts[B, K] the tokens before a position."""
    for i in range(rows.shape[0]):
        for at in range(position):
            counts[i, tokens[rows[i], at]] += 1


@compiled()
def ancestors(tokens: Ints, parents: Ints, rows: Ints, parent_position: Ints, found: Bools) -> None:
    """Mark in found[B, K] the tokens on the way from the slot to the root."""
    for i in range(rows.shape[0]):
        at = parent_position[i]
        while at >= 0:
            found[i, tokens[rows[i], at]] = True
            at = parents[rows[i], at]


@compiled()
def paths(parents: Ints, rows: Ints, parent_position: Ints, depth: Ints, path: Ints) -> None:
    """Fill path[B, D] with the positions from the root down to the parent of the slot."""
    for i in range(rows.shape[0]):
        at, level = parent_position[i], depth[i] - 1
        while at >= 0:
            path[i, level] = at
            at = parents[rows[i], at]
            level -= 1


@compiled()
def decision_tree_bounds(
    t: Traversals,
    rows: Ints,
    path: Ints,
    child_index: Ints,
    decision: Bools,
    whole: Bools,
    resolution: Floats,
    low: Floats,
    high: Floats,
) -> None:
    """Algorithm "Finding bounds for parameters in decision trees" of the appendix, from the root to the slot.

    low[B, K, V] and high[B, K, V] hold the declared ranges on entry and the bounds of the next token on return.
    The threshold of a decision is the only value of its token; that of a whole one leaves the interval empty where
    no integer is left. A node of a path is a left child exactly if it
    directly follows its parent in pre-order.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        for level in range(path.shape[1]):
            at = path[i, level]
            if at < 0:
                break
            token = t.tokens[row, at]
            if not decision[token]:
                continue
            below = path[i, level + 1] if level + 1 < path.shape[1] else -1
            left = below == at + 1 if below >= 0 else child_index[i] == 0
            h, threshold = resolution[token], t.values[row, at, 0]
            if left:
                high[i, token, 0] = threshold - h
                if not whole[token] and high[i, token, 0] - low[i, token, 0] < h:
                    high[i, token, 0] = low[i, token, 0] + h / 2
            else:
                low[i, token, 0] = threshold + h
                if not whole[token] and high[i, token, 0] - low[i, token, 0] < h:
                    low[i, token, 0] = high[i, token, 0] - h / 2


@compiled()
def fill_inputs(
    ids: Ints, z: Floats, width: int, feature: Ints, options: Ints, limit: float, inputs: Singles
) -> None:
    """Write one-hot tokens and their values into inputs[N, S * width], which must be zero.

    ids[S, N] has -1 where there is no such token; its values are z[S, N, V]. feature[K, V] says where a value
    stands behind the tokens, -1 for none: a coordinate, clipped to +-limit, or one of options[K, V] places. Each
    of the S tokens has `width` inputs.
    """
    count = feature.shape[0]
    for s in range(ids.shape[0]):
        first = s * width
        for n in range(ids.shape[1]):
            token = ids[s, n]
            if token < 0:
                continue
            inputs[n, first + token] = 1.0
            for j in range(feature.shape[1]):
                at = feature[token, j]
                if at < 0:
                    continue
                if options[token, j] == 0:
                    inputs[n, first + count + at] = min(max(z[s, n, j], -limit), limit)
                elif z[s, n, j] >= 0:
                    inputs[n, first + count + at + int(z[s, n, j])] = 1.0


@compiled()
def neighbours(
    tokens: Ints, coordinates: Floats, slots: Ints, position: int, which: Ints, ids: Ints, z: Floats
) -> None:
    """Tokens and coordinates beside the next slot: ids[S, B] and z[S, B, V].

    `which` says for each of the S neighbours what it is: 0 the previous token, 1 the parent, 2 the sibling.
    """
    for s in range(which.shape[0]):
        for i in range(slots.shape[1]):
            at = position - 1 if which[s] == 0 else slots[1 + which[s], i]
            ids[s, i] = tokens[slots[0, i], at] if at >= 0 else -1
            for j in range(z.shape[2]):
                z[s, i, j] = coordinates[slots[0, i], at, j] if at >= 0 else 0.0


@compiled()
def draw_tokens(logits: Singles | Floats, forbidden: Bools, uniform: Floats, chosen: Ints) -> int:
    """Draw a token for each row from the masked softmax of logits[B, K] by inversion of its CDF.

    A forbidden token has probability exactly 0. Returns the first row with no allowed token, or -1.
    """
    count = logits.shape[1]
    weights = np.empty(count)
    for i in range(logits.shape[0]):
        top = -np.inf
        for k in range(count):
            if not forbidden[i, k] and logits[i, k] > top:
                top = logits[i, k]
        if top == -np.inf:
            return i
        total = 0.0
        for k in range(count):
            weights[k] = 0.0 if forbidden[i, k] else np.exp(logits[i, k] - top)
            total += weights[k]
        target, running, token = uniform[i] * total, 0.0, -1
        for k in range(count):
            if weights[k] > 0.0:
                token = k  # the last one stands if rounding leaves the target above the sum
                running += weights[k]
                if running > target:
                    break
        chosen[i] = token
    return -1


@compiled()
def run_automaton(tokens: Ints, rows: Ints, position: int, following: Ints, states: Ints) -> None:
    """Walk an automaton, following[S, K], along the tokens before a position; -1 after a step that it has not."""
    for i in range(rows.shape[0]):
        state = 0
        for at in range(position):
            if state >= 0:
                state = following[state, tokens[rows[i], at]]
        states[i] = state
