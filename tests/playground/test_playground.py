"""The playground: what its page is told, who is refused, limits, and the page in a browser."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from browser import opened, violations
from tiny_model import REQUESTS, TINY

from maskwright.cli import main
from maskwright.playground.answers import LIMITS, MOST_CHARACTERS, RequestError, check, generate
from maskwright.playground.server import MOST_BYTES, Playground

SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}'


def asked(source: str, instance: str = "", language: str = "json-schema", **more: Any) -> dict[str, Any]:
    return check({"language": language, "source": source, "instance": instance, "prefix": instance, **more})


# --- answers


def test_a_good_source_and_an_unfinished_output() -> None:
    found = asked(SCHEMA, '{"a": 1')
    assert not found["problems"] and len(found["samples"]) == 5
    assert all(isinstance(json.loads(sample)["a"], (int, float)) for sample in found["samples"])
    assert found["instance"][0]["code"] == "incomplete" and found["instance"][0]["place"] == "1:8"
    cursor = found["cursor"]
    assert cursor["reached"] and not cursor["complete"] and cursor["shortest_completion"] == "}"
    assert "}" in cursor["tokens"] and "{" not in cursor["tokens"] and cursor["of"] == 256
    assert asked(SCHEMA, '{"a": 1}')["instance"] == []
    assert asked(SCHEMA, "")["instance"] is None
    assert asked(SCHEMA, "", seed=1)["samples"] != found["samples"]


def test_where_an_output_leaves_the_language() -> None:
    found = asked(SCHEMA, '{"b": 1}')
    assert found["instance"][0]["code"] == "not-in-language"
    assert found["cursor"] == {"reached": False, "fits": '{"', "expected": found["cursor"]["expected"]}
    assert "'a'" in found["cursor"]["expected"]


@pytest.mark.parametrize(
    ("language", "source", "said"),
    [
        ("json-schema", '{"type": ', "1:10"),
        ("json-schema", '{"type": "integer", "minimum": 3, "maximum": 2}', "exclude each other"),
        ("lark", "start: a\n", "a"),
        ("lark", "%import secrets.KEY\nstart: KEY\n", "secrets"),
        ("gbnf", 'root ::= "a" b', "b"),
        ("regex", "(a", "1"),
    ],
)
def test_problems_with_their_places(language: str, source: str, said: str) -> None:
    found = asked(source, "x", language)
    assert found["problems"] and found["cursor"] is None
    assert any(said in each["message"] or said in each["place"] for each in found["problems"])


@pytest.mark.parametrize(
    ("language", "source", "good"),
    [
        ("lark", '%import common.INT\nstart: INT ("+" INT)*\n', "1+2"),
        ("gbnf", 'root ::= "a"+', "aa"),
        ("regex", "a|b\n", "b"),
    ],
)
def test_other_languages(language: str, source: str, good: str) -> None:
    found = asked(source, good, language)
    assert found["instance"] == [] and found["cursor"]["complete"] and not found["problems"]


@pytest.mark.parametrize(
    "request_",
    [
        [], None, {}, {"language": "c"}, {"language": "regex", "source": 3}, {"language": "regex", "source": "a", "seed": -1},
        {"language": "regex", "source": "a", "seed": True}, {"language": "regex", "source": "a" * (MOST_CHARACTERS + 1)},
        {"language": "regex", "source": "a", "instance": ["a"]},
    ],
)  # fmt: skip
def test_other_shapes(request_: Any) -> None:
    with pytest.raises(RequestError):
        check(request_)


def test_time_is_limited() -> None:
    source = json.dumps(
        {"anyOf": [{"type": "string", "pattern": f"^(a?){{{n}}}b.{{0,{n}}}$"} for n in range(200, 400)]}
    )
    request = {"language": "json-schema", "source": source, "instance": "", "prefix": ""}
    found = check(request, limits=replace(LIMITS, max_seconds=0.01))
    assert any("max_seconds" in each["message"] for each in found["problems"])


def test_lone_surrogates_are_no_error() -> None:
    assert asked(SCHEMA, '{"a\ud800')["cursor"]["reached"] is False


# --- over HTTP


@pytest.fixture(scope="module")
def server() -> Iterator[Playground]:
    with Playground(0) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def sent(
    server: Playground, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    try:
        given = {"Host": f"127.0.0.1:{server.server_address[1]}", "Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body or None, given)
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read()
    finally:
        connection.close()


REQUEST = json.dumps({"language": "regex", "source": "ab", "instance": "a", "prefix": "a"}).encode()


def test_page_and_answers(server: Playground) -> None:
    status, headers, data = sent(server, "GET", "/")
    assert status == 200 and headers["X-Content-Type-Options"] == "nosniff"
    assert b"connect-src 'self'" in data and b"http:" not in data and b'id="write"' not in data
    status, _, data = sent(server, "POST", "/check", REQUEST, Origin=server.address[:-1])
    assert status == 200 and json.loads(data)["cursor"]["forced"] == "b"
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("status", "path", "body", "headers"),
    [
        (403, "/check", REQUEST, {"Host": "evil.example"}),
        (403, "/check", REQUEST, {"Origin": "http://evil.example"}),
        (403, "/check", REQUEST, {"Origin": "null"}),
        (415, "/check", REQUEST, {"Content_Type": "text/plain"}),
        (413, "/check", b"", {"Content_Length": str(MOST_BYTES + 1)}),
        (413, "/check", b"", {"Content_Length": "9" * 30}),
        (411, "/check", b"", {"Content_Length": "-1"}),
        (404, "/generate", REQUEST, {}),
        (404, "/other", REQUEST, {}),
        (400, "/check", b"{", {}),
        (400, "/check", b"[" * 100_000, {}),
        (400, "/check", b"\xff", {}),
        (400, "/check", b"[]", {}),
    ],
)
def test_who_is_refused(
    server: Playground, status: int, path: str, body: bytes, headers: dict[str, str]
) -> None:
    got, _, data = sent(server, "POST", path, body, **headers)
    assert got == status and json.loads(data)["error"]
    assert sent(server, "POST", "/check", REQUEST)[0] == 200


def test_other_paths_and_hosts_of_the_page(server: Playground) -> None:
    assert sent(server, "GET", "/../etc/passwd")[0] == 404
    assert sent(server, "GET", "/", Host="evil.example")[0] == 403


# --- with a model


def test_a_page_that_goes_away_is_nobodys_news(server: Playground, capfd: pytest.CaptureFixture[str]) -> None:
    body = b'{"language": "regex", "source": "a", "instance": ""}'
    head = f"POST /check HTTP/1.1\r\nHost: 127.0.0.1:{server.server_address[1]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    for sent_of_it in (len(body), 5):
        for _ in range(5):
            client = socket.create_connection(("127.0.0.1", server.server_address[1]))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(head.encode() + body[:sent_of_it])
            client.close()
    time.sleep(1)
    assert capfd.readouterr().err == ""


@pytest.fixture(scope="module")
def generator() -> Any:
    pytest.importorskip("transformers", reason="a model of transformers writes")
    import maskwright as mw

    return mw.Generator.from_pretrained(str(TINY))


def test_a_model_writes(generator: Any) -> None:
    request = next(iter(REQUESTS.values()))
    asked_for = {
        "language": "json-schema",
        "source": json.dumps(request["schema"]),
        "prompt": request["request"],
    }
    found = generate(asked_for, generator)
    assert json.loads(found["text"]) and 0 <= found["removed"] <= 1 and found["passes"] > 0
    assert "shortest output" in generate({**asked_for, "max_tokens": 1}, generator)["error"]
    for wrong in (0, 10**9, "5", True):
        with pytest.raises(RequestError):
            generate({**asked_for, "max_tokens": wrong}, generator)
    cursor = check({"language": "regex", "source": "true|false"}, generator.vocabulary)["cursor"]
    assert cursor["kind"] == "tokens" and "true" in cursor["tokens"]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(generator: Any, scheme: str) -> None:
    with Playground(0, generator) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            with opened(server.address, scheme) as shown:
                shown.locator("#verdict li").wait_for()
                assert "unfinished" in shown.locator("#verdict").inner_text()
                shown.locator("#instance").press("End")
                shown.locator("#instance").press_sequentially("6}")
                shown.locator("#verdict .good").wait_for()
                shown.locator("#source").fill('{"type": ')
                shown.locator("#problems li").wait_for()
                assert "1:10" in shown.locator("#problems").inner_text()
                shown.locator("#language").select_option("regex")
                shown.locator("#source").fill("yes|no")
                shown.locator("#problems .good").wait_for()
                shown.locator("#write").click()
                shown.locator("#written", has_text="forward passes").wait_for()
                assert shown.locator("#written").inner_text().startswith(("yes", "no"))
                assert not violations(shown) and not shown.problems
        finally:
            server.shutdown()
            thread.join()


# --- the command


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with Playground(0) as taken:
        port = str(taken.server_address[1])
        assert main(["playground", "--port", port]) == 2
        assert "in use" in capsys.readouterr().err
    assert main(["playground", "--port", "99999"]) == 2
    assert main(["playground", "--model", "x", "--tokenizer", "demo"]) == 2


def test_the_command_serves_until_interrupted() -> None:
    code = (
        "import _thread, signal, threading, urllib.request\n"
        # Whoever is started in the background of a shell ignores interrupts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from maskwright.playground.server import Playground\n"
        "from maskwright.cli import main\n"
        "serve = Playground.serve_forever\n"
        "def serving(self):\n"
        "    def ask():\n"
        "        print(urllib.request.urlopen(self.address).status, flush=True)\n"
        "        _thread.interrupt_main()\n"
        "    threading.Thread(target=ask, daemon=True).start()\n"
        "    serve(self)\n"
        "Playground.serve_forever = serving\n"
        "raise SystemExit(main(['playground', '--port', '0']))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "maskwright: http://127.0.0.1:" in run.stdout and "200" in run.stdout
