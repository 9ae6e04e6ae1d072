"""Every kind of task: its options in files and on the command line, its template."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, fields

import pytest
from typer.main import get_command

from discodso import SettingsError
from discodso.base.options import declared
from discodso.base.toml_text import to_toml
from discodso.cli.main import app
from discodso.cli.templates import template
from discodso.run.kinds import Kind, kind_named, kind_names
from discodso.run.plan import Plan
from discodso.run.python_tasks import PythonOptions
from discodso.run.settings import RunSettings, parse
from discodso.tasks.bitstring_options import BitstringOptions
from discodso.tasks.custom import CustomOptions
from discodso.tasks.policies.options import PolicyOptions
from discodso.tasks.regression.options import RegressionOptions
from discodso.tasks.regression.problems import ProblemOptions

OPTIONS = {
    "regression": [
        RegressionOptions(table="a.csv", target="y"),
        RegressionOptions(
            table="a.csv",
            target="y",
            ignore=("id", "day"),
            library=("add", "const"),
            max_length=9,
            const_range=(-1.5, 2.0),
            max_constants=3,
            need_input=True,
            metric="mae",
            selection="validation",
        ),
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
            test_seeds=(3, 4, 5),
        ),
    ],
    "bitstring": [BitstringOptions(), BitstringOptions(3, 0.5, "f2", 7)],
    "problem": [ProblemOptions("Jin-1"), ProblemOptions("Jin-2", "B", 2)],
    "custom": [CustomOptions("a:b"), CustomOptions("a:b.c", "folder", {"length": 3})],
    "python": [PythonOptions(), PythonOptions("mine")],
}
COMMANDS = {"regression": ("fit",), "policy": ("policy",), "bitstring": ("run", "bitstring")}
COMMON = {"preset", "changes", "out", "as_json", "events", "tensorboard"}
OWN = {"regression": {"plot"}, "policy": {"start_from"}, "bitstring": set()}
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
    assert settings.plan.top == kind.top
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


@pytest.mark.parametrize("name", ["tree", "polici", None, 3])
def test_an_unknown_kind_is_named(name):
    with pytest.raises(SettingsError, match=r"task\.kind must be one of regression, policy"):
        kind_named(name)
    if name == "polici":
        with pytest.raises(SettingsError, match=r"did you mean 'policy'\?"):
            kind_named(name)
