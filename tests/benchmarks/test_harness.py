"""Runs that benchmarks keep are made once, are never half written, and are tabulated right."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import gymnasium
import harness
import numpy as np
import pytest
import scipy.stats
from harness import Benchmark, Records, gaps, grid, main, make, markdown, shown, signed_gap

from discodso.base import files

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
KEYS = [{"method": method, "seed": seed} for method in ("good", "bad") for seed in range(3)]


def reward(key):
    return {"best": {"good": 1.0, "bad": 0.5}[key["method"]] + key["seed"]}


def table(records):
    return "\n".join(f"{r['method']} {r['seed']} {r['best']}" for r in records)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    return Benchmark("some", KEYS, reward, table)


@pytest.fixture
def written(bench):
    make(bench, bench.records(), jobs=1)
    return bench


def lines(path):
    return path.read_text().splitlines()


# ------------------------------------------------------------------------------------------------------- records


def test_a_run_is_one_line(written):
    assert [json.loads(line) for line in lines(written.path)] == [{**key, **reward(key)} for key in KEYS]


def test_runs_that_are_there_are_not_made_again(written):
    def never(key):
        raise AssertionError(key)

    again = Benchmark("some", KEYS, never, table)
    assert make(again, again.records(), jobs=1) == 0
    more = Benchmark("some", [*KEYS, {"method": "good", "seed": 9}], reward, table)
    assert make(more, more.records(), jobs=1) == 1
    assert len(more.records()) == len(KEYS) + 1


def test_runs_are_made_anew_when_asked(written):
    other = Benchmark("some", KEYS, lambda key: {"best": 7.0}, table)
    assert make(other, other.records(), jobs=1, again=True, chosen=lambda key: key["method"] == "bad") == 3
    assert [record["best"] for record in other.records()] == [1.0, 2.0, 3.0, 7.0, 7.0, 7.0]


@pytest.mark.parametrize("cut", [1, 2, 10, 30])
def test_a_torn_last_line_costs_one_run_at_most(written, cut, capsys):
    whole = written.path.read_bytes()
    written.path.write_bytes(whole[:-cut])
    records = written.records()
    missing = cut > 1  # without the newline alone the run is whole
    assert len(records) == len(KEYS) - missing
    assert ("torn" in capsys.readouterr().err) == missing
    assert make(written, records, jobs=1) == missing
    records.add(next(iter(records)))
    assert written.path.read_bytes() == whole


def test_another_broken_line_is_an_error(written):
    first, *rest = lines(written.path)
    written.path.write_text("\n".join([first[:-4], *rest]) + "\n")
    with pytest.raises(ValueError, match="line 1 is no run"):
        written.records()
    written.path.write_text("\n".join(['{"method": "good"}', *rest]) + "\n")
    with pytest.raises(ValueError, match="seed"):
        written.records()


def test_a_file_is_replaced_whole_or_not_at_all(written, monkeypatch):
    before = written.path.read_bytes()
    records = written.records()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        records.add({"method": "good", "seed": 9, "best": 0.0})
    assert written.path.read_bytes() == before
    assert [path.name for path in written.path.parent.iterdir()] == [written.path.name]


def test_each_run_is_kept_when_it_ends(bench):
    def fails_late(key):
        if key["method"] == "bad":
            raise RuntimeError("no luck")
        return reward(key)

    records = bench.records()
    with pytest.raises(RuntimeError, match="no luck"):
        make(Benchmark("some", KEYS, fails_late, table), records, jobs=1)
    assert len(bench.records()) == 3


def test_the_order_of_the_file_is_that_of_the_keys(bench):
    records = Records(bench.path, ("method", "seed"))
    for key in [{"method": "old", "seed": 0}, *reversed(KEYS)]:
        records.add({**key, "best": 0.0})
    records.arrange(KEYS)
    found = [(r["method"], r["seed"]) for r in Records(bench.path, ("method", "seed"))]
    assert found == [*((key["method"], key["seed"]) for key in KEYS), ("old", 0)]


def test_keys_may_depend_on_runs(bench):
    def keys(records):
        best = max((r for r in records if r["seed"] < 3), key=lambda r: r["best"], default=None)
        done = len([r for r in records if r["seed"] < 3]) == len(KEYS)
        return [*KEYS, *([{"method": best["method"], "seed": 100}] if done else [])]

    staged = Benchmark("some", keys, reward, table)
    assert make(staged, staged.records(), jobs=1) == len(KEYS) + 1
    assert list(staged.records())[-1] == {"method": "good", "seed": 100, "best": 101.0}


def test_runs_in_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    numbers = Benchmark(
        "powers", [{"number": n} for n in (3, 1, 2)], dict, table
    )  # dict: all processes know it
    assert make(numbers, numbers.records(), jobs=2) == 3
    assert [record["number"] for record in numbers.records()] == [3, 1, 2]


# ------------------------------------------------------------------------------------------------------- command


def test_the_command_makes_what_is_chosen_and_writes_the_table(bench, capsys):
    main(
        bench, "A question?", ["--jobs", "1", "--only", "method=good", "--only", "seed=0", "--only", "seed=2"]
    )
    assert bench.path.with_suffix(".md").read_text() == "good 0 1.0\ngood 2 3.0\n"
    shuffled = "\n".join(reversed(lines(bench.path))) + "\n"
    bench.path.write_text(shuffled)  # as a command leaves it that was stopped
    main(bench, "A question?", ["--table"])
    assert [record["seed"] for record in bench.records()] == [0, 2]
    assert capsys.readouterr().out.endswith("good 0 1.0\ngood 2 3.0\n\n")


@pytest.mark.parametrize("choice", ["colour=red", "method=unknown", "method"])
def test_a_choice_of_nothing_is_refused(bench, choice, capsys):
    with pytest.raises(SystemExit):
        main(bench, None, ["--only", choice])
    assert "--only" in capsys.readouterr().err
    assert not bench.path.exists()


# ------------------------------------------------------------------------------------------------------- tables


def test_intervals_are_those_of_scipy():
    numbers = np.random.default_rng(0).normal(3, 2, 7).tolist()
    low, high = scipy.stats.t.interval(0.95, 6, np.mean(numbers), scipy.stats.sem(numbers))
    assert harness.half_width(numbers) == pytest.approx((high - low) / 2)
    assert shown(numbers, wanted=7, digits=3) == f"{np.mean(numbers):.3f} ± {(high - low) / 2:.3f}"


def test_missing_runs_are_told():
    assert shown([], wanted=3, digits=1) == "-"
    assert shown([1.0], wanted=3, digits=1) == "1.0 (1 run)"
    assert shown([1.0, 2.0], wanted=3, digits=1) == "1.5 (2 runs)"
    assert shown([1.0], wanted=1, digits=1) == "1.0 (1 run)"


def test_paired_differences():
    found = gaps({"a": 3.0, "b": 2.0, "c": 1.0}, {"c": 0.5, "a": 1.0})
    assert found == [2.0, 0.5]
    mean, interval = signed_gap([1.0, 2.0, 3.0, 4.0])
    low, high = map(float, interval.split(" to "))
    assert (mean, low < 2.5 < high) == ("+2.500", True)
    assert signed_gap([0.0, 0.0]) == ("+0.000", "")


def test_tables():
    assert markdown(["", "a"], [["x", "1"], ["y", ""]]) == ["| | a |", "|---|---|", "| x | 1 |", "| y | |"]
    cells = {("x", "a"): "1", ("x", "b"): "-", ("y", "a"): "-", ("y", "b"): "-"}
    made = grid("row", ["x", "y"], ["a", "b"], lambda row, column: cells[row, column])
    assert made == ["| row | a | b |", "|---|---|---|", "| x | 1 | - |"]


# ------------------------------------------------------------------------------------------------------- committed


def module_of(name):
    """A file; under a name of its own, since helpers of tests have the same names."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    harness.sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


