# Masks of lexemes: what one thread allows that reads a lexeme without a lexer around it, and what comes behind that.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport bits_has
from maskwright._engine.limits cimport deadline_worked, deferred_free_breathe
from maskwright._engine.turns cimport turn_passed, turns_pause
from maskwright._engine.trie cimport Trie
from maskwright._engine.char_index cimport bits_release
from maskwright._engine.lexemes cimport LexMask, LexState, NO_TAG, Override, ResidualView
from maskwright._engine.lexeme_state cimport lex_keeps_text
from maskwright._engine.lexeme_walks cimport lexmask_release, lexmask_residual
from maskwright._engine.lexeme_mask cimport lexmask_borrow
from maskwright._engine.program cimport (
    ANY_KEY, DottedItem, LOCAL_PLAIN, LOCAL_RECORD, LOCAL_REPEATED, NO_KEY, NO_STATE, ParserState, RECORD_OPEN
)
from maskwright._engine.stacks cimport state_behind
from maskwright._engine.core cimport FrameMask, Thread, thread_at
from maskwright._engine.rest_facts cimport local_is_lexed
from maskwright._engine.alive cimport node_is_sure, threads_step
from maskwright._engine.states cimport (
    frame_state, mask_behind, mask_flatten, mask_join_bits, mask_open, mask_walk, threads_pending
)

# --- What residuals do inside one rule, for masks.
#
# Behind a lexeme, most residuals stay inside the value, item or rule that begins there, and what they do depends on the stack
# only where that ends.  So each group of residuals is walked once for a *frame*, a dotted item over a stack that has nothing but
# a bottom (frames.pyx): the tokens that may come, and the trie nodes at which the bottom is reached before a token's end.
# Over a real stack, the tokens are the same, and only what is below those nodes is walked, from where the rule returns to.
# Members of one type in all objects of a grammar, and items at all indices, share frames.

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
    for i in range(core.frames.all.size()):
        core.index.cache.bytes.subtract(framemask_size(core.frames.all[i]))
        del core.frames.all[i]
        deferred_free_breathe()
    core.frames.all.clear()
    core.frames.ids.clear()


cdef cbool frame_begins(const DottedItem* local) noexcept nogil:
    # Whether a place is one that many stacks have: it does not say what came before in the rule.
    if local.kind == LOCAL_RECORD:
        return local.phase == RECORD_OPEN
    return local.kind == LOCAL_PLAIN or (local.kind == LOCAL_REPEATED and local.count == 0)


cdef cbool frames_fit(Core* core, const vector[Thread]& start) noexcept nogil:
    # Whether what follows a lexeme is made of frames.  Of terminals it is not: whether they can be completed depends on the stack.
    cdef const ParserState* state
    cdef const DottedItem* local
    cdef size_t i
    if start.size() != 1 or start[0].memory != 0:
        return False
    state = core.program.states[start[0].parser]
    # Nor of what is ignored.
    if state.lexer != NULL:
        return False
    for i in range(state.items.size()):
        local = core.program.locals[state.items[i].local]
        if not frame_begins(local) or (core.program.lexer != NULL and (
                local_is_lexed(core, local) or not node_is_sure(core, state.items[i].node))):
            return False
    return state.guards.empty()


cdef cbool frame_leaves(const Core* core, vector[Thread]& threads) noexcept nogil:
    # Whether the bottom is reached.  What is read there, ignored text, is read behind the return.
    cdef cbool leaves = False
    cdef size_t i, j = 0
    for i in range(threads.size()):
        leaves = leaves or (threads[i].lex == NULL and core.program.states[threads[i].parser].complete)
        if threads[i].lex != NULL or not core.program.states[threads[i].parser].items.empty():
            threads[j] = threads[i]
            j += 1
    threads.resize(j)
    return leaves


cdef FrameMask* framemask_make(Core* core, const ResidualView& view, int32_t local) noexcept nogil:
    cdef FrameMask* found = new FrameMask()
    cdef const Trie* trie = view.trie
    cdef uint32_t node = view.first
    cdef size_t depth
    cdef int32_t t
    found.whole = True
    core.scratch.stack[0].assign(1, thread_at(frame_state(core, local), NULL))
    core.scratch.walks = True
    while node < view.last and not turn_passed(core.index):
        depth = <size_t>(trie.nodes[node].depth - view.depth)
        threads_step(core, core.scratch.stack[depth - 1], trie.nodes[node].byte, core.scratch.stack[depth])
        if core.scratch.stack[depth].empty():
            node = trie.nodes[node].end
            continue
        if threads_pending(core, core.scratch.stack[depth]):
            found.whole = False
            found.tokens.clear()
            found.ends.clear()
            break
        for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
            found.tokens.push_back(trie.tokens[t])
        if node + 1 < trie.nodes[node].end and frame_leaves(core, core.scratch.stack[depth]):
            found.ends.push_back(node)
        node += 1
    core.scratch.walks = False
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
    id = core.frames.ids.find(&key, sizeof(key))
    if id >= 0:
        return core.frames.all[id]
    found = framemask_make(core, lexmask_residual(mask, number), local)
    if core.index.deadline.passed:
        del found
        return NULL
    core.frames.ids.insert(&key, sizeof(key), <int32_t>core.frames.all.size())
    core.frames.all.push_back(found)
    core.index.cache.bytes.add(framemask_size(found))
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


