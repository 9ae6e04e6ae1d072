"""A tree as C source code."""

from __future__ import annotations

import re

from discodso.tasks.policies.export.words import nested, node_words
from discodso.tasks.policies.tree import DecisionTree


def to_c(policy: DecisionTree) -> str:
    """A C99 function of one observation, `int act(const double *x)`; not for -ffast-math, which forgets NaN."""
    words = [_c_comment(" ".join(parts)) for parts in node_words(policy)]

    def decide(node: int, negated: bool) -> str:
        split = policy.nodes[node][0]
        assert split is not None
        condition = f"!({split.c()})" if negated else split.c()
        return f"if ({condition}) {{ /* {words[node]} */"

    def leaf(node: int) -> str:
        return f"return {policy.nodes[node][1]}; /* {words[node]} */"

    head = [
        "/* The action for one observation; NaN counts as not less. */",
        "int act(const double *x)",
        "{",
    ]
    unused = [] if policy.width else ["    (void)x;"]
    body = nested(policy, decide, "} else {", "}", leaf, returns=True)
    return "\n".join([*head, *unused, *body, "}"]) + "\n"


def _c_comment(words: str) -> str:
    """Text that cannot end a comment, begin one, or join lines; ??/ is a backslash to old compilers."""
    plain = words.replace("\\", " ")
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", lambda found: found[0] + " ", plain).strip()
