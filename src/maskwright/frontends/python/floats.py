"""JSON Schemas of numbers, with bounds as a reader with floats has them."""

from __future__ import annotations

import math
from typing import Any

LARGEST = 1e308
"""Greater numbers may be infinite to a reader with floats."""
_INCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def strictly(number: dict[str, Any]) -> dict[str, Any]:
    """Bounds that are left out become the next float: a text between the two is read as the bound itself."""
    made = dict(number)
    # Next to 0 there is a float for every text that may be written.
    for name, inclusive in _INCLUSIVE.items():
        far = math.inf if inclusive == "minimum" else -math.inf
        if made.get(name):
            nearest = math.nextafter(made.pop(name), far)
            closer = max if far > 0 else min
            made[inclusive] = closer(nearest, made.get(inclusive, nearest))
    return made


def finite(number: dict[str, Any]) -> dict[str, Any]:
    """Bounds on both sides, where there are none, that keep a number finite."""
    low = {} if number.keys() & {"minimum", "exclusiveMinimum"} else {"minimum": -LARGEST}
    high = {} if number.keys() & {"maximum", "exclusiveMaximum"} else {"maximum": LARGEST}
    return {**number, **low, **high}


def with_places(number: dict[str, Any], digits: int | None, places: int) -> dict[str, Any]:
    """At most ``places`` digits behind the point, of ``digits`` in all (None: any number)."""
    narrower: list[dict[str, Any]] = [{"multipleOf": float(f"1e-{places}")}]
    if digits is not None:
        most = float(f"1e{digits - places}")
        narrower.append({"exclusiveMinimum": -most, "exclusiveMaximum": most})
    made = dict(number)
    for each in narrower:
        # What the number has already stays; beside it, both hold.
        if any(name in made or _INCLUSIVE.get(name) in made for name in each):
            made["allOf"] = [*made.get("allOf", []), each]
        else:
            made.update(each)
    return made
