"""Where symbols of a grammar occur in a text that is still being written.

An *occurrence* of a symbol (a rule, or a terminal of a Lark grammar) is a part of the text, not empty, that the symbol
derives in a derivation of a whole text.  It is *certain* when every derivation of every text that begins so has it:
``"foo"`` is no certain identifier before it is known whether ``"foobar"`` comes.  (A terminal under way counts as any one
that the parser waits for, so what depends on it becomes certain when it ends.)  Where a grammar is ambiguous, that is
what all readings share.

The engine's states tell what can follow, and forget how the text came about.  So the text is read once more, by Earley's
method (1970) over the engine's own threads and rules: a *column* holds the places in rules behind a lexeme, each with
the call that its rule belongs to.  With every place goes the set of occurrences that all ways to it share: ways
that meet intersect their sets.  This costs tens of microseconds a byte, and time and memory grow with the square of the length where rules
are right-recursive; it has nothing to do with masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from maskwright._core import Tracer
from maskwright.base.arguments import listed
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.errors import GrammarError, MaskwrightError


class Occurrence(NamedTuple):
    """``symbol`` derives the bytes from ``start`` to ``end`` (excluded) of the text."""

    symbol: str
    start: int
    end: int


Found = frozenset[Occurrence]
_NONE: Found = frozenset()


def _union(a: Found, b: Found) -> Found:
    """Mostly one is empty: then nothing is copied, and what is equal stays one object."""
    return (a | b if a else b) if b else a


def _meet(a: Found, b: Found) -> Found:
    if a is b:
        return a
    both = a & b
    return a if len(both) == len(a) else b if len(both) == len(b) else both


class _Call:
    """A rule called behind a column; ``callers``: where it returns to, with what was found there before."""

    __slots__ = ("above", "callers", "indent", "rule")

    def __init__(self, rule: int) -> None:
        self.rule = rule
        self.callers: dict[_Place, Found] = {}
        self.above: Found = _NONE
        """What all its callers, and theirs, have found."""
        self.indent = 0
        """The column of the innermost block around it."""


_Place = tuple[int, _Call, int]
"""A dotted item, the call it belongs to, and where that begins in the text (-1: nothing was read yet)."""


class _Parts(NamedTuple):
    """Places that wait for a lexeme, and what was found in a text that ends here (None: it cannot)."""

    waiting: dict[_Place, Found]
    complete: Found | None


class _Column:
    """Everything that can come next behind a lexeme that ended at ``end``; worked out when it is asked for, because
    most lexemes could have ended at many bytes and went on.

    ``kernel``: the places directly behind the lexeme.  ``line``: the column of the line behind it (-1: it is no newline).
    """

    __slots__ = ("_end", "_kernel", "_line", "_parts", "_symbols")

    def __init__(self, symbols: Symbols, kernel: dict[_Place, Found], end: int, line: int = -1) -> None:
        self._symbols = symbols
        self._kernel = kernel
        self._end = end
        self._line = line
        self._parts: _Parts | None = None

    def parts(self) -> _Parts:
        if self._parts is None:
            found = self._symbols._close(self._kernel, self._end)
            self._parts = found if self._line < 0 else self._symbols._line(found, self._line, self._end)
            self._kernel = {}
        return self._parts


def _is_part(name: str) -> bool:
    """Whether the package lark, or a front-end, made a rule out of a part of one.  Values of schemas have JSON pointers."""
    is_ours = not name.startswith("/") and name.endswith((" (item)", " (repeated)", " (group)"))
    return is_ours or name.startswith("__")


class Symbols:
    """Reads texts of a grammar for the occurrences of some symbols.

    ``names``: rules, of a Lark grammar also terminals; of a JSON Schema JSON pointers such as ``"/properties/name"`` (a
    value), and ``"any value"`` for values that it says nothing about.  A value behind ``$ref`` has the name of the
    place that refers to it.  Of what a large schema repeats, each place has its name, and what is inside the names of the first one.  None: all.  What a front-end made part of a lexeme has no symbol
    (rules of GBNF that are regular, unless they are named: ``GBNF(text, symbols=[...])``).  Raises ``GrammarError`` for names that the grammar does not have.
    """

    def __init__(self, grammar: CompiledGrammar, names: Iterable[str] | None = None) -> None:
        if not isinstance(grammar, CompiledGrammar):
            raise MaskwrightError(f"a CompiledGrammar has symbols, not {type(grammar).__name__}")
        core = grammar._core
        rules, terminals = core.rule_names, core.terminal_names
        known = dict.fromkeys(name for name in (*rules, *terminals) if not _is_part(name))
        wanted = (
            list(known)
            if names is None
            else [names]
            if isinstance(names, str)
            else listed(names, "names", "names of symbols", GrammarError)
        )
        for name in wanted:
            if not isinstance(name, str) or name not in known:
                shown = ", ".join(list(known)[:20]) + (", ..." if len(known) > 20 else "")
                raise GrammarError(f"the grammar has no symbol {name!r}; it has {shown}")
        self.names = tuple(dict.fromkeys(wanted))
        chosen = set(self.names)
        self._rules: Mapping[int, str] = {i: name for i, name in enumerate(rules) if name in chosen}
        self._terminals: Mapping[int, str] = {i: name for i, name in enumerate(terminals) if name in chosen}
        self._tracer = Tracer(core)
        self._places: dict[int, tuple[bool, bool, list[tuple[int, int]], int]] = {}
        self._first: dict[int, tuple[int, bool]] = {}
        self._steps: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._boundaries: dict[int, list[tuple[int, int]]] = {}
        self._moves: dict[tuple[int, int], list[int]] = {}
        self._events: dict[int, tuple[int, int, bool]] = {}
        self._waiting: dict[tuple[int, int], bool] = {}
        self._alive: dict[int, tuple[bool, bool, bool]] = {}
        self.whole = self._rules.get(self._tracer.start_rule)
        """The symbol that every text is; None where it is none of the names."""
        self._root = _Call(self._tracer.start_rule)
        column = _Column(self, {(self._rule(self._root.rule)[0], self._root, -1): _NONE}, 0)
        self.start = Reading(self, 0, [(0, column, -1)])
        """Before the first byte."""

    # What the engine says, kept, since the same places come again and again.

    def _place(self, local: int) -> tuple[bool, bool, list[tuple[int, int]], int]:
        found = self._places.get(local)
        if found is None:
            found = self._places[local] = self._tracer.place(local)
        return found

    def _rule(self, rule: int) -> tuple[int, bool]:
        found = self._first.get(rule)
        if found is None:
            found = self._first[rule] = self._tracer.rule(rule)
        return found

    def _step(self, thread: int, byte: int) -> list[tuple[int, int]]:
        found = self._steps.get((thread, byte))
        if found is None:
            found = self._steps[thread, byte] = self._tracer.step(thread, byte)
        return found

    def _over(self, thread: int) -> list[tuple[int, int]]:
        found = self._boundaries.get(thread)
        if found is None:
            found = self._boundaries[thread] = self._tracer.boundaries(thread)
        return found

    def _move(self, local: int, event: int) -> list[int]:
        found = self._moves.get((local, event))
        if found is None:
            found = self._moves[local, event] = self._tracer.advance(local, event)
        return found

    def _event(self, event: int) -> tuple[int, int, bool]:
        found = self._events.get(event)
        if found is None:
            found = self._events[event] = self._tracer.event(event)
        return found

    def _waits(self, local: int, thread: int) -> bool:
        found = self._waiting.get((local, thread))
        if found is None:
            found = self._waiting[local, thread] = self._tracer.waits(local, thread)
        return found

    def _thread(self, thread: int) -> tuple[bool, bool, bool]:
        found = self._alive.get(thread)
        if found is None:
            found = self._alive[thread] = self._tracer.thread(thread)
        return found

    # Earley's columns.

    def _close(self, kernel: dict[_Place, Found], end: int) -> _Parts:
        """The column of a kernel: closed over calls and returns."""
        items: dict[_Place, Found] = {}
        calls: dict[int, _Call] = {}
        complete: Found | None = None
        work: list[_Place] = []

        def put(place: _Place, found: Found) -> None:
            known = items.get(place)
            shared = found if known is None else _meet(known, found)
            if shared is not known:
                items[place] = shared
                work.append(place)

        for place, found in kernel.items():
            put(place, found)
        while work:
            place = work.pop()
            local, call, start = place
            found = items[place]
            final, _, called, _ = self._place(local)
            if final and start >= 0:
                name = self._rules.get(call.rule)
                found = found if name is None else found | {Occurrence(name, start, end)}
                for (back, parent, began), before in call.callers.items():
                    put((back, parent, start if began < 0 else began), _union(before, found))
            if final and call is self._root:
                complete = found if complete is None else _meet(complete, found)
            for rule, back in called:
                child = calls.get(rule)
                if child is None:
                    child = calls[rule] = _Call(rule)
                # Several places may call a rule and go on at the same one.
                known = child.callers.get((back, call, start))
                child.callers[back, call, start] = (
                    items[place] if known is None else _meet(known, items[place])
                )
                first, nullable = self._rule(rule)
                put((first, child, -1), _NONE)
                # What is empty ends where it was called.
                if nullable:
                    put((back, call, start), items[place])
        self._settle(list(calls.values()))
        return _Parts({place: found for place, found in items.items() if self._place(place[0])[1]}, complete)

    def _settle(self, calls: Sequence[_Call]) -> None:
        """What is above new calls: the largest solution, since going round a left recursion finds nothing more."""
        unknown = set(calls)
        changed = True
        while changed:
            changed = False
            for call in calls:
                above = None if call in unknown else call.above
                for (back, parent, _), found in call.callers.items():
                    column = self._place(back)[3]
                    indent = column if column >= 0 else parent.indent
                    if indent > call.indent:
                        call.indent, changed = indent, True
                    if parent not in unknown:
                        here = _union(found, parent.above)
                        above = here if above is None else _meet(above, here)
                if above is not None and (call in unknown or above != call.above):
                    call.above, changed = above, True
                    unknown.discard(call)

    def _behind(self, column: _Column, event: int, start: int, end: int, kernel: dict[_Place, Found]) -> None:
        """Add the places behind a lexeme to ``kernel``."""
        name = self._terminals.get(self._event(event)[0])
        own = _NONE if name is None else frozenset((Occurrence(name, start, end),))
        for (local, call, began), found in column.parts().waiting.items():
            targets = self._move(local, event)
            here = _union(found, own) if targets else found
            for target in targets:
                place = (target, call, start if began < 0 else began)
                known = kernel.get(place)
                kernel[place] = here if known is None else _meet(known, here)

    def _over_boundaries(self, threads: list[_Thread], at: int) -> list[_Thread]:
        """Threads, and those behind the boundaries that they are at."""
        out = list(threads)
        for each in threads:
            work = [each] if each[2] < 0 else []
            reached = {each[0]}
            for thread, column, _ in work:
                for target, event in self._over(thread):
                    if target not in reached:
                        reached.add(target)
                        kernel: dict[_Place, Found] = {}
                        self._behind(column, event, at, at, kernel)
                        work.append((target, _Column(self, kernel, at), -1))
            out += work[1:]
        return out

    def _line(self, column: _Parts, line: int, end: int) -> _Parts:
        """What of a column behind a newline can stand in a line that begins in column ``line`` (cext/maskwright/_engine/stacks.pyx)."""
        kept: dict[_Place, Found] = {}
        complete: Found | None = None
        if line:
            ended = self._line(column, 0, end)
            complete = ended.complete
            kept = {
                place: found for place, found in ended.waiting.items() if self._tracer.ends_lines(place[0])
            }
        while True:
            if not line and column.complete is not None:
                complete = column.complete if complete is None else _meet(complete, column.complete)
            kernel: dict[_Place, Found] = {}
            for (local, call, began), found in column.waiting.items():
                target, stays = self._tracer.line(local, line, call.indent)
                if target >= 0:
                    into = kept if stays else kernel
                    place = (target, call, began)
                    into[place] = _meet(found, into[place]) if place in into else found
            if not kernel:
                return _Parts(kept, complete)
            column = self._close(kernel, end)


_Thread = tuple[int, _Column, int]
"""A thread of the engine, the column in which its lexeme began, and where in the text (-1: between lexemes)."""


class Reading:
    """What was read of a text; ``read`` makes another one and changes nothing."""

    __slots__ = ("_symbols", "_threads", "length")

    def __init__(self, symbols: Symbols, length: int, threads: list[_Thread]) -> None:
        self._symbols = symbols
        self._threads = threads
        self.length = length
        """Bytes read."""

    def read(self, data: bytes) -> Reading:
        """The reading behind ``data``.  Raises ``MaskwrightError`` where the text leaves the language."""
        symbols, threads, at = self._symbols, self._threads, self.length
        for byte in data:
            threads = symbols._over_boundaries(threads, at)
            at += 1
            inside: dict[tuple[int, int, int], _Thread] = {}
            ended: dict[tuple[int, int], dict[_Place, Found]] = {}
            for thread, column, begun in threads:
                start = begun if begun >= 0 else at - 1
                for target, event in symbols._step(thread, byte):
                    _, line, ignored = symbols._event(event) if event >= 0 else (-1, -1, False)
                    if event < 0:
                        inside[target, id(column), start] = (target, column, start)
                    elif ignored:
                        inside[target, id(column), -1] = (target, column, -1)
                    else:
                        symbols._behind(column, event, start, at, ended.setdefault((target, line), {}))
            threads = list(inside.values())
            for (target, line), kernel in ended.items():
                threads.append((target, _Column(symbols, kernel, at, line), -1))
        threads = [each for each in threads if symbols._thread(each[0])[0]]
        if not threads:
            raise MaskwrightError(f"the text leaves the grammar at or before byte {at}")
        return Reading(symbols, at, threads)

    def occurrences(self) -> list[Occurrence]:
        """The certain ones, by their ends and then by their starts, the longer ones last."""
        shared: Found | None = None
        for thread, column, _ in self._threads:
            _, within, skips = self._symbols._thread(thread)
            for (local, call, _), found in column.parts().waiting.items():
                if self._symbols._waits(local, thread):
                    here = _union(found, call.above)
                    shared = here if shared is None else _meet(shared, here)
            if (complete := column.parts().complete) is not None and (skips or not within):
                shared = complete if shared is None else _meet(shared, complete)
        return _sorted(shared)

    def occurrences_at_end(self) -> list[Occurrence] | None:
        """Those of the text when it ends here; None when it cannot."""
        shared: Found | None = None
        for thread, column, _ in self._threads:
            if self._symbols._thread(thread)[1]:
                continue
            if (complete := column.parts().complete) is not None:
                shared = complete if shared is None else _meet(shared, complete)
        return None if shared is None else _sorted(shared)


def _sorted(found: Found | None) -> list[Occurrence]:
    return sorted(found or (), key=lambda each: (each.end, -each.start, each.symbol))
