# Sets of many texts as one lexeme.
#
# The texts are sorted and packed; nothing else is built.  A state is a range of texts that agree with what was read, and
# a byte narrows the range by binary search, so a million texts cost their bytes.  Masks follow ranges through the
# trie without making states of them.

cdef struct WordPlace:
    uint32_t node      # of the vocabulary's trie
    int32_t first      # texts [first, last) agree with the bytes on the way there
    int32_t last
    int32_t depth      # of the texts


cdef inline int64_t word_length(const Automaton* words, int32_t i) noexcept nogil:
    return words.word_starts[i + 1] - words.word_starts[i]


cdef inline uint8_t word_byte(const Automaton* words, int32_t i, int64_t depth) noexcept nogil:
    return words.word_data[words.word_starts[i] + depth]


cdef inline int32_t word_tag(const Automaton* words, int32_t i) noexcept nogil:
    return words.tags[i] if not words.tags.empty() else 0


cdef int32_t words_behind(const Automaton* words, int32_t first, int32_t last, int64_t depth, uint8_t byte) noexcept nogil:
    # The first of texts [first, last), which go on at `depth`, with a byte above `byte` there; galloping, because ranges of
    # one byte are mostly much smaller than what is left.
    cdef int32_t low = first, step = 1, middle
    while low + step < last and word_byte(words, low + step, depth) <= byte:
        low += step
        step *= 2
    last = low + step if low + step < last else last
    while low < last:
        middle = low + (last - low) // 2
        if word_byte(words, middle, depth) <= byte:
            low = middle + 1
        else:
            last = middle
    return low


cdef cbool words_narrow(const Automaton* words, WordPlace* at, uint8_t byte) noexcept nogil:
    # From the texts that agree so far to those with `byte` next; False when there are none.
    cdef int32_t low = at.first, high = at.last, middle
    # A text that ends here sorts first.
    if low < high and word_length(words, low) == at.depth:
        low += 1
    while low < high:
        middle = low + (high - low) // 2
        if word_byte(words, middle, at.depth) < byte:
            low = middle + 1
        else:
            high = middle
    if low == at.last or word_byte(words, low, at.depth) != byte:
        return False
    at.first = low
    at.last = words_behind(words, low, at.last, at.depth, byte)
    at.depth += 1
    return True


cdef LexState* words_state(Automaton* words, const WordPlace* place) noexcept nogil:
    cdef KeyPlace key
    cdef LexState* state
    memset(&key, 0, sizeof(key))
    key.at.first = place.first
    key.at.last = place.last
    key.at.depth = place.depth
    state = key_intern(words, key)
    if word_length(words, key.at.first) == key.at.depth:
        state.tag = word_tag(words, key.at.first)
    return state


cdef inline WordPlace words_place(const LexState* state) noexcept nogil:
    cdef WordPlace place
    place.node = 0
    place.first = state.key.first
    place.last = state.key.last
    place.depth = state.key.depth
    return place


cdef LexState* words_next(LexState* state, uint8_t byte) noexcept nogil:
    cdef WordPlace place = words_place(state)
    if not words_narrow(state.automaton, &place, byte):
        return LEX_DEAD
    return words_state(state.automaton, &place)


cdef void words_fill_first(LexState* state) noexcept nogil:
    # Which bytes lead on.
    cdef const Automaton* words = state.automaton
    cdef int32_t i = state.key.first
    cdef uint8_t byte
    if word_length(words, i) == state.key.depth:
        i += 1
    while i < state.key.last:
        byte = word_byte(words, i, state.key.depth)
        bits_set(state.first, byte)
        i = words_behind(words, i, state.key.last, state.key.depth, byte)


cdef void words_walk(LexMask* mask, LexState* start) noexcept nogil:
    # Tokens that stay inside, and crossings, as in lexmask_walk.
    cdef const Automaton* words = start.automaton
    cdef const Trie* trie = mask.index.trie
    cdef vector[WordPlace] work
    cdef WordPlace place, behind
    cdef Crossing crossing
    cdef uint32_t child
    cdef int32_t i, t
    cdef uint8_t byte
    crossing.watch = NULL
    work.push_back(words_place(start))
    while not work.empty():
        if deadline_passed(&mask.index.deadline):
            return
        place = work.back()
        work.pop_back()
        i = place.first
        if place.node > 0:
            for t in range(trie.nodes[place.node].token, trie.nodes[place.node + 1].token):
                mask.inside.push_back(trie.tokens[t])
        if word_length(words, i) == place.depth:
            child = place.node + 1
            while place.node > 0 and child < trie.nodes[place.node].end:
                crossing.tag = word_tag(words, i)
                crossing.byte = trie.nodes[child].byte
                crossing.node = child
                mask.crossing.push_back(crossing)
                child = trie.nodes[child].end
            i += 1
        # Children come in the order of their bytes, as texts do.
        child = place.node + 1
        while i < place.last and child < trie.nodes[place.node].end:
            byte = word_byte(words, i, place.depth)
            if trie.nodes[child].byte < byte:
                child = trie.nodes[child].end
                continue
            behind.first = i
            i = words_behind(words, i, place.last, place.depth, byte)
            if trie.nodes[child].byte == byte:
                behind.last = i
                behind.depth = place.depth + 1
                behind.node = child
                work.push_back(behind)
                child = trie.nodes[child].end


cdef void words_shortest(const LexState* start, int32_t tag, vector[uint8_t]& out, cbool* found) noexcept nogil:
    # The rest of the shortest text that is not at its end (NO_TAG: of any tag); `out` is appended to.
    cdef const Automaton* words = start.automaton
    cdef int32_t i, best = -1
    cdef int64_t depth = start.key.depth
    found[0] = False
    for i in range(start.key.first, start.key.last):
        if word_length(words, i) == depth or (tag != NO_TAG and word_tag(words, i) != tag):
            continue
        if best < 0 or word_length(words, i) < word_length(words, best):
            best = i
    if best >= 0:
        found[0] = True
        out.insert(out.end(), words.word_data.begin() + words.word_starts[best] + depth,
                   words.word_data.begin() + words.word_starts[best + 1])


cdef void words_tags(const LexState* start, vector[int32_t]& tags) noexcept nogil:
    # The tags of the texts that are left, each once.
    cdef const Automaton* words = start.automaton
    cdef unordered_map[int32_t, char] seen
    cdef int32_t i
    if words.tags.empty():
        tags.push_back(0)
        return
    for i in range(start.key.first, start.key.last):
        if seen.count(words.tags[i]) == 0:
            seen[words.tags[i]] = 1
            tags.push_back(words.tags[i])
