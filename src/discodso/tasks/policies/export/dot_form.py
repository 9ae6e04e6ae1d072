"""A tree as a graph for Graphviz."""

from __future__ import annotations

from typing import Any

from discodso.tasks.policies.export.words import (
    action_words,
    checked_shares,
    feature_words,
    percent,
    short_thresholds,
)
from discodso.tasks.policies.tree import DecisionTree


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
