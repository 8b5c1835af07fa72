"""Sources as parts of a grammar: what each one is known under, and how its grammar is made.

A part is an ``Import``.  Its key is its content with all options, so that whoever uses an equal
source finds the tables that were made before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, get_args

from maskwright._core import content_key
from maskwright.base.arguments import check_limits, check_type, exact_bytes, exact_text, listed, one_of
from maskwright.errors import GrammarError, UnsatisfiableError
from maskwright.frontends import gbnf, json_schema, lark, regex
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.json_schema.read.options import DEFAULT_OPTIONS
from maskwright.frontends.lark import Indentation, LexerKind
from maskwright.frontends.regex import Flavour
from maskwright.frontends.size import check_length
from maskwright.frontends.tools.arguments import (
    ArgumentStyle,
    to_arguments,
    to_json_without,
)
from maskwright.ir.grammar import EMPTY, Choice, Grammar, Import, Term, Words
from maskwright.limits import Limits


def json_schema_part(
    schema: dict[str, Any] | bool | str | bytes,
    options: SchemaOptions,
    limits: Limits,
    content: bytes | None = None,
) -> Import:
    """The valid instances of a schema, as JSON text.  ``content``: its key, where that is known."""
    content = _content(schema, limits, content)
    key: Hashable = _Unique()
    if content is not None and options.registry is None:
        key = content + _choices(options, limits)
    elif content is not None:
        # What is not plain data, such as a function, may have something else the next time.
        given = options.registry
        elsewhere = content_key(given, limits.max_schema_values) if type(given) is dict else None
        if elsewhere is None:
            content = None
        else:
            key = (
                content + _choices(replace(options, registry=None), limits),
                hashlib.blake2b(elsewhere).digest(),
            )
    return Import(
        key,
        lambda: json_schema.to_grammar(schema, options, limits),
        keep=content is not None,
    )


def arguments_part(
    schema: dict[str, Any] | bool | str | bytes,
    style: ArgumentStyle,
    limits: Limits,
    content: bytes | None = None,
    options: SchemaOptions = DEFAULT_OPTIONS,
) -> Import:
    """The valid instances of an object schema, written in a style of arguments.  ``content``: as in ``json_schema_part``."""
    content = _content(schema, limits, content) if options.registry is None else None
    key: Hashable = (
        _Unique() if content is None else ("arguments", repr(style), content + _choices(options, limits))
    )
    return Import(key, lambda: to_arguments(schema, style, limits, options), keep=content is not None)


def json_without_part(
    schema: dict[str, Any] | bool | str | bytes,
    excludes: tuple[str, ...],
    options: SchemaOptions,
    limits: Limits,
    content: bytes | None = None,
) -> Import:
    """The valid instances of a schema in which no string contains one of ``excludes``.  ``content``: as in ``json_schema_part``."""
    content = _content(schema, limits, content) if options.registry is None else None
    key: Hashable = (
        _Unique() if content is None else ("json without", excludes, content + _choices(options, limits))
    )
    return Import(key, lambda: to_json_without(schema, excludes, options, limits), keep=content is not None)


def _content(schema: Any, limits: Limits, content: bytes | None) -> bytes | None:
    """The key of a schema, or None for what is not plain data."""
    check_limits(limits)
    if isinstance(schema, (str, bytes)):
        # Before its key is made: that takes all of it.
        check_length(schema, limits)
    return content_key(schema, limits.max_schema_values) if content is None else content


@lru_cache
def _choices(options: SchemaOptions, limits: Limits) -> bytes:
    """Options without a registry, and limits, as the end of a key."""
    return repr((options, limits)).encode()


def regex_part(pattern: str, flavour: Flavour, flags: str | int, limits: Limits) -> Import:
    """The texts that a regular expression matches as a whole."""
    pattern = _checked_text(pattern, "a pattern")
    one_of(flavour, get_args(Flavour), "flavour", GrammarError)
    check_type(flags, (str, int), "flags", GrammarError)
    flags = exact_text(flags) if isinstance(flags, str) else int(flags)
    return Import(
        ("regex", pattern, flavour, flags, limits),
        lambda: regex.to_grammar(pattern, flavour, flags, limits),
    )


def gbnf_part(text: str, root: str, limits: Limits, symbols: Iterable[str] = ()) -> Import:
    """The texts of a grammar in GBNF."""
    text = _checked_text(text, "a grammar")
    check_type(root, str, "root", GrammarError)
    names = listed(symbols, "symbols", "names of rules", GrammarError)
    if not all(isinstance(name, str) for name in names):
        raise GrammarError(f"symbols: expected names of rules, got {symbols!r}"[:300])
    kept = tuple(sorted(set(names)))
    return Import(("gbnf", text, root, limits, kept), lambda: gbnf.to_grammar(text, root, limits, kept))


def inline_schema_part(limits: Limits) -> Callable[[Any], Import]:
    """What makes parts of the schemas that stand in Lark grammars."""
    return lambda schema: json_schema_part(schema, SchemaOptions(), limits)


def lark_part(
    text: str,
    start: str,
    lexer: LexerKind,
    import_paths: Sequence[str],
    indentation: Indentation | None,
    limits: Limits,
) -> Import:
    """The texts of a Lark grammar."""
    text = _checked_text(text, "a Lark grammar")
    check_type(start, str, "start", GrammarError)
    one_of(lexer, get_args(LexerKind), "lexer", GrammarError)
    check_type(indentation, (Indentation, type(None)), "indentation", GrammarError)
    check_type(import_paths, (list, tuple), "import_paths", GrammarError)
    lark.check_size(text, limits)
    # What a file holds that is imported may have changed.  A name right behind the word is that of a grammar of the package; behind a
    # quotation mark, it is no statement.
    alone = not import_paths and not re.search(r'(?<!")%import(?![ \t]+\w)', text)
    key = ("lark", text, start, lexer, indentation, limits) if alone else _Unique()
    schema_part = inline_schema_part(limits)
    return Import(
        key,
        lambda: lark.to_grammar(text, start, lexer, import_paths, indentation, schema_part, limits),
        keep=alone,
        stored=alone,
    )


class _Unique:
    """A key that equals no other: for what must not be taken for something made before."""


def check_options(options: object) -> None:
    """Raises ``GrammarError`` for what is no collection of options."""
    if isinstance(options, (str, bytes)):
        raise GrammarError("a choice has several options: pass a list")
    check_type(options, Iterable, "options", GrammarError)


def choice_part(texts: Iterable[str | bytes], limits: Limits) -> Import:
    """One of some texts."""
    check_options(texts)
    has_empty = False

    def encoded() -> Iterator[bytes]:
        nonlocal has_empty
        for text in texts:
            if isinstance(text, str):
                try:
                    found = text.encode()
                except UnicodeEncodeError as error:
                    raise GrammarError(
                        f"the choice {text!r} holds a surrogate, which is no character"
                    ) from error
            elif isinstance(text, bytes):
                found = exact_bytes(text)
            else:
                raise GrammarError(f"a choice is a str or bytes, not {type(text).__name__}")
            if found:
                yield found
            else:
                has_empty = True

    words = Words(encoded())
    if not len(words) and not has_empty:
        raise UnsatisfiableError("there are no choices")

    def make() -> Grammar:
        grammar = Grammar()
        body = Term(words) if len(words) else EMPTY
        grammar.add("choice", Choice((body, EMPTY)) if has_empty else body)
        return grammar

    return Import(("choice", words.key, has_empty, limits), make)


def _checked_text(text: object, what: str) -> str:
    if not isinstance(text, str):
        raise GrammarError(f"{what} is a str, not {type(text).__name__}")
    return exact_text(text)
