"""Univariate decision trees as policies: x_n < t goes left, anything else (NaN too) goes right.

A tree is kept in pre-order, as the paper's traversal: the left child of node i is node i + 1. Observations are
promoted to float64 before they are compared, everywhere.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import is_integer, is_number
from discodso.base.errors import InvalidDesignError
from discodso.base.files import write_atomically

FORMAT = "discodso-tree-policy"
Tree = TypeVar("Tree", bound="DecisionTree")
_LARGEST = 2**31 - 1
_DEEPEST = 200
_ACTION = re.compile("[0-9]{1,10}")


@dataclass(frozen=True, repr=False)
class DecisionTree:
    """A policy that a person can read.

    Two trees are equal if their nodes are; names do not count. `same_behaviour` compares what they do.

    Attributes:
        feature: of each node in pre-order the index n of the feature that it tests, -1 for a leaf.
        threshold: t of "x_n < t"; 0.0 for a leaf.
        jump: for a decision the index of its right child (the left one comes next), for a leaf its action.
        environment: id of the Gymnasium environment, with its arguments as JSON if it has any; None if unknown.
        feature_names, action_names: for people; the latter by action.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    jump: tuple[int, ...]
    environment: Environment | None = None
    feature_names: tuple[str, ...] = ()
    action_names: tuple[tuple[int, str], ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DecisionTree):
            return NotImplemented
        return self.nodes == other.nodes

    def __hash__(self) -> int:
        return hash(self.nodes)

    def __len__(self) -> int:
        return len(self.feature)

    def __repr__(self) -> str:
        where = f" for {self.environment.id}" if self.environment else ""
        return f"<{type(self).__name__}{where}: {len(self)} nodes, depth {self.depth}>"

    @property
    def nodes(self) -> tuple[tuple[int, float, int], ...]:
        """(feature, threshold, jump) of every node."""
        return tuple(zip(self.feature, self.threshold, self.jump, strict=True))

    @property
    def depth(self) -> int:
        """Decisions on the longest way to a leaf."""
        return max(self.depths())

    def depths(self) -> tuple[int, ...]:
        """Decisions above each node."""
        found = [0] * len(self)
        for node, (feature, _, jump) in enumerate(self.nodes):
            if feature >= 0:
                found[node + 1] = found[jump] = found[node] + 1
        return tuple(found)

    def parents(self) -> tuple[int, ...]:
        """Parent of each node, -1 for the root."""
        found = [-1] * len(self)
        for node, (feature, _, jump) in enumerate(self.nodes):
            if feature >= 0:
                found[node + 1] = found[jump] = node
        return tuple(found)

    def arrays(self) -> tuple[Ints, Floats, Ints]:
        """feature int[n], threshold float[n] and jump int[n], as the simulators take them."""
        return np.array(self.feature), np.array(self.threshold), np.array(self.jump)

    def feature_name(self, feature: int) -> str:
        """What a feature is called; x0, x1, ... without names."""
        return self.feature_names[feature] if feature < len(self.feature_names) else f"x{feature}"

    def action_name(self, action: int) -> str:
        """What an action is called; its number without a name."""
        return dict(self.action_names).get(action, str(action))

    # ------------------------------------------------------------------------------------- acting

    def act(self, observation: ArrayLike) -> int:
        """The action for one observation."""
        x = np.asarray(observation, dtype=np.float64).ravel()
        self._check_width(len(x))
        node = 0
        while self.feature[node] >= 0:
            goes_left = x[self.feature[node]] < self.threshold[node]
            node = node + 1 if goes_left else self.jump[node]
        return self.jump[node]

    def act_batch(self, observations: ArrayLike) -> Ints:
        """int[B], the actions for observations [B, n]."""
        return np.array(self.jump)[self.leaves_of(observations)]

    def leaves_of(self, observations: ArrayLike) -> Ints:
        """int[B], the leaf where each of the observations [B, n] ends."""
        x = np.asarray(observations, dtype=np.float64)
        if x.ndim != 2:
            raise InvalidDesignError(
                f"observations must be an array with one row for each, got shape {x.shape}"
            )
        self._check_width(x.shape[1])
        feature, threshold, jump = self.arrays()
        node, rows = np.zeros(len(x), np.int64), np.arange(len(x))
        while (deciding := feature[node] >= 0).any():
            left = x[rows, np.maximum(feature[node], 0)] < threshold[node]
            node = np.where(deciding, np.where(left, node + 1, jump[node]), node)
        return node

    def _check_width(self, width: int) -> None:
        needed = max(self.feature) + 1
        if width < needed:
            raise InvalidDesignError(
                f"the tree looks at feature {needed - 1}, but an observation has only {width} numbers"
            )

    # ------------------------------------------------------------------------------------- shape

    def with_names(
        self,
        environment: Environment | None,
        feature_names: Sequence[str] = (),
        action_names: Sequence[tuple[int, str]] = (),
    ) -> Self:
        """The same tree with names."""
        return replace(
            self,
            environment=environment,
            feature_names=tuple(feature_names),
            action_names=tuple(action_names),
        )

    def pruned(self) -> Self:
        """The tree without what cannot matter: it acts the same on every observation, NaN and infinities included.

        Decisions that the decisions above have already made are cut out, and so is a decision if one of its
        branches, alone, acts like both.
        """
        return self._like(_prune(self.nodes, 0, {}))

    def cuts(self) -> list[Self]:
        """The smaller trees, pruned and distinct, in which one decision has given way to one of its sides."""
        found: dict[Self, None] = {}
        for node, (feature, _, jump) in enumerate(self.nodes):
            for side in (node + 1, jump) if feature >= 0 else ():
                found[self._like(_replaced(self.nodes, 0, node, side)).pruned()] = None
        return list(found)

    def same_behaviour(self, other: DecisionTree) -> bool:
        """Whether two trees choose the same action for every observation."""
        return _agree(self.nodes, 0, other.nodes, 0, {})

    def _like(self, nodes: Nodes) -> Self:
        feature, threshold, jump = zip(*nodes, strict=True)
        return replace(self, feature=feature, threshold=threshold, jump=jump)

    # ------------------------------------------------------------------------------------- in and out

    def to_dict(self) -> dict[str, Any]:
        """{"feature": n, "threshold": t, "left": ..., "right": ...}, left where x_n < t, or {"action": a}."""
        made: dict[int, dict[str, Any]] = {}
        for node in reversed(range(len(self))):
            feature, threshold, jump = self.nodes[node]
            if feature < 0:
                made[node] = {"action": jump}
            else:
                left, right = made[node + 1], made[jump]
                made[node] = {"feature": feature, "threshold": threshold, "left": left, "right": right}
        return made[0]

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Inverse of `to_dict`; anything else is refused with the place and the reason.

        Takes what `save` writes as well, names included.
        """
        if isinstance(data, dict) and "tree" in data:
            return _named(cls._from_nested(data["tree"]), data)
        return cls._from_nested(data)

    @classmethod
    def _from_nested(cls, data: Any) -> Self:
        nodes: list[tuple[int, float, int]] = []
        waiting: list[tuple[Any, str, int]] = [
            (data, "the tree", -1)
        ]  # part, place, parent it is right child of
        while waiting:
            part, place, parent = waiting.pop()
            if parent >= 0:
                nodes[parent] = (*nodes[parent][:2], len(nodes))
            if not isinstance(part, dict):
                raise InvalidDesignError(f"{place} must be an object, got {_shown(part)}")
            if set(part) == {"action"}:
                nodes.append((-1, 0.0, _index("action", part["action"], place)))
                continue
            if set(part) != {"feature", "threshold", "left", "right"}:
                raise InvalidDesignError(
                    f"{place} must have the keys feature, threshold, left and right, or action alone; "
                    f"it has {', '.join(map(_shown, part))[:80] or 'none'}"
                )
            if not is_number(part["threshold"]):
                raise InvalidDesignError(
                    f"threshold of {place} must be a finite number, got {_shown(part['threshold'])}"
                )
            nodes.append((_index("feature", part["feature"], place), float(part["threshold"]), -1))
            inner = "" if parent < 0 and place == "the tree" else f"{place}."
            waiting.append((part["right"], f"{inner}right"[-80:], len(nodes) - 1))
            waiting.append((part["left"], f"{inner}left"[-80:], -1))
        feature, threshold, jump = zip(*nodes, strict=True)
        tree = cls(feature, threshold, jump)
        if tree.depth > _DEEPEST:
            raise InvalidDesignError(f"a tree of depth {tree.depth} is too deep; {_DEEPEST} is the limit")
        return tree

    def save(self, path: str | Path) -> None:
        """Write the tree and its names as JSON; `load` reads it."""
        text = json.dumps({**self.header(), "tree": self.to_dict()}, indent=1)
        write_atomically(Path(path), text + "\n")

    def header(self) -> dict[str, Any]:
        """Names and environment, for JSON."""
        return {
            "format": FORMAT,
            "environment": None if self.environment is None else self.environment.to_dict(),
            "feature_names": list(self.feature_names),
            "action_names": {str(action): name for action, name in self.action_names},
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a tree from a JSON file."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidDesignError(f"cannot read {path}: {error.strerror or error}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidDesignError(f"{path} is not a tree in JSON: {error}") from None
        try:
            return cls.from_dict(data)
        except InvalidDesignError as error:
            raise InvalidDesignError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Environment:
    """Which Gymnasium environment: its id and the arguments for `gymnasium.make`, as sorted pairs."""

    id: str
    arguments: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        given = ", ".join(f"{key}={value!r}" for key, value in self.arguments)
        return f"{self.id}({given})" if given else self.id

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"id": self.id, "arguments": dict(self.arguments)}

    @classmethod
    def from_dict(cls, data: Any) -> Environment:
        """Inverse of `to_dict`."""
        good = isinstance(data, dict) and set(data) == {"id", "arguments"} and isinstance(data["id"], str)
        if not good or not isinstance(data["arguments"], dict):
            raise InvalidDesignError(
                f"environment must be an object with id and arguments, got {_shown(data)}"
            )
        return cls(data["id"], freeze_arguments(data["id"], data["arguments"]))


def freeze_arguments(environment: str, arguments: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Arguments as sorted pairs that can be hashed: lists become tuples, for JSON knows only lists."""

    def plain(value: Any) -> bool:
        return value is None or isinstance(value, (str, int, float))

    for key, value in arguments.items():
        items = value if isinstance(value, (list, tuple)) else (value,)
        if not isinstance(key, str) or not all(plain(item) for item in items):
            raise InvalidDesignError(
                f"arguments of {environment} must have names, and be numbers, strings, booleans or lists of them, "
                f"got {_shown(key)}: {_shown(value)}"
            )
    return tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in arguments.items()))


