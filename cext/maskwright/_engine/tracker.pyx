# What has been read of an array whose items must be different (or must not).
#
# The *tracker* reads the text from the bracket of the outermost such array on, a byte at a time.  Its
# state is a number: the array or object that is open (a *frame*, below it the ones around it), and
# how far a string, number or literal in it has been read.
#
# A frame knows its *candidates*: earlier values that it may still turn out to be equal to.  A state
# is *compatible* when what it is in the middle of may; otherwise the current item will be new whatever
# follows.

from libc.stdint cimport int64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport bits_set
from maskwright._engine.limits cimport deferred_free_breathe
from maskwright._engine.lexeme_texts cimport BACKSLASH, QUOTE
from maskwright._engine.keyset cimport ESCAPE_BAD, ESCAPE_OPEN, escape_read, key_spelling
from maskwright._engine.program cimport UNKNOWN
from maskwright._engine.tracked cimport (
    ANY_COUNT, is_tracked, memory_of_state, MEMORY_WRONG, TRACK_AFTER, TRACK_COLON, TRACK_KEY, TRACK_LITERAL,
    TRACK_NUMBER, TRACK_STRING, TRACK_VALUE, tracked_state, TrackerState, Value, VALUE_ARRAY, VALUE_NUMBER,
    VALUE_OBJECT, VALUE_STRING, VALUE_UNKNOWN
)
from maskwright._engine.values cimport (
    cell_insert, cell_intern, is_blank, literal_kind, number_append, number_compatible, number_length,
    number_text, string_compatible, text_append, text_bytes, value_list, value_scalar, values_free
)
from maskwright._engine.item_groups cimport (
    frame_agrees, frame_came, frame_fewer, frame_filter, frame_nested, frame_scalars, frame_sets, frame_targets,
    frame_tied, frame_twin, item_text, items_ahead, items_compatible, items_step
)


cdef void tracker_free(Tracker* tracker) noexcept nogil:
    values_free(&tracker.store)
    while tracker.frames.drop() or tracker.moves.drop():
        deferred_free_breathe()


# --- frames ---------------------------------------------------------------------------------

cdef cbool guard_free(const Guard* guard, int32_t count) noexcept nogil:
    # Whether items can be found for the places from `count` on, whatever came before.
    if guard.second >= 0:
        # What came at the first place may come at the second.
        return count <= guard.second
    if guard.free < 0:
        return False
    if not guard.repeats:
        return count >= guard.free
    if guard.most < 0:
        return True
    # A place for what came where items are alike already, or two of these places.
    return guard.most > count if count > guard.free else guard.most >= guard.free + 2


cdef inline cbool frame_free(const Tracker* tracker, const Frame* frame, int32_t count) noexcept nogil:
    return frame.guard == 0 or guard_free(&tracker.guards[frame.guard - 1], count)


cdef inline int32_t guard_counts(const Guard* guard) noexcept nogil:
    # Items that are counted: how many more there are makes no difference.
    if guard.second >= 0:
        return guard.second
    if guard.repeats:
        return guard.most if guard.most >= 0 else 0
    return guard.free if guard.free >= 0 else ANY_COUNT


cdef inline cbool frame_repeats(const Tracker* tracker, const Frame* frame) noexcept nogil:
    # Whether two equal items are demanded, and have not come.
    return frame.guard != 0 and tracker.guards[frame.guard - 1].repeats != 0


