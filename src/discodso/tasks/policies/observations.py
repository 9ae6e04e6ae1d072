"""Observations as lists of numbers with names: of Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

LARGEST = 1000  # numbers of an observation


class Feature(NamedTuple):
    """One number of an observation: its name, "" for none, its declared bounds, and whether it is whole."""

    name: str
    low: float
    high: float
    whole: bool


def flat(observation: Any) -> list[float]:
    """The numbers of an observation; those of a dictionary in the order of its keys."""
    if isinstance(observation, np.ndarray):
        numbers: list[float] = observation.astype(np.float64).ravel().tolist()
        return numbers
    if isinstance(observation, Mapping):
        return [number for key in sorted(observation) for number in flat(observation[key])]
    if isinstance(observation, (tuple, list)):
        return [number for part in observation for number in flat(part)]
    return flat(np.asarray(observation))


def rows_of(observation: Any, size: int | None = None) -> list[Any] | None:
    """The observations of a batch; None if it is a single one.

    Args:
        observation: an array, or a dictionary or tuple of them. A batch has one axis more than a single one.
        size: numbers of a single one. Where it is not known an array with two or more axes is a batch.
    """
    arrays = [np.asarray(part) for part in _arrays(observation)]
    rows = {array.shape[0] if array.ndim else 0 for array in arrays}
    if len(rows) != 1 or 0 in rows:
        return None
    (count,) = rows
    flat_alone = all(array.ndim == 1 for array in arrays)
    if size is None:
        batch = not flat_alone
    elif count == 1:  # one of one number, or a batch of one number: whole ones come without an axis
        whole = all(array.dtype.kind in "iub" for array in arrays)
        batch = (not flat_alone or whole) and sum(array.size for array in arrays) == size
    else:
        batch = sum(array.size for array in arrays) == count * size
    return [_row(observation, row) for row in range(count)] if batch else None


def _arrays(observation: Any) -> Iterator[Any]:
    if isinstance(observation, Mapping):
        for part in observation.values():
            yield from _arrays(part)
    elif isinstance(observation, tuple):
        for part in observation:
            yield from _arrays(part)
    else:
        yield observation


def _row(observation: Any, row: int) -> Any:
    if isinstance(observation, Mapping):
        return {key: _row(part, row) for key, part in observation.items()}
    if isinstance(observation, tuple):
        return tuple(_row(part, row) for part in observation)
    return np.asarray(observation)[row]


def features(space: spaces.Space[Any], name: str = "") -> list[Feature]:
    """The numbers of an observation, in the order of `flat`; ValueError says why there are none."""
    match space:
        case spaces.Dict():
            return [
                own for key in sorted(space.spaces) for own in features(space[key], _joined(name, str(key)))
            ]
        case spaces.Tuple():
            parts = enumerate(space.spaces)
            return [own for place, part in parts for own in features(part, _joined(name, f"x{place}"))]
        case spaces.Discrete():
            return [Feature(name, float(space.start), float(space.start + space.n - 1), True)]
        case spaces.MultiDiscrete():
            return list(_numbers(name, space.start, space.start + space.nvec - 1, True))
        case spaces.MultiBinary():
            return list(_numbers(name, np.zeros(space.shape), np.ones(space.shape), True))
        case spaces.Box():
            if np.prod(space.shape) > LARGEST:
                raise ValueError(
                    f"{_of(name)}its observation is an image or the like (shape {space.shape}, {space.dtype}), "
                    "and a threshold on one pixel says nothing; use a version with a short list of numbers, "
                    "or make one with gymnasium.wrappers.TransformObservation"
                )
            whole = space.dtype is not None and np.dtype(space.dtype).kind != "f"
            return list(_numbers(name, space.low, space.high, whole))
    raise ValueError(
        f"{_of(name)}its observation is a {type(space).__name__}, but a tree compares numbers; wrap it with "
        f"gymnasium.wrappers.TransformObservation{', or leave it out with FilterObservation' if name else ''}"
    )


def _numbers(name: str, low: Any, high: Any, whole: bool) -> Iterator[Feature]:
    """Those of an array, which are numbered by their places in it if it has a name."""
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    for place in np.ndindex(low.shape):
        numbered = " ".join((name, *map(str, place))) if name and low.size > 1 else name
        # As Python's numbers, because NumPy's would warn of widths that overflow.
        yield Feature(numbered, float(low[place]), float(high[place]), whole)


def _joined(name: str, part: str) -> str:
    return f"{name} {part}" if name else part


def _of(name: str) -> str:
    return f"{name} of " if name else ""
