# ruff: noqa: E501 - tables of hostile words
"""Does any input that can be read do harm? Fuzzed files and texts of every kind, each of which must end in a result
or in one line, in time, with nothing written, imported or started elsewhere.

    python benchmarks/attack_inputs.py [--each 1000] [--seed 0] [--kind NAME ...]

Valid inputs are changed at random, byte by byte and part by part, and hostile ones are made from scratch. A worker
process reads them one after the other, the parent looks at the clock. An audit hook of Python sees every file that
is opened for writing, every program that is started and every connection; a module that would betray its import
lies in the current folder. The input of any number is made again from its kind, its number and the seed.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import importlib
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import RESULTS, write_result

from discodso.base.files import read_object

SECONDS = 20.0  # of the processor, for one input
WAITING = 180.0  # seconds by the clock, after which an input hangs; others may be busy on this machine
MEMORY = 12 << 30  # bytes of address space
LONGEST = 4000  # characters of a refusal
BETRAYAL = "import pathlib\npathlib.Path('imported').touch()\n"

WORDS = [
    "NaN", "Infinity", "-Infinity", "null", "true", "1e999", "-1e308", "5e-324", "1" * 5000, "9" * 30, "0", "-1", "1e-400",
    '""', '"', "'", "\\", "\x00", "\x1b]0;x\x07", "\x1b[2J", "\u202e", "\ud800", "\u2028", "\n", "\r", "\t", ",", ";", "|",
    "{", "}", "[", "]", "(", ")", "[" * 2000, "(" * 2000, "{" * 500, "=", "=1+1", "@SUM(A1)", "../../etc/passwd", "/dev/zero",
    "evil_module:Evil", "evil_module", "__import__('os').system('touch imported')", "lambda: 0", "lambda", "None", "True", "E", "I",
    "x1", "x2", "x999999999", "const", "pi", "sin(", "**", "^", "--", "`", "``", "#", '"""', "'''", "<script>", "</script>", "<!--",
    "<metadata>", "&amp;", "%s%n", "${x}", "e", "1/0", "0**0", "m/s", "kg^2", "10^400", "^(1/0)", "m^1e9", "°", "µ", "²", "Å",
    "discodso", "python", "kind", "task", "tokens", "values", "\ufeff", "🎉", "a" * 100_000, "- " * 3000, "x+" * 3000 + "x",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 10**400, 0.5, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"),
    "", "x", "x1", "const", "\x1b[2J", "evil_module:Evil", "/etc/passwd", "a" * 10_000, "\ud800", "=1+1", [], {}, [[]], [None],
    {"a": 1}, [1, 2, 3], ["x", "y"], {"tokens": [], "values": []}, [0] * 10_000,
]  # fmt: skip


# ------------------------------------------------------------------------------------------------- changes


def bytes_changed(rng: random.Random, content: bytes) -> bytes:
    """Some bytes replaced, taken out, repeated, or words put between them."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(8):
            case 6 | 7:  # a small change, after which it may still be right
                near = next((n for n in range(at, min(at + 40, len(data))) if 48 <= data[n] < 58), None)
                if near is not None:
                    data[near] = rng.choice(b"0123456789.-")
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at : at + rng.choice((1, 3, 20, 500))]
            case 2:
                part = data[at : at + rng.choice((1, 10, 100))]
                data[at:at] = part * rng.choice((1, 2, 50))
            case 3 | 4:
                data[at : at + rng.choice((0, 0, 1, 5))] = rng.choice(WORDS).encode("utf-8", "surrogatepass")
            case _:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[other : other + rng.choice((5, 50, 500))]
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.05 else data)


def text_changed(rng: random.Random, text: str) -> str:
    """As `bytes_changed`; what is no text any more is one with marks."""
    return bytes_changed(rng, text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def places(data: Any, start: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all parts of nested lists and dictionaries; of a long list those of its beginning."""
    inner = (
        data.items()
        if isinstance(data, dict)
        else list(enumerate(data))[:20]
        if isinstance(data, list)
        else ()
    )
    return [start, *(place for key, value in inner for place in places(value, (*start, key)))]


