"""Tasks with known answers, made by code from a seed: what is asked, in which language, and who judges.

A kind is a function from random numbers to a task.  The answer is chosen first, and then said in one of several ways,
so everything that is expected can be read in the text.  Kinds whose answers are executed: ``quality_programs.py``.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from quality_judges import WRONG, Score, first_json, judge_json, parse_json
from quality_words import CITIES, FIRMS, JOBS, mail_of, person_name, some_day, spoken

Judge = Callable[[str, bool], Score]
"""The score of a text; the second argument says whether it is free text in which the answer has to be found."""


@dataclass(frozen=True)
class Language:
    """The language of a task's answers: a JSON Schema, or the same language as a regular expression, and in GBNF where people would write a grammar."""

    schema: Any = None
    regex: str | None = None
    grammar: str | None = None


@dataclass(frozen=True)
class Task:
    """``instruction`` and ``text`` are what the user says; ``format_hint`` what the prompt with the schema adds.

    ``expected`` is a right answer, as text.
    """

    kind: str
    name: str
    instruction: str
    text: str
    format_hint: str
    language: Language
    expected: str
    judge: Judge

    def messages(self, schema_in_prompt: bool) -> list[dict[str, str]]:
        """The chat messages, the same for every engine."""
        system = "You are a careful assistant. You answer with what is asked for and nothing else."
        parts = [self.instruction, self.text]
        if schema_in_prompt:
            parts.insert(1, self.format_hint)
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": "\n\n".join(part for part in parts if part)},
        ]


Parts = tuple[str, str, dict[str, Any], Any]
"""What a kind of JSON task makes: instruction, text, schema, expected value."""
KINDS: dict[str, Callable[[random.Random], Any]] = {}


def kind(make: Callable[[random.Random], Any]) -> Callable[[random.Random], Any]:
    """Register a kind by the name of its function."""
    KINDS[make.__name__] = make
    return make


def json_task(kind: str, name: str, parts: Parts) -> Task:
    """A task whose answer is JSON."""
    instruction, text, schema, expected = parts

    def judge(answer: str, free: bool) -> Score:
        return judge_json(schema, expected, first_json(answer) if free else parse_json(answer))

    hint = f"Answer with JSON that follows this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
    expected_text = json.dumps(expected, ensure_ascii=False)
    return Task(kind, name, instruction, text, hint, Language(schema), expected_text, judge)


def make_tasks(kinds: Sequence[str], count: int, seed: int) -> Iterator[Task]:
    """``count`` tasks of each kind.  A task depends on the seed, its kind and its number, and on nothing else."""
    for index in range(count):
        for name in kinds:
            made = KINDS[name](random.Random(f"{seed}/{name}/{index}"))
            label = f"{name}-{index}"
            yield json_task(name, label, made) if isinstance(made, tuple) else made(name, label)


def choice_task(instruction: str, text: str, choices: Sequence[str], expected: str) -> Callable[..., Task]:
    """A task whose answer is one of some texts, as it is."""
    regex = "|".join(map(re.escape, choices))

    def judge(answer: str, free: bool) -> Score:
        if free:
            found = re.search(regex, answer)
            answer = found[0] if found else ""
        return Score(True, float(answer == expected), answer == expected) if answer in choices else WRONG

    def build(kind: str, name: str) -> Task:
        hint = f"Answer with one of: {', '.join(choices)}."
        return Task(kind, name, instruction, text, hint, Language(None, regex), expected, judge)

    return build


def object_schema(properties: dict[str, Any], required: Sequence[str] | None = None, **more: Any) -> Any:
    """An object with these members; all are required unless it is said which."""
    listed = list(properties) if required is None else list(required)
    return {"type": "object", "properties": properties, "required": listed, **more}


TEXT = {"type": "string", "minLength": 1, "maxLength": 60}
CLOSED = {"additionalProperties": False}


# --- extraction


