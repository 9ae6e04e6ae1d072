"""Drawing without a network: even lengths, as far as the rules let them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, truncnorm

from discodso import (
    Choice,
    DeclarationError,
    DisCo,
    DisCoSettings,
    FixedSequence,
    Integer,
    OpenSequence,
    Real,
    Space,
    Token,
)
from discodso.disco.sampling import sample
from discodso.disco.settings import DrawSettings
from discodso.disco.uniform import UniformStepper

SPACE = Space([Token("a"), Token("b", range=(0, 1)), Token("c")], OpenSequence(1, 8))


def lengths(even):
    drawn = sample(SPACE, UniformStepper(SPACE, even_lengths=even), 4_000, np.random.default_rng(0))
    return np.bincount(drawn.designs.design_lengths(), minlength=9)[1:]


def test_all_lengths_are_equally_likely():
    assert chisquare(lengths(True)).pvalue > 0.001


def test_without_it_most_designs_are_short():
    found = lengths(False)
    assert found[0] > 4 * found[5]


def test_a_search_without_a_network_does_without_torch():
    program = (
        "import sys\n"
        "from discodso import OpenSequence, Space, Task, Token, search\n"
        "space = Space([Token('a', range=(0, 1)), Token('b')], OpenSequence(1, 3))\n"
        "search(Task(space, lambda design: -len(design)), budget=60)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_default_method_draws_all_lengths_alike():
    drawn = DisCo(SPACE, seed=1).ask(4_000)
    assert chisquare(np.bincount(drawn.design_lengths(), minlength=9)[1:]).pvalue > 0.001


def test_with_a_spread_values_are_normal_round_the_middle():
    space = Space(
        [Token("a", range=(-2.0, 6.0)), Token("b", range=(1e-2, 1e2), scale="log")], FixedSequence(2)
    )
    drawn = sample(space, UniformStepper(space, spread=0.1), 4_000, np.random.default_rng(0)).designs
    values = np.array([design.values for design in drawn])
    names = np.array([design.tokens for design in drawn])
    normal = truncnorm(-5, 5, 0.5, 0.1)
    assert kstest((values[names == "a"] + 2) / 8, normal.cdf).pvalue > 0.001
    assert kstest((np.log10(values[names == "b"]) + 2) / 4, normal.cdf).pvalue > 0.001


def test_values_drawn_together_are_those_drawn_one_by_one(monkeypatch):
    several = Token("a", x=Real(-1, 1), n=Integer(1, 40, log=True), c=Choice("p", "q", "r"))
    space = Space([several, Token("b", y=Real(1e-3, 1e3, log=True)), Token("c")], OpenSequence(1, 6))
    together = sample(space, UniformStepper(space), 500, np.random.default_rng(3)).designs
    monkeypatch.setattr(UniformStepper, "draw_together", lambda *given: None)
    one_by_one = sample(space, UniformStepper(space), 500, np.random.default_rng(3)).designs
    assert (together.tokens == one_by_one.tokens).all()
    assert np.array_equal(together.values, one_by_one.values, equal_nan=True)


def test_a_spread_is_for_values_that_no_network_draws():
    with pytest.raises(DeclarationError, match="network=None"):
        DisCoSettings(draws=DrawSettings(spread=0.1))
