"""Sources -> compiled grammars: the order of the steps, from the front-end to the engine."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from maskwright._core import CompiledCore, Matcher
from maskwright.compile_cache import content_key, is_plain, no_collection
from maskwright.deadline import deadline
from maskwright.engine_cache import engine_for
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError
from maskwright.frontends import json_schema as json_schema_frontend
from maskwright.frontends.json_schema import Registry, SchemaOptions
from maskwright.frontends.json_schema.clashes import explained
from maskwright.frontends.python_types import python_type_to_schema
from maskwright.grammar import FAIL, Grammar
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.lowering import lower
from maskwright.passes.prune import prune
from maskwright.vocabulary import Vocabulary

# States of a grammar are never dropped.  One with so many of them, because its texts have ever new keys,
# is left to the matchers that it has, and compiled anew for others.
_OVERGROWN = 200_000


@dataclass(frozen=True)
class JsonSchema(SchemaOptions):
    """A JSON Schema as a source for ``compile``: a dict, a bool, or JSON text; with its options."""

    schema: dict[str, Any] | bool | str = field(kw_only=False)


class CompiledGrammar:
    """A language bound to a vocabulary: immutable, and shared by any number of matchers."""

    def __init__(self, core: CompiledCore, vocabulary: Vocabulary) -> None:
        self._core = core
        self.vocabulary = vocabulary

    def matcher(self) -> Matcher:
        """A new matcher at the start of the text."""
        return Matcher(self._core)

    @property
    def statistics(self) -> dict[str, int]:
        """Counts of interned states, and bytes of cached masks."""
        return self._core.statistics

    def __repr__(self) -> str:
        return f"CompiledGrammar({self.vocabulary!r})"


def compile(source: Any, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS) -> CompiledGrammar:
    """Compile any supported source: ``JsonSchema``, or a Python type (pydantic model, dataclass,
    TypedDict, Literal, Enum, int, list[...]; needs pydantic).

    Raises the errors of ``compile_json_schema``; ``GrammarError`` for a source of another kind.
    """
    if isinstance(source, JsonSchema):
        options = SchemaOptions(
            **{option.name: getattr(source, option.name) for option in fields(SchemaOptions)}
        )
        return _compile_json_schema(source.schema, vocabulary, options, limits)
    if isinstance(source, (dict, str, bytes)):
        raise GrammarError(
            f"a {type(source).__name__} does not say what language it is written in; "
            "wrap it, for example in JsonSchema(...)"
        )
    return compile_json_schema(python_type_to_schema(source), vocabulary, limits=limits)


def compile_json_schema(
    schema: dict[str, Any] | bool | str,
    vocabulary: Vocabulary,
    *,
    property_order: Literal["schema", "any"] = "schema",
    whitespace: Literal["flexible", "compact"] | int = "flexible",
    formats: Literal["assert", "annotate"] = "assert",
    additional_properties: bool = True,
    max_whitespace: int = 64,
    max_number_digits: int = 40,
    dialect: str = "auto",
    registry: Registry | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> CompiledGrammar:
    """Compile a JSON Schema (dict, bool or JSON text) to the language of its valid instances.

    The options are the fields of ``SchemaOptions``, which says why each has its default.  property_order:
    ``"schema"``: declared members come in the order of ``properties``, then undeclared ones; ``"any"``: all members in
    any order, at the price of more states.  whitespace: ``"flexible"`` (bounded runs between tokens, so that both
    compact and indented text fits), ``"compact"`` (none), or a number n, for exactly the white space of
    ``json.dumps(value, indent=n)``.  formats: ``"assert"`` enforces known formats, ``"annotate"`` ignores all.
    additional_properties: whether objects may have members that the schema does not mention, where it says nothing
    about them.  max_whitespace: blanks behind a line break (count).  max_number_digits: digits of a number before its
    point, and those behind it (count).  dialect: ``"auto"`` reads ``$schema`` (2020-12 where it says nothing);
    ``"draft3"`` to ``"draft7"``, ``"2019-09"``, ``"2020-12"``, ``"openapi-3.0"`` and ``"openapi-3.1"`` overrule it.
    registry: the schemas that references to other documents stand for, as a mapping from URIs or a function of the URI
    that returns None for what it does not have; nothing is ever fetched, and the metaschemas of json-schema.org need
    the package jsonschema-specifications.  limits: what compiling and every later step may cost.

    Compiling a schema with equal content again returns the same grammar, unless that has grown very
    large; with a registry that is no dict everything is compiled anew.
    Raises ``GrammarError`` (malformed JSON or schema, with its place), ``UnsupportedSchemaError``
    (all keywords that cannot be enforced), ``UnsatisfiableError``, ``LimitError``.
    """
    options = SchemaOptions(
        property_order=property_order,
        whitespace=whitespace,
        formats=formats,
        additional_properties=additional_properties,
        max_whitespace=max_whitespace,
        max_number_digits=max_number_digits,
        dialect=dialect,
        registry=registry,
    )
    return _compile_json_schema(schema, vocabulary, options, limits)


def _compile_json_schema(
    schema: dict[str, Any] | bool | str, vocabulary: Vocabulary, options: SchemaOptions, limits: Limits
) -> CompiledGrammar:
    content = content_key(schema, limits.max_schema_values)
    registry = options.registry
    key: tuple[Hashable, ...] = (content, options, limits)
    if registry is not None:
        key = (content, replace(options, registry=None), limits)
        # What is not plain data, such as a function, may have something else the next time.
        elsewhere = content_key(registry, limits.max_schema_values) if type(registry) is dict else None
        if elsewhere is None or not is_plain(registry):
            content = None
        else:
            key = (*key, hashlib.blake2b(elsewhere).digest())
    compiled: CompiledGrammar | None = vocabulary._compiled.get(key) if content is not None else None
    if compiled is None or compiled.statistics["matcher_states"] > _OVERGROWN:
        with no_collection():
            try:
                with deadline(limits.max_seconds):
                    grammar = json_schema_frontend.to_grammar(schema, options, limits)
                    compiled = compile_grammar(grammar, vocabulary, limits)
            except UnsatisfiableError as error:
                raise _explained(error, schema, options, limits) from None
        if content is not None and is_plain(schema):
            vocabulary._compiled.put(key, compiled)
    return compiled


def _explained(
    error: UnsatisfiableError, schema: Any, options: SchemaOptions, limits: Limits
) -> UnsatisfiableError:
    """The error with the constraints that exclude each other, if these are found in time."""
    try:
        with deadline(limits.max_seconds):
            return explained(error, schema, options, limits)
    except LimitError:
        return error


def compile_grammar(
    grammar: Grammar, vocabulary: Vocabulary, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar:
    """Compile the intermediate representation.  Raises ``UnsatisfiableError`` or ``LimitError``."""
    engine = engine_for(vocabulary)
    with deadline(limits.max_seconds):
        core = lower(prune(grammar), engine, limits)
        # Only the engine knows whether there are enough different items, and arrays contain others.
        while empty := core.unfillable_rules():
            rules = [FAIL if i in empty else body for i, body in enumerate(grammar.rules)]
            grammar = Grammar(rules, grammar.names, grammar.start)
            core = lower(prune(grammar), engine, limits)
        return CompiledGrammar(core, vocabulary)