@kind
def person(r: random.Random) -> Parts:
    """A flat record."""
    name, age, city, job = person_name(r), r.randint(19, 88), r.choice(CITIES), r.choice(JOBS)
    text = r.choice(
        [
            f"{name} is {age} years old, lives in {city} and works as a {job}.",
            f"Meet {name}, a {job} from {city}, who turned {age} last week.",
            f"The new neighbour is called {name}. At {age}, this {job} has just moved to {city}.",
            f"In {city} we spoke with {name} ({age}), {job} by profession.",
        ]
    )
    schema = object_schema(
        {
            "name": {"type": "string"},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "city": {"type": "string"},
            "occupation": {"type": "string"},
        },
        **CLOSED,
    )
    expected = {"name": name, "age": age, "city": city, "occupation": job}
    return "Extract the person from the text as JSON.", text, schema, expected


@kind
def event(r: random.Random) -> Parts:
    """Nested objects, a date and an e-mail address."""
    title = r.choice(
        ["Harvest Fair", "Python Meetup", "Jazz Night", "Charity Run", "Robotics Workshop", "Book Club"]
    )
    place = r.choice(["Town Hall", "Riverside Park", "Hotel Astoria", "Grand Library", "Pier 7"])
    city, name, day = r.choice(CITIES), person_name(r), some_day(r)
    mail = mail_of(name, r)
    text = r.choice(
        [
            f"The {title} takes place at {place} in {city} on {spoken(day)}. Questions go to {name}, {mail}.",
            f"Save the date: {spoken(day)}, {title}! We meet at {place}, {city}. Organised by {name} ({mail}).",
            f"{name} ({mail}) is organising the {title} on {spoken(day)}; the venue is {place} in {city}.",
        ]
    )
    schema = object_schema(
        {
            "title": {"type": "string"},
            "date": {"type": "string", "format": "date"},
            "venue": object_schema({"name": {"type": "string"}, "city": {"type": "string"}}),
            "organizer": object_schema(
                {"name": {"type": "string"}, "email": {"type": "string", "format": "email"}}
            ),
        }
    )
    expected = {
        "title": title,
        "date": day.isoformat(),
        "venue": {"name": place, "city": city},
        "organizer": {"name": name, "email": mail},
    }
    return "Extract the event as JSON.", text, schema, expected


@kind
def ticket(r: random.Random) -> Parts:
    """Enums, a pattern and a boolean."""
    number = f"{r.choice(['TCK', 'OPS', 'WEB'])}-{r.randrange(10000):04}"
    component = r.choice(["login", "billing", "search", "export"])
    priority, again = r.choice(["low", "medium", "high", "critical"]), r.random() < 0.5
    problem = {
        "login": "users cannot sign in",
        "billing": "invoices show the wrong total",
        "search": "results are empty",
        "export": "downloaded files are damaged",
    }[component]
    seen = "We can reproduce it every time." if again else "Nobody could reproduce it so far."
    text = r.choice(
        [
            f"Ticket {number}: in the {component} module, {problem}. Priority is {priority}. {seen}",
            f"{seen} It is about {component}: {problem}. Filed as {number} with {priority} priority.",
            f"Reported under {number}, {priority} priority. {problem.capitalize()} ({component}). {seen}",
        ]
    )
    schema = object_schema(
        {
            "id": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
            "component": {"enum": ["login", "billing", "search", "export"]},
            "priority": {"type": "string", "enum": ["low", "medium", "high", "critical"]},
            "reproducible": {"type": "boolean"},
        },
        **CLOSED,
    )
    expected = {"id": number, "component": component, "priority": priority, "reproducible": again}
    return "Turn this report into a JSON ticket.", text, schema, expected


@kind
def recipe(r: random.Random) -> Parts:
    """An array of different strings."""
    dish = r.choice(["pancakes", "tomato soup", "apple pie", "fried rice", "bean stew", "lemon cake"])
    stock = ["flour", "eggs", "milk", "butter", "salt", "sugar", "onions", "garlic", "rice", "olive oil"]
    items, servings = r.sample(stock, r.randint(3, 5)), r.randint(2, 8)
    listed = ", ".join(items[:-1]) + " and " + items[-1]
    text = r.choice(
        [
            f"For {dish} for {servings} people you need {listed}.",
            f"My grandmother's {dish} takes {listed}. It makes {servings} servings.",
            f"Shopping list for {dish} (serves {servings}): {', '.join(items)}.",
        ]
    )
    schema = object_schema(
        {
            "dish": {"type": "string"},
            "servings": {"type": "integer", "minimum": 1},
            "ingredients": {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True},
        },
        **CLOSED,
    )
    return (
        "Extract the recipe as JSON.",
        text,
        schema,
        {"dish": dish, "servings": servings, "ingredients": items},
    )


