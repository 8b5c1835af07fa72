"""What do schedules and edits come to with a real model, with the constraint and without?

    PYTHONPATH=src python bench/diffusion_real.py schedules --log schedules.jsonl --out bench/results/DATE-diffusion-real.json
    PYTHONPATH=src python bench/diffusion_real.py edits --log edits.jsonl --out bench/results/DATE-diffusion-real.json
    PYTHONPATH=src python bench/diffusion_real.py schedules --model demo --only "one slot, ahead 4" --log demo.jsonl

The model is that of ``diffusion_adapt.py`` (made first), or the demo model.  ``schedules``: held-out requests and documents, each with a schema of its
own; every schedule fills the same canvas once under the schema and once free.  Counted are valid texts (by the package jsonschema), model calls, members
of a request with the right value, and how likely SmolLM2 itself, read from left to right, finds the text.  ``edits``: spans of real documents,
queries and programs are opened and filled again; members are inserted and deleted.  Each line of ``--log`` is one run; a run that was ended goes on there.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from diffusion import fields_right
from diffusion_adapt import exact_nats, infilling_model, load, prompt_ids, weights_path
from diffusion_texts import Text, documents, held_out_requests, source_files
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer
from walks import validator_for

import maskwright as mw
from maskwright.demo import demo_diffusion_path
from maskwright.demo.prompts import ANSWER_TOKEN
from maskwright.diffusion import MaskedDiffusionModel, Schedule, infill_steps
from maskwright.diffusion.adapters import HuggingFaceDiffusionModel
from maskwright.errors import MaskwrightError
from maskwright.generation.default_model import default_model

PATIENT = mw.Limits(max_seconds=120)
"""The default of 5 seconds would make results depend on what else the machine does."""


def schedules(slots: int) -> dict[str, Schedule]:
    half, quarter = max(1, slots // 2), max(1, slots // 4)
    return {
        "one slot": Schedule(),
        "one slot, ahead 4": Schedule(ahead=4),
        "two slots": Schedule(steps=half),
        "two slots, entropy": Schedule(steps=half, score="entropy"),
        "two slots, margin": Schedule(steps=half, score="margin"),
        "two slots, at random": Schedule(steps=half, score="random"),
        "two slots, left to right": Schedule(steps=half, score="left_to_right"),
        "two slots, blocks of 8": Schedule(steps=half, block=8),
        "two slots, one masked again": Schedule(steps=half, remask=1),
        "two slots, temperature 1": Schedule(steps=half, temperature=1.0),
        "four slots": Schedule(steps=quarter),
        "all slots surer than 0.9": Schedule(threshold=0.9),
        "middle of every gap": Schedule(score="middle"),
        "all at once": Schedule(steps=1),
        "causal, one slot": Schedule(block=1, verify=True),
        "causal, proposed": Schedule(verify=True),
    }


DEAR = {
    "one slot",
    "one slot, ahead 4",
    "two slots, margin",
    "two slots, one masked again",
    "two slots, temperature 1",
}


class Models:
    """A tokenizer with its vocabulary, and models of it for canvases behind a text; SmolLM2 as judge."""

    def __init__(self, name: str, weights: Path) -> None:
        if name == "adapted":
            self.module, self.tokenizer = load(weights)
        else:
            self.module = AutoModelForMaskedLM.from_pretrained(demo_diffusion_path()).eval()
            self.tokenizer = AutoTokenizer.from_pretrained(demo_diffusion_path())
        self.name = name
        self.vocabulary = mw.Vocabulary.from_huggingface(self.tokenizer, vocab_size=len(self.tokenizer))
        self.judge = AutoModelForCausalLM.from_pretrained(default_model(), dtype=torch.float32).eval()
        self.judge_tokenizer = AutoTokenizer.from_pretrained(default_model())
        self.nats = cache(self._nats)

    def model(self, before: str) -> MaskedDiffusionModel:
        if self.name == "adapted":
            return infilling_model(self.module, self.tokenizer, before)
        asked = self.tokenizer(before.removesuffix("JSON:\n") + ANSWER_TOKEN)["input_ids"]
        return HuggingFaceDiffusionModel(self.module, self.tokenizer, prompt=asked)

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def text(self, ids: list[int]) -> str:
        ends = self.vocabulary.eos_ids
        stop = next((i for i, token in enumerate(ids) if token in ends), len(ids))
        return self.vocabulary.decode([token for token in ids[:stop] if token >= 0]).decode(
            "utf-8", "replace"
        )

    def _nats(self, before: str, text: str) -> tuple[float, int]:
        """-log p of a text and its end under SmolLM2, and the number of tokens."""
        tokenizer = self.judge_tokenizer
        ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
        return exact_nats(self.judge, prompt_ids(tokenizer, before), ids), len(ids)


class Remembering(MaskedDiffusionModel):
    """A model that is asked about each canvas once: schedules have many canvases in common.  Calls are counted all the same."""

    def __init__(self, model: MaskedDiffusionModel) -> None:
        self.model = model
        self.mask_id, self.eos_ids = model.mask_id, model.eos_ids
        self.known: dict[tuple[int, ...], Any] = {}

    def logits(self, canvas: list[int]) -> Any:
        return self.logits_of([canvas])[0]

    def logits_of(self, canvases: list[list[int]]) -> Any:
        new = [canvas for canvas in canvases if tuple(canvas) not in self.known]
        if new:
            # Copies: what comes may be a view of the logits of the prompt as well.
            self.known.update(zip(map(tuple, new), map(np.array, self.model.logits_of(new)), strict=True))
        return [self.known[tuple(canvas)] for canvas in canvases]

    def causal_logits(self, canvas: list[int]) -> Any:
        return self.model.causal_logits(canvas)

    def encode(self, text: str) -> list[int]:
        return self.model.encode(text)


def is_json_of(schema: Any, text: str) -> bool:
    try:
        return bool(validator_for(schema).is_valid(json.loads(text)))
    except ValueError:
        return False


def fill(
    model: MaskedDiffusionModel,
    grammar: Any,
    canvas: list[Any],
    schedule: Schedule,
    criterion: str,
    anchors: Sequence[str] = (),
    limits: mw.Limits = PATIENT,
) -> tuple[list[int], int]:
    """The tokens of a filled canvas, and the model calls."""
    calls, tokens = 0, []
    for step in infill_steps(
        model, grammar, canvas, schedule=schedule, criterion=criterion, anchors=anchors, seed=0, limits=limits
    ):
        calls += step.calls if step.number else 0
        tokens = step.tokens
    return tokens, calls


# --- schedules


def tasks(models: Models, count: int, most_slots: int) -> Iterator[tuple[Text, int]]:
    """Held-out texts and the slots of their canvases: requests and documents in turn."""
    seen: set[str] = set()
    kept = []
    for text in Random("documents").sample(documents(True), len(documents(True))):
        schema = json.dumps(text.schema)
        if "\n" not in text.text and schema not in seen and '"properties"' in schema:
            seen.add(schema)
            kept.append(text)
    found = 0
    for pair in zip(held_out_requests(220), kept, strict=False):
        for text in pair:
            slots = 8 * (len(models.encode(text.text)) // 8 + 1)
            if found < count and slots <= most_slots:
                found += 1
                yield text, slots


def run_schedules(options: argparse.Namespace, models: Models, done: set[str]) -> Iterator[dict[str, Any]]:
    """The cheap schedules first, so that a run that is ended early has seen many tasks."""
    # The demo model has no causal mode.
    able = {name: each for name, each in schedules(1).items() if models.name == "adapted" or not each.verify}
    names = sorted(able, key=lambda name: name in DEAR)
    any_text = mw.compile_regex("(?s:.*)", models.vocabulary)
    for dear in (False, True):
        for number, (text, slots) in enumerate(tasks(models, options.tasks, options.slots)):
            if number % options.parts != options.part:
                continue
            wanted = [
                (f"{number} {name} {criterion}", name, criterion)
                for name in names
                if (name in DEAR) == dear and (not options.only or options.only in name)
                for criterion in ("exact", "none")
            ]
            wanted = [each for each in wanted if each[0] not in done]
            if not wanted:
                continue
            grammar = mw.compile_json_schema(text.schema, models.vocabulary)
            model = Remembering(models.model(text.before))
            for key, name, criterion in wanted:
                # These two know no weaker criterion: free, any text is in the language.
                always = able[name].ahead > 1 or able[name].verify
                asked = any_text if always and criterion == "none" else grammar
                how = "exact" if always else criterion
                ids, calls = fill(model, asked, [None] * slots, schedules(slots)[name], how)
                got = models.text(ids)
                nats, tokens = models.nats(text.before, got)
                right = members = 0
                if text.kind == "requests":
                    value = json.loads(got) if is_json_of(text.schema, got) else None
                    right, members = fields_right(json.loads(text.text), value)
                yield {
                    "key": key,
                    "schedule": name,
                    "criterion": criterion,
                    "kind": text.kind,
                    "slots": slots,
                    "calls": calls,
                    "valid": is_json_of(text.schema, got),
                    "nats": nats,
                    "tokens": tokens,
                    "right": right,
                    "members": members,
                    "text": got,
                }


def sum_schedules(rows: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for row in rows:
        out.setdefault(f"{row['schedule']}, {row['criterion']}", []).append(row)
    return {name: _summed(found) for name, found in out.items()}


def _summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    total = {name: sum(row[name] for row in rows) for name in ("valid", "calls", "slots", "nats", "tokens")}
    return {
        "texts": len(rows),
        "valid": round(total["valid"] / len(rows), 3),
        "calls": round(total["calls"] / len(rows), 1),
        "slots": round(total["slots"] / len(rows), 1),
        "log p a token": round(-total["nats"] / total["tokens"], 3),
        "members right": round(
            sum(row["right"] for row in rows) / max(1, sum(row["members"] for row in rows)), 3
        ),
    }


# --- edits


def is_sql(text: str) -> bool:
    """Whether SQLite takes the syntax; that there are no such tables does not count."""
    try:
        sqlite3.connect(":memory:").execute("EXPLAIN " + text)
    except sqlite3.Warning:
        return False
    except sqlite3.Error as error:
        return not any(part in str(error) for part in ("syntax", "incomplete", "unrecognized", "malformed"))
    return True


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def members_of(text: str) -> list[tuple[int, int, int]]:
    """Of an object printed with one member a line: where each member of the outer one starts, where its value does, and where it ends (its comma not
    included)."""
    found = []
    decoder = json.JSONDecoder()
    at = text.index("{") + 1
    while True:
        while text[at] in " \n,":
            at += 1
        if text[at] == "}":
            return found
        start = at
        _, at = decoder.raw_decode(text, at)
        while text[at] in " :":
            at += 1
        value = at
        _, at = decoder.raw_decode(text, at)
        found.append((start, value, at))


def without_member(text: str, number: int) -> str:
    """The text of an object without one member and one of the commas beside it."""
    found = members_of(text)
    start, _, end = found[number]
    if number + 1 < len(found):
        return text[:start] + text[found[number + 1][0] :]
    return text[: found[number - 1][2] if number else start] + text[end:]


def edited_documents(count: int) -> list[Text]:
    """Held-out documents printed with one member a line, of at least two members, each with a schema of its own."""
    seen: set[str] = set()
    found = []
    for text in Random("edits").sample(documents(True), len(documents(True))):
        value = json.loads(text.text)
        if "\n" in text.text and isinstance(value, dict) and len(value) >= 2 and len(found) < count:
            if str(text.schema) not in seen:
                found.append(text)
            seen.add(str(text.schema))
    return found


MOST_LEXER_SLOTS = 2
"""Of one edit under a grammar with a lexer: what may fill three open slots takes such a grammar seconds to find out, and four take minutes."""
Edit = tuple[str, str, str, str, str, Any, Callable[[str], bool]]
"""Which edit, what is before the text, the text's parts before, in and behind the span, the grammar's source, and a judge."""


def edits(count: int) -> Iterator[Edit]:
    """The span of a value (replace), of a whole member (insert), or of a word of a query or a program."""
    rng = Random("spans")
    for text in edited_documents(count):
        whole = text.text
        found = members_of(whole)
        start, value, end = rng.choice(found)
        judge = _judge(text.schema)
        yield "replace", text.before, whole[:value], whole[value:end], whole[end:], text.schema, judge
        # A member that is not the last one, with its comma and the white space to the next one.
        number = rng.randrange(len(found) - 1)
        start, end = found[number][0], found[number + 1][0]
        yield "insert", text.before, whole[:start], whole[start:end], whole[end:], text.schema, judge
    statements = (Path(__file__).parent / "queries.sql").read_text().split("\n\n")[1:]
    for statement in rng.sample(statements, len(statements))[:count]:
        start, end = rng.choice([found.span() for found in re.finditer(r"[\w.]+", statement)])
        source = mw.shipped_grammar("sql")
        yield "query", "", statement[:start], statement[start:end], statement[end:], source, is_sql
    for body in programs(count):
        start, end = rng.choice([found.span() for found in re.finditer(r"\w+", body)])
        source = mw.shipped_grammar("python")
        yield "program", "", body[:start], body[start:end], body[end:], source, is_python


def _judge(schema: Any) -> Callable[[str], bool]:
    return lambda text: is_json_of(schema, text)


def programs(count: int) -> Iterator[str]:
    """Short functions of held-out packages."""
    files, rng = source_files(True), Random("programs")
    for path in rng.sample(files, len(files)):
        text = path.read_text("utf-8", "replace")
        if not is_python(text) or not text.isascii():
            continue
        for node in ast.parse(text).body:
            found = ast.get_source_segment(text, node) if isinstance(node, ast.FunctionDef) else None
            if found and 80 <= len(found) <= 300 and '"""' not in found:
                yield found + "\n"
                count -= 1
                break
        if not count:
            return


