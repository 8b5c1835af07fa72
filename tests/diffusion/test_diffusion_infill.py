"""Infilling: always in the language and as long as the canvas, whatever the model does."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np
import pytest
from toys import compile_ir, grammar, piece_vocabulary, term

import maskwright as mw
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion import (
    OPEN,
    Canvas,
    Gap,
    MaskedDiffusionModel,
    Schedule,
    infill,
    infill_smc,
    infill_steps,
)
from maskwright.diffusion.schedule import transfer_counts
from maskwright.errors import CanvasError, ModelError, UnsatisfiableError, VocabularyError
from maskwright.ir.grammar import Choice, Ref, Seq
from maskwright.regular.expressions import ANY_CHAR, one_of, repeat

SENTENCES = [b'{"name": "ab", "tags": ["a", "b"], "n": 12}', b"[1, 2, [3]]", b'"abc"', b"((a)(b))", b"abcab"]
VOCABULARY = piece_vocabulary(3, SENTENCES, 120)
MASK = VOCABULARY.special_ids[0]
ENDS = list(VOCABULARY.eos_ids)

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "n": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["name", "n"],
    "additionalProperties": False,
}
TREE = {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}
OPEN_OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "minProperties": 2}


def expressions() -> CompiledGrammar:
    """Sums of letters and parentheses, left recursive and ambiguous."""
    made = grammar(
        Choice((Seq((Ref(0), term("+"), Ref(0))), Ref(1))),
        Choice((Seq((term("("), Ref(0), term(")"))), term(repeat(one_of("ab"), 1, None), "[ab]+"))),
    )
    return CompiledGrammar(compile_ir(made, VOCABULARY), VOCABULARY)


GRAMMARS = {
    "person": lambda: mw.compile_json_schema(PERSON, VOCABULARY),
    "tree": lambda: mw.compile_json_schema(TREE, VOCABULARY),
    "open object": lambda: mw.compile_json_schema(OPEN_OBJECT, VOCABULARY),
    "expressions": expressions,
}


class Random(MaskedDiffusionModel):
    """Logits that follow no rule; a kind of trouble each."""

    mask_id = MASK
    eos_ids = ENDS

    def __init__(self, trouble: str, seed: int = 0, size: int = VOCABULARY.vocab_size) -> None:
        self.trouble = trouble
        self.rng = np.random.default_rng(seed)
        self.size = size
        self.calls = 0

    def logits(self, canvas: list[int]) -> Any:
        self.calls += 1
        out = self.rng.normal(size=(len(canvas), self.size)).astype(np.float32)
        if self.trouble == "mask":
            out[:, MASK] = 50
        elif self.trouble == "end":
            out[:, ENDS[-1]] = 50
        elif self.trouble == "spaces":
            out[:, [i for i, data in enumerate(VOCABULARY.tokens) if data.isspace()]] = 50
        elif self.trouble == "minus infinity":
            out[:, np.arange(self.size) % 7 > 0] = -np.inf
        elif self.trouble == "flat":
            out[:] = 0
        elif self.trouble == "some ends":
            out[:, ENDS[0]] += 3
        elif self.trouble == "peaked":
            out *= 1e6
        elif self.trouble == "hash":
            out = np.random.default_rng(hash(tuple(canvas)) % 2**32).normal(size=out.shape)
        return out


def text_of(ids: list[int]) -> bytes:
    end = next((i for i, token in enumerate(ids) if token in ENDS), len(ids))
    assert all(token in ENDS for token in ids[end:]), "text behind the end"
    return VOCABULARY.decode(ids[:end])


def is_valid(compiled: CompiledGrammar, ids: list[int]) -> bool:
    matcher = compiled.matcher()
    text = text_of(ids)
    return (not text or matcher.accept_bytes(text)) and matcher.is_accepting


SCHEDULES = [
    Schedule(),
    Schedule(steps=3),
    Schedule(steps=1),
    Schedule(steps=6, block=4, temperature=1.0),
    Schedule(block=1, score="margin"),
    Schedule(steps=5, score="random", temperature=0.3),
    Schedule(steps=8, score="left_to_right"),
    Schedule(threshold=0.01, score="entropy"),
    Schedule(steps=9, remask=2),
]
TROUBLES = ["none", "mask", "end", "spaces", "minus infinity", "flat", "peaked", "hash"]


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_every_result_is_in_the_language(name: str, trouble: str) -> None:
    compiled = GRAMMARS[name]()
    for number, schedule in enumerate(SCHEDULES):
        for budget in (0, 2000):
            canvas = [MASK] * (18 if name in ("person", "open object") else 9)
            model = Random(trouble, number)
            ids = infill(model, compiled, canvas, schedule=schedule, search_budget=budget, seed=number)
            assert len(ids) == len(canvas)
            assert is_valid(compiled, ids), (schedule, budget, text_of(ids))


@pytest.mark.parametrize("kind", ["uniform", "editing"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_models_without_a_mask_and_models_that_edit(kind: Any, name: str) -> None:
    class Other(Random):
        pass

    Other.kind = kind
    if kind == "uniform":
        Other.mask_id = None
    compiled = GRAMMARS[name]()
    for seed in range(4):
        schedule = Schedule(steps=4, edit_threshold=0.02 if kind == "editing" else 0.9)
        ids = infill(Other("none", seed), compiled, [None] * 18, schedule=schedule, seed=seed)
        assert len(ids) == 18 and is_valid(compiled, ids)


def shortest(compiled: CompiledGrammar) -> int:
    """The fewest tokens of a text, by trying."""
    sets = Canvas(compiled, [None] * 40).sets
    state, count = sets.start, 0
    while not sets.is_accepting(state):
        state, count = sets.any(state), count + 1
    return count


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("ends", [True, False])
def test_the_shortest_canvas_is_filled_and_a_shorter_one_refused(name: str, ends: bool) -> None:
    compiled = GRAMMARS[name]()
    least = shortest(compiled)
    model = Random("none")
    model.eos_ids = ENDS if ends else []
    for budget in (0, 2000):
        assert len(infill(model, compiled, [MASK] * least, search_budget=budget)) == least
    model.calls = 0
    if least > 1:
        with pytest.raises(UnsatisfiableError):
            infill(model, compiled, [MASK] * (least - 1))
    assert model.calls == 0


def test_fixed_text_and_gaps() -> None:
    compiled = GRAMMARS["person"]()
    canvas = ['{"name": "', Gap(1, 5), '", "n": 1', Gap(0, 4), MASK, MASK]
    seen = set()
    for seed in range(6):
        ids = infill(
            Random("some ends", seed), compiled, canvas, seed=seed, schedule=Schedule(temperature=1.0)
        )
        text = text_of(ids)
        assert is_valid(compiled, ids) and text.startswith(b'{"name": "') and b'", "n": 1' in text
        assert len(ids) <= len(Canvas(compiled, canvas, mask_id=MASK))
        seen.add(len(ids))
    assert len(seen) > 1, "gaps have one length only"


def test_steps_report_what_happens() -> None:
    steps = list(infill_steps(Random("none"), GRAMMARS["person"](), [MASK] * 20, schedule=Schedule(steps=5)))
    assert [step.number for step in steps] == list(range(len(steps)))
    assert steps[0].tokens == [OPEN] * 20 and OPEN not in steps[-1].tokens
    for before, after in itertools.pairwise(steps):
        assert all(after.tokens[i] == token for i, token in enumerate(before.tokens) if token != OPEN)
        assert all(after.tokens[i] != OPEN for i in after.taken)


def llada(
    model: MaskedDiffusionModel, slots: int, steps: int, temperature: float, seed: int, no_text: list[int]
) -> list[int]:
    """LLaDA's loop as published, in numpy: no constraint anywhere."""
    rng = np.random.default_rng(seed)
    x = np.full(slots, MASK)
    counts = transfer_counts(slots, steps)
    for count in counts:
        logits = np.asarray(model.logits(x.tolist()), dtype=np.float32)
        # As every user of a real vocabulary has to: ids that are no text are never put down.
        logits[:, no_text] = -np.inf
        if temperature == 0:
            x0 = logits.argmax(axis=-1)
        else:
            noise = -np.log(rng.random(logits.shape))
            x0 = (logits.astype(np.float64) - temperature * np.log(noise)).argmax(axis=-1)
        probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probs /= probs.sum(axis=-1, keepdims=True)
        confidence = np.where(x == MASK, probs[np.arange(slots), x0], -np.inf)
        chosen = np.argsort(-confidence, kind="stable")[:count]
        x[chosen] = x0[chosen]
    return x.tolist()


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_grammar_of_all_texts_leaves_the_loop_as_it_is(temperature: float) -> None:
    everything = grammar(term(repeat(ANY_CHAR, 1, None), "everything"))
    # Tokens that are characters by themselves: every sequence of them is a text.
    texts = mw.Vocabulary.from_bytes(
        [data if data.isascii() else None for data in VOCABULARY.tokens], eos_ids=ENDS, special_ids=[MASK]
    )
    no_text = [i for i, data in enumerate(texts.tokens) if not data]
    compiled = CompiledGrammar(compile_ir(everything, texts), texts)

    class Hash(Random):
        eos_ids = ()
        mask_id = MASK

        def logits(self, canvas: list[int]) -> Any:
            seed = int.from_bytes(np.array(canvas).tobytes()[::8], "little") % 2**32
            return np.random.default_rng(seed).normal(size=(len(canvas), texts.vocab_size)).astype(np.float32)

    for seed in range(5):
        model = Hash("none")
        expected = llada(model, 24, 7, temperature, seed, no_text)
        got = infill(
            model, compiled, [MASK] * 24, schedule=Schedule(steps=7, temperature=temperature), seed=seed
        )
        assert got == expected


