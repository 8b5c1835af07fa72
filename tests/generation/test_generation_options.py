"""What a caller may ask of ``Generator``: sources, messages, sampling arguments, stops, beams, and bad input."""

from __future__ import annotations

import json
import re
import threading

import jsonschema
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the generator runs transformers models")
transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")
pydantic = pytest.importorskip("pydantic", reason="Python types are read through pydantic")

from devices import DEVICE  # noqa: E402
from test_generation import PEOPLE, PROMPTS, llama  # noqa: E402
from tiny_model import TINY  # noqa: E402

import maskwright as mw  # noqa: E402
from maskwright.generation.outputs import Output  # noqa: E402
from maskwright.generation.prompts import instructed  # noqa: E402
from maskwright.hf import LogitsProcessor, forced_decoding  # noqa: E402

MODEL = llama

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"


@pytest.fixture(scope="module")
def generator(model, tokenizer):
    return mw.Generator(model, tokenizer)


@pytest.fixture(scope="module")
def chat(model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    tokenizer.chat_template = TEMPLATE
    return mw.Generator(model, tokenizer)


ARITHMETIC = """
start: sum
sum: product (("+" | "-") product)*
product: NUMBER ("*" NUMBER)*
NUMBER: /[1-9][0-9]{0,3}/
"""


@pytest.mark.parametrize(
    ("source", "is_right"),
    [
        (mw.Regex("[ab]{3,9}c"), lambda text: re.fullmatch("[ab]{3,9}c", text)),
        (mw.Choice(["Paris", "London", "Rome"]), lambda text: text in ("Paris", "London", "Rome")),
        (mw.Choice([[70, 71, 72], [70, 80]]), lambda text: isinstance(text, str)),
        (mw.Lark(ARITHMETIC), lambda text: isinstance(eval(text), int)),
        (mw.GBNF('root ::= "yes" | "no" [!?]{1,3}'), lambda text: re.fullmatch("yes|no[!?]{1,3}", text)),
        (
            mw.StructuralTag({"type": "json_schema", "json_schema": {"type": "boolean"}}),
            ("true", "false").__contains__,
        ),
        (mw.JsonSchema({"enum": [1, 2]}), lambda value: value in (1, 2)),
    ],
)
@pytest.mark.parametrize("options", [{}, {"temperature": 2.0, "seed": 1}, {"num_beams": 3}])
def test_any_source(source, is_right, options, generator):
    result = generator.generate(["x"], source, max_new_tokens=30, **options)[0]
    assert is_right(result.value) is not False and is_right(result.value) is not None
    assert all(step is not None for step in generator.stream("x", source, max_new_tokens=30))


def test_one_type_a_prompt(generator):
    values = generator.batch(PROMPTS, [int, PEOPLE, bool, mw.Regex("[ab]+")], max_new_tokens=100)
    assert isinstance(values[0], int) and isinstance(values[2], bool) and set(values[3]) <= {"a", "b"}
    jsonschema.validate(values[1], PEOPLE)
    with pytest.raises(mw.MaskwrightError, match="4 prompts need one output type, or as many, not 2"):
        generator.batch(PROMPTS, [int, bool])


def test_samples_of_one_prompt_differ_and_seeds_reproduce_them(generator):
    options = {"temperature": 1.5, "seed": 4, "n": 5, "max_new_tokens": 90}
    values = generator("x", PEOPLE, **options)
    assert len(values) == 5 and len({json.dumps(value) for value in values}) > 1
    assert values == generator("x", PEOPLE, **options)
    assert values[0] == generator("x", PEOPLE, **{**options, "n": 1})


def test_samples_have_the_distribution_that_masks_leave(model, tokenizer):
    """Frequencies of the first letter against the model's own probabilities, renormalised."""
    gen = mw.Generator(model, tokenizer, batch_size=64)
    values = gen("x", mw.Choice(list("abcdefgh")), temperature=1.0, seed=0, n=600, max_new_tokens=3)
    with torch.no_grad():
        ids = torch.tensor([tokenizer("x")["input_ids"]], device=model.device)
        logits = model(input_ids=ids).logits[0, -1].cpu()
    ids = [tokenizer.convert_tokens_to_ids(letter) for letter in "abcdefgh"]
    assert gen.vocabulary.tokens[ids[0]] == b"a"
    chances = torch.softmax(logits[ids], dim=-1).numpy()
    counts = np.array([values.count(letter) for letter in "abcdefgh"])
    spread = np.sqrt(600 * chances * (1 - chances)) + 1
    assert (np.abs(counts - 600 * chances) < 4.5 * spread).all()


def test_beams_give_several_outputs_that_are_judged_by_the_model(generator):
    schema = {"enum": ["alpha", "beta", "gamma", "delta", "alphabet", "gamut"]}
    for prompt in PROMPTS:
        first, second = generator.generate([prompt], schema, num_beams=6, n=2, logprobs=True)
        assert first.value in schema["enum"] and second.value in schema["enum"]
        assert first.text != second.text
        assert len(first.removed_mass.steps) == len(first.logprobs) == len(first.token_ids)


def test_more_beams_than_outputs_give_so_many_nevertheless(generator):
    """Outputs of several prompts are told apart by their number."""
    results = generator.generate(["x", "y"], mw.Choice(["a", "b"]), n=3, num_beams=3)
    assert [sorted({each.text for each in results[at : at + 2]}) for at in (0, 3)] == [["a", "b"]] * 2
    assert len(results) == 6
    assert {results[2].text, results[5].text} <= {"a", "b"}
    spelled = [
        tuple(each.token_ids) for each in generator.generate(["x"], mw.Choice(["the"]), n=5, num_beams=5)
    ]
    different = len(set(spelled))
    assert len(set(spelled[:different])) == different


@pytest.mark.slow
@pytest.mark.parametrize("beams", [2, 5])
def test_beams_keep_the_budget(beams, generator):
    least = len(generator.compile(PEOPLE).matcher().shortest_completion()) + 1
    for room in (least, least + 3, least + 40):
        result = generator.generate(["x"], PEOPLE, num_beams=beams, max_new_tokens=room)[0]
        jsonschema.validate(result.value, PEOPLE)
        assert len(result.token_ids) < room


def test_beams_of_transformers_agree(model, tokenizer, generator):
    """Where the budget is wide, the search is that of ``generate`` with the plain processor."""
    grammar = generator.compile(mw.Regex("[a-f]{2,5}"))
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt").to(DEVICE)
        theirs = model.generate(
            **ids, num_beams=4, do_sample=False, max_new_tokens=40, pad_token_id=0, logits_processor=[LogitsProcessor(grammar)]
        )  # fmt: skip
        theirs = [i for i in theirs[0, ids["input_ids"].shape[1] :].tolist() if i not in (0, 2)]
        ours = generator.generate([prompt], mw.Regex("[a-f]{2,5}"), num_beams=4, max_new_tokens=40)[0]
        assert ours.token_ids == theirs


@pytest.mark.slow
def test_particles_end_in_time_and_say_what_they_found(generator):
    least = len(generator.compile(PEOPLE).matcher().shortest_completion()) + 1
    for room in (least, least + 4, 120):
        result = generator.generate(["x"], PEOPLE, particles=4, seed=1, max_new_tokens=room, logprobs=True)[0]
        jsonschema.validate(result.value, PEOPLE)
        assert len(result.token_ids) < room
        greedy = generator.generate(["x"], PEOPLE, max_new_tokens=room, logprobs=True)[0]
        assert result.text in {*result.posterior, greedy.text}
        assert sum(result.logprobs) >= sum(greedy.logprobs) - 1e-4
        assert sum(result.posterior.values()) == pytest.approx(1)
        assert len(result.logprobs) == len(result.token_ids)
        again = generator.generate(["x"], PEOPLE, particles=4, seed=1, max_new_tokens=room)[0]
        assert again.token_ids == result.token_ids and again.posterior == result.posterior


# --- prompts


def test_messages_go_through_the_chat_template(chat):
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    text = chat._prompter.text(asked, None, dict)
    assert text == "<system>Be brief.<user>Hello<assistant>"
    assert chat._prompter.text("Hello", None, dict) == "<user>Hello<assistant>"
    begun = [*asked, {"role": "assistant", "content": "Sure: "}]
    assert chat._prompter.text(begun, None, dict).endswith("<assistant>Sure: ")
    assert isinstance(chat(asked, bool), bool)
    assert [type(value) for value in chat.batch([asked, "x"], bool)] == [bool, bool]


def test_the_schema_is_shown_on_request(chat, generator):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    instruction = Output(schema).instruction()
    assert json.dumps(schema) in instruction
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert chat._prompter.text(asked, instruction, dict).startswith(
        f"<system>Be brief.\n\n{instruction}<user>"
    )
    assert chat._prompter.text("Hello", instruction, dict).startswith(f"<system>{instruction}<user>Hello")
    plain = chat.generate(["x"], schema, max_new_tokens=30)[0]
    shown = chat.generate(["x"], schema, max_new_tokens=30, schema_in_prompt=True)[0]
    assert shown.usage.prompt_tokens > plain.usage.prompt_tokens + 20
    assert generator.generate(["x"], mw.Regex("a+b"), max_new_tokens=30, schema_in_prompt=True)[0].value


def test_the_schema_where_a_template_refuses_a_system_message(model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    tokenizer.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + TEMPLATE
    )
    gen = mw.Generator(model, tokenizer)
    assert isinstance(gen("Hello", bool, schema_in_prompt=True), bool)
    assert gen._prompter.text("Hello", "Be brief.", dict) == "<user>Be brief.\n\nHello<assistant>"
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    first, second = instructed(parts, "Be brief.", "user")[0]["content"]
    assert (first["text"], second["text"]) == ("Be brief.", "Hello")
    for refused in ([{"role": "system", "content": "x"}], [{"role": "system", "content": "x"}, *parts]):
        with pytest.raises(mw.MaskwrightError, match="no system role"):
            gen(refused, bool, schema_in_prompt=True)


def test_the_schema_joins_a_system_message_of_parts():
    system = {"role": "system", "content": [{"type": "text", "text": "Be kind."}]}
    user = {"role": "user", "content": "Hello"}
    told, rest = instructed([system, user], "Be brief.")
    assert told["content"] == [*system["content"], {"type": "text", "text": "Be brief."}] and rest == user
    assert len(system["content"]) == 1


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ([], "empty"),
        ([{"role": "user"}], "content"),
        ([{"content": "x"}], r"messages\[0\]: expected"),
        ([{"role": "user", "content": "x"}, "y"], r"messages\[1\]: expected"),
        ([{"role": "user", "content": 5}], "the content is a text"),
        ([{"role": 5, "content": "x"}], r"messages\[0\]"),
        ({"role": "user", "content": "x"}, "prompts is"),
        (None, "prompts is"),
        (b"x", "prompts is"),
    ],
)
def test_messages_in_a_wrong_shape(prompt, words, chat):
    with pytest.raises(mw.MaskwrightError, match=words):
        chat(prompt, bool)
    assert isinstance(chat("x", bool), bool)


