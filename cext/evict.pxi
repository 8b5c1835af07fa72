# Keeping what is cached below a number of bytes.
#
# Everything cached can be computed again: masks of matcher states and of lexer states, token
# edges, slices.  When three quarters of the budget are taken, everything is marked as unused; when
# an operation leaves more than the budget, what waits to be freed goes first, then what nobody
# used since then, then everything, until half of the budget is free.  Whoever still refers to a
# bitset holds it, so nothing dangles.

cdef void evict_masks(Core* core, cbool all_of_them) noexcept nogil:
    cdef MatcherState* state
    cdef size_t i
    for i in range(core.states.size()):
        state = core.states[i]
        if state.mask != NULL and (all_of_them or not state.used):
            mask_free(core, state.mask)
            state.mask = NULL


cdef void evict_lexmasks(Automaton* automaton, cbool all_of_them) noexcept nogil:
    cdef LexState* state
    cdef size_t i
    for i in range(automaton.states.size()):
        state = automaton.states[i]
        if state.mask != NULL and (all_of_them or not state.mask.used):
            lexmask_release(state.mask)
            state.mask = NULL
    if automaton.counted != NULL:
        masktable_evict(automaton.counted, all_of_them)
    if automaton.lexer != NULL:
        lexer_forget_masks(automaton.lexer, all_of_them)


cdef void masktable_evict(MaskTable* table, cbool all_of_them) noexcept nogil:
    cdef vector[string] gone
    cdef pair[string, LexMask*] entry
    cdef size_t i
    for entry in table.masks:
        if all_of_them or not entry.second.used:
            gone.push_back(entry.first)
            lexmask_release(entry.second)
    for i in range(gone.size()):
        table.masks.erase(gone[i])


cdef void age(Index* index) noexcept nogil:
    # From now on, flags tell what is used.
    cdef Automaton* automaton
    cdef pair[string, LexMask*] entry
    cdef pair[int64_t, LexMask*] context
    cdef size_t i, j
    for i in range(index.cores.size()):
        for j in range(index.cores[i].states.size()):
            index.cores[i].states[j].used = False
    for i in range(index.automata.size()):
        automaton = index.automata[i]
        for j in range(automaton.states.size()):
            if automaton.states[j].mask != NULL:
                automaton.states[j].mask.used = False
        if automaton.counted != NULL:
            for entry in automaton.counted.masks:
                entry.second.used = False
        if automaton.lexer != NULL:
            for context in automaton.lexer.masks:
                context.second.used = False
            for entry in automaton.lexer.shares.masks:
                entry.second.used = False
            for context in automaton.lexer.parts:
                context.second.used = False
            for context in automaton.lexer.watched:
                context.second.used = False
    index.aged = True


cdef void evict(Index* index) noexcept nogil:
    # To be called between operations, with the lock held exclusively.
    cdef cbool all_of_them = False
    cdef size_t i
    Reaper.instance().finish(index)
    while index.bytes.value() > index.budget // 2:
        for i in range(index.cores.size()):
            evict_masks(index.cores[i], all_of_them)
            framemasks_forget(index.cores[i])
            if all_of_them:
                edges_forget(index.cores[i])
        for i in range(index.automata.size()):
            evict_lexmasks(index.automata[i], all_of_them)
        if all_of_them:
            index_forget_slices(index)
            break
        all_of_them = True
    index.aged = False
