"""The commands that look at runs: show, report, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from discodso.base.terminal import visible
from discodso.cli.command_options import AsJson
from discodso.cli.output import best_table, json_text, print_lines, shortened

if TYPE_CHECKING:
    from discodso.report.comparison import Comparison
    from discodso.report.folders import RunRecord
    from discodso.tasks.policies.tree_policy import TreePolicy

Folders = Annotated[list[Path], Argument(help="Folders of runs, each the --out of one.")]


def as_data(run: RunRecord) -> dict[str, Any]:
    """How a run stands, for JSON."""
    from discodso.run.folder import first_failures
    from discodso.run.queue import pending_in

    ended = run.status == "ended"
    kind = run.kind
    return {
        "folder": str(run.path),
        "task": run.settings.get("task"),
        "budget": run.budget,
        "status": run.status,
        "stop": run.top.get("stop") if ended else None,
        "stop_sentence": run.top.get("stop_sentence") if ended else None,
        "batches": len(run.history),
        "last": run.history[-1].to_dict() if run.history else None,
        "top": [scored.to_dict() for scored in run.designs],
        **({} if (pending := pending_in(run.path)) is None else {"pending": pending}),
        **({} if kind.summary is None else {kind.name: kind.summary(run.ending)[0]}),
        "failures": first_failures(run.top),
    }


def show(folder: Annotated[Path, Argument(help="Folder of a run.")], as_json: AsJson = False) -> None:
    """Print what a run has found and how it stands, also while it runs."""
    from discodso.report.folders import read_run

    run = read_run(folder)
    if as_json:
        print(json_text(as_data(run)))
    else:
        print_lines(_lines(run))


def _lines(run: RunRecord) -> list[Any]:
    from discodso.run.folder import first_failures
    from discodso.run.goals import feasibility_words
    from discodso.run.queue import pending_in

    lines: list[Any] = [f"{run.path}: {run.title}"]
    if run.history:
        last = run.history[-1]
        best = "best reward none" if last.best is None else f"best reward {last.best:.6g}"
        if last.hypervolume is not None:
            best = f"hypervolume {last.hypervolume:.6g}, {last.front} on the front"
        spent = f"{last.calls} of {run.budget} objective calls in {last.seconds:.1f} s"
        feasible = "" if last.feasible is None else f", {feasibility_words(last.feasible, last.broken or {})}"
        lines.append(f"{spent}, {last.failures} failed{feasible}, {best}")
    else:
        lines.append("no batch has been evaluated yet")
    if run.designs:
        own = run.objectives
        lines.append(best_table(run.designs, lambda design: shortened(str(design), 200), objectives=own))
    if run.kind.summary is not None and (found := run.kind.summary(run.ending)[1]):
        lines.append(found)
    for failure in first_failures(run.top)[:1]:
        lines.append(f"the first failure: the objective {failure['reason']}")
    states = {"running": "it is running", "ended": f"it has ended: {run.top.get('stop_sentence')}"}
    stopped = f"it is not running and has not ended; go on with it by `discodso resume {run.path}`"
    if (pending := pending_in(run.path)) is not None:
        some = ", ".join(map(str, sorted(pending)[:20])) + (", ..." if len(pending) > 20 else "")
        count = f"{len(pending)} design{' is' if len(pending) == 1 else 's are'} pending"
        lines.append(
            f"{run.top.get('calls', 0)} results are told, {count}" + (f": {some}" if pending else "")
        )
        stopped = f"it has not ended; go on with it by `discodso ask {run.path}` and `discodso tell`"
    return [*lines, states.get(run.status, stopped)]


def report(
    folders: Folders,
    out: Annotated[
        Path | None,
        Option(help="HTML file to write; report.html, in the folder if it is a single one, by default."),
    ] = None,
    figures: Annotated[Path | None, Option(help="Folder for the same plots as figures for papers.")] = None,
    figure_format: Annotated[str, Option(help="Of these figures: pdf, svg or png.")] = "pdf",
    live: Annotated[
        bool, Option("--live", help="Serve it on this machine while a run goes on, until it ends.")
    ] = False,
    port: Annotated[int, Option(help="For --live; 0 for any free one.")] = 0,
) -> None:
    """Write one HTML file that shows all of some runs: seeds, methods and tasks are put in order."""
    from discodso.base.checks import require_one_of
    from discodso.report.live import LiveReport
    from discodso.report.writing import write_figures, write_report

    require_one_of("figure-format", figure_format, ("pdf", "svg", "png"))
    if live:
        served = LiveReport(folders, port)
        typer.echo(f"live report: {served.url} (ends with the run; Ctrl-C ends it before)")
        served.serve()
    typer.echo(visible(f"report: {write_report(folders, out)}"))
    if figures is not None:
        write_figures(folders, figures, figure_format)
        typer.echo(visible(f"figures: {figures}"))


def export(
    folder: Annotated[Path, Argument(help="Folder of a run.")],
    out: Annotated[Path | None, Option(help="CSV file to write; standard output by default.")] = None,
) -> None:
    """Write the designs of a run with their rewards as CSV, which `--known` of another run takes."""
    from discodso.base.files import write_atomically
    from discodso.run.folder import read_top
    from discodso.run.known import csv_of, designs_of_run

    objectives = (read_top(folder) or {}).get("objectives")
    text = csv_of(designs_of_run(folder), objectives if isinstance(objectives, list) else ())
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text)
        typer.echo(f"designs: {out}")


def compare(
    folders: Annotated[
        list[Path], Argument(help="Folders of runs, each the --out of one; of policies JSON files, too.")
    ],
    at: Annotated[
        int | None,
        Option(
            help="Objective calls to compare the best rewards at; as many as all runs have made by default."
        ),
    ] = None,
    seeds: Annotated[
        str, Option(help="Of the episodes that policies are compared in, FIRST-LAST or SEED,SEED,...")
    ] = "1000000-1000999",
    workers: Annotated[int, Option(help="For these episodes.")] = 1,
    environment: Annotated[
        str | None, Option("--env", help="Id of their environment; that of the first policy by default.")
    ] = None,
    csv: Annotated[Path | None, Option(help="CSV file to write.")] = None,
    figure: Annotated[
        Path | None, Option(help="Best reward against calls to write, .svg, .pdf or .png.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put methods side by side: runs of one method are those that differ in their seeds only.

    Policies are compared by their returns in the same fresh episodes, one by one, unless --at is given.
    """
    from discodso.base.checks import require_integer
    from discodso.base.errors import DiscodsoError
    from discodso.base.files import write_atomically
    from discodso.report import figures
    from discodso.report.comparison import compare as compare_groups
    from discodso.report.folders import by_method, by_task, read_run

    if at is not None:
        require_integer("at", at, 1)
    if figure is not None:
        figures.require_format(figure)
    if at is None and (policies := _policies(folders)):
        _compare_policies(policies, seeds, workers, environment, csv, as_json)
        return
    tasks = by_task([read_run(folder) for folder in folders])
    if len(tasks) > 1:
        names = "; ".join(f"{runs[0].path} is of: {title}" for title, runs in tasks.items())
        raise DiscodsoError(f"these runs are of different tasks, compare those of one: {names}")
    title, runs = next(iter(tasks.items()))
    groups = by_method(runs)
    found = compare_groups(groups, at)
    if csv is not None:
        write_atomically(csv, found.to_csv())
    if figure is not None:
        figures.learning([group.curve for group in groups], title, groups[0].leading.measure).save(figure)
    if as_json:
        print(json_text({"task": title, **found.to_dict()}))
        return
    _show_comparison(title, found)
    for name, path in (("table", csv), ("figure", figure)):
        if path is not None:
            print(visible(f"{name}: {path}"))


