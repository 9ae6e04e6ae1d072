"""Reading designs as people write them: `scale(how=standard) svc(C=1.2)`, `add(x, const(3.14))`, or as JSON."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from discodso.base.errors import DiscodsoError, InvalidDesignError
from discodso.space.design import Design, format_token, nested
from discodso.space.space import Space
from discodso.space.tokens import Token
from discodso.space.values import Choice, Integer

_GAP = re.compile(r"[\s,]*")
_WORD = re.compile(r"[^\s,()]+")
_NUMBER = re.compile(r"[^\s,()=]+")


def design_of_text(text: str, space: Space) -> Design:
    """A design of a space from JSON or from its tokens in order; what is wrong is said in a line.

    Tokens stand in order, with blanks or commas between them, or a tree as nested calls. Values stand in round
    brackets behind their token, by name if they have one; a single one may stand without its name. So what a
    design is printed as can be read, but for the digits that printing leaves out. Whether the design keeps the
    rules of the space is not looked at.
    """
    text = text.strip().removeprefix("⟨").removesuffix("⟩").strip()
    if text.startswith("{"):
        return Design.from_json(text)
    return Design.of(*_Reader(text, space).parts())


def exact_text(design: Design) -> str:
    """A design as text that gives it back to the last bit, but for options that are printed alike."""
    if design.arities and design.children is not None:
        return nested(design, design.arities, "")
    return " ".join(
        format_token(name, entry, "") for name, entry in zip(design.tokens, design.values, strict=True)
    )


class _Reader:
    """Goes through a text once, from left to right.

    Args:
        text: to read.
        space: whose tokens it has.
    """

    def __init__(self, text: str, space: Space) -> None:
        self.text, self.at = text, 0
        self.library = space.library
        own = [k for k in range(len(self.library)) if k != self.library.end]
        self.tokens = {self.library.names[k]: self.library.tokens[k] for k in own}
        self.names = sorted(self.tokens, key=len, reverse=True)  # the longest that fits is meant

    def parts(self) -> list[tuple[str, Any]]:
        """All tokens with what they carry."""
        found: list[tuple[str, Any]] = []
        opened: list[tuple[str, int]] = []  # tokens whose children are being read, and where these begin
        children: list[int] = []  # how many have begun, for each of these
        self._skip()
        while self.at < len(self.text):
            if self._take(")"):
                if not opened:
                    raise self._error("a bracket closes that was not opened")
                name, _ = opened.pop()
                count, arity = children.pop(), self.tokens[name].arity
                if count != arity:
                    raise self._error(f"{name} has {arity} children, not {count}")
                self._skip()
                continue
            token = self._token()
            if children:
                children[-1] += 1
            found.append((token.name, self._values(token) if token.values else None))
            if token.arity and self._take("("):
                opened.append((token.name, len(found)))
                children.append(0)
            self._skip()
        if opened:
            raise self._error(f"the bracket behind {opened[-1][0]} is not closed")
        return found

    def _token(self) -> Token:
        for name in self.names:
            end = self.at + len(name)
            if self.text.startswith(name, self.at) and not _WORD.match(self.text[end : end + 1]):
                self.at = end
                return self.tokens[name]
        word = _WORD.match(self.text, self.at)
        try:
            self.library.id(word[0] if word else self.text[self.at])
        except DiscodsoError as error:
            raise self._error(str(error)) from None
        raise self._error("the end token is implied, leave it out")

    def _values(self, token: Token) -> Any:
        if not self._take("("):
            raise self._error(f"{token.name} needs its values in brackets, as {_form(token)}")
        known, given = dict(token.values), dict[str, Any]()
        while not self._take(")"):
            self._skip()
            name = next((n for n in known if _named(n).match(self.text, self.at)), None)
            if name is not None:
                self.at = self.text.index("=", self.at) + 1
                self._skip()
            elif len(known) == 1 and not given:
                name = next(iter(known))
            if name is None or name in given:
                raise self._error(f"{token.name} takes its values as {_form(token)}")
            given[name] = self._value(token, name, known[name])
            self._skip()
        if missing := [name for name in known if name not in given]:
            raise self._error(f"{token.name} needs a value {missing[0]!r}, as {_form(token)}")
        return next(iter(given.values())) if token.plain else given

    def _value(self, token: Token, name: str, declared: Any) -> Any:
        if isinstance(declared, Choice):
            for option in sorted(declared.options, key=lambda own: len(str(own)), reverse=True):
                end = self.at + len(str(option))
                if self.text.startswith(str(option), self.at) and self.text[end : end + 1] in (",", ")", " "):
                    self.at = end
                    return option
        word = _NUMBER.match(self.text, self.at)
        text = word[0] if word else ""
        try:
            if isinstance(declared, Choice):
                raise ValueError
            number = float(text)
            self.at += len(text)
            return int(number) if isinstance(declared, Integer) and number == round(number) else number
        except (ValueError, OverflowError):
            what = "a number" if token.plain else declared.expected
            raise self._error(f"{name} of {token.name} must be {what}, got {text!r:.40}") from None

    def _take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.at):
            self.at += 1
            return True
        return False

    def _skip(self) -> None:
        gap = _GAP.match(self.text, self.at)
        self.at = gap.end() if gap else self.at

    def _error(self, words: str) -> InvalidDesignError:
        return InvalidDesignError(
            f"{words}, at character {min(self.at, len(self.text)) + 1} of {self.text!r:.80}"
        )


@cache
def _named(name: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(name)}\s*=")


def _form(token: Token) -> str:
    """How values of a token are written."""
    names = "value" if token.plain else ", ".join(f"{name}=..." for name, _ in token.values)
    return f"{token.name}({names})"
