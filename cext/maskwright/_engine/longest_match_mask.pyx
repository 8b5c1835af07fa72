# Masks of the states of a grammar's lexer, by start: walks over the vocabulary, parts that are shared, and what is behind terminals that end.

from cython.operator cimport dereference
from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.algorithm cimport sort
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport bits_has, bits_set, set_add
from maskwright._engine.turns cimport turn_passed, turns_pause
from maskwright._engine.trie cimport Trie, TrieNode
from maskwright._engine.vocabulary cimport CodeRange, Exit, LAST_CODE_POINT, Slice
from maskwright._engine.char_index cimport bits_add, bits_new, bits_unite, index_count, index_text
from maskwright._engine.slices cimport index_slice, points_hold, slice_exits, slice_left_inside
from maskwright._engine.lexemes cimport LazyDfa, Crossing, CrossingGroup, Piece, ResidualView, Run, Skipped
from maskwright._engine.lazy_dfa cimport dfa_next
from maskwright._engine.lexeme_texts cimport FORM_TEXT, LEX_DEAD
from maskwright._engine.lexeme_state cimport lex_next
from maskwright._engine.lexeme_walks cimport lexmask_finish, lexmask_new, lexmask_release, lexmask_view
from maskwright._engine.lexeme_mask cimport EXIT_COST, SelfLoop, self_loop_enter, self_loop_points
from maskwright._engine.longest_match cimport Lexer, lexer_never, lexer_of, lexer_skips, LexerPlace, lookahead_step
from maskwright._engine.longest_match_walks cimport (
    Groups, lexer_alone_is_sure, lexer_any_sure, lexer_begins, lexer_comes_back, lexer_crosses, lexer_cut,
    lexer_descend, lexer_fill, lexer_group, lexer_group_alone, lexer_ignores, lexer_name, lexer_piece_pays, lexer_run,
    lexer_share_depending, lexer_stand, lexer_step, lexer_take, LOOP_STEPS, SHARE_LEAST
)


# --- What a lexer in a loop says about the tokens below a node of the trie (longest_match_walks.pyx).
#
# A loop is a state that the commonest byte leads back to: inside a name that no keyword can become, a string, a comment.  A
# part belongs to a loop and a node, whatever start the lexer goes back to.  Strings and comments are in a self-loop in nearly
# all characters (lexeme_mask.pyx): then the part is a slice of the vocabulary, and only what leaves it is walked.

cdef LexState* lexer_loop(LexState* start, LexerPlace& place, const Index* index) noexcept nogil:
    # The loop into which the commonest byte leads, or NULL.
    cdef LexerPlace behind
    cdef LexState* state
    cdef LexState* after
    cdef int32_t _steps
    lexer_fill(place)
    lexer_step(start, place, index.by_char.commonest, behind)
    state = behind.alone
    for _steps in range(LOOP_STEPS if state != NULL else 0):
        after = lex_next(state, index.by_char.commonest)
        if after == LEX_DEAD:
            return NULL
        if after == state:
            return state
        state = after
    return NULL


cdef void lexer_walk_loop(LexMask* part, LexState* before, uint32_t node, uint32_t last, int32_t floor,
                          Groups& groups) noexcept nogil:
    # Nodes [node, last), subtrees below one at which the lexer stands in `before`.  Every state is alone, because also what
    # comes behind an ignored terminal is taken as a crossing here: so the part does not depend on the start.  What ends
    # at the depth `floor` is not the part's business.
    cdef const TrieNode* nodes = part.trie.nodes.data()
    cdef vector[void*]* path = &lexer_of(before.automaton).loop_path
    cdef Crossing crossing
    cdef LexState* parent
    cdef LexState* state
    if node >= last:
        return
    if path.size() <= part.index.most_bytes:
        path.resize(part.index.most_bytes + 1, NULL)
    path[0][nodes[node].depth - 1] = before
    while node < last:
        if turn_passed(part.index):
            return
        parent = <LexState*>path[0][nodes[node].depth - 1]
        state = lex_next(parent, nodes[node].byte)
        if nodes[node].depth - 1 > floor and lexer_crosses(parent, state):
            crossing.tag = parent.tag
            crossing.lookahead = parent if state != LEX_DEAD else NULL
            crossing.byte = nodes[node].byte
            crossing.node = node
            part.crossing.push_back(crossing)
        if state == LEX_DEAD or lexer_never(state):
            node = nodes[node].end
            continue
        lexer_tell(part, state, node, groups)
        path[0][nodes[node].depth] = state
        node += 1


