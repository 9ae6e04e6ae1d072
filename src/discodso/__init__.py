"""discodso: joint discrete-continuous deep symbolic optimisation.

An independent implementation of DisCo-DSO (Pettit et al., "DisCo-DSO: Coupling Discrete and Continuous
Optimization for Efficient Generative Design in Hybrid Spaces").

Public names are listed once, in the imports below. They are imported when they are first asked for: torch,
scikit-learn and SymPy take a while, and the help of the command line needs none of them.
"""

import ast
from importlib import import_module
from typing import TYPE_CHECKING, Any

from discodso.base.version import __version__

if TYPE_CHECKING:
    from discodso.base.errors import CheckpointError as CheckpointError
    from discodso.base.errors import DeadEndError as DeadEndError
    from discodso.base.errors import DeadEndWarning as DeadEndWarning
    from discodso.base.errors import DeclarationError as DeclarationError
    from discodso.base.errors import DiscodsoError as DiscodsoError
    from discodso.base.errors import EvaluationError as EvaluationError
    from discodso.base.errors import ExecutorError as ExecutorError
    from discodso.base.errors import InvalidDesignError as InvalidDesignError
    from discodso.base.errors import SettingsError as SettingsError
    from discodso.base.errors import TrainingError as TrainingError
    from discodso.base.files import FileError as FileError
    from discodso.baselines.bayesian import BOSettings as BOSettings
    from discodso.baselines.decoupled import DecoupledSettings as DecoupledSettings
    from discodso.baselines.genetic import GPSettings as GPSettings
    from discodso.baselines.genetic import NSGA2Settings as NSGA2Settings
    from discodso.baselines.random_search import RandomSettings as RandomSettings
    from discodso.disco.disco import DisCo as DisCo
    from discodso.disco.disco import DisCoSettings as DisCoSettings
    from discodso.disco.fronts import FrontSettings as FrontSettings
    from discodso.disco.method import Method as Method
    from discodso.disco.method import MethodSettings as MethodSettings
    from discodso.disco.method import Metrics as Metrics
    from discodso.disco.method import Resumable as Resumable
    from discodso.disco.presets import preset as preset
    from discodso.disco.settings import NetworkSettings as NetworkSettings
    from discodso.run.callbacks import Callback as Callback
    from discodso.run.callbacks import JsonLines as JsonLines
    from discodso.run.callbacks import RichProgress as RichProgress
    from discodso.run.callbacks import RunInfo as RunInfo
    from discodso.run.callbacks import TensorBoard as TensorBoard
    from discodso.run.evaluation import Measured as Measured
    from discodso.run.executors.dask_cluster import Dask as Dask
    from discodso.run.executors.processes import Processes as Processes
    from discodso.run.executors.ray_cluster import Ray as Ray
    from discodso.run.executors.thread_pool import Threads as Threads
    from discodso.run.result import Failure as Failure
    from discodso.run.result import HistoryRow as HistoryRow
    from discodso.run.result import Ranking as Ranking
    from discodso.run.result import Result as Result
    from discodso.run.result import Scored as Scored
    from discodso.run.result import StopReason as StopReason
    from discodso.run.start import resume as resume
    from discodso.run.start import search as search
    from discodso.run.task import Refined as Refined
    from discodso.run.task import Task as Task
    from discodso.space.bounds import Bounds as Bounds
    from discodso.space.bounds import DecisionTreeBounds as DecisionTreeBounds
    from discodso.space.bounds import FixedRanges as FixedRanges
    from discodso.space.constraints import Constraint as Constraint
    from discodso.space.constraints import DifferentLeaves as DifferentLeaves
    from discodso.space.constraints import ForbiddenChild as ForbiddenChild
    from discodso.space.constraints import ForbiddenDescendant as ForbiddenDescendant
    from discodso.space.constraints import ForbiddenSiblings as ForbiddenSiblings
    from discodso.space.constraints import InversePairs as InversePairs
    from discodso.space.constraints import Length as Length
    from discodso.space.constraints import NoNesting as NoNesting
    from discodso.space.constraints import Prior as Prior
    from discodso.space.constraints import Repeat as Repeat
    from discodso.space.constraints import Required as Required
    from discodso.space.constraints import SoftLength as SoftLength
    from discodso.space.constraints import UniformArity as UniformArity
    from discodso.space.constraints import Where as Where
    from discodso.space.design import Design as Design
    from discodso.space.design import DesignBatch as DesignBatch
    from discodso.space.prefix import Prefix as Prefix
    from discodso.space.sequence_rules import AnyOrder as AnyOrder
    from discodso.space.sequence_rules import EndsWith as EndsWith
    from discodso.space.sequence_rules import Follows as Follows
    from discodso.space.sequence_rules import LeadsTo as LeadsTo
    from discodso.space.sequence_rules import Needs as Needs
    from discodso.space.sequence_rules import StartsWith as StartsWith
    from discodso.space.sequence_rules import Sum as Sum
    from discodso.space.sequence_rules import Together as Together
    from discodso.space.space import Space as Space
    from discodso.space.space import Violation as Violation
    from discodso.space.state import State as State
    from discodso.space.tokens import FixedSequence as FixedSequence
    from discodso.space.tokens import Library as Library
    from discodso.space.tokens import OpenSequence as OpenSequence
    from discodso.space.tokens import Token as Token
    from discodso.space.tokens import Tree as Tree
    from discodso.space.tree_rules import ChildTypes as ChildTypes
    from discodso.space.values import Choice as Choice
    from discodso.space.values import Integer as Integer
    from discodso.space.values import Real as Real
    from discodso.tasks.policies.policy_choice import PolicySearch as PolicySearch
    from discodso.tasks.policies.policy_kind import search_policy as search_policy
    from discodso.tasks.policies.tree_policy import TreePolicy as TreePolicy
    from discodso.tasks.regression.estimator import DisCoRegressor as DisCoRegressor


def _homes() -> dict[str, str]:
    """The module of each public name, read from the imports above, which only type checkers execute."""
    source = __spec__.loader.get_source(__name__)  # type: ignore[union-attr]
    block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_HOMES = _homes()
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'discodso' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
