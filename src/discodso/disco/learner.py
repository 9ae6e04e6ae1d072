"""The learner: the network and the risk-seeking update that trains it (algorithm 1)."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import torch

from discodso.disco.adam import Adam
from discodso.disco.archive import Pool
from discodso.disco.method import Metrics
from discodso.disco.network import Policy, one_thread
from discodso.disco.sampling import Sample, sample
from discodso.disco.scripts import Scripts
from discodso.disco.settings import LearnerSettings, NetworkSettings
from discodso.disco.training import Baseline, limit_gradients, policy_gradient_loss, require_finite, select
from discodso.space.replay import replay
from discodso.space.space import Space
from discodso.space.state import Arrays, State


class Learner:
    """A network over a space, and what its training remembers.

    Attributes:
        policy: the network.
        baseline: running averages of the training.
        updates: made so far.
    """

    def __init__(
        self, space: Space, settings: LearnerSettings, network: NetworkSettings, rng: np.random.Generator
    ) -> None:
        self.policy = Policy(space, network, rng)
        self.baseline = Baseline()
        self.updates = 0
        self._space = space
        self._settings = settings
        self._optimiser = Adam(self.policy.parameters(), settings.learning_rate)

    def sample(self, count: int, rng: np.random.Generator, scripts: Scripts | None = None) -> Sample:
        """Designs that the network draws, after scripts if there are any."""
        with one_thread():
            return sample(self._space, self.policy.stepper(), count, rng, scripts=scripts)

    def learn(self, told: Pool) -> Metrics:
        """One update from a batch. Designs that the network did not draw teach like all others."""
        s = self._settings
        if not np.isfinite(told.rewards).any():
            return Metrics(kept=0)
        chosen = select(
            told.rewards, s.risk_factor, self.baseline, s.baseline_coefficient, s.normalise_advantages
        )
        self.baseline = chosen.baseline
        teachers = told.designs.select(chosen.kept)
        if not s.learning_rate:
            return Metrics(quantile=chosen.quantile, kept=len(teachers))
        with one_thread(), torch.enable_grad():
            score = self.policy.score(replay(self._space, teachers))
            loss = policy_gradient_loss(score, chosen.advantages, s.entropy_coefficient)
            require_finite(loss, score, chosen.advantages)
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            limit_gradients(self.policy, s.max_gradient_norm)
            self._optimiser.step()
        self.updates += 1
        return Metrics(
            quantile=chosen.quantile,
            kept=len(teachers),
            loss=float(loss.detach()),
            entropy=float(score.entropy.detach().mean()),
        )

    def state(self) -> State:
        """Network, optimiser, baseline and counter."""
        arrays: Arrays = {
            f"policy/{name}": tensor.detach().numpy().copy()
            for name, tensor in self.policy.state_dict().items()
        }
        arrays |= {f"optimiser/{name}": array for name, array in self._optimiser.to_arrays().items()}
        return State(arrays, {"updates": self.updates, "baseline": asdict(self.baseline)})

    def restore(self, state: State) -> None:
        """Go on from a state of a learner with the same space and settings."""
        whole = State(state.arrays, {**state.data, "policy": {}, "optimiser": {}})
        weights = {name: torch.from_numpy(a.copy()) for name, a in whole.part("policy").arrays.items()}
        try:
            self.policy.load_state_dict(weights)
        except RuntimeError as error:  # of torch: several lines about missing keys and sizes
            raise ValueError("weights of another network") from error
        self._optimiser.restore(whole.part("optimiser").arrays)
        self.updates = int(state.data["updates"])
        known = state.data["baseline"]
        averages = (None if known[key] is None else float(known[key]) for key in ("quantile", "spread"))
        self.baseline = Baseline(*averages)
