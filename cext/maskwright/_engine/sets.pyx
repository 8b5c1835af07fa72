# States of many texts at once: what a text with open slots needs.
#
# What may follow one of several texts is a set of threads, like what may follow one text: stacks merge as
# Earley columns do, and the language of the union is the union of the languages.  `sets_any` is the state behind
# all texts that are one token longer, which is all that an open slot means; a canvas is read left to right in
# polynomial time, whatever the grammar.
#
# A state of many texts is a list of *parts*: a set of lexer states of one automaton (lexeme_sets.pyx) and the parser state in
# which these lexemes began.  What a token does inside a lexeme is looked up once for the whole set, so a string of up to
# 10 000 characters costs what any string does.  Parts of one parser state become one, and so do those of
# one set of lexer states; stacks are merged deeper than a text needs it: return addresses to one place become one, with the
# union of what is below (`stack_merge`).  Otherwise a set of all depths would list them all.
#
# Two things are forgotten: which key it was, in records whose keys must not come twice (ANY_KEY), and which items
# an array of different items has.  There, and only there, the state of many texts allows more than one of them does.
#
# With a lexer, what may follow is split by what a parser state waits for, and parser states must not be merged:
# lexed_sets.pyx.

from cython.operator cimport dereference
from libc.stdint cimport uint32_t
from libcpp.algorithm cimport sort

from maskwright._engine.sizes cimport bits_has, vector_bytes
from maskwright._engine.limits cimport deadline_look
from maskwright._engine.trie cimport Trie
from maskwright._engine.vocabulary cimport Opening, opening_marks
from maskwright._engine.lexemes cimport LexSet, LexState
from maskwright._engine.lexeme_state cimport lex_keeps_text
from maskwright._engine.lexeme_sets cimport LEXSET_DEAD, lexset_next, lexset_of, lexset_union
from maskwright._engine.program cimport UNKNOWN
from maskwright._engine.values cimport UNKNOWN_TEXT
from maskwright._engine.core cimport Thread, thread_at
from maskwright._engine.states cimport matcher_intern
from maskwright._engine.masks cimport opening_silent
from maskwright._engine.completion cimport shortest_bytes, shortest_plain
from maskwright._engine.generations cimport edge_make
from maskwright._engine.set_states cimport Part, SetState
from maskwright._engine.set_stacks cimport (
    parsers_merge, parts_join, reaches_free, set_intern, set_leave, set_starts, sets_full, sets_stop
)
from maskwright._engine.frames cimport frames_any, parser_narrow
from maskwright._engine.lexed_sets cimport ends_free, lexed_any, lexed_classes, lexed_covers, lexed_join


cdef void sets_free(Index* index, Sets* sets) noexcept nogil:
    cdef size_t i
    for i in range(index.cache.set_holders.size()):
        if index.cache.set_holders[i] == sets:
            index.cache.set_holders[i] = index.cache.set_holders.back()
            index.cache.set_holders.pop_back()
            break
    for i in range(sets.states.size()):
        del sets.states[i]
    reaches_free(sets.reaches)
    ends_free(sets)
    del sets


# --- parts ----------------------------------------------------------------------------------

cdef SetState* set_of(Core* core, Sets* sets, int32_t id) noexcept nogil:
    # A state as one of many texts.
    cdef vector[Part] parts
    cdef Part part
    cdef Thread thread
    if id >= SET_BASE:
        return sets.states[id - SET_BASE]
    found = sets.single.find(id)
    if found != sets.single.end():
        return sets.states[dereference(found).second - SET_BASE]
    for thread in core.states[id].threads:
        part.lexes = NULL
        part.parser = thread.parser
        if thread.lex != NULL:
            part.lexes = lexset_of(thread.lex)
            part.parser = parser_narrow(core, sets, thread.parser, thread.lex.automaton)
        parts.push_back(part)
    sets.single[id] = set_intern(core, sets, parts)
    return sets.states[sets.single[id] - SET_BASE]


# --- bytes ----------------------------------------------------------------------------------

