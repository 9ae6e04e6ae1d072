"""Teachers: whatever names an action for an observation, and is not a tree that a person can read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.checks import did_you_mean, module_of_extra
from discodso.base.errors import DeclarationError
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.starts import check_tree
from discodso.tasks.policies.tree import DecisionTree

HEURISTIC = "heuristic"
Acting = Callable[[Any], Any]  # from an observation as the environment gives it to an action in any form


@dataclass(frozen=True)
class Teacher:
    """Names actions.

    Attributes:
        name: for people, and for settings files where they can name it.
        begin: given the environment at the start of an episode, how it acts there.
    """

    name: str
    begin: Callable[[Any], Acting]


def as_teacher(given: Any, interface: Interface) -> Teacher:
    """A teacher from a name, a path, a function, or anything with `predict`, as stable-baselines3 has it."""
    if isinstance(given, Teacher):
        return given
    if isinstance(given, (str, Path)):
        return _named(str(given), interface)
    if isinstance(given, DecisionTree):
        return _of_tree("the policy", given, interface)
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        return Teacher(f"function {name}", lambda env: given)
    if callable(getattr(given, "predict", None)):
        return Teacher(type(given).__name__, lambda env: lambda observation: _predicted(given, observation))
    raise DeclarationError(
        "teacher must be a function from observations to actions, have predict(observation), or be a name or the "
        f"path of an ONNX model or a policy.json, got {given!r:.80}"
    )


def _predicted(model: Any, observation: Any) -> Any:
    found = model.predict(observation)
    return found[0] if isinstance(found, tuple) else found  # stable-baselines3 gives a state, too


def _named(name: str, interface: Interface) -> Teacher:
    if name == HEURISTIC:
        return Teacher(name, _heuristic(interface))
    path = Path(name)
    if path.suffix == ".onnx":
        return Teacher(name, _onnx(path, interface))
    if path.suffix == ".json":
        return _of_tree(name, DecisionTree.load(path), interface)
    if path.suffix == ".zip":
        raise DeclarationError(
            f"teacher: {name} is a saved model, and nothing that is loaded is executed here; load it in Python, "
            "and hand over the model"
        )
    raise DeclarationError(
        f"teacher must be {HEURISTIC}, or the path of a .onnx or a .json file, got {name!r}"
        + did_you_mean(name, [HEURISTIC])
    )


def _of_tree(name: str, tree: DecisionTree, interface: Interface) -> Teacher:
    try:
        check_tree(tree, interface)
    except DeclarationError as error:
        raise DeclarationError(f"teacher: {name} {error}") from None
    return Teacher(name, lambda env: tree.act)


def _heuristic(interface: Interface) -> Callable[[Any], Acting]:
    """Those that Gymnasium ships with its environments."""
    family = interface.environment.id.rsplit("-v", 1)[0]
    if family in ("LunarLander", "LunarLanderContinuous"):
        lander = import_module("gymnasium.envs.box2d.lunar_lander").heuristic
        return lambda env: lambda observation: lander(env, observation)
    if family == "BipedalWalker":
        walker = import_module("gymnasium.envs.box2d.bipedal_walker").BipedalWalkerHeuristics
        return lambda env: walker().step_heuristic  # it has a state
    raise DeclarationError(
        f"teacher: there is no built-in heuristic for {interface.environment.id}, only for LunarLander and "
        "BipedalWalker; hand over a function, or the path of an ONNX model"
    )


def _onnx(path: Path, interface: Interface) -> Callable[[Any], Acting]:
    """A model of one observation as float32[1, n] to an action, or to a number for each choice."""
    runtime = module_of_extra("onnxruntime", "ONNX")
    if not path.is_file():
        raise DeclarationError(f"teacher: there is no file {path}")
    try:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # so that it gives the same wherever it runs
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise DeclarationError(
            f"teacher: {path} cannot be read: {' '.join(str(error).split())[:200]}"
        ) from None
    given, choices = session.get_inputs()[0].name, len(interface.action_names)

    def act(observation: Any) -> Any:
        row = np.asarray(observation, np.float32).reshape(1, -1)
        found = np.asarray(session.run(None, {given: row})[0]).ravel()
        if choices and len(found) == choices and choices > 1:
            return interface.action_names[int(np.argmax(found))][0]
        return found

    return lambda env: act


def numbers_of(action: Any, teacher: Teacher, interface: Interface) -> list[float]:
    """What a teacher said as numbers: of one choice, or of all parts of an action, within their bounds."""
    numbers, here = interface.numbers, interface.environment.id
    try:
        found = np.asarray(action, np.float64).ravel()
    except (TypeError, ValueError):
        found = np.empty(0)
    wanted = 1 if numbers is None else len(numbers)
    if len(found) != wanted or not np.isfinite(found).all():
        expected = "one number" if wanted == 1 else f"{wanted} numbers"
        raise DeclarationError(
            f"teacher {teacher.name} gave {action!r:.60}, an action of {here} is {expected}"
        )
    if numbers is not None:
        clipped: list[float] = np.clip(found, numbers.low, numbers.high).tolist()
        return clipped
    choice = found[0].item()
    if not choice.is_integer() or int(choice) not in dict(interface.action_names):
        known = [action for action, _ in interface.action_names]
        raise DeclarationError(
            f"teacher {teacher.name} gave {choice:g}, actions of {here} are {min(known)} to {max(known)}"
        )
    return [choice]
