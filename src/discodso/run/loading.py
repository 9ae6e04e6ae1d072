"""Loading modules from a folder of the user's: each file is a module of its own, whatever others are called.

Two tasks may both live in a `my_task.py`. So a file is imported by a name that holds its folder, and a finder
leads from that name back to the file, in this process and in others: what is pickled by the name of its module is
found there as well. Where the folder is not there, as on another machine, the plain name is imported in its place.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

_PREFIX = "discodso_task_"


def load_module(name: str, folder: str | Path) -> ModuleType:
    """Import a module by its name from a folder; the same file gives the same module.

    Args:
        name: of the module, with dots for one within a package.
        folder: which has it. A module that is not there is imported from wherever Python finds it.
    """
    place = Path(folder).resolve()
    _enter(place)
    top, dot, rest = name.partition(".")
    origin = _origin(place, top)
    if origin is None or _is_loaded(top, origin):
        return importlib.import_module(name)
    return importlib.import_module(_own_name(top, place) + dot + rest)


def _own_name(top: str, folder: Path) -> str:
    return f"{_PREFIX}{top}__{os.fsencode(folder).hex()}"


def _named(own_name: str) -> tuple[str, Path] | None:
    """Plain name and folder of a module that was loaded here, None for any other."""
    top, _, code = own_name.removeprefix(_PREFIX).rpartition("__")
    if not own_name.startswith(_PREFIX) or "." in own_name:
        return None
    try:
        return top, Path(os.fsdecode(bytes.fromhex(code)))
    except ValueError:
        return None


def _origin(folder: Path, top: str) -> Path | None:
    """The file of a module or a package in a folder, None if there is neither."""
    for file in (folder / top / "__init__.py", folder / f"{top}.py"):
        if file.is_file():
            return file
    return None


def _is_loaded(top: str, origin: Path) -> bool:
    """Whether the user has imported this very file already, by its plain name."""
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is not None and Path(file).resolve() == origin


def _enter(folder: Path) -> None:
    """Let modules of the folder import each other by their plain names, before others of that name."""
    others = {str(named[1]) for name in list(sys.modules) if (named := _named(name))} - {str(folder)}
    for name, module in list(sys.modules.items()) if others else ():
        if _home(name, module) in others and _origin(folder, name.partition(".")[0]) is not None:
            del sys.modules[name]  # of another task, which keeps what it has imported
    if sys.path[:1] != [str(folder)]:
        sys.path[:] = [str(folder), *(place for place in sys.path if place != str(folder))]
    importlib.invalidate_caches()  # a file may be new


def _home(name: str, module: ModuleType) -> str | None:
    """The folder from which a module, or the package that it is in, was imported by its plain name."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or name.startswith(_PREFIX):
        return None
    path = Path(file)
    depth = name.count(".") + (path.name == "__init__.py")
    return str(path.parents[depth]) if depth < len(path.parents) else None


class _Finder(importlib.abc.MetaPathFinder):
    """Leads from the name of a module that was loaded here to its file."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        named = _named(fullname)
        if named is None:
            return None
        top, folder = named
        origin = _origin(folder, top)
        if origin is None:
            return importlib.machinery.ModuleSpec(fullname, _Elsewhere(top))
        _enter(folder)
        inside = [str(origin.parent)] if origin.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(fullname, origin, submodule_search_locations=inside)


class _Elsewhere(importlib.abc.Loader):
    """Takes a module by its plain name: this is another machine, which has it in another folder.

    Args:
        name: the plain one.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module itself; what it knows of where it came from stays."""
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""
        module.__spec__ = self._spec


sys.meta_path.append(_Finder())
