# Lexemes as automata over code points, determinised while they are used.
#
# Code points that no edge tells apart form a class; an edge is labelled with a set of classes.
# A code state is a sorted set of items (NFA state, count of the loop that it is in).  Every code
# state reached can be completed: the NFA is trimmed.  How code points are spelled as bytes is
# the business of lexeme_texts.pyx.

from cython.operator cimport dereference
from libc.stdint cimport uint32_t
from libc.string cimport memcpy
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.containers cimport __builtin_ctzll
from maskwright._engine.limits cimport deadline_worked
from maskwright._engine.vocabulary cimport LAST_CODE_POINT
from maskwright._engine.lexemes cimport (
    CodeEdge, EPSILON_ENTER, EPSILON_PLAIN, NfaEpsilon, NO_TAG, SPAN_DEAD, SPAN_MIXED, SPAN_UNIFORM
)

cdef CodeState CODE_DEAD_STATE

CODE_DEAD = &CODE_DEAD_STATE


cdef CodeAutomaton* codes_new(Deadline* deadline) noexcept nogil:
    cdef CodeAutomaton* codes = new CodeAutomaton()
    codes.mark = 0
    codes.first = 0
    codes.held = 0
    codes.deadline = deadline
    return codes


cdef CodeAutomaton* codes_copy(const CodeAutomaton* other) noexcept nogil:
    # The same without any state.
    cdef CodeAutomaton* codes = codes_new(other.deadline)
    memcpy(codes.ascii_class, other.ascii_class, sizeof(other.ascii_class))
    codes.range_low = other.range_low
    codes.range_class = other.range_class
    codes.classes = other.classes
    codes.sets = other.sets
    codes.edges.append(other.edges)
    codes.epsilons.append(other.epsilons)
    codes.loop_min = other.loop_min
    codes.loop_max = other.loop_max
    codes.accept = other.accept
    codes.first = other.first
    codes.early = other.early
    codes.sustained = other.sustained
    codes.loops = other.loops
    codes.class_points = other.class_points
    return codes


cdef void codes_free(CodeAutomaton* codes) noexcept nogil:
    cdef size_t i
    for i in range(codes.states.size()):
        del codes.states[i]
    del codes


# --- classes --------------------------------------------------------------------------------

cdef cbool event_before(const pair[int32_t, int32_t]& a, const pair[int32_t, int32_t]& b) noexcept nogil:
    return a.first < b.first


cdef void codes_classify(CodeAutomaton* codes, vector[vector[CodeRange]]& sets) noexcept nogil:
    # Sweep over all range ends; the sets that hold between two ends name the class.
    cdef vector[pair[int32_t, int32_t]] events
    cdef vector[uint64_t] active
    cdef unordered_map[string, int32_t] known
    cdef vector[uint64_t]* own
    cdef string name
    cdef size_t i, j, words = sets.size() // 64 + 1
    cdef uint64_t left
    cdef int32_t low = 0, high, cls, code
    cdef CodeRange span
    active.resize(words, 0)
    for i in range(sets.size()):
        for span in sets[i]:
            events.push_back(pair[int32_t, int32_t](span.low, <int32_t>i))
            events.push_back(pair[int32_t, int32_t](span.high + 1, <int32_t>i))
    events.push_back(pair[int32_t, int32_t](LAST_CODE_POINT + 1, -1))
    sort(events.begin(), events.end(), &event_before)
    codes.classes = 0
    codes.sets.resize(sets.size())
    for i in range(events.size()):
        high = events[i].first
        if high > low:
            cls = NO_CLASS
            name.assign(<const char*>active.data(), words * 8)
            found = known.find(name)
            if found != known.end():
                cls = dereference(found).second
            else:
                for j in range(words):
                    left = active[j]
                    while left:
                        cls = codes.classes
                        own = &codes.sets[64 * j + <size_t>__builtin_ctzll(left)]
                        own.resize(<size_t>(cls >> 6) + 1, 0)
                        set_add(own[0], cls)
                        left &= left - 1
                if cls != NO_CLASS:
                    codes.classes += 1
                known[name] = cls
            code = low
            while code < high and code < 128:
                codes.ascii_class[code] = cls
                code += 1
            if code < high:
                codes.range_low.push_back(code)
                codes.range_class.push_back(cls)
            low = high
        if events[i].second >= 0:
            active[<size_t>events[i].second >> 6] ^= (<uint64_t>1) << (events[i].second & 63)
    for j in range(codes.sets.size()):
        codes.sets[j].resize(<size_t>(codes.classes >> 6) + 1, 0)


