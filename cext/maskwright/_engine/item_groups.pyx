# The items that came, and which of them the next one may still be; arrays and objects, see item_groups.pyx.
#
# Of an array of different items, those that came are a set of texts (textsets.hpp): so the next one is compared with all of them
# at once, byte by byte.  An item's text begins with a letter for its kind.  Numbers are known by their sign and digits, then a
# point and the power of ten: as long as a number is under way, its power is open.

from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair

from maskwright._engine.containers cimport Interner
from maskwright._engine.sizes cimport bits_set
from maskwright._engine.lexeme_texts cimport QUOTE, SPELLING_QUOTED
from maskwright._engine.keyset cimport texts_escape_alive
from maskwright._engine.lexeme_sets cimport numbers_normalize
from maskwright._engine.tracked cimport (
    DIGEST_SIZE, Group, IndexEntry, TRACK_LITERAL, TRACK_NUMBER, TRACK_VALUE, Value, VALUE_ARRAY, VALUE_NUMBER,
    VALUE_OBJECT, VALUE_STRING
)
from maskwright._engine.values cimport (
    exponent_compatible, literal_kind, mantissa_power, number_digits, value_member, value_scalar
)


cdef inline uint8_t item_letter(int32_t kind) noexcept nogil:
    return ITEM_NUMBER if kind == VALUE_NUMBER else ITEM_STRING if kind == VALUE_STRING else <uint8_t>(65 + kind)


cdef string item_text(const Tracker* tracker, int32_t id) noexcept nogil:
    # By which a value is known; arrays and objects by a digest of what they are made of.
    cdef const Value* value = tracker.store.values[id]
    cdef string out
    cdef size_t digits, i
    out.push_back(<char>item_letter(value.kind))
    if value.kind == VALUE_STRING:
        out.append(value.text)
    elif value.kind == VALUE_NUMBER:
        if not value.text.empty():
            digits = value.text.size() - sizeof(int64_t)
            out.append(value.text.substr(0, digits))
            out.push_back(ITEM_POINT)
            out.append(value.text.substr(digits))
    elif value.kind == VALUE_ARRAY or value.kind == VALUE_OBJECT:
        # In small steps: a node of a set that grows is copied with its children.
        for i in range(LETTERS_OF):
            out.push_back(<char>(value.digest[i] >> 4))
            out.push_back(<char>(value.digest[i] & 15))
        out.append(<const char*>value.digest + LETTERS_OF, <size_t>(DIGEST_SIZE - LETTERS_OF))
    return out


cdef cbool items_step(const Tracker* tracker, int32_t* set, int32_t* at, const string& text) noexcept nogil:
    # Go on from a place by some bytes; False: no item does.
    cdef size_t i
    if set[0] == 0:
        return False
    for i in range(text.size()):
        if not tracker.items.step(set[0], at[0], <uint8_t>text[i]):
            return False
    return True


cdef void items_values(Tracker* tracker, int32_t items, int32_t kind, vector[int32_t]& out) noexcept nogil:
    # Add the items that are strings, or numbers, by number.
    cdef vector[string] rests
    cdef string text
    cdef int32_t at = 0
    cdef size_t i
    text.push_back(<char>item_letter(kind))
    if not items_step(tracker, &items, &at, text):
        return
    tracker.items.rests(items, at, rests)
    for i in range(rests.size()):
        if kind == VALUE_NUMBER and not rests[i].empty():
            # Without the point.
            rests[i].erase(rests[i].size() - sizeof(int64_t) - 1, 1)
        out.push_back(value_scalar(&tracker.store, kind, rests[i]))