def test_unconstrained_output_that_is_valid_stays() -> None:
    """No interference: when greedy decoding is valid by itself, the constraint changes nothing."""
    compiled = GRAMMARS["person"]()
    witness = Canvas(compiled, [None] * 24).witness()

    class Sure(Random):
        def logits(self, canvas: list[int]) -> Any:
            out = self.rng.normal(size=(len(canvas), self.size)).astype(np.float32)
            out[np.arange(len(canvas)), witness] += 10
            return out

    for seed in range(5):
        assert infill(Sure("none", seed), compiled, [MASK] * 24, schedule=Schedule(steps=6)) == witness


# --- bad input


@pytest.mark.parametrize(
    ("canvas", "error", "message"),
    [
        ([], CanvasError, "no slot"),
        ("abc", CanvasError, "expected a list"),
        (7, CanvasError, "expected a list"),
        ([1.5], CanvasError, r"canvas\[0\]: expected a token id"),
        ([True], CanvasError, r"canvas\[0\]: expected a token id"),
        ([VOCABULARY.vocab_size], CanvasError, "outside the vocabulary"),
        ([-3], CanvasError, "outside the vocabulary"),
        ([MASK, VOCABULARY.vocab_size - 1], CanvasError, "neither text"),
        (["no json", MASK], UnsatisfiableError, "slot 0"),
        ([MASK] * 2, UnsatisfiableError, "too few or too many"),
        ([ENDS[0], *[MASK] * 30, "}"], UnsatisfiableError, "holds an end token"),
        ([MASK] * 70_000, CanvasError, "at most 65536"),
    ],
)
def test_bad_canvases_are_refused_before_the_model_is_asked(
    canvas: Any, error: type[Exception], message: str
) -> None:
    model = Random("none")
    with pytest.raises(error, match=message):
        infill(model, GRAMMARS["person"](), canvas)
    assert model.calls == 0


