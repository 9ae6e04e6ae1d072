"""Functions that numba compiles: each once, for the kinds of its arguments.

Compiling is paid for by every new installation and by every run of the tests. A function costs from a tenth of a
second to seconds, and what it calls is worked through once more with it, down to the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types

_unliteral: Any = types.unliteral  # of a constant's type, that of what it is


def compiled(*, inner: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator for a function that is compiled at its first call and then kept on disk.

    A constant as an argument is an argument like any other: numba alone would compile `f(x, True)` and
    `f(x, False)` apart, and all that calls them twice.

    Args:
        inner: only compiled functions call it, so that it needs no door for Python, which would take its arguments
            apart.
        options: of `numba.njit`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        wanted = {"cache": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": inner, **options}
        made: Any = njit(**wanted)(function)
        typed = made.get_call_template
        made.get_call_template = lambda args, kws: typed(
            [_unliteral(kind) for kind in args], {name: _unliteral(kind) for name, kind in kws.items()}
        )
        if inner:

            def refuse(*_: Any, **__: Any) -> None:
                raise TypeError(f"{function.__name__} is for compiled functions only")

            made._insert = lambda *_: None  # what Python would find and enter without a door
            made._compile_for_args = refuse
        return made

    return decorate
