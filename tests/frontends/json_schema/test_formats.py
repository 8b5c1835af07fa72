"""The formats: no accepted string is refused by an independent parser, and examples are told apart."""

import base64
import ipaddress
import json
import random
import re
import unicodedata
import uuid
from datetime import date, datetime, time
from email.headerregistry import Address
from urllib.parse import urlsplit

import idna
import pytest
from jsonschema import Draft202012Validator
from places import DATA

import maskwright as mw
from maskwright._subsets import SideBySide
from maskwright.frontends.json_schema.texts.formats import (
    INTEGER_BOUNDS,
    LATER_PATTERNS,
    OLDER_PATTERNS,
    OPENAPI_PATTERNS,
    PATTERNS,
    WIDER,
)
from maskwright.limits import DEFAULT_LIMITS
from maskwright.regex import parse_regex
from maskwright.regular.determinize import automaton_of, minimal_dfa
from maskwright.regular.dfa import complement, difference, is_empty, matches

SUITE = DATA / "json-schema-test-suite/tests/draft2020-12/optional/format"
ALL_PATTERNS = PATTERNS | OPENAPI_PATTERNS | OLDER_PATTERNS
COMPILED = {name: re.compile(pattern) for name, pattern in ALL_PATTERNS.items()}

# Whether an A-label is valid is known only after decoding its Punycode.
VALID_A_LABELS = (
    "xn--9n2bp8q.xn--9t4b11yi5a xn--zca29lwxobi7a xn--qmbc xn--ll-0ea xn--wva3je xn--4dbc5h xn--4dbc8h "
    "xn--k8j5u xn--bck0j xn--vek778f xn--ngba1o xn--0-gyc xn--11b2ezcw70k xn--11b2ezcs70k xn--ngba5hb2804a"
)
# Leap seconds are written in UTC.
LEAP_SECONDS = {
    "time": "01:29:60+01:30 23:29:60+23:30 15:59:60-08:00 00:29:60-23:30",
    "date-time": "1998-12-31T15:59:60.123-08:00",
}
# Names of Greek letters are valid far beyond our bound, when their Punycode is short.
LONG_GREEK = "παράδειγμα" * 5 + "πα"
OUTSIDE_THE_SUBSET = {
    "hostname": VALID_A_LABELS.split(),
    "idn-hostname": ["xn--ihqwcrb4cv8a8dqg056pqjye", *(f"{LONG_GREEK}{dot}com" for dot in ".。．｡")],
    "idn-email": ["user@cafe\u0301.com"],
    # Valid, but refused by jsonschema or its helpers (docs/readers.md).
    "relative-json-pointer": ["100"],
    "uri-template": ["a'b", "{%41}", "{v:1000}"],
    **{name: texts.split() for name, texts in LEAP_SECONDS.items()},
}