cdef int32_t frame_intern(Tracker* tracker, const Frame& content) noexcept nogil:
    cdef int32_t fields[7]
    cdef string name
    cdef Frame* frame
    cdef const Frame* parent
    cdef int32_t id
    fields[0] = content.parent
    fields[1] = content.is_object
    fields[2] = content.guard
    fields[3] = content.count
    fields[4] = content.cells
    fields[5] = content.key
    fields[6] = content.items
    name.assign(<const char*>fields, sizeof(fields))
    id = tracker.frame_ids.find(name)
    if id < 0:
        id = <int32_t>tracker.frames.size()
        frame = tracker.frames.add()
        frame[0] = content
        frame.owes = 1 if frame_repeats(tracker, frame) else 0
        frame.tied = 1 if frame_tied(tracker, frame) else 0
        frame.twin = frame.tied == 1 and frame_twin(tracker, frame) >= 0
        frame.must_differ = frame.guard != 0 and frame.owes == 0
        frame.outside_free = True
        frame.has_goals = False
        frame.goals.clear()
        frame.indices.clear()
        tracker.held += <int64_t>(4 * (frame.candidates.size() + frame.groups.size()))
        if frame.parent >= 0:
            parent = tracker.frames[frame.parent]
            frame.owes += parent.owes
            frame.tied += parent.tied
            frame.twin = frame.twin or parent.twin
            frame.must_differ = frame.must_differ or parent.must_differ
            frame.outside_free = parent.outside_free and frame_free(tracker, parent, parent.count + 1)
        tracker.frame_ids.insert(name, id)
    return id


cdef int32_t frame_push(Tracker* tracker, int32_t parent, cbool is_object, int32_t guard) noexcept nogil:
    cdef Frame frame
    frame_begin(&frame)
    frame.parent = parent
    frame.is_object = is_object
    frame.guard = guard
    frame.count = 0
    frame.size = 0
    frame.cells = -1
    frame.items = frame.arrays = frame.objects = 0
    frame.key = -1
    frame.unknown = frame.doubtful = False
    if parent >= 0:
        frame.doubtful = tracker.frames[parent].doubtful or (
            tracker.frames[parent].guard != 0 and tracker.frames[parent].unknown)
        frame_nested(tracker, parent, VALUE_OBJECT if is_object else VALUE_ARRAY, &frame)
    return frame_intern(tracker, frame)


cdef cbool frame_contains(const Tracker* tracker, const Frame* frame, int32_t value) noexcept nogil:
    # Whether the next item, a value, is like one with which it is compared.
    cdef int32_t set = frame.items, at = 0
    if frame_tied(tracker, frame):
        return frame_twin(tracker, frame) == value
    return items_step(tracker, &set, &at, item_text(tracker, value)) and tracker.items.ends(set, at)


cdef int32_t frame_complete(Tracker* tracker, int32_t id, int32_t value) noexcept nogil:
    # The memory behind a value (or a key) in a frame.
    cdef const Frame* frame = tracker.frames[id]
    cdef Frame after
    cdef cbool is_key = frame.is_object and frame.key < 0
    # Where two places are tied, the outermost array keeps what came at the first one.
    cdef cbool kept = (frame.parent >= 0 or not frame_tied(tracker, frame)
                       or frame.count == tracker.guards[frame.guard - 1].first)
    frame_begin(&after)
    after.parent = frame.parent
    after.is_object = frame.is_object
    after.guard = frame.guard
    after.count = frame.count + (0 if is_key else 1)
    after.size = frame.size + 1
    after.cells = frame.cells
    after.items = frame.items
    after.arrays = frame.arrays
    after.objects = frame.objects
    after.key = value if is_key else -1
    after.unknown = frame.unknown or (kept and tracker.store.values[value].unknown)
    after.doubtful = frame.doubtful
    if frame.is_object:
        if not is_key:
            after.cells = cell_insert(&tracker.store, frame.cells, frame.key, value)
    elif frame.guard and frame_contains(tracker, frame, value):
        if not frame_repeats(tracker, frame):
            return MEMORY_WRONG
        if frame.parent < 0:
            return 0
        after.guard = after.items = after.arrays = after.objects = 0
        after.cells = cell_intern(&tracker.store, frame.cells, -1, value)
    elif frame_tied(tracker, frame) and frame_twin(tracker, frame) >= 0:
        return MEMORY_WRONG
    elif frame.parent < 0:
        # Nobody compares this array: the order of its items does not matter, nor their number.
        if not frame_tied(tracker, frame):
            frame_came(tracker, &after, value)
        elif kept:
            after.cells = cell_intern(&tracker.store, frame.cells, -1, value)
        after.count = min(after.count, guard_counts(&tracker.guards[after.guard - 1]))
    else:
        after.cells = cell_intern(&tracker.store, frame.cells, -1, value)
        if frame.guard and not frame_tied(tracker, frame):
            frame_came(tracker, &after, value)
    frame_filter(tracker, frame, value, &after)
    return tracker_state(tracker, frame_intern(tracker, after), TRACK_COLON if is_key else TRACK_AFTER, 0, 0, 0)


