"""Functions that numba compiles: each once, for the kinds of its arguments.

Compiling is paid for by every new installation and by every run of the tests. A function costs from a tenth of a
second to seconds. By itself numba would also compile it again for every constant that it is called with, and work
through it again in each function that calls it.
"""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import cache, partial
from hashlib import sha256
from importlib import import_module
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import llvmlite.binding
import numba
from numba import njit, types

_config: Any = numba.config
_unliteral: Any = types.unliteral  # of a constant's type, that of what it is
_call_of: Any = import_module("numba.core.base").user_function  # code that calls a compiled function
_library: Any = import_module("numba.core.codegen").CodeLibrary
# Older versions of numba cannot load by its name what was kept on disk: there all is compiled into its callers.
CAN_BE_APART = "_reload_init" in _library.__init__.__code__.co_names


def compiled(
    *, inner: bool = False, apart: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator for a function that is compiled at its first call and then kept on disk.

    A constant as an argument is an argument like any other.

    Args:
        inner: only compiled functions call it, so that it needs no door for Python, which would take its arguments
            apart.
        apart: others call it where it stands, instead of being compiled with it; for what is long.
        options: of `numba.njit`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        wanted = {"cache": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": inner, **options}
        try:
            made: Any = njit(**wanted)(function)
        except RuntimeError:  # nowhere to keep it: a read-only installation, and no home
            _keep_for_now()
            made = njit(**wanted)(function)
        if _config.DISABLE_JIT:
            return made
        _forgive_full_disks(made)
        typed = made.get_call_template

        def get_call_template(args: Any, kws: Any) -> Any:
            kinds = [_unliteral(kind) for kind in args]
            found = typed(kinds, {name: _unliteral(kind) for name, kind in kws.items()})
            if apart and CAN_BE_APART:
                _set_apart(made, tuple(found[2]))
            return found

        made.get_call_template = get_call_template
        if inner:

            def refuse(*_: Any, **__: Any) -> None:
                raise TypeError(f"{function.__name__} is for compiled functions only")

            made._insert = lambda *_: None  # what Python would find and enter without a door
            made._compile_for_args = refuse
        return made

    return decorate


@cache
def _keep_for_now() -> None:
    """Keep what is compiled in a folder that only this user may enter, until this process ends."""
    # What is kept is unpickled again, so nobody else may write there.
    folder, owner = mkdtemp(prefix="discodso-"), os.getpid()
    _config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = folder  # the latter for workers

    def remove() -> None:
        if os.getpid() == owner:  # not a process that was forked off
            rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    warnings.warn(
        "compiled functions cannot be kept here, so that every run compiles them anew; set NUMBA_CACHE_DIR to a "
        "folder of yours",
        stacklevel=2,
    )


def _forgive_full_disks(made: Any) -> None:
    """What was compiled is used even where it cannot be kept."""
    keep = made._cache.save_overload

    def save_overload(*arguments: Any) -> None:
        with suppress(OSError):
            keep(*arguments)

    made._cache.save_overload = save_overload


@cache
def _set_apart(made: Any, kinds: tuple[Any, ...]) -> str:
    """Have compiled functions call another one by a name, which is known before they are loaded."""
    code = made.overloads[kinds]
    mark = sha256(repr((kinds, code.fndesc.restype)).encode()).hexdigest()[:16]
    name = f"{made.__module__}.{made.__name__}.{mark}"
    described = copy(code.fndesc)
    llvmlite.binding.add_symbol(name, code.library.get_pointer_to_function(described.llvm_func_name))
    described.mangled_name = name
    call = _call_of(described, ())
    load = partial(_load, made.__module__, made.__name__, kinds, name)

    def emit(context: Any, *arguments: Any) -> Any:
        context.active_code_library._reload_init.add(load)
        return call(context, *arguments)

    context = code.target_context
    context.remove_user_function(code.entry_point)
    context._defns[code.entry_point].append(emit, call.signature)
    return name


def _load(module: str, function: str, kinds: tuple[Any, ...], name: str) -> None:
    """Before what calls a function by a name is loaded."""
    made = getattr(import_module(module), function)
    made.get_call_template(kinds, {})
    if _set_apart(made, kinds) != name:
        raise RuntimeError(
            f"{module}.{function} returns something else now; delete the caches of numba (*.nbi)"
        )
