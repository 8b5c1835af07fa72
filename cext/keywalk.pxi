# Masks of keysets: only where a name is still possible; elsewhere the mask of the automaton for other keys holds.
#
# No lexer state is made on the way: the places along a name are of no use to anyone else.

cdef struct KeyNode:
    uint32_t node          # of the trie
    KeyPlace place         # there


cdef void key_ahead(const Automaton* keys, const KeyPosition* at, uint64_t* ahead) noexcept nogil:
    # The bytes behind which a name is still followed.
    cdef KeyPosition behind
    cdef vector[uint8_t] used
    cdef int32_t i = at.first
    cdef uint8_t byte
    memset(ahead, 0, 32)
    if at.escape != 0:
        escape_ahead(at.escape, ahead)
        return
    bits_set(ahead, QUOTE)
    if at.where == KEY_START:
        return
    bits_set(ahead, BACKSLASH)
    while i < at.last:
        if keys.names[i].size() == <size_t>at.depth:
            i += 1
            continue
        byte = <uint8_t>keys.names[i][at.depth]
        bits_set(ahead, byte)
        # On to the first name with another byte.
        behind = at[0]
        behind.first = i
        key_narrow(keys, &behind, byte)
        i = behind.last
    if at.used_left > 0:
        keys.used.next(at.used, at.used_at, used)
        for byte in used:
            bits_set(ahead, byte)


cdef void key_walk_closed(LexMask* mask, uint32_t node, int32_t tag) noexcept nogil:
    # A name ends at `node`.
    cdef Override override
    if mask.base == NULL:
        home_close(mask, node, tag)
    else:
        override.node = node
        override.tag = tag
        mask.overrides.push_back(override)


cdef void key_walk_child(LexMask* mask, Automaton* keys, const KeyNode& each, uint32_t child,
                         vector[KeyNode]& work) noexcept nogil:
    cdef const Trie* trie = mask.index.trie
    cdef uint8_t byte = trie.nodes[child].byte
    cdef KeyNode behind
    cdef int32_t t
    behind.node = child
    behind.place = each.place
    if not key_move(keys, &behind.place, byte):
        if each.place.base != NULL and lex_next(each.place.base, byte) != LEX_DEAD:
            key_walk_closed(mask, child, NO_TAG)
    elif behind.place.at.where == KEY_CLOSED:
        key_walk_closed(mask, child, <int32_t>behind.place.at.value)
    elif behind.place.at.where == KEY_BODY:
        if behind.place.base == NULL:
            # No other key begins like this.
            for t in range(trie.nodes[child].token, trie.nodes[child + 1].token):
                mask.inside.push_back(trie.tokens[t])
        work.push_back(behind)


cdef void key_walk(LexMask* mask, LexState* start) noexcept nogil:
    # Tokens of names only are listed; where other keys are possible as well, so are the ends of names (overrides).
    cdef const Index* index = mask.index
    cdef vector[KeyNode] work
    cdef KeyNode each
    cdef uint64_t ahead[4]
    cdef uint64_t bits
    cdef uint32_t i, last
    cdef int32_t word
    cdef uint8_t byte
    if start.key.where not in (KEY_START, KEY_BODY):
        return
    each.node = 0
    each.place = key_place(start)
    work.push_back(each)
    while not work.empty():
        if deadline_passed(&mask.index.deadline):
            return
        each = work.back()
        work.pop_back()
        i = index.child_first[each.node]
        last = index.child_first[each.node + 1]
        if i == last:
            continue
        key_ahead(start.automaton, &each.place.at, ahead)
        for word in range(4):
            bits = ahead[word]
            while bits:
                byte = <uint8_t>(64 * word + __builtin_ctzll(bits))
                bits &= bits - 1
                i = index_child_from(index, i, last, byte)
                if i < last and index.child_bytes[i] == byte:
                    key_walk_child(mask, start.automaton, each, index.child_nodes[i], work)
