"""Lark grammars that the package would write out without end: what is small is read as before, and what is not ends early."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import lark.load_grammar
import pytest
from byte_walks import accepts
from hypothesis import given, settings
from hypothesis import strategies as st
from lark_grammars import plain_python

import maskwright as mw
from maskwright import Vocabulary
from maskwright.frontends.lark import groups
from maskwright.frontends.lark.expansion import measured
from maskwright.frontends.lark.reader import owner_of, read
from maskwright.limits import DEFAULT_LIMITS

BYTES = Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
Rules = dict[str, list[list[tuple[str, bool]]]]


def lines(*each: str) -> str:
    return "\n".join(each)


def package_terminals(text: str) -> dict[str, str]:
    """The terminals of the package itself."""
    loaded, _ = lark.load_grammar.load_grammar(text, "<grammar>", [], False)
    terminals, _, _ = loaded.compile(
        [name for name, parameters, *_ in loaded.rule_defs if not parameters], "*"
    )
    return {terminal.name: terminal.pattern.value for terminal in terminals}


def package_rules(text: str) -> Rules:
    """What the package itself makes of a text."""
    loaded, _ = lark.load_grammar.load_grammar(text, "<grammar>", [], False)
    _, rules, _ = loaded.compile([name for name, parameters, *_ in loaded.rule_defs if not parameters], "*")
    found: Rules = {}
    for rule in rules:
        symbols = [(str(symbol.name), symbol.is_term) for symbol in rule.expansion]
        found.setdefault(str(rule.origin.name), []).append(symbols)
    return found


def texts_of(rules: Rules, longest: int) -> set[tuple[str, ...]]:
    """All texts of terminals that ``start`` derives, up to a length: the least fixed point."""
    known: dict[str, set[tuple[str, ...]]] = {name: set() for name in rules}
    while True:
        before = sum(map(len, known.values()))
        for name, expansions in rules.items():
            for expansion in expansions:
                ways = {()}
                for symbol, is_terminal in expansion:
                    parts = [(symbol,)] if is_terminal else known[symbol]
                    ways = {a + b for a, b in product(ways, parts) if len(a) + len(b) <= longest}
                known[name] |= ways
        if sum(map(len, known.values())) == before:
            return known["start"]


# --- rules ----------------------------------------------------------------------------------

ATOMS = st.sampled_from(['"a"', "/b./", '"+-"', '"b".."d"', "C", "other"])
BODIES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda each: f"({' '.join(each)})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: f"({' | '.join(each)})"),
        inner.map(lambda each: f"({each} |)"),
        st.tuples(inner, st.sampled_from("?*+")).map(lambda each: f"({each[0]}){each[1]}"),
        inner.map(lambda each: f"[{each}]"),
        st.tuples(inner, st.sampled_from(["~0", "~1", "~2", "~0..2", "~1..3", "~2..60"])).map(
            lambda each: f"({each[0]}){each[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(BODIES, st.integers(1, 12))
def test_split_rules_have_the_same_texts(body: str, most: int) -> None:
    text = lines(f"start: {body}", 'C: "c"', 'other: "a" other | "b"')
    try:
        expected = texts_of(package_rules(text), 4)
    except lark.exceptions.GrammarError as error:
        assert "defined twice" in str(error)  # [A] [A], which is A twice, once, or not at all
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(groups, "_MOST_SYMBOLS", most)
        split = read(text, "start")
    assert texts_of(split.rules, 4) == expected
    assert {owner_of(name) for name in split.rules} <= {"start", "other"}
    assert {name: each.pattern for name, each in split.terminals.items()} == package_terminals(text)


@pytest.mark.parametrize(
    "name", ["c", "json", pytest.param("python", marks=pytest.mark.slow), "sql", "shell", "markdown"]
)
def test_usual_rules_are_those_of_the_package(name: str) -> None:
    from maskwright.compiling.shipped import shipped_grammar

    text = plain_python() if name == "python" else shipped_grammar(name).text
    assert read(text, "start").rules == package_rules(text)


def optional(count: int, form: str) -> str:
    return " ".join(form.format(f'"<{i}>"') for i in range(count))


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        (f"start: {optional(60, '{}?')}", ["", "<3>", "<0><1><59>"], ["<1><0>", "<3><3>"]),
        (f"start: {optional(60, '[{}]')}", ["", "<3>", "<0><1><59>"], ["<1><0>", "<3><3>"]),
        (f"start: {optional(60, '{}*')}", ["", "<3><3>", "<0><1><59>"], ["<1><0>"]),
        (f"start: {optional(60, '({} | )')}", ["", "<3>", "<0><1><59>"], ["<1><0>"]),
        ("start: " + '("a" | "b") ' * 60, ["ab" * 30, "a" * 60], ["ab" * 29, "a" * 61]),
        ('start: ("a" | "b" "c")~40', ["abc" * 20], ["abc" * 20 + "a", "ac" * 20]),
        ('start: ("a" | "b" "c")~70', ["abc" * 35], ["abc" * 35 + "a"]),
        ('start: ("a"? "b"?)~45', ["", "ab" * 45, "a" * 45], ["a" * 46]),
        ('start: ((("a" | "b")~0..9 "c")~9 | "d")~9 "e"', ["d" * 9 + "e", "c" * 81 + "e"], ["d" * 8 + "e"]),
        ('start: (("a"~0..45)~0..45)~0..45 "b"', ["b", "a" * 500 + "b"], ["a"]),
        ("start: " + "(" * 150 + '"a"' + ' "b")?' * 150, ["", "a" + "b" * 150], ["a" + "b" * 149]),
        ("start: " + "(" * 60 + '"a"' + ' | "b" "c")' * 60, ["a", "bc"], ["ab"]),
        (lines("start: x", 'x: "x"', *(f'%extend x: "a{i}"? "b{i}"? "c"' for i in range(40))), ["a7c"], ["a7b8c"]),
        (lines("start: " + " ".join(["t{A}"] * 60), 't{x}: x | "-"', 'A: "a"'), ["a-" * 30], ["a-" * 29]),
        (lines('start: t{"z"}', f"t{{x}}: {optional(40, '{}?')} x"), ["z", "<3>z"], ["<3>"]),
    ],
)  # fmt: skip
def test_groups_that_multiply(grammar: str, good: list[str], bad: list[str]) -> None:
    compiled = mw.compile_lark(grammar, BYTES)
    assert all(accepts(compiled, text) for text in good)
    assert not any(accepts(compiled, text) for text in bad)
    assert mw.check_grammar(mw.Lark(grammar)).compiles


def test_repetitions() -> None:
    with pytest.raises(mw.LimitError, match="max_count is 1000000000, 2000000000 needed") as caught:
        mw.compile_lark('start: "a"\n  | "b"~2000000000', BYTES)
    assert caught.value.place == "2:8"
    with pytest.raises(mw.LimitError, match="max_count"):
        mw.compile_lark('start: "a"~' + "9" * 5000, BYTES)
    with pytest.raises(mw.GrammarError, match="least number comes first") as found:
        mw.compile_lark('start: "a"\n  | "b"~3..2', BYTES)
    assert found.value.place == "2:8"


# --- templates ------------------------------------------------------------------------------

TEMPLATES = [
    lines('start: pair{A, "x"} | list{pair{A, B}}', "pair{l, r}: l r", 'list{x}: x ("," x)*', 'A: "a"', 'B: "b"'),
    lines("start: deep{A}", "deep{x}: twice{twice{x}} | x", "twice{y}: y y", 'A: "a"'),
    lines("start: apply{twice, A} apply{one, A}", "apply{f, x}: f{x}", "twice{y}: y y", "one{y}: y", 'A: "a"'),
    lines("start: a{B}", "a{x}: b{x} | x", 'b{x}: "(" a{x} ")"', 'B: "b"'),
    lines('start: r{"a".."c"} r{/[x-z]/} /[w-y]/ "->"', "r{x}: [x] x"),
    lines("start: t{/[a-c]/} /[d-f]/", "t{x}: /[b-d]/ x | /[b-f]/"),
    lines("start: _sep{item, C}", "_sep{x, s}: x (s x)*", '!item: "i" -> one | "j" C', 'C: ","'),
]  # fmt: skip


@pytest.mark.parametrize("text", TEMPLATES)
def test_templates_have_the_same_texts(text: str) -> None:
    expected = texts_of(package_rules(text), 6)
    assert expected
    ours = read(text, "start")
    assert texts_of(ours.rules, 6) == expected
    assert len(ours.rules) == len(package_rules(text))
    assert {name: each.pattern for name, each in ours.terminals.items()} == package_terminals(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "limit", "place"),
    [
        ('start: t{"a"}\nt{x}: x | t{u{x}}\nu{x}: x x', "max_depth", "2:1"),
        ('start: t{"a"}\nu{x}: x x\nt{x}: "(" u{t{u{x}}} ")" | x', "max_depth", None),
        (
            lines(
                'start: t{"a", "b", "c", "d", "e", "f", "g", "h", "i"}',
                "t{a,b,c,d,e,f,g,h,i}: a b c d e f g h i | t{b,a,c,d,e,f,g,h,i} | t{b,c,d,e,f,g,h,i,a}",
            ),
            "max_expansion",
            "2:1",
        ),
    ],
)
def test_templates_without_end(text: str, limit: str, place: str | None) -> None:
    with pytest.raises(mw.LimitError, match="template") as caught:
        mw.compile_lark(text, BYTES, limits=mw.Limits(max_seconds=60))
    assert caught.value.limit == limit and (place is None or caught.value.place == place)
    (finding,) = mw.check_grammar(mw.Lark(text)).findings
    assert (finding.code, finding.place) == ("limit", caught.value.place)


def test_arguments_that_double() -> None:
    """Their names would, if they said what they stand for."""
    names = ["t" + "x" * i for i in range(41)]
    uses = [f"{name}{{x}}: {after}{{p{{x, x}}}}" for name, after in pairwise(names)]
    whole = lines('start: t{"a"}', "p{x, y}: x | y y", *uses, f"{names[-1]}{{x}}: x")
    compiled = mw.compile_lark(whole, BYTES)
    assert all(accepts(compiled, "a" * n) for n in (1, 2, 3, 77)) and not accepts(compiled, "")


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ('start: t{"a"}\nt{f}: f{"x"}', "2:1", 'uses its parameter f as a template, and "a" is none'),
        ('start: t{g}\nt{f}: f{"x"}\ng: "y"', "2:1", "uses its parameter f as a template, and g is none"),
        ('start: t{g}\nt{f}: f{"x"}\ng{y, z}: y z', "2:1", "t gives 1 arguments to g, which has 2"),
        ("start: t{g}\nt{f}: f\ng{y}: y", "1:10", "rule t uses the template g without arguments"),
        ('start: A\nA: t{"x"}\nt{x}: x', "2:1", "terminal A uses a template"),
        ('%declare x\nstart: x "a"', "1:10", "rule x is only declared"),
        ('%declare X\nstart: Y\nY: X "a"', "3:1", "terminal Y uses X, which is declared"),
        ('start: A\nA: "ab".."c"', "2:4", "a range has one character on each side"),
        ('start: "a"\n  | "\\x"', "2:6", "escape"),
        ('start: t{A\n}\nA: "x"\nt{x}: x', "1:11", "cannot stand here"),
        ("start: A\nA: b (RFC 5321", "2:11", "cannot stand here"),
        ("%import .foo.A\n%import foo.B\nstart: A B", None, "Inconsistent base_path"),
    ],
)
def test_refused(text: str, place: str | None, says: str) -> None:
    with pytest.raises(mw.GrammarError, match=says) as caught:
        mw.compile_lark(text, BYTES)
    assert caught.value.place == place
    assert mw.check_grammar(mw.Lark(text)).findings[0].place == place or "1:1"


def test_long_texts(tmp_path: Path) -> None:
    # 6 tokens a line, and 3 in the first and the last one.
    text = lines("start: r0", *(f'r{i}: "a" r{i + 1} | "b"' for i in range(100)), 'r100: "c"')
    limits = mw.Limits(max_lark_tokens=600)
    with pytest.raises(mw.LimitError, match="max_lark_tokens is 600, 606 needed"):
        mw.compile_lark(text, BYTES, limits=limits)
    (finding,) = mw.check_grammar(mw.Lark(text), limits=limits).findings
    assert finding.code == "limit"
    (tmp_path / "long.lark").write_text(text)
    with pytest.raises(mw.LimitError, match="max_lark_tokens is 600, 606 needed"):
        mw.compile_lark("%import long.r0\nstart: r0", BYTES, import_paths=[str(tmp_path)], limits=limits)
    assert accepts(mw.compile_lark(text, BYTES, limits=mw.Limits(max_lark_tokens=606)), "aab")
    # One token, of many characters.
    for text, least in (('start: "' + "a" * 7_000 + '"', 3_501), ('start: "a" //' + "a" * 7_000, 701)):
        with pytest.raises(mw.LimitError, match=r"of 70.. characters: max_lark_tokens is 600, 70. needed"):
            mw.compile_lark(text, BYTES, limits=limits)
        with pytest.raises(mw.LimitError, match=f"max_lark_tokens is {least - 1}, {least} needed"):
            mw.compile_lark(text, BYTES, limits=mw.Limits(max_lark_tokens=least - 1))
        mw.compile_lark(text, BYTES, limits=mw.Limits(max_lark_tokens=least))


# --- terminals ------------------------------------------------------------------------------


def doubling(levels: int, between: str = "") -> str:
    names = (f"T{i}: T{i + 1} {between} T{i + 1}" for i in range(levels))
    return lines("start: T0", *names, f'T{levels}: "a"')


@pytest.mark.slow
@pytest.mark.parametrize("between", ["", "|", '"b"', '("b" |)'])
def test_terminals_that_double(between: str) -> None:
    for levels in (30, 1000):
        with pytest.raises(mw.LimitError, match="terminal T0, with what it uses: max_expansion") as caught:
            mw.compile_lark(doubling(levels, between), BYTES)
        assert caught.value.limit == "max_expansion" and caught.value.place == "2:1"
        (finding,) = mw.check_grammar(mw.Lark(doubling(levels, between))).findings
        assert (finding.code, finding.place) == ("limit", "2:1")


@pytest.mark.slow
def test_terminals_that_double_and_are_small() -> None:
    assert accepts(mw.compile_lark(doubling(6), BYTES), "a" * 64)
    assert not accepts(mw.compile_lark(doubling(6), BYTES), "a" * 63)
    with pytest.raises(mw.LimitError, match="max_expansion is 100"):
        mw.compile_lark(doubling(6), BYTES, limits=mw.Limits(max_expansion=100))
    chain = lines("start: T0", *(f"T{i}: T{i + 1}" for i in range(300)), 'T300: "a"')
    assert accepts(mw.compile_lark(chain, BYTES), "a")


def test_imported_terminals_that_double(tmp_path: Path) -> None:
    (tmp_path / "big.lark").write_text(doubling(40))
    for text, place in [
        ("%import big.T0\nstart: T0", "1:13"),
        ('start: "x" | X\n%import big.T3 -> X', "2:1"),
    ]:
        with pytest.raises(mw.LimitError, match="max_expansion") as caught:
            mw.compile_lark(text, BYTES, import_paths=[str(tmp_path)])
        assert caught.value.place == place
    # What another file has put together already is in its trees, not in names.
    (tmp_path / "small.lark").write_text(doubling(8))
    names = (f"U{i}: U{i + 1} U{i + 1}" for i in range(12))
    text = lines("%import small.T0", "start: U0", *names, "U12: T0")
    with pytest.raises(mw.LimitError, match="terminal U0, with what it uses: max_expansion"):
        mw.compile_lark(text, BYTES, import_paths=[str(tmp_path)])
    text = lines("%import small (T0, T8)", '%extend T8: "b"', "start: T0")
    compiled = mw.compile_lark(text, BYTES, import_paths=[str(tmp_path)])
    assert accepts(compiled, "ab" * 128) and not accepts(compiled, "ab" * 127)


def test_terminals_that_contain_themselves() -> None:
    for text in ("start: A\nA: B\nB: A", "start: A\nA: A", 'start: A\nA: "x"\n%extend A: "y" A'):
        with pytest.raises(mw.GrammarError, match="terminal A contains itself") as caught:
            mw.compile_lark(text, BYTES)
        assert caught.value.place == "2:1"
    text = lines(doubling(40), "%override T40: T0")
    with pytest.raises(mw.GrammarError, match="terminal T0 contains itself"):
        mw.compile_lark(text, BYTES)


TERMINALS = st.recursive(
    st.sampled_from(['"a"', '"b+"', "/[xy]z/", '"a".."f"', "C"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(lambda each: f"({' '.join(each)})"),
        st.lists(inner, min_size=2, max_size=4).map(lambda each: f"({' | '.join(each)})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "~3", "~2..7"])).map(
            lambda each: f"({each[0]}){each[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(TERMINALS, TERMINALS)
def test_the_measure_follows_what_is_written(first: str, second: str) -> None:
    """Within a factor: quantifiers, escapes and the brackets around groups count about as much as they take."""
    text = lines("start: A B C", f"A: {first} B", f"B: {second}", 'C: "cc" | "d"')
    loaded, _ = lark.load_grammar.load_grammar(text, "<grammar>", [], False)
    builder = lark.load_grammar.GrammarBuilder()
    for name, (tree, options) in loaded.term_defs:
        builder._definitions[name] = lark.load_grammar.Definition(True, tree, (), options)
    sizes = measured(builder._definitions, groups.Places(text))
    terminals, _, _ = loaded.compile(["start"], "*")
    for terminal in terminals:
        assert (
            len(terminal.pattern.value) / 2 <= sizes[terminal.name].pattern <= 3 * len(terminal.pattern.value)
        )
        assert sizes[terminal.name].pattern <= sizes[terminal.name].written


# --- imports --------------------------------------------------------------------------------


def test_imports_that_do_not_end(tmp_path: Path) -> None:
    (tmp_path / "a.lark").write_text('%import b.X\nA: X "a"')
    (tmp_path / "b.lark").write_text('%import a.A\nX: A "b"')
    with pytest.raises(mw.GrammarError, match="imported grammar a imports itself") as caught:
        mw.compile_lark("%import a.A\nstart: A", BYTES, import_paths=[str(tmp_path)])
    assert caught.value.place == "1:1"
    for name in ("f30", "g30"):
        (tmp_path / f"{name}.lark").write_text('x: "x"')
    for i in range(30):
        (tmp_path / f"f{i}.lark").write_text(f"%import f{i + 1}.x -> y\n%import g{i + 1}.x -> z\nx: y z")
        (tmp_path / f"g{i}.lark").write_text(f"%import f{i + 1}.x -> y\n%import g{i + 1}.x -> z\nx: y z")
    with pytest.raises(mw.LimitError, match="max_seconds"):
        mw.compile_lark(
            "%import f0.x\nstart: x",
            BYTES,
            import_paths=[str(tmp_path)],
            limits=mw.Limits(max_seconds=0.2),
        )


def test_errors_of_imported_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.lark").write_text('A: "a"\nB: (')
    (tmp_path / "latin.lark").write_bytes(b'A: "\xe9"')
    (tmp_path / "repeat.lark").write_text('\n\nx: "a"~2..1')
    for name, place, says in [
        ("bad.A", "2:1", "in the imported grammar bad: .* line 2"),
        ("latin.A", None, "latin.lark is not in UTF-8"),
        ("none.A", "2:1", "none.lark"),
        ("repeat.x", "1:8", "least number"),
    ]:
        used = name.partition(".")[2]
        with pytest.raises(mw.GrammarError, match=says) as caught:
            mw.compile_lark(f"start: {used}\n%import {name}", BYTES, import_paths=[str(tmp_path)])
        assert caught.value.place == place
    # A file of the working directory is none of the caller's import paths.
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mw.GrammarError, match="import_paths"):
        mw.compile_lark("start: A\n%import bad.A", BYTES)


def test_limits_are_the_defaults() -> None:
    assert read('start: "a"', "start") == read('start: "a"', "start", (), DEFAULT_LIMITS)
