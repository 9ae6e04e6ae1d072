"""What goes wrong around a search gets one line: torn files, full disks, closed folders, mistyped commands."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from report_runs import own_task, policy, regression

from discodso import DiscodsoError
from discodso.commands.output import json_text
from discodso.commands.show import standing
from discodso.reports.folders import read_run
from discodso.reports.page import page
from discodso.reports.page_data import page_data
from discodso.tasks.control.tree_policy import TreePolicy

# --------------------------------------------------------------------------- folders that were tampered with

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ROOT = Path(__file__).parent.parent
FILES = ("top.json", "history.jsonl", "environment.json", "equation.json", "policy.json", "summary.json")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("folders")
    return [own_task(place / "own"), regression(place / "regression"), policy(place / "policy")]


def require_one_line(error):
    assert "\n" not in str(error)


def places(data, start=()):
    """Paths to all parts of nested lists and dictionaries, that of the whole first."""
    yield start
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield from places(value, (*start, key))


def tampered(data, place, value):
    """The same data with another value at a place; without it for "gone"."""
    if not place:
        return value
    changed = copy.deepcopy(data)
    owner = changed
    for key in place[:-1]:
        owner = owner[key]
    if value == "gone":
        del owner[place[-1]]
    else:
        owner[place[-1]] = value
    return changed


def check_tampering(folders, draw):
    """Everything that reads folders gets along with what was changed, or says in a line that it does not."""
    folder = draw(st.sampled_from(folders))
    file = folder / draw(st.sampled_from([name for name in FILES if (folder / name).exists()]))
    before = file.read_bytes()
    lines = before.splitlines() if file.suffix == ".jsonl" else [before]
    number = draw(st.integers(0, len(lines) - 1))
    data = json.loads(lines[number])
    place = draw(st.sampled_from(list(places(data))))
    lines[number] = json.dumps(tampered(data, place, draw(anything | st.just("gone")))).encode()
    file.write_bytes(b"\n".join(lines))
    try:
        json_text(standing(folder))
        page(page_data([read_run(folder)]))
        if file.name == "policy.json":
            TreePolicy.load(file)
    except DiscodsoError as error:
        require_one_line(error)
    finally:
        file.write_bytes(before)


quiet = effort(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quiet
@given(st.data())
def test_no_tampering_with_a_folder_gets_a_traceback(folders, data):
    check_tampering(folders, data.draw)


@pytest.mark.slow
def test_ten_thousand_tampered_folders(folders):
    effort(quiet, max_examples=10_000)(given(st.data())(lambda data: check_tampering(folders, data.draw)))()


# ---------------------------------------------------------------------------------------------- older folders


def test_folders_of_older_versions_are_read(folders, tmp_path):
    """What was added later may be missing: weights of designs, costs and token use of batches."""
    old = tmp_path / "old"
    shutil.copytree(folders[0], old)
    top = json.loads((old / "top.json").read_text())
    for scored in top["top"]:
        del scored["weight"]
    for key in ("cost", "detail", "stop_sentence"):
        top.pop(key, None)
    (old / "top.json").write_text(json.dumps(top))
    rows = [json.loads(line) for line in (old / "history.jsonl").read_text().splitlines()]
    for row in rows:
        row.pop("tokens", None)
        del row["cost"]
    (old / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = read_run(old)
    assert len(run.history) == len(rows)
    assert [scored.design for scored in run.designs] == [s.design for s in read_run(folders[0]).designs]
    assert standing(old)["top"][0]["weight"] == 1.0
    page(page_data([run]))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "results/policies").glob("*/top.json")), ids=lambda p: p.parent.name
)
def test_the_committed_folders_are_read_whole(path):
    run = read_run(path.parent)
    assert len(run.designs) == len(json.loads(path.read_text())["top"]) > 0
    assert len(run.history) == len((path.parent / "history.jsonl").read_text().splitlines())
