"""Sources -> compiled grammars: the order of the steps, from the front-end to the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Literal, NoReturn, overload

import numpy as np

from maskwright import table_cache
from maskwright._core import CompiledCore, Matcher, StateSets, Tables
from maskwright.arguments import check_limits, check_type
from maskwright.captures import CaptureReader
from maskwright.collection import rare_collection
from maskwright.compile_cache import content_keys
from maskwright.deadline import deadline, let_go
from maskwright.engine_cache import engine_for
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError, VocabularyError
from maskwright.frontends import structural_tag
from maskwright.frontends.json_schema import Registry, SchemaOptions
from maskwright.frontends.json_schema.clashes import explained
from maskwright.frontends.json_schema.options import schema_options
from maskwright.frontends.lark import Indentation, LexerKind
from maskwright.frontends.parts import choice_part, gbnf_part, json_schema_part, lark_part, regex_part
from maskwright.frontends.python_types import PYTHON_OPTIONS, python_type_to_schema
from maskwright.frontends.regex import Flavour
from maskwright.grammar import FAIL, Grammar, Import
from maskwright.lexeme_automata import lexeme_automaton
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.lowering import Lowered, link, lower_to_tables, restore
from maskwright.passes.prune import prune
from maskwright.sources import GBNF, Choice, JsonSchema, Lark, Regex, StructuralTag
from maskwright.token_sets import token_ids
from maskwright.trie import CompiledTrie, TokenTrie
from maskwright.vocabulary import Vocabulary

# Of all grammars that are kept together: a state takes about a kilobyte.
_STATES_KEPT = 1_000_000
_SHED_EVERY = 16


class CompiledGrammar:
    """A language bound to a vocabulary: immutable, and shared by any number of matchers."""

    def __init__(self, core: CompiledCore, vocabulary: Vocabulary) -> None:
        self._core = core
        self._state_sets: StateSets | None = None
        self.vocabulary = vocabulary

    def matcher(self, max_rollback: int | None = None) -> Matcher:
        """A new matcher at the start of the text.

        max_rollback: how many tokens it can take back, counted from the most that were ever accepted.  A long text takes no
        more memory than so many tokens do then, and ``accepted_tokens`` has only those.  None: all, which are kept.
        """
        return Matcher(self._core, max_rollback)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a compiled grammar belongs to its process and cannot be pickled or copied: send its source (JsonSchema, Lark ...) and "
            "the vocabulary, and compile there"
        )

    @property
    def statistics(self) -> dict[str, int]:
        """Counts of interned states, and bytes of cached masks."""
        return self._core.statistics

    def __repr__(self) -> str:
        return f"CompiledGrammar({self.vocabulary!r})"


@overload
def compile(
    source: Choice, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar | CompiledTrie: ...
@overload
def compile(source: Any, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS) -> CompiledGrammar: ...
def compile(
    source: Any, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar | CompiledTrie:
    """Compile any supported source: ``JsonSchema``, ``Regex``, ``Lark``, ``GBNF``, ``Choice``, ``StructuralTag``,
    or a Python type (pydantic model, dataclass, TypedDict,
    Literal, Enum, int, list[...]; needs pydantic; see ``frontends.python_types``).

    Raises the errors of the ``compile_...`` function of its kind; ``GrammarError`` for a source of another kind.
    """
    if isinstance(source, JsonSchema):
        options = SchemaOptions(
            **{option.name: getattr(source, option.name) for option in fields(SchemaOptions)}
        )
        return _compile_json_schema(source.schema, vocabulary, options, limits)
    if isinstance(source, Regex):
        return compile_regex(
            source.pattern, vocabulary, flavour=source.flavour, flags=source.flags, limits=limits
        )
    if isinstance(source, Lark):
        return compile_lark(
            source.text,
            vocabulary,
            start=source.start,
            lexer=source.lexer,
            import_paths=source.import_paths,
            indentation=source.indentation,
            limits=limits,
        )
    if isinstance(source, GBNF):
        return compile_gbnf(source.text, vocabulary, root=source.root, limits=limits)
    if isinstance(source, StructuralTag):
        return compile_structural_tag(source.tag, vocabulary, limits=limits)
    if isinstance(source, Choice):
        return compile_choice(source.options, vocabulary, limits=limits)
    if isinstance(source, (dict, str, bytes)):
        raise GrammarError(
            f"a {type(source).__name__} does not say what language it is written in; "
            "wrap it, for example in JsonSchema(...)"
        )
    return _compile_json_schema(python_type_to_schema(source), vocabulary, PYTHON_OPTIONS, limits)


def compile_json_schema(
    schema: dict[str, Any] | bool | str,
    vocabulary: Vocabulary,
    *,
    property_order: Literal["schema", "any"] = "schema",
    escapes: Literal["printed", "any"] = "printed",
    whitespace: Literal["printed", "flexible", "compact"] | int = "printed",
    formats: Literal["assert", "annotate"] = "assert",
    plain_integers: bool = False,
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
    any order, at the price of more states.  escapes: ``"printed"`` (in strings and keys, those that JSON printers
    write) or ``"any"`` (all of RFC 8259).  whitespace: ``"printed"`` (as JSON printers write it, compact, with blanks or
    indented), ``"flexible"`` (bounded runs between all tokens), ``"compact"`` (none), or a number n, for exactly the
    white space of ``json.dumps(value, indent=n)``.  formats: ``"assert"`` enforces known formats, ``"annotate"`` ignores all.
    plain_integers: whether integers have neither fraction nor exponent, as most readers want them.
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
    options = schema_options(
        registry,
        property_order=property_order,
        escapes=escapes,
        whitespace=whitespace,
        formats=formats,
        plain_integers=plain_integers,
        additional_properties=additional_properties,
        max_whitespace=max_whitespace,
        max_number_digits=max_number_digits,
        dialect=dialect,
    )
    return _compile_json_schema(schema, vocabulary, options, limits)


def _compile_json_schema(
    schema: dict[str, Any] | bool | str, vocabulary: Vocabulary, options: SchemaOptions, limits: Limits
) -> CompiledGrammar:
    part = json_schema_part(schema, options, limits)
    return _compile(part, vocabulary, limits, lambda error: _explained(error, schema, options, limits))


def compile_regex(
    pattern: str,
    vocabulary: Vocabulary,
    *,
    flavour: Flavour = "python",
    flags: str | int = "",
    limits: Limits = DEFAULT_LIMITS,
) -> CompiledGrammar:
    """Compile a regular expression to the language of the texts that it matches as a whole (``re.fullmatch``).

    flavour: ``"python"`` is the syntax of ``re``, with ``(?<name>...)`` and ``\\p{...}`` of the package ``regex``;
    ``"ecma"`` is ECMA-262 in Unicode mode.  flags: letters of ``aimsux`` (ECMA: ``imsu``), or ``re`` flags.
    Lazy quantifiers have the language of greedy ones.  What is not regular or would change the
    language by the order of trials (back-references, recursion, conditionals, atomic groups, possessive
    quantifiers) is refused.
    Raises ``GrammarError`` (with line:column and a snippet), ``UnsatisfiableError``, ``LimitError``.
    """
    return _compile(regex_part(pattern, flavour, flags, limits), vocabulary, limits)


def compile_lark(
    text: str,
    vocabulary: Vocabulary,
    *,
    start: str = "start",
    lexer: LexerKind = "contextual",
    import_paths: Sequence[str] = (),
    indentation: Indentation | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> CompiledGrammar:
    """Compile a grammar in Lark's language, read by the package ``lark``; see ``docs/grammars.md``.

    lexer: ``"contextual"``: of the terminals that the grammar accepts at a place, the longest match
    counts, then priority, strings before patterns, and Lark's order; ``"dynamic"``: terminals match in every possible way.
    import_paths: folders of grammars that ``%import`` names, besides Lark's own.
    indentation: which terminals make blocks of lines; by default ``_NEWLINE``, ``_INDENT`` and ``_DEDENT``, where
    the grammar uses them without patterns for the last two.
    Raises ``GrammarError`` (with line:column and a snippet), ``UnsatisfiableError`` (among others, when terminals
    swallow each other so that no text is left), ``LimitError``; ``MaskwrightError`` without the package.
    """
    part = lark_part(text, start, lexer, import_paths, indentation, limits)
    return _compile(part, vocabulary, limits)


def compile_gbnf(
    text: str, vocabulary: Vocabulary, *, root: str = "root", limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar:
    """Compile a grammar in GBNF (llama.cpp) or the EBNF of XGrammar; see ``docs/grammars.md``.

    Raises ``GrammarError`` (with line:column and a snippet), ``UnsatisfiableError``, ``LimitError``.
    """
    return _compile(gbnf_part(text, root, limits), vocabulary, limits)


def compile_choice(
    options: Any, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar | CompiledTrie:
    """Compile a choice among texts (a collection of str or bytes), or among sequences of token ids (lists of
    int, or an integer array [N, L] padded with -1).

    Texts may be spelled in any tokens, token sequences are exactly what they are.  Raises ``GrammarError``,
    ``UnsatisfiableError`` when there are no options, ``VocabularyError`` for ids outside the vocabulary.
    """
    if isinstance(options, (str, bytes)):
        raise GrammarError("a choice has several options: pass a list")
    check_limits(limits)
    if not isinstance(options, np.ndarray):
        check_type(options, Iterable, "options", GrammarError)
        options = list(options)
        if all(isinstance(option, (str, bytes)) for option in options):
            with rare_collection(), deadline(limits.max_seconds):
                return _compile(choice_part(options, limits), vocabulary, limits)
    check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
    return CompiledTrie(TokenTrie(options, vocabulary.vocab_size, vocabulary.eos_ids), vocabulary)


def _explained(
    error: UnsatisfiableError, schema: Any, options: SchemaOptions, limits: Limits
) -> UnsatisfiableError:
    """The error with the constraints that exclude each other, if these are found in time."""
    try:
        return explained(error, schema, options, limits)
    except LimitError:
        return error


def compile_structural_tag(
    tag: dict[str, Any] | str, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar:
    """Compile a structural tag (dict or JSON text): free text with tagged parts; see ``docs/grammars.md``.

    Raises ``GrammarError`` (with a JSON pointer), ``UnsupportedSchemaError`` (formats and keywords that cannot be
    enforced), ``UnsatisfiableError``, ``LimitError``.
    """
    check_limits(limits)
    content, contents = content_keys(tag, limits.max_schema_values, "json_schema")
    key = ("structural tag", content, limits)
    part = Import(
        key if content is not None else object(),
        lambda: structural_tag.to_grammar(tag, limits, contents),
        keep=content is not None,
    )
    return _compile(part, vocabulary, limits)


def compile_grammar(
    grammar: Grammar, vocabulary: Vocabulary, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar:
    """Compile the intermediate representation.  Raises ``UnsatisfiableError`` or ``LimitError``."""
    with rare_collection(), deadline(limits.max_seconds):
        return CompiledGrammar(link(_lowered(grammar, vocabulary, limits), limits), vocabulary)


def _compile(
    part: Import,
    vocabulary: Vocabulary,
    limits: Limits,
    explain: Callable[[UnsatisfiableError], UnsatisfiableError] | None = None,
) -> CompiledGrammar:
    """The grammar compiled from an equal part before, or a new one.  ``explain``: what makes an error better, in what is
    left of the time."""
    check_limits(limits)
    check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
    compiled: CompiledGrammar | None = vocabulary._compiled.get(part.key)
    if compiled is None:
        with rare_collection(), deadline(limits.max_seconds):
            try:
                compiled = CompiledGrammar(link(_tables(part, vocabulary, limits), limits), vocabulary)
            except UnsatisfiableError as error:
                if explain is None:
                    raise
                raise explain(error) from None
        if part.keep:
            vocabulary._compiled.put(part.key, compiled)
            vocabulary._compiled.shed(_states_of, _STATES_KEPT, _SHED_EVERY)
    return compiled


def _states_of(compiled: CompiledGrammar) -> int:
    sets = compiled._state_sets
    return compiled._core.state_count + (sets.state_count if sets is not None else 0)


def _tables(part: Import, vocabulary: Vocabulary, limits: Limits) -> Tables:
    """The tables of a part, made once."""
    tables: Tables | None = vocabulary._tables.get(part.key)
    if tables is None:
        tables = _made(part, vocabulary, limits)
        if part.keep:
            vocabulary._tables.put(part.key, tables, len(tables.names))
    return tables


def _made(part: Import, vocabulary: Vocabulary, limits: Limits) -> Tables:
    """The tables of a part, from a file or from its source."""
    keep: Callable[[Lowered], None] | None = None
    if part.stored:
        name = table_cache.stored_name(part.key)
        known = table_cache.load(name)
        if known is not None:
            return restore(known, engine_for(vocabulary), name, limits)
        keep = partial(table_cache.save, name)
    grammar = part.make()
    try:
        return _lowered(grammar, vocabulary, limits, keep)
    finally:
        if not grammar.captures:
            # Nobody else has it.
            let_go(grammar.rules)


def _lowered(
    grammar: Grammar, vocabulary: Vocabulary, limits: Limits, keep: Callable[[Lowered], None] | None = None
) -> Tables:
    pruned = prune(grammar)
    imports = {part.key: _tables(part, vocabulary, limits) for part in pruned.imports()}
    engine = engine_for(vocabulary)
    tables = lower_to_tables(pruned, engine, limits, imports, keep)
    if pruned.captures:
        tables.reader = CaptureReader(
            pruned,
            lambda lexeme: lexeme_automaton(engine, lexeme, limits),
            lambda part: link(imports[part.key], limits),
            lambda tokens: token_ids(tokens, engine),
            limits.max_seconds,
        )
    # Only the engine knows whether there are enough different items.
    while tables.unproved and tables.lexer is None and (empty := link(tables, limits).unfillable_rules()):
        rules = [FAIL if i in empty else body for i, body in enumerate(grammar.rules)]
        grammar = replace(grammar, rules=rules)
        tables = lower_to_tables(prune(grammar), engine_for(vocabulary), limits, imports)
    return tables