# --- reading --------------------------------------------------------------------------------

cdef int32_t tracker_state(Tracker* tracker, int32_t frame, int32_t mode, int32_t text, int32_t escape,
                           uint32_t value) noexcept nogil:
    # As the memory of a thread.
    cdef int32_t fields[5]
    cdef string name
    cdef TrackerState state
    cdef int32_t id
    fields[0] = frame
    fields[1] = mode
    fields[2] = text
    fields[3] = escape
    fields[4] = <int32_t>value
    name.assign(<const char*>fields, sizeof(fields))
    id = tracker.state_ids.find(name)
    if id < 0:
        id = <int32_t>tracker.states.size()
        state.frame = frame
        state.mode = mode
        state.text = text
        state.escape = escape
        state.value = value
        state.compatible = 0
        tracker.states.push_back(state)
        tracker.moves.add()
        tracker.state_ids.insert(name, id)
    return memory_of_state(id)


cdef int32_t tracker_open(Tracker* tracker, int32_t memory, int32_t guard) noexcept nogil:
    # The memory behind the bracket of an array whose items must be different; `memory`: with the bracket
    # read as that of any array, or not tracked.
    cdef int32_t frame = -1
    if is_tracked(memory):
        frame = tracker.frames[tracker.states[tracked_state(memory)].frame].parent
    return tracker_state(tracker, frame_push(tracker, frame, False, guard), TRACK_VALUE, 0, 0, 0)


cdef int32_t tracker_close(Tracker* tracker, int32_t frame) noexcept nogil:
    cdef int32_t parent = tracker.frames[frame].parent
    if frame_repeats(tracker, tracker.frames[frame]):
        return MEMORY_WRONG
    if parent < 0:
        return 0
    return frame_complete(tracker, parent, value_list(&tracker.store, tracker.frames[frame].is_object, tracker.frames[frame].cells))


cdef int32_t tracker_begin(Tracker* tracker, int32_t frame, uint8_t byte) noexcept nogil:
    # The first byte of a value.
    if byte == QUOTE:
        return tracker_state(tracker, frame, TRACK_STRING, 0, 0, 0)
    if byte == 91:
        return tracker_state(tracker, frame_push(tracker, frame, False, 0), TRACK_VALUE, 0, 0, 0)
    if byte == 123:
        return tracker_state(tracker, frame_push(tracker, frame, True, 0), TRACK_KEY, 0, 0, 0)
    return tracker_state(tracker, frame, TRACK_NUMBER if byte == 45 or 48 <= byte <= 57 else TRACK_LITERAL,
                         text_append(&tracker.store.texts, 0, byte), 0, 0)


cdef int32_t tracker_string(Tracker* tracker, TrackerState at, uint8_t byte) noexcept nogil:
    cdef string spelled
    cdef int32_t point
    cdef size_t i
    if at.escape == 0:
        if byte == QUOTE:
            return frame_complete(tracker, at.frame,
                                  value_scalar(&tracker.store, VALUE_STRING, text_bytes(&tracker.store.texts, at.text)))
        if byte == BACKSLASH:
            return tracker_state(tracker, at.frame, TRACK_STRING, at.text, 1, 0)
        return tracker_state(tracker, at.frame, TRACK_STRING, text_append(&tracker.store.texts, at.text, byte), 0, 0)
    point = escape_read(&at.escape, &at.value, byte)
    if point == ESCAPE_BAD:
        # No lexeme of quoted strings allows this.
        return MEMORY_WRONG
    if point == ESCAPE_OPEN:
        return tracker_state(tracker, at.frame, TRACK_STRING, at.text, at.escape, at.value)
    spelled = key_spelling(point)
    for i in range(spelled.size()):
        at.text = text_append(&tracker.store.texts, at.text, <uint8_t>spelled[i])
    return tracker_state(tracker, at.frame, TRACK_STRING, at.text, 0, 0)