def _index(key: str, value: Any, place: str) -> int:
    if not is_integer(value) or not 0 <= value <= _LARGEST:
        raise InvalidDesignError(f"{key} of {place} must be an integer >= 0, got {_shown(value)}")
    return int(value)


def _shown(value: Any) -> str:
    """The beginning of a value, for a message; some values cannot be written: too many digits, too deep."""
    try:
        return f"{value!r:.60}"
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"


def _named(tree: Tree, header: dict[str, Any]) -> Tree:
    environment = header.get("environment")
    features, actions = header.get("feature_names", []), header.get("action_names", {})
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise InvalidDesignError("feature_names must be a list of strings")
    if not isinstance(actions, dict) or not all(
        isinstance(key, str) and _ACTION.fullmatch(key) and isinstance(name, str)
        for key, name in actions.items()
    ):
        raise InvalidDesignError("action_names must be an object from action numbers to strings")
    return tree.with_names(
        None if environment is None else Environment.from_dict(environment),
        features,
        sorted((int(key), name) for key, name in actions.items()),
    )


# ------------------------------------------------------------------------------------- nodes and boxes

Nodes = tuple[tuple[int, float, int], ...]
Box = dict[
    int, tuple[float, float]
]  # what is known of a feature x: low <= x < high; NaN counts as beyond any low


