"""A tree policy in other languages: text, Python, C, Graphviz, ONNX and JSON.

The code acts exactly like the tree: an observation is promoted to float64, x_n < t goes left, anything else right.
Names come from people, so they stand in comments and labels only, and cannot leave them.
"""

from __future__ import annotations

import importlib
import json
import keyword
import math
import re
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from discodso.base.checks import is_number
from discodso.base.errors import DeclarationError
from discodso.tasks.policies.tree import DecisionTree

_DEEPEST_NESTING = 90  # Python reads 100 levels of indentation, and C99 promises 127 of blocks
_C_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile "
    "while _Bool _Complex _Imaginary main".split()
)

# ------------------------------------------------------------------------------------------------ words


def one_line(words: str) -> str:
    """Text without line breaks, controls and characters that reorder or hide others."""
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def feature_words(policy: DecisionTree, feature: int) -> str:
    """The name of a feature on one line."""
    return one_line(policy.feature_name(feature)) or f"x{feature}"


def action_words(policy: DecisionTree, action: int) -> str:
    """The name of an action on one line."""
    return one_line(policy.action_name(action)) or str(action)


def short_thresholds(policy: DecisionTree, digits: int = 4) -> tuple[str, ...]:
    """Of each node the threshold, rounded; two that differ for one feature are never shown as equal."""
    shown = [""] * len(policy)
    for feature in set(policy.feature) - {-1}:
        nodes = [node for node in range(len(policy)) if policy.feature[node] == feature]
        values = {node: float(policy.threshold[node]) + 0.0 for node in nodes}  # + 0.0 makes -0.0 a plain 0
        for enough in range(digits, 18):
            texts = {node: f"{value:.{enough}g}" for node, value in values.items()}
            if len(set(texts.values())) == len(set(values.values())):
                break
        for node in nodes:
            shown[node] = texts[node]
    return tuple(shown)


def percent(share: float) -> str:
    """A share as a percentage; 0% and 100% are exact."""
    if share in (0, 1):
        return f"{share:.0%}"
    if share < 0.001:
        return "<0.1%"
    if share > 0.999:
        return ">99.9%"
    return f"{share:.1%}" if share < 0.0995 or share >= 0.995 else f"{share:.0%}"


def checked_shares(policy: DecisionTree, shares: Any) -> list[float] | None:
    """Shares of visits as a list with one number for each node, or None; anything else is refused."""
    if shares is None:
        return None
    given = list(shares)
    if len(given) != len(policy):
        raise DeclarationError(
            f"shares must have one number for each of {len(policy)} nodes, got {len(given)}"
        )
    for node, share in enumerate(given):
        if not is_number(share) or not 0 <= share <= 1:
            raise DeclarationError(
                f"shares: each must be a number from 0 to 1, got {share!r:.60} for node {node}"
            )
    return [float(share) for share in given]


def _checked_name(name: str, reserved: frozenset[str]) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII) or name in reserved:
        raise DeclarationError(f"function_name must be an identifier that is not reserved, got {name!r:.60}")
    return name


def _checked_nodes(policy: DecisionTree) -> list[tuple[int, float, int]]:
    """Nodes as plain numbers, because those of NumPy do not print as source code."""
    nodes = [(int(feature), float(threshold), int(jump)) for feature, threshold, jump in policy.nodes]
    for node, (_, threshold, _) in enumerate(nodes):
        if not math.isfinite(threshold):
            raise DeclarationError(f"threshold of node {node} must be a finite number, got {threshold}")
    return nodes


# ------------------------------------------------------------------------------------------------ text


def _nested(
    policy: DecisionTree,
    decide: Callable[[int], str],
    otherwise: str,
    end: str,
    leaf: Callable[[int], str],
    indent: int,
) -> Iterator[str]:
    """Lines of the tree as nested ifs; `end` closes a decision unless it is empty."""
    waiting: list[tuple[str | int, int]] = [(0, indent)]  # a line that is made, or a node
    while waiting:
        part, level = waiting.pop()
        space = "    " * level
        if isinstance(part, str):
            yield space + part
        elif policy.feature[part] < 0:
            yield space + leaf(part)
        else:
            yield space + decide(part)
            if end:
                waiting.append((end, level))
            waiting += [(policy.jump[part], level + 1), (otherwise, level), (part + 1, level + 1)]


