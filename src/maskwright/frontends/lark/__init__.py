"""Grammars in Lark's language -> Grammar.

    inline.py     ``%json {...}`` is set aside
    reader.py     text -> terminals and rules, by the package lark itself
    loading.py    its loader, within limits (only reader.py imports it, when a grammar is read)
    expansion.py  how large terminals become in place of their names
    templates.py  rules of templates, one for each list of arguments
    groups.py     rules whose groups multiply -> rules that do not
    size.py       how long a text may be
    places.py     where names stand
    terminals.py  patterns -> regular languages, ranked as Lark's lexer ranks them
    build.py      rules -> the intermediate representation
    indentation.py  blocks of lines

Everything that Lark reads means here what it means there: imports, templates, ``%override`` and ``%extend``, ranges,
repetitions.  What a parse tree looks like is no question here: ``?``, ``!``, ``_``, aliases and rule priorities
do not change the language.
"""

from __future__ import annotations

from maskwright.frontends.lark.build import LexerKind, Reading, to_grammar
from maskwright.frontends.lark.indentation import Indentation
from maskwright.frontends.lark.size import check_size

__all__ = ["Indentation", "LexerKind", "Reading", "check_size", "to_grammar"]
