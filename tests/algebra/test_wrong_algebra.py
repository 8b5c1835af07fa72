"""Wrong variants of expressions over sources, which the texts of ``test_algebra`` tell from the right ones."""

from __future__ import annotations

import itertools

import pytest
from test_algebra import CASES, accepts

import maskwright as mw
import maskwright.algebra.found as found_lexemes
import maskwright.algebra.product as lexed
from maskwright.algebra.automaton import States
from maskwright.errors import UnsatisfiableError


def differs(name: str) -> bool:
    """Whether some text of a case is accepted wrongly."""
    for case in CASES[name]:
        try:
            compiled = mw.compile(
                case.source,
                mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b"", b"?"], eos_ids=[256]),
            )
        except UnsatisfiableError:
            continue
        for n in range(case.most + 1):
            for parts in itertools.product(case.alphabet, repeat=n):
                if accepts(compiled, "".join(parts)) != case.oracle("".join(parts)):
                    return True
    return False


def test_terminals_that_lead_to_no_text_must_compete(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differs("keyword counted")
    monkeypatch.setattr(lexed._LexedProduct, "whole_texts", lexed._Product.whole_texts)
    assert differs("keyword counted") or differs("context")


def test_the_automaton_must_be_complete_where_terminals_compete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(States, "_complete", lambda self: None)
    assert differs("context") or differs("keyword counted") or differs("keyword")


def test_ignored_text_moves_the_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexed, "explicit", lambda grammar: grammar)
    assert differs("keyword") or differs("comments")


@pytest.mark.slow
def test_a_phrase_in_two_lexemes_is_not_counted_by_lexemes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differs("phrases of terminals")
    monkeypatch.setattr(found_lexemes.Phrases, "check_apart", lambda self, leaves, grammar: None)
    assert differs("phrases of terminals")


def test_each_phrase_may_stand_in_another_member(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differs("undeclared members")
    monkeypatch.setattr(found_lexemes, "_subsets", lambda bits: iter([bits]))
    assert differs("undeclared members")


def test_phrases_of_earlier_lexemes_stay_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        found_lexemes.FoundStates,
        "_after",
        lambda self, state, now: self.required + 1 if max(state, now) > self.required else now,
    )
    assert differs("phrases that no two terminals share")


def test_a_triple_ends_in_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        lexed._Product,
        "whole_texts",
        lambda self, start: [lexed.Ref(self.rule(start, 0, end)) for end in self.ends[start, 0]],
    )
    assert differs("nested")
