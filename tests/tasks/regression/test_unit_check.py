"""Formulas and the units of their columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discodso import Design
from discodso.base.errors import DeclarationError
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import Operator
from discodso.tasks.regression.unit_check import check
from discodso.tasks.regression.units import parse_unit

UNITS = {"v": "m/s", "m": "kg", "t": "s", "h": "m", "T": "K", "n": "1"}
COLUMNS = tuple(UNITS)


def checked(text, target=None, constants=True, units=UNITS):
    return check(Expression.parse(text, COLUMNS, constants=constants), units, target)


@pytest.mark.parametrize(
    ("text", "target", "constants"),
    [
        ("0.5 * m * v**2", "J", ["1"]),
        ("9.81 * t", "m/s", ["m/s^2"]),
        ("sqrt(2 * 9.81 * h)", "m/s", None),
        ("v * t + 4.9 * t**2", "m", ["m/s^2"]),
        ("exp(0.3 * t)", "1", ["1/s"]),
        ("3 * exp(-4 / T)", "W", ["kg*m^2/s^3", "K"]),
        ("sin(v / h * t)", "rad", []),
        ("2 + v", "m/s", ["m/s"]),
        ("h**1.5 / 3", "s", ["1", "m^(3/2)/s"]),
        ("3 * h**1.5", "s", ["s/m^(3/2)", "1"]),
        ("log(h / 2)", "1", ["m"]),
        ("abs(v) - h / t", "m/s", []),
        ("n ** n", "1", []),
    ],
)
def test_laws_are_consistent_and_tell_the_units_of_constants(text, target, constants):
    found = checked(text, target)
    assert found.consistent, found.violations
    assert found.whole == parse_unit(target).dimension
    if constants is not None:
        assert [str(own) for own in found.constants] == constants


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("v + t", None, "v in m/s and t in s cannot be added"),
        ("h - m", None, "h in m and m in kg cannot be subtracted"),
        ("sin(v)", None, "v is in m/s, but an operand of sin has no unit"),
        ("exp(t / h)", None, "an operand of exp has no unit"),
        ("v * t", "s", "the whole is in m, expected s"),
        ("n ** t", None, "t is in s, but an exponent has no unit"),
        ("v ** n", None, "v is in m/s, but what has an exponent that varies has no unit"),
        ("sqrt(h)", "m", "the whole is in m^(1/2), expected m"),
    ],
)
def test_what_does_not_fit_is_named(text, target, words):
    found = checked(text, target)
    assert not found.consistent
    assert len(found.violations) == 1
    assert words in found.violations[0]


def test_a_constant_is_one_thing_in_one_place():
    assert checked("2 * v + 3 * t", "K").consistent
    assert not checked("v * t + 3 * t", "K").consistent  # 3 can be m/s, but then the sum is in m
    assert not checked("2 * v", "K", constants=False).consistent  # a literal has no unit
    assert checked("2 * v", "m/s", constants=False).consistent


def test_all_places_are_counted():
    assert len(checked("sin(v) + exp(t) + h", "m").violations) == 4


def test_units_that_are_not_known():
    open_units = {"v": "m/s", "m": None}
    assert checked("v + m", "m/s", units=open_units).consistent
    assert not checked("v + m + sin(m)", None, units=open_units).consistent  # m is one and the same
    found = checked("h * t + 2", units={})
    assert found.consistent
    assert found.constants == (None,)
    assert found.whole is None


def test_operators_of_ones_own_want_numbers_without_units():
    own = Operator("cbrt", 1, np.cbrt)
    plain = Expression.parse("cbrt(n)", COLUMNS, [own])
    assert check(plain, UNITS).consistent
    assert not check(Expression.parse("cbrt(v)", COLUMNS, [own]), UNITS).consistent


def test_mistakes():
    with pytest.raises(DeclarationError, match="units of 'w'"):
        checked("v", units={"w": "m"})
    with pytest.raises(DeclarationError, match="2 units for 6 columns"):
        checked("v", units=["m", "s"])


# ------------------------------------------------------------------------------------------ as an engine would

ALL = None
FACTORS = {"n2": (2, 1), "n3": (3, 1), "sqrt": (1, 2), "inv": (-1, 1), "neg": (1, 1)}
TWO = ("add", "sub", "mul", "div")
ONE = (*FACTORS, "sin", "exp")


@st.composite
def designs(draw):
    items, slots = [], 1
    while slots:
        choices = ["x1", "x2", "x3", "const", "1"] + ([*TWO, *ONE] if len(items) < 12 else [])
        name = draw(st.sampled_from(choices))
        items.append((name, 2.0) if name == "const" else name)
        slots += 1 if name in TWO else 0 if name in ONE else -1
    return Design.of(*items)


def engine(design, units, target):
    """The rules of the module's text, with integers; True where all fits."""
    stack, good = [], True
    for name, _ in reversed(list(design)):
        if name in TWO:
            a, b = stack.pop(), stack.pop()
            if name in ("mul", "div"):
                stack.append(ALL if a is ALL or b is ALL else a + b if name == "mul" else a - b)
            else:
                good &= a is ALL or b is ALL or np.array_equal(a, b)
                stack.append(b if a is ALL else a)
        elif name in FACTORS:
            a, (above, below) = stack.pop(), FACTORS[name]
            if a is not ALL and (above * a % below).any():
                return None  # not a multiple of 1/12
            stack.append(ALL if a is ALL else above * a // below)
        elif name in ONE:
            a = stack.pop()
            good &= a is ALL or not a.any()
            stack.append(np.zeros(7, dtype=np.int64))
        else:
            stack.append(
                ALL if name == "const" else units[int(name[1]) - 1] if name[0] == "x" else 0 * units[0]
            )
    return bool(good and (stack[0] is ALL or np.array_equal(stack[0], target)))


@settings(max_examples=400, deadline=None)
@given(designs(), st.lists(st.sampled_from(["1", "m", "s", "m/s"]), min_size=4, max_size=4))
def test_an_engine_comes_to_the_same_answer_without_equations(design, units):
    *columns, target = units
    *inputs, wanted = (
        np.array([int(12 * e) for e in parse_unit(unit).dimension.exponents]) for unit in units
    )
    found = engine(design, inputs, wanted)
    if found is not None:
        assert check(Expression(design, ("a", "b", "c")), columns, target).consistent == found
