# Sets of quoted keys (the syntax of RFC 8259 section 7), as automata.
#
# Names are kept in their canonical spelling (raw UTF-8, an escape only where one is required).
# A backslash sequence is read by a decoder of its own and then compared as the text that it
# spells, so that "\u0061" is the key a.  With other keys allowed, every name is still tracked:
# a name whose tag is not allowed must not pass as another key.

from libc.stdint cimport int64_t
from libc.string cimport memset

from maskwright._engine.sizes cimport bits_set
from maskwright._engine.lexemes cimport KEY_BODY, KEY_CLOSED, KEY_OTHER, KEY_START, NO_TAG
from maskwright._engine.lazy_dfa cimport dfa_more_texts
from maskwright._engine.lexeme_texts cimport (
    BACKSLASH, FORM_OUTSIDE, FORM_TEXT, hex_digit, LEX_DEAD, lex_new_state, QUOTE, short_escape, short_spells,
    SLASH, text_step, unit_spells
)


cdef struct UsedPlace:
    # A place in a set of used keys (textsets.hpp), and what the other keys are there.
    int32_t used
    int32_t used_at
    LexState* base


cdef cbool key_any_allowed(const Automaton* keys, const KeyPosition* at) noexcept nogil:
    cdef int32_t i
    for i in range(at.first, at.last):
        if key_allows(keys, at, keys.texts.tags[i]):
            return True
    return False


cdef cbool key_needs_escape(const Automaton* keys, const KeyPosition* at) noexcept nogil:
    # Whether an allowed name goes on with a character that has to be escaped.
    cdef int32_t i
    for i in range(at.first, at.last):
        if (key_allows(keys, at, keys.texts.tags[i]) and keys.texts.names[i].size() > <size_t>at.depth
                and <uint8_t>keys.texts.names[i][at.depth] == BACKSLASH):
            return True
    return False


# --- keys that must not come again
cdef void key_narrow_used(const Automaton* keys, KeyPosition* at, uint8_t byte) noexcept nogil:
    # Among those that agree so far: the ones with `byte` next.
    if keys.keyset.used.step(at.used, at.used_at, byte):
        at.used_left = keys.keyset.used.count(at.used)
    else:
        at.used = at.used_at = at.used_left = 0


cdef cbool key_inside_character(const Automaton* keys, const KeyPosition* at) noexcept nogil:
    # Whether a UTF-8 sequence is under way; one of the agreeing names tells for all.
    cdef vector[uint8_t] ahead
    cdef const string* name
    if at.first < at.last:
        name = &keys.texts.names[at.last - 1]
        return name.size() > <size_t>at.depth and (<uint8_t>name[0][at.depth] & 0xC0) == 0x80
    if at.used_left > 0:
        keys.keyset.used.next(at.used, at.used_at, ahead)
    return not ahead.empty() and (ahead[0] & 0xC0) == 0x80


cdef void key_narrow(const Automaton* keys, KeyPosition* at, uint8_t byte) noexcept nogil:
    # Among names [first, last) that agree up to depth: those with `byte` next.
    cdef int32_t low = at.first, high = at.last, middle
    cdef size_t depth = <size_t>at.depth
    if at.used_left > 0:
        key_narrow_used(keys, at, byte)
    # A name that ends here sorts first.
    while low < high:
        middle = (low + high) // 2
        if keys.texts.names[middle].size() <= depth or <uint8_t>keys.texts.names[middle][depth] < byte:
            low = middle + 1
        else:
            high = middle
    at.first = low
    high = at.last
    while low < high:
        middle = (low + high) // 2
        if keys.texts.names[middle].size() <= depth or <uint8_t>keys.texts.names[middle][depth] <= byte:
            low = middle + 1
        else:
            high = middle
    at.last = low
    at.depth += 1


