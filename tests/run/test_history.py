"""What a history keeps of the tokens and values of a batch, and how much room that takes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from spaces import valued_sequence

from discodso import (
    Design,
    DisCoSettings,
    NetworkSettings,
    OpenSequence,
    RandomSettings,
    Space,
    Task,
    Token,
    search,
)
from discodso.disco.settings import RestartSettings
from discodso.run.curves import batch_rewards, proposer_shares
from discodso.run.folder import history_row, read_history
from discodso.run.history import is_sampled, token_use


def test_shares_and_quantiles_by_hand():
    space = Space([Token("a"), Token("v", range=(0, 10)), Token("never", range=(0, 1))], OpenSequence(1, 8))
    designs = space.encode(
        [
            Design.of("a", ("v", 3.0), ("v", 1.0)),
            Design.of(("v", 2.0)),
            Design.of("a", ("v", 4.0), ("v", 5.0)),
        ]
    )
    use = token_use(designs)
    assert use["a"] == (pytest.approx(2 / 7, abs=1e-5),)
    assert use["v"] == (pytest.approx(5 / 7, abs=1e-5), 1.0, 2.0, 3.0, 4.0, 5.0)
    assert use["never"] == (0.0,)
    assert set(use) == {"a", "v", "never"}  # the end token is no part of a design


def test_sampled_batches_thin_out_but_never_stop():
    kept = np.array([n for n in range(1, 100_001) if is_sampled(n)])
    assert (kept[:255] == np.arange(1, 256)).all()
    gaps = np.diff(kept)
    assert (gaps <= np.maximum(1, kept[1:] / 64)).all()
    assert len(kept) < 1600


def test_rows_survive_their_file(tmp_path):
    task = Task(valued_sequence(), lambda design: -len(design))
    result = search(task, budget=300, method=RandomSettings(50), out=tmp_path / "run")
    assert tuple(read_history(tmp_path / "run" / "history.jsonl")) == result.history
    assert result.history[0].tokens is not None


def test_a_history_tells_who_proposes(tmp_path):
    task = Task(valued_sequence(), lambda design: sum(value or 0.0 for value in design.values))
    result = search(task, budget=400, out=tmp_path / "run")
    shares = [row.shares for row in result.history if row.shares]
    assert len(shares) >= 10
    assert all(set(own) == {"random", "variation", "refinement"} for own in shares)
    assert all(sum(own.values()) == pytest.approx(1, abs=1e-4) for own in shares)
    assert any(own != shares[0] for own in shares)
    assert tuple(read_history(tmp_path / "run" / "history.jsonl")) == result.history
    lines = proposer_shares(result.history)
    assert lines.names == ("random", "variation", "refinement")
    assert lines.values[:, -1] == pytest.approx(list(shares[-1].values()))
    assert not proposer_shares(search(task, budget=100, preset="paper").history).names


def test_a_history_tells_when_the_method_began_anew(tmp_path):
    task = Task(valued_sequence(), lambda design, seed: np.random.default_rng(seed).random(), stochastic=True)
    restarts = RestartSettings(batches=3, patience=0.0)
    method = DisCoSettings(batch_size=20, network=NetworkSettings(units=4), restarts=restarts)
    result = search(task, budget=500, method=method, out=tmp_path / "run")
    after = [row.calls for row in result.history if row.restarted]
    assert len(after) >= 2
    assert min(np.diff([0, *after])) >= 60
    rows = read_history(tmp_path / "run" / "history.jsonl")
    assert tuple(rows) == result.history
    assert batch_rewards(rows).restarts == tuple(after)
    text = result.plot_rewards()._repr_svg_()
    assert text.count("a fresh start") == 1
    assert '"restarted"' not in json.dumps(result.history[0].to_dict())


@pytest.mark.parametrize("shares", ["7", '{"a": "x"}', '{"a": true}', "[1]"])
def test_a_row_with_something_else_for_shares_is_no_row(shares):
    task = Task(valued_sequence(), lambda design: -len(design))
    row = search(task, budget=50, method=RandomSettings(50)).history[0].to_dict()
    line = json.dumps({**row, "shares": None}).replace('"shares": null', f'"shares": {shares}')
    assert history_row(line.encode()) is None


@pytest.mark.parametrize("tokens", ["7", '{"a": 1}', '{"a": ["x"]}', '{"a": [true]}', "[1]"])
def test_a_row_with_something_else_for_tokens_is_no_row(tmp_path, tokens):
    task = Task(valued_sequence(), lambda design: -len(design))
    row = search(task, budget=50, method=RandomSettings(50)).history[0].to_dict()
    assert history_row(json.dumps(row).encode()) is not None
    line = json.dumps({**row, "tokens": None}).replace('"tokens": null', f'"tokens": {tokens}')
    assert history_row(line.encode()) is None


def test_a_history_of_a_million_calls_with_many_tokens_stays_small():
    many = [Token(f"component {k}", range=(0, 1)) for k in range(100)]
    space = Space(many, OpenSequence(1, 30))
    rng = np.random.default_rng(0)
    designs = space.encode(
        [Design.of(*((many[k].name, 0.123456789) for k in rng.integers(0, 100, 20))) for _ in range(100)]
    )
    line = len(json.dumps({"tokens": token_use(designs)}))
    assert line * sum(is_sampled(n) for n in range(1, 10_001)) < 10e6  # bytes, of 50 MB for a folder