cdef cbool items_number(const Tracker* tracker, int32_t items, const string& read) noexcept nogil:
    # Whether a number under way may become one of the items (number_compatible).
    cdef string digits, letters
    cdef vector[string] powers
    cdef cbool negative, scientific
    cdef int64_t power = 0, target = 0
    cdef int32_t at = 0, set, offset
    cdef size_t i, j, zeros
    number_digits(read, digits, &negative, &scientific, &power)
    letters.push_back(ITEM_NUMBER)
    if not items_step(tracker, &items, &at, letters):
        return False
    if digits.empty():
        return tracker.items.ends(items, at) or not scientific
    zeros = digits.size()
    while zeros > 0 and digits[zeros - 1] == 48:
        zeros -= 1
    letters.assign(1, 45 if negative else 43)
    if not items_step(tracker, &items, &at, letters):
        return False
    for i in range(digits.size() + 1):
        # Those that have these digits and no others.
        set = items
        offset = at
        if i >= zeros and tracker.items.step(set, offset, ITEM_POINT):
            if not scientific:
                return True
            tracker.items.rests(set, offset, powers)
            for j in range(powers.size()):
                memcpy(&target, powers[j].data(), sizeof(target))
                if exponent_compatible(target - <int64_t>(digits.size() - i) - mantissa_power(read), read):
                    return True
        if i == digits.size():
            return not scientific
        if not tracker.items.step(items, at, <uint8_t>digits[i]):
            return False
    return False


cdef cbool items_compatible(Tracker* tracker, int32_t items, const TrackerState& at, const string& read) noexcept nogil:
    # Whether what is being read may become equal to one of the items.
    cdef string text
    cdef int32_t offset = 0
    if items == 0 or at.mode == TRACK_VALUE:
        return items != 0
    if at.mode == TRACK_NUMBER:
        return items_number(tracker, items, read)
    if at.mode == TRACK_LITERAL:
        text.push_back(<char>item_letter(literal_kind(<uint8_t>read[0])))
        return items_step(tracker, &items, &offset, text)
    text.push_back(ITEM_STRING)
    text.append(read)
    if not items_step(tracker, &items, &offset, text):
        return False
    text.clear()
    return at.escape == 0 or texts_escape_alive(&tracker.items, SPELLING_QUOTED, at.escape, at.value, items, offset, text)


cdef void items_ahead(const Tracker* tracker, int32_t items, const string& read, uint64_t* ahead) noexcept nogil:
    # Add the bytes behind which a string under way may still become one of the items.
    cdef string text
    cdef vector[uint8_t] next
    cdef int32_t at = 0
    cdef uint8_t byte
    text.push_back(ITEM_STRING)
    text.append(read)
    if not items_step(tracker, &items, &at, text):
        return
    if tracker.items.ends(items, at):
        bits_set(ahead, QUOTE)
    tracker.items.next(items, at, next)
    for byte in next:
        bits_set(ahead, byte)


# --- Earlier arrays and objects: which of them begin like the one that is being read.
#
# A *group* is a list of arrays, or of objects, that agree with what was read so far: each group is the one before it and one
# value more, and 0 has none.  Its *index* at a place is a set of texts (textsets.hpp), those of what its values have there, and
# the note of each text is the group of the values that go on so: of arrays, at a place are elements; of objects, their keys,
# or (the place is a key) the values of that.  So reading on, candidates are not looked at: they are what the text leads to.
# An index is that of the group before and what one more value has; it is made only where a value gets to.  Parts that are arrays
# or objects are texts by their digests, and the note of the letter of their kind is the group of all of them.
#
# Making an index costs more than looking at a few values.  So a group of few is listed until it and those before it have been so often.

cdef enum:
    AT_KEYS = -1               # the place of an object's keys
    LISTED_FIRST = 4           # values that are listed for each part of a group before it gets an index
    LISTED_MOST = 256          # and so many in one at most: a mask looks at each of them again and again


cdef int32_t group_with(Tracker* tracker, int32_t group, int32_t value) noexcept nogil:
    # A group with one more value, which it does not have.
    cdef int32_t fields[2]
    cdef const Value* content = tracker.store.values[value]
    cdef Group added
    cdef int32_t id
    fields[0] = group
    fields[1] = value
    id = tracker.group_ids.find(&fields, sizeof(fields))
    if id < 0:
        if tracker.groups.empty():
            memset(&added, 0, sizeof(Group))
            tracker.groups.push_back(added)
        id = <int32_t>tracker.groups.size()
        added = tracker.groups[group]
        added.before = group
        added.entry = 0
        added.value = value
        added.count += 1
        added.parts += 1 + <int64_t>content.keys.size()
        tracker.groups.push_back(added)
        tracker.group_ids.insert(&fields, sizeof(fields), id)
    return id


