"""Compiled functions: once for the kinds of their arguments, some called where they stand, some not for Python."""

import os
import subprocess
import sys

import numpy as np
import pytest

from discodso.base.compiled import CAN_BE_APART, compiled


@compiled(inner=True, apart=True, cache=False)
def total(x, squared, count):
    found = 0.0
    for j in range(count):
        found += x[j] * x[j] if squared else x[j]
    return found


@compiled(cache=False)
def both(x):
    return total(x, True, 2) + 100 * total(x, squared=False, count=len(x))


def test_constants_as_arguments_make_no_versions_of_a_function():
    assert both(np.array([1.0, 2.0, 3.0])) == 5 + 600
    assert len(total.signatures) == len(both.signatures) == 1


def test_an_inner_function_is_not_for_python():
    both(np.ones(2))
    with pytest.raises(TypeError, match="total is for compiled functions only"):
        total(np.ones(2), True, 2)


CALLED = """
from discodso.base.compiled import compiled

@compiled(inner=True, apart=True)
def twice(x):
    return {factor} * x

@compiled(inner=True, apart=True)
def one(x):
    return {one}
"""
CALLING = """
import called
from discodso.base.compiled import compiled

@compiled()
def shown(x):
    return called.twice(called.twice(x))

@compiled()
def ones(x):
    return called.one(x)

print(shown(1.5), sum(shown.stats.cache_hits.values()))
print(ones(1.5), sum(ones.stats.cache_hits.values()))
"""


@pytest.mark.skipif(not CAN_BE_APART, reason="an older version of numba")
def test_what_is_kept_on_disk_calls_what_stands_apart_as_it_is_now(tmp_path):
    def run(**texts):
        (tmp_path / "called.py").write_text(CALLED.format(**texts))
        return subprocess.run(
            [sys.executable, str(tmp_path / "calling.py")],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")},
            capture_output=True,
            text=True,
        )

    (tmp_path / "calling.py").write_text(CALLING)
    assert run(factor="2.0", one="1.0").stdout == "6.0 0\n1.0 0\n"
    later = run(factor="30.0", one="1")
    assert later.stdout == "1350.0 1\n"
    assert "called.one returns something else now; delete the caches" in later.stderr
