# Keeping what is cached below a number of bytes.
#
# Everything cached can be computed again: masks of matcher states and of lexer states, token edges, slices.  When an operation
# leaves nearly as much as the budget, a *hand* goes on along all states from where it stopped the last time: what was used since it
# came by is marked as unused, what was not is dropped, until there is a little room.  It looks at a bounded number of states, so
# nobody waits long, and begins early enough for that to do.  Only where an operation leaves more than the budget does it go on until
# there is room; if it came round twice and that was not enough, everything goes.  Whoever still refers to a bitset holds it, so
# nothing dangles.

cdef enum:
    EVICT_LOOKS = 1024     # states that the hand looks at behind one operation

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


cdef cbool evict_states(Index* index, Automaton* automaton, int64_t goal, cbool all_of_them, int64_t* looks) noexcept nogil:
    # Those of an automaton, from where the hand is; whether it came to the end of them.
    cdef size_t size = automaton.states.size()
    while index.hand_item < size and looks[0] > 0 and index.bytes.value() > goal:
        evict_lexstate(automaton.states[index.hand_item], all_of_them)
        index.hand_item += 1
        looks[0] -= 1
    return index.hand_item >= size


cdef cbool evict_core(Index* index, Core* core, int64_t goal, cbool all_of_them, int64_t* looks) noexcept nogil:
    # The same of a core: its states, then those of each keyset of its own.
    cdef size_t size = core.states.size()
    if index.hand_part == 0:
        while index.hand_item < size and looks[0] > 0 and index.bytes.value() > goal:
            evict_state(core, core.states[index.hand_item], all_of_them)
            index.hand_item += 1
            looks[0] -= 1
        if index.hand_item < size:
            return False
        framemasks_forget(core)
        index.hand_part = 1
        index.hand_item = 0
    while index.hand_part <= core.program.keysets.size():
        if not evict_states(index, core.program.keysets[index.hand_part - 1], goal, all_of_them, looks):
            return False
        index.hand_part += 1
        index.hand_item = 0
    return True


cdef void evict_along(Index* index, int64_t goal, cbool all_of_them, int64_t looks) noexcept nogil:
    # The hand goes on until there are no more bytes than `goal`, at most twice round, and over at most so many states.
    cdef size_t units = index.cores.size() + index.automata.size(), passed = 0
    cdef Automaton* automaton
    cdef cbool whole
    while passed <= 2 * units and looks > 0 and index.bytes.value() > goal:
        if index.hand_unit >= units:
            index.hand_unit = index.hand_part = index.hand_item = 0
        if index.hand_unit < index.cores.size():
            whole = evict_core(index, index.cores[index.hand_unit], goal, all_of_them, &looks)
        else:
            automaton = index.automata[index.hand_unit - index.cores.size()]
            whole = evict_states(index, automaton, goal, all_of_them, &looks)
            if whole:
                evict_tables(automaton, all_of_them)
        if whole:
            index.hand_part = index.hand_item = 0
            index.hand_unit += 1
            passed += 1
            looks -= 1


cdef inline int64_t evict_goal(const Index* index) noexcept nogil:
    return index.budget - index.budget // EVICT_ROOM


cdef void evict(Index* index) noexcept nogil:
    # To be called between operations, with the lock held exclusively.
    cdef int64_t goal = evict_goal(index)
    evict_along(index, goal, False, EVICT_LOOKS if index.bytes.value() <= index.budget else NO_LIMIT)
    if index.bytes.value() <= index.budget:
        return
    Reaper.instance().finish(index)
    if index.bytes.value() > goal:
        index.hand_unit = index.hand_part = index.hand_item = 0
        evict_along(index, 0, True, NO_LIMIT)
        index_forget_slices(index)