def _policies(paths: list[Path]) -> dict[str, TreePolicy]:
    """The policies of folders and files, by their paths; none if these are runs of another kind."""
    from discodso.base.errors import DiscodsoError
    from discodso.report.folders import read_run
    from discodso.tasks.policies.tree_policy import TreePolicy, policy_file

    found = {}
    for path in paths:
        if path.is_dir() and read_run(path).kind.name != "policy":
            break
        found[str(path)] = TreePolicy.load(policy_file(path))
    if found and len(found) < len(set(map(str, paths))):
        raise DiscodsoError(f"compare policies with policies: {path} is a run of another kind")
    return found


def _compare_policies(
    policies: dict[str, TreePolicy],
    seeds: str,
    workers: int,
    environment: str | None,
    csv: Path | None,
    as_json: bool,
) -> None:
    from rich.markup import escape
    from rich.table import Table

    from discodso.base.files import write_atomically
    from discodso.report.comparison import of_scores
    from discodso.report.folders import by_method, read_run
    from discodso.tasks.policies.paired import compare_policies
    from discodso.tasks.policies.policy_options import read_seeds

    found = compare_policies(policies, read_seeds([seeds], "--seeds") or (), environment, workers)
    if csv is not None:
        write_atomically(csv, found.to_csv())
    means = dict(zip(found.labels, found.means, strict=True))
    groups = by_method([read_run(Path(label)) for label in found.labels if Path(label).is_dir()])
    methods = None
    if len(groups) > 1 and any(len(group.runs) > 1 for group in groups):
        scores = [tuple(means[str(run.path)] for run in group.runs) for group in groups]
        methods = of_scores(tuple(group.label for group in groups), tuple(scores))
    if as_json:
        more = {} if methods is None else {"methods": methods.to_dict()["methods"]}
        print(json_text({**found.to_dict(), **more}))
        return
    title = f"{found.environment}, {len(found.seeds)} fresh episodes, the same for all"
    table = Table("policy", "nodes", "mean return", "± error", title=escape(title), title_justify="left")
    for label, nodes, mean, error in zip(found.labels, found.nodes, found.means, found.errors, strict=True):
        table.add_row(escape(label), str(nodes), f"{mean:.2f}", f"{error:.2g}")
    differences = [
        f"{pair['first']} - {pair['second']}: {pair['difference']:+.2f} [{_interval(pair['interval'])}]"
        for pair in found.pairs
    ]
    print_lines([table, *differences])
    if methods is not None:
        _show_comparison(found.environment, methods)
    if csv is not None:
        print(visible(f"table: {csv}"))


def _show_comparison(title: str, found: Comparison) -> None:
    from rich.markup import escape
    from rich.table import Table

    columns = ("method", "runs", "mean", "± error", "95 %", "IQ mean", "95 %")
    table = Table(*columns, title=escape(title), title_justify="left")
    for label, summary in zip(found.labels, found.summaries, strict=True):
        error = "-" if summary.standard_error is None else f"{summary.standard_error:.2g}"
        mean = str(summary.runs), f"{summary.mean:.5g}", error, _interval(summary.mean_interval)
        quartiles = f"{summary.interquartile_mean:.5g}", _interval(summary.interquartile_interval)
        table.add_row(escape(label), *mean, *quartiles)
    lines: list[Any] = [table]
    for pair in found.improvements:
        ends = "" if pair["interval"] is None else f" [{_interval(pair['interval'])}]"
        lines.append(f"P({pair['first']} > {pair['second']}) = {pair['probability']:.3f}{ends}")
    after = "mean returns" if found.calls is None else f"best rewards after {found.calls} objective calls"
    print_lines([*lines, after])


def _interval(ends: tuple[float, float] | None) -> str:
    return "-" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}"
