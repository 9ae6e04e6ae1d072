"""What trees know of an environment, and which environments they refuse, with the reason."""

from __future__ import annotations

import json
import math

import gymnasium
import numpy as np
import pytest
from environments import Walk, registered
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from trees import decision, plain_return, tree

from discodso.base.errors import DeclarationError
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.episodes import open_runner, paired_returns
from discodso.tasks.policies.making import STEP_LIMIT, Environment, as_environment
from discodso.tasks.policies.tree_space import tree_space


@pytest.fixture
def walk():
    """Registers a walk and describes it: walk(**arguments of Walk)."""
    open_ids = []

    def make(ranges=None, seed=0, max_episode_steps=20, **kwargs):
        name = f"Dressed{len(open_ids)}-v0"
        context = registered(name, Walk, max_episode_steps=max_episode_steps, kwargs=kwargs)
        open_ids.append(context)
        context.__enter__()
        return describe(Environment(name), ranges, seed)

    yield make
    for context in open_ids:
        context.__exit__(None, None, None)


def float32(*numbers):
    return tuple(float(np.float32(number)) for number in numbers)


# ------------------------------------------------------------------------------------- the known ones


def test_cartpole():
    found = describe(Environment("CartPole-v1"))
    assert found.feature_names == ("position", "velocity", "angle", "angular velocity")
    assert found.sources == ("declared", "probed", "declared", "probed")
    assert found.ranges[0] == float32(-4.8, 4.8)
    assert found.ranges[2] == pytest.approx((-24 * math.pi / 180, 24 * math.pi / 180))
    for low, high in (found.ranges[1], found.ranges[3]):
        assert -5 < low < -1.5
        assert 1.5 < high < 5
    assert found.action_names == ((0, "push left"), (1, "push right"))
    assert found.max_steps == 500


def test_mountain_car():
    found = describe(Environment("MountainCar-v0"))
    assert found.feature_names == ("position", "velocity")
    assert found.sources == ("declared", "declared")
    assert found.ranges == (float32(-1.2, 0.6), float32(-0.07, 0.07))
    assert found.action_names == ((0, "left"), (1, "coast"), (2, "right"))
    assert found.max_steps == 200


def test_acrobot():
    found = describe(Environment("Acrobot-v1"))
    assert found.feature_names == ("cos 1", "sin 1", "cos 2", "sin 2", "velocity 1", "velocity 2")
    assert set(found.sources) == {"declared"}
    expected = [*[(-1.0, 1.0)] * 4, *(float32(-turns * math.pi, turns * math.pi) for turns in (4, 9))]
    assert list(found.ranges) == expected
    assert [name for _, name in found.action_names] == ["torque -1", "torque 0", "torque +1"]
    assert found.max_steps == 500


def test_lunar_lander_has_the_ranges_of_version_two():
    found = describe(Environment("LunarLander-v3"))
    assert found.feature_names[:3] == ("x", "y", "x velocity")
    assert set(found.sources) == {"LunarLander-v2"}
    assert found.ranges == (
        *((-half, half) for half in (1.5, 1.5, 5.0, 5.0, math.pi, 5.0)),
        (0.0, 1.0),
        (0.0, 1.0),
    )
    assert [name for _, name in found.action_names] == ["off", "left engine", "main engine", "right engine"]
    assert found.max_steps == 1000


def test_the_description_is_json_and_deterministic():
    first, again = (describe(Environment("CartPole-v1"), seed=3) for _ in range(2))
    assert first == again
    data = json.loads(json.dumps(first.to_dict()))
    assert data["features"][0] == {"name": "position", "range": list(first.ranges[0]), "source": "declared"}
    assert describe(Environment("CartPole-v1"), seed=4).feature_names == first.feature_names


# ------------------------------------------------------------------------------------- names


class Named(Walk):
    """A walk that says what its numbers are called, in one of two ways."""

    def __init__(self, features, actions, attribute, **more):
        super().__init__(**more)
        if attribute:
            self.feature_names, self.action_names = features, actions
        else:
            self.metadata = {"render_modes": [], "feature_names": features, "action_names": actions}