def test_messages_need_a_template(generator):
    with pytest.raises(mw.MaskwrightError, match="no chat template"):
        generator([{"role": "user", "content": "x"}], bool)


def test_a_template_that_refuses(model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(mw.MaskwrightError, match="roles must alternate"):
        mw.Generator(model, tokenizer)("x", bool)


# --- stop texts


def test_a_stop_text_ends_a_complete_output(generator):
    for seed in range(8):
        source = mw.Regex("[a-c]+(;[a-c]+)*")
        result = generator.generate(["x"], source, stop=";", temperature=1.0, seed=seed, max_new_tokens=40)[0]
        assert re.fullmatch("[a-c]+", result.value)
        whole = generator.vocabulary.decode(result.token_ids).decode()
        assert whole.startswith(result.value)


@pytest.mark.parametrize(
    ("source", "stop", "words"),
    [
        ({"type": "string"}, "x", "would cut JSON"),
        (int, ["5"], "would cut JSON"),
        (mw.Regex("[ab]+"), "c", "can occur in no text"),
        (mw.Choice(["ab", "cd"]), ["bc"], "can occur in no text"),
        (mw.Regex("[ab]+"), "", "not empty"),
        (mw.Regex("[ab]+"), 5, "a text or a list of texts"),
        (mw.Regex("[ab]+"), {"a": 1}, "a text or a list of texts"),
        (mw.Lark('start: "ab"+'), "\ud800", "lone surrogate"),
        (mw.Regex("[ab]+"), iter(["c"]), "can occur in no text"),
        (mw.Regex("[ab]+"), ["a", 5], "not empty"),
    ],
)
def test_stop_texts_that_make_no_sense(source, stop, words, generator):
    with pytest.raises(mw.MaskwrightError, match=words):
        generator("x", source, stop=stop)


def test_a_stop_text_that_would_cut(generator):
    with pytest.raises(mw.MaskwrightError, match="would cut the output where it is not complete"):
        generator("x", mw.Lark('start: "a" "b" "c"'), stop="b")
    assert generator("x", mw.Lark('start: "a" "b" "c"')) == "abc"


def test_a_stop_text_in_what_a_short_budget_writes(generator):
    source, closed = mw.Regex("a(;(1|2{5}))?"), 0
    for seed in range(20):
        options = {"stop": ";1", "temperature": 5.0, "seed": seed, "max_new_tokens": 4}
        result = generator.generate(["x"], source, **options)[0]
        assert result.value == "a"
        assert list(generator.stream("x", source, **options))[-1] == "a"
        closed += result.finish_reason == "budget"
    assert closed > 1


def test_a_stream_never_takes_text_back(generator):
    for seed in range(12):
        shown = ""
        options = {"stop": "b;", "temperature": 1.0, "seed": seed, "max_new_tokens": 30}
        for step in generator.steps("x", mw.Regex("([ab]|;-)+"), **options):
            assert step.text.startswith(shown)
            shown = step.text


# --- bad input


@pytest.mark.parametrize("batch_size", [0, -1, "8", 2.5, True])
def test_sizes_of_batches(batch_size, model, tokenizer, generator):
    with pytest.raises(mw.MaskwrightError, match="batch_size"):
        mw.Generator(model, tokenizer, batch_size=batch_size)
    with pytest.raises(mw.MaskwrightError, match="batch_size"):
        forced_decoding(generator.compile(PEOPLE), tokenizer, batch_size=batch_size)


def test_numbers_of_numpy_are_numbers(generator):
    options = {
        "temperature": np.float32(1.0),
        "top_k": np.int64(3),
        "seed": np.int32(1),
        "max_new_tokens": np.int64(20),
    }
    assert generator("x", mw.Regex("[ab]{1,5}"), **options)
    assert generator("x", mw.Regex("[ab]{1,5}"), particles=np.int64(3), max_new_tokens=np.int64(20))


@pytest.mark.parametrize("prompt", ["\ud800", [{"role": "user", "content": "\ud800"}]])
def test_prompts_that_are_no_text(prompt, chat):
    with pytest.raises(mw.MaskwrightError, match="lone surrogate"):
        chat(prompt, bool)


@pytest.mark.parametrize("made", [None, 5, b"x", ["a", "b"]])
def test_a_prompt_format_that_makes_no_text(made, model, tokenizer):
    with pytest.raises(mw.MaskwrightError, match="which is no text"):
        mw.Generator(model, tokenizer, format_prompt=lambda prompt, schema: made)("x", bool)


@pytest.mark.parametrize("given", [5, "{prompt}"])
def test_a_prompt_format_that_is_no_function(given, model, tokenizer):
    with pytest.raises(mw.MaskwrightError, match="format_prompt is a function"):
        mw.Generator(model, tokenizer, format_prompt=given)


def test_scores_of_processors_that_are_no_numbers(generator):
    options = {"repetition_penalty": 1e-42, "temperature": 1.0, "seed": 1}
    with pytest.raises(mw.MaskwrightError, match="no finite numbers"):
        generator("a b ab", mw.Regex("[ab]{1,5}"), **options)


def test_an_encoder_that_is_too_short(tokenizer):
    torch.manual_seed(0)
    model = transformers.BartForConditionalGeneration(
        transformers.BartConfig(
            vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, eos_token_id=2, pad_token_id=0,
            bos_token_id=1, decoder_start_token_id=2, forced_eos_token_id=None, max_position_embeddings=40,
        )
    )  # fmt: skip
    with pytest.raises(mw.LimitError, match="more than the model's context of 40"):
        mw.Generator(model.eval(), tokenizer)("x y z " * 60, bool)


def test_a_model_without_a_cache(tokenizer):
    config = transformers.OpenAIGPTConfig(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2)
    with pytest.raises(mw.MaskwrightError, match="keeps no past_key_values"):
        mw.Generator(transformers.OpenAIGPTLMHeadModel(config), tokenizer)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"top_p": 0.9}, "pass a temperature"),
        ({"temperature": 0, "top_k": 5}, "pass a temperature"),
        ({"temperature": 1.0, "top_p": 1.5}, "top_p"),
        ({"temperature": 1.0, "top_p": 0}, "leaves no token"),
        ({"temperature": 1.0, "top_k": 0}, "top_k"),
        ({"temperature": 1.0, "min_p": float("nan")}, "min_p"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"n": 3}, "one and the same"),
        ({"n": 0}, "n: expected"),
        ({"n": 4, "num_beams": 2}, "that many outputs at most"),
        ({"num_beams": 2, "temperature": 1.0}, "cannot be combined"),
        ({"num_beams": 2, "particles": 2}, "pass one of them"),
        ({"particles": 0}, "particles"),
        ({"particles": 4, "n": 2}, "Generation.posterior has the others"),
        ({"particles": 4, "temperature": 1.0}, "cannot be combined"),
        ({"logprobs": -1}, "logprobs"),
        ({"logprobs": 1000}, "at most 100"),
        ({"seed": "x"}, "seed"),
        ({"seed": -1}, "seed"),
        ({"temperature": 10**400}, "temperature"),
        ({"num_beams": [1, 2]}, "num_beams"),
        ({"max_new_tokens": True}, "max_new_tokens"),
        ({"schema_in_prompt": 1}, "schema_in_prompt"),
        ({"temprature": 1.0}, "did you mean temperature"),
    ],
)
def test_contradictory_and_bad_arguments(options, words, generator):
    with pytest.raises(mw.MaskwrightError, match=words):
        generator("x", mw.Regex("[ab]+"), **options)


