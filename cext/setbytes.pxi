# What sets of texts take, and that they end where `max_set_bytes` says.
#
# All of it is a cache.  States of many texts, and the stacks that they need, are in a core of their own (StateSets), which
# is dropped as a whole; sets of lexer states and residuals are shared by all grammars of a vocabulary.  An operation that
# leaves both together above the limit ends like one that is late.  If those that are shared are more than half, they are dropped
# too: everyone who holds sets of texts has to begin anew then, and does so at the next question.  The size is a sum over counts
# that are kept anyway and a few running sums, so it is looked at whenever a stack is merged.
# Lexer states are bounded by `max_lexer_states`, token edges by `mask_budget`.

cdef extern from "attempt.hpp" namespace "maskwright" nogil:
    ctypedef void (*Attempted "maskwright::Attempted")(void*) noexcept
    cbool attempt(Attempted function, void* argument)
    int64_t memory_releases()


cdef int64_t sets_bytes(const Core* core, const Sets* sets) noexcept nogil:
    return (core_bytes(core) + sets.held
            + <int64_t>(sets.ids.bytes() + sets.frame_reads.bytes() + sets.after.bytes())
            + <int64_t>(sets.states.size() * (sizeof(SetState) + ALLOCATION + 2 * sizeof(void*))
                        + sets.reaches.size() * (sizeof(Reach) + ALLOCATION + 2 * sizeof(void*))
                        + (sets.single.size() + sets.joined.size() + sets.plain.size() + sets.unions.size()
                           + sets.narrowed.size() + core.frame_states.size() + sets.behind.size() + sets.put_nodes.size()
                           + sets.put_states.size() + sets.walked.size() + sets.frame_walks.size()
                           + sets.any.size() + sets.mixed.size()) * MAP_ENTRY
                        + (sets.merged.size() + sets.parsers.size() + sets.parts.size() + sets.starts.size())
                        * (2 * MAP_ENTRY + ALLOCATION)))


cdef int64_t sets_total(const Core* core, const Sets* sets) noexcept nogil:
    # What `max_set_bytes` bounds.
    return sets_bytes(core, sets) + core.index.set_bytes


cdef inline cbool sets_full(Core* core, Sets* sets) noexcept nogil:
    # Whether sets of texts are above their limit, or memory is at its end: the operation under way ends as if it were late.
    if not sets.full and (sets_total(core, sets) > core.max_set_bytes or memory_releases() != sets.releases):
        sets.full = True
        core.index.deadline.passed = True
    return sets.full


cdef inline cbool sets_stop(Core* core, Sets* sets) noexcept nogil:
    # To be asked in every loop that makes states or stacks.
    return sets_full(core, sets) or deadline_passed(&core.index.deadline)


cdef void sets_drop_shared(Index* index) noexcept nogil:
    # Drop sets of lexer states and residuals; nobody may ask them for anything any more.
    cdef size_t i, j
    for i in range(index.set_holders.size()):
        index.set_holders[i].gone = True
    for i in range(index.automata.size()):
        lexsets_free(index.automata[i])
    for i in range(index.cores.size()):
        for j in range(index.cores[i].program.keysets.size()):
            lexsets_free(index.cores[i].program.keysets[j])
    residuals_free(index)


cdef Outcome sets_attempt(Core* core, Sets* sets, Attempted function, void* argument) noexcept nogil:
    # One operation that may add to sets of texts.  When they are full, what is known can still be asked for.
    cdef Outcome outcome
    cdef int64_t before, behind
    cdef cbool good = True
    core_enter(core)
    before = sets_total(core, sets)
    sets.full = False
    sets.releases = memory_releases()
    if sets.gone:
        outcome = core_leave(core)
        outcome.kind = OUTCOME_SETS_GONE
        return outcome
    good = attempt(function, argument)
    behind = sets_total(core, sets)
    if not good or (core.index.set_bytes > core.max_set_bytes // 2 and behind > core.max_set_bytes):
        # Without memory, what is shared goes in any case.
        sets_drop_shared(core.index)
    outcome = core_leave(core)
    if not good and outcome.kind != OUTCOME_INTERRUPTED:
        outcome.kind = OUTCOME_MEMORY
        outcome.given = behind
    elif outcome.kind in (OUTCOME_GOOD, OUTCOME_LATE):
        if sets.full or (behind > core.max_set_bytes and behind > before):
            outcome.kind = OUTCOME_SET_BYTES
            outcome.given = behind
    return outcome
