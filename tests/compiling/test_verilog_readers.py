"""The shipped grammar of Verilog and Icarus Verilog, its second reader (``bench/verilog_readers.py``)."""

from __future__ import annotations

import random
import shutil
from functools import cache

import languages
import pytest
import verilog_readers
from byte_walks import BYTES
from byte_walks import accepts as holds

import maskwright as mw
from maskwright.compiling.shipped import examples

needs_icarus = pytest.mark.skipif(not shutil.which("iverilog"), reason="needs iverilog (Icarus Verilog)")

# What slang reads, and Icarus Verilog does not: no text of the grammar.
REFUSED = [
    "module m; endmodule `celldefine\n",
    "`celldefine `resetall",
    "/**/`timescale 1ns/1ps",
    "`timescale 1ns/1ps module m; endmodule",
    "`ifdef\nA\n`endif",
    "module`u; endmodule",
    "module m; initial #a`b = 1; endmodule",
    "module m; initial a = #b`c; endmodule",
    "module m; wire #a`b; endmodule",
    "module m; always @* a = @* b; endmodule",
    "module m; initial @(* /* a */ ) b = 1; endmodule",
    "module m; wire #a.b c; endmodule",
    "module m; x #(1:2:3) u(); endmodule",
    "module m; x #a u(); endmodule",
    "module m; x (strong0, strong1) (a, b); endmodule",
    "module m; defparam a = 1:2:3; endmodule",
    "module m; wire a, b = 1; endmodule",
    "module m; wire (strong0, strong1) a; endmodule",
    "module m; trireg a = 1; endmodule",
    "module m; wire (strong0, weak1) #6 a = b; endmodule",
    "module m(.a()); endmodule",
    "module m(a[3-:2]); endmodule",
    "module m; initial (* a *) b = 1; endmodule",
    "module m; (* a *) assign b = 1; endmodule",
    "module m; task t; (* a *) input b; ; endtask endmodule",
    "(* a *) primitive p(o, i); output o; input i; table 0 : 1; endtable endprimitive",
    "(* a = `_b *) module m; endmodule",
    "(* a\n`ifdef B\n, c\n`endif\n*) module m; endmodule",
    "module m; task t; reg a = 1; ; endtask endmodule",
    'module m; initial a = "b\\\nc"; endmodule',
    "module m; initial a = $time(); endmodule",
    "module m; initial a = b <+c; endmodule",
    'module m; initial \\"a = `b; endmodule',
    "module m; initial \\a/* = `b; endmodule",
    "module m; specify (a => b) = 1:2:3; endspecify endmodule",
    "module m; specify (a => b) = 1 + 2; endspecify endmodule",
    "module m; specify $width(posedge a, 1, 1:2:3); endspecify endmodule",
    "primitive p(o, a, b); output o; input a, b; table x1 : 1; endtable endprimitive",
    "primitive p(o, a); output o; reg o; input a; table (?b) : ? : 0; endtable endprimitive",
    "`default_nettype uwire\n",
    "`default_nettype trireg\n",
    "module m; specparam [`u] a = 1; endmodule",
]
# Both read it, one only says that it cannot do it.
SORRY = [
    "module m; trireg a; endmodule",
    "module m; event a[1:0]; endmodule",
    "module m; wire #1 a; endmodule",
]


@cache
def compiled() -> mw.CompiledGrammar:
    # However busy the machine is.
    return mw.compile(mw.shipped_grammar("verilog"), BYTES, limits=mw.Limits(max_seconds=60))


def test_what_one_reader_refuses_is_no_text_of_the_grammar() -> None:
    assert [text for text in REFUSED if holds(compiled(), text)] == []
    assert [text for text in SORRY if not holds(compiled(), text)] == []


def test_what_slang_says_of_them() -> None:
    pytest.importorskip("pyslang")
    assert verilog_readers.said_by_slang([*REFUSED, *SORRY]) == [""] * len(REFUSED + SORRY)
    assert verilog_readers.said_by_slang(["module m; assign = b; endmodule"]) != [""]


@needs_icarus
def test_what_icarus_says_of_them() -> None:
    said = verilog_readers.said_by_icarus(REFUSED)
    assert [text for text, error in zip(REFUSED, said, strict=True) if not error] == []
    read = [*SORRY, *examples("verilog")["accept"]]
    assert verilog_readers.said_by_icarus(read) == [""] * len(read)
    # Names are elaborated, and not parsed; macros may stand for anything.
    assert verilog_readers.said_by_icarus(["module m; assign a = b; reg c; reg c; endmodule"]) == [""]
    (own,) = verilog_readers.said_by_icarus(["`define u +\nmodule m; assign a = `u; endmodule"])
    assert own.startswith("its own macros: ")


@needs_icarus
@pytest.mark.parametrize("walks", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_icarus_reads_random_texts(walks: int) -> None:
    """``bench/languages.py verilog:icarus`` asks more."""
    judge = languages.JUDGES["verilog:icarus"]
    rng = random.Random(walks)
    assert judge.wrong([languages.walk(compiled(), judge, rng) for _ in range(walks)]) == []
