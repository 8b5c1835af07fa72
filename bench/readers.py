"""Who reads what is written: three parsers and three validators, with what each of them has against a text.

Python's ``json``, ``orjson`` and JavaScript's ``JSON.parse`` parse; ``jsonschema``, ``jsonschema-rs`` and ``ajv`` judge, with formats on
and otherwise as they come.  JavaScript runs in one process of node (``javascript_reader.js``); ``fetch`` installs ajv for it into the cache directory.
"""

from __future__ import annotations

import json
import select
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from pathlib import Path
from types import FrameType
from typing import Any

import jsonschema
import jsonschema_rs
import orjson
import referencing
import referencing.jsonschema
import walks
from jsonschema import validators

from maskwright.base.disk_cache import cache_directory

NODE_PACKAGES = ("ajv@8.20.0", "ajv-formats@3.0.1", "ajv-draft-04@1.0.0")
SECONDS = 30
"""How long one reader may take for the texts of one schema: some patterns backtrack for ever."""

NO_SCHEMA = "does not read the schema"
NO_ANSWER = "no answer in time"
NO_OPINION = (NO_SCHEMA, NO_ANSWER)
VALIDATORS = ("jsonschema", "jsonschema-rs", "ajv")
PARSERS = ("json", "orjson", "JavaScript")


@dataclass
class Reading:
    """What the readers say of one text."""

    refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By reader: the keyword (or what else is wrong), and a message."""
    values: dict[str, str] = field(default_factory=dict)
    """By parser: the value that it finds, ``spelled``."""
    rounded: bool = False
    """A double is not the integer that the text says."""
    valid: bool = True
    """What ``jsonschema`` says with decimal numbers, and patterns as ECMA-262 has them."""


def node_folder() -> Path | None:
    """Where ajv is installed; None where it, or node, is not."""
    directory = cache_directory()
    folder = None if directory is None else directory / "ajv"
    return folder if folder and shutil.which("node") and (folder / "node_modules" / "ajv").is_dir() else None


def fetch() -> None:
    """Install ajv into the cache directory."""
    directory = cache_directory()
    if directory is None:
        raise OSError("MASKWRIGHT_CACHE_DIR is empty, so there is no folder for ajv")
    folder = directory / "ajv"
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
    subprocess.run([*command, *NODE_PACKAGES], check=True)


class JavaScript:
    """A process of node that parses and validates; a new one after it did not answer."""

    def __init__(self, folder: Path) -> None:
        self._command = ["node", str(Path(__file__).with_name("javascript_reader.js")), str(folder)]
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, schema: Any, texts: list[str], documents: dict[str, Any]) -> list[dict[str, Any]]:
        question = json.dumps({"schema": schema, "texts": texts, "documents": documents}).encode() + b"\n"
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(question)
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            self.close()
            return [{"value": None, "refused": [NO_ANSWER, ""]} for _ in texts]
        found: list[dict[str, Any]] = json.loads(line)
        return found

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def spelled(value: Any) -> str:
    """A value as text, numbers as the bits of their doubles: equal texts are equal values to readers that have doubles only."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return "s" + value.encode("utf-16-le", "surrogatepass").hex()
    if isinstance(value, list):
        return "[" + ",".join(map(spelled, value)) + "]"
    if isinstance(value, dict):
        return (
            "{" + ",".join(sorted(f"{spelled(name)}:{spelled(each)}" for name, each in value.items())) + "}"
        )
    return "n" + struct.pack(">d", double(value) + 0.0).hex()


def decimal_number(text: str) -> int | Decimal:
    value = Decimal(text)
    return int(value) if value.adjusted() < 400 and value == value.to_integral_value() else value


def decimals(value: Any) -> Any:
    """A schema with decimal numbers for its doubles: 25.2 is a multiple of 0.1."""
    if isinstance(value, list):
        return [decimals(each) for each in value]
    if isinstance(value, dict):
        return {name: decimals(each) for name, each in value.items()}
    return decimal_number(repr(value)) if isinstance(value, float) else value