OF_THE_COMMAND = {"regression-paper", "regression-literal"}  # made by `discodso bench`
KEPT = sorted({path.stem for path in RESULTS.glob("*.jsonl")} - OF_THE_COMMAND)


@pytest.mark.parametrize("name", KEPT)
def test_the_committed_table_is_that_of_the_committed_runs(name):
    benchmark = module_of(name).BENCHMARK
    assert benchmark.name == name
    records = benchmark.records()
    # Runs may be missing, which the table then tells; `--table` brings the others into order.
    wanted = [records.identity(key) for key in benchmark.wanted(list(records)) if key in records]
    assert wanted == list(map(records.identity, records))
    assert benchmark.text(records) == (RESULTS / f"{name}.md").read_text()


def test_every_benchmark_with_runs_has_committed_ones():
    files = (ROOT / "benchmarks").glob("*.py")
    assert sorted(path.stem for path in files if "\nBENCHMARK = " in path.read_text()) == KEPT


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_of_speed_name_their_command(path):
    assert json.loads(path.read_text())["command"] == f"python benchmarks/{path.stem}.py"
    assert (ROOT / "benchmarks" / f"{path.stem}.py").exists()


def test_results_of_speed_are_written_with_command_and_machine(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    harness.write_result("quick", {"ratio": 2.0}, "torch 9")
    found = json.loads((tmp_path / "quick.json").read_text())
    assert found == json.loads(capsys.readouterr().out)
    assert (found["command"], found["ratio"]) == ("python benchmarks/quick.py", 2.0)
    assert found["machine"].endswith("torch 9")


def test_what_a_policy_is_worth_at_blackjack():
    """Exactly, against many episodes; and the best there is, which books call the basic strategy."""
    worth = module_of("environments").worth_at_blackjack

    def basic(seen):
        total, dealer, usable = seen
        low = 2 <= dealer <= 6
        if usable:
            return total < 18 or (total == 18 and dealer in (1, 9, 10))
        return total < 12 or (total == 12 and dealer in (2, 3)) or (total < 17 and not low)

    with gymnasium.make("Blackjack-v1") as env:
        returns = []
        for seed in range(3000):
            seen, _ = env.reset(seed=seed)
            over = False
            while not over:
                seen, reward, over, _, _ = env.step(int(basic(seen)))
            returns.append(reward)
    assert worth(basic) == pytest.approx(worth(None), abs=1e-12)
    assert abs(np.mean(returns) - worth(basic)) < 3 * np.std(returns) / len(returns) ** 0.5
    assert worth(lambda seen: seen[0] < 17) < worth(lambda seen: seen[0] < 15) < worth(basic)
