"""Tree policies as a kind of task: from an environment to a tree that people can read."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.checks import is_integer, require
from discodso.base.errors import DeclarationError, DiscodsoError, SettingsError
from discodso.base.files import read_object, read_plain, write_atomically
from discodso.base.options import require_nothing_left, taken, with_options
from discodso.baselines.literature import Practising
from discodso.disco.disco import DisCoSettings, batch_for
from discodso.disco.method import MethodSettings
from discodso.disco.presets import Preset
from discodso.disco.presets import preset as named_preset
from discodso.disco.settings import (
    ArchiveSettings,
    DrawSettings,
    NetworkSettings,
    RefinementSettings,
    VariationSettings,
)
from discodso.run.callbacks import Callbacks
from discodso.run.clock import Clock
from discodso.run.folder import ENVIRONMENT, require_run_folder
from discodso.run.history import HistoryRow
from discodso.run.kinds import Kind, Outcome, Prepared, Shown
from discodso.run.plan import Plan
from discodso.run.result import Ranking, Result, Scored
from discodso.run.settings import RunSettings
from discodso.run.start import start
from discodso.space.design import Design
from discodso.space.space import Space
from discodso.tasks.policies.distillation import distilled, pruning_seeds
from discodso.tasks.policies.environments import Interface
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.highest import highest_return
from discodso.tasks.policies.limits import prices_of
from discodso.tasks.policies.literature.methods import maker_in, space_of
from discodso.tasks.policies.making import Environment, as_environment
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.policy_choice import (
    Finalist,
    Phase,
    PolicySearch,
    choose_and_test,
    seconds_after,
)
from discodso.tasks.policies.policy_options import BUDGET, PolicyOptions
from discodso.tasks.policies.racing import Racing
from discodso.tasks.policies.scoring import name_of, scoring_of
from discodso.tasks.policies.simulators import simulator_for
from discodso.tasks.policies.starts import designs_from
from discodso.tasks.policies.teachers import as_teacher
from discodso.tasks.policies.timed import TimedRunner, always
from discodso.tasks.policies.tree_policy import POLICY, TreePolicy
from discodso.tasks.policies.tree_space import search_seeds, space_for, tree_task
from discodso.tasks.policies.visits import Visits
from discodso.tasks.policies.vocabulary import TreeSpace, Vocabulary

TEST_SEEDS = range(1000)
_PROBING = 0.1  # of the time limit, for probing at most
# Calls without a better tree that end a search by default: this part of the budget, and at least so many.
_PATIENCE_PART, _LEAST_PATIENCE = 2, 3000
_PERFECT_TREES, _PERFECT_EPISODES = 10, 1000  # as good as can be, after which no better ones are looked for
_LARGEST_PICTURE = 1 << 22  # bytes; one that is larger is drawn anew
_SUMMARY, _PICTURE, _FRONT = "summary.json", "tree.svg", "front.json"
# Over common episodes means differ by less than their errors would allow.
_COMMON_RACES = Racing(margin=0.3)
_SHARING = 0.5  # of the seconds left, for steps that are counted for the picture
_WALKED = 100  # episodes in which steps are counted for the picture, without a compiled simulator


def scaled_settings() -> DisCoSettings:
    """The preset "paper-scaled" of trees: thresholds begin around the middle of their ranges."""
    return DisCoSettings(network=NetworkSettings(shift=0.5))


def default_settings(
    common_episodes: bool = False, budget: int | None = None, numbers: bool = False
) -> DisCoSettings:
    """What measured best on tree tasks; docs/experiments/policies.md has the figures.

    There is no network: thresholds are drawn near the middle of their range. The best 50 trees are kept, no more
    than ten with the same first three nodes. Calls are shared between fresh trees and variations of these by what
    each earns; where episodes are fresh, one call of five goes to a tree that is known, and budgets below 20,000
    have smaller batches, so that there are 200 of them. Where actions are numbers the values of the best trees are
    refined as well.
    """
    return DisCoSettings(
        refinement=RefinementSettings() if numbers else None,
        batch_size=batch_for(None if common_episodes else budget),
        network=None,
        draws=DrawSettings(spread=0.1),
        archive=ArchiveSettings(size=50, niche=10, niche_length=3, recheck=0.0 if common_episodes else 0.2),
        variation=VariationSettings(),
        adaptive=True,
    )


@with_options(Plan, PolicyOptions)
def search_policy(
    environment: Any,
    *,
    budget: int = BUDGET,
    preset: Preset = "default",
    method: MethodSettings | None = None,
    callback: Any = None,
    out: str | Path | None = None,
    **options: Any,
) -> PolicySearch:
    """Search for a decision tree that acts well in a Gymnasium environment.

    Args:
        environment: id, such as "CartPole-v1"; a specification (EnvSpec) or an instance, to make more like it; or
            a class or function that makes one, which `resume` needs again as its `task`.
        budget: objective calls, each the mean return of a tree over fresh episodes.
        preset: "default" for what measured best, "paper" for the paper's settings and protocol, "paper-scaled" for
            these with thresholds as shares of their ranges; see `preset`.
        method: settings of the method in place of the preset's.
        callback: watches the search; see `search`.
        out: folder for the run, which must be new or empty; at the end it has the policy and its picture as well.
            `resume` goes on with it.
        {options}

    Ctrl-C ends the search; what was found until then is still chosen from and tested.
    """
    given = as_environment(environment, options.pop("arguments", None), options.pop("wrappers", ()))
    plan = Plan(budget, **{"top": KIND.top, **taken(Plan, options)})
    own = taken(PolicyOptions, options)
    require_nothing_left("search_policy", options, Plan, PolicyOptions)
    first, teacher = own.pop("start_from", ()), own.pop("teacher", None)
    if own.get("test_seeds") is not None:
        own["test_seeds"] = _seeds_of(own["test_seeds"])
    if own.get("score") is not None:
        own["score"] = name_of(own["score"])
    for name, example in (("feature_prices", '{"speed": 5}'), ("ranges", '{"speed": (-1, 1)}')):
        given_by_name = own.get(name) or {}
        require(name, given_by_name, isinstance(given_by_name, Mapping), f"a dictionary such as {example}")
        pairs = given_by_name.items()
        own[name] = {str(feature): tuple(ends) if np.ndim(ends) else ends for feature, ends in pairs}
    task = PolicyOptions(
        environment=given.id, arguments=dict(given.arguments), wrappers=given.wrappers, **own
    )
    settings = RunSettings(task, plan, method, preset, given=None if given.factory is None else given)
    clock = Clock(plan.time_limit, partial(Callbacks(callback), "note"))
    settings = begun(settings, clock, first, teacher)
    found: PolicySearch = start(settings, out=out, callback=callback, clock=clock).found
    return found


def _seeds_of(given: Any) -> tuple[int, ...] | None:
    """Seeds of the test as settings have them, None for the default ones."""
    seeds = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    require("test_seeds", given, all(map(is_integer, seeds)), "whole numbers, such as range(100)")
    tests = tuple(int(seed) for seed in seeds)
    return None if tests == tuple(TEST_SEEDS) else tests


def begun(settings: RunSettings, clock: Clock, start_from: Any = (), teacher: Any = None) -> RunSettings:
    """The settings with the trees that a search begins with; what was handed over in Python goes before options.

    A run that goes on has them already.
    """
    task: PolicyOptions = settings.task
    start_from, teacher = start_from or task.start_from, task.teacher if teacher is None else teacher
    if settings.begun or (isinstance(start_from, (list, tuple)) and not start_from and teacher is None):
        return settings
    task, interface, space = _probed(task, settings, settings.given, clock)
    names, first = designs_from(start_from, interface, space)
    record: dict[str, Any] = {"start_from": names}
    if teacher is not None:
        known, seeds = as_teacher(teacher, interface), pruning_seeds(settings.plan.seed)
        with open_runner(interface.environment, task.workers, seeds) as runner:
            found = distilled(known, interface, space, task, runner, settings.plan, clock)
        first, record = [*first, *found.designs], {**record, **found.record}
        task = replace(task, teacher=known.name)
    designs = tuple(dict.fromkeys((*settings.initial_designs, *first)))
    record["designs"] = len(designs)
    return replace(
        settings, task=replace(task, start_from=tuple(names)), initial_designs=designs, begun=record
    )


def _probed(
    options: PolicyOptions, settings: Any, given: Environment | None, clock: Clock
) -> tuple[PolicyOptions, Interface, TreeSpace]:
    """What trees see and do, and which there are; options then say how long features were watched."""
    until = math.inf if clock.limit is None else clock.seconds + _PROBING * clock.limit
    left = always if clock.limit is None else lambda: until - clock.seconds
    interface, space = space_for(options, settings.preset, settings.plan.seed, given, left)
    if clock.limit is not None and interface.probed.steps:
        options = replace(options, probe_steps=interface.probed.steps)
    return options, interface, space


def _prepare(settings: Any, given: Any, stack: ExitStack, clock: Clock) -> Prepared:
    options, plan = settings.task, settings.plan
    if plan.confirm_calls:
        why = "whose winner is chosen on fresh episodes anyway"
        raise SettingsError(f"run.confirm_calls is not for a policy, {why}")
    patience, ends = plan.patience, isinstance(settings.method, Practising)  # by itself
    if patience is None and settings.preset == "default" and not ends:
        patience = max(_LEAST_PATIENCE, plan.budget // _PATIENCE_PART)
    plan = replace(plan, confirm_calls=0, patience=patience)
    for name, value in options.arguments.items():
        if _has_none(value):
            why = (
                "which the settings of a run cannot hold; leave it out, or hand over a function that makes it"
            )
            raise DeclarationError(f"arguments: {name} is or has None, {why}")
    handed = None if given is None else as_environment(given)
    if handed is not None and handed.id != options.environment:
        raise DeclarationError(
            f"the run is one of {options.environment}, what was handed over is {handed.id}"
        )
    scoring = scoring_of(options.discount, options.score)
    paper, before = settings.preset != "default", clock.seconds
    options, interface, space = _probed(options, settings, handed, clock)
    default = default_settings(options.common_episodes, plan.budget, interface.numbers is not None)
    named = {"default": default, "paper": named_preset("paper"), "paper-scaled": scaled_settings()}
    method = named[settings.preset]
    race = _racing(options, settings.method or method, paper)
    probed, took = interface.probed.episodes, clock.seconds - before
    phases, watched = [Phase("probing", probed, took)] if probed else [], list[Visits]()
    if settings.begun:
        phases.insert(0, Phase("starts", int(settings.begun.get("episodes", 0)), before))
    if probed:
        clock.say(f"probing: {probed} episodes of random actions, {took:.1f} s")
    tests = tuple(TEST_SEEDS if options.test_seeds is None else options.test_seeds)
    how = interface.environment, options.workers
    runner = stack.enter_context(open_runner(*how, search_seeds(plan.seed), scoring))
    plain = None if scoring is None else stack.enter_context(open_runner(*how))
    prices = prices_of(options.feature_prices, interface.feature_names).tolist()
    maker = None
    if isinstance(settings.method, Practising):
        _require_plain(settings, scoring is not None or any(prices))
        where = search_seeds(plan.seed), options.episodes, stack, settings.method.kind
        maker = maker_in(interface, runner, *where)
        space = space_of(settings.method, interface)
    trimmed = not paper if options.trim is None else options.trim

    def reserve() -> float:
        each = options.episodes, len(tests), trimmed, prepared
        return 0.0 if clock.limit is None else seconds_after(clock, runner, *each)

    def left() -> float:
        return clock.left - reserve()

    task = tree_task(
        interface, runner, space, options.episodes, race, plan.seed, options.common_episodes, left, prices
    )
    highest = highest_return(interface) if scoring is None and not any(prices) else None
    if highest is not None:
        task = replace(task, settled=partial(_settled, highest))
    objective = task.batch_objective
    assert isinstance(objective, TreeObjective)
    clock.say(f"search: {plan.budget} objective calls of up to {options.episodes} episodes")
    prepared = clock.seconds
    phases.append(Phase("set-up", 0, prepared - sum(phase.seconds for phase in phases)))

    def finish(result: Result, folder: Path | None) -> PolicySearch:
        visited = sum(own.episodes for own in watched), sum(own.seconds for own in watched)
        spent = result.seconds - prepared - visited[1]
        parts = [*phases, *([Phase("visits", *visited)] if watched else [])]
        parts.append(Phase("search", int(result.cost or 0) - visited[0], spent))
        write = partial(
            _write, folder=folder, clock=clock, runner=runner, vocabulary=space.vocabulary.declared
        )
        after = tests, plan.seed, trimmed, clock, parts, _oddities(result), write
        return choose_and_test(objective, result, *after, settings.begun, plain)

    focus = None
    if any(interface.hints):

        def focus(space: Space) -> Visits:
            watched.append(Visits(space, interface, interface.hints, plan.seed, left))
            return watched[-1]

    return Prepared(
        task,
        plan,
        method,
        finish,
        lambda: _introduction(interface),
        focus=focus,
        maker=maker,
        reserve=reserve,
        callback=_Equal(clock),
        options=options,
    )


def _require_plain(settings: RunSettings, scored: bool) -> None:
    """Refuse what a method that learns inside episodes cannot heed."""
    options, method = settings.task, f"method.kind {settings.method.kind!r}"  # type: ignore[union-attr]
    for key, given in (
        ("discount, score and feature_prices", scored),
        ("common_episodes", options.common_episodes),
        ("start_from and teacher", bool(settings.initial_designs)),
    ):
        if given:
            raise SettingsError(
                f"task: {key} are not for {method}, which learns from rewards alone; leave out"
            )


def _settled(highest: float, best: Sequence[Scored]) -> str:
    """Why no better tree can come: enough episodes, all of trees that are as good as can be."""
    perfect = [scored for scored in best if scored.reward >= highest]
    episodes = int(sum(scored.weight for scored in perfect))
    if len(perfect) < _PERFECT_TREES or episodes < _PERFECT_EPISODES:
        return ""
    return f"all {episodes} episodes of {len(perfect)} trees had {highest:g}, the highest return there is"


class _Equal:
    """Says once, at the first batch, that all its trees have the same mean return."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._first = clock, True

    def batch(self, row: HistoryRow, ranking: Ranking) -> None:
        """See `Callback.batch`."""
        if self._first and row.calls > 1 and _is_level(row):
            more = "nothing tells trees apart until one of them differs"
            self._clock.say(f"all returns are equal so far: {row.batch_best:g}; {more}")
        self._first = False


