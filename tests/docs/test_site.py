"""The site that `make docs` has built, in a browser."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator

import pytest
from browser import opened, violations
from places import ROOT

SITE = ROOT / "build" / "site"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (SITE / "index.html").exists():
        pytest.skip("there is no site here: make docs")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)
    ) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["", "coming-from/", "how-it-works/", "json-schema-keywords/", "reference/"])
def test_pages_of_the_site(address: str, page: str, scheme: str) -> None:
    with opened(f"{address}/{page}", scheme) as shown:
        assert not [each for each in violations(shown) if "(serious)" in each or "(critical)" in each]
        assert not shown.problems
