"""Options of tree policies, declared once for Python, settings files and the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from discodso.base.checks import require
from discodso.base.errors import DeclarationError
from discodso.base.options import check_options, option

Splits = Literal["univariate", "pair", "oblique"]
BUDGET = 10_000
EPISODES = 100
MAX_NODES = 31
RESOLUTION = 0.01
MOST_SEEDS = 1_000_000  # of a test
FIRST_OWN_SEED = 2**29  # from here on search and choice use them


def _pairs(words: list[str]) -> dict[str, Any]:
    """NAME=VALUE for the environment; a value is JSON where it can be read as such, else a string."""
    found: dict[str, Any] = {}
    for text in words:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise DeclarationError(f"--argument must be NAME=VALUE, got {text!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = {"True": True, "False": False, "None": None}.get(value, value)
    return found


def _listed(words: list[str]) -> tuple[str, ...]:
    """Names, between commas."""
    return tuple(name.strip() for text in words for name in text.split(","))


def _ranges(words: list[str]) -> dict[str, tuple[float, float]]:
    """FEATURE=LOW,HIGH for thresholds."""
    found = {}
    for text in words:
        name, equals, ends = text.rpartition("=")
        try:
            low, high = (float(part) for part in ends.split(","))
        except ValueError:
            equals = ""
        if not equals:
            raise DeclarationError(f"--range must be FEATURE=LOW,HIGH, got {text!r}")
        found[name] = (low, high)
    return found


def _prices(words: list[str]) -> dict[str, float]:
    """FEATURE=PRICE."""
    found = {}
    for text in words:
        name, equals, price = text.rpartition("=")
        try:
            found[name] = float(price)
        except ValueError:
            equals = ""
        if not equals:
            raise DeclarationError(f"--feature-price must be FEATURE=PRICE, got {text!r}")
    return found


def read_seeds(words: list[str], option: str = "--test-seeds") -> tuple[int, ...] | None:
    """FIRST-LAST, and single ones with commas between; None for none."""
    found: list[int] = []
    for part in ",".join(words).split(",") if words else []:
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise DeclarationError(f"{option} must be FIRST-LAST or SEED,SEED,..., got {part!r}")
        seeds = range(int(first), int(last or first) + 1)
        if not 0 < len(seeds) <= MOST_SEEDS - len(found):
            raise DeclarationError(f"{option} must be from 1 to {MOST_SEEDS} seeds in order, got {part!r}")
        found += seeds
    return tuple(found) or None


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """[task] of a decision tree that acts in an environment."""

    kind: ClassVar[str] = "policy"
    environment: str = option(
        help="Id of a Gymnasium environment, such as CartPole-v1, or module:Id-v0 of a module of your own."
    )
    arguments: dict[str, Any] = option(
        factory=dict,
        help="Of the environment, for `gymnasium.make`; on the command line NAME=VALUE, may be given again.",
        command="argument",
        read=_pairs,
    )
    wrappers: tuple[str, ...] = option(
        (),
        "Put around the environment, in this order: FlattenObservation and others of gymnasium.wrappers, or "
        'module:Class; arguments follow as JSON, \'FilterObservation {"filter_keys": ["image"]}\'. On the '
        "command line one, may be given again.",
        command="wrapper",
    )
    feature_names: tuple[str, ...] = option(
        (),
        "What the numbers of an observation are called; by default as the environment says. On the command line "
        "with commas between.",
        read=_listed,
    )
    action_names: tuple[str, ...] = option(
        (),
        "What the choices, or the numbers of an action, are called; likewise.",
        read=_listed,
    )
    ranges: dict[str, tuple[float, float]] = option(
        factory=dict,
        help="(low, high) of thresholds by the name or number of a feature; on the command line FEATURE=LOW,HIGH, "
        "may be given again.",
        command="range",
        read=_ranges,
    )
    probe_ranges: bool = option(
        False,
        "Let thresholds of all others lie where features lie in episodes of random actions, not in declared "
        "bounds, which may be far wider.",
    )
    probe_steps: int | None = option(
        None,
        "Steps of these random episodes; 20,000 by default, fewer where the time limit is short.",
        least=2,
        command="",
    )
    moving_ranges: bool = option(
        False,
        "Let thresholds that are not given follow what the best trees meet in their episodes. It begins where "
        "features lie in episodes of random actions; declared bounds are only a limit. Not for the paper.",
    )
    episodes: int = option(EPISODES, "N, fresh episodes for one objective call, their mean return.", least=2)
    max_nodes: int = option(MAX_NODES, "Decisions and leaves of the largest tree.", least=3)
    max_depth: int | None = option(None, "Decisions on the way to a leaf, at most.", least=1)
    max_features: int | None = option(None, "Different features in a tree, at most.", least=1)
    feature_prices: dict[str, float] = option(
        factory=dict,
        help="What a tree pays for looking at a feature, by its name or number: the search is for the mean return "
        "less these prices. On the command line FEATURE=PRICE, may be given again.",
        command="feature-price",
        read=_prices,
    )
    discount: float = option(
        1.0, "Of rewards for each step: the search is for the discounted return.", above=0, most=1
    )
    score: str | None = option(
        None,
        "module:function of the rewards and infos of an episode to a number, which the search is for in place of "
        "the return; in Python also the function itself.",
    )
    typical_nodes: int | None = option(
        None, "Begin with trees of about this size, 0 for any. By default as the preset has it."
    )
    splits: Splits = option(
        "univariate",
        "Whether decisions look at one feature, or also at a weighted sum of two (pair) or of all (oblique).",
        choices=("univariate", "pair", "oblique"),
    )
    split_features: tuple[str, ...] = option(
        (),
        "Features that sums are made of, by name; all by default. On the command line it may be given again.",
    )
    leaves: Literal["constant", "linear"] = option(
        "constant",
        "Whether a leaf has fixed numbers, or also a weighted sum of features for each, held within the bounds of "
        "the action. Only where actions are real numbers.",
        choices=("constant", "linear"),
    )
    start_from: tuple[str, ...] = option(
        (),
        "What the search begins with: a policy.json, or the folder of an earlier run for its best trees; in "
        "Python also a TreePolicy, a fitted decision tree of scikit-learn, or a list of any of these. On the "
        "command line it may be given again.",
    )
    teacher: str | None = option(
        None,
        "Whose actions the first trees imitate: heuristic, where Gymnasium has one, or the path of an ONNX model "
        "or a policy.json; in Python also a function from observations to actions, or anything with `predict`.",
    )
    resolution: float = option(
        RESOLUTION,
        "h, closest distance of thresholds on one path, as a share of the range.",
        above=0,
        most=0.5,
        command="",
    )
    racing: bool | None = option(
        None, "Cut poor trees after few episodes. By default as the preset has it: not for the paper's."
    )
    common_episodes: bool = option(
        False,
        "All trees meet the same N episodes, drawn once for the run, not fresh ones. That compares trees far "
        "better where returns are noisy, but the best fit those episodes a little: use many.",
    )
    trim: bool | None = option(
        None,
        "At the end, cut decisions of the winner that earn nothing. The smaller tree is taken if over fresh "
        "episodes it is no worse, or with 95 % certainty by no more than a tenth of the spread of returns and of "
        "what decisions earn. By default as the preset has it: not for the paper's.",
    )
    workers: int = option(1, "Processes, or threads where the environment is compiled.", least=1)
    test_seeds: tuple[int, ...] | None = option(
        None,
        "For the final score, 0 to 999 by default; not those from 2^29 on, which search and choice use. On the "
        "command line 0-999 or 3,5,8, may be given again.",
        read=read_seeds,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.typical_nodes is not None:
            small = self.typical_nodes == 0 or self.typical_nodes >= 3
            require("typical_nodes", self.typical_nodes, small, "3 or more, or 0 for no preference")
        if self.test_seeds is not None:
            count = len(set(self.test_seeds))
            good = 2 <= count == len(self.test_seeds) <= MOST_SEEDS
            first = self.test_seeds[:10]
            require("test_seeds", first, good, f"2 to {MOST_SEEDS} different seeds")
            good = min(self.test_seeds) >= 0 and max(self.test_seeds) < FIRST_OWN_SEED
            why = f"from 0 to {FIRST_OWN_SEED - 1}, as search and choice use those beyond"
            require("test_seeds", first, good, why)
