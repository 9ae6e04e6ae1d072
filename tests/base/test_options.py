"""Options are declared once: checked by type and limits, and given to functions as keywords."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pytest

from discodso import DeclarationError, DisCoRegressor, search, search_policy
from discodso.base.options import check_options, option, require_nothing_left, taken, with_options
from discodso.tasks.bitstring import bitstring


@dataclass(frozen=True)
class Options:
    count: int = option(3, "How many.", least=2)
    seed: int = option(0, "A seed.")
    share: float = option(0.5, "A share.", above=0, most=1)
    weight: float = option(1.0, "A weight.", least=0)
    limit: float | None = option(None, "A limit.", above=0)
    most: int | None = option(None, "At most.", least=1)
    flag: bool = option(False, "A flag.")
    maybe: bool | None = option(None, "A flag, or as it comes.")
    name: str = option("a", "A name.", choices=("a", "b"))
    own: Any = option("a", "A name or a function.", choices=("a", "b"))
    table: dict[str, int] = option(factory=dict, help="A table.")

    def __post_init__(self) -> None:
        check_options(self)


@pytest.mark.parametrize(
    "given",
    [
        {"count": 2},
        {"share": 1},
        {"share": 1.0, "weight": 0},
        {"limit": None, "most": None, "maybe": None},
        {"limit": 1e-9, "most": 1, "maybe": True},
        {"flag": True},
        {"name": "b"},
        {"own": len},
    ],
)
def test_good_values_are_kept(given):
    options = Options(**given)
    assert {key: getattr(options, key) for key in given} == given


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"count": 1}, "count must be an integer >= 2, got 1"),
        ({"count": 3.0}, "count must be an integer >= 2, got 3.0"),
        ({"count": True}, "count must be an integer >= 2, got True"),
        ({"count": None}, "count must be an integer >= 2, got None"),
        ({"count": "3"}, "count must be an integer >= 2, got '3'"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"most": 0}, "most must be an integer >= 1, got 0"),
        ({"share": 0}, "share must be a finite number above 0 and <= 1, got 0"),
        ({"share": 1.5}, "share must be a finite number above 0 and <= 1, got 1.5"),
        ({"share": None}, "share must be a finite number above 0 and <= 1, got None"),
        ({"weight": -0.1}, "weight must be a finite number >= 0, got -0.1"),
        ({"weight": float("nan")}, "weight must be a finite number >= 0, got nan"),
        ({"limit": float("inf")}, "limit must be a finite number above 0, got inf"),
        ({"limit": 0.0}, "limit must be a finite number above 0, got 0.0"),
        ({"flag": 1}, "flag must be True or False, got 1"),
        ({"flag": None}, "flag must be True or False, got None"),
        ({"maybe": "yes"}, "maybe must be True or False, got 'yes'"),
        ({"name": "c"}, "name must be one of 'a', 'b', got 'c'"),
        ({"own": "c"}, "own must be one of 'a', 'b', got 'c'"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(given, words):
    with pytest.raises(DeclarationError) as caught:
        Options(**given)
    assert str(caught.value) == words


def test_numbers_of_numpy_become_those_of_python():
    options = Options(
        count=np.int64(5),
        most=np.uint8(2),
        share=np.float32(0.25),
        limit=np.float64(2.0),
        flag=np.bool_(True),
    )
    found = asdict(options)
    assert {key: found[key] for key in ("count", "most", "share", "limit", "flag")} == {
        "count": 5,
        "most": 2,
        "share": 0.25,
        "limit": 2.0,
        "flag": True,
    }
    assert [type(found[key]) for key in ("count", "most", "share", "limit", "flag")] == [
        int,
        int,
        float,
        float,
        bool,
    ]


def test_functions_get_the_keywords_and_the_help():
    @with_options(Options)
    def function(first: int, *, count: int = 7, **options: Any) -> dict[str, Any]:
        """Do it.

        Args:
            count: another help.
        {options}
        """
        return options

    found = inspect.signature(function).parameters
    assert list(found)[:2] == ["first", "count"]
    assert set(found) == {"first", *inspect.signature(Options).parameters}
    assert all(found[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(found)[1:])
    assert found["count"].default == 7  # that of the function comes first
    assert found["share"].default == 0.5
    assert found["table"].default == {}
    assert found["limit"].annotation == float | None
    lines = function.__doc__.splitlines()
    assert "        share: A share." in lines
    assert "        table: A table." in lines
    assert "{options}" not in function.__doc__
    assert "How many." not in function.__doc__
    assert function(1, share=0.1) == {"share": 0.1}


def test_options_are_taken_and_nothing_may_be_left():
    given = {"share": 0.1, "other": 3}
    assert taken(Options, given) == {"share": 0.1}
    assert given == {"other": 3}
    with pytest.raises(TypeError) as caught:
        require_nothing_left("function", {"shar": 1}, Options)
    assert str(caught.value) == (
        "function() got an unexpected keyword argument 'shar'; did you mean 'share'?"
    )
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zzz'$"):
        require_nothing_left("function", {"zzz": 1}, Options)
    require_nothing_left("function", {}, Options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: search(bitstring(3), budget=10, time_limits=3), r"search\(\).*did you mean 'time_limit'\?"),
        (
            lambda: search_policy("CartPole-v1", budget=10, episode=3),
            r"search_policy\(\).*did you mean 'episodes'\?",
        ),
        (lambda: DisCoRegressor(max_lengths=3), r"DisCoRegressor\(\).*did you mean 'max_length'\?"),
    ],
)
def test_unknown_keywords_get_a_hint(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize("function", [search, search_policy, DisCoRegressor.__init__])
def test_every_public_option_has_its_line_of_help(function):
    named = [name for name in inspect.signature(function).parameters if name != "self"]
    for name in named:
        assert f"{name}: " in function.__doc__, name
