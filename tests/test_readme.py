"""What the README and the guides show works, and the figures they quote are those of the committed results."""

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
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
GUIDES = sorted(ROOT.glob("docs/*.md"))
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def blocks(text):
    """The Python blocks of a page, each with the text block that follows it at once, if there is one."""
    return re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)


def same(shown, printed):
    """Whether two texts have the same words and, to four digits, the same numbers."""
    words = [" ".join(NUMBER.sub("#", text).split()) for text in (shown, printed)]
    numbers = [[float(found) for found in NUMBER.findall(text)] for text in (shown, printed)]
    return words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], rel=1e-4, abs=1e-4)


def anchors(path):
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def table_rows(text):
    lines = [line for line in text.splitlines() if "|" in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_readme_is_short():
    assert len(README.splitlines()) < 150


@pytest.mark.parametrize("path", [ROOT / "README.md", *GUIDES], ids=lambda path: path.stem)
def test_the_python_blocks_of_a_page_print_what_it_shows(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict = {"__name__": path.stem}
    for block, shown in blocks(path.read_text()):
        capsys.readouterr()
        exec(compile(block, path.name, "exec"), names)  # our own text
        printed = capsys.readouterr().out
        assert not shown or same(shown, printed), printed


def test_the_readme_has_four_examples_with_their_output():
    found = blocks(README)
    assert len(found) == 4
    assert all(shown for _, shown in found)


def test_the_commands_are_understood(tmp_path, monkeypatch):
    commands = re.findall(r"`(discodso (?:fit|policy|run) [^`]+)`", README)
    assert len(commands) >= 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in commands:
        arguments = [*shlex.split(command)[1:], "--budget", "200", "--json"]
        outcome = CliRunner().invoke(app, arguments)
        assert outcome.exit_code == 0, outcome.output
        assert 150 <= json.loads(outcome.stdout)["calls"] <= 200


def readme_row(name):
    rows = [row for row in table_rows(README) if row[0] == name]
    assert len(rows) == 1, name
    return rows[0]


@pytest.mark.parametrize(
    ("name", "budget", "seeds", "rows"),
    [
        ("45 regression problems, fresh seeds 3 to 5", 100_000, (3, 4, 5), "all"),
        ("their 22 even rows, fresh seeds 3 to 5", 100_000, (3, 4, 5), "even"),
        ("their 22 even rows, seeds 0 to 2", 100_000, (0, 1, 2), "even"),
        ("45 regression problems, seed 0", 1_000_000, (0,), "all"),
    ],
)
def test_the_regression_figures_are_the_committed_ones(name, budget, seeds, rows):
    runs = [json.loads(line) for line in (ROOT / "benchmarks/results/regression.jsonl").open()]
    order = [problem.name for problem in problems()]
    wanted = order if rows == "all" else order[1::2]

    def mean(method):
        own = [
            run["evaluation"]
            for run in runs
            if (run["method"], run["calls"], run["variant"]) == (method, budget, "A")
            and run["seed"] in seeds
            and run["problem"] in wanted
        ]
        assert len(own) in (0, len(wanted) * len(seeds))
        return f"{statistics.fmean(own):.3f}" if own else None

    row = readme_row(name)
    assert row[1:4] == [f"{budget:,}", str(len(seeds)), mean("default")]
    if mean("pyoperon") is not None:
        assert row[4] == f"pyoperon {mean('pyoperon')}"


def test_the_figures_of_the_papers_settings_are_the_committed_ones():
    records = (ROOT / "benchmarks/results/regression-paper.jsonl").read_text().splitlines()
    rewards = [json.loads(line)["evaluation"] for line in records]
    assert len(rewards) == 45
    row = readme_row('the same with `preset="paper-scaled"`, seed 0')
    other = readme_row("45 regression problems, seed 0")
    assert row[1:4] == ["1,000,000", "1", f"{statistics.fmean(rewards):.4f}"]
    published = table_rows((ROOT / "benchmarks/results/regression-paper.md").read_text())
    assert ["DisCo-DSO, as published (10 seeds)", "1,000,000", "0.6632", "0.7045"] in published
    assert row[4] == other[4] == "DisCo-DSO as published 0.7045 (10 seeds)"


def summaries(name):
    found = sorted((ROOT / "results/policies").glob(f"{name}-seed*/summary.json"))
    return [json.loads(path.read_text()) for path in found]


@pytest.mark.parametrize("environment", ["CartPole-v1", "MountainCar-v0", "Acrobot-v1"])
def test_the_figures_of_the_trees_are_the_committed_ones(environment):
    runs = summaries(f"{environment}-default")
    means = [run["test_mean"] for run in runs]
    calls = max(run["calls"] for run in runs)
    assert all(run["calls"] == calls or run["stop"] == "patience" for run in runs)
    reached = f"{statistics.fmean(means):.2f}, worst {min(means):.2f}"
    row = readme_row(f"{environment}, tree")
    assert row[1:4] == [f"{calls:,}", str(len(runs)), reached]
    table = (ROOT / "results/policies/README.md").read_text()
    paper = {line[-1].split()[0] for line in table_rows(table) if f"[{environment}-" in line[0]}
    assert row[4] == f"paper {paper.pop()}"


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("LunarLander-v3, tree, from a teacher", "LunarLander-v3-teacher"),
        ("the same with splits on sums", "LunarLander-v3-oblique-teacher"),
        ("the same with continuous actions", "LunarLander-v3-continuous-teacher"),
    ],
)
def test_the_figures_of_the_trees_from_a_teacher_are_the_committed_ones(row, name):
    runs = summaries(name)
    means = [run["test_mean"] for run in runs]
    reached = f"{statistics.fmean(means):.2f}, worst {min(means):.2f}"
    assert readme_row(row)[1:4] == [f"{runs[0]['calls']:,}", str(len(runs)), reached]


