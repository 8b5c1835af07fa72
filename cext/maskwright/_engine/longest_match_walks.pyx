# What a walk over the vocabulary asks of a grammar's lexer, step by step; freeing what was found.

from cython.operator cimport dereference
from libc.stdint cimport int32_t
from libc.string cimport memset
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from maskwright._engine.limits cimport deferred_free_breathe
from maskwright._engine.turns cimport turn_passed
from maskwright._engine.trie cimport Trie, TrieNode
from maskwright._engine.char_index cimport bits_add, bits_hold_token, bits_new, bits_remove, bits_unite
from maskwright._engine.lexemes cimport (
    CrossingGroup, Ended, Hypothesis, NO_TAG, Piece, Run, Skipped, TagRun, TokenGroup
)
from maskwright._engine.lazy_dfa cimport dfa_free
from maskwright._engine.lexeme_state cimport lex_goes_on, lex_next
from maskwright._engine.lexeme_sets cimport lexsets_free
from maskwright._engine.lexeme_walks cimport lexmask_finish, lexmask_new, lexmask_release, run_release
from maskwright._engine.lexeme_mask cimport evict_lexmask, masktable_evict
from maskwright._engine.longest_match cimport (
    lexer_hopeless, lexer_is_sure, lexer_never, lexer_skips, lookahead_join, lookahead_step
)


# --- What a state of a grammar's lexer says about every token (see lexeme_walks.pyx, longest_match.pyx).
#
# An ignored terminal leaves the parser where it is, so a token may run through it into the next terminal and
# still be inside: " foo" does not depend on the context either.  The mask therefore belongs to a lexer
# state and the start to which the lexer goes back.  A token leads to several *hypotheses*, one for each way in
# which it may have been split.  Mostly one state is left, and what it says of itself: it is *alone*.
#
# Most tokens are words, and most states, starts of the lexer among them, are alone in a *loop* after a few letters:
# the state inside a name of which no keyword can become.  What a loop says about the tokens below a node of the trie
# is a *part*, shared by all masks.  Such a mask is made of *pieces*: below a node it is as the part says, and only
# where the state differs from the loop (along the spellings of keywords) the trie is followed; what is
# found there makes *holes* in the piece.
#
# What the next lexer start says of the residuals of a group is kept as well: then a mask in a new parser state only
# asks where terminals lead.
#
# A residual that makes the terminal before it longer is no crossing at all.  That is most of them, for
# terminals such as identifiers.

cdef void lexer_fill(LexerPlace& place) noexcept nogil:
    # Fill the lists where a state is alone.
    cdef Hypothesis each
    cdef Ended ended
    if place.alone == NULL:
        return
    place.hypotheses.clear()
    place.ended.clear()
    each.lex = place.alone
    each.lookahead = NULL
    if (place.alone.tag == NO_TAG or lex_goes_on(place.alone)) and not lexer_never(place.alone):
        place.hypotheses.push_back(each)
    if lexer_matched(place.alone):
        each.lookahead = lookahead_join(NULL, place.alone)
        if lexer_ignores(place.alone) and not lexer_of(place.alone.automaton).stops:
            each.lex = NULL
            place.hypotheses.push_back(each)
        else:
            ended.tag = place.alone.tag
            ended.lookahead = each.lookahead
            place.ended.push_back(ended)


cdef void lexer_find_alone(LexerPlace& place) noexcept nogil:
    # Whether the lists are those of one state.
    cdef LexState* lex
    place.alone = NULL
    if place.hypotheses.empty() or place.hypotheses[0].lex == NULL or place.hypotheses[0].lookahead != NULL:
        return
    lex = place.hypotheses[0].lex
    if not lexer_matched(lex):
        if place.hypotheses.size() == 1 and place.ended.empty():
            place.alone = lex
        return
    if lexer_ignores(lex) and not lexer_of(lex.automaton).stops:
        if (place.hypotheses.size() == 2 and place.ended.empty() and place.hypotheses[1].lex == NULL
                and place.hypotheses[1].lookahead == lex):
            place.alone = lex
    elif (place.hypotheses.size() == 1 and place.ended.size() == 1 and place.ended[0].tag == lex.tag
            and place.ended[0].lookahead == lex):
        place.alone = lex