def _is_level(row: HistoryRow) -> bool:
    """Whether all designs of a batch had the same reward."""
    best, mean = row.batch_best, row.mean
    return best is not None and mean is not None and math.isclose(best, mean, rel_tol=1e-12, abs_tol=1e-12)


def _oddities(result: Result) -> list[str]:
    """What was odd in a search as a whole."""
    rows = [row for row in result.history if row.batch_best is not None]
    level = len({row.batch_best for row in rows}) == 1 and result.calls > 1 and all(map(_is_level, rows))
    return [f"all trees of the search had the same mean return, {rows[0].batch_best:g}"] if level else []


def _has_none(value: Any) -> bool:
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return value is None or any(map(_has_none, inside))


def _racing(options: PolicyOptions, method: MethodSettings, paper: bool) -> Racing | None:
    if paper if options.racing is None else not options.racing:
        return None
    share = method.learner.risk_factor if isinstance(method, DisCoSettings) else Racing().share
    return replace(_COMMON_RACES if options.common_episodes else Racing(), share=share)


def _write(
    found: PolicySearch, folder: Path | None, clock: Clock, runner: TimedRunner, vocabulary: str
) -> None:
    """policy.json, front.json, tree.svg, tree.png, and at last summary.json: where it is, all the others are.

    It comes twice, before the test and with it. Before the test the summary has no "calls", by which the run would
    be over, and pictures have no shares of steps.
    """
    if folder is None:
        return
    require_run_folder(folder)
    found.policy.save(folder / POLICY)
    if found.trimming is not None:
        found.trimming.other.save(folder / ("untrimmed.json" if found.trimming.holds else "trimmed.json"))
    front = [_point(own, own.policy == found.policy) for own in found.front]
    write_atomically(folder / _FRONT, json.dumps({"trees": front}, indent=1, allow_nan=False) + "\n")
    environment, seeds = found.interface.environment, found.test_seeds
    shares, score = None, "not tested yet"
    if found.is_tested:
        score = "no episode of the test succeeded"
    if seeds:
        # Of the episodes of the score, or some where they take long: else rare branches would seem idle.
        count = len(seeds) if simulator_for(environment) else _WALKED
        if math.isfinite(clock.left):  # these run one by one
            count = min(count, int(_SHARING * clock.left / (runner.pace * runner.workers)))
        shares = found.policy.node_shares(environment, seeds[:count]) if count > 0 else None
        score = f"{found.test_mean:.2f} ± {found.test_error:.2f} over {len(seeds)} seeds"
    title = f"{environment}: {score}, {len(found.policy)} nodes"
    for name in (_PICTURE, "tree.png"):
        found.policy.draw(folder / name, shares, title)
    # A run that was killed early, or a file that someone edited, may have no command.
    command = (read_object(folder / ENVIRONMENT) or {}).get("command")
    words = shlex.join(map(str, command)) if isinstance(command, list) else ""
    calls = found.calls if found.is_tested else None
    figures = {**found.summary(), "calls": calls, "command": words, "vocabulary": vocabulary}
    summary = json.dumps(figures, indent=1, allow_nan=False)
    write_atomically(folder / _SUMMARY, summary + "\n")


