"""The string formats as regular languages.

Every pattern matches the whole decoded string and is the format's language or a subset of it: what
no regular expression of reasonable size can tell apart is refused.  The syntax is what ECMA-262
and Python's ``re`` share (classes, groups, alternation, counted repetition), without anchors.
"""

from __future__ import annotations

from decimal import Decimal

from maskwright.frontends.json_schema.texts.idn import DOTS, idn_hostname


def _any_of(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


def _optional(pattern: str) -> str:
    return f"(?:{pattern})?"


# RFC 3339 section 5.6 full-date, section 5.7 month lengths, appendix C leap years.  Year 0000 is
# left out: Python and other readers begin at year 1.
_TWO_DIGITS_POSITIVE = "(?:0[1-9]|[1-9][0-9])"
_MULTIPLE_OF_4_POSITIVE = "(?:0[48]|[2468][048]|[13579][26])"
_YEAR = f"(?:[0-9]{{2}}{_TWO_DIGITS_POSITIVE}|{_TWO_DIGITS_POSITIVE}00)"
_LEAP_YEAR = f"(?:[0-9]{{2}}{_MULTIPLE_OF_4_POSITIVE}|{_MULTIPLE_OF_4_POSITIVE}00)"
_DAY_TO_28 = "(?:0[1-9]|1[0-9]|2[0-8])"
_DATE = _any_of(
    f"{_YEAR}-(?:0[13578]|1[02])-(?:{_DAY_TO_28}|29|30|31)",
    f"{_YEAR}-(?:0[469]|11)-(?:{_DAY_TO_28}|29|30)",
    f"{_YEAR}-02-{_DAY_TO_28}",
    f"{_LEAP_YEAR}-02-29",
)

# RFC 3339 section 5.6 full-time.
_FRACTION = r"(?:\.[0-9]+)?"
_HOUR = "(?:[01][0-9]|2[0-3])"
_OFFSET = f"(?:[Zz]|[+-]{_HOUR}:[0-5][0-9])"
_CLOCK_TIME = f"{_HOUR}:[0-5][0-9]:[0-5][0-9]{_FRACTION}{_OFFSET}"

# RFC 3339 sections 5.6 and 5.7: a leap second ends a June or December, in UTC.  Only this offset is
# allowed beside it: each of the others would keep its own copy of the states behind the hour.
_LEAP_SECOND = f"23:59:60{_FRACTION}(?:[Zz]|[+-]00:00)"
_TIME = f"(?:{_CLOCK_TIME}|{_LEAP_SECOND})"
_DATE_TIME = f"(?:{_DATE}[Tt]{_CLOCK_TIME}|{_YEAR}-(?:06-30|12-31)[Tt]{_LEAP_SECOND})"

# RFC 3339 appendix A: units in order and without gaps; weeks stand alone.
_SECONDS = "[0-9]+S"
_MINUTES = f"[0-9]+M{_optional(_SECONDS)}"
_HOURS = f"[0-9]+H{_optional(_MINUTES)}"
_DURATION_TIME = f"T(?:{_HOURS}|{_MINUTES}|{_SECONDS})"
_DAYS = "[0-9]+D"
_MONTHS = f"[0-9]+M{_optional(_DAYS)}"
_YEARS = f"[0-9]+Y{_optional(_MONTHS)}"
_DURATION = f"P(?:(?:{_YEARS}|{_MONTHS}|{_DAYS}){_optional(_DURATION_TIME)}|{_DURATION_TIME}|[0-9]+W)"

# RFC 2673 section 3.2 dotted-quad, without leading zeros (RFC 3986 section 3.2.2 dec-octet).
_OCTET = "(?:25[0-5]|(?:2[0-4]|1[0-9]|[1-9])?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def _ipv6(least_elided: int) -> str:
    """RFC 4291 section 2.2; ``::`` stands for at least ``least_elided`` of the eight groups.

    All spellings whose last 32 bits are written out share them: an IPv4 address is a large part.
    """
    most = 8 - least_elided
    group = "[0-9A-Fa-f]{1,4}"
    # What follows 1, 2, ... groups, up to the last 32 bits.
    more = f":|(?:{group}:){{{8 - most}}}"
    for count in range(most - 3, 0, -1):
        more = f":(?:{group}:){{0,{most - 2 - count}}}|{group}:(?:{more})"
    before_tail = f"::(?:{group}:){{0,{most - 2}}}|{group}:(?:{more})"
    at_end = f"(?::|(?:{group}:){{1,{most - 1}}}):{_optional(group)}|(?:{group}:){{{most}}}:"
    return f"(?:(?:{before_tail})(?:{group}:{group}|{_IPV4})|{at_end})"


_IPV6 = _ipv6(least_elided=1)

# RFC 1123 section 2.1, RFC 952.  A label with hyphens in places 3 and 4 is valid only as an
# A-label (RFC 5891 section 4.2.3.1), that is after decoding Punycode, and is left out.
_ALNUM, _ALNUM_OR_HYPHEN = "[0-9A-Za-z]", "[0-9A-Za-z-]"


def _label(longest: int) -> str:
    """A label of at most ``longest`` octets (5 or more).

    There is one counted part, behind the fourth octet: what is counted twice is determinised for each pair of counts.
    """
    two = f"{_ALNUM_OR_HYPHEN}{_ALNUM}"  # in places 3 and 4
    fifth_on = f"(?:{two}|{_ALNUM}-){_ALNUM_OR_HYPHEN}{{0,{longest - 5}}}{_ALNUM}"
    return f"{_ALNUM}(?:{_ALNUM}|{_ALNUM_OR_HYPHEN}(?:{_ALNUM}|{two}|{fifth_on}))?"


def _labels(*bounds: tuple[int, int]) -> str:
    """Up to n labels of at most k octets for each (n, k) in turn, the last label mandatory."""
    *first, (n, k) = bounds
    optional = [*first, (n - 1, k)]
    return "".join(rf"(?:{_label(j)}\.){{0,{m}}}" for m, j in optional if m) + _label(k)


def _long_labels(most: int) -> str:
    """Up to ``most`` labels; only the last of so many has less than 63 octets."""
    long = _label(63)
    return rf"(?:{long}\.){{0,{most - 2}}}(?:{long}\.{_label(61)}|{long})"


# Up to draft 6, a host name is that of RFC 1034 section 3.1 alone: Punycode means nothing (draft-04
# validation, section 7.3.3; draft-07 validation, section 7.3.3, adds RFC 5891).
_LABEL_1034 = rf"{_ALNUM}(?:{_ALNUM_OR_HYPHEN}{{0,61}}{_ALNUM})?"
_HOSTNAME_1034 = _any_of(
    rf"(?:{_LABEL_1034}\.){{0,2}}{_LABEL_1034}",
    rf"(?:{_ALNUM}(?:{_ALNUM_OR_HYPHEN}{{0,18}}{_ALNUM})?\.){{0,11}}{_ALNUM}(?:{_ALNUM_OR_HYPHEN}{{0,18}}{_ALNUM})?",
)

# RFC 1034 section 3.1: 253 octets in all.  A total over labels would multiply label lengths by
# positions, so a name is one of three shapes, none of which can exceed the total: few labels of
# any length, some long labels before medium ones, or many short labels.
_HOSTNAME = _any_of(_long_labels(4), _labels((2, 63), (6, 20)), _labels((36, 6)))

# RFC 5321 section 4.1.2 Mailbox and 4.1.3 address literals.  Section 4.5.3.1 bounds the local
# part to 64 octets and the whole to 254, which leaves 189 for the domain.
_ATEXT = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]"
_DOT_ATOM = _any_of(
    f"{_ATEXT}{{1,64}}",
    rf"{_ATEXT}(?:\.?{_ATEXT}){{0,31}}",
    # A long last atom after dots (in the first 16 places), or a long first one before them.
    rf"{_ATEXT}(?:\.?{_ATEXT}){{15}}{_ATEXT}{{0,33}}",
    rf"{_ATEXT}{{18,33}}\.{_ATEXT}(?:\.?{_ATEXT}){{0,14}}",
    rf"{_ATEXT}{{34}}(?:\.?{_ATEXT}){{0,15}}",
)
_QTEXT = r"[ !#-\[\]-~]"
_QUOTED_STRING = rf'"(?:{_QTEXT}{{1,62}}|(?:{_QTEXT}|\\[ -~]){{1,31}})"'
# Two labels at least: names are fully qualified (RFC 5321 section 2.3.5), and readers refuse others.
_MAIL_DOMAIN = rf"{_label(63)}\.{_any_of(_long_labels(2), _labels((5, 24)))}"
_ADDRESS_LITERAL = rf"\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_ipv6(least_elided=2)})\]"
_EMAIL = f"(?:{_DOT_ATOM}|{_QUOTED_STRING})@(?:{_MAIL_DOMAIN}|{_ADDRESS_LITERAL})"

