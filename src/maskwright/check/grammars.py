"""The grammar validator.

    outline.py    rules: what is unreachable, derives nothing, or derives itself
    terminals.py  terminals that take each other's texts
    blowup.py     terminals whose automata blow up
    lark.py, gbnf.py  what each language adds: names, places
    texts.py      where a text leaves a grammar, and what was expected there
    sentences.py  random sentences

The checks look at what the author wrote; whether a grammar compiles is asked of the compiler, over single bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from operator import index
from typing import Any

import numpy as np

from maskwright.base.arguments import check_limits
from maskwright.base.collection import rare_collection
from maskwright.base.deadline import deadline, in_time, let_go
from maskwright.check.alphabet import compiled_for_bytes
from maskwright.check.blowup import BLOWUP_CODE, blowup
from maskwright.check.gbnf import check_gbnf, check_lexemes
from maskwright.check.json_schema.report import check_json_schema
from maskwright.check.lark import check_lark
from maskwright.check.outline import BLANKS_MESSAGE, finding_of, located, repeats_blanks
from maskwright.check.report import Finding, Report
from maskwright.compiling.compiler import CompiledGrammar, job_of
from maskwright.errors import (
    GrammarError,
    MaskwrightError,
    no_recursion,
)
from maskwright.frontends import structural_tag
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.parts import (
    choice_part,
    gbnf_part,
    inline_schema_part,
    json_schema_part,
    lark_part,
    regex_part,
)
from maskwright.frontends.regex import flag_letters
from maskwright.ir.grammar import Grammar
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import parse_regex
from maskwright.regular.expressions import postorder
from maskwright.sources import EXPRESSIONS, GBNF, Choice, JsonSchema, Lark, Regex, StructuralTag

_SETS = 256
"""Of the options of a choice, by hash."""


def check_grammar(source: Any, *, limits: Limits = DEFAULT_LIMITS) -> Report:
    """Every problem of a source (``Lark``, ``GBNF``, ``Regex``, ``Choice``, ``StructuralTag``, ``JsonSchema``, or an expression
    over such, of which it is said whether it compiles), with its place: ``line:column``, or a JSON pointer.  No vocabulary is needed.

    Errors: what does not compile (syntax, undefined names, no text at all, limits).  Warnings: what was hardly meant:
    unreachable rules, unused terminals, rules that derive nothing, rules that derive themselves, terminals that others
    shadow, choices listed twice.  Hints: unbounded white space, reserved words, hidden left recursion and the like.
    Raises ``GrammarError`` for what is no source, and for limits that are none.
    """
    check_limits(limits)
    if isinstance(source, JsonSchema):
        options = SchemaOptions(**{f.name: getattr(source, f.name) for f in fields(SchemaOptions)})
        return check_json_schema(source.schema, options, limits)
    if isinstance(source, Choice):
        source = _listed(source)
    elif not isinstance(source, (Lark, GBNF, Regex, StructuralTag, *EXPRESSIONS)):
        raise _no_grammar(source)
    report = Report()
    try:
        with rare_collection(), deadline(limits.max_seconds):
            with no_recursion():
                report, make = _checked(source, limits)
            if report.ok and not _is_of_tokens(source):
                _check_compiled(source, make(), report, limits)
    except MaskwrightError as error:
        report.findings.append(finding_of(error))
    return report


def _check_compiled(source: Any, grammar: Grammar, report: Report, limits: Limits) -> None:
    try:
        _check_clashes(grammar, compiled_for_bytes(grammar, limits), report)
        if isinstance(source, GBNF):
            check_lexemes(source, grammar, report, limits)
    finally:
        let_go(grammar.rules)


def _listed(source: Choice) -> Choice:
    if not isinstance(source.options, Iterable) or isinstance(source.options, (str, bytes)):
        raise GrammarError("a choice has several options: pass a list")
    return Choice(list(source.options))


def _is_of_tokens(source: Any) -> bool:
    """Whether a source is a choice of token sequences, which are no texts."""
    return (
        isinstance(source, Choice)
        and len(source.options) > 0
        and not any(isinstance(option, (str, bytes)) for option in source.options)
    )


def _check_clashes(grammar: Grammar, compiled: CompiledGrammar, report: Report) -> None:
    names = grammar.lexing.names if grammar.lexing is not None else ()
    for before, behind in compiled._core.clashes:
        if 0 <= before < len(names) and 0 <= behind < len(names):
            message = (
                f"{names[before]} directly before {names[behind]} can be read as something else, because the longest "
                "match counts: ignore some white space, or separate them"
            )
            report.hints.append(Finding("note", "terminal-clash", "1:1", message))


def _checked(source: Any, limits: Limits) -> tuple[Report, Callable[[], Grammar]]:
    """What can be said before it is compiled, and what makes the intermediate representation."""
    text = (
        source.text
        if isinstance(source, (Lark, GBNF))
        else source.pattern
        if isinstance(source, Regex)
        else ""
    )
    if not isinstance(text, str):
        raise GrammarError(f"a grammar is a str, not {type(text).__name__}")
    if isinstance(source, Lark):
        report, reading = check_lark(source, limits)
        if reading is None:
            return report, partial(to_grammar, source, limits)
        return report, partial(reading.grammar, source.lexer, source.indentation, inline_schema_part(limits))
    if isinstance(source, GBNF):
        report = check_gbnf(source, limits)
    elif isinstance(source, Regex):
        report = _check_regex(source, limits)
    else:
        report = _check_choice(source) if isinstance(source, Choice) else Report()
    return report, partial(to_grammar, source, limits)


def _no_grammar(source: Any) -> GrammarError:
    return GrammarError(
        f"a {type(source).__name__} is no grammar: use Lark, GBNF, Regex, Choice, StructuralTag, JsonSchema, or an expression over such"
    )


def _check_regex(source: Regex, limits: Limits) -> Report:
    report = Report()
    letters = source.flags if isinstance(source.flags, str) else flag_letters(source.flags)
    try:
        language = parse_regex(source.pattern, source.flavour, limits, letters)
    except GrammarError as error:
        report.findings.append(finding_of(error))
        return report
    nodes = postorder(language)
    try:
        message = blowup(language, limits)
        if message is not None:
            report.findings.append(
                located(source.pattern, "warning", BLOWUP_CODE, "1:1", message, shown=False)
            )
        if repeats_blanks(language):
            report.hints.append(
                located(source.pattern, "note", "unbounded-blanks", "1:1", BLANKS_MESSAGE, shown=False)
            )
    finally:
        del language
        let_go(nodes)
    return report


def _check_choice(source: Choice) -> Report:
    report = Report()
    # A large set is made anew at once when it grows.
    seen: list[set[str | bytes | tuple[int, ...]]] = [set() for _ in range(_SETS)]
    for i, option in enumerate(in_time(source.options)):
        if not isinstance(option, (str, bytes, list, tuple, np.ndarray)):
            raise GrammarError(
                f"a choice is a str, bytes, or a list of token ids, not {type(option).__name__}",
                place=f"/{i}",
            )
        try:
            key = option if isinstance(option, (str, bytes)) else tuple(map(index, option))
        except TypeError:
            raise GrammarError("token ids are integers", place=f"/{i}") from None
        alike = seen[hash(key) % _SETS]
        if key in alike:
            report.findings.append(
                Finding("warning", "duplicate-choice", f"/{i}", f"{key!r} is listed twice")
            )
        alike.add(key)
    let_go(*seen)
    return report


def to_grammar(source: Any, limits: Limits = DEFAULT_LIMITS) -> Grammar:
    """The intermediate representation of a source.  Raises what compiling it raises."""
    if isinstance(source, Lark):
        options = (source.start, source.lexer, source.import_paths, source.indentation)
        return lark_part(source.text, *options, limits).make()
    if isinstance(source, GBNF):
        return gbnf_part(source.text, source.root, limits).make()
    if isinstance(source, Regex):
        return regex_part(source.pattern, source.flavour, source.flags, limits).make()
    if isinstance(source, Choice):
        return choice_part(source.options, limits).make()
    if isinstance(source, StructuralTag):
        return structural_tag.to_grammar(source.tag, limits, options=source.options)
    if isinstance(source, EXPRESSIONS):
        return job_of(source, limits).part.make()
    if isinstance(source, JsonSchema):
        schema_options = SchemaOptions(**{f.name: getattr(source, f.name) for f in fields(SchemaOptions)})
        return json_schema_part(source.schema, schema_options, limits).make()
    raise _no_grammar(source)


def compile_for_bytes(source: Any, limits: Limits = DEFAULT_LIMITS) -> tuple[Grammar, CompiledGrammar]:
    """A source over single bytes (ids 0 to 255, the end is 256), and its rules.  Raises what compiling it raises."""
    with rare_collection(), deadline(limits.max_seconds):
        grammar = to_grammar(source, limits).unshared()
        return grammar, compiled_for_bytes(grammar, limits)
