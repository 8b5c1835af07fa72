# Masks of matcher states of a grammar that has a lexer (longest_match.pyx).
#
# Threads carry their lookahead.  What terminals lead to is not joined, because how the text goes on is split depends
# on what the parser state waits for.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport bits_has
from maskwright._engine.limits cimport deadline_worked, deferred_free_breathe
from maskwright._engine.turns cimport turn_passed
from maskwright._engine.trie cimport Trie
from maskwright._engine.vocabulary cimport Bits
from maskwright._engine.char_index cimport bits_add, bits_hold_token, bits_release, bits_remove, bits_unite, bits_within
from maskwright._engine.lexemes cimport Automaton, LexMask, TokenGroup
from maskwright._engine.lexeme_walks cimport lexmask_residual
from maskwright._engine.longest_match cimport Lexer, lexer_of
from maskwright._engine.longest_match_walks cimport lexer_lookahead_mask
from maskwright._engine.longest_match_mask cimport lexer_behind, lexer_mask
from maskwright._engine.program cimport ACCEPT, Item, NO_KEY, NO_STATE, ParserState, Program, Return, UNKNOWN
from maskwright._engine.columns cimport node_intern
from maskwright._engine.stacks cimport lex_in_newline, newline_column, state_deep, state_goto, state_intern
from maskwright._engine.core cimport Core, LexedPlan, LexedRest, Mask, OpenGroup, Thread, thread_at
from maskwright._engine.threads cimport threads_behind_boundaries, threads_normalize
from maskwright._engine.alive cimport thread_is_embedded, thread_leaves, threads_alive, threads_step
from maskwright._engine.boundaries cimport mask_add_crossing
from maskwright._engine.states cimport (
    add_outside, frame_bottom, lexed_group_known, mask_flatten, mask_join_bits, mask_walk
)
from maskwright._engine.frame_masks cimport mask_join_thread


# --- What is the same over all stacks with an equal top.
#
# Behind most terminals of a token, the parser is in rules that began near the top of its stack.  So a mask of the lexer is
# applied once to the parser state with its stack *cut* below two nodes: what is left ends in the bottom of frames (frames.pyx).
# The result is a *plan*: the tokens that are allowed, and the *rests*, where a rule returns to the bottom before a token's end, or
# a search may be needed.  Over a stack with the same top these tokens are the same, and only the rests are looked at again.
#
#     f(g(h(i(a|      left: what i(...) and h(...) return to; what is around g(...) is cut off
#     tokens  a  +  )  )))        are in the plan
#     tokens  ))))  )));          are rests: what comes behind the third ) depends on what was cut off

cdef enum:
    CUT_NODES = 2
    PLAN_ENTRY = 80                # bytes that a plan takes, made or not
    LEAST_PARTS = 4                # of a mask: with fewer, it is applied without a plan
    STEP_PIECE = 1 << 30
    STEP_SHARE = 1 << 29
    STEP_NUMBER = STEP_SHARE - 1

cdef struct PlanKey:
    int64_t mask                   # LexMask.serial
    int32_t parser
    int32_t padding


cdef int32_t node_cut(Core* core, int32_t node, int32_t depth) noexcept nogil:
    # A stack of which only so many nodes are left.
    cdef vector[Return] returns
    cdef Return back
    cdef int32_t id
    if depth == 0:
        return frame_bottom(core)
    if core.plans.nodes.empty():
        core.plans.nodes.resize(CUT_NODES)
    id = core.plans.nodes[depth - 1].find(node)
    if id != UNKNOWN:
        return id
    deadline_worked(&core.index.deadline, core.program.nodes[node].returns.size())
    for back in core.program.nodes[node].returns:
        if back.local != ACCEPT:
            back.node = node_cut(core, back.node, depth - 1)
        returns.push_back(back)
    id = node_intern(core.program, returns)
    core.plans.nodes[depth - 1].insert(node, id)
    return id


cdef int32_t state_cut(Core* core, int32_t parser) noexcept nogil:
    # A parser state over cut stacks.
    cdef vector[Item] items
    cdef Item item
    cdef int32_t id = core.plans.states.find(parser)
    if id != UNKNOWN:
        return id
    for item in core.program.states[parser].items:
        item.node = node_cut(core, item.node, CUT_NODES)
        items.push_back(item)
    id = state_intern(core.program, items, False)
    core.plans.states.insert(parser, id)
    return id


