"""Requirements and several objectives: what counts as better, what is told, and that nothing else changes."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from killing import comparable

from discodso import (
    DeclarationError,
    DiscodsoError,
    DisCoSettings,
    FrontSettings,
    GPSettings,
    JsonLines,
    Measured,
    NetworkSettings,
    NSGA2Settings,
    OpenSequence,
    RandomSettings,
    Space,
    Task,
    Threads,
    Token,
    resume,
    search,
)
from discodso.base.dominance import hypervolume, undominated
from discodso.cli.reporting import as_data, export, show
from discodso.disco.disco import default_settings
from discodso.disco.fronts import front_settings
from discodso.report.comparison import compare
from discodso.report.folders import by_method, read_run
from discodso.report.page_data import page_data
from discodso.run.goals import Grading

SPACE = Space(
    [Token("a", range=(0, 1)), Token("b", range=(0, 1)), Token("c")], OpenSequence(min_length=1, max_length=5)
)
SMALL = DisCoSettings(batch_size=20, network=NetworkSettings(units=4))


def total(design) -> float:
    return float(sum(value or 0.0 for value in design.values))


def narrow(design) -> Measured:
    """Much is good, but the sum may hardly differ from 1, and at most three tokens are allowed."""
    far = abs(total(design) - 1) - 0.05
    reward = math.nan if far > 1 else total(design) - 0.1 * len(design)
    return Measured(reward, violation={"sum": far, "length": len(design) - 3})


def narrow_batch(designs) -> Measured:
    found = [narrow(design) for design in designs]
    violation = {name: np.array([own.violation[name] for own in found]) for name in ("sum", "length")}
    return Measured(np.array([own.rewards for own in found]), violation=violation)


def test_feasible_designs_come_first_and_infeasible_ones_by_their_violation():
    result = search(Task(SPACE, narrow), budget=300, seed=1, top=300)
    violations = [sum(max(0, v) for v in narrow(s.design).violation.values()) for s in result.top]
    assert [s.violation for s in result.top] == pytest.approx(violations)
    assert violations == sorted(violations)
    feasible = [s.reward for s in result.top if s.feasible]
    assert feasible == sorted(feasible, reverse=True)
    assert result.best == result.top[0]
    assert result.feasible_count == len(feasible) > 20  # designs are told apart, and none is evaluated twice
    assert result.broken["sum"] == sum(abs(total(s.design) - 1) > 0.05 for s in result.top)
    assert result.history[-1].feasible == result.feasible_count
    assert result.history[-1].broken == result.broken
    assert f"{result.feasible_count} feasible; broken most: sum, by {result.broken['sum']}" in repr(result)


def test_without_a_feasible_design_there_is_no_best_one_and_the_result_says_why():
    result = search(Task(SPACE, lambda d: Measured(math.nan, violation=1 + total(d))), budget=60, seed=0)
    assert result.best is None
    assert result.top[0].violation == 1
    assert "no design met all requirements" in result.detail
    assert "closest has a violation of 1" in result.detail
    assert result.to_dict(history=False)["top"][0]["reward"] is None


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (Measured(1.0, violation=math.nan), "returned nan, as the violation"),
        (Measured(1.0, violation={"size": math.inf}), "returned inf, as the violation of size"),
        (Measured(1.0, violation="much"), "returned 'much' instead of a number, as the violation"),
        (Measured(math.nan, violation=-1.0), "returned nan"),
        (Measured(1.0, reasons={0: "crashed"}), "returned Measured with reasons or cut"),
    ],
)
def test_what_is_no_violation_is_a_failure(returned, reason):
    task = Task(SPACE, lambda d: returned if d.tokens[0] == "a" else 1.0)
    result = search(task, budget=40, seed=0, method=RandomSettings(20))
    assert 0 < result.failure_count < 40
    assert all(failure.reason.startswith(reason) for failure in result.failures)


def test_a_batch_objective_says_the_same_and_what_is_not_known_has_failed():
    one, other = (
        search(task, budget=200, seed=3, method=SMALL)
        for task in (Task(SPACE, narrow), Task(SPACE, batch_objective=narrow_batch))
    )
    assert one.top == other.top
    assert one.broken == other.broken
    unknown = Task(
        SPACE, batch_objective=lambda ds: Measured(np.ones(len(ds)), violation=ds.lengths * np.nan)
    )
    result = search(unknown, budget=20, seed=0, method=SMALL, on_failure="continue")
    assert (result.failure_count, result.failures[0].reason) == (20, "returned a violation of nan")
    short = Task(SPACE, batch_objective=lambda ds: Measured(np.ones(len(ds)), violation=np.ones(1)))
    assert "one for each design" in search(short, budget=20, seed=0, method=SMALL).failures[0].reason


def test_what_is_told_is_finite_in_order_and_the_reward_itself_where_that_is_usual():
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1.0, 1e9):
        first = scale * rng.normal(size=100)
        grading = Grading.of(first, np.maximum(0.0, rng.normal(size=100)))
        rewards = scale * np.concatenate([rng.normal(size=200), -(10.0 ** np.arange(1, 12)), [1e12]])
        violation = np.concatenate([10.0 ** np.arange(-6, 9), [0.0]])
        feasible, infeasible = (
            grading.told(rewards, 0 * rewards),
            grading.told(violation * np.nan, violation)[:-1],
        )
        assert np.isfinite(feasible).all()
        assert (np.argsort(feasible) == np.argsort(rewards)).all()
        assert infeasible.max() < feasible.min()
        assert (np.diff(infeasible) < 0).all()
        assert infeasible.min() > grading.least
        usual = rewards > -2 * scale
        assert (feasible[usual] == rewards[usual]).all()
        assert feasible.min() - infeasible.min() < 10 * scale


@pytest.mark.parametrize(
    "method", [default_settings(budget=230), SMALL, GPSettings(20)], ids=["default", "paper", "gp"]
)
def test_a_run_with_requirements_goes_on_exactly_and_workers_change_nothing(tmp_path, method):
    task = Task(SPACE, narrow)
    whole = search(task, budget=230, seed=5, method=method)
    search(task, budget=90, seed=5, method=method, out=tmp_path / "run")
    again = resume(tmp_path / "run", task=task, budget=230, method=method)
    assert comparable(again) == comparable(whole)
    with Threads(2) as executor:
        shared = search(task, budget=230, seed=5, method=method, executor=executor)
    assert comparable(shared) == comparable(whole)


def test_infeasible_designs_teach():
    """Requirements that hardly any random design meets: by their violations they are found."""

    def far(design):
        return 5 - len(design) + sum(abs((v or 0.0) - 0.7) for v in design.values) - 0.1

    result = search(Task(SPACE, lambda d: Measured(total(d), violation=far(d))), budget=1000, seed=0)
    assert result.best is not None
    blind = Task(SPACE, lambda d: math.nan if far(d) > 0 else total(d))
    assert search(blind, budget=1000, seed=0).best is None


def test_a_noisy_winner_is_feasible_in_all_of_its_evaluations():
    def noisy(design, seed):
        chance = np.random.default_rng(seed)
        return Measured(total(design) + chance.normal(), violation=total(design) + 0.3 * chance.normal() - 1)

    result = search(Task(SPACE, noisy, stochastic=True), budget=600, seed=0)
    assert result.best is not None
    assert result.best.evaluations > 1
    assert result.best.feasible
    assert total(result.best.design) < 1


def test_reports_and_commands_tell_what_was_broken(tmp_path):
    result = search(Task(SPACE, narrow), budget=60, seed=1, out=tmp_path / "run", top=60)
    run = read_run(tmp_path / "run")
    own = page_data([run])["tasks"][0]["groups"][0]
    assert own["runs"][0]["feasible"] == result.feasible_count
    assert own["runs"][0]["broken"] == result.broken
    assert "violation" in own["designs"][-1]
    assert "violation" not in own["designs"][0]
    assert as_data(run)["last"]["broken"] == result.broken


# ------------------------------------------------------------------------------------ several objectives

NAMES = {"objectives": ("sum", "parts"), "directions": ("max", "min")}


def two(design):
    return total(design) - 0.05 * len(design) ** 2, len(design)


def two_at_once(designs):
    found = np.array([two(design) for design in designs], float)
    return {"parts": found[:, 1], "sum": found[:, 0]}


def narrow_two(design):
    if design.tokens[0] == "c":
        raise ValueError("no c at the start")
    return Measured(two(design), violation={"sum": total(design) - 1.5})


@pytest.mark.parametrize(
    "task", [Task(SPACE, two, **NAMES), Task(SPACE, batch_objective=two_at_once, **NAMES)]
)
def test_the_front_is_that_of_all_designs_and_its_hypervolume_is_exact(task):
    seen: list = []
    told = task.objective or task.batch_objective

    def noted(one):
        seen.extend([one] if task.objective else one)
        return told(one)

    own = {"objective": noted} if task.objective else {"batch_objective": noted}
    result = search(Task(SPACE, **own, **NAMES), budget=300, seed=0)
    points = np.array([two(design) for design in seen]) * [1, -1]
    front = np.unique(points[undominated(points)], axis=0)[::-1]
    assert np.array([s.goals for s in result.front]) * [1, -1] == pytest.approx(front)
    first = points[: result.history[0].calls]
    assert result.reference == pytest.approx(tuple(first.min(axis=0) * [1, -1]))
    assert result.hypervolume == pytest.approx(hypervolume(points, first.min(axis=0)), rel=1e-12)
    volumes = [row.hypervolume for row in result.history]
    assert volumes == sorted(volumes)
    assert result.history[-1].front == len(front)
    assert result.best is None
    assert "hypervolume" in repr(result)
    assert "<svg" in result._repr_html_()
    assert "sum" in result.plot_front()._repr_svg_()


@pytest.mark.parametrize(
    "method",
    [FrontSettings(3, SMALL), front_settings(noisy=False, budget=230), NSGA2Settings(20), RandomSettings(30)],
    ids=["network", "default", "nsga2", "random"],
)
@pytest.mark.parametrize("objective", [two, narrow_two])
def test_several_objectives_go_on_exactly_and_workers_change_nothing(tmp_path, method, objective):
    task = Task(SPACE, objective, **NAMES)
    whole = search(task, budget=230, seed=5, method=method)
    search(task, budget=90, seed=5, method=method, out=tmp_path / "run")
    again = resume(tmp_path / "run", task=task, budget=230)
    assert comparable(again) == comparable(whole)
    assert len(whole.front) > 1
    assert all(s.feasible for s in whole.front)
    with Threads(2) as executor:
        shared = search(task, budget=230, seed=5, method=method, executor=executor)
    assert comparable(shared) == comparable(whole)


def test_until_a_design_is_feasible_the_nearest_ones_are_kept():
    task = Task(SPACE, lambda d: Measured((math.nan, math.nan), violation=1 + total(d)), **NAMES)
    result = search(task, budget=60, seed=0)
    assert (result.front, result.hypervolume) == ((), None)
    assert result.top[0].violation == 1
    assert "no design met all requirements" in result.detail


def test_the_default_finds_better_fronts_than_chance():
    task = Task(SPACE, lambda d: (total(d), -sum(v * v for v in d.values if v)), objectives=("a", "b"),
                reference=(0, -6))  # fmt: skip
    chance, nsga2, own = (
        np.mean([search(task, budget=300, seed=seed, method=method).hypervolume for seed in range(2)])
        for method in (RandomSettings(20), NSGA2Settings(20), None)
    )
    # The best for a sum of s are five equal values: the front is b = -s^2 / 5 for s from 0 to 5.
    best = 5 * 6 - 5**3 / 15
    assert max(chance, nsga2) < own < best


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (1.0, "returned 1.0 instead of 2 numbers (sum, parts)"),
        ((1.0, math.nan), "returned nan, for parts"),
        ({"sum": 1.0, "size": 2.0}, "returned {'sum': 1.0, 'size': 2.0} instead of 2 numbers"),
        (Measured((1.0, None)), "returned None instead of a number, for parts"),
    ],
)
def test_values_that_are_none_have_failed(returned, reason):
    task = Task(SPACE, lambda d: returned if d.tokens[0] == "a" else two(d), **NAMES)
    result = search(task, budget=40, seed=0, method=RandomSettings(20))
    assert 0 < result.failure_count < 40
    assert all(failure.reason.startswith(reason) for failure in result.failures)


def test_what_does_not_fit_several_objectives_is_refused_in_a_line():
    task = Task(SPACE, two, **NAMES)
    for options, words in (
        ({"method": SMALL}, "DisCoSettings is for one objective, and the task has 2"),
        ({"preset": "paper"}, "for one objective"),
        ({"target": 1.0}, "target is for one objective"),
    ):
        with pytest.raises(DeclarationError, match=words):
            search(task, budget=10, **options)
    with pytest.raises(DeclarationError, match="for several objectives; the task has one"):
        search(Task(SPACE, total), budget=10, method=NSGA2Settings())
    for names, words in (
        ({"objectives": ("a",)}, "for several"),
        ({"objectives": ("a", "a")}, "distinct"),
        ({"objectives": ("a", "b"), "directions": ("max", "up")}, "directions must be"),
        ({"objectives": ("a", "b"), "reference": (1,)}, "reference must be"),
    ):
        with pytest.raises(DeclarationError, match=words):
            Task(SPACE, two, **names)


def test_reports_and_commands_show_the_front(tmp_path, capsys):
    task = Task(SPACE, two, **NAMES)
    result = search(task, budget=60, seed=1, out=tmp_path / "run", callback=JsonLines(tmp_path / "lines"))
    assert '"hypervolume"' in (tmp_path / "lines").read_text()
    run = read_run(tmp_path / "run")
    assert run.designs == result.front
    own = page_data([run])["tasks"][0]["groups"][0]
    assert [design["goals"] for design in own["designs"]] == [
        pytest.approx(scored.goals, rel=1e-6) for scored in result.front
    ]
    assert len(own["front"]["points"]) == len(result.front)
    assert own["runs"][0]["best"] == pytest.approx(result.hypervolume, rel=1e-4)
    show(tmp_path / "run")
    assert "on the front" in capsys.readouterr().out
    export(tmp_path / "run")
    table = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    shown = {(float(row["goal.sum"]), float(row["goal.parts"])) for row in table}  # and slow evaluations
    assert {scored.goals for scored in result.front} <= shown
    with pytest.raises(DeclarationError, match="instead of 2 numbers"):
        search(task, budget=10, known=[(result.front[0].design, 1.0)])
    other = read_run(tmp_path / "run")
    search(task, budget=60, seed=2, out=tmp_path / "other")
    with pytest.raises(DiscodsoError, match="give the task a reference"):
        compare(by_method([other, read_run(tmp_path / "other")]))


def test_an_asynchronous_run_has_a_front_too(tmp_path):
    task = Task(SPACE, lambda d: Measured(two(d), violation=total(d) - 1.5), **NAMES)
    with Threads(2) as executor:
        short = search(task, budget=5, executor=executor, asynchronous=True)
        search(task, budget=60, executor=executor, asynchronous=True, out=tmp_path / "run")
        result = resume(tmp_path / "run", task=task, budget=90, executor=executor)
    assert short.front
    assert short.hypervolume is None
    assert result.calls == 90
    assert result.hypervolume > 0
    points = np.array([scored.goals for scored in result.front]) * [1, -1]
    assert result.hypervolume == pytest.approx(hypervolume(points, np.array(result.reference) * [1, -1]))
