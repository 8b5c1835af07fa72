"""The loop behind ``Generator``: guesses, forced text, shared passes and joined rows change nothing that is written."""

from __future__ import annotations

import asyncio
import functools
import json
import threading

import jsonschema
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the generator runs transformers models")
transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")
pytest.importorskip("pydantic", reason="Python types are read through pydantic")

from devices import DEVICE  # noqa: E402

import maskwright as mw  # noqa: E402
from maskwright.generation import drafts, key_values  # noqa: E402
from maskwright.generation.chooser import Chooser  # noqa: E402
from maskwright.generation.options import GenerationOptions  # noqa: E402

PEOPLE = {
    "type": "array",
    "minItems": 2,
    "maxItems": 4,
    "items": {
        "type": "object",
        "properties": {
            "first_name": {"type": "string", "maxLength": 12},
            "years_of_service": {"type": "integer", "minimum": 0, "maximum": 99},
            "department": {"enum": ["engineering", "operations"]},
        },
        "required": ["first_name", "years_of_service", "department"],
        "additionalProperties": False,
    },
}
PROMPTS = ["Two people.", "x", "A much longer request about three people of the operations department", "y z"]


def llama(tokenizer, seed=0, **options):
    """A random model in double precision, so that no order of sums decides between tokens."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), eos_token_id=2, initializer_range=0.3, **sizes, **options
    )
    return transformers.LlamaForCausalLM(config).double().to(DEVICE).eval()


MODEL = llama


def generator(model, tokenizer, **options):
    return mw.Generator(model, tokenizer, **options)


def without_guesses(monkeypatch):
    monkeypatch.setattr(drafts.Drafter, "draft", lambda self, matcher, last, most: [])


GREEDY = {"max_new_tokens": 150}
DRAWN = {"max_new_tokens": 150, "temperature": 1.0, "seed": 5}
SHARP = {"max_new_tokens": 150, "temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.02, "seed": 1}
PENALTY = {"max_new_tokens": 150, "repetition_penalty": 1.3}


@pytest.mark.slow
@pytest.mark.parametrize("options", [GREEDY, DRAWN, SHARP, PENALTY])
def test_guesses_change_nothing(options, model, tokenizer, monkeypatch):
    written = [
        generator(model, tokenizer).generate([p], PEOPLE, logprobs=True, **options)[0] for p in PROMPTS
    ]
    guessed = [each.usage.model_calls for each in written]
    without_guesses(monkeypatch)
    for prompt, with_guesses in zip(PROMPTS, written, strict=True):
        plain = generator(model, tokenizer).generate([prompt], PEOPLE, logprobs=True, **options)[0]
        assert plain.token_ids == with_guesses.token_ids
        assert plain.finish_reason == with_guesses.finish_reason
        assert np.allclose(plain.logprobs, with_guesses.logprobs, atol=1e-4)
        assert np.allclose(plain.removed_mass.steps, with_guesses.removed_mass.steps, atol=1e-4)
        jsonschema.validate(plain.value, PEOPLE)
        guessed.append(-plain.usage.model_calls)
    assert sum(guessed) < 0, "guesses save passes"


@pytest.mark.slow
@pytest.mark.parametrize("options", [GREEDY, DRAWN])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 8])
def test_rows_that_share_passes_write_what_they_write_alone(options, batch_size, model, tokenizer):
    together = generator(model, tokenizer, batch_size=batch_size).generate(PROMPTS, PEOPLE, **options)
    for index, prompt in enumerate(PROMPTS):
        if "seed" in options:
            # The seed of an output goes with its place.
            alone = generator(model, tokenizer).generate([*["x"] * index, prompt], PEOPLE, **options)[index]
        else:
            alone = generator(model, tokenizer).generate([prompt], PEOPLE, **options)[0]
        assert together[index].token_ids == alone.token_ids
        assert np.allclose(together[index].removed_mass.steps, alone.removed_mass.steps, atol=1e-4)


def naive(model, generation, prompt_ids, grammar):
    """(log-probabilities, removed mass) of an output, by one pass over all of it and one mask at a time."""
    ids = torch.tensor([[*prompt_ids, *generation.token_ids]], device=model.device)
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0].float().cpu()
    chances = torch.log_softmax(logits[len(prompt_ids) - 1 :], dim=-1)
    matcher = grammar.matcher()
    logprobs, removed = [], []
    for place, token in enumerate(generation.token_ids):
        mask = mw.allocate_token_bitmask(1, chances.shape[1])
        matcher.fill_next_token_bitmask(mask)
        allowed = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: chances.shape[1]].astype(bool)
        assert allowed[token] and matcher.accept_token(token)
        logprobs.append(float(chances[place, token]))
        removed.append(1 - float(chances[place].exp()[torch.from_numpy(allowed)].sum()))
    assert matcher.is_accepting
    return logprobs, removed


@pytest.mark.parametrize("options", [GREEDY, DRAWN, {"max_new_tokens": 64}])
def test_probabilities_are_the_models_own(options, model, tokenizer):
    gen = generator(model, tokenizer)
    for prompt, result in zip(PROMPTS, gen.generate(PROMPTS, PEOPLE, logprobs=3, **options), strict=True):
        ids = tokenizer(prompt)["input_ids"]
        logprobs, removed = naive(model, result, ids, gen.compile(PEOPLE))
        assert np.allclose(result.logprobs, logprobs, atol=1e-4)
        assert np.allclose(result.removed_mass.steps, removed, atol=1e-4)
        assert result.removed_mass.total == pytest.approx(1 - np.prod(1 - np.array(removed)), abs=1e-4)
        for token, logprob, top in zip(result.token_ids, result.logprobs, result.top_logprobs, strict=True):
            assert len(top) == 3 and min(top.values()) <= 0
            assert top.get(token, logprob) == pytest.approx(logprob, abs=1e-5)
        assert result.usage.generated_tokens == len(result.token_ids)
        assert result.usage.prompt_tokens == len(ids)


def test_forced_text_is_in_the_tokenizers_own_tokens(model, tokenizer):
    schema = mw.JsonSchema(
        {"type": "object", "properties": {"the_first": {"const": "engineering"}, "b": {"type": "boolean"}},
         "required": ["the_first", "b"], "additionalProperties": False},
        whitespace="compact",
    )  # fmt: skip
    result = generator(model, tokenizer).generate(["x"], schema)[0]
    forced = '{"the_first":"engineering","b":'
    assert result.text.startswith(forced)
    own = tokenizer.encode(result.text, add_special_tokens=False)
    # Up to where the model decides how the text goes on.
    assert result.token_ids[: len(own) - 3] == own[: len(own) - 3]
    assert result.usage.forced_tokens >= len(own) - 4
    assert result.usage.model_calls <= 3


def marked_tokenizer():
    """A tokenizer that puts a mark in front of words, the first one of a text included, as SentencePiece does."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = [
        "▁",
        '▁{"',
        "▁yes",
        "yes",
        "▁no",
        '":',
        '"',
        "{",
        "}",
        "▁",
        "true",
        "▁true",
        "false",
        "name",
        "na",
        "me",
    ]
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
    pieces += [(word, -float(1 + len(word) % 3)) for word in dict.fromkeys(words)]
    pieces += [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    made = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", unk_token="<unk>")


@pytest.mark.parametrize("seed", range(4))
def test_marks_of_word_starts(seed):
    tokenizer = marked_tokenizer()
    gen = generator(llama(tokenizer, seed=seed), tokenizer)
    schema = mw.JsonSchema(
        {"type": "object", "properties": {"name": {"type": "boolean"}}, "required": ["name"]},
        whitespace="compact",
        additional_properties=False,
    )
    for source, texts in ((mw.Regex("yes|no"), ("yes", "no")), (schema, ('{"name":true}', '{"name":false}'))):
        for options in (
            {},
            {"temperature": 3.0, "seed": seed},
            {"num_beams": 2},
            {"particles": 3, "seed": seed},
        ):
            result = gen.generate(["x"], source, max_new_tokens=60, **options)[0]
            assert result.text in texts and tokenizer.decode(result.token_ids) == result.text
    written = gen.generate(["x"], mw.Regex('\\{"name":(true|false)\\}'), logprobs=True)[0]
    assert written.token_ids[:2] == tokenizer.encode('{"name":', add_special_tokens=False)[:2]


def test_a_constant_takes_no_pass(model, tokenizer):
    result = generator(model, tokenizer).generate(["x"], {"const": "engineering"})[0]
    assert (result.value, result.usage.model_calls, result.removed_mass.steps) == ("engineering", 0, [])
    asked = generator(model, tokenizer).generate(["x"], {"const": "engineering"}, logprobs=True)[0]
    assert len(asked.logprobs) == len(asked.token_ids) and asked.usage.model_calls > 0


def test_common_prefixes_are_read_once(model, tokenizer):
    read = []
    forward = model.forward

    @functools.wraps(forward)
    def counting(*arguments, **options):
        read.append(options["input_ids"].numel())
        return forward(*arguments, **options)

    long = "A long system prompt that all of them share, word for word, and then "
    model.forward = counting
    try:
        gen = generator(model, tokenizer)
        first = gen.generate([long + "this"], {"type": "boolean"}, max_new_tokens=8)[0]
        whole = read[0]
        read.clear()
        gen.generate([long + "that"], {"type": "boolean"}, max_new_tokens=8)
        assert read[0] < whole / 2
        read.clear()
        again = gen.generate([long + "this"], {"type": "boolean"}, max_new_tokens=8)[0]
        assert read[0] < whole / 2 and again.token_ids == first.token_ids
        read.clear()
        gen = generator(model, tokenizer)
        gen.generate([long + word for word in ("one", "two", "three")], {"type": "boolean"}, max_new_tokens=8)
        assert sum(read[:2]) < 2 * whole
    finally:
        del model.forward


def other_models(tokenizer):
    size = len(tokenizer)
    return {
        "gpt2": transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=size, n_positions=400, n_embd=16, n_layer=1, n_head=1, eos_token_id=2)
        ),
        "bloom": transformers.BloomForCausalLM(
            transformers.BloomConfig(vocab_size=size, hidden_size=16, n_layer=1, n_head=2, eos_token_id=2)
        ),
        "sliding": transformers.MistralForCausalLM(
            transformers.MistralConfig(
                vocab_size=size, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
                num_key_value_heads=1, sliding_window=24, eos_token_id=2,
            )
        ),
        "hybrid": transformers.Lfm2ForCausalLM(
            transformers.Lfm2Config(
                vocab_size=size, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
                num_key_value_heads=1, layer_types=["conv", "full_attention"], eos_token_id=2,
            )
        ),
        "t5": transformers.T5ForConditionalGeneration(
            transformers.T5Config(
                vocab_size=size, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, eos_token_id=2,
                decoder_start_token_id=0, pad_token_id=0,
            )
        ),
        "bart": transformers.BartForConditionalGeneration(
            transformers.BartConfig(
                vocab_size=size, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, eos_token_id=2, pad_token_id=0,
                bos_token_id=1, decoder_start_token_id=2, forced_eos_token_id=None, max_position_embeddings=400,
            )
        ),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "bloom", "sliding", "hybrid", "t5", "bart"])
