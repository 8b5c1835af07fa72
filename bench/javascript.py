"""The shipped JavaScript grammar and Node.js: files that it must accept, and random texts that Node.js must accept.

    python bench/javascript.py FOLDER [--files N] [--walks N] [--seed N]

Files below FOLDER that Node.js cannot read as a module are counted apart.  What no context-free grammar says (names declared
twice, private or exported names that are not declared) is no error of a random text.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import maskwright as mw
from maskwright.check.grammars import compile_for_bytes
from maskwright.compiling.shipped import shipped_grammar

LIMITS = mw.Limits(max_seconds=600.0, max_lexer_states=10_000_000, max_parser_states=100_000_000)
# A module is parsed, early errors included, when it is made; it is not run.
READER = """
const vm = require('vm');
require('readline').createInterface({input: process.stdin}).on('line', line => {
  let said = '';
  try { new vm.SourceTextModule(JSON.parse(line)); } catch (error) { said = error.message; }
  console.log(JSON.stringify(said));
});
"""
NO_GRAMMAR = re.compile(
    r"has already been declared|Duplicate (export|parameter|__proto__)|Export '.*' is not defined|must be declared in an enclosing|"
    r"A class may only have one constructor"
)
BEGINNINGS = (
    b"", b"`a${", b"/a", b"class A {", b"async function f(){", b"x = {", b"for(", b"for(;;){", b"switch(a){case 1:", b"a=>", b"a\n",
    b"let {", b"if(a)", b"class A extends B{constructor(){super(", b"export ", b"import ", b"a.b",
)  # fmt: skip


def said_by_node(texts: list[str]) -> list[str]:
    """By text, the error of Node.js, or nothing."""
    command = ["node", "--no-warnings", "--experimental-vm-modules", "-e", READER]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [str(json.loads(line)) for line in done.stdout.splitlines()]


def walk(grammar: mw.CompiledGrammar, rng: random.Random, steps: int = 50) -> str:
    """A random text, byte by byte; characters that open, close and separate come more often."""
    matcher = grammar.matcher()
    out = bytearray(rng.choice(BEGINNINGS))
    assert not out or matcher.accept_bytes(bytes(out))
    for _ in range(rng.randrange(1, steps)):
        allowed = [i for i in (10, *range(32, 127)) if matcher.fork().accept_bytes(bytes([i]))]
        marks = [i for i in allowed if chr(i) in "'\"{}()[]:=;,.`/\n+"]
        if not allowed:
            break
        byte = rng.choice(marks if marks and rng.random() < 0.4 else allowed)
        assert matcher.accept_bytes(bytes([byte]))
        out.append(byte)
    return (bytes(out) + matcher.shortest_completion_bytes()).decode()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, help="so many, chosen at random (default: all)")
    parser.add_argument("--walks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    grammar = compile_for_bytes(shipped_grammar("javascript"), LIMITS)[1]
    paths = sorted(
        path for kind in ("js", "mjs") for path in args.folder.rglob(f"*.{kind}") if path.is_file()
    )
    rng.shuffle(paths)
    texts = [path.read_text("utf-8", "ignore") for path in paths[: args.files]]
    read = [text for text, said in zip(texts, said_by_node(texts), strict=True) if not said]
    accepted = 0
    for text in read:
        matcher = grammar.matcher()
        accepted += matcher.accept_bytes(text.encode()) and matcher.is_accepting
    walks = [walk(grammar, rng) for _ in range(args.walks)]
    wrong = [
        (text, said)
        for text, said in zip(walks, said_by_node(walks), strict=True)
        if said and not NO_GRAMMAR.search(said)
    ]
    for text, said in wrong:
        print(f"{said}: {text!r}")
    print(
        f"{accepted} of {len(read)} files accepted, {len(texts) - len(read)} are no modules; {len(walks) - len(wrong)} of "
        f"{len(walks)} random texts are JavaScript"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
