"""Checkpoints: the state of a run as one safetensors file, with a checksum; no code is ever loaded from it.

The arrays of the state are the tensors of the file. Everything else stands in its metadata: the name of the
format, a version, the data as JSON, and a SHA-256 over all of that and every array. A file is written whole or not
at all, and the one before it is kept.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from discodso.base.errors import CheckpointError
from discodso.base.files import file_errors, read_plain, replace_file, write_atomically
from discodso.space.state import Arrays, State

FORMAT, VERSION = "discodso checkpoint", "1"
NAME, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"
_NEW, _REFUSED = f"{NAME}.new", "checkpoint.refused.safetensors"
_NEWEST_FIRST = (_NEW, NAME, PREVIOUS)  # a new one is there only if a crash came between two renames
_KEYS = {"format", "version", "data", "checksum"}


def to_bytes(state: State) -> bytes:
    """The file of a state."""
    data = json.dumps(state.data, allow_nan=False)
    arrays = {name: array.copy(order="C") for name, array in state.arrays.items()}
    metadata = {"format": FORMAT, "version": VERSION, "data": data}
    return save_tensors(arrays, {**metadata, "checksum": _checksum(metadata, arrays)})


def from_bytes(content: bytes) -> State:
    """Inverse of `to_bytes`; anything else raises CheckpointError, which says what is wrong with the file."""
    metadata = _metadata(content)
    if set(metadata) != _KEYS or metadata["format"] != FORMAT:
        raise CheckpointError("it is no checkpoint of discodso")
    if metadata["version"] != VERSION:
        raise CheckpointError(
            f"it has version {metadata['version']:.20} of the format, and this discodso reads version {VERSION}"
        )
    try:
        arrays = load_tensors(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0][:120]
        raise CheckpointError(f"it is damaged ({line})") from None
    if _checksum({key: metadata[key] for key in _KEYS - {"checksum"}}, arrays) != metadata["checksum"]:
        raise CheckpointError("it was changed since it was written: the checksum does not fit")
    try:
        return State(arrays, json.loads(metadata["data"]))
    except (ValueError, RecursionError):
        raise CheckpointError("it is damaged: its data cannot be read") from None


def save(folder: Path, state: State) -> None:
    """Write the checkpoint of a run folder; the one before it becomes the previous one."""
    current, fresh = folder / NAME, folder / _NEW
    write_atomically(fresh, to_bytes(state), folders=False)
    with file_errors(f"cannot write {current}"):
        if current.exists():
            replace_file(current, folder / PREVIOUS)
        replace_file(fresh, current)


def is_there(folder: Path) -> bool:
    """Whether a run folder has a checkpoint, good or not."""
    return any((folder / name).exists() for name in _NEWEST_FIRST)


def load(folder: Path) -> tuple[State, str]:
    """The newest good checkpoint of a run folder, and a sentence about one that had to be passed over."""
    refused: list[str] = []
    for name in _NEWEST_FIRST:
        path = folder / name
        try:
            return from_bytes(read_plain(path)), "; ".join(refused)
        except FileNotFoundError:
            continue
        except OSError as error:
            refused.append(f"{path}: {error.strerror or error}")
        except CheckpointError as error:
            refused.append(f"{path} is refused: {error}")
    if not refused:
        raise CheckpointError(f"{folder} has no checkpoint")
    raise CheckpointError("; ".join(refused) + "; no older one is left")


def set_refused_aside(folder: Path) -> None:
    """Move damaged checkpoints out of the way, so that the next save does not put one in place of a good one."""
    for name in (_NEW, NAME):
        path = folder / name
        try:
            from_bytes(read_plain(path))
        except CheckpointError:
            path.replace(folder / _REFUSED)
        except OSError:
            continue


def _metadata(content: bytes) -> dict[str, str]:
    """The strings in the header of a safetensors file; the library itself gives them for files on disk only."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > len(content) - 8:
        raise CheckpointError("it is damaged or no checkpoint: it ends too early")
    try:
        metadata = dict[str, str](json.loads(content[8 : 8 + size])["__metadata__"])
        if all(isinstance(value, str) for value in metadata.values()):
            return metadata
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise CheckpointError("it is damaged or no checkpoint: its header cannot be read")


def _checksum(metadata: dict[str, str], arrays: Arrays) -> str:
    parts: list[str | bytes] = [text for item in sorted(metadata.items()) for text in item]
    for name, array in sorted(arrays.items(), key=lambda item: item[0]):
        parts += [name, f"{array.dtype.str}{array.shape}", array.tobytes()]
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
