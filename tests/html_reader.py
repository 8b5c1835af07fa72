"""HTML as a parser reads it that is not ours: what is open is closed in turn."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Reader(HTMLParser):
    """Reads a page, or a part of one; ``attributes`` has all of them, ``text`` what is no markup."""

    VOID = {"meta", "link", "br", "rect", "input", "path", "circle", "polyline", "line"}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.stack

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self.tags.append(tag)
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check_alone(page: str) -> Reader:
    """A page that is one file: it asks nobody for anything, and is not allowed to."""
    read = Reader(page)
    addresses = [value for name, value in read.attributes if name in ("src", "href", "srcset", "xlink:href")]
    assert addresses[0] == "data:," and all(value and value.startswith("#") for value in addresses[1:])
    assert not re.search(r"https?:|@import|url\(", page)
    assert "default-src 'none'" in page and "connect-src" not in page
    return read