cdef void part_step(Core* core, LexSet* lexes, int32_t parser, uint8_t byte, vector[Part]& out,
                    vector[int32_t]& joined) noexcept nogil:
    cdef LexSet* here = lexset_next(lexes, byte)
    cdef LexState* lex
    cdef Part part
    if here == LEXSET_DEAD:
        return
    if here.going != NULL:
        part.lexes = here.going
        part.parser = parser
        out.push_back(part)
    for lex in here.exits:
        set_leave(core, lex, parser, joined)


cdef void parts_step(Core* core, Sets* sets, const vector[Part]& parts, uint8_t byte,
                     vector[Part]& out) noexcept nogil:
    # All parts over one byte.
    cdef vector[int32_t] joined
    cdef LexSet* start
    cdef size_t i
    out.clear()
    for i in range(parts.size()):
        if parts[i].lexes != NULL:
            part_step(core, parts[i].lexes, parts[i].parser, byte, out, joined)
        elif bits_has(core.program.states[parts[i].parser].first, byte):
            for start in dereference(set_starts(core, sets, parts[i].parser)):
                part_step(core, start, parser_narrow(core, sets, parts[i].parser, start.automaton), byte, out, joined)
    parts_join(core, sets, joined, out)


cdef int32_t set_byte(Core* core, Sets* sets, int32_t id, uint8_t byte) noexcept nogil:
    # The state of many texts behind one byte, or NO_STATE.
    cdef SetState* state = set_of(core, sets, id)
    cdef vector[Part] out
    if state.bytes.empty():
        state.bytes.resize(256, UNKNOWN)
        sets.held += vector_bytes(256, sizeof(int32_t))
    if state.bytes[byte] == UNKNOWN:
        parts_step(core, sets, state.parts, byte, out)
        state.bytes[byte] = set_intern(core, sets, out)
    return state.bytes[byte]


cdef int32_t set_bytes(Core* core, Sets* sets, int32_t id, const uint8_t* data, int64_t length) noexcept nogil:
    # Behind some bytes; NO_STATE also when time is up.
    cdef int64_t i
    for i in range(length):
        if id == NO_STATE or sets_full(core, sets) or deadline_look(&core.index.deadline):
            return NO_STATE
        id = set_byte(core, sets, id, data[i])
    return id


# --- any token ------------------------------------------------------------------------------

cdef int32_t sets_any(Core* core, Sets* sets, int32_t id) noexcept nogil:
    # The state behind any one token that is text; NO_STATE when there is none, UNKNOWN when time is up.
    cdef SetState* state
    if core.program.lexer != NULL:
        return lexed_any(core, sets, id)
    state = set_of(core, sets, id)
    if state.any == UNKNOWN:
        state.any = frames_any(core, sets, state.parts)
    return state.any


# --- unions ---------------------------------------------------------------------------------