def _point(own: Finalist, chosen: bool) -> dict[str, Any]:
    """A tree of the front, for JSON."""
    error = own.error if math.isfinite(own.error) else None
    mean = own.mean if math.isfinite(own.mean) else None
    figures = {"mean": mean, "error": error, "episodes": own.episodes, "price": own.price}
    policy = json.loads(own.policy.to_json())
    return {"nodes": len(own.policy), **figures, "chosen": chosen, "policy": policy}


def _read(folder: Path) -> dict[str, Any] | None:
    """What `_write` has written: the tree, the figures and the picture, each None if it is not there."""
    try:
        picture = read_plain(folder / _PICTURE, _LARGEST_PICTURE).decode("utf-8")
    except (OSError, ValueError):
        picture = None
    policy, summary = read_object(folder / POLICY), read_object(folder / _SUMMARY)
    front = (read_object(folder / _FRONT) or {}).get("trees")
    found = {"policy": policy, "summary": summary, "picture": picture, "front": front}
    return None if policy is summary is None else found


def _introduction(interface: Interface) -> list[Any]:
    from rich.table import Table

    table = Table("feature", "thresholds from", "to", "because", title=str(interface.environment))
    rows = zip(interface.feature_names, interface.ranges, interface.sources, strict=True)
    for name, limits, source in rows:
        if limits is None:
            table.add_row(name, "-", "-", "never changes, left out")
        else:
            table.add_row(name, f"{limits[0]:g}", f"{limits[1]:g}", source)
    numbers = interface.numbers
    words = [word for _, word in interface.action_names]
    if numbers is not None:
        words = [f"{own} from {low:g} to {high:g}" for own, low, high in
                 zip(numbers.names, numbers.low, numbers.high, strict=True)]  # fmt: skip
    return [table, "actions: " + ", ".join(words)]