cdef cbool plan_pays(Core* core, LexMask* own, int32_t parser) noexcept nogil:
    # Whether a mask is applied by a plan.
    return (lexer_of(core.program.lexer).samples.safe
            and own.groups.size() + own.runs.size() + own.pieces.size() + own.shares.size() >= LEAST_PARTS
            and core.program.states[parser].guards.empty())


cdef inline void plan_enter(LexedPlan* plan, int32_t step, int64_t serial) noexcept nogil:
    if plan != NULL:
        plan.steps.push_back(step)
        plan.serials.push_back(serial)


cdef inline void plan_leave(LexedPlan* plan) noexcept nogil:
    if plan != NULL:
        plan.steps.pop_back()
        plan.serials.pop_back()


cdef cbool ends_line(Core* core, int32_t tag) noexcept nogil:
    # Whether what comes behind a terminal depends on the columns of open blocks, which are of the whole stack.
    cdef Lexer* lexer = lexer_of(core.program.lexer)
    return newline_column(lexer, tag) >= 0 or (tag >= 0 and tag == lexer.quote)


cdef void plan_keep(LexedPlan* plan, int32_t group, int32_t run, vector[int32_t]* holes) noexcept nogil:
    # What is to be looked at over each stack.
    plan.rests.resize(plan.rests.size() + 1)
    plan.rests.back().steps = plan.steps
    plan.rests.back().serials = plan.serials
    plan.rests.back().group = group
    plan.rests.back().run = run
    if holes != NULL:
        plan.rests.back().holes = holes[0]


cdef int32_t lexed_group_sure(Core* core, const TokenGroup* group, int32_t parser) noexcept nogil:
    # Whether tokens are allowed over all stacks with this top: 1, 0, or -1 when that is not known.
    cdef Thread each
    cdef int32_t known = 0
    cdef size_t i
    for i in range(group.hypotheses.size()):
        each = thread_at(parser, group.hypotheses[i].lookahead)
        each.lex = group.hypotheses[i].lex
        if (each.lex == NULL or not lex_in_newline(each.lex)) and thread_leaves(core, each):
            return 1
        known = -1
    for i in range(group.ended.size()):
        each = thread_at(state_goto(core.program, parser, core.program.lexer, group.ended[i].tag, NO_KEY),
                         group.ended[i].lookahead)
        if each.parser == NO_STATE:
            continue
        if not ends_line(core, group.ended[i].tag) and thread_leaves(core, each):
            return 1
        known = -1
    return known


cdef int64_t plan_size(const LexedPlan* plan) noexcept nogil:
    cdef int64_t size = sizeof(LexedPlan) + 4 * plan.mask.added.size()
    cdef size_t i
    for i in range(plan.rests.size()):
        size += sizeof(LexedRest) + 12 * plan.rests[i].steps.size() + 4 * plan.rests[i].holes.size()
    return size


cdef void plans_free(Core* core, vector[LexedPlan*]& plans) noexcept nogil:
    cdef LexedPlan* plan
    for plan in plans:
        if plan != NULL:
            core.index.cache.bytes.subtract(plan_size(plan))
            bits_release(core.index, plan.mask.bits)
            del plan
        deferred_free_breathe()
    plans.clear()


cdef void plans_forget(Core* core) noexcept nogil:
    core.index.cache.bytes.subtract(<int64_t>core.plans.all.size() * PLAN_ENTRY)
    plans_free(core, core.plans.all)
    plans_free(core, core.plans.old)
    core.plans.ids.clear()


cdef LexedPlan* plan_make(Core* core, const vector[Thread]& threads, LexMask* own, int32_t cut) noexcept nogil:
    # NULL when time is up.
    cdef LexedPlan* plan = new LexedPlan()
    plan.mask.bits = NULL
    lexed_apply(core, threads, &plan.mask, own, cut, NULL, plan)
    if core.index.deadline.passed:
        bits_release(core.index, plan.mask.bits)
        del plan
        return NULL
    if plan.mask.added.size() > core.index.words:
        mask_flatten(core, &plan.mask)
    core.index.cache.bytes.add(plan_size(plan))
    return plan


