"""Several candidates for one output: guided rows compute what the definition says, and the model's own likelihood chooses.

The oracle recomputes every pass from nothing, without caches, batches, guesses and forced text.
"""

from __future__ import annotations

import json

import jsonschema
import pytest

torch = pytest.importorskip("torch", reason="the generator runs transformers models")
transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")
pytest.importorskip("pydantic", reason="Python types are read through pydantic")

from test_generation import PEOPLE, PROMPTS, llama  # noqa: E402
from tiny_model import TINY  # noqa: E402

import maskwright as mw  # noqa: E402
from maskwright.generation import candidates  # noqa: E402
from maskwright.generation.batch import Batch  # noqa: E402
from maskwright.generation.candidates import Plan, plans, posterior, whole_logprob  # noqa: E402
from maskwright.generation.chooser import Chooser  # noqa: E402
from maskwright.generation.guidance import Guide, GuidedRows  # noqa: E402
from maskwright.generation.key_values import KeyValueRows, Prefixes  # noqa: E402
from maskwright.generation.options import GenerationOptions  # noqa: E402

MODEL = llama

TEMPLATE = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"


def generator(model, tokenizer):
    return mw.Generator(model, tokenizer, format_prompt=lambda prompt, schema: f"<{prompt}>")


def logits_behind(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].float()


def guided_by_hand(model, grammar, prompt, guide, room):
    """Greedy guided decoding, one pass from nothing for each token."""
    matcher, ids = grammar.matcher(), []
    while len(ids) < room:
        logits = logits_behind(model, prompt + ids)
        if guide is not None:
            contrast = logits_behind(model, guide.prompt + ids)
            logits = contrast + guide.strength * (logits - contrast)
        words = matcher.fill_next_token_bitmask
        mask = mw.allocate_token_bitmask(1, grammar.vocabulary.vocab_size)
        words(mask, 0)
        row = logits[None].clone()
        mw.apply_token_bitmask_inplace(row, mask)
        token = int(row[0].argmax())
        assert matcher.accept_token(token)
        if matcher.is_terminated:
            break
        ids.append(token)
    return ids


@pytest.mark.parametrize("prompt", PROMPTS)
def test_guided_rows_write_what_the_definition_says(model, tokenizer, prompt):
    """Also where rows of several strengths and prompts run together, and end at different times."""
    gen = generator(model, tokenizer)
    source = mw.Regex("[a-f]{3,9}(x[0-9]{1,4}|y[a-z]{2,7})!")
    (job,) = gen._jobs([prompt], [source], GenerationOptions(particles=3, max_new_tokens=60))
    others = [tokenizer.encode(text) for text in ("<>", "A longer one, of other words")]
    guides = [
        None,
        Guide(others[0], 1.5),
        Guide(others[1], 2.0),
        Guide(others[0], 1.0),
        Guide(others[1], 4.0),
    ]
    rows = [gen._row(job, GenerationOptions(max_new_tokens=60), Chooser()) for _ in guides]
    guided = GuidedRows(KeyValueRows(model, Prefixes()), guides)
    for _ in gen._run(rows, Batch(guided, len(rows))):
        pass
    expected = [guided_by_hand(model, job.grammar, job.prompt, guide, 60) for guide in guides]
    decode = gen.vocabulary.decode
    assert [row.text for row in rows] == [decode(ids) for ids in expected]
    assert expected[3] == expected[0]  # a strength of 1 is the model itself
    assert len({decode(ids) for ids in expected}) > 1
    assert guided.passes < sum(map(len, expected))


def test_tokens_that_a_prompt_rules_out():
    from maskwright.generation.guidance import _guided

    inf = float("inf")
    own = torch.tensor([[1.0, -inf, 2.0, -inf]])
    contrast = torch.tensor([[3.0, 1.0, -inf, -inf]])
    assert _guided(own, contrast, 2.0).tolist() == [[-1.0, -inf, 2.0, -inf]]


