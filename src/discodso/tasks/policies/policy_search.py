"""From an environment to a policy that people can read: search, choose on fresh seeds, test on unseen ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from discodso.base.checks import require, require_integer, require_number, require_one_of
from discodso.base.errors import DeclarationError, SettingsError
from discodso.baselines.random_search import RandomSettings, UniformProposer
from discodso.disco.disco import DisCoSettings
from discodso.disco.method import MethodSettings
from discodso.disco.network import PolicySettings
from discodso.disco.presets import batch_for
from discodso.disco.proposers.variation import unchanged
from discodso.disco.restarts import RestartSettings
from discodso.disco.sampling import sample
from discodso.run.folder import SETTINGS, designs_of, read_settings
from discodso.run.plan import Limits, Plan
from discodso.run.result import Result
from discodso.run.search import continue_search, method_record, start_search
from discodso.run.settings import ExecutorTable, PolicyTable, RacingTable, RunSettings
from discodso.space.design import Design
from discodso.space.space import Space
from discodso.tasks.policies.environments import Interface, as_environment, describe
from discodso.tasks.policies.episodes import open_runner
from discodso.tasks.policies.objective import TreeObjective
from discodso.tasks.policies.policy_choice import PolicySearch, choose_and_test
from discodso.tasks.policies.racing import Racing
from discodso.tasks.policies.tree_space import (
    EPISODES,
    MAX_NODES,
    RESOLUTION,
    search_seeds,
    tree_space,
    tree_task,
)

TEST_SEEDS = range(1000)
PRESETS = ("tuned", "paper")
# Over common episodes means differ by less than their errors would allow, and the best of the run draw a line.
_COMMON_RACES = Racing(margin=0.3, places=10, slack=0.0, alike=64)
# A search that may begin anew can afford trees that are not the best yet: other kinds of them survive.
_PATIENT_RACES = replace(_COMMON_RACES, share=0.2, places=50, slack=1.0)
_LEAST_GAIN = 0.005  # of what a start has gained: less does not keep it from beginning anew
TYPICAL_NODES = 13  # the tuned preset prefers trees of about this size, else most runs end with three nodes


def paper_settings() -> DisCoSettings:
    """The paper's settings; thresholds begin around the middle of their ranges, which the paper leaves open."""
    return DisCoSettings(policy=PolicySettings(shift=0.5))


def tuned_settings(common_episodes: bool = False, calls: int | None = None) -> DisCoSettings:
    """What measured best on tree tasks; docs/policies.md has the figures.

    Thresholds begin near the middle of their range and are drawn within a tenth of it; the means are emitted in
    that unit, because otherwise their gradients drown those of the tokens. A learned scale closes in too soon, on
    trees that are easy to find. The best 50 trees, no more than ten with the same first three nodes, are imitated
    three steps for each batch. Three designs of five are variations of them; where episodes are fresh, one of five
    is one of them, and less than 20,000 calls have smaller batches, so that there are 200 of them.
    """
    return DisCoSettings(
        batch_size=batch_for(None if common_episodes else calls),
        learning_rate=0.005,
        risk_factor=0.1,
        entropy_coefficient=0.1,
        queue_size=50,
        queue_weight=0.3,
        queue_niche=10,
        queue_niche_length=3,
        queue_steps=3,
        queue_recheck=0.0 if common_episodes else 0.2,
        queue_unequal=common_episodes,
        variation=0.6,
        policy=PolicySettings(scale=0.1, shift=0.5, mean_scale=0.1),
    )