cdef size_t codes_range_of(const CodeAutomaton* codes, int32_t code) noexcept nogil:
    # Index of the range above ASCII that holds a code point.
    cdef size_t low = 0, high = codes.range_low.size(), middle
    while high - low > 1:
        middle = (low + high) // 2
        if codes.range_low[middle] <= code:
            low = middle
        else:
            high = middle
    return low


# --- states ---------------------------------------------------------------------------------

cdef void code_close(CodeAutomaton* codes, vector[uint64_t]& items) noexcept nogil:
    # Epsilon closure; keeps the items that have edges or accept, sorted, once each.
    if codes.loop_min.empty():
        code_close_plain(codes, items)
    else:
        code_close_counted(codes, items)


cdef void code_close_plain(CodeAutomaton* codes, vector[uint64_t]& items) noexcept nogil:
    # Nothing is counted: an item is an NFA state.
    cdef vector[int32_t]* work = &codes.work
    cdef size_t i
    cdef int32_t state, target
    codes.marks.resize(codes.edges.size(), 0)
    codes.mark += 1
    work.clear()
    for i in range(items.size()):
        state = <int32_t>(items[i] >> 32)
        if codes.marks[state] != codes.mark:
            codes.marks[state] = codes.mark
            work.push_back(state)
    items.clear()
    while not work.empty():
        state = work.back()
        work.pop_back()
        if not codes.edges[state].empty() or codes.accept[state] != NO_TAG:
            items.push_back((<uint64_t>state) << 32)
        for i in range(codes.epsilons[state].size()):
            target = codes.epsilons[state][i].target
            if codes.marks[target] != codes.mark:
                codes.marks[target] = codes.mark
                work.push_back(target)
    sort(items.begin(), items.end())


cdef void code_close_counted(CodeAutomaton* codes, vector[uint64_t]& items) noexcept nogil:
    cdef vector[uint64_t]* work = &codes.open_items
    cdef const NfaEpsilon* epsilon
    cdef size_t i
    cdef uint64_t item
    cdef int32_t state, count, low, high
    codes.seen.clear()
    work.clear()
    for i in range(items.size()):
        if codes.seen.find(<int64_t>items[i]) < 0:
            codes.seen.insert(<int64_t>items[i], 1)
            work.push_back(items[i])
    items.clear()
    while not work.empty():
        item = work.back()
        work.pop_back()
        state = <int32_t>(item >> 32)
        count = <int32_t><uint32_t>item
        if not codes.edges[state].empty() or codes.accept[state] != NO_TAG:
            items.push_back(item)
        for i in range(codes.epsilons[state].size()):
            epsilon = &codes.epsilons[state][i]
            item = (<uint64_t>epsilon.target) << 32
            if epsilon.op == EPSILON_PLAIN:
                item |= <uint64_t>count
            else:
                low = codes.loop_min[epsilon.loop]
                high = codes.loop_max[epsilon.loop]
                if epsilon.op == EPSILON_ENTER:
                    if high < 0:
                        item |= <uint64_t>(count + 1 if count < low else low)
                    elif count < high:
                        item |= <uint64_t>(count + 1)
                    else:
                        continue
                elif count < low:
                    continue
            if codes.seen.find(<int64_t>item) < 0:
                codes.seen.insert(<int64_t>item, 1)
                work.push_back(item)
    sort(items.begin(), items.end())