cdef int32_t items_note(const Tracker* tracker, int32_t set, const string& text) noexcept nogil:
    cdef int32_t at = 0
    return tracker.items.note(set, at) if items_step(tracker, &set, &at, text) else 0


cdef inline int32_t items_nested(const Tracker* tracker, int32_t set, int32_t kind) noexcept nogil:
    # Of an index, the group of the arrays or objects in it.
    return items_note(tracker, set, string(1, <char>item_letter(kind)))


cdef int32_t index_with(Tracker* tracker, int32_t set, int32_t part, int32_t value) noexcept nogil:
    # An index with one more value, and what it has there.
    cdef string text = item_text(tracker, part)
    cdef int32_t group = items_note(tracker, set, text)
    cdef int32_t kind = tracker.store.values[part].kind
    if group == 0 and (kind == VALUE_ARRAY or kind == VALUE_OBJECT):
        set = tracker.items.with_note(set, string(1, <char>item_letter(kind)),
                                      group_with(tracker, items_nested(tracker, set, kind), part))
    return tracker.items.with_note(set, text, group_with(tracker, group, value))


cdef void index_parts(const Tracker* tracker, int32_t value, int32_t at, vector[int32_t]& out) noexcept nogil:
    # What a value has at a place.
    cdef const Value* content = tracker.store.values[value]
    out.clear()
    if at == AT_KEYS:
        out.assign(content.keys.begin(), content.keys.end())
    elif content.kind == VALUE_OBJECT:
        out.push_back(value_member(content, at))
        if out.back() < 0:
            out.pop_back()
    elif content.items.size() > <size_t>at:
        out.push_back(content.items[at])


