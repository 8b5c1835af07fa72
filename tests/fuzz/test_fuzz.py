"""The seeds of fuzzing, and what it found: each is an answer, whatever was wrong before.  ``make fuzz`` looks for more."""

from __future__ import annotations

from pathlib import Path

import pytest
import targets

FUZZ = Path(__file__).parent
CASES = sorted(path for kind in ("corpus", "found") for path in FUZZ.glob(f"{kind}/*/*"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_cases(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", str(tmp_path))
    targets.TARGETS[path.parent.name](path.read_bytes())


def test_there_are_seeds_for_each_target() -> None:
    assert {path.parent.name for path in CASES} == targets.TARGETS.keys()
    assert sum(path.stat().st_size for path in CASES) < 200_000


def test_a_finding_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target notices what it is there for."""
    monkeypatch.setattr(targets, "_allowed", lambda matcher: [0])
    with pytest.raises(AssertionError):
        targets.schema(b'{"const":22}')
    wrong = iter([[1], [2]] * 20)
    monkeypatch.setattr(targets, "_allowed", lambda matcher: next(wrong))
    with pytest.raises(AssertionError):
        targets.tokens(b"\0")
