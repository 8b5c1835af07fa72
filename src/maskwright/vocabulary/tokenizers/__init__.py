"""Readers of tokenizer families: each turns one kind of tokenizer into a ``TokenTable``."""
