"""Which vocabulary a command works with: ``--tokenizer``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from maskwright.cli.sources import UsageError
from maskwright.errors import MaskwrightError
from maskwright.vocabulary.vocabulary import Vocabulary

_NEEDS = {
    "transformers": "maskwright[hf]",
    "mistral_common": "mistral-common",
    "sentencepiece": "sentencepiece",
}


def add_tokenizer_option(parser: argparse.ArgumentParser, what: str, default: str | None = None) -> None:
    """``--tokenizer``; ``what`` says what it is for, and what happens without it."""
    parser.add_argument(
        "--tokenizer",
        default=default,
        metavar="NAME",
        help=f'{what}: "bytes", "demo" (the small one of this package), "default" (that of SmolLM2-135M-Instruct), a name '
        "or folder of transformers, a SentencePiece file (.model), or a tekken file (tekken*.json)",
    )


def vocabulary_of(name: str | None) -> Vocabulary | None:
    """The vocabulary that ``--tokenizer`` names; None for single bytes.

    Raises ``UsageError`` when it cannot be loaded.
    """
    if name is None or name == "bytes":
        return None
    try:
        return _loaded(name)
    except ImportError as error:
        package = _NEEDS.get((error.name or "").partition(".")[0], error.name)
        raise UsageError(f'{error}; this tokenizer needs: pip install "{package}"') from None
    except MaskwrightError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"the tokenizer {name!r} cannot be loaded: {error}") from None


def _loaded(name: str) -> Vocabulary:
    path = Path(name)
    if path.suffix == ".model":
        import sentencepiece

        read = partial(sentencepiece.SentencePieceProcessor, model_file=name)
        return Vocabulary.from_sentencepiece(_of_file(path, read))
    if path.suffix == ".json" and path.name.startswith("tekken"):
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        return Vocabulary.from_mistral_common(_of_file(path, partial(Tekkenizer.from_file, path)))
    from transformers import AutoTokenizer

    if name == "demo":
        from maskwright.demo import demo_diffusion_path

        name = str(demo_diffusion_path())
    elif name == "default":
        from maskwright.generation.default_model import default_model

        name = default_model()
    return Vocabulary.from_huggingface(AutoTokenizer.from_pretrained(name))


def _of_file(path: Path, read: Callable[[], Any]) -> Any:
    """What a library reads of a file.  For one that is no tokenizer, libraries raise anything: here ``ValueError`` or ``OSError``."""
    path.open("rb").close()
    try:
        return read()
    except Exception as error:
        raise ValueError(f"the file is no tokenizer ({type(error).__name__}: {error})") from None
