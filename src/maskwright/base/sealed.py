"""Parts of bytes as one, of which damage is found.

Sealed bytes begin with a line that says what they are: a version of their layout and the byte order of the machine.  A digest
follows, of a name and of all that comes behind it, so that nothing damaged, foreign or renamed is taken over.  It finds
damage, and is no signature.
"""

from __future__ import annotations

import hashlib
import struct

_DIGEST_BYTES = 16


def seal(line: bytes, name: str, parts: tuple[bytes, ...] | list[bytes]) -> bytes:
    """The parts under a first line and a name."""
    lengths = struct.pack(f"={1 + len(parts)}q", len(parts), *map(len, parts))
    # Parts can be of tens of megabytes: they are copied once.
    return b"".join([line, _digest(name, lengths, *parts), lengths, *parts])


def unseal(line: bytes, name: str, data: bytes) -> list[bytes] | None:
    """The parts that were sealed so; None where they were not."""
    start = len(line) + _DIGEST_BYTES
    content = data[start:]
    if data[:start] != line + _digest(name, content):
        return None
    # Whoever made the digest has packed the parts; only what was forged does not fit.
    try:
        (count,) = struct.unpack_from("=q", content)
        lengths = struct.unpack_from(f"={count}q", content, 8) if 0 <= 8 * count <= len(content) else (-1,)
    except struct.error:
        return None
    at = 8 * (1 + count)
    if min(lengths, default=0) < 0 or at + sum(lengths) != len(content):
        return None
    parts = []
    for length in lengths:
        parts.append(content[at : at + length])
        at += length
    return parts


def _digest(name: str, *content: bytes) -> bytes:
    digest = hashlib.blake2b(name.encode(), digest_size=_DIGEST_BYTES)
    for part in content:
        digest.update(part)
    return digest.digest()
