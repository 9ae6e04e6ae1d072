"""Designs: one as names and values for people, many as arrays for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import is_number
from discodso.base.errors import InvalidDesignError
from discodso.space.tokens import Library


@dataclass(frozen=True, slots=True)
class Design:
    """One design: token names in order, and a value where the token carries one.

    Designs compare and hash by content. The end token of an open sequence is not part of it.
    """

    tokens: tuple[str, ...]
    values: tuple[float | None, ...]

    def __post_init__(self) -> None:
        for key in ("tokens", "values"):
            if not isinstance(getattr(self, key), (tuple, list)):
                raise InvalidDesignError(f"{key} of a design must be a tuple, got {getattr(self, key)!r:.80}")
        if len(self.tokens) != len(self.values):
            raise InvalidDesignError(
                f"a design needs one value (or None) for each token, got {len(self.tokens)} tokens "
                f"and {len(self.values)} values"
            )
        for name, value in zip(self.tokens, self.values, strict=True):
            if not isinstance(name, str):
                raise InvalidDesignError(f"tokens of a design are names, got {name!r:.80}")
            if value is not None and not is_number(value):
                raise InvalidDesignError(f"the value of {name!r} must be a finite number, got {value!r:.80}")
        object.__setattr__(self, "tokens", tuple(self.tokens))
        object.__setattr__(self, "values", tuple(None if v is None else float(v) for v in self.values))

    @classmethod
    def of(cls, *items: str | tuple[str, float]) -> Design:
        """Build a design from names and (name, value) pairs: `Design.of("add", "x", ("const", 3.14))`."""
        pairs: list[tuple[str, float | None]] = []
        for item in items:
            if isinstance(item, str):
                pairs.append((item, None))
            elif isinstance(item, tuple) and len(item) == 2:
                pairs.append(item)
            else:
                raise InvalidDesignError(f"expected a name or a pair (name, value), got {item!r:.80}")
        return cls(tuple(name for name, _ in pairs), tuple(value for _, value in pairs))

    @classmethod
    def trusted(cls, tokens: tuple[str, ...], values: tuple[float | None, ...]) -> Design:
        """A design from parts that are known to be right, without checks: for the inside of loops."""
        design = object.__new__(cls)
        object.__setattr__(design, "tokens", tokens)
        object.__setattr__(design, "values", values)
        return design

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[tuple[str, float | None]]:
        return iter(zip(self.tokens, self.values, strict=True))

    def __str__(self) -> str:
        inner = ", ".join(format_token(name, value) for name, value in self)
        return f"⟨{inner}⟩"

    def _repr_html_(self) -> str:
        """One box for each token, its value below, for notebooks."""
        box = "display:inline-block;border:1px solid #8888;border-radius:4px;padding:1px 6px;margin:1px"
        parts = [
            f'<span style="{box}">{escape(name)}'
            + ("" if value is None else f"<br><small>{value:.5g}</small>")
            + "</span>"
            for name, value in self
        ]
        return f"<div>{''.join(parts)}</div>"

    @property
    def skeleton(self) -> tuple[str, ...]:
        """The discrete part, tau_d in the paper."""
        return self.tokens

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON keeps without loss."""
        return {"tokens": list(self.tokens), "values": list(self.values)}

    def to_json(self) -> str:
        """The design as one line of JSON; `from_json` gives an equal design back."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, data: Any) -> Design:
        """Inverse of `to_dict`; anything else is refused."""
        if not isinstance(data, dict) or set(data) != {"tokens", "values"}:
            raise InvalidDesignError("a design in JSON is an object with the keys 'tokens' and 'values' only")
        tokens, values = data["tokens"], data["values"]
        if not isinstance(tokens, list) or not all(isinstance(name, str) for name in tokens):
            raise InvalidDesignError("'tokens' of a design must be a list of strings")
        if not isinstance(values, list):
            raise InvalidDesignError("'values' of a design must be a list of numbers and nulls")
        return cls(tuple(tokens), tuple(values))

    @classmethod
    def from_json(cls, text: str) -> Design:
        """Inverse of `to_json`."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidDesignError(f"not a design in JSON: {error}") from None
        return cls.from_dict(data)


def format_token(name: str, value: float | None) -> str:
    """`name` or `name(value)`, the value with six significant digits."""
    return name if value is None else f"{name}({value:.6g})"


@dataclass(frozen=True, eq=False)
class DesignBatch(Sequence[Design]):
    """B designs as arrays; behaves as a sequence of `Design`.

    Attributes:
        library: the library that token ids refer to.
        tokens: int[B, T], -1 after the end of a design; the end token of an open sequence is kept here.
        values: float[B, T], NaN where a token carries none.
        lengths: int[B], positions in use.
        origin: the space that drew these designs, None if they came from elsewhere and must be checked.

    The arrays are made read-only.
    """

    library: Library
    tokens: Ints
    values: Floats
    lengths: Ints
    origin: object = None

    def __post_init__(self) -> None:
        for array in (self.tokens, self.values, self.lengths):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (int, np.integer)):
            return self._decode(int(index))
        return self.select(index)

    def select(self, rows: Any) -> DesignBatch:
        """The designs at these rows (slice, indices or mask), as a batch."""
        return replace(self, tokens=self.tokens[rows], values=self.values[rows], lengths=self.lengths[rows])

    def _decode(self, row: int) -> Design:
        count = int(self.lengths[row])
        ids = self.tokens[row, :count].tolist()
        if ids and ids[-1] == self.library.end:
            ids.pop()
        names, parametrised = self.library.names, self.library.parametrised
        values = self.values[row, : len(ids)].tolist()
        return Design.trusted(
            tuple(names[k] for k in ids),
            tuple(value if parametrised[k] else None for k, value in zip(ids, values, strict=True)),
        )

    def design_lengths(self) -> Ints:
        """int[B], lengths as users count them, without the end token."""
        if self.library.end is None or not len(self):
            return self.lengths
        last = self.tokens[np.arange(len(self)), np.maximum(self.lengths - 1, 0)]
        shorter: Ints = self.lengths - ((last == self.library.end) & (self.lengths > 0))
        return shorter

    def keys(self) -> list[bytes]:
        """One key for each design, equal exactly where the designs are equal."""
        values = np.where(self.library.parametrised[self.tokens] & (self.tokens >= 0), self.values, 0.0) + 0.0
        return [
            self.tokens[row, :count].tobytes() + values[row, :count].tobytes()
            for row, count in enumerate(self.lengths.tolist())
        ]

    def skeletons(self, length: int | None = None) -> list[bytes]:
        """One key for each design, equal exactly where the tokens are, or the first `length` of them."""
        counts = self.lengths if length is None else np.minimum(self.lengths, length)
        return [self.tokens[row, :count].tobytes() for row, count in enumerate(counts.tolist())]

    @staticmethod
    def concatenate(batches: Sequence[DesignBatch]) -> DesignBatch:
        """One batch of all designs, padded to the longest."""
        width = max(batch.tokens.shape[1] for batch in batches)

        def pad(array: Any, fill: float) -> Any:
            missing = width - array.shape[1]
            return np.pad(array, ((0, 0), (0, missing)), constant_values=fill) if missing else array

        return DesignBatch(
            batches[0].library,
            np.concatenate([pad(batch.tokens, -1) for batch in batches]),
            np.concatenate([pad(batch.values, np.nan) for batch in batches]),
            np.concatenate([batch.lengths for batch in batches]),
            batches[0].origin if len({id(batch.origin) for batch in batches}) == 1 else None,
        )
