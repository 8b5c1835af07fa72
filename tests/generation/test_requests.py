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


LONG = "A long prompt, longer than what is too short to be worth keeping, word for word the same: "
SHORT = mw.Regex("[a-z]{12}")


def changed_by_a_step(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=3.0)
    model(input_ids=torch.arange(40)[None], labels=torch.arange(40)[None]).loss.backward()
    optimizer.step()


def loaded(model):
    model.load_state_dict({name: -each for name, each in model.state_dict().items()})


def written_through_data(model):
    for parameter in model.parameters():
        parameter.data.neg_()


@pytest.mark.parametrize(
    ("change", "is_noticed"),
    [(changed_by_a_step, True), (loaded, True), (torch.nn.Module.float, True), (written_through_data, False)],
)
def test_prompts_are_read_anew_when_the_model_has_changed(change, is_noticed, tokenizer):
    model = llama(tokenizer)
    gen = mw.Generator(model, tokenizer)
    before = gen.generate([LONG + "x"], SHORT, logprobs=True)[0]
    change(model)
    if not is_noticed:
        gen.forget()
    found = gen.generate([LONG + "x"], SHORT, logprobs=True)[0]
    fresh = mw.Generator(model, tokenizer).generate([LONG + "x"], SHORT, logprobs=True)[0]
    assert found.token_ids == fresh.token_ids and found.logprobs == pytest.approx(fresh.logprobs, abs=1e-5)
    assert found.logprobs != before.logprobs