def test_models_of_other_shapes(name, tokenizer, monkeypatch):
    torch.manual_seed(3)
    model = other_models(tokenizer)[name].double().to(DEVICE).eval()
    for parameter in model.parameters():
        parameter.data.mul_(6.0)  # random models are too sure of nothing
    gen = generator(model, tokenizer)
    together = gen.generate(PROMPTS, PEOPLE, max_new_tokens=120)
    alone = [generator(model, tokenizer).generate([p], PEOPLE, max_new_tokens=120)[0] for p in PROMPTS]
    without_guesses(monkeypatch)
    plain = [generator(model, tokenizer).generate([p], PEOPLE, max_new_tokens=120)[0] for p in PROMPTS]
    for one, two, three in zip(together, alone, plain, strict=True):
        jsonschema.validate(one.value, PEOPLE)
        assert one.token_ids == two.token_ids == three.token_ids


def test_a_greedy_output_is_that_of_transformers(model, tokenizer):
    """Where nothing is forced, the same masks in ``generate`` give the same tokens."""
    from maskwright.hf import LogitsProcessor

    grammar = mw.compile_regex("[a-z]{4,9}( [a-z]{4,9}){3}", generator(model, tokenizer).vocabulary)
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt").to(DEVICE)
        theirs = model.generate(
            **ids,
            logits_processor=[LogitsProcessor(grammar)],
            do_sample=False,
            max_new_tokens=60,
            pad_token_id=0,
        )[0, ids["input_ids"].shape[1] :].tolist()
        ours = generator(model, tokenizer).generate(
            [prompt], mw.Regex("[a-z]{4,9}( [a-z]{4,9}){3}"), max_new_tokens=60
        )[0]
        assert ours.token_ids == [i for i in theirs if i not in (0, 2)]