cdef int32_t tracker_literal(Tracker* tracker, const TrackerState& at, uint8_t byte) noexcept nogil:
    cdef int32_t text = text_append(&tracker.store.texts, at.text, byte)
    cdef string letters = text_bytes(&tracker.store.texts, text)
    cdef string none
    if letters.size() < 4 or (letters.size() == 4 and letters[0] == 102):
        return tracker_state(tracker, at.frame, TRACK_LITERAL, text, 0, 0)
    return frame_complete(tracker, at.frame,
                          value_scalar(&tracker.store, literal_kind(<uint8_t>letters[0]), none))


cdef int32_t tracker_step(Tracker* tracker, TrackerState at, uint8_t byte) noexcept nogil:
    cdef int32_t memory
    if at.mode == TRACK_STRING:
        return tracker_string(tracker, at, byte)
    if at.mode == TRACK_LITERAL:
        return tracker_literal(tracker, at, byte)
    if at.mode == TRACK_NUMBER:
        if 48 <= byte <= 57 or byte == 43 or byte == 45 or byte == 46 or byte == 69 or byte == 101:
            return tracker_state(tracker, at.frame, TRACK_NUMBER, number_append(&tracker.store.texts, at.text, byte), 0, 0)
        memory = frame_complete(tracker, at.frame,
                              value_scalar(&tracker.store, VALUE_NUMBER, number_text(text_bytes(&tracker.store.texts, at.text))))
        return memory if memory == MEMORY_WRONG or memory == 0 else tracker_read(tracker, memory, byte)
    if byte == 93 or byte == 125:
        return tracker_close(tracker, at.frame)
    if at.mode == TRACK_AFTER:
        return tracker_state(tracker, at.frame, TRACK_KEY if tracker.frames[at.frame].is_object else TRACK_VALUE, 0, 0, 0)
    if at.mode == TRACK_COLON:
        return tracker_state(tracker, at.frame, TRACK_VALUE, 0, 0, 0)
    return tracker_begin(tracker, at.frame, byte)


cdef int32_t tracker_read(Tracker* tracker, int32_t memory, uint8_t byte) noexcept nogil:
    # The memory behind one more byte: 0 behind the outermost array, MEMORY_WRONG when an item came again.
    # The byte is one that a lexeme allows.
    cdef int32_t after
    cdef char compatible = tracker.states[tracked_state(memory)].compatible
    if is_blank(byte) and tracker.states[tracked_state(memory)].mode <= TRACK_AFTER:
        return memory
    after = tracker.moves[tracked_state(memory)].find(byte)
    if after != UNKNOWN:
        return memory_of_state(after)
    after = tracker_step(tracker, tracker.states[tracked_state(memory)], byte)
    if is_tracked(after) and after != MEMORY_WRONG and tracker_owes(tracker, after):
        if tracker_lost(tracker, after, tracker_compatible(tracker, after)):
            after = MEMORY_WRONG
    tracker.moves[tracked_state(memory)].insert(byte, tracked_state(after))
    if compatible == 2 and is_tracked(after) and after != MEMORY_WRONG and tracker.states[tracked_state(after)].mode >= TRACK_STRING:
        if tracker.states[tracked_state(after)].mode == tracker.states[tracked_state(memory)].mode:
            tracker.states[tracked_state(after)].compatible = 2
    return after


# --- what may still be equal ----------------------------------------------------------------

