"""Which environment is meant, and making it."""

from __future__ import annotations

import functools

import gymnasium
import numpy as np
import pytest
from environments import Walk, registered
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import FlattenObservation, FrameStackObservation, TransformReward
from trees import decision, plain_return, tree

from discodso import TreePolicy, resume, search_policy
from discodso.base.errors import DeclarationError, InvalidDesignError
from discodso.tasks.policies.environments import describe
from discodso.tasks.policies.making import STEP_LIMIT, Environment, as_environment, make, step_limit
from discodso.tasks.policies.simulators import simulator_for

BALANCING = tree(decision(3, 0.0, 0, 1))


# ------------------------------------------------------------------------------------- ids and arguments


@pytest.mark.parametrize(
    ("given", "arguments", "message"),
    [
        (None, {}, "must be the id of a Gymnasium environment, .* got None"),
        ("", {}, "must be the id of a Gymnasium environment, .* got ''"),
        (gymnasium, {}, "must be the id of a Gymnasium environment"),
        ("A-v0", {"f": len}, "arguments of A-v0 must .* or tables of them, got 'f': <built-in"),
        ("A-v0", {"f": {"a": [{"b": len}]}}, "arguments of A-v0 must .*, got 'f.a.b': <built-in"),
        ("A-v0", {"f": {1: 2}}, "arguments of A-v0 must have names, .*, got 1: 2"),
        ("A-v0", {1: 2}, "arguments of A-v0 must have names"),
        ("A-v0", [1], "arguments of A-v0 must be a table"),
        (Walk, {"length": 3}, "arguments and wrappers are for ids"),
    ],
)
def test_what_is_not_an_environment_is_refused(given, arguments, message):
    with pytest.raises(DeclarationError, match=message):
        as_environment(given, arguments)


def test_arguments_are_kept_as_files_have_them_and_reach_the_environment():
    nested = {"sizes": (1, 2), "table": {"b": ({"c": (3,)},), "a": None}}
    found = as_environment("MountainCar-v0", {"goal_velocity": 0.02, **nested})
    assert found.arguments == (
        ("goal_velocity", 0.02),
        ("sizes", [1, 2]),
        ("table", {"b": [{"c": [3]}], "a": None}),
    )
    assert Environment.from_dict(found.to_dict()) == found
    assert hash(Environment.from_dict(found.to_dict())) == hash(found)
    assert simulator_for(found) is None
    assert as_environment(found) is found
    fast = as_environment("MountainCar-v0", {"goal_velocity": 0.069})
    swinging = tree(decision(1, 0.0, 0, 2))
    assert swinging.evaluate(fast, [0]) < swinging.evaluate("MountainCar-v0", [0])
    short = as_environment("CartPole-v1", {"max_episode_steps": 5})
    assert describe(short).max_steps == 5
    assert BALANCING.evaluate(short, range(3)).tolist() == [5.0] * 3


def test_tables_among_the_arguments_survive_a_run_and_a_policy(tmp_path):
    with registered("Sized-v0", Sized, max_episode_steps=10):
        given = {"config": {"view": {"scale": 3.0, "names": ["a", "b"]}}}
        found = search_policy(
            "Sized-v0", arguments=given, budget=4, episodes=2, test_seeds=(0, 1), out=tmp_path
        )
        again = resume(tmp_path, budget=8)
        assert again.interface == found.interface
        assert found.interface.feature_names == ("a", "b")
        assert TreePolicy.load(tmp_path / "policy.json").environment == found.interface.environment


class Sized(Walk):
    """A walk whose view is in a table of tables."""

    def __init__(self, config):
        self.feature_names = config["view"]["names"]
        super().__init__(observe=lambda x, t: np.array([config["view"]["scale"] * x, t], np.float32))


# ------------------------------------------------------------------------------------- wrappers


def test_wrappers_are_put_around_in_their_order():
    words = ('FrameStackObservation {"stack_size": 2}', "gymnasium.wrappers:FlattenObservation")
    found = as_environment("CartPole-v1", wrappers=words)
    assert str(found) == "CartPole-v1 in FrameStackObservation in FlattenObservation"
    assert Environment.from_dict(found.to_dict()) == found
    assert simulator_for(found) is None
    with make(found) as env:
        assert isinstance(env, FlattenObservation)
        assert isinstance(env.env, FrameStackObservation)
        expected = [plain_return(env, BALANCING.to_dict(), seed) for seed in range(3)]
    assert BALANCING.evaluate(found, range(3)).tolist() == expected
    assert describe(found).max_steps == 500


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("FrameStack", "FrameStack is no wrapper; name one of gymnasium.wrappers"),
        ('os:system "ls"', "os:system is no wrapper"),
        ("gymnasium:Env", "gymnasium:Env is no wrapper"),
        ("no_such_module:Wrapper", "cannot make CartPole-v1 in Wrapper: No module named"),
        ("FrameStackObservation {stack", "arguments of FrameStackObservation must be a JSON object"),
        ("FrameStackObservation 2", "arguments of FrameStackObservation must be a JSON object"),
        ("FrameStackObservation", "cannot make CartPole-v1 in FrameStackObservation: .* missing 1 required"),
    ],
)
def test_wrappers_that_cannot_be_are_refused(words, message):
    with pytest.raises(DeclarationError, match=message):
        make(as_environment("CartPole-v1", wrappers=[words]))


