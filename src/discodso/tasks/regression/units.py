"""Units of measurement: from text to exponents of the SI's base units, and whether a formula respects them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discodso.base.checks import did_you_mean
from discodso.base.errors import DeclarationError

BASES = ("kg", "m", "s", "A", "K", "mol", "cd")
_NONE = (Fraction(0),) * len(BASES)


@dataclass(frozen=True)
class Dimension:
    """Exponents of `BASES`; `Dimension()` has none of them."""

    exponents: tuple[Fraction, ...] = _NONE

    def __mul__(self, other: Dimension) -> Dimension:
        return Dimension(tuple(a + b for a, b in zip(self.exponents, other.exponents, strict=True)))

    def __truediv__(self, other: Dimension) -> Dimension:
        return self * other**-1

    def __pow__(self, power: Fraction | int) -> Dimension:
        return Dimension(tuple(a * power for a in self.exponents))

    def __bool__(self) -> bool:
        return any(self.exponents)

    def __str__(self) -> str:
        """As `parse_unit` reads it: "kg*m/s^2", or "1" where there is none."""
        named = [(base, e) for base, e in zip(BASES, self.exponents, strict=True) if e]
        above = "*".join(_power(base, e) for base, e in named if e > 0)
        below = "".join(f"/{_power(base, -e)}" for base, e in named if e < 0)
        return (above or "1") + below


NO_DIMENSION = Dimension()


@dataclass(frozen=True)
class Unit:
    """A unit: a number of it is `factor` times as many of the SI's base units."""

    dimension: Dimension
    factor: float = 1.0


UnitLike = str | Unit | Dimension | None  # as text, or known; None is unknown


def parse_unit(text: str) -> Unit:
    """Read a unit such as "kg*m/s^2", "N", "km/h", "W m-2 K-1", "m/s²", "J/(kg K)" or "1".

    Products and quotients are read from left to right, so "J/kg K" is (J/kg) K. Degrees Celsius are differences:
    the zero is not moved.
    """
    if not isinstance(text, str) or len(text) > 100:
        raise DeclarationError(f"a unit is a short text such as 'm/s^2', got {text!r:.60}")
    if text.strip() in ("-", "dimensionless"):
        return Unit(Dimension())
    reader = _UnitReader(text)
    factor, dimension = reader.product()
    if reader.tokens:
        reader.refuse()
    return Unit(dimension, float(factor))


def dimension_of(unit: UnitLike) -> Dimension | None:
    """The dimension of a unit in any form, None where it is unknown."""
    unit = parse_unit(unit) if isinstance(unit, str) else unit
    return unit.dimension if isinstance(unit, Unit) else unit


def unit_in_name(column: str) -> tuple[str, Unit | None]:
    """A name and its unit: "speed (m/s)" or "speed [m/s]"; None where there is no unit that can be read."""
    match = re.fullmatch(
        r"\s*(.*?)\s*(?:\(([^()]*(?:\([^()]*\)[^()]*)*)\)|\[([^\[\]]*)\])\s*", column, re.DOTALL
    )
    if match is None or not match[1]:
        return column, None
    try:
        return match[1], parse_unit(match[2] if match[3] is None else match[3])
    except DeclarationError:
        return column, None


def units_in_names(columns: Sequence[str]) -> dict[str, Unit]:
    """Units of the columns whose names say one, by whole names."""
    found = {column: unit_in_name(column)[1] for column in columns}
    return {column: unit for column, unit in found.items() if unit is not None}


# ------------------------------------------------------------------------------------------ what is known

_PREFIXES = {
    name: Fraction(10) ** int(power)
    for names, power in re.findall(
        r"(\D+?) (-?\d+)",
        "Q 30,R 27,Y 24,Z 21,E 18,P 15,T 12,G 9,M 6,k 3,h 2,da 1,d -1,c -2,m -3,uµμ -6,n -9,p -12,f -15,a -18,"
        "z -21,y -24,r -27,q -30",
    )
    for name in (["da"] if "da" in names else names.strip(","))
}
# Names and a formula of those before them. The first may have prefixes.
_WITH_PREFIXES = """
Hz Bq = 1/s; N = kg*m/s^2; Pa = N/m^2; J = N*m; W = J/s; C = A*s; V = W/A; F = C/V; ohm Ohm Ω Ω = V/A; S = A/V;
Wb = V*s; T = Wb/m^2; H = Wb/A; lm = cd; lx = lm/m^2; Gy Sv = J/kg; kat = mol/s; rad sr = 1; L l = 0.001 m^3;
t = 1000 kg; Nm = N*m; Wh = 3600 J; Ah = 3600 C; VA = W; eV = 1.602176634e-19 J; bar = 100000 Pa; cal = 4.184 J
"""
_WITHOUT = """
min = 60 s; h hr = 3600 s; d day = 86400 s; a yr year = 31557600 s; atm = 101325 Pa; mmHg = 133.322387415 Pa;
degC °C ℃ = K; % = 0.01; ppm = 0.000001; Å = 1e-10 m; ha = 10000 m^2; au = 149597870700 m; inch = 0.0254 m;
ft = 0.3048 m; yd = 0.9144 m; mile mi = 1609.344 m; mph = mile/h; kn = 1852 m/h; lb = 0.45359237 kg;
lbf = 4.4482216152605 N; psi = lbf/inch^2; rpm = 1/min
"""
_Known = tuple[Fraction, Dimension]
_UNITS: dict[str, _Known] = {}
_PREFIXED: set[str] = set()

