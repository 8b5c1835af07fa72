"""What the site does besides mkdocs: pages are also read in the repository, and name files there."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links that leave the site become names of files in the repository."""
    folder = posixpath.dirname(page.file.src_uri)

    def one(found: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(folder, found[2]))
        if not place.startswith("../"):
            return found[0]
        name = place.removeprefix("../")
        return f"`{name}`" if found[1] == name else f"{found[1]} (`{name}`)"

    return _LINK.sub(one, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """The theme gives its search no name, which screen readers ask for."""
    return output.replace(
        'data-md-component="search" role="dialog"',
        'data-md-component="search" role="dialog" aria-label="Search"',
    )
