"""SGLang: a grammar back-end in its registry (``docs/engines.md``).

SGLang calls ``register`` in each of its processes, by the entry point group ``sglang.srt.plugins``; importing this module does the
same.  Then ``--grammar-backend maskwright`` is a name that it knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwright.integrations.sglang_backend import MaskwrightGrammar as MaskwrightGrammar
    from maskwright.integrations.sglang_backend import MaskwrightGrammarBackend as MaskwrightGrammarBackend

__all__ = ["NAME", "MaskwrightGrammar", "MaskwrightGrammarBackend", "register"]

NAME = "maskwright"


def register() -> None:
    """Make ``maskwright`` a grammar back-end of SGLang.  May be called any number of times, in any of its processes.

    Raises ``ImportError`` where SGLang is missing, or has no registry of grammar back-ends.
    """
    from sglang.srt.constrained.base_grammar_backend import register_grammar_backend
    from sglang.srt.server_args import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices

    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, _make)


def _make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None) -> Any:
    from maskwright.integrations import sglang_backend

    return sglang_backend.make_backend(tokenizer, vocab_size, eos_token_ids)


def __getattr__(name: str) -> Any:
    if name in ("MaskwrightGrammar", "MaskwrightGrammarBackend"):
        from maskwright.integrations import sglang_backend

        return getattr(sglang_backend, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register()