def _lines(outcome: Outcome, width: int) -> list[Any]:
    found: PolicySearch = outcome.found
    best = found.finalists[0]
    failed = f", {found.search.failure_count} failed" if found.search.failure_count else ""
    spent = "; ".join(f"{own.name} {own.episodes} in {own.seconds:.1f} s" for own in found.phases)
    return [
        str(found.policy.export("text")),
        f"test mean {found.test_mean:.2f}, standard error {found.test_error:.2f}, over {len(found.test_seeds)} "
        f"seeds that the search never saw; {len(found.policy)} nodes",
        *(
            [f"test score {found.test_scores.mean():.2f}, over the same seeds"]
            if len(found.test_scores)
            else []
        ),
        f"chosen from {len(found.finalists)} finalists by {best.mean:.2f} on {best.episodes} fresh episodes each "
        f"(in the search it had {best.search_reward:.2f})",
        *([found.trimming.sentence] if found.trimming else []),
        *_beginning(found.begun),
        *found.notes,
        f"{found.calls} objective calls{failed}, {found.episodes} episodes and {found.validation_episodes} "
        f"for the choice, {found.seconds:.1f} s: {found.search.sentence}",
        f"episodes and seconds: {spent}",
    ]


def _beginning(begun: Mapping[str, Any]) -> list[str]:
    """What the search began with, and what that took."""
    if not begun:
        return []
    sources = [*begun.get("start_from", ()), *([f"teacher {begun['teacher']}"] if "teacher" in begun else [])]
    taken = f"; {begun['episodes']} episodes before the search" if begun.get("episodes") else ""
    return [f"began with {begun.get('designs', 0)} trees from {', '.join(map(str, sources))}{taken}"]