def named(features, actions, attribute=True, **more):
    return as_environment(lambda: Named(features, actions, attribute, **more))


@pytest.mark.parametrize("attribute", [True, False])
def test_names_come_from_the_environment(attribute):
    found = describe(named(["place", "time"], ("left", "stay", "right"), attribute))
    assert found.feature_names == ("place", "time")
    assert found.action_names == ((0, "left"), (1, "stay"), (2, "right"))
    given = describe(named(["place", "time"], None), feature_names=("a", "b"), action_names=["l", "s", "r"])
    assert given.feature_names == ("a", "b")
    assert [word for _, word in given.action_names] == ["l", "s", "r"]


@pytest.mark.parametrize("names", [["place"], "ab", [1, 2], ["", " "], 7, None])
def test_names_of_an_environment_that_do_not_fit_are_not_used(names):
    found = describe(named(names, names))
    assert found.feature_names == ("x0", "x1")
    assert [word for _, word in found.action_names] == ["action 0", "action 1", "action 2"]


def test_equal_names_are_numbered():
    found = describe(named(["place", "place"], ["go", "go", "go (2)"]))
    assert found.feature_names == ("place", "place (2)")
    assert [word for _, word in found.action_names] == ["go", "go (2)", "go (2) (2)"]
    assert len(tree_space(found).library.tokens) == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"feature_names": ["a"]}, "feature_names must have 2 names here, got 1"),
        ({"feature_names": ["a", "a"]}, "feature_names has a name twice: a, a"),
        ({"action_names": "abc"}, "action_names must be a list of names, got 'abc'"),
        ({"action_names": [1, 2, 3]}, "action_names must be a list of names"),
        ({"action_names": ["a", " ", "b"]}, "action_names must be a list of names"),
    ],
)
def test_given_names_that_do_not_fit_are_refused(given, message):
    with pytest.raises(DeclarationError, match=message):
        describe(named(None, None), **given)


# ------------------------------------------------------------------------------------- given ranges


def test_ranges_are_overridden_by_name_and_by_number():
    found = describe(
        Environment("CartPole-v1"), {"velocity": (-3, 3), "3": [-2.5, 2.5], 0: np.array([-1.0, 1.0])}
    )
    assert found.ranges[0] == (-1.0, 1.0)
    assert found.ranges[1] == (-3.0, 3.0)
    assert found.ranges[3] == (-2.5, 2.5)
    assert found.sources == ("given", "given", "declared", "given")
    assert describe(Environment("LunarLander-v3"), {"y": (0, 1.5)}).sources[:2] == ("LunarLander-v2", "given")


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"speed": (0, 1)}, "no feature 'speed'; the features are position, velocity .or 0 to 1"),
        ({"2": (0, 1)}, "no feature '2'"),
        ({-1: (0, 1)}, "no feature '-1'"),
        ({"²": (0, 1)}, "no feature '²'"),
        ({"velocity": (1, 0)}, "velocity needs a lower and a higher number"),
        ({"velocity": (1, 1)}, "velocity needs a lower and a higher number"),
        ({"velocity": (0, math.nan)}, "velocity needs a lower and a higher number"),
        ({"velocity": (0, math.inf)}, "velocity needs a lower and a higher number"),
        ({"velocity": (0, 1, 2)}, "velocity needs a lower and a higher number"),
        ({"velocity": (False, True)}, "velocity needs a lower and a higher number"),
        ({"velocity": "01"}, "velocity needs a lower and a higher number"),
        ({"velocity": 1.0}, "velocity needs a lower and a higher number"),
    ],
)
def test_ranges_that_cannot_be_are_refused(ranges, message):
    with pytest.raises(DeclarationError, match=message):
        describe(Environment("MountainCar-v0"), ranges)


# ------------------------------------------------------------------------------------- probing


