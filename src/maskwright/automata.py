"""Nondeterministic byte automata: how terminals reach the engine.

Thompson's construction over byte-level ``Regular`` trees, with two twists.  Large bounded
repetitions stay counted (``loops``) instead of being unrolled, and states from which no
accepting state can be reached are removed, so that every state that the engine meets can
still be completed.
"""
