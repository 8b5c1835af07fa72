"""The numbers of JSON as regular languages of their texts.

``bounds``          exact decimals, of any size
``texts``           the texts between bounds
``multiples``       those of the multiples of a number; ``large_divisors``, where an automaton cannot tell the remainders apart
``languages``       sets of numbers -> one language
"""