# ------------------------------------------------------------------------------------------ reading

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<power>\*\*|\^)|(?P<sign>[*/()·⋅×.])"
    r"|(?P<word>[^\W\d_]+|°[CF]?|%|℃)(?P<raised>[+-]?\d+)?)"
)


class _UnitReader:
    """Reads a unit from left to right; `tokens` are those that are left, the next one last."""

    def __init__(self, text: str) -> None:
        self._text = text
        plain = re.sub(
            r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+", lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text
        ).rstrip()
        self.tokens: list[str] = []
        place = 0
        while place < len(plain):
            match = _TOKEN.match(plain, place)
            signed = (
                re.compile(r"[+-]").match(plain, place) if self.tokens and self.tokens[-1] in "^(" else None
            )
            if match is None and signed is None:
                self.refuse()
            elif match is None:
                self.tokens.append(plain[place])
                place += 1
            else:
                found = match["power"] and "^"
                self.tokens.append(found or match["number"] or match["sign"] or match["word"])
                self.tokens += ["^", match["raised"]] if match["raised"] else []
                place = match.end()
        self.tokens.reverse()
        if not self.tokens:
            self.refuse()

    def refuse(self) -> None:
        raise DeclarationError(
            f"{self._text!r} is no unit that can be read; write one such as 'kg*m/s^2' or '1'"
        )

    def product(self) -> _Known:
        factor, dimension = self.raised()
        while self.tokens and self.tokens[-1] not in (")", "^"):
            sign = self.tokens.pop() if self.tokens[-1] in "*/·⋅×." else "*"
            other, own = self.raised()
            if sign == "/" and other == 0:
                self.refuse()
            factor, dimension = (
                (factor / other, dimension / own) if sign == "/" else (factor * other, dimension * own)
            )
        return factor, dimension

    def raised(self) -> _Known:
        factor, dimension = self.single()
        if self.tokens and self.tokens[-1] == "^":
            self.tokens.pop()
            power = self.exponent()
            if power.denominator == 1:
                return factor ** int(power), dimension**power
            return Fraction(float(factor) ** float(power)), dimension**power
        return factor, dimension

    def exponent(self) -> Fraction:
        """A number, or a fraction in brackets."""
        text = ""
        if self.tokens and self.tokens[-1] == "(":
            self.tokens.pop()
            while self.tokens and self.tokens[-1] != ")":
                text += self.tokens.pop()
            self.close()
        else:
            while self.tokens and not text.strip("+-"):
                text += self.tokens.pop()
        try:
            power = Fraction(text)
        except (ValueError, ZeroDivisionError):
            power = Fraction(1000)
        if abs(power) > 100:
            self.refuse()
        return power

    def single(self) -> _Known:
        token = self.tokens.pop() if self.tokens else ""
        if token == "(":
            found = self.product()
            self.close()
            return found
        if token[:1].isdigit():
            value = (
                Fraction(token)
                if len(token) < 25 and not re.search(r"[eE][+-]?\d{3}", token)
                else Fraction(0)
            )
            if not value:
                self.refuse()
            return value, Dimension()
        return self.named(token)

    def close(self) -> None:
        if not self.tokens or self.tokens.pop() != ")":
            self.refuse()

    def named(self, name: str) -> _Known:
        if name in _UNITS:
            return _UNITS[name]
        for length in (1, 2):
            prefix, rest = name[:length], name[length:]
            if prefix in _PREFIXES and rest in _PREFIXED:
                factor, dimension = _UNITS[rest]
                return _PREFIXES[prefix] * factor, dimension
        if not name or not (name[0].isalpha() or name[0] in "°%"):
            self.refuse()
        hint = did_you_mean(name, list(_UNITS))
        raise DeclarationError(f"{self._text!r}: there is no unit {name!r}{hint}")


def _power(base: str, exponent: Fraction) -> str:
    if exponent == 1:
        return base
    return f"{base}^{exponent}" if exponent.denominator == 1 else f"{base}^({exponent})"


def _learn() -> None:
    for place, base in enumerate(BASES):
        one = Dimension(tuple(Fraction(int(i == place)) for i in range(len(BASES))))
        name, factor = ("g", Fraction(1, 1000)) if base == "kg" else (base, Fraction(1))
        _UNITS[name] = factor, one
        _PREFIXED.add(name)
    for table, prefixed in ((_WITH_PREFIXES, True), (_WITHOUT, False)):
        for names, formula in (entry.split("=") for entry in table.split(";")):
            for name in names.split():
                _UNITS[name] = _UnitReader(formula).product()
                _PREFIXED.update({name} if prefixed else ())
    for name in ("deg", "°"):
        _UNITS[name] = Fraction(math.pi) / 180, Dimension()


_learn()
