"""discodso: joint discrete-continuous deep symbolic optimisation.

An independent implementation of DisCo-DSO (Pettit et al., "DisCo-DSO: Coupling Discrete and Continuous
Optimization for Efficient Generative Design in Hybrid Spaces").

Names are imported when they are first asked for: torch, scikit-learn and SymPy take a while, and the help of the
command line needs none of them.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from discodso._version import __version__

if TYPE_CHECKING:
    from discodso.baselines.bayesian import BOSettings
    from discodso.baselines.decoupled import DecoupledSettings
    from discodso.baselines.genetic import GPSettings
    from discodso.baselines.random_search import RandomSettings
    from discodso.bounds import Bounds, DecisionTreeBounds, FixedRanges
    from discodso.callbacks import Callback, JsonLines, RichProgress, RunInfo, TensorBoard
    from discodso.constraints import (
        Constraint,
        DifferentLeaves,
        ForbiddenChild,
        ForbiddenDescendant,
        ForbiddenSiblings,
        InversePairs,
        Length,
        NoNesting,
        Prior,
        Repeat,
        Required,
        SoftLength,
        UniformArity,
    )
    from discodso.design import Design, DesignBatch
    from discodso.disco import DisCo, DisCoSettings
    from discodso.errors import (
        CheckpointError,
        DeadEndError,
        DeclarationError,
        DiscodsoError,
        EvaluationError,
        ExecutorError,
        InvalidDesignError,
        SettingsError,
        TrainingError,
    )
    from discodso.evaluation import Measured
    from discodso.files import FileError
    from discodso.method import Method, MethodSettings, Metrics, Resumable
    from discodso.policy import PolicySettings
    from discodso.prefix import Prefix
    from discodso.presets import preset
    from discodso.result import Failure, HistoryRow, Ranking, Result, Scored, StopReason
    from discodso.runs import resume, resume_policy
    from discodso.search import search
    from discodso.space import Space, Violation
    from discodso.state import State
    from discodso.task import Task
    from discodso.tasks.control.choice import PolicySearch
    from discodso.tasks.control.search import search_policy
    from discodso.tasks.control.tree_policy import TreePolicy
    from discodso.tasks.regression.estimator import DisCoRegressor
    from discodso.tokens import FixedSequence, Library, OpenSequence, Token, Tree

__all__ = [
    "BOSettings",
    "Bounds",
    "Callback",
    "CheckpointError",
    "Constraint",
    "DeadEndError",
    "DecisionTreeBounds",
    "DeclarationError",
    "DecoupledSettings",
    "Design",
    "DesignBatch",
    "DifferentLeaves",
    "DisCo",
    "DisCoRegressor",
    "DisCoSettings",
    "DiscodsoError",
    "EvaluationError",
    "ExecutorError",
    "Failure",
    "FileError",
    "FixedRanges",
    "FixedSequence",
    "ForbiddenChild",
    "ForbiddenDescendant",
    "ForbiddenSiblings",
    "GPSettings",
    "HistoryRow",
    "InvalidDesignError",
    "InversePairs",
    "JsonLines",
    "Length",
    "Library",
    "Measured",
    "Method",
    "MethodSettings",
    "Metrics",
    "NoNesting",
    "OpenSequence",
    "PolicySearch",
    "PolicySettings",
    "Prefix",
    "Prior",
    "RandomSettings",
    "Ranking",
    "Repeat",
    "Required",
    "Result",
    "Resumable",
    "RichProgress",
    "RunInfo",
    "Scored",
    "SettingsError",
    "SoftLength",
    "Space",
    "State",
    "StopReason",
    "Task",
    "TensorBoard",
    "Token",
    "TrainingError",
    "Tree",
    "TreePolicy",
    "UniformArity",
    "Violation",
    "__version__",
    "preset",
    "resume",
    "resume_policy",
    "search",
    "search_policy",
]

_HOMES = {
    "baselines.bayesian": ("BOSettings",),
    "baselines.decoupled": ("DecoupledSettings",),
    "baselines.genetic": ("GPSettings",),
    "baselines.random_search": ("RandomSettings",),
    "bounds": (
        "Bounds",
        "DecisionTreeBounds",
        "FixedRanges",
    ),
    "callbacks": (
        "Callback",
        "JsonLines",
        "RichProgress",
        "RunInfo",
        "TensorBoard",
    ),
    "constraints": (
        "Constraint",
        "DifferentLeaves",
        "ForbiddenChild",
        "ForbiddenDescendant",
        "ForbiddenSiblings",
        "InversePairs",
        "Length",
        "NoNesting",
        "Prior",
        "Repeat",
        "Required",
        "SoftLength",
        "UniformArity",
    ),
    "design": (
        "Design",
        "DesignBatch",
    ),
    "disco": (
        "DisCo",
        "DisCoSettings",
    ),
    "errors": (
        "CheckpointError",
        "DeadEndError",
        "DeclarationError",
        "DiscodsoError",
        "EvaluationError",
        "ExecutorError",
        "InvalidDesignError",
        "SettingsError",
        "TrainingError",
    ),
    "evaluation": ("Measured",),
    "files": ("FileError",),
    "method": (
        "Method",
        "MethodSettings",
        "Metrics",
        "Resumable",
    ),
    "policy": ("PolicySettings",),
    "prefix": ("Prefix",),
    "presets": ("preset",),
    "result": (
        "Failure",
        "HistoryRow",
        "Ranking",
        "Result",
        "Scored",
        "StopReason",
    ),
    "runs": ("resume", "resume_policy"),
    "search": ("search",),
    "space": (
        "Space",
        "Violation",
    ),
    "state": ("State",),
    "task": ("Task",),
    "tasks.control.choice": ("PolicySearch",),
    "tasks.control.search": ("search_policy",),
    "tasks.control.tree_policy": ("TreePolicy",),
    "tasks.regression.estimator": ("DisCoRegressor",),
    "tokens": (
        "FixedSequence",
        "Library",
        "OpenSequence",
        "Token",
        "Tree",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'discodso' has no attribute {name!r}")
    value = getattr(import_module(f"discodso.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps `search` the function: importing the module of that name would put the module in its place."""

    @property
    def search(self) -> Any:
        """See `discodso.search.search`."""
        return import_module("discodso.search").search

    @search.setter
    def search(self, module: Any) -> None:
        """Pass over what the import system sets."""


sys.modules[__name__].__class__ = _Package
