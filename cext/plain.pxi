# Data as a key: how large it is, and whether it is plain.


def count_values(source, int64_t most):
    """The values below in nested dicts, lists and tuples, shared ones each time; more than ``most`` when counting stopped."""
    cdef list level = [source], below
    cdef int64_t count = 0
    while level:
        below = []
        for value in level:
            if isinstance(value, dict):
                inner = (<dict>value).values()
                count += len(<dict>value)
            elif isinstance(value, (list, tuple)):
                inner = value
                count += len(value)
            else:
                continue
            if count > most:
                return count
            for item in inner:
                if isinstance(item, (dict, list, tuple)):
                    below.append(item)
        level = below
    return count


cdef inline bint is_plain_scalar(value):
    kind = type(value)
    return kind is str or kind is int or kind is bool or kind is float or value is None


def is_plain(source):
    """Whether data consists of exactly dict (with str as keys), list, str, int, float, bool and None.

    Others may be written like these by ``marshal`` (anything with a buffer, as bytes): only grammars
    of plain data may be kept by content.
    """
    cdef list work = [source]
    while work:
        value = work.pop()
        kind = type(value)
        if kind is dict:
            for name, item in (<dict>value).items():
                if type(name) is not str:
                    return False
                if not is_plain_scalar(item):
                    work.append(item)
        elif kind is list:
            for item in <list>value:
                if not is_plain_scalar(item):
                    work.append(item)
        elif not is_plain_scalar(value):
            return False
    return True