def test_a_stream_is_one_output(generator):
    with pytest.raises(mw.MaskwrightError, match="one output"):
        list(generator.stream("x", bool, num_beams=2))


def test_a_model_that_breaks_half_way_leaves_the_generator_usable(tokenizer):
    model = llama(tokenizer)
    gen = mw.Generator(model, tokenizer)
    expected = gen("x", PEOPLE, max_new_tokens=90)
    forward, calls = model.forward, []

    def broken(*arguments, **options):
        output = forward(*arguments, **options)
        calls.append(1)
        if len(calls) > 3:
            output.logits.fill_(float("nan"))
        return output

    broken.__signature__ = __import__("inspect").signature(forward)
    model.forward = broken
    with pytest.raises(mw.ModelError, match="no finite score"):
        gen("x", PEOPLE, max_new_tokens=90)
    del model.forward
    assert gen("x", PEOPLE, max_new_tokens=90) == expected


# --- transformers' generate


@pytest.mark.parametrize(
    "options", [{"do_sample": False}, {"do_sample": True, "temperature": 0.8, "top_p": 0.9}]
)
def test_forced_decoding_in_generate(options, model, tokenizer, generator):
    tokenizer.pad_token_id = 0
    grammar = generator.compile(PEOPLE)
    batch = tokenizer(PROMPTS, return_tensors="pt", padding=True, padding_side="left").to(DEVICE)
    torch.manual_seed(0)
    output = model.generate(
        **batch,
        custom_generate=forced_decoding(grammar, tokenizer),
        max_new_tokens=100,
        pad_token_id=0,
        **options,
    )
    for prompt, row in zip(PROMPTS, output[:, batch["input_ids"].shape[1] :].tolist(), strict=True):
        text = generator.vocabulary.decode([i for i in row if i not in (0, 2)]).decode()
        jsonschema.validate(json.loads(text), PEOPLE)
        if not options["do_sample"]:
            assert text == generator.generate([prompt], PEOPLE, max_new_tokens=100)[0].text


