"""Ray: one model on each machine (or GPU) of a cluster, and requests shared out by Ray Data (``docs/batch.md``).

The driver compiles each grammar once; actors get the bytes and compile nothing.  What becomes of a task whose worker dies is Ray's to
decide: it starts another actor and runs the task again.  Whatever Ray computes twice comes out once.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np

import maskwright as mw
from maskwright.generation.outputs import Output

if TYPE_CHECKING:
    from maskwright.generation.results import Generation

__all__ = ["as_completed"]

GRAMMAR_BYTES = 2**30
"""What compiled grammars may take in an actor, and in the driver (bytes)."""


def as_completed(
    requests: Iterable[tuple[Any, Any, Mapping[str, Any]]],
    *,
    address: str | None = None,
    model: str | None = None,
    actors: int | None = None,
    cpus_per_actor: float = 1.0,
    gpus_per_actor: float | None = None,
    batch_size: int = 8,
    rows_per_task: int = 64,
) -> Iterator[tuple[int, list[Generation] | Exception]]:
    """What ``Generator.as_completed`` does, on a Ray cluster: the place of each request, and its outputs or its error.

    ``address``: of the cluster, as ``ray.init`` takes it ("auto", "HOST:PORT"); None: the one that this process is connected to, else one on this
    machine.  ``model``: a name or path that every machine can load; None: the default model.  ``actors``: models; None: as many as GPUs,
    or as CPUs allow when one is left over.  ``cpus_per_actor``, ``gpus_per_actor``: what each takes (None: one GPU where there are any).
    ``batch_size``: outputs that run together in an actor.  ``rows_per_task``: requests that an actor gets, and gives back, at a time: what is lost
    when it dies.

    All requests are held by Ray's object store.  Errors of a request are its own.  Raises ``MaskwrightError`` when the cluster has no
    room for an actor, and Ray's errors when it is gone.
    """
    import ray.data

    if not ray.is_initialized():
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    # Nothing of this is for people: whoever calls has a progress bar of his own.
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_options.preserve_order = False
    has_gpus = gpus_per_actor is None and ray.cluster_resources().get("GPU", 0) >= 1
    gpus = (1.0 if has_gpus else 0.0) if gpus_per_actor is None else gpus_per_actor
    count = _actors(ray.cluster_resources(), actors, cpus_per_actor, gpus)
    tables, sources, grammars = _packed(ray, requests, model, rows_per_task)
    if not tables:
        return
    seen: set[int] = set()
    filled = ray.data.from_arrow_refs(tables).map_batches(
        _Filler,
        fn_constructor_kwargs={
            "model": model,
            "sources": ray.put(sources),
            "grammars": ray.put(grammars),
            "batch_size": batch_size,
        },
        batch_size=None,
        batch_format="numpy",
        compute=ray.data.ActorPoolStrategy(size=min(count, len(tables))),
        num_cpus=cpus_per_actor,
        num_gpus=gpus or None,
    )
    for block in filled.iter_batches(batch_size=None, batch_format="numpy"):
        for place, result in zip(block["place"], block["result"], strict=True):
            if place not in seen:
                seen.add(place)
                yield int(place), pickle.loads(result)


def _parts(whole: float, part: float) -> int:
    """How often a part is in a whole; Ray counts both to four digits behind the point, so that a tenth is in 3 thirty times."""
    return int(round(whole * 10_000) // max(round(part * 10_000), 1))


def _actors(resources: Mapping[str, float], asked: int | None, cpus: float, gpus: float) -> int:
    """How many models there is room for; a CPU is left over for the tasks that hand them their rows."""
    room = _parts(max(resources.get("CPU", 0.0) - 1.0, 0.0), cpus) if cpus else 2**31
    if gpus:
        room = min(room, _parts(resources.get("GPU", 0.0), gpus))
    if room < 1 or (asked is not None and asked > room):
        raise mw.MaskwrightError(
            f"the cluster has {resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs: that is room for {room} actors of {cpus:g} "
            f"CPUs and {gpus:g} GPUs, with one CPU left over for Ray Data"
            + ("" if asked is None else f", not for {asked}")
        )
    return min(room, 2**31 - 1) if asked is None else asked


def _packed(
    ray: Any, requests: Iterable[tuple[Any, Any, Mapping[str, Any]]], model: str | None, size: int
) -> tuple[list[Any], list[bytes], dict[str, bytes]]:
    """The requests in tables of Ray's store, with numbers of sources; the sources, and the bytes of their grammars.

    A source that does not compile has no bytes: it fails where it is used, with the same message."""
    import pyarrow
    from ray import cloudpickle

    grammars: dict[str, bytes] = {}
    numbers: dict[bytes, int] = {}
    tables: list[Any] = []
    places: list[int] = []
    rows: list[bytes] = []

    def flush() -> None:
        table = pyarrow.table({"place": places, "request": pyarrow.array(rows, pyarrow.large_binary())})
        tables.append(ray.put(table))
        places.clear()
        rows.clear()

    vocabulary = _vocabulary(model)
    with mw.Compiler(vocabulary, shared=grammars, cache_bytes=GRAMMAR_BYTES) as compiler:
        for place, (prompt, output_type, options) in enumerate(requests):
            # A class of a script or a notebook travels whole: the actors cannot import it.
            packed = cloudpickle.dumps(output_type)
            if packed not in numbers:
                numbers[packed] = len(numbers)
                _compile(compiler, output_type)
            places.append(place)
            rows.append(pickle.dumps((prompt, numbers[packed], dict(options))))
            if len(rows) == size:
                flush()
    if rows:
        flush()
    return tables, list(numbers), grammars


def _vocabulary(model: str | None) -> mw.Vocabulary:
    """That of the model's tokenizer, as ``Generator`` reads it; bytes of grammars fit any, but some sources name tokens."""
    from transformers import AutoConfig, AutoTokenizer

    if model is None:
        from maskwright.generation.default_model import default_model

        model = default_model()
    config = AutoConfig.from_pretrained(model)
    width = config.get_text_config(decoder=True).vocab_size
    return mw.Vocabulary.from_huggingface(AutoTokenizer.from_pretrained(model), vocab_size=width)


