"""How long does importing maskwright take, and with it all that compiling needs?

python bench/micro/import_time.py
"""

from __future__ import annotations

import subprocess
import sys

from _common import show

CODE = "import time; b = time.perf_counter(); {}; print(time.perf_counter() - b)"


def seconds(statement: str) -> float:
    """In a new interpreter, best of five."""
    command = [sys.executable, "-c", CODE.format(statement)]
    return min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(5))


show("import maskwright", 1e3 * seconds("import maskwright"), "ms")
show("import of what compiling needs", 1e3 * seconds("import maskwright.compiling.compiler"), "ms")
