"""discodso: joint discrete-continuous deep symbolic optimisation.

An independent implementation of DisCo-DSO (Pettit et al., "DisCo-DSO: Coupling Discrete and Continuous
Optimization for Efficient Generative Design in Hybrid Spaces").
"""

from typing import TYPE_CHECKING, Any

from discodso._version import __version__
from discodso.baselines.random_search import RandomSettings
from discodso.bounds import Bounds, DecisionTreeBounds, FixedRanges
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
    DeadEndError,
    DeclarationError,
    DiscodsoError,
    EvaluationError,
    InvalidDesignError,
    TrainingError,
)
from discodso.method import Method, MethodSettings, Metrics
from discodso.policy import PolicySettings
from discodso.prefix import Prefix
from discodso.result import Failure, HistoryRow, Ranking, Result, Scored, StopReason
from discodso.search import search
from discodso.space import Space, Violation
from discodso.task import Task
from discodso.tokens import FixedSequence, Library, OpenSequence, Token, Tree

if TYPE_CHECKING:
    from discodso.tasks.regression.estimator import DisCoRegressor

__all__ = [
    "Bounds",
    "Constraint",
    "DeadEndError",
    "DecisionTreeBounds",
    "DeclarationError",
    "Design",
    "DesignBatch",
    "DifferentLeaves",
    "DisCo",
    "DisCoRegressor",
    "DisCoSettings",
    "DiscodsoError",
    "EvaluationError",
    "Failure",
    "FixedRanges",
    "FixedSequence",
    "ForbiddenChild",
    "ForbiddenDescendant",
    "ForbiddenSiblings",
    "HistoryRow",
    "InvalidDesignError",
    "InversePairs",
    "Length",
    "Library",
    "Method",
    "MethodSettings",
    "Metrics",
    "NoNesting",
    "OpenSequence",
    "PolicySettings",
    "Prefix",
    "Prior",
    "RandomSettings",
    "Ranking",
    "Repeat",
    "Required",
    "Result",
    "Scored",
    "SoftLength",
    "Space",
    "StopReason",
    "Task",
    "Token",
    "TrainingError",
    "Tree",
    "UniformArity",
    "Violation",
    "__version__",
    "search",
]


def __getattr__(name: str) -> Any:
    """The estimator is imported when it is first asked for: scikit-learn and SymPy take a while."""
    if name == "DisCoRegressor":
        from discodso.tasks.regression.estimator import DisCoRegressor

        return DisCoRegressor
    raise AttributeError(f"module 'discodso' has no attribute {name!r}")