def _data(outcome: Outcome) -> dict[str, Any]:
    found: PolicySearch = outcome.found
    return {**found.summary(), "tree": found.policy.to_dict()}


_PICTURES = 20  # trees drawn for one table: all of a hundred would be megabytes


def _shown(ending: Any, designs: Sequence[Design], history: Sequence[Any]) -> list[Shown]:
    """Trees as text and pictures.

    Before the summary is there, features and actions have the order of the library, where the history tells it,
    and trees with sums or numbers are shown as designs.
    """
    vocabulary = ((ending or {}).get("summary") or {}).get("vocabulary")
    known = next((row.tokens for row in history if row.tokens), None) or {}
    names = tuple(dict.fromkeys([*known, *(name for design in designs for name in design.tokens)]))
    declared = vocabulary if isinstance(vocabulary, str) else ""
    return [_tree(design, declared, names, number < _PICTURES) for number, design in enumerate(designs)]


@lru_cache(maxsize=512)
def _tree(design: Design, declared: str, tokens: tuple[str, ...], picture: bool) -> Shown:
    try:
        vocabulary, names = Vocabulary.declared_as(declared) if declared else Vocabulary.of_names(tokens)
        read = TreePolicy(vocabulary.nodes(design), numbers=names.numbers)
        policy = TreePolicy.from_dict({**read.header(), "tree": read.to_dict()}).with_names(None, *names)
    except (
        DiscodsoError,
        KeyError,
        TypeError,
        ValueError,
    ):  # no tree of this environment, too deep, or edited
        return Shown(str(design))
    return Shown(str(policy.export("text")), svg=policy._repr_svg_() if picture else None)


