"""What goes wrong around a search gets one line: torn files, full disks, closed folders, mistyped commands."""

from __future__ import annotations

import copy
import json
import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from killing import comparable
from report_runs import SMALL, own_task, policy, regression
from typer.testing import CliRunner

import discodso
from discodso import DiscodsoError, FileError, preset, resume, search
from discodso.cli.main import app, main
from discodso.cli.output import json_text
from discodso.cli.reporting import as_data
from discodso.report.folders import read_run
from discodso.report.page import page
from discodso.report.page_data import page_data
from discodso.report.writing import write_report
from discodso.run.folder import RunFolder
from discodso.tasks.bitstring import bitstring
from discodso.tasks.policies.tree_policy import TreePolicy

SOURCE = str(Path(discodso.__file__).parents[1])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ROOT = Path(__file__).parents[2]
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
        json_text(as_data(read_run(folder)))
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
def test_two_thousand_tampered_folders(folders):
    effort(quiet, max_examples=2_000)(given(st.data())(lambda data: check_tampering(folders, data.draw)))()


def test_a_committed_folder_is_read_whole():
    (path,) = (ROOT / "results/policies").glob("*/top.json")
    run = read_run(path.parent)
    assert len(run.designs) == len(json.loads(path.read_text())["top"]) > 0
    assert len(run.history) == len((path.parent / "history.jsonl").read_text().splitlines()) > 0


@pytest.mark.parametrize(
    "path", sorted((ROOT / "results/policies").glob("*/policy.json")), ids=lambda p: p.parent.name
)
def test_committed_folders_without_history_are_read(path):
    run = read_run(path.parent)
    assert (run.kind.name, run.status) == ("policy", "ended")
    for part in ("policy", "summary", "picture"):
        assert run.ending[part] is not None
    page(page_data([run]))


def bitstring_run(folder, calls=300):
    return search(bitstring(6), budget=calls, method=SMALL, out=folder, checkpoint_seconds=0)


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def said_by_another_process(function, nobody=False):
    """The error of a function in a process of its own, which has all modules of this one; or as nobody."""

    def call(pipe):
        if nobody and os.geteuid() == 0:  # root may write everywhere
            os.setgid(65534)
            os.setuid(65534)
        try:
            function()
            pipe.send("nothing was wrong")
        except FileError as error:
            pipe.send(str(error))

    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=call, args=(theirs,))
    process.start()
    said = ours.recv() if ours.poll(60) else "no answer"
    process.join()
    return said


@pytest.fixture
def open_place():
    """A folder that every user can enter, and only its owner can write; that of pytest is closed to others."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield Path(place)


def test_a_folder_without_write_permission_gets_one_line_and_is_unharmed(open_place):
    closed = open_place / "closed"
    closed.mkdir()
    bitstring_run(closed / "run")
    before = contents(closed / "run")
    for path in (closed, closed / "run"):
        path.chmod(0o555)
    for path in (closed / "run").iterdir():
        path.chmod(0o444)
    said = said_by_another_process(lambda: bitstring_run(closed / "other"), nobody=True)
    assert said == f"cannot make the folder {closed}/other: Permission denied"
    said = said_by_another_process(lambda: resume(closed / "run", budget=600, task=bitstring(6)), nobody=True)
    assert said == f"cannot write into {closed}/run: Permission denied"
    read_run(closed / "run")  # imports what nobody may not compile
    said = said_by_another_process(lambda: write_report([closed / "run"]), nobody=True)
    assert said == f"cannot write {closed}/run/report.html: Permission denied"
    assert contents(closed / "run") == before
    for path in (closed, closed / "run"):
        path.chmod(0o755)


FULL_DISK = """
import contextlib, io, os, shutil, sys
from pathlib import Path
from discodso.cli.main import main

kept = Path(sys.argv[1])

