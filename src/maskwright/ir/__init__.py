"""The intermediate representation, which every front-end makes and ``maskwright.compiling`` lowers.

``grammar``       a context-free grammar over lexemes
``prune``         without rules that have no text; ``nullable``, the rules that have the empty one

``maskwright.compile_grammar`` takes such a grammar.
"""
