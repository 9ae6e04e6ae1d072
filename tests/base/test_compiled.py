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


UNKEPT = """
import tempfile, warnings
from pathlib import Path
from numba.core import caching

def refuse(self, usual=caching._CacheLocator.ensure_cache_path):
    if not self.get_cache_path().startswith(tempfile.gettempdir()):
        raise PermissionError(13, "Read-only file system")
    usual(self)

caching._CacheLocator.ensure_cache_path = refuse
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from called import twice, one
    import calling
print(len(said), said[0].message)
place, = Path(tempfile.gettempdir()).glob("discodso-*")
print(oct(place.stat().st_mode & 0o777), bool(list(place.rglob("*.nbc"))))
"""


def test_where_nothing_can_be_kept_all_works_with_one_line(tmp_path):
    (tmp_path / "called.py").write_text(CALLED.format(factor=3, one=1))
    (tmp_path / "calling.py").write_text(CALLING)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    paths = os.pathsep.join((str(tmp_path), *filter(None, sys.path)))
    env = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(temporary)}
    env.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", UNKEPT], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown, _, warned, kept = done.stdout.splitlines()
    assert shown == "13.5 0"
    assert warned.startswith("1 compiled functions cannot be kept here")
    assert kept == "0o700 True"
    assert not list(temporary.iterdir())
