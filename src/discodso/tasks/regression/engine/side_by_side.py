"""Several searches of one table side by side: one lists short expressions, all vary what the others have found.

They are threads, since compiled code leaves Python's lock alone. Between two steps they are one search: what each
has kept and rated goes to all, in a fixed order, so that the result depends on the seed and on their number only.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from discodso.base.arrays import Ints
from discodso.space.state import State
from discodso.tasks.regression.engine import _evolution as evolution
from discodso.tasks.regression.engine import _fitting as fitting
from discodso.tasks.regression.engine import _trees as trees
from discodso.tasks.regression.engine.search import VARY, EquationSearch
from discodso.tasks.regression.engine.setting import LARGEST, Setting

_LEAST = 1000  # calls of each; a smaller step is for the first one alone
_SEEN_EVERY = 5  # steps after which each knows what the others have rated


class SideBySide(EquationSearch):
    """The search with so many of its kind; it is the first of them.

    Args:
        setting, seed: of the search.
        jobs: how many there are.
    """

    def __init__(self, setting: Setting, seed: int, jobs: int) -> None:
        super().__init__(setting, seed)
        self._seed, self._jobs = seed, jobs
        self._others: list[EquationSearch] = []
        self._steps = 0

    def step(self, room: int) -> int:
        """Spend at most so many calls, the same number in each search; returns how many were spent in all."""
        if self.stage < VARY or room < self._jobs * _LEAST:
            return super().step(room)
        self._others = self._others or [self._fork(place) for place in range(1, self._jobs)]
        whole = self._steps % _SEEN_EVERY == 0
        for other in self._others:
            self._tell(other, whole)
        before, share = self.counts.copy(), room // self._jobs
        with ThreadPoolExecutor(len(self._others)) as pool:
            waiting = [pool.submit(other.step, share) for other in self._others]
            super().step(share)
            for one in waiting:
                one.result()
        self._steps += 1
        for other in self._others:
            self._hear(other, before, self._steps % _SEEN_EVERY == 0)
        self._look()
        return int(self.counts[0] - before[0])

    def _fork(self, place: int) -> EquationSearch:
        """Another search on the same data and with the same list of short expressions."""
        other = EquationSearch.__new__(EquationSearch)
        other.__dict__.update({name: own for name, own in vars(self).items() if not name.startswith("_")})
        rng = np.random.default_rng((self._seed, place))
        other.random = np.array([rng.integers(2**63)], np.uint64)
        probes = np.ascontiguousarray(self.probes[0][: len(self.setting.columns)])
        other.probes = trees.room_for(probes, self.setting.longest)
        other.room = fitting.fitting_room(self.setting.columns, LARGEST)
        other.views = [view.copy() for view in self.views]
        return other

    def _tell(self, other: EquationSearch, whole: bool) -> None:
        """Give another search what is kept here, and if `whole` what was rated."""
        other.counts = self.counts.copy()
        for own, theirs in zip(self.views, other.views, strict=True):
            for mine, yours in zip(own.archive, theirs.archive, strict=True):
                yours[...] = mine
            theirs.told, theirs.written = dict(own.told), dict(own.written)
            if whole:
                theirs.seen, theirs.calls = own.seen.copy(), own.calls

    def _hear(self, other: EquationSearch, before: Ints, whole: bool) -> None:
        """Take what another search has found since then."""
        self.counts += other.counts - before
        for own, theirs in zip(self.views, other.views, strict=True):
            evolution.merge(own.archive, theirs.archive)
            for mine, yours in ((own.told, theirs.told), (own.written, theirs.written)):
                for price, error in yours.items():
                    mine[price] = min(error, mine.get(price, np.inf))
            if whole:
                self.make_room(own, theirs.calls)
                trees.add_all(own.seen, theirs.seen)
                own.calls = int(np.count_nonzero(own.seen))

    def state(self) -> State:
        """All that later steps depend on."""
        parts = {"first": super().state()}
        parts |= {f"other {place}": other.state() for place, other in enumerate(self._others)}
        return State.of_parts({**parts, "jobs": State({}, {"jobs": self._jobs, "steps": self._steps})})

    def restore(self, state: State) -> None:
        """Go back to a state; there are as many searches as there were."""
        super().restore(state.part("first"))
        known = state.part("jobs").data
        self._jobs, self._steps = int(known["jobs"]), int(known["steps"])
        self._others = []
        if "other 0" in state.data:
            self._others = [self._fork(place) for place in range(1, self._jobs)]
            for place, other in enumerate(self._others):
                other.restore(state.part(f"other {place}"))
