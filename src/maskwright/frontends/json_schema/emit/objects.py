"""Object groups -> records."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, TypeAlias

from maskwright.base.deadline import check_time, in_time, let_go
from maskwright.errors import LimitError
from maskwright.frontends.json_schema.algebra.clauses import propagate_units, told_apart
from maskwright.frontends.json_schema.algebra.groups import (
    Absent,
    Clause,
    Conjunction,
    Keys,
    ObjectGroup,
    Some,
    StringGroup,
    conjoin,
    lesser,
    nothing,
)
from maskwright.frontends.json_schema.algebra.keys import KeyMap, is_false, string_groups
from maskwright.frontends.json_schema.algebra.strings import (
    agreed_language,
    agreed_pattern,
    is_disputed,
    is_text,
    pattern_language,
    string_language,
)
from maskwright.frontends.json_schema.algebra.typed import negation
from maskwright.frontends.json_schema.texts.lexemes import string_lexeme
from maskwright.ir.grammar import FAIL, Expr, Member, OtherMembers, Record, Ref, Values
from maskwright.limits import Limits
from maskwright.regular.determinize import minimal_dfa
from maskwright.regular.dfa import (
    count_texts,
    difference,
    finite_texts,
    is_empty,
    matcher,
    partition,
)
from maskwright.regular.expressions import EVERY_TEXT, NOTHING, Lit, Regular, alt, is_nothing
from maskwright.regular.memo import remembered

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.algebra.normalize import Normalizer
    from maskwright.frontends.json_schema.algebra.trivially_empty import TriviallyEmpty
    from maskwright.frontends.json_schema.emit.emitter import Emitter
    from maskwright.frontends.json_schema.read.options import SchemaOptions

_FEW_NAMES = 256
_FEW_GOALS = 6
"""The value of one member may be written in so many ways, as a power of two."""

Atom: TypeAlias = str | Conjunction
"""What tells keys apart: a pattern, or a conjunction that they satisfy as strings."""


class ObjectRules:
    """Builds the records of objects."""

    emitter: Emitter
    options: SchemaOptions
    limits: Limits
    normalizer: Normalizer
    trivially_empty: TriviallyEmpty
    _within: dict[Regular, Within]
    _disputed: dict[tuple[Atom, ...], Regular]

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.options = emitter.options
        self.limits = emitter.limits
        self.normalizer = emitter.normalizer
        self.trivially_empty = emitter.normalizer.trivially_empty
        self._within = {}
        self._disputed = {}

    def release(self) -> None:
        """Let go of what refers back, so that nothing waits for the garbage collector."""
        self.emitter = None  # type: ignore[assignment]
        let_go(self._within, self._disputed)

    def object(self, group: ObjectGroup) -> Expr:
        """The objects of a group."""
        if self.options.additional_properties is not True:
            group = closed(group)
        if group.clauses:
            group = propagate_units(group, self.normalizer)
        if len(group.clauses) > _FEW_GOALS:
            group = told_apart(group, self.normalizer)
        keys = KeyMap(group, self.normalizer)
        most = self.limits.max_object_obligations
        if len(group.clauses) > most:
            raise LimitError("max_object_obligations", len(group.clauses), most)
        required = frozenset(group.required)
        members: list[Member] = []
        for name in keys.declared:
            check_time()
            text, needed = is_text(name), name in required
            if not text and not needed:
                continue
            if not text:
                members.append(Member(name, (), True, self._absent(keys, name)))
            elif group.clauses:
                ways = self._ways(keys.value(name), self._wanted_of(keys, name))
                members.append(Member(name, ways, needed, self._absent(keys, name)))
            else:
                members.append(Member(name, ((self.emitter.rule(keys.value(name)), 0),), needed))
        others: list[OtherMembers] = []
        spelling = self.emitter.spelling
        # Members that must be counted are listed, where they are few; else undeclared ones come in any order.
        listed = self.options.property_order == "any" or group.clauses or group.min_members
        undeclared = self._undeclared(keys)
        if self._too_few(group, len(members), [language for _, _, language in undeclared]):
            return FAIL
        most_members = group.max_members
        for kind, value, language in undeclared:
            ways = self._ways(value, kind.wanted(group.clauses))
            names = kind.names(language, self.limits, group.min_members) if listed else None
            if names is not None:
                members += [Member(name, ways) for name in names if is_text(name)]
                continue
            others.append(OtherMembers(string_lexeme(language, spelling), ways))
            if any(obligations for _, obligations in ways):
                most_members = lesser(most_members, self._without_running_out(kind, language, group))
        marks = self.emitter.marks
        record = Record(
            tuple(members),
            tuple(others),
            marks.open_object,
            marks.close_empty_object,
            marks.colon,
            marks.comma,
            marks.close_object,
            group.min_members,
            most_members,
            len(group.clauses),
            self.options.property_order == "schema",
            True,
            spelling=spelling,
        )
        return Ref(self.emitter.grammar.add("object", record))

    # --- members

    def _absent(self, keys: KeyMap, name: str) -> int:
        """The obligations that are reached when a member is left out."""
        absent = 0
        for bit, clause in enumerate(keys.group.clauses):
            for atom in clause:
                if isinstance(atom, Absent):
                    missing: Absent = atom
                    if missing.name == name:
                        absent |= 1 << bit
        return absent

    def _wanted_of(self, keys: KeyMap, name: str) -> list[list[Conjunction]]:
        """What the value of a member must satisfy, in one of these ways, to reach each clause's obligation."""
        wanted: list[list[Conjunction]] = []
        for clause in keys.group.clauses:
            ways: list[Conjunction] = []
            for atom in clause:
                if isinstance(atom, Some):
                    some: Some = atom
                    if keys.holds(some.keys, name):
                        ways.append(some.value)
            wanted.append(ways)
        return wanted

    def _ways(self, value: Conjunction, wanted: list[list[Conjunction]]) -> Values:
        """The value's rules, split by what it reaches."""
        ways: list[tuple[Conjunction, int]] = [(value, 0)]
        by_condition: dict[Conjunction, int] = {}
        for bit, conditions in enumerate(wanted):
            for condition in conditions:
                by_condition[condition] = by_condition.get(condition, 0) | 1 << bit
        for condition, bits in by_condition.items():
            if not condition:
                ways = [(way, obligations | bits) for way, obligations in ways]
                continue
            opposite = negation(condition, condition[0].pointer)
            split = [
                (conjoin(way, more), obligations | extra)
                for way, obligations in ways
                for more, extra in ((condition, bits), (opposite, 0))
            ]
            ways = [way for way in split if not self.trivially_empty.conjunction(way[0])]
            if len(ways) > self.limits.max_member_ways:
                raise LimitError("max_member_ways", len(ways), self.limits.max_member_ways)
        return tuple([(self.emitter.rule(way), obligations) for way, obligations in ways])

    # --- members that are not declared

    def _undeclared(self, keys: KeyMap) -> list[tuple[Kind, Conjunction, Regular]]:
        """The kinds of undeclared members that may come, what their values must satisfy, and their keys."""
        found: list[tuple[Kind, Conjunction, Regular]] = []
        for kind in self._kinds(keys) if keys.general or keys.group.clauses else _ONE_KIND:
            value = kind.value(keys)
            if is_false(value):
                continue
            language = EVERY_TEXT
            if kind.within is not None:
                language = self._without(self._agreed(kind), keys.declared)
                needed = keys.group.min_members or keys.group.clauses
                if needed and is_empty(language):
                    # Better keys that not all validators count to it than none.
                    language = self._without(self._all(kind), keys.declared)
                if is_empty(language):
                    continue
            found.append((kind, value, language))
        return found

    def _too_few(self, group: ObjectGroup, declared: int, languages: list[Regular]) -> bool:
        """Whether there are fewer names in all than members needed; names that are few are listed, and counted later."""
        missing = group.min_members - declared
        if missing <= _FEW_NAMES or EVERY_TEXT in languages:
            return False
        for language in languages:
            count = count_texts(language, missing - 1, self.limits)
            if count is None:
                return False
            missing -= count
            if missing <= 0:
                return False
        return True

    def _without_running_out(self, kind: Kind, language: Regular, group: ObjectGroup) -> int | None:
        """With no more members than this, the keys of a kind suffice for whatever obligations its values have to reach."""
        if kind.within is None or language == EVERY_TEXT:
            return None
        count = count_texts(language, self.limits.max_count, self.limits)
        return None if count is None else count + len(group.required)

    def _kinds(self, keys: KeyMap) -> list[Kind]:
        """The undeclared keys, told apart by all patterns and schemas for keys."""
        atoms: dict[Atom, None] = {}
        for rule, _ in keys.general:
            atoms.update(dict.fromkeys(_atoms(rule)))
        for clause in keys.group.clauses:
            for atom in clause:
                if not isinstance(atom, Absent):
                    atoms.update(dict.fromkeys(_atoms(atom.keys)))
        if not atoms:
            return _ONE_KIND
        found = tuple(atoms)
        if len(found) == 1:
            return [Kind(None, frozenset(found), found), Kind(None, frozenset(), found)]
        return [
            Kind(language, frozenset(compress(found, flags)), found)
            for flags, language in in_time(self._classes(found))
        ]

    def _classes(self, atoms: tuple[Atom, ...]) -> list[tuple[bytes, Regular]]:
        """The keys that satisfy the same of the atoms (a byte for each, 1 or 0)."""
        return _classes(tuple([self._language(atom) for atom in atoms]), self.limits)

    def _all(self, kind: Kind) -> Regular:
        """The keys of a kind, by what this dialect says."""
        if kind.language is not None:
            return kind.language
        within = kind.within or frozenset[Atom]()
        return dict(self._classes(kind.atoms)).get(bytes([atom in within for atom in kind.atoms]), NOTHING)

    def _agreed(self, kind: Kind) -> Regular:
        """The keys that all validators count to a kind."""
        atoms, limits = kind.atoms, self.limits
        if kind.language is None:
            # Told apart by one atom: nothing has to be compared.
            if kind.within:
                return self._satisfying(atoms[0], 1)
            return _difference(EVERY_TEXT, self._satisfying(atoms[0], -1), limits)
        if atoms not in self._disputed:
            disputed = [keys for atom in atoms if not is_nothing(keys := self._disputed_of(atom))]
            # One automaton, which each of many kinds is compared with.
            self._disputed[atoms] = minimal_dfa(alt(*disputed), limits).to_regular() if disputed else NOTHING
        disputed_keys = self._disputed[atoms]
        if is_nothing(disputed_keys):
            return kind.language
        return _difference(kind.language, disputed_keys, limits)

    def _disputed_of(self, atom: Atom) -> Regular:
        """The keys that satisfy a pattern or schema for some validators only."""
        if isinstance(atom, str) and not is_disputed(atom, -1):
            return NOTHING
        widest, narrowest = self._satisfying(atom, -1), self._satisfying(atom, 1)
        return NOTHING if widest == narrowest else _difference(widest, narrowest, self.limits)

    def _satisfying(self, atom: Atom, agreed: int) -> Regular:
        """The keys that satisfy a pattern or schema for all validators (1), or for any of them (-1)."""
        if isinstance(atom, str):
            return agreed_pattern(atom, self.limits, agreed)
        groups = string_groups(self.normalizer, atom)
        if StringGroup() in groups:
            return EVERY_TEXT
        return alt(*(agreed_language(group, self.limits, agreed) for group in groups))

    def _without(self, language: Regular, names: list[str]) -> Regular:
        """The keys of a language that are none of these names."""
        if language == EVERY_TEXT:
            # Any prefix goes on to infinitely many keys: leaving names out costs nothing.
            return language
        check_time()
        within = self._within.get(language)
        if within is None:
            within = self._within[language] = Within(language, self.limits)
        # Sorted, so that equal languages are one object.
        inside = tuple(sorted([name for name in in_time(names) if within.holds(name)]))
        return _without(language, inside, self.limits) if inside else language

    def _language(self, atom: Atom) -> Regular:
        limits = self.limits
        if isinstance(atom, str):
            return pattern_language(atom, limits)
        groups = string_groups(self.normalizer, atom)
        if StringGroup() in groups:
            return EVERY_TEXT
        return alt(*(string_language(group, limits) for group in groups))