def test_the_cache_stays_small(model, tokenizer, monkeypatch):
    """Padding and rejected guesses are cut out of the cache now and then."""
    columns = []
    feed = key_values.KeyValueRows.feed

    def watched(self, tokens):
        logits = feed(self, tokens)
        columns.append((self._mask.shape[1], int(self._mask.sum(dim=1).max())))
        return logits

    monkeypatch.setattr(key_values.KeyValueRows, "feed", watched)
    generator(model, tokenizer).generate(PROMPTS, PEOPLE, temperature=1.5, seed=0, max_new_tokens=200)
    assert max(total - used for total, used in columns) <= 32 + max(used for _, used in columns) // 2


# --- asynchronous callers


@pytest.mark.slow
def test_async_calls_run_together_and_equal_single_ones(model, tokenizer):
    gen = generator(model, tokenizer)
    alone = [gen(prompt, PEOPLE, **GREEDY) for prompt in PROMPTS]

    async def everybody():
        return await asyncio.gather(*(gen.acall(prompt, PEOPLE, **GREEDY) for prompt in PROMPTS))

    assert asyncio.run(everybody()) == alone


def test_an_async_stream_ends_in_the_value(model, tokenizer):
    gen = generator(model, tokenizer)

    async def read():
        return [part async for part in gen.astream("x", PEOPLE, **GREEDY)]

    parts = asyncio.run(read())
    assert parts[-1] == gen("x", PEOPLE, **GREEDY) and len(parts) > 3
    assert all(json.dumps(part) for part in parts)


