"""Options of commands: their defaults are those of the library."""

from __future__ import annotations

from command import invoked


def test_defaults_of_options_are_those_of_the_library(tmp_path):
    from discodso import preset
    from discodso.run.settings import read

    done = invoked(*"run bitstring --budget 100 --length 3 --json --out".split(), tmp_path / "run")
    assert done.exit_code == 0
    settings = read(tmp_path / "run" / "settings.toml")
    assert settings.method == preset(budget=100)
