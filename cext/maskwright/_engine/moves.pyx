# Matchers that move from one core to another of the same grammar (generations.pyx).
#
# A state is moved by content: what it is made of is interned anew where the matcher goes, from the bottom up, so that equal
# states are one number there, too.  Numbers of rules, plain states, records, automata and guards are those of the tables, and so
# the same in both; lexer states are, too, but those of keysets that a core has of its own.
#
# What grows with the text (sets of keys and items, values, groups and their indices) is moved in *tasks* (tasks.pyx), so many at each
# operation: what is interned never changes, so what was moved stays right however the text goes on.  When all of it has been, the
# matcher goes, and what is left of its states (stacks, frames, threads) is moved at once.
# --- places, stacks, parser states ------------------------------------------------------------

from cython.operator cimport dereference
from libc.stdint cimport uint64_t, uint8_t
from libcpp.string cimport string

from maskwright._engine.limits cimport NO_LIMIT
from maskwright._engine.lexemes cimport Automaton, KeyPlace, KIND_TEXT, KIND_WORDS, LexState
from maskwright._engine.lazy_dfa cimport dfa_intern
from maskwright._engine.lexeme_texts cimport text_state
from maskwright._engine.keyset cimport key_filter_intern, key_intern, key_place
from maskwright._engine.lexeme_state cimport words_moved
from maskwright._engine.program cimport (
    ACCEPT, Item, DottedItem, LOCAL_RECORD, NO_STATE, ParserState, Program, RecordDef, RecordRegister, Return,
    GssNode, UNKNOWN
)
from maskwright._engine.rules cimport keyset_of, parse_local, record_register, record_register_id, record_taken_intern
from maskwright._engine.columns cimport cycle_intern, node_intern
from maskwright._engine.stacks cimport state_first_line, state_intern
from maskwright._engine.tracked cimport Frame, is_tracked, memory_of_state, tracked_state, TrackerState
from maskwright._engine.values cimport text_append, text_bytes, UNKNOWN_TEXT
from maskwright._engine.tracker cimport frame_begin, frame_intern, tracker_state
from maskwright._engine.core cimport Core, Thread
from maskwright._engine.threads cimport core_learn
from maskwright._engine.states cimport threads_intern
from maskwright._engine.generations cimport core_bytes, core_settle
from maskwright._engine.tasks cimport (
    MOVE_CELLS, MOVE_ENTRY, MOVE_GROUP, MOVE_ITEMS, MOVE_KEYS, MOVE_VALUE, mover_needs, mover_run, mover_whole,
    state_needs
)


cdef int32_t move_keys(Mover* mover, int32_t used) noexcept nogil:
    return mover_whole(mover, MOVE_KEYS, used)


cdef int32_t move_local(Mover* mover, int32_t id) noexcept nogil:
    cdef const DottedItem* local = mover.old.program.locals[id]
    cdef const RecordDef* record
    cdef RecordDef* target
    cdef RecordRegister place
    cdef int32_t count = local.count
    if local.kind == LOCAL_RECORD:
        record = &mover.old.program.records[local.index]
        target = &mover.fresh.program.records[local.index]
        place = record_register(record, count)
        place.used = move_keys(mover, place.used)
        if place.taken:
            place.taken = record_taken_intern(target, record.taken[place.taken])
        count = record_register_id(target, place)
    return parse_local(mover.fresh.program, local.kind, local.index, local.phase, count)


cdef Return move_return(Mover* mover, Return back, int32_t first, int32_t last) noexcept nogil:
    # A return address of which the node was moved; one of the cycle of nodes [first, last) is told as cycle_intern wants it.
    if back.local != ACCEPT:
        back.local = move_local(mover, back.local)
        back.node = -1 - (back.node - first) if first <= back.node < last else mover.nodes.find(back.node)
    return back


cdef cbool move_wait(Mover* mover, int32_t at, int32_t first, int32_t last, vector[int32_t]& work) noexcept nogil:
    # Whether nodes below one have to be moved before it; they are added to the work.
    cdef const GssNode* node = mover.old.program.nodes[at]
    cdef size_t i, before = work.size()
    cdef Return back
    for i in range(node.returns.size()):
        back = node.returns[i]
        if back.local != ACCEPT and not first <= back.node < last and mover.nodes.find(back.node) == UNKNOWN:
            work.push_back(back.node)
    return work.size() > before