# RFC 5890 section 2.3.2.3.
_IDN_HOSTNAME = f"(?:{_label(63)}|{idn_hostname(_label(61), 4, DOTS)})"

# RFC 6531 section 3.3, with the bounds of RFC 5321: a character is up to four octets.  Address
# literals are left to the format without characters beyond ASCII.
_NON_ASCII = "\x80-\ud7ff\ue000-\U0010ffff"
_U_ATEXT, _U_QTEXT = f"[{_NON_ASCII}{_ATEXT[1:]}", f"[{_NON_ASCII}{_QTEXT[1:]}"
_U_LOCAL = (
    rf'{_U_ATEXT}(?:\.?{_U_ATEXT}){{0,12}}|{_ATEXT}(?:\.?{_ATEXT}){{0,31}}|"(?:{_U_QTEXT}|\\[ -~]){{1,15}}"'
)
_IDN_EMAIL = rf"(?:{_ATEXT}{{1,64}}|{_U_LOCAL})@{idn_hostname(_label(61), 3, '[.]')}"

# RFC 9562 section 4: any version and variant.
_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

# RFC 4648 section 4: padded, and the bits that no octet holds are zero (section 3.5).
_BASE64 = "(?:[0-9A-Za-z+/]{4})*(?:[0-9A-Za-z+/][AQgw]==|[0-9A-Za-z+/]{2}[048AEIMQUYcgkosw]=)?"