def view_of_time(scale=1.0, offset=0.0):
    def observe(x, t):
        return np.array([offset + scale * t, 1.0])

    return observe


@pytest.mark.parametrize(
    ("scale", "offset", "expected"),
    [
        (1.0, 0.0, (0.0, 19.0)),
        (-1.0, 0.0, (-19.0, 0.0)),
        (0.3, 10.0, (10.0, 15.7)),
        (1e-14, 0.0, (0.0, 1.9e-13)),
        (1e-3, 1e6, (1e6, 1e6 + 0.019)),
        (1e12, 0.0, (0.0, 1.9e13)),
        (5e306, -4e307, (-4e307, 5.5e307)),
        (5e-324, 0.0, (0.0, 19 * 5e-324)),
    ],
)
def test_an_endless_feature_gets_the_range_that_it_shows(walk, scale, offset, expected):
    """The walk is cut off after 20 steps, so time is 0 to 19; the range is rounded outwards."""
    space = Box(-np.inf, np.inf, (2,), np.float64)
    found = walk(observation_space=space, observe=view_of_time(scale, offset), length=None)
    low, high = found.ranges[0]
    assert low < high
    assert low <= min(offset, offset + 19 * scale)
    assert high >= max(offset, offset + 19 * scale)
    assert (low, high) == pytest.approx(expected, rel=1e-9)
    assert found.ranges[1] is None
    assert found.sources == ("probed", "probed")


def test_probed_ranges_hold_what_random_actions_reach(walk):
    found = walk()
    (low, high), steps = found.ranges
    assert steps == (0.0, 19.0)
    assert low < -2
    assert high > 2
    assert walk(seed=0).ranges == found.ranges
    assert walk(seed=1).ranges != found.ranges


def test_an_absurdly_wide_declared_range_is_probed_and_a_narrow_one_is_kept(walk):
    low = np.array([-1.7e308, -5000.0, -5000.5, 0.0])
    high = np.array([1.7e308, 5000.0, 5000.5, np.inf])
    found = walk(
        observation_space=Box(low, high, dtype=np.float64), observe=lambda x, t: np.full(4, float(t))
    )
    assert found.sources == ("probed", "declared", "probed", "probed")
    assert found.ranges == ((0.0, 19.0), (-5000.0, 5000.0), (0.0, 19.0), (0.0, 19.0))


def test_all_ranges_that_are_not_given_can_be_probed():
    lander = as_environment("LunarLander-v3")
    found = describe(lander, {"y": (0, 1)}, probe=True)
    assert set(found.sources) == {"given", "probed"}
    ranges = dict(zip(found.feature_names, found.ranges, strict=True))
    assert ranges["y"] == (0.0, 1.0)
    assert ranges["left leg"] == (0.0, 1.0)  # rarely on the ground, and yet not left out
    declared = dict(zip(found.feature_names, describe(lander).ranges, strict=True))
    for name in ("x", "x velocity", "y velocity", "angle", "angular velocity"):
        assert declared[name][0] < ranges[name][0] < ranges[name][1] < declared[name][1], name
    assert ranges == dict(
        zip(found.feature_names, describe(lander, {"y": (0, 1)}, probe=True).ranges, strict=True)
    )


def test_a_feature_that_never_changes_is_left_out_of_the_trees(walk):
    space = Box(np.array([-np.inf, 2.0, 0.0]), np.array([np.inf, 2.0, 1.0]), dtype=np.float64)
    found = walk(observation_space=space, observe=lambda x, t: np.array([7.0, 2.0, x]))
    assert found.ranges == (None, None, (0.0, 1.0))
    names = [token.name for token in tree_space(found).library.tokens]
    assert names == ["x2 <", "action 0", "action 1", "action 2"]
    given = walk({"0": (6, 8)}, observation_space=space, observe=lambda x, t: np.array([7.0, 2.0, x]))
    assert given.ranges == ((6.0, 8.0), None, (0.0, 1.0))


