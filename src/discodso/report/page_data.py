"""All that a report shows, as data for JSON: numbers rounded, lines thinned, so that any run stays small."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import repeat
from shlex import quote
from typing import Any

import numpy as np

from discodso.base.dominance import front_rows
from discodso.base.errors import DiscodsoError, InvalidDesignError
from discodso.base.version import __version__
from discodso.report import trees
from discodso.report.comparison import compare
from discodso.report.folders import Group, RunRecord, by_method, by_task
from discodso.run.curves import Curve, token_values
from discodso.run.folder import arities_of, first_failures
from discodso.run.kinds import Shown
from discodso.run.result import Scored
from discodso.space.design import Design, format_token, nested, value_texts

_DESIGNS = 100
_FAILURES = 50
_DRAWN = 12  # designs of a front with several objectives below its chart
_PARTS = ("text", "math", "svg", "tokens", "values", "tree")  # of a design that are drawn
_PICTURES = 20  # trees drawn for one table: all of a hundred would be megabytes
_TEXT = 2000  # characters of one text


def page_data(runs: Sequence[RunRecord], live: bool = False) -> dict[str, Any]:
    """What the page of a report needs; `live` if it is to ask for more."""
    tasks = []
    for number, (title, own) in enumerate(by_task(runs).items(), 1):
        groups, name = by_method(own), f"task-{number}"
        comparison = _comparison(groups) if len(groups) > 1 else None
        shown = [_group(f"{name}-{place}", group) for place, group in enumerate(groups, 1)]
        about = {"id": name, "title": title, "kind": own[0].kind.name}
        tasks.append({**about, "comparison": comparison, "groups": shown})
    return {
        "title": tasks[0]["title"] if len(tasks) == 1 else f"Searches for {len(tasks)} tasks",
        "version": __version__,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "live": live,
        "running": any(run.running for run in runs),
        "tasks": tasks,
    }


def _comparison(groups: Sequence[Group]) -> dict[str, Any] | None:
    try:
        found = compare(groups).to_dict()
    except DiscodsoError:  # a run that has no reward yet
        return None
    return {**_rounded(found), "curves": [_curve(group.curve, runs=False) for group in groups]}


def _group(name: str, group: Group) -> dict[str, Any]:
    leading = group.leading
    designs = _top(group)
    return {
        "id": name,
        "label": group.label,
        "runs": [_run(run) for run in group.runs],
        "leading": str(leading.path),
        "measure": leading.measure,
        "objectives": list(leading.objectives),
        "curve": _curve(group.curve),
        "raced": any(row.confirming for run in group.runs for row in run.history),
        "best": _best(leading),
        "designs": designs,
        "front": _front(leading, designs),
        **{name: _rounded(vars(own)) for name, own in leading.lines.items()},
        "values": {token: _rounded(vars(own)) for token, own in token_values(leading.history).items()},
        "failures": _failures(group),
        "settings": leading.settings_text,
        "environment": _environment(leading.environment),
    }


# ------------------------------------------------------------------------------------------------ runs


def _run(run: RunRecord) -> dict[str, Any]:
    last = run.history[-1] if run.history else None
    sentence, detail = run.top.get("stop_sentence") if run.status == "ended" else None, run.top.get("detail")
    repeats = [row.repeats for row in run.history if row.repeats is not None]
    command = run.environment.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    started = ""
    if words and words[0] not in ("", "-", "-c"):  # else typed into Python, or a notebook
        started = _cut(shlex.join(words if words[0] == "discodso" else ["python", *words]))
    again = f"discodso run {quote(str(run.path / 'settings.toml'))} --out {quote(f'{run.path}-again')}"
    return {
        "folder": str(run.path),
        "seed": run.seed,
        "status": run.status,
        "sentence": _cut(f"{sentence}: {detail}" if sentence and detail else str(sentence or "")),
        "calls": last.calls if last else 0,
        "budget": run.budget,
        "best": _number(last.best if last.hypervolume is None else last.hypervolume) if last else None,
        "failures": last.failures if last else 0,
        **(
            {}
            if last is None or last.feasible is None
            else {"feasible": last.feasible, "broken": last.broken or {}}
        ),
        "seconds": _number(last.seconds, 4) if last else 0,
        "cost": _number(last.cost) if last else None,
        # The share of proposed designs that were known already, over all batches.
        "repeats": round(sum(repeats) / len(repeats), 4) if repeats else None,
        "score": _score(run),
        "started": started,
        "repeat": started if run.task.get("kind") in ("python", None) else again,
    }


def _score(run: RunRecord) -> str | None:
    """What a final test said, in words."""
    score = run.kind.page(run.ending).get("score")
    if score is not None:
        return str(score)
    if not run.designs or not run.history or not run.history[-1].confirming or run.designs[0].error is None:
        return None
    best = run.designs[0]
    return f"± {best.error:.2g}, mean of {best.evaluations} evaluations on fresh seeds"


def _environment(environment: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for key, value in environment.items():
        if key == "packages" and isinstance(value, Mapping):
            value = ", ".join(f"{name} {version}" for name, version in value.items())
        if key != "command" and value is not None:
            rows.append([str(key), _cut(str(value))])
    return rows


# ------------------------------------------------------------------------------------------------ designs


def _top(group: Group) -> list[dict[str, Any]]:
    """The best distinct designs of all runs, with their pictures."""
    found: dict[Any, tuple[Scored, RunRecord]] = {}
    if group.leading.objectives:
        return _fronts(group)
    for run in group.runs:
        for scored in run.designs:
            if scored.design not in found or _place(scored) < _place(found[scored.design][0]):
                found[scored.design] = (scored, run)
    leading = group.leading.designs
    first = leading[0].design if leading else None  # of noisy ones not the highest
    ranked = sorted(
        found.values(), key=lambda pair: (pair[0].design != first, *_place(pair[0]), pair[0].call)
    )
    ranked = ranked[:_DESIGNS]
    shown = show_designs(group.leading, [scored.design for scored, _ in ranked])
    return [_design(scored, run, own) for (scored, run), own in zip(ranked, shown, strict=True)]


def _fronts(group: Group) -> list[dict[str, Any]]:
    """The designs that no other one of all runs is better than in all objectives."""
    names, given = group.leading.objectives, group.leading.top.get("directions")
    directions = given if isinstance(given, list) and len(given) == len(names) else ["max"] * len(names)
    signs = [-1.0 if direction == "min" else 1.0 for direction in directions]
    pairs = [(s, run) for run in group.runs for s in run.designs if len(s.goals) == len(names)]
    feasible = [pair for pair in pairs if pair[0].feasible] or sorted(pairs, key=lambda pair: _place(pair[0]))
    if feasible and feasible[0][0].feasible:
        points = np.array([scored.goals for scored, _ in feasible]) * signs
        rows = front_rows(points)
        if len(rows) > _DESIGNS:  # evenly
            rows = rows[np.linspace(0, len(rows) - 1, _DESIGNS).astype(np.int64)]
        feasible = [feasible[row] for row in rows.tolist()]
    shown = show_designs(group.leading, [scored.design for scored, _ in feasible])
    return [
        {**_design(scored, run, own), "goals": [_number(goal, 8) for goal in scored.goals]}
        for (scored, run), own in zip(feasible, shown, strict=True)
    ]


def _place(scored: Scored) -> tuple[float, float]:
    """Feasible designs come first, then infeasible ones by their violation."""
    return scored.violation, -scored.reward if math.isfinite(scored.reward) else math.inf


def show_designs(run: RunRecord, designs: Sequence[Design]) -> list[Shown]:
    """Each of the designs of a run, in the way of its task."""
    shown = run.kind.shown(run.ending, designs, run.history)
    for number, (own, design) in enumerate(zip(shown, designs, strict=True)):
        if own.svg is not None:
            shown[number] = replace(own, svg=_compact(own.svg))
        elif own.math is None and number < _PICTURES:
            shown[number] = replace(own, svg=trees.svg(design))
    return shown


def _compact(svg: str) -> str:
    """An SVG without what no browser needs."""
    for start, end in (("<?xml", "?>"), ("<!DOCTYPE", ">"), ("<metadata>", "</metadata>"), ("<!--", "-->")):
        svg = _without(svg, start, end)
    return re.sub(r">\s+<", "><", svg).strip()


def _without(text: str, start: str, end: str) -> str:
    """A text without its parts from a start to the next end; in time that grows like the text."""
    kept, at = [], 0
    while (first := text.find(start, at)) >= 0 and (last := text.find(end, first + len(start))) >= 0:
        kept.append(text[at:first])
        at = last + len(end)
    return "".join([*kept, text[at:]])


def _design(scored: Scored, run: RunRecord, shown: Shown) -> dict[str, Any]:
    design = scored.design
    parts = map(format_token, design.tokens, design.values, repeat(".4g"))
    line = nested(design, design.arities, ".4g") if design.arities else ", ".join(parts)
    return {
        "reward": _number(scored.reward, 8),
        "error": _number(scored.error, 2),
        **({} if scored.feasible else {"violation": _number(scored.violation, 4)}),
        "call": scored.call,
        "seed": run.seed,
        "length": len(design),
        "line": _cut(shown.text if shown.math is not None else line),
        "tokens": list(design.tokens),
        "values": [value_texts(entry, ".4g") for entry in design.values],
        "tree": bool(design.arities),
        "text": _cut(shown.text),
        "math": shown.math,
        "svg": shown.svg,
    }


def _best(run: RunRecord) -> dict[str, Any] | None:
    """What is drawn large: what the kind of task has made of the search, or the best design."""
    own = run.kind.page(run.ending).get("best")
    if run.objectives:
        return None
    if own is not None:
        texts = {key: _cut(own[key]) for key in ("text", "latex") if isinstance(own.get(key), str)}
        svg = {"svg": _compact(own["svg"])} if own.get("svg") else {}
        return {**_rounded(own), **texts, **svg}
    if not run.designs:
        return None
    scored = run.designs[0]
    return {"kind": "design", **_design(scored, run, show_designs(run, [scored.design])[0])}


def _front(run: RunRecord, designs: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Accuracy against complexity as the kind has it, else the best reward of every length."""
    own = run.kind.page(run.ending).get("front")
    if own is not None:
        points = [{**_rounded(point), "text": _cut(point["text"])} for point in own["points"]]
        for point in points:
            if point.get("svg"):
                point["svg"] = _compact(point["svg"])
        return {**own, "points": points}
    if run.objectives:
        return _goals(run.objectives, designs)
    best: dict[int, Mapping[str, Any]] = {}
    for design in designs:
        if "violation" in design:
            break  # the rest is infeasible, too
        best.setdefault(design["length"], design)
    points = [
        {
            "x": length,
            "y": design["reward"],
            "text": design["line"],
            "math": design["math"],
            "chosen": design is designs[0],
            "note": f"found at call {design['call']}",
        }
        for length, design in sorted(best.items())
    ]
    return {"x": "tokens", "y": "reward", "log": False, "points": points} if len(points) > 1 else None


