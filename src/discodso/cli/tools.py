"""Commands that prepare and look: init, check, doctor."""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Exit, Option

from discodso.base.terminal import visible
from discodso.base.version import __version__
from discodso.cli.command_options import AsJson
from discodso.cli.output import EXIT_ERROR


def init(
    kind: Annotated[str, Argument(help="What to search for: regression, policy, bitstring or custom.")],
    path: Annotated[Path, Argument(help="File to write; one that exists is left alone.")] = Path(
        "settings.toml"
    ),
) -> None:
    """Write a commented settings file to start from."""
    from discodso.base.checks import require_one_of
    from discodso.base.files import FileError, write_atomically
    from discodso.cli.templates import template
    from discodso.run.kinds import kind_named, kind_names

    require_one_of("kind", kind, tuple(name for name in kind_names() if kind_named(name).template))
    files = {path.parent / name: text for name, text in kind_named(kind).files.items()}
    for file in (path, *files):
        if file.exists():
            raise FileError(f"{file} exists already and is left alone; name another file, or remove it")
    write_atomically(path, template(kind))
    for file, text in files.items():
        write_atomically(file, text)
        print(f"wrote {file}, the task")
    print(f"wrote {path}; run it by `discodso run {path} --out run-1`")


def check(
    task: Annotated[str, Argument(help="module:attribute, a Task or a function that returns one.")],
    designs: Annotated[int, Option(help="Designs to try the objective on.")] = 20,
    seed: Annotated[int, Option(help="Of these designs.")] = 0,
) -> None:
    """Try a task of one's own: its rules, its designs, its objective."""
    from discodso.base.checks import require_integer
    from discodso.tasks.custom import load_task
    from discodso.testing import check_task

    require_integer("designs", designs, 1)
    require_integer("seed", seed, 0)
    found = load_task(task)
    try:
        check_task(found, designs=designs, seed=seed)
    except AssertionError as error:
        typer.echo(visible(f"discodso: {task}: {' '.join(str(error).split())}"), err=True)
        raise Exit(EXIT_ERROR) from None
    print(f"{task} is a sound task: its rules and its objective were tried on {designs} designs")


NEEDED = ("numpy", "scipy", "torch", "numba", "scikit-learn", "sympy", "safetensors", "pydantic", "gymnasium")
EXTRAS = {
    "dask": ("distributed", "evaluation on a Dask cluster, and by it on Slurm"),
    "ray": ("ray", "evaluation by Ray"),
    "tensorboard": ("tensorboard", "curves of a run in TensorBoard"),
    "onnx": ("onnx", "policies as ONNX files"),
    "tables": ("pyarrow", "tables as Parquet and Excel files"),
    "video": ("imageio-ffmpeg", "films of policies as MP4; GIF needs nothing more"),
    "environments": ("minigrid", "MuJoCo, MiniGrid and highway-env, which policies are tried on"),
    "baselines": ("deap", "genetic programming and Bayesian optimisation to compare with"),
    "bench": ("pyoperon", "the comparison of the expression evaluator"),
}


def doctor(as_json: AsJson = False) -> None:
    """Tell what is installed, and what each missing extra would give."""
    needed = {name: _version(name) for name in NEEDED}
    extras = {
        name: {"package": package, "version": _version(package), "gives": gives}
        for name, (package, gives) in EXTRAS.items()
    }
    missing = [name for name, version in needed.items() if version is None]
    if as_json:
        about = {"discodso": __version__, "python": platform.python_version(), "processors": os.cpu_count()}
        print(json.dumps({**about, "needed": needed, "extras": extras, "missing": missing}))
    else:
        print(f"discodso {__version__}, Python {platform.python_version()} on {platform.system()}")
        print(f"{os.cpu_count()} processors")
        for name, version in needed.items():
            print(f"  {name:14} {version or 'MISSING: reinstall discodso'}")
        print("extras:")
        for name, extra in extras.items():
            state = extra["version"] or f'not installed; pip install "discodso[{name}]" would give'
            print(f"  {name:14} {state}: {extra['gives']}")
    if missing:
        raise Exit(EXIT_ERROR)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
