"""Decision trees as policies: their nodes, what they do, smaller trees that do the same, and their JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from discodso.base.arrays import Ints
from discodso.base.errors import InvalidDesignError
from discodso.base.files import MOST_WORDS, read_plain, write_atomically
from discodso.space.design import one_line
from discodso.tasks.policies.columns import Columns, fill_action, walk
from discodso.tasks.policies.leaves import ActionNumbers, Leaf
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.observations import flat
from discodso.tasks.policies.splits import Nodes, Oblique, Split, split_from
from discodso.tasks.policies.terms import Known, shown

FORMAT = "discodso-tree-policy"
_DEEPEST = 200
_ACTION = re.compile("[0-9]{1,10}")
Names = tuple[tuple[int, str], ...]  # of actions


@dataclass(frozen=True, repr=False)
class DecisionTree:
    """A policy that a person can read.

    Two trees are equal if their nodes are; names do not count.

    Attributes:
        nodes: in pre-order, see `Nodes`.
        environment: id of the Gymnasium environment, with its arguments as JSON if it has any; None if unknown.
        feature_names, action_names: for people; the latter by action.
        numbers: what `step` takes where actions are numbers; None where they are choices.
    """

    nodes: Nodes
    environment: Environment | None = field(default=None, compare=False)
    feature_names: tuple[str, ...] = field(default=(), compare=False)
    action_names: Names = field(default=(), compare=False)
    numbers: ActionNumbers | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        where = f" for {self.environment.id}" if self.environment else ""
        return f"<{type(self).__name__}{where}: {len(self)} nodes, depth {self.depth}>"

    @property
    def depth(self) -> int:
        """Decisions on the longest way to a leaf."""
        above = [0] * len(self)
        for node, left, right in self.decisions():
            above[left] = above[right] = above[node] + 1
        return max(above)

    def decisions(self) -> Iterator[tuple[int, int, int]]:
        """Each node that decides, in pre-order, with its left and its right child."""
        for place, (node, jump) in enumerate(self.nodes):
            if not isinstance(node, Leaf):
                yield place, place + 1, place + jump

    @cached_property
    def columns(self) -> Columns:
        """The nodes, for walking."""
        return Columns.of(self.nodes)

    @cached_property
    def width(self) -> int:
        """How many numbers an observation must have."""
        return max(node.width for node, _ in self.nodes)

    @property
    def leaves(self) -> list[Leaf]:
        """From left to right."""
        return [node for node, _ in self.nodes if isinstance(node, Leaf)]

    @property
    def actions(self) -> set[int]:
        """Those of the leaves; none where actions are numbers."""
        return set() if self.numbers else {leaf.action for leaf in self.leaves}

    def feature_name(self, feature: int) -> str:
        """What a feature is called, on one line; x0, x1, ... without names."""
        named = feature < len(self.feature_names)
        return (one_line(self.feature_names[feature]) if named else "") or f"x{feature}"

    def action_name(self, action: int) -> str:
        """What an action is called, on one line; its number without a name."""
        return one_line(dict(self.action_names).get(action, "")) or str(action)

    def act(self, observation: Any) -> Any:
        """The action for one observation: a number, or an array where actions are numbers."""
        x = flat(observation)
        if len(x) < self.width:
            raise InvalidDesignError(
                f"the tree looks at feature {self.width - 1}, but an observation has only {len(x)} numbers"
            )
        return action_of(self.columns, self.numbers, x)

    def with_names(
        self,
        environment: Environment | None,
        feature_names: Sequence[str] = (),
        action_names: Sequence[tuple[int, str]] = (),
        numbers: ActionNumbers | None = None,
    ) -> Self:
        """The same tree with names, and with what `step` takes where actions are numbers."""
        features, actions = tuple(feature_names), tuple(action_names)
        return type(self)(self.nodes, environment, features, actions, numbers or self.numbers)

    def pruned(self) -> Self:
        """The tree without what cannot matter: it acts the same on every observation, NaN and infinities included.

        Decisions that the decisions above have already made are cut out, and so is a decision if one of its
        branches, alone, acts like both.
        """
        return replace(self, nodes=_pruned(self.nodes, {}))

    def cuts(self) -> list[Self]:
        """The smaller trees, pruned and distinct, in which one decision has given way to one of its sides."""
        return list(dict.fromkeys(replace(self, nodes=nodes).pruned() for nodes in _cuts(self.nodes)))

    # ------------------------------------------------------------------------------------- in and out

    def to_dict(self) -> dict[str, Any]:
        """{"feature": n, "threshold": t, "left": ..., "right": ...}, left where x_n < t, or {"action": a}.

        An oblique split has "weights" by feature, a leaf of numbers a list as its action, and "weights" if linear.
        """
        made: list[dict[str, Any]] = []
        for node, _ in reversed(self.nodes):
            sides = {} if isinstance(node, Leaf) else {"left": made.pop(), "right": made.pop()}
            made.append({**node.to_dict(), **sides})
        return made[0]

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Inverse of `to_dict`; anything else is refused with the place and the reason.

        Takes what `save` writes as well, names included.
        """
        whole = isinstance(data, dict) and "tree" in data
        tree = cls(_read_nodes(data["tree"]), *_read_names(data)) if whole else cls(_read_nodes(data))
        sizes = {len(leaf.numbers) for leaf in tree.leaves}
        if sizes != {len(tree.numbers or ())}:
            has = (
                "numbers, which say what they are"
                if tree.numbers is None
                else "as many numbers as its actions"
            )
            raise InvalidDesignError(f"every leaf of a tree must have a choice, or every leaf {has}")
        return tree

    def to_json(self) -> str:
        """The tree and its names as JSON; `from_dict` takes what is read from it."""
        return json.dumps({**self.header(), "tree": self.to_dict()}, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the tree and its names as JSON; `load` reads it."""
        write_atomically(Path(path), self.to_json())

    def header(self) -> dict[str, Any]:
        """Names and environment, for JSON."""
        return {
            "format": FORMAT,
            "environment": None if self.environment is None else self.environment.to_dict(),
            "feature_names": list(self.feature_names),
            "action_names": {str(action): name for action, name in self.action_names},
            **({"numbers": self.numbers.to_dict()} if self.numbers else {}),
        }

    @classmethod
    def load(cls, path: str | Path, *, follow: bool = True) -> Self:
        """Read a tree from a JSON file, through symbolic links unless `follow` is False."""
        try:
            return cls.from_dict(json.loads(read_plain(Path(path), MOST_WORDS, follow=follow)))
        except OSError as error:
            raise InvalidDesignError(f"cannot read {path}: {error.strerror or error}") from None
        except InvalidDesignError as error:
            raise InvalidDesignError(f"{path}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidDesignError(f"{path} is not a tree in JSON: {error}") from None


@dataclass(frozen=True)
class Forest:
    """Trees one after the other: columns of N nodes, and offset int[M + 1], where each begins."""

    columns: Columns
    offset: Ints

    @staticmethod
    def of(trees: Sequence[DecisionTree]) -> Forest:
        """A forest of some trees."""
        return Forest(Columns.joined([tree.columns for tree in trees]), np.cumsum([0, *map(len, trees)]))

    def columns_of(self, tree: int) -> Columns:
        """One of the trees, as lists."""
        return self.columns.tree(self.offset[tree], self.offset[tree + 1])


def action_of(columns: Columns, numbers: ActionNumbers | None, x: Sequence[float]) -> Any:
    """What `step` takes for an observation: the number of a choice, or an array."""
    leaf = walk(columns, 0, x)
    if numbers is None:
        return columns.jump[leaf]
    action = [0.0] * len(numbers)
    fill_action(columns, leaf, x, numbers.low, numbers.high, action)
    return numbers.array(action)


def _read_nodes(data: Any, place: str = "the tree", depth: int = 0) -> Nodes:
    if depth > _DEEPEST:
        raise InvalidDesignError(f"the tree is too deep; a depth of {_DEEPEST} is the limit")
    if not isinstance(data, dict):
        raise InvalidDesignError(f"{place} must be an object, got {shown(data)}")
    if set(data) == {"action"} or set(data) == {"action", "weights"}:
        return ((Leaf.from_dict(data, place), 0),)
    split, inner = split_from(data, place), f"{place}." if depth else ""
    left, right = (_read_nodes(data[side], f"{inner}{side}"[-80:], depth + 1) for side in ("left", "right"))
    return _joined(split, left, right)


def _read_names(
    header: dict[str, Any],
) -> tuple[Environment | None, tuple[str, ...], Names, ActionNumbers | None]:
    environment = header.get("environment")
    features, actions = header.get("feature_names", []), header.get("action_names", {})
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise InvalidDesignError("feature_names must be a list of strings")
    if not isinstance(actions, dict) or not all(
        isinstance(key, str) and _ACTION.fullmatch(key) and isinstance(name, str)
        for key, name in actions.items()
    ):
        raise InvalidDesignError("action_names must be an object from action numbers to strings")
    known = None if environment is None else Environment.from_dict(environment)
    numbers = ActionNumbers.from_dict(header["numbers"]) if header.get("numbers") is not None else None
    return known, tuple(features), tuple(sorted((int(key), name) for key, name in actions.items())), numbers


# ------------------------------------------------------------------------------------- smaller trees


def _joined(split: Split | Oblique, left: Nodes, right: Nodes) -> Nodes:
    return ((split, 1 + len(left)), *left, *right)


def _cuts(nodes: Nodes) -> Iterator[Nodes]:
    """A tree with one decision less in every way: one of its sides stands in its place."""
    split, jump = nodes[0]
    if not isinstance(split, Leaf):
        left, right = nodes[1:jump], nodes[jump:]
        yield from (left, right)
        yield from (_joined(split, cut, right) for cut in _cuts(left))
        yield from (_joined(split, left, cut) for cut in _cuts(right))


def _agree(first: Nodes, second: Nodes, known: Known) -> bool:
    """Whether two trees choose the same action wherever what is known holds."""
    split, jump = first[0]
    if isinstance(split, Leaf):
        return first == second if isinstance(second[0][0], Leaf) else _agree(second, first, known)
    left, right = split.sides(known)
    return (left is None or _agree(first[1:jump], second, left)) and (
        right is None or _agree(first[jump:], second, right)
    )


def _pruned(nodes: Nodes, known: Known) -> Nodes:
    split, jump = nodes[0]
    if isinstance(split, Leaf):
        return nodes
    on_left, on_right = split.sides(known)
    if on_right is None:
        return _pruned(nodes[1:jump], known)
    if on_left is None:
        return _pruned(nodes[jump:], known)
    left, right = _pruned(nodes[1:jump], on_left), _pruned(nodes[jump:], on_right)
    if _agree(left, right, on_right):
        return left
    if _agree(left, right, on_left):
        return right
    return _joined(split, left, right)
