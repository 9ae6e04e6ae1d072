"""ARCHITECTURE.md: layers, no cycles, one home for a word; and test files are named like what they test."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import discodso

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discodso"
LAYERS = ("base", "space", "disco", "baselines", "run", "testing", "report", "tasks", "reproduce", "cli")
FILES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.parent != SOURCE or path.stem == "testing"
}
# Bound by name when they are first used, as ARCHITECTURE.md says: kinds and figures.
BY_NAME = {("space.design", "report.trees"), ("run.result", "report.figures"), ("run.kinds", "tasks")}
# Test files that are about several modules; all others are named like the module or the folder that they test.
TESTS = Path(__file__).parent
CROSS_CUTTING = {
    "baselines/test_several_values.py",  # every method on tokens with several values
    "benchmarks/test_harness.py",
    "cli/test_fit_tables.py",  # tables of every kind on the command line
    "cli/test_hostile.py",  # torn files, full disks, closed folders
    "disco/test_random_spaces.py",  # the method on spaces that hypothesis makes up
    "disco/test_restarts.py",
    "report/test_report_browser.py",
    "report/test_reports.py",  # whole reports
    "run/executors/test_shared_executors.py",  # searches in several threads
    "run/test_places.py",  # a change of the current folder
    "run/test_resume.py",  # runs of every kind that are stopped or killed
    "space/test_attacked.py",  # faults that were found by trying to break rules and values
    "space/test_mistakes.py",  # declarations that are refused
}
BY_SUBJECT = {
    "tasks/regression"
}  # an equation passes through many modules: its tests are named by their subjects


@cache
def imports_of(module: str) -> frozenset[str]:
    """Modules of the package that a module imports anywhere, also within functions."""
    return imported(FILES[module].read_text(), module)


def imported(text: str, module: str) -> frozenset[str]:
    """Modules of the package that a text imports, also by `import_module` of a literal name."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} has a relative import"
            package = (node.module or "").removeprefix("discodso").lstrip(".")
            if (node.module or "").split(".")[0] == "discodso":
                found |= {
                    f"{package}.{a.name}" if f"{package}.{a.name}" in FILES else package for a in node.names
                }
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("discodso.") for a in node.names if a.name.startswith("discodso.")}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "import_module":
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
            own = {str(name).removeprefix("discodso.") for name in names if str(name).startswith("discodso.")}
            found |= {name for name in own if (module, name) not in BY_NAME}
    return frozenset(found)


def layer(module: str) -> str:
    return module.split(".")[0]


def breaches() -> set[tuple[str, str]]:
    """Modules and the layers below their own that they import from."""
    found = set()
    for module in FILES:
        above = LAYERS[: LAYERS.index(layer(module)) + 1]
        found |= {(module, layer(other)) for other in imports_of(module) if layer(other) not in above}
    return found


def test_the_layers_are_the_folders():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(LAYERS) - {"testing"}
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.split("<!-- layers -->")[1].split("<!-- end of layers -->")[0]
    assert tuple(re.findall(r"^\| `(\w+)(?:/|\.py)` \|", table, re.MULTILINE)) == LAYERS


def test_the_top_of_the_package_is_small():
    entries = {path.name for path in SOURCE.iterdir()} - {"__pycache__", "py.typed"}  # a marker
    assert len(entries) <= 12


def test_every_folder_says_what_it_is_for():
    for folder in (path.parent for path in SOURCE.rglob("__init__.py")):
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


def test_a_folder_imports_only_from_folders_above_it():
    assert breaches() == set()


def test_modules_have_no_cycles():
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module in FILES and module not in done:
            for other in imports_of(module):
                visit(other, (*path, module))
            done.add(module)

    for module in FILES:
        visit(module, ())


def test_the_rule_would_notice_a_breach():
    assert "space.space" in imports_of("disco.network")
    assert "tasks" not in {layer(name) for name in imports_of("disco.network")}
    hidden = 'def f():\n    return importlib.import_module("discodso.report.trees").svg()\n'
    assert imported(hidden, "space.space") == {"report.trees"}
    assert imported(hidden, "space.design") == set()


def test_every_exception_is_needed():
    for module, other in BY_NAME:
        assert f'import_module("discodso.{other}")' in FILES[module].read_text()


def test_nothing_loaded_is_executed():
    for module, path in FILES.items():
        names = {n.id for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Name)}
        assert not names & {"eval", "exec", "pickle", "__import__"}, module


def definitions() -> dict[str, set[str]]:
    """Files by the names of the classes, functions and fields that they define at their top or in a class."""
    found: dict[str, set[str]] = {}
    for path in FILES.values():
        tree = ast.parse(path.read_text())
        bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
        for node in (node for body in bodies for node in body):
            name = node.target if isinstance(node, ast.AnnAssign) else node
            name = getattr(name, "id", getattr(name, "name", ""))
            found.setdefault(name, set()).add(path.relative_to(SOURCE).as_posix())
    return found


def test_no_two_classes_have_one_name():
    trees = [ast.parse(path.read_text()) for path in FILES.values()]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_a_word_has_one_home():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.split("<!-- words -->")[1].split("<!-- end of words -->")[0]
    rows = re.findall(r"^\| (`.+?`) \|.*\| (?:`(.+)`|none) \|$", table, re.MULTILINE)
    assert len(rows) >= 8
    places = definitions()
    for names, home in rows:
        for word in re.findall(r"`(\w+)`", names):
            alike = {name for name in places if name == word or (word.istitle() and name.endswith(word))}
            assert {file for name in alike for file in places[name]} == ({home} if home else set()), word


def test_every_public_name_is_there():
    for name in discodso.__all__:
        assert getattr(discodso, name) is not None


def test_tests_are_named_like_what_they_test():
    strange = set()
    for path in TESTS.rglob("test_*.py"):
        place = path.parent.relative_to(TESTS)
        modules = {own.stem.lstrip("_") for own in (SOURCE / place).rglob("*")}
        if (
            place.parts
            and place.as_posix() not in BY_SUBJECT
            and path.stem.removeprefix("test_") not in modules
        ):
            strange.add(path.relative_to(TESTS).as_posix())
    assert strange == CROSS_CUTTING
