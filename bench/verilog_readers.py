"""What reads Verilog anyway: the parsers of slang (``pyslang``) and of Icarus Verilog (``iverilog``).

Macros that a text uses and does not define stand for the name ``x``, and files to include are empty.  A text whose own macros alone make it
wrong is told apart: what they stand for, no grammar says.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

# Of compilers: no macros.
DIRECTIVES = {
    "begin_keywords", "celldefine", "default_nettype", "define", "else", "elsif", "end_keywords", "endcelldefine", "endif", "ifdef", "ifndef",
    "include", "line", "nounconnected_drive", "pragma", "resetall", "timescale", "unconnected_drive", "undef", "undefineall", "__FILE__", "__LINE__",
}  # fmt: skip
_OWN_MACROS = re.compile(r"`undef\s+[\w$]+|`define\b([^\n\\]|\\.|\\\n)*")
# The standard of 2005, without what Icarus adds to it; stages are named.
ICARUS = ["iverilog", "-v", "-g2005", "-gno-xtypes", "-gno-icarus-misc", "-t", "null", "-o", "/dev/null"]
# Printed when all of the text was parsed.
_PARSED = "LOCATING TOP-LEVEL MODULES"
# What Icarus says while it parses, and is about names, about rows of primitives that have too many columns, or about what it can not simulate.
_MEANING = re.compile(
    r"warning:|sorry:|already been declared|was declared here|definition conflicts|missing (output|input) declaration|: Try: |pform_make_udp|process_udp_table|set_data_type"
)


def said_by_slang(texts: list[str]) -> list[str]:
    """What slang's parser says of Verilog; its elaboration is not asked."""
    return [_apart(text, _slang_error) for text in texts]


def said_by_icarus(texts: list[str]) -> list[str]:
    """What stops Icarus Verilog before all of a text is parsed.  What it says afterwards, when it elaborates, does not count."""
    return [_apart(text, _icarus_error) for text in texts]


def _apart(text: str, error: Callable[[str], str]) -> str:
    code = error(text)
    if code and _OWN_MACROS.search(text) and not error(_OWN_MACROS.sub("", text)):
        return f"its own macros: {code}"
    return code


def _undefined(text: str) -> list[str]:
    used = set(re.findall(r"`([A-Za-z_][\w$]*)", text)) - DIRECTIVES
    return sorted(used - set(re.findall(r"`(?:define|undef)[ \t]+([\w$]+)", text)))


def _slang_error(text: str) -> str:
    import pyslang

    options = pyslang.parsing.PreprocessorOptions()
    options.predefines = [f"{name}=x" for name in _undefined(text)]
    tree = pyslang.syntax.SyntaxTree.fromText(text, pyslang.SourceManager(), options=pyslang.Bag([options]))
    codes = [re.sub(r"\w+\((\w+)\)", r"\1", str(each.code)) for each in tree.diagnostics if each.isError()]
    return next((code for code in codes if code != "CouldNotOpenIncludeFile"), "")


def _icarus_error(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text.v")
        path.write_text(re.sub(r'`include[ \t]+"[^"\n]*"', "", text), encoding="utf-8", newline="")
        macros = [f"-D{name}=x" for name in _undefined(text)]
        try:
            done = subprocess.run([*ICARUS, *macros, str(path)], capture_output=True, timeout=60, check=False)
            said, errors = done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            said, errors = late.stdout or b"", late.stderr or b""
    if _PARSED in said.decode(errors="replace"):
        return ""
    # Others are about itself.
    lines = [
        line.replace(str(path), "")
        for line in errors.decode(errors="replace").splitlines()
        if str(path) in line or "Assertion" in line
    ]
    return next((line for line in lines or ["no answer"] if not _MEANING.search(line)), "")
