"""Shipped grammars and what reads their language anyway: files that they must accept, and random texts that the reader must accept.

    python bench/languages.py NAME [FOLDER ...] [--files N] [--walks N] [--seed N]

NAME: c (gcc), html (html5lib), markdown (markdown-it-py, which must see the same parts), javascript (Node.js), typescript (version 5 of the package of npm, on NODE_PATH), shell (bash and dash), shell-bash (bash alone), verilog (the parser of pyslang), verilog:icarus (that of Icarus Verilog),
python-3.12 and python-3.13 (``ast`` of python3.12 and python3.13, on PATH).  Files below the folders that the reader refuses are counted apart.
What no context-free grammar says (names declared twice and the like) is no error of a random text.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from markdown_structure import said_by_parser
from verilog_readers import said_by_icarus, said_by_slang

import maskwright as mw
from maskwright.check.grammars import compile_for_bytes
from maskwright.compiling.shipped import shipped_grammar

LIMITS = mw.Limits(max_seconds=600.0, max_lexer_states=10_000_000, max_parser_states=100_000_000)
# A module is parsed, early errors included, when it is made; it is not run.
NODE_MODULES = """
const vm = require('vm');
require('readline').createInterface({input: process.stdin}).on('line', line => {
  let said = '';
  try { new vm.SourceTextModule(JSON.parse(line)); } catch (error) { said = error.message; }
  console.log(JSON.stringify(said));
});
"""
# What the compiler's parser says of a module; its checker is not asked.
TYPESCRIPT = """
const ts = require('typescript');
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const options = {languageVersion: ts.ScriptTarget.Latest, setExternalModuleIndicator: file => { file.externalModuleIndicator = true; }};
  const file = ts.createSourceFile('a.ts', JSON.parse(line), options, false, ts.ScriptKind.TS);
  const [first] = file.parseDiagnostics;
  console.log(JSON.stringify(first ? ts.flattenDiagnosticMessageText(first.messageText, ' ') : ''));
});
"""
PYTHON = """
import ast, json, sys, warnings
warnings.simplefilter('ignore')
for line in sys.stdin:
    said = ''
    try:
        ast.parse(json.loads(line))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = f'{type(error).__name__}: {error}'
    print(json.dumps(said))
"""


@dataclass(frozen=True, slots=True)
class Judge:
    """What reads a language."""

    said: Callable[[list[str]], list[str]]
    """By text, the reader's error, or nothing."""
    needs: tuple[str, ...]
    """Programs; modules of Node.js (``NODE_PATH``) and Python as "node:name" and "python:name"; releases of Python as "cpython:3.12"."""
    suffixes: tuple[str, ...]
    beginnings: tuple[str, ...] = ("",)
    """How random texts begin."""
    marks: str = "\n"
    """Characters that come more often in random texts: those that open, close and separate."""
    no_grammar: str = "$^"
    """Errors that are no question of a context-free grammar."""

    def missing(self) -> list[str]:
        """What is needed and not there."""
        return [name for name in self.needs if not _is_here(name)]

    def wrong(self, texts: list[str]) -> list[tuple[str, str]]:
        """Texts that the reader refuses, and why."""
        pairs = zip(texts, self.said(texts), strict=True)
        return [(text, said) for text, said in pairs if said and not re.search(self.no_grammar, said)]


def _is_here(name: str) -> bool:
    kind, _, module = name.rpartition(":")
    if kind == "python":
        return importlib.util.find_spec(module) is not None
    if kind == "node":
        command = ["node", "-e", f"require.resolve({module!r})"]
        return _is_here("node") and not subprocess.run(command, capture_output=True, check=False).returncode
    if kind == "cpython":
        # Where several are managed, a program of that name may only say that it was not chosen.
        name = f"python{module}"
        return (
            _is_here(name)
            and not subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode
        )
    return shutil.which(name) is not None


