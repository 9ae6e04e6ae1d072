"""A report as one HTML file: page.css, page.js and the data, with nothing to fetch from anywhere.

The data are JSON in a script element that is not executed, and page.js shows every piece of it as text. A policy
in the head lets the browser refuse all other scripts, styles and requests.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="discodso {version}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">To the report</a>
<header id="top"></header>
<main id="main" tabindex="-1"></main>
<footer id="foot"></footer>
<noscript><p>This report draws itself with JavaScript, which is switched off here. All of its numbers are in the
script element named "data" of this file, as JSON.</p></noscript>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page(data: Mapping[str, Any]) -> str:
    """The whole file."""
    style, script = _asset("page.css"), _asset("page.js")
    connect = "'self'" if data["live"] else "'none'"
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_mark(style)}'; script-src '{_mark(script)}'; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(
        policy=policy,
        version=escape(str(data["version"])),
        title=escape(str(data["title"])),
        style=style,
        data=embedded(data),
        script=script,
    )


def embedded(data: Any) -> str:
    """JSON that can stand in a script element: nothing in it can end the element or begin another."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    # A lone half of a pair of surrogates is no text in UTF-8.
    text = text.encode("utf-8", "replace").decode("utf-8")
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _asset(name: str) -> str:
    return files("discodso.report").joinpath(name).read_text(encoding="utf-8")


def _mark(content: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
