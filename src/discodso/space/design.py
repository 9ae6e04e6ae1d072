"""Designs: one as names and values for people, many as arrays for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import is_number
from discodso.base.errors import InvalidDesignError
from discodso.space.tokens import VALUE, Kind, Library, Readers
from discodso.space.values import Values

# What a token carries: nothing, one value without its name, or values by name.
Entry = float | int | Values | None


class Part:
    """One token of a design with its values: `part.name`, and `part.C` or `part["C"]` for the value C.

    It is also a pair: `name, value = part`. The value is None for a token that carries none, the value itself
    where it carries one, and a mapping where it carries more.
    """

    __slots__ = ("_entry", "name")

    def __init__(self, name: str, entry: Entry) -> None:
        self.name = name
        self._entry = entry

    @property
    def values(self) -> Mapping[str, Any]:
        """All values by name; a number without a name is called "value"."""
        entry = self._entry
        return entry if isinstance(entry, Values) else {} if entry is None else {VALUE: entry}

    def __iter__(self) -> Iterator[Any]:
        entry = self._entry
        yield self.name
        yield next(iter(entry.values())) if isinstance(entry, Values) and len(entry) == 1 else entry

    def __len__(self) -> int:
        return 2

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (Part, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return tuple(self)[key]
        if key not in self.values:
            raise KeyError(self._missing(key))
        return self.values[key]

    def __getattr__(self, key: str) -> Any:
        entry = self._entry
        if isinstance(entry, Values) and key in entry.named:  # objectives come here for every value
            return entry.named[key]
        if key.startswith("_") or key not in self.values:
            raise AttributeError(self._missing(key) if not key.startswith("_") else key)
        return self.values[key]

    def _missing(self, key: str) -> str:
        has = f"it has {', '.join(self.values)}" if self.values else "it carries none"
        return f"{self.name} has no value {key!r}; {has}"

    def __repr__(self) -> str:
        return format_token(self.name, self._entry)


@dataclass(frozen=True, slots=True)
class Design:
    """One design: token names in order, and the values of those that carry some. Iterating gives its `Part`s.

    Designs compare and hash by content. The end token of an open sequence is not part of it.

    Attributes:
        tokens: names.
        values: for each token None, a number where its value has no name, or a mapping from names to values.
        arities: of a tree how many children each token has, by name. Designs that come from a space know it; it is
            None for sequences, after `Design.of` and from JSON. No part of the content.
    """

    tokens: tuple[str, ...]
    values: tuple[Any, ...]
    arities: Mapping[str, int] | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for key in ("tokens", "values"):
            if not isinstance(getattr(self, key), (tuple, list)):
                raise InvalidDesignError(f"{key} of a design must be a tuple, got {getattr(self, key)!r:.80}")
        if len(self.tokens) != len(self.values):
            raise InvalidDesignError(
                f"a design needs one value (or None) for each token, got {len(self.tokens)} tokens "
                f"and {len(self.values)} values"
            )
        for name in self.tokens:
            if not isinstance(name, str):
                raise InvalidDesignError(f"tokens of a design are names, got {name!r:.80}")
        object.__setattr__(self, "values", tuple(map(_entry, self.tokens, self.values)))
        object.__setattr__(self, "tokens", tuple(self.tokens))
        object.__setattr__(self, "arities", None)

    @classmethod
    def of(cls, *items: str | Part | tuple[str, Any]) -> Design:
        """Build a design from names and pairs of a name and values.

        Example:
            `Design.of("add", "x", ("const", 3.14))`, `Design.of("scaler", ("svc", {"C": 1.2, "gamma": 0.03}))`
        """
        pairs: list[tuple[str, Any]] = []
        for item in items:
            if isinstance(item, str):
                pairs.append((item, None))
            elif isinstance(item, Part):
                pairs.append((item.name, item._entry))
            elif isinstance(item, tuple) and len(item) == 2:
                pairs.append(item)
            else:
                raise InvalidDesignError(f"expected a name or a pair (name, value), got {item!r:.80}")
        return cls(tuple(name for name, _ in pairs), tuple(value for _, value in pairs))

    @classmethod
    def trusted(
        cls, tokens: tuple[str, ...], values: tuple[Entry, ...], arities: Mapping[str, int] | None = None
    ) -> Design:
        """A design from parts that are known to be right, without checks: for the inside of loops."""
        design = object.__new__(cls)
        object.__setattr__(design, "tokens", tokens)
        object.__setattr__(design, "values", values)
        object.__setattr__(design, "arities", arities)
        return design

    def as_tree(self, arities: Mapping[str, int] | None) -> Design:
        """The same design, which knows how many children its tokens have."""
        return Design.trusted(self.tokens, self.values, arities)

    @property
    def children(self) -> tuple[tuple[int, ...], ...] | None:
        """The places of the children of each token; None unless it is known to be a whole tree."""
        found: list[tuple[int, ...]] = []
        waiting: list[int] = []  # roots of the subtrees to the right, the next one last
        for place in reversed(range(len(self) if self.arities else 0)):
            arity = self.arities.get(self.tokens[place], 0) if self.arities else 0
            if arity > len(waiting):
                return None
            found.append(tuple(waiting.pop() for _ in range(arity)))
            waiting.append(place)
        return tuple(reversed(found)) if len(waiting) == 1 else None

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[Part]:
        return map(Part, self.tokens, self.values)

    def __getitem__(self, position: int) -> Part:
        return Part(self.tokens[position], self.values[position])

    def __str__(self) -> str:
        if self.arities and self.children is not None:  # the beginning of a tree is a traversal
            return nested(self, self.arities)
        return f"⟨{', '.join(map(format_token, self.tokens, self.values))}⟩"

    def _repr_html_(self) -> str:
        """A tree drawn, else one box for each token, its values below, for notebooks."""
        drawn = import_module("discodso.report.trees").svg(self) if self.arities else None
        if drawn is not None:
            return f'<div role="img" aria-label="{escape(str(self))}" style="overflow-x:auto">{drawn}</div>'
        box = "display:inline-block;border:1px solid #8888;border-radius:4px;padding:1px 6px;margin:1px"
        parts = [
            f'<span style="{box}">{escape(name)}'
            + "".join(f"<br><small>{escape(text)}</small>" for text in value_texts(entry, ".5g"))
            + "</span>"
            for name, entry in zip(self.tokens, self.values, strict=True)
        ]
        return f"<div>{''.join(parts)}</div>"

    @property
    def skeleton(self) -> tuple[str, ...]:
        """The tokens without their values."""
        return self.tokens

    def to_dict(self) -> dict[str, Any]:
        """A dictionary that JSON keeps without loss."""
        values = [dict(entry) if isinstance(entry, Values) else entry for entry in self.values]
        return {"tokens": list(self.tokens), "values": values}

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
            raise InvalidDesignError("'values' of a design must be a list of numbers, objects and nulls")
        return cls(tuple(tokens), tuple(values))

    @classmethod
    def from_json(cls, text: str) -> Design:
        """Inverse of `to_json`."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidDesignError(f"not a design in JSON: {error}") from None
        return cls.from_dict(data)


