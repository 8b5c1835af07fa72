# Plain data as a key: its content as bytes.
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.number cimport PyNumber_Index
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND

# Data that is nested deeper has no key: the walk recurses.
cdef int MOST_NESTING = 1000


def content_key(source, int64_t most):
    """The content of data as bytes, equal exactly where the data, its types and the order of members are; what is shared is
    written each time.

    None where there are more than ``most`` values below ``source``, 1000 levels of them, or anything but exactly dict
    (with str as keys), list, str, int, float, bool and None: other types may say something else the next time.
    """
    cdef string out
    return <bytes>out if write_plain(out, source, &most, 0, None, None) else None


def content_keys(source, int64_t most, str name):
    """``content_key``, and by id those of the values that are called ``name`` in a dict of it: they are parts of it."""
    cdef string out
    spans = {}
    if not write_plain(out, source, &most, 0, name, spans):
        return None, {}
    whole = <bytes>out
    return whole, {value: whole[span] for value, span in spans.items()}


cdef bint write_plain(string& out, value, int64_t* most, int depth, str called, dict spans) except -1:
    # `spans`: where values that are called so stand, by id; None: nobody asks.
    # Each value begins with a letter (a text with the width of its characters) and how long it is: none begins another one.
    cdef int64_t number
    cdef size_t begin
    cdef double real
    cdef int overflow = 0
    kind = type(value)
    if kind is str:
        write_text(out, value)
    elif kind is dict:
        most[0] -= len(<dict>value)
        if most[0] < 0 or depth == MOST_NESTING:
            return False
        write_number(out, b"d", len(<dict>value))
        for name, item in (<dict>value).items():
            if type(name) is not str:
                return False
            write_text(out, name)
            begin = out.size()
            if not write_plain(out, item, most, depth + 1, called, spans):
                return False
            if spans is not None and <str>name == called:
                spans[id(item)] = slice(begin, out.size())
    elif kind is list:
        most[0] -= len(<list>value)
        if most[0] < 0 or depth == MOST_NESTING:
            return False
        write_number(out, b"l", len(<list>value))
        for item in <list>value:
            if not write_plain(out, item, most, depth + 1, called, spans):
                return False
    elif kind is bool:
        out.push_back(b"t" if value is True else b"f")
    elif value is None:
        out.push_back(b"n")
    elif kind is int:
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            out.push_back(b"I")
            write_text(out, f"{value:x}")
        else:
            write_number(out, b"i", number)
    elif kind is float:
        real = value
        memcpy(&number, &real, sizeof(double))
        write_number(out, b"r", number)
    else:
        return False
    return True


cdef inline void write_number(string& out, char letter, int64_t number):
    # Seven bits in a byte: most numbers are lengths, and small.
    cdef char[11] written
    cdef size_t size = 1
    cdef uint64_t left = <uint64_t>number
    written[0] = letter
    while left > 0x7F:
        written[size] = <char>(left & 0x7F | 0x80)
        left >>= 7
        size += 1
    written[size] = <char>left
    out.append(written, size + 1)


cdef inline void write_text(string& out, text):
    # As it is in memory, with 1, 2 or 4 bytes for each character: as few as the text allows.
    cdef int width = PyUnicode_KIND(text)
    write_number(out, <char>width, PyUnicode_GET_LENGTH(text))
    out.append(<char*>PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text) * width)
