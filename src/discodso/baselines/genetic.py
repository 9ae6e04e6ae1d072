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
from itertools import islice
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discodso.base.arrays import Floats, Ints
from discodso.base.checks import require, require_integer, require_number, seed_sequence, settle_integers
from discodso.base.dominance import by_dominance
from discodso.base.errors import DeadEndError
from discodso.baselines.common import all_units, extra, sound_designs, with_options
from discodso.disco.method import Metrics, told_arrays
from discodso.disco.sampling import Redrawn, sample
from discodso.disco.uniform import UniformStepper
from discodso.space.design import Design, DesignBatch
from discodso.space.replay import replay
from discodso.space.skeletons import fill, skeleton_space, unit_limits
from discodso.space.space import Space
from discodso.space.state import State, generator_state, restore_generator

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
class NSGA2Settings(GPSettings):
    """Settings of NSGA-II (Deb et al., 2002), for several objectives, on the operators of genetic programming.

    Args:
        population, tournament: as in the publication; the others are those of `GPSettings`.
    """

    population: int = 100
    tournament: int = 2
    crossover: float = 0.9

    several_objectives: ClassVar[str] = "only"

    def build(self, space: Space, seed: int | np.random.SeedSequence = 0) -> NSGA2:
        """Start the method on a space."""
        return NSGA2(space, self, seed=seed)


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