_PERCENT_ENCODED = "%[0-9A-Fa-f]{2}"


def _class_of(*ranges: tuple[int, int]) -> str:
    """The inside of a character class; code points are spelled out, as the two dialects escape
    those beyond U+FFFF differently."""
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


# RFC 3987 section 2.2.  Section 4.1 forbids the bidirectional formatting characters (U+200E and
# U+200F, U+202A to U+202E), and the newer isolates U+2066 to U+2069 go with them.
_PLANES_1_TO_13 = tuple((plane << 16, (plane << 16) + 0xFFFD) for plane in range(1, 14))
_UCSCHAR = _class_of(
    (0xA0, 0x200D), (0x2010, 0x2029), (0x202F, 0x2065), (0x206A, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF),
    *_PLANES_1_TO_13, (0xE1000, 0xEFFFD),
)  # fmt: skip
_IPRIVATE = _class_of((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))


def _identifier_and_reference(more: str, more_in_query: str) -> tuple[str, str]:
    """RFC 3986 section 3 URI and section 4.1 URI-reference; ``more`` and ``more_in_query`` are the
    further unreserved characters of RFC 3987."""
    unreserved, sub_delims = f"0-9A-Za-z._~{more}", "!$&'()*+,;="

    def one_of(characters: str) -> str:
        return f"(?:[{unreserved}{sub_delims}{characters}-]|{_PERCENT_ENCODED})"

    segment_character = one_of(":@")
    segments = f"(?:/{segment_character}*)*"
    ipv_future = rf"[Vv][0-9A-Fa-f]+\.[0-9A-Za-z._~{sub_delims}:-]+"
    host = rf"(?:\[(?:{_IPV6}|{ipv_future})\]|{one_of('')}*)"
    authority = f"{_optional(one_of(':') + '*@')}{host}(?::[0-9]*)?"
    from_root = f"//{authority}{segments}|/{_optional(segment_character + '+' + segments)}"
    query_and_fragment = rf"(?:\?{one_of(':@/?' + more_in_query)}*)?(?:#{one_of(':@/?')}*)?"
    scheme = "[A-Za-z][0-9A-Za-z+.-]*:"
    # Something stands behind the colon: a scheme alone identifies nothing, and readers refuse it.
    absolute = f"{scheme}(?:{from_root}|{segment_character}+{segments})"
    # Without a scheme the first segment has no colon, which would read as the end of one.
    rootless = f"(?:{scheme}{segment_character}+|{one_of('@')}+){segments}"
    reference = f"(?:{_optional(scheme)}{_optional(from_root)}|{rootless})"
    return f"{absolute}{query_and_fragment}", f"{reference}{query_and_fragment}"


