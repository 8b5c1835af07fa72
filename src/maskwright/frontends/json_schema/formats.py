"""The string formats as regular languages.

Every pattern matches the whole decoded string and is the format's language or a subset of it: what
no regular expression of reasonable size can tell apart is refused.  The syntax is what ECMA-262
and Python's ``re`` share (classes, groups, alternation, counted repetition), without anchors.
"""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase, digits


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
_TIME = f"{_HOUR}:[0-5][0-9]:[0-5][0-9]{_FRACTION}{_OFFSET}"

# RFC 3339 section 5.6 date-time.  Leap seconds (section 5.6: second 60) are left out: Python's own
# parsers, pydantic's and most validators refuse them.
_DATE_TIME = f"{_DATE}[Tt]{_TIME}"

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
_OCTET = "(?:[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"

_GROUP = "[0-9A-Fa-f]{1,4}"
# The last 32 bits of an IPv6 address.
_TAIL = f"(?:{_GROUP}:{_GROUP}|{_IPV4})"


def _ipv6(least_elided: int) -> str:
    """RFC 4291 section 2.2; ``::`` stands for at least ``least_elided`` of the eight groups."""
    alternatives = [f"(?:{_GROUP}:){{6}}{_TAIL}"]
    most = 8 - least_elided
    for right in range(most + 1):
        left = most - right
        head = _optional(f"(?:{_GROUP}:){{0,{left - 1}}}{_GROUP}") if left else ""
        end = ("", _GROUP)[right] if right < 2 else f"(?:{_GROUP}:){{{right - 2}}}{_TAIL}"
        alternatives.append(f"{head}::{end}")
    return _any_of(*alternatives)


_IPV6 = _ipv6(least_elided=1)

# RFC 1123 section 2.1, RFC 952.  A label with hyphens in places 3 and 4 is valid only as an
# A-label (RFC 5891 section 4.2.3.1), that is after decoding Punycode, and is left out.
_ALNUM, _ALNUM_OR_HYPHEN = "[0-9A-Za-z]", "[0-9A-Za-z-]"


def _label(longest: int) -> str:
    """A label of at most ``longest`` octets (5 or more)."""
    fourth_on = f"(?:{_ALNUM_OR_HYPHEN}{{0,{longest - 4}}}{_ALNUM})?"
    after_hyphen = f"-{_ALNUM}(?:{_ALNUM_OR_HYPHEN}{{0,{longest - 5}}}{_ALNUM})?"
    third_on = f"(?:{_ALNUM}{fourth_on}|{after_hyphen})"
    return f"{_ALNUM}(?:{_ALNUM}|{_ALNUM_OR_HYPHEN}{third_on})?"


def _labels(*bounds: tuple[int, int]) -> str:
    """Up to n labels of at most k octets for each (n, k) in turn, the last label mandatory."""
    *first, (n, k) = bounds
    optional = [*first, (n - 1, k)]
    return "".join(rf"(?:{_label(j)}\.){{0,{m}}}" for m, j in optional if m) + _label(k)


# RFC 1034 section 3.1: 253 octets in all.  A total over labels would multiply label lengths by
# positions, so a name is one of three shapes, none of which can exceed the total: few labels of
# any length, some long labels before medium ones, or many short labels.
_HOSTNAME = _any_of(_labels((3, 63), (1, 61)), _labels((2, 63), (6, 20)), _labels((36, 6)))

# RFC 5321 section 4.1.2 Mailbox and 4.1.3 address literals.  Section 4.5.3.1 bounds the local
# part to 64 octets and the whole to 254, which leaves 189 for the domain.
_ATEXT = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]"
_DOT_ATOM = _any_of(
    f"{_ATEXT}{{1,64}}",
    rf"{_ATEXT}(?:\.?{_ATEXT}){{0,31}}",
    # A long last atom after dots, or a long first one before them.
    rf"{_ATEXT}(?:\.?{_ATEXT}){{0,15}}{_ATEXT}{{0,33}}",
    rf"{_ATEXT}{{1,34}}(?:\.?{_ATEXT}){{0,15}}",
)
_QTEXT = r"[ !#-\[\]-~]"
_QUOTED_STRING = rf'"(?:{_QTEXT}{{1,62}}|(?:{_QTEXT}|\\[ -~]){{1,31}})"'
_MAIL_DOMAIN = _any_of(_labels((2, 63), (1, 61)), _labels((1, 63), (4, 30)), _labels((21, 8)))
_ADDRESS_LITERAL = rf"\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_ipv6(least_elided=2)})\]"
_EMAIL = f"(?:{_DOT_ATOM}|{_QUOTED_STRING})@(?:{_MAIL_DOMAIN}|{_ADDRESS_LITERAL})"

