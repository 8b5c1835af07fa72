"""The command line: ``program`` has the commands, and each other file one of them."""

from maskwright.cli.program import main

__all__ = ["main"]