def data_changed(rng: random.Random, data: Any) -> Any:
    """Some parts replaced by other values, by other parts, taken out, nested deeply, or repeated."""
    data = json.loads(json.dumps(data))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        all_places = places(data)
        place = rng.choice(all_places)
        value: Any = rng.choice(VALUES)
        if rng.random() < 0.3:
            value = data
            for key in rng.choice(all_places):
                value = value[key]
            value = json.loads(json.dumps(value))
        if rng.random() < 0.05:
            for _ in range(rng.choice((3, 200, 900))):
                value = [value] if rng.random() < 0.7 else {rng.choice(("left", "tokens", "tree")): value}
        if not place:
            data = value if rng.random() < 0.2 else data
            continue
        owner = data
        for key in place[:-1]:
            owner = owner[key]
        match rng.randrange(5):
            case 0:
                del owner[place[-1]]
            case 1 if isinstance(owner, list):
                owner[place[-1] : place[-1]] = [value] * rng.choice((1, 2, 1000))
            case 1:
                owner[rng.choice(WORDS)[:50]] = value
            case _:
                owner[place[-1]] = value
    return data


def json_changed(rng: random.Random, content: bytes) -> bytes:
    """JSON with other parts, or with other bytes."""
    if rng.random() < 0.4:
        return bytes_changed(rng, content)
    with contextlib.suppress(RecursionError):
        return json.dumps(data_changed(rng, json.loads(content))).encode("utf-8", "surrogatepass")
    return b"[" * 100_000


def lines_changed(rng: random.Random, content: bytes) -> bytes:
    """JSON lines with one of them changed."""
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = json_changed(rng, lines[at]) if lines[at] else bytes_changed(rng, b"{}")
    return b"\n".join(lines)


# ---------------------------------------------------------------------------------------------- the corpus


def make_corpus(place: Path) -> None:
    """Small runs and files of every kind."""
    from discodso import (
        DisCoSettings,
        NetworkSettings,
        RandomSettings,
        Real,
        Space,
        Task,
        Token,
        Tree,
        search,
    )
    from discodso.cli.main import main
    from discodso.tasks.bitstring import bitstring

    small = DisCoSettings(batch_size=20, network=NetworkSettings(units=8))
    search(bitstring(5), budget=60, method=small, out=place / "disco", checkpoint_seconds=0)
    search(bitstring(5), budget=60, method=RandomSettings(20), out=place / "random", checkpoint_seconds=0)
    tokens = [Token("mix", 2, gain=Real(0, 1)), Token("turn", 1), Token("source", range=(0, 1))]

    def objective(design: Any) -> float:
        if design.tokens[0] == "turn":
            raise ValueError("no turn comes first")
        return len(design)

    tree = Task(Space(tokens, Tree(3, 9)), objective, name="tree")
    search(tree, budget=60, method=RandomSettings(20), out=place / "tree")
    rows = ["speed [m/s],mass [kg],energy [J]"]
    rows += [f"{s},{m},{0.5 * m * s * s}" for s in (1.0, 1.5, 2.0, 3.0, 4.5) for m in (0.5, 1.0, 2.5, 4.0)]
    (place / "table.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for words in (
            ("fit", place / "table.csv", "--target", "energy [J]", "--budget", 500, "--out", place / "fit", "--json"),
            ("policy", "CartPole-v1", "--budget", 100, "--episodes", 3, "--test-seeds", "0-4", "--out", place / "policy", "--json"),
        ):  # fmt: skip
            with contextlib.suppress(SystemExit):
                main(list(map(str, words)))
    from discodso import DisCoRegressor

    table = [list(map(float, row.split(","))) for row in rows[1:]]
    model = DisCoRegressor(budget=500, random_state=0).fit(
        [row[:2] for row in table], [row[2] for row in table]
    )
    model.save(place / "model.json")


# ----------------------------------------------------------------------------------------------- guard


