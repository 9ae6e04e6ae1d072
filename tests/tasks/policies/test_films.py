"""Playing an episode and recording it; the commands of tree policies."""

from __future__ import annotations

import json

import pytest
from environments import Walk, registered
from trees import decision, tree
from typer.testing import CliRunner

from discodso import TreePolicy
from discodso.base.errors import DeclarationError
from discodso.cli.main import app, main
from discodso.tasks.policies.films import play, save_film
from discodso.tasks.policies.making import Environment

runner = CliRunner()
BALANCE = TreePolicy.from_dict(
    {"feature": 3, "threshold": 0.0, "left": {"action": 0}, "right": {"action": 1}}
).with_names(Environment("CartPole-v1"))


def test_play_gives_the_return_that_evaluate_gives() -> None:
    for seed in range(3):
        assert play(BALANCE, seed=seed).total == BALANCE.evaluate(seeds=[seed])[0]
    assert play(BALANCE, "CartPole-v1").frames == ()


def test_a_policy_without_an_environment_must_be_told_one() -> None:
    with pytest.raises(DeclarationError, match="which environment"):
        play(TreePolicy.from_dict({"action": 0}))


def test_a_policy_of_another_environment_is_refused() -> None:
    with pytest.raises(DeclarationError, match="the policy is for CartPole-v1, not for MountainCar-v0"):
        play(BALANCE, "MountainCar-v0")


def test_the_film_shows_every_second_step(tmp_path) -> None:
    from PIL import Image

    episode = play(BALANCE, seed=1, film=True)
    assert len(episode.frames) == episode.steps + 1
    assert episode.frames[0].shape == (400, 600, 3)
    save_film(episode, tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames > episode.steps / 4
        assert film.size == (600, 400)


def test_an_environment_that_draws_nothing_is_told_in_a_line() -> None:
    with (
        registered("Walk-v0", Walk, max_episode_steps=5) as name,
        pytest.raises(DeclarationError, match=r"^Walk-v0 cannot be drawn: it has no 'rgb_array' rendering$"),
    ):
        play(tree(decision(0, 0.0, 0, 2)), name, film=True)


def test_an_mp4_is_written_or_refused_with_advice(tmp_path) -> None:
    episode = play(BALANCE, seed=1, film=True)
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        with pytest.raises(DeclarationError, match=r"discodso\[video\]"):
            save_film(episode, tmp_path / "film.mp4")
        return
    save_film(episode, tmp_path / "film.mp4")
    assert b"ftyp" in (tmp_path / "film.mp4").read_bytes()[:16]


def test_other_films_are_refused(tmp_path) -> None:
    with pytest.raises(DeclarationError, match=r"\.gif"):
        save_film(play(BALANCE, film=True), tmp_path / "film.avi")
    with pytest.raises(DeclarationError, match="film=True"):
        save_film(play(BALANCE), tmp_path / "film.gif")


def test_the_play_command(tmp_path) -> None:
    path = tmp_path / "policy.json"
    BALANCE.save(path)
    shown = runner.invoke(app, ["play", str(path), "--episodes", "3", "--json"])
    assert shown.exit_code == 0
    returns = [row["return"] for row in json.loads(shown.stdout)]
    assert returns == BALANCE.evaluate(seeds=range(3)).tolist()
    filmed = runner.invoke(app, ["play", str(path), "--render"])
    assert filmed.exit_code == 0
    assert (tmp_path / "policy.gif").read_bytes().startswith(b"GIF89a")


def test_the_policy_command(tmp_path) -> None:
    out = tmp_path / "run"
    command = ["policy", "CartPole-v1", "--budget", "200", "--episodes", "5", "--out", str(out)]
    shown = runner.invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert "test mean" in shown.stdout
    assert "declared" in shown.stderr  # the ranges are printed
    assert TreePolicy.load(out / "policy.json").environment == Environment("CartPole-v1")
    as_json = runner.invoke(app, [*command[:-2], "--json"])
    data = json.loads(as_json.stdout)
    assert TreePolicy.from_dict(data["tree"]) == TreePolicy.load(out / "policy.json")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["policy", "Nothing-v0"], "Nothing"),
        (["policy", "CartPole-v1", "--leaves", "linear"], "real numbers"),
        (["policy", "CartPole-v1", "--range", "angle"], "FEATURE=LOW,HIGH"),
        (["policy", "CartPole-v1", "--argument", "x"], "NAME=VALUE"),
        (["policy", "CartPole-v1", "--preset", "x"], "preset"),
        (["play", "nothing.json"], "nothing.json"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], words: str, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("discodso:")]
    assert words in line


def test_a_folder_in_use_is_refused_before_the_search(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SystemExit):
        main(["policy", "CartPole-v1", "--budget", "1000000", "--out", str(tmp_path)])
    assert "not empty" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"
