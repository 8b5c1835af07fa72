"""``python -m maskwright.demo.sampling``: what masking hides, on a real model.

Ada is 36, but the schema allows 3 and 46 only.  Token by token, 3 is the likelier digit, and once it is written there
is no way back from the unlikely end.  Weights know better.  Then come a condition that no mask can see and a reward.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

REQUEST = "Ada Lovelace, 36, lives in London."
MESSAGES = [
    {"role": "user", "content": "Paul Meyer, 51, lives in Vienna."},
    {"role": "assistant", "content": '{"name": "Paul Meyer", "age": 51, "city": "Vienna"}'},
    {"role": "user", "content": REQUEST},
]
PARTICLES = 256
"""Many, and cheap: equal texts are one row of the model's batch."""


def schema(age: dict[str, Any], city: dict[str, Any]) -> dict[str, Any]:
    """Ada Lovelace with an age and a city."""
    members = {"name": {"const": "Ada Lovelace"}, "age": age, "city": city}
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def main() -> int:
    """Prints posteriors; 0 when everything went well."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        from maskwright import ModelNotFoundError, compile_json_schema
        from maskwright.generation.default_model import default_model
        from maskwright.sampling import (
            GrammarConstraint,
            HuggingFaceModel,
            Predicate,
            locally_constrained,
            smc,
        )
    except ImportError as error:
        print(f'{error}: this demo needs pip install "maskwright[demo]"', file=sys.stderr)
        return 2
    logging.disable_progress_bar()
    # A second thread saves little here, and where others want the cores, waiting for it takes ten times as long.
    torch.set_num_threads(1)
    try:
        name = default_model()
    except ModelNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    tokenizer = AutoTokenizer.from_pretrained(name)
    prompt: Any = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    model = HuggingFaceModel(AutoModelForCausalLM.from_pretrained(name).eval(), tokenizer, prompt=prompt)
    ages = schema({"enum": [3, 46]}, {"const": "London"})
    grammar = GrammarConstraint(compile_json_schema(ages, model.vocabulary))

    def value(ids: list[int]) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(model.decode(ids))
        return found

    print(f"{REQUEST}  The age may be 3 or 46.\n\nMasks alone (locally constrained decoding):")
    _show(
        locally_constrained(model, grammar, PARTICLES, 60, seed=1).probabilities(
            lambda ids: int(value(ids)["age"])
        )
    )
    found = smc(model, grammar, PARTICLES, max_tokens=60, seed=1)
    print(f"Sequential Monte Carlo; exp({found.log_evidence:.2f}) of the model's texts are allowed:")
    _show(found.probabilities(lambda ids: int(value(ids)["age"])))
    cities = schema({"const": 36}, {"enum": ["Londrina", "Lisbon", "Oslo"]})
    grammar = GrammarConstraint(compile_json_schema(cities, model.vocabulary))
    print("The city may be Londrina, Lisbon or Oslo:")
    _show(smc(model, grammar, PARTICLES, max_tokens=60, seed=1).probabilities(lambda ids: value(ids)["city"]))
    long_city = Predicate(complete=lambda ids: len(value(ids)["city"]) > 6)
    found = smc(model, grammar * long_city, PARTICLES, max_tokens=60, seed=1)
    print(f"... with more than six letters, a black box ({found.counts.constraint_calls} checks):")
    _show(found.probabilities(lambda ids: value(ids)["city"]))
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
    _show(found.probabilities(lambda ids: value(ids)["city"]))
    return 0


def _show(posterior: dict[Any, float]) -> None:
    for value, probability in posterior.items():
        print(f"  {probability:8.2g}  {value}")
    print()


if __name__ == "__main__":
    sys.exit(main())
