"""A tree as a graph for Graphviz."""

from __future__ import annotations

from discodso.tasks.policies.export.words import node_words
from discodso.tasks.policies.tree import DecisionTree


def to_dot(policy: DecisionTree) -> str:
    """A graph for Graphviz."""
    font = 'fontname="Helvetica"];'
    lines = ["digraph policy {", f"    node [shape=box, {font}", f"    edge [{font}"]
    for node, (name, compared) in enumerate(node_words(policy, 4)):
        style = "" if compared else ", style=rounded"
        lines.append(f'    n{node} [label="{_dot_label(f"{name} {compared}".strip())}"{style}];')
    for node, left, right in policy.decisions():
        lines += [f'    n{node} -> n{left} [label="yes"];', f'    n{node} -> n{right} [label="no"];']
    return "\n".join([*lines, "}"]) + "\n"


def _dot_label(words: str) -> str:
    """Text for a quoted label: Graphviz would read \\n, \\N, and entities such as &lt;."""
    return words.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