def to_text(policy: DecisionTree, digits: int = 6) -> str:
    """Indented text for people, with names and rounded thresholds."""
    shown = short_thresholds(policy, digits)
    lines = _nested(
        policy,
        lambda node: f"if {feature_words(policy, policy.feature[node])} < {shown[node]}:",
        "else:",
        "",
        lambda node: action_words(policy, policy.jump[node]),
        indent=0,
    )
    return "\n".join(lines) + "\n"


def to_json(policy: DecisionTree) -> str:
    """What `DecisionTree.save` writes."""
    return json.dumps({**policy.header(), "tree": policy.to_dict()}, indent=1) + "\n"


# ------------------------------------------------------------------------------------------------ source code


def to_python(policy: DecisionTree, function_name: str = "act") -> str:
    """A Python function of one observation, a sequence of numbers, that needs no import."""
    name = _checked_name(function_name, frozenset({*keyword.kwlist, "float"}))
    nodes = _checked_nodes(policy)
    # float() matters: NumPy would round the threshold to the float32 of the observation.
    head = [
        f"def {name}(x):",
        '    """The action for one observation; NaN counts as not less."""',
    ]
    if policy.depth > _DEEPEST_NESTING:
        features, thresholds, jumps = zip(*nodes, strict=True)
        body = [
            f"    feature = {features!r}",
            f"    threshold = {thresholds!r}",
            f"    jump = {jumps!r}",
            "    node = 0",
            "    while feature[node] >= 0:  # the left child comes next",
            "        node = node + 1 if float(x[feature[node]]) < threshold[node] else jump[node]",
            "    return jump[node]",
        ]
    else:
        body = list(
            _nested(
                policy,
                lambda node: (
                    f"if float(x[{nodes[node][0]}]) < {nodes[node][1]!r}:"
                    f"  # {feature_words(policy, nodes[node][0])}"
                ),
                "else:",
                "",
                lambda node: f"return {nodes[node][2]}  # {action_words(policy, nodes[node][2])}",
                indent=1,
            )
        )
    return "\n".join(head + body) + "\n"


def to_c(policy: DecisionTree, function_name: str = "act") -> str:
    """A C99 function of one observation, `int act(const double *x)`; not for -ffast-math, which forgets NaN."""
    name = _checked_name(function_name, _C_KEYWORDS)
    nodes = _checked_nodes(policy)
    head = [
        "/* The action for one observation; NaN counts as not less. */",
        f"int {name}(const double *x)",
        "{",
    ]
    if policy.depth > _DEEPEST_NESTING:
        features, thresholds, jumps = zip(*nodes, strict=True)
        body = [
            f"    static const int feature[] = {{{', '.join(map(str, features))}}};",
            f"    static const double threshold[] = {{{', '.join(t.hex() for t in thresholds)}}};",
            f"    static const int jump[] = {{{', '.join(map(str, jumps))}}};",
            "    int node = 0;",
            "    while (feature[node] >= 0) { /* the left child comes next */",
            "        node = x[feature[node]] < threshold[node] ? node + 1 : jump[node];",
            "    }",
            "    return jump[node];",
        ]
    else:
        body = list(
            _nested(
                policy,
                lambda node: (
                    f"if (x[{nodes[node][0]}] < {nodes[node][1].hex()}) {{"
                    f" /* {_c_comment(feature_words(policy, nodes[node][0]))} < {nodes[node][1]:.6g} */"
                ),
                "} else {",
                "}",
                lambda node: (
                    f"return {nodes[node][2]}; /* {_c_comment(action_words(policy, nodes[node][2]))} */"
                ),
                indent=1,
            )
        )
    unused = [] if max(policy.feature) >= 0 else ["    (void)x;"]
    return "\n".join([*head, *unused, *body, "}"]) + "\n"


def _c_comment(words: str) -> str:
    """Text that cannot end a comment, begin one, or join lines; ??/ is a backslash to old compilers."""
    plain = words.replace("\\", " ")
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", lambda found: found[0] + " ", plain).strip()


# ------------------------------------------------------------------------------------------------ Graphviz


