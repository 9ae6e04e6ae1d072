"""Every kind of task: its options in files and on the command line, its template."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import asdict, dataclass, fields
from types import ModuleType
from typing import ClassVar

import pytest
from killing import comparable
from typer.main import get_command

from discodso import FixedSequence, SettingsError, Space, Task, Token, resume, tasks
from discodso.base.options import check_options, declared, option
from discodso.base.toml_text import to_toml
from discodso.cli.main import app
from discodso.cli.templates import template
from discodso.report.folders import read_run
from discodso.run.kinds import Kind, kind_named, kind_names
from discodso.run.plan import Limits, Plan
from discodso.run.python_tasks import PythonOptions, prepared
from discodso.run.settings import RunSettings, parse
from discodso.run.start import start
from discodso.tasks.bitstring_options import BitstringOptions
from discodso.tasks.custom import CustomOptions
from discodso.tasks.policies.policy_options import PolicyOptions
from discodso.tasks.regression.options import RegressionOptions
from discodso.tasks.regression.problems import ProblemOptions

OPTIONS = {
    "regression": [
        RegressionOptions(table="a.csv", target="y"),
        RegressionOptions(
            table="a.csv",
            target="y",
            ignore=("id", "day"),
            operators=("add", "const"),
            max_length=9,
            const_range=(-1.5, 2.0),
            max_constants=3,
            need_input=True,
            loss="mae",
            selection="validation",
        ),
        RegressionOptions(
            table="a.csv", target="y", operators={"add": 1, "sin": 4, "2.5": 2}, nesting={}, n_jobs=2
        ),
        RegressionOptions(table="a.csv", target="y", template="f(t) * exp(-k*t)"),
        RegressionOptions(table="a.csv", target="y", nesting={"sin": ("sin", "cos"), "exp": ()}),
    ],
    "policy": [
        PolicyOptions(environment="CartPole-v1"),
        PolicyOptions(
            environment="CartPole-v1",
            arguments={"sutton_barto_reward": True, "a list": [1, 2]},
            ranges={"angle": (-0.1, 0.2)},
            racing=False,
            trim=True,
            typical_nodes=7,
            start_from=("earlier", "policy.json"),
            teacher="heuristic",
            test_seeds=(3, 4, 5),
        ),
    ],
    "bitstring": [BitstringOptions(), BitstringOptions(3, 0.5, "f2", 7)],
    "problem": [ProblemOptions("Jin-1"), ProblemOptions("Jin-2", "B", 2)],
    "custom": [CustomOptions("a:b"), CustomOptions("a:b.c", "folder", {"length": 3})],
    "python": [PythonOptions(), PythonOptions("mine")],
}
COMMANDS = {"regression": ("fit",), "policy": ("policy",), "bitstring": ("run", "bitstring")}
COMMON = {"preset", "changes", "out", "known", "initial_designs", "as_json", "events", "tensorboard"}
OWN = {"regression": {"plot"}, "policy": set(), "bitstring": set()}
EXAMPLES = [options for all_of in OPTIONS.values() for options in all_of]


def test_every_kind_is_tried_here():
    assert set(OPTIONS) == {*kind_names(), "python"}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_kind_can_be_loaded(name):
    kind = kind_named(name)
    assert isinstance(kind, Kind)
    assert kind.name == name
    for options in OPTIONS[name]:
        assert type(options) is kind.options
        assert RunSettings(options, Plan(10)).kind is kind
        assert isinstance(kind.title(asdict(options), None), str)


@pytest.mark.parametrize("options", EXAMPLES, ids=lambda options: options.kind)
def test_options_become_a_table_and_come_back(options):
    settings = RunSettings(options, Plan(10, top=7))
    assert parse(settings.record()) == settings
    again = parse(tomllib.loads(to_toml(settings.record())))
    assert again == settings
    assert type(again.task) is type(options)
    assert again.record() == settings.record()


def test_every_option_is_tried_with_another_value_or_has_no_other():
    """So that a new option of a task does not pass by the test above."""
    for name in ("bitstring", "problem", "custom", "python"):
        plain, other = (asdict(options) for options in OPTIONS[name])
        assert all(plain[key] != other[key] for key in plain), name


@pytest.mark.parametrize("name", kind_names())
def test_templates_can_be_read(name):
    kind = kind_named(name)
    if not kind.template:
        pytest.skip("this kind is for settings files only")
    settings = parse(tomllib.loads(template(name)))
    assert settings.kind is kind
    assert (settings.plan.budget, settings.plan.top) == (kind.budget, kind.top)
    assert f"# target = {kind.target} " in template(name)
    assert (settings.method, settings.preset, settings.changes) == (None, "default", {})


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_have_every_option_and_no_other(name):
    found = get_command(app)
    for word in COMMANDS[name]:
        found = found.commands[word]
    given = {parameter.name: parameter for parameter in found.params}
    wanted = {
        each.name: declared(each)
        for declaration in (Plan, kind_named(name).options)
        for each in fields(declaration)
        if declared(each).command != ""
    }
    assert set(given) == {*wanted, *COMMON, *OWN[name]}
    for key, known in wanted.items():
        word = known.command or key.replace("_", "-")
        assert given[key].opts in ([f"--{word}"], [key]), key  # an argument has its plain name
        assert given[key].help == known.help, key
    assert given["budget"].default == kind_named(name).budget


def test_resume_has_the_same_limits_in_python_and_on_the_command_line():
    given = {parameter.name: parameter for parameter in get_command(app).commands["resume"].params}
    for each in fields(Limits):
        assert given[each.name].help == declared(each).help
        assert f"{each.name}: {declared(each).help}" in resume.__doc__
    assert set(given) == {
        "folder",
        "force",
        *(each.name for each in fields(Limits)),
        "as_json",
        "events",
        "tensorboard",
    }
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'budgets'; did you mean 'budget'"):
        resume("folder", budgets=3)


@pytest.mark.parametrize("name", ["tree", "polici", None, 3])
def test_an_unknown_kind_is_named(name):
    with pytest.raises(SettingsError, match=r"task\.kind must be one of regression, policy"):
        kind_named(name)
    if name == "polici":
        with pytest.raises(SettingsError, match=r"did you mean 'policy'\?"):
            kind_named(name)


@dataclass(frozen=True)
class SumOptions:
    kind: ClassVar[str] = "sum"
    goal: float = option(1.5, "What the values should add up to.", above=0)

    def __post_init__(self):
        check_options(self)


def prepare_sum(settings, given, stack, clock):
    space = Space([Token("v", range=(0, 1))], FixedSequence(2))
    return prepared(settings, Task(space, lambda design: -abs(sum(design.values) - settings.task.goal)))


def test_a_new_kind_is_a_record_and_a_line(tmp_path, monkeypatch):
    module = ModuleType("kind_of_a_sum")
    module.KIND = Kind(SumOptions, prepare_sum, lambda task, ending: f"A sum of {task['goal']}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(tasks.KINDS, "sum", module.__name__)
    text = (
        '[task]\nkind = "sum"\ngoal = 0.9\n[run]\nbudget = 300\n[method]\nkind = "random"\nbatch_size = 30\n'
    )
    settings = parse(tomllib.loads(text))
    whole = start(settings, out=tmp_path / "whole").result
    assert whole.best.reward > -0.05
    assert read_run(tmp_path / "whole").title == "A sum of 0.9"
    start(parse(tomllib.loads(text.replace("300", "120"))), out=tmp_path / "part")
    assert comparable(start(settings, out=tmp_path / "part", resume=True).result) == comparable(whole)
    with pytest.raises(SettingsError, match=r"task\.goal must be"):
        parse(tomllib.loads(text.replace("0.9", "-1.0")))
