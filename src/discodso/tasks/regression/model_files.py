"""Models in files: JSON that holds formulas and numbers and nothing that could be executed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.errors import DeclarationError
from discodso.base.files import FileError, read_object, write_atomically
from discodso.base.version import __version__
from discodso.space.design import Design
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.front import FrontPoint
from discodso.tasks.regression.operators import Operator

_FORMAT, _VERSION = "discodso model", 1
_ERRORS = ("validation_loss", "leave_one_out_error")
_INFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # no numbers in JSON


@dataclass(frozen=True)
class SavedModel:
    """An equation for a target, with its front and the calls that it took."""

    target: str
    expression: Expression
    front: list[FrontPoint]
    calls: int


def write_models(
    path: Path, models: Sequence[SavedModel], parameters: Mapping[str, Any], names: Sequence[str] | None
) -> None:
    """Write models, and the parameters of the search as far as JSON can hold them.

    `names` are those that a data frame gave the inputs.
    """
    own = {o.name for model in models for o in model.expression.operators if not o.is_built_in}
    own |= {o.name for o in parameters.get("operators", ()) if isinstance(o, Operator) and not o.is_built_in}
    if own:
        raise DeclarationError(
            f"a model with operators of one's own ({', '.join(sorted(own))}) cannot be saved, because a file "
            "holds no functions; export the equation, or pickle the model"
        )
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "discodso": __version__,
        "parameters": {key: _plain(value) for key, value in parameters.items() if _is_plain(value)},
        "feature_names": None if names is None else list(map(str, names)),
        "models": [_model_data(model) for model in models],
    }
    write_atomically(path, json.dumps(content, allow_nan=False, indent=1) + "\n")


def read_models(path: Path) -> tuple[list[SavedModel], dict[str, Any], list[str] | None]:
    """What `write_models` has written: models, parameters, names of the inputs."""
    if not path.exists():
        raise FileError(f"there is no file {path}")
    data = read_object(path)
    if data is None or data.get("format") != _FORMAT:
        raise FileError(f"{path} is no model that DisCoRegressor.save has written")
    if data.get("version") != _VERSION:
        raise FileError(f"{path} has version {data.get('version')!r:.20} of the format, expected {_VERSION}")
    try:
        models = [_model(own) for own in data["models"]]
        names = None if data["feature_names"] is None else _texts(data["feature_names"])
        parameters = {str(key): _value(value) for key, value in data["parameters"].items()}
        if not models or len({model.expression.columns for model in models}) > 1:
            raise ValueError("it needs models of the same columns")
        if names is not None and len(names) != len(models[0].expression.columns):
            raise ValueError("it has another number of names than of columns")
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FileError(f"{path} is damaged: {' '.join(str(error).split()):.200}") from None
    return models, parameters, names


def _model_data(model: SavedModel) -> dict[str, Any]:
    return {
        "target": model.target,
        "columns": list(model.expression.columns),
        "expression": model.expression.design.to_dict(),
        "calls": model.calls,
        "front": [
            {
                "expression": point.expression.design.to_dict(),
                **{key: _plain(getattr(point, key)) for key in ("complexity", "loss", *_ERRORS)},
                "finite": bool(point.finite),
            }
            for point in model.front
        ],
    }


def _model(data: Mapping[str, Any]) -> SavedModel:
    columns = tuple(_texts(data["columns"]))

    def expression(design: Any) -> Expression:
        found = Expression(Design.from_dict(design), columns)
        if not all(value is None or isinstance(value, float) for value in found.design.values):
            raise ValueError("constants must be numbers")
        return found

    front = [
        FrontPoint(
            expression(row["expression"]),
            float(_value(row["complexity"])),
            float(_value(row["loss"])),
            finite=bool(row["finite"]),
            **{key: None if row[key] is None else float(_value(row[key])) for key in _ERRORS},
        )
        for row in data["front"]
    ]
    return SavedModel(str(data["target"]), expression(data["expression"]), front, int(data["calls"]))


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("names must be a list of texts")
    return values


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(isinstance(key, (str, Operator)) and _is_plain(own) for key, own in value.items())
    return value is None or isinstance(
        value, (bool, int, float, str, np.integer, np.floating, np.bool_, Operator)
    )


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, (tuple, list)):
        return list(map(_plain, value))
    if isinstance(value, Mapping):
        return {_plain(key): _plain(own) for key, own in value.items()}
    if isinstance(value, Operator):  # a built-in one
        return value.name
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _value(value: Any) -> Any:
    """Inverse of `_plain`; lists become tuples."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    if isinstance(value, dict):
        return {key: _value(own) for key, own in value.items()}
    return _INFINITE.get(value, value) if isinstance(value, str) else value