cdef void lexer_step(LexState* start, const LexerPlace& before, uint8_t byte, LexerPlace& out) noexcept nogil:
    # Over one byte, all in one parser state.  `lex` NULL: the lexer is at `start`.
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef Hypothesis each
    cdef Ended ended
    cdef size_t i
    out.hypotheses.clear()
    out.ended.clear()
    for i in range(before.hypotheses.size()):
        each = before.hypotheses[i]
        if not lookahead_step(&each.lookahead, byte):
            continue
        each.lex = lex_next(start if each.lex == NULL else each.lex, byte)
        if each.lex == LEX_DEAD:
            continue
        if (each.lex.tag == NO_TAG or lex_goes_on(each.lex)) and not lexer_hopeless(each.lex, each.lookahead):
            out.hypotheses.push_back(each)
        if not lexer_matched(each.lex):
            continue
        each.lookahead = lookahead_join(each.lookahead, each.lex)
        if lexer_ignores(each.lex) and not lexer.stops:
            each.lex = NULL
            out.hypotheses.push_back(each)
        else:
            ended.tag = each.lex.tag
            ended.lookahead = each.lookahead
            out.ended.push_back(ended)
    lexer_find_alone(out)


cdef cbool lexer_any_sure(const LexerPlace& place) noexcept nogil:
    cdef size_t i
    if place.alone != NULL:
        return lexer_alone_is_sure(place.alone)
    for i in range(place.hypotheses.size()):
        if lexer_is_sure(place.hypotheses[i]):
            return True
    for i in range(place.ended.size()):
        if place.ended[i].lookahead == NULL or lexer_leaves(place.ended[i].lookahead):
            return True
    return False


cdef void lexer_name(const LexerPlace& place, string& key) noexcept nogil:
    # Add what the lists hold to a key.
    cdef size_t i
    key.append(<const char*>place.hypotheses.data(), place.hypotheses.size() * sizeof(Hypothesis))
    for i in range(place.ended.size()):
        key.append(<const char*>&place.ended[i].lookahead, sizeof(LexState*))
        key.append(<const char*>&place.ended[i].tag, sizeof(int32_t))


cdef size_t lexer_group(LexMask* mask, Groups& known, const LexerPlace& place) noexcept nogil:
    # The group of tokens that the context allows if it allows any of the hypotheses.
    cdef TokenGroup made
    cdef string key
    lexer_name(place, key)
    found = known.by_lists.find(key)
    if found != known.by_lists.end():
        return dereference(found).second
    known.by_lists[key] = mask.groups.size()
    made.hypotheses = place.hypotheses
    made.ended = place.ended
    mask.groups.push_back(made)
    return mask.groups.size() - 1


cdef size_t lexer_group_alone(LexMask* mask, Groups& known, LexState* alone) noexcept nogil:
    # The same of a state that is alone.
    cdef LexerPlace place
    cdef size_t group
    found = known.by_state.find(alone.id)
    if found != known.by_state.end():
        return dereference(found).second
    place.alone = alone
    lexer_fill(place)
    group = lexer_group(mask, known, place)
    known.by_state[alone.id] = group
    return group


# --- pieces ---------------------------------------------------------------------------------

cdef inline void lexer_cut_token(LexMask* mask, Piece* piece, int32_t token) noexcept nogil:
    bits_remove(mask.bits, token)
    if bits_hold_token(piece.part.depending, token):
        piece.removed.push_back(token)


cdef void lexer_cut(LexMask* mask, const LexerPlace* place, uint32_t node, uint32_t last) noexcept nogil:
    # A hole: the tokens of nodes [node, last).
    cdef const Trie* trie = mask.index.trie
    cdef int32_t t
    for t in range(trie.nodes[node].token, trie.nodes[last].token):
        if place.outer:
            mask.holes.push_back(trie.tokens[t])
        else:
            lexer_cut_token(mask, &mask.pieces[place.piece], trie.tokens[t])


# --- the walk -------------------------------------------------------------------------------