cdef string key_spelling(int32_t c) noexcept nogil:
    # The canonical spelling of a code point inside quotes.
    cdef string out
    cdef const char* hexdigits = "0123456789abcdef"
    if c == QUOTE or c == BACKSLASH:
        out.push_back(<char>BACKSLASH)
        out.push_back(<char>c)
    elif c < 0x20:
        out.push_back(<char>BACKSLASH)
        if c == 8:
            out.push_back(98)
        elif c == 9:
            out.push_back(116)
        elif c == 10:
            out.push_back(110)
        elif c == 12:
            out.push_back(102)
        elif c == 13:
            out.push_back(114)
        else:
            out.push_back(117)
            out.push_back(48)
            out.push_back(48)
            out.push_back(hexdigits[c >> 4])
            out.push_back(hexdigits[c & 15])
    elif c < 0x80:
        out.push_back(<char>c)
    elif c < 0x800:
        out.push_back(<char>(0xC0 | (c >> 6)))
        out.push_back(<char>(0x80 | (c & 63)))
    elif c < 0x10000:
        out.push_back(<char>(0xE0 | (c >> 12)))
        out.push_back(<char>(0x80 | ((c >> 6) & 63)))
        out.push_back(<char>(0x80 | (c & 63)))
    else:
        out.push_back(<char>(0xF0 | (c >> 18)))
        out.push_back(<char>(0x80 | ((c >> 12) & 63)))
        out.push_back(<char>(0x80 | ((c >> 6) & 63)))
        out.push_back(<char>(0x80 | (c & 63)))
    return out


cdef int32_t key_code_point(const string& name, size_t at) noexcept nogil:
    # The code point spelled canonically at name[at:].
    cdef uint8_t c = <uint8_t>name[at]
    cdef int32_t value
    cdef size_t i
    if c == BACKSLASH:
        c = <uint8_t>name[at + 1]
        if c == 98:
            return 8
        if c == 116:
            return 9
        if c == 110:
            return 10
        if c == 102:
            return 12
        if c == 114:
            return 13
        if c == 117:
            value = 0
            for i in range(at + 2, at + 6):
                value = value * 16 + hex_digit(<uint8_t>name[i])
            return value
        return c
    if c < 0x80:
        return c
    if c < 0xE0:
        return ((c & 31) << 6) | (<uint8_t>name[at + 1] & 63)
    if c < 0xF0:
        return ((c & 15) << 12) | ((<uint8_t>name[at + 1] & 63) << 6) | (<uint8_t>name[at + 2] & 63)
    return (((c & 7) << 18) | ((<uint8_t>name[at + 1] & 63) << 12)
            | ((<uint8_t>name[at + 2] & 63) << 6) | (<uint8_t>name[at + 3] & 63))


cdef cbool key_short_fits(int32_t spelling, int32_t c) noexcept nogil:
    # Whether a short escape is written for code point c.
    if c == SLASH:
        return short_spells(spelling, c)
    return c == QUOTE or c == BACKSLASH or (8 <= c <= 13 and c != 11)


cdef cbool key_escape_fits(int32_t spelling, int32_t c, int32_t escape, uint32_t value) noexcept nogil:
    # Whether code point c can still be spelled by an escape read so far (see KeyPosition).
    cdef uint32_t first = <uint32_t>c, second = 0
    cdef int32_t digits
    if not unit_spells(spelling, c):
        return escape == 1 and key_short_fits(spelling, c)
    if escape == 1:
        return True
    if c >= 0x10000:
        first = 0xD800 + ((c - 0x10000) >> 10)
        second = 0xDC00 + ((c - 0x10000) & 0x3FF)
    if escape <= 6:
        digits = escape - 2
        return (first >> (16 - 4 * digits)) == value
    if c < 0x10000:
        return False
    digits = escape - 8 if escape > 8 else 0
    return first == (value >> 16) and (second >> (16 - 4 * digits)) == (value & 0xFFFF)