class Guard:
    """Sees what is opened, removed, started and connected, once it is told where that may be."""

    def __init__(self) -> None:
        self.here: str | None = None
        self.paused = False
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Look at an event of the interpreter."""
        if self.here is None or self.paused:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) or set(
                str(mode or "")
            ) & set("wax+")
            if writes and isinstance(path, (str, bytes, os.PathLike)):
                self._look("write", os.fsdecode(path))
        elif event in (
            "os.remove",
            "os.rename",
            "os.mkdir",
            "os.rmdir",
            "os.truncate",
            "os.link",
            "os.symlink",
            "os.chmod",
        ):
            for path in arguments[: 2 if event in ("os.rename", "os.link") else 1]:
                if isinstance(path, (str, bytes, os.PathLike)):
                    self._look(event, os.fsdecode(path))
        elif event in (
            "subprocess.Popen",
            "os.system",
            "os.exec",
            "os.posix_spawn",
            "socket.connect",
        ):
            if event == "subprocess.Popen" and list(arguments[1])[:2] == ["git", "-C"]:
                return  # of which commit discodso is
            self.seen.append(f"{event} {arguments!r:.100}")

    def _look(self, event: str, path: str) -> None:
        assert self.here is not None
        whole = os.path.abspath(path)
        home = os.path.join(os.path.dirname(self.here), "home")  # of matplotlib
        harmless = whole.startswith((self.here + os.sep, home, "/dev/null")) or whole.endswith(
            (".nbi", ".nbc", ".pyc", "__pycache__")
        )
        if not harmless and ".nbi." not in whole and ".nbc." not in whole and ".pyc." not in whole:
            self.seen.append(f"{event} {whole}")


GUARD = Guard()


# --------------------------------------------------------------------------------------------- the kinds

Corpus = Path
Make = Callable[[random.Random, Corpus, Path], Any]
RUNS = ("disco", "random", "tree", "fit", "policy")


def copied(corpus: Path, name: str, here: Path) -> Path:
    """A run of the corpus in the folder of an input."""
    shutil.copytree(corpus / name, here / "run")
    return here / "run"


def looked_at(folder: Path) -> None:
    """All that looks at a run."""
    from discodso.cli.output import json_text, print_lines
    from discodso.cli.reporting import _lines, as_data
    from discodso.report.folders import read_run
    from discodso.report.page import page
    from discodso.report.page_data import page_data
    from discodso.run.folder import designs_of

    run = read_run(folder)
    page(page_data([run]))
    json_text(as_data(run))
    with contextlib.redirect_stdout(io.StringIO()) as said:
        print_lines(_lines(run))
    if not all(c.isprintable() or c in "\n\t" for c in said.getvalue()):
        raise AssertionError("orders to a terminal were printed")
    designs_of(folder)


def try_settings(rng: random.Random, corpus: Path, here: Path) -> None:
    """Settings files, and changes of the form table.key=value."""
    from discodso.cli.templates import template
    from discodso.run.settings import read

    if rng.random() < 0.5:
        text = template(rng.choice(("regression", "policy", "bitstring", "custom")))
        text = text.replace("# ", "") if rng.random() < 0.1 else text
    else:
        text = (corpus / rng.choice(RUNS) / "settings.toml").read_text(encoding="utf-8")
    path = here / "settings.toml"
    path.write_bytes(bytes_changed(rng, text.encode()) if rng.random() < 0.8 else text.encode())
    changes = [
        f"{rng.choice(('run.seed', 'method.batch_size', 'task.kind', 'run', 'a.b.c'))}={rng.choice(WORDS)}"
    ]
    read(path, changes if rng.random() < 0.3 else (), follow=True)


def try_run_folder(rng: random.Random, corpus: Path, here: Path) -> None:
    """Files of run folders, as show, report and compare read them."""
    folder = copied(corpus, rng.choice(RUNS), here)
    files = sorted(file for file in folder.iterdir() if file.suffix in (".json", ".jsonl", ".toml", ".svg"))
    for file in rng.sample(files, rng.choice((1, 1, 2))):
        content = file.read_bytes()
        changed = {".json": json_changed, ".jsonl": lines_changed}.get(file.suffix, bytes_changed)
        file.write_bytes(changed(rng, content))
    looked_at(folder)


def try_tricks(rng: random.Random, corpus: Path, here: Path) -> None:
    """Links, second names, pipes, devices, folders and endless files in place of those of a run; read and resumed."""
    from discodso import RandomSettings, resume
    from discodso.tasks.bitstring import bitstring

    folder = copied(corpus, rng.choice(("random", "policy", "fit")), here)
    secret = here.parent / "outside" / "secret.toml"
    GUARD.paused = True
    for file in rng.sample(sorted(folder.iterdir()), rng.choice((1, 1, 3))):
        file.unlink()
        match rng.randrange(8):
            case 0:
                file.symlink_to(secret)
            case 1:
                file.symlink_to("/dev/zero")
            case 2:
                file.hardlink_to(secret)
            case 3:
                os.mkfifo(file)
            case 4:
                file.mkdir()
            case 5:
                file.symlink_to(file.name)
            case 6:
                file.symlink_to(secret.parent)
            case _:
                with file.open("wb") as endless:
                    endless.truncate(1 << 40)
    GUARD.paused = False
    if rng.random() < 0.5:
        looked_at(folder)
    else:
        resume(folder, task=bitstring(5), method=RandomSettings(20), budget=80)


def try_checkpoint(rng: random.Random, corpus: Path, here: Path) -> None:
    """Checkpoints, torn ones and forged ones whose checksum is right."""
    import numpy as np

    from discodso import DisCoSettings, NetworkSettings, RandomSettings, resume
    from discodso.run import checkpoint
    from discodso.space.state import State
    from discodso.tasks.bitstring import bitstring

    name = rng.choice(("disco", "random"))
    folder = copied(corpus, name, here)
    path = folder / checkpoint.NAME
    if rng.random() < 0.3:
        path.write_bytes(bytes_changed(rng, path.read_bytes()))
    else:
        state = checkpoint.from_bytes(path.read_bytes())
        data, arrays = state.data, dict(state.arrays)
        if rng.random() < 0.6 or not arrays:
            with contextlib.suppress(RecursionError):  # what JSON does not hold is no file
                data = data_changed(rng, data)
        else:
            key = rng.choice(sorted(arrays))
            old = arrays[key]
            match rng.randrange(6):
                case 0:
                    del arrays[key]
                case 1:
                    arrays[key] = np.repeat(old, 2, axis=0) if old.ndim else np.zeros(3)
                case 2:
                    arrays[key] = old.astype(rng.choice(("float64", "int64", "uint8", "float32")))
                case 3:
                    arrays[key] = np.full_like(old, rng.choice((-1, 0, 127)))
                case 4 if old.dtype.kind == "f":
                    arrays[key] = np.full_like(old, rng.choice((np.nan, np.inf, -1e30)))
                case 4:
                    arrays[key] = np.full_like(old, np.iinfo(old.dtype).max if old.dtype.kind in "iu" else 1)
                case _:
                    arrays[key] = np.zeros(rng.choice(((0,), (1, 1, 1), (5, 0))), old.dtype)
        with contextlib.suppress(TypeError, ValueError, RecursionError):  # what JSON does not hold is no file
            path.write_bytes(checkpoint.to_bytes(State(arrays, data)))
    (folder / checkpoint.PREVIOUS).unlink(missing_ok=True)
    method = (
        RandomSettings(20)
        if name == "random"
        else DisCoSettings(batch_size=20, network=NetworkSettings(units=8))
    )
    resume(folder, task=bitstring(5), method=method, budget=100)


def try_journal(rng: random.Random, corpus: Path, here: Path) -> None:
    """Journals beyond the last checkpoint, torn ones and forged ones whose checksums are right."""
    from discodso import RandomSettings, resume
    from discodso.run import checkpoint
    from discodso.run.journal import JOURNAL, line_of, read_line
    from discodso.tasks.bitstring import bitstring

    folder = copied(corpus, "random", here)
    if rng.random() < 0.5:  # answers of a batch that no checkpoint has
        os.replace(folder / checkpoint.PREVIOUS, folder / checkpoint.NAME)
    path = folder / JOURNAL
    content = path.read_bytes()
    if rng.random() < 0.4:
        content = bytes_changed(rng, content)
    else:
        lines = content.splitlines(keepends=True)
        at = rng.randrange(len(lines))
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            entry = data_changed(rng, read_line(lines[at].rstrip(b"\n")))
            lines[at] = line_of(entry if isinstance(entry, dict) else {"part": entry})
        content = b"".join(rng.sample(lines, len(lines)) if rng.random() < 0.2 else lines)
    path.write_bytes(content)
    resume(folder, task=bitstring(5), method=RandomSettings(20), budget=100)


def try_policy(rng: random.Random, corpus: Path, here: Path) -> None:
    """Policies in JSON: loaded, exported, drawn, played."""
    from discodso import TreePolicy

    path = here / "policy.json"
    content = (corpus / "policy" / "policy.json").read_bytes()
    if rng.random() < 0.3:
        environment = {"id": rng.choice(WORDS), "arguments": {"render_mode": rng.choice(WORDS)}}
        environment |= {"wrappers": [rng.choice(WORDS)]} if rng.random() < 0.5 else {}
        content = json.dumps({**json.loads(content), "environment": environment}).encode(
            "utf-8", "surrogatepass"
        )
    path.write_bytes(json_changed(rng, content) if rng.random() < 0.9 else content)
    policy = TreePolicy.load(path)
    for form in ("text", "python", "c", "dot", "json"):
        policy.export(form)
    policy._repr_svg_()
    policy.act([0.1] * max(policy.width, 1))
    policy.evaluate(seeds=[1])


def try_model(rng: random.Random, corpus: Path, here: Path) -> None:
    """Models in JSON: loaded, exported, asked."""
    from discodso.tasks.regression.export import FORMATS
    from discodso.tasks.regression.model_files import read_models

    path = here / "model.json"
    path.write_bytes(json_changed(rng, (corpus / "model.json").read_bytes()))
    models, _, _ = read_models(path)
    for model in models:
        for form in ("text", "latex", "mathml", "python", "c", "matlab", "excel"):
            FORMATS[form](model.expression)
        model.expression([[1.0] * max(len(model.expression.columns), 1)])


def try_table(rng: random.Random, corpus: Path, here: Path) -> None:
    """Tables of data: CSV with any separator, JSON lines, packed ones."""
    from discodso.tasks.regression.data import read_table

    text = (corpus / "table.csv").read_text(encoding="utf-8")
    target, ending = (
        "energy [J]",
        rng.choice((".csv", ".tsv", ".txt", ".jsonl", ".csv.gz", ".xlsx", ".parquet")),
    )
    match rng.randrange(6):
        case 0:
            sign = rng.choice("\t;| ,:\x00\"'")
            text = text.replace(",", sign)
        case 1:
            wide = rng.choice((3, 300, 30_000))
            text = (
                ",".join(f"a{n}" for n in range(wide))
                + f",{target}\n"
                + (",".join(["1"] * (wide + 1)) + "\n") * 3
            )
        case 2:
            text = (
                rng.choice(('"', "'", ",", '""', "\n", "1,", "x" * 50)) * rng.choice((10, 10_000, 300_000))
            ) + text
        case _:
            pass
    if ending == ".jsonl":
        header, *lines = [line.split(",") for line in text.splitlines() if line]
        text = "\n".join(json.dumps(dict(zip(header, line, strict=False))) for line in lines)
    content = bytes_changed(rng, text.encode())
    path = here / f"table{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    read_table(path, target, ("a1",) if rng.random() < 0.1 else ())


def try_designs(rng: random.Random, corpus: Path, here: Path) -> None:
    """Designs as JSON and as text, and CSV files of known ones."""
    from discodso import Design, OpenSequence, Space, Token, Tree
    from discodso.run.known import encoded, first_designs, numbered, read_known

    chain = Space([Token("r", range=(1, 1e4), scale="log"), Token("w")], OpenSequence(1, 6))
    tree = Space([Token("add", 2), Token("x"), Token("const", range=(-5, 5))], Tree(1, 9))
    space, text = rng.choice(((chain, "r(20.5) w r(100)"), (tree, "add(x, const(3.5))")))
    as_json = '{"tokens": ["add", "x", "const"], "values": [null, null, 3.5]}'
    match rng.randrange(3):
        case 0:
            changed = json_changed(rng, as_json.encode()).decode("utf-8", "replace")
            design = Design.from_json(changed)
            str(design)
            space.render(design)
            encoded(space, numbered([design]))
        case 1:
            encoded(space, numbered(first_designs([text_changed(rng, text)])))
        case _:
            rows = f'design,reward,error,violation.a,call,text\n"{text}",0.9,,0,1,x\n"{text}",,raised,0.5,,\n'
            path = here / "known.csv"
            path.write_bytes(bytes_changed(rng, rows.encode()))
            encoded(space, read_known(path))


def try_units(rng: random.Random, corpus: Path, here: Path) -> None:
    """Texts of units, by themselves and in names of columns."""
    from discodso.tasks.regression.declared_units import declared
    from discodso.tasks.regression.units import parse_unit, unit_in_name

    text = rng.choice(
        ("m/s", "kg m^2 s^-2", "1", "N·m/(kg K)", "µm", "mmol/L", "km/h", "m^(1/2)", "J/K", "1/s^2")
    )
    changed = text_changed(rng, text)
    unit_in_name(f"speed [{changed}]")
    declared({"a": changed, "y": "m"}, True, 1, ("a", "b [s]"), "y")
    parse_unit(changed)


def try_expression(rng: random.Random, corpus: Path, here: Path) -> None:
    """Formulas and templates, and columns of any name."""
    from discodso.tasks.regression.export import FORMATS, text
    from discodso.tasks.regression.expression import Expression
    from discodso.tasks.regression.template import Template

    forms = (
        "2.5 * sin(x) + y^2",
        "exp(-x/`a b`) / (1 + y)",
        "f(x) * exp(-k*y) + g(y)",
        "x1^0.5 - log(abs(x2))",
        "-(x+y)*3e-5",
    )
    formula = text_changed(rng, rng.choice(forms))
    names = ("x", "y", rng.choice(["a b", "lambda", "None", *WORDS])[:200])
    if rng.random() < 0.2:
        Template.parse(formula, names)
        return
    found = Expression.parse(formula, names)
    for form in ("text", "latex", "mathml", "python", "c", "julia", "matlab", "excel", "jax"):
        FORMATS[form](found)
    found([[1.5, 2.5, 0.5]])
    Expression.parse(text(found, 17), names) if names[2].strip() else None


KINDS: dict[str, Make] = {
    "settings": try_settings,
    "run folder": try_run_folder,
    "links and pipes": try_tricks,
    "checkpoint": try_checkpoint,
    "journal": try_journal,
    "policy": try_policy,
    "model": try_model,
    "table": try_table,
    "designs": try_designs,
    "units": try_units,
    "expression": try_expression,
}


# ----------------------------------------------------------------------------------------------- worker


def work(kind: str, first: int, last: int, seed: int, corpus: Path, place: Path) -> None:
    """Read inputs, and tell what came of each in a line."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    told, sys.stdout = sys.stdout, io.StringIO()
    from discodso import DiscodsoError

    os.chdir(place)
    sys.path.append("")
    with contextlib.suppress(DiscodsoError, OSError):  # what is done once in a process is done before
        importlib.import_module("matplotlib.font_manager")
        looked_at(corpus / "policy")
        looked_at(corpus / "fit")
    sys.addaudithook(GUARD)
    here, guard = place / "input", GUARD
    outside = {file: file.read_bytes() for file in (place / "outside").iterdir()}
    for number in range(first, last):
        print(json.dumps({"begun": number}), file=told, flush=True)
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        found: dict[str, Any] = {"number": number, "came": "result"}
        began = time.process_time()
        guard.here, guard.seen, guard.paused = str(here), [], False
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                KINDS[kind](random.Random(f"{kind} {number} {seed}"), corpus, here)
        except (DiscodsoError, OSError) as error:
            found["came"] = "refused"
            if "\n" in str(error) or len(str(error)) > LONGEST:
                found |= {
                    "came": "fault",
                    "why": f"a refusal of {len(str(error))} characters: {error!s:.200}",
                }
        except BaseException as error:
            frame, trace = "", error.__traceback__
            while trace is not None:
                if "discodso" in trace.tb_frame.f_code.co_filename:
                    frame = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
                trace = trace.tb_next
            found |= {"came": "fault", "why": f"{type(error).__name__} at {frame}: {error!s:.200}"}
        guard.here = None
        found["seconds"] = round(time.process_time() - began, 3)
        if found["seconds"] > SECONDS:
            found |= {"came": "fault", "why": f"it took {found['seconds']} s"}
        if (place / "imported").exists():
            found |= {"came": "fault", "why": "a module was imported because a file says so"}
            (place / "imported").unlink()
        if {file: file.read_bytes() for file in (place / "outside").iterdir()} != outside:
            found |= {"came": "fault", "why": "a file outside was changed"}
        if guard.seen:
            found |= {"came": "fault", "why": f"it did this: {guard.seen[:3]}"}
        print(json.dumps(found), file=told, flush=True)