def _entry(name: str, given: Any) -> Entry:
    """What a token of a design carries, checked."""
    if given is None or isinstance(given, Values):
        return given
    if isinstance(given, Mapping):
        try:
            return Values(given)
        except InvalidDesignError as error:
            raise InvalidDesignError(f"{name!r}: {error}") from None
    if not is_number(given):
        what = f"the value of {name!r} must be a finite number, got {given!r:.80}"
        hint = "" if isinstance(given, float) else "; give options by the name of the value"
        raise InvalidDesignError(what + hint)
    return float(given)


def value_texts(entry: Entry, form: str = ".6g") -> list[str]:
    """The values of a token as texts: `0.3`, or `name=0.3` where they have names."""
    if entry is None:
        return []
    if not isinstance(entry, Values):
        return [f"{entry:{form}}"]
    return [f"{name}={v:{form}}" if isinstance(v, float) else f"{name}={v}" for name, v in entry.items()]


def format_token(name: str, entry: Entry, form: str = ".6g") -> str:
    """`name`, `name(0.3)` or `name(C=1.2, gamma=0.03)`, with six significant digits."""
    return name if entry is None else f"{name}({', '.join(value_texts(entry, form))})"


def nested(design: Design, arities: Mapping[str, int], form: str = ".6g") -> str:
    """A tree as nested calls, `add(x, const(3.14))`."""
    stack: list[str] = []
    for name, entry in zip(reversed(design.tokens), reversed(design.values), strict=True):
        children = [stack.pop() for _ in range(min(arities.get(name, 0), len(stack)))]
        stack.append(format_token(name, entry, form) + (f"({', '.join(children)})" if children else ""))
    return " ".join(reversed(stack))