# RFC 9562 section 4: any version and variant.
_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

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
    hierarchy = _optional(f"{from_root}|{segment_character}+{segments}")
    # Without a scheme the first segment has no colon, which would read as the end of one.
    relative = _optional(f"{from_root}|{one_of('@')}+{segments}")
    absolute = f"{scheme}{hierarchy}"
    return f"{absolute}{query_and_fragment}", f"(?:{absolute}|{relative}){query_and_fragment}"


_URI, _URI_REFERENCE = _identifier_and_reference("", "")
_IRI, _IRI_REFERENCE = _identifier_and_reference(_UCSCHAR, _IPRIVATE)

# RFC 6570 section 2 (the literals with the apostrophe, which an erratum adds).  The operators kept
# for future extensions are left out: processors refuse them.
_VARIABLE_CHARACTER = f"(?:[0-9A-Za-z_]|{_PERCENT_ENCODED})"
_VARIABLE = rf"{_VARIABLE_CHARACTER}(?:\.?{_VARIABLE_CHARACTER})*(?::[1-9][0-9]{{0,3}}|\*)?"
_EXPRESSION = rf"\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}}"
_LITERAL = f"(?:[!#$&'()*+,./0-9:;=?@A-Z\\[\\]_a-z~{_UCSCHAR}{_IPRIVATE}-]|{_PERCENT_ENCODED})"
_URI_TEMPLATE = f"(?:{_LITERAL}|{_EXPRESSION})*"

# RFC 6901 section 3.
_JSON_POINTER = "(?:/(?:[^/~]|~[01])*)*"
# draft-handrews-relative-json-pointer-01 section 3.  The index manipulation of later
# drafts is left out: not every draft of JSON Schema has it, and validators refuse it.
_RELATIVE_JSON_POINTER = f"(?:0|[1-9][0-9]*)(?:#|{_JSON_POINTER})"


# ECMA-262 section 22.2.1 Pattern with the u flag, as far as Python's ``re`` reads it alike: no
# look-behind, named groups, back-references, ``\p`` or ``\c``.  Groups nest to a bounded depth,
# and bounds of ranges and counts are accepted only where they are in order.
_SYNTAX_CHARACTERS = r"\^$\\.*+?()\[\]{}|"
_CHARACTER_ESCAPE = rf"dDwWsStnrfv/{_SYNTAX_CHARACTERS}"
_HEX_ESCAPE = "x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
_CLASS_RANGE = _any_of(
    *(f"{low}-[{low}-{run[-1]}]" for run in (digits, ascii_uppercase, ascii_lowercase) for low in run)
)
_CLASS_ITEM = rf"(?:[^\\\[\]^-]|\\(?:[b{_CHARACTER_ESCAPE}-]|{_HEX_ESCAPE})|{_CLASS_RANGE})"
_CLASS = rf"\[\^?(?:-?{_CLASS_ITEM}+-?|-)\]"
_COUNTS = _any_of(
    "[0-9]{1,4},?",
    "[0-9],[1-9][0-9]{1,3}",
    "[0-9]{2},[1-9][0-9]{2,3}",
    *(f"{low},[{low}-9]" for low in range(10)),
    *(f"{low}[0-9],[{low + 1}-9][0-9]" for low in range(9)),
)
_QUANTIFIER = rf"(?:(?:[*+?]|\{{{_COUNTS}\}})\??)?"
_SIMPLE_ATOM = rf"[^{_SYNTAX_CHARACTERS}]|\.|\\(?:[{_CHARACTER_ESCAPE}]|{_HEX_ESCAPE})|{_CLASS}"
_SIMPLE_ASSERTION = r"[\^$]|\\[bB]"


def _regex(depth: int) -> str:
    """Groups nest to ``depth``; look-aheads hold no groups."""
    atom, assertion = _SIMPLE_ATOM, _SIMPLE_ASSERTION
    if depth:
        atom += rf"|\((?:\?:)?{_regex(depth - 1)}\)"
        assertion += rf"|\(\?[=!]{_regex(0)}\)"
    return rf"(?:(?:{atom}){_QUANTIFIER}|{assertion}|\|)*"


PATTERNS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": _DATE_TIME,
    "duration": _DURATION,
    "email": _EMAIL,
    "hostname": _HOSTNAME,
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
    "regex": _regex(depth=3),
}

# Defined by the specification and not enforceable as regular languages: an internationalised
# domain name depends on Unicode normalisation, direction and context rules (RFC 5892).
KNOWN_UNENFORCED: frozenset[str] = frozenset({"idn-email", "idn-hostname"})