cdef string key_escape_rest(int32_t c, int32_t escape) noexcept nogil:
    # The fewest bytes that finish an escape for code point c; it fits (see above).
    cdef string out = key_spelling(c)
    cdef const char* hexdigits = "0123456789abcdef"
    cdef uint32_t half[2]
    cdef int32_t i, j
    if escape == 1:
        if c == 47 or c == QUOTE or c == BACKSLASH:
            out.assign(1, <char>c)
            return out
        if out.size() == 2 and c < 0x20:
            return out.substr(1)
    half[0] = <uint32_t>c
    half[1] = 0
    if c >= 0x10000:
        half[0] = 0xD800 + ((c - 0x10000) >> 10)
        half[1] = 0xDC00 + ((c - 0x10000) & 0x3FF)
    out.clear()
    for i in range(2 if half[1] else 1):
        out.push_back(<char>BACKSLASH)
        out.push_back(117)
        for j in range(4):
            out.push_back(hexdigits[(half[i] >> (12 - 4 * j)) & 15])
    # `escape` is the number of bytes read.
    return out.substr(<size_t>escape)


cdef int32_t key_character_size(uint8_t first, uint8_t second) noexcept nogil:
    # Bytes of a character in its canonical spelling.
    if first == BACKSLASH:
        return 6 if second == 117 else 2
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


cdef cbool texts_escape_alive(const TextSets* texts, int32_t spelling, int32_t escape, uint32_t value, int32_t set, int32_t at,
                              string begun) noexcept nogil:
    # Whether an escape read so far can spell the next character of a text in a set; `begun`: of that character, read up to
    # that place.
    cdef vector[uint8_t] ahead
    cdef uint8_t byte
    cdef int32_t behind, offset
    if begun.size() > 1 or (begun.size() == 1 and <uint8_t>begun[0] != BACKSLASH):
        if <int32_t>begun.size() == key_character_size(<uint8_t>begun[0], <uint8_t>begun[1] if begun.size() > 1 else 0):
            return key_escape_fits(spelling, key_code_point(begun, 0), escape, value)
    texts.next(set, at, ahead)
    for byte in ahead:
        behind = set
        offset = at
        texts.step(behind, offset, byte)
        begun.push_back(<char>byte)
        if texts_escape_alive(texts, spelling, escape, value, behind, offset, begun):
            return True
        begun.pop_back()
    return False


cdef cbool key_escape_alive(const Automaton* keys, const KeyPosition* at) noexcept nogil:
    # Whether some allowed name can still be spelled (other: any name, allowed or not).
    cdef string none
    cdef int32_t i
    if at.used_left > 0 and texts_escape_alive(keys.keyset.used, keys.spelling, at.escape, at.value, at.used, at.used_at, none):
        return True
    for i in range(at.first, at.last):
        if at.other == 0 and not key_allows(keys, at, keys.texts.tags[i]):
            continue
        if keys.texts.names[i].size() > <size_t>at.depth:
            if key_escape_fits(keys.spelling, key_code_point(keys.texts.names[i], at.depth), at.escape, at.value):
                return True
    return False


cdef void key_read_code_point(const Automaton* keys, KeyPosition* at, int32_t c) noexcept nogil:
    cdef string spelled = key_spelling(c)
    cdef size_t i
    at.escape = 0
    at.value = 0
    for i in range(spelled.size()):
        key_narrow(keys, at, <uint8_t>spelled[i])


