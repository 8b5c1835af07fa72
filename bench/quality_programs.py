"""Tasks whose answers are run: queries by SQLite, calls by Python functions."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import date
from typing import Annotated, Any, Literal

import pydantic
from quality_judges import MISSING, Score, compare, first_json, parse_json, same, validates
from quality_tasks import Language, Task, kind, object_schema
from quality_words import CITIES, FIRST, some_day, spoken

# --- text to SQL

TABLES: dict[str, dict[str, dict[str, str]]] = {
    "harbour": {
        "boats": {"id": "INTEGER", "name": "TEXT", "color": "TEXT", "length": "REAL"},
        "trips": {"id": "INTEGER", "boat_id": "INTEGER", "port": "TEXT", "days": "INTEGER"},
    },
    "school": {
        "pupils": {"id": "INTEGER", "name": "TEXT", "age": "INTEGER", "city": "TEXT"},
        "grades": {"pupil_id": "INTEGER", "subject": "TEXT", "points": "INTEGER"},
    },
    "shop": {
        "products": {"id": "INTEGER", "name": "TEXT", "price": "REAL", "stock": "INTEGER"},
        "sales": {"product_id": "INTEGER", "amount": "INTEGER", "city": "TEXT"},
    },
}
WORDS = {
    "color": ["red", "blue", "green"],
    "port": ["Lisbon", "Oslo", "Porto"],
    "city": CITIES[:4],
    "subject": ["Maths", "Biology", "History"],
    "name": FIRST,
}
ROWS = 12
STEPS = 100_000
"""Operations of SQLite's machine after which a query counts as one that does not run."""


def database(tables: dict[str, dict[str, str]], r: random.Random) -> sqlite3.Connection:
    """The tables in memory, with random rows; all numbers are small, so that groups and ties occur."""
    connection = sqlite3.connect(":memory:")
    for name, columns in tables.items():
        connection.execute(create_table(name, columns))
        for row in range(ROWS):
            values = [cell(column, of, row, r) for column, of in columns.items()]
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(values))})", values)
    return connection


def cell(column: str, of: str, row: int, r: random.Random) -> Any:
    """One random value; ``id`` counts the rows."""
    if column == "id":
        return row + 1
    if column == "name":
        return FIRST[row % len(FIRST)]
    if column in WORDS:
        return r.choice(WORDS[column])
    return round(r.uniform(3, 40), 1) if of == "REAL" else r.randint(1, ROWS)


def create_table(name: str, columns: dict[str, str]) -> str:
    return f"CREATE TABLE {name} ({', '.join(f'{column} {of}' for column, of in columns.items())});"


def query_gbnf(tables: dict[str, dict[str, str]]) -> str:
    """Queries over these tables, in GBNF.  At most three results and two conditions, as
    endless lists are what small models write; no rule leads to itself, so the language is regular."""

    def either(names: list[str]) -> str:
        return " | ".join(f'"{name}"' for name in names)

    columns = sorted({column for each in tables.values() for column in each})
    return "\n".join(
        [
            'root ::= "SELECT " items " FROM " source where? group? order? limit? ";"',
            'items ::= "*" | item (", " item)? (", " item)?',
            'item ::= column | "COUNT(*)" | "COUNT(DISTINCT " column ")" | function "(" column ")"',
            'function ::= "AVG" | "SUM" | "MIN" | "MAX" | "COUNT"',
            'source ::= table (" JOIN " table " ON " column " = " column)?',
            'where ::= " WHERE " test ((" AND " | " OR ") test)?',
            'test ::= column operator value | column " LIKE " text',
            'operator ::= " = " | " != " | " > " | " < " | " >= " | " <= "',
            "value ::= number | text",
            'group ::= " GROUP BY " column',
            'order ::= " ORDER BY " item (" ASC" | " DESC")?',
            'limit ::= " LIMIT " [1-9] [0-9]?',
            'number ::= "-"? [0-9]+ ("." [0-9]+)?',
            'text ::= "\'" [A-Za-z0-9 %]+ "\'"',
            'column ::= (table ".")? field',
            f"table ::= {either(list(tables))}",
            f"field ::= {either(columns)}",
        ]
    )