cdef void move_cycle(Mover* mover, int32_t first, int32_t last) noexcept nogil:
    # Nodes that refer to each other, together.
    cdef vector[int32_t] rules
    cdef vector[vector[Return]] contents
    cdef vector[Return] returns
    cdef Return back
    cdef int32_t at, base
    cdef size_t i
    for at in range(first, last):
        rules.push_back(mover.old.program.cycle_rule.find(at))
        returns.clear()
        for i in range(mover.old.program.nodes[at].returns.size()):
            back = mover.old.program.nodes[at].returns[i]
            returns.push_back(move_return(mover, back, first, last))
        contents.push_back(returns)
    base = cycle_intern(mover.fresh.program, rules, contents)
    for at in range(first, last):
        mover.nodes.insert(at, base + (at - first))


cdef int32_t move_node(Mover* mover, int32_t id) noexcept nogil:
    cdef Program* program = mover.old.program
    cdef vector[int32_t] work
    cdef vector[Return] returns
    cdef Return back
    cdef int32_t at, first, last
    cdef size_t i
    cdef cbool waits
    work.push_back(id)
    while not work.empty():
        at = work.back()
        if mover.nodes.find(at) != UNKNOWN:
            work.pop_back()
            continue
        first = last = program.cycle_first.find(at)
        if first == UNKNOWN:
            if not move_wait(mover, at, 0, 0, work):
                returns.clear()
                for i in range(program.nodes[at].returns.size()):
                    back = program.nodes[at].returns[i]
                    returns.push_back(move_return(mover, back, 0, 0))
                mover.nodes.insert(at, node_intern(mover.fresh.program, returns))
            continue
        while program.cycle_first.find(last) == first:
            last += 1
        waits = False
        for at in range(first, last):
            waits = move_wait(mover, at, first, last, work) or waits
        if not waits:
            move_cycle(mover, first, last)
    return mover.nodes.find(id)


cdef int32_t move_parser(Mover* mover, int32_t id) noexcept nogil:
    cdef const ParserState* state
    cdef vector[Item] items
    cdef Item item
    cdef int32_t moved
    cdef size_t i
    moved = mover.parsers.find(id)
    if moved == UNKNOWN:
        state = mover.old.program.states[id]
        if state.plain != NO_STATE:
            return state_first_line(mover.fresh.program, move_parser(mover, state.plain))
        for i in range(state.items.size()):
            item.local = move_local(mover, state.items[i].local)
            item.node = move_node(mover, state.items[i].node)
            items.push_back(item)
        moved = state_intern(mover.fresh.program, items, state.complete)
        mover.parsers.insert(id, moved)
    return moved


# --- lexer states, texts ------------------------------------------------------------------------

cdef LexState* move_lex(Mover* mover, LexState* state) noexcept nogil:
    cdef Automaton* keys                                   # where it leads
    cdef KeyPlace place
    cdef vector[uint64_t] items
    if state == NULL:
        return state
    if state.automaton.keyset.used != NULL:
        # A copy: each program has its own.
        keys = keyset_of(mover.fresh.program, state.automaton.keyset.place)
    else:
        anew = mover.lexemes.find(state.automaton)
        if anew == mover.lexemes.end():
            return state
        keys = dereference(anew).second
    if keys.kind == KIND_WORDS:
        return words_moved(keys, state)
    if keys.kind == KIND_TEXT:
        items.assign(state.dfa_state.items.begin(), state.dfa_state.items.end())
        return text_state(keys, dfa_intern(keys.dfa, items), state.form, state.left, state.low)
    place = key_place(state)
    place.base = move_lex(mover, place.base)
    place.at.used = move_keys(mover, place.at.used)
    if place.at.filter:
        place.at.filter = key_filter_intern(keys, state.automaton.keyset.filters[place.at.filter])
    return key_intern(keys, place)


cdef int32_t move_letters(Mover* mover, int32_t text) noexcept nogil:
    # A text by number (values.pyx).
    cdef string letters
    cdef size_t i
    cdef int32_t moved = 0
    if text == UNKNOWN_TEXT:
        return text
    letters = text_bytes(&mover.old.tracker.store.texts, text)
    for i in range(letters.size()):
        moved = text_append(&mover.fresh.tracker.store.texts, moved, <uint8_t>letters[i])
    return moved


