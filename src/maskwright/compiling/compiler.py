# What callers give is checked here: it is not what its type says.
# cython: annotation_typing=False
"""Sources -> compiled grammars: the order of the steps, from the front-end to the engine."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, overload

import numpy as np

from maskwright._core import Tables, automata_bytes, content_keys
from maskwright.base.arguments import check_limits, check_type
from maskwright.base.collection import rare_collection
from maskwright.base.deadline import check_time, deadline, in_time, let_go
from maskwright.compiling import shipped_tables, table_cache
from maskwright.compiling.compiled import CompiledGrammar as CompiledGrammar
from maskwright.compiling.compiled import keep_grammar
from maskwright.compiling.expressions import Expressions
from maskwright.compiling.lowering import capture_reader, link, lower_to_tables
from maskwright.compiling.packed_tables import unpack
from maskwright.compiling.shared_cache import SharedCache, fetch, store
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError, VocabularyError
from maskwright.frontends import structural_tag
from maskwright.frontends.json_schema import Registry, SchemaOptions
from maskwright.frontends.json_schema.clashes import explained
from maskwright.frontends.json_schema.read.options import DEFAULT_OPTIONS, schema_options
from maskwright.frontends.lark import Indentation, LexerKind
from maskwright.frontends.parts import (
    check_options,
    choice_part,
    gbnf_part,
    json_schema_part,
    lark_part,
    regex_part,
)
from maskwright.frontends.python.types import PYTHON_OPTIONS, python_type_to_schema
from maskwright.frontends.regex import Flavour
from maskwright.frontends.size import check_length
from maskwright.ir.grammar import FAIL, Grammar, Import
from maskwright.ir.prune import prune
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.masks.trie import CompiledTrie, TokenTrie
from maskwright.sources import EXPRESSIONS, GBNF, Choice, JsonSchema, Lark, Regex, StructuralTag, Type
from maskwright.vocabulary.engine_cache import engine_for
from maskwright.vocabulary.vocabulary import Vocabulary

_TABLES_BYTES = 64 << 20
"""What their automata with their states may take, of the tables that a vocabulary keeps."""
_RULE_BYTES = 4096
"""Of automata that are new, which weigh as much as one rule."""
_T = TypeVar("_T")


@overload
def compile(
    source: Choice, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar | CompiledTrie: ...
@overload
def compile(
    source: TokenTrie, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledTrie: ...
@overload
def compile(source: Any, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS) -> CompiledGrammar: ...
def compile(
    source: Any, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar | CompiledTrie:
    """Compile any supported source: ``JsonSchema``, ``Regex``, ``Lark``, ``GBNF``, ``Choice``, ``StructuralTag``, a ``TokenTrie``,
    an expression over such (``A | B``, ``A & R``, ``Contains``, ...; see docs/combining.md), or a Python type (pydantic model, dataclass, TypedDict,
    Literal, Enum, int, list[...]; needs pydantic; see ``frontends.python``).

    Raises the errors of the ``compile_...`` function of its kind; ``GrammarError`` for a source of another kind, ``VocabularyError`` for
    a trie of another vocabulary.
    """
    if isinstance(source, Choice):
        return compile_choice(source.options, vocabulary, limits=limits)
    if isinstance(source, TokenTrie):
        return CompiledTrie(source, vocabulary)
    return compile_job(job_of(source, limits), vocabulary)


@dataclass(frozen=True)
class Job:
    """A source that can be compiled: what it is known under, how it is read, and what comes of a contradiction.

    ``explain`` makes the error better, in what is left of the time; ``otherwise`` is compiled in place of what has no text.
    """

    part: Import
    limits: Limits
    explain: Callable[[UnsatisfiableError], UnsatisfiableError] | None = None
    otherwise: Job | None = None


def job_of(source: Any, limits: Limits, own: Callable[[_T], _T] = lambda content: content) -> Job:
    """The job of compiling a source, other than a choice among token sequences.

    ``own`` makes a copy of what the caller may change before it is read.  Raises ``GrammarError`` for what is no source.
    """
    check_limits(limits)
    # However deep, as the operators do not have them.
    while isinstance(source, Type):
        check_time()
        source = source.of
    if isinstance(source, EXPRESSIONS):
        return Job(Expressions(lambda each: _operand_part(each, limits, own), limits).part(source), limits)
    if isinstance(source, JsonSchema):
        options = SchemaOptions(
            **{option.name: getattr(source, option.name) for option in fields(SchemaOptions)}
        )
        return _schema_job(source.schema, options, limits, own)
    if isinstance(source, Regex):
        return Job(regex_part(source.pattern, source.flavour, source.flags, limits), limits)
    if isinstance(source, Lark):
        part = lark_part(
            source.text, source.start, source.lexer, source.import_paths, source.indentation, limits
        )
        return Job(part, limits)
    if isinstance(source, GBNF):
        return Job(gbnf_part(source.text, source.root, limits, source.symbols), limits)
    if isinstance(source, StructuralTag):
        return _tag_job(source, limits, own)
    if isinstance(source, Choice):
        return Job(choice_part(source.options, limits), limits)
    if isinstance(source, (dict, str, bytes)):
        raise GrammarError(
            f"a {type(source).__name__} does not say what language it is written in; "
            "wrap it, for example in JsonSchema(...)"
        )
    return _schema_job(python_type_to_schema(source), PYTHON_OPTIONS, limits, own)


def _operand_part(source: Any, limits: Limits, own: Callable[[Any], Any]) -> Import:
    """The part of an operand, with what is compiled in its place where it has no text."""
    job = job_of(source, limits, own)
    otherwise = job.otherwise
    if otherwise is None:
        return job.part
    part, instead = job.part, otherwise.part

    def make() -> Grammar:
        try:
            return prune(part.make())
        except UnsatisfiableError:
            return instead.make()

    return Import(("with a text", part.key, instead.key), make, keep=part.keep and instead.keep)


def compile_job(job: Job, vocabulary: Vocabulary, shared: SharedCache | None = None) -> CompiledGrammar:
    """The grammar compiled from an equal source before, one that another process has put into a shared cache, or a new one."""
    part, limits = job.part, job.limits
    check_limits(limits)
    check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
    compiled: CompiledGrammar | None = vocabulary._compiled.get(part.key)
    if compiled is None:
        name = table_cache.source_digest(part.key) if shared is not None and part.keep else None
        if name is not None:
            compiled = fetch(shared, name, vocabulary)
        if compiled is None:
            compiled = _compiled(job, vocabulary)
            if name is not None:
                store(shared, name, compiled)
        if part.keep:
            keep_grammar(part.key, compiled, vocabulary)
    return compiled


def _compiled(job: Job, vocabulary: Vocabulary) -> CompiledGrammar:
    """A new grammar."""
    with rare_collection(), deadline(job.limits.max_seconds):
        try:
            return CompiledGrammar(link(_tables(job.part, vocabulary, job.limits), job.limits), vocabulary)
        except UnsatisfiableError as error:
            if job.otherwise is not None:
                return _compiled(job.otherwise, vocabulary)
            if job.explain is None:
                raise
            raise job.explain(error) from None


def own_copy(content: _T) -> _T:
    """Plain data that nobody else changes."""
    try:
        copy: _T = pickle.loads(pickle.dumps(content, pickle.HIGHEST_PROTOCOL))
    except Exception:
        # What cannot be copied is read as it is then.
        return content
    return copy


def compile_json_schema(
    schema: dict[str, Any] | bool | str,
    vocabulary: Vocabulary,
    *,
    property_order: Literal["schema", "any"] = "schema",
    escapes: Literal["printed", "any"] = "printed",
    whitespace: Literal["printed", "flexible", "compact"] | int = "printed",
    formats: Literal["assert", "annotate"] = "assert",
    plain_integers: bool = False,
    additional_properties: bool | Literal["needed"] = True,
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
    about them; ``"needed"``: only if nothing satisfies the schema without them.  max_whitespace: blanks behind a line
    break (count).  max_number_digits: digits of a number before its point, and those behind it (count).
    dialect: ``"auto"`` reads ``$schema`` (2020-12 where it says nothing);
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
    return compile_job(_schema_job(schema, options, limits), vocabulary)


def _schema_job(
    schema: Any, options: SchemaOptions, limits: Limits, own: Callable[[Any], Any] = lambda content: content
) -> Job:
    part = json_schema_part(schema, options, limits)
    if part.keep:
        # It has a key, which says what it was, and must be read as that.
        mine = own((schema, options.registry))
        if mine[0] is not schema:
            schema, options = mine[0], replace(options, registry=mine[1])
            part = replace(part, make=json_schema_part(schema, options, limits).make)
    if options.additional_properties == "needed":
        opened = replace(options, additional_properties=True)
        return Job(part, limits, otherwise=_schema_job(schema, opened, limits))
    return Job(part, limits, lambda error: _explained(error, schema, options, limits))


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
    return compile_job(Job(regex_part(pattern, flavour, flags, limits), limits), vocabulary)


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
    return compile_job(Job(part, limits), vocabulary)


def compile_gbnf(
    text: str,
    vocabulary: Vocabulary,
    *,
    root: str = "root",
    symbols: Iterable[str] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> CompiledGrammar:
    """Compile a grammar in GBNF (llama.cpp) or the EBNF of XGrammar; see ``docs/grammars.md``.

    ``symbols``: rules that sessions and partial programs ask for; one that is regular is part of a lexeme otherwise.
    Raises ``GrammarError`` (with line:column and a snippet), ``UnsatisfiableError``, ``LimitError``.
    """
    return compile_job(Job(gbnf_part(text, root, limits, symbols), limits), vocabulary)


def compile_choice(
    options: Any, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar | CompiledTrie:
    """Compile a choice among texts (a collection of str or bytes), or among sequences of token ids (lists of
    int, or an integer array [N, L] padded with -1).

    Texts may be spelled in any tokens, token sequences are exactly what they are.  Raises ``GrammarError``,
    ``UnsatisfiableError`` when there are no options, ``VocabularyError`` for ids outside the vocabulary, and for end tokens in
    a sequence.
    """
    check_options(options)
    check_limits(limits)
    if not isinstance(options, np.ndarray):
        with rare_collection(), deadline(limits.max_seconds):
            options = list(in_time(options))
            if all(isinstance(option, (str, bytes)) for option in in_time(options)):
                return compile_job(Job(choice_part(options, limits), limits), vocabulary)
    check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
    with rare_collection():
        trie = TokenTrie(options, vocabulary.vocab_size, vocabulary.eos_ids, max_bytes=limits.max_bytes)
        return CompiledTrie(trie, vocabulary)


def _explained(
    error: UnsatisfiableError, schema: Any, options: SchemaOptions, limits: Limits
) -> UnsatisfiableError:
    """The error with the constraints that exclude each other, if these are found in time."""
    try:
        return explained(error, schema, options, limits)
    except LimitError:
        return error


def compile_structural_tag(
    tag: dict[str, Any] | str,
    vocabulary: Vocabulary,
    *,
    limits: Limits = DEFAULT_LIMITS,
    options: SchemaOptions = DEFAULT_OPTIONS,
) -> CompiledGrammar:
    """Compile a structural tag (dict or JSON text): free text with tagged parts; see ``docs/grammars.md``.  ``options``: of the
    schemas in it, as in ``compile_json_schema``.

    Raises ``GrammarError`` (with a JSON pointer), ``UnsupportedSchemaError`` (formats and keywords that cannot be
    enforced), ``UnsatisfiableError``, ``LimitError``.
    """
    check_limits(limits)
    return compile_job(_tag_job(StructuralTag(tag, options), limits), vocabulary)


def _tag_job(
    source: StructuralTag, limits: Limits, own: Callable[[Any], Any] = lambda content: content
) -> Job:
    part = _tag_part(source, limits, own)
    return Job(part, limits, lambda error: _explained_tag(error, source, limits))


def _tag_part(source: StructuralTag, limits: Limits, own: Callable[[Any], Any]) -> Import:
    tag, options = source.tag, source.options
    check_type(options, SchemaOptions, "options", GrammarError)
    if options.additional_properties == "needed":
        raise GrammarError(
            "options of a tag hold for all of its schemas: additional_properties is True or False"
        )
    if isinstance(tag, str):
        check_length(tag, limits)
    content, _ = content_keys(tag, limits.max_schema_values, "json_schema")
    if content is not None:
        tag = own(tag)
    # By identity: of the parts that will be read.
    content, contents = content_keys(tag, limits.max_schema_values, "json_schema")
    keep = content is not None and options.registry is None
    return Import(
        ("structural tag", content, limits, repr(options)) if keep else object(),
        lambda: structural_tag.to_grammar(tag, limits, contents, options),
        keep=keep,
    )


def _explained_tag(error: UnsatisfiableError, source: StructuralTag, limits: Limits) -> UnsatisfiableError:
    """The error with the schema of a tag that nothing satisfies, if it is that, and what in it contradicts itself."""
    for place, schema, part in structural_tag.schemas(source.tag, limits, source.options):
        try:
            prune(part.make())
        except UnsatisfiableError as found:
            with suppress(LimitError):
                found = explained(found, schema, source.options, limits)
            where = place if found.place is None else f"{place}: {found.place}"
            return UnsatisfiableError(found.message, place=where, constraints=found.constraints)
    return error


def compile_grammar(
    grammar: Grammar, vocabulary: Vocabulary, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar:
    """Compile the intermediate representation.  Raises ``UnsatisfiableError`` or ``LimitError``."""
    check_type(grammar, Grammar, "grammar", GrammarError)
    check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
    check_limits(limits)
    with rare_collection(), deadline(limits.max_seconds):
        return CompiledGrammar(link(_lowered(grammar, vocabulary, limits), limits), vocabulary)


def _tables(part: Import, vocabulary: Vocabulary, limits: Limits) -> Tables:
    """The tables of a part, made once."""
    tables: Tables | None = vocabulary._tables.get(part.key)
    if tables is None:
        tables = _made(part, vocabulary, limits)
        if part.keep:
            kept = vocabulary._tables
            kept.put(part.key, tables, len(tables.names) + automata_bytes(tables, False) // _RULE_BYTES)
            kept.shed(automata_bytes, _TABLES_BYTES, grown=engine_for(vocabulary).grown_bytes)
    return tables


def _made(part: Import, vocabulary: Vocabulary, limits: Limits) -> Tables:
    """The tables of a part, from a file or from its source."""
    known = shipped_tables.load(part.key) if part.stored else None
    name = table_cache.stored_name(part.key) if part.stored and known is None else None
    if name is not None:
        known = table_cache.load(name)
    if known is not None:
        try:
            return unpack(known, engine_for(vocabulary), limits)
        except GrammarError:
            # Reading the source says what is wrong, if it is that.
            pass
    grammar = part.make()
    try:
        tables = _lowered(grammar, vocabulary, limits)
    except BaseException:
        let_go(grammar.names)
        raise
    finally:
        if not grammar.captures:
            # Nobody else has it.
            let_go(grammar.rules)
    if name is not None:
        table_cache.save(name, tables)
    return tables


def _lowered(grammar: Grammar, vocabulary: Vocabulary, limits: Limits) -> Tables:
    pruned = prune(grammar)
    imports = {part.key: _tables(part, vocabulary, limits) for part in pruned.imports()}
    engine = engine_for(vocabulary)
    tables = lower_to_tables(pruned, engine, limits, imports)
    if pruned.captures:
        tables.reader = capture_reader(pruned, engine, limits, imports)
    elif pruned is not grammar:
        let_go(pruned.rules)
    # Only the engine knows whether there are enough different items.
    while tables.unproved and tables.lexer is None and (empty := link(tables, limits).unfillable_rules()):
        rules = [FAIL if i in empty else body for i, body in enumerate(grammar.rules)]
        grammar = replace(grammar, rules=rules)
        try:
            pruned = prune(grammar)
        except UnsatisfiableError as error:
            message = "no finite text satisfies this: there are not as many different items as arrays need here or inside"
            raise UnsatisfiableError(message, place=error.place) from None
        tables = lower_to_tables(pruned, engine_for(vocabulary), limits, imports)
    return tables