def _page(ending: Any) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    tree, summary = (ending or {}).get("policy"), (ending or {}).get("summary") or {}
    if tree is not None:
        try:
            policy = TreePolicy.from_dict(dict(tree))
        except DiscodsoError:
            return {}
        svg = ending.get("picture") or policy._repr_svg_()
        found["best"] = {"kind": "policy", "text": str(policy.export("text")), "math": None, "svg": svg}
    mean, error = summary.get("test_mean"), summary.get("test_error")
    if isinstance(mean, (int, float)) and isinstance(error, (int, float)):
        found["score"] = f"{mean:.2f} ± {error:.2f} on unseen seeds"
    points = [point for tree in (ending or {}).get("front") or [] if (point := _drawn(tree)) is not None]
    if points:
        note = "Each point is a tree that is better than all smaller ones; the large one was chosen."
        own = {"x": "nodes", "y": "mean return", "log": False, "points": points, "note": note}
        found["front"] = {**own, "title": "Return and size"}
    return found


def _drawn(tree: Any) -> dict[str, Any] | None:
    """A tree of the front for a page; None if someone edited it."""
    try:
        policy = TreePolicy.from_dict(tree["policy"])
        mean, error, price = float(tree["mean"]), tree["error"], float(tree["price"])
        note = f"{mean:.2f}" + (f" ± {error:.2f}" if error is not None else "") + f", {len(policy)} nodes"
    except (DiscodsoError, AttributeError, LookupError, TypeError, ValueError):
        return None
    if price:
        note += f", {price:g} paid for its features"
    text, svg = str(policy.export("text")), policy._repr_svg_()
    shown = {"text": text, "math": None, "svg": svg, "note": note, "chosen": bool(tree.get("chosen"))}
    return {"x": len(policy), "y": mean - price, **shown}


