"""JSON Schema -> grammar, in five steps.

``document``   read the schema, resolve references
``keywords``   survey: malformed values, and everything that must be refused
``normalize``  the algebra: unions of typed groups (``groups``)
``emit``       groups -> rules; ``strings`` and ``numbers`` -> lexemes (``lexemes``)
``report``     the same steps, as a report of all findings
"""

from __future__ import annotations

from typing import Any

from maskwright.errors import UnsupportedSchemaError
from maskwright.frontends.json_schema.document import Document
from maskwright.frontends.json_schema.emit import Emitter
from maskwright.frontends.json_schema.keywords import survey
from maskwright.frontends.json_schema.normalize import Normalizer
from maskwright.frontends.json_schema.options import SchemaOptions
from maskwright.grammar import Grammar
from maskwright.limits import DEFAULT_LIMITS, Limits

__all__ = ["SchemaOptions", "to_grammar"]


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
    document = Document(schema, limits)
    refusals = survey(document, options)
    if refusals:
        raise UnsupportedSchemaError(refusals)
    return Emitter(Normalizer(document, options, limits), options.whitespace, limits).emit((document.root,))