cdef inline void lexer_tell(LexMask* part, LexState* state, uint32_t node, Groups& groups) noexcept nogil:
    # What a state that is alone says of the tokens that end at a node.
    cdef const Trie* trie = part.trie
    cdef int32_t t
    if trie.nodes[node].token == trie.nodes[node + 1].token or lexer_never(state):
        return
    if not (lexer_of(state.automaton).samples.safe and lexer_alone_is_sure(state)):
        lexer_tell_group(part, state, node, groups)
        return
    for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
        if part.bits == NULL:
            part.inside.push_back(trie.tokens[t])
        else:
            bits_add(part.bits, trie.tokens[t])


cdef void lexer_tell_group(LexMask* part, LexState* state, uint32_t node, Groups& groups) noexcept nogil:
    cdef const Trie* trie = part.trie
    cdef size_t group = lexer_group_alone(part, groups, state)
    cdef int32_t t
    for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
        part.groups[group].tokens.push_back(trie.tokens[t])


cdef cbool lexer_fill_self_loop(LexMask* part, LexState* loop) noexcept nogil:
    # The part of all tokens, from a slice; False when the loop is not in a self-loop in all characters but some of ASCII.
    cdef Index* index = part.index
    cdef const TrieNode* nodes = index.trie.nodes.data()
    cdef SelfLoop self_loop
    cdef Slice* slice
    cdef vector[CodeRange] points
    cdef Groups groups
    cdef const vector[Exit]* exits
    cdef size_t i
    cdef LazyDfa* dfa = loop.automaton.dfa
    cdef int32_t point, next = 128, exit = 0
    cdef cbool* away
    if loop.form != FORM_TEXT or not lexer_alone_is_sure(loop):
        return False
    self_loop.classes.assign(<size_t>(dfa.classes >> 6) + 1, 0)
    for point in range(dfa.classes):
        if dfa_next(dfa, loop.dfa_state, point) == loop.dfa_state:
            set_add(self_loop.classes, point)
    self_loop_points(loop.automaton, self_loop.classes, points)
    for point in range(128):
        if not points_hold(points, point, point):
            exit += index_count(index, point, point)
    if index.self_loop_least > 0 and <int64_t>exit * EXIT_COST > <int64_t>index.trie.nodes[0].end - exit:
        return False
    for i in range(points.size()):
        if points[i].high >= next:
            if index_count(index, next, points[i].low - 1) > 0:
                return False
            next = points[i].high + 1
    if next <= LAST_CODE_POINT and index_count(index, next, LAST_CODE_POINT) > 0:
        return False
    slice = index_slice(index, points)
    part.bits.words = slice.bits.words
    # Others could make the vocabulary forget the slice.
    away = turns_pause(index, True)
    for point in range(128):
        if points_hold(points, point, point):
            continue
        exits = slice_exits(index, slice, point, 0)
        for i in range(exits.size()):
            lexer_walk_loop(part, loop, exits[0][i].node, nodes[exits[0][i].node].end, 0, groups)
    for i in range(index.by_char.parts.size()):
        if slice_left_inside(index, slice, index.by_char.parts[i], 0):
            lexer_end_inside(part, loop, index.by_char.parts[i].node, groups)
    index.deadline.away = away
    return True


cdef void lexer_end_inside(LexMask* part, LexState* loop, uint32_t node,
                           Groups& groups) noexcept nogil:
    cdef LexState* state = self_loop_enter(loop, index_text(part.index, node), part.index.trie.nodes[node].depth)
    if state != LEX_DEAD:
        lexer_tell(part, state, node, groups)


