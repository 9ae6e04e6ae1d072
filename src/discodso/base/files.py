"""Writing files so that a reader never sees half of one, and reading JSON that anyone may have edited."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from discodso.base.errors import DiscodsoError


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


def read_object(path: Path) -> dict[str, Any] | None:
    """A file that holds a JSON object, None if it is none; numbers beyond what fits 64 bits are null."""
    try:
        data = json_numbers(path.read_bytes())
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


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a whole file or nothing: into a temporary file beside it, which then takes its name."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with file_errors(f"cannot write {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
