"""maskwright: exact grammar-constrained structured output for language models.

    source (schema, type) -> front-end -> Grammar -> passes -> tables -> CompiledGrammar
    tokenizer             -> Vocabulary -> Engine (token trie, context-independent masks)
    CompiledGrammar.matcher() -> Matcher: fill_next_token_bitmask, accept_token, rollback, fork

Names are imported on first use, so that ``import maskwright`` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwright._core import Matcher as Matcher
    from maskwright._core import set_threads as set_threads
    from maskwright.check.grammars import check_grammar as check_grammar
    from maskwright.check.json_schema.report import check_json_schema as check_json_schema
    from maskwright.check.report import Finding as Finding
    from maskwright.check.report import Report as Report
    from maskwright.compiling.compiled import CompiledGrammar as CompiledGrammar
    from maskwright.compiling.compiler import compile as compile
    from maskwright.compiling.compiler import compile_choice as compile_choice
    from maskwright.compiling.compiler import compile_gbnf as compile_gbnf
    from maskwright.compiling.compiler import compile_grammar as compile_grammar
    from maskwright.compiling.compiler import compile_json_schema as compile_json_schema
    from maskwright.compiling.compiler import compile_lark as compile_lark
    from maskwright.compiling.compiler import compile_regex as compile_regex
    from maskwright.compiling.compiler import compile_structural_tag as compile_structural_tag
    from maskwright.compiling.pool import Compiler as Compiler
    from maskwright.compiling.pool import acompile as acompile
    from maskwright.compiling.shared_cache import DirectoryCache as DirectoryCache
    from maskwright.compiling.shipped import shipped_grammar as shipped_grammar
    from maskwright.compiling.shipped import shipped_grammars as shipped_grammars
    from maskwright.errors import BitmaskError as BitmaskError
    from maskwright.errors import CanvasError as CanvasError
    from maskwright.errors import ConstraintError as ConstraintError
    from maskwright.errors import GrammarError as GrammarError
    from maskwright.errors import LimitError as LimitError
    from maskwright.errors import MaskwrightError as MaskwrightError
    from maskwright.errors import ModelError as ModelError
    from maskwright.errors import ModelNotFoundError as ModelNotFoundError
    from maskwright.errors import OutputError as OutputError
    from maskwright.errors import Refusal as Refusal
    from maskwright.errors import UnsatisfiableError as UnsatisfiableError
    from maskwright.errors import UnsupportedSchemaError as UnsupportedSchemaError
    from maskwright.errors import VocabularyError as VocabularyError
    from maskwright.frontends.json_schema.read.options import SchemaOptions as SchemaOptions
    from maskwright.frontends.tools.templates import ToolTemplate as ToolTemplate
    from maskwright.generation.generator import Generator as Generator
    from maskwright.generation.metrics import Metrics as Metrics
    from maskwright.limits import Limits as Limits
    from maskwright.masks.bitmask import allocate_token_bitmask as allocate_token_bitmask
    from maskwright.masks.bitmask import apply_token_bitmask_inplace as apply_token_bitmask_inplace
    from maskwright.masks.bitmask import fill_next_token_bitmasks as fill_next_token_bitmasks
    from maskwright.masks.mask_table import MaskTable as MaskTable
    from maskwright.masks.trie import TokenTrie as TokenTrie
    from maskwright.sources import GBNF as GBNF
    from maskwright.sources import Choice as Choice
    from maskwright.sources import Contains as Contains
    from maskwright.sources import JsonSchema as JsonSchema
    from maskwright.sources import JsonString as JsonString
    from maskwright.sources import Lark as Lark
    from maskwright.sources import Not as Not
    from maskwright.sources import Optional as Optional
    from maskwright.sources import Regex as Regex
    from maskwright.sources import StructuralTag as StructuralTag
    from maskwright.sources import Type as Type
    from maskwright.sources import response_format as response_format
    from maskwright.vocabulary.vocabulary import Vocabulary as Vocabulary

__version__ = "0.1.0"

_HOMES = {
    "_core": ["Matcher", "set_threads"],
    "masks.bitmask": ["allocate_token_bitmask", "apply_token_bitmask_inplace", "fill_next_token_bitmasks"],
    "compiling.pool": ["Compiler", "acompile"],
    "compiling.compiled": ["CompiledGrammar"],
    "compiling.compiler": [
        "compile",
        "compile_choice",
        "compile_gbnf",
        "compile_grammar",
        "compile_json_schema",
        "compile_lark",
        "compile_regex",
        "compile_structural_tag",
    ],
    "errors": [
        "BitmaskError",
        "CanvasError",
        "ConstraintError",
        "GrammarError",
        "LimitError",
        "MaskwrightError",
        "ModelError",
        "ModelNotFoundError",
        "OutputError",
        "Refusal",
        "UnsatisfiableError",
        "UnsupportedSchemaError",
        "VocabularyError",
    ],
    "frontends.json_schema.read.options": ["SchemaOptions"],
    "check.json_schema.report": ["check_json_schema"],
    "frontends.tools.templates": ["ToolTemplate"],
    "generation.generator": ["Generator"],
    "generation.metrics": ["Metrics"],
    "limits": ["Limits"],
    "masks.mask_table": ["MaskTable"],
    "check.report": ["Finding", "Report"],
    "sources": [
        "GBNF",
        "Choice",
        "Contains",
        "JsonSchema",
        "JsonString",
        "Lark",
        "Not",
        "Optional",
        "Regex",
        "StructuralTag",
        "Type",
        "response_format",
    ],
    "compiling.shared_cache": ["DirectoryCache"],
    "compiling.shipped": ["shipped_grammar", "shipped_grammars"],
    "masks.trie": ["TokenTrie"],
    "check.grammars": ["check_grammar"],
    "vocabulary.vocabulary": ["Vocabulary"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'maskwright' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"maskwright.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