def one_line(words: str) -> str:
    """Text without line breaks, controls and characters that reorder or hide others."""
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


@dataclass(frozen=True, eq=False)
class DesignBatch(Sequence[Design]):
    """B designs as arrays; behaves as a sequence of `Design`.

    Attributes:
        library: the library that token ids refer to.
        tokens: int[B, T], -1 after the end of a design; the end token of an open sequence is kept here.
        values: float[B, T], NaN where a token carries none; float[B, T, V] where some token of the library carries
            more than one value. Options stand as their numbers.
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

    def __repr__(self) -> str:
        return f"DesignBatch of {len(self)}: {', '.join(map(str, self[:10]))}{', ...' * (len(self) > 10)}"

    def _repr_html_(self) -> str:
        """For notebooks: the first ones."""
        more = f"<div>and {len(self) - 10} more</div>" if len(self) > 10 else ""
        return "".join(design._repr_html_() for design in self[:10]) + more

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (int, np.integer)):
            return self._decode(int(index))
        return self.select(index)

    def select(self, rows: Any) -> DesignBatch:
        """The designs at these rows (slice, indices or mask), as a batch."""
        own = self.tokens[rows], self.values[rows], self.lengths[rows]
        some = DesignBatch(self.library, *own, self.origin)
        if self._known_keys:
            chosen = np.arange(len(self))[rows].tolist()
            found = {what: [keys[row] for row in chosen] for what, keys in self._known_keys.items()}
            some._known_keys.update(found)
        return some

    @cached_property
    def _known_keys(self) -> dict[str, list[bytes]]:
        """By name, those that were asked for."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be found again."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def all_values(self) -> Floats:
        """float[B, T, V], the values with an axis for those of a token, whether or not `values` has one."""
        return self.library.wide(self.values)

    def _decode(self, row: int) -> Design:
        count = int(self.lengths[row])
        ids = self.tokens[row, :count].tolist()
        if ids and ids[-1] == self.library.end:
            ids.pop()
        names, values = self.library.names, self.values[row, : len(ids)].tolist()
        if self.library.plain:
            parametrised = self.library.parametrised
            entries = tuple(v if parametrised[k] else None for k, v in zip(ids, values, strict=True))
        else:
            numbers = [[v] for v in values] if self.library.slots == 1 else values
            entries = _entries(self.library.readers, ids, numbers)
        return Design.trusted(tuple([names[k] for k in ids]), entries, self.library.arities)

    def design_lengths(self) -> Ints:
        """int[B], lengths as users count them, without the end token."""
        if self.library.end is None or not len(self):
            return self.lengths
        last = self.tokens[np.arange(len(self)), np.maximum(self.lengths - 1, 0)]
        shorter: Ints = self.lengths - ((last == self.library.end) & (self.lengths > 0))
        return shorter

    def keys(self) -> list[bytes]:
        """One key for each design, equal exactly where the designs are equal."""
        return self.known_keys("designs", DesignBatch._keys)

    def known_keys(self, what: str, found_by: Callable[[DesignBatch], list[bytes]]) -> list[bytes]:
        """Keys by their name; they are found once, and a design takes its own along into other batches."""
        if what not in self._known_keys:
            self._known_keys[what] = found_by(self)
        return self._known_keys[what]

    def _keys(self) -> list[bytes]:
        carries = (self.library.column_of >= 0)[self.tokens] & (self.tokens >= 0)[..., None]
        values = np.where(carries, self.all_values, 0.0) + 0.0
        counts = self.lengths.tolist()
        parts = zip(_beginnings(self.tokens, counts), _beginnings(values, counts), strict=True)
        return [tokens + own for tokens, own in parts]

    def skeletons(self, length: int | None = None) -> list[bytes]:
        """One key for each design, equal exactly where its discrete part is: the tokens, or the first `length` of
        them, and the options that they carry."""
        return self.known_keys(f"skeletons {length}", lambda batch: batch._skeletons(length))

    def _skeletons(self, length: int | None) -> list[bytes]:
        counts = self.lengths if length is None else np.minimum(self.lengths, length)
        tokens = _beginnings(self.tokens, counts.tolist())
        if not self.library.has_options:
            return tokens
        options = _beginnings(self.option_numbers(), counts.tolist())
        return [own + taken for own, taken in zip(tokens, options, strict=True)]

    def option_numbers(self) -> Ints:
        """int[B, T, V], numbers of the options, -1 where there is none."""
        carries = (self.library.options > 0)[self.tokens] & (self.tokens >= 0)[..., None]
        numbers = np.where(carries, self.all_values, -1.0)
        numbers[np.isnan(numbers)] = 0.0  # those of an option that is not known yet
        return numbers.astype(np.int64)

    @staticmethod
    def concatenate(batches: Sequence[DesignBatch]) -> DesignBatch:
        """One batch of all designs, padded to the longest."""
        whole = DesignBatch(
            batches[0].library,
            padded([batch.tokens for batch in batches], -1),
            padded([batch.values for batch in batches], np.nan),
            np.concatenate([batch.lengths for batch in batches]),
            batches[0].origin if len({id(batch.origin) for batch in batches}) == 1 else None,
        )
        known = [batch._known_keys for batch in batches if len(batch)]
        for what in known[0] if known else ():
            if all(what in keys for keys in known):
                whole._known_keys[what] = [key for keys in known for key in keys[what]]
        return whole