def test_the_event_loop_goes_on_while_the_model_runs(tokenizer):
    model = llama(tokenizer)
    gen = generator(model, tokenizer)
    expected = [gen(prompt, PEOPLE, **GREEDY) for prompt in ("x", "y z")]
    forward, running, go_on = model.forward, threading.Event(), threading.Event()

    @functools.wraps(forward)
    def gated(*arguments, **options):
        running.set()
        assert go_on.wait(20)
        return forward(*arguments, **options)

    model.forward = gated

    async def both():
        first = asyncio.create_task(gen.acall("x", PEOPLE, **GREEDY))
        while not running.is_set():
            await asyncio.sleep(0.005)
        second = asyncio.create_task(gen.acall("y z", PEOPLE, **GREEDY))
        # Long enough for it to come as far as it can.
        for _ in range(20):
            await asyncio.sleep(0.01)
        go_on.set()
        return await asyncio.gather(first, second)

    assert asyncio.run(both()) == expected


def test_a_cancelled_call_leaves_the_generator_usable(tokenizer):
    model = llama(tokenizer)
    gen = generator(model, tokenizer)
    expected = gen("y z", PEOPLE, **GREEDY)
    forward, passes, go_on = model.forward, [], threading.Event()

    @functools.wraps(forward)
    def gated(*arguments, **options):
        passes.append(1)
        if len(passes) > 3:
            assert go_on.wait(60)
        return forward(*arguments, **options)

    model.forward = gated

    async def cancel():
        doomed = asyncio.create_task(gen.acall("x", PEOPLE, **GREEDY))
        kept = asyncio.create_task(gen.acall("y z", PEOPLE, **GREEDY))
        while len(passes) <= 3:
            await asyncio.sleep(0.005)
        # The fourth pass is under way.
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        go_on.set()
        stream = gen.astream("x", PEOPLE, **GREEDY)
        await anext(stream)
        await stream.aclose()
        return await kept

    assert asyncio.run(cancel()) == expected == gen("y z", PEOPLE, **GREEDY)
    # Of those that were left, nothing is known.
    assert gen.metrics.rates().outputs == 3 and gen.metrics.rates().schema_validity == 1.0


