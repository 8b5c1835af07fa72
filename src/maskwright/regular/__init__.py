"""Regular languages: expressions as data, and the automata made of them.

``expressions``   regular expressions: the terminals of the intermediate representation
``thompson``      expressions -> nondeterministic automata with counted loops
``determinize``   -> deterministic ones, products, minimisation
``dfa``           Boolean operations, bounds on lengths, whether a text matches
``automata``      how terminals reach the engine; ``columns`` and ``merging``, those of lexers with indentation, and with fewer states

Patterns that people write are read by ``maskwright.regex``.  All of this is for maskwright itself.
"""