cdef int32_t sets_join(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # The state of the texts of both.
    cdef vector[Part] parts
    cdef SetState* other
    cdef int64_t key
    cdef int32_t id
    if a == b or b == NO_STATE:
        return a
    if a == NO_STATE:
        return b
    if a > b:
        a, b = b, a
    key = (<int64_t>a << 32) | b
    found = sets.joined.find(key)
    if found != sets.joined.end():
        return dereference(found).second
    if core.program.lexer != NULL:
        id = lexed_join(core, a, b)
    else:
        parts = set_of(core, sets, a).parts
        other = set_of(core, sets, b)
        parts.insert(parts.end(), other.parts.begin(), other.parts.end())
        id = set_intern(core, sets, parts)
    sets.joined[key] = id
    return id


cdef cbool parser_covers(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # Whether all that may follow `b` may follow `a`, as far as merging them shows it.
    cdef vector[int32_t] both
    if a == b:
        return True
    both.push_back(a)
    both.push_back(b)
    return parsers_merge(core, sets, both) == a


cdef cbool lexset_covers(LexSet* a, LexSet* b) noexcept nogil:
    cdef vector[LexSet*] both
    if a == b:
        return True
    if a == NULL or b == NULL or a.automaton != b.automaton:
        return False
    both.push_back(a)
    both.push_back(b)
    return lexset_union(a.automaton, both) == a


cdef cbool sets_covers(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # Whether everything that may follow `b` may follow `a`, as far as equal parts show it.
    cdef SetState* over
    cdef SetState* under
    cdef size_t i, j
    cdef cbool found
    if a == b:
        return True
    if core.program.lexer != NULL:
        return lexed_covers(core, a, b)
    over = set_of(core, sets, a)
    under = set_of(core, sets, b)
    if over == under:
        return True
    for i in range(under.parts.size()):
        found = False
        for j in range(over.parts.size()):
            if (lexset_covers(over.parts[j].lexes, under.parts[i].lexes)
                    and parser_covers(core, sets, over.parts[j].parser, under.parts[i].parser)):
                found = True
                break
        if not found:
            return False
    return True


# --- tokens by where they lead --------------------------------------------------------------

cdef void sets_classes(Core* core, Sets* sets, int32_t id, const Trie* trie, vector[int32_t]& targets) noexcept nogil:
    # Where each token of a trie leads, by token, if it is allowed.
    cdef uint32_t node = 1
    cdef size_t depth
    cdef int32_t t
    cdef vector[int32_t] path
    if core.program.lexer != NULL:
        lexed_classes(core, sets, id, trie, targets)
        return
    path.resize(core.index.most_bytes + 1, NO_STATE)
    path[0] = id
    while node < trie.nodes[0].end:
        if sets_stop(core, sets):
            return
        depth = trie.nodes[node].depth
        path[depth] = set_byte(core, sets, path[depth - 1], trie.nodes[node].byte)
        if path[depth] == NO_STATE:
            node = trie.nodes[node].end
            continue
        for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
            targets[trie.tokens[t]] = path[depth]
        node += 1


# --- completions ----------------------------------------------------------------------------

cdef enum:
    SAMPLED = 4            # members of a set of lexer states that are looked at


cdef cbool sets_shortest(Core* core, Sets* sets, int32_t id, vector[uint8_t]& out) noexcept nogil:
    # Some short completion of one of the texts; the shortest one of the only text.
    cdef SetState* state
    cdef vector[Thread] threads
    cdef Thread thread
    cdef Part part
    cdef size_t i, step
    if id < SET_BASE:
        return shortest_bytes(core, id, out)
    state = sets.states[id - SET_BASE]
    if state.accepting:
        return True
    for part in state.parts:
        thread = thread_at(part.parser, NULL)
        if part.lexes == NULL:
            threads.push_back(thread)
            continue
        step = (part.lexes.members.size() + SAMPLED - 1) // SAMPLED
        i = 0
        while i < part.lexes.members.size():
            thread.lex = part.lexes.automaton.states[part.lexes.members[i]]
            thread.memory = UNKNOWN_TEXT if lex_keeps_text(thread.lex) else 0
            threads.push_back(thread)
            i += step
    return shortest_plain(core, threads, out)


# --- States of many texts where a vocabulary has an opening (masks.pyx).
#
# The opening reads tokens differently, so it is never merged with what is behind other texts: where one of several
# texts is at its very start, their state is *mixed*, the opening and the state of the others.  Both are asked, and
# their answers joined.

cdef inline cbool state_opens(const Core* core, int32_t id) noexcept nogil:
    # Whether one of the texts is at its very start.
    return id == core.opening or id >= MIXED_BASE


cdef int32_t state_mixed(Core* core, Sets* sets, int32_t others) noexcept nogil:
    # The state of a text at its very start and of others.
    if others == NO_STATE:
        return core.opening
    found = sets.mixed_ids.find(others)
    if found != sets.mixed_ids.end():
        return dereference(found).second
    sets.mixed.push_back(others)
    sets.mixed_ids[others] = MIXED_BASE + <int32_t>sets.mixed.size() - 1
    return sets.mixed_ids[others]


cdef int32_t state_join(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    cdef int32_t others
    if a == NO_STATE or b == NO_STATE:
        return b if a == NO_STATE else a
    if not state_opens(core, a) and not state_opens(core, b):
        return sets_join(core, sets, a, b)
    others = sets_join(core, sets, state_others(core, sets, a), state_others(core, sets, b))
    return state_mixed(core, sets, others)


cdef int32_t state_read(Core* core, Sets* sets, int32_t id, int32_t token, const uint8_t* data,
                        int64_t length) noexcept nogil:
    # The state behind the bytes of a token (-1: behind any bytes).
    if id >= MIXED_BASE:
        return state_join(core, sets, edge_make(core, core.opening, token, data, length),
                          state_read(core, sets, state_others(core, sets, id), token, data, length))
    if id >= SET_BASE:
        return set_bytes(core, sets, id, data, length)
    return edge_make(core, id, token, data, length)


cdef cbool state_covers(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # As `sets_covers`; what only the opening of `a` covers is missed.
    cdef int32_t over = state_others(core, sets, a), under = state_others(core, sets, b)
    if a == b:
        return True
    if state_opens(core, b) and not state_opens(core, a):
        return False
    return under == NO_STATE or (over != NO_STATE and sets_covers(core, sets, over, under))


cdef void opening_classes(Core* core, Sets* sets, vector[int32_t]& targets) noexcept nogil:
    # Where each token leads at the very start.
    cdef const Opening* opening = core.index.opening
    cdef int32_t token
    cdef size_t i
    sets_classes(core, sets, core.start, core.index.trie, targets)
    for token in range(<int32_t>targets.size()):
        if opening_marks(core.index, token):
            targets[token] = NO_STATE
    sets_classes(core, sets, core.start, &opening.trie, targets)
    for i in range(opening.silent.size()):
        targets[opening.silent[i]] = opening_silent(core)


cdef void state_classes(Core* core, Sets* sets, int32_t id, vector[int32_t]& targets) noexcept nogil:
    # Where each token leads; NO_STATE when it is not allowed.
    cdef vector[int32_t] others
    cdef size_t i
    if not state_opens(core, id):
        sets_classes(core, sets, id, core.index.trie, targets)
        return
    opening_classes(core, sets, targets)
    if id == core.opening:
        return
    others.resize(targets.size(), NO_STATE)
    sets_classes(core, sets, state_others(core, sets, id), core.index.trie, others)
    for i in range(targets.size()):
        targets[i] = state_join(core, sets, targets[i], others[i])


cdef int32_t opening_any(Core* core, Sets* sets) noexcept nogil:
    # Behind any one token at the very start; UNKNOWN when time is up.
    cdef vector[int32_t] targets
    cdef vector[Part] parts
    cdef vector[Thread] threads
    cdef SetState* state
    cdef int32_t joined, previous = NO_STATE
    cdef cbool opens = False
    cdef size_t i
    targets.resize(core.index.opening.starts.size() - 1, NO_STATE)
    opening_classes(core, sets, targets)
    sort(targets.begin(), targets.end())
    for i in range(targets.size()):
        if targets[i] == previous:
            continue
        previous = targets[i]
        if previous == core.opening:
            opens = True
        elif core.program.lexer != NULL:
            threads.insert(threads.end(), core.states[previous].threads.begin(), core.states[previous].threads.end())
        else:
            state = set_of(core, sets, previous)
            parts.insert(parts.end(), state.parts.begin(), state.parts.end())
    joined = matcher_intern(core, threads) if core.program.lexer != NULL else set_intern(core, sets, parts)
    if core.index.deadline.passed:
        return UNKNOWN
    return state_mixed(core, sets, joined) if opens else joined


cdef int32_t state_any(Core* core, Sets* sets, int32_t id) noexcept nogil:
    # The state behind any one token that is text; NO_STATE when there is none, UNKNOWN when time is up.
    cdef int32_t others
    if not state_opens(core, id):
        return sets_any(core, sets, id)
    if sets.opening_any == UNKNOWN:
        sets.opening_any = opening_any(core, sets)
    if id == core.opening or sets.opening_any == UNKNOWN:
        return sets.opening_any
    others = sets_any(core, sets, state_others(core, sets, id))
    return UNKNOWN if others == UNKNOWN else state_join(core, sets, sets.opening_any, others)