cdef cbool tracker_compatible(Tracker* tracker, int32_t memory) noexcept nogil:
    # Whether what is being read may become equal to something earlier, as far as that matters.
    cdef TrackerState at = tracker.states[tracked_state(memory)]
    cdef vector[int32_t] targets, sets
    cdef string read
    cdef int32_t target, set
    cdef const Value* value
    cdef const Frame* frame
    if at.compatible:
        return at.compatible == 1
    frame = tracker.frames[at.frame]
    at.compatible = 2
    if at.mode in (TRACK_AFTER, TRACK_COLON, TRACK_KEY):
        if frame_agrees(frame):
            at.compatible = 1
    elif at.mode == TRACK_VALUE and frame.cells < 0 and frame.items == 0 and (
            frame_agrees(frame) or (frame_repeats(tracker, frame) and not frame_tied(tracker, frame))):
        # At its beginning, an array may be closed.
        at.compatible = 1
    else:
        frame_targets(tracker, at.frame, targets)
        read = text_bytes(&tracker.store.texts, at.text)
        frame_sets(tracker, at.frame, sets)
        for set in sets:
            if items_compatible(tracker, set, at, read):
                at.compatible = 1
                break
        for target in targets:
            if at.compatible == 1:
                break
            value = tracker.store.values[target]
            if (at.mode == TRACK_VALUE
                    or (at.mode == TRACK_STRING and string_compatible(value, read, at.escape, at.value))
                    or (at.mode == TRACK_NUMBER and number_compatible(value, read))
                    or (at.mode == TRACK_LITERAL and value.kind == literal_kind(<uint8_t>read[0]))):
                at.compatible = 1
    tracker.states[tracked_state(memory)].compatible = at.compatible
    return at.compatible == 1


cdef int32_t tracker_missing(Tracker* tracker, int32_t memory) noexcept nogil:
    # Of a string under way, the bytes by which it is shorter than those that it may become equal to.
    cdef TrackerState at = tracker.states[tracked_state(memory)]
    cdef vector[int32_t] targets
    cdef string read
    cdef int32_t target, missing, least = -1
    cdef const Value* value
    if at.mode != TRACK_STRING:
        return 0
    frame_scalars(tracker, at.frame, VALUE_STRING, targets)
    read = text_bytes(&tracker.store.texts, at.text)
    for target in targets:
        value = tracker.store.values[target]
        if string_compatible(value, read, at.escape, at.value):
            missing = <int32_t>value.text.size() - <int32_t>read.size()
            if least < 0 or missing < least:
                least = missing
    return least if least > 0 else 0


cdef cbool tracker_free_behind(const Tracker* tracker, int32_t memory) noexcept nogil:
    # Whether items can be found for all places behind the current one, if that is new.
    cdef const Frame* frame = tracker.frames[tracker.states[tracked_state(memory)].frame]
    cdef int32_t mode = tracker.states[tracked_state(memory)].mode
    cdef cbool between = mode == TRACK_AFTER or (mode == TRACK_VALUE and frame_tied(tracker, frame))
    return frame.outside_free and frame_free(tracker, frame, frame.count if between else frame.count + 1)


cdef cbool tracker_easy(Tracker* tracker, int32_t memory) noexcept nogil:
    # Whether any completion of the current item will do, and others can be found for the rest.
    return tracker_free_behind(tracker, memory) and not tracker_compatible(tracker, memory)


cdef cbool tracker_any(Tracker* tracker, int32_t memory) noexcept nogil:
    # Whether what came before makes no difference to whether the array can be completed, as far as another item is needed.
    cdef TrackerState at = tracker.states[tracked_state(memory)]
    cdef const Frame* frame = tracker.frames[at.frame]
    if frame.owes > frame.tied:
        return False
    if at.mode == TRACK_VALUE and frame.guard and not frame_repeats(tracker, frame) and not frame_agrees(frame):
        return frame.outside_free and frame_free(tracker, frame, frame.count)
    return tracker_easy(tracker, memory)


cdef cbool tracker_alive(Tracker* tracker, int32_t memory) noexcept nogil:
    # Whether the array can be completed, as far as that is easily seen.
    cdef TrackerState at = tracker.states[tracked_state(memory)]
    cdef Frame* frame = tracker.frames[at.frame]
    cdef int32_t least
    if not tracker_free_behind(tracker, memory):
        return False
    if not frame.must_differ or not tracker_compatible(tracker, memory):
        return True
    if at.mode != TRACK_VALUE or frame.guard == 0 or frame_repeats(tracker, frame):
        return False
    # There are more values than may not come.
    least = tracker.guards[frame.guard - 1].least
    return least > frame.size and frame_fewer(tracker, frame, <size_t>(least - frame.size))


