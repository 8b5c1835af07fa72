"""Code as users write it, for type checkers (``test_typing.py``): it is read and never run.

``assert_type`` says what a value is.  A line with ``type: ignore`` must be an error: checkers complain where it is none.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, assert_type

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

import maskwright as mw
from maskwright.diffusion import (
    Canvas,
    Gap,
    MaskedDiffusionModel,
    Schedule,
    Step,
    frames,
    infill,
    infill_steps,
)
from maskwright.generation.results import Generation, RemovedMass, Usage
from maskwright.hf import LogitsProcessor
from maskwright.pages.film import film
from maskwright.sampling import CallableModel, GrammarConstraint, Posterior, Predicate, awrs, smc
from maskwright.search import SearchResult, Session, Strategy, Symbols, best_first


class Person(BaseModel):
    name: str
    age: int


@dataclass
class Place:
    city: str


class Weather(TypedDict):
    degrees: float


class Colour(enum.Enum):
    RED = "red"


def remind(person: Person, days: int = 7) -> str:
    return f"{person.name} in {days} days"


def youth(person: Person) -> float:
    return 1.0 / (1 + person.age)


# --- values


def values(gen: mw.Generator, schema: dict[str, Any], several: int) -> None:
    assert_type(gen("Ada", Person), Person)
    assert_type(gen("Ada", Person, max_new_tokens=60, temperature=0.7).age, int)
    assert_type(gen([{"role": "user", "content": "Ada"}], Place).city, str)
    assert_type(gen("It is warm", Weather)["degrees"], float)
    assert_type(gen("red", Colour), Colour)
    assert_type(gen("A number", int), int)
    assert_type(gen("People", list[Person]), list[Person])
    assert_type(gen("Ages", dict[str, int]), dict[str, int])
    assert_type(gen("Ada", Person, n=3, temperature=1.0), list[Person])
    assert_type(gen("Ada", Person, n=several, temperature=1.0), list[Person])
    assert_type(gen.batch(["Ada", "Alan"], Person), list[Person])
    assert_type(gen("Who?", mw.Regex(r"\d+")), str)
    assert_type(gen("Who?", mw.Choice(["Ada", "Alan"])), str)
    assert_type(gen("Who?", mw.Regex("a") | mw.Choice(["b"])), str)
    assert_type(gen.batch(["1"], mw.GBNF('root ::= "a"')), list[str])
    call = gen("In a week", remind)
    assert_type(call, functools.partial[str])
    assert_type(call(), str)
    # What no checker knows is any value.
    assert_type(gen("Ada", schema), Any)
    assert_type(gen("Ada", mw.JsonSchema(schema)), Any)
    assert_type(gen.batch(["Ada", "1"], [Person, int]), list[Any])
    print(gen("Ada", Person).nobody)  # type: ignore
    gen(36, Person)  # type: ignore


def results(gen: mw.Generator) -> None:
    (result,) = gen.generate(["Ada"], Person)
    assert_type(result, Generation[Person])
    assert_type(result.value, Person)
    assert_type(result.usage, Usage)
    assert_type(result.removed_mass, RemovedMass)
    assert_type(result.removed_mass.total, float)
    assert_type(result.finish_reason, Literal["stop", "budget"])
    kept: list[Generation] = [result]
    for place, found in gen.as_completed([("Ada", Person, {}), ("1", int, {})]):
        assert_type(place, int)
        if isinstance(found, Exception):
            raise found
        kept += found
    parts: Iterator[Any] = gen.stream("Ada", Person)
    print([*parts], kept)
    best = gen.search("Ada", Person, Strategy("mcts", max_tokens=10), youth)
    assert_type(best, Person | None)


async def waiting(gen: mw.Generator) -> None:
    assert_type(await gen.acall("Ada", Person), Person)
    assert_type(await gen.acall("Ada", Person, n=2, temperature=1.0), list[Person])
    assert_type(await gen.acall("Soon", remind), functools.partial[str])
    parts: AsyncIterator[Any] = gen.astream("Ada", Person)
    async for part in parts:
        print(part)
    grammar = await mw.acompile(mw.Regex("a"), gen.vocabulary)
    assert_type(grammar, mw.CompiledGrammar)


# --- a loop of one's own


def loop(tokens: list[bytes]) -> list[int]:
    vocabulary = mw.Vocabulary.from_bytes(tokens, eos_ids=[0])
    grammar = mw.compile(Person, vocabulary)
    matcher = grammar.matcher(max_rollback=4)
    assert_type(matcher, mw.Matcher)
    bitmask = mw.allocate_token_bitmask(1, vocabulary.vocab_size)
    ids: list[int] = []
    while not matcher.is_terminated:
        matcher.fill_next_token_bitmask(bitmask)
        logits: npt.NDArray[np.float32] = np.zeros((1, vocabulary.vocab_size), dtype=np.float32)
        mw.apply_token_bitmask_inplace(logits, bitmask)
        token = int(logits[0].argmax())
        assert_type(matcher.accept_token(token), bool)
        ids.append(token)
        if len(ids) > 100:
            matcher.rollback(1)
            assert_type(matcher.shortest_completion(), list[int])
            break
    assert_type(matcher.fork().validate_tokens(ids), int)
    assert_type(matcher.captures(), dict[str, bytes | list[bytes]])
    matcher.accept_token("a")  # type: ignore
    matcher.nothing()  # type: ignore
    mw.compile_regex("a", vocabulary, flavour="perl")  # type: ignore
    return ids


def errors(vocabulary: mw.Vocabulary) -> str:
    try:
        mw.compile_json_schema({"type": "object"}, vocabulary, limits=mw.Limits(max_seconds=1.0))
    except mw.UnsupportedSchemaError as error:
        return "".join(refusal.keyword for refusal in error.refusals)
    except mw.GrammarError as error:
        return f"{error.place}: {error.message}"
    except mw.LimitError as error:
        return f"{error.limit}: {error.given}"
    report = mw.check_grammar(mw.Lark('start: "a"'))
    return "\n".join(f"{finding.place}: {finding.message}" for finding in report.findings if not report.ok)


# --- sampling, search, infilling


def sampling(grammar: mw.CompiledGrammar) -> None:
    def scores(prefixes: list[list[int]]) -> Any:
        return np.zeros((len(prefixes), 7))

    model = CallableModel(scores, 7, eos_id=6)
    constraint = GrammarConstraint(grammar) * Predicate(lambda ids: len(ids) < 4)
    post = smc(model, constraint, n_particles=8, reward=lambda ids: 1.0, seed=0)
    assert_type(post, Posterior)
    assert_type(post.log_evidence, float)
    assert_type(post.expect(lambda ids: float(len(ids))), float | None)
    post.plot("run.html", decode=lambda ids: str(ids))
    found = best_first(model, constraint, n=2)
    assert_type(found, SearchResult)
    session = Session(model, grammar, symbols=["a"])
    session.forward("a")
    print([text.upper() for text in session.view("a")], Symbols(grammar, ["a"]))
    token, log_weight = awrs(np.zeros(3), lambda token: token > 0, rng=0)
    print(token, log_weight)


class Model(MaskedDiffusionModel):
    mask_id = 257
    eos_ids = (256,)

    def logits(self, canvas: list[int]) -> npt.NDArray[np.float32]:
        return np.zeros((len(canvas), 258), dtype=np.float32)


def infilling(grammar: mw.CompiledGrammar) -> str:
    tokens = infill(Model(), grammar, ["a", None, Gap(1, 2)], schedule=Schedule(steps=2))
    assert_type(tokens, list[int])
    canvas = Canvas(grammar, [None] * 4)
    assert_type(canvas.try_commit(0, 97), bool)
    steps: Iterator[Step] = infill_steps(Model(), grammar, [None])
    return film(frames(steps, grammar.vocabulary))


def processor(grammar: mw.CompiledGrammar) -> LogitsProcessor:
    return LogitsProcessor([grammar, grammar])
