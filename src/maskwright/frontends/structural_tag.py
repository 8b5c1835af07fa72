"""Structural tags: free text with tagged parts, in the JSON that users of XGrammar and vLLM write.

    {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<function="], "tags": [
        {"type": "tag", "begin": "<function=f>", "content": {"type": "json_schema", "json_schema": ...},
         "end": "</function>"}]}}

Free text is a language: the texts in which no trigger, no excluded text and no end of the enclosing tag is found; the first
trigger found calls its tags (``free_text``).  Where tokens are named, it is any tokens but those.  Begins that share a trigger are one set of words whose
members decide what follows, so four hundred tools are read like one.  Schemas, patterns and grammars
are parts that are lowered once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from maskwright.base.deadline import check_time
from maskwright.errors import GrammarError, LimitError, Refusal, UnsatisfiableError, UnsupportedSchemaError
from maskwright.frontends.free_text import Scanner, ends_inside
from maskwright.frontends.json_schema.read.options import DEFAULT_OPTIONS, SchemaOptions
from maskwright.frontends.lexical import regular_expr
from maskwright.frontends.parts import (
    arguments_part,
    gbnf_part,
    json_schema_part,
    json_without_part,
    lark_part,
    regex_part,
)
from maskwright.frontends.structural_fields import (
    check_encodable,
    check_size,
    flag_field,
    legacy,
    list_field,
    read_tag,
    text_field,
    texts_field,
)
from maskwright.frontends.structural_tokens import all_but, is_one_of, named_tokens
from maskwright.frontends.tools.arguments import argument_style
from maskwright.ir.grammar import (
    EMPTY,
    FAIL,
    Choice,
    Expr,
    Grammar,
    Import,
    Lexeme,
    Ref,
    Repeated,
    Seq,
    Switch,
    Term,
    Tokens,
    Words,
)
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regular.dfa import difference, with_length
from maskwright.regular.expressions import EVERY_TEXT, Lit, cat

_OTHER_STYLES = ("cohere_xml", "minimax_m3_xml", "kimi_k3_xml", "deepseek_v4_1_xml")
"""Those of XGrammar that are not known here: most mark up values at every depth."""
_FIELDS = {
    "const_string": {"value"},
    "json_schema": {"json_schema", "style", "any_order", "max_whitespace_cnt", "excludes", "name"},
    "qwen_xml_parameter": {"json_schema"},
    "regex": {"pattern"},
    "grammar": {"grammar", "syntax", "start"},
    "any_text": {"excludes", "max_chars", "max_tokens", "begins_without"},
    "sequence": {"elements"},
    "or": {"elements"},
    "optional": {"content"},
    "plus": {"content"},
    "star": {"content"},
    "repeat": {"min", "max", "content"},
    "tag": {"begin", "content", "end"},
    "triggered_tags": {"triggers", "tags", "at_least_one", "stop_after_first", "excludes"},
    "tags_with_separator": {"tags", "separator", "at_least_one", "stop_after_first"},
    "dispatch": {"rules", "loop", "excludes"},
    "token": {"token"},
    "exclude_token": {"exclude_tokens"},
    "any_tokens": {"exclude_tokens", "max_tokens"},
    "token_triggered_tags": {"trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"},
    "token_dispatch": {"rules", "loop", "exclude_tokens"},
}
_MEMBERS = {kind: {"type", *names} for kind, names in _FIELDS.items()}
_MAX_DEPTH = 60


def to_grammar(
    tag: dict[str, Any] | str,
    limits: Limits = DEFAULT_LIMITS,
    contents: dict[int, bytes] | None = None,
    options: SchemaOptions = DEFAULT_OPTIONS,
) -> Grammar:
    """The grammar of a structural tag; see ``maskwright.compile_structural_tag``.  ``contents``: the keys of schemas
    in it, by id, where they are known."""
    source = read_tag(tag, limits)
    check_size(source, limits)
    pointer = ""
    if source.get("type", "structural_tag") == "structural_tag" and "format" in source:
        source, pointer = source["format"], "/format"
    elif "triggers" in source and "structures" in source:
        source, pointer = legacy(source), ""
    builder = _Builder(limits, contents or {}, options)
    body = builder.expr(source, pointer, ())
    if builder.refusals:
        raise UnsupportedSchemaError(builder.refusals)
    builder.grammar.start = builder.grammar.add("structural tag", body)
    return builder.grammar


def schemas(
    tag: dict[str, Any] | str, limits: Limits = DEFAULT_LIMITS, options: SchemaOptions = DEFAULT_OPTIONS
) -> Iterator[tuple[str, Any, Import]]:
    """The schemas of a well-formed tag: where each stands, as errors say it, the schema, and its part."""
    builder = _Builder(limits, {}, options)
    work: list[tuple[str, Any]] = [("", read_tag(tag, limits))]
    while work:
        check_time()
        pointer, value = work.pop()
        if isinstance(value, dict) and value.get("type") == "json_schema" and "json_schema" in value:
            part = builder.json_schema(value, pointer, ())
            if isinstance(part, Import):
                yield builder.place(value, pointer), value["json_schema"], part
        elif isinstance(value, (dict, list, tuple)):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            work += reversed([(f"{pointer}/{key}", held) for key, held in items])


class _Builder:
    """Formats -> expressions.  ``ends`` are the texts that end the enclosing tag."""

    def __init__(self, limits: Limits, contents: dict[int, bytes], options: SchemaOptions) -> None:
        self.limits, self.contents, self.options = limits, contents, options
        self.grammar = Grammar()
        self.refusals: list[Refusal] = []
        self.literals: dict[str, Expr] = {}
        self.depth = 0
        self.end_token: Tokens | None = None
        """The token that ends the enclosing tag."""
        self.methods: dict[str, Callable[[dict[str, Any], str, tuple[str, ...]], Expr]] = {
            "const_string": self.const_string,
            "json_schema": self.json_schema,
            "qwen_xml_parameter": lambda f, p, e: self.json_schema({**f, "style": "qwen_xml"}, p, e),
            "regex": lambda f, p, _: self.part(
                regex_part(text_field(f, "pattern", p), "python", "", self.limits), p
            ),
            "grammar": lambda f, p, _: self.text_grammar(f, p),
            "any_text": self.any_text,
            "sequence": self.sequence,
            "or": self.choice,
            "optional": lambda f, p, e: Choice((self.content(f, p, e), EMPTY)),
            "plus": lambda f, p, e: self.repeated(self.content(f, p, e), 1, None),
            "star": lambda f, p, e: self.repeated(self.content(f, p, e), 0, None),
            "repeat": self.repeat,
            "tag": self.tag,
            "triggered_tags": lambda f, p, e: self.triggered_tags(f, p, e, None),
            "tags_with_separator": self.tags_with_separator,
            "dispatch": self.dispatch,
            "token": lambda f, p, _: Term(named_tokens([f.get("token")], f"{p}/token")),
            "exclude_token": lambda f, p, _: self.free_token(f, p),
            "any_tokens": lambda f, p, _: self.any_tokens(f, p),
            "token_triggered_tags": self.token_triggered_tags,
            "token_dispatch": self.token_dispatch,
        }

    def expr(self, source: object, pointer: str, ends: tuple[str, ...]) -> Expr:
        """The texts of a format."""
        kind = self.check(source, pointer)
        return FAIL if kind is None else self.checked(kind, source, pointer, ends)

    def checked(self, kind: str, source: Any, pointer: str, ends: tuple[str, ...]) -> Expr:
        self.depth += 1
        if self.depth > min(_MAX_DEPTH, self.limits.max_depth):
            raise LimitError("max_depth", self.depth, min(_MAX_DEPTH, self.limits.max_depth), place=pointer)
        try:
            return self.methods[kind](source, pointer, ends)
        finally:
            self.depth -= 1

    def check(self, source: object, pointer: str, usual: str | None = None) -> str | None:
        """The type of a well-formed format, or the ``usual`` one at its place; None for one that is refused, which is noted."""
        check_time()
        kind = source.get("type", usual) if isinstance(source, dict) else None
        if not isinstance(source, dict) or not isinstance(kind, str):
            raise GrammarError("a format is an object with a type", place=pointer or "#")
        if kind not in _FIELDS:
            raise GrammarError(
                f"unknown type {kind!r}: use one of {', '.join(_FIELDS)}", place=pointer or "#"
            )
        if not source.keys() <= _MEMBERS[kind]:
            name = next(name for name in source if name not in _MEMBERS[kind])
            raise GrammarError(f"a {kind} has no field {name!r}", place=f"{pointer}/{name}")
        return kind

    def refuse(self, pointer: str, keyword: str, reason: str) -> Expr:
        self.refusals.append(Refusal(pointer, keyword, reason))
        return FAIL

    def part(self, part: Import, pointer: str) -> Expr:
        return Import(part.key, _placed(part.make, pointer), part.keep)

    # --- single things

    def literal(self, text: str) -> Expr:
        """A text; equal ones are one object, as most tags end alike."""
        found = self.literals.get(text)
        if found is None:
            found = Term(Lexeme(("regular", Lit(text)), Lit(text))) if text else EMPTY
            self.literals[text] = found
        return found

    def one_of(self, texts: tuple[str, ...]) -> Expr:
        return self.literal(texts[0]) if len(texts) == 1 else Choice(tuple(map(self.literal, texts)))

    def const_string(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        return self.literal(text_field(source, "value", pointer))

    def json_schema(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        if "json_schema" not in source:
            raise GrammarError("the field json_schema is missing", place=pointer or "#")
        style = source.get("style", "json")
        if style in _OTHER_STYLES:
            return self.refuse(pointer, "style", f"{style} is not supported for the content of a schema")
        if source.get("max_whitespace_cnt") is not None:
            return self.refuse(pointer, "max_whitespace_cnt", "white space is bounded anyway")
        excludes = tuple(texts_field(source, "excludes", pointer))
        in_any_order = flag_field(source, "any_order", pointer)
        schema = source["json_schema"]
        content = self.contents.get(id(schema))
        place = self.place(source, pointer)
        if style != "json":
            if excludes:
                return self.refuse(pointer, "excludes", "a style has texts of its own that are excluded")
            if in_any_order:
                return self.refuse(pointer, "any_order", "arguments in this style come in the schema's order")
            read = argument_style(style, f"{pointer}/style")
            return self.part(arguments_part(schema, read, self.limits, content, self.options), place)
        options = replace(self.options, property_order="any") if in_any_order else self.options
        if excludes:
            return self.part(json_without_part(schema, excludes, options, self.limits, content), place)
        return self.part(json_schema_part(schema, options, self.limits, content), place)

    def place(self, source: dict[str, Any], pointer: str) -> str:
        """Where a schema stands, for errors: the tool that has it, or its place in the tag."""
        return f"tool {text_field(source, 'name', pointer)!r}" if "name" in source else pointer

    def text_grammar(self, source: dict[str, Any], pointer: str) -> Expr:
        """A grammar in GBNF, or in Lark's language: there is one lexer for a whole text, so terminals of a part match
        in every possible way."""
        syntax = source.get("syntax", "gbnf")
        start = source.get("start", "start" if syntax == "lark" else "root")
        if syntax not in ("gbnf", "lark") or not isinstance(start, str):
            raise GrammarError("syntax is gbnf or lark, and start a rule", place=f"{pointer}/syntax")
        text = text_field(source, "grammar", pointer)
        if syntax == "lark":
            return self.part(lark_part(text, start, "dynamic", (), None, self.limits), pointer)
        return self.part(gbnf_part(text, start, self.limits), pointer)

    def any_text(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        if source.get("max_tokens") is not None:
            return self.refuse(pointer, "max_tokens", "tokens are not counted: use max_chars")
        excluded = (*texts_field(source, "excludes", pointer), *ends)
        most = source.get("max_chars")
        scanner = Scanner(excluded, limits=self.limits)
        if "begins_without" in source:
            if most is not None:
                return self.refuse(pointer, "begins_without", "it cannot stand beside max_chars")
            beginning = cat(Lit(text_field(source, "begins_without", pointer)), EVERY_TEXT)
            return regular_expr(difference(scanner.free(), beginning, self.limits), self.limits)
        if most is None:
            free = scanner.free_lexeme()
            scanner.release()
            return Choice((Term(free), EMPTY))
        if type(most) is not int or most < 0:
            raise GrammarError("max_chars is a number of characters", place=f"{pointer}/max_chars")
        return regular_expr(with_length(scanner.free(), 0, most, self.limits), self.limits)

    # --- composition

    def content(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        return self.expr(source.get("content"), f"{pointer}/content", ends)

    def sequence(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        elements = list_field(source, "elements", pointer)
        return Seq(tuple(self.expr(e, f"{pointer}/elements/{i}", ends) for i, e in enumerate(elements)))

    def choice(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        elements = list_field(source, "elements", pointer)
        if not elements:
            raise GrammarError("there are no elements to choose from", place=f"{pointer}/elements")
        return Choice(tuple(self.expr(e, f"{pointer}/elements/{i}", ends) for i, e in enumerate(elements)))

    def repeat(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        low, high = source.get("min", 0), source.get("max", -1)
        if type(low) is not int or type(high) is not int or low < 0 or high < -1 or 0 <= high < low:
            raise GrammarError("min and max are counts, -1 being no maximum", place=pointer or "#")
        if low > self.limits.max_count:
            raise LimitError("max_count", low, self.limits.max_count, place=pointer or "#")
        return self.repeated(self.content(source, pointer, ends), low, None if high < 0 else high)

    def repeated(self, body: Expr, low: int, high: int | None) -> Expr:
        once = self.rule("item", body)
        return Ref(self.grammar.add("repeated", Repeated(once, once, low, high)))

    def rule(self, name: str, body: Expr) -> int:
        return body.rule if isinstance(body, Ref) else self.grammar.add(name, body)

    # --- tags

    def tag(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        begin, body = self.opened(source, pointer, ends)
        return Seq((Term(begin) if isinstance(begin, Tokens) else self.literal(begin), body))

    def opened(self, source: object, pointer: str, ends: tuple[str, ...]) -> tuple[str | Tokens, Expr]:
        """A tag as its begin (a text, or a token) and what follows that."""
        if self.check(source, pointer, "tag") != "tag":
            raise GrammarError("a tag is expected here", place=pointer)
        assert isinstance(source, dict)
        begin: str | Tokens
        if isinstance(source.get("begin"), dict):
            begin = self.single_token(source["begin"], f"{pointer}/begin")
        else:
            begin = text_field(source, "begin", pointer)
        before = self.end_token
        try:
            return begin, self.closed(source, pointer, ends)
        finally:
            self.end_token = before

    def closed(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        """What follows the begin of a tag."""
        if "content" not in source:
            raise GrammarError("the field content is missing", place=pointer or "#")
        given = source.get("end", "")
        if isinstance(given, dict):
            self.end_token = self.single_token(given, f"{pointer}/end")
            return Seq((self.content(source, pointer, ()), Term(self.end_token)))
        if isinstance(given, str):
            check_encodable(given, f"{pointer}/end")
            own: tuple[str, ...] = (given,)
        else:
            own = tuple(texts_field(source, "end", pointer, empty=True))
        if not any(own):
            return self.content(source, pointer, ends)
        if not all(own):
            raise GrammarError(
                "one of several ends is empty: the others could never come", place=f"{pointer}/end"
            )
        self.end_token = None
        return self.until(source["content"], f"{pointer}/content", own)

    def until(self, source: object, pointer: str, ends: tuple[str, ...]) -> Expr:
        """A format and then one of ``ends``; plain free text ends where the first of them is found."""
        kind = self.check(source, pointer)
        if kind is None:
            return FAIL
        assert isinstance(source, dict)
        if kind == "any_text" and all(source.get(name) in (None, []) for name in _FIELDS[kind]):
            scanner = Scanner(ends, limits=self.limits)
            found = (scanner.mark_lexeme(mark) for mark in scanner.marks)
            return Choice(tuple(Term(lexeme) for lexeme in found if lexeme is not None))
        if kind == "triggered_tags":
            return self.triggered_tags(source, pointer, ends, EMPTY)
        return Seq((self.checked(kind, source, pointer, ends), self.one_of(ends)))

    def words(self, cases: dict[str, list[Expr]]) -> Expr:
        """One of some texts, and what follows it."""
        direct = cases.pop("", [])
        if not cases:
            return Choice(tuple(direct))
        bodies = tuple(ways[0] if len(ways) == 1 else Choice(tuple(ways)) for ways in cases.values())
        switch = Switch(Words.tagged({text.encode(): i for i, text in enumerate(cases)}), bodies)
        return Choice((switch, *direct)) if direct else switch

    def tags(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> list[tuple[str, Expr]]:
        """Tags that begin with texts."""
        found: list[tuple[str, Expr]] = []
        for i, (begin, body) in enumerate(self.any_tags(source, pointer, ends)):
            if isinstance(begin, Tokens):
                raise GrammarError(
                    "a text is expected here; tokens begin the tags of token_triggered_tags",
                    place=f"{pointer}/tags/{i}/begin",
                )
            found.append((begin, body))
        return found

    def any_tags(
        self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]
    ) -> list[tuple[str | Tokens, Expr]]:
        tags = list_field(source, "tags", pointer)
        if not tags:
            raise GrammarError("there are no tags", place=f"{pointer}/tags")
        return [self.opened(tag, f"{pointer}/tags/{i}", ends) for i, tag in enumerate(tags)]

    def triggered_tags(
        self, source: dict[str, Any], pointer: str, ends: tuple[str, ...], behind: Expr | None
    ) -> Expr:
        """Free text with tags; with ``behind``, up to one of ``ends`` and then that."""
        triggers = texts_field(source, "triggers", pointer)
        if not triggers:
            raise GrammarError("there are no triggers", place=f"{pointer}/triggers")
        tags = self.tags(source, pointer, ends)
        by_trigger: dict[str, list[tuple[str, Expr]]] = {trigger: [] for trigger in triggers}
        for i, (begin, body) in enumerate(tags):
            own = [trigger for trigger in triggers if begin.startswith(trigger)]
            if len(own) != 1 and not self.refusals:
                what = "no trigger" if not own else f"several triggers ({', '.join(map(repr, own))})"
                raise GrammarError(f"{begin!r} begins with {what}", place=f"{pointer}/tags/{i}/begin")
            for trigger in own:
                by_trigger[trigger].append((begin[len(trigger) :], body))
        excluded = texts_field(source, "excludes", pointer)
        once = flag_field(source, "stop_after_first", pointer)
        last: Expr = EMPTY if behind is None else Seq((self.one_of(ends), behind))
        loop = self.grammar.reserve("text with tags")
        again: Expr = last if once else Ref(loop)
        self.grammar.rules[loop] = self.scanned(by_trigger, excluded, ends, behind, again)
        if not flag_field(source, "at_least_one", pointer):
            return Ref(loop)
        cases: dict[str, list[Expr]] = {}
        for begin, body in tags:
            cases.setdefault(begin, []).append(Seq((body, again)))
        return self.words(cases)

    def scanned(
        self,
        rules: dict[str, list[tuple[str, Expr]]],
        excluded: Iterable[str],
        ends: tuple[str, ...],
        behind: Expr | None,
        again: Expr,
    ) -> Expr:
        """Free text, or text up to a key of ``rules`` and then one of its ways (a text, what follows it) and ``again``."""
        marks = {} if behind is None else dict.fromkeys(ends, behind)
        barred = [text for text in (*excluded, *(ends if behind is None else ())) if text not in rules]
        excluded = [text for text in barred if text not in marks]
        scanner = Scanner((*rules, *marks), excluded, limits=self.limits)
        lexemes: list[Lexeme] = []
        cases: list[Expr] = []
        for mark in scanner.marks:
            lexeme = scanner.mark_lexeme(mark)
            if lexeme is None:
                continue
            follow: dict[str, list[Expr]] = {}
            # An end that is excluded as well is an end, and no free text before a tag.
            ended = any(pattern in marks and pattern in barred for pattern in mark)
            for pattern in mark:
                if pattern in marks:
                    follow.setdefault("", []).append(marks[pattern])
                for rest, body in () if ended else rules.get(pattern, ()):
                    follow.setdefault(rest, []).append(Seq((body, again)))
            lexemes.append(lexeme)
            cases.append(self.words(follow))
        if behind is not None and any(ends_inside(text, end) for text in excluded for end in ends):
            # What must not be in free text may be in the end behind it.
            loose = Scanner((*rules, *marks), limits=self.limits)
            for mark in loose.marks:
                last = max((text for text in mark if text in marks), key=len, default=None)
                lexeme = None if last is None else loose.late_end_lexeme(mark, last, scanner)
                if lexeme is not None:
                    lexemes.append(lexeme)
                    cases.append(behind)
        if behind is not None:
            return Switch(tuple(lexemes), tuple(cases)) if lexemes else FAIL
        switch = Switch((*lexemes, scanner.free_lexeme()), (*cases, EMPTY))
        scanner.release()
        return Choice((switch, EMPTY))

    def tags_with_separator(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        cases: dict[str, list[Expr]] = {}
        ways: list[Expr] = []
        for begin, body in self.any_tags(source, pointer, ends):
            if isinstance(begin, Tokens):
                ways.append(Seq((Term(begin), body)))
            else:
                cases.setdefault(begin, []).append(body)
        first = self.grammar.add("tag", Choice((*([self.words(cases)] if cases else []), *ways)))
        separator = self.literal(text_field(source, "separator", pointer))
        low = 1 if flag_field(source, "at_least_one", pointer) else 0
        if flag_field(source, "stop_after_first", pointer):
            return Ref(first) if low else Choice((Ref(first), EMPTY))
        rest = self.grammar.add("separated tag", Seq((separator, Ref(first))))
        return Ref(self.grammar.add("tags", Repeated(first, rest, low, None)))

    def dispatch(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        rules: dict[str, list[tuple[str, Expr]]] = {}
        for i, rule in enumerate(list_field(source, "rules", pointer)):
            place = f"{pointer}/rules/{i}"
            if (
                not isinstance(rule, (list, tuple))
                or len(rule) != 2
                or not isinstance(rule[0], str)
                or not rule[0]
            ):
                raise GrammarError("a rule is a pair: a text and a format", place=place)
            check_encodable(rule[0], place)
            rules.setdefault(rule[0], []).append(("", self.expr(rule[1], f"{place}/1", ends)))
        if not rules:
            raise GrammarError("there are no rules", place=f"{pointer}/rules")
        for begun, longer in pairwise(sorted(rules)):
            if longer.startswith(begun):
                raise GrammarError(
                    f"{longer!r} is never reached: {begun!r}, which it begins with, is found first",
                    place=f"{pointer}/rules",
                )
        excluded = texts_field(source, "excludes", pointer)
        loop = self.grammar.reserve("text with calls")
        again: Expr = Ref(loop) if flag_field(source, "loop", pointer, True) else EMPTY
        self.grammar.rules[loop] = self.scanned(rules, excluded, ends, None, again)
        return Ref(loop)

    # --- tokens

    def single_token(self, source: dict[str, Any], pointer: str) -> Tokens:
        if self.check(source, pointer) != "token":
            raise GrammarError("a text or a token is expected here", place=pointer)
        return named_tokens([source.get("token")], f"{pointer}/token")

    def free_token(self, source: dict[str, Any], pointer: str, *others: Tokens) -> Expr:
        """Any token but those that are excluded, end the enclosing tag, or are ``others``."""
        place = f"{pointer}/exclude_tokens"
        excluded = named_tokens(
            list_field({"exclude_tokens": [], **source}, "exclude_tokens", pointer), place
        )
        ending = () if self.end_token is None else (self.end_token,)
        return Term(all_but([excluded, *others, *ending], place))

    def any_tokens(self, source: dict[str, Any], pointer: str) -> Expr:
        most = source.get("max_tokens")
        if most is not None and (type(most) is not int or most < 0):
            raise GrammarError("max_tokens is a number of tokens", place=f"{pointer}/max_tokens")
        return self.repeated(self.free_token(source, pointer), 0, most)

    def token_triggered_tags(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        place = f"{pointer}/trigger_tokens"
        given = list_field(source, "trigger_tokens", pointer)
        if not given:
            raise GrammarError("there are no triggers", place=place)
        triggers = named_tokens(given, place)
        calls: list[tuple[Tokens, Expr]] = []
        for i, (begin, body) in enumerate(self.any_tags(source, pointer, ends)):
            if not isinstance(begin, Tokens) or not is_one_of(begin, triggers):
                raise GrammarError(
                    "the begin of this tag is one of trigger_tokens", place=f"{pointer}/tags/{i}/begin"
                )
            calls.append((begin, body))
        once = flag_field(source, "stop_after_first", pointer)
        first = flag_field(source, "at_least_one", pointer)
        return self.called(calls, self.free_token(source, pointer, triggers), not once, first)

    def token_dispatch(self, source: dict[str, Any], pointer: str, ends: tuple[str, ...]) -> Expr:
        calls: list[tuple[Tokens, Expr]] = []
        for i, rule in enumerate(list_field(source, "rules", pointer)):
            place = f"{pointer}/rules/{i}"
            if not isinstance(rule, (list, tuple)) or len(rule) != 2:
                raise GrammarError("a rule is a pair: a token and a format", place=place)
            calls.append((named_tokens([rule[0]], f"{place}/0"), self.expr(rule[1], f"{place}/1", ends)))
        if not calls:
            raise GrammarError("there are no rules", place=f"{pointer}/rules")
        free = self.free_token(source, pointer, *(token for token, _ in calls))
        return self.called(calls, free, flag_field(source, "loop", pointer, True), False)

    def called(self, calls: list[tuple[Tokens, Expr]], free: Expr, again: bool, first: bool) -> Expr:
        """Any tokens with calls between them; ``again``: several, ``first``: one at the beginning."""
        loop = self.grammar.reserve("tokens with calls")
        behind: Expr = Ref(loop) if again else EMPTY
        ways = tuple(Seq((Term(token), body, behind)) for token, body in calls)
        self.grammar.rules[loop] = Choice((EMPTY, Seq((free, Ref(loop))), *ways))
        return Choice(ways) if first else Ref(loop)


def _placed(make: Callable[[], Grammar], pointer: str) -> Callable[[], Grammar]:
    """The same, but errors tell where in the structural tag the source stands."""

    def placed() -> Grammar:
        try:
            return make()
        except (GrammarError, UnsatisfiableError) as error:
            place = pointer if error.place is None else f"{pointer}: {error.place}"
            raise type(error)(error.message, place=place) from error
        except UnsupportedSchemaError as error:
            refusals = [
                Refusal(f"{pointer}: {r.pointer or '#'}", r.keyword, r.reason) for r in error.refusals
            ]
            raise UnsupportedSchemaError(refusals) from error
        except LimitError as error:
            place = pointer if error.place is None else f"{pointer}: {error.place}"
            raise LimitError(
                error.limit, error.given, error.allowed, place=place, message=error.message
            ) from error

    return placed