cdef LexMask* lexer_part(LexState* loop, uint32_t node, Index* index) noexcept nogil:
    # What a loop says about the tokens below a node; NULL when time is up.
    cdef Lexer* lexer = lexer_of(loop.automaton)
    cdef LexMask* part
    cdef Groups groups
    cdef size_t i
    cdef int32_t t
    cdef int64_t key = (<int64_t>loop.id << 32) | node
    found = lexer.cache.parts.find(key)
    if found != lexer.cache.parts.end():
        dereference(found).second.used = True
        return dereference(found).second
    part = lexmask_new(index)
    part.bits = bits_new(index)
    if node > 0 or not lexer_fill_self_loop(part, loop):
        lexer_walk_loop(part, loop, node + 1, index.trie.nodes[node].end, index.trie.nodes[node].depth, groups)
    part.depending = bits_new(index)
    for i in range(part.crossing.size()):
        for t in range(index.trie.nodes[part.crossing[i].node].token,
                       index.trie.nodes[index.trie.nodes[part.crossing[i].node].end].token):
            bits_add(part.depending, index.trie.tokens[t])
    for i in range(part.groups.size()):
        for t in part.groups[i].tokens:
            bits_add(part.depending, t)
    lexer_finish(part, lexer)
    if index.deadline.passed:
        lexmask_release(part)
        return NULL
    lexer.cache.parts[key] = part
    return part


# --- What is behind the crossings of a lexer's mask (longest_match_walks.pyx).
#
# The crossings of one tag are a *run*.  What a start of the lexer says of the residuals depends on the trie nodes (and on
# what the terminal before must not become), and neither on the tag nor on the mask: masks with the same crossings
# share a run.  So what may stand behind an operator is found once for each start, whatever name the operator stands behind.

cdef LexMask* lexer_behind(LexMask* mask, size_t number, LexState* start) noexcept nogil:
    # What a lexer at `start` says of the residuals of a run.  NULL when time is up.
    cdef Run* run = mask.runs[number].run
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef LexMask* whole
    cdef LexMask* below
    cdef Groups groups
    cdef uint32_t i, node
    found = run.whole.find(start.id)
    if found != run.whole.end():
        return dereference(found).second
    whole = lexmask_new(mask.index)
    for i in range(mask.runs[number].first, mask.runs[number].last):
        if lex_next(start, mask.crossings[i].byte) == LEX_DEAD:
            continue
        node = mask.nodes[mask.crossings[i].first]
        if (mask.trie == mask.index.trie and mask.crossings[i].last - mask.crossings[i].first == 1
                and mask.trie.nodes[node].end - node <= SHARE_LEAST):
            lexer_behind_node(whole, node, mask.crossings[i].lookahead, start, groups)
            continue
        below = lexer_behind_group(mask, run, i, i - mask.runs[number].first, start)
        if below == NULL:
            break
        if below.bits != NULL:
            if whole.bits == NULL:
                whole.bits = bits_new(mask.index)
            bits_unite(whole.bits, below.bits)
        whole.inside.insert(whole.inside.end(), below.inside.begin(), below.inside.end())
        lexer_share_depending(whole, below)
    lexer_finish(whole, lexer)
    if mask.index.deadline.passed:
        lexmask_release(whole)
        return NULL
    run.whole[start.id] = whole
    return whole


cdef void lexer_behind_node(LexMask* out, uint32_t node, LexState* lookahead, LexState* start,
                            Groups& groups) noexcept nogil:
    # Add what is said of a node of the mask's trie and of those below, where the lexer is at `start` above it.  The end of an
    # ignored terminal is a crossing here.
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef LexerPlace place
    cdef int32_t depth = out.trie.nodes[node].depth - 1
    lexer_stand(lexer, out.index, <size_t>depth, NULL, lookahead)
    lexer.stops = True
    lexer_step(start, lexer.path[depth], out.trie.nodes[node].byte, place)
    if place.alone != NULL:
        lexer_tell(out, place.alone, node, groups)
        lexer_walk_loop(out, place.alone, node + 1, out.trie.nodes[node].end, depth, groups)
    else:
        lexer_walk(out, start, node, out.trie.nodes[node].end, False, groups)
    lexer.stops = False


