"""Sets of texts, combined: what the operators of sources do to grammars.

``written``   JSON strings as plain regular languages: how their texts are written
``rules``     the rules of a grammar with its imports, where records and counted repetitions are rules like others
``regular``   the regular language of a grammar that has one; texts that contain phrases
``product``   a grammar and an automaton at once (Bar-Hillel, Perles and Shamir 1961)
``lexers``    grammars with a lexer, for a product: ignored text as rules (``ignoring``: where rules say it), and terminals that compete
``found``     a grammar and phrases that no two lexemes share: records stay records; ``forbidden``: so do blocks, where phrases are left out
``joins``     unions, sequences and repetitions of grammars

Nothing here knows a source language.  What cannot be done exactly is an ``Inexact``, which says why.
"""
