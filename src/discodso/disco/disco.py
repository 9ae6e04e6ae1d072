"""DisCo: the joint discrete-continuous method of the paper, driven by ask and tell.

Algorithm 1 is one `ask(batch_size)` and one `tell`. A caller may tell designs in parts and in any order, and
designs that were never asked for: `tell` gathers until a batch is full, then makes one update from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import torch
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require, require_integer, require_number, seed_sequence, settle_integers
from discodso.base.errors import DeclarationError
from discodso.disco.adam import Adam
from discodso.disco.archive import Elites, Niche, Pool
from discodso.disco.method import Metrics
from discodso.disco.network import Policy, PolicySettings, Score, one_thread
from discodso.disco.proposers.refinement import Refinement
from discodso.disco.proposers.variation import vary
from discodso.disco.restarts import Restarting, RestartSettings
from discodso.disco.sampling import sample
from discodso.disco.scheduler import (
    ELSEWHERE,
    POLICY,
    PROPOSERS,
    REFINEMENT,
    VARIATION,
    Allocation,
    Origins,
)
from discodso.disco.training import (
    Baseline,
    imitation_loss,
    limit_gradients,
    policy_gradient_loss,
    require_finite,
    select,
)
from discodso.space.design import Design, DesignBatch
from discodso.space.replay import replay
from discodso.space.space import Space
from discodso.space.state import Arrays, State, generator_state, restore_generator


@dataclass(frozen=True, slots=True)
class DisCoSettings:
    """Hyperparameters; the defaults are the paper's, and where it is silent those of ARCHITECTURE.md.

    Args:
        batch_size: N, designs for one update. Large budgets and cheap objectives can afford 1000, which costs
            less time for each design and more designs for each step of learning.
        learning_rate: of Adam.
        entropy_coefficient: lambda_H, weight of the entropy bonus.
        risk_factor: epsilon, the share of the batch that teaches; 1 is the plain policy gradient.
        baseline_coefficient: weight of the past in the running average of the quantile.
        normalise_advantages: divide advantages by their running root mean square.
        max_gradient_norm: longer gradients are shortened to it. Ordinary ones are about 1, so that only freaks are
            touched, which would stall Adam for a long time.
        queue_size: how many of the best designs seen are kept, to be imitated, varied and refined; 0 for none.
        queue_weight: weight of imitating them in the loss (priority-queue training).
        queue_niche: how many of them may have the same structure; 0 for any number. Without a limit variants of
            one design fill the queue, and the policy stops trying other structures.
        queue_niche_length: designs have the same structure if they agree in so many tokens from the start; 0 for
            all tokens. Few tokens keep designs apart that differ from the root on.
        queue_unequal: whether designs with the same reward count as one, the shortest. Where rewards have no noise
            and many values, equal ones mean designs that differ in what does not matter.
        queue_steps: steps of the optimiser for each batch; those after the first imitate the queue only. More of
            them pay where an objective call costs more than a step.
        queue_recheck: share of a batch that evaluates good designs again, for noisy objectives. A design then
            joins the queue with its second reward, and the rewards of those in it are averaged.
        queue_sample: how many of the queue, drawn at random, one update imitates; 0 for all of them.
        variation: share of a batch that are variations of designs of the queue: values moved, parts drawn anew by
            the policy, exchanged, inserted or taken out.
        variation_single: share of the moves of values among them that move one value only, half of them to
            anywhere within its range. That gets on where rewards have steps, which hide how far a value is off,
            and where a move of several values spoils one that was right.
        refinement: share of a batch that refines the values of the best skeletons of the queue, by CMA-ES.
        allocation: share calls between policy, variation and refinement, as far as they are on, by what each
            earned lately instead of by the two shares above; see `allocation`.
        off_policy: whether varied and refined designs take part in the policy gradient, as if the policy had drawn
            them; without it they teach by the queue only.
        task_refinement: share of a batch that the task refines, if it can (see `Task`), once it is evaluated: the
            best designs, one for each skeleton. The method learns from them in place of those they come from.
        refine_calls: objective calls allowed to each of them, beside those of the batch.
        restart_batches: begin anew with a fresh network after so many batches without a better design (and as
            many as it took to find it), by turns from nothing and from the best designs so far; 0 for never. See
            `restarts`.
        policy: the network and its distributions.
    """

    batch_size: int = 100
    learning_rate: float = 0.001
    entropy_coefficient: float = 0.01
    risk_factor: float = 0.2
    baseline_coefficient: float = 0.5
    normalise_advantages: bool = True
    max_gradient_norm: float = 10.0
    queue_size: int = 0
    queue_weight: float = 1.0
    queue_niche: int = 0
    queue_niche_length: int = 0
    queue_unequal: bool = False
    queue_steps: int = 1
    queue_recheck: float = 0.0
    queue_sample: int = 0
    variation: float = 0.0
    variation_single: float = 0.0
    refinement: float = 0.0
    allocation: bool = False
    off_policy: bool = True
    task_refinement: float = 0.0
    refine_calls: int = 10
    restart_batches: int = 0
    policy: PolicySettings = field(default_factory=PolicySettings)

    def __post_init__(self) -> None:
        settle_integers(
            self,
            {
                "batch_size": 1,
                "queue_size": 0,
                "queue_niche": 0,
                "queue_niche_length": 0,
                "queue_steps": 1,
                "queue_sample": 0,
                "refine_calls": 1,
                "restart_batches": 0,
            },
        )
        require_number("learning_rate", self.learning_rate, above=0)
        require_number("entropy_coefficient", self.entropy_coefficient, least=0)
        require_number("risk_factor", self.risk_factor, above=0, most=1)
        require_number("baseline_coefficient", self.baseline_coefficient, least=0, most=0.999)
        require_number("max_gradient_norm", self.max_gradient_norm, above=0)
        require_number("queue_weight", self.queue_weight, least=0)
        require_number("queue_recheck", self.queue_recheck, least=0, most=0.5)
        require_number("variation", self.variation, least=0, most=0.9)
        require_number("variation_single", self.variation_single, least=0, most=1)
        require_number("refinement", self.refinement, least=0, most=0.9)
        require_number("task_refinement", self.task_refinement, least=0, most=1)
        both = self.variation + self.refinement
        require("refinement", self.refinement, both <= 0.9, "at most 0.9 together with variation")
        for name in ("queue_recheck", "variation", "refinement"):
            if getattr(self, name) and not self.queue_size:
                raise DeclarationError(f"{name} needs a queue; set queue_size, for example to 50")
        require("policy", self.policy, isinstance(self.policy, PolicySettings), "a PolicySettings object")

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> DisCo | Restarting:
        """Start the method on a space."""
        if not self.restart_batches:
            return DisCo(space, self, seed=seed)
        restarts = RestartSettings(
            replace(self, restart_batches=0),
            self.restart_batches * self.batch_size,
            recheck=self.queue_recheck > 0,
            patience=1.0,
            least_gain=0.001,
        )
        return restarts.build(space, seed)


class DisCo:
    """A policy over a space and everything that its training remembers.

    Args:
        space: what to search.
        settings: hyperparameters.
        seed: decides the initial weights and all samples.
    """

    def __init__(
        self,
        space: Space,
        settings: DisCoSettings | None = None,
        *,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        require("space", space, isinstance(space, Space), "a Space")
        settings = DisCoSettings() if settings is None else settings
        require("settings", settings, isinstance(settings, DisCoSettings), "a DisCoSettings object")
        self.space = space
        self.settings = settings
        self.batch_size = self.settings.batch_size
        self.refine_calls = self.settings.refine_calls
        self.baseline = Baseline()
        self.updates = 0
        weights, samples = seed_sequence(seed).spawn(2)
        self.policy = Policy(space, self.settings.policy, np.random.default_rng(weights))
        self._rng = np.random.default_rng(samples)
        self._optimiser = Adam(self.policy.parameters(), self.settings.learning_rate)
        self._pool = Pool.empty(space)
        self._sources: Ints = np.empty(0, np.int64)  # of the designs in the pool
        self._origins = Origins(10 * self.batch_size)
        self._refinement = Refinement()
        self._allocation = Allocation()
        self._elites = Elites(
            Pool.empty(space),
            Pool.empty(space),
            settings.queue_size,
            Niche(settings.queue_niche, settings.queue_niche_length or None)
            if settings.queue_niche
            else None,
            settings.queue_recheck > 0,
            settings.queue_unequal,
        )

    @property
    def elite(self) -> Pool:
        """The queue: the best designs seen, best first, with the means of their rewards."""
        return self._elites.members

    @property
    def shares(self) -> tuple[float, ...]:
        """Of the next batch: policy, variation and refinement."""
        s = self.settings
        if s.allocation:
            return self._allocation.shares((True, s.variation > 0, s.refinement > 0))
        return 1 - s.variation - s.refinement, s.variation, s.refinement

    def ask(self, size: int | None = None) -> DesignBatch:
        """Designs to evaluate, a sequence of `Design`: drawn from the policy; with a queue perhaps also
        designs to evaluate again, refinements and variations."""
        count = self.batch_size if size is None else size
        require_integer("size", count, 1)
        members, rng = self.elite, self._rng
        again = self._elites.to_recheck(int(self.settings.queue_recheck * count))
        count -= len(again)
        _, varied_share, refined_share = self.shares
        varied, wanted = int(varied_share * count), int(refined_share * count)
        parts = [again]
        if wanted:
            self._refinement, refined = self._refinement.ask(self.space, members, wanted, rng)
            self._note(refined, REFINEMENT)
            parts.append(refined)
            count -= len(refined)
            varied += wanted - len(refined) if varied else 0
        varied = min(varied, count) if len(members) > 1 else 0
        if count:
            with one_thread():
                single = self.settings.variation_single
                scripts = vary(self.space, members.designs, varied, count, rng, single) if varied else None
                drawn = sample(self.space, self.policy.stepper(), count, rng, scripts=scripts).designs
            self._note(drawn.select(slice(0, varied)), VARIATION)
            self._note(drawn.select(slice(varied, None)), POLICY)
            parts.append(drawn)
        parts = [part for part in parts if len(part)]
        return parts[0] if len(parts) == 1 else DesignBatch.concatenate(parts)

    def to_refine(self, designs: DesignBatch, rewards: Floats) -> Ints:
        """The best designs with values, one for each skeleton; see `Refining`."""
        rows: list[int] = []
        most = round(self.settings.task_refinement * len(designs))
        valued = np.asarray(np.isfinite(designs.values).any(axis=1))
        skeletons, seen = designs.skeletons(), set()
        for row in np.argsort(-rewards, kind="stable").tolist():
            if len(rows) >= most or not np.isfinite(rewards[row]):
                break
            if valued[row] and skeletons[row] not in seen:
                seen.add(skeletons[row])
                rows.append(row)
        return np.array(rows, np.int64)

    def _note(self, designs: DesignBatch, source: int) -> None:
        """Remember who proposed these designs, if anything depends on it."""
        s = self.settings
        if s.refinement or s.allocation or not s.off_policy:
            self._origins.note(designs, source)

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Take rewards of designs; makes an update once `batch_size` designs have been told.

        Designs need not have been asked for; those that break a rule of the space are refused. A reward that is
        not finite marks a failed design: it counts as the worst and never teaches. `weights` says how much
        evidence each reward stands on, such as episodes; they are equal if it is not given. Returns what the
        update did, or None if it still waits for more designs.
        """
        designs = designs if isinstance(designs, DesignBatch) else list(designs)
        try:
            told = np.array(rewards, dtype=np.float64)  # a copy: the caller may use the buffer again
        except (TypeError, ValueError):
            raise DeclarationError(f"tell needs one number for each design, got {rewards!r:.80}") from None
        if told.shape != (len(designs),):
            raise DeclarationError(f"tell got {len(designs)} designs and rewards of shape {told.shape}")
        if not len(designs):
            return None
        batch = self.space.encode(designs)
        if batch.origin is not self.space:
            replay(self.space, batch)  # refuses designs that do not belong to the space
        evidence = np.ones(len(told)) if weights is None else np.array(weights, dtype=np.float64)
        if evidence.shape != told.shape or not (evidence > 0).all():
            raise DeclarationError("tell needs one positive weight for each design")
        self._pool = self._pool.join(Pool(batch, told, evidence))
        self._sources = np.concatenate((self._sources, self._origins.take(batch)))
        if len(self._pool) < self.batch_size:
            return None
        pool, self._pool = self._pool, Pool.empty(self.space)
        sources, self._sources = self._sources, self._sources[:0]
        return self._update(pool, sources)

    def _step(self, loss: torch.Tensor) -> float:
        """One step of the optimiser; the norm of the gradient."""
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = limit_gradients(self.policy, self.settings.max_gradient_norm)
        self._optimiser.step()
        return norm

    def state(self) -> State:
        """Network, optimiser, baseline, waiting designs, queue, random stream and counters."""
        arrays: Arrays = {
            f"policy/{name}": tensor.detach().numpy().copy()
            for name, tensor in self.policy.state_dict().items()
        }
        arrays |= {f"optimiser/{name}": array for name, array in self._optimiser.to_arrays().items()}
        pools = {"pool": self._pool, "queue": self._elites.members, "waiting": self._elites.waiting}
        for place, pool in pools.items():
            arrays |= {f"{place}/{name}": array for name, array in pool.to_arrays().items()}
        arrays |= {f"origins/{name}": array for name, array in self._origins.to_arrays().items()}
        arrays["sources"] = self._sources.copy()
        refinement = self._refinement.to_state()
        arrays |= {f"refinement/{name}": array for name, array in refinement.arrays.items()}
        return State(
            arrays,
            {
                "refinement": refinement.data,
                "allocation": {
                    "earned": list(self._allocation.earned),
                    "calls": list(self._allocation.calls),
                },
                "updates": self.updates,
                "baseline": asdict(self.baseline),
                "random": generator_state(self._rng),
            },
        )

    def restore(self, state: State) -> None:
        """Go on from a state of a method with the same space and settings."""
        places = ("policy", "optimiser", "pool", "queue", "waiting", "origins")
        whole = State(state.arrays, {**state.data, **{part: {} for part in places}})
        weights = {name: torch.from_numpy(a.copy()) for name, a in whole.part("policy").arrays.items()}
        try:
            self.policy.load_state_dict(weights)
        except RuntimeError as error:  # of torch: several lines about missing keys and sizes
            raise ValueError("weights of another network") from error
        self._optimiser.restore(whole.part("optimiser").arrays)
        self._pool, members, waiting = (
            Pool.of_arrays(self.space, whole.part(place).arrays) for place in ("pool", "queue", "waiting")
        )
        self._elites = replace(self._elites, members=members, waiting=waiting)
        self._origins.restore(whole.part("origins").arrays)
        self._sources = state.arrays["sources"].astype(np.int64)
        if len(self._sources) != len(self._pool):
            raise ValueError("sources that are not as many as designs")
        self._refinement = Refinement.of_state(whole.part("refinement"))
        earned, calls = (tuple(state.data["allocation"][key]) for key in ("earned", "calls"))
        self._allocation = Allocation(earned, calls)
        self.updates = int(state.data["updates"])
        self.baseline = Baseline(**state.data["baseline"])
        restore_generator(self._rng, state.data["random"])

    def _update(self, pool: Pool, sources: Ints) -> Metrics:
        if not np.isfinite(pool.rewards).any():
            return Metrics(kept=0)
        s = self.settings
        taught = pool if s.off_policy else pool.select((sources == POLICY) | (sources == ELSEWHERE))
        if not np.isfinite(taught.rewards).any():  # of the policy nothing has worked
            taught = pool
        chosen = select(
            taught.rewards, s.risk_factor, self.baseline, s.baseline_coefficient, s.normalise_advantages
        )
        self.baseline = chosen.baseline
        teachers = taught.designs.select(chosen.kept)
        kept = len(teachers)
        if s.queue_size:
            self._take_in(pool, sources)
        if s.queue_size and s.queue_weight:
            teachers = DesignBatch.concatenate((teachers, self._imitated()))
        imitated = len(teachers) > kept
        with one_thread(), torch.enable_grad():
            trace = replay(self.space, teachers)
            score = self.policy.score(trace)
            elite = Score(score.log_prob[:kept], score.entropy[:kept], score.token_log_prob[:kept])
            loss = policy_gradient_loss(elite, chosen.advantages, s.entropy_coefficient)
            if imitated:
                loss = loss + s.queue_weight * imitation_loss(score.log_prob[kept:])
            require_finite(loss, score, chosen.advantages)
            norm = self._step(loss)
            for _ in range(s.queue_steps - 1 if imitated else 0):
                again = self.policy.score(trace)
                bonus = s.entropy_coefficient * again.entropy[kept:].mean()
                more = s.queue_weight * imitation_loss(again.log_prob[kept:]) - bonus
                require_finite(more, again, chosen.advantages)
                self._step(more)
        self.updates += 1
        return Metrics(
            quantile=chosen.quantile,
            kept=kept,
            loss=float(loss.detach()),
            entropy=float(elite.entropy.detach().mean()),
            gradient_norm=norm,
            shares=dict(zip(PROPOSERS, self.shares, strict=True)) if s.variation or s.refinement else None,
        )

    def _take_in(self, pool: Pool, sources: Ints) -> None:
        """Let a batch into the queue, and those who proposed it learn what came of it."""
        s, before = self.settings, self._elites
        self._elites = before.add(pool, int(s.queue_recheck * self.batch_size))
        if s.allocation:
            self._allocation = self._allocation.after(sources, self._elites.entered(before, pool))
        if s.refinement:
            refined = pool.select(sources == REFINEMENT)
            self._refinement = self._refinement.tell(self.space, refined, self.elite)

    def _imitated(self) -> DesignBatch:
        """Designs of the queue that this update imitates."""
        designs, count = self.elite.designs, self.settings.queue_sample
        if not count or len(designs) <= count:
            return designs
        return designs.select(np.sort(self._rng.choice(len(designs), count, replace=False)))
