"""A tree as indented text."""

from __future__ import annotations

from discodso.tasks.policies.export.source import nested
from discodso.tasks.policies.export.words import action_words, feature_words, short_thresholds
from discodso.tasks.policies.tree import DecisionTree


def to_text(policy: DecisionTree, digits: int = 6) -> str:
    """Indented text for people, with names and rounded thresholds."""
    shown = short_thresholds(policy, digits)
    lines = nested(
        policy,
        lambda node: f"if {feature_words(policy, policy.feature[node])} < {shown[node]}:",
        "else:",
        "",
        lambda node: action_words(policy, policy.jump[node]),
        indent=0,
    )
    return "\n".join(lines) + "\n"
