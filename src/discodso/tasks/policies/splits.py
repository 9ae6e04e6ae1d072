"""What a split is, in the one module that knows it: "x_n < t" goes left, anything else (NaN too) goes right.

Trees, pictures, exports, simulators and the search ask here: which tokens there are and how a design is read, how
a split decides, what it leaves open below it, its JSON, its words and its source code. A tree is kept in
pre-order, as the paper's traversal. Observations are promoted to float64 before they are compared, everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import is_integer, is_number
from discodso.base.errors import InvalidDesignError
from discodso.space.design import Design, DesignBatch, format_token
from discodso.space.space import Space
from discodso.space.tokens import Library, Token

_LARGEST = 2**31 - 1
_SIGN = " <"  # ends the name of a decision's token
Limits = tuple[float, float]
# What is known of a feature x: low <= x < high; NaN counts as beyond any low.
Known = dict[int, Limits]


class Split(NamedTuple):
    """Goes left where x_feature < threshold."""

    feature: int
    threshold: float

    @property
    def width(self) -> int:
        """How many numbers an observation must have."""
        return self.feature + 1

    def sides(self, known: Known) -> tuple[Known | None, Known | None]:
        """What is known where the split goes left and where it goes right; None where it never does."""
        low, high = known.get(self.feature, (-math.inf, math.inf))
        # Without a decision above, x may be -inf, which is below every threshold, and NaN or inf, which are not.
        left = {**known, self.feature: (low, min(high, self.threshold))} if low < self.threshold else None
        # Beyond the last threshold there is always something, NaN at least; below it only if there is room.
        right = {**known, self.feature: (max(low, self.threshold), high)} if self.threshold < high else None
        return left, right

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self._asdict()

    @classmethod
    def from_dict(cls, data: dict[str, Any], place: str) -> Split:
        """Inverse of `to_dict`, for a decision with its sides "left" and "right"; anything else is refused."""
        if set(data) != {*cls._fields, "left", "right"}:
            raise InvalidDesignError(
                f"{place} must have the keys {', '.join(cls._fields)}, left and right, or action alone; "
                f"it has {', '.join(map(shown, data))[:80] or 'none'}"
            )
        if not is_number(data["threshold"]):
            got = shown(data["threshold"])
            raise InvalidDesignError(f"threshold of {place} must be a finite number, got {got}")
        return cls(checked_index("feature", data["feature"], place), float(data["threshold"]))

    def subject(self, name: Callable[[int], str]) -> str:
        """What is compared, for people, given what a feature is called."""
        return name(self.feature)

    def python(self) -> str:
        """The condition in Python; float() because NumPy would round t to the float32 of the observation."""
        return f"float(x[{self.feature}]) < {self.threshold!r}"

    def c(self) -> str:
        """The condition in C."""
        return f"x[{self.feature}] < {self.threshold.hex()}"

    def onnx(self) -> tuple[str, int, float]:
        """Mode, column and value of a branch of ONNX that decides alike on every float32.

        x < t holds for a float32 x exactly if x is below the smallest float32 that is not below t; that is inf
        beyond the largest.
        """
        exact = np.float64(self.threshold)
        with np.errstate(all="ignore"):
            near = exact.astype(np.float32)
            value = np.nextafter(near, np.float32(np.inf)) if near < exact else near
        return "BRANCH_LT", self.feature, float(value)


# Of each node in pre-order its split, and how far ahead its right child is (the left one comes next); a leaf has
# None and its action.
Nodes = tuple[tuple[Split | None, int], ...]


def comparisons(nodes: Nodes, digits: int) -> list[str]:
    """Of each node what its subject is compared with, rounded, such as "< 0.25"; "" for a leaf.

    Two that differ for one subject are never shown as equal.
    """
    found: dict[int, str] = {}
    for subject in {split.feature for split, _ in nodes if split}:
        values = {
            node: split.threshold + 0.0  # which makes -0.0 a plain 0
            for node, (split, _) in enumerate(nodes)
            if split and split.feature == subject
        }
        for enough in range(digits, 18):
            texts = {node: f"< {value:.{enough}g}" for node, value in values.items()}
            if len(set(texts.values())) == len(set(values.values())):
                break
        found |= texts
    return [found.get(node, "") for node in range(len(nodes))]


# ------------------------------------------------------------------------------------- columns


class Columns(NamedTuple):
    """Nodes as columns, for walking: arrays in compiled code, lists in Python.

    feature is -1 and threshold 0.0 for a leaf; jump is as in `Nodes`.
    """

    feature: Any
    threshold: Any
    jump: Any

    @classmethod
    def of(cls, nodes: Nodes) -> Columns:
        """Nodes as lists."""
        rows = [(*(split or (-1, 0.0)), jump) for split, jump in nodes]
        return cls(*map(list, zip(*rows, strict=True)))

    def nodes(self) -> Nodes:
        """Inverse of `of`, for lists and arrays."""
        rows = zip(*(np.asarray(column).tolist() for column in self), strict=True)
        return tuple((None if feature < 0 else Split(feature, at), jump) for feature, at, jump in rows)


# The next two run in Python and inside compiled code. The cache of compiled code does not notice a change here:
# touch `_simulators.py` as well.


@register_jitable
def walk(columns: Columns, node: int, x: Any) -> int:
    """The leaf where observation x ends, from a node on; x has float64s, or Python's."""
    feature, threshold, jump = columns
    while feature[node] >= 0:
        node = node + 1 if x[feature[node]] < threshold[node] else node + jump[node]
    return node


