"""What a search of trees begins with: policies, files, fitted models and run folders, as designs of its space."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.arrays import Floats
from discodso.base.errors import DeclarationError, DiscodsoError, InvalidDesignError
from discodso.run.folder import SETTINGS, designs_of, read_settings, require_run_folder
from discodso.run.settings import RunSettings
from discodso.run.settings import read as read_run
from discodso.space.design import Design
from discodso.space.tokens import Tree
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import Environment, as_environment
from discodso.tasks.policies.splits import Nodes, Oblique, Split
from discodso.tasks.policies.tree import DecisionTree
from discodso.tasks.policies.tree_policy import POLICY, TreePolicy
from discodso.tasks.policies.tree_space import space_for
from discodso.tasks.policies.vocabulary import TreeSpace


@dataclass(frozen=True)
class Start:
    """Trees that a search may begin with.

    Attributes:
        name: where they come from, for people.
        trees: best first.
        whole: whether all of them must fit; of a run's best trees some may be too large for the next run.
    """

    name: str
    trees: tuple[DecisionTree, ...]
    whole: bool = True


def starts(given: Any, environment: Environment) -> Iterator[Start]:
    """What a search is started from: a policy or its path, a run folder, a tree of scikit-learn, or a list."""
    if isinstance(given, (list, tuple)):
        for one in given:
            yield from starts(one, environment)
    elif isinstance(given, (str, Path)):
        path = Path(given)
        yield _of_folder(path, environment) if path.is_dir() else Start(str(given), (TreePolicy.load(path),))
    elif isinstance(given, DecisionTree):
        yield Start("the policy", (given,))
    elif hasattr(given, "tree_"):
        yield Start(f"the {type(given).__name__}", (fitted_tree(given),))
    else:
        raise DeclarationError(
            "start_from must be a TreePolicy, the path of a policy.json, the folder of a run, a fitted decision "
            f"tree of scikit-learn, or a list of them, got {given!r:.80}"
        )


def _of_folder(folder: Path, environment: Environment) -> Start:
    """The winner of an earlier run and its best trees."""
    require_run_folder(folder)
    named = read_settings(folder / SETTINGS).get("task", {})
    theirs = named.get("environment", "another task") if isinstance(named, dict) else "another task"
    if theirs != environment.id:
        raise DeclarationError(f"start_from: {folder} is a run of {theirs}, not of {environment.id}")
    winner = (TreePolicy.load(folder / POLICY, follow=False),) if (folder / POLICY).is_file() else ()
    try:
        designs = designs_of(folder)
    except DiscodsoError:
        if not winner:
            raise
        return Start(str(folder), winner)
    run: RunSettings = read_run(folder / SETTINGS)
    task = run.task
    made = as_environment(task.environment, task.arguments, task.wrappers)
    made = environment if made == environment else replace(made, foreign=True)
    _, space = space_for(task, run.preset, run.plan.seed, made)
    return Start(
        str(folder), (*winner, *(DecisionTree(space.vocabulary.nodes(d)) for d in designs)), whole=False
    )


def fitted_tree(model: Any) -> DecisionTree:
    """A fitted decision tree of scikit-learn, for choices (a classifier) or for numbers (a regressor).

    It acts like the model on observations in float32, as which scikit-learn takes them.
    """
    tree, classes = model.tree_, getattr(model, "classes_", None)

    def leaf(values: Floats) -> Leaf:
        if classes is None:
            return Leaf(0, tuple(values[:, 0].tolist()))
        if values.shape[0] == 1:
            return Leaf(int(classes[np.argmax(values[0])]))
        return Leaf(
            0, tuple(float(own[np.argmax(row[: len(own)])]) for own, row in zip(classes, values, strict=True))
        )

    def nodes(at: int) -> Nodes:
        left, right = int(tree.children_left[at]), int(tree.children_right[at])
        if left < 0:
            return ((leaf(tree.value[at]), 0),)
        below, beyond = nodes(left), nodes(right)
        # There x goes left if it is not above the threshold.
        split = Split(int(tree.feature[at]), math.nextafter(float(tree.threshold[at]), math.inf))
        return ((split, 1 + len(below)), *below, *beyond)

    try:
        return DecisionTree(nodes(0))
    except (TypeError, ValueError):
        raise DeclarationError(f"start_from: the leaves of {model!r:.60} are no numbers of actions") from None


def designs_from(given: Any, interface: Interface, space: TreeSpace) -> tuple[list[str], list[Design]]:
    """The names of what is given, and its trees as designs of the space, each once."""
    names, found = [], dict[Design, None]()
    for start in starts(given, interface.environment):
        names.append(start.name)
        reason, fits = "", 0
        for tree in start.trees:
            try:
                check_tree(tree, interface)
                found[design_of(tree, space, interface)] = None
                fits += 1
            except DiscodsoError as error:
                reason = reason or str(error)
        if not fits or (reason and start.whole):
            raise DeclarationError(f"start_from: {start.name} {reason}")
    return names, list(found)


def check_tree(tree: DecisionTree, interface: Interface) -> None:
    """Refuse a tree that was made for something else; the message goes on after its name."""
    here, size = interface.environment.id, len(interface.feature_names)
    if tree.environment is not None and tree.environment.id != here:
        raise DeclarationError(f"is a policy for {tree.environment.id}, not for {here}")
    seen = max(len(tree.feature_names), tree.width)
    if seen > size or (tree.feature_names and seen < size):
        raise DeclarationError(f"looks at {seen} features, but {here} has {size}")
    choices = {action for action, _ in interface.action_names}
    counts = {len(leaf.numbers) for leaf in tree.leaves}
    wanted = 0 if interface.numbers is None else len(interface.numbers)
    if counts != {wanted}:
        kinds = [f"{count} numbers" if count else "choices" for count in (max(counts), wanted)]
        raise DeclarationError(f"has actions that are {kinds[0]}, but those of {here} are {kinds[1]}")
    if not wanted and (strange := sorted({leaf.action for leaf in tree.leaves} - choices)):
        raise DeclarationError(f"has action {strange[0]}, but {here} has {min(choices)} to {max(choices)}")


def placed_in(tree: DecisionTree, space: TreeSpace, interface: Interface) -> DecisionTree:
    """The nearest tree of any size whose thresholds have room; see `design_of`."""
    exact = DecisionTree(_turned(tree.nodes), numbers=interface.numbers).pruned()
    return replace(exact, nodes=_Room(space, interface).placed(exact.nodes, {})).pruned()


def design_of(tree: DecisionTree, space: TreeSpace, interface: Interface) -> Design:
    """The nearest design to a tree: thresholds move into their ranges, and apart from those above them.

    What cannot matter is cut out first, and so are decisions that have no room between those above them.
    """
    placed = placed_in(tree, space, interface)
    assert isinstance(space.shape, Tree)
    least, most = space.shape.min_length, space.shape.max_length
    if len(placed) < least:
        raise InvalidDesignError("does the same whatever it sees, so there is nothing to go on with")
    if len(placed) > most:
        raise InvalidDesignError(
            f"has {len(placed)} nodes, more than max_nodes={most}; allow that many, or give it as the teacher, "
            "which makes smaller trees of it"
        )
    try:
        design = space.vocabulary.design(placed.nodes)
    except InvalidDesignError:
        raise InvalidDesignError(_why_not(placed, space, interface)) from None
    if broken := space.violations(design):
        raise InvalidDesignError(f"breaks a rule of this run's trees: {broken[0]}")
    return design


def _why_not(tree: DecisionTree, space: TreeSpace, interface: Interface) -> str:
    """Why a tree has a node that the trees of a run have not."""
    known = {feature for _, feature in space.vocabulary.thresholds()}
    if any(isinstance(node, Oblique) for node, _ in tree.nodes):
        return 'has decisions on sums that this run has not; set splits to "oblique" or "pair"'
    if any(leaf.weights for leaf in tree.leaves):
        return 'has linear leaves that this run has not; set leaves to "linear"'
    strange = {node.feature for node, _ in tree.nodes if isinstance(node, Split)} - known
    if strange:
        name = interface.feature_names[min(strange)]
        return f"looks at {name}, which never changed in random episodes; give its range"
    return "has a node that the trees of this run cannot have"


def _turned(nodes: Nodes) -> Nodes:
    """The same tree where the second of two weights is positive: sides are exchanged, but where both are equal."""
    node, jump = nodes[0]
    if isinstance(node, Leaf):
        return nodes
    left, right = _turned(nodes[1:jump]), _turned(nodes[jump:])
    if isinstance(node, Oblique) and len(node.terms) == 2 and node.terms[1][1] < 0:
        node = Oblique(tuple((n, -weight) for n, weight in node.terms), -node.threshold)
        left, right = right, left
    return ((node, 1 + len(left)), *left, *right)


Interval = tuple[float, float]


class _Room:
    """Where the thresholds of a space may lie below other decisions; see `DecisionTreeBounds`."""

    def __init__(self, space: TreeSpace, interface: Interface) -> None:
        library = space.library
        widths = library.wide(space.bounds.min_width(library))[:, 0]
        low, high = (library.wide(ends)[:, 0] for ends in (library.low, library.high))
        self._ends = {n: (float(low[k]), float(high[k])) for k, n in space.vocabulary.thresholds()}
        self._apart = {n: float(widths[k]) for k, n in space.vocabulary.thresholds()}
        self._whole = interface.whole

    def placed(self, nodes: Nodes, known: dict[int, Interval]) -> Nodes:
        """The nearest tree whose thresholds have room; of integers they count as the number below."""
        node, jump = nodes[0]
        if isinstance(node, Leaf):
            return nodes
        left, right = nodes[1:jump], nodes[jump:]
        if isinstance(node, Oblique) or node.feature not in self._ends:
            return _joined(node, self.placed(left, known), self.placed(right, known))
        n = node.feature
        whole = n < len(self._whole) and self._whole[n]
        apart = 1.0 if whole else self._apart[n]
        low, high = known.get(n, self._ends[n])
        wanted = math.ceil(node.threshold) - 1.0 if whole else node.threshold
        if high - low < (0.0 if whole else apart):  # the side that has more of what is left
            return self.placed(right if wanted - low < high - wanted else left, known)
        threshold = min(max(wanted, low), high)
        below, beyond = ({**known, n: ends} for ends in ((low, threshold - apart), (threshold + apart, high)))
        split = Split(n, threshold + 0.5 if whole else threshold)
        return _joined(split, self.placed(left, below), self.placed(right, beyond))


def _joined(split: Split | Oblique, left: Nodes, right: Nodes) -> Nodes:
    return ((split, 1 + len(left)), *left, *right)
