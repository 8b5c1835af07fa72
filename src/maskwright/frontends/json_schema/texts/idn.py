"""Internationalised host names (RFC 5890 to 5893) as far as a small regular language goes.

A label that holds characters beyond ASCII is a U-label.  Accepted are those of at most 11
characters over the scripts below; the longest Punycode of one is 56 octets, below the 59 of
RFC 5890 section 2.3.2.1.  (The differences that RFC 3492 section 6.3 encodes add up to less than
11 * (0xD7A3 + 11) < 607 000 in a label, and a difference of five digits is at least 28 886, of six
288 886.)  All characters are PVALID (RFC 5892), and starters or viramas that compose with nothing, so
that every label is in NFC.  A-labels (``xn--``) are left out: whether one is valid is known only after
decoding its Punycode, which no automaton does.
"""

from __future__ import annotations

# PVALID letters, bidirectional class L.
_LATIN_EXTENDED = "āăąćĉċčďđēĕėęěĝğġģĥħĩīĭįıĵķĸĺļľłńņňŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷźżž"
_GREEK = "\u03ac-\u03ce"
_KANA_AND_HAN = "\u3005-\u3007\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u3400-\u4db5\u4e00-\u9fea"
_OF_JAPANESE_SCRIPTS = "\u3041-\u3096\u30a1-\u30fa\u3400-\u4db5\u4e00-\u9fea"
_DEVANAGARI = "\u0904-\u0939"
_LETTERS = (
    f"a-z\u00df-\u00f6\u00f8-\u00ff{_LATIN_EXTENDED}{_GREEK}\u0430-\u045f{_DEVANAGARI}\u0f0b"
    f"{_KANA_AND_HAN}\uac00-\ud7a3"
)
_VIRAMA = "\u094d"
_DEVANAGARI_MARKS = f"\u093e-\u094c{_VIRAMA}"
_EXTENDED_DIGITS = "\u06f0-\u06f9"  # these count as European digits
_DIGITS = f"0-9{_EXTENDED_DIGITS}"

# PVALID letters, bidirectional classes R and AL.
_HEBREW = "\u05d0-\u05ea"
_ARABIC = "\u0620-\u063f\u0641-\u064a\u0671-\u0674\u0679-\u06d3\u06fa-\u06ff"
_RIGHT_TO_LEFT = f"{_HEBREW}{_ARABIC}"
_ARABIC_DIGITS = "\u0660-\u0669"
_DUAL_JOINING = "\u0628\u062a-\u062e\u0633-\u063f\u0641-\u0647\u0649\u064a"

# RFC 5892 appendix A, one such character in a label: MIDDLE DOT, KERAIA, joiners behind a virama,
# KATAKANA MIDDLE DOT.
_PLAIN = f"[{_LETTERS}{_DIGITS}]"
_CONTEXT = (
    f"{_PLAIN}{{0,4}}(?:l\u00b7l|\u0375[{_GREEK}]|[{_DEVANAGARI}]{_VIRAMA}[\u200c\u200d][{_DEVANAGARI}])"
    f"{_PLAIN}{{0,3}}"
    f"|[{_OF_JAPANESE_SCRIPTS}]{_PLAIN}{{0,4}}\u30fb{_PLAIN}{{0,5}}"
    f"|\u30fb{_PLAIN}{{0,4}}[{_OF_JAPANESE_SCRIPTS}]{_PLAIN}{{0,5}}"
)
_INNER = f"[{_LETTERS}{_DIGITS}{_DEVANAGARI_MARKS}]"
_U_LABEL = f"(?:{_PLAIN}(?:{_INNER}{{0,10}}|{_INNER}{{0,4}}-{_INNER}{{1,5}})|{_CONTEXT})"


def _right_to_left(digits: str) -> str:
    inner = f"[{_RIGHT_TO_LEFT}{digits}]"
    return f"[{_RIGHT_TO_LEFT}](?:{inner}{{0,10}}|{inner}{{0,4}}-{inner}{{1,5}})"


# RFC 5893 section 2: European digits or Arabic-Indic ones; a label starts with a letter as soon as
# some label of the name is written from right to left.
_R_LABEL = (
    f"{_right_to_left(_DIGITS)}|{_right_to_left(_ARABIC_DIGITS)}"
    f"|[{_RIGHT_TO_LEFT}]{{0,4}}(?:[{_HEBREW}][\u05f3\u05f4]|[{_DUAL_JOINING}]\u200c[{_DUAL_JOINING}])"
    f"[{_RIGHT_TO_LEFT}]{{0,4}}"
)
_BESIDE_R_LABEL = "[A-Za-z][0-9A-Za-z]{0,30}"

# RFC 3490 section 3.1: what is recognised as a dot between labels.
DOTS = "[.\u3002\uff0e\uff61]"


def idn_hostname(label: str, most: int, dot: str) -> str:
    """Names of at most ``most`` labels: U-labels, and ASCII ones as given."""
    left_to_right = f"(?:{label}|{_U_LABEL})"
    right_to_left = f"(?:{_BESIDE_R_LABEL}|{_R_LABEL})"
    alternatives = (f"{one}(?:{dot}{one}){{0,{most - 1}}}" for one in (left_to_right, right_to_left))
    return f"(?:{'|'.join(alternatives)})"
