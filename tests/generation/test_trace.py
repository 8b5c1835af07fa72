"""Traces of outputs in tokens that mark the starts of words."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the generator runs transformers models")
transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")

from test_generation import llama, marked_tokenizer  # noqa: E402

import maskwright as mw  # noqa: E402


@pytest.mark.parametrize("seed", range(3))
def test_a_trace_reads_what_its_tokens_spell_where_they_stand(seed):
    """A mark is a space, but not at the start of a text: what was read, and what is expected then, knows the difference."""
    tokenizer = marked_tokenizer()
    gen = mw.Generator(llama(tokenizer, seed=seed), tokenizer)
    trace = gen.trace("x", mw.Regex("yes (yes|no) name(yes|no)"), temperature=3.0, seed=seed)
    first, second, *_ = trace.tokens
    assert first.forced and first.expected == "expected 'y'" and second.expected == "expected ' '"
    assert trace.tokens[-1].expected == "the end of the text was expected"
