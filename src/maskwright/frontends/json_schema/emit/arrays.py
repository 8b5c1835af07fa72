"""Array groups -> rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from maskwright.base.deadline import check_time, let_go
from maskwright.errors import LimitError
from maskwright.frontends.json_schema.algebra.groups import (
    ArrayGroup,
    Conjunction,
    Contained,
    StringGroup,
    conjoin,
)
from maskwright.frontends.json_schema.algebra.strings import written_language
from maskwright.frontends.json_schema.algebra.typed import negation
from maskwright.frontends.json_schema.algebra.values import ValueCounts
from maskwright.frontends.json_schema.texts.lexemes import Punctuation, string_lexeme
from maskwright.ir.grammar import (
    EMPTY,
    FAIL,
    Choice,
    Distinct,
    Expr,
    Grammar,
    OtherMembers,
    Record,
    Ref,
    Repeated,
    Seq,
)
from maskwright.limits import Limits
from maskwright.regular.dfa import count_texts
from maskwright.regular.expressions import alt

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.algebra.trivially_empty import TriviallyEmpty
    from maskwright.frontends.json_schema.emit.emitter import Emitter

_COUNTED_STRINGS = 1000
_TIED_ITEMS = 6
"""Of at most so many items, any two places are told apart where two items must be equal."""


_Counts: TypeAlias = tuple[int, tuple[int, ...]]
"""Items so far, and how many match each ``contains``."""
_Holds: TypeAlias = tuple[bool, ...]
_Place: TypeAlias = int
_Way: TypeAlias = tuple[Conjunction, _Holds]


class ArrayRules:
    """Builds the rules of arrays."""

    emitter: Emitter
    grammar: Grammar
    marks: Punctuation
    values: ValueCounts
    _separated: dict[Conjunction, int]

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.grammar = emitter.grammar
        self.marks = emitter.marks
        self.values = ValueCounts(emitter.normalizer, emitter.limits)
        self._separated = {}

    def release(self) -> None:
        """Let go of what refers back, so that nothing waits for the garbage collector."""
        self.emitter = None  # type: ignore[assignment]
        let_go(self._separated)

    def array(self, group: ArrayGroup) -> Expr:
        """The arrays of a group."""
        few = None if group.repeated is None else self._few_items(group)
        if few is not None:
            return self._tied(group, few)
        unique = group.unique is not None and (group.max_items is None or group.max_items > 1)
        unique = unique and not self.values.all_differ(group)
        if unique and not group.contained and not group.prefix:
            strings = self._different_strings(group)
            if strings is not None:
                return strings
        if unique and self.values.too_few(group):
            return FAIL
        counted = None
        free = self.values.free_from(group) if unique and not group.contained else 0
        if group.contained or free != 0:
            counted = CountedItems(self, group, unique)
            if not counted.contained:
                counted = None
        try:
            filled = self._with_items(group, unique, counted, free)
        finally:
            if counted is not None:
                counted.release()
        may_be_empty = group.min_items == 0 and all(c.low == 0 for c in group.contained)
        empty = Seq((self.marks.open_array, self.marks.close_empty_array)) if may_be_empty else FAIL
        return Choice((filled, empty))

    def _with_items(
        self, group: ArrayGroup, unique: bool, counted: CountedItems | None, free: int | None
    ) -> Expr:
        """The arrays with some items."""
        if counted is None:
            filled = self._filled(group)
        elif not unique and group.repeated is None and counted.only_wants_some():
            return counted.record()
        else:
            filled = counted.filled()
        if group.repeated is not None:
            body = self._repeating(filled, group)
            filled = Ref(self.grammar.add("items of which two are equal", body))
        elif unique:
            if counted is None:
                if group.contained:
                    free = self.values.free_from(group)
                body = Distinct(filled, free, self.values.least(group))
            else:
                body = Distinct(filled, counted.free())
            filled = Ref(self.grammar.add("different items", body))
        return filled

    def _filled(self, group: ArrayGroup) -> Expr:
        """The arrays with some items, of which nothing is demanded but those at each place, and their number."""
        low, high = group.min_items, group.max_items
        marks = self.marks
        if high == 0:
            return FAIL
        if group.prefix:
            first = self.emitter.rule(group.prefix[0])
            return Seq((marks.open_array, Ref(first), self._items_after(group, 1)))
        rest = self.emitter.rule(group.rest)
        items = self.grammar.add("items", Repeated(rest, self.separated(group.rest), max(low, 1), high))
        return Seq((marks.open_array, Ref(items), marks.close_array))

    def _repeating(self, filled: Expr, group: ArrayGroup) -> Distinct:
        """Those of which two items are equal."""
        if group.contained and group.max_items is not None:
            return Distinct(filled, repeats=True, most=group.max_items)
        # Behind the prefix, one value can come again and again, if something can be written there, and at each place of
        # the prefix, of which no more than so many may come.
        bounded = [negation(c.items, "") for c in group.contained if c.high is not None]
        provided = []
        for place in (*group.prefix, group.rest):
            for opposite in bounded:
                place = conjoin(place, opposite)
            provided.append(self.separated(place))
        return Distinct(
            filled, len(group.prefix), repeats=True, most=group.max_items, provided=tuple(provided)
        )

    def _few_items(self, group: ArrayGroup) -> int | None:
        """A bound on the number of items, if it is so low that any two places can be told apart."""
        trivially_empty = self.emitter.normalizer.trivially_empty
        most = len(group.prefix) + 1 if group.max_items is None else group.max_items
        for index in range(min(most, len(group.prefix) + 1)):
            if trivially_empty.conjunction(group.item(index)):
                return index if index <= _TIED_ITEMS else None
        return most if group.max_items is not None and most <= _TIED_ITEMS else None

    def _tied(self, group: ArrayGroup, most: int) -> Expr:
        """Those of which two items are equal: nobody has to look for what else might come twice."""
        ways = CountedItems(self, group, False)
        choices: list[Expr] = []
        for j in range(1, most):
            for i in range(j):
                check_time()
                # The two satisfy what is demanded of either, and match the same.
                for item, _ in ways.shared(i, j):
                    places = [group.item(k) for k in range(max(len(group.prefix), j + 1))]
                    places[i] = places[j] = item
                    tied = replace(
                        group, prefix=tuple(places), min_items=max(group.min_items, j + 1), max_items=most
                    )
                    body = Distinct(CountedItems(self, tied, False).filled(), repeats=True, tie=(i, j))
                    choices.append(Ref(self.grammar.add("items of which two are equal", body)))
        return Choice(tuple(choices))

    def _different_strings(self, group: ArrayGroup) -> Expr | None:
        """Arrays of strings that are all different: a record of keys only.  None for other items."""
        limits = self.emitter.limits
        groups = self.emitter.normalizer.groups(group.rest)
        strings = [g for g in groups if isinstance(g, StringGroup)]
        if not groups or len(strings) < len(groups):
            return None
        language = alt(*(written_language(g, limits) for g in strings))
        low, high = group.min_items, group.max_items
        few = count_texts(language, max(_COUNTED_STRINGS, low), limits)
        if few is not None:
            high = few if high is None else min(high, few)
            if low > high:
                return FAIL
        marks = self.marks
        way = ((self.grammar.add("no value", EMPTY), 0),)
        spelling = self.emitter.spelling
        record = Record(
            (),
            (OtherMembers(string_lexeme(language, spelling), way),),
            marks.open_array,
            marks.close_empty_array,
            marks.colon,
            marks.comma,
            marks.close_array,
            low,
            high,
            unique=True,
            bare=True,
            spelling=spelling,
        )
        return Ref(self.grammar.add("different strings", record))

    def _items_after(self, group: ArrayGroup, count: int) -> Expr:
        """What may follow the first ``count`` items: built from the end of the prefix."""
        low, high = group.min_items, group.max_items
        limit = len(group.prefix) if high is None else min(len(group.prefix), high)
        behind: Expr = self._items_behind_prefix(group, limit)
        for index in range(limit - 1, count - 1, -1):
            check_time()
            more: Expr = Seq((Ref(self.separated(group.prefix[index])), behind))
            if low <= index:
                more = Choice((more, self.marks.close_array))
            behind = Ref(self.grammar.add("items", more))
        return behind

    def _items_behind_prefix(self, group: ArrayGroup, count: int) -> Expr:
        low, high = max(group.min_items - count, 0), group.max_items
        if high is not None and high <= count:
            return self.marks.close_array if low == 0 else FAIL
        more = self.separated(group.rest)
        rest = self.grammar.add("items", Repeated(more, more, low, None if high is None else high - count))
        return Seq((Ref(rest), self.marks.close_array))

    def separated(self, conjunction: Conjunction) -> int:
        """The rule of an item behind a comma."""
        found = self._separated.get(conjunction)
        if found is None:
            value = self.emitter.rule(conjunction)
            name = "comma " + self.grammar.names[value]
            found = self.grammar.add(name, Seq((self.marks.comma, Ref(value))))
            self._separated[conjunction] = found
        return found


class CountedItems:
    """Arrays with ``contains``, or with places that only few values fit and nothing else may have taken.

    Where each constraint wants some item and no more, a record without keys; else one rule for each number of items and of
    matches, as far as they matter.
    """

    rules: ArrayRules
    group: ArrayGroup
    trivially_empty: TriviallyEmpty
    limits: Limits
    contained: tuple[Contained, ...]
    alike: int
    _known: dict[_Counts, int]
    _work: list[_Counts]
    _ways: dict[tuple[Conjunction, _Holds], list[_Way]]

    def __init__(self, rules: ArrayRules, group: ArrayGroup, unique: bool) -> None:
        self.rules = rules
        self.group = group
        self.trivially_empty = rules.emitter.normalizer.trivially_empty
        self.limits = rules.emitter.limits
        demanded = tuple(c for c in group.contained if c.demands)
        self.contained = (*demanded, *self._left_over(demanded)) if unique else demanded
        # From this index on, all items are alike.
        self.alike = max(len(group.prefix), group.min_items, *[c.start for c in self.contained])
        if group.max_items is not None:
            self.alike = max(self.alike, group.max_items)
        self._known = {}
        self._work = []
        self._ways = {}

    def release(self) -> None:
        """Let go of what is known."""
        let_go(self._known, self._work, self._ways)

    def _left_over(self, demanded: tuple[Contained, ...]) -> list[Contained]:
        """What follows where items must be different: of few values, so many must be left for places that need them."""
        values, group = self.rules.values, self.group
        found = []
        for c in demanded:
            most = values.most(group, c) if c.low and c.start else None
            if most is not None and most < c.low + c.start:
                found.append(Contained(c.items, 0, max(most - c.low, 0), 0, c.start))
        needed = max(0, group.min_items, *[c.start + c.low for c in demanded if c.low])
        behind = max(needed - len(group.prefix), 0)
        most = values.at_most(group.rest) if behind and group.prefix else None
        if most is not None and most < needed:
            found.append(Contained(group.rest, 0, max(most - behind, 0), 0, len(group.prefix)))
        for i in range(1, min(needed, len(group.prefix))):
            most = values.at_most(group.prefix[i])
            if most is not None and most <= i:
                found.append(Contained(group.prefix[i], 0, max(most - 1, 0), 0, i))
        return found

    def only_wants_some(self) -> bool:
        """Whether each constraint wants no more than one item that matches, at any place."""
        for c in self.contained:
            contained: Contained = c
            if (
                contained.low != 1
                or contained.high is not None
                or contained.start
                or contained.stop is not None
            ):
                return False
        return not self.group.prefix and len(self.contained) <= self.limits.max_object_obligations

    def record(self) -> Expr:
        """These arrays, then: the engine counts items, and notes what has matched, so that no rules are needed for it."""
        marks, emitter = self.rules.marks, self.rules.emitter
        ways = [
            (emitter.rule(item), sum([1 << i for i, yes in enumerate(holds) if yes]))
            for item, holds in self._items(0)
        ]
        if not ways:
            return FAIL
        record = Record(
            (),
            (OtherMembers(None, tuple(ways)),),
            marks.open_array,
            marks.close_empty_array,
            marks.colon,
            marks.comma,
            marks.close_array,
            self.group.min_items,
            self.group.max_items,
            len(self.contained),
        )
        return Ref(self.rules.grammar.add("items", record))

    def filled(self) -> Expr:
        """The arrays with some items."""
        marks, grammar = self.rules.marks, self.rules.grammar
        start = (0, (0,) * len(self.contained))
        choices: list[Expr] = []
        steps = 0
        for item, holds, after in self._next(start):
            choices.append(
                Seq((marks.open_array, Ref(self.rules.emitter.rule(item)), Ref(self._rule(after))))
            )
            if holds == (True,) and not self.group.prefix and self.group.max_items is None:
                # The only constraint, which some item matches at any place: it is counted up to what it demands.
                contained: Contained = self.contained[0]
                steps = contained.low if contained.stop is None else 0
        if steps > self.limits.max_rules:
            raise LimitError("max_rules", steps, self.limits.max_rules)
        # As many as there are sets of what came: each step from one to the next counts as a rule.
        steps = 0
        while self._work:
            check_time()
            state = self._work.pop()
            more: list[Expr] = [
                Seq((Ref(self.rules.separated(item)), Ref(self._rule(after))))
                for item, _, after in self._next(state)
            ]
            steps += len(more)
            if steps > self.limits.max_rules:
                raise LimitError("max_rules", steps, self.limits.max_rules)
            if self._complete(state):
                more.append(marks.close_array)
            grammar.rules[self._known[state]] = Choice(tuple(more))
        return Choice(tuple(choices))

    def free(self) -> int | None:
        """``Distinct.free`` of these arrays, once their rules are made.

        From the complete arrays backwards: whatever has come, a state can be completed if some kinds of items have more
        values than can have come, and lead to states that can be completed.  Where it is not known whether a kind has
        values at all, each that leads on must be like that: one of them has values, or else nothing reaches this state.
        """
        values = self.rules.values
        certain: set[_Counts] = set()
        good: set[_Counts] = set()
        for state in sorted(self._known, reverse=True):
            check_time()
            # What leads back to its state is never needed.  All items are one more thing that some match.
            steps = [
                (item, (*holds, True), after) for item, holds, after in self._next(state) if after != state
            ]
            spent = self._spent(state)
            sure = [(values.surely(item), holds) for item, holds, after in steps if after in certain]
            if self._complete(state) or any(
                sum(number for number, holds in sure if holds[i] == yes) > most for i, yes, most in spent
            ):
                certain.add(state)
                good.add(state)
            elif all(
                after in good
                and any(holds[i] == yes and max(values.at_least(item), 1) > most for i, yes, most in spent)
                for item, holds, after in steps
            ):
                good.add(state)
        bad = max((count for count, _ in self._known.keys() - good), default=-1)
        return None if bad == self.alike else bad + 1

    def _spent(self, state: _Counts) -> list[tuple[int, bool, int]]:
        """The most different items that have come of those that match a constraint, or that do not, or of all."""
        count, matches = state
        exact = count < self.alike
        found = [(len(matches), True, count)] if exact else []
        before = {
            (c.items, c.stop): n for c, n in zip(self.contained, matches, strict=True) if c.stop is not None
        }
        for i, (c, n) in enumerate(zip(self.contained, matches, strict=True)):
            # Where a place has few values, all items of this place are among them.
            if c.stop is not None and (c.stop == count or (exact and c.stop < count)):
                if c.items == self.group.item(count):
                    found.append((len(matches), True, n + count - c.stop))
            if not c.counts(count):
                continue
            # How many come behind what is enough is not known; nor how many matched before the start.
            if c.high is not None or n < c.low:
                found.append((i, True, n + (before.get((c.items, c.start), c.start) if c.start else 0)))
            if exact:
                found.append((i, False, count - n))
        return found

    def _rule(self, state: _Counts) -> int:
        found = self._known.get(state)
        if found is None:
            found = self._known[state] = self.rules.grammar.reserve("counted items")
            self._work.append(state)
            if len(self._known) > self.limits.max_rules:
                raise LimitError("max_rules", len(self._known), self.limits.max_rules)
        return found

    def _complete(self, state: _Counts) -> bool:
        count, matches = state
        if count < self.group.min_items:
            return False
        for n, c in zip(matches, self.contained, strict=True):
            contained: Contained = c
            if n < contained.low:
                return False
        return True

    def _next(self, state: _Counts) -> list[tuple[Conjunction, _Holds, _Counts]]:
        """The items that may come next, which constraints each matches, and the state behind it."""
        count, matches = state
        if self.group.max_items is not None and count >= self.group.max_items:
            return []
        found = []
        for item, holds in self._items(count):
            check_time()
            after = []
            for n, c, yes in zip(matches, self.contained, holds, strict=True):
                contained: Contained = c
                if yes:
                    n += 1
                if contained.high is None:
                    after.append(min(n, contained.low))
                elif n > contained.high:
                    break
                else:
                    after.append(n)
            else:
                found.append((item, holds, (min(count + 1, self.alike), tuple(after))))
        return found

    def _items(self, index: _Place) -> list[_Way]:
        """The ways to write an item: its schema, and which constraints it matches."""
        item = self.group.item(index)
        counting = tuple([contained.counts(index) for contained in self.contained])
        return self._split_by(item, counting)

    def shared(self, i: int, j: int) -> list[_Way]:
        """The ways to write a value that comes at both of two places."""
        counting = tuple([c.counts(i) or c.counts(j) for c in self.contained])
        return self._split_by(conjoin(self.group.item(i), self.group.item(j)), counting)

    def _split_by(self, item: Conjunction, counting: _Holds) -> list[_Way]:
        ways = self._ways.get((item, counting))
        if ways is None:
            ways = [(item, ())]
            ways = [way for way in ways if not self.trivially_empty.conjunction(way[0])]
            for contained, counts in zip(self.contained, counting, strict=True):
                split = self._split(ways, contained, counts)
                ways = [way for way in split if not self.trivially_empty.conjunction(way[0])]
                if len(ways) > self.limits.max_member_ways:
                    raise LimitError("max_member_ways", len(ways), self.limits.max_member_ways)
            self._ways[item, counting] = ways
        return ways

    def _split(self, ways: list[_Way], contained: Contained, counts: bool) -> list[_Way]:
        if not counts:
            return [(item, (*holds, False)) for item, holds in ways]
        opposite = negation(contained.items, "")
        found = []
        for item, holds in ways:
            check_time()
            matching, others = conjoin(item, contained.items), conjoin(item, opposite)
            # What is demanded already leaves nothing else.
            if others != item:
                found.append((matching, (*holds, True)))
            if matching != item:
                found.append((others, (*holds, False)))
        return found