cdef LexMask* rest_part(Core* core, LexMask* own, const LexedRest* rest, int32_t* parser) noexcept nogil:
    # The part of a mask that a rest is about, and the parser state there; NULL where a part was forgotten meanwhile, or time is up.
    cdef LexMask* part = own
    cdef int32_t step
    cdef size_t i
    for i in range(rest.steps.size()):
        step = rest.steps[i]
        if step & STEP_PIECE:
            part = part.pieces[step & STEP_NUMBER].part
        elif step & STEP_SHARE:
            part = part.shares[step & STEP_NUMBER]
        else:
            parser[0] = lexed_after(core, part, step, parser[0])
            if core.index.deadline.passed:
                return NULL
            part = lexer_behind(part, step, core.program.states[parser[0]].lexer)
            if part == NULL or part.serial != rest.serials[i]:
                return NULL
        part.used = True
    return part


cdef cbool plan_apply(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, int32_t parser) noexcept nogil:
    # `lexed_apply` by the plan of the mask for the top of the stack.  False: it is the first time that this is asked.  Then a plan is only
    # made if those made so far were used again: in short texts, many tops come once.
    cdef PlanKey key
    cdef LexedPlan* plan = NULL
    cdef LexedRest* rest
    cdef LexMask* part
    cdef int32_t id, at
    cdef size_t i = 0
    key.mask = own.serial
    key.parser = state_cut(core, parser)
    key.padding = 0
    id = core.plans.ids.find(&key, sizeof(key))
    if id < 0:
        core.plans.ids.insert(&key, sizeof(key), <int32_t>core.plans.all.size())
        core.plans.all.push_back(NULL)
        core.index.cache.bytes.add(PLAN_ENTRY)
        if core.plans.used <= core.plans.made:
            return False
        id = <int32_t>core.plans.all.size() - 1
    plan = core.plans.all[id]
    if plan != NULL:
        core.plans.used += 1
    else:
        plan = core.plans.all[id] = plan_make(core, threads, own, key.parser)
        if plan == NULL:
            return True
        core.plans.made += 1
    while i < plan.rests.size():
        rest = &plan.rests[i]
        at = parser
        part = rest_part(core, own, rest, &at)
        if core.index.deadline.passed:
            return True
        if part == NULL:
            # Somebody may be at the one that is there.
            core.plans.old.push_back(plan)
            plan = core.plans.all[id] = plan_make(core, threads, own, key.parser)
            if plan == NULL:
                return True
            i = 0
            continue
        if rest.group >= 0:
            lexed_group(core, mask, part, <size_t>rest.group, at, &rest.holes, NULL)
        else:
            lexed_run(core, threads, mask, part, <size_t>rest.run, at, &rest.holes, NULL)
        # Plans were made meanwhile, and this one lies where it did.
        i += 1
    mask_join_bits(core, mask, plan.mask.bits)
    mask.added.insert(mask.added.end(), plan.mask.added.begin(), plan.mask.added.end())
    return True


# --- masks ----------------------------------------------------------------------------------

cdef void lexed_add(Core* core, const vector[Thread]& threads, Mask* mask, const Thread& thread) noexcept nogil:
    # What the lexer allows in a thread without a lookahead.
    cdef LexMask* own = lexer_mask(thread.lex, core.program.states[thread.parser].lexer, core.index)
    if own != NULL:
        lexed_apply(core, threads, mask, own, thread.parser, NULL, NULL)


cdef void lexed_apply(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, int32_t parser,
                      vector[int32_t]* holes, LexedPlan* plan) noexcept nogil:
    # Add what is said about the tokens of a trie, in one parser state, but for some (NULL: none).  `plan`: the one that is made.
    cdef vector[int32_t] kept
    cdef int32_t token
    if plan == NULL and (holes == NULL or holes.empty()) and plan_pays(core, own, parser) and (
            plan_apply(core, threads, mask, own, parser)):
        return
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
    lexed_depending(core, threads, mask, own, parser, holes, plan)


