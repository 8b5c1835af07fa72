"""One case with one engine, in this process: every mask on the way of every output, and where the end is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from maskwright.conformance.cases import Case
from maskwright.conformance.protocol import Engine, Factory, Matcher, Tokens

OUTCOMES = ("pass", "too loose", "too strict", "refused", "crash")
"""``too loose``: something outside of the language is allowed.  ``too strict``: something in it is not.  ``refused``: the engine does
not take the source, the tokens or the operation.  ``crash``: it raised while reading, took too long, or its process ended.
Of a case with several, the last of these, but loose before strict: an invalid output does more harm."""
_MOST_PROBLEMS = 4
_SHOWN = 60


@dataclass
class Judgement:
    """What came of a case, and why."""

    outcome: str = "pass"
    problems: list[str] = field(default_factory=list)

    def note(self, outcome: str, problem: str) -> None:
        """Something is wrong; the worst outcome counts."""
        order = ("pass", "too strict", "too loose", "refused", "crash")
        if order.index(outcome) > order.index(self.outcome):
            self.outcome = outcome
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(f"{outcome}: {problem}")


class Judge:
    """Judges cases with one engine, which is set up once for each vocabulary."""

    def __init__(self, factory: Factory) -> None:
        self._factory = factory
        self._engines: dict[str, Engine] = {}

    def judge(self, case: Case) -> Judgement:
        """Never raises what an engine raises."""
        found = Judgement()
        tokens = case.tokens()
        try:
            start = self._engine(case, tokens).compile(case.kind, case.source)
            start()
        except Exception as error:
            if not case.is_empty:
                found.note("refused", _message(error))
            return found
        try:
            _Reading(case, tokens, start, found).run()
        except NotImplementedError as error:
            found.note("refused", _message(error))
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic of Rust is no Exception
            found.note("crash", _message(error))
        return found

    def _engine(self, case: Case, tokens: Tokens) -> Engine:
        key = json.dumps(case.changes, sort_keys=True)
        if key not in self._engines:
            self._engines[key] = self._factory(tokens)
        return self._engines[key]


class _Reading:
    def __init__(self, case: Case, tokens: Tokens, start: Callable[[], Matcher], found: Judgement) -> None:
        self.case, self.tokens, self.start, self.found = case, tokens, start, found
        self.by_text = tokens.by_text
        self.ends = set(tokens.ends)
        self.known = self.ends.union(*self.by_text.values())

    def run(self) -> None:
        for text in (*self.case.valid, *(self.case.language or ())):
            self.valid(text)
        for text in self.case.invalid:
            if any(self.reads(text, ids) is None for ids in self.spellings(text)):
                self.loose(f"{_shown(text)} is accepted")
        if self.case.language is not None:
            self.masks(self.case.language)
        if self.case.rollback:
            for text in self.case.valid:
                self.back_and_forth(self.tokens.encode(text))

    def loose(self, problem: str) -> None:
        self.found.note("too loose", problem)

    def strict(self, problem: str) -> None:
        self.found.note("too strict", problem)

    def spellings(self, text: bytes) -> tuple[list[int], list[int]]:
        """As the tokenizer has it, and byte by byte."""
        return self.tokens.encode(text), [self.by_text[text[i : i + 1]][0] for i in range(len(text))]

    # --- outputs

    def valid(self, text: bytes) -> None:
        """Some engines let a model write a text in the tokenizer's spelling only: that is no less text."""
        matcher = self.start()
        ids = self.tokens.encode(text)
        stopped = self.follow(matcher, ids)
        if stopped is not None:
            self.strict(f"{_shown(text)} is refused behind {_shown(self.text(ids[:stopped]))}")
            return
        allowed = self.look(matcher, ids)
        for end in self.tokens.ends:
            if end not in allowed:
                self.strict(f"end id {end} is not allowed behind {_shown(text)}")
        end = max(self.ends)
        if end in allowed and not matcher.accept(end):
            self.strict(f"end id {end} is in the mask and refused behind {_shown(text)}")

    def reads(self, text: bytes, ids: list[int]) -> int | None:
        """How many tokens of an output are taken; None for all of them, and an end."""
        matcher = self.start()
        stopped = self.follow(matcher, ids)
        if stopped is None and not self.ends.intersection(self.look(matcher, ids)):
            return len(ids)
        return stopped

    def follow(self, matcher: Matcher, ids: list[int]) -> int | None:
        """Reads tokens as long as the masks have them; the place of the first that is refused."""
        for i, token in enumerate(ids):
            if token not in self.look(matcher, ids[:i]) or not matcher.accept(token):
                return i
        return None

    def look(self, matcher: Matcher, before: list[int]) -> set[int]:
        """A mask, once it is seen that it has nothing but tokens, and an end only behind whole values."""
        allowed = set(matcher.allowed())
        if stray := allowed - self.known:
            self.loose(f"id {min(stray)}, which is no token, is allowed behind {_shown(self.text(before))}")
        if (
            self.case.kind == "json_schema"
            and not self.ends.isdisjoint(allowed)
            and not _is_json(self.text(before))
        ):
            self.loose(f"the end is allowed behind {_shown(self.text(before))}")
        return allowed

    def text(self, ids: list[int]) -> bytes:
        return b"".join(self.tokens.texts[token] for token in ids)

    # --- whole masks

    def masks(self, language: tuple[bytes, ...]) -> None:
        """At every place of every text, the mask must have nothing but what the list of texts says, and of that all that the
        tokenizer's spelling needs; all of it, by two ways to get there, where the case is exact."""
        needed = {
            self.text(ids[:i]): ids[i] for ids in map(self.tokens.encode, language) for i in range(len(ids))
        }
        ways: dict[bytes, list[list[int]]] = {b"": [[]]}
        work = [b""]
        for before in work:
            rests = [text[len(before) :] for text in language if text.startswith(before)]
            right = {
                t for rest in rests for n in range(1, len(rest) + 1) for t in self.by_text.get(rest[:n], ())
            }
            whole = right | (self.ends if b"" in rests else set())
            least = whole if self.case.exact else {needed[before]} if before in needed else set()
            for way in ways[before]:
                self.compare(way, whole, least)
            for token in sorted(right):
                after = before + self.tokens.texts[token]
                if after not in ways:
                    ways[after] = []
                    work.append(after)
                # The first way, and the last one.
                ways[after][1:] = [[*ways[before][-1], token]]

    def compare(self, way: list[int], most: set[int], least: set[int]) -> None:
        matcher = self.start()
        if self.follow(matcher, way) is not None:
            if self.case.exact:
                self.strict(f"{_shown(self.text(way))} is refused, in the tokens {way}")
            return
        allowed = self.look(matcher, way)
        self.differ(allowed, most, least, way)
        wrong = next(t for t, text in enumerate(self.tokens.texts) if text and t not in most)
        if wrong not in allowed and matcher.accept(wrong):
            self.loose(f"{self.name(wrong)} is not in the mask and accepted behind {_shown(self.text(way))}")

    def differ(self, allowed: Collection[int], most: set[int], least: set[int], way: list[int]) -> None:
        behind = f"behind {_shown(self.text(way))}"
        if more := sorted(set(allowed).difference(most)):
            self.loose(f"{self.name(more[0])} is allowed {behind}")
        if less := sorted(least.difference(allowed)):
            self.strict(f"{self.name(less[0])} is not allowed {behind}")

    def name(self, token: int) -> str:
        if token in self.ends:
            return f"end id {token}"
        return _shown(self.tokens.texts[token]) if token < len(self.tokens.texts) else f"id {token}"

    # --- rollback

    def back_and_forth(self, ids: list[int]) -> None:
        """Wherever tokens are taken back, masks are those of a matcher that never read them."""
        straight = self.start()
        masks = [set(straight.allowed())]
        for token in ids:
            if not straight.accept(token):
                return
            masks.append(set(straight.allowed()))
        matcher = self.start()
        for at, token in enumerate(ids, 1):
            matcher.accept(token)
            for count in sorted({1, min(2, at), at}):
                matcher.rollback(count)
                self.same(matcher, masks, ids[: at - count])
                for again in ids[at - count : at]:
                    if not matcher.accept(again):
                        self.strict(
                            f"{self.name(again)} is refused where it was read before it was taken back"
                        )
                        return
                self.same(matcher, masks, ids[:at])
        if self.case.rollback == "end" and matcher.accept(min(self.ends)):
            matcher.rollback(1)
            self.same(matcher, masks, ids)

    def same(self, matcher: Matcher, masks: list[set[int]], way: list[int]) -> None:
        self.differ(matcher.allowed(), masks[len(way)], masks[len(way)], way)


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    except RecursionError:  # deeper than Python's reader goes
        return True
    return True


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}...{text[-_SHOWN // 2 :]}")


def _message(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {' '.join(lines)[:300]}"