_URI, _URI_REFERENCE = _identifier_and_reference("", "")
_IRI, _IRI_REFERENCE = _identifier_and_reference(_UCSCHAR, _IPRIVATE)

# RFC 6570 section 2, as far as validators read it alike: without the apostrophe, which an erratum adds, the operators kept for
# future extensions, names that begin with an escape, and prefixes of four digits.
_VARIABLE_CHARACTER = f"(?:[0-9A-Za-z_]|{_PERCENT_ENCODED})"
_VARIABLE = rf"[0-9A-Za-z_](?:\.?{_VARIABLE_CHARACTER})*(?::[1-9][0-9]{{0,2}}|\*)?"
_EXPRESSION = rf"\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}}"
_LITERAL = f"(?:[!#$&()*+,./0-9:;=?@A-Z\\[\\]_a-z~{_UCSCHAR}{_IPRIVATE}-]|{_PERCENT_ENCODED})"
_URI_TEMPLATE = f"(?:{_LITERAL}|{_EXPRESSION})*"

# RFC 6901 section 3.
_JSON_POINTER = "(?:/(?:[^/~]|~[01])*)*"
# draft-handrews-relative-json-pointer-01 section 3.  The index manipulation of later
# drafts is left out: not every draft of JSON Schema has it, and validators refuse it.  So is a zero before another digit, which jsonschema
# refuses anywhere.
_RELATIVE_JSON_POINTER = f"(?:0|[1-9]+0?)(?:#|{_JSON_POINTER})"


# ECMA-262 section 22.2.1 Pattern with the u flag, as far as Python's ``re`` reads it alike: no
# look-behind, named groups, back-references, ``\p`` or ``\c``.  Groups nest to a bounded depth,
# and bounds of ranges and counts are accepted only where they are in order.
_SYNTAX_CHARACTERS = r"\^$\\.*+?()\[\]{}|"
_CHARACTER_ESCAPE = rf"dDwWsStnrfv/{_SYNTAX_CHARACTERS}"
_HEX_ESCAPE = "x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
# Ordered pairs of digits, and of letters: the common ones, as each pattern holds five copies.
_ORDERED_DIGITS = (("[01]", "[1-9]"), ("2", "[2-9]"), ("3", "[3-9]"), ("[4-6]", "[6-9]"))
_CLASS_RANGE = "a-[a-z]|A-[A-Z]|[b-m]-[n-z]|[B-M]-[N-Z]|" + "|".join(
    f"{low}-{high}" for low, high in _ORDERED_DIGITS
)
_CLASS_ITEM = rf"(?:[^\\\[\]^-]|\\(?:[b{_CHARACTER_ESCAPE}-]|{_HEX_ESCAPE})|{_CLASS_RANGE})"
_CLASS = rf"\[\^?(?:-?{_CLASS_ITEM}+-?|-)\]"
_COUNTS = _any_of(
    "[0-9]{1,4},?",
    "[0-9],[1-9][0-9]{1,3}",
    "[0-9]{2},[1-9][0-9]{2,3}",
    *(f"{low},{high}" for low, high in _ORDERED_DIGITS),
    "(?:1[0-9],[2-9]|[2-4][0-9],[5-9])[0-9]|10,1[0-9]",
)
_QUANTIFIER = rf"(?:(?:[*+?]|\{{{_COUNTS}\}})\??)?"
_SIMPLE_ATOM = rf"[^{_SYNTAX_CHARACTERS}]|\.|\\(?:[{_CHARACTER_ESCAPE}]|{_HEX_ESCAPE})|{_CLASS}"
_SIMPLE_ASSERTION = r"[\^$]|\\[bB]"