cdef LexMask* lexer_behind_group(LexMask* mask, Run* run, uint32_t group, uint32_t position, LexState* start) noexcept nogil:
    # The same of one group.  Residuals begin with the same byte, so starts that the byte leads to one state say the same.
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef LexMask* below
    cdef CrossingGroup* crossing = &mask.crossings[group]
    cdef LexerPlace place
    cdef ResidualView view
    cdef Groups groups
    cdef int64_t key = (<int64_t>position << 32) | lex_next(start, crossing.byte).id
    found = run.behind.find(key)
    if found != run.behind.end():
        return dereference(found).second
    view = lexmask_view(mask, group, run.merged, position, &run.bytes)
    if lexer.samples.safe and view.trie == mask.index.trie and lexer_piece_pays(mask.index, view.first):
        lexer_stand(lexer, mask.index, <size_t>view.depth, NULL, crossing.lookahead)
        lexer_step(start, lexer.path[view.depth], crossing.byte, place)
        if not lexer_comes_back(place):
            below = lexer_share(mask, start, view.first, place)
            if below != NULL:
                below.holders.add(1)
                run.behind[key] = below
            return below
    below = lexmask_new(mask.index)
    below.trie = view.trie
    lexer_behind_node(below, view.first, crossing.lookahead, start, groups)
    lexer_finish(below, lexer)
    if mask.index.deadline.passed:
        lexmask_release(below)
        return NULL
    run.behind[key] = below
    return below


cdef void lexer_begin_piece(LexMask* mask, LexState* start, uint32_t node, LexerPlace* place) noexcept nogil:
    # Where a piece pays, let it hold below a node.
    cdef LexState* loop
    cdef LexMask* part
    cdef Piece made
    if not lexer_piece_pays(mask.index, node):
        return
    loop = lexer_loop(start, place[0], mask.index)
    if loop == NULL:
        return
    part = lexer_part(loop, node, mask.index)
    if part == NULL:
        return
    if mask.bits == NULL:
        mask.bits = bits_new(mask.index)
    bits_unite(mask.bits, part.bits)
    place.shadow = loop
    place.outer = False
    place.piece = mask.pieces.size()
    place.top = mask.index.trie.nodes[node].depth
    part.holders.add(1)
    made.part = part
    mask.pieces.push_back(made)


cdef cbool lexer_skips_byte(LexState* state, LexState* shadow, uint8_t byte) noexcept nogil:
    # Whether a byte says the same behind a state as behind that of a part (NULL: nothing).
    cdef LexState* after = lex_next(state, byte)
    cdef cbool crosses = lexer_crosses(state, after)
    if shadow == NULL:
        return after == LEX_DEAD and not crosses
    return after == lex_next(shadow, byte) and crosses == lexer_crosses(shadow, after) and (
        not crosses or (after == LEX_DEAD and state.tag == shadow.tag))


cdef inline cbool lexer_same(Skipped* skipped, LexState* state, uint8_t byte) noexcept nogil:
    if not bits_has(skipped.known, byte):
        bits_set(skipped.known, byte)
        if lexer_skips_byte(state, skipped.shadow, byte):
            bits_set(skipped.same, byte)
    return bits_has(skipped.same, byte)


cdef uint32_t lexer_next_child(const LexMask* mask, LexerPlace* place) noexcept nogil:
    # The next child that has to be looked at, or 0.
    cdef uint32_t node
    if place.skipped == NULL:
        node = place.next
        if node >= place.last:
            return 0
        place.next = mask.trie.nodes[node].end
        return node
    while place.next < place.last:
        place.next += 1
        # Another place may have had its own shadow in between.
        if place.skipped.shadow != place.shadow or not lexer_same(
                place.skipped, place.alone, mask.index.by_char.child_bytes[place.next - 1]):
            return mask.index.by_char.child_nodes[place.next - 1]
    return 0


