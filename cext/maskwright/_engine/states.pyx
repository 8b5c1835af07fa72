# Matcher states and their masks.
#
# A matcher state is a set of threads (lexer state inside a lexeme, parser state where it began),
# interned.  A thread whose lexer state is NULL stands at the start of a lexeme; there is at most one
# for a text, because everything that a byte completes is joined in one parser state.
#
# A mask is computed once per state: the union over threads of the lexer state's inside tokens,
# and of the crossing tokens whose residual the following parser state accepts.

from cython.operator cimport dereference
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport binary_search

from maskwright._engine.containers cimport Edges
from maskwright._engine.turns cimport turn_late, turn_passed
from maskwright._engine.trie cimport Trie
from maskwright._engine.char_index cimport bits_add, bits_hold, bits_owned, bits_release, bits_remove, bits_unite
from maskwright._engine.lexemes cimport Automaton, KIND_KEYSET, LexState, NO_TAG
from maskwright._engine.lexeme_walks cimport lexmask_open
from maskwright._engine.program cimport ACCEPT, Item, NO_KEY, NO_STATE, ParserState, Return, UNKNOWN
from maskwright._engine.columns cimport node_intern
from maskwright._engine.stacks cimport state_goto, state_goto_guarded, state_intern, state_start
from maskwright._engine.tracked cimport is_tracked
from maskwright._engine.tracker cimport tracker_doubtful, tracker_open
from maskwright._engine.core cimport MatcherState, thread_at
from maskwright._engine.threads cimport (
    FEW_TOKENS, threads_behind_boundaries, threads_complete, threads_normalize, threads_step_token, tokens_alike
)
from maskwright._engine.alive cimport thread_known, threads_alive, threads_keep_alive, threads_step, tokens_without_end

cdef enum:
    MANY_TOKENS = 256      # of which holes are looked up as bits
    MANY_THREADS = 64      # of which each step takes long


# --- states ---------------------------------------------------------------------------------

cdef int32_t matcher_intern(Core* core, vector[Thread]& threads) noexcept nogil:
    if core.program.lexer != NULL:
        threads_keep_alive(core, threads)
    return NO_STATE if threads.empty() else threads_intern(core, threads)


cdef int32_t threads_intern(Core* core, vector[Thread]& threads) noexcept nogil:
    # The state of threads that can be completed.
    cdef MatcherState* state
    cdef int32_t known
    threads_normalize(threads)
    # A thread has no padding.
    known = core.state_ids.find(threads.data(), threads.size() * sizeof(Thread))
    if known >= 0:
        return known
    core.state_ids.insert(threads.data(), threads.size() * sizeof(Thread), <int32_t>core.states.size())
    state = core.states.add()
    state.threads = threads
    state.accepting = threads_complete(core, threads)
    return <int32_t>core.states.size() - 1


cdef int32_t matcher_start(Core* core) noexcept nogil:
    cdef vector[Thread] threads
    cdef Thread thread = thread_at(NO_STATE, NULL)
    thread.parser = state_start(core.program, core.program.start_rule)
    if thread.parser == NO_STATE:
        return NO_STATE
    threads.push_back(thread)
    return matcher_intern(core, threads)


cdef void edge_add(Core* core, int32_t id, int32_t token, int32_t target) noexcept nogil:
    cdef Edges[int32_t]* edges = &core.states[id].edges
    core.index.cache.bytes.subtract(edges.bytes())
    edges.insert(token, target)
    core.index.cache.bytes.add(edges.bytes())
    core.edges += 1


cdef int32_t matcher_step_bytes(Core* core, int32_t id, const uint8_t* data, int64_t length) noexcept nogil:
    # The state behind some bytes, or NO_STATE.
    cdef vector[Thread] threads = core.states[id].threads
    cdef vector[Thread] after
    cdef int64_t i
    for i in range(length):
        if (i & 15 == 15 or threads.size() > MANY_THREADS) and turn_late(core.index):
            return NO_STATE
        threads_step(core, threads, data[i], after)
        if after.empty():
            return NO_STATE
        threads.swap(after)
    return matcher_intern(core, threads)