LABEL_63 = "a" * 63
ACCEPTED = {
    "date": ["2024-02-29", "0001-01-01", "9999-12-31", "2000-02-29"],
    "time": ["12:00:00Z", "12:00:00.5+05:45", "23:59:60z", "23:59:60.5-00:00"],
    "date-time": [
        "2024-02-29T00:00:00-00:00",
        "2016-12-31T23:59:60Z",
        "2015-06-30t23:59:60.25+00:00",
    ],
    "duration": ["P1Y", "P1Y2M3DT4H5M6S", "PT0S", "P52W", "P3DT12H"],
    "email": [
        "a@b.c",
        f"{'x' * 64}@example.org",
        "first.last+tag@sub.example.co.uk",
        "first.last+" + "t" * 33 + "@example.org",
        "t" * 34 + ".first.last@example.org",
        f"{'x' * 64}@{LABEL_63}.{LABEL_63}.{'c' * 61}",
        '"a\\"b"@example.org',
        "a@[IPv6:2001:db8::1]",
        "a@[ipv6:1:2:3:4:5:6:7:8]",
    ],
    "hostname": [
        "a",
        "a-b",
        "a--b",
        "1.2.3.4",
        f"{LABEL_63}.{LABEL_63}.{LABEL_63}.{'b' * 61}",
        "0." * 32 + "ip6.arpa",
        "very-long-bucket-name-for-a-storage-service.s3.dualstack.eu-west-1.amazonaws.com",
    ],
    "idn-email": [
        "a.b@example.org",
        f"{'x' * 64}@{LABEL_63[:61]}.{LABEL_63[:61]}.{LABEL_63[:61]}",
        "用户.名@例え.テスト",
        '"é\\"à"@münchen.de',
        "\U0001d54f" * 13 + "@שלום.example",
    ],
    "idn-hostname": [
        "a",
        LABEL_63,
        "www.straße.münchen.de",
        "日本語。テスト",
        "한국어-테스트.kr",
        "हिन्दी.कम्पनी",
        "שלום1.example",
        "عربي٣.عربي۳.b",
        "l·l",
        "ク・リ",
    ],
    "ipv4": ["0.0.0.0", "255.255.255.255", "192.0.2.10"],
    "ipv6": [
        "::",
        "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8",
        "1::3:4:5:6:7:8",
        "::ffff:1.2.3.4",
        "1:2:3:4:5:6:7:8",
    ],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
    "uri": [
        "a:b",
        "http://u:p@[v1.a]:80/?#",
        "http://[::1]/",
        "urn:a:b",
        "x:/",
        "x:/a//b",
        "http://a/%C3%A9",
    ],
    "uri-reference": ["", "?", "#", "//", "//h/p", "a/b:c", "./a:b", "/", "http://a"],
    "uri-template": ["", "/a{/b*}{?c,d:3}", "{a.b}", "é"],
    "iri": ["http://é.fr/ü?\ue000#é", "urn:日本"],
    "iri-reference": ["é", "", "//日本/語", "?\U00100000"],
    "json-pointer": ["", "/", "/a~0b~1c/0", "/é\n"],
    "relative-json-pointer": ["0", "0#", "12/a", "1/"],
    "regex": [
        "",
        "^a+$",
        r"[^a-z\]-]{2,10}?",
        r"(?:a|(b)*)\u00e9|",
        r"(?=\d)x",
        "a{3}",
        "[-]",
        "(()(a|))",
        "((()))",
        "[1-35-9a-fA-Z]{2,4}",
    ],
    "byte": ["", "AA==", "/+8=", "TWFu", "TWFuTQ=="],
}
REJECTED = {
    "date": ["0000-01-01", "2023-02-29", "1900-02-29", "2024-04-31", "2024-1-01", "2024-01-01\n"],
    "time": [
        "12:00:00",
        "24:00:00Z",
        "12:00:60Z",
        "05:30:60+05:30",
        "23:59:61Z",
        "22:59:60Z",
        "23:59:60+01:00",
        "12:00Z",
        "12:00:00.Z",
        "12:00:00+24:00",
    ],
    "date-time": [
        "2016-12-30T23:59:60Z",
        "2016-12-31T08:59:60+09:00",
        "2017-01-01T23:59:60Z",
        "2016-03-31T23:59:60Z",
        "2024-01-01 00:00:00Z",
        "2024-01-01T00:00:00",
        "2023-02-29T00:00:00Z",
    ],
    "duration": ["P", "PT", "P1YT", "P1Y1D", "PT1H1S", "P1W1D", "P1.5D", "p1d"],
    "email": [
        "@b",
        "a@",
        "a@b",
        "a..b@c.d",
        ".a@c.d",
        f"{'x' * 65}@example.org",
        f"a@{LABEL_63}.{LABEL_63}.{LABEL_63}.{'c' * 61}",
        "a@-b",
        "a@[1.2.3]",
        "a@[::1]",
        "a@[IPv6:1:2:3:4:5:6:7::]",
        '"a"b"@c.d',
        '""@c.d',
    ],
    "hostname": [
        "",
        "a.",
        "-a",
        "a-",
        "a_b",
        "xn--a",
        f"{LABEL_63}a",
        "a..b",
        f"{LABEL_63}." * 3 + "b" * 62,
        "é",
    ],
    "idn-email": [
        "é",
        "é@",
        "@é",
        ".é@a",
        "é..é@a",
        "é" * 17 + "@a",
        "a@é\u0301\u0300.\u0300",
        "a@b。c",
        "é＠a",
        f"{'x' * 65}@example.org",
    ],
    "idn-hostname": [
        "",
        "é.",
        "-é",
        "é-",
        "é--a",
        "xn--9n2bp8q",
        f"{LABEL_63}a",
        "É",
        "e\u0301",
        "ü" * 60,
        "a.1א",
        "1.א",
        "aא",
        "א1٣",
        "٣۳",
        "a·l",
        "・",
        "क\u200dष",
        "ب\u200cا\u200cب",
        "א׳a",
        "a_b",
    ],
    "ipv4": ["256.0.0.1", "01.2.3.4", "1.2.3", "1.2.3.4.5", "1.2.3.4 "],
    "ipv6": [
        "1:2:3:4:5:6:7",
        "1::2::3",
        ":::",
        "12345::",
        "::1%eth0",
        "1:2:3:4:5:6:7:1.2.3.4",
        "1:2:3:4:5:6:7:8::",
    ],
    "uuid": ["123e4567e89b12d3a456426614174000", "{123e4567-e89b-12d3-a456-426614174000}"],
    "uri": [
        "",
        "a",
        "/a",
        "1a:b",
        "http://[::1",
        "http://a b",
        "http://a:b",
        "http://a/%g0",
        "x://é",
        "a:",
        "a:?b",
        "a:x#b#c",
    ],
    "uri-reference": ["1:b", ":a", "\\", "%", "//a:b", "a b", "#a#b", "[a]"],
    "uri-template": [
        "{",
        "}",
        "{}",
        "{=a}",
        "{a:0}",
        "{a:12345}",
        "{a..b}",
        "<",
        '"',
        "it's",
        "{%41}",
        "{a:1234}",
    ],
    "iri": ["é", "http://é\u202e", "http://é/\ue000", "http://é/\ufdd0", "http://é#\ue000"],
    "iri-reference": ["é:b\\", "a b", "\ue000", "\ufffe"],
    "json-pointer": ["a", "/~", "/~2", "#/a"],
    "relative-json-pointer": ["", "01", "207", "-1", "1#a", "1a", "/a"],
    "regex": [
        "[",
        "[]",
        "[^]",
        "(",
        "a)",
        "*a",
        "a**",
        "[z-a]",
        "a{2,1}",
        "\\",
        "(?<=a)b",
        "(?i)a",
        "^*",
        "(?=a)*",
    ],
    "byte": ["A", "AA", "AAA", "AB==", "AAB=", "A===", "AA==AA==", "AA-_", "AA==\n", " AAA"],
}
ACCEPTED["ip-address"], REJECTED["ip-address"] = ACCEPTED["ipv4"], REJECTED["ipv4"]
for older in ("host-name", "hostname of RFC 1034"):
    ACCEPTED[older] = [
        "example.com",
        "a",
        "ab--cd.example",
        "xn--4gbwdl.xn--wgbh1c",
        LABEL_63,
        f"a.{LABEL_63}.b",
    ]
    REJECTED[older] = [
        "",
        "-a",
        "a-",
        "a..b",
        "a.",
        ".a",
        "a_b",
        f"a{LABEL_63}",
        "\u00e9",
        f"{LABEL_63}.-.b",
        "a b",
    ]


