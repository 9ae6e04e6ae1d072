"""DisCo: the joint discrete-continuous method of the paper, driven by ask and tell.

    DisCo = Archive + Proposers + Screen + Scheduler + Learner

Algorithm 1 is one `ask(batch_size)` and one `tell`. A caller may tell designs in parts and in any order, and
designs that were never asked for: `tell` gathers until a batch is full, then makes one update from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require, require_integer, seed_sequence, settle_integers
from discodso.base.errors import DeclarationError
from discodso.disco.archive import Archive, Pool
from discodso.disco.method import Metrics, told_arrays
from discodso.disco.proposers.refinement import Refinement
from discodso.disco.proposers.variation import Variation
from discodso.disco.sampling import Redrawn, sample
from discodso.disco.scheduler import POLICY, Origins, Scheduler
from discodso.disco.screen import Screen
from discodso.disco.scripts import Scripts
from discodso.disco.settings import (
    ArchiveSettings,
    DrawSettings,
    LearnerSettings,
    NetworkSettings,
    RefinementSettings,
    RestartSettings,
    ScreenSettings,
    TaskRefinementSettings,
    VariationSettings,
)
from discodso.disco.uniform import UniformStepper
from discodso.space.design import Design, DesignBatch
from discodso.space.replay import replay
from discodso.space.space import Space
from discodso.space.state import State, batch_arrays, batch_of, generator_state, restore_generator

if TYPE_CHECKING:  # they bring torch, which a method without a network does without
    from discodso.disco.learner import Learner
    from discodso.disco.network import Policy

_SMALL = 250  # a budget for which batches are smaller still
_TINY = 100  # a budget for which the screen begins earlier
_ARCHIVED = ("variation", "refinement", "proposers", "draws.focus")  # parts that work on archived designs
# The best designs of all starts, with which a new one may begin.
_OVER_STARTS = ArchiveSettings(size=20, niche=1, niche_length=5)


@dataclass(frozen=True, slots=True)
class DisCoSettings:
    """The method: Archive + Proposers + Screen + Scheduler + Learner.

    Args:
        batch_size: N, designs for one update. Large budgets and cheap objectives can afford 1000, which costs
            less time for each design and more designs for each step of learning.
        network: the network that proposes designs, and its distributions; None to draw designs evenly.
        draws: how designs are drawn without a network.
        learner: how the network learns.
        archive: keeps the best designs; None for none.
        variation: varies archived designs.
        refinement: refines values of archived designs.
        screen: chooses among many proposals while few designs have been evaluated.
        task_refinement: lets the task refine the best of a batch.
        adaptive: share calls between the proposers by what each earned lately instead of by their shares; see
            `scheduler`.
        restarts: begin anew when stuck.
        proposers: further ones, each a class, or another function of the space, that gives a `Proposer`.
    """

    batch_size: int = 100
    network: NetworkSettings | None = field(default_factory=NetworkSettings)
    draws: DrawSettings = field(default_factory=DrawSettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    archive: ArchiveSettings | None = None
    variation: VariationSettings | None = None
    refinement: RefinementSettings | None = None
    screen: ScreenSettings | None = None
    task_refinement: TaskRefinementSettings | None = None
    adaptive: bool = False
    restarts: RestartSettings | None = None
    proposers: tuple[Callable[[Space], Any], ...] = ()

    IN_FILES: ClassVar[Mapping[str, Any]] = {"proposers": None}

    def __post_init__(self) -> None:
        settle_integers(self, {"batch_size": 1})
        for name, kind in (
            ("network", NetworkSettings),
            ("draws", DrawSettings),
            ("learner", LearnerSettings),
            ("archive", ArchiveSettings),
            ("variation", VariationSettings),
            ("refinement", RefinementSettings),
            ("task_refinement", TaskRefinementSettings),
            ("screen", ScreenSettings),
            ("restarts", RestartSettings),
        ):
            value, optional = getattr(self, name), name not in ("learner", "draws")
            good = isinstance(value, kind) or (optional and value is None)
            require(name, value, good, f"of type {kind.__name__}" + (", or None" if optional else ""))
        shares = sum(part.share for part in (self.variation, self.refinement) if part is not None)
        require("refinement.share", shares, shares <= 0.9, "at most 0.9 together with that of variation")
        good = isinstance(self.proposers, tuple) and all(map(callable, self.proposers))
        require("proposers", self.proposers, good, "a tuple of classes or functions")
        parts = (self.variation, self.refinement, self.proposers, self.draws.focus)
        for name, part in zip(_ARCHIVED, parts, strict=True):
            if part and self.archive is None:
                raise DeclarationError(f"{name} needs an archive; set archive, for example ArchiveSettings()")
        if self.draws.spread and self.network is not None:
            raise DeclarationError("draws.spread is for values that no network draws; set network=None")
        if self.network is None and self.learner != LearnerSettings():
            raise DeclarationError("learner needs a network; set network, for example NetworkSettings()")

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> DisCo:
        """Start the method on a space."""
        return DisCo(space, self, seed=seed)


class DisCo:
    """A method in the middle of a run: one start after the other, each with a network and an archive of its own.

    Args:
        space: what to search.
        settings: of the method; the default ones for the budget if not given. `DisCo(space, preset("paper"))` is
            the paper's method.
        budget: objective calls, which the default batch size follows.
        seed: decides the initial weights and all samples.
    """

    def __init__(
        self,
        space: Space,
        settings: DisCoSettings | None = None,
        *,
        budget: int | None = None,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        require("space", space, isinstance(space, Space), "a Space")
        if settings is None:
            settings = default_settings(budget=budget)
        elif budget is not None:
            raise DeclarationError("give DisCo settings or a budget, not both")
        require("settings", settings, isinstance(settings, DisCoSettings), "a DisCoSettings object")
        self.space = space
        self.settings = settings
        self.batch_size = settings.batch_size
        # With rechecking a design that comes again is told again, since that is how it joins the archive.
        self.redraws = settings.archive is not None and not settings.archive.recheck
        self._seed = seed_sequence(seed)
        recheck = 0.0 if settings.archive is None else settings.archive.recheck
        self._over_starts = Archive.begin(space, replace(_OVER_STARTS, recheck=recheck))
        self._begin(0)

    def _begin(self, restarts: int) -> None:
        self.restarts = restarts
        # The first start is the same search as one without restarts.
        key = (*self._seed.spawn_key, restarts) if restarts else self._seed.spawn_key
        own = np.random.SeedSequence(self._seed.entropy, spawn_key=key)
        self._start = _Start(self.space, self.settings, own)
        self._first = self._last_better = -np.inf  # of the first batch, and the last that counted as better
        self._calls = self._calls_since_better = 0
        self._waiting = Pool.empty(self.space).designs
        if restarts and restarts % 2 == 0:  # every second start goes on with the best designs of all before
            if self._over_starts.recheck:
                self._waiting = self._over_starts.earlier.designs
            else:
                self._start.tell(self._over_starts.earlier)  # known exactly: no calls for them

    @property
    def policy(self) -> Policy | None:
        """The network, None if there is none."""
        return None if self._start.learner is None else self._start.learner.policy

    @property
    def updates(self) -> int:
        """Updates of the network in this start."""
        return 0 if self._start.learner is None else self._start.learner.updates

    @property
    def archive(self) -> Archive | None:
        """The best designs of this start, None if none are kept."""
        return self._start.archive

    @property
    def shares(self) -> dict[str, float]:
        """Of the next batch, by who proposes."""
        return self._start.scheduler.named_shares()

    @property
    def refine_calls(self) -> int:
        """Objective calls for each design that the task refines."""
        return 0 if self.settings.task_refinement is None else self.settings.task_refinement.calls

    def ask(self, size: int | None = None) -> DesignBatch:
        """Designs to evaluate, a sequence of `Design`: drawn from the network, and from the other proposers."""
        count = self.batch_size if size is None else size
        require_integer("size", count, 1)
        first, self._waiting = self._waiting.select(slice(count)), self._waiting.select(slice(count, None))
        if len(first) == count:
            return first
        asked = self._start.ask(count - len(first))
        return DesignBatch.concatenate((first, asked)) if len(first) else asked

    def to_refine(self, designs: DesignBatch, rewards: Floats) -> Ints:
        """The best designs with values, one for each skeleton; see `Refining`."""
        wanted = self.settings.task_refinement
        most = 0 if wanted is None else round(wanted.share * len(designs))
        rows: list[int] = []
        carries = np.flatnonzero(self.space.library.numeric.any(axis=1))
        valued = np.asarray(np.isin(designs.tokens, carries).any(axis=1))
        skeletons, seen = designs.skeletons(), set()
        for row in np.argsort(-rewards, kind="stable").tolist():
            if len(rows) >= most or not np.isfinite(rewards[row]):
                break
            if valued[row] and skeletons[row] not in seen:
                seen.add(skeletons[row])
                rows.append(row)
        return np.array(rows, np.int64)

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Take rewards of designs; makes an update once `batch_size` designs have been told.

        Designs need not have been asked for; those that break a rule of the space are refused. A reward that is
        not finite marks a failed design: it counts as the worst and never teaches. `weights` says how much
        evidence each reward stands on, such as episodes; they are equal if it is not given. Returns what the
        update did, or None if it still waits for more designs.
        """
        batch, told = told_arrays(self.space, designs, rewards)
        if not len(batch):
            return None
        if batch.origin is not self.space:
            replay(self.space, batch)  # refuses designs that do not belong to the space
            batch = replace(batch, origin=self.space)
        evidence = np.ones(len(told)) if weights is None else np.array(weights, dtype=np.float64)
        if evidence.shape != told.shape or not (evidence > 0).all():
            raise DeclarationError("tell needs one positive weight for each design")
        pool = Pool(batch, told, evidence)
        metrics = self._start.tell(pool)
        return metrics if self.settings.restarts is None else self._after(pool, metrics)

    # ------------------------------------------------------------------------------------------ restarts

    def _after(self, pool: Pool, metrics: Metrics | None) -> Metrics | None:
        """Take in what was told, and begin anew if no better design has come for long."""
        self._over_starts = self._over_starts.add(pool, _OVER_STARTS.size)
        own = self._over_starts.members
        best = float(own.rewards[0]) if len(own) else -np.inf
        self._note(best, len(pool))
        if not self._is_stuck():
            return metrics
        self._over_starts = self._over_starts.begin_anew()
        warned = self._start.redrawn.warned
        self._begin(self.restarts + 1)
        self._start.redrawn = Redrawn(warned)  # once in a run is enough
        return replace(metrics or Metrics(), restarted=True)

    def _note(self, best: float, calls: int) -> None:
        """Take in the best reward of this start after so many more calls."""
        assert self.settings.restarts is not None
        self._calls += calls
        self._calls_since_better += calls
        if not np.isfinite(self._first):
            self._first = best
        gained = self._last_better - self._first if np.isfinite(self._last_better) else 0.0
        if best > self._last_better + self.settings.restarts.least_gain * gained:
            self._last_better, self._calls_since_better = best, 0

    def _is_stuck(self) -> bool:
        """Whether it is time to begin anew."""
        rule = self.settings.restarts
        assert rule is not None
        until_best = self._calls - self._calls_since_better
        return self._calls_since_better >= max(rule.batches * self.batch_size, rule.patience * until_best)

    def state(self) -> State:
        """That of the start, the best designs, and how long ago the last better one came."""
        numbers = {"first": self._first, "last_better": self._last_better}
        data = {
            "restarts": self.restarts,
            "calls": self._calls,
            "calls_since_better": self._calls_since_better,
            **{key: value if np.isfinite(value) else None for key, value in numbers.items()},
        }
        return State.of_parts(
            {
                "restarts": State(data=data),
                "over starts": self._over_starts.state(),
                "waiting": State(batch_arrays(self._waiting)),
                "start": self._start.state(),
            }
        )

    def restore(self, state: State) -> None:
        """Go on from a state of a method with the same space and settings."""
        data = state.part("restarts").data
        self._begin(int(data["restarts"]))
        self._start.restore(state.part("start"))
        self._over_starts = self._over_starts.restored(self.space, state.part("over starts"))
        self._waiting = batch_of(self.space, state.part("waiting").arrays)
        self._first, self._last_better = (
            -np.inf if data[key] is None else float(data[key]) for key in ("first", "last_better")
        )
        self._calls, self._calls_since_better = int(data["calls"]), int(data["calls_since_better"])