class GP:
    """A population on a space.

    DEAP draws from Python's global random stream; it is put in place for as long as DEAP works, and put back.
    """

    _several = False  # objectives

    def __init__(self, space: Space, settings: GPSettings, *, seed: int | np.random.SeedSequence = 0) -> None:
        require("space", space, isinstance(space, Space), "a Space")
        self.space = space
        self.settings = settings
        self.batch_size = settings.population
        self.generation = 0
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
        self._redrawn = Redrawn()

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
        return self._hand_out(chosen)

    def _hand_out(self, individuals: list[Any]) -> DesignBatch:
        """The designs of individuals, whose rewards are waited for."""
        tokens, lengths, units = self._arrays(individuals)
        designs, _ = fill(self.space, with_options(self.space, tokens, lengths, units), units)
        for key, individual in zip(designs.keys(), individuals, strict=True):
            self._asked.setdefault(key, deque()).append(individual)
        return designs

    def tell(
        self, designs: Sequence[Design], rewards: ArrayLike, weights: ArrayLike | None = None
    ) -> Metrics | None:
        """Rewards of individuals. Those of a generation that is complete make it the population.

        A design that was not asked for joins the population.
        """
        batch, told = told_arrays(self.space, designs, rewards, self._several)
        told = np.where(np.isnan(told), -np.inf, told)
        told = told if self._several else told[:, None]
        strangers = []
        for row, (key, reward) in enumerate(zip(batch.keys(), told.tolist(), strict=True)):
            waiting = self._asked.get(key)
            if waiting is None:
                strangers.append(row)
                continue
            waiting.popleft().fitness.wvalues = tuple(reward)
            if not waiting:
                del self._asked[key]
        if strangers:
            unasked = batch.select(strangers)
            replay(self.space, unasked)  # refuses designs that do not belong to the space
            self._population = self._population + self._individuals(unasked, rewards=told[strangers])
        while self._generations and all(one.fitness.valid for one in self._generations[0]):
            self._population = self._survivors(self._generations.popleft())
            self.generation += 1
        if not self._population:
            return None
        return Metrics(kept=len(self._population), redrawn=self._redrawn.take())

    # --------------------------------------------------------------------------------------------- breeding

    def _breed(self) -> None:
        """The next generation; of it, what is not rated waits to be asked for."""
        s, box = self.settings, self._toolbox
        with self._own_stream():
            if not self._population:
                children = self._first_generation()
            else:
                parents = self._parents()
                children = box.vary(parents, box, s.crossover, s.mutation)
                kept = set(self._sound(children).tolist())
                children = [
                    child if row in kept else box.clone(parents[row]) for row, child in enumerate(children)
                ]
        self._generations.append(children)
        self._unasked += [child for child in children if not child.fitness.valid]
        if not self._unasked:  # every child equals a parent
            self._population = self._survivors(self._generations.pop())

    def _parents(self) -> list[Any]:
        """As many as the population has individuals, each the best of some that are drawn."""
        s = self.settings
        parents: list[Any] = self._toolbox.select(self._population, s.population, s.tournament)
        return parents

    def _survivors(self, generation: list[Any]) -> list[Any]:
        """The next population, after a generation of children."""
        return generation

    def _first_generation(self) -> list[Any]:
        """Full trees that keep the rules; sequences, which have no depth, are drawn under the rules."""
        count, made = self.settings.population, list[Any]()
        if not self.space.grammar.chain:
            for _ in range(_FULL_ATTEMPTS):
                drawn = [self._toolbox.individual(self._toolbox.new_tree()) for _ in range(count)]
                made += [drawn[row] for row in self._sound(drawn).tolist()]
                if len(made) >= count:
                    break
        if len(made) < count:
            found = sample(self.space, UniformStepper(self.space), count - len(made), self._rng)
            made += self._individuals(self._redrawn.note(found))
        return made[:count]

    def _make_toolbox(self) -> Any:
        """How individuals are made, chosen and varied; DEAP's `varAnd` looks for clone, mate and mutate."""
        modules = ("deap.algorithms", "deap.base", "deap.gp", "deap.tools")
        algorithms, base, gp, tools = extra("GP needs DEAP", *modules)
        s, library, grammar = self.settings, self.space.library, self.space.grammar
        kind: Any = list if grammar.chain else gp.PrimitiveTree

        class Fitness(base.Fitness):  # type: ignore[misc, name-defined]
            weights = (1.0,)

        class Individual(kind):  # type: ignore[misc]
            def __init__(self, nodes: Sequence[_Node], rewards: tuple[float, ...] = ()) -> None:
                super().__init__(nodes)
                self.fitness = Fitness()
                self.fitness.wvalues = rewards  # however many there are; all are maximised

        bare = (np.nan,) * library.slots
        nodes = [_Node(k, bare, int(library.arity[k])) for k in range(len(library)) if k != library.end]
        choices = SimpleNamespace(
            terminals={object: [node for node in nodes if node.arity == 0]},
            primitives={object: [node for node in nodes if node.arity > 0]},
            ret=object,
        )

        depths = (s.min_depth, s.max_depth) if choices.primitives[object] else (0, 0)

        def new_tree(pset: Any = choices, type_: type = object) -> list[_Node]:
            return [self._fresh(node) for node in gp.genFull(pset, *depths, type_)]

        fixed = bool(grammar.opens.max(initial=0) == 0)
        cross_lists = tools.cxOnePoint if fixed else tools.cxMessyOnePoint

        def mate(first: Any, second: Any) -> Any:
            if not grammar.chain:
                return gp.cxOnePoint(first, second)
            return cross_lists(first, second) if min(len(first), len(second)) >= 2 else (first, second)

        def change(individual: Any) -> Any:
            """A new subtree; in a sequence other tokens for some in a row, as many as a new subtree is deep."""
            if not grammar.chain:
                return gp.mutUniform(individual, expr=new_tree, pset=choices)
            begin = random.randrange(len(individual)) if individual else 0
            old = min(random.randint(s.min_depth + fixed, s.max_depth + 1), len(individual) - begin)
            new = old if fixed else random.randint(s.min_depth, s.max_depth + 1)
            individual[begin : begin + old] = [self._fresh(random.choice(nodes)) for _ in range(new)]
            return (individual,)

        return SimpleNamespace(
            individual=Individual,
            new_tree=new_tree,
            select=tools.selTournament,
            vary=algorithms.varAnd,
            clone=lambda one: Individual(one, one.fitness.wvalues),
            mate=mate,
            mutate=lambda one: self._mutated(one, change),
        )

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

    def _sound(self, individuals: Sequence[Any]) -> Ints:
        """int[M], which of them are designs of the space."""
        rows, _, refused = sound_designs(self.space, self._skeletons, *self._arrays(individuals))
        self._redrawn.add(refused)
        return rows

    def _arrays(self, individuals: Sequence[Any]) -> tuple[Ints, Ints, Floats]:
        """tokens[N, T], lengths[N] and units[N, T, V]; T is larger than allowed if an individual is."""
        library = self.space.library
        tail = [] if library.end is None else [library.end]
        lengths = np.array([len(one) + len(tail) for one in individuals], np.int64)
        shape = len(individuals), max(self.space.grammar.max_positions, int(lengths.max(initial=0)))
        tokens, units = np.full(shape, -1, np.int64), np.full((*shape, library.slots), np.nan)
        for row, individual in enumerate(individuals):
            tokens[row, : lengths[row]] = [node.token for node in individual] + tail
            if individual:
                units[row, : len(individual)] = [node.units for node in individual]
        return tokens, lengths, units

    def _individuals(
        self, designs: DesignBatch, units: Floats | None = None, rewards: Floats | None = None
    ) -> list[Any]:
        """Designs as individuals, with units other than their own and with rewards, NaN for none, if given."""
        units = all_units(self.space, designs) if units is None else units
        rewards = (
            np.full((len(designs), 1), np.nan)
            if rewards is None
            else rewards.reshape(len(designs), *(rewards.shape[1:] or (1,)))
        )
        arity, counts = self.space.library.arity.tolist(), designs.design_lengths().tolist()
        made = []
        for row, (count, reward) in enumerate(zip(counts, rewards.tolist(), strict=True)):
            tokens, numbers = designs.tokens[row, :count].tolist(), units[row, :count].tolist()
            nodes = [_Node(k, tuple(own), arity[k]) for k, own in zip(tokens, numbers, strict=True)]
            made.append(self._toolbox.individual(nodes, tuple(reward) if reward[0] == reward[0] else ()))
        return made

    # ------------------------------------------------------------------------------------------------ state

    def state(self) -> State:
        """Individuals with their rewards, the random stream, and what was drawn again."""
        everyone = [*self._population, *(one for part in self._generations for one in part)]
        place = {id(one): number for number, one in enumerate(everyone)}
        goals = max((len(one.fitness.wvalues) for one in everyone), default=1)
        rewards = np.full((len(everyone), max(goals, 1)), np.nan)
        for row, one in enumerate(everyone):
            if one.fitness.valid:
                rewards[row] = one.fitness.wvalues
        arrays = dict(zip(("tokens", "lengths", "units"), self._arrays(everyone), strict=True))
        data = {
            "random": generator_state(self._rng),
            "generation": self.generation,
            "sizes": [len(self._population), *(len(part) for part in self._generations)],
            "unasked": [place[id(one)] for one in self._unasked],
            "asked": [place[id(one)] for waiting in self._asked.values() for one in waiting],
        }
        own = State({**arrays, "rewards": rewards}, data)
        return State.of_parts({"own": own, "redrawn": self._redrawn.state()})

    def restore(self, state: State) -> None:
        """Go on from a state of a method with the same space and settings."""
        own = state.part("own")
        self._redrawn.restore(state.part("redrawn"))
        tokens, lengths, units, rewards = (
            own.arrays[key] for key in ("tokens", "lengths", "units", "rewards")
        )
        restore_generator(self._rng, own.data["random"])
        self.generation = int(own.data["generation"])
        everyone = self._individuals(with_options(self.space, tokens, lengths, units), units, rewards)
        rest = iter(everyone)
        self._population, *more = ([*islice(rest, size)] for size in own.data["sizes"])
        self._generations = deque(more)
        self._unasked = [everyone[number] for number in own.data["unasked"]]
        self._asked = {}
        self._hand_out([everyone[number] for number in own.data["asked"]])


class NSGA2(GP):
    """Genetic programming for several objectives: of parents and children the best by dominance live on, and where
    they dominate each other nowhere those with room about them.
    """

    _several = True

    def _ordered(self, individuals: list[Any]) -> list[Any]:
        """Distinct ones, best first."""
        distinct = list(
            {repr([(node.token, node.units) for node in one]): one for one in individuals}.values()
        )
        goals = np.array([one.fitness.wvalues for one in distinct], np.float64)
        return [distinct[row] for row in by_dominance(goals).tolist()]

    def _parents(self) -> list[Any]:
        count, tournament = len(self._population), self.settings.tournament

        def place() -> int:
            return min(random.randrange(count) for _ in range(tournament))

        return [self._population[place()] for _ in range(self.settings.population)]

    def _survivors(self, generation: list[Any]) -> list[Any]:
        return self._ordered(self._population + generation)[: self.settings.population]
