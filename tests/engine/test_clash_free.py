"""Behind a lexer that is not safe, a look tells of most threads that they can be completed; that it tells the truth is judged in ``test_lexing``."""

from __future__ import annotations

import pytest
import schema_walks

import maskwright as mw

# At its beginning, most looks tell nothing; of most of the rest they do.
COUNTER = """module counter #(parameter WIDTH = 8) (
  input wire clk,
  output reg [WIDTH-1:0] q
);
  always @(posedge clk or negedge rst_n)
    if (!rst_n) q <= {WIDTH{1'b0}};
    else q <= q + 1'b1;
endmodule
"""
VOCABULARY = schema_walks.vocabulary()
BYTE_IDS = {token: i for i, token in reversed(list(enumerate(VOCABULARY.tokens))) if len(token) == 1}


@pytest.mark.parametrize(
    ("name", "text", "most"),
    [
        ("javascript", "let a = b;\nif (a) { f(`${a}`, [1]); }\n", 128),
        ("verilog", COUNTER, 512),
        ("markdown", "# a\n\nb *c* `d`\n", 16),
    ],
)
def test_few_threads_are_searched(name: str, text: str, most: int) -> None:
    """By searches alone, a mask along these texts looks at 256, 2048 and 64 threads or nearly so."""
    limits = mw.Limits(max_seconds=100, max_search=most)
    matcher = mw.compile(mw.shipped_grammar(name), VOCABULARY, limits=limits).matcher()
    row = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)
    for byte in text.encode():
        matcher.fill_next_token_bitmask(row)
        assert matcher.accept_token(BYTE_IDS[bytes([byte])])


def test_what_ended_already_is_no_way_to_end() -> None:
    """Behind "aab" the ignored text that has begun would have to end behind a later b, and that makes it longer and longer."""
    source = mw.Lark("start: A B\nA: /a{2,40}/\nB: /a*b/\nI: /b.*b/\n%ignore I")
    matcher = mw.compile(source, VOCABULARY).matcher()
    assert matcher.accept_bytes(b"aab")
    assert matcher.is_accepting
    assert not matcher.accept_bytes(b"b")


def test_a_gap_stands_before_some_terminals_only() -> None:
    """Behind a NAME, "a" needs a blank before it, and a blank with an "a" is a Y, which takes all that comes: a NAME is a dead end."""
    source = mw.Lark('start: "b" | NAME ("a" | Y "a")\nNAME: /a+/\nY: / +a[ab ]*/\n%ignore / +/')
    matcher = mw.compile(source, VOCABULARY).matcher()
    row = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)
    matcher.fill_next_token_bitmask(row)
    allowed = {
        token for i, token in enumerate(VOCABULARY.tokens) if token and row.ravel()[i // 32] >> (i % 32) & 1
    }
    assert b"b" in allowed and not any(token.lstrip(b" ").startswith(b"a") for token in allowed)


def test_a_dead_end_of_ignored_text_is_one_for_what_is_waited_for() -> None:
    """Behind ")" comes "=>", and none behind a line end, in any nesting; behind a NAME, ";" may come there."""
    source = mw.Lark(
        'start: "(" start ")" ("=>" | "-") | "[" start "]" "=>" | NAME ";"\nNAME: /[a-z]+/\n%ignore / *\\n[ \\n]*(?!=>)/'
    )
    grammar = mw.compile(source, VOCABULARY)
    row = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)

    def allows(before: str, byte: bytes) -> bool:
        matcher = grammar.matcher()
        assert matcher.accept_bytes(before.encode())
        matcher.fill_next_token_bitmask(row)
        token = BYTE_IDS[byte]
        assert bool(row.ravel()[token // 32] >> (token % 32) & 1) == matcher.fork().accept_token(token)
        return bool(row.ravel()[token // 32] >> (token % 32) & 1)

    for depth in range(6):
        for opening, closing, ends in (("[", "]", False), ("(", ")", True)):
            before = opening * depth + opening + "a;" + closing
            assert allows(before, b"\n") == ends
            assert allows(before, b" ") == ends
            assert allows(before, b"=") and allows(before + "=", b">")
        assert allows("[" * depth + "a", b"\n") and allows("(" * depth + "a\n", b";")