# --- one thread ------------------------------------------------------------------------------

cdef void mask_add_crossing(Core* core, const vector[Thread]& threads, LexMask* mask, LexState* lex,
                            int32_t parser, vector[int32_t]& added) noexcept nogil:
    # `mask` is lex's own or that of its base automaton.
    cdef size_t i
    cdef int32_t tag, known = NO_TAG
    cdef vector[Thread] behind
    cdef uint64_t first[4]
    cdef cbool* away
    # Many keys end in this group: which one it was matters only if the token goes on to the next one.
    cdef int32_t key = ANY_KEY if lex_keeps_text(lex) else NO_KEY
    deadline_worked(&core.index.deadline, mask.crossings.size())
    if turn_passed(core.index) or not mask_open(core, mask, lex, parser):
        return
    away = turns_pause(core.index, mask.open_tag != NO_TAG)
    for i in range(mask.crossings.size()):
        if mask.crossings[i].tag != known:
            known = mask.crossings[i].tag
            tag = known if lex.base == NULL else lex.automaton.keyset.other_tag + known
            mask_behind(core, lex, tag, parser, key, behind, first)
        if not bits_has(first, mask.crossings[i].byte):
            continue
        if not frames_fit(core, behind) or not mask_add_frames(core, threads, mask, i, behind, added):
            mask_walk(core, threads, lexmask_residual(mask, i), behind, added)
    core.index.deadline.away = away


cdef void mask_add_overrides(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* names,
                             LexState* lex, int32_t parser) noexcept nogil:
    # Tokens that complete a name are decided by what follows that member.
    cdef ResidualView view
    cdef Override override
    cdef vector[Thread] behind
    cdef uint64_t first[4]
    cdef int32_t t
    cdef const Trie* trie = core.index.trie
    view.trie = trie
    for override in names.overrides:
        view.first = override.node + 1
        view.last = trie.nodes[override.node].end
        view.depth = trie.nodes[override.node].depth
        for t in range(trie.nodes[override.node].token, trie.nodes[view.last].token):
            mask.removed.push_back(trie.tokens[t])
        if override.tag == NO_TAG:
            continue
        mask_behind(core, lex, override.tag, parser, NO_KEY, behind, first)
        if not behind.empty():
            for t in range(trie.nodes[override.node].token, trie.nodes[view.first].token):
                mask.added.push_back(trie.tokens[t])
            mask_walk(core, threads, view, behind, mask.added)


cdef void mask_add_thread(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, LexState* lex,
                          int32_t parser) noexcept nogil:
    # Add what one thread allows; its lexer state lists no overrides.
    cdef LexMask* base = own if own.base == NULL else own.base
    mask_join_bits(core, mask, own.bits)
    mask_join_bits(core, mask, base.bits)
    mask.added.insert(mask.added.end(), own.inside.begin(), own.inside.end())
    if base != own:
        mask.added.insert(mask.added.end(), base.inside.begin(), base.inside.end())
    mask_add_crossing(core, threads, base, lex, parser, mask.added)


cdef void mask_set_overridden(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, LexState* lex,
                              int32_t parser) noexcept nogil:
    # What one thread with overrides allows, into an empty mask: the base's tokens but those that
    # complete a name, then these as their member decides.
    mask.base = own.base.inside
    mask.base.insert(mask.base.end(), own.inside.begin(), own.inside.end())
    mask_join_bits(core, mask, own.bits)
    mask_join_bits(core, mask, own.base.bits)
    mask_add_crossing(core, threads, own.base, lex, parser, mask.base)
    mask_add_overrides(core, threads, mask, own, lex, parser)


cdef void mask_join_thread(Core* core, const vector[Thread]& threads, Mask* mask, LexState* lex,
                           int32_t parser, cbool alone) noexcept nogil:
    # One thread among others: removals must not touch what the others allow.
    cdef LexMask* own = lexmask_borrow(lex, core.index)
    cdef Mask part
    if own == NULL:
        return
    if own.overrides.empty():
        mask_add_thread(core, threads, mask, own, lex, parser)
    elif alone:
        mask_set_overridden(core, threads, mask, own, lex, parser)
    else:
        part.bits = NULL
        mask_set_overridden(core, threads, &part, own, lex, parser)
        mask_flatten(core, &part)
        mask_join_bits(core, mask, part.bits)
        bits_release(core.index, part.bits)
    lexmask_release(own)