@register_jitable
def mark_used(columns: Columns, first: int, last: int, used: Any) -> None:
    """Set used[n] to 1 for each feature n that the nodes from `first` to before `last` look at."""
    for node in range(first, last):
        if columns.feature[node] >= 0:
            used[columns.feature[node]] = 1


# ------------------------------------------------------------------------------------- tokens


@dataclass(frozen=True)
class Vocabulary:
    """The K tokens of trees, decisions first, and what each means."""

    tokens: tuple[Token, ...]
    feature: Ints  # int[K], what a decision tests, -1 for a leaf
    action: Ints  # int[K], of a leaf, -1 for a decision

    @classmethod
    def of(
        cls, names: Sequence[str], ranges: Sequence[Limits | None], actions: Iterable[tuple[int, str]]
    ) -> Vocabulary:
        """Tokens for features, with the ranges of thresholds (None to leave one out), and for named actions."""
        used = [(n, limits) for n, limits in enumerate(ranges) if limits is not None]
        rows = [(Token(names[n] + _SIGN, 2, limits), n, -1) for n, limits in used]
        rows += [(Token(word), -1, action) for action, word in actions]
        tokens = tuple(token for token, _, _ in rows)
        return cls(tokens, np.array([n for _, n, _ in rows]), np.array([action for _, _, action in rows]))

    @classmethod
    def of_names(
        cls, tokens: Iterable[str]
    ) -> tuple[Vocabulary, tuple[str, ...], tuple[tuple[int, str], ...]]:
        """Tokens of these names, and what features and actions are called: for pages, which know nothing else."""
        names = list(tokens)
        features = tuple(name.removesuffix(_SIGN) for name in names if name.endswith(_SIGN))
        actions = tuple(enumerate(name for name in names if not name.endswith(_SIGN)))
        return cls.of(features, [(-math.inf, math.inf)] * len(features), actions), features, actions

    def columns(self, designs: DesignBatch) -> tuple[Columns, Ints]:
        """The trees of B designs, one after the other, and int[B + 1], where each begins."""
        offset = np.concatenate(([0], np.cumsum(designs.lengths)))
        size = int(offset[-1])
        made = Columns(np.empty(size, np.int64), np.zeros(size), np.empty(size, np.int64))
        given = designs.tokens, designs.values, designs.lengths
        if not _fill(*given, self.feature, self.action, offset, made):
            raise InvalidDesignError("a design is not one whole tree")
        return made, offset

    def nodes(self, design: Design) -> Nodes:
        """The tree of one design."""
        ids = {token.name: k for k, token in enumerate(self.tokens)}
        for name, value in design:
            if name not in ids or (value is None) == self.tokens[ids[name]].parametrised:
                raise InvalidDesignError(f"{format_token(name, value)} is no token of these trees")
        tokens = np.array([[ids[name] for name in design.tokens]], np.int64)
        values, lengths = np.array([design.values], np.float64), np.array([len(design)])
        return self.columns(DesignBatch(Library(self.tokens), tokens, values, lengths))[0].nodes()


@dataclass(frozen=True)
class TreeSpace(Space):
    """A space of trees, and what its tokens mean."""

    vocabulary: Vocabulary = field(kw_only=True, compare=False)


@njit(cache=True)
def _fill(
    tokens: Ints, values: Floats, lengths: Ints, features: Ints, actions: Ints, offset: Ints, columns: Columns
) -> bool:
    """Fill the nodes of all trees from traversals; whether all of them are whole trees."""
    waiting = np.empty(tokens.shape[1], np.int64)  # decisions whose right child is still to come
    for row in range(lengths.shape[0]):
        open_slots = 1
        for position in range(lengths[row]):
            if open_slots == 0:
                return False
            node, token = offset[row] + position, tokens[row, position]
            columns.feature[node] = features[token]
            if features[token] >= 0:
                columns.threshold[node] = values[row, position]
                waiting[open_slots - 1] = node
                open_slots += 1
            else:
                columns.jump[node] = actions[token]
                open_slots -= 1
                if open_slots > 0:  # next comes the right child of the last decision that lacks one
                    decision = waiting[open_slots - 1]
                    columns.jump[decision] = node + 1 - decision
        if open_slots > 0:
            return False
    return True


def checked_index(key: str, value: Any, place: str) -> int:
    """The number of a feature or an action, refused if it can be none."""
    if not is_integer(value) or not 0 <= value <= _LARGEST:
        raise InvalidDesignError(f"{key} of {place} must be an integer >= 0, got {shown(value)}")
    return int(value)


def shown(value: Any) -> str:
    """The beginning of a value, for a message; some values cannot be written: too many digits, too deep."""
    try:
        return f"{value!r:.60}"
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
