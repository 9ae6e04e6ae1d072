"""Derivatives by constants, Levenberg-Marquardt with them, and refining designs during a search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy
from killing import comparable
from spaces import mixed_sequence

from discodso import (
    Choice,
    DeclarationError,
    Design,
    DisCoSettings,
    EvaluationError,
    NetworkSettings,
    OpenSequence,
    Real,
    Space,
    StopReason,
    Task,
    Token,
    resume,
    search,
)
from discodso.baselines.random_search import RandomSettings
from discodso.disco.settings import ArchiveSettings, RestartSettings, TaskRefinementSettings
from discodso.run.executors.registry import make_executor
from discodso.run.task import Refined
from discodso.tasks.regression.evaluator import Program, jacobian
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.expression_space import Fit, RegressionSpace, regression_task
from discodso.tasks.regression.operators import OPERATORS, Operator
from discodso.testing import check_task

RNG = np.random.default_rng(0)
X = RNG.uniform(0.3, 2.0, (300, 2))  # more than two blocks of rows

# ------------------------------------------------------------------------------------------------ derivatives


def by_sympy(operator, *operands):
    signs = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
    match operator.name:
        case name if name in signs:
            return sympy.sympify(f"a {signs[name]} b").subs(dict(zip("ab", operands, strict=True)))
        case "neg":
            return -operands[0]
        case "inv":
            return 1 / operands[0]
        case "n2" | "n3" | "n4" as name:
            return operands[0] ** int(name[1])
        case name:
            return getattr(sympy, name.replace("abs", "Abs"))(operands[0])


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_slopes_of_every_operator_are_those_of_sympy(name):
    operand = ["mul", ("const", 0.45), "x1"], ["add", ("const", 0.4), "x2"]
    inner = [item for part in operand[: OPERATORS[name].arity] for item in part]
    # Above it another operator, and beside it a part that no constant moves.
    expression = Expression(Design.of("add", "mul", "x2", name, *inner, "sin", "x1"), ("x1", "x2"))
    symbols = sympy.symbols("x1 x2 c1 c2", real=True)
    letters = dict(zip(expression.constants.tolist(), symbols[2:], strict=False))
    formula = expression.fold(symbols.__getitem__, letters.__getitem__, by_sympy)
    got = jacobian(expression, X)
    assert got.shape == (len(expression.constants), len(X))
    for row, symbol in zip(got, symbols[2:], strict=False):
        slope = sympy.lambdify(symbols, formula.diff(symbol), "numpy")
        want = slope(X[:, 0], X[:, 1], *expression.constants, *([0.0] * (2 - len(got))))
        np.testing.assert_allclose(row, np.broadcast_to(want, len(X)), rtol=1e-9, atol=1e-12)


def differences(expression, k, size):
    step = np.zeros(len(expression.constants))
    step[k] = size
    high, low = (expression.with_constants(expression.constants + s * step)(X) for s in (1, -1))
    return (high - low) / (2 * size)


def test_slopes_of_sampled_expressions_are_those_of_differences():
    space = RegressionSpace(library=("add", "sub", "mul", "div", "sin", "cos", "tanh", "const")).build(2)
    designs = DisCoSettings(network=NetworkSettings(units=4)).build(space, 0).ask(60)
    compared = 0
    for design in designs:
        expression = Expression(design, ("x1", "x2"))
        got = jacobian(expression, X)
        for k in range(len(got)):
            want, rough = (differences(expression, k, step) for step in (1e-6, 1e-5))
            smooth = np.isfinite(want) & np.isclose(want, rough, rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(got[k][smooth], want[smooth], rtol=1e-3, atol=1e-5)
            compared += smooth.mean() > 0.5
    assert compared > 50


# ----------------------------------------------------------------------------------------- Levenberg-Marquardt


def fitted(design, y, *, allowed=60, scaled=False, const_range=(-np.inf, np.inf)):
    library = ("add", "sub", "mul", "exp", "sin", "const")
    space = RegressionSpace(library=library, min_length=1, const_range=const_range).build(2)
    fit = Fit.of(Program.of(space.library), X, y, scaled=scaled)
    batch = space.encode([design, design])
    refined = fit.refine(batch, np.array([allowed, 0]))
    assert refined.designs[1] == design  # nothing was allowed
    assert refined.calls[1] == 0
    assert refined.calls[0] <= allowed
    return (
        refined.designs[0],
        refined.rewards[0],
        refined.calls[0],
        fit(space.encode([refined.designs[0]]))[0],
    )


CURVE = Design.of("mul", ("const", 1.0), "exp", "mul", ("const", -0.5), "x1")


def test_constants_close_in_and_every_call_is_counted():
    y = 2.0 * np.exp(-1.3 * X[:, 0])
    found, reward, calls, again = fitted(CURVE, y)
    np.testing.assert_allclose([v for v in found.values if v is not None], [2.0, -1.3], rtol=1e-6)
    assert reward == pytest.approx(again)
    assert 4 < calls < 60
    for allowed in (1, 2, 3, 4, 5, 8):
        assert fitted(CURVE, y, allowed=allowed)[2] <= allowed


def test_scale_and_offset_are_found_beside_the_constants():
    y = 5.0 - 2.0 * np.sin(3.1 * X[:, 0])
    start = Design.of("sin", "mul", ("const", 2.8), "x1")
    found, reward, _, again = fitted(start, y, scaled=True)
    assert found.values[2] == pytest.approx(3.1, abs=1e-5)
    assert reward == pytest.approx(1.0)
    assert again == pytest.approx(reward)


def test_constants_stay_in_their_range():
    y = 2.0 * np.exp(-1.3 * X[:, 0])
    found, reward, _, again = fitted(CURVE, y, const_range=(-1.1, 1.5))
    values = [v for v in found.values if v is not None]
    assert values[0] == 1.5  # pulled beyond
    assert all(-1.1 <= v <= 1.5 for v in values)
    assert reward == pytest.approx(again)


def test_operators_of_ones_own_and_failures_stay_as_they_are():
    root = Operator("cbrt", 1, np.cbrt)
    task = regression_task(X, X[:, 0], RegressionSpace(library=("add", root, "log", "const"), min_length=1))
    designs = [Design.of("cbrt", ("const", 2.0)), Design.of("log", ("const", -2.0)), Design.of("x1")]
    refined = task.refine(task.space.encode(designs), np.full(3, 20))
    assert list(refined.designs) == designs
    assert refined.calls.tolist() == [0, 1, 0]
    # One that has the user's own operator is not walked at all: the stack of the kernels would run out of bounds.
    many = task.space.encode([Design.of(*["cbrt"] * 25, "x1")] * 2000)
    for _ in range(5):
        poison = [np.full(size, 2**60) for size in range(1, 60)]  # what memory that is not set may hold
        del poison
        assert not task.refine(many, np.full(2000, 20)).calls.any()


# -------------------------------------------------------------------------------------------- during a search


def objective(design: Design) -> float:
    return sum(1 - (v - 0.7) ** 2 for v in design.values if v is not None) - 0.01 * len(design)


def halfway(designs, allowed):
    """Every call brings each value half of the way to 0.7."""
    values = designs.values + (0.7 - designs.values) * (1 - 0.5 ** allowed[:, None])
    moved = replace(designs, values=values)
    return Refined(moved, np.array([objective(d) for d in moved]), allowed)


TASK = Task(mixed_sequence(), objective, refine=halfway)
SMALL = DisCoSettings(
    batch_size=50,
    archive=ArchiveSettings(size=5),
    task_refinement=TaskRefinementSettings(share=0.1, calls=3),
    network=NetworkSettings(units=8),
)


def test_refined_designs_are_counted_ranked_and_told():
    found = search(TASK, budget=400, method=SMALL)
    plain = search(replace(TASK, refine=None), budget=400, method=SMALL)
    assert found.calls == plain.calls == 400
    assert found.best.reward > plain.best.reward
    assert [row.calls for row in found.history][:3] == [59, 118, 177]  # 50 designs and 3 skeletons
    assert all(row.best >= row.batch_best for row in found.history)
    assert max(row.batch_best for row in found.history) == found.best.reward
    assert 50 < found.top[0].call <= 400
    assert objective(found.best.design) == found.best.reward
    method = SMALL.build(TASK.space, 0)
    designs = method.ask()
    rewards = np.array([objective(d) for d in designs])
    rows = method.to_refine(designs, rewards)
    skeletons = [designs[row].skeleton for row in rows.tolist()]
    assert len(set(skeletons)) == len(rows) == 3
    assert rewards[rows].tolist() == sorted(rewards[rows].tolist(), reverse=True)
    assert all(any(v is not None for v in designs[row].values) for row in rows.tolist())


@pytest.mark.parametrize(
    "method", [SMALL, replace(SMALL, restarts=RestartSettings(batches=2))], ids=["disco", "restarting"]
)
def test_a_refining_run_goes_on_with_a_larger_budget(tmp_path, method):
    whole = comparable(search(TASK, budget=400, seed=3, method=method))
    for budget in (40, 50, 57, 59, 120, 223):  # within a batch, at its end, while it is refined, after that
        folder = tmp_path / str(budget)
        first = search(TASK, budget=budget, seed=3, method=method, out=folder)
        assert first.calls == budget
        own = None if method is SMALL else method
        assert comparable(resume(folder, task=TASK, method=own)) == comparable(first)
        assert comparable(resume(folder, task=TASK, method=own, budget=400)) == whole


def test_an_interrupt_while_refining(tmp_path):
    whole = comparable(search(TASK, budget=300, method=SMALL))
    times = 0

    def interrupted(designs, allowed):
        nonlocal times
        times += 1
        if times in (1, 3):
            raise KeyboardInterrupt
        return halfway(designs, allowed)

    task = replace(TASK, refine=interrupted)
    found = search(task, budget=300, method=SMALL, out=tmp_path / "run")
    assert found.stop is StopReason.INTERRUPTED
    while found.stop is StopReason.INTERRUPTED:
        found = resume(tmp_path / "run", task=task)
    assert comparable(found) == whole


def test_any_number_of_workers_and_methods_that_do_not_refine():
    here = comparable(search(TASK, budget=200, method=SMALL))
    with make_executor("threads", 3, None) as executor:
        assert comparable(search(TASK, budget=200, method=SMALL, executor=executor)) == here
    plain = search(TASK, budget=200, method=RandomSettings(50))
    assert [row.calls for row in plain.history] == [50, 100, 150, 200]


def test_a_target_ends_a_run_before_it_refines():
    found = search(TASK, budget=400, target=-10.0, method=SMALL)
    assert (found.stop, found.calls) == (StopReason.TARGET, 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: replace(r, calls=r.calls + 1), "was allowed 3 calls"),
        (lambda r: replace(r, rewards=r.rewards[1:]), "as many designs"),
        (
            lambda r: replace(
                r, designs=replace(r.designs, values=r.designs.values + 90), rewards=r.rewards + 9
            ),
            "out of the range",
        ),
    ],
)
def test_a_refine_that_keeps_no_rule_is_refused(change, words):
    task = replace(TASK, refine=lambda designs, allowed: change(halfway(designs, allowed)))
    with pytest.raises(EvaluationError, match=words):
        search(task, budget=100, method=SMALL)


def test_check_task_tries_it():
    check_task(TASK)
    check_task(
        regression_task(X, np.sin(2 * X[:, 0]), RegressionSpace(library=("add", "mul", "sin", "const")))
    )
    boasting = replace(TASK, refine=lambda d, a: replace(halfway(d, a), rewards=np.full(len(d), 99.0)))
    with pytest.raises(AssertionError, match=r"refine gives the reward 99.0, but the objective"):
        check_task(boasting)


def test_refine_is_not_for_noise():
    with pytest.raises(DeclarationError, match="refine"):
        Task(mixed_sequence(), lambda design, seed: 0.0, stochastic=True, refine=halfway)


def test_tokens_with_several_values_are_refined():
    space = Space(
        [Token("a", x=Real(0, 1), y=Real(0, 1)), Token("b", k=Choice("u", "v"))], OpenSequence(1, 3)
    )

    def reward(design):
        return sum(1 - (part.x - 0.7) ** 2 - (part.y - 0.2) ** 2 for part in design if part.name == "a")

    def refine(designs, allowed):
        assert all("a" in design.tokens for design in designs)  # those without numbers are not picked
        return Refined(designs, np.array([reward(design) for design in designs]), allowed)

    result = search(Task(space, reward, refine=refine), budget=300, method=SMALL)
    assert result.calls == 300
