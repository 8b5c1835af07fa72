# Lexemes as automata over code points, determinised while they are used.
#
# Code points that no edge tells apart form a class; an edge is labelled with a set of classes.
# A DFA state is a sorted set of items (NFA state, count of the loop that it is in).  Every code
# state reached can be completed: the NFA is trimmed.  How code points are spelled as bytes is
# the business of lexeme_texts.pyx.

from cython.operator cimport dereference
from libc.stdint cimport uint32_t
from libc.string cimport memcpy
from libcpp.atomic cimport memory_order_relaxed
from libcpp.algorithm cimport lower_bound, sort
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.containers cimport Span
from maskwright._engine.sizes cimport set_has
from maskwright._engine.limits cimport deadline_worked, deferred_free_breathe
from maskwright._engine.vocabulary cimport LAST_CODE_POINT
from maskwright._engine.lexemes cimport (
    DfaEdge, EPSILON_ENTER, EPSILON_PLAIN, NfaEpsilon, NO_TAG, SPAN_DEAD, SPAN_MIXED, SPAN_UNIFORM
)

cdef DfaState DFA_DEAD_STATE

DFA_DEAD = &DFA_DEAD_STATE


cdef LazyDfa* dfa_new(Deadline* deadline) noexcept nogil:
    cdef LazyDfa* dfa = new LazyDfa()
    dfa.mark = 0
    dfa.first = 0
    dfa.held.store(0, memory_order_relaxed)
    dfa.deadline = deadline
    return dfa


cdef LazyDfa* dfa_copy(const LazyDfa* other) noexcept nogil:
    # The same without any state.
    cdef LazyDfa* dfa = dfa_new(other.deadline)
    memcpy(dfa.ascii_class, other.ascii_class, sizeof(other.ascii_class))
    dfa.range_low = other.range_low
    dfa.range_class = other.range_class
    dfa.classes = other.classes
    dfa.sets = other.sets
    dfa.edges.append(other.edges)
    dfa.epsilons.append(other.epsilons)
    dfa.loop_min = other.loop_min
    dfa.loop_max = other.loop_max
    dfa.accept = other.accept
    dfa.first = other.first
    dfa.early = other.early
    dfa.sustained = other.sustained
    dfa.loops = other.loops
    dfa.class_points = other.class_points
    return dfa


cdef void dfa_free(LazyDfa* dfa) noexcept nogil:
    while dfa.states.drop() or dfa.item_rows.drop() or dfa.next_rows.drop():
        deferred_free_breathe()
    del dfa


# --- classes --------------------------------------------------------------------------------

cdef cbool event_before(const pair[int32_t, int32_t]& a, const pair[int32_t, int32_t]& b) noexcept nogil:
    return a.first < b.first


cdef void set_add_all(vector[uint64_t]& own, size_t low, size_t high) noexcept nogil:
    # Add the numbers from `low` to `high`.
    cdef uint64_t everything = ~<uint64_t>0
    cdef uint64_t first = everything << (low & 63), last = everything >> (63 - (high & 63))
    cdef size_t at = low >> 6, end = high >> 6
    if at == end:
        own[at] |= first & last
        return
    own[at] |= first
    for at in range(at + 1, end):
        own[at] = everything
    own[end] |= last


cdef size_t span_from(vector[pair[int32_t, int32_t]]& spans, int32_t code) noexcept nogil:
    # The first that begins there or behind it.
    return <size_t>(lower_bound(spans.begin(), spans.end(), pair[int32_t, int32_t](code, 0), &event_before) - spans.begin())


