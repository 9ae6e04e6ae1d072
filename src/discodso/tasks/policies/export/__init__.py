"""A tree policy in other languages; a new one is a file here, if it is not text, and a line in `FORMATS`.

`splits` has what a single decision looks like in each. Code acts exactly like the tree: an observation is promoted
to float64, x_n < t goes left, anything else right. Names come from people, so they stand in comments and labels
only, and cannot leave them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from discodso.base.checks import require_one_of
from discodso.tasks.policies.export.onnx_form import to_onnx
from discodso.tasks.policies.export.text_forms import to_c, to_dot, to_python, to_text
from discodso.tasks.policies.tree import DecisionTree

FORMATS: MappingProxyType[str, Callable[[DecisionTree], str | bytes]] = MappingProxyType(
    {
        "text": to_text,
        "python": to_python,
        "c": to_c,
        "dot": to_dot,
        "onnx": to_onnx,
        "json": DecisionTree.to_json,
    }
)


def export(policy: DecisionTree, form: str) -> str | bytes:
    """The tree in one of the `FORMATS`: text, or bytes for "onnx"."""
    require_one_of("form", form, tuple(FORMATS))
    return FORMATS[form](policy)


__all__ = ["FORMATS", "export", "to_c", "to_dot", "to_onnx", "to_python", "to_text"]
