"""A tree as C source code."""

from __future__ import annotations

import re

from discodso.tasks.policies.export.source import DEEPEST_NESTING, checked_name, checked_nodes, nested
from discodso.tasks.policies.export.words import action_words, feature_words
from discodso.tasks.policies.tree import DecisionTree

_C_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile "
    "while _Bool _Complex _Imaginary main".split()
)


def to_c(policy: DecisionTree, function_name: str = "act") -> str:
    """A C99 function of one observation, `int act(const double *x)`; not for -ffast-math, which forgets NaN."""
    name = checked_name(function_name, _C_KEYWORDS)
    nodes = checked_nodes(policy)
    head = [
        "/* The action for one observation; NaN counts as not less. */",
        f"int {name}(const double *x)",
        "{",
    ]
    if policy.depth > DEEPEST_NESTING:
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
            nested(
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
