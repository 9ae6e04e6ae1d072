"""Teachers of every form act as they should, and what is none is refused in a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.box2d.lunar_lander import heuristic

from discodso import TreePolicy
from discodso.base.errors import DiscodsoError
from discodso.tasks.policies.environments import Interface, describe
from discodso.tasks.policies.leaves import ActionNumbers
from discodso.tasks.policies.making import as_environment
from discodso.tasks.policies.teachers import Teacher, as_teacher, numbers_of
from discodso.tasks.policies.tree import Environment

CART = describe(as_environment("CartPole-v1"))
TREE = TreePolicy.from_dict({"feature": 2, "threshold": 0.01, "left": {"action": 0}, "right": {"action": 1}})


def interface(name: str, numbers: int = 0) -> Interface:
    """Of an environment that is not opened."""
    own = ActionNumbers(("a",) * numbers, (-1.0,) * numbers, (1.0,) * numbers, (numbers,), "float32")
    choices = () if numbers else tuple((choice, str(choice)) for choice in range(4))
    return Interface(
        Environment(name), ("x",) * 8, (None,) * 8, ("",) * 8, choices, 10, own if numbers else None
    )


class _Model:
    """As stable-baselines3 has it."""

    def predict(self, observation: Any) -> Any:
        return np.array(int(observation[2] > 0)), None


def test_functions_models_and_trees_are_teachers(tmp_path: Path) -> None:
    TREE.save(tmp_path / "policy.json")
    forms: list[Any] = [
        lambda observation: observation[2] > 0.01,
        _Model(),
        TREE,
        tmp_path / "policy.json",
        str(tmp_path / "policy.json"),
    ]
    for form in forms:
        teacher = as_teacher(form, CART)
        act = teacher.begin(None)
        for angle, expected in ((-0.1, 0.0), (0.1, 1.0)):
            said = act(np.array([0.0, 0.0, angle, 0.0], np.float32))
            assert numbers_of(said, teacher, CART) == [expected]
    assert as_teacher(_Model(), CART).name == "_Model"


@pytest.mark.parametrize("continuous", [False, True])
def test_the_heuristic_of_the_lander_is_that_of_gymnasium(continuous: bool) -> None:
    env = gymnasium.make("LunarLander-v3", continuous=continuous)
    here = interface("LunarLander-v3", 2 if continuous else 0)
    act = as_teacher("heuristic", here).begin(env)
    observation, _ = env.reset(seed=0)
    for _ in range(60):
        said = act(observation)
        assert np.array_equal(said, heuristic(env, observation))
        assert len(numbers_of(said, as_teacher("heuristic", here), here)) == (2 if continuous else 1)
        observation, *_ = env.step(said)


def test_the_heuristic_of_the_walker_begins_anew_in_every_episode() -> None:
    teacher = as_teacher("heuristic", interface("BipedalWalker-v3", 4))
    observations = np.random.default_rng(0).normal(size=(20, 24))
    first, second = ([act(row).tolist() for row in observations] for act in map(teacher.begin, (None, None)))
    assert first == second
    assert np.abs(first).max() <= 1


def test_an_onnx_model_acts_alike(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "policy.onnx"
    path.write_bytes(bytes(TREE.with_names(None, CART.feature_names).export("onnx")))  # type: ignore[arg-type]
    act = as_teacher(path, CART).begin(None)
    for row in np.random.default_rng(0).normal(0, 0.1, (50, 4)).astype(np.float32):
        assert numbers_of(act(row), as_teacher(TREE, CART), CART) == [TREE.act(row)]


def test_scores_of_choices_say_the_best(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = np.array([[0, 0], [0, 0], [-1, 1], [0, 0]], np.float32)  # the angle, for and against
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "scores",
        [helper.make_tensor_value_info("x", kind, [None, 4])],
        [helper.make_tensor_value_info("y", kind, [None, 2])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "q.onnx"))
    act = as_teacher(str(tmp_path / "q.onnx"), CART).begin(None)
    assert [act(np.array([0, 0, angle, 0])) for angle in (-0.2, 0.3)] == [0, 1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "teacher must be a function from observations to actions"),
        ("heuristik", "teacher must be heuristic, or the path of a .onnx or a .json file.*did you mean"),
        (
            "heuristic",
            "there is no built-in heuristic for CartPole-v1, only for LunarLander and BipedalWalker",
        ),
        ("missing.onnx", "there is no file missing.onnx"),
        ("missing.json", "cannot read missing.json"),
        ("model.zip", "nothing that is loaded is executed here; load it in Python"),
        (
            TREE.with_names(Environment("Acrobot-v1")),
            "the policy is a policy for Acrobot-v1, not for CartPole",
        ),
    ],
)
def test_what_is_no_teacher_is_refused_in_a_line(given: Any, words: str) -> None:
    with pytest.raises(DiscodsoError, match=words) as caught:
        as_teacher(given, CART)
    assert "\n" not in str(caught.value)


def test_without_the_extra_a_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(DiscodsoError, match=r"install it with pip install \"discodso\[onnx\]\""):
        as_teacher("model.onnx", CART)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (2, "gave 2, actions of CartPole-v1 are 0 to 1"),
        (0.5, "gave 0.5, actions"),
        ([0, 1], r"gave \[0, 1\], an action of CartPole-v1 is one number"),
        ("left", "gave 'left', an action"),
        (float("nan"), "gave nan"),
    ],
)
def test_what_is_no_action_is_refused_in_a_line(said: Any, words: str) -> None:
    with pytest.raises(DiscodsoError, match=words):
        numbers_of(said, Teacher("mine", lambda env: lambda x: said), CART)


def test_numbers_are_held_within_the_bounds() -> None:
    here = interface("LunarLander-v3", 2)
    assert numbers_of([3.0, -0.5], Teacher("mine", lambda env: lambda x: x), here) == [1.0, -0.5]
