"""The artefacts by name: the runs that each needs, and how it is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from discodso.base.checks import require_one_of
from discodso.base.files import write_atomically
from discodso.reproduce import bitstring_artefacts as bitstring
from discodso.reproduce import regression_artefacts as regression
from discodso.reproduce import tree_artefacts as trees
from discodso.reproduce.jobs import Job, Record, execute_all, kept, read_record
from discodso.reproduce.scales import Scale
from discodso.run.executors.dispatch import Executor


@dataclass(frozen=True)
class Artefact:
    """A table or a figure of the paper, with what belongs to it.

    Attributes:
        shows: what it is, in a line.
        jobs: the runs that it needs.
        make: writes its files.
    """

    shows: str
    jobs: Callable[[Scale], list[Job]]
    make: Callable[[Scale, Sequence[Record], Path], None]


ARTEFACTS: dict[str, Artefact] = {
    "landscapes": Artefact("the plot of f1 and f2", lambda scale: [], bitstring.landscapes),
    "bitstring": Artefact("best reward against calls, bitstring", bitstring.jobs, bitstring.figure),
    "bitstring-gaps": Artefact("gap table of the bitstring", bitstring.jobs, bitstring.gaps),
    "curves": Artefact("learning curves of the four environments", trees.jobs, trees.curves),
    "policies": Artefact("table of tree results: mean reward and nodes", trees.jobs, trees.policies),
    "policy-gaps": Artefact("both gap tables of the trees", trees.jobs, trees.gaps),
    "trees": Artefact("the best trees, drawn", trees.jobs, trees.drawn),
    "seconds": Artefact("time per objective call", lambda scale: [], trees.seconds),
    "efficiency": Artefact("computational efficiency", trees.jobs, trees.efficiency),
    "regression": Artefact(
        "evaluation rewards and calls, and their table", regression.jobs, regression.figure
    ),
    "regression-gaps": Artefact("gap tables of the regression", regression.jobs, regression.gaps),
    "lengths": Artefact("histogram of traversal lengths", regression.jobs, regression.lengths),
    "architectures": Artefact(
        "LSTM and GRU with 16, 32, 64 units", regression.architecture_jobs, regression.architectures
    ),
}


def reproduce(
    name: str,
    scale: Scale,
    out: Path,
    executor: Executor,
    report: Callable[[str], None],
    finished: bool = False,
) -> list[str]:
    """Run what is missing for an artefact, or for "all", and write its files; gives the names that were made.

    If only what is `finished` is asked for, nothing is run, and artefacts are of the runs that there are.
    """
    require_one_of("NAME", name, (*ARTEFACTS, "all"))
    chosen = list(ARTEFACTS) if name == "all" else [name]
    jobs = {job.folder(out): job for one in chosen for job in ARTEFACTS[one].jobs(scale)}
    if finished:
        jobs = {folder: job for folder, job in jobs.items() if kept(job, out)}
    else:
        execute_all(list(jobs.values()), out, executor, report)
    records = {folder: read_record(job, out) for folder, job in jobs.items()}
    for one in chosen:
        artefact = ARTEFACTS[one]
        own = (records.get(job.folder(out)) for job in artefact.jobs(scale))
        artefact.make(scale, [record for record in own if record is not None], out)
        report(f"made {one}: {artefact.shows}")
    about = (
        f"# Reproduction, scale {scale.name}\n\nMade by `discodso reproduce NAME --scale {scale.name}`. Every run "
        "has its folder below `runs/`, with settings, versions and history, and a line below `summaries/`. A run "
        "that has one is not made again; docs/reproduction.md says what came out.\n"
    )
    write_atomically(out / "README.md", about)
    return chosen
