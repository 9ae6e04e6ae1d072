"""Settings files: what is right is read, what is wrong is named, and nothing gets a traceback."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from discodso import Design, DiscodsoError, DisCoSettings, RandomSettings, SettingsError, Task
from discodso.base.toml_text import to_toml
from discodso.cli.templates import template
from discodso.run.kinds import kind_named, kind_names
from discodso.run.settings import changed as with_changes
from discodso.run.settings import parse, read
from discodso.tasks.custom import load_task

GOOD = {"task": {"kind": "bitstring"}, "run": {"budget": 100}}

CARTPOLE = {"kind": "policy", "environment": "CartPole-v1"}


def changed(**tables):
    return {**GOOD, **tables}


def test_defaults_are_those_of_the_library():
    settings = parse(changed(method={}))
    assert (settings.method, settings.preset, settings.changes) == (None, "default", {})
    assert settings == parse(GOOD)
    assert settings.plan.budget == 100
    assert settings.executor.kind == "none"
    assert parse(changed(method={"kind": "random"})).method == RandomSettings()


@pytest.mark.parametrize("kind", [name for name in kind_names() if kind_named(name).template])
def test_the_files_of_init_can_be_read_as_they_are_and_with_all_comments_taken_away(tmp_path, kind):
    text = template(kind)
    assert read_text(tmp_path, text).task.kind == kind
    bare = "\n".join(
        line.removeprefix("# ")
        if line.startswith("# ") and ("=" in line or line.startswith(("# [task", "# [method")))
        else line
        for line in text.splitlines()
        if "may be given" not in line
    )
    assert read_text(tmp_path, bare).task.kind == kind


def read_text(tmp_path, text, *changes):
    (tmp_path / "settings.toml").write_text(text)
    return read(tmp_path / "settings.toml", changes)


def test_settings_survive_being_written():
    designs = [Design.of(("0", 0.25), ("1", 0.5), ("0", 1.0)).to_json()]
    settings = parse(
        {
            "task": {"kind": "bitstring", "length": 3, "alpha": 0.5},
            "method": {
                "N": 7,
                "learner": {"risk_factor": 0.1},
                "network": {"inputs": ["previous", "position"]},
            },
            "run": {"budget": 50, "target": 1.5, "initial_designs": designs},
            "executor": {"kind": "processes", "workers": 2},
        }
    )
    assert with_changes(DisCoSettings(), settings.changes).learner.risk_factor == 0.1
    assert parse(tomllib.loads(to_toml(settings.record()))) == settings


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (changed(metod={}), "metod is not a setting; did you mean method?"),
        (changed(method={"learner": {"learning_rat": 1.0}}), "did you mean method.learner.learning_rate?"),
        (changed(method={"network": {"unitz": 3}}), "method.network.unitz is not a setting; did you mean"),
        (changed(method={"batch_size": "many"}), "method.batch_size must be a valid integer, got 'many'"),
        (changed(method={"batch_size": 0}), "method.batch_size must be an integer >= 1, got 0"),
        (changed(method={"network": {"units": 0}}), "method.network.units must be an integer >= 1"),
        (changed(method={"learner": {"risk_factor": 2.0}}), "method.learner.risk_factor must be"),
        (changed(method={"N": 10, "batch_size": 10}), "other name"),
        (changed(method={"kind": "disko"}), "did you mean 'disco'?"),
        (changed(run={"budget": 0}), "run.budget must be"),
        (changed(run={"budget": True}), "run.budget must be a valid integer, got True"),
        (changed(run={}), "run.budget is missing"),
        (changed(run={"budget": 10, "initial_designs": ["{x"]}), "not a design in JSON"),
        (changed(run={"budget": 10, "initial_designs": 3}), "must be a file, or a list of designs as texts"),
        (changed(run={"budget": 10, "known": [3]}), "run.known must be a file or a run folder"),
        (
            changed(task={"kind": "bitstring", "alpha": 2.0}),
            "task.alpha must be a finite number >= 0 and <= 1",
        ),
        (
            changed(task={}),
            "task.kind must be one of regression, policy, bitstring, problem, custom, got nothing",
        ),
        (changed(task={"kind": "custom", "task": "no colon"}), "task.task must be"),
        (changed(task={"kind": "policy"}), "task.environment is missing"),
        (
            changed(task=CARTPOLE | {"episode": 3}),
            "task.episode is not a setting; did you mean task.episodes?",
        ),
        (changed(task=CARTPOLE | {"episodes": 1}), "task.episodes must be an integer >= 2, got 1"),
        (changed(task=CARTPOLE | {"preset": "paper"}), "task.preset is not a setting"),
        (
            changed(method={"preset": "best"}),
            "method.preset must be one of default, paper, paper-scaled, got 'best'",
        ),
        (changed(task=CARTPOLE | {"racing": "yes"}), "task.racing must be a valid boolean, got 'yes'"),
        (
            changed(task=CARTPOLE | {"racing": {"first": 5}}),
            "task.racing must be a valid boolean, got {'first'",
        ),
        (changed(task=CARTPOLE | {"ranges": {"angle": [1.0]}}), "task.ranges.angle"),
        (changed(task=3), r"task must be a table, \[task\], got 3"),
        (changed(executor={"kind": "slurm"}), "executor.kind must be"),
        ({"task": {"kind": "bitstring"}}, r"the table \[run\] is missing"),
    ],
)
def test_what_is_wrong_is_named(data, words):
    with pytest.raises(SettingsError, match=words) as caught:
        parse(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("racing", [None, True, False])
def test_policies_survive_being_written(racing):
    own = {} if racing is None else {"racing": racing}
    task = {
        "arguments": {"sutton_barto_reward": True, "a list": [1, 2]},
        "ranges": {"angle": [-0.1, 0.2], "1": [0, 1]},
        "test_seeds": [5, 6],
    }
    settings = parse({"task": CARTPOLE | task | own, "run": {"budget": 50}})
    assert settings.plan.top == 100  # all of them go to the choice
    assert parse(tomllib.loads(to_toml(settings.record()))) == settings
    assert parse({"task": CARTPOLE, "run": {"budget": 50, "top": 7}}).plan.top == 7
    assert parse(GOOD).plan.top == 10


def test_defaults_of_policies_are_those_of_the_library():
    from inspect import signature

    from discodso import search_policy

    own = signature(search_policy).parameters
    table = parse({"task": CARTPOLE, "run": {"budget": 50}}).record()["task"]
    for name in table.keys() - {"kind", "environment"}:
        assert own[name].default == table[name], name


def test_changes_on_the_command_line(tmp_path):
    text = to_toml(GOOD)
    settings = read_text(
        tmp_path,
        text,
        "method.learner.risk_factor=0.3",
        "run.seed = 7",
        "task.objective=f2",
        "method.network.cell=gru",
    )
    method = with_changes(DisCoSettings(), settings.changes)
    assert method.learner.risk_factor == 0.3
    assert settings.plan.seed == 7
    assert settings.task.objective == "f2"
    assert method.network.cell == "gru"
    for bad in ("seed=3", "run.seed", "task.kind.x=1", "=", "run.=3"):
        with pytest.raises(SettingsError, match=r"--set|not a"):
            read_text(tmp_path, text, bad)


def test_tasks_by_name(tmp_path, monkeypatch):
    (tmp_path / "some_task_module.py").write_text(
        "from discodso.tasks.bitstring import bitstring\n"
        "task = bitstring(3)\n"
        "make = lambda length=4: bitstring(length)\n"
        "number = 3\n"
        "def broken(): raise RuntimeError('no data')\n"
    )
    monkeypatch.chdir(tmp_path)
    assert isinstance(load_task("some_task_module:task"), Task)
    assert load_task("some_task_module:make", None, {"length": 6}).space.shape.length == 6
    for name, words in {
        "some_task_module:number": "must be a Task",
        "some_task_module:nothing": "cannot be loaded: AttributeError",
        "some_task_module:broken": "cannot be loaded: RuntimeError: no data",
        "no_such_module:task": "cannot be loaded: ModuleNotFoundError",
        "plain": "module:attribute",
    }.items():
        with pytest.raises(DiscodsoError, match=words):
            load_task(name)


# ------------------------------------------------------------------------------------------------- fuzzing

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    ["kind", "budget", "seed", "batch_size", "policy", "length", "table", "task", "inputs"]
)
tables = st.dictionaries(keys | st.text(max_size=8), values, max_size=4)
kinds = st.sampled_from(["disco", "random", "bitstring", "regression", "custom", "python"])
files = st.dictionaries(
    st.sampled_from(["task", "method", "run", "executor"]) | st.text(max_size=8),
    tables | values | st.builds(lambda table, kind: {**table, "kind": kind}, tables, kinds),
    max_size=5,
)


def require_one_line(error):
    assert "\n" not in str(error)


def check_any_dictionary(data):
    try:
        settings = parse(data)
    except DiscodsoError as error:
        require_one_line(error)
    else:
        assert parse(json.loads(json.dumps(settings.record()))) == settings


@given(files)
def test_no_dictionary_gets_a_traceback(data):
    check_any_dictionary(data)


def check_any_text(tmp_path, text):
    path = tmp_path / "fuzzed.toml"
    path.write_bytes(text)
    try:
        read(path)
    except DiscodsoError as error:
        require_one_line(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@given(text=st.binary(max_size=60) | st.text(max_size=60).map(lambda t: t.encode("utf-8", "surrogatepass")))
@example(text=b"[run]\nbudget = 1e999\n[task]\nkind = 'bitstring'")
@example(text=b"a = " + b"[" * 5000)
@example(text=b"[task]\nkind = 1979-05-27\n[run]\nbudget = 3")
def test_no_file_gets_a_traceback(folder, text):
    check_any_text(folder, text)


@pytest.mark.slow
def test_ten_thousand_malformed_settings(folder):
    effort(max_examples=5000, deadline=None)(given(files)(check_any_dictionary))()
    effort(max_examples=5000, deadline=None)(
        given(st.binary(max_size=200))(lambda t: check_any_text(folder, t))
    )()


@given(
    st.dictionaries(
        st.text(max_size=8), st.text() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False)
    )
)
def test_what_is_written_as_toml_is_read_back(table):
    assert tomllib.loads(to_toml({"x": table})).get("x", {}) == table
