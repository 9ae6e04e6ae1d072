"""Words for a terminal: what a file or an objective says may hold orders to it, which are not passed on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def visible(text: str) -> str:
    """The text with a mark in place of every character that is none: controls, and those that reorder others.

    Lines and tabs stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else " " if c.isspace() and c > "\x20" else "�" for c in text
    )


def safe_console(**options: Any) -> Any:
    """A Console of Rich, given its options, that shows texts as `visible` does."""
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    return SafeConsole(**options)
