"""Arguments of a call that are no JSON object: each in marks of its own, or as Python's keyword arguments.

    <parameter=city>            city="Rome", days=2
    Rome
    </parameter>

The members of the schema's objects come in its order.  Between marks, strings stand as they are, without quotes and
escapes, and everything else is JSON.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from maskwright.errors import GrammarError, Refusal, UnsupportedSchemaError
from maskwright.frontends.free_text import Scanner
from maskwright.frontends.json_schema import emitted
from maskwright.frontends.json_schema.algebra.clauses import propagate_units
from maskwright.frontends.json_schema.algebra.groups import (
    ArrayGroup,
    BooleanGroup,
    Conjunction,
    Group,
    Keys,
    NullGroup,
    NumberGroup,
    ObjectGroup,
    Rule,
    StringGroup,
    nothing,
)
from maskwright.frontends.json_schema.algebra.keys import KeyMap, is_false
from maskwright.frontends.json_schema.algebra.normalize import Normalizer
from maskwright.frontends.json_schema.algebra.strings import is_text, string_allows, written_language
from maskwright.frontends.json_schema.emit.emitter import Emitter
from maskwright.frontends.json_schema.emit.objects import closed
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.options import DEFAULT_OPTIONS, SchemaOptions
from maskwright.frontends.structural_tokens import named_tokens
from maskwright.frontends.tools.python_literals import PythonEmitter
from maskwright.ir.grammar import EMPTY, FAIL, Choice, Expr, Grammar, Import, Lexeme, Record, Ref, Seq, Term
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import parse_regex
from maskwright.regular.dfa import matches, only_in, with_length, without_empty
from maskwright.regular.expressions import EVERY_TEXT, Lit, Regular, alt, cat, is_nothing
from maskwright.regular.memo import remembered


@dataclass(frozen=True, slots=True)
class ArgumentStyle:
    """How one argument is written: ``open``, in which ``{key}`` is its name, the value, ``close``.

    ``between`` stands between two of them.  ``open_text`` takes the place of ``open`` before strings, where they
    are told apart.  ``excludes``: what no string may contain, because readers look for it.  ``python``: values are
    literals of Python; else strings are written as they are, and the rest as JSON.  ``tokens``: marks in these texts that are
    special tokens, by name.
    """

    open: str
    close: str
    between: str = ""
    open_text: str | None = None
    excludes: tuple[str, ...] = ()
    python: bool = False
    tokens: tuple[str, ...] = ()


_DSML = "｜DSML｜"
STYLES = {
    "qwen_xml": ArgumentStyle(
        "<parameter={key}>\n",
        "\n</parameter>",
        "\n",
        excludes=("<parameter", "</parameter", "<function", "</function", "<tool_call", "</tool_call"),
    ),
    "minimax_xml": ArgumentStyle(
        '<parameter name="{key}">',
        "</parameter>\n",
        excludes=("<parameter", "</parameter", "<invoke", "</invoke", "<minimax", "</minimax"),
    ),
    "deepseek_xml": ArgumentStyle(
        f'<{_DSML}parameter name="{{key}}" string="false">',
        f"</{_DSML}parameter>\n",
        open_text=f'<{_DSML}parameter name="{{key}}" string="true">',
        excludes=(_DSML,),
    ),
    "glm_xml": ArgumentStyle(
        "<arg_key>{key}</arg_key><arg_value>",
        "</arg_value>",
        excludes=("<arg_", "</arg_", "<tool_call", "</tool_call"),
    ),
    "python": ArgumentStyle("{key}=", "", ", ", python=True),
}
"""By the names that XGrammar has for them, and ``python``."""


def argument_style(value: object, place: str) -> ArgumentStyle:
    """The style of a name, or one that is written out: an object with the texts of ``ArgumentStyle``.

    Raises ``GrammarError`` for anything else.
    """
    if isinstance(value, str):
        if value not in STYLES:
            raise GrammarError(f"unknown style {value!r}: use json, {', '.join(STYLES)}", place=place)
        return STYLES[value]
    if not isinstance(value, dict) or not value.keys() <= _WRITTEN_OUT:
        raise GrammarError(
            f"a style is a name, or an object with {', '.join(sorted(_WRITTEN_OUT))}", place=place
        )
    texts = {name: text for name, text in value.items() if name not in _LISTS}
    lists: dict[str, tuple[str, ...]] = {}
    for name in _LISTS:
        listed = value.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(t, str) and t and is_text(t) for t in listed):
            raise GrammarError(f"{name} is a list of texts that are not empty", place=f"{place}/{name}")
        lists[name] = tuple(listed)
    for name, text in texts.items():
        if not isinstance(text, str) or not is_text(text):
            raise GrammarError(f"{name} is a text", place=f"{place}/{name}")
    if not texts.get("close"):
        raise GrammarError("close is a text that is not empty: it ends an argument", place=f"{place}/close")
    for name in ("open", "open_text"):
        if name in texts or name == "open":
            if texts.get(name, "").count("{key}") != 1:
                raise GrammarError(f"{name} has {{key}} in it, once", place=f"{place}/{name}")
    # Without these, a reader would find the end too early.
    excludes = lists["excludes"] or (texts["close"].strip() or texts["close"],)
    return ArgumentStyle(excludes=excludes, tokens=lists["tokens"], **texts)


_LISTS = ("excludes", "tokens")
_WRITTEN_OUT = frozenset({"open", "close", "between", "open_text", *_LISTS})

# What a reader takes for a value of the type, where a string is not the only thing that may stand in its place.
_READ_AS = {
    NullGroup: r"(?i:\s*(?:null|none)\s*)",
    BooleanGroup: r"(?i:\s*(?:true|false|yes|no|on|off|[01tfyn])\s*)",
    NumberGroup: r"(?i:\s*[+-]?(?:inf|infinity|nan|[0-9_.][0-9_.e+-]*)\s*)",
    ArrayGroup: r"(?s:\s*[\[(].*)",
    ObjectGroup: r"(?s:\s*\{.*)",
}
_SYNTAX = re.compile(r"[\\^$.*+?()\[\]{}|/]")
"""What a pattern has to escape, in ECMA-262."""
_OTHER_KEYS = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
_UNREADABLE_IN_KEYS = frozenset('<>"\n\r')


def to_arguments(
    schema: Any,
    style: ArgumentStyle,
    limits: Limits = DEFAULT_LIMITS,
    options: SchemaOptions = DEFAULT_OPTIONS,
) -> Grammar:
    """The grammar of the arguments that a schema allows.

    Integers are plain: whoever reads arguments from text makes them with what their language has for that, and ``1e3`` is none.
    Members that the schema does not mention are written only where it declares none, or says explicitly what they are.
    Raises as ``to_grammar`` does; ``UnsupportedSchemaError`` also for what ties members together, names by pattern, and names
    that cannot be written.
    """

    options = replace(options, plain_integers=True)

    def make(normalizer: Normalizer) -> Emitter:
        if style.python:
            return PythonEmitter(normalizer, options, limits)
        return _TextEmitter(normalizer, options, limits, style.excludes)

    def emit(emitter: Emitter, root: Conjunction) -> Grammar:
        return _Arguments(emitter, style, limits).emit(root)

    return emitted(schema, options, limits, make, emit)


def to_json_without(
    schema: Any, excludes: tuple[str, ...], options: SchemaOptions, limits: Limits = DEFAULT_LIMITS
) -> Grammar:
    """The grammar of the JSON texts that a schema allows, with no string and no key in it that contains one of ``excludes``.

    Raises as ``to_grammar`` does.
    """
    return emitted(
        schema,
        options,
        limits,
        lambda normalizer: _TextEmitter(normalizer, options, limits, excludes),
        lambda emitter, root: emitter.emit(root),
    )


class _TextEmitter(Emitter):
    """Values as JSON, with no string in which a reader would find the end of its argument."""

    def __init__(
        self,
        normalizer: Normalizer,
        options: SchemaOptions,
        limits: Limits,
        excludes: tuple[str, ...],
        shares_any: bool = True,
    ) -> None:
        super().__init__(normalizer, options, limits)
        self.imports_any = False
        self.excludes = excludes
        patterns = tuple(_SYNTAX.sub(r"\\\g<0>", text) for text in excludes)
        self.unreadable: Rule = Keys(patterns=patterns), (nothing(""),)
        self.free = _free(excludes, limits)
        self.any_text = self.lexeme("any", self.free)
        self.shares_any = shares_any
        self._any: int | None = None

    def rule(self, conjunction: Conjunction) -> int:
        if conjunction or not self.shares_any:
            return super().rule(conjunction)
        if self._any is None:
            self._any = self.grammar.add("any value", _any_value(self.excludes, self.options, self.limits))
        return self._any

    def group(self, group: Group) -> Expr:
        if isinstance(group, ObjectGroup):
            return self.readable_object(group)
        if not isinstance(group, StringGroup):
            return super().group(group)
        if group == StringGroup():
            return Term(self.any_text)
        if group.values is not None and not any(map(self.is_unreadable, group.values)):
            return super().group(group)
        language = _readable((group,), (), self.excludes, self.limits)
        return FAIL if is_nothing(language) else Term(self.lexeme(group, language))

    def lexeme(self, key: Hashable, language: Regular) -> Lexeme:
        return Lexeme(("readable string", key, self.excludes, self.spelling), language, self.spelling)

    def is_unreadable(self, text: str) -> bool:
        return any(mark in text for mark in self.excludes)

    def readable_object(self, group: ObjectGroup) -> Expr:
        """The objects of a group in which no key has an excluded text."""
        listed = any(self.is_unreadable(name) for keys, _ in group.rules for name in keys.names)
        if listed or any(map(self.is_unreadable, group.required)):
            # As the algebra says it, which takes a while.
            return super().group(replace(group, rules=(*group.rules, self.unreadable)))
        made = super().group(group)
        record = self.grammar.rules[made.rule] if isinstance(made, Ref) else None
        if not isinstance(record, Record) or not record.others:
            return made
        assert isinstance(made, Ref)
        others = tuple(
            replace(other, keys=self.readable_keys(other.keys))
            for other in record.others
            if other.keys is not None
        )
        self.grammar.rules[made.rule] = replace(record, others=others)
        return made

    def readable_keys(self, keys: Lexeme) -> Lexeme:
        if keys.regular == EVERY_TEXT:
            return self.any_text
        return self.lexeme(("keys", keys.key), _both(keys.regular, self.free, self.limits))


@remembered(64)
def _any_value(excludes: tuple[str, ...], options: SchemaOptions, limits: Limits) -> Import:
    """What satisfies every schema: the same in all documents."""

    def make() -> Grammar:
        normalizer = Normalizer(Document(True, limits), options, limits)
        emitter = _TextEmitter(normalizer, options, limits, excludes, shares_any=False)
        try:
            return emitter.emit(())
        finally:
            emitter.release()

    return Import(("any value without", excludes, options, limits), make)


class _Arguments:
    """Builds the rules of one schema."""

    def __init__(self, emitter: Emitter, style: ArgumentStyle, limits: Limits) -> None:
        self.emitter = emitter
        self.grammar = emitter.grammar
        self.normalizer = emitter.normalizer
        self.style = style
        self.limits = limits
        self.refusals: list[Refusal] = []
        marks = "|".join(map(re.escape, sorted(style.tokens, key=len, reverse=True)))
        self.split = re.compile(f"({marks})") if marks else None

    def mark(self, text: str) -> tuple[Expr, ...]:
        """A text of the style; tokens in it are tokens."""
        parts = self.split.split(text) if self.split is not None else [text]
        return tuple(
            Term(named_tokens([part], "")) if part in self.style.tokens else _literal(part)
            for part in parts
            if part
        )

    def emit(self, root: Conjunction) -> Grammar:
        groups = [group for group in self.normalizer.groups(root) if isinstance(group, ObjectGroup)]
        if not groups:
            raise self.emitter.unsatisfiable(root[0].pointer)
        body = Choice(tuple(self.object(group) for group in groups))
        if self.refusals:
            raise UnsupportedSchemaError(self.refusals)
        # The values inside of values; the rule that this begins with is dropped where nothing refers to it.
        self.emitter.emit(())
        self.grammar.start = self.grammar.add("arguments", body)
        return self.grammar

    def refuse(self, keyword: str, reason: str) -> Expr:
        self.refusals.append(Refusal("", keyword, reason))
        return FAIL

    def object(self, group: ObjectGroup) -> Expr:
        group = closed(group)
        if group.clauses:
            group = propagate_units(group, self.normalizer)
        keys = KeyMap(group, self.normalizer)
        other = self.others(keys)
        self.check(group, keys, other is not None)
        again = self.between()
        after: Expr = EMPTY
        first: Expr = EMPTY
        if other is not None:
            loop = self.grammar.reserve("other arguments")
            self.grammar.rules[loop] = Choice((EMPTY, Seq((*again, other, Ref(loop)))))
            after, first = Ref(loop), Choice((EMPTY, Seq((other, Ref(loop)))))
        required = frozenset(group.required)
        for name in reversed(keys.declared):
            member = self.member(name, keys.value(name), name in required)
            if member is None:
                continue
            starting: Expr = Seq((member, after))
            following: Expr = Seq((*again, member, after))
            if name not in required:
                starting, following = Choice((starting, first)), Choice((following, after))
            first = Ref(self.grammar.add(f"from {name!r} on", starting))
            after = Ref(self.grammar.add(f"behind {name!r}", following)) if again else first
        return first

    def check(self, group: ObjectGroup, keys: KeyMap, open_ended: bool) -> None:
        if group.clauses:
            self.refuse("dependentRequired, anyOf, if", "arguments cannot depend on each other in this style")
        if any(rule.patterns or rule.schemas is not None for rule, _ in keys.general):
            self.refuse("patternProperties, propertyNames", "arguments have fixed names in this style")
        if group.min_members > len(group.required):
            self.refuse("minProperties", "arguments are not counted in this style")
        if group.max_members is not None and (open_ended or group.max_members < len(keys.declared)):
            self.refuse("maxProperties", "arguments are not counted in this style")

    def between(self) -> tuple[Expr, ...]:
        return self.mark(self.style.between)

    def member(self, name: str, conjunction: Conjunction, required: bool) -> Expr | None:
        """An argument; None for one that is never written."""
        if is_false(conjunction) and not required:
            return None
        if not self.can_be_written(name):
            return self.refuse("properties", f"the name {name!r} cannot be written in this style")
        return self.argument(self.mark, name, conjunction)

    def can_be_written(self, name: str) -> bool:
        if self.style.python:
            return is_python_name(name)
        return bool(name) and not _UNREADABLE_IN_KEYS & set(name) and name == name.strip()

    def others(self, keys: KeyMap) -> Expr | None:
        """Arguments that the schema does not mention; None where it allows none, and in Python, where a name may
        not come twice."""
        if self.style.python:
            return None
        fresh = "_"
        while fresh in keys.declared:
            fresh += "_"
        conjunction = keys.value(fresh)
        if is_false(conjunction) or not self.normalizer.groups(conjunction):
            return None
        names = only_in(
            [parse_regex(_OTHER_KEYS, "python", self.limits)],
            [Lit(name) for name in keys.declared],
            self.limits,
        )
        key = Term(Lexeme(("other arguments", names), names))

        def around(pattern: str) -> tuple[Expr, ...]:
            before, _, behind = pattern.partition("{key}")
            return (*self.mark(before), key, *self.mark(behind))

        return self.argument(around, None, conjunction)

    def argument(
        self, opening: Callable[[str], tuple[Expr, ...]], name: str | None, conjunction: Conjunction
    ) -> Expr:
        """One argument; ``opening`` makes an expression of the text in front of the value."""
        style = self.style

        def opened(pattern: str) -> tuple[Expr, ...]:
            return opening(pattern if name is None else pattern.replace("{key}", name))

        closing = self.mark(style.close)
        groups = self.normalizer.groups(conjunction)
        texts = () if style.python else tuple(g for g in groups if isinstance(g, StringGroup))
        others = [g for g in groups if g not in texts]
        ways: list[Expr] = []
        if texts:
            told_apart = style.open_text is not None
            kinds = () if told_apart else tuple(dict.fromkeys(type(g) for g in others))
            language = _readable(texts, kinds, style.excludes, self.limits)
            if not is_nothing(language):
                text = (self.text(language, (texts, kinds, style.excludes)), *closing[1:])
                ways.append(Seq((*opened(style.open_text or style.open), *text)))
        if others:
            values = Choice(tuple(self.emitter.group(group) for group in others))
            ways.append(Seq((*opened(style.open), values, *closing)))
        return Choice(tuple(ways)) if ways else FAIL

    def text(self, language: Regular, content: Hashable) -> Expr:
        """A text and the first mark behind it: one lexeme, unless that is a token."""
        close = self.mark(self.style.close)[0]
        assert isinstance(close, Term)
        if isinstance(close.lexeme, Lexeme):
            mark = close.lexeme.regular
            return Term(Lexeme(("plain text", content, mark), cat(language, mark)))
        plain = Term(Lexeme(("plain text", content), without_empty(language, self.limits)))
        return Seq((Choice((plain, EMPTY)) if matches(language, "", self.limits) else plain, close))


def is_python_name(name: str) -> bool:
    """Whether Python reads a name as it is written: it normalises names, and keeps some for itself."""
    return name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name


def _literal(text: str) -> Expr:
    return Term(Lexeme(("regular", Lit(text)), Lit(text)))


@remembered(512)
def _both(a: Regular, b: Regular, limits: Limits) -> Regular:
    return only_in([a, b], [], limits)


@remembered(64)
def _free(excludes: tuple[str, ...], limits: Limits) -> Regular:
    return Scanner(excludes, limits=limits).free() if excludes else EVERY_TEXT


@remembered(512)
def _readable(
    groups: tuple[StringGroup, ...], kinds: tuple[type, ...], excludes: tuple[str, ...], limits: Limits
) -> Regular:
    """The strings of some groups that a reader takes for what they are: with none of ``excludes``, and nothing that
    reads as a value of another of the ``kinds``."""
    free = _free(excludes, limits)
    others = [parse_regex(_READ_AS[kind], "python", limits) for kind in kinds]
    return alt(*(_restricted(group, free, others, limits) for group in groups))


def _restricted(group: StringGroup, free: Regular, others: list[Regular], limits: Limits) -> Regular:
    if group.values is not None:
        listed = alt(*(Lit(value) for value in group.values if string_allows(group, value, limits)))
        return only_in([listed, free], others, limits)
    # Lengths are counted, and so they come last: here they would be written out.
    low, high = group.min_length, group.max_length
    group = replace(group, min_length=0, max_length=None)
    inside = [free] if group == StringGroup() else [written_language(group, limits), free]
    language = only_in(inside, others, limits) if others or len(inside) > 1 else free
    return language if low == 0 and high is None else with_length(language, low, high, limits)