def test_a_canvas_without_open_slots_is_checked() -> None:
    compiled = GRAMMARS["person"]()
    text = '{"name": "ab", "n": 12}'
    model = Random("none")
    assert text_of(infill(model, compiled, [text])) == text.encode()
    assert model.calls == 0
    with pytest.raises(UnsatisfiableError):
        infill(model, compiled, ['{"name": "ab"}'])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mask_id": None}, "mask_id"),
        ({"mask_id": VOCABULARY.vocab_size}, "mask_id"),
        ({"mask_id": ENDS[0]}, "end token"),
        ({"eos_ids": [-1]}, "eos_ids"),
        ({"kind": "other"}, "kind"),
        ({"forbidden_ids": ["a"]}, "forbidden_ids"),
    ],
)
def test_bad_models_are_refused(change: dict[str, Any], message: str) -> None:
    model = Random("none")
    for name, value in change.items():
        setattr(model, name, value)
    with pytest.raises(CanvasError, match=message):
        infill(model, GRAMMARS["person"](), [None] * 20)
    assert model.calls == 0


def test_an_end_id_that_is_text_is_refused() -> None:
    model = Random("none")
    model.eos_ids = [next(i for i, data in enumerate(VOCABULARY.tokens) if data)]
    with pytest.raises(VocabularyError, match="eos_ids"):
        infill(model, GRAMMARS["person"](), [None] * 20)


