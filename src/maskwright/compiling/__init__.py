"""Sources -> compiled grammars.

``compiler``          the table of contents: the order of the steps, from the front-end to the engine
``pool``              beside a program that must not wait
``factoring``         rule bodies as automata
``lowering``          grammar -> flat tables, with ``lexeme_automata``, ``lexer_automaton``, ``key_sorts``, ``token_sets``
``compiled``          what comes out; ``captures``, the parts of a text that it names; ``symbols``, where they occur
``packed_tables``     tables as bytes (``packed_checks``), for ``table_cache`` (files) and ``shared_cache`` (any mapping)
``shipped``           the grammars that come with the package, and their tables (``shipped_tables``, ``build_tables``)

``maskwright`` exports what is public: ``compile`` and its siblings, ``Compiler``, ``CompiledGrammar``, ``DirectoryCache``, ``shipped_grammar``.
"""
