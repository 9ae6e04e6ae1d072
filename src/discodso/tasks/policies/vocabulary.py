"""The tokens of trees: which splits and leaves there are, and how a design becomes a tree and back.

Weights of oblique splits belong to features on the scale of their ranges, z = (x - centre) / width. A threshold of
an oblique split is a share, from -1 to 1, of the largest sum that the features can have, so that every value of it
divides the box of ranges. Weights of linear leaves belong to features on the scale of what they show: where ranges
move, of what random actions meet, which may be much narrower. With the largest weight a fiftieth of that takes an
action from the middle of its range to an end. A small weight counts as none: sums stay short where they can be.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.compiled import compiled
from discodso.base.errors import InvalidDesignError
from discodso.space.design import Design, DesignBatch
from discodso.space.space import Space
from discodso.space.tokens import Library, Token
from discodso.space.values import Choice, Integer, Real
from discodso.tasks.policies.columns import LEAF, NUMBER, OBLIQUE, Columns
from discodso.tasks.policies.leaves import ActionNumbers, Leaf
from discodso.tasks.policies.policy_options import Splits
from discodso.tasks.policies.splits import Nodes, Oblique, Split
from discodso.tasks.policies.terms import Limits

_SIGN = " <"  # ends the name of a decision's token
_AND = " & "  # between the features of a pair
_ALL = "mix"  # the sum of all features
_CHOICE, _SPLIT, _PAIR, _SUM, _NUMBERS, _LINEAR = range(6)
_SMALL = 0.1  # a weight of a split below this share of the largest counts as none
IDLE = 0.05  # of a linear leaf likewise, absolutely
_OPTIONS = (
    20  # of a whole number of an action; one with more is drawn as a number, whose neighbours are alike
)
_STEEP = 0.98  # bends the weights of linear leaves: 0.5 is about 1, and 1 is 50


class Meanings(NamedTuple):
    """What each of K tokens means, for F features and A numbers of an action.

    Attributes:
        kind: int[K].
        number: int[K], the feature of a univariate split, the action of a choice.
        half: float[K], what is added to a threshold: 0.5 where features are integers.
        members: int[K, F], the features of a sum; -1 after the last.
        centre, width: float[F], of ranges; the width is half of it.
        origin, unit: float[F], likewise of what features show, for linear leaves.
        middle, span: float[A], of actions: numbers of leaves are raw values, but those of linear leaves shares.
        first: float[A], what the number of an option is added to.
        least: of the weights of a split, as a share of the largest; smaller ones count as none.
    """

    kind: Ints
    number: Ints
    half: Floats
    members: Ints
    centre: Floats
    width: Floats
    origin: Floats
    unit: Floats
    middle: Floats
    span: Floats
    first: Floats
    least: float


class TreeNames(NamedTuple):
    """What features and actions are called, and what an action is where it is no choice."""

    features: tuple[str, ...]
    actions: tuple[tuple[int, str], ...]
    numbers: ActionNumbers | None


@dataclass(frozen=True)
class Vocabulary:
    """The K tokens of trees, decisions first, and what each means."""

    tokens: tuple[Token, ...]
    meanings: Meanings
    declared: str  # what it was made from, as JSON

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        ranges: Sequence[Limits | None],
        actions: Iterable[tuple[int, str]] = (),
        numbers: ActionNumbers | None = None,
        whole: Sequence[bool] = (),
        splits: Splits = "univariate",
        together: Sequence[int] | None = None,
        linear: bool = False,
        shown: Sequence[Limits | None] = (),
        least_weight: float = _SMALL,
    ) -> Vocabulary:
        """Tokens for features and actions.

        Args:
            names, ranges: of features and of their thresholds; None leaves a feature out.
            actions: choices, with their names.
            numbers: what an action is where it is no choice.
            whole: for each feature whether it is an integer.
            splits: whether there are splits of two, or of all, features beside the univariate ones.
            together: the features of oblique splits and linear leaves, all by default.
            linear: whether there are linear leaves beside constant ones.
            shown: where features lie, for the weights of linear leaves; by default, and where it is None, in their
                ranges.
            least_weight: of a split, as a share of its largest; smaller ones count as none.
        """
        actions = list(actions)
        declared = {
            "names": list(names),
            "ranges": [limits and list(limits) for limits in ranges],
            "actions": list(map(list, actions)),
            "numbers": numbers and numbers.to_dict(),
            "whole": list(whole),
            "splits": splits,
            "together": together and list(together),
            "linear": linear,
            "shown": [limits and list(limits) for limits in shown],
            "least_weight": least_weight,
        }
        values: dict[str, Any] = {}
        used = [(n, limits) for n, limits in enumerate(ranges) if limits is not None]
        mixed = [n for n, _ in used if together is None or n in together]
        rows: list[tuple[Token, int, int, float, Sequence[int]]] = []
        for n, (low, high) in used:
            if n < len(whole) and whole[n]:
                below = Integer(math.ceil(low), max(math.ceil(high) - 1, math.ceil(low)))
                rows.append((Token(names[n] + _SIGN, 2, value=below), _SPLIT, n, 0.5, ()))
            else:
                rows.append((Token(names[n] + _SIGN, 2, (low, high)), _SPLIT, n, 0.0, ()))
        if splits == "pair":
            for pair in combinations(mixed, 2):
                values = {"angle": Real(0.0, math.pi), "at": Real(-1.0, 1.0)}
                word = _AND.join(names[n] for n in pair) + _SIGN
                rows.append((Token(word, 2, **values), _PAIR, 0, 0.0, pair))
        elif splits == "oblique" and len(mixed) > 1:
            weights: dict[str, Any] = {
                word: Real(-1.0, 1.0) for word in _identifiers([names[n] for n in mixed], ("at",))
            }
            rows.append((Token(_ALL + _SIGN, 2, **weights, at=Real(-1.0, 1.0)), _SUM, 0, 0.0, mixed))
        if numbers is None:
            rows += [(Token(word), _CHOICE, action, 0.0, ()) for action, word in actions]
        else:
            rows.append((Token("set", **_constants(numbers)), _NUMBERS, 0, 0.0, ()))
        if numbers is not None and linear and not numbers.whole:
            words = _identifiers([names[n] for n in mixed])
            parts = ["", *(f"_{name}" for name in words)]
            own = (f"{word}{part}" for word in _identifiers(numbers.names) for part in parts)
            values = dict.fromkeys(own, Real(-1.0, 1.0))
            rows.append((Token("linear", **values), _LINEAR, 0, 0.0, mixed))
        meanings = _meanings(rows, ranges, shown, numbers, least_weight)
        return cls(tuple(row[0] for row in rows), meanings, json.dumps(declared))

    @classmethod
    def declared_as(cls, text: str) -> tuple[Vocabulary, TreeNames]:
        """The vocabulary with this `declared`, and names; any of Python's errors or ours if it is none."""
        given = json.loads(text)
        numbers = None if given["numbers"] is None else ActionNumbers.from_dict(given["numbers"])
        actions = tuple((int(action), str(word)) for action, word in given["actions"])
        made = cls.of(**{**given, "actions": actions, "numbers": numbers})
        return made, TreeNames(tuple(given["names"]), actions, numbers)

    @classmethod
    def of_names(cls, tokens: Iterable[str]) -> tuple[Vocabulary, TreeNames]:
        """Tokens of these names, and what features and actions are called: for pages, which know nothing else."""
        names = list(tokens)
        features = tuple(name.removesuffix(_SIGN) for name in names if name.endswith(_SIGN))
        actions = tuple(enumerate(name for name in names if not name.endswith(_SIGN)))
        made = cls.of(features, [(-math.inf, math.inf)] * len(features), actions)
        return made, TreeNames(features, actions, None)

    @property
    def looks(self) -> tuple[tuple[int, ...], ...]:
        """For each token the features that it may look at."""
        m = self.meanings
        rows = zip(m.kind.tolist(), m.number.tolist(), m.members.tolist(), strict=True)
        return tuple(
            (number,) if kind == _SPLIT else tuple(n for n in members if n >= 0)
            for kind, number, members in rows
        )

    def thresholds(self) -> list[tuple[int, int]]:
        """The tokens of univariate splits, each with its feature."""
        kinds = self.meanings.kind.tolist()
        return [(k, int(self.meanings.number[k])) for k, kind in enumerate(kinds) if kind == _SPLIT]

    def columns(self, designs: DesignBatch) -> tuple[Columns, Ints]:
        """The trees of B designs, one after the other, and int[B + 1], where each begins."""
        offset = np.concatenate(([0], np.cumsum(designs.lengths)))
        size, room = int(offset[-1]), self._room
        there = designs.tokens[np.arange(designs.tokens.shape[1]) < designs.lengths[:, None]]
        terms = room[there]
        first = np.cumsum(terms) - terms
        total = int(terms.sum())
        nodes = np.empty(size, np.int64), np.zeros(size), np.zeros(size, np.int64), first
        made = Columns(*nodes, np.zeros(size, np.int64), np.empty(total, np.int64), np.empty(total))
        given = designs.tokens, designs.all_values, designs.lengths
        if not _fill(*given, self.meanings, offset, made):
            raise InvalidDesignError("a design is not one whole tree")
        return made, offset

    @property
    def _room(self) -> Ints:
        """int[K], the most terms that a token may have."""
        sizes, dims = (self.meanings.members >= 0).sum(axis=1), len(self.meanings.middle)
        most = {_CHOICE: 0, _SPLIT: 0, _PAIR: 2, _NUMBERS: dims}
        rows = zip(self.meanings.kind.tolist(), sizes.tolist(), strict=True)
        room = [size if kind == _SUM else most.get(kind, dims * (1 + size)) for kind, size in rows]
        return np.array(room, np.int64)

    def nodes(self, design: Design) -> Nodes:
        """The tree of one design."""
        library = Library(self.tokens)
        ids = {token.name: k for k, token in enumerate(self.tokens)}
        values = np.full((1, len(design), max(library.slots, 1)), np.nan)
        for place, part in enumerate(design):
            token = self.tokens[ids[part.name]] if part.name in ids else None
            if token is None or set(part.values) != {name for name, _ in token.values}:
                raise InvalidDesignError(f"{part!r} is no token of these trees")
            for slot, (name, value) in enumerate(token.values):
                number = value.encode(part.values[name])
                if number is None:
                    raise InvalidDesignError(f"{part!r}: {name} must be {value.expected}")
                values[0, place, slot] = number
        tokens = np.array([[ids[name] for name in design.tokens]], np.int64)
        batch = DesignBatch(library, tokens, library.narrow(values), np.array([len(design)]))
        return self.columns(batch)[0].nodes()

    def design(self, nodes: Nodes) -> Design:
        """The design of a tree: the inverse of `nodes`, up to rounding; InvalidDesignError if there is none.

        Weights that other features have are left out only if they are none; values outside their ranges move to
        the ends.
        """
        return Design.of(*(self._entry(node) for node, _ in nodes))

    def _entry(self, node: Split | Oblique | Leaf) -> tuple[str, Any]:
        """The token of a node and its values by name, or its one value without a name."""
        m = self.meanings
        for token, kind, number, half, row in zip(
            self.tokens, m.kind.tolist(), m.number.tolist(), m.half.tolist(), m.members, strict=True
        ):
            members = row[row >= 0].tolist()
            found: list[float] | None = None
            if isinstance(node, Split):
                if kind == _SPLIT and number == node.feature:
                    found = [math.ceil(node.threshold) - 1 if half else node.threshold]
            elif isinstance(node, Oblique):
                if kind in (_PAIR, _SUM) and {n for n, _ in node.terms} <= set(members):
                    found = self._of_sum(node, members, kind == _PAIR)
            elif not node.numbers:
                if kind == _CHOICE and number == node.action:
                    found = []
            elif len(node.numbers) == len(m.middle):
                if kind == _NUMBERS and not any(node.weights):
                    found = [number - first for number, first in zip(node.numbers, m.first, strict=True)]
                elif kind == _LINEAR and {n for own in node.weights for n, _ in own} <= set(members):
                    found = self._of_linear(node, members)
            if found is not None:
                return token.name, _carried(token, found)
        raise InvalidDesignError(f"these trees have no token for {node!r:.200}")

    def _of_sum(self, split: Oblique, members: list[int], pair: bool) -> list[float]:
        m, weights = self.meanings, dict(split.terms)
        scaled = [weights.get(n, 0.0) * m.width[n] for n in members]
        middle = sum(weights.get(n, 0.0) * m.centre[n] for n in members)
        at = (split.threshold - middle) / sum(map(abs, scaled))
        if pair:
            angle = math.atan2(scaled[1], scaled[0])
            if angle < 0:  # the other way round there is no token; a pair looks the same way only up to here
                raise InvalidDesignError(
                    "a pair split whose second weight is negative has its sides exchanged"
                )
            return [angle, at]
        return [*(own / max(map(abs, scaled)) for own in scaled), at]

    def _of_linear(self, leaf: Leaf, members: list[int]) -> list[float]:
        m, found = self.meanings, list[float]()
        for (number, own), middle, span in zip(leaf.sums, m.middle, m.span, strict=True):
            weights = dict(own)
            bias = number + sum(weight * m.origin[n] for n, weight in own)
            sizes = [bias - middle, *(weights.get(n, 0.0) * m.unit[n] for n in members)]
            shares = [size / span if span else 0.0 for size in sizes]
            found += [_unbent(share, place > 0) for place, share in enumerate(shares)]
        return found