@pytest.mark.parametrize(
    "answer",
    [np.zeros((3, VOCABULARY.vocab_size)), np.zeros((20, 5)), np.zeros(7), "text", [["a"] * 20], None],
)
def test_logits_of_a_wrong_shape_are_refused(answer: Any) -> None:
    class Wrong(Random):
        def logits(self, canvas: list[int]) -> Any:
            return answer

    with pytest.raises(CanvasError, match="logits: expected"):
        infill(Wrong("none"), GRAMMARS["person"](), [MASK] * 20)


@pytest.mark.parametrize(
    ("value", "where", "message"),
    [
        (np.nan, (slice(None), slice(None)), "row 0 of 20 has NaN"),
        (np.nan, (3, 7), "row 3 of 20 has NaN"),
        (np.inf, (3, 7), "row 3 of 20 has plus infinity"),
        (-np.inf, (19, slice(None)), "row 19 of 20 has no finite logit"),
    ],
)
def test_logits_that_say_nothing_are_refused(value: float, where: Any, message: str) -> None:
    """By the loop, by one that asks ahead, by particles and by models without a mask."""

    class Wrong(Random):
        def logits(self, canvas: list[int]) -> Any:
            out = np.zeros((len(canvas), self.size))
            out[where] = value
            return out

    class Uniform(Wrong):
        kind, mask_id = "uniform", None

    for fill in (
        lambda: infill(Wrong("none"), GRAMMARS["person"](), [MASK] * 20),
        lambda: infill(Wrong("none"), GRAMMARS["person"](), [MASK] * 20, schedule=Schedule(ahead=2)),
        lambda: infill(Uniform("none"), GRAMMARS["person"](), [None] * 20),
        lambda: infill_smc(Wrong("none"), GRAMMARS["person"](), [MASK] * 20, 2),
    ):
        with pytest.raises(ModelError, match=message):
            fill()


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 0}, {"block": -1}, {"score": "best"}, {"temperature": -1}, {"temperature": float("nan")},
        {"temperature": float("inf")}, {"remask": -1}, {"steps": 1.5},
    ],
)  # fmt: skip
def test_bad_schedules_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(CanvasError):
        Schedule(**options)


@pytest.mark.parametrize("bounds", [(2, 1), (-1, 2), (0.5, 1), (True, 2)])
def test_bad_gaps_are_refused(bounds: tuple[Any, Any]) -> None:
    with pytest.raises(CanvasError):
        Gap(*bounds)


def test_unknown_criteria_are_refused() -> None:
    with pytest.raises(CanvasError, match="criterion"):
        infill(Random("none"), GRAMMARS["person"](), [MASK] * 20, criterion="best")