# ----------------------------------------------------------------------------------------------- parent


def attack(kind: str, count: int, seed: int, corpus: Path, place: Path) -> dict[str, Any]:
    """All inputs of a kind; a worker that takes too long, or dies, is started anew behind that input."""
    came: Counter[str] = Counter()
    faults: list[dict[str, Any]] = []
    slowest, next_one = 0.0, 0
    while next_one < count:
        words = [
            sys.executable,
            __file__,
            "--worker",
            kind,
            str(next_one),
            str(count),
            str(seed),
            str(corpus),
            str(place),
        ]
        env = {**os.environ, "HOME": str(place / "home"), "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": ""}
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as worker:
            assert worker.stdout is not None
            limit, buffer, running = 2 * WAITING, b"", next_one
            while True:
                ready, _, _ = select.select([worker.stdout], [], [], limit)
                part = os.read(worker.stdout.fileno(), 1 << 16) if ready else b""
                if not part:
                    break
                *lines, buffer = (buffer + part).split(b"\n")
                for line in map(json.loads, lines):
                    if "begun" in line:
                        running, limit = line["begun"], WAITING
                        continue
                    came[line["came"]] += 1
                    slowest, next_one = max(slowest, line["seconds"]), line["number"] + 1
                    if line["came"] == "fault":
                        faults.append({"number": line["number"], "why": line["why"]})
            if next_one < count:
                if worker.poll() is None:
                    worker.send_signal(signal.SIGUSR1)  # where it is
                    time.sleep(0.5)
                why = (
                    f"longer than {limit:g} s"
                    if worker.poll() is None
                    else f"the process ended: {worker.poll()}"
                )
                worker.kill()
                said = worker.stderr.read().decode(errors="replace")[:600] if worker.stderr else ""
                faults.append({"number": running, "why": f"{why} {said}"})
                came["fault"] += 1
                next_one = running + 1
    return {
        "inputs": count,
        **{key: came[key] for key in ("result", "refused", "fault")},
        "slowest": slowest,
        "faults": faults,
    }


