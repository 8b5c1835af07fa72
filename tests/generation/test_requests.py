"""Requests one by one: those that are none, those that are left, and what is kept from one to the next."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

torch = pytest.importorskip("torch", reason="the generator runs transformers models")
transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")
pytest.importorskip("pydantic", reason="Python types are read through pydantic")

from test_generation import llama  # noqa: E402

import maskwright as mw  # noqa: E402
from maskwright.generation.jobs import step_of  # noqa: E402

MODEL = llama


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


def test_what_is_left_of_a_call_ends_with_its_first_error(model, tokenizer):
    """By a stop text that only some outputs meet where they are not complete."""
    gen = mw.Generator(model, tokenizer)
    source = mw.Regex("a[^;]{60}|b;c[a-z]{9}")
    options = {"stop": ";", "temperature": 1.0, "n": 6}
    seed = next(seed for seed in range(50) if len({text[0] for text in seen(gen, source, seed)}) == 2)

    async def run():
        with pytest.raises(mw.MaskwrightError, match="stop text"):
            await gen.acall("x", source, seed=seed, **options)
        return asyncio.all_tasks() - {asyncio.current_task()}

    counted = gen.metrics.rates().outputs
    assert asyncio.run(run()) == set()
    for _ in range(200):
        if gen._background._thread is None:
            break
        time.sleep(0.01)
    assert gen._background._thread is None and gen.metrics.rates().outputs - counted < 6


def seen(gen, source, seed):
    """The outputs without a stop text."""
    return gen("x", source, seed=seed, temperature=1.0, n=6)


def test_a_step_is_what_was_written_when_it_was_told(model, tokenizer, monkeypatch):
    """The event loop is told between two passes, and looks when the row has gone on."""
    gen = mw.Generator(model, tokenizer)
    looked = []

    def noting(row):
        looked.append(threading.current_thread().name)
        return step_of(row)

    monkeypatch.setattr("maskwright.generation.background.step_of", noting)

    async def read():
        return [part async for part in gen.astream("x", SHORT)]

    parts = asyncio.run(read())
    assert parts[-1] == gen("x", SHORT) and set(looked) == {"maskwright-generation"}


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
