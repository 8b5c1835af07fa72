# Homes behind an exit.
#
# Where words are read, a blank leads out of the set of characters that a state is at home in, into a state that is at home
# again (perhaps in the same set), and half of the vocabulary begins with it.  What tokens do below one trie node, over a set C
# from there on, depends on the vocabulary, the node and C only: it is walked once (`Below`, kept with the slice of C), and of all
# states that come to that node at home in C, only the exits are followed.

cdef struct BelowExit:
    Exit at                # its characters are counted from the top
    int32_t point          # the character outside C

cdef cppclass Below:
    Bits* bits                     # tokens that go on over C, perhaps into the middle of a character
    vector[BelowExit] exits
    vector[uint32_t] parts         # nodes where a token ends inside a character that may become one outside C


cdef int64_t below_size(const Below* below) noexcept nogil:
    return <int64_t>(sizeof(Below) + below.exits.size() * sizeof(BelowExit) + below.parts.size() * 4)


cdef void below_free(Index* index, Below* below) noexcept nogil:
    index.bytes.subtract(below_size(below))
    bits_release(index, below.bits)
    del below


cdef Below* slice_below(Index* index, Slice* slice, uint32_t top) noexcept nogil:
    # What is below a trie node that ends a character.
    cdef const TrieNode* nodes = index.trie.nodes.data()
    cdef vector[CharPlace] places                          # by depth below `top`
    cdef vector[int32_t] counts                            # of whole characters
    cdef uint32_t node = top + 1
    cdef size_t depth
    cdef int32_t t
    cdef CharPlace place
    cdef CodeRange possible
    cdef cbool inside
    cdef BelowExit exit
    cdef Below* made
    found = slice.below.find(top)
    if found != slice.below.end():
        return dereference(found).second
    made = new Below()
    made.bits = bits_new(index)
    places.resize(index.most_bytes + 1)
    counts.resize(index.most_bytes + 1, 0)
    memset(places.data(), 0, sizeof(CharPlace))
    while node < nodes[top].end:
        depth = <size_t>(nodes[node].depth - nodes[top].depth)
        place = places[depth - 1]
        if not char_step(&place, nodes[node].byte, &possible):
            node = nodes[node].end
            continue
        if place.span == 0:
            inside = bits_has(slice.ascii, <uint8_t>place.point)
        else:
            inside = points_hold(slice.points, possible.low, possible.high)
        if inside:
            for t in range(nodes[node].token, nodes[node + 1].token):
                bits_add(made.bits, index.trie.tokens[t])
        elif place.left == 0:
            exit.at.node = node
            exit.at.count = counts[depth - 1]
            exit.point = place.point
            made.exits.push_back(exit)
            node = nodes[node].end
            continue
        elif nodes[node].token < nodes[node + 1].token:
            made.parts.push_back(node)
        places[depth] = place
        counts[depth] = counts[depth - 1] + (place.left == 0)
        node += 1
    index.bytes.add(below_size(made))
    slice.below[top] = made
    return made


cdef cbool home_fill_below(LexMask* mask, LexState* state, uint32_t top) noexcept nogil:
    # The tokens below a node at which the lexeme stands in `state`, where that is at home; False when it is not.
    cdef Index* index = mask.index
    cdef Home home
    cdef vector[CodeRange] points
    cdef Below* below
    cdef uint32_t node
    cdef size_t i
    if (<int64_t>(index.trie.nodes[top].end - top) <= index.home_least or state.form != FORM_TEXT
            or state.automaton.spelling != SPELLING_QUOTED
            or not home_find(state.automaton, index, state.code, &home) or home.room >= 0):
        return False
    home_points(state.automaton, home.classes, points)
    below = slice_below(index, index_slice(index, points), top)
    mask.bits = bits_owned(index, mask.bits)
    bits_unite(mask.bits, below.bits)
    for i in range(below.exits.size()):
        if not (raw_in_text(state.automaton, below.exits[i].point) or below.exits[i].point == QUOTE
                or below.exits[i].point == BACKSLASH):
            continue
        home_leave_at(mask, state, &home, below.exits[i].at, below.exits[i].point, top)
    for node in below.parts:
        home_exit(mask, state, node, top, False)
    return True
