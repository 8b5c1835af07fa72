# The very start of a text, for vocabularies where some tokens stand for something else there.
#
# Tokenizers that mark the starts of words write a blank into most tokens, and their decoders drop the one in front of a
# text.  So the very start is a matcher state of its own: the *opening*.  Its threads are those of the start, which it
# becomes behind a token that stands for nothing (unless `stays`); bytes that are no token are read in both alike.

cdef cppclass Opening:
    Trie trie                      # of what the tokens stand for there, where that is anything
    vector[uint32_t] marked        # the tokens that stand for something else there, as a row of a bitmask
    vector[int32_t] silent         # those of them that stand for nothing
    cbool stays                    # behind a silent token, a text is still at its very start
    vector[uint8_t] data           # what each of them stands for, one after another
    vector[int64_t] starts         # by id: where it begins


cdef inline cbool opening_marks(const Index* index, int32_t token) noexcept nogil:
    return (index.opening.marked[<size_t>token >> 5] >> (token & 31)) & 1


cdef int32_t opening_state(Core* core) noexcept nogil:
    # Make the opening next to the start.
    cdef MatcherState* state = core.states.add()
    state.threads = core.states[core.start].threads
    state.accepting = core.states[core.start].accepting
    return <int32_t>core.states.size() - 1


cdef inline int32_t opening_silent(const Core* core) noexcept nogil:
    # The state behind a token that stands for nothing at the very start.
    return core.opening if core.index.opening.stays else core.start


cdef void mask_opening(Core* core, Mask* mask) noexcept nogil:
    # The mask of the start, with tokens that stand for something else here decided by that.
    cdef const Opening* opening = core.index.opening
    cdef Mask* plain = mask_get(core, core.start)
    cdef ResidualView view
    cdef size_t i
    if plain == NULL:
        return
    mask.bits = bits_new(core.index)
    mask_write(core, plain, mask.bits.words.data())
    for i in range(opening.marked.size()):
        mask.bits.words[i] &= ~opening.marked[i]
    view.trie = &opening.trie
    view.first = 1
    view.last = opening.trie.nodes[0].end
    view.depth = 0
    mask_walk(core, core.states[core.start].threads, view, core.states[core.start].threads, mask.added)
    mask.added.insert(mask.added.end(), opening.silent.begin(), opening.silent.end())
    if core.program.has_tokens:
        mask_add_tokens(core, core.states[core.start].threads, mask)
