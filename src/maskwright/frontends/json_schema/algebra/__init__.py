"""Schemas as sets of values: unions of typed groups, of which meets and complements are such again.

``groups``        the typed groups, and what two of them have in common; ``strings``, the languages of string groups; ``keys``, member names
``typed``         the constraints of one subschema on each type, and what violates them
``normalize``     schemas -> unions of groups; ``clauses`` and ``unevaluated``
``trivially_empty``        groups that are empty; ``discriminators``, members that tell groups apart; ``values``, how many values there are
"""