def main() -> None:
    """Attack, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--each", type=int, default=1000, help="inputs of each kind")
    parser.add_argument(
        "--kind", action="append", choices=KINDS, help="of this kind only; may be given again"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep", action="store_true", help="write the result file though not all kinds are tried"
    )
    given = parser.parse_args()
    same = {"each": given.each, "seed": given.seed}
    kept = read_object(RESULTS / "attack_inputs.json") or {}
    found: dict[str, Any] = kept["kinds"] if given.kind and same.items() <= kept.items() else {}
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        place, corpus = Path(folder) / "place", Path(folder) / "corpus"
        (place / "outside").mkdir(parents=True)
        (place / "outside" / "secret.toml").write_text("[task]\nkind = 'secret'\n")
        (place / "evil_module.py").write_text(BETRAYAL)
        corpus.mkdir()
        make_corpus(corpus)
        for kind in given.kind or KINDS:
            began = time.monotonic()
            found[kind] = attack(kind, given.each, given.seed, corpus, place)
            own = {key: value for key, value in found[kind].items() if key != "faults"}
            print(f"{kind}: {own}, {time.monotonic() - began:.0f} s", flush=True)
            for fault in found[kind]["faults"][:25]:
                print(f"    {fault['number']}: {fault['why']}", flush=True)
            write_result("attack_inputs", {**same, "kinds": found}, shown=False)
    sys.exit(any(own["fault"] for own in found.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        faulthandler.register(signal.SIGUSR1)
        kind, first, last, seed, corpus, place = sys.argv[2:]
        work(kind, int(first), int(last), int(seed), Path(corpus), Path(place))
    else:
        main()