def test_forced_decoding_penalizes_each_row_alone(model, tokenizer, generator):
    tokenizer.pad_token_id = 0
    grammar = generator.compile(mw.Regex("[ab]{1,12}"))
    batch = tokenizer(["ab", "ab b a abab"], return_tensors="pt", padding=True, padding_side="left")
    width = batch["input_ids"].shape[1]
    options = {
        "custom_generate": forced_decoding(grammar, tokenizer),
        "max_new_tokens": 14,
        "pad_token_id": 0,
    }
    ready = transformers.generation.RepetitionPenaltyLogitsProcessor
    for given, length in (
        ({"repetition_penalty": 1.8}, None),
        ({"logits_processor": [ready(1.8, prompt_ignore_length=width)]}, -1),
    ):
        output = model.generate(**batch.to(DEVICE), **given, **options)
        for row, ids in enumerate(batch["input_ids"]):
            alone = ids[batch["attention_mask"][row].bool()][None]
            if length == -1:
                given = {"logits_processor": [ready(1.8, prompt_ignore_length=alone.shape[1])]}
            expected = model.generate(alone, **given, **options)[0, alone.shape[1] :].tolist()
            assert output[row, width:].tolist()[: len(expected)] == expected


def test_forced_decoding_refuses_what_it_cannot_do(model, tokenizer, generator):
    ids = tokenizer("x", return_tensors="pt").to(DEVICE)
    decode = forced_decoding(generator.compile(PEOPLE), tokenizer)
    with pytest.raises(mw.MaskwrightError, match="for beams pass LogitsProcessor"):
        model.generate(**ids, custom_generate=decode, num_beams=2, max_new_tokens=100, pad_token_id=0)
    with pytest.raises(mw.LimitError, match="the shortest output takes"):
        model.generate(**ids, custom_generate=decode, max_new_tokens=5, pad_token_id=0)
    with pytest.raises(mw.MaskwrightError, match="would cut outputs"):
        model.generate(**ids, custom_generate=decode, max_new_tokens=100, pad_token_id=0, max_time=60.0)
    for asked in ("output_scores", "output_logits", "output_attentions", "output_hidden_states"):
        options = {asked: True, "max_new_tokens": 100, "pad_token_id": 0}
        with pytest.raises(mw.MaskwrightError, match=f"{asked}: .* does not ask the model"):
            model.generate(**ids, custom_generate=decode, return_dict_in_generate=True, **options)
        assert len(model.generate(**ids, custom_generate=decode, **options)) == 1
    embedded = model.get_input_embeddings()(ids["input_ids"])
    with pytest.raises(mw.MaskwrightError, match="inputs_embeds"):
        model.generate(inputs_embeds=embedded, custom_generate=decode, max_new_tokens=100, pad_token_id=0)