cdef int64_t matcher_read(Core* core, int32_t id, const uint8_t* data, int64_t length) noexcept nogil:
    # How many bytes can come next.
    cdef vector[Thread] threads = core.states[id].threads
    cdef vector[Thread] after
    cdef int64_t i
    for i in range(length):
        if (i & 15 == 15 or threads.size() > MANY_THREADS) and turn_late(core.index):
            return i
        threads_step(core, threads, data[i], after)
        if not threads_alive(core, after):
            return i
        threads.swap(after)
    return length


# --- masks ----------------------------------------------------------------------------------

cdef cbool threads_pending(Core* core, const vector[Thread]& threads) noexcept nogil:
    # Whether some thread is in a key or an item that may have come before, in this very token, or behind one that may
    # have been the last one left.
    cdef size_t i
    for i in range(threads.size()):
        if is_tracked(threads[i].memory) and tracker_doubtful(&core.tracker, threads[i].memory):
            return True
        if (threads[i].lex != NULL and threads[i].lex.automaton.kind == KIND_KEYSET
                and threads[i].lex.key.pending):
            return True
        if core.program.states[threads[i].parser].may_run_out:
            return True
    return False


cdef void mask_check(Core* core, const vector[Thread]& threads, const ResidualView& view, uint32_t node,
                     vector[int32_t]& added) noexcept nogil:
    # Add the tokens at a node and below that the whole state allows, each on its own.
    cdef const Trie* trie = view.trie
    cdef vector[Thread] before, after
    cdef const uint8_t* data = core.index.token_data
    cdef const int64_t* starts = core.index.token_starts
    cdef int32_t t, token
    cdef int64_t i
    if core.index.opening != NULL and trie == &core.index.opening.trie:
        data = core.index.opening.data.data()
        starts = core.index.opening.starts.data()
    for t in range(trie.nodes[node].token, trie.nodes[trie.nodes[node].end].token):
        token = trie.tokens[t]
        before = threads
        for i in range(starts[token], starts[token + 1]):
            threads_step(core, before, data[i], after)
            before.swap(after)
            if before.empty():
                break
        if threads_alive(core, before):
            added.push_back(token)


cdef void mask_walk(Core* core, const vector[Thread]& threads, const ResidualView& view,
                    const vector[Thread]& start, vector[int32_t]& added) noexcept nogil:
    # Add the tokens of the residuals that `start` accepts; `threads` are those of the whole state.
    # Which key a token completes matters only if another one begins in it, or may be missing: then it is checked on its own.
    cdef const Trie* trie = view.trie
    cdef uint32_t node = view.first
    cdef size_t depth
    cdef int32_t t
    core.scratch.stack[0] = start
    core.scratch.walks = True
    while node < view.last:
        if turn_passed(core.index):
            break
        depth = <size_t>(trie.nodes[node].depth - view.depth)
        threads_step(core, core.scratch.stack[depth - 1], trie.nodes[node].byte, core.scratch.stack[depth])
        if core.scratch.stack[depth].empty():
            node = trie.nodes[node].end
            continue
        if threads_pending(core, core.scratch.stack[depth]):
            core.scratch.walks = False
            mask_check(core, threads, view, node, added)
            core.scratch.walks = True
            node = trie.nodes[node].end
            continue
        if (trie.nodes[node].token < trie.nodes[node + 1].token
                and threads_alive(core, core.scratch.stack[depth])):
            for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
                added.push_back(trie.tokens[t])
        node += 1
    core.scratch.walks = False