def _goals(names: Sequence[str], designs: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The first two of several objectives, and each design of the front."""
    designs = [design for design in designs if "violation" not in design]
    drawn = set(np.linspace(0, len(designs) - 1, min(len(designs), _DRAWN)).astype(np.int64).tolist())
    points = [
        {
            **({key: design[key] for key in _PARTS} if place in drawn else {"text": design["text"]}),
            "x": design["goals"][0],
            "y": design["goals"][1],
            "chosen": False,
            "note": ", ".join(
                f"{name} {goal:.5g}" for name, goal in zip(names, design["goals"], strict=True)
            ),
        }
        for place, design in enumerate(designs)
    ]
    note = "No design is better than one of these in all objectives."
    if len(designs) > len(drawn):
        note += f" {len(drawn)} of them are drawn here, each of them under Best designs."
    if len(names) > 2:
        note += f" The first two of {len(names)} objectives are shown."
    own = {"x": names[0], "y": names[1], "log": False, "title": "The front", "note": note, "goals": True}
    return {**own, "points": points} if points else None


def _failures(group: Group) -> dict[str, Any]:
    listed = []
    for run in group.runs:
        for failure in first_failures(run.top):
            call, reason = failure.get("call"), _cut(str(failure.get("reason")), 300)
            design = _cut(_failed(failure.get("design"), arities_of(run.top)), 300)
            call = call if isinstance(call, int) else None
            listed.append({"seed": run.seed, "call": call, "reason": reason, "design": design})
    reasons = Counter(failure["reason"] for failure in listed)
    return {
        "count": sum(run.history[-1].failures for run in group.runs if run.history),
        "reasons": [[reason, count] for reason, count in reasons.most_common(10)],
        "listed": listed[:_FAILURES],
    }


def _failed(design: Any, arities: Mapping[str, int] | None) -> str:
    """A tree as nested calls, else the tokens in a row."""
    if arities:
        with suppress(InvalidDesignError):
            return nested(Design.from_dict(design), arities, ".4g")
    tokens = design.get("tokens") if isinstance(design, Mapping) else None
    return ", ".join(map(str, tokens if isinstance(tokens, list) else []))


# ------------------------------------------------------------------------------------------------ numbers


def _curve(curve: Curve, runs: bool = True) -> Any:
    shown = curve.runs[:10] if runs and len(curve.runs) > 1 else ()
    return _rounded({**vars(curve), "count": len(curve.runs), "runs": shown})


def _number(value: float | None, digits: int = 6) -> float | int | None:
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}") if abs(value) < 10**digits else round(value)
    return int(short) if short == int(short) and abs(short) < 1e15 else short


def _rounded(data: Any) -> Any:
    """The same with all numbers short, for JSON."""
    if isinstance(data, np.ndarray):
        data = data.tolist()
    if isinstance(data, Mapping):
        return {key: _rounded(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_rounded(value) for value in data]
    return _number(data) if isinstance(data, float) else data


def _cut(text: str, most: int = _TEXT) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