cdef int32_t escape_read(int32_t* escape, uint32_t* value, uint8_t byte) noexcept nogil:
    # One byte of a backslash sequence: the code point that it spells, ESCAPE_OPEN or ESCAPE_BAD.
    #   escape: 1 `\`, 2 `\u`, 3-6 digits (6: complete, a high surrogate), 7 `\`, 8 `\u`, 9-11 digits
    cdef int32_t digit
    cdef uint32_t low
    if escape[0] == 1:
        if byte == 117:
            escape[0] = 2
            value[0] = 0
            return ESCAPE_OPEN
        digit = short_escape(byte)
        return digit if digit >= 0 else ESCAPE_BAD
    if escape[0] == 6:
        escape[0] = 7
        value[0] <<= 16
        return ESCAPE_OPEN if byte == BACKSLASH else ESCAPE_BAD
    if escape[0] == 7:
        escape[0] = 8
        return ESCAPE_OPEN if byte == 117 else ESCAPE_BAD
    digit = hex_digit(byte)
    if digit < 0:
        return ESCAPE_BAD
    if escape[0] <= 5:
        value[0] = value[0] * 16 + digit
        escape[0] += 1
        if escape[0] == 6:
            if 0xDC00 <= value[0] <= 0xDFFF:
                return ESCAPE_BAD
            if not 0xD800 <= value[0] <= 0xDBFF:
                return <int32_t>value[0]
        return ESCAPE_OPEN
    low = (value[0] & 0xFFFF) * 16 + digit
    value[0] = (value[0] & <uint32_t>0xFFFF0000) | low
    escape[0] += 1
    if escape[0] < 12:
        return ESCAPE_OPEN
    if not 0xDC00 <= low <= 0xDFFF:
        return ESCAPE_BAD
    return <int32_t>(0x10000 + (((value[0] >> 16) - 0xD800) << 10) + (low - 0xDC00))


cdef void escape_ahead(int32_t escape, uint64_t* ahead) noexcept nogil:
    # The bytes that may go on with a backslash sequence (escape_read).
    cdef int32_t byte
    if escape == 6:
        bits_set(ahead, BACKSLASH)
    elif escape == 7:
        bits_set(ahead, 117)
    else:
        for byte in range(QUOTE, 118):
            if (byte == 117 or short_escape(<uint8_t>byte) >= 0) if escape == 1 else hex_digit(<uint8_t>byte) >= 0:
                bits_set(ahead, <uint8_t>byte)


cdef cbool key_read_escape(const Automaton* keys, KeyPosition* at, uint8_t byte) noexcept nogil:
    # False when the byte does not go on with the backslash sequence.
    cdef cbool is_short = at.escape == 1
    cdef int32_t point = escape_read(&at.escape, &at.value, byte)
    if point >= 0:
        if not (short_spells(keys.spelling, point) if is_short else unit_spells(keys.spelling, point)):
            return False
        key_read_code_point(keys, at, point)
    return point != ESCAPE_BAD


cdef LexState* key_intern(Automaton* keys, const KeyPlace& place) noexcept nogil:
    cdef int32_t known = keys.keyset.interned.find(&place, sizeof(KeyPlace))
    cdef LexState* state
    if known >= 0:
        return keys.states[known]
    state = lex_new_state(keys)
    keys.keyset.interned.insert(&place, sizeof(KeyPlace), state.id)
    state.key = place.at
    state.base = place.base
    if place.at.where == KEY_CLOSED:
        state.tag = <int32_t>place.at.value
    elif place.at.where == KEY_OTHER and place.base.tag != NO_TAG:
        state.tag = keys.keyset.other_tag + place.base.tag
    return state


cdef int32_t key_filter(Automaton* keys, const vector[char]* allowed, int32_t low, int32_t high) noexcept nogil:
    cdef vector[char] filter
    cdef cbool all_of_them = True
    cdef int32_t tag
    if allowed == NULL:
        return 0
    filter.resize(allowed.size(), 0)
    for tag in range(<int32_t>allowed.size()):
        if low <= tag <= high:
            filter[tag] = allowed[0][tag]
            all_of_them = all_of_them and filter[tag] != 0
    return 0 if all_of_them else key_filter_intern(keys, filter)


cdef int32_t key_filter_intern(Automaton* keys, const vector[char]& filter) noexcept nogil:
    cdef string name
    cdef int32_t id
    name.assign(filter.data(), filter.size())
    id = keys.keyset.filter_ids.find(name)
    if id < 0:
        if keys.keyset.filters.empty():
            keys.keyset.filters.resize(1)
        id = <int32_t>keys.keyset.filters.size()
        keys.keyset.filters.push_back(filter)
        keys.keyset.filter_ids.insert(name, id)
    return id