cdef void move_frame(Mover* mover, int32_t id, int32_t parent) noexcept nogil:
    # A frame of which the one around it was moved.
    cdef const Frame* frame = mover.old.tracker.frames[id]
    cdef Frame content
    cdef size_t i
    frame_begin(&content)
    content.parent = parent
    content.is_object = frame.is_object
    content.guard = frame.guard
    content.count = frame.count
    content.size = frame.size
    content.unknown = frame.unknown
    content.doubtful = frame.doubtful
    content.items = mover_whole(mover, MOVE_ITEMS, frame.items)
    content.arrays = mover_whole(mover, MOVE_GROUP, frame.arrays)
    content.objects = mover_whole(mover, MOVE_GROUP, frame.objects)
    content.cells = mover_whole(mover, MOVE_CELLS, frame.cells)
    content.key = mover_whole(mover, MOVE_VALUE, frame.key)
    for i in range(frame.candidates.size()):
        content.candidates.push_back(mover_whole(mover, MOVE_VALUE, frame.candidates[i]))
    for i in range(frame.groups.size()):
        content.groups.push_back(mover_whole(mover, MOVE_GROUP, frame.groups[i]))
    mover.frames.insert(id, frame_intern(&mover.fresh.tracker, content))


cdef int32_t move_memory(Mover* mover, int32_t memory) noexcept nogil:
    # What a thread has read of a key, or of an array of different items.
    cdef TrackerState at
    cdef vector[int32_t] around
    cdef int32_t frame, moved
    if not is_tracked(memory):
        return 0 if memory == 0 else move_letters(mover, memory)
    moved = mover.tracked.find(tracked_state(memory))
    if moved != UNKNOWN:
        return memory_of_state(moved)
    at = mover.old.tracker.states[tracked_state(memory)]
    frame = at.frame
    while frame >= 0 and mover.frames.find(frame) == UNKNOWN:
        around.push_back(frame)
        frame = mover.old.tracker.frames[frame].parent
    while not around.empty():
        move_frame(mover, around.back(), mover.frames.find(frame) if frame >= 0 else -1)
        frame = around.back()
        around.pop_back()
    moved = tracker_state(&mover.fresh.tracker, mover.frames.find(frame), at.mode, move_letters(mover, at.text), at.escape, at.value)
    mover.tracked.insert(tracked_state(memory), tracked_state(moved))
    return moved


# --- states of matchers ---------------------------------------------------------------------------

cdef int32_t move_state(Mover* mover, int32_t id) noexcept nogil:
    # A state whose threads can all be completed.
    cdef vector[Thread] threads
    cdef Thread thread
    cdef size_t i
    cdef int32_t moved
    if id < 0:
        return id
    if id == mover.old.opening:
        return mover.fresh.opening
    moved = mover.states.find(id)
    if moved != UNKNOWN:
        return moved
    for i in range(mover.old.states[id].threads.size()):
        thread = mover.old.states[id].threads[i]
        thread.lex = move_lex(mover, thread.lex)
        thread.lookahead = move_lex(mover, thread.lookahead)
        thread.parser = move_parser(mover, thread.parser)
        thread.memory = move_memory(mover, thread.memory)
        threads.push_back(thread)
        if mover.fresh.program.lexer != NULL:
            core_learn(mover.fresh, thread, 1)
    moved = threads_intern(mover.fresh, threads)
    mover.states.insert(id, moved)
    return moved


# --- What a matcher has read: tokens, and the states that it can go back to.
#
# States belong to a generation (generations.pyx).  A matcher that moves takes the last few of them along, and some earlier ones
# as *marks*: to go back further, the tokens behind a mark are read again.  A matcher with a window forgets tokens and states
# that are further back than it may be asked to go.

cdef void past_begin(Past* past, int32_t state, int64_t position) noexcept nogil:
    # Nothing is known of what came before.
    cdef Mark mark
    mark.position = past.first = past.reached = position
    mark.state = state
    past.marks.assign(1, mark)
    past.states.assign(1, state)
    past.tokens.clear()


