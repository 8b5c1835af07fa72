"""``maskwright batch --ray`` on a local cluster of two nodes, on which workers and nodes die (``make test-ray``)."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip(
    "ray", reason="Ray is not installed: make test-ray has it in an environment of its own"
)
pytest.importorskip("ray.data", reason="Ray Data is not installed: pip install 'ray[data]'")
pytest.importorskip("transformers", reason="the generator runs transformers models")
import psutil  # noqa: E402
from batch_files import COLOUR, PERSON, check_filled, openai_rows, plain_rows, read_rows, write_rows  # noqa: E402
from tiny_model import TINY  # noqa: E402

import maskwright as mw  # noqa: E402
from maskwright.cli import main  # noqa: E402
from maskwright.integrations import ray as back_end  # noqa: E402


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head and one more node, of two CPUs each."""
    from ray.cluster_utils import Cluster

    # Workers find what this process finds; models here are tiny.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["src", "tests", os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    node = {"num_cpus": 2, "object_store_memory": 200 * 2**20}
    made = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    made.second = made.add_node(**node)
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(PERSON))
    return str(path)


def batch(cluster: Any, source: str, output: Path, schema: str, *arguments: str) -> int:
    given = (
        "--schema",
        schema,
        "--ray",
        cluster.address,
        "--model",
        str(TINY),
        "--max-tokens",
        "60",
        *arguments,
    )
    return main(["batch", source, str(output), *given])


def actors() -> list[int]:
    """The processes of this cluster that have a model."""
    own = psutil.Process().children(recursive=True)
    return [each.pid for each in own if any("_Filler" in part for part in _command(each))]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def on_the_way(output: Path, rows: int, act: Callable[[], None]) -> threading.Thread:
    """Do something as soon as the output has so many rows."""

    def watch() -> None:
        end = time.monotonic() + 300
        while time.monotonic() < end:
            if output.exists() and output.read_bytes().count(b"\n") >= rows:
                return act()
            time.sleep(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_killed_worker_loses_and_doubles_nothing(cluster: Any, tmp_path: Path, schema: str) -> None:
    count, killed = 240, []
    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(count)), tmp_path / "out.jsonl"

    def kill() -> None:
        killed.append(actors()[0])
        os.kill(killed[0], signal.SIGKILL)

    watching = on_the_way(output, 8, kill)
    code = batch(
        cluster, source, output, schema, "--actors", "2", "--rows-per-task", "8", "--batch-size", "4"
    )
    watching.join()
    assert code == 0 and killed, "an actor was killed while others worked"
    check_filled(output, count)


def test_a_node_that_goes_loses_and_doubles_nothing(cluster: Any, tmp_path: Path, schema: str) -> None:
    count, gone = 240, []
    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(count)), tmp_path / "out.jsonl"

    def remove() -> None:
        cluster.remove_node(cluster.second, allow_graceful=False)
        gone.append(True)

    watching = on_the_way(output, 8, remove)
    code = batch(
        cluster, source, output, schema, "--actors", "2", "--rows-per-task", "8", "--batch-size", "4"
    )
    watching.join()
    assert code == 0 and gone
    check_filled(output, count)


def test_bad_rows_and_what_is_there_already(cluster: Any, tmp_path: Path, schema: str) -> None:
    rows: list[Any] = [
        *plain_rows(5),
        {"id": "b", "prompt": "x", "schema": {"$ref": "#/nothing"}},
        {"id": "c", "prompt": "word " * 3000},
    ]
    source, output, errors = (
        write_rows(tmp_path / "in.jsonl", rows),
        tmp_path / "out.jsonl",
        tmp_path / "bad.jsonl",
    )
    assert batch(cluster, source, output, schema, "--errors", str(errors), "--rows-per-task", "2") == 1
    check_filled(output, 5)
    assert {row["id"]: row["error"]["param"] for row in read_rows(errors)} == {"b": "/$ref", "c": None}
    # A batch that a cluster began goes on in this process, and the other way round.
    write_rows(tmp_path / "in.jsonl", plain_rows(7))
    arguments = ("--schema", schema, "--model", str(TINY), "--max-tokens", "60")
    before = output.read_bytes()
    assert main(["batch", source, str(output), *arguments]) == 0
    assert output.read_bytes().startswith(before)
    write_rows(tmp_path / "in.jsonl", plain_rows(9))
    assert batch(cluster, source, output, schema) == 0
    check_filled(output, 9)


def test_no_room(cluster: Any, tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_rows(tmp_path / "in.jsonl", plain_rows(1))
    assert batch(cluster, source, tmp_path / "out.jsonl", schema, "--actors", "4") == 1
    assert "room for 3 actors of 1 CPUs and 0 GPUs" in capsys.readouterr().err


def test_grammars_are_compiled_once_and_travel_as_bytes(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an actor does with what the driver packs, looked at in this process."""
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
    schemas: list[Any] = [{"const": f"text {i}"} for i in range(100)]
    given = [(f"x{i}", schemas[i % 100], {"max_new_tokens": 30}) for i in range(250)]
    tables, sources, grammars = back_end._packed(ray, given, str(TINY), 64)
    assert [ray.get(table).num_rows for table in tables] == [64, 64, 64, 58]
    assert len(sources) == len(grammars) == 100 and all(isinstance(data, bytes) for data in grammars.values())
    monkeypatch.setattr(back_end, "_has_gpu", lambda: False)
    filler = back_end._Filler(str(TINY), ray.put(sources), ray.put(grammars), 4)
    kept: dict[str, bytes] = {}

    class Watched(dict[str, bytes]):
        def __setitem__(self, name: str, data: bytes) -> None:
            kept[name] = data

    filler._compiler = mw.Compiler(filler._generator.vocabulary, shared=Watched(grammars), cache_bytes=2**28)
    table = ray.get(tables[0])
    block = {name: table[name].to_numpy() for name in ("place", "request")}
    places = filler(block)["place"]
    assert list(places) == list(range(64)) and filler._compiler.statistics["compiled"] == 64
    assert not kept, "it read what the driver compiled"


def test_results_and_errors_of_the_library(cluster: Any) -> None:
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
    given = [("x", COLOUR, {"max_new_tokens": 20}), ("y", object(), {}), ("z", COLOUR, {"no_such": 1})]
    results = dict(back_end.as_completed(given, model=str(TINY), actors=1))
    assert results[0][0].value in COLOUR["enum"] and results[0][0].usage.generated_tokens > 0
    assert isinstance(results[1], mw.MaskwrightError) and isinstance(results[2], mw.MaskwrightError)
    assert list(back_end.as_completed([], model=str(TINY))) == []


def test_openai_rows(cluster: Any, tmp_path: Path, schema: str) -> None:
    from batch_files import chatty_model

    model = str(chatty_model(tmp_path / "model"))
    source, output = write_rows(tmp_path / "in.jsonl", openai_rows(4, max_tokens=60)), tmp_path / "out.jsonl"
    given = ("--schema", schema, "--ray", cluster.address, "--model", model)
    assert main(["batch", source, str(output), *given]) == 0
    check_filled(output, 4)