def test_baselines_run_and_may_fail() -> None:
    compiled = GRAMMARS["person"]()
    valid = {"none": 0, "prefix": 0, "gaps": 0}
    for criterion in valid:
        for seed in range(3):
            ids = infill(
                Random("none", seed), compiled, [MASK] * 20, criterion=criterion, schedule=Schedule(steps=10)
            )
            assert len(ids) == 20
            with contextlib.suppress(AssertionError):
                valid[criterion] += is_valid(compiled, ids)
    assert valid["none"] == 0


AB = mw.Vocabulary.from_bytes([b"a", b"b", b"", b""], eos_ids=[2])


class Wants(MaskedDiffusionModel):
    """Prefers some ids, the first one most, in every slot."""

    mask_id: int | None = 3
    eos_ids = (2,)

    def __init__(self, *ids: int, size: int = 4) -> None:
        self.ids = ids
        self.size = size
        self.calls = 0

    def logits(self, canvas: list[int]) -> Any:
        self.calls += 1
        out = np.zeros((len(canvas), self.size), dtype=np.float32)
        for place, token in enumerate(self.ids):
            out[:, token] = 9 - place
        return out


def test_a_gap_and_a_model_without_a_mask() -> None:
    model = Wants(2, 0)
    model.kind, model.mask_id = "uniform", None
    assert infill(model, mw.compile_regex("a{1,5}b", AB), ["a", Gap(0, 4), "b"], seed=1) == [0, 1]
    model = Wants(0)
    model.kind, model.mask_id = "uniform", None
    for criterion in ("exact", "none"):
        found = infill(model, mw.compile_regex("(aaa)?b", AB), [Gap(0, 4), "b"], criterion=criterion, seed=1)
        assert found == ([0, 0, 0, 1] if criterion == "exact" else [0, 0, 0, 0, 1])


BYTES = mw.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"", b""], eos_ids=[256])


def byte_model(*ids: int, forbidden: str = "", mask: int = 257) -> Wants:
    model = Wants(*ids, size=BYTES.vocab_size)
    model.eos_ids, model.mask_id, model.forbidden_ids = (256,), mask, list(forbidden.encode())
    return model


@pytest.mark.parametrize("budget", [0, 2000])
def test_forbidden_ids_are_never_put_down(budget: int) -> None:
    grammar = mw.compile_regex("[xy]{3}", BYTES)
    for model in (byte_model(ord("a"), forbidden="x"), byte_model(ord("a"), ord("x"), mask=ord("x"))):
        assert infill(model, grammar, [None] * 3, search_budget=budget) == list(b"yyy")
        model.calls = 0
        with pytest.raises(UnsatisfiableError):
            infill(model, mw.compile_regex("x", BYTES), [None])
        assert model.calls == 0
    uniform = byte_model(ord("a"), forbidden="x")
    uniform.kind, uniform.mask_id = "uniform", None
    assert infill(uniform, grammar, [None] * 3, search_budget=budget) == list(b"yyy")
    # What is fixed may hold them.
    found = infill(byte_model(ord("x"), forbidden="x"), grammar, ["x", None, "x"], search_budget=budget)
    assert found == list(b"xyx")


def test_an_end_that_is_forbidden_is_none() -> None:
    model = byte_model(256, ord("a"))
    model.forbidden_ids = [256]
    assert infill(model, mw.compile_regex("a*", BYTES), [None] * 3) == list(b"aaa")


@pytest.mark.slow
def test_forbidden_ids_in_random_loops() -> None:
    compiled = GRAMMARS["person"]()
    forbidden = [i for i, data in enumerate(VOCABULARY.tokens) if data and i % 7 == 3]
    for seed, schedule in enumerate(SCHEDULES):
        for trouble in ("infinite", "spaces"):
            model = Random(trouble, seed)
            model.forbidden_ids = [*forbidden, ENDS[0]]
            ids = infill(model, compiled, [MASK] * 18, schedule=schedule, seed=seed)
            assert is_valid(compiled, ids)
            assert not set(ids) & set(model.forbidden_ids)