def test_nan_and_infinity_do_not_count_while_probing(walk):
    def observe(x, t):
        return np.array([math.nan if t == 2 else math.inf if t == 3 else t, math.nan])

    found = walk(observation_space=Box(-np.inf, np.inf, (2,), np.float64), observe=observe)
    assert found.ranges == ((0.0, 19.0), None)


def test_nothing_that_changes_is_nothing_to_decide_on(walk):
    with pytest.raises(DeclarationError, match="no number of its observation ever changed"):
        walk(observe=lambda x, t: np.zeros(2, np.float32))


def test_an_environment_that_fails_while_probed_is_named(walk):
    with pytest.raises(DeclarationError, match="failed while its ranges were probed: ZeroDivisionError"):
        walk(observe=lambda x, t: np.array([x, 1 / (3 - t)]))
    with pytest.raises(DeclarationError, match="failed while its ranges were probed: ValueError"):
        walk(observe=lambda x, t: np.array([x, 1.0, 2.0][: 2 + (t == 3)]))


def test_an_environment_that_cannot_begin_or_shows_something_else_is_named(walk):
    space = Box(-9, 9, (2,))
    with pytest.raises(
        DeclarationError, match="failed at its first reset: ZeroDivisionError: division by zero"
    ):
        walk(observation_space=space, observe=lambda x, t: 1 / 0)
    with pytest.raises(DeclarationError, match="observation_space has 2 numbers, what reset gave has 3"):
        walk(observation_space=space, observe=lambda x, t: np.array([x, t, 0.0]))


# ------------------------------------------------------------------------------------- other shapes


def test_a_small_table_is_flattened_row_by_row(walk):
    low, high = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[10.0, 11.0], [12.0, 13.0]])
    found = walk(
        observation_space=Box(low, high, dtype=np.float64), observe=lambda x, t: np.array([[t, 0], [0, x]])
    )
    assert found.feature_names == ("x0", "x1", "x2", "x3")
    assert found.ranges == ((0.0, 10.0), (1.0, 11.0), (2.0, 12.0), (3.0, 13.0))
    policy = tree(decision(3, 0.0, 2, decision(0, 5.0, 1, 0)))
    env = gymnasium.make(found.environment.id, disable_env_checker=True)
    expected = [plain_return(env, policy.to_dict(), seed) for seed in range(4)]
    assert policy.evaluate(found.environment, range(4)).tolist() == expected


def test_actions_may_begin_anywhere(walk):
    """The walk checks that the action is one of its own."""
    found = walk(action_space=Discrete(3, start=5))
    assert found.action_names == ((5, "action 5"), (6, "action 6"), (7, "action 7"))
    policy = tree(decision(0, 0.0, 7, 5))
    env = gymnasium.make(found.environment.id, disable_env_checker=True)
    expected = [plain_return(env, policy.to_dict(), seed) for seed in range(4)]
    assert policy.evaluate(found.environment, range(4)).tolist() == expected
    with pytest.raises(DeclarationError, match=r"the tree has action 0, but .* has the actions 5 to 7"):
        tree(decision(0, 0.0, 0, 5)).evaluate(found.environment)


def test_without_a_step_limit_episodes_are_cut_off(walk):
    found = walk(max_episode_steps=None, length=None)
    assert found.max_steps == STEP_LIMIT
    assert found.ranges[1][1] >= 9999
    env, policy = gymnasium.make(found.environment.id, disable_env_checker=True), tree(1)
    with open_runner(found.environment) as runner:
        returns = paired_returns([policy], runner, np.arange(2))[0]
    expected = [plain_return(env, policy.to_dict(), seed, limit=STEP_LIMIT) for seed in (0, 1)]
    assert returns.tolist() == expected


def test_names_of_a_family_are_used_only_where_they_fit():
    kwargs = {"observation_space": Box(-1, 1, (3,)), "observe": lambda x, t: np.full(3, x, np.float32)}
    with registered("lab/CartPole-v7", Walk, max_episode_steps=5, kwargs=kwargs):
        found = describe(Environment("lab/CartPole-v7"))
    assert found.feature_names == ("x0", "x1", "x2")
    assert [name for _, name in found.action_names] == ["action 0", "action 1", "action 2"]


