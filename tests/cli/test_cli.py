"""The command line: exit codes, formats, standard input, messages."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from maskwright.cli import main

GOOD = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(GOOD)
    return str(path)


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_good_schema(schema, capsys):
    assert main(["check", schema]) == 0
    summary = "all good; keywords: 4 enforced; 1 hint"
    assert capsys.readouterr().out == f"{summary} (--verbose shows them)\n"
    assert main(["check", schema, "--verbose"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{schema}:#: hint: members that are not declared may follow; additionalProperties: false forbids them "
        "[open-object]",
        f"{schema}:#: enforced: type, properties, required",
        f"{schema}:/properties/a: enforced: type",
        summary,
    ]


DEAD = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 3, "title": "t"}},
    "additionalProperties": False,
}


def test_what_can_never_be_used_is_a_warning(tmp_path, capsys):
    path = write(tmp_path, "s.json", json.dumps(DEAD))
    assert main(["check", path]) == 0
    out = capsys.readouterr().out
    assert f"{path}:/properties/a: warning: nothing satisfies this: minimum 5 and maximum 3 exclude" in out
    assert out.endswith("\n1 warning; keywords: 6 enforced, 1 annotation\n")


def test_profiles(tmp_path, capsys):
    path = write(tmp_path, "s.json", json.dumps(DEAD))
    instance = write(tmp_path, "i.json", "[]")
    assert main(["check", path, "--profile", "openai-strict", "--instance", instance]) == 1
    out = capsys.readouterr().out
    assert "#: error: every property must be required: list 'a'" in out
    assert "leaves the schema" in out
    with pytest.raises(SystemExit):
        main(["check", path, "--profile", "none"])


def test_machine_readable_formats_carry_the_whole_report(tmp_path, capsys):
    path = write(tmp_path, "s.json", json.dumps({"properties": {"a": DEAD["properties"]["a"]}}))

    def run(*arguments):
        assert main(["check", path, *arguments]) == 0
        return capsys.readouterr().out

    data = json.loads(run("--format", "json"))
    (finding,) = data["findings"]
    assert {"pointer": "/properties/a", "keyword": "minimum", "text": "minimum 5"} in finding["constraints"]
    assert [hint["code"] for hint in data["hints"]] == ["missing-type"]
    assert {
        "file": path,
        "pointer": "/properties/a",
        "keyword": "title",
        "status": "annotation",
        "reason": "",
    } in data["keywords"]
    (run_,) = json.loads(run("--format", "sarif"))["runs"]
    (result,) = run_["results"]
    assert {"minimum 5", "maximum 3"} < {each["message"]["text"] for each in result["relatedLocations"]}
    (run_,) = json.loads(run("--format", "sarif", "--verbose"))["runs"]
    assert [each["ruleId"] for each in run_["results"]] == ["unsatisfiable", "missing-type"]
    assert run_["properties"]["keywords"] == data["keywords"]
    assert run("--format", "github").count("\n") == 1
    lines = run("--format", "github", "--verbose").splitlines()
    assert [line.partition("::/")[0].partition("::#")[0] for line in lines] == [
        f"::warning file={path},line=1,col=17,title=unsatisfiable",
        f"::notice file={path},line=1,col=1,title=missing-type",
        f"::notice file={path},line=1,col=1,title=keywords",
        f"::notice file={path},line=1,col=17,title=keywords",
    ]


def test_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"extends": {}}')))
    assert main(["check", "-"]) == 1
    assert "-:#: error: extends:" in capsys.readouterr().out


def test_malformed_json_has_a_caret(tmp_path, capsys):
    path = write(tmp_path, "bad.json", '{"type": "integer",\n "minimum": }')
    assert main(["check", path]) == 1
    out = capsys.readouterr().out
    assert f"{path}:2:13: error: malformed JSON" in out
    assert '   "minimum": }\n              ^' in out


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('{"a": 1}', 0, "all good"),
        ('{"a": 1}\n', 0, "all good"),
        ('{\n "a": "x"}', 1, ":2:7: error: the text leaves the schema here"),
        ('{"b', 1, ":1:4: error: the text is unfinished; shortest end"),
        ('{"a', 1, "incomplete"),
    ],
)
def test_instances(text, code, words, schema, tmp_path, capsys):
    if text == '{"b':
        words = "error"
    assert main(["check", schema, "--instance", write(tmp_path, "i.json", text)]) == code
    assert words in capsys.readouterr().out


def test_json_format(tmp_path, capsys):
    path = write(tmp_path, "s.json", '{"properties": {"p": {"extends": {}, "format": "odd"}}}')
    assert main(["check", path, "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {(f["severity"], f["code"], f["place"]) for f in findings} == {
        ("error", "unsupported", "/properties/p"),
        ("note", "format-annotation", "/properties/p"),
    }
    assert all(f["file"] == path for f in findings)


def test_sarif_format(tmp_path, capsys):
    path = write(tmp_path, "s.json", "{")
    assert main(["check", path, "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    (result,) = log["runs"][0]["results"]
    assert result["ruleId"] == "malformed"
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 1, "startColumn": 2}


def test_github_format(tmp_path, capsys):
    path = write(tmp_path, "s.json", '{"type": "strnig"}')
    assert main(["check", path, "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith(
        f"::error file={path},line=1,col=2,title=malformed::/type: type must be"
    )


def test_options_reach_the_compiler(tmp_path, schema):
    spaced = write(tmp_path, "i.json", '{"a": 1}')
    assert main(["check", schema, "--instance", spaced]) == 0
    assert main(["check", schema, "--instance", spaced, "--whitespace", "compact"]) == 1


@pytest.mark.parametrize("arguments", [["check", "missing.json"], ["check", "grammar.lark"], ["check", "."]])
def test_usage_errors(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("maskwright: ")


@pytest.mark.parametrize("arguments", [[], ["fly"], ["check"], ["generate", "--schema", "x"]])
def test_argument_errors(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_mask(schema, capsys):
    assert main(["mask", "--schema", schema, "--prefix", '{"a":1']) == 0
    out = capsys.readouterr().out
    assert "complete: no" in out
    assert "shortest completion: '}'" in out
    assert main(["mask", "--schema", schema, "--prefix", '{"a":1}']) == 0
    assert "complete: yes" in capsys.readouterr().out


def test_mask_of_an_impossible_prefix(schema, capsys):
    assert main(["mask", "--schema", schema, "--prefix", '{"a":x']) == 1
    assert "'{\"a\":'" in capsys.readouterr().err


@pytest.mark.slow
def test_generate(schema, capsys):
    pytest.importorskip("transformers", reason="generate runs a transformers model")
    arguments = ["generate", "--schema", schema, "--prompt", "one", "--max-tokens", "60"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert isinstance(json.loads(text)["a"], int)
    assert main([*arguments, "--stream"]) == 0
    assert capsys.readouterr().out == text


@pytest.mark.slow
def test_generate_refusals(tmp_path, schema, capsys):
    pytest.importorskip("transformers", reason="generate runs a transformers model")
    assert main(["generate", "--schema", schema, "--prompt", "x", "--model", str(tmp_path)]) == 2
    assert "cannot be loaded" in capsys.readouterr().err
    assert main(["generate", "--schema", schema, "--prompt", "x", "--max-tokens", "1"]) == 1
    assert "--max-tokens is 1" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--top-p", "--min-p", "--top-k"])
def test_options_that_need_a_temperature(option, schema, capsys):
    assert main(["generate", "--schema", schema, "--prompt", "x", option, "1"]) == 2
    assert f"{option} cuts the distribution" in (err := capsys.readouterr().err)
    assert "pass --temperature as well (1 leaves probabilities as they are)" in err


def test_a_malformed_source_is_named(tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text('{"type": "string", }')
    assert main(["bench", "--schema", str(path)]) == 1
    assert f"maskwright: {path}:1:20: malformed JSON" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["check"], ["bench", "--schema"]])
def test_instances_are_files(command, schema, capsys):
    assert main([*command, schema, "--instance", '{"id":1}']) == 2
    assert (
        '{"id":1}: No such file or directory (--instance takes files; - is standard input)'
        in capsys.readouterr().err
    )


def test_version_in_a_process_of_its_own():
    out = subprocess.run(
        [sys.executable, "-m", "maskwright", "--version"], capture_output=True, text=True, check=True
    )
    assert out.stdout.startswith("maskwright ")


def test_check_loads_no_model_library():
    code = "import sys; from maskwright.cli import main; main(['check', '-']); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], input=GOOD, capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == [
        "all good; keywords: 4 enforced; 1 hint (--verbose shows them)",
        "False",
    ]