cdef void code_cut(const CodeAutomaton* codes, vector[uint64_t]& items) noexcept nogil:
    # Where a language is accepted that ends the others, keep its items only.
    cdef size_t i, j = 0
    cdef int32_t tag
    for i in range(items.size()):
        tag = codes.accept[<int32_t>(items[i] >> 32)]
        if tag != NO_TAG and tag < <int32_t>codes.early.size() and codes.early[tag]:
            items[j] = items[i]
            j += 1
    if j > 0:
        items.resize(j)


cdef int32_t code_tag(const CodeAutomaton* codes, const vector[uint64_t]& items) noexcept nogil:
    # The best tag that is accepted.
    cdef int32_t best = NO_TAG, tag
    cdef size_t i
    for i in range(items.size()):
        tag = codes.accept[<int32_t>(items[i] >> 32)]
        if tag != NO_TAG and (best == NO_TAG or tag < best):
            best = tag
    return best


cdef void code_drop(const CodeAutomaton* codes, vector[uint64_t]& items, int32_t best) noexcept nogil:
    # Leave out items from which nothing leads on, where another one accepts with the best tag: sets that mean the same
    # should be the same.
    cdef size_t i, j = 0
    cdef int32_t state
    cdef cbool accepted = False
    for i in range(items.size()):
        state = <int32_t>(items[i] >> 32)
        accepted = accepted or (codes.accept[state] == best and not codes.edges[state].empty())
    for i in range(items.size()):
        state = <int32_t>(items[i] >> 32)
        if codes.edges[state].empty():
            if accepted or codes.accept[state] != best:
                continue
            accepted = True
        items[j] = items[i]
        j += 1
    items.resize(j)


cdef CodeState* code_intern(CodeAutomaton* codes, vector[uint64_t]& items) noexcept nogil:
    cdef CodeState* state
    cdef int32_t tag, known
    cdef size_t before
    code_close(codes, items)
    deadline_worked(codes.deadline, items.size())
    if items.empty():
        return CODE_DEAD
    if not codes.early.empty():
        code_cut(codes, items)
    tag = code_tag(codes, items)
    if tag != NO_TAG and items.size() > 1:
        code_drop(codes, items, tag)
    known = codes.interned.find(items.data(), items.size() * sizeof(uint64_t))
    if known >= 0:
        return codes.states[known]
    state = new CodeState()
    state.id = <int32_t>codes.states.size()
    state.tag = tag
    state.text = NULL
    state.items = items
    state.next.resize(<size_t>codes.classes, NULL)
    before = codes.interned.bytes()
    codes.interned.insert(items.data(), items.size() * sizeof(uint64_t), state.id)
    codes.states.push_back(state)
    codes_grew(codes, codes.interned.bytes() - before + sizeof(CodeState) + (items.size() + codes.classes) * sizeof(void*))
    return state


cdef CodeState* code_next_new(CodeAutomaton* codes, CodeState* state, int32_t cls) noexcept nogil:
    cdef vector[uint64_t]* items = &codes.items
    cdef CodeState* target = CODE_DEAD
    cdef size_t i
    cdef CodeEdge edge
    items.clear()
    for i in range(state.items.size()):
        for edge in codes.edges[<int32_t>(state.items[i] >> 32)]:
            if set_has(codes.sets[edge.set], cls):
                items.push_back(((<uint64_t>edge.target) << 32) | <uint32_t>state.items[i])
    deadline_worked(codes.deadline, state.items.size())
    if not items.empty():
        target = code_intern(codes, items[0])
    state.next[cls] = target
    return target


cdef cbool code_goes_on(CodeAutomaton* codes, CodeState* state) noexcept nogil:
    # Whether any code point leads on.
    cdef int32_t cls
    for cls in range(codes.classes):
        if code_next(codes, state, cls) != CODE_DEAD:
            return True
    return False


cdef cbool code_comes_back(const CodeAutomaton* codes, int32_t start, int32_t goal) noexcept nogil:
    # Whether `goal` is reached over plain epsilons.
    cdef vector[int32_t] work
    cdef unordered_map[int32_t, char] seen
    cdef int32_t state
    cdef size_t i
    work.push_back(start)
    while not work.empty():
        state = work.back()
        work.pop_back()
        if state == goal:
            return True
        if seen.count(state):
            continue
        seen[state] = 1
        for i in range(codes.epsilons[state].size()):
            if codes.epsilons[state][i].op == EPSILON_PLAIN:
                work.push_back(codes.epsilons[state][i].target)
    return False