def to_dot(policy: DecisionTree, shares: Any = None) -> str:
    """A graph for Graphviz; shares of visits, one for each node, set labels and widths."""
    visits = checked_shares(policy, shares)
    shown = short_thresholds(policy)
    lines = ["digraph policy {", '    node [shape=box, fontname="Helvetica"];']
    lines.append('    edge [fontname="Helvetica"];')
    for node, (feature, _, jump) in enumerate(policy.nodes):
        name = feature_words(policy, feature) if feature >= 0 else action_words(policy, jump)
        label = _dot_label(f"{name} < {shown[node]}" if feature >= 0 else name)
        label += f"\\n{percent(visits[node])}" if visits else ""
        lines.append(f'    n{node} [label="{label}"{"" if feature >= 0 else ", style=rounded"}];')
    for node, (feature, _, jump) in enumerate(policy.nodes):
        for child, answer in ((node + 1, "yes"), (jump, "no")) if feature >= 0 else ():
            width = f", penwidth={0.5 + 4 * visits[child]:.2f}" if visits else ""
            lines.append(f'    n{node} -> n{child} [label="{answer}"{width}];')
    return "\n".join([*lines, "}"]) + "\n"


def _dot_label(words: str) -> str:
    """Text for a quoted label: Graphviz would read \\n, \\N, and entities such as &lt;."""
    return words.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


# ------------------------------------------------------------------------------------------------ ONNX


def to_onnx(policy: DecisionTree) -> bytes:
    """An ONNX model from "observations" float32[N, n] to "actions" int64[N].

    It acts like the tree on every float32: x < t holds for a float32 x exactly if x is below the smallest float32
    that is not below t, and that one is the threshold of the model. Names are in its metadata.
    """
    onnx = _import_onnx()
    nodes = _checked_nodes(policy)
    size = len(nodes)
    decides = [feature >= 0 for feature, _, _ in nodes]
    tree = onnx.helper.make_node(
        "TreeEnsembleRegressor",  # gives the place of a leaf: an action may be no exact float32, a place is
        ["observations"],
        ["places"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * size,
        nodes_nodeids=list(range(size)),
        nodes_modes=["BRANCH_LT" if decision else "LEAF" for decision in decides],
        nodes_featureids=[max(feature, 0) for feature, _, _ in nodes],
        nodes_values=_float32_not_below([threshold for _, threshold, _ in nodes]),
        nodes_truenodeids=[node + 1 if decides[node] else 0 for node in range(size)],
        nodes_falsenodeids=[jump if feature >= 0 else 0 for feature, _, jump in nodes],
        nodes_missing_value_tracks_true=[0] * size,
        target_treeids=[0] * decides.count(False),
        target_nodeids=[node for node in range(size) if not decides[node]],
        target_ids=[0] * decides.count(False),
        target_weights=[float(place) for place in range(decides.count(False))],
    )
    actions = np.array([jump for feature, _, jump in nodes if feature < 0], dtype=np.int64)
    width: int | str = max(len(policy.feature_names), max(policy.feature) + 1) or "n"
    types = onnx.TensorProto
    graph = onnx.helper.make_graph(
        [
            tree,
            onnx.helper.make_node("Cast", ["places"], ["indices"], to=types.INT64),
            onnx.helper.make_node("Reshape", ["indices", "flat"], ["rows"]),
            onnx.helper.make_node("Gather", ["leaves", "rows"], ["actions"]),
        ],
        "policy",
        [onnx.helper.make_tensor_value_info("observations", types.FLOAT, ["N", width])],
        [onnx.helper.make_tensor_value_info("actions", types.INT64, ["N"])],
        [
            onnx.numpy_helper.from_array(actions, "leaves"),
            onnx.numpy_helper.from_array(np.array([-1], dtype=np.int64), "flat"),
        ],
    )
    # Old enough for the oldest onnxruntime that the package allows.
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.helper.make_model(graph, producer_name="discodso", opset_imports=opsets, ir_version=8)
    onnx.helper.set_model_props(
        model, {key: json.dumps(value) for key, value in policy.header().items() if key != "format"}
    )
    onnx.checker.check_model(model)
    made: bytes = model.SerializeToString(deterministic=True)
    return made


def _import_onnx() -> Any:
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise DeclarationError(
            f"the onnx format needs the package onnx ({error}): pip install discodso[onnx]"
        ) from None


def _float32_not_below(thresholds: Sequence[float]) -> list[float]:
    """Of each threshold the smallest float32 that is not below it; inf beyond the largest."""
    exact = np.array(thresholds, dtype=np.float64)
    with np.errstate(all="ignore"):
        near = exact.astype(np.float32)
        return [float(t) for t in np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)]


EXPORTS: MappingProxyType[str, Callable[[DecisionTree], str | bytes]] = MappingProxyType(
    {
        "text": to_text,
        "python": to_python,
        "c": to_c,
        "dot": to_dot,
        "onnx": to_onnx,
        "json": to_json,
    }
)