cdef LexState* key_start(Automaton* keys, int32_t low, int32_t high, cbool other,
                         const vector[char]* allowed, int32_t used, cbool pending) noexcept nogil:
    # The start for tags low..high (of these, those `allowed`, if given) and other keys but those in the
    # set `used`; LEX_DEAD when nothing is allowed.
    cdef KeyPlace place
    memset(&place, 0, sizeof(place))
    place.at.where = KEY_START
    place.at.last = <int32_t>keys.texts.names.size()
    place.at.low = low
    place.at.high = high
    place.at.other = other and keys.keyset.base.start != LEX_DEAD
    place.at.filter = key_filter(keys, allowed, low, high)
    if place.at.other == 0 and not key_any_allowed(keys, &place.at):
        return LEX_DEAD
    if place.at.other:
        place.at.pending = pending
        place.at.used = used
        place.at.used_left = keys.keyset.used.count(used) if used > 0 else 0
        place.base = keys.keyset.base.start
    return key_intern(keys, place) if key_completable(keys, place) else LEX_DEAD


cdef int64_t key_used_within(const Automaton* keys, const KeyPlace& place) noexcept nogil:
    # Of the used keys that agree so far, how many are among the other keys.
    cdef const TextSets* used = keys.keyset.used
    cdef vector[UsedPlace] work
    cdef vector[uint8_t] ahead
    cdef UsedPlace at, behind
    cdef uint8_t byte
    cdef int64_t count = 0
    at.used, at.used_at, at.base = place.at.used, place.at.used_at, place.base
    if place.at.where == KEY_START:
        at.base = text_step(at.base, QUOTE)
    work.push_back(at)
    while not work.empty():
        at = work.back()
        work.pop_back()
        if at.base == LEX_DEAD:
            continue
        if used.ends(at.used, at.used_at) and text_step(at.base, QUOTE) != LEX_DEAD:
            count += 1
        used.next(at.used, at.used_at, ahead)
        for byte in ahead:
            behind = at
            behind.base = text_step(at.base, byte)
            used.step(behind.used, behind.used_at, byte)
            work.push_back(behind)
    return count


cdef cbool key_completable(Automaton* keys, const KeyPlace& place) noexcept nogil:
    # Whether some key is left from here, though some other keys are used.
    cdef LexState* state
    cdef KeyPlace behind
    cdef int32_t byte
    cdef int32_t used = place.at.used_left
    cdef cbool whole
    if place.at.other == 0 or used == 0:
        return True
    # Not in an escape: what it may become is not every character.
    whole = place.base.form == FORM_TEXT or place.base.form == FORM_OUTSIDE
    if whole and dfa_more_texts(place.base.automaton.dfa, place.base.dfa_state, used):
        return True
    # The answer is kept with the state.
    state = key_intern(keys, place)
    if state.alive == 0:
        state.alive = 2
        if key_any_allowed(keys, &place.at):
            state.alive = 1
        elif whole:
            # What is used need not be among these others: where there are kinds of them, it may be of another kind.
            if dfa_more_texts(place.base.automaton.dfa, place.base.dfa_state, key_used_within(keys, place)):
                state.alive = 1
        else:
            for byte in range(256):
                behind = place
                if key_move(keys, &behind, <uint8_t>byte):
                    state.alive = 1
                    break
    return state.alive == 1


cdef cbool key_may_run_out(const LexState* start) noexcept nogil:
    # Whether the key that came before, and is not known, may have been the last one that was left.
    if start == LEX_DEAD or start.key.other == 0 or key_any_allowed(start.automaton, &start.key):
        return False
    return not dfa_more_texts(start.base.automaton.dfa, start.base.dfa_state, start.key.used_left + 1)