def closed(group: ObjectGroup) -> ObjectGroup:
    """A group without members that it does not mention, unless it says something about these."""
    if any(keys.outside and keys.schemas is None for keys, _ in group.rules):
        return group
    names = dict.fromkeys((*(name for keys, _ in group.rules for name in keys.names), *group.required))
    patterns = dict.fromkeys(pattern for keys, _ in group.rules for pattern in keys.patterns)
    if not names and not patterns:
        return group
    others = Keys(tuple(names), tuple(patterns), outside=True)
    return replace(group, rules=(*group.rules, (others, (nothing("(a member that is not mentioned)"),))))


class Kind:
    """Undeclared keys that the same rules are about."""

    def __init__(
        self, language: Regular | None, within: frozenset[Atom] | None, atoms: tuple[Atom, ...] = ()
    ) -> None:
        self.language = language
        """None: it is not made unless it is needed."""
        self.within = within
        """The patterns and schemas for keys that they satisfy; None: there are none to tell keys apart."""
        self.atoms = atoms
        """All by which keys are told apart."""

    def holds(self, keys: Keys) -> bool:
        """Whether these keys are among ``keys``."""
        within = self.within or frozenset[Atom]()
        inside = False
        for atom in _atoms(keys):
            inside = inside or atom in within
        return inside != keys.outside

    def value(self, keys: KeyMap) -> Conjunction:
        """What the values of such members must satisfy."""
        value: Conjunction = ()
        for about, conjunction in keys.general:
            if self.holds(about):
                value = conjoin(value, conjunction)
        return value

    def wanted(self, clauses: tuple[Clause, ...]) -> list[list[Conjunction]]:
        """What the value of such a member must satisfy, in one of these ways, to reach each clause's obligation."""
        wanted: list[list[Conjunction]] = []
        for clause in clauses:
            ways: list[Conjunction] = []
            for atom in clause:
                if isinstance(atom, Some):
                    some: Some = atom
                    if self.holds(some.keys):
                        ways.append(some.value)
            wanted.append(ways)
        return wanted

    def names(self, language: Regular, limits: Limits, needed: int) -> tuple[str, ...] | None:
        """The keys one by one, when they are few, or fewer than the members ``needed``: they could run out.

        Raises ``LimitError`` for more than ``limits.max_listed_names`` of these.
        """
        if self.within is None:
            return None
        names = finite_texts(language, _FEW_NAMES, limits)
        if names is not None or needed <= _FEW_NAMES:
            return names
        count = count_texts(language, needed - 1, limits)
        if count is None:
            return None
        if count > limits.max_listed_names:
            raise LimitError("max_listed_names", count, limits.max_listed_names)
        return finite_texts(language, count, limits)


class Within:
    """Which names are in a language."""

    def __init__(self, language: Regular, limits: Limits) -> None:
        self._matches = matcher(language, limits)
        self._known: dict[str, bool] = {}

    def holds(self, name: str) -> bool:
        """Whether a name is a text of the language."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = is_text(name) and self._matches(name)
        return found


_ONE_KIND = [Kind(EVERY_TEXT, None)]


@remembered(512)
def _classes(languages: tuple[Regular, ...], limits: Limits) -> list[tuple[bytes, Regular]]:
    return partition(languages, limits)


@remembered(512)
def _difference(language: Regular, other: Regular, limits: Limits) -> Regular:
    return difference(language, other, limits)


@remembered(512)
def _without(language: Regular, names: tuple[str, ...], limits: Limits) -> Regular:
    return difference(language, alt(*(Lit(name) for name in in_time(names))), limits)


def _atoms(keys: Keys) -> list[Atom]:
    return [*keys.patterns, *([] if keys.schemas is None else [keys.schemas])]
