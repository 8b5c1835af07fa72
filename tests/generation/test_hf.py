"""The logits processor in every decoding mode of ``generate``, on the demo model."""

from __future__ import annotations

import json
import warnings

import jsonschema
import numpy as np
import pytest
from devices import DEVICE

import maskwright as mw

torch = pytest.importorskip("torch", reason="generate runs on torch")
transformers = pytest.importorskip("transformers", reason="generate comes from transformers")

from maskwright.hf import LogitsProcessor  # noqa: E402

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 120}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
COLOURS = {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 2, "maxItems": 4}
TWO_WORDS = {"enum": ["yes", "no"]}
REQUEST = "Describe a person named Ada, 36 years old.\n<|json|>"


@pytest.fixture(scope="module")
def person(vocabulary):
    return mw.compile_json_schema(PERSON, vocabulary)


@pytest.fixture(scope="module")
def colours(vocabulary):
    return mw.compile_json_schema(COLOURS, vocabulary, whitespace="compact")


@pytest.fixture(scope="module")
def two_words(vocabulary):
    return mw.compile_json_schema(TWO_WORDS, vocabulary)


@pytest.fixture
def run(model, tokenizer):
    """Generate and return the text behind each row's prompt."""

    def go(processor, prompts=REQUEST, **options):
        batch = tokenizer(prompts, return_tensors="pt", padding=True, return_token_type_ids=False).to(DEVICE)
        if isinstance(prompts, str):
            batch = {name: tensor.view(1, -1) for name, tensor in batch.items()}
        torch.manual_seed(options.pop("seed", 0))
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            output = model.generate(
                **batch,
                **{
                    "max_new_tokens": 80,
                    "logits_processor": [processor],
                    "do_sample": False,
                    "early_stopping": True,
                }
                | options,
            )
        return tokenizer.batch_decode(output[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)

    return go


def check(text: str, schema) -> None:
    jsonschema.validate(json.loads(text), schema)


# --- modes


def test_greedy(run, person):
    (text,) = run(LogitsProcessor(person))
    check(text, PERSON)


@pytest.mark.parametrize("seed", range(3))
def test_sampling_hot(run, person, seed):
    (text,) = run(LogitsProcessor(person), do_sample=True, temperature=2.0, top_k=0, seed=seed)
    check(text, PERSON)


@pytest.mark.parametrize("sample", [False, True])
def test_beams(run, person, sample):
    texts = run(LogitsProcessor(person), num_beams=3, num_return_sequences=3, do_sample=sample)
    assert len(set(texts)) == 3
    for text in texts:
        check(text, PERSON)


def test_more_beams_than_continuations(run, vocabulary):
    numbers = {"enum": [7, 8]}
    (text,) = run(LogitsProcessor(mw.compile_json_schema(numbers, vocabulary)), num_beams=5)
    check(text, numbers)


def test_beams_in_a_batch_with_a_grammar_each(run, person, colours):
    texts = run(LogitsProcessor([person, colours]), [REQUEST, "Some colours.\n<|json|>"], num_beams=3)
    check(texts[0], PERSON)
    check(texts[1], COLOURS)


def test_returned_sequences_belong_to_their_prompts(run, person, colours):
    texts = run(
        LogitsProcessor([person, colours]),
        [REQUEST, "Some colours, for a change, please.\n<|json|>"],
        num_return_sequences=2,
        do_sample=True,
    )
    for text, schema in zip(texts, [PERSON, PERSON, COLOURS, COLOURS], strict=True):
        check(text, schema)


def test_a_batch_gives_what_single_prompts_give(run, person, two_words):
    batch = run(LogitsProcessor([person, two_words]), [REQUEST, "Yes?\n<|json|>"])
    alone = run(LogitsProcessor(person), REQUEST) + run(LogitsProcessor(two_words), "Yes?\n<|json|>")
    check(batch[0], PERSON)
    check(batch[1], TWO_WORDS)
    assert batch[0] == alone[0]


def test_prompt_lookup_gives_what_greedy_gives(run, person):
    prompt = 'Write {"name": "Ada", "age": 36} or {"name": "Ada Love", "age": 36}.\n<|json|>'
    (plain,) = run(LogitsProcessor(person), prompt)
    (assisted,) = run(LogitsProcessor(person), prompt, prompt_lookup_num_tokens=5)
    check(plain, PERSON)
    assert assisted == plain


def small_model(vocab_size: int):
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.LlamaForCausalLM(config).to(DEVICE).eval()


@pytest.mark.parametrize("sample", [False, True])
def test_assistant_model(run, model, person, sample):
    processor = LogitsProcessor(person)
    for assistant in (model, small_model(model.config.vocab_size)):
        (text,) = run(processor, assistant_model=assistant, do_sample=sample)
        check(text, PERSON)
        if not sample:
            assert text == run(LogitsProcessor(person))[0]


def test_assistant_of_another_width(run, model, person, tokenizer):
    # Its tokenizer differs as well, so that transformers translates the candidates.
    assistant = small_model(model.config.vocab_size + 64)
    options = {"assistant_model": assistant, "tokenizer": tokenizer, "assistant_tokenizer": tokenizer}
    width = model.config.vocab_size + 64
    (text,) = run(LogitsProcessor(person, assistant_vocab_size=width), **options)
    check(text, PERSON)
    with pytest.raises(mw.VocabularyError, match=f"assistant_vocab_size={width}"):
        run(LogitsProcessor(person), **options)


# --- reuse


def test_one_processor_for_many_generations(run, person):
    processor = LogitsProcessor(person)
    (first,) = run(processor)
    assert run(processor) == [first]
    (other,) = run(processor, "Bob is 7.\n<|json|>")
    check(other, PERSON)
    for text in run(processor, [REQUEST, "Bob is 7.\n<|json|>"]):
        check(text, PERSON)
    for text in run(processor, num_beams=2, num_return_sequences=2):
        check(text, PERSON)
    processor.reset()
    assert run(processor) == [first]
    assert processor.mask_seconds > 0


def test_a_prompt_that_goes_on_from_an_output(run, person):
    processor = LogitsProcessor(person)
    (first,) = run(processor)
    for between in ("<|eos|>", ""):
        (second,) = run(processor, f"{REQUEST}{first}{between}\nAnd her sister?\n<|json|>")
        check(second, PERSON)


def test_an_explicit_prompt_length_resumes_a_text(run, person, tokenizer):
    (whole,) = run(LogitsProcessor(person))
    begun = '{"name": "Zo'
    length = len(tokenizer(REQUEST)["input_ids"])
    (rest,) = run(LogitsProcessor(person, prompt_length=length), REQUEST + begun)
    check(begun + rest, PERSON)
    assert whole != begun + rest
    with pytest.raises(mw.MaskwrightError, match="prompt_length"):
        run(LogitsProcessor(person, prompt_length=length + 1))


# --- rows by hand


def ids_of(tokenizer, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def allowed(processor, rows: list[list[int]], scores=None) -> list[set[int]]:
    scores = torch.zeros(len(rows), processor._vocab_size) if scores is None else scores
    before = scores.clone()
    masked = processor(torch.tensor(rows), scores)
    assert torch.equal(scores, before), "the scores given are left alone"
    return [set(torch.isfinite(row).nonzero().flatten().tolist()) for row in masked]


def test_masks_are_those_of_a_matcher(tokenizer, person):
    processor = LogitsProcessor(person)
    prompt = [1, 5, 6]
    generated = ids_of(tokenizer, '{"name": "Ada", "age": 36}')
    matcher = person.matcher()
    for end in range(len(generated) + 1):
        bitmask = mw.allocate_token_bitmask(1, person.vocabulary.vocab_size)
        matcher.fill_next_token_bitmask(bitmask)
        bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
        assert allowed(processor, [prompt + generated[:end]]) == [set(np.flatnonzero(bits).tolist())]
        if end < len(generated):
            assert matcher.accept_token(generated[end])


@pytest.mark.filterwarnings("ignore:no row is a text of the grammar")
def test_state_depends_on_the_tokens_only(tokenizer, person):
    """Any order of prefixes, also with leaps and dead ends, as a fresh processor sees them."""
    generated = ids_of(tokenizer, '{"name": "Ada Lovelace", "age": 36}')
    dead = [*generated[:3], generated[0]]
    rng = np.random.default_rng(0)
    processor = LogitsProcessor(person, prompt_length=2)
    for _ in range(150):
        end = int(rng.integers(len(generated) + 1))
        row = generated[:end] if rng.random() < 0.7 else dead + generated[:end]
        fresh = LogitsProcessor(person, prompt_length=2)
        assert allowed(processor, [[1, 7, *row]]) == allowed(fresh, [[1, 7, *row]])


def test_dead_rows_are_left_as_they_came_and_finished_rows_allow_eos(tokenizer, two_words):
    processor = LogitsProcessor(two_words)
    start = [[1], [1], [1]]
    assert allowed(processor, start)[0] != set(range(1536))
    quote = ids_of(tokenizer, '"')
    word = ids_of(tokenizer, '"yes"')
    processor = LogitsProcessor(two_words, prompt_length=1)
    width = max(len(word) + 3, 5)
    rows = [[1, *word, 2, 0, 0, 0, 0][:width], [1, *quote * width][:width], [1, *[1535] * width][:width]]
    finished, dead, dead_too = allowed(processor, rows)
    assert finished == {2}
    assert dead == dead_too == set(range(1536))


def test_min_new_tokens_past_the_end(model, tokenizer, two_words):
    prompt = tokenizer("Yes?\n<|json|>", return_tensors="pt", return_token_type_ids=False).to(DEVICE)
    for options in ({"do_sample": False}, {"do_sample": True}, {"do_sample": False, "num_beams": 2}):
        with pytest.warns(UserWarning, match="the grammar has precedence") as caught:
            output = model.generate(
                **prompt,
                max_new_tokens=30,
                min_new_tokens=25,
                logits_processor=[LogitsProcessor(two_words)],
                **options,
            )
        assert len([w for w in caught if "precedence" in str(w.message)]) == 1
        text = tokenizer.decode(output[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
        check(text, TWO_WORDS)


def test_a_rescued_row_is_normalised(two_words):
    scores = torch.full((1, 1536), -float("inf"))
    processor = LogitsProcessor(two_words)
    with pytest.warns(UserWarning, match="precedence"):
        masked = processor(torch.tensor([[1]]), scores)
    assert torch.isfinite(masked).any()
    assert masked.exp().sum().item() == pytest.approx(1.0)


# --- misuse


def test_misfits_say_what_to_pass(person, colours):
    with pytest.raises(mw.VocabularyError, match=r"vocab_size=1600\)"):
        LogitsProcessor(person)(torch.tensor([[1]]), torch.zeros(1, 1600))
    with pytest.raises(mw.MaskwrightError, match=r"3 rows .* 2 grammars"):
        LogitsProcessor([person, colours])(torch.tensor([[1]] * 3), torch.zeros(3, 1536))
    with pytest.raises(mw.VocabularyError, match="one or more grammars"):
        LogitsProcessor([])
    with pytest.raises(mw.MaskwrightError, match="prompt_length"):
        LogitsProcessor(person, prompt_length=-1)
    small = mw.Vocabulary.from_bytes([b"1", b"</s>"], eos_ids=1)
    with pytest.raises(mw.VocabularyError, match="one vocabulary"):
        LogitsProcessor([person, mw.compile_json_schema({"const": 1}, small)])


def test_continuous_batching_is_declined(person):
    assert LogitsProcessor(person).supports_continuous_batching is False


def test_the_type_of_ids_makes_no_difference(person):
    processor, another = LogitsProcessor(person), LogitsProcessor(person)
    width = person.vocabulary.vocab_size
    long, narrow = torch.zeros((1, 3), dtype=torch.int64), torch.zeros((1, 3), dtype=torch.int32)
    for _ in range(6):
        scores = processor(long, torch.zeros((1, width)))
        other = another(narrow, torch.zeros((1, width)))
        assert torch.equal(scores, other)
        token = scores.argmax(dim=-1, keepdim=True)
        long, narrow = torch.cat([long, token], 1), torch.cat([narrow, token.int()], 1)


def test_misshapen_ids(person):
    processor = LogitsProcessor(person)
    with pytest.raises(mw.MaskwrightError, match="input_ids is"):
        processor(torch.zeros((1, 3), dtype=torch.int64), torch.zeros((2, person.vocabulary.vocab_size)))
    with pytest.raises(mw.MaskwrightError, match="compiled grammar"):
        LogitsProcessor(None)