class _Start:
    """One start of the method: learner, archive, proposers, scheduler, and the designs that wait for a batch."""

    def __init__(self, space: Space, settings: DisCoSettings, seed: np.random.SeedSequence) -> None:
        weights, samples = seed.spawn(2)
        self._space = space
        self._settings = settings
        self._rng = np.random.default_rng(samples)
        self.learner: Learner | None = None
        if settings.network is not None:
            from discodso.disco.learner import Learner

            self.learner = Learner(space, settings.learner, settings.network, np.random.default_rng(weights))
        self.screen = None if settings.screen is None else Screen(space, settings.screen)
        draws = settings.draws
        self.focus = None if draws.focus is None else draws.focus(space)
        self._uniform = UniformStepper(space, even_lengths=True, spread=draws.spread, focus=self.focus)
        self.archive = None if settings.archive is None else Archive.begin(space, settings.archive)
        built: list[Any] = []
        if settings.variation is not None:
            built.append(Variation(space, settings.variation, self.focus))
        if settings.refinement is not None:
            built.append(Refinement(space, settings.refinement))
        built += [make(space) for make in settings.proposers]
        self._proposers = built
        self.scheduler = Scheduler.of(built, settings.adaptive, "policy" if self.learner else "random")
        self._remembers = settings.adaptive or any(not isinstance(own, Variation) for own in built)
        self._origins = Origins(10 * settings.batch_size)
        self._pool = Pool.empty(space)
        self._sources: Ints = np.empty(0, np.int64)  # of the designs in the pool
        self.redrawn = Redrawn()

    def ask(self, count: int) -> DesignBatch:
        """Designs to evaluate again, those of the proposers, and what is left over from the network."""
        archive, rng, parts = self.archive, self._rng, list[DesignBatch]()
        scripts: list[tuple[int, Scripts, int]] = []  # from whom, and how many of them are wanted
        each = 1 if self.screen is None else self.screen.candidates
        if archive is not None:
            assert self._settings.archive is not None
            parts.append(archive.to_recheck(int(self._settings.archive.recheck * count)))
            count -= len(parts[0])
            wanted = self.scheduler.counts(count)
            # Designs first: what they leave open goes to those that only write scripts.
            for source, proposer in self._in_order():
                asked = min(wanted[source], count)
                many = asked * each if getattr(proposer, "screened", False) else asked
                proposed = proposer.propose(archive, many, rng) if asked else None
                self.redrawn.add(getattr(proposer, "refused", 0) if asked else 0)
                if proposed is None:
                    continue
                if len(proposed) > many:
                    name = self.scheduler.names[source]
                    raise DeclarationError(
                        f"{name} proposed {len(proposed)} designs where {many} were wanted"
                    )
                taken = min(asked, len(proposed))
                count -= taken
                if isinstance(proposed, Scripts):
                    scripts.append((source, proposed, taken))
                else:
                    parts.append(self._passed(self._checked(proposed), taken, source))
                    if wanted[1] and source != 1 and self._settings.variation is not None:
                        wanted[1] += asked - taken
        if count or scripts:
            parts += self._drawn(scripts, count, each)
        parts = [part for part in parts if len(part)]
        return parts[0] if len(parts) == 1 else DesignBatch.concatenate(parts)

    def _drawn(self, scripts: Sequence[tuple[int, Scripts, int]], count: int, each: int) -> list[DesignBatch]:
        """What is drawn after scripts, and freely, `each` times as many as are wanted."""
        own = [script for _, script, _ in scripts]
        joined = Scripts.joined(self._space, own, count * each) if scripts else None
        total = count * each + sum(map(len, own))
        if self.learner is None:
            found = sample(self._space, self._uniform, total, self._rng, scripts=joined)
        else:
            found = self.learner.sample(total, self._rng, joined)
        drawn, parts, at = self.redrawn.note(found), list[DesignBatch](), 0
        for source, size, taken in (*((k, len(s), n) for k, s, n in scripts), (POLICY, count * each, count)):
            parts.append(self._passed(drawn.select(slice(at, at + size)), taken, source))
            at += size
        return parts

    def _passed(self, designs: DesignBatch, count: int, source: int) -> DesignBatch:
        """Those that the screen lets pass, or all if there are not more; it is remembered who proposed them."""
        if len(designs) > count:
            assert self.screen is not None
            designs = designs.select(self.screen.choose(designs, count, self._rng))
        self._note(designs, source)
        return designs

    def _in_order(self) -> list[tuple[int, Any]]:
        """Proposers with their numbers; variation comes last, since it takes what others leave."""
        numbered = list(enumerate(self._proposers, start=1))
        return sorted(numbered, key=lambda pair: isinstance(pair[1], Variation))

    def _checked(self, proposed: Any) -> DesignBatch:
        designs = proposed if isinstance(proposed, DesignBatch) else self._space.encode(list(proposed))
        if designs.origin is not self._space and len(designs):
            replay(self._space, designs)
            designs = replace(designs, origin=self._space)
        return designs

    def _note(self, designs: DesignBatch, source: int) -> None:
        """Remember who proposed these designs, if anything depends on it."""
        if self._remembers:
            self._origins.note(designs, source)

    def tell(self, pool: Pool) -> Metrics | None:
        """Take designs; one update for each full batch."""
        self._pool = self._pool.join(pool)
        self._sources = np.concatenate((self._sources, self._origins.take(pool.designs)))
        if len(self._pool) < self._settings.batch_size:
            return None
        told, self._pool = self._pool, Pool.empty(self._space)
        if self.screen is not None:
            self.screen.add(told)
        sources, self._sources = self._sources, self._sources[:0]
        if not np.isfinite(told.rewards).any():
            return Metrics(kept=0)
        if self.archive is not None:
            assert self._settings.archive is not None
            before = self.archive
            places = int(self._settings.archive.recheck * self._settings.batch_size)
            self.archive = before.add(told, places)
            self.scheduler = self.scheduler.after(sources, self.archive.entered(before, told))
            for source, proposer in enumerate(self._proposers, start=1):
                proposer.learn(told.select(sources == source), self.archive)
        learned = Metrics() if self.learner is None else self.learner.learn(told)
        cost = 0.0 if self.focus is None or self.archive is None else self.focus.learn(self.archive)
        metrics = replace(learned, redrawn=self.redrawn.take(), cost=cost)
        return replace(metrics, shares=self.scheduler.named_shares()) if self._proposers else metrics

    def state(self) -> State:
        """Learner, archive, proposers, scheduler, waiting designs and random stream."""
        parts = {
            "pool": State(self._pool.to_arrays()),
            "sources": State({"sources": self._sources.copy()}),
            "origins": State(self._origins.to_arrays()),
            "scheduler": State(data=self.scheduler.to_dict()),
            "random": State(data=generator_state(self._rng)),
            "redrawn": self.redrawn.state(),
        }
        if self.learner is not None:
            parts["learner"] = self.learner.state()
        if self.screen is not None:
            parts["screen"] = self.screen.state()
        if self.archive is not None:
            parts["archive"] = self.archive.state()
        if self.focus is not None:
            parts["focus"] = self.focus.state()
        parts |= {f"proposer {k}": proposer.state() for k, proposer in enumerate(self._proposers)}
        return State.of_parts(parts)

    def restore(self, state: State) -> None:
        """Go on from a state."""
        if self.learner is not None:
            self.learner.restore(state.part("learner"))
        if self.screen is not None:
            self.screen.restore(state.part("screen"))
        self._pool = Pool.of_arrays(self._space, state.part("pool").arrays)
        self._sources = state.part("sources").arrays["sources"].astype(np.int64)
        if len(self._sources) != len(self._pool):
            raise ValueError("sources that are not as many as designs")
        self._origins.restore(state.part("origins").arrays)
        self.redrawn.restore(state.part("redrawn"))
        self.scheduler = self.scheduler.with_dict(state.part("scheduler").data)
        if self.archive is not None:
            self.archive = self.archive.restored(self._space, state.part("archive"))
        if self.focus is not None:
            self.focus.restore(state.part("focus"))
        for k, proposer in enumerate(self._proposers):
            proposer.restore(state.part(f"proposer {k}"))
        restore_generator(self._rng, state.part("random").data)


