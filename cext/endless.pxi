# Strings under way that can always become new ones, however many came before.
#
# Finitely many strings came.  So where a lexeme can go on in endlessly many ways, whatever comes of it next, one of these ways is
# unlike all of them: no search is needed, and of the tokens inside the lexeme only those that end it can be wrong.  These are found
# from the quotes in the vocabulary, which are few; those that only agree with an earlier string become more and more, the more
# strings came.

cdef enum:
    ENDLESS_STATES = 32        # of a lexeme, that are looked at for this


cdef void endless_classes(const CodeAutomaton* codes, const Automaton* automaton, vector[char]& out) noexcept nogil:
    # Classes with a character that can be spelled, as far as a look tells.
    cdef int32_t point
    cdef size_t i
    out.assign(<size_t>codes.classes, 0)
    for point in range(0x20, 0x7F):
        if codes.ascii_class[point] != NO_CLASS and raw_in_text(automaton, point):
            out[codes.ascii_class[point]] = 1
    for i in range(codes.range_low.size()):
        if codes.range_class[i] != NO_CLASS and 0x80 <= codes.range_low[i] < 0xD800:
            out[codes.range_class[i]] = 1


cdef cbool endless_states(Automaton* automaton, CodeState* start) noexcept nogil:
    # Whether all states that are reached lead to one that leads to itself.
    cdef CodeAutomaton* codes = automaton.codes
    cdef CodeState* target
    cdef vector[CodeState*] states
    cdef vector[pair[size_t, size_t]] moves
    cdef vector[char] classes, good
    cdef cbool changed = True
    cdef size_t i = 0, j
    cdef int32_t cls
    endless_classes(codes, automaton, classes)
    states.push_back(start)
    good.push_back(0)
    while i < states.size():
        for cls in range(codes.classes):
            target = code_next(codes, states[i], cls)
            if target == CODE_DEAD:
                continue
            j = 0
            while j < states.size() and states[j] != target:
                j += 1
            if j == states.size():
                if j == ENDLESS_STATES:
                    return False
                states.push_back(target)
                good.push_back(0)
            if j == i and classes[cls]:
                good[i] = 1
            if moves.empty() or moves.back().first != i or moves.back().second != j:
                moves.push_back(pair[size_t, size_t](i, j))
        i += 1
    while changed:
        changed = False
        for i in range(moves.size()):
            if good[moves[i].second] and not good[moves[i].first]:
                good[moves[i].first] = 1
                changed = True
    for i in range(good.size()):
        if not good[i]:
            return False
    return True


cdef cbool code_endless(Core* core, Automaton* automaton, CodeState* code) noexcept nogil:
    # Whether whatever comes next, texts of any length may follow.
    cdef int32_t known = core.endless.find(&code, sizeof(CodeState*))
    if known < 0:
        known = endless_states(automaton, code)
        if core.index.deadline.passed:
            return False
        core.endless.insert(&code, sizeof(CodeState*), known)
    return known == 1


cdef cbool distinct_endless(Core* core, const Thread& thread) noexcept nogil:
    # Whether a thread is in a string that can become a new one, however it goes on, and all that comes behind it can be found.
    cdef const TrackerState* at = &core.tracker.states[-1 - thread.text]
    cdef const Frame* frame = core.tracker.frames[at.frame]
    cdef Automaton* automaton
    if at.mode != TRACK_STRING or thread.lex == NULL or frame.owes or (frame.is_object and frame.key < 0):
        return False
    automaton = thread.lex.automaton
    if automaton.kind != KIND_TEXT or automaton.spelling == SPELLING_UTF8:
        return False
    return tracker_free_behind(&core.tracker, thread.text) and code_endless(core, automaton, thread.lex.code)


# --- tokens that end it -----------------------------------------------------------------------

cdef struct TextPlace:
    int32_t set
    int32_t at


cdef cbool ends_like(const Tracker* tracker, const vector[TextPlace]& places, const vector[string]& rests, const string& text) noexcept nogil:
    # Whether an earlier string ends behind some more text.
    cdef TextPlace place
    cdef size_t i
    for i in range(places.size()):
        place = places[i]
        if items_step(tracker, &place.set, &place.at, text) and tracker.items.ends(place.set, place.at):
            return True
    for i in range(rests.size()):
        if rests[i] == text:
            return True
    return False


cdef void distinct_ends(Core* core, const Thread& thread, uint32_t top, vector[uint32_t]& ends) noexcept nogil:
    # List the trie nodes below one at which a string under way is closed when it is like an earlier one.
    cdef const Trie* trie = core.index.trie
    cdef Tracker* tracker = &core.tracker
    cdef TrackerState at = tracker.states[-1 - thread.text]
    cdef vector[uint32_t]* quotes = &core.index.quotes
    cdef vector[TextPlace] places
    cdef vector[string] rests
    cdef vector[int32_t] targets, sets
    cdef const Value* value
    cdef const uint8_t* data
    cdef string read = text_bytes(&tracker.store.texts, at.text), begun, text
    cdef TextPlace place
    cdef int32_t target, escape, point
    cdef uint32_t half, node, first = top + 1, last = trie.nodes[top].end
    cdef size_t i, j, depth
    begun.push_back(<char>ITEM_STRING)
    begun.append(read)
    frame_targets(tracker, at.frame, targets)
    frame_sets(tracker, at.frame, sets)
    for place.set in sets:
        place.at = 0
        if items_step(tracker, &place.set, &place.at, begun):
            places.push_back(place)
    for target in targets:
        value = tracker.store.values[target]
        if value.kind == VALUE_STRING and value.text.size() >= read.size() and value.text.compare(0, read.size(), read) == 0:
            rests.push_back(value.text.substr(read.size()))
    if places.empty() and rests.empty():
        return
    i = <size_t>(lower_bound(quotes.begin(), quotes.end(), first) - quotes.begin())
    while i < quotes.size() and quotes[0][i] < last:
        node = quotes[0][i]
        i += 1
        data = index_text(core.index, node)
        depth = <size_t>trie.nodes[node].depth - 1
        escape = at.escape
        half = at.value
        text.clear()
        point = ESCAPE_OPEN
        for j in range(<size_t>trie.nodes[top].depth, depth):
            if escape == 0 and data[j] != BACKSLASH:
                text.push_back(<char>data[j])
                continue
            if escape == 0:
                escape = 1
                continue
            point = escape_read(&escape, &half, data[j])
            if point == ESCAPE_BAD:
                break
            if point != ESCAPE_OPEN:
                text.append(key_spelling(point))
                escape = 0
                half = 0
        if point == ESCAPE_BAD or escape != 0:
            continue
        if ends_like(tracker, places, rests, text):
            ends.push_back(node)
        # Behind it, there is another lexeme.
        while i < quotes.size() and quotes[0][i] < trie.nodes[node].end:
            i += 1