cdef void lexer_descend(LexMask* mask, LexerPlace* place, uint32_t node) noexcept nogil:
    # Go on with the children of a node.
    cdef LexState* state = place.alone
    place.skipped = NULL
    place.next = node + 1
    place.last = mask.trie.nodes[node].end
    if (state == NULL or mask.trie != mask.index.trie
            or (place.shadow != NULL and place.top == mask.trie.nodes[node].depth)):
        return
    if state.skipped == NULL:
        state.skipped = new Skipped()
        memset(state.skipped.known, 0, 32)
        memset(state.skipped.same, 0, 32)
        state.skipped.shadow = place.shadow
    elif state.skipped.shadow != place.shadow:
        memset(state.skipped.known, 0, 32)
        memset(state.skipped.same, 0, 32)
        state.skipped.shadow = place.shadow
    place.skipped = state.skipped
    place.next = mask.index.by_char.child_first[node]
    place.last = mask.index.by_char.child_first[node + 1]


cdef void lexer_stand(Lexer* lexer, const Index* index, size_t depth, LexState* lex, LexState* lookahead) noexcept nogil:
    # Where a walk begins.
    cdef Hypothesis first
    if lexer.path.size() <= index.most_bytes:
        lexer.path.resize(index.most_bytes + 1)
    first.lex = lex
    first.lookahead = lookahead
    lexer.path[depth].alone = NULL
    lexer.path[depth].shadow = NULL
    lexer.path[depth].outer = False
    lexer.path[depth].hypotheses.assign(1, first)
    lexer.path[depth].ended.clear()


# --- what starts share ----------------------------------------------------------------------

cdef cbool lexer_begins(const LexerPlace& place) noexcept nogil:
    # Whether the lexer may be at its start.
    cdef size_t i
    if place.alone != NULL:
        return lexer_matched(place.alone) and lexer_ignores(place.alone)
    for i in range(place.hypotheses.size()):
        if place.hypotheses[i].lex == NULL:
            return True
    return False


cdef cbool lexer_comes_back(const LexerPlace& place) noexcept nogil:
    # Whether it may be there again.
    cdef size_t i
    if place.alone != NULL:
        return lexer_skips(place.alone)
    for i in range(place.hypotheses.size()):
        if place.hypotheses[i].lex == NULL or lexer_skips(place.hypotheses[i].lex):
            return True
    return False


cdef void lexer_take(LexMask* mask, const LexerPlace* place, LexMask* share) noexcept nogil:
    # Add what is shared.
    cdef int32_t token
    if mask.bits == NULL:
        mask.bits = bits_new(mask.index)
    for token in share.holes:
        if place.outer:
            mask.holes.push_back(token)
        else:
            lexer_cut_token(mask, &mask.pieces[place.piece], token)
    if share.bits != NULL:
        bits_unite(mask.bits, share.bits)
    for token in share.inside:
        bits_add(mask.bits, token)
    lexer_share_depending(mask, share)


cdef void lexer_share_depending(LexMask* mask, LexMask* share) noexcept nogil:
    # Refer to what depends on the context.
    if not (share.crossings.empty() and share.groups.empty() and share.pieces.empty() and share.shares.empty()):
        share.holders.add(1)
        mask.shares.push_back(share)


# --- lookaheads --------------------------------------------------------------------------------

cdef LexMask* lexer_lookahead_mask(LexState* lookahead, Index* index) noexcept nogil:
    # In `bits`, the tokens that a lookahead does not let pass; in `holes`, those at whose end it still lookaheads.  NULL when time
    # is up.
    cdef Lexer* lexer = lexer_of(lookahead.automaton)
    cdef const Trie* trie = index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef vector[LexState*] path
    cdef LexMask* mask
    cdef LexState* state
    cdef uint32_t node = 1
    cdef int32_t t
    found = lexer.cache.looked_ahead.find(lookahead.id)
    if found != lexer.cache.looked_ahead.end():
        dereference(found).second.used = True
        return dereference(found).second
    mask = lexmask_new(index)
    mask.bits = bits_new(index)
    path.push_back(lookahead)
    while node < nodes[0].end and not turn_passed(index):
        path.resize(<size_t>nodes[node].depth)
        state = path.back()
        if not lookahead_step(&state, nodes[node].byte):
            for t in range(nodes[node].token, nodes[nodes[node].end].token):
                bits_add(mask.bits, trie.tokens[t])
        elif state != NULL:
            for t in range(nodes[node].token, nodes[node + 1].token):
                mask.holes.push_back(trie.tokens[t])
            path.push_back(state)
            node += 1
            continue
        node = nodes[node].end
    lexmask_finish(mask)
    if index.deadline.passed:
        lexmask_release(mask)
        return NULL
    lexer.cache.looked_ahead[lookahead.id] = mask
    return mask


