"""What an installed wheel must do, without pytest and without the source tree: the README's promises in small.

python tests/house/wheel.py
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path


def main() -> int:
    import maskwright as mw
    from maskwright.cli import main as command

    here = Path(mw.__file__).resolve()
    assert here.is_relative_to(Path(sys.prefix).resolve()), f"the source tree is on the path: {here}"
    assert mw.__version__ == metadata.version("maskwright")
    check_sbom(mw.__version__)
    for name in mw.__all__:
        if name not in ("Generator", "MaskTable"):  # these need torch
            assert getattr(mw, name) is not None
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=256)
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "age"],
    }
    matcher = mw.compile_json_schema(schema, vocabulary).matcher()
    assert matcher.accept_tokens(list(b'{"name": "Ada", "age": ')) and not matcher.fork().accept_token(
        ord('"')
    )
    bitmask = mw.allocate_token_bitmask(1, 257)
    matcher.fill_next_token_bitmask(bitmask)
    end = matcher.shortest_completion()
    assert matcher.accept_tokens(end) == len(end) and matcher.is_accepting
    assert json.loads(vocabulary.decode(matcher.accepted_tokens)) == {"name": "Ada", "age": 0}
    assert mw.compile_regex(r"\d{3}", vocabulary).matcher().accept_bytes(b"123")
    assert mw.compile_gbnf('root ::= "a"+', vocabulary).matcher().accept_bytes(b"aa")
    assert mw.StructuralTag.templates()
    # With their tables, also where nothing reads Lark grammars.
    sys.modules["lark"] = None  # type: ignore[assignment]
    for grammar in mw.shipped_grammars():
        assert mw.compile(mw.shipped_grammar(grammar), vocabulary).matcher().shortest_completion() is not None
    del sys.modules["lark"]
    assert command(["conformance", "--engine", "maskwright"]) == 0
    print(f"maskwright {mw.__version__} from {here.parent}")
    return 0


def check_sbom(version: str) -> None:
    """PEP 770: the bill of materials names this package and what it stands on."""
    (path,) = [
        each
        for each in metadata.files("maskwright") or ()
        if each.match("*.dist-info/sboms/maskwright.cdx.json")
    ]
    bill = json.loads(path.read_text("utf-8"))
    root = bill["metadata"]["component"]
    assert (bill["bomFormat"], root["name"], root["version"]) == ("CycloneDX", "maskwright", version)
    names = {each["name"] for each in bill["components"]}
    required = {
        each.partition(">")[0] for each in metadata.requires("maskwright") or () if "extra ==" not in each
    }
    assert required and required <= names


if __name__ == "__main__":
    sys.exit(main())
