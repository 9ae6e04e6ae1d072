"""From settings to a result: building the task that they name, running it, and going on with a folder."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discodso.base.errors import DeclarationError, DiscodsoError, SettingsError
from discodso.disco.disco import DisCoSettings
from discodso.disco.method import MethodSettings
from discodso.disco.presets import preset
from discodso.run.executors.dispatch import Executor
from discodso.run.executors.kinds import make_executor
from discodso.run.folder import SETTINGS, read_settings, require_run_folder
from discodso.run.result import Result
from discodso.run.search import continue_search, start_search
from discodso.run.settings import (
    BitstringTable,
    CustomTable,
    PolicyTable,
    ProblemTable,
    PythonTable,
    RegressionTable,
    RunSettings,
    TreeTable,
    read,
)
from discodso.run.task import Task
from discodso.space.space import Space
from discodso.tasks.bitstring import bitstring

if TYPE_CHECKING:
    from discodso.tasks.policies.policy_choice import PolicySearch
    from discodso.tasks.regression.data import Table
    from discodso.tasks.regression.estimator import DisCoRegressor


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes:
        result: of the search.
        space: that was searched.
        model, data: of a regression.
        policy: of a policy search.
        note: a sentence for the user, such as that a damaged checkpoint was passed over.
    """

    result: Result
    space: Space
    model: DisCoRegressor | None = None
    data: Table | None = None
    policy: PolicySearch | None = None
    note: str = ""


def run_settings(settings: RunSettings, *, out: str | Path | None = None, callback: Any = None) -> Outcome:
    """Do what a settings file says."""
    settings = _with_whole_paths(settings)
    if _is_fit(settings):
        return _fit(settings, out, resume=False, callback=callback)
    if isinstance(settings.task, PolicyTable):
        return _policy(settings, None, out, resume=False, callback=callback)
    with ExitStack() as stack:
        task = build_task(settings, stack)
        executor = _executor(settings, stack)
        method = settings.method or preset(
            noisy=task.noisy, refines=task.refine is not None, budget=settings.plan.limits.budget
        )
        plan = settings.plan.confirming_noise(task.noisy and settings.method is None)
        settings = replace(settings, method=method, plan=plan)  # for the record
        result = start_search(
            task,
            method,
            settings.plan,
            initial_designs=settings.initial_designs,
            callback=callback,
            executor=executor,
            out=out,
            record=settings.record(),
        )
    return Outcome(result, task.space)


def resume(
    folder: str | Path,
    *,
    budget: int | None = None,
    time_limit: float | None = None,
    task: Task | None = None,
    method: MethodSettings | None = None,
    executor: Executor | None = None,
    callback: Any = None,
) -> Result:
    """Go on with the run in a folder, exactly as if it had never stopped; see also `resume_policy`.

    Args:
        folder: `out` of the run.
        budget: objective calls in all; that of the run by default.
        time_limit: seconds in all, those before included.
        task: for runs that began in Python, the same task again.
        method: for runs that began with a method of one's own, its settings.
        executor: evaluates designs elsewhere; that of the settings by default.
        callback: watches the run; see `search`.
    """
    return resume_run(
        folder,
        budget=budget,
        time_limit=time_limit,
        task=task,
        method=method,
        executor=executor,
        callback=callback,
    ).result


def resume_policy(
    folder: str | Path,
    *,
    calls: int | None = None,
    time_limit: float | None = None,
    method: MethodSettings | None = None,
    callback: Any = None,
) -> PolicySearch:
    """Go on with a run of `search_policy`, exactly as if it had never stopped; then choose and test again.

    Args:
        folder: `out` of the run.
        calls: objective calls in all; those of the run by default.
        time_limit: seconds for the search in all, those before included.
        method: for runs that began with a method of one's own, its settings.
        callback: watches the search; see `search`.
    """
    require_run_folder(Path(folder))
    if not isinstance(read(Path(folder) / SETTINGS).task, PolicyTable):
        raise SettingsError(f"{folder} is no run of search_policy; go on with it by resume({str(folder)!r})")
    outcome = resume_run(folder, budget=calls, time_limit=time_limit, method=method, callback=callback)
    assert outcome.policy is not None
    return outcome.policy


def resume_run(
    folder: str | Path,
    *,
    budget: int | None = None,
    time_limit: float | None = None,
    task: Task | None = None,
    method: MethodSettings | None = None,
    executor: Executor | None = None,
    callback: Any = None,
) -> Outcome:
    """`resume`, with all that came of it."""
    path = Path(folder)
    require_run_folder(path)
    settings = read(path / SETTINGS).with_limits(budget, time_limit)
    if _is_fit(settings):
        return _fit(settings, path, resume=True, callback=callback)
    chosen = method or settings.method
    if chosen is None and "method" in read_settings(path / SETTINGS):
        raise SettingsError(f"{path} is of a run with a method of one's own; hand it to resume as method=...")
    if isinstance(settings.task, PolicyTable):
        return _policy(settings, chosen, path, resume=True, callback=callback)
    if task is None and isinstance(settings.task, PythonTable):
        raise SettingsError(
            f"{path} is of a run that began in Python; go on with it there, by resume({str(path)!r}, task=...)"
        )
    with ExitStack() as stack:
        task = build_task(settings, stack) if task is None else task
        result, note = continue_search(
            path,
            task,
            chosen or preset("paper"),  # that of folders which do not say
            settings.plan,
            initial_designs=settings.initial_designs,
            callback=callback,
            executor=executor or _executor(settings, stack),
            record=None if method is not None else _kept_method(settings, path),
        )
    return Outcome(result, task.space, note=note)


