"""A tree as text for people, as source code in Python and C, and as a graph for Graphviz."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from discodso.tasks.policies import leaves, terms
from discodso.tasks.policies.leaves import Leaf
from discodso.tasks.policies.splits import Node, comparisons
from discodso.tasks.policies.tree import DecisionTree

_DEEPEST_NESTING = 90  # Python reads 100 levels of indentation, and C99 promises 127 of blocks


def node_words(policy: DecisionTree, digits: int = 6) -> list[tuple[str, str]]:
    """Of each node what a decision looks at and what it compares that with, or what a leaf does and ""."""

    def name(node: Node) -> str:
        if not isinstance(node, Leaf):
            return node.subject(policy.feature_name, digits)
        if policy.numbers is None:
            return policy.action_name(node.action)
        return ", ".join(leaves.words(node, policy.numbers, policy.feature_name, digits))

    names = [name(node) for node, _ in policy.nodes]
    return list(zip(names, comparisons(policy.nodes, digits), strict=True))


def nested(
    policy: DecisionTree,
    line: Callable[[int, bool], str],
    otherwise: str,
    end: str = "",
    returns: bool = False,
) -> Iterator[str]:
    """Lines of the tree as nested ifs.

    `line` makes that of a node, by its number and whether to negate its decision; `otherwise` and `end` come
    between the sides of a decision and after them. If leaves return, these are the body of a function. Where its
    decisions would nest too deep none has an else then: the smaller side is nested, the other follows.
    """
    flat = returns and policy.depth > _DEEPEST_NESTING
    sizes = [1] * len(policy)
    for node, _, right in reversed(list(policy.decisions())):
        sizes[node] = right - node + sizes[right]
    waiting: list[tuple[str | int, int]] = [(0, int(returns))]  # a line that is made, or a node
    while waiting:
        part, level = waiting.pop()
        if isinstance(part, str):
            yield "    " * level + part
            continue
        shape, jump = policy.nodes[part]
        left, right = part + 1, part + jump
        decides = not isinstance(shape, Leaf)
        negated = flat and decides and sizes[right] < sizes[left]
        yield "    " * level + line(part, negated)
        closing: list[tuple[str | int, int]] = [(end, level)] if end else []
        if decides and flat:
            first, second = (right, left) if negated else (left, right)
            waiting += [(second, level), *closing, (first, level + 1)]
        elif decides:
            waiting += [*closing, (right, level + 1), (otherwise, level), (left, level + 1)]


def to_text(policy: DecisionTree) -> str:
    """Indented text for people, with names and rounded thresholds."""
    words = node_words(policy)

    def line(node: int, negated: bool) -> str:
        name, compared = words[node]
        return f"if {name} {compared}:" if compared else name

    return "\n".join(nested(policy, line, "else:")) + "\n"


def to_python(policy: DecisionTree) -> str:
    """A Python function `act` of one observation, a sequence of numbers, that needs no import."""
    names = [name for name, _ in node_words(policy)]

    def line(place: int, negated: bool) -> str:
        node, _ = policy.nodes[place]
        if not isinstance(node, Leaf):
            return f"if {'not ' * negated}{node.python()}:  # {names[place]}"
        if policy.numbers is None:
            return f"return {node.action}  # {names[place]}"
        parts = []
        for (number, own), low, high in zip(node.sums, policy.numbers.low, policy.numbers.high, strict=True):
            held = min(high, max(low, number))
            written = repr(int(held) if policy.numbers.whole else held)
            if own:
                total = terms.code(own, repr, "float(x[{}])".format, repr(number))
                written = f"min({high!r}, max({low!r}, {total}))"
            parts.append(written)
        return f"return [{', '.join(parts)}]  # {names[place]}"

    head = ["def act(x):", '    """The action for one observation; NaN counts as not less."""']
    return "\n".join([*head, *nested(policy, line, "else:", returns=True)]) + "\n"


def to_c(policy: DecisionTree) -> str:
    """A C99 function of one observation, `int act(const double *x)`.

    Where actions are numbers it is `void act(const double *x, double *action)`. Not for -ffast-math, which forgets
    NaN; sums need -ffp-contract=off to be exact.
    """
    words = [_c_comment(" ".join(parts)) for parts in node_words(policy)]
    numbers = policy.numbers

    def line(place: int, negated: bool) -> str:
        node, _ = policy.nodes[place]
        if not isinstance(node, Leaf):
            return f"if ({f'!({node.c()})' if negated else node.c()}) {{ /* {words[place]} */"
        if numbers is None:
            return f"return {node.action}; /* {words[place]} */"
        parts = [
            f"action[{n}] = held({terms.code(own, float.hex, 'x[{}]'.format, number.hex())}, {low.hex()}, "
            f"{high.hex()}); "
            for n, ((number, own), low, high) in enumerate(
                zip(node.sums, numbers.low, numbers.high, strict=True)
            )
        ]
        return f"{''.join(parts)}return; /* {words[place]} */"

    head = ["/* The action for one observation; NaN counts as not less. */", "int act(const double *x)", "{"]
    if numbers is not None:
        head = [
            "static double held(double number, double low, double high)",
            "{",
            "    return !(number >= low) ? low : number > high ? high : number;",
            "}",
            "",
            head[0],
            "void act(const double *x, double *action)",
            "{",
        ]
    unused = [] if policy.width else ["    (void)x;"]
    return "\n".join([*head, *unused, *nested(policy, line, "} else {", "}", returns=True), "}"]) + "\n"


def _c_comment(words: str) -> str:
    """Text that cannot end a comment, begin one, or join lines; ??/ is a backslash to old compilers."""
    plain = words.replace("\\", " ")
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", lambda found: found[0] + " ", plain).strip()


def to_dot(policy: DecisionTree) -> str:
    """A graph for Graphviz."""
    lines = ["digraph policy {", '    node [shape=box, fontname="Helvetica"];']
    lines.append('    edge [fontname="Helvetica"];')
    for node, (name, compared) in enumerate(node_words(policy, 4)):
        label = f"{name} {compared}".strip()
        # Graphviz would read \n, \N, and entities such as &lt;.
        label = label.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
        style = "" if compared else ", style=rounded"
        lines.append(f'    n{node} [label="{label}"{style}];')
    for node, left, right in policy.decisions():
        lines += [f'    n{node} -> n{left} [label="yes"];', f'    n{node} -> n{right} [label="no"];']
    return "\n".join([*lines, "}"]) + "\n"
