"""The frame of all pages: one file, colours for light and dark, no request to anywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from maskwright.base.html import escape

_ASSETS = Path(__file__).parent / "assets"


@cache
def asset(name: str) -> str:
    """A style or a script that comes with this package."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def embedded(data: Any) -> str:
    """JSON as the content of a ``script`` element, which ends at ``</`` and at nothing else."""
    return (
        json.dumps(data, ensure_ascii=False)
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def page(
    title: str, body: str, *, scripts: Sequence[str] = (), data: Any = None, connects: bool = False
) -> str:
    """A whole page.

    body: HTML within ``main``.  scripts: names of assets, run in order.  data: read by scripts from the element ``data``.
    connects: whether its scripts may ask the server that it comes from; otherwise the page is not allowed any request.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    if connects:
        policy += "; connect-src 'self'"
    given = "" if data is None else f'<script type="application/json" id="data">{embedded(data)}</script>\n'
    code = "".join(f"<script>\n{asset(name)}</script>\n" for name in scripts)
    whole = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n'
        f"<style>\n{asset('page.css')}</style>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}</main>\n{given}{code}</body>\n</html>\n"
    )
    # Names in a schema may have lone surrogates, which no file can.
    return whole.encode("utf-8", "backslashreplace").decode("utf-8")