@kind
def order(r: random.Random) -> Parts:
    """An array of objects."""
    goods = r.sample(["lamp", "desk", "chair", "notebook", "kettle", "backpack", "printer"], r.randint(2, 3))
    items = [{"product": each, "quantity": r.randint(2, 12)} for each in goods]
    name, number, paid = person_name(r), r.randint(1000, 99999), r.random() < 0.5
    listed = [f"{each['quantity']} {each['product']}s" for each in items]
    phrase = ", ".join(listed[:-1]) + " and " + listed[-1]
    state = "It has been paid." if paid else "It has not been paid yet."
    text = r.choice(
        [
            f"Order {number} by {name}: {phrase}. {state}",
            f"{name} ordered {phrase} (order number {number}). {state}",
            f"Please ship {phrase} to {name}. The order number is {number}. {state}",
        ]
    )
    line = object_schema({"product": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1}})
    schema = object_schema(
        {
            "order_id": {"type": "integer"},
            "customer": {"type": "string"},
            "items": {"type": "array", "items": line, "minItems": 1, "maxItems": 10},
            "paid": {"type": "boolean"},
        }
    )
    expected = {"order_id": number, "customer": name, "items": items, "paid": paid}
    return "Extract the order as JSON. Products are in the singular.", text, schema, expected


@kind
def booking(r: random.Random) -> Parts:
    """Dates that the text says in words."""
    name, start, nights = person_name(r), some_day(r), r.randint(1, 9)
    end, city = start + timedelta(days=nights), r.choice(CITIES)
    text = r.choice(
        [
            f"{name} stays in {city} from {spoken(start)} to {spoken(end)}, {nights} nights in all.",
            f"Booking for {name}: arrival on {spoken(start)}, departure on {spoken(end)} ({nights} nights), {city}.",
            f"We confirm {nights} nights in {city} for {name}. Check-in is {spoken(start)}, check-out {spoken(end)}.",
        ]
    )
    schema = object_schema(
        {
            "guest": {"type": "string"},
            "city": {"type": "string"},
            "check_in": {"type": "string", "format": "date"},
            "check_out": {"type": "string", "format": "date"},
            "nights": {"type": "integer", "minimum": 1},
        },
        **CLOSED,
    )
    expected = {
        "guest": name,
        "city": city,
        "check_in": start.isoformat(),
        "check_out": end.isoformat(),
        "nights": nights,
    }
    return "Extract the booking as JSON. Dates are written as YYYY-MM-DD.", text, schema, expected


