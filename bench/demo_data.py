"""Synthetic training data of the tiny model and the demo diffusion model: a request, a schema, and the JSON that answers it.

Each domain lists fields; a draw keeps all compulsory fields and some of the others, in an order of
its own, so that the model has to read keys and their order from the schema outline.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import demo_values as v

from maskwright.demo.prompts import format_prompt

COMPACT_SHARE = 0.1
STRING = {"type": "string", "minLength": 1, "maxLength": 60}
_ABSENT = object()

Schema = dict[str, Any]


class Example(NamedTuple):
    """One training pair; ``prompt`` ends with the answer token."""

    domain: str
    prompt: str
    schema: Schema
    value: Any

    def answer(self, *, compact: bool = False) -> str:
        """The JSON text of ``value``."""
        return json.dumps(self.value, ensure_ascii=False, separators=(",", ":") if compact else (", ", ": "))


class Field(NamedTuple):
    """A property: its key, schema, value, and the words that state the value in the request."""

    key: str
    schema: Schema
    value: Any
    phrase: str
    needed: bool = False


def _example(rng: Random, domain: str, opening: str, fields: list[Field], keep: float = 0.7) -> Example:
    kept = [field for field in fields if field.needed or rng.random() < keep]
    if len(kept) < 2:
        kept = fields[:2]
    if rng.random() < 0.3:
        rng.shuffle(kept)
    schema = object_schema(
        {field.key: field.schema for field in kept},
        [field.key for field in kept if not field.schema.get("x-optional")],
    )
    value = {field.key: field.value for field in kept if field.value is not _ABSENT}
    phrases = [field.phrase for field in kept if field.phrase]
    if rng.random() < 0.2:
        rng.shuffle(phrases)
    return Example(domain, format_prompt(f"{opening} {', '.join(phrases)}.", schema), schema, value)


def object_schema(properties: dict[str, Schema], required: list[str] | None = None) -> Schema:
    """A closed object; every key is required unless ``required`` says otherwise."""
    plain = {
        key: {name: part for name, part in schema.items() if name != "x-optional"}
        for key, schema in properties.items()
    }
    return {
        "type": "object",
        "properties": plain,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def array_schema(items: Schema, low: int, high: int) -> Schema:
    return {"type": "array", "items": items, "minItems": low, "maxItems": high}


def integer_schema(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _pattern(pattern: str) -> Schema:
    return {"type": "string", "pattern": pattern}


def _format(name: str) -> Schema:
    return {"type": "string", "format": name}


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _optional(schema: Schema) -> Schema:
    return {**schema, "x-optional": True}


def _maybe(rng: Random, value: Any, phrase: str, missing: Any, missing_phrase: str) -> tuple[Any, str]:
    return (value, phrase) if rng.random() < 0.65 else (missing, missing_phrase)


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def person(rng: Random) -> Example:
    name, age, mail = v.full_name(rng), rng.randint(0, 120), v.email(rng)
    road, postcode, town = v.street(rng), v.digits(rng, 5), v.city(rng)
    phone, phone_phrase = _maybe(rng, (number := v.phone(rng)), f"phone {number}", None, "without a phone")
    nick = v.word(rng).capitalize()
    nickname, nick_phrase = _maybe(rng, nick, f"known as {nick}", _ABSENT, "")
    address = object_schema({"street": STRING, "postcode": _pattern("^[0-9]{5}$"), "city": STRING})
    place = {"street": road, "postcode": postcode, "city": town}
    nested = rng.random() < 0.5
    return _example(
        rng,
        "person",
        rng.choice(("Describe a person", "Write a contact")),
        [
            Field(rng.choice(("name", "full_name")), STRING, name, f"named {name}", True),
            Field("age", integer_schema(0, 120), age, f"{age} years old"),
            Field("address", address, place, f"living at {road}, {postcode} {town}")
            if nested
            else Field(rng.choice(("city", "town")), STRING, town, f"who lives in {town}"),
            Field("email", _format("email"), mail, f"with email {mail}"),
            Field("phone", _nullable(_pattern("^\\+[0-9]{2}-[0-9]{7}$")), phone, phone_phrase),
            Field("nickname", _optional({"type": "string", "maxLength": 20}), nickname, nick_phrase),
        ],
    )


def order(rng: Random) -> Example:
    code, customer, day = v.letters_and_digits(rng, 3, 4), v.full_name(rng), v.date(rng)
    states = rng.sample(["new", "paid", "sent", "returned"], k=rng.randint(3, 4))
    state = rng.choice(states)
    lines = [
        {"product": v.product(rng), "quantity": rng.randint(1, 99), "price": v.amount(rng, 200)}
        for _ in range(rng.randint(1, 3))
    ]
    line = object_schema(
        {
            "product": {"type": "string", "minLength": 1, "maxLength": 40},
            "quantity": integer_schema(1, 99),
            "price": {"type": "number", "exclusiveMinimum": 0},
        }
    )
    said = _listed([f"{one['quantity']} x {one['product']} at {one['price']}" for one in lines])
    return _example(
        rng,
        "order",
        rng.choice(("Create an order", "Record an order")),
        [
            Field("order_id", _pattern("^[A-Z]{3}-[0-9]{4}$"), code, f"number {code}", True),
            Field("customer", STRING, customer, f"for {customer}"),
            Field("date", _format("date"), day, f"placed on {day}"),
            Field("items", array_schema(line, 1, 5), lines, f"with {said}", True),
            Field("status", {"enum": states}, state, f"status {state}"),
        ],
    )


def weather(rng: Random) -> Example:
    place, day = v.city(rng), v.date(rng)
    degrees, wind, damp = rng.randint(-40, 50), rng.randint(0, 150), rng.randint(0, 100)
    skies = ["sunny", "cloudy", "rainy", "snowy", "windy"]
    sky = rng.choice(skies)
    hours = [rng.randint(-40, 50) for _ in range(rng.randint(2, 4))]
    percent = {"allOf": [{"type": "integer", "minimum": 0}, {"maximum": 100}]}
    return _example(
        rng,
        "weather",
        rng.choice(("Report the weather", "Give a forecast")),
        [
            Field("city", STRING, place, f"in {place}", True),
            Field("date", _format("date"), day, f"on {day}"),
            Field("temperature", integer_schema(-60, 60), degrees, f"temperature {degrees}"),
            Field("condition", {"type": "string", "enum": skies}, sky, f"sky {sky}"),
            Field("humidity", percent, damp, f"humidity {damp}"),
            Field("wind", {"type": "integer", "minimum": 0, "exclusiveMaximum": 200}, wind, f"wind {wind}"),
            Field(
                "hourly",
                array_schema(integer_schema(-60, 60), 2, 4),
                hours,
                f"hourly {_listed([str(one) for one in hours])}",
            ),
        ],
    )


def event(rng: Random) -> Example:
    title, start, end = v.event_name(rng), v.date_time(rng), v.date_time(rng)
    people = [v.first_name(rng) for _ in range(rng.randint(1, 4))]
    place = f"Room {v.city(rng)}"
    room, room_phrase = _maybe(rng, place, f"in {place}", None, "without a room")
    public = rng.random() < 0.5
    return _example(
        rng,
        "event",
        rng.choice(("Schedule an event", "Plan a calendar entry")),
        [
            Field(
                "title", {"type": "string", "minLength": 3, "maxLength": 50}, title, f"called {title}", True
            ),
            Field("start", _format("date-time"), start, f"starting {start}", True),
            Field("end", _format("date-time"), end, f"ending {end}"),
            Field("room", {"type": ["string", "null"]}, room, room_phrase),
            Field("attendees", array_schema(STRING, 1, 6), people, f"with {_listed(people)}"),
            Field("public", {"type": "boolean"}, public, "public" if public else "private"),
        ],
    )


def folder(rng: Random) -> Example:
    """A recursive tree: ``docs (drafts (old, new), images)``."""
    budget = rng.randint(2, 7)

    def grow(depth: int) -> dict[str, Any]:
        nonlocal budget
        budget -= 1
        children = []
        while depth < 3 and budget > 0 and rng.random() < 0.75:
            children.append(grow(depth + 1))
        return {"name": v.tag(rng), "children": children}

    def said(node: dict[str, Any]) -> str:
        inner = ", ".join(said(child) for child in node["children"])
        return f"{node['name']} ({inner})" if inner else str(node["name"])

    tree = grow(0)
    node = {
        "name": {"type": "string", "minLength": 1, "maxLength": 30},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Folder"}},
    }
    schema = {"$defs": {"Folder": object_schema(node)}, "$ref": "#/$defs/Folder"}
    request = f"{rng.choice(('List the folder', 'Show the folder tree'))} {said(tree)}."
    return Example("folder", format_prompt(request, schema), schema, tree)


def thread(rng: Random) -> Example:
    """A recursive reply chain; the reply is null at its end."""
    depth = rng.randint(1, 4)
    posts = [(v.first_name(rng), v.remark(rng)) for _ in range(depth)]
    value: Any = None
    for author, text in reversed(posts):
        value = {"author": author, "text": text, "reply": value}
    comment = {
        "author": {"type": "string", "maxLength": 30},
        "text": {"type": "string", "maxLength": 80},
        "reply": _nullable({"$ref": "#/$defs/Comment"}),
    }
    schema = {"$defs": {"Comment": object_schema(comment)}, "$ref": "#/$defs/Comment"}
    said = "; ".join(f"{author} says {text}" for author, text in posts)
    return Example("thread", format_prompt(f"Record the thread: {said}.", schema), schema, value)


def ticket(rng: Random) -> Example:
    code, about, mail = f"TCK-{v.digits(rng, 4)}", v.trouble(rng), v.email(rng)
    levels = ["low", "medium", "high"] + (["critical"] if rng.random() < 0.5 else [])
    level, labels = rng.choice(levels), v.tags(rng, 1, 3)
    who = v.first_name(rng)
    owner, owner_phrase = _maybe(rng, who, f"assigned to {who}", None, "not assigned")
    return _example(
        rng,
        "ticket",
        rng.choice(("Open a support ticket", "File a ticket")),
        [
            Field("id", _pattern("^TCK-[0-9]{4}$"), code, f"id {code}"),
            Field(
                "subject",
                {"type": "string", "minLength": 5, "maxLength": 80},
                about,
                f"because {about}",
                True,
            ),
            Field("priority", {"enum": levels}, level, f"priority {level}", True),
            Field("reporter", _format("email"), mail, f"from {mail}"),
            Field("assignee", _nullable({"type": "string", "maxLength": 30}), owner, owner_phrase),
            Field(
                "tags",
                array_schema({"type": "string", "maxLength": 20}, 1, 4),
                labels,
                f"tagged {_listed(labels)}",
            ),
        ],
    )


def recipe(rng: Random) -> Example:
    title, serves, minutes = v.dish(rng), rng.randint(1, 12), rng.randint(5, 180)
    units = ["g", "ml", "cups", "pieces"]
    parts = [
        {"amount": rng.randint(1, 900), "unit": rng.choice(units), "item": v.food(rng)}
        for _ in range(rng.randint(1, 4))
    ]
    ingredient = object_schema({"amount": integer_schema(1, 1000), "unit": {"enum": units}, "item": STRING})
    said = _listed([f"{one['amount']} {one['unit']} of {one['item']}" for one in parts])
    meatless = rng.random() < 0.5
    return _example(
        rng,
        "recipe",
        rng.choice(("Write a recipe", "Note a recipe")),
        [
            Field(rng.choice(("title", "name")), STRING, title, f"for {title}", True),
            Field("servings", integer_schema(1, 12), serves, f"serves {serves}"),
            Field(
                "minutes",
                {"type": "integer", "exclusiveMinimum": 0, "maximum": 240},
                minutes,
                f"takes {minutes} minutes",
            ),
            Field("ingredients", array_schema(ingredient, 1, 6), parts, f"made of {said}", True),
            Field(
                "vegetarian", {"type": "boolean"}, meatless, "vegetarian" if meatless else "not vegetarian"
            ),
        ],
    )


def account(rng: Random) -> Example:
    ident, login, mail, born = v.uuid4(rng), v.username(rng), v.email(rng), v.date(rng, 1950, 2009)
    roles = ["admin", "editor", "viewer"]
    role, active = rng.choice(roles), rng.random() < 0.5
    return _example(
        rng,
        "account",
        rng.choice(("Register a user", "Create an account")),
        [
            Field("username", _pattern("^[a-z][a-z0-9_]{2,15}$"), login, f"called {login}", True),
            Field("id", _format("uuid"), ident, f"id {ident}"),
            Field("email", _format("email"), mail, f"email {mail}"),
            Field("born", _format("date"), born, f"born on {born}"),
            Field("role", {"enum": roles}, role, f"role {role}"),
            Field("active", {"type": "boolean"}, active, "active" if active else "inactive"),
        ],
        keep=0.55,
    )


def payment(rng: Random) -> Example:
    amount, coins = v.amount(rng, 900), ["EUR", "USD", "GBP", "JPY"]
    currency = rng.choice(coins)
    card = object_schema({"kind": {"const": "card"}, "last4": _pattern("^[0-9]{4}$")})
    transfer = object_schema({"kind": {"const": "transfer"}, "iban": _pattern("^[A-Z]{2}[0-9]{8}$")})
    if rng.random() < 0.5:
        method = {"kind": "card", "last4": v.digits(rng, 4)}
        said = f"by card {method['last4']}"
    else:
        method = {"kind": "transfer", "iban": rng.choice(("DE", "FR", "ES", "NO", "GB")) + v.digits(rng, 8)}
        said = f"by transfer to {method['iban']}"
    day, payer = v.date(rng), v.full_name(rng)
    return _example(
        rng,
        "payment",
        rng.choice(("Make a payment", "Book a payment")),
        [
            Field(
                "amount",
                {"type": "number", "exclusiveMinimum": 0, "maximum": 1000},
                amount,
                f"of {amount}",
                True,
            ),
            Field("currency", {"enum": coins}, currency, f"in {currency}"),
            Field("method", {"anyOf": [card, transfer]}, method, said, True),
            Field("date", _format("date"), day, f"on {day}"),
            Field("payer", STRING, payer, f"from {payer}"),
        ],
    )


def place(rng: Random) -> Example:
    name, labels, stars = v.city(rng), v.tags(rng, 1, 3), rng.randint(1, 5)
    point = [rng.randint(-8999, 8999) / 100, rng.randint(-17999, 17999) / 100]
    position = {
        "type": "array",
        "prefixItems": [
            {"type": "number", "minimum": -90, "maximum": 90},
            {"type": "number", "minimum": -180, "maximum": 180},
        ],
        "minItems": 2,
        "maxItems": 2,
    }
    return _example(
        rng,
        "place",
        rng.choice(("Mark a place", "Save a place")),
        [
            Field("type", {"const": "place"}, "place", ""),
            Field("name", STRING, name, f"called {name}", True),
            Field("position", position, point, f"at {point[0]} and {point[1]}", True),
            Field("rating", integer_schema(1, 5), stars, f"rated {stars}"),
            Field(
                "tags",
                array_schema({"type": "string", "maxLength": 20}, 1, 4),
                labels,
                f"tagged {_listed(labels)}",
            ),
        ],
    )


DOMAINS: tuple[Callable[[Random], Example], ...] = (
    person,
    order,
    weather,
    event,
    folder,
    thread,
    ticket,
    recipe,
    account,
    payment,
    place,
)


def draw(rng: Random, excluded: frozenset[str] = frozenset()) -> Example:
    """One example of a random domain whose prompt is not in ``excluded``."""
    while True:
        example = rng.choice(DOMAINS)(rng)
        if example.prompt not in excluded:
            return example
