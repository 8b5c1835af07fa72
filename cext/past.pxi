# What a matcher has read: tokens, and the states that it can go back to.
#
# States belong to a generation (generations.pxi).  A matcher that moves takes the last few of them along, and some earlier ones
# as *marks*: to go back further, the tokens behind a mark are read again.  A matcher with a window forgets tokens and states
# that are further back than it may be asked to go.

cdef enum:
    PAST_STATES = 8        # that a matcher takes along when it moves
    PAST_MARKS = 8         # at most, besides these
    FETCHED = 2            # matchers that move along with another one's operation
    PAST_GAIN = 64         # bytes that its core has grown by, for each step more that a mover makes
    PAST_SLACK = 64        # tokens beyond a window that may be kept: they are forgotten many at a time

cdef struct Mark:
    int64_t position       # tokens before it
    int32_t state

cdef cppclass Past:
    vector[int32_t] states         # from position `first` on; the last one is current
    int64_t first
    vector[Mark] marks             # ascending, before or at `first`; the first one is as far as it can go back
    vector[int32_t] tokens         # accepted ids from there on, EOS included; -1: bytes
    int64_t reached                # the most tokens that there ever were


cdef void past_begin(Past* past, int32_t state, int64_t position) noexcept nogil:
    # Nothing is known of what came before.
    cdef Mark mark
    mark.position = past.first = past.reached = position
    mark.state = state
    past.marks.assign(1, mark)
    past.states.assign(1, state)
    past.tokens.clear()


cdef inline int64_t past_count(const Past* past) noexcept nogil:
    # Accepted tokens.
    return past.first + <int64_t>past.states.size() - 1


cdef inline int64_t past_known(const Past* past, int64_t window) noexcept nogil:
    # How many tokens can be taken back.
    return past_count(past) - (max(past.reached - window, <int64_t>0) if window >= 0 else 0)


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