@kind
def payment(r: random.Random) -> Parts:
    """A union of objects."""
    amount = r.randint(100, 99900) / 100
    which = r.choice(["card", "transfer", "cash"])
    digits, iban = f"{r.randrange(10000):04}", f"DE{r.randrange(10**20):020}"
    currency = r.choice(["EUR", "USD", "GBP"])
    if which == "card":
        method: dict[str, Any] = {"type": "card", "last_digits": digits}
        how = f"by card ending in {digits}"
    elif which == "transfer":
        method, how = {"type": "transfer", "iban": iban}, f"by bank transfer from {iban}"
    else:
        method = {"type": "cash", "receipt": r.randint(1, 999)}
        how = f"in cash, receipt number {method['receipt']}"
    text = r.choice(
        [
            f"We received {amount:.2f} {currency} {how}.",
            f"The invoice over {amount:.2f} {currency} was settled {how}.",
            f"Paid {how}: {amount:.2f} {currency}.",
        ]
    )
    union = [
        object_schema(
            {"type": {"const": "card"}, "last_digits": {"type": "string", "pattern": "^[0-9]{4}$"}}, **CLOSED
        ),
        object_schema(
            {"type": {"const": "transfer"}, "iban": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{10,30}$"}},
            **CLOSED,
        ),
        object_schema({"type": {"const": "cash"}, "receipt": {"type": "integer"}}, **CLOSED),
    ]
    schema = object_schema(
        {
            "amount": {"type": "number", "minimum": 0},
            "currency": {"enum": ["EUR", "USD", "GBP"]},
            "method": {"anyOf": union},
        },
        **CLOSED,
    )
    return (
        "Extract the payment as JSON.",
        text,
        schema,
        {"amount": amount, "currency": currency, "method": method},
    )


@kind
def profile(r: random.Random) -> Parts:
    """Values that may be null."""
    name, nickname = person_name(r), r.choice(["Ace", "Sunny", "Doc", None])
    children, firm = r.choice([None, 1, 2, 3]), r.choice([*FIRMS, None])
    says = [
        f"Everybody calls me {nickname}." if nickname else "I have no nickname.",
        f"I have {children} {'child' if children == 1 else 'children'}."
        if children
        else "About children I would rather not say anything.",
        f"I work for {firm}." if firm else "At the moment I have no employer.",
    ]
    r.shuffle(says)
    text = f"My name is {name}. {' '.join(says)}"

    def maybe(of: str) -> dict[str, Any]:
        return {"type": [of, "null"]}

    schema = object_schema(
        {
            "name": {"type": "string"},
            "nickname": maybe("string"),
            "children": maybe("integer"),
            "employer": maybe("string"),
        },
        **CLOSED,
    )
    expected = {"name": name, "nickname": nickname, "children": children, "employer": firm}
    return "Extract the profile as JSON. What is not known is null.", text, schema, expected


@kind
def log_line(r: random.Random) -> Parts:
    """Formats: a point in time and an address."""
    day = some_day(r)
    stamp = f"{day.isoformat()}T{r.randrange(24):02}:{r.randrange(60):02}:{r.randrange(60):02}Z"
    level, service = r.choice(["INFO", "WARN", "ERROR"]), r.choice(["auth", "gateway", "mailer", "indexer"])
    address = ".".join(str(r.randint(1, 254)) for _ in range(4))
    millis = r.randint(3, 9000)
    text = r.choice(
        [
            f"{stamp} {level} [{service}] request from {address} finished after {millis} ms",
            f"[{service}] {level} {stamp} client={address} duration={millis}ms",
            f"{level}: at {stamp} the {service} service answered {address} within {millis} ms.",
        ]
    )
    schema = object_schema(
        {
            "time": {"type": "string", "format": "date-time"},
            "level": {"enum": ["DEBUG", "INFO", "WARN", "ERROR"]},
            "service": {"type": "string"},
            "client": {"type": "string", "format": "ipv4"},
            "milliseconds": {"type": "integer", "minimum": 0},
        },
        **CLOSED,
    )
    expected = {"time": stamp, "level": level, "service": service, "client": address, "milliseconds": millis}
    return "Parse this log line into JSON.", text, schema, expected


@kind
def reading(r: random.Random) -> Parts:
    """Numbers with signs and fractions."""
    station, city = f"station {r.randint(2, 40)}", r.choice(CITIES)
    temperature, humidity = round(r.uniform(-25, 38), 1), r.randint(20, 99)
    wind, battery = round(r.uniform(0, 30), 1), round(r.uniform(2.5, 4.2), 2)
    text = r.choice(
        [
            f"{city}, {station}: {temperature} °C, humidity {humidity} %, wind {wind} m/s, battery at {battery} V.",
            f"At {station} in {city} it was {temperature} degrees with {humidity} percent humidity. The wind blew at {wind} m/s and the battery had {battery} volts.",
        ]
    )
    schema = object_schema(
        {
            "station": {"type": "string"},
            "temperature": {"type": "number", "minimum": -90, "maximum": 60},
            "humidity": {"type": "integer", "minimum": 0, "maximum": 100},
            "wind": {"type": "number", "minimum": 0},
            "battery": {"type": "number", "exclusiveMinimum": 0},
        }
    )
    expected = {
        "station": station,
        "temperature": temperature,
        "humidity": humidity,
        "wind": wind,
        "battery": battery,
    }
    return (
        "Extract the measurement as JSON. The station is named as in the text, 'station 1'.",
        text,
        schema,
        expected,
    )


@kind
def folder(r: random.Random) -> Parts:
    """A recursive schema."""
    names = r.sample(["src", "docs", "tests", "assets", "lib", "tools", "data"], 3)
    outer, inner, second = names
    text = r.choice(
        [
            f"The folder {outer} contains two folders, {inner} and {second}. Both are empty.",
            f"In {outer} there is a folder {inner}, and nothing else; {inner} holds one empty folder, {second}.",
        ]
    )
    leaf = {"name": second, "children": []}
    if "two" in text:
        expected = {"name": outer, "children": [{"name": inner, "children": []}, leaf]}
    else:
        expected = {"name": outer, "children": [{"name": inner, "children": [leaf]}]}
    node = object_schema(
        {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/folder"}}},
        **CLOSED,
    )
    schema = {"$defs": {"folder": node}, "$ref": "#/$defs/folder"}
    return "Write the tree of folders as JSON.", text, schema, expected


@kind
def passage(r: random.Random) -> Parts:
    """A question about a short text: the sentence that says it, then the answer."""
    firm, founder = r.choice(FIRMS), person_name(r)
    year, city, staff = r.randint(1950, 2020), r.choice(CITIES), r.randint(12, 4000)
    facts = [
        (f"{firm} was founded by {founder}.", "Who founded the company?", founder),
        (f"It opened its doors in {year}.", "In which year did the company open?", str(year)),
        (f"The head office is in {city}.", "In which city is the head office?", city),
        (f"Today {staff} people work there.", "How many people work there?", str(staff)),
    ]
    sentence, question, answer = r.choice(facts)
    text = " ".join(fact for fact, _, _ in facts) + f"\n\nQuestion: {question}"
    schema = object_schema({"evidence": {"type": "string"}, "answer": {"type": "string"}}, **CLOSED)
    instruction = (
        "Answer the question in JSON: first the sentence of the text that says it, then the short answer."
    )
    return instruction, text, schema, {"evidence": sentence, "answer": answer}


# --- classification

_REVIEWS = {
    "positive": ["I love it.", "Best purchase this year!", "Works perfectly and looks great."],
    "negative": ["A complete waste of money.", "It broke after two days.", "I want my money back."],
    "neutral": ["It arrived on Tuesday.", "It is a kettle, it is grey.", "I bought it for the office."],
}
_TOPICS = {
    "sports": ["The striker scored twice in the final.", "The marathon was won in just over two hours."],
    "politics": ["Parliament voted on the new budget.", "The minister resigned after the debate."],
    "science": ["Researchers measured the mass of a new particle.", "The telescope found a distant planet."],
    "finance": ["Shares fell by four percent after the report.", "The central bank raised its rates."],
}


@kind
def news(r: random.Random) -> Parts:
    """Classification into a JSON enum, twice."""
    topic, mood = r.choice(list(_TOPICS)), r.choice(list(_REVIEWS))
    text = f"Headline: {r.choice(_TOPICS[topic])}\nComment of a reader about the device that we tested: {r.choice(_REVIEWS[mood])}"
    schema = object_schema({"topic": {"enum": list(_TOPICS)}, "comment": {"enum": list(_REVIEWS)}}, **CLOSED)
    instruction = (
        "Say in JSON what the headline is about (sports, politics, science or finance) and whether "
        "the comment is positive, negative or neutral."
    )
    return instruction, text, schema, {"topic": topic, "comment": mood}


@kind
def department(r: random.Random) -> Callable[..., Task]:
    """Classification without JSON: one of some words."""
    letters = {
        "billing": ["You charged my card twice.", "Please send me an invoice for March."],
        "shipping": ["My parcel has not arrived yet.", "The courier left the box with a stranger."],
        "returns": ["The shoes do not fit, how do I send them back?", "I would like to return the lamp."],
        "careers": ["I would like to apply for a job with you.", "Do you offer internships?"],
    }
    right = r.choice(list(letters))
    instruction = f"Which department should read this message: {', '.join(letters)}? Answer with one word."
    return choice_task(instruction, f"Message: {r.choice(letters[right])}", list(letters), right)
