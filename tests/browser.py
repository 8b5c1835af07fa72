"""Pages in a headless Chromium; axe-core looks at them.

python tests/browser.py --fetch     # playwright and axe-core from Python's index, Chromium from Debian's (as root)

Without them, tests of pages are skipped and say why.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-headless-shell", "google-chrome")
PACKAGE = "chromium-headless-shell"
"""A third smaller than the whole browser."""
SECONDS = 60
"""All downloads together."""


def executable() -> str | None:
    """Path of a browser."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def opened(address: str, scheme: str = "light") -> Iterator[Any]:
    """A page of playwright; messages of errors are in its ``problems``.  Skips the test where there is no browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pages are looked at with playwright")
    browser = executable()
    if browser is None:
        pytest.skip("no chromium here; python tests/browser.py --fetch")
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


def fetch() -> None:
    """Install what is missing.  Raises ``OSError`` or ``subprocess.SubprocessError`` for what cannot be had in time."""
    until = time.monotonic() + SECONDS

    def download(*command: str) -> None:
        subprocess.run(command, check=True, timeout=max(1.0, until - time.monotonic()))

    extra = [
        each.partition(";")[0].strip()
        for each in metadata.requires("maskwright") or ()
        if each.endswith('extra == "pages"')
    ]
    assert extra
    download(sys.executable, "-m", "pip", "install", "--quiet", *extra)
    if executable() is not None:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise OSError(
            f"no {' or '.join(BROWSERS)} on the path, and none can be installed: that takes apt-get, and root"
        )
    apt = ["apt-get", "-qq", "--yes", "--no-install-recommends"]
    download("apt-get", "-qq", "update")
    download(*apt, "--download-only", "install", PACKAGE)
    # Not under the clock: a package half installed is worse than none.
    subprocess.run(
        [*apt, "install", PACKAGE],
        check=True,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdout=subprocess.DEVNULL,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fetch", action="store_true", required=True, help="install what is missing")
    parser.parse_args()
    try:
        fetch()
    except (OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