cdef cbool key_on_other(KeyPlace* place) noexcept nogil:
    # On the way to no name any more.
    cdef int32_t pending = place.at.pending
    if place.at.other == 0:
        return False
    memset(&place.at, 0, sizeof(KeyPosition))
    place.at.where = KEY_OTHER
    place.at.other = 1
    place.at.pending = pending
    return True


cdef cbool key_close(const Automaton* keys, KeyPlace* place) noexcept nogil:
    cdef KeyPosition* at = &place.at
    cdef int32_t tag
    if at.used_left > 0 and keys.keyset.used.ends(at.used, at.used_at):
        return False
    if at.first < at.last and keys.texts.names[at.first].size() == <size_t>at.depth:
        tag = keys.texts.tags[at.first]
        if not key_allows(keys, at, tag):
            return False
        memset(place, 0, sizeof(KeyPlace))
        at.where = KEY_CLOSED
        at.value = tag
        return True
    return key_on_other(place)


cdef cbool key_move(Automaton* keys, KeyPlace* place, uint8_t byte) noexcept nogil:
    # Read a byte; False when it leads nowhere.
    cdef KeyPosition* at = &place.at
    if at.where == KEY_CLOSED:
        return False
    if place.base != NULL:
        place.base = text_step(place.base, byte)
        if place.base == LEX_DEAD:
            # Only names are left.
            place.base = NULL
            at.other = 0
            at.used = at.used_at = at.used_left = at.pending = 0
    if at.where == KEY_OTHER:
        return key_on_other(place)
    if at.where == KEY_START:
        at.where = KEY_BODY
        return byte == QUOTE and key_completable(keys, place[0])
    if at.escape == 0:
        if byte == QUOTE:
            return key_close(keys, place)
        if byte == BACKSLASH:
            if key_inside_character(keys, at):
                return False
            at.escape = 1
        else:
            key_narrow(keys, at, byte)
    elif not key_read_escape(keys, at, byte):
        return False
    if at.escape != 0:
        if key_escape_alive(keys, at):
            return key_completable(keys, place[0])
    elif at.other == 1:
        if at.first < at.last or at.used_left > 0:
            return key_completable(keys, place[0])
    elif key_any_allowed(keys, at):
        return True
    return key_on_other(place)


cdef LexState* key_next(LexState* state, uint8_t byte) noexcept nogil:
    cdef KeyPlace place = key_place(state)
    return key_intern(state.automaton, place) if key_move(state.automaton, &place, byte) else LEX_DEAD


cdef void key_fill_first(LexState* state) noexcept nogil:
    cdef KeyPlace behind
    cdef int32_t byte
    for byte in range(256):
        if state.key.where != KEY_START or byte == QUOTE:
            behind = key_place(state)
            if key_move(state.automaton, &behind, <uint8_t>byte):
                bits_set(state.first, <uint8_t>byte)


cdef string key_text(const string& quoted) noexcept nogil:
    # The canonical spelling of a whole quoted key.
    cdef string out
    cdef size_t i = 1
    cdef int32_t c
    while i + 1 < quoted.size():
        if <uint8_t>quoted[i] != BACKSLASH:
            out.push_back(quoted[i])
            i += 1
            continue
        if <uint8_t>quoted[i + 1] != 117:
            out.append(key_spelling(short_escape(<uint8_t>quoted[i + 1])))
            i += 2
            continue
        c = key_unit(quoted, i + 2)
        i += 6
        if 0xD800 <= c <= 0xDBFF:
            c = 0x10000 + ((c - 0xD800) << 10) + (key_unit(quoted, i + 2) - 0xDC00)
            i += 6
        out.append(key_spelling(c))
    return out


cdef int32_t key_unit(const string& text, size_t at) noexcept nogil:
    # Four hexadecimal digits.
    cdef int32_t value = 0
    cdef size_t i
    for i in range(at, at + 4):
        value = value * 16 + hex_digit(<uint8_t>text[i])
    return value
