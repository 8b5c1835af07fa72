# Values as numbers: equal numbers are equal values.
#
# Numbers are compared by their exact value, strings decoded, objects as sets of members; true is no
# number.  Texts under way and lists are interned as well.

from libc.string cimport memcpy
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from maskwright._engine.limits cimport deferred_free_breathe
from maskwright._engine.lexeme_texts cimport SPELLING_QUOTED
from maskwright._engine.keyset cimport key_code_point, key_escape_fits
from maskwright._engine.program cimport UNKNOWN
from maskwright._engine.tracked cimport (
    Cell, DIGEST_SIZE, GREATEST_EXPONENT, VALUE_ARRAY, VALUE_NUMBER, VALUE_OBJECT, VALUE_STRING, VALUE_UNKNOWN
)

cdef extern from "digest.hpp" namespace "maskwright" nogil:
    cdef cppclass Digests:             # each extension module draws a key: nobody else makes any
        @staticmethod
        string of(const string&)


cdef void values_free(Values* store) noexcept nogil:
    while store.values.drop() or store.texts.after.drop():
        deferred_free_breathe()


cdef int32_t text_append(Texts* texts, int32_t text, uint8_t byte) noexcept nogil:
    # The number of a text and one more byte.
    cdef int32_t id
    if text == UNKNOWN_TEXT:
        return text
    if texts.before.empty():
        text_add(texts, 0, 0)
    id = texts.after[text].find(byte)
    if id == UNKNOWN:
        id = <int32_t>texts.before.size()
        text_add(texts, text, byte)
        texts.after[text].insert(byte, id)
    return id


cdef void text_add(Texts* texts, int32_t before, uint8_t byte) noexcept nogil:
    texts.before.push_back(before)
    texts.byte.push_back(byte)
    texts.after.add()