cdef void lexer_forget_masks(Lexer* lexer, cbool all_of_them) noexcept nogil:
    lexer_forget(lexer.cache.masks, all_of_them)
    lexer_forget(lexer.cache.parts, all_of_them)
    lexer_forget(lexer.cache.looked_ahead, all_of_them)
    masktable_evict(&lexer.cache.shares, all_of_them)
    lexer_forget_runs(lexer)


cdef void lexer_forget(unordered_map[int64_t, LexMask*]& masks, cbool all_of_them) noexcept nogil:
    cdef vector[int64_t] gone
    cdef pair[int64_t, LexMask*] entry
    cdef size_t i
    for entry in masks:
        if evict_lexmask(entry.second, all_of_them):
            gone.push_back(entry.first)
    for i in range(gone.size()):
        masks.erase(gone[i])


cdef void lexer_run(LexMask* mask, Lexer* lexer) noexcept nogil:
    # Name the crossings of each tag.
    cdef string key
    cdef TagRun made
    cdef Run* run
    cdef CrossingGroup* group
    cdef uint32_t at = 0, i, count = <uint32_t>mask.crossings.size()
    while at < count:
        made.tag = mask.crossings[at].tag
        made.first = at
        key.clear()
        while at < count and mask.crossings[at].tag == made.tag:
            group = &mask.crossings[at]
            i = group.last - group.first
            key.append(<const char*>&group.lookahead, sizeof(LexState*))
            key.append(<const char*>&i, sizeof(i))
            key.append(<const char*>&mask.nodes[group.first], i * sizeof(uint32_t))
            at += 1
        made.last = at
        run = NULL
        found = lexer.cache.runs.find(key)
        # Nodes of a residual trie say nothing to others.
        if mask.trie == mask.index.trie and found != lexer.cache.runs.end():
            run = dereference(found).second
        else:
            run = new Run()
            run.holders = 0
            run.index = mask.index
            run.bytes = sizeof(Run)
            if mask.trie == mask.index.trie:
                run.holders = 1
                run.bytes += <int64_t>key.size()
                lexer.cache.runs[key] = run
            mask.index.cache.bytes.add(run.bytes)
        run.holders += 1
        made.run = run
        mask.runs.push_back(made)


cdef void lexer_forget_runs(Lexer* lexer) noexcept nogil:
    # Those that no mask has; then those that only what was kept by them had.
    cdef vector[string] gone
    cdef pair[string, Run*] entry
    cdef size_t i
    cdef cbool more = True
    while more:
        gone.clear()
        for entry in lexer.cache.runs:
            if entry.second.holders == 1:
                gone.push_back(entry.first)
        for i in range(gone.size()):
            run_release(lexer.cache.runs[gone[i]])
            lexer.cache.runs.erase(gone[i])
        more = not gone.empty()


cdef void lex_free(void* freed) noexcept nogil:
    # Without the lock, once it is in no list any more.
    cdef Automaton* automaton = <Automaton*>freed
    cdef Lexer* lexer = lexer_of(automaton)
    cdef size_t i
    lexsets_free(automaton)
    for i in range(automaton.states.size()):
        if automaton.states[i].mask != NULL:
            lexmask_release(automaton.states[i].mask)
        if automaton.states[i].skipped != NULL:
            del automaton.states[i].skipped
        deferred_free_breathe()
    while automaton.states.drop() or automaton.next_rows.drop():
        deferred_free_breathe()
    if automaton.dfa != NULL:
        dfa_free(automaton.dfa)
    if lexer != NULL:
        lexer_forget_masks(lexer, True)
        del lexer
    del automaton
