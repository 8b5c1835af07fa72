# Masks of matcher states: what each thread allows, joined.

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.algorithm cimport sort
from libcpp.atomic cimport memory_order_relaxed
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport bits_has
from maskwright._engine.limits cimport deadline_passed
from maskwright._engine.trie cimport Trie
from maskwright._engine.vocabulary cimport Bits, Opening
from maskwright._engine.char_index cimport bits_add, bits_hold_token, bits_new, bits_release, bits_remove, bits_unite, bits_within
from maskwright._engine.lexemes cimport Automaton, LexMask, LexState, NO_TAG, Override, ResidualView
from maskwright._engine.lexeme_state cimport lex_keeps_text
from maskwright._engine.lexeme_walks cimport lexmask_residual
from maskwright._engine.lexeme_mask cimport lexmask_get
from maskwright._engine.longest_match cimport lexer_of
from maskwright._engine.longest_match_walks cimport lexer_lookahead_mask
from maskwright._engine.longest_match_mask cimport lexer_behind, lexer_mask
from maskwright._engine.program cimport (
    ANY_KEY, DottedItem, LOCAL_PLAIN, LOCAL_RECORD, LOCAL_REPEATED, NO_KEY, NO_STATE, ParserState, Program,
    RECORD_OPEN
)
from maskwright._engine.stacks cimport state_behind, state_deep, state_goto
from maskwright._engine.tracked cimport is_tracked
from maskwright._engine.core cimport FrameMask, MatcherState, OpenGroup, Thread, thread_at
from maskwright._engine.alive cimport local_is_lexed, node_is_sure, thread_is_embedded, threads_alive, threads_step
from maskwright._engine.states cimport (
    add_outside, frame_state, lexed_group_known, mask_add_tokens, mask_behind, mask_flatten, mask_free, mask_join_bits,
    mask_open, mask_size, mask_walk, mask_write, threads_pending
)
from maskwright._engine.distinct_masks cimport distinct_mask

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
    while node < view.last and not deadline_passed(&core.index.deadline):
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


# --- The very start of a text, for vocabularies where some tokens stand for something else there.
#
# Tokenizers that mark the starts of words write a blank into most tokens, and their decoders drop the one in front of a
# text.  So the very start is a matcher state of its own: the *opening*.  Its threads are those of the start, which it
# becomes behind a token that stands for nothing (unless `stays`); bytes that are no token are read in both alike.

cdef int32_t opening_state(Core* core) noexcept nogil:
    # Make the opening next to the start.
    cdef MatcherState* state = core.states.add()
    state.threads = core.states[core.start].threads
    state.accepting = core.states[core.start].accepting
    return <int32_t>core.states.size() - 1


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


# --- Matcher states and masks of a grammar that has a lexer (longest_match.pyx).
#
# Threads carry their lookahead.  What terminals lead to is not joined, because how the text goes on is split depends
# on what the parser state waits for.

# --- masks ----------------------------------------------------------------------------------

cdef void lexed_add(Core* core, const vector[Thread]& threads, Mask* mask, const Thread& thread) noexcept nogil:
    # What the lexer allows in a thread without a lookahead.
    cdef LexMask* own = lexer_mask(thread.lex, core.program.states[thread.parser].lexer, core.index)
    if own != NULL:
        lexed_apply(core, threads, mask, own, thread.parser, NULL)


cdef void lexed_apply(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, int32_t parser,
                      vector[int32_t]* holes) noexcept nogil:
    # Add what is said about the tokens of a trie, in one parser state, but for some (NULL: none).
    cdef vector[int32_t] kept
    cdef int32_t token
    if holes == NULL or holes.empty() or own.bits == NULL:
        mask_join_bits(core, mask, own.bits)
    else:
        mask_flatten(core, mask)
        for token in holes[0]:
            if bits_hold_token(mask.bits, token):
                kept.push_back(token)
        bits_unite(mask.bits, own.bits)
        for token in holes[0]:
            bits_remove(mask.bits, token)
        for token in kept:
            bits_add(mask.bits, token)
    lexed_add_tokens(mask, own.inside, holes)
    lexed_depending(core, threads, mask, own, parser, holes)