cdef void dfa_classify(LazyDfa* dfa, vector[vector[CodeRange]]& sets) noexcept nogil:
    # Sweep over all range ends; the sets that hold between two ends name the class of what lies between them.
    cdef vector[pair[int32_t, int32_t]] events
    cdef vector[pair[int32_t, int32_t]] spans              # where each begins, and its class
    cdef vector[size_t] runs                               # by span: the last one up to which classes follow each other
    cdef vector[uint64_t] active
    cdef unordered_map[string, int32_t] known
    cdef string name
    cdef size_t i, at, end, last, words = sets.size() // 64 + 1, holding = 0
    cdef uint64_t bit
    cdef int32_t low = 0, high, cls, code
    cdef CodeRange span
    active.resize(words, 0)
    for i in range(sets.size()):
        for span in sets[i]:
            events.push_back(pair[int32_t, int32_t](span.low, <int32_t>i))
            events.push_back(pair[int32_t, int32_t](span.high + 1, <int32_t>i))
    events.push_back(pair[int32_t, int32_t](LAST_CODE_POINT + 1, -1))
    sort(events.begin(), events.end(), &event_before)
    dfa.classes = 0
    for i in range(events.size()):
        high = events[i].first
        if high > low:
            cls = NO_CLASS
            if holding:
                name.assign(<const char*>active.data(), words * 8)
                found = known.find(name)
                if found != known.end():
                    cls = dereference(found).second
                else:
                    cls = dfa.classes
                    dfa.classes += 1
                    known[name] = cls
            spans.push_back(pair[int32_t, int32_t](low, cls))
            code = low
            while code < high and code < 128:
                dfa.ascii_class[code] = cls
                code += 1
            if code < high:
                dfa.range_low.push_back(code)
                dfa.range_class.push_back(cls)
            low = high
        if events[i].second >= 0:
            at, bit = <size_t>events[i].second >> 6, (<uint64_t>1) << (events[i].second & 63)
            active[at] ^= bit
            holding = holding + 1 if active[at] & bit else holding - 1
    runs.resize(spans.size())
    for i in range(spans.size(), 0, -1):
        runs[i - 1] = runs[i] if i < spans.size() and spans[i].second == spans[i - 1].second + 1 else i - 1
    dfa.sets.resize(sets.size())
    for i in range(sets.size()):
        dfa.sets[i].resize(<size_t>(dfa.classes >> 6) + 1, 0)
        for span in sets[i]:
            at = span_from(spans, span.low)
            end = span_from(spans, span.high + 1)
            while at < end:
                last = min(runs[at], end - 1)
                set_add_all(dfa.sets[i], <size_t>spans[at].second, <size_t>spans[last].second)
                at = last + 1


cdef size_t dfa_range_of(const LazyDfa* dfa, int32_t code) noexcept nogil:
    # Index of the range above ASCII that holds a code point.
    cdef size_t low = 0, high = dfa.range_low.size(), middle
    while high - low > 1:
        middle = (low + high) // 2
        if dfa.range_low[middle] <= code:
            low = middle
        else:
            high = middle
    return low


# --- states ---------------------------------------------------------------------------------

cdef void dfa_close(LazyDfa* dfa, vector[uint64_t]& items) noexcept nogil:
    # Epsilon closure; keeps the items that have edges or accept, sorted, once each.
    if dfa.loop_min.empty():
        dfa_close_plain(dfa, items)
    else:
        dfa_close_counted(dfa, items)


cdef void dfa_close_plain(LazyDfa* dfa, vector[uint64_t]& items) noexcept nogil:
    # Nothing is counted: an item is an NFA state.
    cdef vector[int32_t]* work = &dfa.work
    cdef size_t i
    cdef int32_t state, target
    dfa.marks.resize(dfa.edges.size(), 0)
    dfa.mark += 1
    work.clear()
    for i in range(items.size()):
        state = <int32_t>(items[i] >> 32)
        if dfa.marks[state] != dfa.mark:
            dfa.marks[state] = dfa.mark
            work.push_back(state)
    items.clear()
    while not work.empty():
        state = work.back()
        work.pop_back()
        if not dfa.edges[state].empty() or dfa.accept[state] != NO_TAG:
            items.push_back((<uint64_t>state) << 32)
        for i in range(dfa.epsilons[state].size()):
            target = dfa.epsilons[state][i].target
            if dfa.marks[target] != dfa.mark:
                dfa.marks[target] = dfa.mark
                work.push_back(target)
    sort(items.begin(), items.end())


cdef void dfa_close_counted(LazyDfa* dfa, vector[uint64_t]& items) noexcept nogil:
    cdef vector[uint64_t]* work = &dfa.open_items
    cdef const NfaEpsilon* epsilon
    cdef size_t i
    cdef uint64_t item
    cdef int32_t state, count, low, high
    dfa.seen.clear()
    work.clear()
    for i in range(items.size()):
        if dfa.seen.find(<int64_t>items[i]) < 0:
            dfa.seen.insert(<int64_t>items[i], 1)
            work.push_back(items[i])
    items.clear()
    while not work.empty():
        item = work.back()
        work.pop_back()
        state = <int32_t>(item >> 32)
        count = <int32_t><uint32_t>item
        if not dfa.edges[state].empty() or dfa.accept[state] != NO_TAG:
            items.push_back(item)
        for i in range(dfa.epsilons[state].size()):
            epsilon = &dfa.epsilons[state][i]
            item = (<uint64_t>epsilon.target) << 32
            if epsilon.op == EPSILON_PLAIN:
                item |= <uint64_t>count
            else:
                low = dfa.loop_min[epsilon.loop]
                high = dfa.loop_max[epsilon.loop]
                if epsilon.op == EPSILON_ENTER:
                    if high < 0:
                        item |= <uint64_t>(count + 1 if count < low else low)
                    elif count < high:
                        item |= <uint64_t>(count + 1)
                    else:
                        continue
                elif count < low:
                    continue
            if dfa.seen.find(<int64_t>item) < 0:
                dfa.seen.insert(<int64_t>item, 1)
                work.push_back(item)
    sort(items.begin(), items.end())