def test_the_figure_of_the_lander_is_the_committed_one():
    chain = [*summaries("LunarLander-v3-explore"), *summaries("LunarLander-v3-closer")]
    last = summaries("LunarLander-v3-default")
    assert len(last) == 1
    calls = sum(run["calls"] for run in [*chain, *last])
    assert readme_row(f"LunarLander-v3, tree, a chain of {len(chain) + 1} searches")[1:4] == [
        f"{calls:,}",
        "1",
        f"{last[0]['test_mean']:.2f}, error {last[0]['test_error']:.2f}",
    ]


def test_the_figures_of_the_bitstring_are_the_committed_ones():
    results = (ROOT / "benchmarks/results/defaults.md").read_text()
    text = results.split("## bitstring: 50,000 objective calls, 5 seeds")[1]
    columns = next(row for row in table_rows(text) if row[0] == "method")
    for alpha in ("0.9", "0.5"):
        place = columns.index(f"f1, alpha {alpha}")
        default, paper = (
            next(row for row in table_rows(text) if row[0] == method)[place].split(";")[0]
            for method in ("default", "paper preset")
        )
        row = readme_row(f"bitstring f1, alpha {alpha}")
        assert row[1:] == ["50,000", "5", default, f'`preset="paper"` {paper}']


def test_the_policy_table_is_that_of_the_runs():
    table = (ROOT / "results/policies/README.md").read_text()
    for path in (ROOT / "results/policies").glob("*/summary.json"):
        summary = json.loads(path.read_text())
        assert f"| {summary['test_mean']:.2f} | {summary['test_error']:.2f} | {summary['nodes']} |" in table
    page = (ROOT / "docs/experiments/policies.md").read_text()
    spread = [line for line in table.split("| runs |")[1].splitlines() if line.startswith("|")]
    assert len(spread) >= 4
    for row in spread:
        assert row in page


@pytest.mark.parametrize(
    ("page", "result", "mark"),
    [
        ("designs", "bitstring", "| method | f1, alpha 0.9"),
        ("equations", "regression_ablation", "| | train |"),
        ("designs", "refinement", "| search |"),
    ],
)
def test_a_table_of_the_experiments_is_the_committed_one(page, result, mark):
    committed = (ROOT / f"benchmarks/results/{result}.md").read_text().split(mark)[1].split("\n\n")[0]
    rows = table_rows(committed)[2:]
    shown = table_rows((ROOT / f"docs/experiments/{page}.md").read_text())
    assert len(rows) > 2
    for row in rows:
        assert any(row == other[: len(row)] for other in shown), row


def test_the_cost_is_the_committed_one():
    cases = json.loads((ROOT / "benchmarks/results/engine.json").read_text())["cases"]
    page = " ".join((ROOT / "docs/experiments/designs.md").read_text().split())
    assert f"{cases[0]['sampling_ratio']:.1f} times the forward pass" in page
    assert f"{cases[0]['training_ratio']:.1f} times its forward and backward" in page


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


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, place = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), target
        assert not place or place in anchors(there), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_make_targets_that_a_page_names_exist(path):
    text = path.read_text()
    makefile = (ROOT / "Makefile").read_text()
    if path.stem == "CHANGELOG":
        return
    for target in set(re.findall(r"(?:`|^\$ )make ([a-z-]+)", text, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for name in set(re.findall(r"`((?:benchmarks|examples|tests|docs)/[\w./-]+\.\w+)`", text)):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_do_not_use_names_that_are_gone(path):
    if path.stem in ("CHANGELOG", "deletions"):
        return
    gone = r"max_calls|max_time|--calls|--restart-after|resume_policy|overlap=|queue_\w+|preset.?.tuned"
    assert re.findall(gone, path.read_text()) == []
