"""Beam search of a generator: its own settings, not those that a model brings along, and an end when nobody waits."""

from __future__ import annotations

import asyncio
import copy
import functools
import threading

import pytest

torch = pytest.importorskip("torch", reason="the generator runs transformers models")
transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")

from test_generation import llama, other_models  # noqa: E402

import maskwright as mw  # noqa: E402

MODEL = llama

LETTERS = mw.Regex("[ab]{6,12}")


@pytest.mark.parametrize(
    "settings",
    [
        {"no_repeat_ngram_size": 2},
        {"suppress_tokens": [1065]},
        {"begin_suppress_tokens": [1065]},
        {"repetition_penalty": 3.0},
        {"max_time": 1e-9},
        {"num_return_sequences": 5, "num_beams": 5},
        {"return_dict_in_generate": True, "output_scores": True},
        {"stop_strings": ["a", "b"]},
        {"length_penalty": -5.0, "early_stopping": True},
        {"min_new_tokens": 11},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_of_the_model_are_for_its_own_generate(settings, tokenizer):
    model = llama(tokenizer)
    gen = mw.Generator(model, tokenizer)
    options = {"num_beams": 3, "n": 2, "max_new_tokens": 30}
    expected = gen("x", LETTERS, **options)
    model.generation_config.update(**settings)
    before = copy.deepcopy(model.generation_config)
    assert gen("x", LETTERS, **options) == expected
    assert model.generation_config == before


def test_settings_of_an_encoder_decoder(tokenizer):
    torch.manual_seed(3)
    model = other_models(tokenizer)["t5"].eval()
    gen = mw.Generator(model, tokenizer)
    expected = gen("x", LETTERS, num_beams=3, max_new_tokens=30)
    model.generation_config.update(forced_bos_token_id=5, no_repeat_ngram_size=1)
    assert gen("x", LETTERS, num_beams=3, max_new_tokens=30) == expected
    model.generation_config.decoder_start_token_id = model.config.decoder_start_token_id = None
    with pytest.raises(mw.MaskwrightError, match="decoder_start_token_id"):
        gen("x", LETTERS, num_beams=3, max_new_tokens=30)


@pytest.mark.parametrize("options", [{"num_beams": 2}, {"particles": 3}])
def test_a_search_ends_when_its_caller_leaves(options, tokenizer):
    model = llama(tokenizer)
    gen = mw.Generator(model, tokenizer)
    expected = gen("y", bool)
    forward, passes, go_on = model.forward, [], threading.Event()

    @functools.wraps(forward)
    def gated(*arguments, **given):
        passes.append(1)
        if len(passes) > 3:
            assert go_on.wait(20)
        return forward(*arguments, **given)

    model.forward = gated

    async def leave():
        call = asyncio.create_task(gen.acall("x", mw.Regex("[a-z]{150}"), **options))
        while len(passes) <= 3:
            await asyncio.sleep(0.005)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        go_on.set()
        return await gen.acall("y", bool)

    counted = gen.metrics.rates().outputs
    assert asyncio.run(leave()) == expected
    assert len(passes) < 20 and gen.metrics.rates().outputs == counted + 1


def test_others_use_the_model_while_beams_are_searched(tokenizer):
    model = llama(tokenizer)
    gen = mw.Generator(model, tokenizer)
    forward, begun, others = model.forward, threading.Event(), []

    @functools.wraps(forward)
    def told(*arguments, **given):
        begun.set()
        return forward(*arguments, **given)

    model.forward = told
    search = threading.Thread(target=lambda: gen("x", mw.Regex("[a-z]{100}"), num_beams=3))
    search.start()
    assert begun.wait(20)
    while search.is_alive() and len(others) < 3:
        others.append(gen("y", bool))
    still_searching = search.is_alive()
    search.join()
    assert len(others) == 3 and still_searching
