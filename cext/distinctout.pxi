# Arrays of different items: completions.
#
# A completion follows the cheapest way out of the grammar.  Where an earlier item is in the way, a search finds another
# one out of the array, best first: by what the grammar says is still missing.  Threads that can be completed whatever
# came before are the same to it if they are the same to the grammar, or it would try one value after another where
# none of them helps; and what is easy ends in the cheapest way first.

cdef enum:
    FEW_SEARCHED = 10000           # states that are looked at before another way is tried

cdef cbool threads_tracked(const vector[Thread]& threads) noexcept nogil:
    cdef size_t i
    for i in range(threads.size()):
        if threads[i].text >= 0:
            return False
    return True


cdef cbool threads_leave(vector[Thread]& threads) noexcept nogil:
    # Go on with one that is not tracked, if there is any.
    cdef size_t i
    for i in range(threads.size()):
        if threads[i].text >= 0:
            threads[0] = threads[i]
            threads.resize(1)
            return True
    return False


cdef cbool distinct_completion(Core* core, int32_t id, vector[uint8_t]& out) noexcept nogil:
    # A completion: the shortest one of the grammar, led around items that came before.
    cdef vector[Thread] threads = core.states[id].threads
    cdef vector[Thread] start, after
    cdef vector[uint8_t] path, ahead
    cdef size_t i, mark
    cdef cbool found
    if core.states[id].accepting:
        return True
    while out.size() < COMPLETION_LIMIT and not core.index.deadline.passed:
        path.clear()
        if not shortest_plain(core, threads, path):
            return False
        start = threads
        mark = out.size()
        for i in range(path.size()):
            threads_step(core, threads, path[i], after)
            if after.empty():
                break
            out.push_back(path[i])
            if threads_tracked(after) and not threads_tracked(threads):
                start = after
                mark = out.size()
            threads.swap(after)
        else:
            return True
        if threads_leave(threads):
            continue
        # Back to where all of them were tracked: near the beginning of the array.
        ahead.assign(out.begin() + mark, out.end())
        threads.swap(start)
        out.resize(mark)
        path.clear()
        found = distinct_search(core, threads.data(), threads.size(), SEARCH_OUT, FEW_SEARCHED, &path)
        if not found and distinct_search(core, start.data(), start.size(), SEARCH_OUT, FEW_SEARCHED, &path):
            # Many texts lead out, none of them soon (two equal items are still to come): on from where the way ended.
            path.insert(path.begin(), ahead.begin(), ahead.end())
            found = True
        if (not found and not distinct_search(core, threads.data(), threads.size(), SEARCH_OUT, 0, &path)
                and not distinct_search(core, threads.data(), threads.size(), SEARCH_APART, 0, &path)):
            return False
        for i in range(path.size()):
            threads_step(core, threads, path[i], after)
            threads.swap(after)
            out.push_back(path[i])
        threads_leave(threads)
    return False