def default_settings(
    *, noisy: bool = False, refines: bool = False, budget: int | None = None
) -> DisCoSettings:
    """The default method: an archive of the best designs, varied and refined, a screen while calls are few, and
    restarts when it is stuck.

    Args:
        noisy: whether rewards are noisy; good designs are then evaluated again before they count.
        refines: whether the task has `refine`, which serves better than refining from rewards alone.
        budget: objective calls; batches are smaller for small ones, so that it learns often enough.
    """
    if budget is not None:
        require_integer("budget", budget, 1)
    if refines:
        return DisCoSettings(
            batch_size=batch_for(budget, 500, batches=100),
            learner=LearnerSettings(learning_rate=0.003),
            archive=ArchiveSettings(size=100, niche=1),
            variation=VariationSettings(share=0.7),
            task_refinement=TaskRefinementSettings(share=0.5),
        )
    return DisCoSettings(
        batch_size=batch_for(budget, least=10 if budget is not None and budget <= _SMALL else 20),
        network=None,
        archive=ArchiveSettings(size=20, niche=2, recheck=0.2 if noisy else 0.0),
        variation=VariationSettings(single=0.0 if noisy else 0.5),
        refinement=RefinementSettings(),
        screen=ScreenSettings(first=20) if budget is not None and budget <= _TINY else ScreenSettings(),
        adaptive=True,
        restarts=RestartSettings(),
    )


def batch_for(budget: int | None, most: int = 100, batches: int = 200, least: int = 20) -> int:
    """Designs for one update: so many that a budget has so many updates, but not too few."""
    return most if budget is None else max(least, min(most, budget // batches))
