"""One logits processor for many generations: where a new one begins, whatever its prompt has in common with the last."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
import re
import warnings

import numpy as np
import pytest
from devices import DEVICE

import maskwright as mw

torch = pytest.importorskip("torch", reason="generate runs on torch")
transformers = pytest.importorskip("transformers", reason="generate comes from transformers")

from maskwright.hf import LogitsProcessor  # noqa: E402
from maskwright.sampling.recorder import WeightRecorder  # noqa: E402

PADDING = "left"

ANSWER = "(yes|no|maybe)[0-9]{3}"
EOS = 2


@pytest.fixture(scope="module")
def answer(vocabulary):
    return mw.compile_regex(ANSWER, vocabulary)


@pytest.fixture
def write(model, tokenizer):
    """What is written behind prompts, texts or ids."""

    def go(processor, prompts, others=(), **options):
        if isinstance(prompts[0], str):
            batch = tokenizer(prompts, return_tensors="pt", padding=True, return_token_type_ids=False)
        else:
            ids = torch.tensor(prompts)
            batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        batch = {name: tensor.to(DEVICE) for name, tensor in batch.items()}
        options = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0} | options
        torch.manual_seed(options.pop("seed", 0))
        output = model.generate(**batch, logits_processor=[processor, *others], **options)
        return output[:, batch["input_ids"].shape[1] :].tolist()

    return go


@pytest.fixture
def texts(write, tokenizer):
    def go(processor, prompts, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            return tokenizer.batch_decode(write(processor, prompts, **options), skip_special_tokens=True)

    return go


def assert_answers(found, pattern=ANSWER):
    for text in found:
        assert re.fullmatch(pattern, text), text


PAIRS = [("Hello", "Hello world"), ("x", "x a"), ("What is 1", "What is 12"), ("Q", "Q\n"), ("Q", "Q a b")]
MODES = [
    {},
    {"do_sample": True, "num_return_sequences": 3},
    {"num_beams": 3, "num_return_sequences": 3},
    {"num_beams": 3, "do_sample": True},
    {"prompt_lookup_num_tokens": 3},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", MODES, ids=lambda options: "-".join(options) or "greedy")
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_a_prompt_that_extends_the_last_one(texts, answer, pair, options):
    processor = LogitsProcessor(answer)
    for prompt in (*pair, *pair[::-1]):
        found = texts(processor, [prompt], **options)
        assert_answers(found)
        assert found == texts(LogitsProcessor(answer), [prompt], **options)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_single_token_that_no_generation_writes(tokenizer, answer, vocabulary, count):
    """Behind a prompt, an output, and an output with its EOS."""
    processor = LogitsProcessor(answer)
    width = vocabulary.vocab_size
    base = tokenizer("Hello")["input_ids"]
    rows = torch.tensor([base] * count)
    start = torch.isfinite(processor(rows, torch.zeros(count, width)))
    output = tokenizer("maybe123", add_special_tokens=False)["input_ids"]
    for token in set(torch.nonzero(~start[0]).flatten().tolist()[:300]) - {EOS}:
        for behind in ([], output, [*output, EOS]):
            for end in range(len(behind) + 1):
                processor(torch.tensor([base + behind[:end]] * count), torch.zeros(count, width))
            new = torch.tensor([[*base, *behind, token]] * count)
            mask = torch.isfinite(processor(new, torch.zeros(count, width)))
            assert torch.equal(mask, start), (token, behind)
            processor.reset()


@pytest.mark.slow
def test_many_prompts_that_share_prefixes(texts, answer):
    chance = random.Random(1)
    words = ["x", " a", " b", "1", "2", " name", " city", "\n"]
    prompts = ["Q" + "".join(chance.choices(words, k=chance.randrange(4))) for _ in range(60)]
    for options in ({}, {"prompt_lookup_num_tokens": 3}):
        processor = LogitsProcessor(answer)
        for prompt in prompts:
            assert_answers(texts(processor, [prompt], **options))


@pytest.mark.slow
def test_batches_that_extend_batches(texts, vocabulary, answer):
    digits = mw.compile_regex("[0-9]{4}", vocabulary)
    for grammars, patterns in ((answer, [ANSWER] * 2), ([answer, digits], [ANSWER, "[0-9]{4}"])):
        processor = LogitsProcessor(grammars)
        # Paddings, equal prompts, and a row whose last token its own grammar allows.
        for pair in (
            ["xa", "xa"],
            ["xa", "xb"],
            ["xa b", "xb b"],
            ["xa b", "xb 1"],
            ["x", "xa b"],
            ["x", "x"],
        ):
            for options in ({}, {"num_beams": 2}, {"max_new_tokens": 1}, {}):
                found = texts(processor, pair, **options)
                if options.get("max_new_tokens") != 1:
                    for text, pattern in zip(found, patterns, strict=True):
                        assert_answers([text], pattern)


@pytest.mark.parametrize("kept", [False, True], ids=["text", "with-eos"])
@pytest.mark.parametrize("between", ["\n", "x", "\n\nQ:", "<|eos|>"])
@pytest.mark.parametrize("rows", [1, 2])
def test_prompts_that_grow_by_outputs(write, tokenizer, answer, kept, between, rows):
    if between == "<|eos|>" and not kept:
        pytest.skip("an output and its EOS alone: a continuation, see the docstring")
    processor = LogitsProcessor(answer)
    prompts = [tokenizer("Q:")["input_ids"]] * rows
    more = [EOS, 5] if between == "<|eos|>" else tokenizer(between, add_special_tokens=False)["input_ids"]
    for _ in range(4):
        found = write(processor, prompts)
        assert_answers(tokenizer.batch_decode(found, skip_special_tokens=True))
        assert found[0] == write(LogitsProcessor(answer), prompts)[0]
        prompts = [
            [*prompt, *(row if kept else [i for i in row if i not in (0, EOS)]), *more]
            for prompt, row in zip(prompts, found, strict=True)
        ]


def test_an_output_that_runs_through_an_earlier_prompt(texts, tokenizer, vocabulary):
    grammar = mw.compile_regex("(ab){6}", vocabulary)
    processor = LogitsProcessor(grammar)
    (whole,) = texts(processor, ["x"], max_new_tokens=20)
    for end in range(1, 8):
        texts(processor, ["x" + whole[:end]], max_new_tokens=20)
    assert texts(processor, ["x"], max_new_tokens=20) == [whole] == ["ab" * 6]


class Forcing(transformers.LogitsProcessor):
    """Writes ``token`` at ``column``, whatever was masked."""

    def __init__(self, column, token):
        self.column = column
        self.token = token

    def __call__(self, input_ids, scores):
        if input_ids.shape[1] == self.column:
            scores = torch.full_like(scores, -float("inf"))
            scores[:, self.token] = 0
        return scores


def test_a_processor_behind_that_does_not_obey(write, tokenizer, answer):
    prompt = tokenizer("Hello")["input_ids"]
    (token,) = tokenizer("x", add_special_tokens=False)["input_ids"][-1:]
    # At the start it belongs to the prompt.
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        (row,) = write(LogitsProcessor(answer), [prompt], [Forcing(len(prompt), token)])
    assert row[0] == token
    assert_answers([tokenizer.decode(row[1:], skip_special_tokens=True)])
    for prompts in ([prompt], [prompt, [*prompt[:-1], 7]]):
        with pytest.warns(UserWarning, match="the grammar forbids"):
            rows = write(
                LogitsProcessor(answer), prompts, [Forcing(len(prompt) + 2, token)], max_new_tokens=20
            )
        for row in rows:
            assert_answers([tokenizer.decode(row[3:], skip_special_tokens=True)])


def test_rejected_candidates_begin_nothing(tokenizer, answer, vocabulary):
    """Drafts as assisted decoding shows them: ever more columns of one tensor."""
    width = vocabulary.vocab_size
    prompt = tokenizer("Hello")["input_ids"]
    good = tokenizer("maybe123", add_special_tokens=False)["input_ids"]
    processor = LogitsProcessor(answer)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for taken, drafted in itertools.product(range(len(good)), [[7] * 40, [*good[:2], 9, 9], [EOS, 8, 8]]):
            candidates = torch.tensor([[*prompt, *good[:taken], *drafted]])
            for end in range(len(prompt) + taken, candidates.shape[1] + 1):
                masked = processor(candidates[:, :end], torch.zeros(1, width))
                if end == len(prompt) + taken:
                    matcher = answer.matcher()
                    matcher.accept_tokens(good[:taken])
                    bitmask = mw.allocate_token_bitmask(1, width)
                    matcher.fill_next_token_bitmask(bitmask)
                    bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:width]
                    assert torch.isfinite(masked[0]).tolist() == bits.astype(bool).tolist()


def test_rows_that_end_early_are_padded(texts, vocabulary):
    """Padding is no sign of a new generation, whichever token it is."""
    grammars = [mw.compile_regex(text, vocabulary) for text in ("a", "[ab]{9}", "ab")]
    for pad in (0, EOS, 7):
        found = texts(LogitsProcessor(grammars), ["x", "yy", "z a"], max_new_tokens=16, pad_token_id=pad)
        assert re.fullmatch("[ab]{9}", found[1])
        assert found[0].startswith("a")
        assert found[2].startswith("ab")


@pytest.mark.parametrize("seed", range(3))
def test_what_beams_of_an_ended_prompt_draw(write, tokenizer, vocabulary, seed):
    """Beam sampling goes on behind the ends of one prompt's beams with tokens that nothing allows, another one in each."""
    grammars = [mw.compile_choice(["a", "ab"], vocabulary), mw.compile_regex("[a-z]{12,16}", vocabulary)]
    prompts = [tokenizer(text)["input_ids"] for text in ("Q", "x")]
    options = {"num_beams": 3, "do_sample": True, "max_new_tokens": 24, "seed": seed}
    found = write(LogitsProcessor(grammars), prompts, **options)
    assert found == write(LogitsProcessor(grammars, prompt_length=len(prompts[0])), prompts, **options)
    assert re.fullmatch("[a-z]{12,16}", tokenizer.decode(found[1], skip_special_tokens=True))


def test_a_wrong_prompt_length_is_told(answer, vocabulary):
    processor = LogitsProcessor(answer, prompt_length=1)
    with pytest.warns(UserWarning, match="prompt_length"):
        processor(torch.tensor([[1, 7, 7]]), torch.zeros(1, vocabulary.vocab_size))


def test_weights_begin_with_each_generation(write, tokenizer, answer):
    recorder = WeightRecorder(answer)
    prompt = tokenizer("Q:")["input_ids"]
    for _ in range(3):
        options = {"do_sample": True, "top_k": 0}
        (row,) = write(recorder, [prompt], **options)
        fresh = WeightRecorder(answer)
        assert write(fresh, [prompt], **options) == [row]
        assert recorder.log_evidence == pytest.approx(fresh.log_evidence)
        prompt = [*prompt, *row, *tokenizer("\n", add_special_tokens=False)["input_ids"]]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_goes_on(answer, texts, copied):
    """Also in another process, where grammars lie at other places; with one grammar for several prompts, too."""
    for grammars, prompts in ((answer, ["Q"]), ([answer, answer], ["Q", "x"])):
        processor = LogitsProcessor(grammars)
        assert_answers(texts(processor, prompts))
        assert_answers(texts(copied(processor), prompts))