cdef void lexed_depending(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, int32_t parser,
                          vector[int32_t]* holes, LexedPlan* plan) noexcept nogil:
    # Add what depends on the parser state.  Recursion is bounded by the longest token.
    cdef vector[int32_t] more
    cdef size_t i
    for i in range(own.groups.size()):
        lexed_group(core, mask, own, i, parser, holes, plan)
    for i in range(own.runs.size()):
        if core.index.deadline.passed:
            return
        lexed_run(core, threads, mask, own, i, parser, holes, plan)
    for i in range(own.pieces.size()):
        own.pieces[i].part.used = True
        plan_enter(plan, <int32_t>i | STEP_PIECE, 0)
        if holes == NULL or holes.empty():
            lexed_depending(core, threads, mask, own.pieces[i].part, parser, &own.pieces[i].removed, plan)
        else:
            more = own.pieces[i].removed
            more.insert(more.end(), holes.begin(), holes.end())
            sort(more.begin(), more.end())
            lexed_depending(core, threads, mask, own.pieces[i].part, parser, &more, plan)
        plan_leave(plan)
    for i in range(own.shares.size()):
        own.shares[i].used = True
        plan_enter(plan, <int32_t>i | STEP_SHARE, 0)
        lexed_depending(core, threads, mask, own.shares[i], parser, holes, plan)
        plan_leave(plan)


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


cdef void lexed_group(Core* core, Mask* mask, LexMask* own, size_t number, int32_t parser, vector[int32_t]* holes,
                      LexedPlan* plan) noexcept nogil:
    # Tokens that end inside a lexeme, if the context allows that.
    cdef TokenGroup* group = &own.groups[number]
    cdef vector[Thread] possible
    cdef int32_t allowed
    if plan != NULL:
        allowed = lexed_group_sure(core, group, parser)
        if allowed < 0:
            plan_keep(plan, <int32_t>number, -1, holes)
    else:
        allowed = lexed_group_known(core, group, parser, possible)
    if allowed == 1:
        lexed_add_tokens(mask, group.tokens, holes)
    elif allowed < 0 and plan == NULL:
        core.scratch.open.resize(core.scratch.open.size() + 1)
        core.scratch.open.back().threads = possible
        core.scratch.open.back().tokens = group.tokens
        if holes != NULL:
            lexed_cut_holes(&core.scratch.open.back(), holes)


cdef int32_t lexed_after(Core* core, LexMask* own, size_t number, int32_t parser) noexcept nogil:
    # The parser state behind the terminal of a run, or NO_STATE.
    cdef Automaton* lexer = core.program.lexer
    if lexer_of(lexer).ignored[own.runs[number].tag]:
        return parser
    return state_goto(core.program, parser, lexer, own.runs[number].tag, NO_KEY)


cdef void lexed_run(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, size_t number, int32_t parser,
                    vector[int32_t]* holes, LexedPlan* plan) noexcept nogil:
    # Tokens that run past the end of a terminal.
    cdef ParserState* state
    cdef LexMask* below
    cdef vector[Thread] behind
    cdef vector[int32_t] found
    cdef size_t j
    cdef cbool simple
    cdef int32_t after = lexed_after(core, own, number, parser)
    if after == NO_STATE:
        return
    state = core.program.states[after]
    simple = state.lexer != NULL and state.starts.empty() and not state_deep(core.program, after)
    if plan != NULL and (state.complete or not simple or ends_line(core, own.runs[number].tag)):
        plan_keep(plan, -1, <int32_t>number, holes)
        return
    if simple:
        below = lexer_behind(own, number, state.lexer)
        if below != NULL:
            plan_enter(plan, <int32_t>number, below.serial)
            lexed_apply(core, threads, mask, below, after, holes, plan)
            plan_leave(plan)
        return
    for j in range(own.runs[number].first, own.runs[number].last):
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
        if turn_passed(core.index):
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


cdef void mask_lexed(Core* core, const vector[Thread]& given, Mask* mask) noexcept nogil:
    cdef vector[Thread] threads = given
    cdef Thread thread
    cdef Mask part
    cdef size_t i, looked_ahead = 0
    core.scratch.open.clear()
    if core.program.has_boundaries:
        threads_behind_boundaries(core, given, threads)
        threads_normalize(threads)
        mask_add_crossing(core, threads, mask)
    for i in range(threads.size()):
        if turn_passed(core.index):
            return
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