def regex_of(gbnf: str, start: str = "root") -> str:
    """The same language as a regular expression; rules must not lead to themselves."""
    rules = dict(line.split(" ::= ", 1) for line in gbnf.splitlines())

    def expand(body: str) -> str:
        parts = re.findall(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[a-z]+|[()|?*+]', body)
        return "".join(map(piece, parts))

    def piece(part: str) -> str:
        if part[0] == '"':
            return f"(?:{re.escape(json.loads(part))})"
        if part == "(":
            return "(?:"
        return f"(?:{expand(rules[part])})" if part[0].isalpha() else part

    return expand(rules[start])


@kind
def sql(r: random.Random) -> Callable[[str, str], Task]:
    """Text to SQL; the rows that the query returns are compared."""
    domain = r.choice(list(TABLES))
    tables = TABLES[domain]
    rows_seed = r.random()
    rows: list[Any] = []
    while not rows:
        question, query = r.choice(QUESTIONS[domain])(r)
        rows = run_query(tables, rows_seed, query)
    created = "\n".join(create_table(name, columns) for name, columns in tables.items())
    gbnf = query_gbnf(tables)
    language = Language(None, regex_of(gbnf), gbnf)
    instruction = "Write one SQLite query that answers the question. Answer with the query only, in one line, and end it with a semicolon."

    def judge(answer: str, free: bool) -> Score:
        if free:
            found = re.search(r"\bSELECT\b[^;`]*;?", answer, re.IGNORECASE)
            answer = found[0] if found else ""
        try:
            got = run_query(tables, rows_seed, answer)
        except (sqlite3.Error, sqlite3.Warning) as error:
            return Score(not UNREAD.search(str(error)), 0.0, False, executes=False)
        ordered = "ORDER BY" in query
        whole = got == rows if ordered else Counter(got) == Counter(rows)
        common = (Counter(got) & Counter(rows)).total()
        return Score(True, common / max(len(got), len(rows), 1), whole, executes=True)

    def build(kind: str, name: str) -> Task:
        return Task(kind, name, instruction, f"{created}\n\nQuestion: {question}", "", language, query, judge)

    return build


NO_QUERY = "this is no query"
UNREAD = re.compile(rf"syntax error|incomplete input|unrecognized token|one statement|{NO_QUERY}")
"""What SQLite says of a text that it cannot read; other errors are those of a query."""


def run_query(tables: dict[str, dict[str, str]], seed: float, query: str) -> list[Any]:
    """The rows of one query on fresh tables.  Raises ``sqlite3.Error`` for one that fails, returns no rows set, or runs too long."""
    with closing(database(tables, random.Random(seed))) as connection:
        connection.set_progress_handler(lambda: 1, STEPS)
        cursor = connection.execute(query)
        if cursor.description is None:
            raise sqlite3.OperationalError(NO_QUERY)
        return cursor.fetchmany(10_000)


Question = Callable[[random.Random], tuple[str, str]]


def _harbour_color(r: random.Random) -> tuple[str, str]:
    color = r.choice(WORDS["color"])
    ask = r.choice(["What are the names of the {} boats?", "List the name of every boat whose color is {}."])
    return ask.format(color), f"SELECT name FROM boats WHERE color = '{color}';"


def _harbour_count(r: random.Random) -> tuple[str, str]:
    port = r.choice(WORDS["port"])
    ask = r.choice(["How many trips went to the port {}?", "Count the trips to {}."])
    return ask.format(port), f"SELECT COUNT(*) FROM trips WHERE port = '{port}';"


def _harbour_longest(r: random.Random) -> tuple[str, str]:
    ask = r.choice(["How long is the longest boat?", "What is the maximum length of the boats?"])
    return ask, "SELECT MAX(length) FROM boats;"


def _harbour_groups(r: random.Random) -> tuple[str, str]:
    ask = r.choice(
        ["For each color, how many boats are there?", "Show each color and the number of boats of it."]
    )
    return ask, "SELECT color, COUNT(*) FROM boats GROUP BY color;"


def _harbour_join(r: random.Random) -> tuple[str, str]:
    port = r.choice(WORDS["port"])
    return (
        f"What are the names of the boats with a trip to {port}? One row for each trip.",
        f"SELECT boats.name FROM boats JOIN trips ON boats.id = trips.boat_id WHERE trips.port = '{port}';",
    )


def _school_older(r: random.Random) -> tuple[str, str]:
    age = r.randint(3, 9)
    ask = r.choice(
        ["Which pupils are older than {}? Give their names.", "Names of pupils with an age above {}."]
    )
    return ask.format(age), f"SELECT name FROM pupils WHERE age > {age};"


def _school_average(r: random.Random) -> tuple[str, str]:
    subject = r.choice(WORDS["subject"])
    ask = r.choice(
        ["What is the average of the points in {}?", "Average points of all grades in the subject {}?"]
    )
    return ask.format(subject), f"SELECT AVG(points) FROM grades WHERE subject = '{subject}';"


def _school_two(r: random.Random) -> tuple[str, str]:
    city, age = r.choice(WORDS["city"]), r.randint(4, 9)
    return (
        f"Names of the pupils who live in the city {city} and are younger than {age}?",
        f"SELECT name FROM pupils WHERE city = '{city}' AND age < {age};",
    )


def _shop_cheapest(r: random.Random) -> tuple[str, str]:
    count = r.randint(2, 4)
    ask = r.choice(
        [
            "Name the {} cheapest products, the cheapest first.",
            "The names of the {} products with the lowest price, by price?",
        ]
    )
    return ask.format(count), f"SELECT name FROM products ORDER BY price LIMIT {count};"


def _shop_sum(r: random.Random) -> tuple[str, str]:
    city = r.choice(WORDS["city"])
    ask = r.choice(
        ["What is the sum of the amounts sold in {}?", "Total amount of all sales in the city {}?"]
    )
    return ask.format(city), f"SELECT SUM(amount) FROM sales WHERE city = '{city}';"


def _shop_stock(r: random.Random) -> tuple[str, str]:
    stock = r.randint(3, 8)
    ask = r.choice(
        [
            "Show name and price of products with a stock of at least {}.",
            "Which products have {} or more in stock? Name and price, please.",
        ]
    )
    return ask.format(stock), f"SELECT name, price FROM products WHERE stock >= {stock};"


QUESTIONS: dict[str, list[Question]] = {
    "harbour": [_harbour_color, _harbour_count, _harbour_longest, _harbour_groups, _harbour_join],
    "school": [_school_older, _school_average, _school_two],
    "shop": [_shop_cheapest, _shop_sum, _shop_stock],
}


# --- function calls: pydantic makes the schema of a function, checks the arguments and calls it

Positive = Annotated[int, pydantic.Field(ge=1)]


def set_alarm(
    hour: Annotated[int, pydantic.Field(ge=0, le=23)],
    minute: Annotated[int, pydantic.Field(ge=0, le=59)],
    label: str,
) -> str:
    """Set an alarm with a label."""
    return f"{hour:02}:{minute:02} {label.strip().lower()}"


def send_money(
    recipient: str, amount: Annotated[float, pydantic.Field(gt=0)], currency: Literal["EUR", "USD", "GBP"]
) -> dict[str, Any]:
    """Send an amount of money to somebody."""
    return {"to": recipient, "cents": round(amount * 100), "currency": currency}


def book_table(restaurant: str, people: Positive, day: date) -> list[Any]:
    """Book a table in a restaurant."""
    return [restaurant, people, day.toordinal()]


def convert_temperature(value: float, unit: Literal["celsius", "fahrenheit"]) -> float:
    """Convert a temperature into the other unit; `unit` is the unit of `value`."""
    return round(value * 1.8 + 32 if unit == "celsius" else (value - 32) / 1.8, 6)


def find_flights(origin: str, destination: str, day: date, passengers: Positive = 1) -> dict[str, Any]:
    """Search flights between two cities."""
    return {"route": (origin, destination), "days": day.toordinal(), "passengers": passengers}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (set_alarm, send_money, book_table, convert_temperature, find_flights)
}
CHECKED = {name: pydantic.validate_call(each) for name, each in FUNCTIONS.items()}
ARGUMENTS = {name: pydantic.TypeAdapter(each).json_schema() for name, each in FUNCTIONS.items()}


