"""What a part of a run remembers, as data that a file can hold: arrays by name, and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discodso.space.design import DesignBatch
from discodso.space.space import Space

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class State:
    """Everything that is needed to go on exactly.

    Attributes:
        arrays: by name; owned by the state, so that later steps of a run do not change them.
        data: what JSON keeps without loss: strings, numbers that are finite, booleans, None, lists, dictionaries.
    """

    arrays: Arrays = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_parts(cls, parts: Mapping[str, State]) -> State:
        """One state of several, each under its name."""
        arrays = {
            f"{name}/{key}": array for name, part in parts.items() for key, array in part.arrays.items()
        }
        return cls(arrays, {name: part.data for name, part in parts.items()})

    def with_part(self, name: str, part: State) -> State:
        """This state, which has parts, with one more or in place of that one."""
        start = f"{name}/"
        arrays = {key: array for key, array in self.arrays.items() if not key.startswith(start)}
        arrays |= {start + key: array for key, array in part.arrays.items()}
        return State(arrays, {**self.data, name: part.data})

    def part(self, name: str) -> State:
        """Inverse of `of_parts`; KeyError if there is no such part."""
        start = f"{name}/"
        arrays = {key.removeprefix(start): a for key, a in self.arrays.items() if key.startswith(start)}
        return State(arrays, self.data[name])


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Where a random stream stands."""
    state = rng.bit_generator.state
    assert state["bit_generator"] == "PCG64", "only NumPy's default generator is kept"
    return {
        "state": str(state["state"]["state"]),  # 128 bits, more than other readers of JSON keep
        "inc": str(state["state"]["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def restore_generator(rng: np.random.Generator, data: Mapping[str, Any]) -> None:
    """Set a random stream to where `generator_state` found it."""
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(data["state"]), "inc": int(data["inc"])},
        "has_uint32": int(data["has_uint32"]),
        "uinteger": int(data["uinteger"]),
    }


def batch_arrays(designs: DesignBatch) -> Arrays:
    """A batch of designs as arrays; `batch_of` is the inverse."""
    return {
        "tokens": np.array(designs.tokens),
        "values": np.array(designs.values),
        "lengths": np.array(designs.lengths),
    }


def batch_of(space: Space, arrays: Mapping[str, NDArray[Any]]) -> DesignBatch:
    """A batch of designs that the space has drawn or checked before; ValueError if it cannot be one."""
    tokens, values, lengths = (arrays[key] for key in ("tokens", "values", "lengths"))
    good = (
        [array.dtype.str for array in (tokens, values, lengths)] == ["<i8", "<f8", "<i8"]
        and tokens.ndim == 2
        and values.shape == (*tokens.shape, *space.library.low.shape[1:])
        and lengths.shape == tokens.shape[:1]
        and (tokens >= -1).all()
        and (tokens < len(space.library)).all()
        and (lengths >= 0).all()
        and (lengths <= tokens.shape[1]).all()
    )
    if not good:
        raise ValueError("arrays that are no designs of the space")
    return DesignBatch(space.library, tokens, values, lengths, space)
