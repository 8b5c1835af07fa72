# Keeping what is cached below a number of bytes.
#
# Everything cached can be computed again: masks of matcher states and of lexer states, token edges, slices.  When an operation
# leaves more than the budget, a *hand* goes on along all states from where it stopped the last time: what was used since it came by
# is marked as unused, what was not is dropped, until there is a little room.  So an operation drops about as much as the last ones
# added, and nobody waits for more.  If the hand came round twice and that was not enough, everything goes.  Whoever still refers to
# a bitset holds it, so nothing dangles.

cdef void evict_state(Core* core, MatcherState* state, cbool all_of_them) noexcept nogil:
    if state.used and not all_of_them:
        state.used = False
        return
    mask_free(core, state.mask)
    state.mask = NULL
    core.index.bytes.subtract(state.edges.bytes())
    core.edges -= <int64_t>state.edges.count()
    state.edges.clear()


cdef cbool evict_lexmask(LexMask* mask, cbool all_of_them) noexcept nogil:
    # Whether it was let go of.
    if mask.used and not all_of_them:
        mask.used = False
        return False
    lexmask_release(mask)
    return True


cdef void evict_lexstate(LexState* state, cbool all_of_them) noexcept nogil:
    if state.mask != NULL and evict_lexmask(state.mask, all_of_them):
        state.mask = NULL


cdef void evict_tables(Automaton* automaton, cbool all_of_them) noexcept nogil:
    # What an automaton keeps besides the masks of its states.
    if automaton.counted != NULL:
        masktable_evict(automaton.counted, all_of_them)
    if automaton.lexer != NULL:
        lexer_forget_masks(automaton.lexer, all_of_them)


cdef void masktable_evict(MaskTable* table, cbool all_of_them) noexcept nogil:
    cdef vector[string] gone
    cdef pair[string, LexMask*] entry
    cdef size_t i
    for entry in table.masks:
        if evict_lexmask(entry.second, all_of_them):
            gone.push_back(entry.first)
    for i in range(gone.size()):
        table.masks.erase(gone[i])


cdef void evict_along(Index* index, int64_t goal, cbool all_of_them) noexcept nogil:
    # The hand goes on until there are no more bytes than `goal`, at most twice round.
    cdef size_t units = index.cores.size() + index.automata.size(), passed = 0, size, i
    cdef Core* core
    cdef Automaton* automaton
    while passed <= 2 * units and index.bytes.value() > goal:
        if index.hand_unit >= units:
            index.hand_unit = index.hand_item = 0
        if index.hand_unit < index.cores.size():
            core = index.cores[index.hand_unit]
            size = core.states.size()
            while index.hand_item < size and index.bytes.value() > goal:
                evict_state(core, core.states[index.hand_item], all_of_them)
                index.hand_item += 1
            if index.hand_item >= size:
                framemasks_forget(core)
                for automaton in core.program.keysets:
                    for i in range(automaton.states.size()):
                        evict_lexstate(automaton.states[i], all_of_them)
        else:
            automaton = index.automata[index.hand_unit - index.cores.size()]
            size = automaton.states.size()
            while index.hand_item < size and index.bytes.value() > goal:
                evict_lexstate(automaton.states[index.hand_item], all_of_them)
                index.hand_item += 1
            if index.hand_item >= size:
                evict_tables(automaton, all_of_them)
        if index.hand_item >= size:
            index.hand_item = 0
            index.hand_unit += 1
            passed += 1


cdef void evict(Index* index) noexcept nogil:
    # To be called between operations, with the lock held exclusively.
    cdef int64_t goal = index.budget - index.budget // EVICT_ROOM
    evict_along(index, goal, False)
    if index.bytes.value() > goal:
        Reaper.instance().finish(index)
    if index.bytes.value() > goal:
        index.hand_unit = index.hand_item = 0
        evict_along(index, 0, True)
        index_forget_slices(index)