cdef void mask_behind(Core* core, LexState* lex, int32_t tag, int32_t parser, int32_t key, vector[Thread]& out,
                      uint64_t* first) noexcept nogil:
    # The threads behind a lexeme, where nothing is tracked, and the bytes that they may begin with.
    cdef Thread thread = thread_at(state_goto(core.program, parser, lex.automaton, tag, key), NULL)
    cdef vector[Thread] behind
    cdef int32_t guard
    cdef size_t i, j
    out.clear()
    memset(first, 0, 32)
    if thread.parser != NO_STATE:
        out.push_back(thread)
    for guard in core.program.states[parser].guards:
        thread.parser = state_goto_guarded(core.program, parser, lex.automaton, tag, guard)
        if thread.parser != NO_STATE:
            thread.memory = tracker_open(&core.tracker, 0, guard)
            out.push_back(thread)
    for i in range(out.size()):
        for j in range(4):
            first[j] |= core.program.states[out[i].parser].first[j]
    if core.program.has_boundaries:
        threads_behind_boundaries(core, out, behind)
        for i in range(behind.size()):
            for j in range(4):
                first[j] |= core.program.states[behind[i].parser].first[j]


cdef cbool mask_open(Core* core, LexMask* mask, LexState* lex, int32_t parser) noexcept nogil:
    # Add crossings that were left out, if something can follow them; False when time is up.
    cdef vector[Thread] behind
    cdef uint64_t first[4]
    if mask.open_tag == NO_TAG:
        return True
    mask_behind(core, lex, mask.open_tag, parser, NO_KEY, behind, first)
    # Another grammar may have added them meanwhile.
    return (first[0] | first[1] | first[2] | first[3]) == 0 or mask.open_tag == NO_TAG or lexmask_open(mask, lex)


cdef void mask_free(Core* core, Mask* mask) noexcept nogil:
    if mask != NULL:
        core.index.cache.bytes.subtract(mask_size(mask))
        bits_release(core.index, mask.bits)
        del mask


cdef int64_t mask_size(const Mask* mask) noexcept nogil:
    # Bytes of a finished mask, without its bits.
    return <int64_t>(sizeof(Mask) + (mask.base.size() + mask.removed.size() + mask.added.size()) * 4)


cdef void add_outside(vector[int32_t]& tokens, vector[int32_t]& holes, vector[int32_t]& out) noexcept nogil:
    # Add tokens that are in no hole.  Holes are ascending.
    cdef vector[uint64_t] bits
    cdef int32_t token
    if holes.empty() or tokens.size() < MANY_TOKENS:
        for token in tokens:
            if not binary_search(holes.begin(), holes.end(), token):
                out.push_back(token)
        return
    bits.resize(<size_t>(holes.back() >> 6) + 1, 0)
    for token in holes:
        bits[<size_t>(token >> 6)] |= <uint64_t>1 << (token & 63)
    for token in tokens:
        if token > holes.back() or not (bits[<size_t>(token >> 6)] >> (token & 63)) & 1:
            out.push_back(token)


cdef void mask_flatten(Core* core, Mask* mask) noexcept nogil:
    # Replace shared bits and lists by one bitset of its own.
    cdef int32_t t
    mask.bits = bits_owned(core.index, mask.bits)
    for t in mask.base:
        bits_add(mask.bits, t)
    for t in mask.removed:
        bits_remove(mask.bits, t)
    for t in mask.added:
        bits_add(mask.bits, t)
    mask.base.clear()
    mask.removed.clear()
    mask.added.clear()


cdef void mask_join_bits(Core* core, Mask* mask, Bits* bits) noexcept nogil:
    if bits == NULL or bits == mask.bits:
        return
    if mask.bits == NULL:
        mask.bits = bits_hold(bits)
        return
    mask_flatten(core, mask)
    bits_unite(mask.bits, bits)


cdef void mask_write(const Core* core, Mask* mask, uint32_t* row) noexcept nogil:
    # Expand into a row of `core.words` words.
    cdef int32_t t
    if mask.bits != NULL:
        memcpy(row, mask.bits.words.data(), core.words * 4)
    else:
        memset(row, 0, core.words * 4)
    for t in mask.base:
        row[t >> 5] |= (<uint32_t>1) << (t & 31)
    for t in mask.removed:
        row[t >> 5] &= ~((<uint32_t>1) << (t & 31))
    for t in mask.added:
        row[t >> 5] |= (<uint32_t>1) << (t & 31)


