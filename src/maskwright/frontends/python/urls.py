"""The URLs that pydantic reads, as regular expressions.

Narrower than RFC 3986, as readers are: a scheme in small letters, a host of plain labels or an IPv4 address, a port
in its range.  Readers decode international labels (``xn--``), and names whose last label is a number are addresses to them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from maskwright.frontends.json_schema.texts.formats import PATTERNS
from maskwright.frontends.python.ranges import integers

_LABEL = "[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*"
_NAME = rf"(?:{_LABEL}\.)*[A-Za-z][0-9A-Za-z]*(?:-[0-9A-Za-z]+)*"
_HOST = f"(?:{_NAME}|{PATTERNS['ipv4']})"
_PORT = f"(?::{integers(0, 65535)})?"
_USER = "(?:[0-9A-Za-z._~-]+(?::[0-9A-Za-z._~-]+)?@)?"
_CHARACTER = "(?:[0-9A-Za-z._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_PATH = f"(?:/{_CHARACTER}*)*"
_ENDING = rf"(?:\?(?:{_CHARACTER}|[/?])*)?(?:#(?:{_CHARACTER}|[/?])*)?"
_WITHOUT_HOST = f"(?:mailto|urn|tel|data):(?:{_CHARACTER}|/)+"


def url(schemes: Sequence[str] | None, *, host_required: bool, several_hosts: bool) -> str:
    """The URLs of these schemes (None: any); with a host and, where there may be several, a list of them."""
    hosts = _HOST + _PORT
    if several_hosts:
        hosts += f"(?:,{hosts})*"
    behind = f"{_USER}{hosts}{_PATH}{_ENDING}"
    if schemes is None:
        # A file has no port and no user.
        branches = [f"(?!file:)[a-z][0-9a-z+.-]*://{behind}"]
        if not host_required and not several_hosts:
            branches.append(_WITHOUT_HOST)
        return f"^(?:{'|'.join(branches)})$"
    branches = [f"(?:{'|'.join(re.escape(s) for s in schemes if s != 'file')})://{behind}"] * (
        tuple(schemes) != ("file",)
    )
    if "file" in schemes:
        host = _NAME if host_required else f"(?:{_NAME})?"
        branches.append(f"file://{host}(?:/{_CHARACTER}*)+")
    return f"^(?:{'|'.join(branches)})$"


# RFC 5321 section 4.1.2; lengths are bounded by numbers of characters and parts, so that no sum is above its limit.
_ATEXT = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]"
_PART = "[0-9A-Za-z](?:-?[0-9A-Za-z]){0,28}"
# RFC 6761 and its like: domains that hold no mailboxes.
_SPECIAL = "alt|arpa|invalid|local|localhost|onion|test"
_TOP_LEVEL = f"(?!(?:{_SPECIAL}|{_SPECIAL.upper()})(?:$|>))(?:[a-z]{{2,12}}|[A-Z]{{2,12}})"
_ADDRESS = rf"{_ATEXT}(?:\.?{_ATEXT}){{0,31}}@(?:{_PART}\.){{1,3}}{_TOP_LEVEL}"

EMAIL = f"^{_ADDRESS}$"
"""Addresses with a domain that can have mailboxes: the readers of pydantic refuse ``a@b``, quotes and IP addresses."""
NAMED_EMAIL = f"^(?:[0-9A-Za-z]+(?: [0-9A-Za-z]+)* <{_ADDRESS}>|{_ADDRESS})$"
"""``Name <address>``, or the address alone."""
