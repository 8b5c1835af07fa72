"""Pages in a headless Chromium, when playwright (of Python) and a browser are installed; axe-core looks at them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def opened(address: str, scheme: str = "light") -> Iterator[Any]:
    """A page of playwright; messages of errors are in its ``problems``.  Skips the test where there is no browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pages are looked at with playwright")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium here")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        try:
            # axe-core is brought in from outside, which the policy of our pages does not allow.
            page = running.new_context(color_scheme=scheme, bypass_csp=True).new_page()
            page.problems = []
            page.on("pageerror", lambda error: page.problems.append(str(error)))
            page.on("console", lambda said: said.type == "error" and page.problems.append(said.text))
            page.goto(address)
            yield page
        finally:
            running.close()


def violations(page: Any) -> list[str]:
    """What axe-core finds, serious or not."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-core comes with axe-playwright-python")
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    return [f"{each['id']} ({each['impact']}): {each['nodes'][0]['html'][:120]}" for each in found]