@pytest.mark.parametrize("name", ALL_PATTERNS)
def test_examples(name):
    wrong = [text for text in ACCEPTED[name] if not COMPILED[name].fullmatch(text)]
    wrong += [text for text in REJECTED[name] if COMPILED[name].fullmatch(text)]
    assert not wrong


@pytest.mark.skipif(
    not SUITE.is_dir(), reason="the official JSON Schema test suite is not beside the repository"
)
@pytest.mark.parametrize("name", sorted(PATTERNS.keys() - {"host-name", "ip-address"}))
def test_official_suite(name):
    outside = OUTSIDE_THE_SUBSET.get(name, [])
    groups = json.loads((SUITE / f"{name}.json").read_text(encoding="utf-8"))
    cases = {
        case["data"]: case["valid"]
        for group in groups
        for case in group["tests"]
        if isinstance(case["data"], str)
    }
    wrong = [text for text, valid in cases.items() if bool(COMPILED[name].fullmatch(text)) != valid]
    assert sorted(wrong) == sorted(outside)
    assert all(cases[text] for text in outside), "only valid strings may be left out"


@pytest.mark.parametrize("name", sorted(WIDER.keys() - LATER_PATTERNS.keys()))
def test_what_lacks_a_format_is_outside_of_a_superset(name):
    wider, own = (parse_regex(text[name], "ecma", DEFAULT_LIMITS) for text in (WIDER, ALL_PATTERNS))
    assert is_empty(difference(own, wider))
    assert not is_empty(complement(wider))
    if name in PATTERNS and name != "host-name" and SUITE.is_dir():
        groups = json.loads((SUITE / f"{name}.json").read_text(encoding="utf-8"))
        valid = [case["data"] for group in groups for case in group["tests"] if case["valid"]]
        assert [text for text in valid if isinstance(text, str) and not matches(wider, text)] == []