def test_an_error_of_one_async_call_is_its_own(tokenizer):
    gen = generator(llama(tokenizer), tokenizer)

    async def run():
        good = gen.acall("x", PEOPLE, **GREEDY)
        bad = gen.acall("x", mw.Regex("(ab)*c"), stop="b")
        return await asyncio.gather(good, bad, return_exceptions=True)

    good, bad = asyncio.run(run())
    jsonschema.validate(good, PEOPLE)
    assert isinstance(bad, mw.MaskwrightError) or bad == "c"


def failing(model, after):
    """Lets ``model.forward`` raise behind so many calls."""
    forward, calls = model.forward, []

    @functools.wraps(forward)
    def broken(*arguments, **options):
        calls.append(1)
        if len(calls) > after:
            raise RuntimeError("out of memory")
        return forward(*arguments, **options)

    model.forward = broken


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_pass_that_fails_is_told_to_everybody_who_waits(after, tokenizer):
    model = llama(tokenizer)
    gen = generator(model, tokenizer)
    expected = gen("x", PEOPLE, **GREEDY)
    failing(model, after)

    async def run():
        calls = [gen.acall(prompt, PEOPLE, **GREEDY) for prompt in PROMPTS]
        return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 60)

    assert all(isinstance(each, RuntimeError) for each in asyncio.run(run()))
    del model.forward
    assert asyncio.run(gen.acall("x", PEOPLE, **GREEDY)) == expected


def test_a_batch_that_cannot_be_made_is_told_as_well(tokenizer):
    torch.manual_seed(0)
    model = other_models(tokenizer)["t5"].to(DEVICE).eval()
    model.generation_config.decoder_start_token_id = model.config.decoder_start_token_id = None
    gen = generator(model, tokenizer)

    async def run():
        return await asyncio.wait_for(gen.acall("x", PEOPLE, **GREEDY), 60)

    for _ in range(2):
        with pytest.raises(mw.MaskwrightError, match="decoder_start_token_id"):
            asyncio.run(run())


def test_a_cancelled_stream_leaves_no_task_behind(model, tokenizer):
    gen = generator(model, tokenizer)

    async def consume(begun):
        async for _ in gen.astream("x", PEOPLE, **GREEDY):
            begun.set()

    async def run():
        begun = asyncio.Event()
        task = asyncio.create_task(consume(begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(run()) == set()


@pytest.mark.slow
def test_threads_share_a_generator(model, tokenizer):
    gen = generator(model, tokenizer)
    found = {}

    def call(prompt):
        found[prompt] = gen(prompt, PEOPLE, **GREEDY)

    threads = [threading.Thread(target=call, args=(prompt,)) for prompt in PROMPTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {prompt: gen(prompt, PEOPLE, **GREEDY) for prompt in PROMPTS}


@pytest.mark.parametrize("pass_of", ["add", "feed"])
def test_a_row_that_is_cancelled_during_a_pass_is_told(pass_of, model, tokenizer, monkeypatch):
    """By another thread, while another row joins, or ends: whoever waits for a row that is gone would wait for ever."""
    gen = generator(model, tokenizer)
    options = GenerationOptions(max_new_tokens=40)

    def row(source):
        (job,) = gen._jobs(["x y"], [source], options)
        return gen._row(job, options, Chooser())

    long, short = row(mw.Regex("[a-z]{30}")), row(mw.Regex("a|b"))
    batch = gen._batch()
    batch.submit([long])
    batch.step()
    original = getattr(batch.key_values, pass_of)

    def cancelling(*arguments):
        long.cancelled = True
        return original(*arguments)

    batch.submit([short])
    monkeypatch.setattr(batch.key_values, pass_of, cancelling)
    told = []
    for _ in range(10):
        told += batch.step()
    assert any(each is long for each in told) and short.done
    assert long not in batch.running and not batch.is_busy
