"""One process at a time: a lock on a folder, on every system and file system.

    with FolderLock(folder) as lock:
        lock.check()   # before every write: is this still the folder that was locked?

The lock is that of the system on the file `lock`, which is dropped when the process ends, however it ends:
`flock`, and on Windows a locked byte. Where the file system has none, holders are files `lock.1`, `lock.2`, ... of
which the highest counts. Each is made by one process only, which the file system guarantees; none is taken away
but by the maker of a higher one. Whoever holds the lock in either way says so in a record, and whoever wants it
looks at both kinds of records after making its own: so machines with `flock` and without exclude each other too.

A record names machine, process and the start of that process. A holder on this machine that is gone has lost its
lock; of another machine nothing is known, and the user is told which file to remove.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from discodso.base.files import Closing, FileError, file_errors, json_numbers, open_plain, read_plain

NAME = "lock"
WAIT = (
    3.0  # seconds: workers of a killed run have a share in its lock, and take a moment to see that it is gone
)
_STEP = 0.1
_BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_FAR = 1 << 30  # a byte of the file beyond the record, which others read
_LONGEST = 4096  # bytes of a record
_FREE: dict[str, Any] = {"process": None}


class FolderLock(Closing):
    """Held from the start until `close`, or the end of the process.

    Args:
        folder: to lock, which must exist.
        wait: seconds until it is refused; `WAIT` by default.
        name: of the lock; locks of other names are others.
    """

    def __init__(self, folder: Path, wait: float | None = None, name: str = NAME) -> None:
        self.folder, self._name, self._owner = folder, name, os.getpid()
        self._own: int | None = None  # handle of the file of a holder
        self._path = folder / name
        with file_errors(f"cannot write into {folder}"):
            self._handle: int | None = open_plain(self._path, os.O_RDWR | os.O_CREAT)
        until = time.monotonic() + (WAIT if wait is None else wait)
        try:
            with file_errors(f"cannot write into {folder}"):
                while (refusal := self._refused()) is not None:
                    if time.monotonic() >= until:
                        raise FileError(refusal)
                    time.sleep(_STEP)
        except BaseException:
            self._drop()
            raise

    def check(self) -> None:
        """Refuse to go on if the folder was renamed, removed or replaced."""
        assert self._handle is not None
        try:
            same = os.path.samestat(os.fstat(self._handle), os.lstat(self._path))
        except OSError:
            same = False
        if not same:
            raise FileError(
                f"{self.folder} was renamed, removed or replaced while this process wrote into it; the process "
                "stops, and writes to no other place"
            )

    def close(self) -> None:
        """Let others have it. In a process that was forked off only the handle is closed."""
        if self._handle is not None and os.getpid() == self._owner:
            with suppress(OSError):
                if self._own is None:
                    os.ftruncate(self._handle, 0)
                else:
                    _write(self._own, _FREE)
        self._drop()

    def _drop(self) -> None:
        for handle in (self._own, self._handle):
            if handle is not None:
                os.close(handle)
        self._handle = self._own = None

    def _refused(self) -> str | None:
        """Try to take it; None if that worked, else why not."""
        assert self._handle is not None
        locked = system_lock(self._handle, exclusive=True)
        if locked is False:
            return f"another process is running in {self.folder}; wait for it, or stop it first"
        if locked:
            _write(self._handle, _ourselves())
            _, refusal = _highest(self.folder, self._name)
            if refusal is not None:
                os.ftruncate(self._handle, 0)
                system_unlock(self._handle)
            return refusal
        return self._take_file()

    def _take_file(self) -> str | None:
        highest, refusal = _highest(self.folder, self._name)
        if refusal is not None:
            return refusal
        number = highest + 1
        own = _holder(self.folder, self._name, number)
        try:
            handle = open_plain(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return f"another process has just locked {self.folder}; try again"
        try:
            _write(handle, _ourselves())
            record = _record(self._path)
            mine = max(_numbers(self.folder, self._name)) == number and not _may_hold(record)
        except OSError:
            mine = False
            raise
        finally:
            if not mine:  # somebody was faster
                os.close(handle)
                own.unlink()
        if not mine:
            return _refusal(self.folder, self._path, record or {})
        self._own = handle
        for other in _numbers(self.folder, self._name):
            if other < number:
                _holder(self.folder, self._name, other).unlink(missing_ok=True)
        return None


def is_locked(folder: Path, name: str = NAME) -> bool:
    """Whether a process holds the lock of a folder; one of another machine is taken at its word."""
    path = folder / name
    try:
        handle = open_plain(path)
    except OSError:
        return False
    try:
        locked = system_lock(handle, exclusive=False)
        if locked:
            system_unlock(handle)
        if locked is None and _may_hold(_record(path)):
            return True
        return locked is False or _highest(folder, name)[1] is not None
    except OSError:
        return False
    finally:
        os.close(handle)


def is_lock(name: str) -> bool:
    """Whether a file of that name in a folder belongs to its lock."""
    return re.fullmatch(rf"{NAME}(\.\d{{1,9}})?", name) is not None


def system_lock(handle: int, exclusive: bool) -> bool | None:
    """Lock a file: whether that worked; None where the file system or the system has no locks."""
    try:
        if os.name == "nt":
            import msvcrt

            windows: Any = msvcrt
            os.lseek(handle, _FAR, os.SEEK_SET)
            windows.locking(handle, windows.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except ImportError:
        return None
    except OSError as error:
        return False if error.errno in _BUSY else None
    return True


def system_unlock(handle: int) -> None:
    """Undo `system_lock`."""
    with suppress(OSError):
        if os.name == "nt":
            import msvcrt

            windows: Any = msvcrt
            os.lseek(handle, _FAR, os.SEEK_SET)
            windows.locking(handle, windows.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_UN)


# ------------------------------------------------------------------------------------------------ files of holders


def _holder(folder: Path, name: str, number: int) -> Path:
    return folder / f"{name}.{number}"


def _numbers(folder: Path, name: str) -> list[int]:
    found = (re.fullmatch(rf"{re.escape(name)}\.(\d{{1,9}})", own) for own in os.listdir(folder))
    return [int(match[1]) for match in found if match]


def _highest(folder: Path, name: str) -> tuple[int, str | None]:
    """The highest number of a holder, 0 if there is none, and why that holder is in the way, None if it is not."""
    highest = max(_numbers(folder, name), default=0)
    path = _holder(folder, name, highest)
    record = (_record(path) or {}) if highest else _FREE  # one that cannot be read is just being made
    return highest, None if record == _FREE or not _may_hold(record) else _refusal(folder, path, record)


def _refusal(folder: Path, path: Path, record: Mapping[str, Any]) -> str:
    machine, process = record.get("machine"), record.get("process")
    if machine in (None, _machine()):
        who, known = (
            "another process" if process is None else f"process {process}",
            "wait for it, or stop it first",
        )
    else:
        who, known = (
            f"process {process} of another machine, {machine!r:.90},",
            "whether it still runs is not known here",
        )
    return f"{who} is running in {folder}; {known} (if there is none, remove {path})"


# ------------------------------------------------------------------------------------------------------- records


def _write(handle: int, record: Mapping[str, Any]) -> None:
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, json.dumps(record).encode() + b"\n")


def _record(path: Path) -> dict[str, Any] | None:
    try:
        found = json_numbers(read_plain(path, _LONGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _may_hold(record: Mapping[str, Any] | None) -> bool:
    """Whether the process of a record may be alive."""
    if record is None:
        return False
    process, start = record.get("process"), record.get("start")
    if record.get("machine") != _machine() or type(process) is not int:
        return True
    return record.get("boot") == _boot() and _is_alive(process, start)


def _ourselves() -> dict[str, Any]:
    process = os.getpid()
    return {"machine": _machine(), "boot": _boot(), "process": process, "start": _state_and_start(process)[1]}


@cache
def _machine() -> str:
    """A name of this machine; of containers on it, which see no processes of each other, each has its own."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(sha256(Path("/etc/machine-id").read_bytes()).hexdigest()[:12])
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


@cache
def _boot() -> str:
    """What is another after each start of the machine; "" where that is not known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _is_alive(process: int, start: Any) -> bool:
    """Whether a process of this machine runs, and is the one that was started then; True if that is not known."""
    if os.name == "nt":  # where os.kill would end it; file systems have locks there
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    state, began = _state_and_start(process)
    return state not in ("Z", "X") and (start is None or began is None or start == began)


def _state_and_start(process: int) -> tuple[str, int | None]:
    """Letter of the state of a process, and its start in ticks since the machine's; "" and None if not known."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
        words = text.rpartition(")")[2].split()
        return words[0], int(words[19])
    except (OSError, ValueError, IndexError):
        return "", None