def test_older_host_names():
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    for dialect in ("draft3", "draft4", "draft6", "draft7", "2020-12"):
        compiled = mw.compile_json_schema({"format": "hostname"}, vocabulary, dialect=dialect)
        matcher = compiled.matcher()
        assert matcher.accept_bytes(b'"ab--cd.example"') is (dialect in ("draft3", "draft4", "draft6"))
    # A name of ours is none of a schema's.
    compiled = mw.compile_json_schema({"format": "hostname of RFC 1034"}, vocabulary)
    assert compiled.matcher().accept_bytes(b'"-"')


def test_known_formats_are_disjoint():
    assert not OPENAPI_PATTERNS.keys() & PATTERNS.keys()
    assert not INTEGER_BOUNDS.keys() & ALL_PATTERNS.keys()


@pytest.mark.parametrize("name", ALL_PATTERNS)
def test_automata_are_small(name):
    """Products with patterns and lengths start from these, determinised (in passing) and made minimal."""
    language = parse_regex(ALL_PATTERNS[name], "ecma", DEFAULT_LIMITS)
    assert len(minimal_dfa(language, DEFAULT_LIMITS)) <= 1500
    alphabet, automaton = automaton_of(language, DEFAULT_LIMITS)
    SideBySide([automaton], [alphabet], [True], DEFAULT_LIMITS.max_regex_states).combine()
    assert len(automaton) <= 1700


@pytest.mark.parametrize(
    ("schema", "dialect", "good", "bad"),
    [
        ({"format": "int32"}, "auto", ["2147483647", "-2147483648", '"x"', "1.0"], ["2147483648", "0.5"]),
        ({"type": "integer", "format": "int64"}, "auto", ["9223372036854775807"], ["9223372036854775808"]),
        ({"type": "number", "format": "int32", "maximum": 5}, "auto", ["5"], ["6", "4.5"]),
        ({"not": {"format": "int32"}}, "auto", ["2147483648", "0.5"], ["7", '"x"']),
        ({"type": "string", "format": "byte"}, "openapi-3.1", ['"AA=="'], ['"A"']),
        ({"type": "string", "format": "byte"}, "auto", ['"AA=="', '"A"'], []),
    ],
)
def test_formats_of_openapi(schema, dialect, good, bad):
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    compiled = mw.compile_json_schema(schema, vocabulary, dialect=dialect)
    for text in good + bad:
        matcher = compiled.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting) == (text in good), text


