"""Units as text, and what they come to."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discodso.base.errors import DeclarationError
from discodso.tasks.regression.units import (
    BASES,
    Dimension,
    Unit,
    parse_unit,
    unit_in_name,
    units_in_names,
)


def dimension(**exponents):
    return Dimension(tuple(Fraction(exponents.get(base, 0)) for base in BASES))


FORCE, ENERGY, SPEED = dimension(kg=1, m=1, s=-2), dimension(kg=1, m=2, s=-2), dimension(m=1, s=-1)


@pytest.mark.parametrize(
    ("text", "expected", "factor"),
    [
        ("1", Dimension(), 1),
        ("-", Dimension(), 1),
        ("rad", Dimension(), 1),
        ("%", Dimension(), 0.01),
        ("deg", Dimension(), math.pi / 180),
        ("°", Dimension(), math.pi / 180),
        ("m", dimension(m=1), 1),
        ("kg", dimension(kg=1), 1),
        ("g", dimension(kg=1), 0.001),
        ("mg", dimension(kg=1), 1e-6),
        ("kg*m/s^2", FORCE, 1),
        ("kg·m·s⁻²", FORCE, 1),
        ("kg m s-2", FORCE, 1),
        ("kg m s**-2", FORCE, 1),
        ("N", FORCE, 1),
        ("kN", FORCE, 1000),
        ("J", ENERGY, 1),
        ("N.m", ENERGY, 1),
        ("V", dimension(kg=1, m=2, s=-3, A=-1), 1),
        ("K", dimension(K=1), 1),
        ("°C", dimension(K=1), 1),
        ("km/h", SPEED, 1000 / 3600),
        ("ms", dimension(s=1), 0.001),
        ("min", dimension(s=1), 60),
        ("mmol/L", dimension(mol=1, m=-3), 1),
        ("µm", dimension(m=1), 1e-6),
        ("um", dimension(m=1), 1e-6),
        ("dam", dimension(m=1), 10),
        ("cd", dimension(cd=1), 1),
        ("Pa", dimension(kg=1, m=-1, s=-2), 1),
        ("hPa", dimension(kg=1, m=-1, s=-2), 100),
        ("J/(kg K)", dimension(m=2, s=-2, K=-1), 1),
        ("J/kg/K", dimension(m=2, s=-2, K=-1), 1),
        ("W m-2 K-4", dimension(kg=1, s=-3, K=-4), 1),
        ("V/m^0.5", dimension(kg=1, m=Fraction(3, 2), s=-3, A=-1), 1),
        ("V/m^(1/2)", dimension(kg=1, m=Fraction(3, 2), s=-3, A=-1), 1),
        ("m^(-2)", dimension(m=-2), 1),
        ("1/s", dimension(s=-1), 1),
        ("10^3 kg", dimension(kg=1), 1000),
        ("MeV", ENERGY, 1.602176634e-13),
        ("Ω", dimension(kg=1, m=2, s=-3, A=-2), 1),
        ("(m/s)^2", dimension(m=2, s=-2), 1),
        ("cm2", dimension(m=2), 1e-4),
        ("kNm", ENERGY, 1000),
        ("kWh", ENERGY, 3.6e6),
    ],
)
def test_units_are_read(text, expected, factor):
    unit = parse_unit(text)
    assert unit.dimension == expected
    assert unit.factor == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    ["", " ", "furlong", "m/", "/s", "m//s", "m^", "m^x", "(m", "m)", "m^(1/0)", "m^999", "1/0", "m s^", "N-m",
     "^2", "9" * 200, "1e999", "kkg", "m^(", "__", "(" * 90, None, 3],
)  # fmt: skip
def test_what_is_no_unit_is_refused_in_a_line(text):
    with pytest.raises(DeclarationError) as caught:
        parse_unit(text)
    assert "\n" not in str(caught.value)


def test_a_near_name_is_guessed():
    with pytest.raises(DeclarationError, match="there is no unit 'Kel'"):
        parse_unit("Kel")
    with pytest.raises(DeclarationError, match="did you mean 'min'"):
        parse_unit("mins")


exponents = st.fractions(min_value=-4, max_value=4, max_denominator=4)


@given(st.tuples(*[exponents] * 7))
def test_a_dimension_is_written_as_it_is_read(own):
    assert parse_unit(str(Dimension(own))) == Unit(Dimension(own))


@given(st.tuples(*[exponents] * 7), st.tuples(*[exponents] * 7))
def test_dimensions_multiply_like_units(a, b):
    a, b = Dimension(a), Dimension(b)
    assert (a * b) / b == a
    assert (a * b) ** 2 == a**2 * b**2
    assert (a * b).exponents == tuple(
        one + other for one, other in zip(a.exponents, b.exponents, strict=True)
    )


def test_units_in_names_of_columns():
    assert unit_in_name("speed (m/s)") == ("speed", parse_unit("m/s"))
    assert unit_in_name("heat capacity [J/(kg K)]") == ("heat capacity", parse_unit("J/(kg K)"))
    assert unit_in_name("c (J/(kg K))") == ("c", parse_unit("J/(kg K)"))
    assert unit_in_name("angle [-]") == ("angle", Unit(Dimension()))
    assert unit_in_name("price (EUR)") == ("price (EUR)", None)
    assert unit_in_name("speed") == ("speed", None)
    assert unit_in_name("(m)") == ("(m)", None)
    assert units_in_names(["t (s)", "n", "who (name)"]) == {"t (s)": parse_unit("s")}
