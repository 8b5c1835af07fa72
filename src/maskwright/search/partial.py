"""Partial programs with a guarantee: what a model wrote, with holes where it may be wrong.

    select name from ‹table› where ‹condition›

A partial program stands for all texts of the grammar that fill each hole with its symbol.  Khakhar, Mell and Bastani (PAC Prediction Sets for
Large Language Models of Code, ICML 2023, arXiv 2302.08703) choose the holes such that the right program is missed with a probability of at most
``error_rate``, and that with a given ``confidence`` over the draws of the examples that it was calibrated with.

Each text has a *family*: of all ways to cut parts that symbols derive out of it, those that keep most for what is kept to cost, in nats by the
model.  It goes from the whole text to one hole.  A threshold picks the member that keeps most among those that cost less.  An example has a
*critical cost*: the least that a member costs which misses the right program.  Where the threshold is not above it, the right program is
in the set.  So of n critical costs, the one with rank k + 1 will do, when k is the most misses for which a binomial tail is small enough:

    sum over i ≤ k of  C(n, i) · error_rate^i · (1 - error_rate)^(n - i)  ≤  1 - confidence

(tolerance limits, Wilks 1941).  This holds for every model, grammar and way to assign costs; only the examples must be drawn like the later ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from maskwright.base.arguments import check_type, listed, real
from maskwright.base.deadline import deadline, in_time
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.compiling.symbols import Occurrence, Symbols
from maskwright.errors import LimitError, MaskwrightError, UnsatisfiableError

WHOLE = "text"
"""The name of the hole that is all of a text."""
_LEAST = 1e-9
"""What a byte costs at least (nats), and a text of no bytes."""
_LEAST_RATE = 1e-12
"""The least error rate: less takes more examples than there can be."""
_DIGITS = 50
_UNROUNDED = Decimal("0." + "9" * 30)
"""The share of a rounded binomial tail that is sure: some steps for each example add 1e-49 each."""
_MOST_BITS = 1 << 32
"""In whole numbers, so many bits are counted at most: a second or so."""


class Scored(NamedTuple):
    """What a model wrote: its bytes, and what each costs (nats, not negative)."""

    text: bytes
    costs: tuple[float, ...]


def scored(grammar: CompiledGrammar, token_ids: Sequence[int], logprobs: Sequence[float]) -> Scored:
    """A text of tokens with their log-probabilities, as ``Generator.generate(..., logprobs=True)`` has them.

    What a token costs is spread over its bytes; what one without bytes costs, as the end, is added to the next one with bytes, or the
    last byte where none follows.  Raises ``MaskwrightError`` unless there is one log-probability, at most 0, for each token.
    """
    check_type(grammar, CompiledGrammar, "grammar", MaskwrightError)
    ids, given = listed(token_ids, "token_ids", "token ids"), listed(logprobs, "logprobs", "numbers")
    if len(given) < len(ids):
        raise MaskwrightError(f"{len(ids)} tokens need as many log-probabilities, not {len(given)}")
    vocabulary = grammar.vocabulary
    text, costs, cost = b"", list[float](), 0.0
    for count, (token, logprob) in enumerate(zip(ids, given, strict=False)):
        data = vocabulary.decode([token], start=vocabulary.at_start(ids[:count]))
        # Rounding may leave a logarithm just above zero.
        cost += max(0.0, real(-logprob, "logprobs: costs", low=-1e-3))
        if data:
            text += data
            costs += [cost / len(data)] * len(data)
            cost = 0.0
    if costs:
        costs[-1] += cost
    return Scored(text, tuple(costs))


class Hole(NamedTuple):
    """A part of a text that is left open: any text that ``symbol`` derives."""

    symbol: str
    start: int
    end: int


@dataclass(frozen=True)
class PartialProgram:
    """``text`` with ``holes``, by their starts.  ``cost``: of what is kept, in nats."""

    text: bytes
    holes: tuple[Hole, ...]
    cost: float

    @property
    def kept(self) -> float:
        """The share of the bytes that is kept, 0 to 1."""
        return 1 - sum(hole.end - hole.start for hole in self.holes) / max(1, len(self.text))

    def __str__(self) -> str:
        shown, at = [], 0
        for hole in self.holes:
            shown += [self.text[at : hole.start].decode("utf-8", "replace"), f"‹{hole.symbol}›"]
            at = hole.end
        return "".join(shown) + self.text[at:].decode("utf-8", "replace")


class Calibration(NamedTuple):
    """A threshold for ``PartialPrograms.at``, in nats, and what it promises.

    With ``confidence``, the right program of a new example is missed with a probability of at most ``error_rate``.  ``misses`` of the
    ``examples`` were.
    """

    threshold: float
    error_rate: float
    confidence: float
    examples: int
    misses: int


class PartialPrograms:
    """The partial programs of texts of a grammar, with holes of some of its ``symbols`` (None: its rules, or values of a schema;
    see ``Symbols``).

    Of symbols that derive the same part of a text, the hole has the one that comes first, in ``symbols`` or in the grammar; of the whole text, the start symbol, or "text" where it is none of them.  Raises ``GrammarError`` for symbols that the grammar does not have.
    """

    def __init__(self, grammar: CompiledGrammar, symbols: Sequence[str] | None = None) -> None:
        self.grammar = grammar
        check_type(grammar, CompiledGrammar, "grammar", MaskwrightError)
        rules = [name for name in grammar._core.rule_names if name and not name.startswith("__")]
        self._symbols = Symbols(grammar, rules if symbols is None else symbols)

    def family(self, written: Scored) -> list[PartialProgram]:
        """From the whole text to one hole; each keeps the most, one byte less for each hole, of what costs no more.

        Raises ``MaskwrightError`` for a text that is none of the grammar, or costs that do not fit it, and ``LimitError``
        (``max_seconds`` of the grammar): there may be as many as the text has bytes, put together from those of its parts.
        """
        check_type(written, Scored, "written", MaskwrightError)
        check_type(written.text, (bytes, bytearray), "written: its text", MaskwrightError)
        check_type(written.costs, Iterable, "written: its costs", MaskwrightError)
        # Kept text is never free, so that a single hole costs least.
        text, costs = bytes(written.text), [max(_LEAST, real(each, "costs")) for each in written.costs]
        if len(costs) != len(text) or math.inf in costs:
            raise MaskwrightError(f"{len(text)} bytes need as many finite costs, not {len(costs)}")
        found = self._occurrences(text)
        if found is None:
            raise MaskwrightError(f"{text[:60]!r} is no text of the grammar")
        with deadline(self.grammar._core.limits.max_seconds):
            frontier = _Tree(found, len(text), self._symbols).frontier(costs)
        return [PartialProgram(text, way.holes(), way.cost) for way in reversed(frontier)]

    def at(self, written: Scored, threshold: float) -> PartialProgram:
        """The member of the family that keeps the most and costs less than ``threshold`` (infinity: all of the text)."""
        threshold = real(threshold, "threshold")
        for member in self.family(written):
            if member.cost < threshold:
                return member
        raise UnsatisfiableError("a threshold of 0 leaves no partial program, not even one hole")

    def contains(self, partial: PartialProgram, right: bytes | str) -> bool:
        """Whether ``right`` is one of the texts: of the grammar, with an occurrence of each hole's symbol in its place, and
        byte by byte the same elsewhere."""
        text = _data(right)
        check_type(partial, PartialProgram, "partial", MaskwrightError)
        found = self._occurrences(text)
        return found is not None and _is_filling(partial, text, found)

    def critical_cost(self, written: Scored, right: bytes | str) -> float:
        """The least that a partial program costs which misses ``right``; infinity when none does, 0 when all do."""
        text = _data(right)
        check_type(written, Scored, "written", MaskwrightError)
        found = self._occurrences(text)
        if found is None:
            return 0.0
        missed = [each.cost for each in self.family(written) if not _is_filling(each, text, found)]
        return min(missed, default=math.inf)

    def calibrate(
        self,
        examples: Iterable[tuple[Scored, bytes | str]],
        *,
        error_rate: float = 0.1,
        confidence: float = 0.95,
    ) -> Calibration:
        """The largest threshold whose guarantee the examples (what was written, the right program) support.

        Raises ``LimitError`` for too few examples, which says how many are enough; ``UnsatisfiableError`` when too many right programs are no
        texts of the grammar; ``MaskwrightError`` for an error rate or a confidence that is not between 0 and 1, or a rate below 1e-12.
        """
        check_type(examples, Iterable, "examples", MaskwrightError)
        costs = []
        for at, example in enumerate(examples):
            if not isinstance(example, (tuple, list)) or len(example) != 2:
                raise MaskwrightError(f"examples: {at} is no pair of what was written and the right program")
            costs.append(self.critical_cost(*example))
        return calibrated(costs, error_rate, confidence)

    def _occurrences(self, text: bytes) -> list[Occurrence] | None:
        try:
            return self._symbols.start.read(text).occurrences_at_end()
        except LimitError:
            raise
        except MaskwrightError:
            return None


def _data(text: bytes | str) -> bytes:
    """A text's bytes; those of a lone surrogate are in no grammar."""
    check_type(text, (bytes, bytearray, str), "right", MaskwrightError)
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def calibrated(critical_costs: Sequence[float], error_rate: float, confidence: float) -> Calibration:
    """The calibration of examples with these critical costs; see ``PartialPrograms.calibrate``."""
    costs = sorted(real(each, "critical_costs") for each in critical_costs)
    allowed = check_examples(len(costs), error_rate, confidence)
    threshold = costs[allowed]
    if threshold == 0:
        count = sum(each == 0 for each in costs)
        raise UnsatisfiableError(
            f"no partial program has the right one in {count} of {len(costs)} examples, and {allowed} may be missed: is the right "
            f"program a text of the grammar?"
        )
    return Calibration(threshold, error_rate, confidence, len(costs), sum(each < threshold for each in costs))


