# What residuals do inside one rule, for masks.
#
# Behind a lexeme, most residuals stay inside the value, item or rule that begins there, and what they do depends on the stack
# only where that ends.  So each group of residuals is walked once for a *frame*, a local state over a stack that has nothing but
# a bottom (frames.pxi): the tokens that may come, and the trie nodes at which the bottom is reached before a token's end.
# Over a real stack, the tokens are the same, and only what is below those nodes is walked, from where the rule returns to.
# Members of one type in all objects of a grammar, and items at all indices, share frames.

cdef cppclass FrameMask:
    cbool whole                    # else it depends on the context: residuals are walked over the real stack
    vector[int32_t] tokens
    vector[uint32_t] ends          # nodes with others below

cdef struct FrameKey:
    int64_t mask                   # LexMask.serial
    int32_t tag                    # of the group
    int32_t byte
    int32_t local
    int32_t padding


cdef int64_t framemask_size(const FrameMask* frame) noexcept nogil:
    return <int64_t>(sizeof(FrameMask) + sizeof(FrameKey) + (frame.tokens.size() + frame.ends.size()) * 4)


cdef void framemasks_forget(Core* core) noexcept nogil:
    cdef size_t i
    for i in range(core.frames.size()):
        core.index.bytes.subtract(framemask_size(core.frames[i]))
        del core.frames[i]
    core.frames.clear()
    core.frame_ids.clear()


cdef cbool frame_begins(const Local* local) noexcept nogil:
    # Whether a place is one that many stacks have: it does not say what came before in the rule.
    if local.kind == LOCAL_RECORD:
        return local.phase == RECORD_OPEN
    return local.kind == LOCAL_PLAIN or (local.kind == LOCAL_REPEATED and local.count == 0)


cdef cbool frames_fit(const Core* core, const vector[Thread]& start) noexcept nogil:
    # Whether what follows a lexeme is made of frames.
    cdef const ParserState* state
    cdef size_t i
    if start.size() != 1 or start[0].text != 0:
        return False
    state = core.program.states[start[0].parser]
    for i in range(state.items.size()):
        if not frame_begins(core.program.locals[state.items[i].local]):
            return False
    return state.guards.empty()


cdef cbool frame_ends(const Core* core, const vector[Thread]& threads) noexcept nogil:
    # Whether the bottom is reached.
    cdef size_t i
    for i in range(threads.size()):
        if threads[i].lex == NULL and core.program.states[threads[i].parser].complete:
            return True
    return False


cdef FrameMask* framemask_make(Core* core, const ResidualView& view, int32_t local) noexcept nogil:
    cdef FrameMask* found = new FrameMask()
    cdef const Trie* trie = view.trie
    cdef uint32_t node = view.first
    cdef size_t depth
    cdef int32_t t
    found.whole = True
    core.stack[0].assign(1, thread_at(frame_state(core, local), NULL))
    core.walks = True
    while node < view.last and not deadline_passed(&core.index.deadline):
        depth = <size_t>(trie.nodes[node].depth - view.depth)
        threads_step(core, core.stack[depth - 1], trie.nodes[node].byte, core.stack[depth])
        if core.stack[depth].empty():
            node = trie.nodes[node].end
            continue
        if threads_pending(core, core.stack[depth]):
            found.whole = False
            found.tokens.clear()
            found.ends.clear()
            break
        for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
            found.tokens.push_back(trie.tokens[t])
        if node + 1 < trie.nodes[node].end and frame_ends(core, core.stack[depth]):
            found.ends.push_back(node)
        node += 1
    core.walks = False
    return found


cdef FrameMask* framemask_get(Core* core, LexMask* mask, size_t number, int32_t local) noexcept nogil:
    # Of a group of crossings; NULL when time is up.
    cdef FrameKey key
    cdef FrameMask* found
    cdef int32_t id
    key.mask = mask.serial
    key.tag = mask.crossings[number].tag
    key.byte = mask.crossings[number].byte
    key.local = local
    key.padding = 0
    id = core.frame_ids.find(&key, sizeof(key))
    if id >= 0:
        return core.frames[id]
    found = framemask_make(core, lexmask_residual(mask, number), local)
    if core.index.deadline.passed:
        del found
        return NULL
    core.frame_ids.insert(&key, sizeof(key), <int32_t>core.frames.size())
    core.frames.push_back(found)
    core.index.bytes.add(framemask_size(found))
    return found


cdef cbool mask_add_frames(Core* core, const vector[Thread]& threads, LexMask* mask, size_t number,
                           const vector[Thread]& start, vector[int32_t]& added) noexcept nogil:
    # `mask_walk` of a group of crossings, from frames; False, and nothing is added, where one depends on the context.
    cdef ParserState* state = core.program.states[start[0].parser]
    cdef ResidualView view
    cdef vector[FrameMask*] frames
    cdef vector[Thread] behind
    cdef uint32_t node
    cdef int32_t parser
    cdef size_t i
    for i in range(state.items.size()):
        frames.push_back(framemask_get(core, mask, number, state.items[i].local))
        if frames[i] == NULL:
            return True
        if not frames[i].whole:
            return False
    view = lexmask_residual(mask, number)
    for i in range(state.items.size()):
        added.insert(added.end(), frames[i].tokens.begin(), frames[i].tokens.end())
        if frames[i].ends.empty():
            continue
        parser = state_behind(core.program, state.items[i].node)
        if parser == NO_STATE:
            continue
        behind.assign(1, thread_at(parser, NULL))
        for node in frames[i].ends:
            view.first = node + 1
            view.last = view.trie.nodes[node].end
            view.depth = view.trie.nodes[node].depth
            mask_walk(core, threads, view, behind, added)
    return True
