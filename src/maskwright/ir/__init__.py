"""The intermediate representation, which every front-end makes and ``maskwright.compiling`` lowers.

``grammar``       a context-free grammar over lexemes
``prune``         without rules that have no text; ``nullable``, the rules that have the empty one
``adjacency``     which terminals may stand next to each other, and wait together

``maskwright.compile_grammar`` takes such a grammar.
"""