@pytest.mark.parametrize("name", ALL_PATTERNS)
def test_pattern_syntax_is_common_to_the_dialects(name):
    parser = re._parser  # the tree is the surest way to see that no other construct is used
    allowed = {"LITERAL", "NOT_LITERAL", "IN", "BRANCH", "SUBPATTERN", "MAX_REPEAT"}
    pending = [parser.parse(ALL_PATTERNS[name])]
    while pending:
        for operator, argument in pending.pop():
            assert str(operator) in allowed
            if str(operator) == "SUBPATTERN":
                assert argument[0] is None, "captures"
                pending.append(argument[-1])
            elif str(operator) == "MAX_REPEAT":
                pending.append(argument[-1])
            elif str(operator) == "BRANCH":
                pending.extend(argument[1])


def _judge_date(text):
    return date.fromisoformat(text) and len(text) == 10 and text[4] == text[7] == "-"


def _judge_time(text):
    return time.fromisoformat(_without_leap_second(text).upper()).tzinfo is not None


def _judge_date_time(text):
    moment = datetime.fromisoformat(_without_leap_second(text).upper())
    if "23:59:60" in text and (moment.month, moment.day) not in ((6, 30), (12, 31)):
        return False
    return moment.tzinfo is not None


def _without_leap_second(text):
    # Python's parsers refuse them; only those written in UTC are ours.
    return re.sub(r"23:59:60(?=(\.[0-9]+)?([Zz]|[+-]00:00)$)", "23:59:59", text)


def _judge_hostname(text):
    labels = text.split(".")
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789-")
    return len(text) <= 253 and all(
        1 <= len(label) <= 63
        and set(label.lower()) <= allowed
        and "-" not in (label[0], label[-1])
        and label[2:4] != "--"
        for label in labels
    )


def _judge_email(text):
    local, domain = text.rsplit("@", 1)
    if len(text) > 254 or len(local) > 64:
        return False
    if domain.startswith("["):
        literal = domain[1:-1]
        if literal.lower().startswith("ipv6:"):
            return bool(ipaddress.IPv6Address(literal[5:]))
        return bool(ipaddress.IPv4Address(literal))
    # Raises on a malformed local part.
    return Address(addr_spec=text).domain == domain and _judge_hostname(domain)


def _judge_idn_hostname(text):
    labels = re.split("[.。．｡]", text)
    encoded = [label.encode() if label.isascii() else idna.encode(label) for label in labels]
    bidi = any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in text)
    return _judge_hostname(
        ".".join("a" if label[:4] == b"xn--" else label.decode() for label in encoded)
    ) and (
        len(b".".join(encoded)) <= 253
        and not any(label.startswith("xn--") for label in labels)
        and (not bidi or all(idna.check_bidi(label, check_ltr=True) for label in labels))
    )


def _judge_idn_email(text):
    local, domain = text.rsplit("@", 1)
    ascii_form = re.sub(r"[^\x00-\x7f]", "a", local)
    return (
        len(text.encode()) <= 254
        and len(local.encode()) <= 64
        and Address(addr_spec=f"{ascii_form}@example.org").domain == "example.org"
        and not re.search("[。．｡]", domain)
        and _judge_idn_hostname(domain)
    )


def _judge_identifier(text):
    return urlsplit(text.replace("[V", "[v")) is not None