cdef int32_t index_new(Tracker* tracker, const vector[int32_t]& values, int32_t at) noexcept nogil:
    # The index of a group, all at once; its values, the last one first.
    cdef vector[pair[string, int32_t]] notes
    cdef vector[int32_t] parts
    cdef Interner known
    cdef string text, letter
    cdef int64_t before = indices_bytes(tracker)
    cdef int32_t slot, kind, part, set
    cdef size_t i
    for i in range(values.size(), 0, -1):
        index_parts(tracker, values[i - 1], at, parts)
        for part in parts:
            text = item_text(tracker, part)
            slot = index_slot(known, notes, text)
            kind = tracker.store.values[part].kind
            if notes[slot].second == 0 and (kind == VALUE_ARRAY or kind == VALUE_OBJECT):
                letter.assign(1, <char>item_letter(kind))
                index_note(tracker, notes[index_slot(known, notes, letter)], part)
            index_note(tracker, notes[slot], values[i - 1])
    sort(notes.begin(), notes.end())
    set = tracker.items.of(notes)
    if values[values.size() // 2] < tracker.moved:
        # It was there before the values moved, and is as alive as they are.
        tracker.remade += indices_bytes(tracker) - before
    return set


cdef int64_t indices_bytes(const Tracker* tracker) noexcept nogil:
    return (<int64_t>(tracker.items.bytes() + tracker.group_ids.bytes() + tracker.index_ids.bytes())
            + <int64_t>(tracker.groups.bytes() + tracker.entries.bytes()))


cdef int32_t index_slot(Interner& known, vector[pair[string, int32_t]]& notes, const string& text) noexcept nogil:
    # The place of a text among notes; a new one is of the empty group.
    cdef int32_t slot = known.find(text)
    if slot < 0:
        slot = <int32_t>notes.size()
        notes.push_back(pair[string, int32_t](text, 0))
        known.insert(text, slot)
    return slot


cdef inline void index_note(Tracker* tracker, pair[string, int32_t]& note, int32_t value) noexcept nogil:
    note.second = group_with(tracker, note.second, value)


cdef void index_know(Tracker* tracker, int32_t group, int32_t place, int32_t set) noexcept nogil:
    # Remember the index of a group at a place, if it is new.
    cdef int32_t fields[2]
    cdef IndexEntry entry
    fields[0] = entry.group = group
    fields[1] = entry.place = place
    entry.set = set
    if tracker.index_ids.find(&fields, sizeof(fields)) >= 0:
        return
    if tracker.entries.empty():
        entry.next = 0
        tracker.entries.push_back(entry)
    entry.next = tracker.groups[group].entry
    tracker.groups[group].entry = <int32_t>tracker.entries.size()
    tracker.entries.push_back(entry)
    tracker.index_ids.insert(&fields, sizeof(fields), set)


cdef int32_t group_index(Tracker* tracker, int32_t group, int32_t at) noexcept nogil:
    # The index of a group at a place; 0: nothing goes on there.
    cdef int32_t fields[2]
    cdef vector[int32_t] later, parts
    cdef int32_t set = -1
    cdef int32_t id = group, part
    fields[1] = at
    while id > 0:
        fields[0] = id
        set = tracker.index_ids.find(&fields, sizeof(fields))
        if set >= 0:
            break
        later.push_back(tracker.groups[id].value)
        id = tracker.groups[id].before
    if later.empty():
        return max(set, 0)
    if set < 0:
        set = index_new(tracker, later, at)
        later.clear()
    while not later.empty():
        index_parts(tracker, later.back(), at, parts)
        for part in parts:
            set = index_with(tracker, set, part, later.back())
        later.pop_back()
    index_know(tracker, group, at, set)
    return set


cdef inline int32_t frame_place(const Frame* frame) noexcept nogil:
    # The place of what comes next, for an index.
    return frame.key if frame.is_object else frame.count


cdef void frame_take(Tracker* tracker, Frame* frame, int32_t group) noexcept nogil:
    # Add candidates to a new frame.
    cdef Group* taken
    cdef size_t i
    if group == 0:
        return
    taken = &tracker.groups[group]
    if taken.listed >= LISTED_FIRST * taken.parts or taken.count > LISTED_MOST:
        for i in range(frame.groups.size()):
            if frame.groups[i] == group:
                return
        frame.groups.push_back(group)
        return
    taken.listed += taken.count
    tracker.listed += taken.count
    while group > 0:
        frame.candidates.push_back(tracker.groups[group].value)
        group = tracker.groups[group].before


cdef void frame_came(Tracker* tracker, Frame* frame, int32_t value) noexcept nogil:
    # Note a new item.
    cdef int32_t kind = tracker.store.values[value].kind
    frame.items = tracker.items.with_text(frame.items, item_text(tracker, value))
    if kind == VALUE_ARRAY:
        frame.arrays = group_with(tracker, frame.arrays, value)
    elif kind == VALUE_OBJECT:
        frame.objects = group_with(tracker, frame.objects, value)


cdef void frame_nested(Tracker* tracker, int32_t id, int32_t kind, Frame* nested) noexcept nogil:
    # The candidates of an array or object that begins in a frame.
    cdef Frame* frame = tracker.frames[id]
    cdef vector[int32_t] targets
    cdef int32_t target
    cdef size_t i
    frame_targets(tracker, id, targets)
    for target in targets:
        if tracker.store.values[target].kind == kind:
            nested.candidates.push_back(target)
    for i in range(frame.indices.size()):
        frame_take(tracker, nested, items_nested(tracker, frame.indices[i], kind))
    frame_take(tracker, nested, frame.arrays if kind == VALUE_ARRAY else frame.objects)


cdef void frame_filter(Tracker* tracker, const Frame* frame, int32_t value, Frame* after) noexcept nogil:
    # The candidates of a frame that go on by a value (or a key).
    cdef const Value* other
    cdef int32_t candidate, index
    cdef size_t i
    for i in range(frame.candidates.size()):
        candidate = frame.candidates[i]
        other = tracker.store.values[candidate]
        if not frame.is_object:
            if other.items.size() <= <size_t>frame.count or other.items[frame.count] != value:
                continue
        elif frame.key < 0:
            if value_member(other, value) < 0:
                continue
        elif value_member(other, frame.key) != value:
            continue
        after.candidates.push_back(candidate)
    for i in range(frame.groups.size()):
        index = group_index(tracker, frame.groups[i], frame_place(frame))
        frame_take(tracker, after, items_note(tracker, index, item_text(tracker, value)))


# --- what they have next ------------------------------------------------------------------------

cdef void frame_look(Tracker* tracker, Frame* frame) noexcept nogil:
    # Find what candidates have next: keys, the value of the key that was read, or the next item.
    cdef const Value* value
    cdef int32_t candidate, index
    cdef size_t i
    if frame.has_goals:
        return
    frame.has_goals = True
    for candidate in frame.candidates:
        value = tracker.store.values[candidate]
        if not frame.is_object:
            if value.items.size() > <size_t>frame.count:
                frame.goals.push_back(value.items[frame.count])
        elif frame.key < 0:
            frame.goals.insert(frame.goals.end(), value.keys.begin(), value.keys.end())
        else:
            frame.goals.push_back(value_member(value, frame.key))
    numbers_normalize(frame.goals)
    for i in range(frame.groups.size()):
        index = group_index(tracker, frame.groups[i], frame_place(frame))
        if index:
            frame.indices.push_back(index)
    tracker.held += <int64_t>(4 * (frame.goals.size() + frame.indices.size()))


cdef void frame_targets(Tracker* tracker, int32_t id, vector[int32_t]& out) noexcept nogil:
    # Of the earlier values that the next one may be equal to, so that it matters, those that are in no set (frame_sets).
    cdef Frame* frame = tracker.frames[id]
    cdef int32_t twin
    frame_look(tracker, frame)
    out.assign(frame.goals.begin(), frame.goals.end())
    if frame_tied(tracker, frame):
        twin = frame_twin(tracker, frame)
        if twin >= 0:
            out.push_back(twin)


cdef void frame_sets(Tracker* tracker, int32_t id, vector[int32_t]& out) noexcept nogil:
    # The sets of texts of the others.
    cdef Frame* frame = tracker.frames[id]
    frame_look(tracker, frame)
    out.assign(frame.indices.begin(), frame.indices.end())
    if frame.items:
        out.push_back(frame.items)


cdef void frame_scalars(Tracker* tracker, int32_t id, int32_t kind, vector[int32_t]& out) noexcept nogil:
    # All those that are strings, or numbers, and maybe others.
    cdef vector[int32_t] sets
    cdef int32_t set
    frame_targets(tracker, id, out)
    frame_sets(tracker, id, sets)
    for set in sets:
        items_values(tracker, set, kind, out)


cdef cbool frame_fewer(Tracker* tracker, Frame* frame, size_t count) noexcept nogil:
    # Whether candidates have fewer than so many different values next.
    cdef vector[string] texts, rests
    cdef int32_t index, goal
    cdef size_t i, all, most
    frame_look(tracker, frame)
    all = most = frame.goals.size()
    for i in range(frame.indices.size()):
        # With the letters of kinds.
        all += <size_t>tracker.items.count(frame.indices[i])
        most = max(most, <size_t>max(tracker.items.count(frame.indices[i]) - 2, 0))
    if all < count or most >= count:
        return all < count
    for goal in frame.goals:
        texts.push_back(item_text(tracker, goal))
    for index in frame.indices:
        tracker.items.rests(index, 0, rests)
        for i in range(rests.size()):
            if rests[i].size() > 1 or (rests[i][0] != item_letter(VALUE_ARRAY) and rests[i][0] != item_letter(VALUE_OBJECT)):
                texts.push_back(rests[i])
    sort(texts.begin(), texts.end())
    all = 0
    for i in range(texts.size()):
        if i == 0 or texts[i] != texts[i - 1]:
            all += 1
    return all < count


cdef int32_t frame_twin(const Tracker* tracker, const Frame* frame) noexcept nogil:
    # In such an array, the value that the next item must be; -1: it may be any.
    cdef int32_t cell = frame.cells
    cdef int32_t _i
    if frame.count != tracker.guards[frame.guard - 1].second:
        return -1
    # The outermost array keeps no other.
    for _i in range(frame.count - 1 - tracker.guards[frame.guard - 1].first if frame.parent >= 0 else 0):
        cell = tracker.store.cells[cell].before
    return tracker.store.cells[cell].value
