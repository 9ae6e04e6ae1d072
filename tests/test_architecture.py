"""The import rule of ARCHITECTURE.md: a room imports only from rooms above it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discodso"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in SOURCE.rglob("*.py")
    if path.name != "__init__.py"
)


def rooms() -> list[str]:
    """Module names in the order of the table of rooms."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.split("<!-- rooms -->")[1].split("<!-- end of rooms -->")[0]
    return [name.replace("/", ".") for name in re.findall(r"^\| `([\w/]+)\.py` \|", table, re.MULTILINE)]


def imports_of(module: str) -> set[str]:
    tree = ast.parse((SOURCE / (module.replace(".", "/") + ".py")).read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "discodso":
            package = node.module.removeprefix("discodso").lstrip(".")
            if (SOURCE / package.replace(".", "/")).is_dir():
                found |= {f"{package}.{alias.name}".lstrip(".") for alias in node.names}
            else:
                found.add(package)
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("discodso.") for a in node.names if a.name.startswith("discodso")}
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{module} has a relative import"
    return found


def test_every_module_has_its_place_in_the_table():
    assert sorted(rooms()) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_from_rooms_above_it(module):
    order = rooms()
    above = set(order[: order.index(module)])
    assert imports_of(module) <= above


def test_the_rule_would_notice_a_breach():
    order = rooms()
    assert order.index("tokens") < order.index("policy")
    assert "space" in imports_of("policy")
    assert "tasks" not in {name.split(".")[0] for name in imports_of("policy")}


@pytest.mark.parametrize("module", MODULES)
def test_nothing_loaded_is_executed(module):
    text = (SOURCE / (module.replace(".", "/") + ".py")).read_text()
    names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    assert not names & {"eval", "exec", "pickle", "__import__"}


def test_modules_stay_small():
    for module in MODULES:
        lines = len((SOURCE / (module.replace(".", "/") + ".py")).read_text().splitlines())
        assert lines <= 500, f"{module} has {lines} lines; is it still one room?"
