"""Settings as TOML text. Python reads TOML but does not write it; settings need few of its forms."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(settings: Mapping[str, Any]) -> str:
    """TOML of nested dictionaries; keys whose value is None are left out, which means the default."""
    return "\n".join(_table(settings, ())).strip() + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, Mapping)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    if path and (lines or not table):
        lines = ["", f"[{'.'.join(_key(part) for part in path)}]", *lines]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += _table(value, (*path, key))
    return lines


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, (str, int)):
        # As in JSON, but for the control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, float):
        text = repr(float(value))
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} has no form in TOML")
