# Keeping what is cached below a number of bytes.
#
# Everything cached can be computed again: masks of matcher states and of lexer states, token
# edges, slices.  When an operation leaves more than the budget, what nobody used since the last
# sweep goes first, then everything, until half of the budget is free.  Whoever still refers to
# a bitset holds it, so nothing dangles.

cdef void evict_masks(Core* core, cbool all_of_them) noexcept nogil:
    cdef MatcherState* state
    cdef size_t i
    for i in range(core.states.size()):
        state = core.states[i]
        if state.mask != NULL and (all_of_them or not state.used):
            mask_free(core, state.mask)
            state.mask = NULL
        state.used = False


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


cdef void evict_flags(Automaton* automaton) noexcept nogil:
    cdef size_t i
    for i in range(automaton.states.size()):
        if automaton.states[i].mask != NULL:
            automaton.states[i].mask.used = False


cdef void evict(Index* index) noexcept nogil:
    # To be called between operations, with the lock held exclusively.
    cdef cbool all_of_them = False
    cdef size_t i
    while index.bytes > index.budget // 2:
        for i in range(index.cores.size()):
            evict_masks(index.cores[i], all_of_them)
            if all_of_them:
                edges_forget(index.cores[i])
        for i in range(index.automata.size()):
            evict_lexmasks(index.automata[i], all_of_them)
        for i in range(index.automata.size()):
            evict_flags(index.automata[i])
        if all_of_them:
            index_forget_slices(index)
            return
        all_of_them = True
