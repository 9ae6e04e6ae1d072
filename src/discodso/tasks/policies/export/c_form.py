"""A tree as C source code."""

from __future__ import annotations

import re

from discodso.tasks.policies.export.words import nested, node_words
from discodso.tasks.policies.tree import DecisionTree


def to_c(policy: DecisionTree) -> str:
    """A C99 function of one observation, `int act(const double *x)`; not for -ffast-math, which forgets NaN."""
    words = [_c_comment(" ".join(parts)) for parts in node_words(policy)]

    def line(node: int, negated: bool) -> str:
        split, action = policy.nodes[node]
        if split is None:
            return f"return {action}; /* {words[node]} */"
        return f"if ({f'!({split.c()})' if negated else split.c()}) {{ /* {words[node]} */"

    head = ["/* The action for one observation; NaN counts as not less. */", "int act(const double *x)", "{"]
    unused = [] if policy.width else ["    (void)x;"]
    return "\n".join([*head, *unused, *nested(policy, line, "} else {", "}", returns=True), "}"]) + "\n"


def _c_comment(words: str) -> str:
    """Text that cannot end a comment, begin one, or join lines; ??/ is a backslash to old compilers."""
    plain = words.replace("\\", " ")
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", lambda found: found[0] + " ", plain).strip()
