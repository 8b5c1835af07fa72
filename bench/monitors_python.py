"""Does Python code of SmolLM2-135M-Instruct use members that exist: under the grammar alone, with jedi, with a language server?

    python bench/monitors_python.py [--texts 4] [--out FILE]

As in monitor-guided decoding (Agrawal et al., NeurIPS 2023): classes come from another file, which the model does not see and the monitor reads.
The model writes what a function returns, one expression of the shipped Python grammar; ``smc`` writes the texts of a task as particles.
Judge is the type checker basedpyright on complete files: those without an error ("compile"), and those in which every member exists.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from monitors import report

import maskwright as mw
from maskwright.sampling import (
    Constraint,
    GrammarConstraint,
    HuggingFaceModel,
    LanguageServerNames,
    PythonAttributes,
    smc,
)

MAX_TOKENS = 24
SERVER = ["basedpyright-langserver", "--stdio"]

MODULES = {
    "shop": (
        "Order",
        {"article": "str", "unit_cents": "int", "pieces": "int", "rebate_cents": "int", "ordered_on": "str"},
        {"total_cents": "int", "is_settled": "bool"},
    ),
    "library": (
        "Loan",
        {"reader": "str", "work": "str", "due_day": "int", "renewals": "int", "fee_per_day": "float"},
        {"fee_on": "float", "may_renew": "bool"},
    ),
    "harbour": (
        "Vessel",
        {
            "call_sign": "str",
            "draught_m": "float",
            "beam_m": "float",
            "crew_size": "int",
            "berth_no": "int",
        },
        {"gross_tonnage": "float", "can_moor": "bool"},
    ),
    "clinic": (
        "Visit",
        {
            "patient_ref": "str",
            "ward": "str",
            "arrived_min": "int",
            "left_min": "int",
            "pulse_readings": "list[int]",
        },
        {"minutes_waited": "int", "was_urgent": "bool"},
    ),
}
"""By module: a class, its fields, and its methods, which take nothing but ``self``."""

FUNCTIONS = {
    "shop": [
        ("cost", "int", "What the order costs in cents, rebate included."),
        ("label", "str", "The name of the article that was ordered."),
        ("is_large", "bool", "Whether there are more than ten pieces in the order."),
        ("price", "int", "The price of one piece in cents."),
        ("is_paid", "bool", "Whether the order has been paid."),
    ],
    "library": [
        ("borrower", "str", "The name of who has borrowed the book."),
        ("title", "str", "The title of the book that was borrowed."),
        ("is_late", "bool", "Whether the book should be back by day 100."),
        ("fee", "float", "What ten days of delay cost."),
        ("extensions", "int", "How often the loan was extended."),
    ],
    "harbour": [
        ("name", "str", "The call sign of the vessel."),
        ("depth", "float", "How deep the water must be for the vessel, in metres."),
        ("width", "float", "The width of the vessel in metres."),
        ("people", "int", "How many people are on board."),
        ("place", "int", "The number of the berth."),
    ],
    "clinic": [
        ("patient", "str", "Who came to the clinic."),
        ("duration", "int", "How many minutes the visit took."),
        ("highest", "int", "The highest pulse that was measured."),
        ("department", "str", "The ward of the visit."),
        ("waiting", "int", "How long the patient waited, in minutes."),
    ],
}
"""By module: functions of one object of its class, with what they return and what they say."""


@dataclass(frozen=True)
class Task:
    """What the model reads, and what the analysis has in place of its import."""

    module: str
    function: str

    @property
    def shown(self) -> str:
        name = MODULES[self.module][0]
        return f"from {self.module} import {name}\n\n\n{self.function}"

    @property
    def context(self) -> str:
        return f"{definition(self.module)}\n\n{self.function}"


def definition(module: str) -> str:
    name, fields, methods = MODULES[module]
    lines = [f"class {name}:"]
    lines += [f"    {field}: {kind}" for field, kind in fields.items()]
    for method, kind in methods.items():
        lines += ["", f"    def {method}(self) -> {kind}:", f"        return {kind}()"]
    return "\n".join(lines) + "\n"


def tasks() -> list[Task]:
    return [
        Task(
            module,
            f"def {name}({MODULES[module][0].lower()}: {MODULES[module][0]}) -> {kind}:\n"
            f'    """{said}"""\n    return',
        )
        for module, functions in FUNCTIONS.items()
        for name, kind, said in functions
    ]


@dataclass
class Row:
    """What one way of writing came to, over all tasks."""

    texts: int = 0
    ended: int = 0
    members_exist: int = 0
    compile: int = 0
    tasks_answered: int = 0
    tasks_compile: int = 0
    seconds: float = 0.0


def judged(files: list[str]) -> list[tuple[bool, bool]]:
    """(every member exists, no error at all) of each file, as basedpyright says."""
    with tempfile.TemporaryDirectory() as folder:
        for i, text in enumerate(files):
            (Path(folder) / f"text_{i}.py").write_text(text)
        (Path(folder) / "pyrightconfig.json").write_text('{"typeCheckingMode": "basic"}')
        checker = Path(sys.executable).with_name("basedpyright")
        run = subprocess.run(
            [str(checker), "--project", folder, "--outputjson"], capture_output=True, text=True, check=False
        )
        said = json.loads(run.stdout)
    if said["summary"]["filesAnalyzed"] != len(files):
        raise RuntimeError(f"basedpyright read {said['summary']['filesAnalyzed']} of {len(files)} files")
    errors: dict[int, set[str]] = {i: set() for i in range(len(files))}
    for each in said["generalDiagnostics"]:
        if each["severity"] == "error":
            errors[int(Path(each["file"]).stem.removeprefix("text_"))].add(each.get("rule", "syntax"))
    return [
        (not found & {"reportAttributeAccessIssue", "syntax"}, not found)
        for found in (errors[i] for i in range(len(files)))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--tasks", type=int, default=20, help="the first so many")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)  # a model this small waits for a second thread longer than it helps
    generator = mw.Generator.from_pretrained()
    model = HuggingFaceModel(generator.model, generator.tokenizer, "return")
    source = "returned: expression _NEWLINE\n" + mw.shipped_grammar("python").text
    grammar = GrammarConstraint(mw.compile(mw.Lark(source, start="returned"), model.vocabulary))
    rows = {name: Row() for name in ("grammar", "jedi", "language server")}
    for number, task in enumerate(tasks()[: args.tasks]):
        model.set_prompt(task.shown)
        for name, row in rows.items():
            with ExitStack() as stack:
                constraint: Constraint = grammar
                if name == "jedi":
                    constraint = grammar * PythonAttributes(model.vocabulary, task.context)
                elif name == "language server":
                    server = LanguageServerNames(
                        model.vocabulary, SERVER, context=task.context, trust_incomplete=True
                    )
                    stack.callback(server.close)
                    constraint = grammar * server
                began = time.perf_counter()
                post = smc(model, constraint, args.texts, max_tokens=MAX_TOKENS, seed=number)
                row.seconds += time.perf_counter() - began
            weights = np.where(post.is_complete, post.log_weights, -np.inf)
            ended = [i for i in range(args.texts) if weights[i] > -np.inf]
            row.texts += args.texts
            row.ended += len(ended)
            if not ended:
                print(f"{name}: none", flush=True)
                continue
            texts = {i: model.decode(post.sequences[i]) for i in ended}
            said = dict(zip(ended, judged([task.context + text for text in texts.values()]), strict=True))
            row.members_exist += sum(exist for exist, _ in said.values())
            row.compile += sum(compiles for _, compiles in said.values())
            best = max(ended, key=lambda i: weights[i])
            row.tasks_answered += 1
            row.tasks_compile += said[best][1]
            print(f"{name}: {texts[best]!r} {said[best]}", flush=True)
    report(rows, args, MAX_TOKENS)


if __name__ == "__main__":
    main()
