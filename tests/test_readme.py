"""What the README shows works, and the numbers it quotes are those of the committed results."""

from __future__ import annotations

import json
import re
import shlex
import statistics
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discodso import TreePolicy
from discodso.cli.main import app
from discodso.tasks.regression.problems import problems

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_python_blocks_run_one_after_the_other(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 3
    names: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)  # our own text
    assert "budget" in capsys.readouterr().out
    assert names["result"].best.reward > 0.7


def test_the_commands_are_understood(tmp_path, monkeypatch):
    commands = re.findall(r"^\$ (discodso .*)$", README, re.MULTILINE)
    assert len(commands) >= 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in commands:
        arguments = [*shlex.split(command)[1:], "--calls", "200", "--json"]
        outcome = CliRunner().invoke(app, arguments)
        assert outcome.exit_code == 0, outcome.output
        assert json.loads(outcome.stdout)["calls"] == 200


def test_the_table_is_the_committed_one():
    table = (ROOT / "benchmarks/results/bitstring.md").read_text()
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len(rows) > 4
    for row in rows:
        assert row in README


def test_the_regression_table_is_the_committed_one():
    table = (
        (ROOT / "benchmarks/results/regression-paper.md").read_text().split("Mean reward on the training")[0]
    )
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len(rows) > 5
    for row in rows:
        assert row in README
    records = (ROOT / "benchmarks/results/regression-paper.jsonl").read_text().splitlines()
    rewards = [json.loads(line)["evaluation"] for line in records]
    assert len(rewards) == 45
    assert f"{sum(rewards) / 45:.4f} |" in README


def test_figures_of_the_default_regression_are_the_committed_ones():
    inputs = {problem.name: problem.inputs for problem in problems()}
    runs = json.loads((ROOT / "benchmarks/results/regression.json").read_text())["runs"]

    def means(method, calls, seeds):
        own = [
            run
            for run in runs
            if (run["method"], run["calls"], run["variant"]) == (method, calls, "A") and run["seed"] in seeds
        ]
        assert len(own) == 45 * len(seeds)
        few = [run["evaluation"] for run in own if inputs[run["problem"]] <= 3]
        return f"{statistics.fmean(few):.3f}", f"{statistics.fmean(run['evaluation'] for run in own):.3f}"

    for calls, seeds, label in (
        (1_000_000, [0], "(1 seed)"),
        (100_000, [0, 1, 2], "(3 seeds)"),
        (100_000, [3, 4, 5], "(3 other seeds, after all settings were chosen)"),
    ):
        row = f"| **discodso, default** {label} | {calls:,} | {' | '.join(means('default', calls, seeds))} |"
        assert row in README, row
    few, whole = zip(*(means("pyoperon", 100_000, seeds) for seeds in ([0, 1, 2], [3, 4, 5])), strict=True)
    assert f"100,000 | {'; '.join(few)} | {'; '.join(whole)} |" in README


def test_the_policy_table_is_the_committed_one():
    table = (ROOT / "results/policies/README.md").read_text()
    spread = [line for line in table.split("| runs |")[1].splitlines() if line.startswith("|")]
    assert len(spread) >= 4
    for row in spread:
        assert row in README
    for path in (ROOT / "results/policies").glob("*/summary.json"):
        summary = json.loads(path.read_text())
        assert f"| {summary['test_mean']:.2f} | {summary['test_error']:.2f} | {summary['nodes']} |" in table


@pytest.mark.parametrize(
    "path", sorted((ROOT / "results/policies").glob("*/policy.json")), ids=lambda p: p.parent.name
)
def test_the_committed_policies_score_what_their_summaries_say(path):
    summary = json.loads((path.parent / "summary.json").read_text())
    if summary["environment"]["id"] == "LunarLander-v3":
        pytest.skip("takes a minute through Gymnasium; `discodso play` tries single seeds")
    policy = TreePolicy.load(path)
    assert len(policy) == summary["nodes"]
    assert policy.evaluate(seeds=range(1000)).mean() == summary["test_mean"]


def test_the_cost_is_the_committed_one():
    cases = json.loads((ROOT / "benchmarks/results/engine.json").read_text())["cases"]
    assert f"{cases[0]['sampling_ratio']:.1f} times the forward pass" in README
    assert f"{cases[0]['training_ratio']:.1f}\ntimes its forward and backward" in README


def test_files_that_the_readme_links_to_exist():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        file, _, place = target.partition("#")
        assert (ROOT / file).exists(), target
        titles = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(), re.MULTILINE) if place else []
        assert not place or place in [title.lower().replace(" ", "-") for title in titles], target


def test_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
