"""Trees as policies: what they do, their JSON, and pruning that changes nothing."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import (
    actions,
    any_tree,
    chain,
    decision,
    edge_points,
    leaf,
    naive_action,
    random_tree,
    telling_points,
    tree,
)

from discodso.base.errors import InvalidDesignError
from discodso.base.files import FileError
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.making import Environment
from discodso.tasks.policies.splits import Split
from discodso.tasks.policies.tree import FORMAT
from discodso.tasks.policies.tree_policy import TreePolicy

SEEDS = st.integers(0, 2**32 - 1)
EXAMPLE = decision(0, 1.5, decision(1, -2.0, 0, 1), decision(0, 3.0, 2, decision(2, 0.25, 1, 0)))
NAMED = tree(EXAMPLE).with_names(
    Environment("Some-v0", (("gravity", -9.5), ("wind", True))), ["a", "b", "c"], [(0, "left"), (2, "right")]
)


# ------------------------------------------------------------------------------------- acting


@given(any_tree(), SEEDS)
def test_a_tree_acts_as_its_dictionary_reads(policy, seed):
    x = edge_points(np.random.default_rng(seed), policy, 3, 60)
    naive = [naive_action(policy.to_dict(), row) for row in x]
    assert [policy.act(row) for row in x] == naive


def test_a_threshold_itself_goes_right_and_so_does_nan():
    policy = tree(decision(0, 0.5, 7, 9))
    x = [0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1), math.nan, math.inf, -math.inf]
    assert [policy.act([value]) for value in x] == [9, 7, 9, 9, 9, 7]


def test_float32_is_promoted_before_it_is_compared():
    """In float32 the threshold 0.1 would be equal to the observation; as a float64 the observation is larger."""
    seen = np.array([0.1], np.float32)
    assert float(seen[0]) > 0.1
    policy = tree(decision(0, 0.1, 0, 1))
    above = tree(decision(0, float(seen[0]), 0, 1))
    for case in (policy, above):
        assert case.act(seen) == 1
    assert tree(decision(0, np.nextafter(float(seen[0]), 1), 0, 1)).act(seen) == 0


def test_observations_of_any_shape_are_flattened_and_may_be_wider_than_needed():
    policy = tree(decision(3, 0.0, 0, 1))
    assert policy.act([[5, 5], [5, -1]]) == 0
    assert policy.act([5, 5, 5, -1, 5, 5]) == 0
    assert tree(4).act([]) == 4


def test_observations_that_do_not_fit_are_refused():
    with pytest.raises(InvalidDesignError, match="feature 2, but an observation has only 2 numbers"):
        tree(EXAMPLE).act([0.0, 0.0])


# ------------------------------------------------------------------------------------- shape


def test_depth_and_children_of_an_example():
    policy = tree(EXAMPLE)
    assert len(policy) == 9
    assert policy.depth == 3
    assert list(policy.decisions()) == [(0, 1, 4), (1, 2, 3), (4, 5, 6), (6, 7, 8)]
    assert tree(1).depth == 0


def test_equality_and_hash_are_of_the_nodes_and_not_of_the_names():
    plain = tree(EXAMPLE)
    assert plain == NAMED
    assert hash(NAMED) == hash(plain)
    assert len({NAMED, plain}) == 1
    assert plain != tree(decision(0, 1.5, 0, 1))
    assert plain != EXAMPLE
    for key, other in (("threshold", 1.25), ("feature", 1)):
        assert plain != tree({**EXAMPLE, key: other})


def test_names_are_used_where_there_are_some():
    assert [NAMED.feature_name(i) for i in range(4)] == ["a", "b", "c", "x3"]
    assert [NAMED.action_name(i) for i in range(3)] == ["left", "1", "right"]
    assert "Some-v0" in repr(NAMED)
    assert "9 nodes" in repr(tree(EXAMPLE))


# ------------------------------------------------------------------------------------- in and out


@given(any_tree(grid=None))
def test_json_keeps_a_tree_to_the_last_bit(policy):
    assert TreePolicy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 2**31 - 1))
def test_json_keeps_any_threshold_and_action(threshold, action):
    policy = tree(decision(3, threshold, action, 0))
    again = TreePolicy.from_dict(json.loads(json.dumps(policy.to_dict())))
    assert again.nodes[0][0].threshold == threshold
    assert again.nodes[1] == (Leaf(action), 0)


def test_numbers_of_numpy_become_plain_ones():
    policy = TreePolicy.from_dict(
        {"feature": np.int64(1), "threshold": np.float32(0.5), "left": leaf(np.int32(1)), "right": leaf(0)}
    )
    assert policy == tree(decision(1, 0.5, 1, 0))
    json.dumps(policy.to_dict())


def nested_list(depth):
    data = []
    for _ in range(depth):
        data = [data]
    return data


GOOD = decision(0, 1.0, 0, 1)
BAD = {
    "a list": ([GOOD], "the tree must be an object"),
    "nothing": (None, "the tree must be an object, got None"),
    "text": ("x < 1", "the tree must be an object, got 'x < 1'"),
    "empty": ({}, "the tree must have the keys .* it has none"),
    "missing key": ({"feature": 0, "threshold": 1.0, "left": leaf(0)}, "the tree must have the keys"),
    "unknown key": ({**GOOD, "colour": 1}, "feature, threshold, left and right.*colour"),
    "unknown key of a leaf": (decision(0, 1.0, {"action": 0, "x": 1}, 1), "left must have the keys"),
    "both": ({**GOOD, "action": 1}, "the tree must have the keys"),
    "number as key": ({**GOOD, 5: 1}, "the tree must have the keys"),
    "bool as feature": ({**GOOD, "feature": True}, "feature of the tree must be an integer >= 0, got True"),
    "bool as action": (decision(0, 1.0, leaf(False), 1), "action of left must be an integer >= 0, got False"),
    "bool as threshold": ({**GOOD, "threshold": True}, "threshold of the tree must be a finite number"),
    "float as action": (decision(0, 1.0, 0, leaf(1.0)), "action of right must be an integer >= 0, got 1.0"),
    "text as feature": ({**GOOD, "feature": "0"}, "feature of the tree must be an integer >= 0, got '0'"),
    "negative feature": ({**GOOD, "feature": -1}, "feature of the tree must be an integer >= 0, got -1"),
    "negative action": (decision(0, 1.0, 0, leaf(-1)), "action of right must be"),
    "huge feature": ({**GOOD, "feature": 2**31}, "feature of the tree must be"),
    "huge action": (leaf(10**30), "action of the tree must be"),
    "absurd action": (leaf(10**5000), "action of the tree must be"),
    "absurd threshold": ({**GOOD, "threshold": 10**5000}, "threshold of the tree must be a finite number"),
    "huge threshold": ({**GOOD, "threshold": 10**400}, "threshold of the tree must be a finite number"),
    "NaN": ({**GOOD, "threshold": math.nan}, "threshold of the tree must be a finite number, got nan"),
    "infinite": ({**GOOD, "threshold": math.inf}, "threshold of the tree must be a finite number, got inf"),
    "no threshold": ({**GOOD, "threshold": None}, "threshold of the tree must be a finite number, got None"),
    "deep inside": (
        decision(0, 1.0, decision(0, 1.0, 0, decision(0, 1.0, leaf("a"), 0)), 0),
        r"action of left\.right\.left must be an integer >= 0, got 'a'",
    ),
    "right of right": (
        decision(0, 1.0, 0, decision(0, 1.0, 0, 7.5)),
        r"right\.right must be an object, got 7.5",
    ),
    "too deep": (chain(201), "too deep; a depth of 200 is the limit"),
    "much too deep": (chain(50_000), "too deep; a depth of 200 is the limit"),
    "deep list": (nested_list(50_000), "the tree must be an object"),
    "deep action": (leaf(nested_list(50_000)), "action of the tree must be"),
    "a tree of a tree": ({"tree": {"tree": GOOD}}, "the tree must have the keys"),
}


@pytest.mark.parametrize("case", BAD)
def test_anything_but_a_tree_is_refused_with_the_place_and_the_reason(case):
    data, message = BAD[case]
    with pytest.raises(InvalidDesignError, match=message) as caught:
        TreePolicy.from_dict(data)
    assert len(str(caught.value)) < 300


def test_the_deepest_tree_that_is_allowed_works():
    policy = tree(chain(200))
    assert policy.depth == 200
    assert [policy.act([x]) for x in (0.5, 1.5, 199.5)] == [
        naive_action(policy.to_dict(), [x]) for x in (0.5, 1.5, 199.5)
    ]
    x = telling_points([policy])
    assert actions(policy.pruned(), x) == actions(policy, x)
    assert TreePolicy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy


def test_save_and_load_keep_the_tree_its_names_and_its_environment(tmp_path):
    path = tmp_path / "new folder" / "tree.json"
    NAMED.save(path)
    again = TreePolicy.load(path)
    assert again == NAMED
    assert again.environment == NAMED.environment
    assert again.feature_names == NAMED.feature_names
    assert again.action_names == NAMED.action_names
    assert json.loads(path.read_text())["format"] == FORMAT
    assert [entry.name for entry in path.parent.iterdir()] == ["tree.json"]


def test_lists_among_the_arguments_come_back_equal_and_hashable(tmp_path):
    environment = Environment("Some-v0", (("sizes", [1, 2]),))
    tree(EXAMPLE).with_names(environment).save(tmp_path / "tree.json")
    again = TreePolicy.load(tmp_path / "tree.json")
    assert again.environment == environment
    assert hash(again.environment) == hash(environment)


def test_a_bare_tree_without_names_loads_too(tmp_path):
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(EXAMPLE))
    assert TreePolicy.load(path) == tree(EXAMPLE)
    assert TreePolicy.load(path).environment is None
    tree(EXAMPLE).save(path)
    assert TreePolicy.load(path).environment is None


HEADER = {"format": FORMAT, "environment": None, "feature_names": [], "action_names": {}, "tree": GOOD}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a tree in JSON"),
        ("{", "is not a tree in JSON"),
        ("[" * 100_000, "is not a tree in JSON"),
        ('{"tree":' * 900 + "1" + "}" * 900, "tree"),
        (
            json.dumps({**GOOD, "threshold": math.nan}),
            "threshold of the tree must be a finite number, got nan",
        ),
        ('{"action": ' + "1" * 5000 + "}", "tree.json"),
        (json.dumps({**HEADER, "tree": leaf(-1)}), "action of the tree must be an integer >= 0, got -1"),
        (json.dumps({**HEADER, "feature_names": "ab"}), "feature_names must be a list of strings"),
        (json.dumps({**HEADER, "feature_names": [1]}), "feature_names must be a list of strings"),
        (json.dumps({**HEADER, "action_names": ["a"]}), "action_names must be an object from action numbers"),
        (json.dumps({**HEADER, "action_names": {"one": "a"}}), "action_names must be an object from action"),
        (json.dumps({**HEADER, "action_names": {"²": "a"}}), "action_names must be an object from action"),
        (json.dumps({**HEADER, "action_names": {"0": 1}}), "action_names must be an object from action"),
        (
            json.dumps({**HEADER, "action_names": {"1" * 5000: "a"}}),
            "action_names must be an object from action",
        ),
        (json.dumps({**HEADER, "environment": "CartPole-v1"}), "environment must be an object with id and"),
        (json.dumps({**HEADER, "environment": {"id": 1, "arguments": {}}}), "environment must be an object"),
        (
            json.dumps({**HEADER, "environment": {"id": "a", "arguments": []}}),
            "environment must be an object",
        ),
    ],
)
def test_a_bad_file_is_refused_with_its_name(tmp_path, text, message):
    path = tmp_path / "tree.json"
    path.write_text(text)
    with pytest.raises(InvalidDesignError, match=message) as caught:
        TreePolicy.load(path)
    assert "tree.json" in str(caught.value)


def test_files_that_are_not_there_or_not_text_are_refused(tmp_path):
    with pytest.raises(InvalidDesignError, match=r"cannot read .*missing.json: No such file"):
        TreePolicy.load(tmp_path / "missing.json")
    with pytest.raises(InvalidDesignError, match=r"cannot read .*directory"):
        TreePolicy.load(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidDesignError, match="is not a tree in JSON"):
        TreePolicy.load(tmp_path / "binary")


def test_a_place_that_cannot_be_written_is_one_error_and_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(FileError, match="cannot write"):
        tree(EXAMPLE).save(tmp_path / "file" / "tree.json")
    with pytest.raises(FileError, match="cannot write"):
        tree(EXAMPLE).save(tmp_path / ("long" * 100))
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="cannot write"):
        tree(EXAMPLE).save(tmp_path / "folder")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "kept"


# ------------------------------------------------------------------------------------- pruning


@given(any_tree(), SEEDS)
@settings(max_examples=300)
def test_a_pruned_tree_acts_the_same_everywhere_and_is_never_larger(policy, seed):
    smaller = policy.pruned()
    assert len(smaller) <= len(policy)
    assert smaller.pruned() == smaller
    x = edge_points(np.random.default_rng(seed), policy, 3, 200)
    assert actions(smaller, x) == actions(policy, x)
    x = np.pad(telling_points([policy]), ((0, 0), (0, 3)))
    assert actions(smaller, x) == actions(policy, x)


def test_pruning_finds_something_in_most_random_trees():
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(100):
        policy = random_tree(rng, [(-1.0, 1.0)] * 3, range(3), 31, grid=4)
        sizes.append(len(policy.pruned()))
    assert np.mean(sizes) < 20
    assert max(sizes) > 10


FIVE = decision(0, 5.0, 0, 1)
PRUNED = {
    "leaf": (leaf(3), leaf(3)),
    "nothing to prune": (EXAMPLE, EXAMPLE),
    "equal leaves": (decision(0, 1.0, 2, 2), leaf(2)),
    "equal branches": (decision(1, 1.0, FIVE, FIVE), FIVE),
    "equal in other words": (decision(1, 1.0, FIVE, decision(0, 7.0, FIVE, 1)), FIVE),
    "already decided, left": (decision(0, 3.0, decision(0, 5.0, 0, 1), 2), decision(0, 3.0, 0, 2)),
    "already decided, right": (decision(0, 3.0, 2, decision(0, 1.0, 0, 1)), decision(0, 3.0, 2, 1)),
    "same threshold again, left": (decision(0, 3.0, decision(0, 3.0, 0, 1), 2), decision(0, 3.0, 0, 2)),
    "same threshold again, right": (decision(0, 3.0, 2, decision(0, 3.0, 0, 1)), decision(0, 3.0, 2, 1)),
    "below its neighbour only": (
        decision(0, np.nextafter(3.0, 4.0), decision(0, 3.0, 0, 1), 2),
        decision(0, np.nextafter(3.0, 4.0), decision(0, 3.0, 0, 1), 2),
    ),
    "first of two cuts": (decision(0, 3.0, 0, decision(0, 5.0, 0, 1)), FIVE),
    "last of two cuts": (decision(0, 5.0, FIVE["left"], decision(0, 7.0, 1, 1)), FIVE),
    "second of two cuts": (decision(0, 5.0, decision(0, 3.0, 0, 1), 1), decision(0, 3.0, 0, 1)),
    "another feature between": (
        decision(0, 3.0, decision(1, 1.0, decision(0, 4.0, 0, 1), 2), 1),
        decision(0, 3.0, decision(1, 1.0, 0, 2), 1),
    ),
    "other feature, same threshold": (
        decision(0, 3.0, decision(1, 3.0, 0, 1), 2),
        decision(0, 3.0, decision(1, 3.0, 0, 1), 2),
    ),
}


@pytest.mark.parametrize("case", PRUNED)
def test_known_cases_of_pruning(case):
    given, expected = PRUNED[case]
    assert tree(given).pruned().to_dict() == expected


def test_pruning_keeps_names():
    policy = tree(decision(0, 1.0, 2, 2)).with_names(
        NAMED.environment, NAMED.feature_names, NAMED.action_names
    )
    smaller = policy.pruned()
    assert smaller == tree(2)
    assert (smaller.environment, smaller.feature_names) == (NAMED.environment, NAMED.feature_names)


# ------------------------------------------------------------------------------------- behaviour


def agree_by_force(first, second):
    x = np.pad(telling_points([first, second]), ((0, 0), (0, 3)))
    return actions(first, x) == actions(second, x)


def same_behaviour(first, second):
    """Whether pruning sees that a decision between two trees on a feature of its own decides nothing."""
    between = tree(decision(99, 0.0, first.to_dict(), second.to_dict()))
    return 99 not in {split.feature for split, _ in between.pruned().nodes if isinstance(split, Split)}


@given(any_tree(features=2, actions=2, grid=2), any_tree(features=2, actions=2, grid=2))
@settings(max_examples=400)
def test_same_behaviour_equals_brute_force(first, second):
    assert same_behaviour(first, second) == agree_by_force(first, second)
    assert same_behaviour(first, second) == same_behaviour(second, first)


def test_brute_force_meets_pairs_of_both_kinds():
    """The test above would be empty if trees agreed always or never."""
    rng = np.random.default_rng(0)
    found = {True: 0, False: 0}
    for _ in range(500):
        first, second = (
            random_tree(rng, [(0.0, 1.0)], range(2), int(2 * rng.integers(4) + 1), 2) for _ in range(2)
        )
        expected = agree_by_force(first, second)
        assert same_behaviour(first, second) == expected
        if first != second:
            found[expected] += 1
    assert min(found.values()) > 50


@given(any_tree(), SEEDS)
def test_one_changed_leaf_is_noticed_exactly_if_it_matters(policy, seed):
    rng = np.random.default_rng(seed)
    node = int(rng.choice([i for i, (split, _) in enumerate(policy.nodes) if isinstance(split, Leaf)]))
    changed = TreePolicy((*policy.nodes[:node], (Leaf(99), 0), *policy.nodes[node + 1 :]))
    assert same_behaviour(policy, changed) == agree_by_force(policy, changed)


def test_behaviours_that_differ_at_one_float_only():
    cut, above = 0.5, float(np.nextafter(0.5, 1))
    first, second = tree(decision(0, cut, 0, 1)), tree(decision(0, above, 0, 1))
    assert not same_behaviour(first, second)
    both = tree(decision(0, cut, 0, decision(0, above, 2, 1)))
    assert not same_behaviour(both, first)
    assert both.act([cut]) == 2
    assert same_behaviour(tree(decision(0, 0.0, 0, 1)), tree(decision(0, -0.0, 0, 1)))


def test_cuts_are_all_trees_with_one_decision_less():
    policy = tree(decision(0, 1.5, decision(1, -2.0, 0, 1), 2))
    cuts = {cut.nodes for cut in policy.cuts()}
    wanted = [decision(1, -2.0, 0, 1), leaf(2), decision(0, 1.5, 0, 2), decision(0, 1.5, 1, 2)]
    assert cuts == {tree(part).nodes for part in wanted}
    assert tree(leaf(3)).cuts() == []


@given(any_tree())
def test_every_cut_is_smaller_and_pruned(policy):
    for cut in policy.cuts():
        assert len(cut) < len(policy)
        assert cut == cut.pruned()