def check_examples(count: int, error_rate: float, confidence: float) -> int:
    """The most misses that so many examples allow; ``LimitError`` when they are too few."""
    for name, value in (("error_rate", error_rate), ("confidence", confidence)):
        if not 0 < real(value, name, high=1.0) < 1:
            raise MaskwrightError(f"{name} lies between 0 and 1, not at {value}")
    if error_rate < _LEAST_RATE:
        raise MaskwrightError(f"error_rate is at least {_LEAST_RATE:g}, not {error_rate:g}")
    allowed = most_misses(count, error_rate, confidence)
    if allowed < 0:
        enough = examples_needed(error_rate, confidence)
        message = f"{count} examples are too few for an error rate of {error_rate:g} with a confidence of {confidence:g}: {enough} are enough"
        raise LimitError("examples", count, enough, message=message)
    return allowed


def most_misses(count: int, error_rate: float, confidence: float) -> int:
    """The most misses among ``count`` examples for which P(at most so many | probability ``error_rate`` each) ≤ 1 - ``confidence``;
    -1: none."""
    # All is rounded upwards, so the sum is never below what it stands for: the guarantee holds.
    up, down = (Context(_DIGITS, each, MIN_EMIN, MAX_EMAX) for each in (ROUND_CEILING, ROUND_FLOOR))
    one, rate = Decimal(1), Decimal(error_rate)
    hit, limit = up.subtract(one, rate), down.subtract(one, Decimal(confidence))
    ratio = up.divide(rate, down.subtract(one, rate))
    term, total = _power(hit, count, up), Decimal(0)
    for misses in range(count):
        total = up.add(total, term)
        if total > limit:
            # It may be that only the rounding is: then all digits count, if there are not too many.
            near = down.multiply(total, _UNROUNDED) <= limit
            if not (
                near and _is_exactly_within(count, misses, Fraction(error_rate), 1 - Fraction(confidence))
            ):
                return misses - 1
        term = up.divide(up.multiply(up.multiply(term, Decimal(count - misses)), ratio), Decimal(misses + 1))
    return count - 1


