# Masks of matcher states: what each thread allows, joined.

from libcpp cimport bool as cbool
from libcpp.atomic cimport memory_order_relaxed
from libcpp.vector cimport vector

from maskwright._engine.vocabulary cimport Opening
from maskwright._engine.turns cimport turn_offer
from maskwright._engine.char_index cimport bits_new
from maskwright._engine.lexemes cimport ResidualView
from maskwright._engine.program cimport ParserState
from maskwright._engine.tracked cimport is_tracked
from maskwright._engine.core cimport MatcherState, Thread
from maskwright._engine.states cimport mask_add_tokens, mask_free, mask_size, mask_walk, mask_write
from maskwright._engine.distinct_masks cimport distinct_mask
from maskwright._engine.frame_masks cimport mask_join_thread
from maskwright._engine.lexed_masks cimport mask_lexed


# --- The very start of a text, for vocabularies where some tokens stand for something else there.
#
# Tokenizers that mark the starts of words write a blank into most tokens, and their decoders drop the one in front of a
# text.  So the very start is a matcher state of its own: the *opening*.  Its threads are those of the start, which it
# becomes behind a token that stands for nothing (unless `stays`); bytes that are no token are read in both alike.

cdef int32_t opening_state(Core* core) noexcept nogil:
    # Make the opening next to the start.
    cdef MatcherState* state = core.states.add()
    state.threads = core.states[core.start].threads
    state.accepting = core.states[core.start].accepting
    return <int32_t>core.states.size() - 1


cdef void mask_opening(Core* core, Mask* mask) noexcept nogil:
    # The mask of the start, with tokens that stand for something else here decided by that.
    cdef const Opening* opening = core.index.opening
    cdef Mask* plain = mask_get(core, core.start)
    cdef ResidualView view
    cdef size_t i
    if plain == NULL:
        return
    mask.bits = bits_new(core.index)
    mask_write(core, plain, mask.bits.words.data())
    for i in range(opening.marked.size()):
        mask.bits.words[i] &= ~opening.marked[i]
    view.trie = &opening.trie
    view.first = 1
    view.last = opening.trie.nodes[0].end
    view.depth = 0
    mask_walk(core, core.states[core.start].threads, view, core.states[core.start].threads, mask.added)
    mask.added.insert(mask.added.end(), opening.silent.begin(), opening.silent.end())
    if core.program.has_tokens:
        mask_add_tokens(core, core.states[core.start].threads, mask)


# --- masks ----------------------------------------------------------------------------------

cdef inline void mask_join(Core* core, Mask* mask, const vector[Thread]& threads, const Thread& thread,
                           cbool begun, cbool alone) noexcept nogil:
    # `begun`: the thread's lexeme was, else it starts here.
    turn_offer(core.index)
    if is_tracked(thread.memory):
        distinct_mask(core, mask, thread, begun, alone)
    else:
        mask_join_thread(core, threads, mask, thread.lex, thread.parser, alone)


cdef Mask* mask_get(Core* core, int32_t id) noexcept nogil:
    # NULL when time is up.
    cdef MatcherState* state = core.states[id]
    cdef Mask* mask = state.mask
    cdef ParserState* parser
    cdef Thread thread
    cdef size_t i, j
    cdef int32_t t
    state.used.store(True, memory_order_relaxed)
    if mask != NULL:
        return mask
    mask = new Mask()
    mask.bits = NULL
    if id == core.opening:
        mask_opening(core, mask)
    elif core.program.lexer != NULL:
        mask_lexed(core, state.threads, mask)
    for i in range(state.threads.size() if core.program.lexer == NULL and id != core.opening else 0):
        thread = state.threads[i]
        if thread.lex != NULL:
            mask_join(core, mask, state.threads, thread, True, state.threads.size() == 1)
            continue
        parser = core.program.states[thread.parser]
        for j in range(parser.starts.size()):
            thread.lex = parser.starts[j]
            mask_join(core, mask, state.threads, thread, False, state.threads.size() == 1 and parser.starts.size() == 1)
    if core.program.has_tokens and id != core.opening:
        mask_add_tokens(core, state.threads, mask)
    if state.accepting and id != core.opening:
        for t in core.eos:
            mask.added.push_back(t)
    core.index.cache.bytes.add(mask_size(mask))
    if core.index.deadline.passed:
        mask_free(core, mask)
        return NULL
    state.mask = mask
    return mask
