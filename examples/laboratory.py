"""A space without an objective: `laboratory.sh` asks for designs of it, and awk rates them.

A heat treatment is a sequence of steps. Only the laboratory knows how hard the steel becomes.
"""

from discodso import EndsWith, Follows, OpenSequence, Real, Space, Token

space = Space(
    [
        Token("heat", celsius=Real(150, 1000), minutes=Real(1, 120, log=True)),
        Token("quench"),
        Token("cool", minutes=Real(5, 600, log=True)),
    ],
    OpenSequence(1, 6),
    [Follows(("quench", "cool"), "heat"), EndsWith(("quench", "cool"))],
)
