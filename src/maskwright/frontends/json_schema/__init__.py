"""JSON Schema -> grammar, in five steps, each a package that knows those before it.

``numbers``    the texts of numbers, as regular languages
``read``       read the schema, resolve references; survey: malformed values, and everything that must be refused
``texts``      lexemes and formats
``algebra``    schemas -> unions of typed groups
``emit``       groups -> rules and lexemes

Why nothing satisfies a schema: ``clashes``, ``surveyor``.  What becomes of each keyword, and all findings: ``maskwright.check.json_schema``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maskwright._core import repeated
from maskwright.base.deadline import deadline, let_go
from maskwright.errors import UnsupportedSchemaError
from maskwright.frontends.json_schema.algebra.groups import Conjunction
from maskwright.frontends.json_schema.algebra.normalize import Normalizer
from maskwright.frontends.json_schema.emit.emitter import Emitter
from maskwright.frontends.json_schema.read.dialects import MAPS
from maskwright.frontends.json_schema.read.document import Document, Registry
from maskwright.frontends.json_schema.read.keywords import survey
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.ir.grammar import Grammar
from maskwright.limits import DEFAULT_LIMITS, Limits

__all__ = ["Registry", "SchemaOptions", "emitted", "to_grammar"]

HOLDS = {**dict.fromkeys(MAPS, 1), "const": 2, "enum": 2}
"""By keyword, whether its value holds schemas by name, or no schemas (``_core.repeated``)."""
ANNOTATIONS: dict[str, type] = {
    "title": str,
    "description": str,
    "$comment": str,
    "examples": list,
    "default": object,
}
"""Keywords that say nothing of what is valid, and what their values are."""
_MANY = 150
"""Values of a schema among which it is worth while to look for what is there more than once."""


def to_grammar(
    schema: dict[str, Any] | bool | str | bytes,
    options: SchemaOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Grammar:
    """The grammar of the JSON texts that a schema allows.

    Raises ``GrammarError`` (malformed JSON or schema), ``UnsupportedSchemaError`` (with all
    refusals), ``UnsatisfiableError``, ``LimitError``.
    """
    options = options or SchemaOptions()
    return emitted(
        schema,
        options,
        limits,
        lambda normalizer: Emitter(normalizer, options, limits),
        lambda emitter, root: emitter.emit(root),
    )


def emitted(
    schema: Any,
    options: SchemaOptions,
    limits: Limits,
    make: Callable[[Normalizer], Emitter],
    emit: Callable[[Emitter, Conjunction], Grammar],
) -> Grammar:
    """All five steps, with an emitter that ``make`` makes and ``emit`` asks.  Raises as ``to_grammar`` does."""

    def attempt(document: Document) -> Grammar:
        try:
            refusals = survey(document, options)
            if refusals:
                raise UnsupportedSchemaError(refusals)
            emitter = make(Normalizer(document, options, limits))
            try:
                return emit(emitter, (document.root,))
            except BaseException:
                let_go(emitter.grammar.rules)
                raise
            finally:
                emitter.release()
        finally:
            document.release()

    with deadline(limits.max_seconds):
        document = Document(schema, limits, options.dialect, options.registry)
        if document.values >= _MANY:
            document.share(repeated(document.root.value, limits.max_schema_values, HOLDS, ANNOTATIONS))
        try:
            return attempt(document)
        except UnsupportedSchemaError:
            if not document.shares:
                raise
        # All places are named.
        return attempt(Document(schema, limits, options.dialect, options.registry))