cdef const vector[uint64_t]* code_sustained(CodeAutomaton* codes, int32_t state) noexcept nogil:
    # The classes over which an NFA state leads back to itself.
    cdef vector[uint64_t]* own
    cdef CodeEdge edge
    cdef size_t i
    if codes.sustained.empty():
        codes.sustained.resize(codes.edges.size())
    own = &codes.sustained[state]
    if own.empty():
        own.resize(<size_t>(codes.classes >> 6) + 1, 0)
        for edge in codes.edges[state]:
            if code_comes_back(codes, edge.target, state):
                for i in range(own.size()):
                    own[0][i] |= codes.sets[edge.set][i]
    return own


cdef int32_t code_span(CodeAutomaton* codes, CodeState* state, int32_t low, int32_t high,
                       CodeState** target) noexcept nogil:
    # What the code points low..high lead to: SPAN_UNIFORM (all to `target`), SPAN_MIXED, SPAN_DEAD.
    cdef cbool some = False, all_same = True
    cdef CodeState* after
    cdef int32_t code = low
    cdef size_t at
    target[0] = NULL
    while code <= high and code < 128:
        after = code_next(codes, state, codes.ascii_class[code])
        some = some or after != CODE_DEAD
        if target[0] == NULL:
            target[0] = after
        all_same = all_same and after == target[0]
        if some and not all_same:
            return SPAN_MIXED
        code += 1
    if code <= high:
        at = codes_range_of(codes, code)
        while at < codes.range_low.size() and codes.range_low[at] <= high:
            after = code_next(codes, state, codes.range_class[at])
            some = some or after != CODE_DEAD
            if target[0] == NULL:
                target[0] = after
            all_same = all_same and after == target[0]
            if some and not all_same:
                return SPAN_MIXED
            at += 1
    if not some:
        return SPAN_DEAD
    return SPAN_UNIFORM if all_same else SPAN_MIXED


# --- how many texts are left ----------------------------------------------------------------

cdef void codes_count_points(CodeAutomaton* codes) noexcept nogil:
    cdef int32_t code, high
    cdef size_t i
    codes.class_points.resize(<size_t>codes.classes, 0)
    for code in range(128):
        if codes.ascii_class[code] != NO_CLASS:
            codes.class_points[codes.ascii_class[code]] += 1
    for i in range(codes.range_low.size()):
        if codes.range_class[i] != NO_CLASS:
            high = codes.range_low[i + 1] if i + 1 < codes.range_low.size() else LAST_CODE_POINT + 1
            codes.class_points[codes.range_class[i]] += high - codes.range_low[i]


cdef cbool code_more_texts(CodeAutomaton* codes, CodeState* start, int64_t count) noexcept nogil:
    # Whether more than `count` texts are accepted from a state.
    #
    # Every state can be completed, so beginnings of one length lead to different texts.  At most `count` of them are followed
    # at a time; where `count` texts have been read, none further than the longest of these.
    cdef unordered_map[int64_t, int64_t] level, below      # beginnings that lead to a state
    cdef pair[int64_t, int64_t] each
    cdef CodeState* state
    cdef CodeState* target
    cdef int64_t begun, ended = 0
    cdef int32_t cls
    if codes.class_points.empty():
        codes_count_points(codes)
    level[<int64_t>start] = 1
    while not level.empty():
        begun = 0
        for each in level:
            begun += each.second
        if ended + begun > count:
            return True
        below.clear()
        for each in level:
            state = <CodeState*>each.first
            if state.tag != NO_TAG:
                ended += each.second
            for cls in range(codes.classes):
                target = code_next(codes, state, cls)
                if target != CODE_DEAD:
                    below[<int64_t>target] += each.second * codes.class_points[cls]
        level.swap(below)
    return False
