"""vLLM: how its structured outputs come to be ours (``docs/vllm.md``).

vLLM calls ``register`` in each of its processes, by the entry point group ``vllm.general_plugins``.  It has no registry of
back-ends: names stand in a ``Literal``, and two methods choose by them, one that checks requests in the front-end process,
and one that makes the back-end in the engine's.  These three places are given ours; whatever names another back-end goes
the way it went before.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, Literal, get_args

import maskwright as mw

if TYPE_CHECKING:
    from maskwright.integrations.vllm_backend import MaskwrightBackend as MaskwrightBackend
    from maskwright.integrations.vllm_backend import MaskwrightGrammar as MaskwrightGrammar

__all__ = ["NAME", "MaskwrightBackend", "MaskwrightGrammar", "register"]

NAME = "maskwright"
SUPPORTED = ("0.31", "0.32")
"""Releases in which the three places were read and tried."""
_VALIDATOR = "_validate_structured_output_config"


def register() -> None:
    """Make ``maskwright`` a name that vLLM knows.  May be called any number of times, in any of its processes.

    Only needed by hand in front of ``LLM(structured_outputs_config={"backend": "maskwright"})``, which reads its arguments
    before it looks for plug-ins.

    Raises ``MaskwrightError`` when ``MASKWRIGHT_VLLM`` asks for us in a release of vLLM that is not supported; whoever names
    us there gets the same error from the configuration.
    """
    refusal = _refusal()
    if refusal is not None:
        if _is_default():
            raise mw.MaskwrightError(refusal)
        try:
            _admit_name()
        except Exception:
            return  # It is built in another way there, and refuses the name itself.
        return
    _admit_name()
    _check_requests()
    _make_backends()


def __getattr__(name: str) -> Any:
    # vLLM and torch are imported when a request first needs them.
    if name in ("MaskwrightBackend", "MaskwrightGrammar"):
        from maskwright.integrations import vllm_backend

        return getattr(vllm_backend, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_default() -> bool:
    """Whether the environment says that ``auto`` means us."""
    return os.environ.get("MASKWRIGHT_VLLM", "").lower() not in ("", "0", "false", "no", "off")


def _is_chosen(config: Any) -> bool:
    return config.backend == NAME or (config.backend == "auto" and _is_default())


def _refusal() -> str | None:
    """Why this release of vLLM is not supported."""
    import vllm

    found = re.match(r"\d+\.\d+", vllm.__version__)
    if found is not None and found.group() in SUPPORTED:
        return None
    return (
        f"the back-end maskwright {mw.__version__} is for vLLM {' and '.join(SUPPORTED)}, and this is {vllm.__version__}: install "
        "one of these, a newer maskwright, or choose another back-end (--structured-outputs-config.backend; unset MASKWRIGHT_VLLM)"
    )


def _admit_name() -> None:
    """One more name in the configuration, for pydantic and for the command line, which both read it from the class."""
    from pydantic.dataclasses import rebuild_dataclass
    from vllm.config import structured_outputs

    config = structured_outputs.StructuredOutputsConfig
    backend = config.__dataclass_fields__["backend"]
    if NAME in get_args(backend.type):
        return
    names = Literal[(*get_args(backend.type), NAME)]  # type: ignore[valid-type]
    validator = config.__pydantic_decorators__.model_validators[_VALIDATOR]
    original = validator.func

    def validated(self: Any) -> Any:
        if self.backend != NAME:
            return original(self)
        # The original has a list of back-ends that know the options for JSON.  We do.
        refusal = _refusal()
        if refusal is not None:
            raise ValueError(refusal)
        return self

    backend.type = config.__annotations__["backend"] = structured_outputs.StructuredOutputsBackend = names
    validator.func = validated
    rebuild_dataclass(config, force=True)


def _check_requests() -> None:
    """Requests are checked in the front-end process: a schema that is refused is an error of the client (400)."""
    from vllm.sampling_params import SamplingParams

    original = SamplingParams._validate_structured_outputs
    if getattr(original, "by_maskwright", False):
        return

    def validate(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        params, config = self.structured_outputs, structured_outputs_config
        if (
            params is None
            or config is None
            or not _is_chosen(config)
            # What follows is refused by vLLM itself, whatever the back-end.
            or tokenizer is None
            or model_config.is_diffusion
            or not (params._backend in (None, NAME) or params._backend_was_auto)
        ):
            original(self, model_config, structured_outputs_config, tokenizer)
            return
        from maskwright.integrations import vllm_backend

        _make_backends()  # The engine may live in this process, and may have been imported since.
        vllm_backend.check(params, model_config, config, tokenizer)
        params._backend = NAME
        params._backend_was_auto = config.backend != NAME

    validate.by_maskwright = True  # type: ignore[attr-defined]
    SamplingParams._validate_structured_outputs = validate


def _make_backends() -> None:
    """The engine's manager makes the one back-end of its process with the first request, by the name that the request has."""
    # Every engine has imported it when plug-ins are loaded; it is heavy, and other processes do without.
    module = sys.modules.get("vllm.v1.structured_output")
    if module is None:
        return
    manager = module.StructuredOutputManager
    original = manager.grammar_init
    if getattr(original, "by_maskwright", False):
        return

    def grammar_init(self: Any, request: Any) -> None:
        if self.backend is None and request.structured_output_request is not None:
            if request.sampling_params.structured_outputs._backend == NAME:
                from maskwright.integrations.vllm_backend import MaskwrightBackend

                vocab_size = self.vllm_config.model_config.get_vocab_size()
                self.backend = MaskwrightBackend(
                    self.vllm_config, tokenizer=self.tokenizer, vocab_size=vocab_size
                )
        original(self, request)

    grammar_init.by_maskwright = True  # type: ignore[attr-defined]
    manager.grammar_init = grammar_init