def _regex(depth: int, looks_ahead: bool = False) -> str:
    """Groups nest to ``depth``; look-aheads stand outside of groups and hold none."""
    atom, assertion = _SIMPLE_ATOM, _SIMPLE_ASSERTION
    if depth:
        atom += rf"|\((?:\?:)?{_regex(depth - 1)}\)"
    if looks_ahead:
        assertion += rf"|\(\?[=!]{_regex(0)}\)"
    return rf"(?:(?:{atom}){_QUANTIFIER}|{assertion}|\|)*"


PATTERNS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": _DATE_TIME,
    "duration": _DURATION,
    "email": _EMAIL,
    "idn-email": _IDN_EMAIL,
    "hostname": _HOSTNAME,
    "idn-hostname": _IDN_HOSTNAME,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uuid": _UUID,
    "uri": _URI,
    "uri-reference": _URI_REFERENCE,
    "uri-template": _URI_TEMPLATE,
    "iri": _IRI,
    "iri-reference": _IRI_REFERENCE,
    "json-pointer": _JSON_POINTER,
    "relative-json-pointer": _RELATIVE_JSON_POINTER,
    "regex": _regex(3, looks_ahead=True),
    # Draft 3, section 5.23.
    "host-name": _HOSTNAME_1034,
    "ip-address": _IPV4,
}

HOSTNAME_1034 = "hostname of RFC 1034"
LATER = " of a later draft"
"""Behind the name of a format that the dialect does not have: its validators may take every text for one."""
LATER_PATTERNS: dict[str, str] = {name + LATER: pattern for name, pattern in PATTERNS.items()}
OLDER_PATTERNS: dict[str, str] = {HOSTNAME_1034: _HOSTNAME_1034}
"""What formats were in older drafts, under names that no draft has."""

# Where a pattern is a subset of its format, a superset: what must *not* have the format is outside of it.
_MAYBE_TIME = rf"{_HOUR}:[0-5][0-9]:(?:[0-5][0-9]|60){_FRACTION}{_OFFSET}"
_MAYBE_DATE = f"(?:{_DATE}|0000-[01][0-9]-[0-3][0-9])"
_MAYBE_HOSTNAME = "[0-9A-Za-z.-]*"
_MAYBE_EMAIL = "[^@]+(?:@[^@]*)+"
_MAYBE_REFERENCE = r"""[^\x00- <>"{}|\\^`\x7f]*"""
WIDER: dict[str, str] = {
    "date": _MAYBE_DATE,
    "time": _MAYBE_TIME,
    "date-time": f"{_MAYBE_DATE}[Tt]{_MAYBE_TIME}",
    "email": _MAYBE_EMAIL,
    "idn-email": _MAYBE_EMAIL,
    "hostname": _MAYBE_HOSTNAME,
    HOSTNAME_1034: _MAYBE_HOSTNAME,
    "host-name": _MAYBE_HOSTNAME,
    "idn-hostname": r"[0-9A-Za-z.\x80-\uffff\u{10000}-\u{10ffff}-]*",
    "uri": r"[A-Za-z][0-9A-Za-z+.-]*:[!-~]*",
    "uri-template": r"(?:[^{}]|\{[^{}]*\})*",
    "iri": f"[A-Za-z][0-9A-Za-z+.-]*:{_MAYBE_REFERENCE}",
    "iri-reference": _MAYBE_REFERENCE,
    "relative-json-pointer": rf"[0-9]+(?:[+-][0-9]+)?(?:#|{_JSON_POINTER})",
    "regex": r"(?:[^*+?)][^]*)?",
    **dict.fromkeys(LATER_PATTERNS, "[^]*"),
}

# OpenAPI 3.0.3 section 4.4, enforced in its dialects only: JSON Schema does not know these names, and
# instances that its validators call valid break them (of MaskBench, certificates that are no Base64).
OPENAPI_PATTERNS: dict[str, str] = {
    "byte": _BASE64,
}

# OpenAPI 3.0.3 section 4.4: the least and the greatest integer.  The other formats of that section
# (float, double, binary, password) say nothing about the value that a text could break.
INTEGER_BOUNDS: dict[str, tuple[Decimal, Decimal]] = {
    "int32": (Decimal(-(2**31)), Decimal(2**31 - 1)),
    "int64": (Decimal(-(2**63)), Decimal(2**63 - 1)),
}
