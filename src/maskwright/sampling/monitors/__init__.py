"""Monitors: a static analysis consulted where the text asks for a name (monitor-guided decoding)."""
