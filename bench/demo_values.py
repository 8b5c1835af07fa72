"""Random values for the training data of the tiny model and the demo diffusion model.

About half of all names and words are made of random syllables: a model that has seen only a fixed
list learns the list, while one that meets unseen words has to learn to copy from the prompt.
"""

from __future__ import annotations

import uuid
from random import Random


def _words(text: str) -> list[str]:
    return text.split()


def _phrases(text: str) -> list[str]:
    return text.split("|")


_FIRST = _words(
    "Ada Alan Grace Linus Maria Chen Yuki Omar Fatima Carlos Ingrid Noah Emma Olga Ravi Priya José Zoë "
    "Lars Nina Peter Sofia Ahmed Leila Tom Alice Bob Carla David Eva Felix Hana Ivan Julia Karl Lena"
)
_LAST = _words(
    "Lovelace Turing Hopper Silva Wei Tanaka Hassan Khan García Larsen Novak Ivanova Patel Müller Smith "
    "Jones Brown Rossi Dubois Okafor Kim Nguyen Schmidt Costa Moreau Weber Fischer Lindqvist Murphy Walsh"
)
_CITIES = _words(
    "London Paris Berlin Madrid Rome Oslo Tokyo Lagos Cairo Lima Delhi Seoul Boston Toronto Sydney Porto "
    "Vienna Prague Zürich Dublin Bergen Quito Nairobi Hanoi Lyon"
)
_NOUNS = _words(
    "lamp chair table desk mug bottle pen notebook keyboard mouse screen cable bag shirt jacket book clock "
    "candle basket pillow blanket bicycle helmet tent kettle spoon bowl mirror ladder hammer"
)
_ADJECTIVES = _words(
    "red blue green small large old new wooden steel soft light dark round heavy fast quiet warm cold"
)
_FOODS = _words(
    "flour sugar butter milk eggs salt rice beans tomato onion garlic carrot potato cheese cream pepper "
    "basil lemon apple chicken beef salmon noodles oil honey"
)
_DISHES = _words("soup salad pie cake stew curry bread pasta omelette risotto pancakes casserole")
_TAGS = _words(
    "urgent network billing login hardware software mobile email backup security travel family work home "
    "school music sports art garden science"
)
_TROUBLES = _phrases(
    "printer does not start|screen stays black|cannot log in|invoice is wrong|page loads slowly|"
    "password reset fails|file will not open|app crashes at start|battery drains fast|sound is missing|"
    "order never arrived|disk is full|update fails|connection drops"
)
_REMARKS = _phrases(
    "nice work|thanks a lot|I agree|please explain|good point|see you there|this is wrong|well said|"
    "not so sure|works for me|great idea|count me in|try again|what a day"
)
_EVENTS = _words(
    "Review Planning Workshop Lunch Meeting Demo Lecture Concert Interview Party Training Retrospective"
)
_DOMAINS = _words("example.com example.org mail.test post.example")
_ONSETS = _words("b c d f g h j k l m n p r s t v w z br dr gr kl st tr sh th")
_VOWELS = _words("a e i o u a e i o ai ea ou")
_CODAS = ["", "", "", "n", "r", "l", "s", "m", "k", "nd", "rt"]


def word(rng: Random, low: int = 2, high: int = 3) -> str:
    """A pronounceable lower-case word of ``low`` to ``high`` syllables."""
    count = rng.randint(low, high)
    return "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(count))


def _either(rng: Random, known: list[str], made: str) -> str:
    return made if rng.random() < 0.5 else rng.choice(known)


def first_name(rng: Random) -> str:
    return _either(rng, _FIRST, word(rng).capitalize())


def full_name(rng: Random) -> str:
    return f"{first_name(rng)} {_either(rng, _LAST, word(rng).capitalize())}"


def city(rng: Random) -> str:
    return _either(rng, _CITIES, word(rng).capitalize())


def street(rng: Random) -> str:
    kind = rng.choice(["Street", "Road", "Lane", "Square"])
    return f"{rng.randint(1, 199)} {word(rng).capitalize()} {kind}"


def product(rng: Random) -> str:
    noun = _either(rng, _NOUNS, word(rng))
    return f"{rng.choice(_ADJECTIVES)} {noun}" if rng.random() < 0.6 else noun


def food(rng: Random) -> str:
    return rng.choice(_FOODS) if rng.random() < 0.7 else word(rng)


def dish(rng: Random) -> str:
    return f"{food(rng)} {rng.choice(_DISHES)}"


def tag(rng: Random) -> str:
    return _either(rng, _TAGS, word(rng, 1, 2))


def tags(rng: Random, low: int, high: int) -> list[str]:
    """Distinct tags, ``low`` to ``high`` of them."""
    wanted = rng.randint(low, high)
    found: list[str] = []
    while len(found) < wanted:
        one = tag(rng)
        if one not in found:
            found.append(one)
    return found


def trouble(rng: Random) -> str:
    return rng.choice(_TROUBLES) if rng.random() < 0.6 else f"{rng.choice(_NOUNS)} {word(rng)} fails"


def remark(rng: Random) -> str:
    return rng.choice(_REMARKS) if rng.random() < 0.6 else f"{word(rng)} {rng.choice(_NOUNS)}"


def event_name(rng: Random) -> str:
    return f"{_either(rng, _TAGS, word(rng)).capitalize()} {rng.choice(_EVENTS)}"


def username(rng: Random) -> str:
    """Matches ``^[a-z][a-z0-9_]{2,15}$``."""
    tail = rng.choice(["", f"{rng.randint(0, 99)}", f"_{word(rng, 1, 1)}"])
    return (word(rng, 2, 2)[:10] + tail)[:16]


def email(rng: Random) -> str:
    local = word(rng) if rng.random() < 0.5 else f"{word(rng, 1, 2)}.{word(rng, 1, 2)}"
    return f"{local}@{rng.choice(_DOMAINS)}"


def letters_and_digits(rng: Random, letters: int, digits: int) -> str:
    """A code such as ``ABC-1234``."""
    head = "".join(rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(letters))
    return head + "-" + "".join(rng.choice("0123456789") for _ in range(digits))


def digits(rng: Random, count: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(count))


def phone(rng: Random) -> str:
    """Matches ``^\\+[0-9]{2}-[0-9]{7}$``."""
    return f"+{rng.randint(10, 99)}-{digits(rng, 7)}"


def date(rng: Random, first_year: int = 2020, last_year: int = 2029) -> str:
    return f"{rng.randint(first_year, last_year)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def date_time(rng: Random) -> str:
    return f"{date(rng)}T{rng.randint(0, 23):02}:{rng.choice((0, 15, 30, 45)):02}:00Z"


def uuid4(rng: Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def amount(rng: Random, high: int) -> float:
    """A price in whole units and cents, above zero."""
    return rng.randint(1, high * 100) / 100