def _power(base: Decimal, exponent: int, context: Context) -> Decimal:
    """By squares, since rounding of the power itself is not promised."""
    found = Decimal(1)
    while exponent:
        if exponent & 1:
            found = context.multiply(found, base)
        base, exponent = context.multiply(base, base), exponent >> 1
    return found


def _is_exactly_within(count: int, misses: int, rate: Fraction, limit: Fraction) -> bool:
    """Whether the tail is at most the limit, in whole numbers; False as well where they are too long."""
    miss, whole = rate.numerator, rate.denominator
    if (misses + 1) * count * whole.bit_length() > _MOST_BITS:
        return False
    hit = whole - miss
    term: int = hit**count
    total = term
    for i in range(misses):
        term = term * (count - i) * miss // ((i + 1) * hit)
        total += term
    most: int = limit.numerator * whole**count
    return total * limit.denominator <= most


def examples_needed(error_rate: float, confidence: float) -> int:
    """The least number of examples that can support a guarantee: all of them must then be met."""
    # The quotient is rounded.
    count = max(1, math.ceil(math.log(1 - confidence) / math.log1p(-error_rate)) - 1)
    while most_misses(count, error_rate, confidence) < 0:
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class _Way:
    """What is kept of a part, one byte less for each hole, and what that costs; ``parts`` are ways or one hole."""

    kept: int
    cost: float
    parts: tuple[_Way, ...] = ()
    hole: Hole | None = None

    def holes(self) -> tuple[Hole, ...]:
        found = []
        work = [self]
        while work:
            way = work.pop()
            if way.hole is not None:
                found.append(way.hole)
            work += way.parts
        return tuple(sorted(found, key=lambda hole: hole.start))