cdef size_t past_mark(const Past* past, int64_t position) noexcept nogil:
    # The last mark that is not behind a position.
    cdef size_t i = past.marks.size() - 1
    while past.marks[i].position > position:
        i -= 1
    return i


cdef void past_push(Past* past, int32_t state, int32_t token, int64_t window) noexcept nogil:
    # `window`: below zero, everything is kept.
    past.states.push_back(state)
    past.tokens.push_back(token)
    past.reached = max(past.reached, past_count(past))
    if window >= 0 and <int64_t>past.tokens.size() >= 2 * window + PAST_SLACK:
        past_forget(past, past.reached - window)


cdef void past_forget(Past* past, int64_t position) noexcept nogil:
    # What is before a position, as far as there is a state to begin with.
    cdef Mark mark
    cdef int64_t before = past.marks[0].position
    if position >= past.first:
        mark.position = position
        mark.state = past.states[<size_t>(position - past.first)]
        past.states.erase(past.states.begin(), past.states.begin() + (position - past.first))
        past.marks.assign(1, mark)
        past.first = position
    else:
        past.marks.erase(past.marks.begin(), past.marks.begin() + past_mark(past, position))
    past.tokens.erase(past.tokens.begin(), past.tokens.begin() + (past.marks[0].position - before))


cdef void past_cut(Past* past, int64_t position) noexcept nogil:
    # Back to a position of which the state is known.
    past.states.resize(<size_t>(position - past.first + 1))
    past.tokens.resize(<size_t>(position - past.marks[0].position))


cdef void past_thin(Past* past) noexcept nogil:
    # Every other mark, but the first one, if they are many.
    cdef size_t i, j = 1
    if past.marks.size() <= PAST_MARKS:
        return
    for i in range(2, past.marks.size(), 2):
        past.marks[j] = past.marks[i]
        j += 1
    past.marks.resize(j)


cdef void past_move(Mover* mover, Past* past) noexcept nogil:
    # Go on where the mover leads.
    cdef Mark mark
    cdef size_t i, gone = 0
    if past.states.size() > PAST_STATES:
        gone = past.states.size() - PAST_STATES
    past.states.erase(past.states.begin(), past.states.begin() + gone)
    past.first += <int64_t>gone
    if past.first > past.marks.back().position:
        mark.position = past.first
        mark.state = past.states[0]
        past.marks.push_back(mark)
        past_thin(past)
    for i in range(past.marks.size()):
        past.marks[i].state = move_state(mover, past.marks[i].state)
    for i in range(past.states.size()):
        past.states[i] = move_state(mover, past.states[i])


cdef cbool past_ready(Mover* mover, const Past* past, int64_t steps) noexcept nogil:
    # Whether all is moved that grows with the text, of the states that a matcher takes along; else in so many steps some more of it.
    cdef size_t i, last = 0
    if not mover_run(mover, &steps):
        return False
    # Indices that were made since the last time.
    for i in range(max(mover.entries, <size_t>1), mover.old.tracker.entries.size()):
        mover_needs(mover, MOVE_ENTRY, <int32_t>i)
    mover.entries = mover.old.tracker.entries.size()
    if past.states.size() > PAST_STATES:
        last = past.states.size() - PAST_STATES
    for i in range(past.marks.size()):
        state_needs(mover, past.marks[i].state)
    for i in range(last, past.states.size()):
        state_needs(mover, past.states[i])
    return mover_run(mover, &steps)


cdef cbool core_fetch(Mover* mover, Past* past) noexcept nogil:
    # Move a matcher, under the lock; False: so far only some of what it needs.  Nothing here looks at limits: all of it is in the
    # text.  The more its core has grown since the last time, the more is moved.
    cdef Core* fresh = mover.fresh
    cdef int64_t before = core_bytes(fresh), bytes = core_bytes(mover.old)
    cdef cbool ready
    fresh.index.deadline.most_states = fresh.index.deadline.most_bytes = NO_LIMIT
    if mover.bytes < 0:
        mover.bytes = bytes
        mover.entries = mover.old.tracker.entries.size()
    ready = past_ready(mover, past, fresh.index.move_steps + max(bytes - mover.bytes, <int64_t>0) // PAST_GAIN)
    mover.bytes = bytes
    mover.begun = not ready
    if ready:
        past_move(mover, past)
    core_settle(fresh, before)
    return ready
