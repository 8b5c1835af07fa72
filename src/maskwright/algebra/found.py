"""A grammar and phrases that no two lexemes share.

Where no phrase can begin in one lexeme and end in another, a text contains it exactly if one of its lexemes does.  Then nothing but
the phrases found so far matters between two lexemes, in whatever order they came:

    (A, M): the texts of rule A that contain all phrases of M          (A, {}) = A, as it is
    A: B C      (A, M): (B, N) (C, M - N)  for all N in M

Records stay records: each phrase is one more obligation, reached by a member whose value (or name) contains it.  So objects keep their
undeclared members, and arrays their different items.  In the name of an undeclared member a phrase counts where its characters
are written as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from maskwright.algebra.automaton import Moves
from maskwright.algebra.rule_places import neighbours
from maskwright.algebra.rules import Rules, moved
from maskwright.algebra.written import text_of, textless, word_text
from maskwright.base.deadline import check_time
from maskwright.errors import LimitError
from maskwright.ir.grammar import (
    EMPTY,
    FAIL,
    Body,
    Boundary,
    Choice,
    Distinct,
    Expr,
    Grammar,
    Import,
    Indented,
    Keyset,
    Lexeme,
    Lexing,
    Member,
    OtherMembers,
    Record,
    Ref,
    Repeated,
    Seq,
    Switch,
    Term,
    Tokens,
    Values,
    Words,
)
from maskwright.limits import Limits
from maskwright.regular.dfa import intersect, least_length, partition
from maskwright.regular.expressions import EVERY_TEXT, Lit, Regular, alt, cat

_Leaf = Lexeme | Keyset | Words


class Shared(Exception):
    """What is found in lexemes does not tell, and why: a phrase may lie in two of them, or in the marks of an object, say, or two items
    are tied to each other."""


class Phrases:
    """Which phrases the texts of a lexeme contain, as bits."""

    def __init__(self, phrases: Sequence[str], limits: Limits) -> None:
        self.phrases = phrases
        self.limits = limits
        self.languages = [cat(EVERY_TEXT, Lit(phrase), EVERY_TEXT) for phrase in phrases]
        self._known: dict[object, dict[int, _Leaf]] = {}

    def split(self, lexeme: _Leaf) -> dict[int, _Leaf]:
        """By set of phrases, the texts that contain exactly these; the lexeme itself where there is one such set."""
        key = lexeme if isinstance(lexeme, Keyset) else lexeme.key
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (
                self._words(lexeme) if isinstance(lexeme, Words) else self._split(lexeme)
            )
        return found

    def _words(self, words: Words) -> dict[int, _Leaf]:
        sets: dict[int, dict[bytes, int]] = {}
        for word, tag in words.items():
            check_time()
            sets.setdefault(self.found_in(word_text(word)), {})[word] = tag
        return {bits: Words.tagged(tags) for bits, tags in sets.items()}

    def found_in(self, text: str) -> int:
        """Of one text."""
        return sum(1 << i for i, phrase in enumerate(self.phrases) if phrase in text)

    def _split(self, lexeme: Lexeme | Keyset) -> dict[int, _Leaf]:
        language = text_of(lexeme)
        possible = [
            i
            for i, each in enumerate(self.languages)
            if least_length([language, each], [], self.limits) is not None
        ]
        if not possible:
            return {0: lexeme}
        found: dict[int, _Leaf] = {}
        for flags, part in partition([language, *[self.languages[i] for i in possible]], self.limits):
            if flags[0]:
                bits = sum(1 << i for i, yes in zip(possible, flags[1:], strict=True) if yes)
                found[bits] = Lexeme(("regular", part), part)
        return {next(iter(found)): lexeme} if len(found) == 1 else found

    def cut(self, terminal: Lexeme) -> tuple[Lexeme | None, bool]:
        """The texts of a terminal with none of the phrases (None: there is none), and whether there are others."""
        parts: list[Lexeme | None] = [None, None]
        for flags, part in partition([text_of(terminal), alt(*self.languages)], self.limits):
            if flags[0]:
                # Two terminals that have the same texts left are two.
                parts[flags[1]] = Lexeme((terminal.key, part), part)
        return (terminal, False) if parts[True] is None else (parts[False], True)

    def check_apart(self, leaves: Sequence[_Leaf], grammar: Grammar) -> None:
        """Raises ``Shared`` where a phrase may begin in one lexeme of a grammar and end in another.

        A terminal may end with the begin of a phrase if each such text would be longer with the next character: then the
        longest match takes that as well.
        """
        beside = _Neighbours(grammar)
        languages = [text_of(leaf) for leaf in leaves]
        for phrase in self.phrases:
            for at in range(1, len(phrase)):
                before = cat(EVERY_TEXT, Lit(phrase[:at]))
                rest = phrase[at:]
                begins = alt(
                    cat(Lit(rest), EVERY_TEXT), *[Lit(rest[:length]) for length in range(1, len(rest))]
                )
                seconds = [
                    leaf for leaf, text in zip(leaves, languages, strict=True) if self.common(text, begins)
                ]
                for leaf, text in zip(leaves, languages, strict=True) if seconds else ():
                    if not self.common(text, before):
                        continue
                    longer = beside.longer(leaf)
                    if longer is not None and self.goes_on(text, before, rest[0], alt(text, longer)):
                        continue
                    for second in seconds:
                        if beside.may_stand(leaf, second):
                            one, other = beside.name(leaf), beside.name(second)
                            raise Shared(f"{phrase!r} may begin in {one} and end in {other}")

    def common(self, a: Regular, b: Regular) -> bool:
        """Whether two languages have a text in common."""
        return least_length([a, b], [], self.limits) is not None

    def goes_on(self, language: Regular, before: Regular, character: str, longer: Regular) -> bool:
        """Whether each text that ends in this way is one of ``longer`` with one more character."""
        ending = intersect([language, before], self.limits)
        return least_length([cat(ending, Lit(character))], [longer], self.limits) is None


class _Neighbours:
    """Which lexemes of a grammar may stand next to each other."""

    def __init__(self, grammar: Grammar) -> None:
        self._lexing = grammar.lexing or Lexing(())
        self._numbers = {terminal.key: number for number, terminal in enumerate(self._lexing.terminals)}
        self._behind = neighbours(grammar) if self._numbers else []

    def _number(self, leaf: _Leaf) -> int | None:
        return None if isinstance(leaf, Keyset) else self._numbers.get(leaf.key)

    def longer(self, leaf: _Leaf) -> Regular | None:
        """Texts longer than a match that make it none, beside those of the lexeme itself; None: it may end wherever it matches."""
        number = self._number(leaf)
        if number is None or number in self._lexing.early:
            return None
        return alt(*[language for owner, language in self._lexing.refused if owner == number])

    def name(self, leaf: _Leaf) -> str:
        """For messages."""
        number = self._number(leaf)
        return self._lexing.names[number] if number is not None and self._lexing.names else "a lexeme"

    def may_stand(self, first: _Leaf, second: _Leaf) -> bool:
        """Whether the second one may stand directly behind the first one."""
        before, behind = self._number(first), self._number(second)
        return before is None or behind is None or bool(self._behind[before] >> behind & 1)


class FoundStates(Moves):
    """The phrases found so far as the states of an automaton, which moves over whole lexemes.

    ``required`` must be found, ``forbidden`` must not: the last state is behind one of these.
    """

    def __init__(self, phrases: Phrases, required: int) -> None:
        self.phrases = phrases
        self.required = (1 << required) - 1
        wrong = len(phrases.phrases) > required
        self.count = self.required + 1 + wrong
        self.accepting = frozenset([self.required])
        self.settled = frozenset([self.count - 1])
        self._between: dict[tuple[object, int, int], Lexeme | Keyset] = {}

    def _after(self, state: int, found: int) -> int:
        if state > self.required or found > self.required:
            return self.required + 1
        return state | found

    def exits(self, lexeme: Lexeme | Keyset, state: int) -> list[int]:
        return list(dict.fromkeys([self._after(state, found) for found in self.phrases.split(lexeme)]))

    def between(self, lexeme: Lexeme | Keyset, state: int, target: int) -> Lexeme | Keyset:
        key = (lexeme if isinstance(lexeme, Keyset) else lexeme.key, state, target)
        made = self._between.get(key)
        if made is None:
            split = self.phrases.split(lexeme)
            parts = [part for found, part in split.items() if self._after(state, found) == target]
            if len(parts) == len(split):
                made = lexeme
            else:
                language = alt(*[text_of(part) for part in parts])
                made = Lexeme(("regular", language), language)
            self._between[key] = made
        return made

    def words(self, words: Words, state: int) -> dict[int, Words]:
        found: dict[int, dict[bytes, int]] = {}
        for bits, part in self.phrases.split(words).items():
            assert isinstance(part, Words)
            found.setdefault(self._after(state, bits), {}).update(dict(part.items()))
        return {target: Words.tagged(tags) for target, tags in found.items()}


def leaves_of(rules: Rules) -> list[_Leaf]:
    """All lexemes of a grammar and of what it imports.  Raises ``Inexact`` for tokens."""
    found: dict[object, _Leaf] = {}
    seen = {rules.start}
    for rule in (work := [rules.start]):
        check_time()
        parts: list[Body] = [rules.bodies[rule]]
        for part in parts:
            after: list[int] = []
            if isinstance(part, (Seq, Choice)):
                parts += part.items
            elif isinstance(part, Ref):
                after.append(part.rule)
            elif isinstance(part, Import):
                after.append(rules.imported(part))
            elif isinstance(part, Repeated):
                after += [part.first, part.rest]
            elif isinstance(part, Indented):
                after.append(part.rule)
            elif isinstance(part, Distinct):
                parts.append(part.array)
            elif isinstance(part, Switch):
                parts += part.cases
                leaves = [part.lexemes] if isinstance(part.lexemes, Words) else list(part.lexemes)
                parts += [Term(leaf) for leaf in leaves]
            elif isinstance(part, Record):
                parts += [part.open, part.close_empty, part.close, part.comma]
                parts += [part.colon] if part.has_colons else []
                parts += [Term(_key(member.name, part)) for member in part.members]
                parts += [Term(other.keys) for other in part.others if other.keys is not None]
                for values in (*[m.values for m in part.members], *[o.values for o in part.others]):
                    after += [value for value, _ in values]
            else:
                leaf = part.lexeme
                if isinstance(leaf, (Tokens, Boundary)):
                    raise textless(leaf)
                found.setdefault(leaf if isinstance(leaf, Keyset) else leaf.key, leaf)
            work += [each for each in dict.fromkeys(after) if each not in seen]
            seen.update(after)
    return list(found.values())


def _key(name: str, record: Record) -> Lexeme:
    return Lexeme(("name", record.spelling, name), Lit(name), record.spelling)


class Found:
    """The texts of a grammar without a lexer that contain some phrases and do not contain others."""

    def __init__(self, rules: Rules, phrases: Phrases, required: int) -> None:
        self.rules = rules
        self.limits = rules.limits
        self.phrases = phrases
        self.all = (1 << required) - 1
        self.out = Grammar()
        self.made: dict[tuple[int, int], int] = {}
        self.tails: dict[tuple[int, int], int] = {}
        self.items: dict[tuple[Repeated, int], int] = {}
        self.rests: dict[int, Seq] = {}
        self.to_make: list[tuple[int, Body, int]] = []
        self.forbids = len(phrases.phrases) > required
        self.unseen: dict[tuple[object, int], Lexeme] = {}
        """Names of undeclared members, by key and by a phrase that is not looked for in them."""

    def grammar(self) -> Grammar:
        """It may have no text."""
        self.out.start = self.rule(self.rules.start, self.all)
        while self.to_make:
            check_time()
            index, body, wanted = self.to_make.pop()
            self.out.rules[index] = self.body(body, wanted)
        return self.out

    def check_names(self) -> None:
        """Raises ``Shared`` where a phrase may stand in a name that it is not looked for in."""
        for (_, phrase), names in self.unseen.items():
            if self.phrases.common(text_of(names), self.phrases.languages[phrase]):
                raise Shared("a phrase may stand in the name of an undeclared member")

    def rule(self, rule: int, wanted: int) -> int:
        key = (rule, wanted)
        if key not in self.made:
            index = self.made[key] = self.reserve(self.rules.names[rule])
            self.to_make.append((index, self.rules.bodies[rule], wanted))
            if rule in self.rules.captures:
                self.out.captures[index] = self.rules.captures[rule]
        return self.made[key]

    def reserve(self, name: str) -> int:
        if len(self.out.rules) >= self.limits.max_pairs:
            raise LimitError("max_pairs", len(self.out.rules) + 1, self.limits.max_pairs)
        return self.out.reserve(name)

    def body(self, body: Body, wanted: int) -> Body:
        if not wanted and not self.forbids:
            return moved(body, lambda rule: self.rule(rule, 0))
        if isinstance(body, Record):
            return self.record(body, wanted)
        if isinstance(body, Repeated):
            return self.repeated(body, wanted)
        if isinstance(body, Distinct):
            if body.tie is not None:
                raise Shared
            # How many values are left for an item is no longer known: the engine looks.
            return replace(body, array=self.expr(body.array, wanted), free=None, least=0, provided=())
        assert not isinstance(body, Indented)
        return self.expr(body, wanted)

    def split(self, lexeme: _Leaf, wanted: int) -> dict[int, _Leaf]:
        """By what of the wanted is in them, the texts of a lexeme; none that has something forbidden."""
        parts: dict[int, list[_Leaf]] = {}
        split = self.phrases.split(lexeme)
        for bits, part in split.items():
            if bits <= self.all:
                parts.setdefault(bits & wanted, []).append(part)
        found: dict[int, _Leaf] = {}
        for bits, alike in parts.items():
            if len(alike) == len(split):
                found[bits] = lexeme
            elif len(alike) == 1:
                found[bits] = alike[0]
            elif isinstance(lexeme, Words):
                found[bits] = Words.tagged(
                    {w: tag for each in alike if isinstance(each, Words) for w, tag in each.items()}
                )
            else:
                language = alt(*[text_of(each) for each in alike])
                found[bits] = Lexeme(("regular", language), language)
        return found

    def expr(self, expr: Expr, wanted: int) -> Expr:
        check_time()
        if not wanted and not self.forbids:
            body = moved(expr, lambda rule: self.rule(rule, 0))
            assert isinstance(body, (Term, Ref, Seq, Choice, Switch, Import))
            return body
        if isinstance(expr, Ref):
            return Ref(self.rule(expr.rule, wanted))
        if isinstance(expr, Import):
            return Ref(self.rule(self.rules.imported(expr), wanted))
        if isinstance(expr, Term):
            assert not isinstance(expr.lexeme, (Tokens, Boundary))
            found = self.split(expr.lexeme, wanted).get(wanted)
            return FAIL if found is None else Term(found)
        if isinstance(expr, Choice):
            return Choice(tuple([self.expr(item, wanted) for item in expr.items]))
        if isinstance(expr, Switch):
            return self.switch(expr, wanted)
        return self.sequence(expr, wanted)

    def switch(self, switch: Switch, wanted: int) -> Expr:
        ways: list[Expr] = []
        leaves: list[tuple[_Leaf, Expr]] = []
        if isinstance(switch.lexemes, Words):
            words = switch.lexemes
            leaves += [(words.where(tag.__eq__), switch.cases[tag]) for tag in sorted(set(words.tags))]
        else:
            leaves += zip(switch.lexemes, switch.cases, strict=True)
        for leaf, case in leaves:
            for bits, part in self.split(leaf, wanted).items():
                ways.append(Seq((Term(part), self.expr(case, wanted & ~bits))))
        return Choice(tuple(ways))

    def sequence(self, sequence: Seq, wanted: int) -> Expr:
        if not sequence.items:
            return FAIL if wanted else EMPTY
        item = sequence.items[0]
        if len(sequence.items) == 1:
            return self.expr(item, wanted)
        rest = self.rests.get(id(sequence))
        if rest is None:
            rest = self.rests[id(sequence)] = Seq(sequence.items[1:])
        if isinstance(item, Term) and not isinstance(item.lexeme, (Tokens, Boundary)):
            split = self.split(item.lexeme, wanted)
            cases = tuple([self.tail(rest, wanted & ~bits) for bits in split])
            if len(split) > 1 and not any(isinstance(part, (Words, Keyset)) for part in split.values()):
                lexemes = [part for part in split.values() if isinstance(part, Lexeme)]
                return Switch(tuple(lexemes), cases)
            ways = [Seq((Term(part), case)) for part, case in zip(split.values(), cases, strict=True)]
        else:
            ways = [
                Seq((self.expr(item, some), self.tail(rest, wanted & ~some))) for some in _subsets(wanted)
            ]
        return ways[0] if len(ways) == 1 else Choice(tuple(ways))

    def tail(self, sequence: Seq, wanted: int) -> Expr:
        """A rule of what is left of a sequence."""
        key = (id(sequence), wanted)
        if key not in self.tails:
            index = self.tails[key] = self.reserve("rest of a sequence")
            self.to_make.append((index, sequence, wanted))
        return Ref(self.tails[key])

    def repeated(self, body: Repeated, wanted: int) -> Body:
        """The items one by one, as long as something is wanted of them."""
        if not wanted:
            return Repeated(self.rule(body.first, 0), self.rule(body.rest, 0), body.min, body.max)
        if body.max == 0:
            return FAIL
        more = None if body.max is None else body.max - 1
        behind = Repeated(body.rest, body.rest, max(body.min - 1, 0), more)
        ways = []
        for some in _subsets(wanted):
            ways.append(Seq((Ref(self.rule(body.first, some)), self.behind(behind, wanted & ~some))))
        return Choice(tuple(ways))

    def behind(self, body: Repeated, wanted: int) -> Expr:
        """A rule of the other items, one for all places that say the same."""
        key = (body, wanted)
        if key not in self.items:
            index = self.items[key] = self.reserve("more items")
            self.to_make.append((index, body, wanted))
        return Ref(self.items[key])

    # --- records

    def record(self, record: Record, wanted: int) -> Body:
        marks = [
            record.open,
            record.close_empty,
            record.comma,
            record.close,
            *([record.colon] if record.has_colons else []),
        ]
        for mark in marks:
            assert not isinstance(mark.lexeme, (Tokens, Boundary))
            if any(self.phrases.split(mark.lexeme)):
                raise Shared
        if record.others and not record.keyless and self.forbids:
            raise Shared
        obligations = record.obligations + wanted.bit_count()
        if obligations > self.limits.max_object_obligations:
            raise LimitError("max_object_obligations", obligations, self.limits.max_object_obligations)
        bits = {1 << i: 1 << record.obligations + n for n, i in enumerate(_members(wanted))}
        members: list[Member] = []
        for member in record.members:
            split = self.phrases.split(_key(member.name, record))
            if len(split) > 1:
                raise Shared
            (found,) = split
            values = () if found > self.all else self.values(member.values, found, wanted, bits)
            members.append(replace(member, values=values))
        others: list[OtherMembers] = []
        for other in record.others:
            others += self.others(other, record, wanted, bits)
        return replace(record, members=tuple(members), others=tuple(others), obligations=obligations)

    def values(self, values: Values, found: int, wanted: int, bits: dict[int, int]) -> Values:
        """The ways to write a value, and the obligations that each reaches; ``found``: in the member's name."""
        made: list[tuple[int, int]] = []
        for rule, obligations in values:
            for some in _subsets(wanted & ~found):
                reached = sum(bits[1 << i] for i in _members(some | (found & wanted)))
                made.append((self.rule(rule, some), obligations | reached))
        return tuple(made)

    def others(
        self, other: OtherMembers, record: Record, wanted: int, bits: dict[int, int]
    ) -> list[OtherMembers]:
        """Undeclared members, by the phrases that stand in their names as they are."""
        if other.keys is None:
            return [OtherMembers(None, self.values(other.values, 0, wanted, bits))]
        plain = [
            i for i in _members(wanted) if record.spelling == "printed" and _is_plain(self.phrases.phrases[i])
        ]
        self.unseen |= {(other.keys.key, i): other.keys for i in _members(wanted) if i not in plain}
        names = other.keys.regular
        made: list[OtherMembers] = []
        for flags, part in partition([names, *[self.phrases.languages[i] for i in plain]], self.limits):
            if flags[0]:
                found = sum(1 << i for i, yes in zip(plain, flags[1:], strict=True) if yes)
                keys = (
                    other.keys
                    if part is names
                    else Lexeme(("texts", record.spelling, part), part, record.spelling)
                )
                made.append(OtherMembers(keys, self.values(other.values, found, wanted, bits)))
        return made


def _is_plain(phrase: str) -> bool:
    """Whether a JSON printer writes each character as it is."""
    return all(" " <= c <= "~" and c not in '"\\<>&' for c in phrase)


def _members(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _subsets(bits: int) -> Iterator[int]:
    """All sets within one, the whole first."""
    some = bits
    while True:
        yield some
        if not some:
            return
        some = (some - 1) & bits