class _Tree:
    """Occurrences that lie within each other: of those that overlap, the first one; of those of one part, the one named first."""

    def __init__(self, occurrences: Sequence[Occurrence], length: int, symbols: Symbols) -> None:
        names = symbols.names
        spans: dict[tuple[int, int], str] = {}
        for symbol, start, end in sorted(occurrences, key=lambda each: names.index(each.symbol)):
            spans.setdefault((start, end), symbol)
        # One hole in place of everything stands for every text: another symbol that has all of this one must not be its name.
        self.holes = [Hole(symbols.whole or WHOLE, 0, length)]
        self.children: list[list[int]] = [[]]
        around = [0]
        for (start, end), symbol in sorted(spans.items(), key=lambda each: (each[0][0], -each[0][1])):
            while self.holes[around[-1]].end <= start and len(around) > 1:
                around.pop()
            if end > self.holes[around[-1]].end:
                continue
            if (start, end) == (0, length):
                continue
            self.children[around[-1]].append(len(self.holes))
            around.append(len(self.holes))
            self.holes.append(Hole(symbol, start, end))
            self.children.append([])

    def frontier(self, costs: Sequence[float]) -> list[_Way]:
        """The best ways for the whole text, by what they keep."""
        found: list[list[_Way]] = [[] for _ in self.holes]
        # Children have higher numbers.
        for number in range(len(self.holes) - 1, -1, -1):
            hole = self.holes[number]
            inner = [self.holes[child] for child in self.children[number]]
            own = set(range(hole.start, hole.end)).difference(
                *(range(each.start, each.end) for each in inner)
            )
            # A text of no bytes is not free either, so that its hole costs less.
            ways = [_Way(len(own), math.fsum(costs[at] for at in own) if costs else _LEAST)]
            for child in self.children[number]:
                ways = _best(
                    _Way(a.kept + b.kept, a.cost + b.cost, (a, b)) for a in ways for b in found[child]
                )
                found[child] = []
            found[number] = _best([*ways, _Way(-1, 0.0, hole=hole)])
        return found[0]


def _best(ways: Iterable[_Way]) -> list[_Way]:
    """Those of which no other one keeps as much and costs no more, by what they keep."""
    found: list[_Way] = []
    for way in sorted(in_time(ways), key=lambda each: (-each.kept, each.cost)):
        if not found or way.cost < found[-1].cost:
            found.append(way)
    return found[::-1]


def _is_filling(partial: PartialProgram, text: bytes, occurrences: Iterable[Occurrence]) -> bool:
    ends: dict[tuple[str, int], list[int]] = {}
    for symbol, start, end in occurrences:
        ends.setdefault((symbol, start), []).append(end)
    if [(hole.start, hole.end) for hole in partial.holes] == [(0, len(partial.text))]:
        return True
    places, at = {0}, 0
    for hole in partial.holes:
        fixed = partial.text[at : hole.start]
        begun = {place + len(fixed) for place in places if text.startswith(fixed, place)}
        places = {end for place in begun for end in ends.get((hole.symbol, place), ())}
        at = hole.end
    rest = partial.text[at:]
    return any(text[place:] == rest for place in places)
