# Forced bytes and shortest completions, spelled out byte by byte, always along a cheapest continuation (costs.pyx).

from libc.stdint cimport uint64_t
from libc.string cimport memset

from maskwright._engine.sizes cimport bits_has
from maskwright._engine.turns cimport turn_late
from maskwright._engine.lexeme_state cimport lex_first
from maskwright._engine.shortest_match cimport UNREACHED
from maskwright._engine.program cimport Costs, NO_STATE, ParserState
from maskwright._engine.tracked cimport is_tracked
from maskwright._engine.threads cimport threads_behind_boundaries, threads_complete, threads_normalize
from maskwright._engine.costs cimport costs_prepare, shortest_try_lexeme
from maskwright._engine.distinct cimport distinct_search, SEARCH_APART, SEARCH_OUT
from maskwright._engine.alive cimport core_search, threads_alive, threads_keep_alive, threads_step


cdef cbool shortest_bytes(Core* core, int32_t id, vector[uint8_t]& out) noexcept nogil:
    # Append the shortest completion (among arrays of different items, a short one); False when there is
    # none (the engine never lets that happen).
    if core.states[id].accepting:
        return True
    if core.program.lexer != NULL:
        return core_search(core, core.states[id].threads, True, out)
    if not core.tracker.guards.empty():
        return distinct_completion(core, id, out)
    return shortest_plain(core, core.states[id].threads, out)


cdef cbool shortest_plain(Core* core, const vector[Thread]& threads, vector[uint8_t]& out) noexcept nogil:
    # The shortest completion as if items might repeat.
    cdef Thread thread
    cdef Costs* costs = core.costs
    cdef vector[uint8_t] path
    cdef int32_t best = UNREACHED, after = NO_STATE
    cdef size_t i, j
    cdef ParserState* state
    costs_prepare(core)
    if core.index.deadline.passed:
        return False
    for i in range(threads.size()):
        if turn_late(core.index):
            return False
        thread = threads[i]
        state = core.program.states[thread.parser]
        if thread.lex != NULL:
            shortest_try_lexeme(core, costs, thread.lex, thread.parser, thread.memory, &best, &after, path)
        elif state.complete:
            return True
        else:
            for j in range(state.starts.size()):
                shortest_try_lexeme(core, costs, state.starts[j], thread.parser, 0, &best, &after, path)
            for j in range(state.tokens.size()):
                shortest_try_lexeme(core, costs, state.tokens[j], thread.parser, 0, &best, &after, path)
    while after != NO_STATE and out.size() < COMPLETION_LIMIT and not turn_late(core.index):
        out.insert(out.end(), path.begin(), path.end())
        state = core.program.states[after]
        if state.complete:
            return True
        best = UNREACHED
        thread.parser = after
        after = NO_STATE
        path.clear()
        for j in range(state.starts.size()):
            shortest_try_lexeme(core, costs, state.starts[j], thread.parser, 0, &best, &after, path)
        for j in range(state.tokens.size()):
            shortest_try_lexeme(core, costs, state.tokens[j], thread.parser, 0, &best, &after, path)
    return False


cdef cbool lexed_forced(Core* core, const vector[Thread]& threads, vector[Thread]& out,
                        vector[uint8_t]& path) noexcept nogil:
    # Follow the one byte that can be read; False when there are several.
    cdef vector[Thread] before = threads
    cdef vector[Thread] after
    cdef uint64_t first[4]
    cdef size_t i, j
    cdef int32_t byte, found = -1
    memset(first, 0, 32)
    threads_behind_boundaries(core, threads, before)
    for i in range(before.size()):
        if before[i].lex != NULL:
            lex_first(before[i].lex)
        for j in range(4):
            first[j] |= (before[i].lex.forced_first[j] if before[i].lex != NULL
                         else core.program.states[before[i].parser].first[j])
    for byte in range(256):
        if not bits_has(first, <uint8_t>byte):
            continue
        threads_step(core, threads, <uint8_t>byte, after)
        if not threads_alive(core, after):
            continue
        if found >= 0 or core.index.deadline.passed:
            return False
        found = byte
        out.swap(after)
    if found >= 0:
        threads_keep_alive(core, out)
        threads_normalize(out)
        path.push_back(<uint8_t>found)
    return found >= 0


cdef cbool threads_open(Core* core, const vector[Thread]& threads) noexcept nogil:
    # Whether something else than a byte may come: the end, or a token that stands for itself.
    cdef vector[Thread] before = threads
    cdef size_t i
    threads_behind_boundaries(core, threads, before)
    for i in range(before.size()):
        if before[i].lex == NULL and not core.program.states[before[i].parser].tokens.empty():
            return True
    return threads_complete(core, threads)