def double(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def rounds(value: Any) -> bool:
    """Whether a double is not the same as one of the integers in a value."""
    if isinstance(value, list):
        return any(map(rounds, value))
    if isinstance(value, dict):
        return any(map(rounds, value.values()))
    return isinstance(value, int) and double(value) != value


class Readers:
    """All readers of one schema."""

    def __init__(
        self, schema: Any, javascript: JavaScript | None = None, documents: dict[str, Any] | None = None
    ) -> None:
        """``documents``: those that the schema refers to, by their URIs."""
        self._schema = schema
        self._javascript = javascript
        self._documents = documents or {}
        kind = validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        self._plain = kind(schema, format_checker=kind.FORMAT_CHECKER, registry=self._registry(kind))
        self._careful = walks.validator_for(
            decimals(schema), format_checker=kind.FORMAT_CHECKER, registry=self._registry(kind)
        )
        self._rust: Any = None
        self._no_rust = ""
        try:
            more = {"registry": jsonschema_rs.Registry([*documents.items()])} if documents else {}
            self._rust = jsonschema_rs.validator_for(schema, validate_formats=True, offline=True, **more)
        except Exception as error:  # whatever it raises, it does not read the schema
            self._no_rust = str(error)

    def _registry(self, kind: Any) -> referencing.Registry[Any]:
        default = referencing.jsonschema.specification_with(kind.META_SCHEMA.get("$schema", ""))
        return jsonschema.validators.SPECIFICATIONS.with_resources(
            (uri, referencing.Resource.from_contents(document, default_specification=default))
            for uri, document in self._documents.items()
        )

    def read(self, texts: list[bytes]) -> list[Reading]:
        found = [self._in_python(text) for text in texts]
        if self._javascript is not None:
            answers = self._javascript.read(self._schema, [text.decode() for text in texts], self._documents)
            for reading, answer in zip(found, answers, strict=True):
                if answer["value"] is None:
                    reading.refused["JavaScript"] = tuple(answer["refused"])
                else:
                    reading.values["JavaScript"] = answer["value"]
                    if answer["refused"]:
                        reading.refused["ajv"] = tuple(answer["refused"])
        return found

    def _in_python(self, text: bytes) -> Reading:
        reading = Reading()
        parsers: dict[str, Callable[[bytes], Any]] = {"json": json.loads, "orjson": orjson.loads}
        for name, parse in parsers.items():
            try:
                reading.values[name] = spelled(parse(text))
            except ValueError as error:
                reading.refused[name] = "parsing", str(error)
        if "json" in reading.refused:
            return reading
        value = json.loads(text)
        reading.rounded = rounds(value)
        judges: dict[str, Callable[[Any], tuple[str, str] | None]] = {
            "jsonschema": lambda value: _python_error(self._plain, value),
            "jsonschema-rs": self._rust_error,
        }
        for name, judge in judges.items():
            refused = in_time(lambda judge=judge: judge(value))  # type: ignore[misc]
            if refused:
                reading.refused[name] = refused
        if "jsonschema" in reading.refused:
            exact = json.loads(text, parse_float=decimal_number)
            with localcontext(prec=3000):
                found = in_time(lambda: _python_error(self._careful, exact))
            reading.valid = found is None or found[0] in NO_OPINION
        return reading

    def _rust_error(self, value: Any) -> tuple[str, str] | None:
        if self._rust is None:
            return NO_SCHEMA, self._no_rust
        error = next(iter(self._rust.iter_errors(value)), None)
        if error is None:
            return None
        keywords = [part for part in error.schema_path if isinstance(part, str)]
        return keywords[-1] if keywords else "false", error.message


def _python_error(validator: Any, value: Any) -> tuple[str, str] | None:
    error = next(iter(validator.iter_errors(value)), None)
    if error is None:
        return None
    while error.context:
        error = error.context[0]
    return str(error.validator), error.message


def in_time(ask: Callable[[], tuple[str, str] | None]) -> tuple[str, str] | None:
    """An answer; that there was none in time, or that the schema was not understood, are answers as well."""
    try:
        with _alarm():
            return ask()
    except TimeoutError:
        return NO_ANSWER, ""
    except Exception as error:  # a pattern or a reference that the validator does not read
        return NO_SCHEMA, f"{type(error).__name__}: {error}"


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