_FIGURES = ("test_mean", "test_error", "nodes", "calls", "episodes", "validation_episodes")


def _summary(ending: Any) -> tuple[dict[str, Any] | None, str]:
    try:
        found = {key: ending["summary"][key] + 0 for key in _FIGURES}
    except (KeyError, TypeError):  # there is none, it has no test, or someone edited it
        untested = ending is not None and (ending.get("policy") or {}).get("tree") is not None
        return None, "policy.json has no test" if untested else ""
    score = f"test mean {found['test_mean']:.2f}, standard error {found['test_error']:.2f}"
    return found, f"policy.json after {found['calls']} calls: {found['nodes']} nodes, {score}"


def _title(task: Mapping[str, Any], ending: Any) -> str:
    summary = (ending or {}).get("summary") or {}
    known = summary.get("environment")
    name = task.get("environment") or (known.get("id") if isinstance(known, Mapping) else None)
    return f"A tree policy for {name or 'an environment'}"


KIND = Kind(
    options=PolicyOptions,
    prepare=_prepare,
    begin=begun,
    title=_title,
    told=True,
    template="""# A decision tree that acts in a Gymnasium environment.

[task]
kind = "policy"
environment = "CartPole-v1"   # an id, or module:Id-v0
# wrappers = ["FlattenObservation"]  # of gymnasium.wrappers, or module:Class; arguments follow as JSON
# feature_names = ["position", "velocity", "angle", "spin"]
# action_names = ["left", "right"]
episodes = 100             # N, for one objective call: its reward is their mean return
# max_nodes = 31           # decisions and leaves of the largest tree
# typical_nodes = 7        # begin with trees of about this size, 0 for any; by default as the preset has it
# workers = 1              # processes, or threads where the environment is compiled
# racing = true            # cut poor trees after few episodes; by default as the preset has it
# common_episodes = true   # all trees meet the same episodes instead of fresh ones
# start_from = ["policy.json", "folder of an earlier run"]
# teacher = "heuristic"    # whose actions the first trees imitate: a built-in one, or the path of an ONNX model
# trim = true              # at the end, cut out decisions that earn nothing; by default as the preset has it
# resolution = 0.01        # closest distance of thresholds on one path, as a share of their range
# test_seeds = [0, 1, 2]   # for the final score; 0 to 999 by default
# max_depth = 4            # decisions on the way to a leaf
# max_features = 3         # different features in a tree
# discount = 0.99          # of rewards for each step
# score = "module:function"   # of the rewards and infos of an episode, in place of the return
# probe_ranges = true      # thresholds where features lie in random episodes, instead of in declared bounds
# [task.arguments]         # of the environment
# [task.ranges]            # of thresholds, by feature
# angle = [-0.2, 0.2]
# [task.feature_prices]    # what a tree pays for looking at a feature
# velocity = 5.0
""",
    budget=BUDGET,
    target=500.0,
    top=100,  # all of them go to the choice
    executors="it has workers of its own; see task.workers",
    lines=_lines,
    data=_data,
    read=_read,
    last=_SUMMARY,
    summary=_summary,
    shown=_shown,
    page=_page,
)
