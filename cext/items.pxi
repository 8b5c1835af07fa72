# The items that came, and which of them the next one may still be; arrays and objects, see groups.pxi.
#
# Of an array of different items, those that came are a set of texts (textsets.hpp): so the next one is compared with all of them
# at once, byte by byte.  An item's text begins with a letter for its kind.  Numbers are known by their sign and digits, then a
# point and the power of ten: as long as a number is under way, its power is open.

cdef enum:
    # letters of kinds, by VALUE_*
    ITEM_NUMBER = 110
    ITEM_STRING = 115
    ITEM_POINT = 46
    LETTERS_OF = 4             # bytes of a digest that are two letters each


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