cdef int32_t tracker_unknown(Tracker* tracker, int32_t memory) noexcept nogil:
    # The memory behind the string under way, if it is unlike all that matters: which one it is is left open.
    cdef string none
    return frame_complete(tracker, tracker.states[tracked_state(memory)].frame,
                          value_scalar(&tracker.store, VALUE_UNKNOWN, none))


cdef cbool tracker_doubtful(Tracker* tracker, int32_t memory) noexcept nogil:
    # Whether what comes next may have to be unlike a value that was left open.
    cdef TrackerState at = tracker.states[tracked_state(memory)]
    cdef Frame* frame = tracker.frames[at.frame]
    if frame.doubtful:
        return True
    if frame.guard == 0 or not frame.unknown or at.mode == TRACK_AFTER:
        return False
    return at.mode != TRACK_VALUE or not tracker_alive(tracker, memory)


cdef void tracker_ahead(Tracker* tracker, int32_t memory, uint64_t* ahead) noexcept nogil:
    # The bytes behind which a compatible state may still be compatible.
    cdef TrackerState at = tracker.states[tracked_state(memory)]
    cdef vector[int32_t] targets, sets
    cdef string read
    cdef int32_t target, set
    cdef const Value* value
    if at.mode != TRACK_STRING or at.escape != 0:
        memset(ahead, 255, 32)
        return
    memset(ahead, 0, 32)
    bits_set(ahead, BACKSLASH)
    frame_targets(tracker, at.frame, targets)
    read = text_bytes(&tracker.store.texts, at.text)
    frame_sets(tracker, at.frame, sets)
    for set in sets:
        items_ahead(tracker, set, read, ahead)
    for target in targets:
        value = tracker.store.values[target]
        if string_compatible(value, read, at.escape, at.value):
            bits_set(ahead, <uint8_t>value.text[read.size()] if value.text.size() > read.size() else QUOTE)


cdef string tracker_quoted(const Tracker* tracker, int32_t memory) noexcept nogil:
    # The string that is being read, with its first quote, or nothing.
    cdef TrackerState at = tracker.states[tracked_state(memory)]
    cdef const char* hexdigits = "0123456789abcdef"
    cdef string out
    cdef int32_t i, digits
    cdef uint32_t first
    if at.mode != TRACK_STRING:
        return out
    out.push_back(<char>QUOTE)
    out.append(text_bytes(&tracker.store.texts, at.text))
    if at.escape == 0:
        return out
    first = at.value if at.escape <= 6 else at.value >> 16
    digits = at.escape - 2 if at.escape <= 6 else 4
    out.push_back(<char>BACKSLASH)
    if at.escape >= 2:
        out.push_back(117)
    for i in range(digits):
        out.push_back(hexdigits[(first >> (4 * (digits - 1 - i))) & 15])
    if at.escape >= 7:
        out.push_back(<char>BACKSLASH)
    if at.escape >= 8:
        out.push_back(117)
    for i in range(at.escape - 8):
        out.push_back(hexdigits[(at.value >> (4 * (at.escape - 9 - i))) & 15])
    return out


cdef cbool tracker_seeks(Tracker* tracker, int32_t memory) noexcept nogil:
    # Whether what is being read may become an item that must be like an earlier one.
    cdef const Frame* frame = tracker.frames[tracker.states[tracked_state(memory)].frame]
    if not (frame.twin or frame.owes > frame.tied) or not tracker_compatible(tracker, memory):
        return False
    # What repeats an item of an array of different ones leads nowhere, unless an array further out repeats.
    while not frame_repeats(tracker, frame):
        if not frame_agrees(frame) or frame.parent < 0:
            return False
        frame = tracker.frames[frame.parent]
    return True


cdef int32_t tracker_spelled(Tracker* tracker, int32_t memory) noexcept nogil:
    # Of a number under way, the characters that the longest of those needs that it must be equal to.
    cdef TrackerState at = tracker.states[tracked_state(memory)]
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


cdef cbool tracker_lost(const Tracker* tracker, int32_t memory, cbool compatible) noexcept nogil:
    # Whether two equal items are still needed, and neither the item under way nor a later one can be like an earlier.
    # `compatible`: what is being read may become equal to something.
    cdef TrackerState at = tracker.states[tracked_state(memory)]
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