def _request(name: str, r: random.Random) -> tuple[str, dict[str, Any]]:
    day = some_day(r)
    if name == "set_alarm":
        hour, minute, label = (
            r.randint(0, 23),
            r.choice([0, 5, 15, 30, 45]),
            r.choice(["gym", "tea", "train"]),
        )
        ask = r.choice(
            ["Set an alarm for {:02}:{:02}, label it {}.", "At {:02}:{:02} I need an alarm called {}."]
        )
        return ask.format(hour, minute, label), {"hour": hour, "minute": minute, "label": label}
    if name == "send_money":
        who, amount, currency = r.choice(FIRST), r.randint(200, 90000) / 100, r.choice(["EUR", "USD", "GBP"])
        ask = r.choice(
            ["Send {1} {2} to {0}.", "{0} should get {1} {2} from me.", "Please transfer {1} {2} to {0}."]
        )
        arguments = {"recipient": who, "amount": amount, "currency": currency}
        return ask.format(who, f"{amount:.2f}", currency), arguments
    if name == "book_table":
        place, people = r.choice(["Luigi's", "The Green Fork", "Sakura", "Casa Verde"]), r.randint(2, 9)
        ask = r.choice(["A table for {1} at {0} on {2}, please.", "Book {0} for {1} people on {2}."])
        arguments = {"restaurant": place, "people": people, "day": day.isoformat()}
        return ask.format(place, people, spoken(day)), arguments
    if name == "convert_temperature":
        value, unit = r.randint(-20, 110), r.choice(["celsius", "fahrenheit"])
        ask = r.choice(["Convert {} degrees {} into the other unit.", "What is {} °{} on the other scale?"])
        return ask.format(value, unit.capitalize()), {"value": value, "unit": unit}
    origin, destination = r.sample(CITIES, 2)
    people = r.randint(1, 5)
    ask = r.choice(
        [
            "Find flights from {} to {} on {} for {} passengers.",
            "I need to get from {} to {} on {}; look for flights with {} seats.",
        ]
    )
    arguments = {"origin": origin, "destination": destination, "day": day.isoformat(), "passengers": people}
    return ask.format(origin, destination, spoken(day), people), arguments