cdef int32_t matcher_step_token(Core* core, int32_t id, int32_t token, cbool text, const uint8_t* data,
                                int64_t length) noexcept nogil:
    # The state behind a token, of which `data` are the bytes if it is text, or NO_STATE.
    cdef vector[Thread] before = core.states[id].threads
    cdef vector[Thread] threads, after
    cdef int64_t i
    if text:
        threads = before
    for i in range(length):
        threads_step(core, threads, data[i], after)
        threads.swap(after)
        if threads.empty():
            break
    threads_step_token(core, before, token, threads)
    return matcher_intern(core, threads) if not threads.empty() else NO_STATE


cdef cbool tokens_alike_any(const vector[LexState*]& waiting, int32_t token, const vector[int32_t]& others) noexcept nogil:
    cdef size_t i
    for i in range(others.size()):
        if tokens_alike(waiting, token, others[i]):
            return True
    return False


cdef void mask_add_tokens(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil:
    # What a finished mask lacks of tokens that stand for themselves.  Behind some, a lexer lets no text end.
    cdef vector[int32_t] dead
    cdef size_t i, j, k
    cdef const Automaton* tokens
    cdef const ParserState* state
    cdef vector[Thread] before = threads
    threads_behind_boundaries(core, threads, before)
    for i in range(before.size()):
        if before[i].lex != NULL:
            continue
        state = core.program.states[before[i].parser]
        dead.clear()
        if core.program.lexer != NULL:
            tokens_without_end(core, before[i].parser, dead)
        for j in range(state.tokens.size()):
            tokens = state.tokens[j].automaton
            if not dead.empty():
                for k in range(tokens.token_set.ids.size()):
                    if not tokens_alike_any(state.tokens, tokens.token_set.ids[k], dead):
                        mask.added.push_back(tokens.token_set.ids[k])
                continue
            if tokens.token_set.ids.size() <= FEW_TOKENS:
                mask.added.insert(mask.added.end(), tokens.token_set.ids.begin(), tokens.token_set.ids.end())
                continue
            mask_flatten(core, mask)
            for k in range(tokens.token_set.row.size()):
                mask.bits.words[k] |= tokens.token_set.row[k]


cdef int32_t lexed_group_known(Core* core, const TokenGroup* group, int32_t parser, vector[Thread]& possible) noexcept nogil:
    # Whether tokens that lead to some hypotheses are allowed in a parser state: 1, 0, or -1 when that takes a search from
    # `possible`.
    cdef Thread each
    cdef int32_t known
    cdef size_t i
    for i in range(group.hypotheses.size()):
        each = thread_at(parser, group.hypotheses[i].lookahead)
        each.lex = group.hypotheses[i].lex
        known = thread_known(core, each)
        if known == 1:
            return 1
        if known < 0:
            possible.push_back(each)
    for i in range(group.ended.size()):
        each = thread_at(state_goto(core.program, parser, core.program.lexer, group.ended[i].tag, NO_KEY),
                         group.ended[i].lookahead)
        if each.parser == NO_STATE:
            continue
        known = thread_known(core, each)
        if known == 1:
            return 1
        if known < 0:
            possible.push_back(each)
    return 0 if possible.empty() else -1


cdef int32_t frame_bottom(Core* core) noexcept nogil:
    cdef vector[Return] returns
    cdef Return accept
    if core.frames.bottom == UNKNOWN:
        accept.local = ACCEPT
        accept.node = 0
        returns.push_back(accept)
        core.frames.bottom = node_intern(core.program, returns)
    return core.frames.bottom


cdef int32_t frame_state(Core* core, int32_t local) noexcept nogil:
    # The parser state of a frame.
    cdef vector[Item] items
    cdef Item item
    found = core.frames.states.find(local)
    if found != core.frames.states.end():
        return dereference(found).second
    item.local = local
    item.node = frame_bottom(core)
    items.push_back(item)
    core.frames.states[local] = state_intern(core.program, items, False)
    return core.frames.states[local]
