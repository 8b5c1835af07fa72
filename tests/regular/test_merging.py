"""Lexers with fewer states accept what they accepted, with the same tags."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from nfa_simulation import nfa_tags

from maskwright.limits import Limits
from maskwright.regex import parse_regex
from maskwright.regular.automata import build_lexer
from maskwright.regular.expressions import Regular
from maskwright.regular.merging import merge_states
from maskwright.regular.refusals import Refusal

ALPHABET = "ab1"


def language(pattern: str) -> Regular:
    return parse_regex(pattern)


PATTERNS = st.recursive(
    st.sampled_from(["a", "b", "1", "[ab]", "[a-z0-9]", "ab"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        inner.map(lambda one: f"({one})*"),
        inner.map(lambda one: f"({one}){{2,9}}"),
    ),
    max_leaves=6,
)


@given(
    st.lists(PATTERNS, min_size=1, max_size=3), PATTERNS, st.lists(st.text(ALPHABET, max_size=6), max_size=20)
)
def test_languages_stay(patterns: list[str], refused: str, texts: list[str]) -> None:
    nfa, starts = build_lexer(
        [language(one) for one in patterns], [Refusal(0, language(refused))], None, Limits()
    )
    merged, new = merge_states(nfa, starts, len(patterns))
    assert merged.n_states <= nfa.n_states and len(new) == len(starts)
    for text in texts:
        for before, behind in zip(starts, new, strict=True):
            assert nfa_tags(nfa, text, before) == nfa_tags(merged, text, behind)


def test_the_first_letter_of_a_name_leads_where_the_others_do() -> None:
    nfa, starts = build_lexer([language("[a-z][a-z0-9]*"), language("a1b1|b1")], [], None, Limits())
    merged, _ = merge_states(nfa, starts, 2)
    assert merged.n_states < nfa.n_states


def test_matches_of_no_terminal_stay_apart() -> None:
    nfa, starts = build_lexer(
        [language("a"), language("b")],
        [Refusal(0, language("ax")), Refusal(1, language("bx"))],
        None,
        Limits(),
    )
    merged, _ = merge_states(nfa, starts, 2)
    assert sum(tag == 2 for _, tag in merged.accepts) == 2
