"""Requests one by one: those that are none, those that are left, and what is kept from one to the next."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the generator runs transformers models")
transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")
pytest.importorskip("pydantic", reason="Python types are read through pydantic")

from test_generation import llama  # noqa: E402
from tiny_model import TINY  # noqa: E402

import maskwright as mw  # noqa: E402


@pytest.fixture(scope="module")
def tokenizer():
    return transformers.AutoTokenizer.from_pretrained(TINY)


@pytest.fixture(scope="module")
def model(tokenizer):
    return llama(tokenizer)


def test_what_is_no_request_is_an_error_of_its_own(model, tokenizer):
    none = [None, 5, "abc", ("a",), ("a", bool, None), ("a", bool, 5), {"prompt": "a"}]
    found = dict(mw.Generator(model, tokenizer).as_completed([*none, ("a", bool, {})]))
    assert len(found) == len(none) + 1
    for place in range(len(none)):
        assert isinstance(found[place], mw.MaskwrightError), none[place]
        assert "a prompt, an output type and a dict of options" in str(found[place])
    assert isinstance(found[len(none)][0].value, bool)
    ((_, odd),) = mw.Generator(model, tokenizer).as_completed([("a", bool, {5: 1})])
    assert isinstance(odd, mw.MaskwrightError)
