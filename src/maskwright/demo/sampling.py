"""``python -m maskwright.demo.sampling``: what masking hides, on the demo model.

Ada is 36, but the schema allows 31 and 46 only.  Token by token, 3 is the likelier digit, and once it is written there
is no way back from the unlikely 1.  Weights know better.  Then come a condition that no mask can see and a reward.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

REQUEST = "Ada Lovelace, 36, lives in London."
PARTICLES = 4096
"""Many, and cheap: equal texts are one row of the model's batch."""


def schema(age: dict[str, Any], city: dict[str, Any], name: str | None = "Ada Lovelace") -> dict[str, Any]:
    """A person with a name, an age and a city."""
    members = {"name": {"type": "string"} if name is None else {"const": name}, "age": age, "city": city}
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def main() -> int:
    """Prints posteriors; 0 when everything went well."""
    try:
        from transformers.utils import logging

        from maskwright import compile_json_schema
        from maskwright.demo import demo_model_path, format_prompt
        from maskwright.sampling import (
            GrammarConstraint,
            HuggingFaceModel,
            Predicate,
            locally_constrained,
            smc,
        )
    except ImportError as error:
        print(f'{error}: this demo needs pip install "maskwright[hf]"', file=sys.stderr)
        return 2
    logging.disable_progress_bar()
    shown = schema({"type": "integer"}, {"type": "string"}, None)
    model = HuggingFaceModel(demo_model_path(), prompt=format_prompt(REQUEST, shown))
    ages = schema({"enum": [31, 46]}, {"const": "London"})
    grammar = GrammarConstraint(compile_json_schema(ages, model.vocabulary))

    def value(ids: list[int]) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(model.decode(ids))
        return found

    print(f"{REQUEST}  The age may be 31 or 46.\n\nMasks alone (locally constrained decoding):")
    _show(locally_constrained(model, grammar, PARTICLES, 60, seed=1).posterior(lambda ids: value(ids)["age"]))
    found = smc(model, grammar, PARTICLES, max_tokens=60, seed=1)
    print(f"Sequential Monte Carlo; exp({found.log_evidence:.2f}) of the model's texts are allowed:")
    _show(found.posterior(lambda ids: value(ids)["age"]))
    cities = schema({"const": 36}, {"enum": ["Londrina", "Lisbon", "Oslo"]})
    grammar = GrammarConstraint(compile_json_schema(cities, model.vocabulary))
    print("The city may be Londrina, Lisbon or Oslo:")
    _show(smc(model, grammar, PARTICLES, max_tokens=60, seed=1).posterior(lambda ids: value(ids)["city"]))
    long_city = Predicate(complete=lambda ids: len(value(ids)["city"]) > 5)
    found = smc(model, grammar * long_city, PARTICLES, max_tokens=60, seed=1)
    print(f"... with more than five letters, a black box ({found.counts.constraint_calls} checks):")
    _show(found.posterior(lambda ids: value(ids)["city"]))
    prize = math.exp(8)
    found = smc(
        model,
        grammar,
        PARTICLES,
        max_tokens=60,
        seed=1,
        reward=lambda ids: prize if value(ids)["city"] == "Lisbon" else 1.0,
    )
    print(f"... where Lisbon is worth {prize:.0f} times as much:")
    _show(found.posterior(lambda ids: value(ids)["city"]))
    return 0


def _show(posterior: dict[Any, float]) -> None:
    for value, probability in posterior.items():
        print(f"  {probability:8.2g}  {value}")
    print()


if __name__ == "__main__":
    sys.exit(main())
