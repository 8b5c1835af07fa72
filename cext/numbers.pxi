# Numbers that callers give: integers, and nothing that only looks like one.

cdef int64_t whole_number(object value, int64_t above) except? -1:
    # A number as `operator.index` takes it, which C's conversion does not: that cuts what is behind a point.  TypeError for
    # anything else, and for what is true or false.
    # What C cannot hold becomes `above`, which the caller knows to be too large, or the least number.
    cdef int overflow = 0
    if isinstance(value, bool):
        raise TypeError("true and false are no numbers")
    cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
    return number if overflow == 0 else above if overflow > 0 else -above


cdef int64_t token_number(object token, int64_t vocab_size) except -1:
    # The number of a token; VocabularyError for what is none.
    cdef int64_t number
    try:
        number = whole_number(token, vocab_size)
    except TypeError:
        raise VocabularyError(f"a token id is an integer, not {token!r} ({type(token).__name__})") from None
    if not 0 <= number < vocab_size:
        raise VocabularyError(f"token id {shown_number(token)} is outside the vocabulary (0 to {vocab_size - 1})")
    return number


cdef str shown_number(object number):
    # For messages.  Python writes no decimals of very large integers.
    number = PyNumber_Index(number)
    return str(number) if number.bit_length() <= 128 else f"{number:#x}"[:40] + "..."