def is_accepted(grammar: mw.CompiledGrammar, ids: list[int]) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_tokens(ids) == len(ids) and matcher.is_accepting


def grammar_of(schema: Any, text: str, models: Models) -> mw.CompiledGrammar:
    """Members in the order of the schema where a document has them so, else in any order."""
    grammar = mw.compile_json_schema(schema, models.vocabulary, limits=PATIENT)
    if is_accepted(grammar, models.encode(text)):
        return grammar
    return mw.compile_json_schema(schema, models.vocabulary, property_order="any", limits=PATIENT)


def run_edits(options: argparse.Namespace, models: Models, done: set[str]) -> Iterator[dict[str, Any]]:
    shipped: dict[str, mw.CompiledGrammar] = {}
    for number, (kind, before, head, span, tail, source, judge) in enumerate(edits(options.tasks)):
        slots = len(models.encode(span))
        has_lexer = kind in ("query", "program")
        if slots > (MOST_LEXER_SLOTS if has_lexer else options.slots) or f"{number} exact" in done:
            continue
        if not has_lexer:
            grammar = grammar_of(source, head + span + tail, models)
        elif kind not in shipped:
            grammar = shipped[kind] = mw.compile(source, models.vocabulary, limits=PATIENT)
        else:
            grammar = shipped[kind]
        canvas = [*models.encode(head), *[None] * slots, *models.encode(tail), models.vocabulary.eos_ids[0]]
        model = models.model(before)
        for criterion in ("none", "exact"):
            row = {
                "key": f"{number} {criterion}",
                "kind": kind,
                "criterion": criterion,
                "slots": slots,
                "slow": False,
            }
            try:
                try:
                    ids, calls = fill(model, grammar, canvas, Schedule(), criterion, limits=mw.Limits())
                except mw.LimitError:
                    row["slow"] = True
                    ids, calls = fill(model, grammar, canvas, Schedule(), criterion)
            except MaskwrightError as error:
                yield {**row, "error": f"{type(error).__name__}: {error}"}
                continue
            got = models.text(ids)
            inside = got[len(head) : len(got) - len(tail)]
            kept = got == head + inside + tail
            yield {**row, "calls": calls, "valid": judge(got), "kept": kept, "same": inside == span, "got": inside, "was": span}  # fmt: skip
    for number, text in enumerate(edited_documents(options.tasks)):
        if f"delete {number}" in done:
            continue
        grammar = grammar_of(text.schema, text.text, models)
        agreed = members = deletable = 0
        for member in range(len(members_of(text.text))):
            shorter = without_member(text.text, member)
            fits = is_accepted(grammar, models.encode(shorter))
            members += 1
            deletable += fits
            agreed += fits == is_json_of(text.schema, shorter)
        yield {"key": f"delete {number}", "kind": "delete", "criterion": "exact", "members": members, "deletable": deletable, "agreed": agreed}  # fmt: skip