def _entries(
    readers: Sequence[Readers | None], ids: list[int], numbers: list[list[float]]
) -> tuple[Entry, ...]:
    """What the tokens of a design carry, from their numbers: one loop, since searches do this for every call."""
    found = list[Entry]()
    for token, own in zip(ids, numbers, strict=True):
        own_readers = readers[token]
        if not own_readers:
            found.append(None if own_readers is None else own[0])
            continue
        named = dict[str, Any]()
        for (name, options), number in zip(own_readers, own, strict=False):
            if options is None:
                named[name] = number
            else:
                named[name] = int(number) if options is int else options[int(number)]
        found.append(Values.trusted(named))
    return tuple(found)


def _beginnings(array: NDArray[Kind], counts: list[int]) -> list[bytes]:
    """The bytes of the first so many entries of each row of array[B, T, ...]."""
    if not len(array):
        return []
    whole = array.tobytes()
    row = len(whole) // len(array)
    each = row // max(array.shape[1], 1)
    return [whole[at * row : at * row + count * each] for at, count in enumerate(counts)]


def padded(arrays: Sequence[NDArray[Kind]], fill: float) -> NDArray[Kind]:
    """Arrays [B, T, ...] one after the other, filled up to the longest T."""
    widths = [array.shape[1] for array in arrays]
    if len(set(widths)) == 1:
        return np.concatenate(arrays)
    whole = np.full((sum(map(len, arrays)), max(widths), *arrays[0].shape[2:]), fill, arrays[0].dtype)
    at = 0
    for array, width in zip(arrays, widths, strict=True):
        whole[at : at + len(array), :width] = array
        at += len(array)
    return whole
