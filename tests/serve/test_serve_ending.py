"""``maskwright serve``: how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from serving import free_port, openai, serving
from tiny_model import TINY

from maskwright.generation.batch import Batch


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_the_end_is_graceful(sent: int) -> None:
    form: Any = {"response_format": {"type": "regex", "pattern": "[ab]{200}"}}
    with serving() as served, ThreadPoolExecutor(1) as pool:
        running = pool.submit(served.chat, extra_body=form, max_tokens=300)
        served.wait_until_running()
        served.server.handle_exit(sent, None)
        with pytest.raises((openai.APIConnectionError, openai.InternalServerError)):
            served.chat(max_tokens=1)
        assert len(running.result().choices[0].message.content) == 200


def test_the_end_does_not_take_for_ever() -> None:
    form: Any = {"response_format": {"type": "regex", "pattern": "[a-z]{900}"}}
    with serving(shutdown_seconds=0.1) as served, ThreadPoolExecutor(1) as pool:
        running = pool.submit(served.chat, extra_body=form, max_tokens=1000, temperature=2)
        served.wait_until_running()
        served.server.end()
        with pytest.raises(openai.InternalServerError) as found:
            running.result()
    assert found.value.status_code == 503 and found.value.response.headers["retry-after"]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_at_once(sent: int) -> None:
    form: Any = {"response_format": {"type": "regex", "pattern": "[a-z]{900}"}}
    with serving() as served, ThreadPoolExecutor(1) as pool:
        running = pool.submit(served.chat, extra_body=form, max_tokens=1000, temperature=2)
        served.wait_until_running()
        served.server.handle_exit(sent, None)
        time.sleep(0.2)
        assert not running.done()
        served.server.handle_exit(sent, None)
        with pytest.raises(openai.InternalServerError, match="shutting down"):
            running.result()
    assert not served.service.engine.is_alive, "the model's thread has ended too"


@pytest.mark.parametrize("seconds", [0.5, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stream", [False, True])
def test_a_second_signal_during_a_pass(stream: bool, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows get to know between passes of the model, which may take longer than the event loop has to live by itself."""
    step = Batch.step
    passes = threading.Semaphore(0)

    def slow(batch: Batch) -> Any:
        passes.release()
        time.sleep(seconds)
        return step(batch)

    form: Any = {"response_format": {"type": "regex", "pattern": "[a-z]{900}"}}

    def ask(served: Any) -> None:
        answer = served.chat(extra_body=form, max_tokens=1000, stream=stream)
        if stream:
            for _ in answer:
                pass

    with serving() as served, ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(Batch, "step", slow)
        running = pool.submit(ask, served)
        for _ in range(2):
            assert passes.acquire(timeout=20)
        served.server.handle_exit(signal.SIGINT, None)
        served.server.handle_exit(signal.SIGINT, None)
        with pytest.raises(openai.APIError, match="shutting down"):
            running.result()


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_the_process_ends_on_a_signal(sent: int) -> None:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "maskwright",
        "serve",
        "--model",
        str(TINY),
        "--served-model-name",
        "t",
        "--port",
        str(port),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            end = time.monotonic() + 120
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                        assert json.load(answer)["model"] == "t"
                    break
                except OSError:
                    assert process.poll() is None and time.monotonic() < end
                    time.sleep(0.1)
            client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="x", max_retries=0)
            stream = client.completions.create(
                model="t",
                prompt="Once",
                max_tokens=100,
                stream=True,
                extra_body={"response_format": {"type": "regex", "pattern": "[ab]{80}"}},
            )
            parts = iter(stream)
            text = next(parts).choices[0].text
            process.send_signal(sent)
            text += "".join(part.choices[0].text for part in parts)
            assert len(text) == 80
            told = process.communicate(timeout=60)[1]
            assert process.returncode == 0 and "Traceback" not in told
        finally:
            process.kill()


def test_threads_end_with_the_server() -> None:
    before = threading.active_count()
    with serving() as served:
        served.chat(max_tokens=2)
    end = time.monotonic() + 10
    while threading.active_count() > before + 1:
        assert time.monotonic() < end, threading.enumerate()
        time.sleep(0.05)