cdef void forced_bytes(Core* core, int32_t id, vector[uint8_t]& out) noexcept nogil:
    # Bytes that every completion begins with, up to escaped spellings of the same keys.
    cdef vector[Thread] threads = core.states[id].threads
    cdef vector[Thread] after
    cdef uint64_t first[4]
    cdef size_t i, j
    cdef int32_t byte, found
    cdef ParserState* state
    while core.program.lexer != NULL and out.size() < FORCED_LIMIT and not turn_late(core.index):
        if threads_open(core, threads) or not lexed_forced(core, threads, after, out):
            return
        threads.swap(after)
    while out.size() < FORCED_LIMIT and not turn_late(core.index):
        memset(first, 0, 32)
        for i in range(threads.size()):
            if threads[i].lex != NULL:
                lex_first(threads[i].lex)
                for j in range(4):
                    first[j] |= threads[i].lex.forced_first[j]
            else:
                state = core.program.states[threads[i].parser]
                if state.complete or not state.tokens.empty():
                    return
                for j in range(4):
                    first[j] |= state.first[j]
        found = -1
        for byte in range(256):
            if bits_has(first, <uint8_t>byte):
                if found >= 0:
                    return
                found = byte
        if found < 0:
            return
        threads_step(core, threads, <uint8_t>found, after)
        if after.empty():
            return
        out.push_back(<uint8_t>found)
        threads.swap(after)


# --- Arrays of different items: completions.
#
# A completion follows the cheapest way out of the grammar.  Where an earlier item is in the way, a search finds another
# one out of the array, best first: by what the grammar says is still missing.  Threads that can be completed whatever
# came before are the same to it if they are the same to the grammar, or it would try one value after another where
# none of them helps; and what is easy ends in the cheapest way first.

cdef enum:
    FEW_SEARCHED = 10000           # states that are looked at before another way is tried


cdef cbool threads_tracked(const vector[Thread]& threads) noexcept nogil:
    cdef size_t i
    for i in range(threads.size()):
        if not is_tracked(threads[i].memory):
            return False
    return True


cdef cbool threads_leave(vector[Thread]& threads) noexcept nogil:
    # Go on with one that is not tracked, if there is any.
    cdef size_t i
    for i in range(threads.size()):
        if not is_tracked(threads[i].memory):
            threads[0] = threads[i]
            threads.resize(1)
            return True
    return False


cdef cbool distinct_completion(Core* core, int32_t id, vector[uint8_t]& out) noexcept nogil:
    # A completion: the shortest one of the grammar, led around items that came before.
    cdef vector[Thread] threads = core.states[id].threads
    cdef vector[Thread] start, after
    cdef vector[uint8_t] path, ahead
    cdef size_t i, mark
    cdef cbool found
    if core.states[id].accepting:
        return True
    while out.size() < COMPLETION_LIMIT and not core.index.deadline.passed:
        path.clear()
        if not shortest_plain(core, threads, path):
            return False
        start = threads
        mark = out.size()
        for i in range(path.size()):
            threads_step(core, threads, path[i], after)
            if after.empty():
                break
            out.push_back(path[i])
            if threads_tracked(after) and not threads_tracked(threads):
                start = after
                mark = out.size()
            threads.swap(after)
        else:
            # What went on may not be what the way was one of: an item that came before ends one thread among several.
            if path.empty() or threads_complete(core, threads):
                return True
            continue
        if threads_leave(threads):
            continue
        # Back to where all of them were tracked: near the beginning of the array.
        ahead.assign(out.begin() + mark, out.end())
        threads.swap(start)
        out.resize(mark)
        path.clear()
        found = distinct_search(core, threads.data(), threads.size(), SEARCH_OUT, FEW_SEARCHED, &path)
        if not found and distinct_search(core, start.data(), start.size(), SEARCH_OUT, FEW_SEARCHED, &path):
            # Many texts lead out, none of them soon (two equal items are still to come): on from where the way ended.
            path.insert(path.begin(), ahead.begin(), ahead.end())
            found = True
        if (not found and not distinct_search(core, threads.data(), threads.size(), SEARCH_OUT, 0, &path)
                and not distinct_search(core, threads.data(), threads.size(), SEARCH_APART, 0, &path)):
            return False
        for i in range(path.size()):
            threads_step(core, threads, path[i], after)
            threads.swap(after)
            out.push_back(path[i])
        threads_leave(threads)
    return False
