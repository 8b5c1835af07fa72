# The fewest tokens that spell a text.

cdef cppclass Segments:
    # The fewest tokens that spell the rest of a text, by where that begins.
    vector[int64_t] count          # -1: none do
    vector[int32_t] token          # the first of them
    vector[int64_t] next           # where the second one begins
    vector[int32_t] before         # a token in front of all, which stands for nothing there


cdef void segments_extend(const Trie* trie, const uint8_t* text, int64_t n, int64_t at, const Opening* without,
                          Segments* best) noexcept nogil:
    # The tokens of a trie (without those that an opening marks) that the text from `at` on may begin with.
    cdef uint32_t node = 0
    cdef int64_t j
    cdef int32_t t, token
    for j in range(at, n):
        node = trie_child(trie, node, text[j])
        if node == 0:
            return
        if best.count[j + 1] < 0 or 0 <= best.count[at] < best.count[j + 1] + 1:
            continue
        for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
            token = trie.tokens[t]
            if without == NULL or not (without.marked[<size_t>token >> 5] >> (token & 31)) & 1:
                best.count[at] = best.count[j + 1] + 1
                best.token[at] = token
                best.next[at] = j + 1
                break


cdef void segments_open(const Trie* trie, const Opening* opening, const uint8_t* text, int64_t n,
                        Segments* best) noexcept nogil:
    # The first token of a text stands for what it does there; or for nothing, and the second one for its own.
    cdef Segments behind
    segments_extend(trie, text, n, 0, opening, best)
    segments_extend(&opening.trie, text, n, 0, NULL, best)
    if opening.silent.empty() or opening.stays:
        return
    behind = best[0]
    behind.count[0] = -1
    segments_extend(trie, text, n, 0, NULL, &behind)
    if behind.count[0] >= 0 and (best.count[0] < 0 or behind.count[0] + 1 < best.count[0]):
        best[0] = behind
        best.before.push_back(opening.silent[0])
