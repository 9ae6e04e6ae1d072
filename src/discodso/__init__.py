"""discodso: joint discrete-continuous deep symbolic optimisation.

An independent implementation of DisCo-DSO (Pettit et al., "DisCo-DSO: Coupling Discrete and Continuous
Optimization for Efficient Generative Design in Hybrid Spaces").
"""

from importlib import import_module
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
    from discodso.tasks.control.search import PolicySearch, search_policy
    from discodso.tasks.control.tree_policy import TreePolicy
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
    "PolicySearch",
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
    "TreePolicy",
    "UniformArity",
    "Violation",
    "__version__",
    "search",
    "search_policy",
]


_LATER = {
    "DisCoRegressor": "discodso.tasks.regression.estimator",
    "PolicySearch": "discodso.tasks.control.search",
    "TreePolicy": "discodso.tasks.control.tree_policy",
    "search_policy": "discodso.tasks.control.search",
}


def __getattr__(name: str) -> Any:
    """Imported when first asked for: scikit-learn, SymPy and Gymnasium take a while."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'discodso' has no attribute {name!r}")
