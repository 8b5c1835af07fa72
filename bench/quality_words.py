"""Names, places and dates that the tasks are made of."""

from __future__ import annotations

import random
import unicodedata
from datetime import date, timedelta

FIRST = [
    "Ada",
    "Miguel",
    "Priya",
    "Zoë",
    "Kofi",
    "Ingrid",
    "Tomás",
    "Yuki",
    "Fatima",
    "Liam",
    "Chloé",
    "Omar",
    "Nadia",
    "Björn",
    "Elena",
    "Samuel",
]
LAST = [
    "Lovelace",
    "Ortega",
    "Raman",
    "Okafor",
    "Lindqvist",
    "Nakamura",
    "Haddad",
    "Novák",
    "Müller",
    "Rossi",
    "Keller",
    "Byrne",
    "Silva",
    "Park",
]
CITIES = [
    "Lisbon",
    "Oslo",
    "Nairobi",
    "Kyoto",
    "Montréal",
    "Zürich",
    "Austin",
    "Kraków",
    "Lima",
    "Hanoi",
    "Porto",
    "Leeds",
    "Cairo",
    "Tallinn",
]
JOBS = [
    "civil engineer",
    "nurse",
    "pastry chef",
    "librarian",
    "pilot",
    "carpenter",
    "biologist",
    "translator",
]
FIRMS = ["Northwind", "Blue Harbor", "Kestrel Labs", "Oak & Sons", "Helix", "Sunbeam Foods", "Atlas Freight"]


def person_name(r: random.Random) -> str:
    return f"{r.choice(FIRST)} {r.choice(LAST)}"


def some_day(r: random.Random) -> date:
    return date(2024, 1, 1) + timedelta(days=r.randrange(900))


def spoken(day: date) -> str:
    return f"{day:%B} {day.day}, {day.year}"


def mail_of(name: str, r: random.Random) -> str:
    """An address with the first name, without its accents."""
    plain = unicodedata.normalize("NFKD", name.split()[0].lower()).encode("ascii", "ignore").decode()
    return f"{plain}@{r.choice(['example.org', 'events.net'])}"