def _carried(token: Token, found: Sequence[float]) -> Any:
    """Values by name, moved into their ranges; one without a name where a token has such."""
    held = {}
    for (name, value), number in zip(token.values, found, strict=True):
        inside = min(max(number, value.low), value.high)
        held[name] = value.decode(inside if isinstance(value, Real) else round(inside))
    return held["value"] if token.plain else held or None


def _constants(numbers: ActionNumbers) -> dict[str, Any]:
    ends = zip(_identifiers(numbers.names), numbers.low, numbers.high, strict=True)
    return {name: _number(low, high, numbers.whole) for name, low, high in ends}


def _number(low: float, high: float, whole: bool) -> Real | Integer | Choice:
    """One number of an action; the few that are possible are options."""
    if low == high or (whole and high - low <= _OPTIONS):
        return Choice(*range(int(low), int(high) + 1)) if whole else Choice(low)
    return Integer(int(low), int(high)) if whole else Real(low, high)


def _identifiers(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Names that values of a token may have, each different."""
    found = list(taken)
    for name in names:
        word = re.sub(r"\W+", "_", name).strip("_") or "x"
        word = f"x{word}" if word[0].isdigit() or word in _RESERVED else word
        while word in found:
            word += "_"
        found.append(word)
    return found[len(taken) :]


_RESERVED = ("name", "values", "arity", "range", "scale", "complexity", "value")


def _meanings(
    rows: Sequence[tuple[Token, int, int, float, Sequence[int]]],
    ranges: Sequence[Limits | None],
    shown: Sequence[Limits | None],
    numbers: ActionNumbers | None,
    least: float,
) -> Meanings:
    size = max([1, *(len(row[4]) for row in rows)])
    members = np.full((len(rows), size), -1)
    for k, row in enumerate(rows):
        members[k, : len(row[4])] = row[4]
    met = [own or limits for own, limits in zip(shown, ranges, strict=True)] if shown else ranges
    low, high = (np.array(end, np.float64) for end in ((numbers.low, numbers.high) if numbers else ((), ())))
    options = (high - low <= _OPTIONS) & (numbers is not None and numbers.whole) | (low == high)
    first = np.where(options, low, 0.0)
    return Meanings(
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.float64),
        members.astype(np.int64),
        *_scale(ranges),
        *_scale(met),
        (low + high) / 2,
        (high - low) / 2,
        first,
        least,
    )


def _scale(ranges: Sequence[Limits | None]) -> tuple[Floats, Floats]:
    """The centre and half of the width of each range."""
    ends = np.array([limits or (0.0, 1.0) for limits in ranges], np.float64).reshape(-1, 2)
    with np.errstate(invalid="ignore"):  # infinite ranges belong to univariate splits only
        return (ends[:, 0] + ends[:, 1]) / 2, (ends[:, 1] - ends[:, 0]) / 2


@dataclass(frozen=True)
class TreeSpace(Space):
    """A space of trees, and what its tokens mean."""

    vocabulary: Vocabulary = field(kw_only=True, compare=False)


# ------------------------------------------------------------------------------------- compiled


@compiled()
def _fill(
    tokens: Ints, values: Floats, lengths: Ints, meanings: Meanings, offset: Ints, columns: Columns
) -> bool:
    """Fill the nodes of all trees from traversals; whether all of them are whole trees."""
    waiting = np.empty(tokens.shape[1], np.int64)  # decisions whose right child is still to come
    for row in range(lengths.shape[0]):
        open_slots = 1
        for position in range(lengths[row]):
            if open_slots == 0:
                return False
            node, token = offset[row] + position, tokens[row, position]
            kind = meanings.kind[token]
            if kind == _SPLIT:
                columns.feature[node] = meanings.number[token]
                columns.threshold[node] = values[row, position, 0] + meanings.half[token]
            elif kind in (_PAIR, _SUM):
                _fill_sum(values[row, position], meanings, token, node, columns)
            else:
                columns.feature[node] = LEAF
                columns.jump[node] = meanings.number[token]
                if kind != _CHOICE:
                    _fill_numbers(values[row, position], meanings, token, node, columns)
            if kind in (_SPLIT, _PAIR, _SUM):
                waiting[open_slots - 1] = node
                open_slots += 1
            else:
                open_slots -= 1
                if open_slots > 0:  # next comes the right child of the last decision that lacks one
                    decision = waiting[open_slots - 1]
                    columns.jump[decision] = node + 1 - decision
        if open_slots > 0:
            return False
    return True


@compiled()
def _fill_sum(values: Floats, meanings: Meanings, token: int, node: int, columns: Columns) -> None:
    """An oblique split; a univariate one if a single weight is left. The largest weight becomes 1 or -1."""
    members, size = meanings.members[token], 0
    while size < members.shape[0] and members[size] >= 0:
        size += 1
    weights = np.empty(size)
    if meanings.kind[token] == _PAIR:
        weights[0], weights[1] = math.cos(values[0]), math.sin(values[0])
        at = values[1]
    else:
        for n in range(size):
            weights[n] = values[n]
        at = values[size]
    top = 0
    for n in range(size):
        if abs(weights[n]) > abs(weights[top]):
            top = n
    if weights[top] == 0.0:
        weights[top] = 1.0
    left, total, middle = 0, 0.0, 0.0
    for n in range(size):
        if abs(weights[n]) < meanings.least * abs(weights[top]):
            weights[n] = 0.0
            continue
        left += 1
        total += abs(weights[n])
        middle += weights[n] / meanings.width[members[n]] * meanings.centre[members[n]]
    feature = members[top]
    if left == 1:
        columns.feature[node] = feature
        columns.threshold[node] = meanings.centre[feature] + at * meanings.width[feature]
        return
    unit = abs(weights[top] / meanings.width[feature])
    columns.feature[node] = OBLIQUE
    columns.threshold[node] = (at * total + middle) / unit
    place = columns.first[node]
    for n in range(size):
        if weights[n] != 0.0:
            columns.term[place] = members[n]
            columns.weight[place] = weights[n] / meanings.width[members[n]] / unit
            place += 1
    columns.count[node] = left


@compiled()
def _fill_numbers(values: Floats, meanings: Meanings, token: int, node: int, columns: Columns) -> None:
    """The numbers of a leaf and their terms."""
    members, size = meanings.members[token], 0
    linear = meanings.kind[token] == _LINEAR
    while linear and size < members.shape[0] and members[size] >= 0:
        size += 1
    place = columns.first[node]
    for a in range(meanings.middle.shape[0]):
        columns.term[place] = NUMBER
        here = place
        place += 1
        if not linear:
            columns.weight[here] = meanings.first[a] + values[a]
            continue
        begin = a * (1 + size)
        number = meanings.middle[a] + meanings.span[a] * bent(values[begin], 0.0)
        for n in range(size):
            weight = meanings.span[a] * bent(values[begin + 1 + n], IDLE) / meanings.unit[members[n]]
            if weight != 0.0:
                number -= weight * meanings.origin[members[n]]
                columns.term[place] = members[n]
                columns.weight[place] = weight
                place += 1
        columns.weight[here] = number
    columns.count[node] = place - columns.first[node]


@compiled()
def bent(value: float, idle: float) -> float:
    """A weight of a linear leaf from a value in [-1, 1]: 0 for small ones, and up to 50 for large ones."""
    size = (abs(value) - idle) / (1.0 - idle)
    return 0.0 if size <= 0.0 else math.copysign(size / (1.0 - _STEEP * size), value)


def _unbent(share: float, weight: bool) -> float:
    """Inverse of `bent`, for a number or a weight."""
    if share == 0:
        return 0.0
    size, idle = abs(share) / (1 + _STEEP * abs(share)), IDLE if weight else 0.0
    return math.copysign(min(size * (1 - idle) + idle, 1.0), share)