def test_a_single_wrapper_must_stand_in_a_list():
    with pytest.raises(DeclarationError, match="wrappers must be a list of names"):
        as_environment("CartPole-v1", wrappers="FlattenObservation")


@pytest.mark.parametrize("wrappers", ["FlattenObservation", [1]])
def test_wrappers_in_a_policy_file_are_a_list_of_strings(wrappers):
    with pytest.raises(InvalidDesignError, match="environment must be an object"):
        Environment.from_dict({"id": "A-v0", "arguments": {}, "wrappers": wrappers})


# ------------------------------------------------------------------------------------- instances, specifications


def test_an_instance_and_a_specification_are_what_they_were_made_from():
    assert as_environment(gymnasium.make("CartPole-v1")) == Environment("CartPole-v1")
    assert as_environment(gymnasium.spec("Acrobot-v1")) == Environment("Acrobot-v1")
    given = {"sutton_barto_reward": True, "max_episode_steps": 50}
    dressed = FrameStackObservation(gymnasium.make("CartPole-v1", render_mode="rgb_array", **given), 2)
    found = as_environment(dressed)
    assert found.id == "CartPole-v1"
    assert dict(found.arguments) == given
    assert [words.partition(" ")[0].rpartition(":")[2] for words in found.wrappers] == [
        "FrameStackObservation"
    ]
    with make(found) as env:
        assert env.observation_space == dressed.observation_space
        assert step_limit(env) == 50
    endless = as_environment(gymnasium.make("CartPole-v1", max_episode_steps=-1))
    with make(endless) as env:
        assert step_limit(env) == STEP_LIMIT


def test_a_specification_that_no_file_can_hold_is_made_again_as_it_is():
    doubled = as_environment(TransformReward(gymnasium.make("CartPole-v1"), lambda reward: 2 * reward))
    assert doubled.id == "python:CartPole-v1"
    assert simulator_for(doubled) is None
    once, twice = BALANCING.evaluate("CartPole-v1", range(3)), BALANCING.evaluate(doubled, range(3))
    assert twice.tolist() == (2 * once).tolist()
    own = as_environment(EnvSpec("Own-v0", entry_point=Walk, max_episode_steps=7))
    assert describe(own).max_steps == 7


def test_instances_that_cannot_be_made_again_are_refused():
    with pytest.raises(DeclarationError, match="Walk does not know how it was made; hand over its class"):
        as_environment(Walk())

    class Plain(gymnasium.ObservationWrapper):
        def observation(self, observation):
            return observation

    with pytest.raises(DeclarationError, match="wrapper cannot be recreated"):
        make(as_environment(Plain(gymnasium.make("CartPole-v1"))))


# ------------------------------------------------------------------------------------- functions


@pytest.mark.parametrize("workers", [1, 2])
def test_a_function_makes_the_environment_here_and_in_workers(workers):
    with gymnasium.wrappers.TimeLimit(Walk(), 9) as env:
        expected = [plain_return(env, BALANCING_WALK.to_dict(), seed) for seed in range(4)]
    short = functools.partial(gymnasium.wrappers.TimeLimit, max_episode_steps=9)
    found = BALANCING_WALK.evaluate(lambda: short(Walk()), range(4), workers=workers)
    assert found.tolist() == expected


BALANCING_WALK = tree(decision(0, 0.0, 2, 0))


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda: 3, "cannot make <lambda>: it is a int and no gymnasium.Env"),
        (lambda: 1 / 0, "cannot make <lambda>: division by zero"),
        (gymnasium.Wrapper, "cannot make Wrapper: .*missing 1 required"),
    ],
)
def test_functions_that_make_no_environment_are_one_line(factory, message):
    with pytest.raises(DeclarationError, match=message):
        make(as_environment(factory))


def test_a_run_of_a_function_goes_on_with_it_and_no_other(tmp_path):
    limits = {"episodes": 2, "test_seeds": (0, 1), "seed": 3}
    whole = search_policy(Walk, budget=40, **limits)
    search_policy(Walk, budget=20, out=tmp_path, **limits)
    with pytest.raises(DeclarationError, match=r"Walk was handed over in Python; .* `resume` as task="):
        resume(tmp_path, budget=40)
    with pytest.raises(DeclarationError, match="one of python:Walk, what was handed over is python:Env"):
        resume(tmp_path, budget=40, task=gymnasium.Env)
    again = resume(tmp_path, budget=40, task=Walk)
    assert again.calls == 40
    assert again.policy.to_dict() == whole.policy.to_dict()
    policy = TreePolicy.load(tmp_path / "policy.json")
    with pytest.raises(DeclarationError, match="handed over in Python"):
        policy.evaluate()
    assert policy.evaluate(Walk, (0, 1)).tolist() == again.test_returns.tolist()


def test_an_environment_of_a_file_is_shown_in_one_line():
    shown = str(
        Environment.from_dict({"id": "a\n\x1b[2Jb", "arguments": {"m": "\u2028"}, "wrappers": ["w\n"]})
    )
    assert shown.isprintable()
