"""The folder of a run: settings, environment, history, best designs and the checkpoint.

    settings.toml      what was asked for; `discodso resume` needs nothing else
    environment.json   versions, command, commit, machine
    history.jsonl      one line for each batch
    known.csv          designs that were known before the run, if there are any, see `known`
    journal.jsonl      what came of each objective call, see `journal`
    top.json           the best designs so far, counts, why the run ended; of trees how many children a token has
    checkpoint.safetensors, checkpoint.previous.safetensors

Files are replaced whole; the history grows by whole lines, and is cut back to the checkpoint by a resumed run. A
folder may come from a stranger: only plain files in it are read and written, no links are followed.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from discodso.base.checks import is_integer
from discodso.base.errors import CheckpointError, SettingsError
from discodso.base.files import (
    MOST_BYTES,
    MOST_WORDS,
    Closing,
    FileError,
    file_errors,
    json_numbers,
    open_plain,
    read_object,
    read_plain,
    write_atomically,
)
from discodso.base.locks import NAME as LOCK
from discodso.base.locks import FolderLock, is_lock, is_locked
from discodso.base.toml_text import to_toml
from discodso.base.version import __version__
from discodso.run.history import HistoryRow
from discodso.run.journal import JOURNAL, Journal
from discodso.run.result import Scored
from discodso.space.design import Design

SETTINGS, ENVIRONMENT, HISTORY = "settings.toml", "environment.json", "history.jsonl"
TOP, KNOWN = "top.json", "known.csv"
_PACKAGES = ("numpy", "scipy", "torch", "numba", "safetensors", "pydantic", "gymnasium", "distributed", "ray")


class RunFolder(Closing):
    """A folder that this process writes. `create` and `reopen` make one; both hold its lock until `close`."""

    def __init__(self, path: Path, wait: float | None = None) -> None:
        self.path = path.absolute()  # an objective may change the current folder
        self.lock = FolderLock(self.path, wait)
        self._history: int | None = None
        self._journal: Journal | None = None

    @classmethod
    def create(
        cls,
        path: str | Path,
        settings: Mapping[str, Any],
        files: Mapping[str, str] | None = None,
        wait: float | None = None,
    ) -> RunFolder:
        """Make the folder, with settings, files that belong to them, and environment; a used one is left alone."""
        path = Path(path)
        require_unused(path)
        with file_errors(f"cannot make the folder {path}"):
            path.mkdir(parents=True, exist_ok=True)
        folder = cls(path, wait)
        try:
            require_unused(path)  # again: another process may have had the lock
            _remove_temporaries(path)
            for name, content in (files or {}).items():
                folder.write(name, content)
            folder.write_settings(settings)  # from here on it can be resumed
            folder.write(ENVIRONMENT, json.dumps(environment(), indent=1) + "\n")
            folder._open_history(0)
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def reopen(cls, path: str | Path, wait: float | None = None) -> RunFolder:
        """Take hold of a run folder to go on with it; `wait` so many seconds for another process to end."""
        path = Path(path)
        require_run_folder(path)
        folder = cls(path, wait)
        _remove_temporaries(path)
        return folder

    def close(self) -> None:
        """Let go of the folder."""
        if self._journal is not None:
            self._journal.close()
        if self._history is not None:
            os.close(self._history)
        self._history = None
        self.lock.close()

    @property
    def journal(self) -> Journal:
        """Of the run, opened when it is first used."""
        if self._journal is None:
            self._journal = Journal(self.path / JOURNAL, self.lock.check)
        return self._journal

    def take_history(self, rows: int) -> list[HistoryRow]:
        """The first `rows` rows; what a lost process wrote after them is cut off."""
        path = self.path / HISTORY
        lines = _read(path).split(b"\n")[:-1] if os.path.lexists(path) else []
        kept = [row for row in map(history_row, lines[:rows]) if row is not None]
        if len(kept) < rows:
            raise CheckpointError(
                f"{path} does not have the {rows} rows of the checkpoint; bring it back from a copy, or start anew"
            )
        self._open_history(sum(len(line) + 1 for line in lines[:rows]))
        return kept

    def _open_history(self, size: int) -> None:
        path = self.path / HISTORY
        self.lock.check()
        with file_errors(f"cannot write {path}"):
            self._history = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.ftruncate(self._history, size)

    def append(self, row: HistoryRow) -> None:
        """Add a row to the history, as one line in one write."""
        assert self._history is not None
        self.lock.check()
        line = (json.dumps(row.to_dict(), allow_nan=False) + "\n").encode()
        with file_errors(f"cannot write {self.path / HISTORY}"):
            if os.write(self._history, line) < len(line):  # a disk that has just become full
                raise OSError("only a part of a line could be written")

    def sync(self) -> None:
        """Bring the history to the disk, so that a checkpoint, which comes next, never knows more rows than it."""
        self.lock.check()
        if self._history is not None:
            with file_errors(f"cannot write {self.path / HISTORY}"):
                os.fsync(self._history)

    def write_top(self, summary: Mapping[str, Any]) -> None:
        """Write the best designs and how the run stands."""
        self.write(TOP, json.dumps(summary, allow_nan=False, indent=1) + "\n")

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Write the settings, or replace them: a resumed run may have a larger budget."""
        self.write(SETTINGS, to_toml(settings))

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file of the folder, if it is still the one that was opened."""
        self.lock.check()
        write_atomically(self.path / name, content, folders=False)


def require_unused(path: Path) -> None:
    """Refuse a folder that holds something: a run is never overwritten."""
    with file_errors(f"cannot read the folder {path}"):
        used = path.exists() and (not path.is_dir() or any(not _is_trace(file) for file in path.iterdir()))
    if used and (path / SETTINGS).is_file():
        raise FileError(
            f"{path} already holds a run; go on with it by `discodso resume {path}`, or name another folder"
        )
    if used:
        raise FileError(f"{path} already exists and is not empty; name another folder")


def _is_trace(file: Path) -> bool:
    """Whether a file is what a run leaves that was killed before it had written its settings."""
    before = file.name == KNOWN and (file.parent / LOCK).exists()
    return before or is_lock(file.name) or any(file.match(f".{name}.*.tmp") for name in (SETTINGS, KNOWN))


def _remove_temporaries(path: Path) -> None:
    """Remove what a process has left that was killed while it wrote."""
    for left in path.glob(".*.tmp"):
        left.unlink(missing_ok=True)


def require_run_folder(path: Path) -> None:
    """Refuse what is no run folder."""
    if not path.is_dir():
        raise FileError(f"there is no folder {path}")
    if not os.path.lexists(path / SETTINGS):
        raise FileError(f"{path} is no run folder: it has no {SETTINGS}")


def read_settings(path: Path, *, follow: bool = False) -> dict[str, Any]:
    """A settings file as nested dictionaries, not yet checked; links are followed where the user has named it."""
    content = _read(path, MOST_WORDS, follow)
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # of TOML and of UTF-8
        raise SettingsError(f"{path} is not TOML: {str(error).splitlines()[0][:200]}") from None


def read_history(path: Path) -> list[HistoryRow]:
    """Rows of a history that may be growing; lines that are none are passed over."""
    lines = _read(path).split(b"\n") if os.path.lexists(path) else []
    return [row for row in map(history_row, lines) if row is not None]


def history_row(line: bytes) -> HistoryRow | None:
    """A line of a history, None if it is not one."""
    try:
        return HistoryRow.from_dict(json_numbers(line))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def read_top(path: Path) -> dict[str, Any] | None:
    """The summary of a run folder, None if there is none that can be read."""
    return read_object(path / TOP)


def best_designs(top: Mapping[str, Any]) -> tuple[Scored, ...]:
    """The designs of a summary, best first; what is none is passed over."""
    found, arities = [], arities_of(top)
    for data in top["top"] if isinstance(top.get("top"), list) else []:
        try:
            scored = Scored.from_dict(data)
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        found.append(replace(scored, design=scored.design.as_tree(arities)))
    return tuple(found)


def arities_of(top: Mapping[str, Any]) -> dict[str, int] | None:
    """How many children each token of a summary has, by name; None unless its designs are trees."""
    given = top.get("arities")
    if not isinstance(given, dict) or not all(is_integer(arity) and arity >= 0 for arity in given.values()):
        return None
    return given


def designs_of(path: str | Path) -> tuple[Design, ...]:
    """The best designs of an earlier run, best first."""
    folder = Path(path)
    require_run_folder(folder)
    found = tuple(scored.design for scored in best_designs(read_top(folder) or {}))
    if not found:
        raise FileError(f"{folder} has no designs to start from: its {TOP} is missing or empty")
    return found


def first_failures(top: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The failures of a summary: call, design and reason of each; what is none is passed over."""
    given = top["failures"] if isinstance(top.get("failures"), list) else []
    return [f for f in given if isinstance(f, dict) and isinstance(f.get("reason"), str)]


def is_running(path: Path) -> bool:
    """Whether a process holds the folder."""
    return is_locked(path)


def environment() -> dict[str, Any]:
    """Where a run takes place."""
    program = Path(sys.argv[0] if sys.argv else "")  # without its folder, which says nothing to others
    name = "discodso" if program.name == "__main__.py" else program.name
    return {
        "discodso": __version__,
        "python": platform.python_version(),
        "packages": {name: version for name in _PACKAGES if (version := _version_of(name))},
        "command": [name, *sys.argv[1:]],
        "commit": _commit(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of a source tree that discodso runs from, None for an installed package."""
    here = Path(__file__).parent
    if not (here.parent.parent / ".git").exists():
        return None
    try:
        asking = ["git", "-C", str(here), "rev-parse", "HEAD"]
        return subprocess.check_output(asking, stderr=subprocess.DEVNULL, text=True, timeout=5).strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _read(path: Path, most: int = MOST_BYTES, follow: bool = False) -> bytes:
    with file_errors(f"cannot read {path}"):
        try:
            return read_plain(path, most, follow=follow)
        except FileNotFoundError:
            raise FileError(f"there is no file {path}") from None
