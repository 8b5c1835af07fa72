# How many threads the pool has (threads.pxi), and how rows are shared out.

cdef enum:
    CHUNK_ROWS = 16                # of a bitmask that a thread takes at a time
    MOST_THREADS = 1 << 16

cdef size_t _threads = 0


cdef size_t pool_threads() except? 0:
    if _threads == 0:
        set_threads()
    return _threads


def set_threads(count=None):
    """How many threads fill bitmasks of a batch and cut its logits (default: the CPUs that this process
    may use, see ``maskwright.base.cpus``); fewer where the process cannot have so many.  Raises ``MaskwrightError`` for what is no integer from 1 on."""
    global _threads
    cdef int64_t number
    if count is None:
        count = available_cpus()
    try:
        number = whole_number(count, MOST_THREADS)
    except TypeError:
        raise MaskwrightError(f"a number of threads is an integer, not {count!r} ({type(count).__name__})") from None
    if number < 1:
        raise MaskwrightError(f"a pool needs at least one thread, not {shown_number(count)}")
    _threads = <size_t>min(number, <int64_t>MOST_THREADS)