def _judge_iri(text):
    forbidden = {0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    return not forbidden & set(map(ord, text))


JUDGES = {
    "date": _judge_date,
    "time": _judge_time,
    "date-time": _judge_date_time,
    "email": _judge_email,
    "idn-email": _judge_idn_email,
    "hostname": _judge_hostname,
    "idn-hostname": _judge_idn_hostname,
    "byte": lambda text: base64.b64encode(base64.b64decode(text, validate=True)) == text.encode(),
    "ipv4": lambda text: ipaddress.IPv4Address(text) is not None,
    "ipv6": lambda text: "%" not in text and ipaddress.IPv6Address(text) is not None,
    "uuid": lambda text: uuid.UUID(text) is not None and len(text) == 36,
    "uri": _judge_identifier,
    "uri-reference": _judge_identifier,
    "iri": _judge_iri,
    "iri-reference": _judge_iri,
    "regex": lambda text: re.compile(text) is not None,
}
CHECKER = Draft202012Validator.FORMAT_CHECKER


def _checker_input(name: str, text: str) -> str:
    """``text`` with what jsonschema's checkers are known to misread replaced by a like spelling."""
    if name in {"time", "date-time"}:
        return _without_leap_second(text)
    if name in {"uri", "uri-reference", "iri", "iri-reference"}:
        return text.replace("[V", "[v")  # a literal in RFC 5234 grammars has no case
    return text


def _is_valid(name: str, text: str) -> bool:
    """What the independent parser and jsonschema's checker (where installed) say together."""
    try:
        if name in JUDGES and not JUDGES[name](text):
            return False
    except (ValueError, IndexError, re.error):
        return False
    return CHECKER.conforms(_checker_input(name, text), name)


def _sample(tree, rng: random.Random) -> str:
    """A string of the language, over the parse tree of ``re``: far faster than a strategy."""
    text = []
    for operator, argument in tree:
        match str(operator):
            case "LITERAL":
                text.append(chr(argument))
            case "NOT_LITERAL" | "IN":
                items = argument if str(operator) == "IN" else [("LITERAL", argument)]
                ranges = [(a, a) if str(op) == "LITERAL" else a for op, a in items if str(op) != "NEGATE"]
                if str(operator) == "NOT_LITERAL" or str(items[0][0]) == "NEGATE":
                    characters = map(chr, (*range(128), 0xE9, 0x65E5, 0xFFFD, 0x1F600))
                    outside = [
                        c for c in characters if not any(low <= ord(c) <= high for low, high in ranges)
                    ]
                    text.append(rng.choice(outside))
                else:
                    low, high = rng.choice(ranges)
                    text.append(chr(rng.choice((low, high, rng.randint(low, high)))))
            case "MAX_REPEAT":
                low, high, body = argument
                few = min(high, low + rng.choice((0, 1, 2, 5)))
                count = high if high < 100 and rng.random() < 0.2 else few
                text += [_sample(body, rng) for _ in range(count)]
            case "BRANCH":
                text.append(_sample(rng.choice(argument[1]), rng))
            case "SUBPATTERN":
                text.append(_sample(argument[-1], rng))
    return "".join(text)


@pytest.mark.parametrize("name", ALL_PATTERNS)
@pytest.mark.filterwarnings("ignore:Possible (nested set|set):FutureWarning")
def test_generated_strings_are_valid(name):
    rng = random.Random(name)
    tree = re._parser.parse(ALL_PATTERNS[name])
    for _ in range(1000):
        text = _sample(tree, rng)
        assert COMPILED[name].fullmatch(text), ascii(text)
        assert _is_valid(name, text), ascii(text)


@pytest.mark.parametrize("name", ALL_PATTERNS)
@pytest.mark.filterwarnings("ignore:Possible (nested set|set):FutureWarning")
def test_mutated_strings_are_valid_when_accepted(name):
    """One edit away from the examples lie the strings that a careless pattern lets through."""
    rng = random.Random(name)
    exact = name in {"date", "ipv4", "ipv6"}
    alphabet = "".join(ACCEPTED[name] + REJECTED[name]) + ".-:/0159aZ%[]"
    for text in ACCEPTED[name] + REJECTED[name]:
        for _ in range(100):
            at, drop = rng.randrange(len(text) + 1), rng.randrange(2)
            mutant = text[:at] + rng.choice(["", rng.choice(alphabet)]) + text[at + drop :]
            accepted = bool(COMPILED[name].fullmatch(mutant))
            if accepted or exact:
                assert accepted == _is_valid(name, mutant), ascii(mutant)


def test_every_date():
    days = [f"{year:04}-02-29" for year in range(10000)]
    for year in (1, 4, 100, 1582, 1900, 2000, 2023, 2024, 9996, 9999):
        days += [f"{year:04}-{month:02}-{day:02}" for month in range(14) for day in range(33)]
    assert [day for day in days if bool(COMPILED["date"].fullmatch(day)) != _is_valid("date", day)] == []
