# Homes behind an exit.
#
# Where words are read, a blank leads out of the set of characters that a state is at home in, into a state that is at home
# again (perhaps in the same set), and half of the vocabulary begins with it.  What tokens do below one trie node, over a set C
# from there on, depends on the vocabulary, the node and C only: it is walked once (`Below`, kept with the slice of C), and of all
# states that come to that node at home in C, only the exits are followed.

cdef struct BelowExit:
    uint32_t node          # ends a character outside C
    int32_t count          # characters of C before that, from the top
    int32_t point

cdef cppclass Below:
    Bits* bits                     # tokens that go on over C, perhaps into the middle of a character
    vector[BelowExit] exits
    vector[uint32_t] parts         # nodes where a token ends inside a character that may become one outside C


cdef int64_t below_size(const Below* below) noexcept nogil:
    return <int64_t>(sizeof(Below) + below.exits.size() * sizeof(BelowExit) + below.parts.size() * 4)


cdef void below_free(Index* index, Below* below) noexcept nogil:
    index.bytes -= below_size(below)
    bits_release(index, below.bits)
    del below


cdef struct BelowPlace:
    # A place of a walk: the character under way, how many bytes it has behind the first and how many are missing, and the
    # characters before it.
    int32_t point
    int32_t span
    int32_t left
    int32_t count


cdef Below* slice_below(Index* index, Slice* slice, uint32_t top) noexcept nogil:
    # What is below a trie node that ends a character.
    cdef const TrieNode* nodes = index.trie.nodes.data()
    cdef vector[BelowPlace] path                           # by depth below `top`
    cdef vector[char] ascii
    cdef uint32_t node = top + 1
    cdef size_t depth
    cdef int32_t t
    cdef BelowPlace at
    cdef CodeRange possible
    cdef cbool inside
    cdef BelowExit exit
    cdef Below* made
    found = slice.below.find(top)
    if found != slice.below.end():
        return dereference(found).second
    made = new Below()
    made.bits = bits_new(index)
    for t in range(128):
        ascii.push_back(points_hold(slice.points, t, t))
    path.resize(index.most_bytes + 1)
    memset(path.data(), 0, sizeof(BelowPlace))
    while node < nodes[top].end:
        depth = <size_t>(nodes[node].depth - nodes[top].depth)
        at = path[depth - 1]
        if at.left == 0:
            at.left = at.span = utf8_lead(nodes[node].byte, &at.point)
        elif nodes[node].byte & 0xC0 == 0x80:
            at.point = (at.point << 6) | (nodes[node].byte & 63)
            at.left -= 1
        else:
            at.left = -1
        if at.left < 0:
            node = nodes[node].end
            continue
        if at.span == 0:
            inside = ascii[at.point]
        elif utf8_possible(at.span, at.left, at.point, &possible):
            inside = points_hold(slice.points, possible.low, possible.high)
        else:
            node = nodes[node].end
            continue
        if inside:
            for t in range(nodes[node].token, nodes[node + 1].token):
                bits_add(made.bits, index.trie.tokens[t])
        elif at.left == 0:
            exit.node = node
            exit.count = at.count
            exit.point = at.point
            made.exits.push_back(exit)
            node = nodes[node].end
            continue
        elif nodes[node].token < nodes[node + 1].token:
            made.parts.push_back(node)
        if at.left == 0:
            at.count += 1
        path[depth] = at
        node += 1
    index.bytes += below_size(made)
    slice.below[top] = made
    return made


cdef cbool home_fill_below(LexMask* mask, LexState* state, uint32_t top) noexcept nogil:
    # The tokens below a node at which the lexeme stands in `state`, where that is at home; False when it is not.
    cdef Index* index = mask.index
    cdef Home home
    cdef vector[CodeRange] points
    cdef Below* below
    cdef Bits* own
    cdef Exit exit
    cdef uint32_t node
    cdef size_t i
    if (<int64_t>(index.trie.nodes[top].end - top) <= index.home_least or state.form != FORM_TEXT
            or state.automaton.spelling != SPELLING_QUOTED
            or not home_find(state.automaton, index, state.code, &home) or home.room >= 0):
        return False
    home_points(state.automaton, home.classes, points)
    below = slice_below(index, index_slice(index, points), top)
    if mask.bits == NULL or mask.bits.holders > 1:
        own = bits_new(index)
        if mask.bits != NULL:
            own.words = mask.bits.words
            bits_release(index, mask.bits)
        mask.bits = own
    bits_unite(mask.bits, below.bits)
    for i in range(below.exits.size()):
        if not (raw_in_text(state.automaton, below.exits[i].point) or below.exits[i].point == QUOTE
                or below.exits[i].point == BACKSLASH):
            continue
        exit.node = below.exits[i].node
        exit.count = below.exits[i].count
        home_leave_at(mask, state, &home, exit, below.exits[i].point, top)
    for node in below.parts:
        home_exit(mask, state, &home, node, top, False)
    return True