cdef void lexed_depending(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, int32_t parser,
                          vector[int32_t]* holes) noexcept nogil:
    # Add what depends on the parser state.  Recursion is bounded by the longest token.
    cdef vector[int32_t] more
    cdef size_t i
    lexed_groups(core, mask, own, parser, holes)
    lexed_crossings(core, threads, mask, own, parser, holes)
    for i in range(own.pieces.size()):
        own.pieces[i].part.used = True
        if holes == NULL or holes.empty():
            lexed_depending(core, threads, mask, own.pieces[i].part, parser, &own.pieces[i].removed)
        else:
            more = own.pieces[i].removed
            more.insert(more.end(), holes.begin(), holes.end())
            sort(more.begin(), more.end())
            lexed_depending(core, threads, mask, own.pieces[i].part, parser, &more)
    for i in range(own.shares.size()):
        own.shares[i].used = True
        lexed_depending(core, threads, mask, own.shares[i], parser, holes)


cdef void lexed_add_tokens(Mask* mask, vector[int32_t]& tokens, vector[int32_t]* holes) noexcept nogil:
    if holes == NULL or holes.empty():
        mask.added.insert(mask.added.end(), tokens.begin(), tokens.end())
    else:
        add_outside(tokens, holes[0], mask.added)


cdef void lexed_cut_holes(OpenGroup* group, vector[int32_t]* holes) noexcept nogil:
    cdef vector[int32_t] kept
    add_outside(group.tokens, holes[0], kept)
    group.tokens.swap(kept)


cdef void lexed_settle(Core* core, Mask* mask) noexcept nogil:
    # Search for the open groups of a mask, unless all their tokens are allowed anyway.
    cdef size_t i, j
    if core.scratch.open.empty():
        return
    mask_flatten(core, mask)
    for i in range(core.scratch.open.size()):
        for j in range(core.scratch.open[i].tokens.size()):
            if not bits_hold_token(mask.bits, core.scratch.open[i].tokens[j]):
                if threads_alive(core, core.scratch.open[i].threads):
                    lexed_add_tokens(mask, core.scratch.open[i].tokens, NULL)
                break
    core.scratch.open.clear()


cdef void lexed_groups(Core* core, Mask* mask, LexMask* own, int32_t parser, vector[int32_t]* holes) noexcept nogil:
    # Tokens that end inside a lexeme, if the context allows that.
    cdef vector[Thread] possible
    cdef int32_t allowed
    cdef size_t i
    for i in range(own.groups.size()):
        possible.clear()
        allowed = lexed_group_known(core, &own.groups[i], parser, possible)
        if allowed == 1:
            lexed_add_tokens(mask, own.groups[i].tokens, holes)
        elif allowed < 0:
            core.scratch.open.resize(core.scratch.open.size() + 1)
            core.scratch.open.back().threads = possible
            core.scratch.open.back().tokens = own.groups[i].tokens
            if holes != NULL:
                lexed_cut_holes(&core.scratch.open.back(), holes)


cdef void lexed_crossings(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, int32_t parser,
                          vector[int32_t]* holes) noexcept nogil:
    # Tokens that run past the end of a lexeme.
    cdef Automaton* lexer = core.program.lexer
    cdef ParserState* state
    cdef LexMask* below
    cdef vector[Thread] behind
    cdef vector[int32_t] found
    cdef size_t i, j
    cdef int32_t after
    for i in range(own.runs.size()):
        if core.index.deadline.passed:
            return
        after = parser
        if not lexer_of(lexer).ignored[own.runs[i].tag]:
            after = state_goto(core.program, parser, lexer, own.runs[i].tag, NO_KEY)
        if after == NO_STATE:
            continue
        state = core.program.states[after]
        if state.lexer != NULL and state.starts.empty() and not state_deep(core.program, after):
            below = lexer_behind(own, i, state.lexer)
            if below != NULL:
                lexed_apply(core, threads, mask, below, after, holes)
            continue
        for j in range(own.runs[i].first, own.runs[i].last):
            if bits_has(state.first, own.crossings[j].byte):
                behind.assign(1, thread_at(after, own.crossings[j].lookahead))
                found.clear()
                mask_walk(core, threads, lexmask_residual(own, j), behind, found)
                lexed_add_tokens(mask, found, holes)


