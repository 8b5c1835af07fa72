"""The modules of the engine, compiled from ``cext/``; Python sees them through ``maskwright._core``."""