def search_policy(
    environment: Any,
    *,
    calls: int = 10_000,
    episodes: int = EPISODES,
    seed: int = 0,
    max_nodes: int = MAX_NODES,
    typical_nodes: int | None = None,
    workers: int = 1,
    preset: str = "tuned",
    method: MethodSettings | None = None,
    racing: Racing | bool | None = None,
    common_episodes: bool = False,
    restart_after: int | None = None,
    start_from: Sequence[str | Path] = (),
    trim: bool | None = None,
    arguments: Mapping[str, Any] | None = None,
    ranges: Mapping[str, Sequence[float]] | None = None,
    probe_ranges: bool = False,
    resolution: float = RESOLUTION,
    target: float | None = None,
    time_limit: float | None = None,
    test_seeds: Sequence[int] = TEST_SEEDS,
    callback: Any = None,
    out: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
) -> PolicySearch:
    """Search for a decision tree that acts well in a Gymnasium environment.

    Args:
        environment: id, such as "CartPole-v1".
        calls: objective calls, each the mean return of a tree over fresh episodes.
        episodes: N, episodes for one call.
        seed: the same seed gives the same policy, whatever the number of workers.
        max_nodes: decisions and leaves of the largest tree.
        typical_nodes: begin with trees of about this size, a soft preference; 0 for none. By default as the preset
            has it: some for "tuned", none for "paper".
        workers: processes, or threads where the environment has a compiled simulator.
        preset: "tuned" for what measured best, "paper" for the paper's settings and protocol.
        method: settings of the method in place of the preset's.
        racing: cut poor designs after few episodes; True, False, or how. By default as the preset has it: on for
            "tuned", off for "paper".
        common_episodes: all trees meet the same N episodes, drawn once for the run, instead of fresh ones. That
            compares trees far better where returns are noisy, but the best fit those episodes a little: use many.
        restart_after: after so many calls without a tree that is better by half a percent of what this start has
            gained, go on with a fresh network, by turns from nothing and with the best trees of different
            structure so far, evaluated anew; None for never.
        start_from: folders of earlier runs of this environment; their best trees are evaluated first, and learned
            from. A few short searches with few episodes find where to look, one with many then looks closely.
        trim: whether decisions of the winner that earn nothing are cut out at the end, on fresh episodes; by
            default as the preset has it: on for "tuned", off for "paper".
        arguments: of the environment, for `gymnasium.make`.
        ranges: (low, high) of thresholds by the name or number of a feature, in place of the found ones.
        probe_ranges: let thresholds of all others lie where features lie in episodes of random actions (98 % of
            what they show), instead of in declared bounds, which may be far wider.
        resolution: h, closest distance of thresholds on one path, as a share of the range.
        target: stop when a mean over N episodes reaches this.
        time_limit: seconds for the search.
        test_seeds: for the final score; not those from 2^29 on, which search and choice use.
        callback: watches the search; see `search`.
        out: folder for the run, which must be new or empty; at the end it has the policy and its picture as well.
            `resume_policy` goes on with it.
        checkpoint_seconds: between checkpoints in that folder; there is one at the end in any case.

    Ctrl-C ends the search; what was found until then is still chosen from and tested.
    """
    require_one_of("preset", preset, PRESETS)
    require("trim", trim, trim is None or isinstance(trim, bool), "True or False")
    require("racing", racing, racing is None or isinstance(racing, (bool, Racing)), "True, False or a Racing")
    for key, value, least in (
        ("calls", calls, 1),
        ("episodes", episodes, 2),
        ("seed", seed, 0),
        ("max_nodes", max_nodes, 3),
        ("workers", workers, 1),
    ):
        require_integer(key, value, least)
    if restart_after is not None:
        require_integer("restart_after", restart_after, 1)
    if typical_nodes is not None:
        _require_typical(typical_nodes)
    if time_limit is not None:
        require_number("time_limit", time_limit, above=0)
    tests = [int(test) for test in test_seeds]
    require("test_seeds", test_seeds, len(tests) >= 2, "at least two seeds")
    given = as_environment(environment, arguments)
    table = PolicyTable.model_construct(
        environment=given.id,
        arguments=dict(given.arguments),
        ranges={str(name): tuple(ends) for name, ends in (ranges or {}).items()},
        probe_ranges=bool(probe_ranges),
        episodes=int(episodes),
        max_nodes=int(max_nodes),
        typical_nodes=None if typical_nodes is None else int(typical_nodes),
        resolution=resolution,
        preset=preset,
        racing=RacingTable(**asdict(racing)) if isinstance(racing, Racing) else racing,
        common_episodes=bool(common_episodes),
        restart_after=None if restart_after is None else int(restart_after),
        trim=trim,
        workers=int(workers),
        test_seeds=None if tests == list(TEST_SEEDS) else tests,
    )
    limits = Limits(int(calls), target, time_limit=time_limit)
    plan = Plan(limits, int(seed), PolicyTable.default_top, checkpoint_seconds=checkpoint_seconds)
    own = method if isinstance(method, (DisCoSettings, RandomSettings)) else None
    require("start_from", start_from, not isinstance(start_from, (str, Path)), "a list of folders")
    settings = RunSettings(table, own, plan, ExecutorTable(), _earlier(start_from, table, plan.seed))
    return run_policy(settings, method=method, out=out, callback=callback)[0]


