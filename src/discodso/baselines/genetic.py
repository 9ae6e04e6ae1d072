"""Genetic programming on DEAP, under the rules of a space.

Individuals are lists of nodes in pre-order, tokens with units (see `skeletons`). On a space without values this is
the method for skeletons of Decoupled-GP; on a space with values their numbers are mutated along with the tokens.
Trees are crossed and mutated by DEAP's operators for trees, sequences by those for lists. A child that breaks a
rule is replaced by its parent, as DEAP does with children that are too large.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Bools, Floats
from discodso.base.checks import require, require_integer, require_number, seed_sequence, settle_integers
from discodso.base.errors import DeadEndError, DiscodsoError
from discodso.disco.method import Metrics, told_arrays
from discodso.disco.sampling import sample
from discodso.disco.uniform import UniformStepper
from discodso.space.design import Design, DesignBatch
from discodso.space.replay import replay
from discodso.space.skeletons import (
    fill,
    keeps_rules,
    skeleton_space,
    unit_limits,
    units_of,
    without_numbers,
)
from discodso.space.space import Space
from discodso.space.state import Arrays, State, generator_state, restore_generator

_FULL_ATTEMPTS = 20  # rounds of full trees; what is missing then is drawn at random under the rules
_FRUITLESS_GENERATIONS = 1000


@dataclass(frozen=True, slots=True)
class GPSettings:
    """Settings of genetic programming; the defaults are the paper's table.

    Args:
        population: individuals of a generation.
        tournament: individuals that compete for each place among the parents.
        crossover, mutation: probabilities for a pair and for an individual.
        min_depth, max_depth: of the full trees at the start, and of new subtrees.
        value_step: standard deviation of a mutation of numbers, as a share of their range; half of all mutations
            are of numbers where there are any.
    """

    population: int = 1000
    tournament: int = 5
    crossover: float = 0.5
    mutation: float = 0.5
    min_depth: int = 0
    max_depth: int = 2
    value_step: float = 0.1

    def __post_init__(self) -> None:
        settle_integers(self, {"population": 2, "tournament": 1, "min_depth": 0, "max_depth": 0})
        most = self.max_depth
        require("min_depth", self.min_depth, self.min_depth <= most, f"at most max_depth = {most}")
        for key in ("crossover", "mutation"):
            require_number(key, getattr(self, key), least=0, most=1)
        require_number("value_step", self.value_step, above=0)

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> GP:
        """Start the method on a space."""
        return GP(space, self, seed=seed)


@dataclass(frozen=True, slots=True)
class _Node:
    """A token of an individual, as DEAP's operators for trees expect it. It has a number for each value that a
    token may carry: the unit of a number, that of an option, NaN for none."""

    token: int
    units: tuple[float, ...]
    arity: int
    ret: type = object

    @property
    def args(self) -> list[type]:
        """One type for each child."""
        return [object] * self.arity


def _deap() -> Any:
    try:
        import deap.algorithms
        import deap.base
        import deap.gp
        import deap.tools
    except ImportError:
        raise DiscodsoError("GP needs DEAP; install it by `pip install discodso[baselines]`") from None
    return deap


class GP:
    """A population on a space.

    DEAP draws from Python's global random stream; it is put in place for as long as DEAP works, and put back.
    """

    def __init__(self, space: Space, settings: GPSettings, *, seed: int | np.random.SeedSequence = 0) -> None:
        require("space", space, isinstance(space, Space), "a Space")
        self.space = space
        self.settings = settings
        self.batch_size = settings.population
        self.generation = 0
        self._deap = _deap()
        self._skeletons = skeleton_space(space)
        self._rng = np.random.default_rng(seed_sequence(seed))
        limits = unit_limits(space)
        self._low, self._high = limits[0].tolist(), limits[1].tolist()
        self._options = space.library.options.tolist()
        self._toolbox = self._make_toolbox()
        self._population: list[Any] = []
        self._generations: deque[list[Any]] = deque()  # of which not all are rated
        self._unasked: list[Any] = []
        self._asked: dict[bytes, deque[Any]] = {}

    # ---------------------------------------------------------------------------------------- ask and tell

    def ask(self, size: int | None = None) -> DesignBatch:
        """Individuals that have no reward yet: all of a generation, or as many as are asked for."""
        if size is not None:
            require_integer("size", size, 1)
        for _ in range(_FRUITLESS_GENERATIONS):
            if len(self._unasked) >= (size or 1):
                break
            self._breed()
        else:
            raise DeadEndError("no child of the population keeps the rules; loosen one of the constraints")
        count = len(self._unasked) if size is None else size
        chosen, self._unasked = self._unasked[:count], self._unasked[count:]
        designs, _ = self._designs(chosen)
        for key, individual in zip(designs.keys(), chosen, strict=True):
            self._asked.setdefault(key, deque()).append(individual)
        return designs

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Rewards of individuals. Those of a generation that is complete make it the population.

        A design that was not asked for joins the population.
        """
        batch, told = told_arrays(self.space, designs, rewards)
        told = np.where(np.isnan(told), -np.inf, told)
        strangers = []
        for row, (key, reward) in enumerate(zip(batch.keys(), told.tolist(), strict=True)):
            waiting = self._asked.get(key)
            if waiting is None:
                strangers.append(row)
                continue
            waiting.popleft().fitness.values = (reward,)
            if not waiting:
                del self._asked[key]
        if strangers:
            self._take_in(batch.select(np.array(strangers)), told[strangers])
        while self._generations and all(one.fitness.valid for one in self._generations[0]):
            self._population = self._generations.popleft()
            self.generation += 1
        return Metrics(kept=len(self._population)) if self._population else None

    def _take_in(self, batch: DesignBatch, rewards: Floats) -> None:
        replay(self.space, batch)  # refuses designs that do not belong to the space
        made = self._individuals(batch, self._units(batch))
        for individual, reward in zip(made, rewards.tolist(), strict=True):
            individual.fitness.values = (reward,)
        self._population = self._population + made

    # --------------------------------------------------------------------------------------------- breeding

    def _breed(self) -> None:
        """The next generation; of it, what is not rated waits to be asked for."""
        s = self.settings
        with self._own_stream():
            if not self._population:
                children = self._first_generation()
            else:
                parents = self._deap.tools.selTournament(self._population, s.population, s.tournament)
                children = self._deap.algorithms.varAnd(parents, self._toolbox, s.crossover, s.mutation)
                good = self._keeps_rules(children)
                children = [
                    child if fine else self._toolbox.clone(parent)
                    for child, parent, fine in zip(children, parents, good.tolist(), strict=True)
                ]
        self._generations.append(children)
        self._unasked += [child for child in children if not child.fitness.valid]
        if not self._unasked:  # every child equals a parent
            self._population = self._generations.pop()

    def _first_generation(self) -> list[Any]:
        """Full trees that keep the rules; sequences, which have no depth, are drawn under the rules."""
        s, made = self.settings, list[Any]()
        if not self.space.grammar.chain:
            for _ in range(_FULL_ATTEMPTS):
                drawn = [self._toolbox.individual() for _ in range(s.population)]
                good = self._keeps_rules(drawn).tolist()
                made += [one for one, fine in zip(drawn, good, strict=True) if fine]
                if len(made) >= s.population:
                    break
        missing = s.population - len(made)
        if missing > 0:
            designs = sample(self.space, UniformStepper(self.space), missing, self._rng).designs
            made += self._individuals(designs, self._units(designs))
        return made[: s.population]

    def _make_toolbox(self) -> Any:
        d, s, library = self._deap, self.settings, self.space.library
        base: Any = d.base
        tools, gp = d.tools, d.gp

        class Fitness(base.Fitness):  # type: ignore[misc]
            weights = (1.0,)

        tree = not self.space.grammar.chain
        kind: Any = gp.PrimitiveTree if tree else list

        class Individual(kind):  # type: ignore[misc]
            def __init__(self, nodes: Sequence[_Node]) -> None:
                super().__init__(nodes)
                self.fitness = Fitness()

        def clone(individual: Any) -> Any:
            copied = Individual(list(individual))
            if individual.fitness.valid:
                copied.fitness.values = individual.fitness.values
            return copied

        bare = (np.nan,) * library.slots
        nodes = [_Node(k, bare, int(library.arity[k])) for k in range(len(library)) if k != library.end]
        choices = SimpleNamespace(
            terminals={object: [node for node in nodes if node.arity == 0]},
            primitives={object: [node for node in nodes if node.arity > 0]},
            ret=object,
        )

        def new_tree(pset: Any = choices, type_: type = object) -> list[_Node]:
            return [self._fresh(node) for node in gp.genFull(pset, s.min_depth, s.max_depth, type_)]

        def new_stretch(length: int) -> list[_Node]:
            return [self._fresh(random.choice(nodes)) for _ in range(length)]

        box = base.Toolbox()
        box.register("clone", clone)
        box.register("wrap", Individual)
        box.register("individual", lambda: Individual(new_tree()))
        if tree:
            box.register("mate", lambda a, b: gp.cxOnePoint(a, b))
            change: Callable[[Any], Any] = lambda one: gp.mutUniform(one, expr=new_tree, pset=choices)  # noqa: E731
        else:
            fixed = self.space.grammar.opens.max(initial=0) == 0
            box.register("mate", _crossed(tools.cxOnePoint if fixed else tools.cxMessyOnePoint))
            change = _stretch_changer(new_stretch, s, fixed)
        box.register("mutate", lambda one: self._mutated(one, change))
        return box

    def _fresh(self, node: _Node) -> _Node:
        """The token of a node with values of its own."""
        units = (self._fresh_unit(node.token, slot) for slot in range(len(node.units)))
        return _Node(node.token, tuple(units), node.arity)

    def _fresh_unit(self, token: int, slot: int) -> float:
        if self._options[token][slot]:
            return float(random.randrange(self._options[token][slot]))
        low, high = float(self._low[token][slot]), float(self._high[token][slot])
        if low != low:  # NaN: it carries none
            return low
        if np.isfinite(low) and np.isfinite(high):
            return random.uniform(low, high)
        return min(max(random.gauss(0.0, 1.0), low), high)

    def _mutated(self, individual: Any, change: Callable[[Any], Any]) -> Any:
        """Either other tokens, or other values."""
        valued = [at for at, node in enumerate(individual) if node.units[0] == node.units[0]]
        if not valued or random.random() < 0.5:
            return change(individual)
        for at in valued:
            node = individual[at]
            units = (self._mutated_unit(node.token, slot, unit) for slot, unit in enumerate(node.units))
            individual[at] = _Node(node.token, tuple(units), node.arity)
        return (individual,)

    def _mutated_unit(self, token: int, slot: int, unit: float) -> float:
        """A number moves a little; an option becomes another one as often as a number would leave its tenth of the
        range."""
        if unit != unit:
            return unit
        if self._options[token][slot]:
            return self._fresh_unit(token, slot) if random.random() < self.settings.value_step else unit
        low, high = float(self._low[token][slot]), float(self._high[token][slot])
        width = 1.0 if np.isfinite(high - low) else 1.0 + abs(unit)
        return min(max(random.gauss(unit, self.settings.value_step * width), low), high)

    @contextmanager
    def _own_stream(self) -> Iterator[None]:
        """Python's global random stream begins from ours, and is put back afterwards."""
        before = random.getstate()
        random.seed(int(self._rng.integers(0, 2**63)))
        try:
            yield
        finally:
            random.setstate(before)

    # ------------------------------------------------------------------------------- individuals and designs

    def _keeps_rules(self, individuals: Sequence[Any]) -> Bools:
        """bool[N], who is a design of the space."""
        grammar, end = self.space.grammar, self.space.library.end is not None
        sizes = np.array([len(one) + end for one in individuals])
        fine: Bools = (sizes >= grammar.min_positions) & (sizes <= grammar.max_positions)
        rows = np.flatnonzero(fine)
        if len(rows):
            chosen = [individuals[row] for row in rows.tolist()]
            skeletons = without_numbers(self._skeletons, self._arrays(chosen)[0])
            about_tokens = keeps_rules(self._skeletons, skeletons)
            fine[rows[~about_tokens]] = False
            rows = rows[about_tokens]
        if len(rows):
            fine[rows] = self._designs([individuals[row] for row in rows.tolist()])[1]
        return fine

    def _designs(self, individuals: Sequence[Any]) -> tuple[DesignBatch, Bools]:
        batch, units = self._arrays(individuals)
        return fill(self.space, batch, units)

    def _arrays(self, individuals: Sequence[Any]) -> tuple[DesignBatch, Floats]:
        """Skeletons, and units[N, T, V]."""
        library = self.space.library
        tail = () if library.end is None else (library.end,)
        shape = len(individuals), self.space.grammar.max_positions
        tokens, units = np.full(shape, -1, np.int64), np.full((*shape, library.slots), np.nan)
        lengths = np.zeros(len(individuals), np.int64)
        for row, individual in enumerate(individuals):
            ids = (*(node.token for node in individual), *tail)
            lengths[row] = len(ids)
            tokens[row, : len(ids)] = ids
            units[row, : len(individual)] = [node.units for node in individual] or units[row, :0]
        options = np.where((library.options > 0)[tokens], units, np.nan)
        return DesignBatch(library, tokens, library.narrow(options), lengths), units

    def _units(self, designs: DesignBatch) -> Floats:
        """float[N, T, V], units of numbers and numbers of options."""
        units, options = units_of(self.space, designs), designs.option_numbers()
        return np.where(options >= 0, options, units)

    def _individuals(self, designs: DesignBatch, units: Floats) -> list[Any]:
        arity = self.space.library.arity.tolist()
        counts = designs.design_lengths().tolist()
        return [
            self._toolbox.wrap(
                [
                    _Node(token, tuple(own), arity[token])
                    for token, own in zip(ids[:count], numbers[:count], strict=True)
                ]
            )
            for ids, numbers, count in zip(designs.tokens.tolist(), units.tolist(), counts, strict=True)
        ]

    # ------------------------------------------------------------------------------------------------ state

    def state(self) -> State:
        """Individuals with their rewards, and the random stream."""
        everyone = [*self._population, *(one for part in self._generations for one in part)]
        place = {id(one): number for number, one in enumerate(everyone)}
        batch, units = self._arrays(everyone)
        rewards = [one.fitness.values[0] if one.fitness.valid else np.nan for one in everyone]
        arrays: Arrays = {
            "tokens": batch.tokens,
            "lengths": batch.lengths,
            "units": units,
            "rewards": np.array(rewards, np.float64),
        }
        data = {
            "random": generator_state(self._rng),
            "generation": self.generation,
            "sizes": [len(self._population), *(len(part) for part in self._generations)],
            "unasked": [place[id(one)] for one in self._unasked],
            "asked": [place[id(one)] for waiting in self._asked.values() for one in waiting],
        }
        return State(arrays, data)

    def restore(self, state: State) -> None:
        """Go on from a state of a method with the same space and settings."""
        arrays, data = state.arrays, state.data
        restore_generator(self._rng, data["random"])
        self.generation = int(data["generation"])
        nothing = self.space.library.narrow(np.full(arrays["units"].shape, np.nan))
        designs = DesignBatch(self.space.library, arrays["tokens"], nothing, arrays["lengths"])
        everyone = self._individuals(designs, arrays["units"])
        for individual, reward in zip(everyone, arrays["rewards"].tolist(), strict=True):
            if reward == reward:
                individual.fitness.values = (reward,)
        parts: list[list[Any]] = []
        first = 0
        for size in data["sizes"]:
            parts.append(everyone[first : first + size])
            first += size
        self._population, self._generations = parts[0], deque(parts[1:])
        self._unasked = [everyone[number] for number in data["unasked"]]
        asked = [everyone[number] for number in data["asked"]]
        self._asked = {}
        if asked:
            keys = self._designs(asked)[0].keys()
            for key, individual in zip(keys, asked, strict=True):
                self._asked.setdefault(key, deque()).append(individual)


def _crossed(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator of DEAP for lists, which needs two tokens at least."""

    def mate(first: Any, second: Any) -> Any:
        return operator(first, second) if min(len(first), len(second)) >= 2 else (first, second)

    return mate


def _stretch_changer(new: Callable[[int], list[_Node]], s: GPSettings, fixed: bool) -> Callable[[Any], Any]:
    """Mutation of a sequence: some tokens in a row, as many as a new subtree is deep, are replaced by others."""

    def change(individual: Any) -> Any:
        begin = random.randrange(len(individual)) if individual else 0
        old = random.randint(s.min_depth + fixed, s.max_depth + 1)
        old = min(old, len(individual) - begin)
        individual[begin : begin + old] = new(old if fixed else random.randint(s.min_depth, s.max_depth + 1))
        return (individual,)

    return change
