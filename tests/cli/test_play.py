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


@pytest.mark.parametrize(
    "environment",
    [
        {"id": "evil_module:CartPole-v1", "arguments": {}},
        {"id": "CartPole-v1", "arguments": {}, "wrappers": ["evil_module:Evil"]},
        {"id": "CartPole-v1", "arguments": {}, "wrappers": ['RecordVideo {"video_folder": "here"}']},
        {"id": "CartPole-v1", "arguments": {"config": {"type": ["evil_module.Evil"]}}},
    ],
)
def test_nothing_is_imported_or_written_because_the_file_of_a_policy_says_so(
    folder, capsys, monkeypatch, environment
):
    monkeypatch.chdir(folder)
    (folder / "evil_module.py").write_text("import pathlib\npathlib.Path('executed').touch()\n")
    data = json.loads((folder / "policy.json").read_text())
    (folder / "policy.json").write_text(json.dumps({**data, "environment": environment}))
    for command in (("play",), ("compare", "policy.json")):
        said = error_of(capsys, *command, folder / "policy.json", "--json")
        assert "nothing is imported or opened because a file says so: name the environment yourself" in said
    assert not (folder / "executed").exists()
    assert not (folder / "here").exists()


def test_a_module_that_the_user_names_is_imported(folder, monkeypatch):
    monkeypatch.chdir(folder)
    registered = "gymnasium.register('Own-v1', 'gymnasium.envs.classic_control:CartPoleEnv')\n"
    (folder / "own_module_of_play.py").write_text("import gymnasium\n" + registered)
    data = json.loads((folder / "policy.json").read_text())
    named = "own_module_of_play:Own-v1"
    data["environment"] = {"id": named, "arguments": {}}
    (folder / "policy.json").write_text(json.dumps(data))
    assert json.loads(invoked("play", folder, "--env", named, "--json").stdout)[0]["steps"] > 0