def run_policy(
    settings: RunSettings,
    *,
    method: MethodSettings | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    callback: Any = None,
) -> tuple[PolicySearch, str]:
    """Search, or go on with a search, then choose and test.

    Args:
        settings: whose task is a policy.
        method: in place of that of the settings, for one made in Python.
        out: folder of the run.
        resume: go on with the run in the folder.
        callback: watches the search.

    Also gives a sentence about a checkpoint that had to be passed over.
    """
    table, plan = settings.task, settings.plan
    if settings.executor.kind != "none":
        raise SettingsError(
            "executor.kind must be 'none' for a policy, which has workers of its own; see task.workers"
        )
    if plan.confirm_calls:
        raise SettingsError(
            "run.confirm_calls is not for a policy, whose winner is chosen on fresh episodes anyway"
        )
    if out is not None:
        _require_no_none(table.arguments)
    tuned = table.preset == "tuned"
    preset = tuned_settings(table.common_episodes, plan.limits.budget) if tuned else paper_settings()
    chosen = method or settings.method or preset
    searching: MethodSettings = chosen
    if table.restart_after is not None:
        recheck = getattr(chosen, "queue_recheck", 0) > 0
        searching = RestartSettings(chosen, table.restart_after, recheck=recheck, least_gain=_LEAST_GAIN)
    race = _racing(table, chosen)
    interface, space = _space(table, plan.seed)
    tests = tuple(TEST_SEEDS if table.test_seeds is None else table.test_seeds)
    found: list[PolicySearch] = []
    with open_runner(
        interface.environment, table.workers, search_seeds(plan.seed), interface.max_steps
    ) as runner:
        task = tree_task(
            interface, runner, space, table.episodes, race, plan.seed, common=table.common_episodes
        )
        objective = task.batch_objective
        assert isinstance(objective, TreeObjective)

        def finish(result: Result) -> None:
            trimmed = tuned if table.trim is None else table.trim
            found.append(choose_and_test(objective, result, tests, plan.seed, trimmed))
            if out is not None:
                from discodso.tasks.policies.policy_files import (
                    write,  # here, because pictures need Matplotlib
                )

                write(found[0], Path(out))

        record = {**settings.record(), "method": method_record(chosen)}
        first = settings.initial_designs
        if resume:
            assert out is not None
            _, note = continue_search(
                out,
                task,
                searching,
                plan,
                initial_designs=first,
                callback=callback,
                record=record,
                finish=finish,
            )
            return found[0], note
        start_search(
            task,
            searching,
            plan,
            initial_designs=first,
            callback=callback,
            out=out,
            record=record,
            finish=finish,
        )
    return found[0], ""


def _earlier(folders: Sequence[str | Path], table: PolicyTable, seed: int) -> tuple[Design, ...]:
    """The best trees of earlier runs, each once; thresholds outside the ranges of this run move to their ends."""
    known: dict[Design, None] = {}
    for folder in folders:
        known |= dict.fromkeys(designs_of(folder))
        task = read_settings(Path(folder) / SETTINGS).get("task", {})
        if task.get("environment") != table.environment:
            theirs = task.get("environment", "another task")
            raise DeclarationError(f"start_from: {folder} is a run of {theirs}, not of {table.environment}")
    if not known:
        return ()
    _, space = _space(table, seed)
    scripts = unchanged(space, space.encode(list(known)))
    fitted = sample(space, UniformProposer(space), len(known), np.random.default_rng(seed), scripts=scripts)
    return tuple(dict.fromkeys(fitted.designs))


def _space(table: PolicyTable, seed: int) -> tuple[Interface, Space]:
    """What trees see and do, and which there are."""
    given = as_environment(table.environment, table.arguments)
    interface = describe(given, table.ranges, seed, table.probe_ranges)
    tuned = table.preset == "tuned"
    typical = (TYPICAL_NODES if tuned else 0) if table.typical_nodes is None else table.typical_nodes
    _require_typical(typical)
    preferred = min(typical, table.max_nodes) or None
    return interface, tree_space(interface, table.max_nodes, table.resolution, tuned, preferred)


def _require_typical(nodes: Any) -> None:
    require_integer("typical_nodes", nodes, 0)
    require("typical_nodes", nodes, nodes == 0 or nodes >= 3, "3 or more, or 0 for no preference")


def _require_no_none(arguments: Mapping[str, Any]) -> None:
    for name, value in arguments.items():
        if value is None or (isinstance(value, (list, tuple)) and None in value):
            raise DeclarationError(
                f"arguments: {name} is or has None, which the settings in a run folder cannot hold; leave it out"
            )


def _racing(table: PolicyTable, method: MethodSettings) -> Racing | None:
    given = table.racing
    share = getattr(method, "risk_factor", Racing().share)
    if isinstance(given, RacingTable):
        own = given.model_dump()
        return Racing(**{**own, "share": share if given.share is None else given.share})
    wanted = table.preset == "tuned" if given is None else given
    race = replace(_COMMON_RACES if table.common_episodes else Racing(), share=share)
    if table.common_episodes and table.restart_after is not None:
        race = replace(_PATIENT_RACES, share=max(share, _PATIENT_RACES.share))
    return race if wanted else None