cdef void lexer_walk(LexMask* mask, LexState* start, uint32_t node, uint32_t last, cbool pieces,
                     Groups& groups) noexcept nogil:
    # Nodes of the mask's trie, in subtrees below one whose place is known.
    cdef const TrieNode* nodes = mask.trie.nodes.data()
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef int32_t top = nodes[node].depth - 1, depth = top
    if node >= last:
        return
    lexer.path[top].skipped = NULL
    lexer.path[top].next = node
    lexer.path[top].last = last
    while not turn_passed(mask.index):
        node = lexer_next_child(mask, &lexer.path[depth])
        if node == 0:
            if depth == top:
                return
            depth -= 1
        elif lexer_visit(mask, start, node, groups):
            depth += 1
            if pieces and lexer.path[depth].shadow == NULL and lexer.samples.safe:
                lexer_begin_piece(mask, start, node, &lexer.path[depth])
            if pieces and nodes[node].end - node > SHARE_LEAST and lexer_begins(lexer.path[depth]):
                lexer_spread(mask, start, node)
                depth -= 1
            else:
                lexer_descend(mask, &lexer.path[depth], node)


cdef cbool lexer_visit(LexMask* mask, LexState* start, uint32_t node, Groups& groups) noexcept nogil:
    # One node; whether to go on below it.
    cdef const Trie* trie = mask.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef LexerPlace* before = &lexer.path[nodes[node].depth - 1]
    cdef LexerPlace* place = &lexer.path[nodes[node].depth]
    cdef LexState* state = before.alone
    cdef Crossing crossing
    cdef uint8_t byte = nodes[node].byte
    cdef size_t i, crossings = mask.crossing.size()
    cdef int32_t t
    cdef cbool empty, ends
    crossing.byte = byte
    crossing.node = node
    if state != NULL and not (lexer_crosses(state, lex_next(state, byte)) and lexer_ignores(state) and not lexer.stops):
        place.alone = lex_next(state, byte)
        if lexer_crosses(state, place.alone):
            crossing.tag = state.tag
            crossing.lookahead = state if place.alone != LEX_DEAD else NULL
            mask.crossing.push_back(crossing)
        empty = place.alone == LEX_DEAD or lexer_never(place.alone)
    else:
        lexer_fill(before[0])
        for i in range(before.ended.size()):
            state = before.ended[i].lookahead
            if lookahead_step(&state, byte):
                crossing.tag = before.ended[i].tag
                crossing.lookahead = before.ended[i].lookahead if state != NULL else NULL
                mask.crossing.push_back(crossing)
        lexer_step(start, before[0], byte, place[0])
        empty = place.hypotheses.empty() and place.ended.empty()
    place.shadow = NULL
    if before.shadow != NULL:
        state = lex_next(before.shadow, byte)
        ends = nodes[node].depth - 1 > before.top and lexer_crosses(before.shadow, state)
        if empty or ends:
            if state != LEX_DEAD or ends:
                lexer_cut(mask, before, node, nodes[node].end)
        elif state == place.alone and crossings == mask.crossing.size():
            return False
        elif state != LEX_DEAD:
            # The piece goes on.
            place.shadow = state
            place.piece = before.piece
            place.outer = before.outer
            place.top = before.top
    if empty:
        return False
    if nodes[node].token < nodes[node + 1].token:
        if lexer.samples.safe and lexer_any_sure(place[0]):
            if place.shadow == NULL or not lexer_alone_is_sure(place.shadow):
                for t in range(nodes[node].token, nodes[node + 1].token):
                    mask.inside.push_back(trie.tokens[t])
        else:
            if place.shadow != NULL:
                lexer_cut(mask, place, node, node + 1)
            i = lexer_group(mask, groups, place[0]) if place.alone == NULL else lexer_group_alone(mask, groups, place.alone)
            for t in range(nodes[node].token, nodes[node + 1].token):
                mask.groups[i].tokens.push_back(trie.tokens[t])
    return True