def sum_edits(rows: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["kind"], row["criterion"]), []).append(row)
    for (kind, criterion), found in groups.items():
        if kind == "delete":
            out[kind] = {name: sum(row[name] for row in found) for name in ("members", "deletable", "agreed")}
            continue
        ran = [row for row in found if "error" not in row]
        out[f"{kind}, {criterion}"] = {
            "edits": len(found),
            "errors": len(found) - len(ran),
            "past the default limits": sum(row["slow"] for row in found),
            **{name: sum(row[name] for row in ran) for name in ("valid", "kept", "same", "calls", "slots")},
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("schedules", "edits"))
    parser.add_argument("--model", choices=("adapted", "demo"), default="adapted")
    parser.add_argument("--weights", type=Path, default=weights_path())
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--slots", type=int, default=40, help="the most of one canvas, or of one edit")
    parser.add_argument("--only", help="schedules with this in their names")
    parser.add_argument(
        "--parts", type=int, default=1, help="processes that share the tasks, each with a log of its own"
    )
    parser.add_argument("--part", type=int, default=0, help="which of them")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = [json.loads(line) for line in options.log.read_text().splitlines()] if options.log.exists() else []
    models = Models(options.model, options.weights)
    run, summed = (run_schedules, sum_schedules) if options.command == "schedules" else (run_edits, sum_edits)
    with options.log.open("a") as log:
        for row in run(options, models, {row["key"] for row in rows}):
            rows.append(row)
            log.write(json.dumps(row) + "\n")
            log.flush()
    result = summed(rows)
    print(json.dumps(result, indent=1))
    if options.out is not None:
        known = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(
            json.dumps({**known, f"{options.command}, {options.model}": result}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