def command(name, words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([*words.split(), "--json"])
        except SystemExit as left:
            print(left.code, file=err)
    for kind, text in (("out", out), ("err", err)):
        (kept / f"{name}.{kind}").write_text(text.getvalue())

command("run", "run bitstring --length 6 --set method.batch_size=50 --budget 300 --checkpoint-seconds 0 --out run")
shutil.copytree("run", kept / "before")
with contextlib.suppress(OSError), open("filler", "wb", buffering=0) as file:
    while True:
        file.write(bytes(1024))
command("resume", "resume run --budget 3000")
command("other", "run bitstring --budget 300 --out other")
shutil.copytree("run", kept / "after")
os.unlink("filler")
command("again", "resume run --budget 600")
"""


def test_a_full_disk_ends_a_run_in_one_line_and_harms_nothing(tmp_path):
    """A real one: half a megabyte of memory as a disk, in a name space of its own, filled to the last byte."""
    unshare = shutil.which("unshare")
    if (
        unshare is None
        or subprocess.run([unshare, "-rm", "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this system lets nobody mount a small disk; the next test comes near to it")
    place, kept = tmp_path / "disk", tmp_path / "kept"
    place.mkdir()
    kept.mkdir()
    (tmp_path / "script.py").write_text(FULL_DISK)
    script = 'mount -t tmpfs -o size=512k none "$1" && touch "$1/mounted" && cd "$1" && exec "$2" "$3" "$4"'
    words = [str(word) for word in (place, sys.executable, tmp_path / "script.py", kept)]
    done = subprocess.run(
        [unshare, "-rm", "sh", "-c", script, "sh", *words],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (place / "mounted").exists()  # the disk has gone with its name space
    for name in ("resume", "other"):
        line, code = (kept / f"{name}.err").read_text().splitlines()
        assert line.startswith("discodso: cannot write ")
        assert "No space left on device" in line
        assert code == "1"
    for name in ("checkpoint.safetensors", "settings.toml", "top.json", "environment.json"):
        assert (kept / "after" / name).read_bytes() == (kept / "before" / name).read_bytes(), name
    assert not list((kept / "after").glob(".*.tmp"))
    found = json.loads((kept / "again.out").read_text())
    method = replace(preset(), batch_size=50)
    whole = comparable(search(bitstring(6), budget=600, method=method))
    for part in (found, *found["history"]):
        part.pop("seconds")
    assert found == whole


def test_files_that_may_not_grow_end_a_run_in_one_line_and_harm_nothing(tmp_path):
    """The system refuses a write in the middle of a file, as it does on a full disk."""
    resource = pytest.importorskip("resource")
    folder = tmp_path / "run"
    bitstring_run(folder)
    before = contents(folder)
    size = len(before["checkpoint.safetensors"])

    def go_on():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
        resume(folder, budget=600, task=bitstring(6))

    said = said_by_another_process(go_on)
    assert said.startswith(f"cannot write {folder}/checkpoint")
    assert said.endswith("File too large")
    assert (folder / "checkpoint.safetensors").read_bytes() == before["checkpoint.safetensors"]
    assert not list(folder.glob(".*.tmp"))
    whole = search(bitstring(6), budget=600, method=SMALL)
    assert comparable(resume(folder, budget=600, task=bitstring(6))) == comparable(whole)


TABLES = {
    "one.csv": "a,y\n1,2\n",
    "good.csv": "a,y\n" + "".join(f"{i},{2 * i}\n" for i in range(20)),
    "huge.csv": "a,y\n" + "".join(f"{i},{i}e307\n" for i in range(1, 18)),
    "tiny.csv": "a,y\n" + "".join(f"{i},{i}e-200\n" for i in range(1, 18)),
    "words.csv": "a,y\n1,2\nx,3\n",
    "nan.csv": "a,y\n1,nan\n2,3\n",
    "latin.csv": "a,y\n1,2\n\xe9,3\n".encode("latin-1"),
    "latin.toml": "# \xe9\n[task]\n".encode("latin-1"),
    "empty.toml": "",
    "good.toml": '[task]\nkind = "bitstring"\n[run]\nbudget = 100\n',
    "huge.toml": '[task]\nkind = "bitstring"\n[method]\nbatch_size = 1000000000000\n[run]\nbudget = 100\n',
    "argument.toml": '[task]\nkind="policy"\nenvironment="CartPole-v1"\n[task.arguments]\nx=1\n[run]\nbudget=9\n',
    "leaving.py": "import sys\nsys.exit(3)\n",
    "raising.py": "raise RuntimeError('first line\\nsecond line')\n",
    "torn.json": "{",
    "file": "x",
}


@pytest.mark.parametrize(
    ("command", "words"),
    {
        "run empty.toml": "empty.toml: the table [task] is missing",
        "run latin.toml": "latin.toml is not TOML: 'utf-8' codec can't decode byte 0xe9",
        "run folder": "cannot read folder: Is a directory",
        "run huge.toml": "there is not enough memory; smaller batches",
        "run argument.toml": "got an unexpected keyword argument 'x'",
        "run good.toml --set run.budget=0": "run.budget must be an integer >= 1, got 0",
        "run good.toml --set executor.workers=-1": "executor.workers must be an integer >= 1, got -1",
        "run good.toml --set executor.kind=dask": "executor.address must name a Dask scheduler",
        "run good.toml --out file/run": "cannot make the folder file/run: Not a directory",
        "run good.toml --events no/where": "cannot write no/where: No such file or directory",
        "run good.toml --events folder": "cannot write folder: Is a directory",
        "run good.toml --tensorboard file": "cannot write into file: File exists",
        "run bitstring --budget 0": "budget must be an integer >= 1, got 0",
        "run bitstring --set method.learner.learning_rate=nan": "learning_rate must be a finite number",
        "fit one.csv --target y": "has a single row",
        "fit huge.csv --target y": "y must be numbers whose squares are finite",
        "fit tiny.csv --target y": "y must be numbers whose squares are not lost: multiply by a power of ten",
        "fit words.csv --target y": "line 3, column 'a': 'x' is not a finite number",
        "fit nan.csv --target y": "line 2, column 'y': 'nan' is not a finite number",
        "fit latin.csv --target y": "cannot be read as text in UTF-8 (byte 9 is none); save it as UTF-8",
        "fit good.csv --target y --plot x.docx": "a figure must be a file .svg, .pdf or .png",
        "fit good.csv --target y --budget 0": "budget must be an integer >= 1",
        "policy Nope-v9": "Environment `Nope` doesn't exist",
        "policy CartPole-v1 --budget 0": "budget must be an integer >= 1, got 0",
        "policy CartPole-v1 --workers -1": "workers must be an integer >= 1, got -1",
        "policy CartPole-v1 --seed -1": "seed must be an integer >= 0, got -1",
        "policy CartPole-v1 --preset best": "preset must be one of default, paper, paper-scaled",
        "play torn.json": "torn.json is not a tree in JSON",
        "play torn.json --out x.docx": "a film is a .gif or an .mp4",
        "resume file": "there is no folder file",
        "resume odd": "task must be a table",
        "show folder": "folder is no run folder",
        "report folder": "folder is no run folder",
        "compare folder": "folder is no run folder",
        "report --live odd --port 99999": "port must be a number from 0 to 65535",
        "check leaving:task": "the task leaving:task cannot be loaded: SystemExit: 3",
        "check raising:task": "the task raising:task cannot be loaded: RuntimeError: first line",
        "init bitstring file/x.toml": "cannot write file/x.toml",
        "bench regression --problems Constant-6 --budget 100 --out file": "cannot make the folder",
        "bench regression --problems Constant-6 --checkpoint -5": "checkpoint must be an integer >= 1",
        "reproduce nope": "NAME must be one of",
        "reproduce all --workers 0": "workers must be an integer >= 1",
    }.items(),
)
def test_a_mistake_gets_one_line_and_no_traceback(tmp_path, monkeypatch, capsys, command, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text in TABLES.items():
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for name in ("folder", "odd"):
        Path(name).mkdir()
    Path("odd/settings.toml").write_text("task = 3\nrun = 4\n")
    with pytest.raises(SystemExit) as caught:
        main(command.split())
    assert caught.value.code == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("discodso: ")
    assert words in line


def test_odd_settings_are_shown_as_far_as_they_go(tmp_path, capsys):
    (tmp_path / "settings.toml").write_text("task = 3\nrun = 4\n")
    (tmp_path / "top.json").write_text('{"top": [{"reward": "x"}, 3], "failures": [3], "stop": 5}')
    CliRunner().invoke(app, ["show", str(tmp_path)], catch_exceptions=False)


def test_a_folder_in_use_is_not_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("discodso.base.locks.WAIT", 0.0)
    arguments = ["--length", "4", "--budget", "200", "--json", "--out", str(tmp_path / "run")]
    assert CliRunner().invoke(app, ["run", "bitstring", *arguments]).exit_code == 0
    with RunFolder.reopen(tmp_path / "run"):
        assert (
            json.loads(CliRunner().invoke(app, ["show", str(tmp_path / "run"), "--json"]).stdout)["status"]
            == "running"
        )
        with pytest.raises(SystemExit):
            main(["resume", str(tmp_path / "run")])
    assert "another process is running in" in capsys.readouterr().err


def test_a_warning_is_a_line_of_its_own(capsys, monkeypatch):
    import warnings

    monkeypatch.setattr(
        "discodso.cli.main.app", lambda *_, **__: warnings.warn("\x1b[33mold\x1b[0m\nthing", stacklevel=1)
    )
    main([])
    assert capsys.readouterr().err == "discodso: old thing\n"


def test_every_result_for_programs_is_json(folders):
    """An open range or an infinite loss is no number there."""
    for folder in folders:
        done = CliRunner().invoke(app, ["show", str(folder), "--json"], catch_exceptions=False)
        assert json.loads(done.stdout)["status"] == "ended"
    assert json.loads(json_text({"a": [math.inf, (math.nan, 1.5)], "b": {"c": -math.inf}})) == {
        "a": [None, [None, 1.5]],
        "b": {"c": None},
    }


# As near to Windows as Python gets elsewhere; pathlib does not let one say so by os.name.
ELSEWHERE = """
import multiprocessing, os, signal, sys

for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
    delattr(os, name)
for name in ("SIGHUP", "SIGUSR1", "SIGALRM", "SIGKILL"):
    delattr(signal, name)
if multiprocessing.current_process().name == "MainProcess":
    del os.fork
multiprocessing.get_all_start_methods = lambda: ["spawn"]
"""
RUN_ELSEWHERE = """
from discodso import Processes, resume, search
from discodso.base.locks import is_locked
from discodso.tasks.bitstring import bitstring
from discodso import RandomSettings
from pathlib import Path

def main():
    settings = RandomSettings(batch_size=20)
    running = []
    with Processes(2) as workers:
        watch = lambda row, best: running.append(is_locked(Path("run")))
        search(bitstring(6), budget=40, method=settings, out="run", executor=workers, callback=watch)
        found = resume("run", task=bitstring(6), budget=80, method=settings, executor=workers)
    whole = search(bitstring(6), budget=80, method=settings)
    print(all(running), is_locked(Path("run")), found.best.reward == whole.best.reward, found.calls)

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_a_system_without_fork_file_locks_and_unix_signals(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(ELSEWHERE)
    (tmp_path / "script.py").write_text(RUN_ELSEWHERE)
    paths = os.pathsep.join((str(tmp_path), SOURCE))
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True False True 80\n", done.stderr