cdef void dfa_cut(const LazyDfa* dfa, vector[uint64_t]& items) noexcept nogil:
    # Where a language is accepted that ends the others, keep its items only.
    cdef size_t i, j = 0
    cdef int32_t tag
    for i in range(items.size()):
        tag = dfa.accept[<int32_t>(items[i] >> 32)]
        if tag != NO_TAG and tag < <int32_t>dfa.early.size() and dfa.early[tag]:
            items[j] = items[i]
            j += 1
    if j > 0:
        items.resize(j)


cdef int32_t dfa_tag(const LazyDfa* dfa, const vector[uint64_t]& items) noexcept nogil:
    # The best tag that is accepted.
    cdef int32_t best = NO_TAG, tag
    cdef size_t i
    for i in range(items.size()):
        tag = dfa.accept[<int32_t>(items[i] >> 32)]
        if tag != NO_TAG and (best == NO_TAG or tag < best):
            best = tag
    return best


cdef void dfa_drop(const LazyDfa* dfa, vector[uint64_t]& items, int32_t best) noexcept nogil:
    # Leave out items from which nothing leads on, where another one accepts with the best tag: sets that mean the same
    # should be the same.
    cdef size_t i, j = 0
    cdef int32_t state
    cdef cbool accepted = False
    for i in range(items.size()):
        state = <int32_t>(items[i] >> 32)
        accepted = accepted or (dfa.accept[state] == best and not dfa.edges[state].empty())
    for i in range(items.size()):
        state = <int32_t>(items[i] >> 32)
        if dfa.edges[state].empty():
            if accepted or dfa.accept[state] != best:
                continue
            accepted = True
        items[j] = items[i]
        j += 1
    items.resize(j)


cdef DfaState* dfa_intern(LazyDfa* dfa, vector[uint64_t]& items) noexcept nogil:
    cdef DfaState* state
    cdef int32_t tag, known
    cdef uint64_t* row
    cdef size_t before
    dfa_close(dfa, items)
    deadline_worked(dfa.deadline, items.size())
    if items.empty():
        return DFA_DEAD
    if not dfa.early.empty():
        dfa_cut(dfa, items)
    tag = dfa_tag(dfa, items)
    if tag != NO_TAG and items.size() > 1:
        dfa_drop(dfa, items, tag)
    known = dfa.interned.find(items.data(), items.size() * sizeof(uint64_t))
    if known >= 0:
        return dfa.states[known]
    known = <int32_t>dfa.states.size()
    state = dfa.states.add()
    state.id = known
    state.tag = tag
    state.text = NULL
    row = dfa.item_rows.add(items.data(), items.size())
    state.items = Span[uint64_t](row, row + items.size())
    state.next = dfa.next_rows.zeros(<size_t>dfa.classes)
    before = dfa.interned.bytes()
    dfa.interned.insert(items.data(), items.size() * sizeof(uint64_t), state.id)
    dfa_grew(dfa, dfa.interned.bytes() - before + sizeof(DfaState) + (items.size() + dfa.classes) * sizeof(void*))
    return state


cdef DfaState* dfa_next_new(LazyDfa* dfa, DfaState* state, int32_t cls) noexcept nogil:
    cdef vector[uint64_t]* items = &dfa.items
    cdef DfaState* target = DFA_DEAD
    cdef size_t i
    cdef DfaEdge edge
    items.clear()
    for i in range(state.items.size()):
        for edge in dfa.edges[<int32_t>(state.items[i] >> 32)]:
            if set_has(dfa.sets[edge.set], cls):
                items.push_back(((<uint64_t>edge.target) << 32) | <uint32_t>state.items[i])
    deadline_worked(dfa.deadline, state.items.size())
    if not items.empty():
        target = dfa_intern(dfa, items[0])
    state.next[cls] = target
    return target


cdef cbool dfa_goes_on(LazyDfa* dfa, DfaState* state) noexcept nogil:
    # Whether any code point leads on.
    cdef int32_t cls
    for cls in range(dfa.classes):
        if dfa_next(dfa, state, cls) != DFA_DEAD:
            return True
    return False