@pytest.mark.parametrize(
    ("actions", "low", "high", "dtype"),
    [
        (Box(-1, 3, (2,)), (-1.0, -1.0), (3.0, 3.0), "float32"),
        (MultiDiscrete([2, 4], start=[0, 1]), (0.0, 1.0), (1.0, 4.0), "int64"),
        (MultiBinary(2), (0.0, 0.0), (1.0, 1.0), "int8"),
        (Box(-1, 3, ()), (-1.0,), (3.0,), "float32"),
        (Box(0, 10**6, (1, 1), np.int64), (0.0,), (1e6,), "int64"),
    ],
)
def test_actions_that_are_numbers(walk, actions, low, high, dtype):
    found = walk(action_space=actions, observation_space=Box(-9, 9, (2,)))
    assert found.action_names == ()
    assert (found.numbers.low, found.numbers.high, found.numbers.dtype) == (low, high, dtype)
    array = found.numbers.array(high)
    assert actions.contains(array)


# ------------------------------------------------------------------------------------- refusals

FAR = Box(-np.inf, np.inf, (2,))
REFUSED = {
    "image": (
        {"observation_space": Box(0, 255, (32, 32, 3), np.uint8)},
        r"an image or the like .shape \(32, 32, 3\), uint8.*TransformObservation",
    ),
    "long": ({"observation_space": Box(0, 1, (2000,))}, r"an image or the like .shape \(2000,\)"),
    "unbounded action": (
        {"action_space": Box(-1, np.inf, (2,))},
        "no finite bounds.*TransformAction and a Box",
    ),
    "pair of actions": ({"action_space": Tuple([Discrete(2)] * 2)}, "its actions are Tuple.*TransformAction"),
    "text": (
        {"observation_space": Dict({"a": FAR, "b": Text(5)})},
        "b of its observation is a Text.*FilterObservation",
    ),
    "one action": ({"action_space": Discrete(1)}, "one action only"),
    "empty": ({"observation_space": Box(0, 1, (0,))}, "its observation is empty"),
    "below zero": ({"action_space": Discrete(3, start=-1)}, "its actions begin with -1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_environments_that_do_not_fit_are_refused_with_the_reason(walk, case):
    kwargs, message = REFUSED[case]
    with pytest.raises(DeclarationError, match=f"^Dressed0-v0 does not fit: .*{message}"):
        walk(**kwargs)


def needs_a_package():
    raise gymnasium.error.DependencyNotInstalled('Physics is not installed, run `pip install "physics"`')


def broken():
    raise RuntimeError("two\n  lines")


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("Needy-v0", needs_a_package, "Physics is not installed, run `pip install"),
        ("Broken-v0", broken, "cannot make Broken-v0: two lines"),
    ],
)
def test_environments_that_cannot_be_made_are_one_line(name, kind, message):
    with registered(name, kind), pytest.raises(DeclarationError, match=message) as caught:
        describe(Environment(name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "arguments", "message"),
    [
        ("NoSuchThing-v0", {}, "cannot make NoSuchThing-v0: .*doesn't exist"),
        ("CartPole-v99", {}, "cannot make CartPole-v99: .*version `v99`"),
        ("nowhere/CartPole-v1", {}, "cannot make nowhere/CartPole-v1: Namespace nowhere not found"),
        ("no_such_package:Thing-v0", {}, "No module named 'no_such_package'"),
        ("not an id!", {}, "cannot make not an id!"),
        ("MountainCar-v0", {"gravty": 1}, r"cannot make MountainCar-v0\(gravty=1\): .*unexpected keyword"),
    ],
)
def test_ids_and_arguments_that_gymnasium_does_not_know(given, arguments, message):
    with pytest.raises(DeclarationError, match=message):
        describe(as_environment(given, arguments))
