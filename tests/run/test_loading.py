"""Tasks from files: each file is a module of its own, here and in worker processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys

import pytest

from discodso import DisCoSettings, NetworkSettings, search
from discodso.run.executors.registry import Dask, Processes
from discodso.run.loading import load_module
from discodso.tasks.custom import load_task

METHOD = DisCoSettings(batch_size=20, network=NetworkSettings(units=4))
MODULE = """
from dataclasses import dataclass
from discodso import Task
from discodso.tasks.bitstring import bitstring
from sibling import VALUE

@dataclass(frozen=True)
class Objective:
    factor: float

    def __call__(self, design):
        return self.factor

def plain(design):
    return float(VALUE)

task = Task(bitstring(4).space, Objective(float(VALUE)))
by_function = Task(bitstring(4).space, plain)
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if "same_name" in name or name in ("sibling", "package"):
            del sys.modules[name]


@pytest.fixture
def folders(tmp_path):
    """Two folders with modules of the same names."""
    for value, name in enumerate(("one", "two"), start=1):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same_name.py").write_text(MODULE)
        (tmp_path / name / "sibling.py").write_text(f"VALUE = {value}\n")
    return tmp_path / "one", tmp_path / "two"


def best(task, executor=None):
    return search(task, budget=40, method=METHOD, executor=executor).best.reward


@pytest.mark.parametrize("attribute", ["task", "by_function"])
def test_tasks_in_modules_of_the_same_name_do_not_meet(folders, attribute):
    tasks = [load_task(f"same_name:{attribute}", str(folder)) for folder in folders]
    assert [best(task) for task in tasks] == [1.0, 2.0]
    with Processes(2) as executor:
        assert [best(task, executor) for task in tasks] == [1.0, 2.0]


def test_the_same_file_is_the_same_module(folders, monkeypatch):
    one, two = folders
    module = load_module("same_name", one)
    assert load_module("same_name", two) is not module
    monkeypatch.chdir(one)
    assert load_module("same_name", ".") is module
    assert load_task("same_name:task") is module.task


def test_a_module_that_is_imported_already_is_taken(folders, monkeypatch):
    monkeypatch.syspath_prepend(str(folders[0]))
    import same_name

    assert load_module("same_name", folders[0]) is same_name
    assert load_module("same_name", folders[1]) is not same_name


def test_packages_and_modules_within_them(tmp_path):
    for name in ("one", "two"):
        package = tmp_path / name / "package"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "inner.py").write_text(
            "from .value import VALUE\nfrom package.value import VALUE as SAME\n"
        )
        (package / "value.py").write_text(f"VALUE = {name!r}\n")
        inner = load_module("package.inner", tmp_path / name)
        assert {inner.VALUE, inner.SAME} == {name}


def test_what_is_pickled_is_found_by_another_process(folders):
    """Which has neither the folder on its path nor loaded anything."""
    for folder, reward in zip(folders, (1.0, 2.0), strict=True):
        for attribute in ("task", "by_function"):
            pickled = pickle.dumps(load_task(f"same_name:{attribute}", str(folder)))
            code = "import pickle, sys; task = pickle.loads(sys.stdin.buffer.read()); print(task.objective(None))"
            done = subprocess.run(
                [sys.executable, "-c", code], input=pickled, capture_output=True, cwd="/", check=False
            )
            assert done.stdout.decode().strip() == str(reward), done.stderr.decode()


def test_another_machine_takes_the_module_by_its_plain_name(folders):
    pickled = pickle.dumps(load_task("same_name:by_function", str(folders[0])))
    (folders[0] / "same_name.py").unlink()
    code = "import pickle, sys; task = pickle.loads(sys.stdin.buffer.read()); print(task.objective(None))"

    def other(path):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), *filter(None, sys.path)])}
        words = [sys.executable, "-c", code]
        return subprocess.run(
            words, input=pickled, capture_output=True, cwd="/", env=environment, check=False
        )

    assert other(folders[1]).stdout.decode().strip() == "2.0"
    (folders[1] / "same_name.py").unlink()
    assert "No module named 'same_name'" in other(folders[1]).stderr.decode()


@pytest.mark.slow
def test_workers_that_are_not_forked_find_it_too(folders, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    tasks = [load_task("same_name:task", str(folder)) for folder in folders]
    with Processes(1) as executor:
        assert [best(task, executor) for task in tasks] == [1.0, 2.0]


def test_dask_workers_find_it_too(folders):
    distributed = pytest.importorskip("distributed")
    tasks = [load_task("same_name:task", str(folder)) for folder in folders]
    cluster = distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client, Dask(client) as executor:
        assert [best(task, executor) for task in tasks] == [1.0, 2.0]
