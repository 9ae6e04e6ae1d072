"""From the outputs phi of the network to distributions of values, and how likely the values of designs are.

    log p = sum over the values of a token of log p(value | token, values before it)

A real number has a density, an integer the mass of its interval, an option a probability. The entropy of the first
value of a token is the expected one over all tokens that may stand there (the hybrid entropy H_i of the appendix).
That of a later value is the one given the token and the values before it as they are: the chain rule along the
design, as it is for the positions of a design.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from discodso.base.arrays import Floats, Ints, Singles
from discodso.base.errors import DeclarationError
from discodso.disco import _kernels as own_kernels
from discodso.disco.distributions import (
    Normal,
    TruncatedNormal,
    entropy_of_bins,
    log_mass_between,
    log_prob_and_entropy,
    mean_of_truncated,
)
from discodso.disco.emission import Places
from discodso.disco.settings import SCALE_LIMITS, NetworkSettings
from discodso.space import _kernels
from discodso.space.replay import Trace
from discodso.space.ruled import Options
from discodso.space.space import Space
from discodso.space.values import Choice

COORDINATE_LIMIT = 10.0  # of what a network sees of values; a constant of 1e6 must not saturate every gate
FORBIDDEN = -1e30  # logit of what may not be drawn
# Log density of a told value that the policy would never draw; below it only tokens teach.
_OUT_OF_REACH = -1e3
# In the units of the value float32 loses what is further away, or narrower, in scales of the distribution.
_FARTHEST, _NARROWEST = 1e7, 1e-17
_COUNTED = 100  # integers over which the entropy is a sum


class Numbers(NamedTuple):
    """Means and scales of normal distributions of values."""

    mean: Tensor
    scale: Tensor

    def at(self, where: tuple[Any, ...]) -> Numbers:
        """Of some of the values."""
        return Numbers(self.mean[where], self.scale[where])


class ValueHead(nn.Module):
    """The values of a library among the inputs and outputs of a network.

    phi has a mean and, if learned, a log scale for each number, and a logit for each option. The parameters of the
    later values of a token also depend, linearly, on the values before them.

    Attributes:
        features: F, inputs for the values of one token: a coordinate for each of its V slots, then a place for
            each option. Choices with the same name and options share theirs, and so what is learned of them.
        outputs: O, of phi: means, then log scales if they are learned, then logits of options.
        distribution: of all numbers.
    """

    def __init__(self, space: Space, settings: NetworkSettings) -> None:
        super().__init__()
        self.library = library = space.library
        self.settings = settings
        self._feature = np.where(library.numeric, np.arange(library.slots), -1)
        self.features = library.slots
        self._numbers = int(library.numeric.sum())
        self.outputs = self._numbers * (1 + settings.learn_scale)
        # First logit of the options of a column, and how many they are.
        self._first, self._counts = np.zeros((2, len(library.columns)), np.int64)
        shared: dict[Any, int] = {}
        for index, column in enumerate(library.columns):
            if isinstance(column.value, Choice):
                group, count = (column.name, column.value), len(column.value.options)
                if group not in shared:
                    shared[group] = self.features
                    self.features += count
                self._feature[column.token, column.slot] = shared[group]
                self._first[index], self._counts[index] = self.outputs, count
                self.outputs += count
        own = (
            library.column_of,
            library.number_of,
            self._feature,
            self._first,
            library.options,
            library.integer,
        )
        wide = library.wide_coordinates
        self._layout = own_kernels.Layout(*own, wide, COORDINATE_LIMIT)
        # What the coordinates 0 and 1 of each number are in those of the settings, less the former.
        literal = library.numeric & (settings.coordinates == "value")
        far = np.maximum(wide.offset - settings.shift, settings.shift - wide.offset - wide.width)
        lost = (far > _FARTHEST * settings.scale) | (wide.width < _NARROWEST * settings.scale)
        if (literal & lost).any():
            token = library.tokens[int(np.argwhere(literal & lost)[0, 0])]
            raise DeclarationError(
                f"token {token.name!r}: its range is too far from {settings.shift:g} or too narrow for a scale of "
                f"{settings.scale:g} in the units of the value (preset 'paper'); give it other units, or use the "
                "preset 'paper-scaled'"
            )
        self._zero, self._one = np.where(literal, wide.offset, 0.0), np.where(literal, wide.width, 1.0)
        of_numbers = self._zero[library.numeric], self._one[library.numeric]
        self._zeros, self._ones = (torch.from_numpy(own) for own in of_numbers)
        self._normals = own_kernels.Normals(
            shift=float(settings.shift),
            unit=float(settings.mean_scale),
            scale=float(settings.scale),
            least=float(settings.min_scale),
            most=SCALE_LIMITS[1],
            log_scales=self._numbers if settings.learn_scale else 0,
            zero=self._zero,
            one=self._one,
        )
        self.conditions: nn.Linear | None = None
        if library.slots > 1:
            self.conditions = nn.Linear(self.features, self.outputs, bias=False, dtype=torch.float32)
        ends = np.stack((library.wide(library.low), library.wide(library.high)))[:, library.numeric]
        bounded = bool(np.isfinite(ends).any()) or not space.has_fixed_ranges
        self.distribution = TruncatedNormal() if bounded else Normal()
        self._first_number_of = np.cumsum(library.numeric[:, 0]) - 1  # of each token, among the first values
        self._reals, self._options = library.numeric & ~library.integer, library.options > 0
        kinds, later = (self._reals, library.integer, self._options), range(1, library.slots)
        # Kinds, and slots of each that are scored together: later numbers are, but not options, of which one may
        # have many more than another.
        groups = [(kind, slice(0, 1)) for kind in kinds] + [(kind, slice(1, None)) for kind in kinds[:2]]
        groups += [(self._options, slice(slot, slot + 1)) for slot in later]
        self._groups = [(kind, slots) for kind, slots in groups if kind[:, slots].any()]

    # -------------------------------------------------------------------------------------------- inputs

    @property
    def width(self) -> int:
        """Inputs for one token with its values."""
        return len(self.library) + self.features

    def write_inputs(self, ids: Ints, z: Floats, inputs: Any) -> None:
        """Write ids[S, N] and z[S, N, V] into inputs[N, S * width], which must be zero."""
        options, z = self.library.options, self._as_seen(ids, z)
        _kernels.fill_inputs(ids, z, self.width, self._feature, options, COORDINATE_LIMIT, inputs)

    def _seen(self, at: Places, z: Floats) -> Tensor:
        """float32[N, F], what is seen of the values before these places, with coordinates z[N, V]."""
        seen = np.zeros((len(at.tokens), self.features), np.float32)
        slot = np.zeros(len(at.tokens), np.int64) + at.slot
        z = self._as_seen(at.tokens, z)
        own_kernels.fill_seen(at.tokens, slot, z, self._feature, self.library.options, COORDINATE_LIMIT, seen)
        return torch.from_numpy(seen)

    def _as_seen(self, ids: Ints, z: Floats) -> Floats:
        """What the network sees of coordinates z[..., V] of tokens; of token -1 they do not count."""
        return z if self.settings.coordinates == "range" else z * self._one[ids] + self._zero[ids]

    # ------------------------------------------------------------------------------------- distributions

    def numbers(self, phi: Tensor) -> Numbers:
        """Means and scales of all numbers that are first values [..., N], in float64, from phi[..., O]."""
        count = self._numbers
        mean, scale = phi[..., :count], phi[..., count : 2 * count]
        own = torch.from_numpy(self.library.number_of[self.library.numeric[:, 0], 0])
        if self.library.slots > 1:
            mean = mean.index_select(-1, own)
            scale = scale.index_select(-1, own) if self.settings.learn_scale else scale
        return self._distributed(mean, scale, own)

    def _distributed(self, raw_mean: Tensor, raw_scale: Tensor, number: Tensor) -> Numbers:
        """Means and scales, in coordinates, of outputs [..., N] for number[N]."""
        s = self.settings
        mean = s.mean_scale * raw_mean.double() + s.shift
        if s.learn_scale:
            scale = s.scale * torch.exp(raw_scale.double().clamp(-20, 20))
            scale = scale.clamp(s.min_scale, SCALE_LIMITS[1])
        else:
            scale = torch.full((), s.scale, dtype=torch.float64).expand(mean.shape)
        if s.coordinates == "range":
            return Numbers(mean, scale)
        zero, one = self._zeros[number], self._ones[number]
        return Numbers((mean - zero) / one, scale / one)

    def numbers_at(self, phi: Tensor, rows: Tensor, at: Places, z: Floats) -> Numbers:
        """Of the numbers at these places, from rows[N] of phi[M, O], given the values before them, at coordinates
        z[N, V]."""
        number = torch.from_numpy(self.library.number_of[at.tokens, at.slot])
        outputs = [number]
        if self.settings.learn_scale:
            outputs.append(number + self._numbers)
        raw = [phi[rows, output] for output in outputs]
        if self.conditions is not None and np.any(at.slot):
            seen = self._seen(at, z)
            weights = (self.conditions.weight.index_select(0, output) for output in outputs)
            raw = [own + (seen * weight).sum(-1) for own, weight in zip(raw, weights, strict=True)]
        return self._distributed(raw[0], raw[-1], number)

    def option_logits(self, phi: Tensor, at: Places, z: Floats) -> Tensor:
        """float64[N, most], logits of the options at these places, from phi[N, O], given the values before them,
        at coordinates z[N, V]; FORBIDDEN behind the last."""
        if self.conditions is not None and np.any(at.slot):
            phi = phi + self.conditions(self._seen(at, z))
        columns = self.library.column_of[at.tokens, at.slot]
        first, counts = torch.from_numpy(self._first[columns]), torch.from_numpy(self._counts[columns])
        places = torch.arange(int(counts.max()))
        logits = phi.gather(-1, (first[:, None] + places).clamp(max=self.outputs - 1)).double()
        return logits.masked_fill(places >= counts[:, None], FORBIDDEN)

    def draw(self, phi: Singles, chosen: Ints, options: Options, uniform: Floats) -> Floats:
        """Values float[B, V] of the chosen tokens of a space with V > 1, NaN where there is none, from phi[B, O]
        and uniform[V, B]."""
        assert self.conditions is not None
        library = self.library
        values = np.full((len(chosen), library.slots), np.nan)
        barred = np.zeros((len(options.barred), len(chosen), int(library.options.max())), np.bool_)
        barred_at = np.full(len(library.columns), -1, np.int64)
        for at, (column, mask) in enumerate(options.barred.items()):
            barred[at, :, : mask.shape[1]], barred_at[column] = mask, at
        allowed = own_kernels.Allowed(options.low, options.high, barred, barred_at)
        weight = self.conditions.weight.detach().numpy()
        own_kernels.draw_values(phi, weight, chosen, uniform, allowed, self._layout, self._normals, values)
        return values

    # ------------------------------------------------------------------------------------------- scoring

    def score(self, phi: Tensor, trace: Trace, p: Tensor) -> tuple[Tensor, Tensor]:
        """Log probability of the values of designs, float[B], and their entropy, float[T, B].

        Args:
            phi: float32[T, B, O].
            trace: what was drawn, and within which bounds.
            p: float[T, B, K], probabilities of the tokens.
        """
        tokens = np.maximum(trace.tokens, 0)
        first = self.numbers(phi)
        entropy = self._expected_entropy(phi, first, trace, p)
        log_prob = torch.zeros(phi.shape[1], dtype=torch.float64)
        for kind, slots in self._groups:
            *at, slot = np.nonzero(kind[tokens, slots] & trace.active[..., None])
            if not len(slot):
                continue
            where, later = (torch.from_numpy(at[0]), torch.from_numpy(at[1])), slots.start > 0
            places = Places(tokens[at[0], at[1]], slot + slots.start)
            if kind is self._options:
                found, along = self._score_options(phi[where], places, (at[0], at[1]), trace)
            else:
                if later:
                    rows = where[0] * phi.shape[1] + where[1]
                    numbers = self.numbers_at(phi.flatten(0, 1), rows, places, trace.z[at[0], at[1]])
                else:
                    numbers = first.at((*where, torch.from_numpy(self._first_number_of[places.tokens])))
                integers = kind is self.library.integer
                found, along = self._score_numbers(numbers, places, (at[0], at[1]), trace, integers, later)
            log_prob = log_prob.index_add(0, where[1], found.clamp(min=_OUT_OF_REACH))
            if later:
                entropy = entropy.index_put(where, along.to(entropy.dtype), accumulate=True)
        return log_prob, entropy

    def _score_numbers(
        self, own: Numbers, places: Places, at: tuple[Ints, ...], trace: Trace, integers: bool, later: bool
    ) -> tuple[Tensor, Tensor]:
        """Log probabilities of numbers, and their entropies; these only for later values of tokens."""
        library, columns = self.library, self.library.column_of[places.tokens, places.slot]
        low, high = (
            torch.from_numpy(ends[columns] if ends.ndim == 1 else ends[(*at, columns)])
            for ends in (trace.low, trace.high)
        )
        if not integers:
            z = torch.from_numpy(trace.z[(*at, places.slot)])
            stretch = self._stretch(places)
            if later:
                found, entropy = log_prob_and_entropy(z, *own, low, high)
                return found - stretch, entropy + stretch
            found = self.distribution.log_prob(z, *own, low, high) - stretch
            return found, found
        value = trace.values[(*at, places.slot)]
        ends = (library.coordinates.to_z(places[: library.low.ndim], value + step) for step in (-0.5, 0.5))
        lower, upper = map(torch.from_numpy, ends)
        found = log_mass_between(lower, upper, *own, low, high)
        entropy = torch.zeros_like(found)
        for column in np.unique(columns).tolist() if later else ():
            here = torch.from_numpy(np.flatnonzero(columns == column))
            entropy[here] = self._integer_entropy(column, own.at((here,)), low[here], high[here])
        return found, entropy

    def _stretch(self, places: Places) -> Any:
        """Log of the unit of coordinates in that of the settings, which entropies gain and log densities lose."""
        if self.settings.coordinates == "range":
            return 0.0
        return torch.from_numpy(np.log(self._one[places.tokens, places.slot]))

    def _score_options(
        self, phi: Tensor, places: Places, at: tuple[Ints, ...], trace: Trace
    ) -> tuple[Tensor, Tensor]:
        """Log probabilities of options, and their entropies."""
        logits = self.option_logits(phi, places, trace.z[at])
        columns = self.library.column_of[places.tokens, places.slot]
        for column, mask in trace.barred.items():
            here = np.flatnonzero(columns == column)
            barred = np.zeros(tuple(logits.shape), np.bool_)
            barred[here, : mask.shape[2]] = mask[at[0][here], at[1][here]]
            logits = logits.masked_fill(torch.from_numpy(barred), FORBIDDEN)
        log_p = torch.log_softmax(logits, dim=-1)
        option = torch.from_numpy(trace.values[(*at, places.slot)].astype(np.int64))
        return log_p.gather(-1, option[:, None]).squeeze(-1), -(log_p.exp() * log_p).sum(-1)

    def _expected_entropy(self, phi: Tensor, numbers: Numbers, trace: Trace, p: Tensor) -> Tensor:
        """float[T, B], entropy of first values, expected over the tokens."""
        library, first, everywhere = self.library, self._reals[:, 0], numbers
        total = torch.zeros(p.shape[:2], dtype=p.dtype)
        idle = ~torch.from_numpy(trace.active)[..., None]
        if first.any():
            tokens = torch.from_numpy(first)
            columns, which = library.column_of[first, 0], self._first_number_of[first]
            if len(which) < numbers.mean.shape[-1]:
                numbers = numbers.at((..., torch.from_numpy(which)))
            low, high = (torch.from_numpy(ends[..., columns]) for ends in (trace.low, trace.high))
            if not self.settings.learn_scale and isinstance(self.distribution, Normal):
                # Does not depend on the mean: one number instead of T * B * P.
                mean, scale = (own[0, 0].flatten()[0] for own in numbers)
            else:
                # A forbidden token has probability 0; its interval may be empty, so it is given a harmless one.
                unused = torch.from_numpy(trace.forbidden)[..., tokens] | idle
                nothing = torch.zeros(unused.shape, dtype=torch.float64)
                low, high = torch.where(unused, nothing, low), torch.where(unused, nothing + 1, high)
                mean, scale = numbers
            entropy = self.distribution.entropy(mean, scale, low, high)
            entropy = (entropy + self._stretch(Places(np.flatnonzero(first), 0))).float()
            total = (p[..., tokens] * entropy).sum(-1)
        for index, column in enumerate(library.columns):
            if column.slot or first[column.token]:
                continue
            if isinstance(column.value, Choice):
                own = slice(self._first[index], self._first[index] + self._counts[index])
                logits = phi[..., own].double()
                if index in trace.barred:
                    logits = logits.masked_fill(torch.from_numpy(trace.barred[index]), FORBIDDEN)
                log_p = torch.log_softmax(logits, dim=-1)
                entropy = -(log_p.exp() * log_p).sum(-1)
            else:
                number = int(self._first_number_of[column.token])
                unused = torch.from_numpy(trace.forbidden)[..., column.token] | idle[..., 0]
                low, high = (torch.from_numpy(ends[..., index]) for ends in (trace.low, trace.high))
                nothing = torch.zeros(unused.shape, dtype=torch.float64)
                low, high = torch.where(unused, nothing, low), torch.where(unused, nothing + 1, high)
                entropy = self._integer_entropy(index, everywhere.at((..., number)), low, high)
            total = total + p[..., column.token] * entropy.to(p.dtype)
        return total

    def _integer_entropy(self, index: int, own: Numbers, low: Tensor, high: Tensor) -> Tensor:
        """Of the integers of a column. The first hundred are summed; later ones have the entropy of the Normal and
        the mean logarithm of how many there are to a unit of the coordinate."""
        column, c = self.library.columns[index], self.library.coordinates
        value, at = column.value, (column.token, column.slot)[: self.library.low.ndim]
        count = value.high - value.low + 1
        ends = np.arange(min(count, _COUNTED) + 1) + (value.low - 0.5)
        edges = torch.from_numpy(c.to_z(at, ends))
        if count <= _COUNTED:
            return entropy_of_bins(edges, *own, low, high)
        total = torch.zeros_like(own.mean)
        middle = torch.clamp(edges[-1], low, high)
        for first, (lower, upper) in ((True, (low, middle)), (False, (middle, high))):
            there = upper > lower
            lower, upper = torch.where(there, lower, low), torch.where(there, upper, high)  # else any will do
            log_p = log_mass_between(lower, upper, *own, low, high)
            if first:
                entropy = entropy_of_bins(edges, *own, lower, upper)
            else:
                entropy = self.distribution.entropy(*own, lower, upper) + float(np.log(c.width[at]))
                if value.log:
                    mean = mean_of_truncated(*own, lower, upper)
                    entropy = entropy + float(c.offset[at]) + float(c.width[at]) * mean
            total = total + torch.where(there, log_p.exp() * (entropy.clamp(min=0.0) - log_p), 0.0)
        return total
