"""Names, thresholds and shares as people read them, for every form of a tree and for its picture."""

from __future__ import annotations

from typing import Any

from discodso.base.checks import is_number
from discodso.base.errors import DeclarationError
from discodso.tasks.policies.tree import DecisionTree


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
