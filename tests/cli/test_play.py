"""The command play: files and folders, and a policy that is for another environment."""

from __future__ import annotations

import json

import pytest
from command import error_of, invoked

from discodso import TreePolicy
from discodso.tasks.policies.making import Environment


@pytest.fixture
def folder(tmp_path):
    balance = {"feature": 2, "threshold": 0.0, "left": {"action": 0}, "right": {"action": 1}}
    TreePolicy.from_dict(balance).with_names(Environment("CartPole-v1")).save(tmp_path / "policy.json")
    return tmp_path


def test_a_folder_is_played_like_its_policy(folder):
    asked = ("--episodes", "2", "--seed", "5", "--json")
    by_folder = invoked("play", folder, *asked)
    assert by_folder.stdout == invoked("play", folder / "policy.json", *asked).stdout
    expected = TreePolicy.load(folder / "policy.json").evaluate(seeds=[5, 6]).tolist()
    assert [episode["return"] for episode in json.loads(by_folder.stdout)] == expected


def test_another_environment_is_refused_in_a_line(folder, capsys):
    said = error_of(capsys, "play", folder, "--env", "Acrobot-v1")
    assert said == "discodso: the policy is for CartPole-v1, not for Acrobot-v1"