@kind
def call(r: random.Random) -> Callable[[str, str], Task]:
    """One of three functions, called with arguments; the results are compared."""
    offered = r.sample(list(FUNCTIONS), 3)
    name = r.choice(offered)
    request, arguments = _request(name, r)
    schema = {
        "anyOf": [
            object_schema({"name": {"const": each}, "arguments": ARGUMENTS[each]}, additionalProperties=False)
            for each in offered
        ]
    }
    expected = {"name": name, "arguments": arguments}
    tools = "\n".join(
        f"- {each}({', '.join(ARGUMENTS[each]['properties'])}): {FUNCTIONS[each].__doc__}" for each in offered
    )
    instruction = f"Answer the request by calling one function, as JSON with its name and its arguments. Dates are written as YYYY-MM-DD.\n{tools}"
    hint = f"The call follows this JSON Schema:\n{json.dumps(schema)}"

    def judge(answer: str, free: bool) -> Score:
        value = first_json(answer) if free else parse_json(answer)
        if value is MISSING:
            return Score(False, 0.0, False, executes=False)
        right, total = compare(expected, value)
        ran, result = run_call(value)
        whole = ran and same(result, CHECKED[name](**arguments)) and value["name"] == name
        return Score(validates(schema, value), right / total, whole, executes=ran)

    def build(kind: str, label: str) -> Task:
        return Task(
            kind,
            label,
            instruction,
            f"Request: {request}",
            hint,
            Language(schema),
            json.dumps(expected),
            judge,
        )

    return build


def run_call(value: Any) -> tuple[bool, Any]:
    """(whether the call can be made, its result)."""
    try:
        return True, CHECKED[value["name"]](**value["arguments"])
    except (pydantic.ValidationError, TypeError, KeyError, OverflowError):
        return False, None
