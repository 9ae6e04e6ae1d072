"""Writing files so that a reader never sees half of one, and reading those that a stranger may have made.

In a folder of somebody else a name may be a symbolic link to a file of one's own, a pipe that never says anything,
or a file without end. So a name is opened without following links and without waiting, and what is opened must be
a plain file.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from discodso.base.errors import DiscodsoError

MOST_BYTES = 1 << 30  # of a file that is read whole
MOST_WORDS = 1 << 26  # of one that holds settings, a summary, an equation, a policy
_REPLACE_SECONDS = 2.0  # that a reader on Windows may hold on to a file which is to be replaced
# Windows has neither links that anyone may make nor pipes with names of files.
_GUARDED = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class FileError(DiscodsoError, OSError):
    """A file cannot be read or written; the message says which and why."""


class Closing:
    """A context manager that is closed at its end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all that is held."""
        raise NotImplementedError


@contextmanager
def file_errors(doing: str) -> Iterator[None]:
    """Turn errors of the system into a FileError that says what went wrong, such as "cannot write a.txt"."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{doing}: {error.strerror or error}") from None


def open_plain(path: Path, flags: int = os.O_RDONLY, *, follow: bool = False) -> int:
    """A handle of a plain file, opened without waiting.

    Args:
        path: of the file.
        flags: as of `os.open`. A file that is written to must have this one name only.
        follow: symbolic links. For files that the user has named; never for those of a run folder.
    """
    try:
        handle = os.open(path, flags | _GUARDED | (0 if follow else _NO_LINK), 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK) and path.is_symlink():
            raise FileError(f"{path} is a symbolic link, which is not followed here") from None
        if error.errno == errno.ENXIO:
            raise FileError(f"{path} is no plain file") from None
        raise
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and (flags & (os.O_WRONLY | os.O_RDWR) == 0 or found.st_nlink <= 1):
        return handle
    os.close(handle)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{path} is no plain file")
    raise FileError(f"{path} has a second name elsewhere (a hard link), and is not written to")


def read_plain(path: Path, most: int = MOST_BYTES, *, follow: bool = False) -> bytes:
    """The whole of a plain file of limited size; see `open_plain`. A missing one is a FileNotFoundError."""
    with os.fdopen(open_plain(path, follow=follow), "rb") as file:
        content = b"" if os.fstat(file.fileno()).st_size > most else file.read(most + 1)
        size = max(len(content), os.fstat(file.fileno()).st_size)
    if size > most:
        raise FileError(f"{path} has more than {most:,} bytes, which is too much to be read")
    return content


def read_object(path: Path) -> dict[str, Any] | None:
    """A file that holds a JSON object, None if it is none; numbers beyond what fits 64 bits are null."""
    try:
        data = json_numbers(read_plain(path, MOST_WORDS))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def json_numbers(text: str | bytes) -> Any:
    """JSON of a file that may have been edited: NaN, infinities and integers of many digits are null."""
    return json.loads(text, parse_constant=lambda _: None, parse_float=_finite, parse_int=_short)


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _short(text: str) -> int | None:
    return int(text) if len(text) <= 18 else None


def write_atomically(path: Path, content: str | bytes, *, folders: bool = True) -> None:
    """Write a whole file or nothing: into a temporary file beside it, which then takes its name.

    Args:
        path: of the file. A symbolic link of that name is replaced, not followed.
        content: of the file.
        folders: whether to make the folders that are missing.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with file_errors(f"cannot write {path}"):
            if folders:
                path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(open_plain(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            replace_file(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def replace_file(new: Path, old: Path) -> None:
    """Give a file the name of another, which is gone then; on Windows only once nobody reads that one."""
    until = time.monotonic() + _REPLACE_SECONDS
    while True:
        try:
            os.replace(new, old)
            return
        except PermissionError:
            if time.monotonic() >= until or not may_be_held_by_readers():
                raise
        time.sleep(0.02)


def may_be_held_by_readers() -> bool:
    """Whether this system refuses to replace a file while somebody reads it."""
    return os.name == "nt"