def answers(command: list[str], texts: list[str]) -> list[str]:
    """What a program answers to each text, both as lines of JSON."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [str(json.loads(line)) for line in done.stdout.splitlines()]


def node(script: str, texts: list[str], *options: str) -> list[str]:
    """What a script of Node.js answers to each text."""
    return answers(["node", "--no-warnings", *options, "-e", script], texts)


def said_by_node(texts: list[str]) -> list[str]:
    return node(NODE_MODULES, texts, "--experimental-vm-modules")


def said_by_typescript(texts: list[str]) -> list[str]:
    return node(TYPESCRIPT, texts)


def said_by_python(version: str, texts: list[str]) -> list[str]:
    return answers([f"python{version}", "-c", PYTHON], texts)


def said_by_html5lib(texts: list[str]) -> list[str]:
    """Documents are those with a DOCTYPE; all errors count, and no program in the page runs."""
    import html5lib

    found = []
    for text in texts:
        parser = html5lib.HTMLParser()
        if re.search("<!doctype", text, re.IGNORECASE):
            parser.parse(text)
        else:
            parser.parseFragment(text)
        codes = [code for _, code, _ in parser.errors if code != "duplicate-attribute"]
        found.append(codes[0] if codes else "")
    return found


def said_by_shells(texts: list[str], shells: tuple[str, ...] = ("bash", "dash")) -> list[str]:
    """What shells say, warnings included; nothing is run."""
    found = []
    for text in texts:
        said = ""
        for shell in shells:
            done = subprocess.run([shell, "-n"], input=text.encode(), capture_output=True, check=False)
            if not said and (done.returncode or done.stderr):
                said = f"{shell}: {done.stderr.decode(errors='replace').strip()}"
        found.append(said)
    return found


def said_by_gcc(texts: list[str]) -> list[str]:
    """By text, the first error of gcc's that is about its syntax; the compiler goes on behind others.

    Names that end in ``_t`` are types, and all others are variables: what a name is, decides what gcc reads.
    """
    found = []
    for text in texts:
        command = ["gcc", "-std=c99", "-fsyntax-only", "-w", "-x", "c", "-"]
        names = sorted({*re.findall(r"\b[A-Za-z_]\w*", text)} - C_WORDS)
        known = "".join(f"{'typedef ' if name.endswith('_t') else ''}int {name};" for name in names)
        whole = f"#define bool _Bool\n{known}\n{text}".encode()
        done = subprocess.run(command, input=whole, capture_output=True, check=False)
        errors = re.findall(r"error: (.*)", done.stderr.decode(errors="replace"))
        found.append(next((error for error in errors if not C_MEANING.search(error)), ""))
    return found


C_WORDS = {
    "auto", "bool", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float", "for", "goto", "if",
    "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned",
    "void", "volatile", "while", "_Bool", "_Complex", "_Imaginary",
}  # fmt: skip
# What gcc says of C that its standard calls constraints, not syntax: of names, types and values, and of what stands in a loop or a switch.
C_MEANING = re.compile(
    r"undeclared|cannot initialize|flexible array|variably modified|variable-sized|array of functions|unknown type name|lvalue required|invalid (type argument|operands|use|initializer)|wrong type argument|has (non-integer|incomplete)|request for member|not a"
    r"n? (integer|constant|structure|function|pointer|array)|is not (an integer|constant|a (function|constant))|declared as (function|array)|is initialized|incompatible|array (type|size)|(re|previously )declared"
    r"|redefinition|redeclaration|subscripted value|used (as|but)|cast specifies|defined as wrong kind|duplicate|data types in|in declaration specifiers|void|within (a )?(loop|switch)"
    r"|not within|conflicting|initializer element|size of|not supported|storage size|is not|out of range|negative"
)

JUDGES = {
    "c": Judge(
        said_by_gcc,
        ("gcc",),
        ("c", "h"),
        ("", "int f(", "int a[", "struct a {", "enum a {", "int f() {", "int f() { for (", "int f() { a_t b", "a_t *f(b_t c", "int f() { switch (a) { case 1: ", "int f() { if (a) ", "int f() { do ",
         "int f() { return a", "int f() { (int)", "int f() { a = b", "int f() { a->", "int f() { int a = {", "static const ", "char *a = "),
        "()[]{};*&,.=+-<>!'\"\n#",
    ),
    **{
        f"python-{version}": Judge(
            partial(said_by_python, version),
            (f"cpython:{version}",),
            ("py",),
            ("", "f'", "f'{", 'f"{a', 'f"{a:', 'f"""{', "f'''{a:", "rf'{", "fr'''{a:", "f'{f\"{", "f'{a:{", 'f"{a:{b:', "f'{a #\n", "f'{a!", "f'{a=", "f'{(lambda a:",
             "f'{a:x{b}", "type ", "type A[", "type[", "type A = ", "class A[", "class A[T](", "def f[", "def f[T: ", "def f[*T", "async def f[T](", "type: ",
             "if a:\n  type ", "def f(", "match a:\n  case ", "@type\n", "with a as ", "try: a\nexcept ", "lambda ", "[a for ", "import ", "from a import (", "del "),
            "'\"{}()[]:=;,.\\\n#*!@",
        )
        for version in ("3.12", "3.13")
    },
    "javascript": Judge(
        said_by_node,
        ("node",),
        ("js", "mjs"),
        ("", "`a${", "/a", "class A {", "async function f(){", "x = {", "for(", "for(;;){", "switch(a){case 1:", "a=>", "a\n", "let {",
         "if(a)", "class A extends B{constructor(){super(", "export ", "import ", "a.b", "[a", "({a", "for([a",
         "a: for(;;){ continue a", "async function f(){ function g(a", "async function f(){ class A{ a=",
         "function*f(){", "function*f(){ yield", "class A{*", "async function*f(){", "async function*f(){ yield", "x={async *a(){", "await ", "`${await ", "if(a)await ",
         "for await(", "export default ", "export {a ", "import a,", "function f(){ arguments", "function f(){ return `${arguments", "function f(){ new.target",
         "class A{ a(){ super.", "x={ a(){ super[", "class A{ a(){ `${super", "class A{ async a(){ await super.a", "class A extends B{constructor(){ a;super(", "class A{ static{", "class A{ static{ for(;;){",
         "class A{ a=", "class A{ a=super.", "class A{ a=()=>{ super.", "class A{ a(){ b=>super.", "class A{ a(){ function f(a=", "a=>function(){}", "a=>class{}", "/[\\w-", "/a{", "/[0-9-", "class A{ static{ function f(){", "/(?<a>", "/(?<a>b)", "/\\p{", "/[\\p{L}", "/[a-", "/[\\u1234-", "/[A-z", "async", "async(", "async.", "let async", "for(async", "import async", "eval("),
        "'\"{}()[]:=;,.`/\n+",
        r"has already been declared|Duplicate (export|parameter|__proto__|capture group name)|Export '.*' is not defined|must be declared in an "
        r"enclosing|A class may only have one constructor|Undefined label|Label '.*' has already|does not denote an iteration",
    ),
    "typescript": Judge(
        said_by_typescript,
        ("node", "node:typescript"),
        ("ts", "mts", "cts"),
        ("", "let a: ", "type A = ", "interface A {", "class A<T> {", "function f<T>(a: ", "f<A", "(a): ", "a ? (b) : ", "enum A {", "declare ", "export ",
         "import ", "a as ", "abstract class A {", "type A = {", "type A<T> = T extends ", "a < b", "let a: (", "type A = `a${", "class A { private ",
         "namespace A {", "new A<", "type A = [", "x = <T", "a!", "const a = { f(a", "class A extends B<C> { constructor(", "type A = typeof ", "import a",
         "export type {", "await ", "async function*f<T>(", "async<", "async(", "class A { static {", "class A { a() { super.", "/(?<a>", "let async", "export default function a("),
        "<>'\"{}()[]:=;,.`/\n+|&?!",
    ),
    "html": Judge(
        said_by_html5lib,
        ("python:html5lib",),
        ("html", "htm"),
        ("", "<p>", "<div class=", "<ul><li>", "<table>", "<a href=", "<form>", "<button>", "<script>", "<style>", "<!DOCTYPE html><html>",
         "<!doctype html><html><head>", "<!DOCTYPE html><html><body>", "<select>", "<svg>", "<p>&", "<h1>", "<dl>", "<textarea>", "<a><div>",
         "<table><tr><td>", "<pre>", "<video>", "<!-- "),
        "<>/ =\"'&;",
    ),
    "markdown": Judge(
        said_by_parser,
        ("python:markdown_it",),
        ("md",),
        ("", "# ", "- a\n", "1. a\n", "> a\n", "```py\n", "```json\n", "````\n", "a\n", "- a\n  - b\n", "- a\n  ```\n", "a `", "[a", "**a", "*a", "| a |\n|", "<p>\n", "~~~\n",
         "- a\n\n", "1. a\n   - b\n", "1) a\n", "2) a\n   - b\n", "a * ", "---\n", "***\n", "![a", "a\n\n", "<!-- a"),
        "\n\n`#-*>[]()!<_~ 1.",
    ),
    "shell": Judge(
        said_by_shells,
        ("bash", "dash"),
        ("sh",),
        ("", "a ", "if a; then b", "case $x in ", "case $x in a) b ;; ", "for x in a; do ", "while a; do b; ", "f() {\n", "( ", "x=$(", 'x="$(',
         "cat <<EOF\n", "cat <<'END' | b\n", "x=$(cat <<-EOF\n", "x=$((", "x=${y", '"${y%', '"${y:-', "${y#", "${y=", "echo `", "a 2>", "{ a; }", "until a\ndo b\ndone", 'echo "$'),
        "'\"{}()$;&|<>\n` #\\",
    ),
    "shell-bash": Judge(
        partial(said_by_shells, shells=("bash",)),
        ("bash",),
        ("sh", "bash"),
        ("", "a ", "[[ ", "[[ a ", "[[ -f a && ", "[[ ! ", "[[ (", "[[ a =~ ", "[[ a == ", "if [[ a ]]; then ", "a=(", "a+=(b ", "local a=(", "declare -A ", "a[1]=", "echo $'", "cat <(", "a >(b) ",
         "while a; do b; done < <(", "cat <<<", "cat <<< ", "function f", "function f() {\n", "function f {\n", "((", "((a", "((a++", "echo ${a", "echo ${a[", "echo \"${a[@]", "echo ${!", "echo ${a/", "a &>",
         "case $x in ", "for x in ", 'x="${a', "[[ $a < "),
        "'\"{}()[]$;&|<>\n` #\\=",
    ),
    **{
        name: Judge(
            said,
            (needs,),
            ("v",),
            ("", "module m;", "module m(", "module m(`ifdef A\n", "module m #(parameter A=1)(input a, ", "module m; wire ", "module m; reg ", "module m; trireg ",
             "module m; event ", "module m; assign a = ", "module m; assign (", "module m; assign a = 8'", "module m; assign a = {", "module m; assign a = b[",
             "module m; assign a = ~", "module m; assign a = b ? ", "module m; x #(", "module m; x u(", "module m; x u(`ifdef A\n", "module m; and ",
             "module m; pullup ", "module m; defparam ", "module m; generate ", "module m; for (i = 0; i < 2; i = i + 1) ", "module m; if (a) ", "module m; case (a) ",
             "module m; function ", "module m; task ", "module m; always @", "module m; initial begin ", "module m; initial case (a) ", "module m; initial a <= ",
             "module m; initial $display(", "module m; initial @(", "module m; initial #", "module m; initial for (", "module m; initial fork ",
             "module m; initial begin : a ", "module m; initial \\a ", 'module m; initial a = "', "module m; initial `ifdef A\n", "module m; `",
             "module m; specify ", "module m; specify (a => ", "module m; specify $setup(", "module m; specify $setuphold(posedge a, b, 1, 2", "module m; specify $width(", "module m; specify if (", "primitive p(",
             "primitive p(o, a); output o; input a; table ", "primitive p(o, a); output o; reg o; input a; table ", "primitive p(o, a, b); output o; reg o; input a, b; table 0 ",
             "(* ", "`", "`define A ", "`timescale ", "`include ", "`timescale 1ns/1ps\n",
             "module m; (* a *) ", "module m; initial begin (* a *) ", "module m; always @(a) (* a *) ", "module m; initial if (a) (* a *) ", "module m; task t(input a, ", "module m; task t; reg ",
             "module m; function f; input a; ", "module m; initial begin : a reg ", "module m; initial a = #", "module m; initial a = @", "module m; wire #", "module m; x #", "module m; and #", "module m; nmos ",
             "module m; specify $setuphold(a, b, 1, 2, c, ", "module m; specify ifnone (", "module m; specify specparam ", "module m(.a(", "module m(a[", "module m; assign a = $b(", "module m; initial a = b <",
             "`ifdef ", "`undef ", "module m; assign (strong0, pull1) #"),
            "()[]{}#@*;:,.='`\n+-&|~^<>?\"",
            # Generate loops count with one name; a text's own macros can stand for anything (without them, it is read).
            r"ExpectedGenvarIterVar|its own macros",
        )
        for name, said, needs in (("verilog", said_by_slang, "python:pyslang"), ("verilog:icarus", said_by_icarus, "iverilog"))
    },
}  # fmt: skip


def walk(grammar: mw.CompiledGrammar, judge: Judge, rng: random.Random, steps: int = 50) -> str:
    """A random text, byte by byte, with the shortest end."""
    matcher = grammar.matcher()
    mask = mw.allocate_token_bitmask(1, grammar.vocabulary.vocab_size)
    text = rng.choice(judge.beginnings).encode()
    assert not text or matcher.accept_bytes(text)
    for _ in range(rng.randrange(1, steps)):
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[:256]
        allowed = [i for i in np.flatnonzero(bits).tolist() if i in (9, 10) or 32 <= i < 127]
        marks = [i for i in allowed if chr(i) in judge.marks]
        if not allowed:
            break
        text += bytes([rng.choice(marks if marks and rng.random() < 0.4 else allowed)])
        assert matcher.accept_bytes(text[-1:])
    return (text + matcher.shortest_completion_bytes()).decode()


def accepts(grammar: mw.CompiledGrammar, text: str) -> bool:
    matcher = grammar.matcher()
    return (not text or matcher.accept_bytes(text.encode())) and matcher.is_accepting


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=JUDGES)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--files", type=int, help="so many, chosen at random (default: all)")
    parser.add_argument("--walks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--refused", action="store_true", help="list files that the grammar refuses")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    judge = JUDGES[args.name]
    grammar = compile_for_bytes(shipped_grammar(*args.name.partition(":")[0].split("-")), LIMITS)[1]
    paths = sorted(
        path
        for folder in args.folders
        for kind in judge.suffixes
        for path in folder.rglob(f"*.{kind}")
        if path.is_file()
    )
    rng.shuffle(paths)
    paths = paths[: args.files]
    texts = [path.read_text("utf-8", "ignore") for path in paths]
    read = [
        (path, text) for path, text, said in zip(paths, texts, judge.said(texts), strict=True) if not said
    ]
    refused = [path for path, text in read if not accepts(grammar, text)]
    walks = [walk(grammar, judge, rng) for _ in range(args.walks)]
    wrong = judge.wrong(walks)
    for text, said in wrong:
        print(f"{said}: {text!r}")
    if args.refused:
        print("".join(f"refused: {path}\n" for path in refused), end="")
    print(
        f"{len(read) - len(refused)} of {len(read)} files accepted, {len(texts) - len(read)} are refused by the reader; "
        f"{len(walks) - len(wrong)} of {len(walks)} random texts are {args.name}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
