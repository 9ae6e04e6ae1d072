"""Exported policies: every language acts like the tree, on every number, whatever the names are."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from control_trees import chain, complete_tree, random_tree
from exported import named, observations, seeds, stump
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed_trees import NUMBERS, any_points, mixed_policies, mixed_space
from trees import actions

from discodso.tasks.policies import export
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.splits import Split
from discodso.tasks.policies.tree_policy import TreePolicy


def python_function(source: str):
    scope: dict = {}
    exec(compile(source, "exported", "exec"), scope)  # our own text
    return scope["act"]


@settings(max_examples=60)
@given(seeds, st.integers(0, 30))
def test_python_acts_like_the_tree(seed, decisions):
    rng = np.random.default_rng(seed)
    policy = named(random_tree(rng, decisions, features=10, actions=30))
    act = python_function(export.to_python(policy))
    for kind in (np.float64, np.float32):
        x = observations(policy, rng, kind=kind)
        assert [act(row) for row in x] == actions(policy, x)
        assert [act(row.tolist()) for row in x] == actions(policy, x)


def test_python_promotes_float32_before_it_compares():
    policy = TreePolicy.from_dict(
        {"feature": 0, "threshold": 0.1, "left": {"action": 1}, "right": {"action": 2}}
    )
    x = np.array([0.1], np.float32)  # above 0.1, though NumPy would say equal to it
    assert python_function(export.to_python(policy))(x) == policy.act(x) == 2
    below = np.nextafter(x, np.float32(0))
    assert python_function(export.to_python(policy))(below) == policy.act(below) == 1


@pytest.mark.parametrize("goes_left", [False, True])
@pytest.mark.parametrize("decisions", [89, 90, 91, 120, 200])
def test_deep_trees_still_compile(decisions, goes_left, tmp_path):
    policy = named(chain(decisions, goes_left))
    x = observations(policy, np.random.default_rng(0), rows=200)
    act = python_function(export.to_python(policy))
    assert [act(row) for row in x] == actions(policy, x)
    if shutil.which("cc"):
        assert np.array_equal(run_c([policy], tmp_path, [x])[0], actions(policy, x))


def test_a_tree_of_one_leaf():
    policy = TreePolicy(((Leaf(5), 0),), action_names=((5, "wait"),))
    assert export.to_text(policy) == "wait\n"
    assert python_function(export.to_python(policy))([]) == 5
    assert "->" not in export.to_dot(policy)


def test_the_source_as_a_file_is_read_as_utf8(tmp_path):
    """A name such as "coding: utf-16" in a comment at the top would change how Python reads the file."""
    policy = stump(1.5, 0, 1).with_names(None, ["coding: utf-16 é"])
    file = tmp_path / "exported.py"
    file.write_text(export.to_python(policy) + "print(act([1.0]), act([2.0]))\n", encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    assert done.stdout.split() == ["0", "1"], done.stderr


def run_c(policies, folder, inputs):
    """The actions of exported C functions, compiled with all warnings as errors."""
    sources = [export.to_c(policy).replace("int act(", f"int act{i}(") for i, policy in enumerate(policies)]
    source, library = folder / "act.c", folder / "act.so"
    source.write_text("\n".join(sources), encoding="utf-8")
    flags = ["-std=c99", "-trigraphs", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    results = []
    for i, x in enumerate(inputs):
        function = getattr(loaded, f"act{i}")
        function.restype, function.argtypes = ctypes.c_int, [ctypes.POINTER(ctypes.c_double)]
        rows = np.ascontiguousarray(x, dtype=np.float64)
        pointers = (row.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for row in rows)
        results.append(np.array([function(pointer) for pointer in pointers]))
    return results


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_c_compiles_without_warnings_and_acts_like_the_tree(tmp_path):
    rng = np.random.default_rng(3)
    policies = [named(random_tree(rng, decisions % 16, features=10, actions=30)) for decisions in range(80)]
    policies.append(stump(5e-324, 2**31 - 1, 0))
    inputs = [observations(policy, rng) for policy in policies]
    for policy, x, got in zip(policies, inputs, run_c(policies, tmp_path, inputs), strict=True):
        assert np.array_equal(got, actions(policy, x))


def test_comments_in_c_cannot_join_lines_or_nest():
    text = export.to_c(named(chain(4), ("a \\", "b ???/", "/*/", "*//*")))
    assert "\\" not in text
    assert "??" not in text
    for line in text.splitlines():
        assert line.count("/*") == line.count("*/") == ("/*" in line)


def test_thresholds_in_c_are_exact():
    policy = random_tree(np.random.default_rng(0), 15)
    written = re.findall(r"< (-?0x[0-9a-f.]+p[+-]\d+)\)", export.to_c(policy))
    wanted = [split.threshold for split, _ in policy.nodes if isinstance(split, Split)]
    assert [float.fromhex(text) for text in written] == wanted


def test_text_reads_like_the_tree():
    tree = {"feature": 1, "threshold": 0.05, "left": {"action": 0}, "right": {"action": 1}}
    tree = {"feature": 0, "threshold": -2.0, "left": tree, "right": {"action": 2}}
    policy = TreePolicy.from_dict(tree).with_names(
        None, ["speed", "angle\nof it"], [(0, "push left"), (1, "wait")]
    )
    assert export.to_text(policy) == (
        "if speed < -2:\n"
        "    if angle of it < 0.05:\n"
        "        push left\n"
        "    else:\n"
        "        wait\n"
        "else:\n"
        "    2\n"
    )


@given(seeds, st.integers(0, 15))
def test_no_name_adds_a_line(seed, decisions):
    policy = random_tree(np.random.default_rng(seed), decisions, features=10, actions=30)
    for make in (export.to_text, export.to_python, export.to_c, export.to_dot):
        assert len(make(named(policy)).splitlines()) == len(make(policy).splitlines())
        make(named(policy)).encode("utf-8")


NODE = re.compile(r'    n(\d+) \[label="((?:[^"\\]|\\.)*)"(?:, style=rounded)?\];')
EDGE = re.compile(r'    n(\d+) -> n(\d+) \[label="(yes|no)"\];')


@given(seeds, st.integers(0, 15))
def test_dot_has_all_nodes_and_edges(seed, decisions):
    rng = np.random.default_rng(seed)
    policy = named(random_tree(rng, decisions, features=10, actions=30))
    lines = export.to_dot(policy).splitlines()
    assert (lines[0], lines[-1]) == ("digraph policy {", "}")
    nodes = [NODE.fullmatch(line) for line in lines[3 : 3 + len(policy)]]
    edges = [EDGE.fullmatch(line) for line in lines[3 + len(policy) : -1]]
    assert all(nodes)
    assert [int(found[1]) for found in nodes] == list(range(len(policy)))
    assert all(edges)
    wanted = [
        edge
        for node, left, right in policy.decisions()
        for edge in ((node, left, "yes"), (node, right, "no"))
    ]
    assert [(int(found[1]), int(found[2]), found[3]) for found in edges] == wanted


def test_labels_of_dot_show_the_name_as_it_is():
    name = r'a\n "b" \N &lt; \ '
    policy = TreePolicy(((Leaf(0), 0),)).with_names(None, (), [(0, name)])
    label = NODE.search(export.to_dot(policy))[2]
    read = re.sub(r"\\(.)", r"\1", label).replace("&amp;", "&")
    assert read == name.strip()
    assert "&lt;" not in label


def test_json_is_what_is_saved(tmp_path):
    policy = complete_tree(3).with_names(None, ["a", "b"], [(1, "go")])
    policy.save(tmp_path / "tree.json")
    assert policy.export("json") == (tmp_path / "tree.json").read_text()
    again = TreePolicy.from_dict(json.loads(policy.export("json")))
    assert (again, again.feature_names) == (policy, ("a", "b"))


def test_every_format_is_registered():
    assert set(export.FORMATS) == {"text", "python", "c", "dot", "onnx", "json"}
    for name in set(export.FORMATS) - {"onnx"}:
        assert isinstance(export.FORMATS[name](chain(3)), str)


@pytest.mark.parametrize("numbers", [NUMBERS, None])
def test_python_adds_up_sums_like_the_tree(numbers):
    x = any_points(np.random.default_rng(0), 40, wild=True)
    for policy in mixed_policies(mixed_space(numbers=numbers), 20, 12, numbers):
        act = python_function(export.to_python(named(policy)))
        for row in x:
            assert np.array_equal(act(row), policy.act(row))


def test_c_adds_up_sums_like_the_tree(tmp_path):
    policies = mixed_policies(mixed_space(), 12, 13)
    source = "\n".join(
        export.to_c(policy).replace("void act(", f"void act{n}(").replace("double held", f"double held{n}")
        .replace("held(", f"held{n}(").replace(f"held{n}{n}(", f"held{n}(")
        for n, policy in enumerate(policies)
    )  # fmt: skip
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    (tmp_path / "policy.c").write_text(source)
    flags = ["-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", tmp_path / "p.so", tmp_path / "policy.c"], check=True)
    library = ctypes.CDLL(str(tmp_path / "p.so"))
    x = any_points(np.random.default_rng(1), 40, wild=True)
    for n, policy in enumerate(policies):
        for row in x:
            found = (ctypes.c_double * 2)()
            getattr(library, f"act{n}")((ctypes.c_double * 3)(*row), found)
            assert list(found) == policy.act(row).tolist()


def test_text_of_sums_and_numbers():
    tree = {
        "weights": {"0": 1.0, "1": -0.5},
        "threshold": 0.25,
        "left": {"action": [0.5, 2.0]},
        "right": {"action": [0.0, 1.0], "weights": [{"2": 2.0}, {}]},
    }
    data = {"tree": tree, "feature_names": ["a", "b", "c"], "numbers": NUMBERS.to_dict()}
    assert export.to_text(TreePolicy.from_dict(data)) == (
        "if a - 0.5 * b < 0.25:\n    steer = 0.5, gas = 2\nelse:\n    steer = 2 * c, gas = 1\n"
    )
