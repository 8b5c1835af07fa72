# Masks and edges of states: those that are known, under a shared lock, and others, which take an operation.

cdef cbool fill_known(Core* core, int32_t id, uint32_t* row) noexcept nogil:
    # Write a mask that exists already, under a shared lock; False when there is none.  Of no state it is empty.
    cdef int32_t t
    if id < 0:
        memset(row, 0, core.words * 4)
        if id == TERMINATED:
            for t in core.eos:
                row[t >> 5] |= (<uint32_t>1) << (t & 31)
        return True
    if core.states[id].mask == NULL:
        return False
    core.states[id].used = True
    mask_write(core, core.states[id].mask, row)
    return True


cdef Outcome fill_new(Core* core, int32_t id, uint32_t* row) noexcept nogil:
    cdef Mask* mask
    core_enter(core)
    mask = mask_get(core, id)
    if mask != NULL:
        mask_write(core, mask, row)
    return core_leave(core)


cdef int32_t edge_known(Core* core, int32_t state, int32_t token) noexcept nogil:
    # The state behind a token, NO_STATE where it is not allowed, UNKNOWN where that takes an operation; under a shared lock.
    cdef int32_t target, t
    if state < 0:
        return NO_STATE
    target = core.states[state].edges.find(token)
    if target != UNKNOWN or core.index.token_starts[token + 1] > core.index.token_starts[token]:
        return target
    if core.program.has_tokens and state_waits_for(core, state, token):
        return UNKNOWN
    for t in core.eos:
        if t == token and core.states[state].accepting:
            return TERMINATED
    return NO_STATE


cdef Outcome edge_new(Core* core, int32_t state, int32_t token, const uint8_t* data, int64_t length,
                      int32_t* target) noexcept nogil:
    # As `edge_make`, as an operation.
    core_enter(core)
    target[0] = edge_make(core, state, token, data, length)
    return core_leave(core)


cdef int32_t edge_make(Core* core, int32_t state, int32_t token, const uint8_t* data, int64_t length) noexcept nogil:
    # The state behind the bytes of a token (-1: behind any bytes).
    cdef int32_t target = UNKNOWN if token < 0 else core.states[state].edges.find(token)
    cdef cbool text = length > 0
    if token < 0 and length == 0:
        return state
    if target == UNKNOWN:
        if token >= 0 and state == core.opening and opening_marks(core.index, token):
            data = core.index.opening.data.data() + core.index.opening.starts[token]
            length = core.index.opening.starts[token + 1] - core.index.opening.starts[token]
        if text and length == 0 and not state_waits_for(core, state, token):
            target = opening_silent(core)
        elif token >= 0 and core.program.has_tokens:
            target = matcher_step_token(core, state, token, text, data, length)
        else:
            target = matcher_step_bytes(core, state, data, length)
        if token >= 0 and not core.index.deadline.passed:
            edge_add(core, state, token, target)
    return target