def _subtree(nodes: Nodes, node: int) -> Nodes:
    end, open_slots = node, 1
    while open_slots:
        open_slots += 1 if nodes[end][0] >= 0 else -1
        end += 1
    return tuple((f, t, jump - node if f >= 0 else jump) for f, t, jump in nodes[node:end])


def _join(feature: int, threshold: float, left: Nodes, right: Nodes) -> Nodes:
    def shift(nodes: Nodes, by: int) -> Iterator[tuple[int, float, int]]:
        return ((f, t, jump + by if f >= 0 else jump) for f, t, jump in nodes)

    at = 1 + len(left)
    return ((feature, threshold, at), *shift(left, 1), *shift(right, at))


def _replaced(nodes: Nodes, at: int, node: int, side: int) -> Nodes:
    """The subtree at a node, with that under `side` in place of that under `node`."""
    if at == node:
        return _subtree(nodes, side)
    feature, threshold, jump = nodes[at]
    if feature < 0:
        return (nodes[at],)
    left, right = _replaced(nodes, at + 1, node, side), _replaced(nodes, jump, node, side)
    return _join(feature, threshold, left, right)


def _sides(box: Box, feature: int, threshold: float) -> tuple[Box | None, Box | None]:
    """The box where a decision goes left and where it goes right; None where it never does."""
    low, high = box.get(feature, (-math.inf, math.inf))
    # Without a decision above, x may be -inf, which is below every threshold, and NaN or inf, which are not.
    left = {**box, feature: (low, min(high, threshold))} if low < threshold else None
    # Beyond the last threshold there is always something, NaN at least; below it only if thresholds leave room.
    right = {**box, feature: (max(low, threshold), high)} if threshold < high else None
    return left, right


def _agree(first: Nodes, i: int, second: Nodes, j: int, box: Box) -> bool:
    """Whether two subtrees choose the same action everywhere in a box."""
    feature, threshold, jump = first[i]
    if feature < 0:
        return first[i] == second[j] if second[j][0] < 0 else _agree(second, j, first, i, box)
    left, right = _sides(box, feature, threshold)
    return (left is None or _agree(first, i + 1, second, j, left)) and (
        right is None or _agree(first, jump, second, j, right)
    )


def _prune(nodes: Nodes, node: int, box: Box) -> Nodes:
    feature, threshold, jump = nodes[node]
    if feature < 0:
        return (nodes[node],)
    left_box, right_box = _sides(box, feature, threshold)
    if right_box is None:
        return _prune(nodes, node + 1, box)
    if left_box is None:
        return _prune(nodes, jump, box)
    left, right = _prune(nodes, node + 1, left_box), _prune(nodes, jump, right_box)
    if _agree(left, 0, right, 0, right_box):
        return left
    if _agree(left, 0, right, 0, left_box):
        return right
    return _join(feature, threshold, left, right)