class Shown(transformers.generation.BaseStreamer):
    def __init__(self):
        self.tokens = []
        self.ends = 0

    def put(self, value):
        assert not self.ends
        self.tokens += value.flatten().tolist()

    def end(self):
        self.ends += 1


def test_forced_decoding_streams(model, tokenizer, generator):
    ids = tokenizer("x", return_tensors="pt").to(DEVICE)
    decode = forced_decoding(generator.compile(mw.Regex("abc[0-9]{2}x{8}")), tokenizer)

    def wrapped(model, input_ids, **options):
        return decode(model, input_ids, **options)

    for method in (decode, wrapped):
        shown = Shown()
        output = model.generate(
            **ids, custom_generate=method, streamer=shown, max_new_tokens=30, pad_token_id=0
        )
        # As without a method of ours: the prompt, each token, EOS.
        assert shown.tokens == output[0].tolist()
        assert shown.ends == 1
    streamer = transformers.TextIteratorStreamer(
        tokenizer, skip_prompt=True, skip_special_tokens=True, timeout=20
    )
    options = {"custom_generate": decode, "streamer": streamer, "max_new_tokens": 30, "pad_token_id": 0}
    thread = threading.Thread(target=lambda: model.generate(**ids, **options))
    thread.start()
    text = "".join(streamer)
    thread.join()
    assert text == tokenizer.decode(output[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)


def test_a_streamer_ends_with_an_error(model, tokenizer, generator):
    ids = tokenizer("x", return_tensors="pt").to(DEVICE)
    decode = forced_decoding(generator.compile(PEOPLE), tokenizer)
    shown = Shown()
    with pytest.raises(mw.LimitError, match="the shortest output takes"):
        model.generate(**ids, custom_generate=decode, streamer=shown, max_new_tokens=5, pad_token_id=0)
    assert shown.ends == 1
    shown = Shown()
    two = {name: torch.cat([tensor, tensor]) for name, tensor in ids.items()}
    with pytest.raises(mw.MaskwrightError, match="one prompt at a time"):
        model.generate(**two, custom_generate=decode, streamer=shown, max_new_tokens=100, pad_token_id=0)
    assert shown.ends == 1


def test_a_processor_that_prefers_the_tokenizers_own_tokens(model, tokenizer, generator):
    schema = mw.JsonSchema({"const": {"engineering": ["operations", "department"]}}, whitespace="compact")
    grammar = generator.compile(schema)
    ids = tokenizer("x", return_tensors="pt").to(DEVICE)
    length = ids["input_ids"].shape[1]
    options = {"do_sample": True, "temperature": 5.0, "max_new_tokens": 80, "pad_token_id": 0}
    torch.manual_seed(0)
    plain = model.generate(**ids, logits_processor=[LogitsProcessor(grammar)], **options)[0, length:]
    own = model.generate(**ids, logits_processor=[LogitsProcessor(grammar, tokenizer=tokenizer)], **options)[
        0, length:
    ]
    text = '{"engineering":["operations","department"]}'
    assert (
        tokenizer.decode(plain, skip_special_tokens=True)
        == tokenizer.decode(own, skip_special_tokens=True)
        == text
    )
    assert [i for i in own.tolist() if i not in (0, 2)] == tokenizer.encode(text, add_special_tokens=False)
    assert len(plain) > len(own)


@pytest.mark.parametrize("text", [r"\d+", "schema.json", "", "yes|no"])
def test_a_text_that_is_no_schema(text):
    with pytest.raises(
        mw.GrammarError, match="is no JSON Schema: a str is read as the text of one; wrap others in Regex"
    ):
        Output(text)
    assert Output(' {"type": "null"}').value("null") is None
