"""A tree as JSON."""

from __future__ import annotations

import json

from discodso.tasks.policies.tree import DecisionTree


def to_json(policy: DecisionTree) -> str:
    """What `DecisionTree.save` writes."""
    return json.dumps({**policy.header(), "tree": policy.to_dict()}, indent=1) + "\n"