cdef cbool dfa_comes_back(const LazyDfa* dfa, int32_t start, int32_t goal) noexcept nogil:
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
        for i in range(dfa.epsilons[state].size()):
            if dfa.epsilons[state][i].op == EPSILON_PLAIN:
                work.push_back(dfa.epsilons[state][i].target)
    return False


cdef const vector[uint64_t]* dfa_sustained(LazyDfa* dfa, int32_t state) noexcept nogil:
    # The classes over which an NFA state leads back to itself.
    cdef vector[uint64_t]* own
    cdef DfaEdge edge
    cdef size_t i
    if dfa.sustained.empty():
        dfa.sustained.resize(dfa.edges.size())
    own = &dfa.sustained[state]
    if own.empty():
        own.resize(<size_t>(dfa.classes >> 6) + 1, 0)
        for edge in dfa.edges[state]:
            if dfa_comes_back(dfa, edge.target, state):
                for i in range(own.size()):
                    own[0][i] |= dfa.sets[edge.set][i]
    return own


cdef int32_t dfa_span(LazyDfa* dfa, DfaState* state, int32_t low, int32_t high,
                       DfaState** target) noexcept nogil:
    # What the code points low..high lead to: SPAN_UNIFORM (all to `target`), SPAN_MIXED, SPAN_DEAD.
    cdef cbool some = False, all_same = True
    cdef DfaState* after
    cdef int32_t code = low
    cdef size_t at
    target[0] = NULL
    while code <= high and code < 128:
        after = dfa_next(dfa, state, dfa.ascii_class[code])
        some = some or after != DFA_DEAD
        if target[0] == NULL:
            target[0] = after
        all_same = all_same and after == target[0]
        if some and not all_same:
            return SPAN_MIXED
        code += 1
    if code <= high:
        at = dfa_range_of(dfa, code)
        while at < dfa.range_low.size() and dfa.range_low[at] <= high:
            after = dfa_next(dfa, state, dfa.range_class[at])
            some = some or after != DFA_DEAD
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

cdef cbool dfa_has_any(LazyDfa* dfa, DfaState* state) noexcept nogil:
    # Whether every text is accepted from a state, and leads to it.
    cdef int32_t cls
    for cls in range(dfa.classes):
        if dfa_next(dfa, state, cls) != state:
            return False
    return state.tag != NO_TAG


cdef void dfa_count_points(LazyDfa* dfa) noexcept nogil:
    cdef int32_t code, high
    cdef size_t i
    dfa.class_points.resize(<size_t>dfa.classes, 0)
    for code in range(128):
        if dfa.ascii_class[code] != NO_CLASS:
            dfa.class_points[dfa.ascii_class[code]] += 1
    for i in range(dfa.range_low.size()):
        if dfa.range_class[i] != NO_CLASS:
            high = dfa.range_low[i + 1] if i + 1 < dfa.range_low.size() else LAST_CODE_POINT + 1
            dfa.class_points[dfa.range_class[i]] += high - dfa.range_low[i]


cdef cbool dfa_more_texts(LazyDfa* dfa, DfaState* start, int64_t count) noexcept nogil:
    # Whether more than `count` texts are accepted from a state.
    #
    # Every state can be completed, so beginnings of one length lead to different texts.  At most `count` of them are followed
    # at a time; where `count` texts have been read, none further than the longest of these.
    cdef unordered_map[int64_t, int64_t] level, below      # beginnings that lead to a state
    cdef pair[int64_t, int64_t] each
    cdef DfaState* state
    cdef DfaState* target
    cdef int64_t begun, ended = 0
    cdef int32_t cls
    if dfa.class_points.empty():
        dfa_count_points(dfa)
    # Mostly, there are enough next characters.
    begun = start.tag != NO_TAG
    for cls in range(dfa.classes):
        if dfa_next(dfa, start, cls) != DFA_DEAD:
            begun += dfa.class_points[cls]
            if begun > count:
                return True
    level[<int64_t>start] = 1
    while not level.empty():
        begun = 0
        for each in level:
            begun += each.second
        if ended + begun > count:
            return True
        below.clear()
        for each in level:
            state = <DfaState*>each.first
            if state.tag != NO_TAG:
                ended += each.second
            for cls in range(dfa.classes):
                target = dfa_next(dfa, state, cls)
                if target != DFA_DEAD:
                    below[<int64_t>target] += each.second * dfa.class_points[cls]
        level.swap(below)
    return False