def _kept_method(settings: RunSettings, path: Path) -> dict[str, Any]:
    """The settings of a run that goes on, with its new limits."""
    return {**settings.record(), **{k: v for k, v in read_settings(path / SETTINGS).items() if k == "method"}}


def build_task(settings: RunSettings, stack: ExitStack) -> Task:
    """The task that settings name; what it keeps open is closed with the stack."""
    table = settings.task
    seed = settings.plan.seed
    if isinstance(table, BitstringTable):
        return bitstring(
            table.length, table.alpha, table.objective, seed if table.seed is None else table.seed
        )
    if isinstance(table, CustomTable):
        return load_task(table.task, table.path, table.arguments)
    if isinstance(table, ProblemTable):
        from discodso.tasks.regression.problems import problem_task, problems

        (problem,) = problems(table.problem)
        return problem_task(problem, table.variant, table.threads)
    if isinstance(table, TreeTable):
        from discodso.tasks.policies.tree_space import open_tree_task

        return stack.enter_context(
            open_tree_task(
                table.environment, table.episodes, seed, table.max_nodes, table.balanced, table.workers
            )
        )
    if isinstance(table, RegressionTable):
        return _table_task(table)
    raise SettingsError(f"task.kind {table.kind!r} cannot be built from settings")


def _is_fit(settings: RunSettings) -> bool:
    """Whether the estimator does it, which adds to DisCo what makes good equations of it."""
    by_disco = settings.method is None or isinstance(settings.method, DisCoSettings)
    return isinstance(settings.task, RegressionTable) and by_disco


def _table_task(table: RegressionTable) -> Task:
    """The plain task of fitting a column of a table, for methods other than DisCo."""
    from discodso.tasks.regression.data import read_table
    from discodso.tasks.regression.estimator import LIBRARY
    from discodso.tasks.regression.expression_space import RegressionSpace, regression_task

    data = read_table(table.table, table.target, tuple(table.ignore))
    space = RegressionSpace(
        library=LIBRARY if table.library is None else tuple(table.library),
        max_length=table.max_length,
        const_range=table.const_range,
        need_input=table.need_input,
        no_constant_subtrees=table.no_constant_subtrees,
        no_inverses=table.no_inverses,
        max_constants=table.max_constants,
    )
    return regression_task(data.X, data.y, space, metric=table.metric, threads=table.threads)


def load_task(name: str, path: str | None = None, arguments: dict[str, Any] | None = None) -> Task:
    """A task by "module:attribute": a Task, or a function that returns one.

    Args:
        path: folder to import the module from; the current one by default.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise DeclarationError(f"a task is named as module:attribute, got {name!r}")
    place = str(Path.cwd() if path is None else Path(path))
    if place not in sys.path:
        sys.path.insert(0, place)
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
        if not isinstance(found, Task) and callable(found):
            found = found(**(arguments or {}))
        elif arguments:
            raise DeclarationError(f"{name} is a task and takes no arguments; name a function that makes one")
    except DiscodsoError:
        raise
    except (Exception, SystemExit) as error:  # a script may end itself when it is imported
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise DeclarationError(f"the task {name} cannot be loaded: {what}") from None
    if not isinstance(found, Task):
        raise DeclarationError(f"{name} must be a Task or a function that returns one, got {found!r:.60}")
    return found


def _fit(settings: RunSettings, out: str | Path | None, resume: bool, callback: Any) -> Outcome:
    # Here, because scikit-learn and SymPy take longer to import than a short run of another task.
    from discodso.tasks.regression.data import read_table
    from discodso.tasks.regression.estimator import LIBRARY, DisCoRegressor

    table = settings.task
    if settings.executor.kind != "none":
        raise SettingsError(
            "executor.kind must be 'none' for a regression, which evaluates here; see task.threads"
        )
    assert settings.method is None or isinstance(settings.method, DisCoSettings)
    if settings.initial_designs:
        raise SettingsError("run.initial_designs cannot be given for a regression")
    data = read_table(table.table, table.target, tuple(table.ignore))
    if len(data.y) < 2:
        raise DeclarationError(
            f"{table.table} has a single row; an equation needs at least two to be judged by"
        )
    own = table.model_dump(exclude={"kind", "table", "target", "ignore", "library"})
    model = DisCoRegressor(
        library=LIBRARY if table.library is None else tuple(table.library),
        max_calls=settings.plan.limits.budget,
        max_time=settings.plan.limits.time_limit,
        settings=settings.method,
        column_names=data.columns,
        random_state=settings.plan.seed,
        out=out,
        **own,
    )
    model.fit_run(
        data.X, data.y, resume=resume, plan=settings.plan, record=settings.record(), callback=callback
    )
    return Outcome(model.result_, model.space_, model, data)


def _policy(
    settings: RunSettings, method: MethodSettings | None, out: str | Path | None, resume: bool, callback: Any
) -> Outcome:
    from discodso.tasks.policies.policy_search import (
        run_policy,  # here, because Gymnasium is not for other tasks
    )

    found, note = run_policy(settings, method=method, out=out, resume=resume, callback=callback)
    return Outcome(found.search, found.space, policy=found, note=note)


def _executor(settings: RunSettings, stack: ExitStack) -> Any:
    table = settings.executor
    executor = make_executor(table.kind, table.workers, table.address)
    if executor is not None:
        close: Callable[[], None] = executor.close
        stack.callback(close)
    return executor


def _with_whole_paths(settings: RunSettings) -> RunSettings:
    """Paths from the root, so that a run can be gone on with from anywhere."""
    table = settings.task
    if isinstance(table, RegressionTable):
        return replace(settings, task=table.model_copy(update={"table": str(Path(table.table).resolve())}))
    if isinstance(table, CustomTable):
        place = str(Path(table.path or ".").resolve())
        return replace(settings, task=table.model_copy(update={"path": place}))
    return settings
