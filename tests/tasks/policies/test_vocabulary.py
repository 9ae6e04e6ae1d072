"""Vocabulary: what designs mean as trees, and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mixed_trees import NUMBERS, RANGES, any_points, mixed_policies, mixed_space, naive

from discodso.base.errors import InvalidDesignError
from discodso.space.design import Design
from discodso.tasks.policies.leaves import ActionNumbers, Leaf
from discodso.tasks.policies.splits import Oblique, Split
from discodso.tasks.policies.vocabulary import Vocabulary, bent

CENTRE, HALF = np.array([2.0, 0.0, 100.5]), np.array([4.0, 1.0, 0.5])


def scaled_action(design: Design, x: np.ndarray) -> list[float]:
    """The action for an observation by the meaning of the values, on scaled features."""
    z, parts = (x - CENTRE) / HALF, list(design)

    def down(place: int) -> tuple[list[float], int]:
        name, values = parts[place].name, dict(parts[place].values)
        if name == "set":
            return [values["steer"], values["gas"]], place + 1
        if name == "linear":
            found = []
            for word, middle, span, low, high in (("steer", 0, 1, -1, 1), ("gas", 2.5, 2.5, 0, 5)):
                weights = [bent.py_func(values[f"{word}_{f}"], 0.05) for f in ("a", "b_b", "c")]
                total = middle + span * (bent.py_func(values[word], 0.0) + float(np.dot(weights, z)))
                found.append(min(max(total, low), high))
            return found, place + 1
        if name == "mix <":
            w = np.array([values["a"], values["b_b"], values["c"]])
            w = np.where(np.abs(w) < 0.1 * np.abs(w).max(), 0, w)
            w = np.abs(w) if (w != 0).sum() == 1 else w
            goes_left = float(np.dot(w, z)) < values["at"] * np.abs(w).sum()
        elif "&" in name:
            pair = [("a", "b b", "c").index(f) for f in name.removesuffix(" <").split(" & ")]
            w = np.array([math.cos(values["angle"]), math.sin(values["angle"])])
            w = np.where(np.abs(w) < 0.1 * np.abs(w).max(), 0, w)
            w = np.abs(w) if (w != 0).sum() == 1 else w
            goes_left = float(np.dot(w, z[pair])) < values["at"] * np.abs(w).sum()
        else:
            goes_left = x[("a <", "b b <", "c <").index(name)] < values["value"]
        left, after = down(place + 1)
        right, end = down(after)
        return (left if goes_left else right), end

    return down(0)[0]


@pytest.mark.parametrize("splits", ["univariate", "pair", "oblique"])
def test_trees_do_what_the_values_of_a_design_mean(splits):
    space = mixed_space(splits)
    rng = np.random.default_rng(0)
    designs = space.sample(200, 5)
    kinds = set()
    for design, policy in zip(designs, mixed_policies(space, 200, 5), strict=True):
        kinds |= {type(node) for node, _ in policy.nodes}
        for x in any_points(rng, 5):
            found = naive(policy.to_dict(), x.tolist(), NUMBERS)
            assert found == pytest.approx(scaled_action(design, x), rel=1e-9, abs=1e-9)
    assert (Oblique in kinds) == (splits != "univariate")


def test_the_largest_weight_of_a_sum_is_one_and_a_single_one_is_a_plain_split():
    space = mixed_space("oblique")
    near = Design.of(("mix <", {"a": 0.05, "b_b": -0.8, "c": 0.01, "at": 0.5}), "set", "set")
    filled = Design(near.tokens, (near.values[0], {"steer": 0, "gas": 1}, {"steer": 1, "gas": 1}))
    (split, _), *_ = space.vocabulary.nodes(filled)
    assert split == Split(1, 0.5)  # b b lies in -1..1
    for policy in mixed_policies(space, 100, 7):
        for node, _ in policy.nodes:
            if isinstance(node, Oblique):
                scaled = [weight * HALF[feature] for feature, weight in node.terms]
                largest = node.terms[int(np.argmax(np.abs(scaled)))][1]
                assert abs(largest) == 1.0
                assert len(node.terms) > 1


@pytest.mark.parametrize("splits", ["univariate", "oblique"])
def test_designs_and_nodes_are_inverse_up_to_rounding(splits):
    space = mixed_space(splits)
    rng = np.random.default_rng(1)
    for policy in mixed_policies(space, 100, 9):
        design = space.vocabulary.design(policy.nodes)
        assert not space.constraints or space.violations(design) == []
        again = space.vocabulary.nodes(design)
        assert [jump for _, jump in again] == [jump for _, jump in policy.nodes]
        for x in any_points(rng, 10):
            old, new = (naive_of(nodes, x.tolist()) for nodes in (policy.nodes, again))
            assert new == pytest.approx(old, rel=1e-6, abs=1e-6)


def naive_of(nodes, x):
    from discodso.tasks.policies.tree_policy import TreePolicy

    return naive(TreePolicy(nodes, numbers=NUMBERS).to_dict(), x, NUMBERS)


def test_what_has_no_token_is_refused():
    vocabulary = mixed_space("univariate", None).vocabulary
    for node in (Oblique(((0, 1.0), (1, 2.0)), 0.0), Split(7, 0.0), Leaf(9), Leaf(0, (1.0, 2.0))):
        with pytest.raises(InvalidDesignError, match="no token"):
            vocabulary.design(((node, 0),))


def test_features_that_are_integers_are_split_at_halves_and_never_twice():
    space = mixed_space("univariate", None, False, (True,) * 3, ((0.0, 5.0), (0.0, 1.0), (-3.0, 3.0)), 31)
    met = set()
    for design in space.sample(300, 3):
        nodes = space.vocabulary.nodes(design)

        def down(place, limits, nodes=nodes):
            node, jump = nodes[place]
            if isinstance(node, Leaf):
                return place + 1
            low, high = limits[node.feature]
            assert low < node.threshold < high
            assert node.threshold % 1 == 0.5
            met.add((node.feature, node.threshold))
            down(place + 1, {**limits, node.feature: (low, node.threshold)})
            return down(place + jump, {**limits, node.feature: (node.threshold, high)})

        down(0, {0: (0, 5), 1: (0, 1), 2: (-3, 3)})
    assert met == {*((0, k + 0.5) for k in range(5)), (1, 0.5), *((2, k + 0.5) for k in range(-3, 3))}


def test_whole_numbers_are_options():
    numbers = ActionNumbers(("gear", "brake"), (1.0, 0.0), (3.0, 1.0), (2,), "int64")
    space = mixed_space("univariate", numbers, False)
    found = {leaf.numbers for p in mixed_policies(space, 200, 0, numbers) for leaf in p.leaves}
    assert found == {(float(a), float(b)) for a in (1, 2, 3) for b in (0, 1)}


def test_many_whole_numbers_are_drawn_as_a_number_and_a_fixed_one_stays():
    numbers = ActionNumbers(("order", "gear", "off"), (-5.0, 1.0, 0.0), (1e6, 3.0, 0.0), (3,), "int64")
    space = mixed_space("univariate", numbers, False)
    found = [leaf.numbers for p in mixed_policies(space, 100, 0, numbers) for leaf in p.leaves]
    assert {off for _, _, off in found} == {0.0}
    assert {gear for _, gear, _ in found} == {1.0, 2.0, 3.0}
    orders = [order for order, _, _ in found]
    assert all(order == round(order) for order in orders)
    assert -5 <= min(orders) < 1e5 < 9e5 < max(orders) <= 1e6


@pytest.mark.parametrize("whole", [True, False])
def test_a_number_that_is_fixed_comes_back(whole):
    numbers = ActionNumbers(("on", "steer"), (0.0, -1.0), (0.0, 30.0), (2,), "int64" if whole else "float64")
    space = mixed_space("univariate", numbers, not whole)
    vocabulary = space.vocabulary
    for design in space.sample(30, 0):
        nodes = vocabulary.nodes(design)
        again = vocabulary.nodes(vocabulary.design(nodes))
        for (node, _), (other, _) in zip(nodes, again, strict=True):
            if isinstance(node, Leaf):
                assert other.numbers == pytest.approx(node.numbers, abs=1e-9)
                assert node.numbers[0] == 0.0


@pytest.mark.parametrize("splits", ["univariate", "pair", "oblique"])
@pytest.mark.parametrize("numbers", [NUMBERS, None])
def test_what_was_declared_makes_the_same_trees_again(splits, numbers):
    space = mixed_space(splits, numbers, whole=(True, False, False))
    again, names = Vocabulary.declared_as(space.vocabulary.declared)
    assert again.tokens == space.vocabulary.tokens
    assert names.numbers == numbers
    assert len(names.features) == 3
    assert [word for _, word in names.actions] == ([] if numbers else ["left", "right", "wait"])
    for design in space.sample(20, 5):
        assert again.nodes(design) == space.vocabulary.nodes(design)


def test_names_that_are_no_identifiers_may_be_alike():
    names = ("a b", "a_b", "name", "2x", "ß", "at", "")
    vocabulary = Vocabulary.of(names, [(0.0, 1.0)] * 7, [(0, "go"), (1, "stop")], splits="oblique")
    token = next(token for token in vocabulary.tokens if token.name == "mix <")
    assert len(token.values) == 8


def test_every_threshold_of_a_sum_divides_the_box():
    space = mixed_space("oblique", None)
    rng = np.random.default_rng(4)
    low, high = (np.array(end) for end in zip(*RANGES, strict=True))
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, -1).T
    seen = 0
    for policy in mixed_policies(space, 200, int(rng.integers(100)), None):
        for node, _ in policy.nodes:
            if isinstance(node, Oblique):
                sums = [sum(w * x[f] for f, w in node.terms) for x in corners]
                assert min(sums) <= node.threshold + 1e-9
                assert max(sums) >= node.threshold - 1e-9
                seen += 1
    assert seen > 100


def test_weights_of_linear_leaves_are_on_the_scale_of_what_features_show():
    """A fiftieth of what a feature shows may take an action to its end, however wide the range."""
    shown, size = ((1.0, 3.0), None, (100.2, 100.4)), 50.0
    numbers = ActionNumbers(("gas",), (0.0,), (5.0,), (1,), "float64")
    given = ("a", "b", "c"), ((-200.0, 600.0), (-1.0, 1.0), (0.0, 101.0)), (), numbers
    made = Vocabulary.of(*given, linear=True, shown=shown)
    leaf = Design.of(("linear", {"gas": 0.0, "gas_a": 1.0, "gas_b": 1.0, "gas_c": -1.0}))
    ((node, _),) = made.nodes(leaf)
    span, units, origins = 2.5, (1.0, 1.0, 0.1), (2.0, 0.0, 100.3)
    weights = [sign * size * span / unit for sign, unit in zip((1, 1, -1), units, strict=True)]
    assert [weight for _, weight in node.weights[0]] == pytest.approx(weights)
    assert node.numbers[0] == pytest.approx(2.5 - float(np.dot(weights, origins)))
    steep = Leaf(0, (70_000.0,), (((0, 60.0), (2, -700.0)),))
    ((again, _),) = made.nodes(made.design(((steep, 0),)))
    assert again.numbers == pytest.approx(steep.numbers)
    assert dict(again.weights[0]) == pytest.approx(dict(steep.weights[0]))
    assert Vocabulary.declared_as(made.declared)[0].nodes(leaf) == made.nodes(leaf)