@pytest.mark.slow
def test_the_likeliest_whole_text_is_chosen(model, tokenizer):
    gen = generator(model, tokenizer)
    for prompt in PROMPTS:
        result = gen.generate([prompt], PEOPLE, particles=8, seed=3, max_new_tokens=120)[0]
        jsonschema.validate(result.value, PEOPLE)
        ids = gen._prompter.ids(prompt, None, lambda: PEOPLE)

        def by_hand(tokens, ids=ids):
            total = 0.0
            for at, token in enumerate([*tokens, 2]):
                total += float(logits_behind(model, ids + tokens[:at]).log_softmax(-1)[token])
            return total

        rows = KeyValueRows(model, Prefixes())
        found = whole_logprob(rows, ids, result.token_ids, gen.vocabulary.eos_ids)
        assert found == pytest.approx(by_hand(result.token_ids), abs=1e-3) and not len(rows)
        greedy = gen.generate([prompt], PEOPLE, max_new_tokens=120)[0]
        assert by_hand(result.token_ids) >= by_hand(greedy.token_ids) - 1e-3
        assert next(iter(result.posterior)) == result.text and len(result.posterior) > 1
        for text in result.posterior:
            jsonschema.validate(json.loads(text), PEOPLE)


def test_shares_of_the_posterior():
    assert posterior({"a": -1.0, "b": -1.0}) == {"a": 0.5, "b": 0.5}
    shares = posterior({"a": -1000.0, "b": -1000.25})
    assert shares["a"] / shares["b"] == pytest.approx(2.718281828)


def test_plans():
    assert plans(1, [[1], [2]]) == [Plan(None, False)]
    assert plans(3, []) == [Plan(None, False), Plan(None, True), Plan(None, True)]
    eight = plans(8, [[1], [2]])
    assert len({(str(p.guide), p.drawn) for p in eight}) > 5 and eight[0] == Plan(None, False)
    assert len(plans(40, [[1]])) == 40
    assert candidates._STRENGTHS[0] > 1


def test_contrast_prompts(model, tokenizer):
    gen = generator(model, tokenizer)
    said = gen._prompter

    def texts(prompt, prompter=said):
        return [
            tokenizer.decode(ids).removeprefix("<|bos|>") for ids in prompter.contrasts(prompt, None, dict)
        ]

    assert texts("Extract.\n\nAda is 36.") == ["<Extract.>", "<>"]
    assert texts("Extract.\nAda is 36.\n") == ["<Extract.>", "<>"]
    assert texts("Ada") == ["<>"]
    plain = mw.Generator(model, tokenizer)._prompter
    assert texts("Ada is 36.\nJSON:", plain) == ["JSON:", ""]
    assert texts("Ada", plain) == [""]  # the token that begins every text is left
    chat = mw.Generator(model, transformers.AutoTokenizer.from_pretrained(TINY))
    chat.tokenizer.chat_template = TEMPLATE
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?\n\nAda."}]
    begun = [*asked, {"role": "assistant", "content": "Sure"}]
    kept = [{"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "Yes?"}]
    assert texts(asked, chat._prompter) == [
        "<system>Be brief.<user>Who?<assistant>",
        "<system>Be brief.<user><assistant>",
    ]
    assert texts(begun, chat._prompter)[1].startswith("<system>Be brief.<user><assistant>Sure")
    assert texts(kept, chat._prompter) == []
    chat.tokenizer.chat_template = (
        "{% if not messages[-1]['content'] %}{{ raise_exception('empty') }}{% endif %}" + TEMPLATE
    )
    assert texts(asked, chat._prompter) == ["<system>Be brief.<user>Who?<assistant>"]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"sliding_window": 8}, {}])
def test_models_whose_rows_run_in_step(tokenizer, options, monkeypatch):
    """Where rows cannot be joined there is no guidance, and candidates are drawn."""
    if not options:
        monkeypatch.setattr("maskwright.generation.key_values._is_plain", lambda cache: False)
        odd = llama(tokenizer)
    else:
        torch.manual_seed(0)
        sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = transformers.MistralConfig(
            vocab_size=len(tokenizer),
            eos_token_id=2,
            num_key_value_heads=2,
            initializer_range=0.3,
            **sizes,
            **options,
        )
        odd = transformers.MistralForCausalLM(config).double().eval()
    result = generator(odd, tokenizer).generate(["Two."], PEOPLE, particles=4, seed=1, max_new_tokens=120)[0]
    jsonschema.validate(result.value, PEOPLE)
    assert sum(result.posterior.values()) == pytest.approx(1)
