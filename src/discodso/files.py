"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from discodso.errors import DiscodsoError


class FileError(DiscodsoError, OSError):
    """A file cannot be read or written; the message says which and why."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a whole file or nothing: into a temporary file beside it, which then takes its name."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()
