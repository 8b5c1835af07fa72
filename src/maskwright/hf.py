"""For ``generate`` of Hugging Face transformers: a logits processor, and a decoding method that writes forced text by itself."""

from maskwright.generation.custom import forced_decoding
from maskwright.generation.logits_processor import LogitsProcessor

__all__ = ["LogitsProcessor", "forced_decoding"]