class _Filler:
    """An actor: a model, and the grammars that the driver compiled."""

    def __init__(
        self, model: str | None, sources: list[bytes], grammars: dict[str, bytes], batch_size: int
    ) -> None:
        sources, grammars = (_fetched(each) for each in (sources, grammars))
        self._generator = mw.Generator.from_pretrained(model)
        if _has_gpu():
            self._generator.model.to("cuda")
        self._generator.batch_size = batch_size
        self._types = [pickle.loads(source) for source in sources]
        self._compiler = mw.Compiler(
            self._generator.vocabulary, shared=grammars, cache_bytes=GRAMMAR_BYTES, workers=1
        )

    def __call__(self, block: dict[str, Any]) -> dict[str, Any]:
        results: list[bytes] = [b""] * len(block["place"])
        for at, result in self._generator.as_completed(self._requests(block["request"])):
            results[at] = _pickled(result)
        return {"place": block["place"], "result": np.array(results, dtype=object)}

    def _requests(self, packed: Iterable[bytes]) -> Iterator[tuple[Any, Any, Mapping[str, Any]]]:
        for each in packed:
            prompt, number, options = pickle.loads(each)
            output_type = self._types[number]
            compiled = _compile(self._compiler, output_type)
            if compiled is not None:
                compiled.exception()  # The generator finds what was read, and says itself what is wrong.
            yield prompt, output_type, options


def _compile(compiler: mw.Compiler, output_type: Any) -> Future[mw.CompiledGrammar] | None:
    """Let a type be compiled; None for what is no type."""
    try:
        return compiler.compile(Output(output_type).source)
    except mw.MaskwrightError:
        return None


def _fetched(value: Any) -> Any:
    """What a reference stands for; arguments of constructors may come as references."""
    import ray

    return ray.get(value) if isinstance(value, ray.ObjectRef) else value


def _has_gpu() -> bool:
    import ray

    return bool(ray.get_gpu_ids())


def _pickled(result: Any) -> bytes:
    from ray import cloudpickle

    try:
        data: bytes = cloudpickle.dumps(result)
        if isinstance(result, Exception):
            pickle.loads(data)
        return data
    except Exception:
        return pickle.dumps(mw.MaskwrightError(f"{type(result).__name__}: {result}"))