cdef string text_bytes(const Texts* texts, int32_t text) noexcept nogil:
    cdef string out
    cdef size_t i
    cdef char c
    while text > 0:
        out.push_back(<char>texts.byte[text])
        text = texts.before[text]
    for i in range(out.size() // 2):
        c = out[i]
        out[i] = out[out.size() - 1 - i]
        out[out.size() - 1 - i] = c
    return out


cdef int64_t text_characters(const Texts* texts, int32_t text) noexcept nogil:
    cdef int64_t count = 0
    while text > 0:
        if texts.byte[text] & 0xC0 != 0x80:
            count += 1
        text = texts.before[text]
    return count


cdef void number_digits(const string& text, string& digits, cbool* negative, cbool* scientific, int64_t* power) noexcept nogil:
    # The digits of a number's text without zeros in front, and the power of ten of the last one, as far
    # as it has been read.
    cdef size_t i
    cdef char c
    cdef cbool fraction = False, minus = False
    cdef int64_t exponent = 0
    digits.clear()
    negative[0] = scientific[0] = False
    power[0] = 0
    for i in range(text.size()):
        c = text[i]
        if c == 45:
            if scientific[0]:
                minus = True
            else:
                negative[0] = True
        elif c == 46:
            fraction = True
        elif c == 101 or c == 69:
            scientific[0] = True
        elif c == 43:
            continue
        elif scientific[0]:
            exponent = exponent * 10 + (c - 48)
            if exponent > GREATEST_EXPONENT:
                exponent = GREATEST_EXPONENT
        else:
            if fraction:
                power[0] -= 1
            if c != 48 or not digits.empty():
                digits.push_back(c)
    power[0] += -exponent if minus else exponent


cdef string number_text(const string& text) noexcept nogil:
    # One text for each number: sign, digits without zeros around them, and the power of ten.
    cdef string digits, out
    cdef cbool negative, scientific
    cdef int64_t power
    number_digits(text, digits, &negative, &scientific, &power)
    while not digits.empty() and digits.back() == 48:
        digits.pop_back()
        power += 1
    if digits.empty():
        return out
    out.push_back(45 if negative else 43)
    out.append(digits)
    out.append(<const char*>&power, sizeof(power))
    return out


cdef int32_t value_scalar(Values* store, int32_t kind, const string& text) noexcept nogil:
    cdef string name
    cdef Value* value
    cdef int32_t id
    name.push_back(<char>kind)
    name.append(text)
    id = store.ids.find(name)
    if id < 0:
        id = <int32_t>store.values.size()
        value = store.values.add()
        value.kind = kind
        value.text = text
        value.unknown = kind == VALUE_UNKNOWN
        store.held += <int64_t>text.size()
        store.ids.insert(name, id)
    return id


cdef int32_t value_list(Values* store, cbool is_object, int32_t cells) noexcept nogil:
    # The array or object of a list.
    cdef string name
    cdef Value* value
    cdef int32_t id, cell
    cdef size_t at
    name.push_back(<char>(VALUE_OBJECT if is_object else VALUE_ARRAY))
    name.append(<const char*>&cells, sizeof(int32_t))
    id = store.ids.find(name)
    if id < 0:
        id = <int32_t>store.values.size()
        value = store.values.add()
        value.kind = VALUE_OBJECT if is_object else VALUE_ARRAY
        value.unknown = False
        cell = cells
        at = 0
        while cell >= 0:
            at += 1
            cell = store.cells[cell].before
        value.items.resize(at)
        value.keys.resize(at if is_object else 0)
        store.held += <int64_t>(at * (8 if is_object else 4))
        cell = cells
        while cell >= 0:
            at -= 1
            value.items[at] = store.cells[cell].value
            value.unknown = value.unknown or store.values[value.items[at]].unknown
            if is_object:
                value.keys[at] = store.cells[cell].key
                value.unknown = value.unknown or store.values[value.keys[at]].unknown
            cell = store.cells[cell].before
        memcpy(value.digest, list_digest(store, value).data(), DIGEST_SIZE)
        store.ids.insert(name, id)
    return id


cdef string value_digest(const Values* store, int32_t id) noexcept nogil:
    cdef const Value* value = store.values[id]
    cdef string content
    if value.kind == VALUE_ARRAY or value.kind == VALUE_OBJECT:
        content.assign(<const char*>value.digest, DIGEST_SIZE)
        return content
    content.push_back(<char>value.kind)
    content.append(value.text)
    return Digests.of(content)


cdef string list_digest(const Values* store, const Value* value) noexcept nogil:
    # By the digests of what it is made of; members in an order of their own.
    cdef vector[string] parts
    cdef string content
    cdef size_t i
    for i in range(value.items.size()):
        parts.push_back(value_digest(store, value.items[i]))
        if value.kind == VALUE_OBJECT:
            parts[i] = value_digest(store, value.keys[i]) + parts[i]
    if value.kind == VALUE_OBJECT:
        sort(parts.begin(), parts.end())
    content.push_back(<char>value.kind)
    for i in range(parts.size()):
        content.append(parts[i])
    return Digests.of(content)


cdef int32_t value_member(const Value* value, int32_t key) noexcept nogil:
    # The value of an object's member, or -1.
    cdef size_t low = 0, high = value.keys.size(), middle
    while low < high:
        middle = (low + high) // 2
        if value.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return value.items[low] if low < value.keys.size() and value.keys[low] == key else -1


cdef int32_t cell_intern(Values* store, int32_t before, int32_t key, int32_t value) noexcept nogil:
    cdef Cell cell
    cdef string name
    cdef int32_t id
    cell.before = before
    cell.key = key
    cell.value = value
    name.assign(<const char*>&cell, sizeof(Cell))
    id = store.cell_ids.find(name)
    if id < 0:
        id = <int32_t>store.cells.size()
        store.cells.push_back(cell)
        store.cell_ids.insert(name, id)
    return id


cdef int32_t cell_insert(Values* store, int32_t cells, int32_t key, int32_t value) noexcept nogil:
    # A set with one more; new values have the highest numbers, so that this seldom goes far.
    cdef vector[Cell] above
    while cells >= 0 and store.cells[cells].key > key:
        above.push_back(store.cells[cells])
        cells = store.cells[cells].before
    if cells >= 0 and store.cells[cells].key == key:
        cells = store.cells[cells].before
    cells = cell_intern(store, cells, key, value)
    while not above.empty():
        cells = cell_intern(store, cells, above.back().key, above.back().value)
        above.pop_back()
    return cells


cdef int32_t number_append(Texts* texts, int32_t text, uint8_t byte) noexcept nogil:
    # One more byte of a number.  Exponents are kept without plus and zeros in front, and those of zero
    # not at all: they would make many states of what is the same number.
    cdef string read = text_bytes(texts, text)
    cdef cbool zero = True, scientific = False
    cdef size_t i
    for i in range(read.size()):
        scientific = scientific or read[i] == 101
        zero = zero and not (49 <= read[i] <= 57 and not scientific)
    if scientific:
        if zero or byte == 43 or (byte == 48 and (read.back() == 101 or read.back() == 45)):
            return text
    elif byte == 101 or byte == 69:
        if zero:
            text = text_append(texts, 0, 48)
        byte = 101
    return text_append(texts, text, byte)


cdef cbool string_compatible(const Value* value, const string& text, int32_t escape, uint32_t half) noexcept nogil:
    # Whether a string may go on to be this one; `escape`, `half`: see KeyPosition.
    if value.kind != VALUE_STRING or value.text.size() < text.size() or value.text.compare(0, text.size(), text) != 0:
        return False
    return escape == 0 or (value.text.size() > text.size()
                              and key_escape_fits(SPELLING_QUOTED, key_code_point(value.text, text.size()), escape, half))


cdef cbool exponent_compatible(int64_t exponent, const string& text) noexcept nogil:
    # Whether the exponent under way in a number's text (as number_append keeps it) can become this one.
    cdef string digits
    cdef size_t i, at = 0
    cdef cbool negative
    while text[at] != 101:
        at += 1
    at += 1
    negative = at < text.size() and text[at] == 45
    if negative:
        at += 1
    if at == text.size():
        return exponent <= 0 or not negative
    if exponent == 0 or negative != (exponent < 0):
        return False
    if exponent < 0:
        exponent = -exponent
    while exponent > 0:
        digits.push_back(<char>(48 + exponent % 10))
        exponent //= 10
    if text.size() - at > digits.size():
        return False
    for i in range(at, text.size()):
        if text[i] != digits[digits.size() - 1 - (i - at)]:
            return False
    return True


cdef cbool number_compatible(const Value* value, const string& text) noexcept nogil:
    # Where no exponent has been begun, any may follow.
    cdef string digits
    cdef cbool negative, scientific
    cdef int64_t power = 0, target = 0
    cdef size_t i, count
    if value.kind != VALUE_NUMBER:
        return False
    number_digits(text, digits, &negative, &scientific, &power)
    if digits.empty() or value.text.empty():
        return digits.empty() and (value.text.empty() or not scientific)
    count = value.text.size() - 1 - sizeof(power)
    if negative != (value.text[0] == 45):
        return False
    for i in range(digits.size()):
        if digits[i] != (value.text[i + 1] if i < count else 48):
            return False
    if not scientific:
        return True
    if digits.size() < count:
        return False
    # The digits are those of the value and zeros; `power` counts the exponent as far as it has been read.
    memcpy(&target, value.text.data() + 1 + count, sizeof(target))
    return exponent_compatible(target - <int64_t>(digits.size() - count) - mantissa_power(text), text)


cdef int32_t number_length(const Value* value) noexcept nogil:
    # Of its digits, a sign and a point.
    return <int32_t>value.text.size() - 1 - <int32_t>sizeof(int64_t) + 2 if not value.text.empty() else 2


cdef int64_t mantissa_power(const string& text) noexcept nogil:
    # The power of ten of the last digit before the exponent.
    cdef int64_t power = 0
    cdef cbool fraction = False
    cdef size_t i
    for i in range(text.size()):
        if text[i] == 101:
            break
        if fraction:
            power -= 1
        fraction = fraction or text[i] == 46
    return power


cdef cbool number_plain(const Value* value, const string& text) noexcept nogil:
    # Whether a number's text may go on to be this one without an exponent to come.  Of one that has an exponent already,
    # `number_compatible` says all.
    cdef int64_t power = 0, whole = 0, places = 0, at
    cdef int64_t count = 0
    cdef size_t i
    cdef cbool fraction = False
    if value.kind != VALUE_NUMBER:
        return False
    for i in range(text.size()):
        if text[i] == 101:
            return True
    if not value.text.empty():
        if (text[0] == 45) != (value.text[0] == 45):
            return False
        count = <int64_t>(value.text.size() - 1 - sizeof(power))
        memcpy(&power, value.text.data() + 1 + count, sizeof(power))
        whole = count + power
    for i in range(1 if text[0] == 45 else 0, text.size()):
        if text[i] == 46:
            # Below one, there is a zero before the point.
            if places != max(whole, 1):
                return False
            fraction = True
            continue
        at = places if whole > 0 else places - 1 + whole
        places += 1
        if not fraction and places > max(whole, 1):
            return False
        if text[i] != (value.text[1 + at] if 0 <= at < count else 48):
            return False
    return True
