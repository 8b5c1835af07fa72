# Arrays of which two items must be equal: which threads cannot be completed any more, as far as that is seen without a search.
#
# An item that must be like an earlier one is written as that.  There are many ways to begin a number and never end it as
# the same one, where the lexeme has no exponents: a search would look at all of them.

cdef enum:
    POWERS_LOOK = 2000         # lexer states that are looked at for an exponent


cdef cbool tracker_seeks(Tracker* tracker, int32_t text) noexcept nogil:
    # Whether what is being read may become an item that must be like an earlier one.
    cdef const Frame* frame = tracker.frames[tracker.states[-1 - text].frame]
    if not (frame.twin or frame.owes > frame.tied) or not tracker_compatible(tracker, text):
        return False
    # What repeats an item of an array of different ones leads nowhere, unless an array further out repeats.
    while not frame_repeats(tracker, frame):
        if not frame_agrees(frame) or frame.parent < 0:
            return False
        frame = tracker.frames[frame.parent]
    return True


cdef int32_t tracker_spelled(Tracker* tracker, int32_t text) noexcept nogil:
    # Of a number under way, the characters that the longest of those needs that it must be equal to.
    cdef TrackerState at = tracker.states[-1 - text]
    cdef vector[int32_t] targets
    cdef string read = text_bytes(&tracker.store.texts, at.text)
    cdef int32_t target, most = 0
    if tracker.frames[at.frame].tied < tracker.frames[at.frame].owes:
        return 0
    frame_scalars(tracker, at.frame, VALUE_NUMBER, targets)
    for target in targets:
        if number_compatible(tracker.store.values[target], read):
            most = max(most, number_length(tracker.store.values[target]))
    return most


cdef cbool tracker_lost(const Tracker* tracker, int32_t text, cbool compatible) noexcept nogil:
    # Whether two equal items are still needed, and neither the item under way nor a later one can be like an earlier.
    # `compatible`: what is being read may become equal to something.
    cdef TrackerState at = tracker.states[-1 - text]
    cdef const Frame* frame = tracker.frames[at.frame]
    cdef cbool may_be = compatible or (at.mode == TRACK_AFTER and frame_repeats(tracker, frame))
    cdef int32_t left
    while frame.owes:
        if frame_tied(tracker, frame):
            if frame_twin(tracker, frame) >= 0 and not may_be:
                return True
        elif frame_repeats(tracker, frame) and tracker.guards[frame.guard - 1].most >= 0:
            # Places for an item that may be like an earlier one.
            left = tracker.guards[frame.guard - 1].most - frame.count
            if left <= 0 or (left == 1 and not may_be):
                return True
        may_be = may_be and frame_agrees(frame)
        if frame.parent < 0:
            break
        frame = tracker.frames[frame.parent]
    return False


cdef cbool powers_ahead(Core* core, LexState* lex) noexcept nogil:
    # Whether an exponent may still come in a number, as far as that is soon seen.
    cdef vector[LexState*] work
    cdef KeyIds seen
    cdef LexState* after
    cdef const uint64_t* first
    cdef size_t i = 0
    cdef int32_t byte, known = core.powers.find(&lex, sizeof(LexState*))
    if known >= 0:
        return known == 1
    known = 0
    work.push_back(lex)
    while known == 0 and i < work.size():
        first = lex_first(work[i])
        if bits_has(first, 69) or bits_has(first, 101) or work.size() > POWERS_LOOK:
            known = 1
        for byte in range(46, 58):
            if bits_has(first, <uint8_t>byte):
                after = lex_next(work[i], <uint8_t>byte)
                if seen.find(&after, sizeof(LexState*)) < 0:
                    seen.insert(&after, sizeof(LexState*), 1)
                    work.push_back(after)
        i += 1
    if known == 1:
        work.resize(1)
    for after in work:
        if core.powers.find(&after, sizeof(LexState*)) < 0:
            core.powers.insert(&after, sizeof(LexState*), known)
    return known == 1


cdef cbool twins_lost(Core* core, const Thread& thread) noexcept nogil:
    # Whether a number under way would have to be like an earlier one, and the lexeme has no such text.
    cdef Tracker* tracker = &core.tracker
    cdef TrackerState at = tracker.states[-1 - thread.text]
    cdef vector[int32_t] targets
    cdef string read
    cdef int32_t target
    cdef const Value* value
    if at.mode != TRACK_NUMBER or tracker.frames[at.frame].owes == 0 or not tracker_lost(tracker, thread.text, False):
        return False
    frame_scalars(tracker, at.frame, VALUE_NUMBER, targets)
    read = text_bytes(&tracker.store.texts, at.text)
    for target in targets:
        value = tracker.store.values[target]
        if thread.lex == NULL:
            # It has ended.
            if value.kind == VALUE_NUMBER and number_text(read) == value.text:
                return False
        elif number_plain(value, read):
            return False
    return thread.lex == NULL or not powers_ahead(core, thread.lex)