cdef void lexed_add_all(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil:
    # Every token on its own, along the trie: what may be dead in a context that its lexeme does not know.
    cdef const Trie* trie = core.index.trie
    cdef uint32_t node = 1
    cdef size_t depth
    cdef int32_t t
    core.scratch.stack[0] = threads
    while node < trie.nodes[0].end:
        if deadline_passed(&core.index.deadline):
            return
        depth = trie.nodes[node].depth
        threads_step(core, core.scratch.stack[depth - 1], trie.nodes[node].byte, core.scratch.stack[depth])
        if core.scratch.stack[depth].empty():
            node = trie.nodes[node].end
            continue
        if trie.nodes[node].token < trie.nodes[node + 1].token and threads_alive(core, core.scratch.stack[depth]):
            for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
                mask.added.push_back(trie.tokens[t])
        node += 1


cdef void lexed_without_lookahead(Core* core, const vector[Thread]& threads, Mask* mask, const Thread& thread,
                          cbool alone) noexcept nogil:
    # What a thread without a lookahead allows.
    cdef ParserState* state = core.program.states[thread.parser]
    cdef Program* program = core.program
    cdef vector[Thread] own
    cdef size_t i
    cdef cbool lexing = thread.lex == NULL or thread.lex.automaton == program.lexer
    # What is said of ignored text holds before terminals only, and what is said of other lexemes only where the
    # lexer is safe.
    if state_deep(program, thread.parser) or (lexing and state.lexer != NULL and not state.starts.empty()) or (
            not lexer_of(program.lexer).samples.safe and not (lexing and state.starts.empty())
            and not thread_is_embedded(core, thread.lex, thread.parser)):
        own.push_back(thread)
        lexed_add_all(core, own, mask)
        return
    if thread.lex != NULL and thread.lex.automaton != program.lexer:
        mask_join_thread(core, threads, mask, thread.lex, thread.parser, alone)
        return
    if thread.lex != NULL or state.lexer != NULL:
        lexed_add(core, threads, mask, thread)
        lexed_settle(core, mask)
    for i in range(state.starts.size() if thread.lex == NULL else 0):
        mask_join_thread(core, threads, mask, state.starts[i], thread.parser,
                         alone and state.lexer == NULL and state.starts.size() == 1)


cdef cbool token_allowed(Core* core, const Thread& thread, int32_t token) noexcept nogil:
    cdef vector[Thread] before, after
    cdef const uint8_t* data = core.index.token_data + core.index.token_starts[token]
    cdef int64_t i, length = core.index.token_starts[token + 1] - core.index.token_starts[token]
    before.push_back(thread)
    for i in range(length):
        threads_step(core, before, data[i], after)
        before.swap(after)
    return threads_alive(core, before)


cdef void lexed_filter(Core* core, Bits* bits, const Thread& thread) noexcept nogil:
    # Of the tokens in `bits`, which the thread would allow without its lookahead, remove those that it does not.
    cdef LexMask* looked_ahead = lexer_lookahead_mask(thread.lookahead, core.index)
    cdef int32_t token
    cdef size_t i
    if looked_ahead == NULL:
        return
    for i in range(bits.words.size()):
        bits.words[i] &= ~looked_ahead.bits.words[i]
    for token in looked_ahead.holes:
        if bits_hold_token(bits, token) and not token_allowed(core, thread, token):
            bits_remove(bits, token)


cdef void mask_lexed(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil:
    cdef Thread thread
    cdef Mask part
    cdef size_t i, looked_ahead = 0
    core.scratch.open.clear()
    for i in range(threads.size()):
        if threads[i].lookahead == NULL:
            lexed_without_lookahead(core, threads, mask, threads[i], threads.size() == 1)
        else:
            looked_ahead += 1
    for i in range(threads.size() if looked_ahead > 0 else 0):
        if threads[i].lookahead == NULL or core.index.deadline.passed:
            continue
        # Mostly others allow all that this one does.
        thread = threads[i]
        thread.lookahead = NULL
        part.bits = NULL
        lexed_without_lookahead(core, threads, &part, thread, False)
        mask_flatten(core, &part)
        mask_flatten(core, mask)
        if not bits_within(part.bits, mask.bits):
            lexed_filter(core, part.bits, threads[i])
            mask_join_bits(core, mask, part.bits)
        bits_release(core.index, part.bits)
    if mask.added.size() > core.words:
        mask_flatten(core, mask)


cdef void mask_add_crossing(Core* core, const vector[Thread]& threads, LexMask* mask, LexState* lex,
                            int32_t parser, vector[int32_t]& added) noexcept nogil:
    # `mask` is lex's own or that of its base automaton.
    cdef size_t i
    cdef int32_t tag, known = NO_TAG
    cdef vector[Thread] behind
    cdef uint64_t first[4]
    # Many keys end in this group: which one it was matters only if the token goes on to the next one.
    cdef int32_t key = ANY_KEY if lex_keeps_text(lex) else NO_KEY
    if not mask_open(core, mask, lex, parser):
        return
    for i in range(mask.crossings.size()):
        if mask.crossings[i].tag != known:
            known = mask.crossings[i].tag
            tag = known if lex.base == NULL else lex.automaton.keyset.other_tag + known
            mask_behind(core, lex, tag, parser, key, behind, first)
        if not bits_has(first, mask.crossings[i].byte):
            continue
        if not frames_fit(core, behind) or not mask_add_frames(core, threads, mask, i, behind, added):
            mask_walk(core, threads, lexmask_residual(mask, i), behind, added)


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


cdef void mask_add_thread(Core* core, const vector[Thread]& threads, Mask* mask, LexState* lex,
                          int32_t parser) noexcept nogil:
    # Add what one thread allows; its lexer state lists no overrides.
    cdef LexMask* own = lexmask_get(lex, core.index)
    cdef LexMask* base
    if own == NULL:
        return
    base = own if own.base == NULL else own.base
    mask_join_bits(core, mask, own.bits)
    mask_join_bits(core, mask, base.bits)
    mask.added.insert(mask.added.end(), own.inside.begin(), own.inside.end())
    if base != own:
        mask.added.insert(mask.added.end(), base.inside.begin(), base.inside.end())
    mask_add_crossing(core, threads, base, lex, parser, mask.added)


cdef void mask_set_overridden(Core* core, const vector[Thread]& threads, Mask* mask, LexState* lex,
                              int32_t parser) noexcept nogil:
    # What one thread with overrides allows, into an empty mask: the base's tokens but those that
    # complete a name, then these as their member decides.
    cdef LexMask* own = lexmask_get(lex, core.index)
    mask.base = own.base.inside
    mask.base.insert(mask.base.end(), own.inside.begin(), own.inside.end())
    mask_join_bits(core, mask, own.bits)
    mask_join_bits(core, mask, own.base.bits)
    mask_add_crossing(core, threads, own.base, lex, parser, mask.base)
    mask_add_overrides(core, threads, mask, own, lex, parser)


cdef void mask_join_thread(Core* core, const vector[Thread]& threads, Mask* mask, LexState* lex,
                           int32_t parser, cbool alone) noexcept nogil:
    # One thread among others: removals must not touch what the others allow.
    cdef LexMask* own = lexmask_get(lex, core.index)
    cdef Mask part
    if own == NULL:
        return
    if own.overrides.empty():
        mask_add_thread(core, threads, mask, lex, parser)
    elif alone:
        mask_set_overridden(core, threads, mask, lex, parser)
    else:
        part.bits = NULL
        mask_set_overridden(core, threads, &part, lex, parser)
        mask_flatten(core, &part)
        mask_join_bits(core, mask, part.bits)
        bits_release(core.index, part.bits)


cdef inline void mask_join(Core* core, Mask* mask, const vector[Thread]& threads, const Thread& thread,
                           cbool begun, cbool alone) noexcept nogil:
    # `begun`: the thread's lexeme was, else it starts here.
    if is_tracked(thread.memory):
        distinct_mask(core, mask, thread, begun, alone)
    else:
        mask_join_thread(core, threads, mask, thread.lex, thread.parser, alone)


cdef Mask* mask_get(Core* core, int32_t id) noexcept nogil:
    # NULL when time is up.
    cdef MatcherState* state = core.states[id]
    cdef Mask* mask = state.mask
    cdef ParserState* parser
    cdef Thread thread
    cdef size_t i, j
    cdef int32_t t
    state.used.store(True, memory_order_relaxed)
    if mask != NULL:
        return mask
    mask = new Mask()
    mask.bits = NULL
    if id == core.opening:
        mask_opening(core, mask)
    elif core.program.lexer != NULL:
        mask_lexed(core, state.threads, mask)
    for i in range(state.threads.size() if core.program.lexer == NULL and id != core.opening else 0):
        thread = state.threads[i]
        if thread.lex != NULL:
            mask_join(core, mask, state.threads, thread, True, state.threads.size() == 1)
            continue
        parser = core.program.states[thread.parser]
        for j in range(parser.starts.size()):
            thread.lex = parser.starts[j]
            mask_join(core, mask, state.threads, thread, False, state.threads.size() == 1 and parser.starts.size() == 1)
    if core.program.has_tokens and id != core.opening:
        mask_add_tokens(core, state.threads, mask)
    if state.accepting and id != core.opening:
        for t in core.eos:
            mask.added.push_back(t)
    core.index.cache.bytes.add(mask_size(mask))
    if core.index.deadline.passed:
        mask_free(core, mask)
        return NULL
    state.mask = mask
    return mask