cdef void lexer_spread(LexMask* mask, LexState* start, uint32_t node) noexcept nogil:
    # What is below a node at which the lexer may be at its start: child by child, shared by all starts that the first
    # byte leads to one place.
    cdef const TrieNode* nodes = mask.index.trie.nodes.data()
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef LexerPlace* here = &lexer.path[nodes[node].depth]
    cdef LexerPlace behind
    cdef LexState* shadow
    cdef LexMask* share
    cdef Groups groups
    cdef uint32_t child = node + 1
    cdef cbool ends
    while child < nodes[node].end and not mask.index.deadline.passed:
        lexer_fill(here[0])
        lexer_step(start, here[0], nodes[child].byte, behind)
        shadow = LEX_DEAD
        ends = False
        if here.shadow != NULL:
            shadow = lex_next(here.shadow, nodes[child].byte)
            ends = nodes[node].depth > here.top and lexer_crosses(here.shadow, shadow)
        if not here.ended.empty() or lexer_comes_back(behind):
            lexer_walk(mask, start, child, nodes[child].end, True, groups)
        elif ends or shadow != behind.alone or shadow == LEX_DEAD:
            if ends or shadow != LEX_DEAD or not (behind.hypotheses.empty() and behind.ended.empty()):
                share = lexer_share(mask, start, child, behind)
                if share != NULL:
                    lexer_take(mask, here, share)
        child = nodes[child].end


cdef LexMask* lexer_share(LexMask* mask, LexState* start, uint32_t node, const LexerPlace& place) noexcept nogil:
    # What is said about the tokens of a node where the lexer is at a place; NULL when time is up.
    cdef const TrieNode* nodes = mask.index.trie.nodes.data()
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef LexerPlace* before = &lexer.path[nodes[node].depth - 1]
    cdef LexMask* share
    cdef Groups groups
    cdef string key
    cdef cbool below = before.shadow != NULL and nodes[node].depth - 1 > before.top, outer = before.outer
    key.assign(<const char*>&node, sizeof(node))
    key.append(<const char*>&before.shadow, sizeof(LexState*))
    key.push_back(below)
    lexer_name(place, key)
    found = lexer.cache.shares.masks.find(key)
    if found != lexer.cache.shares.masks.end():
        dereference(found).second.used = True
        return dereference(found).second
    share = lexmask_new(mask.index)
    before.outer = True
    lexer_walk(share, start, node, nodes[node].end, True, groups)
    lexer.path[nodes[node].depth - 1].outer = outer
    lexer_finish(share, lexer)
    if mask.index.deadline.passed:
        lexmask_release(share)
        return NULL
    lexer.cache.shares.masks[key] = share
    return share


cdef void lexer_finish(LexMask* mask, Lexer* lexer) noexcept nogil:
    cdef size_t i
    for i in range(mask.pieces.size()):
        sort(mask.pieces[i].removed.begin(), mask.pieces[i].removed.end())
    lexmask_finish(mask)
    lexer_run(mask, lexer)


cdef LexMask* lexer_mask(LexState* lex, LexState* start, Index* index) noexcept nogil:
    # Of a lexer in state `lex` (NULL: at `start`), where `start` is what the parser state waits for.  NULL
    # when time is up.
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef LexMask* mask
    cdef Groups groups
    cdef int64_t key = start.id
    if lex != NULL:
        key = (<int64_t>lex.id + 1) << 32
        if lexer_skips(lex):
            key |= start.id + 1
    found = lexer.cache.masks.find(key)
    if found != lexer.cache.masks.end():
        dereference(found).second.used = True
        return dereference(found).second
    lexer_stand(lexer, index, 0, lex, NULL)
    mask = lexmask_new(index)
    if lexer.samples.safe:
        lexer_begin_piece(mask, start, 0, &lexer.path[0])
    if lex == NULL:
        lexer_spread(mask, start, 0)
    else:
        lexer_walk(mask, start, 1, index.trie.nodes[0].end, True, groups)
    lexer_finish(mask, lexer)
    if index.deadline.passed:
        lexmask_release(mask)
        return NULL
    lexer.cache.masks[key] = mask
    return mask
