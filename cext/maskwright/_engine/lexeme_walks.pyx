# What a lexer state alone says about every token.
#
# A token is *inside* when its bytes leave the lexeme alive: allowed in any context.  A token
# that runs past the end of the lexeme is *crossing*: what remains of it (the residual) must fit
# what may follow.  Crossing tokens are found as trie nodes behind an accepting state, grouped
# by first byte, and each group is merged into one residual trie when it is first needed.
#
# Both are found by a walk of the trie along the automaton; lexeme_mask.pyx knows when a slice of the
# vocabulary spares most of it.  A keyset that allows other keys is nearly its base automaton: it
# refers to the base's mask and lists the trie nodes where a name has been completed (overrides).

from cython.operator cimport dereference
from libc.stdint cimport uint64_t, uint8_t
from libc.string cimport memset
from libcpp.algorithm cimport sort
from libcpp.bit cimport countr_zero
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport bits_set
from maskwright._engine.limits cimport deadline_passed, deferred_free_breathe, deferred_free_take
from maskwright._engine.trie cimport trie_merge, trie_size, TrieNode
from maskwright._engine.char_index cimport bits_add, bits_owned, bits_release, index_child_from, index_escapes
from maskwright._engine.lexemes cimport (
    Automaton, LazyDfa, Crossing, CrossingGroup, KEY_BODY, KEY_CLOSED, KEY_START, KeyPlace, KeyPosition,
    NO_TAG, Override, Piece, TokenGroup
)
from maskwright._engine.lazy_dfa cimport dfa_has_any
from maskwright._engine.lexeme_texts cimport BACKSLASH, FORM_TEXT, LEX_DEAD, QUOTE
from maskwright._engine.keyset cimport escape_ahead, key_move, key_narrow, key_place
from maskwright._engine.lexeme_state cimport (
    lex_next, word_byte, word_length, word_tag, WordPlace, words_behind, words_place
)

cdef enum:
    LIST_LIMIT = 512       # tokens: of more, a bitset is cheaper to apply than a list
    TABLE_MASKS = 2048     # in a table: one that is much larger grows for so long that a request waits


cdef LexMask* lexmask_new(Index* index) noexcept nogil:
    cdef LexMask* mask = new LexMask()
    index.cache.masks_made += 1
    mask.serial = index.cache.masks_made
    mask.holders.set(1)
    mask.used = True
    mask.index = index
    mask.trie = index.trie
    mask.base = NULL
    mask.bits = NULL
    mask.depending = NULL
    mask.open_tag = NO_TAG
    mask.bytes = 0
    return mask


cdef void lexmask_release(LexMask* mask) noexcept nogil:
    cdef pair[int64_t, Trie*] entry
    cdef size_t i
    if mask.holders.drop() > 0:
        return
    for i in range(mask.runs.size()):
        run_release(mask.runs[i].run)
    for entry in mask.merged:
        del entry.second
    if mask.base != NULL:
        lexmask_release(mask.base)
    for i in range(mask.pieces.size()):
        lexmask_release(mask.pieces[i].part)
    for i in range(mask.shares.size()):
        lexmask_release(mask.shares[i])
    bits_release(mask.index, mask.bits)
    bits_release(mask.index, mask.depending)
    mask.index.cache.bytes.subtract(mask.bytes)
    del mask


cdef void run_release(Run* run) noexcept nogil:
    cdef pair[int64_t, Trie*] entry
    cdef pair[int64_t, LexMask*] below
    run.holders -= 1
    if run.holders > 0:
        return
    for below in run.whole:
        lexmask_release(below.second)
    for below in run.behind:
        lexmask_release(below.second)
    for entry in run.merged:
        del entry.second
    run.index.cache.bytes.subtract(run.bytes)
    del run


cdef void masktable_free(void* freed) noexcept nogil:
    cdef MaskTable* table = <MaskTable*>freed
    cdef pair[string, LexMask*] entry
    for entry in table.masks:
        lexmask_release(entry.second)
        deferred_free_breathe()
    del table


cdef void masktable_add(MaskTable* table, const string& key, LexMask* mask) noexcept nogil:
    # Of counted automata.  A full table begins anew: those who have masks of it keep them.
    cdef MaskTable* full
    if table.masks.size() >= TABLE_MASKS:
        full = new MaskTable()
        full.masks.swap(table.masks)
        deferred_free_take(mask.index, full, masktable_free)
    table.masks[key] = mask
    mask.holders.add(1)


cdef cbool lexmask_crossing_before(const Crossing& a, const Crossing& b) noexcept nogil:
    if a.tag != b.tag:
        return a.tag < b.tag
    if a.byte != b.byte:
        return a.byte < b.byte
    if a.lookahead != b.lookahead:
        return <uint64_t>a.lookahead < <uint64_t>b.lookahead
    return a.node < b.node


cdef inline cbool lexmask_same_group(const Crossing& a, const Crossing& b) noexcept nogil:
    return a.tag == b.tag and a.byte == b.byte and a.lookahead == b.lookahead


cdef void lexmask_group(LexMask* mask) noexcept nogil:
    # Crossings by group.
    cdef CrossingGroup group
    cdef size_t i
    mask.crossings.clear()
    mask.nodes.clear()
    sort(mask.crossing.begin(), mask.crossing.end(), &lexmask_crossing_before)
    for i in range(mask.crossing.size()):
        if i == 0 or not lexmask_same_group(mask.crossing[i], mask.crossing[i - 1]):
            group.tag = mask.crossing[i].tag
            group.byte = mask.crossing[i].byte
            group.lookahead = mask.crossing[i].lookahead
            group.first = <uint32_t>i
            mask.crossings.push_back(group)
        mask.crossings.back().last = <uint32_t>i + 1
        mask.nodes.push_back(mask.crossing[i].node)
    mask.crossing.clear()
    mask.crossing.shrink_to_fit()
    mask.nodes.shrink_to_fit()


cdef void lexmask_finish(LexMask* mask) noexcept nogil:
    lexmask_group(mask)
    lexmask_measure(mask)


cdef void lexmask_measure(LexMask* mask) noexcept nogil:
    # Turn a long list into a bitset, and count bytes.
    cdef int32_t t
    cdef Index* index = mask.index
    cdef size_t i, grouped = 0
    for i in range(mask.groups.size()):
        grouped += sizeof(TokenGroup) + mask.groups[i].tokens.size() * 4
    for i in range(mask.pieces.size()):
        grouped += sizeof(Piece) + mask.pieces[i].removed.size() * 4
    if mask.inside.size() > LIST_LIMIT:
        mask.bits = bits_owned(index, mask.bits)
        for t in mask.inside:
            bits_add(mask.bits, t)
        mask.inside.clear()
        mask.inside.shrink_to_fit()
    mask.bytes = ((mask.inside.size() + mask.holes.size()) * 4 + mask.crossing.size() * sizeof(Crossing)
                  + mask.crossings.size() * sizeof(CrossingGroup) + mask.nodes.size() * 4
                  + mask.overrides.size() * sizeof(Override) + grouped + sizeof(LexMask))
    index.cache.bytes.add(mask.bytes)


cdef void lexmask_walk(LexMask* mask, LexState* start, uint32_t top) noexcept nogil:
    # The subtree below node `top`, at which the lexeme stands in `start`.
    cdef const Trie* trie = mask.index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef vector[void*]* path = &mask.index.path
    cdef uint32_t node = top + 1, last = nodes[top].end
    cdef size_t depth
    cdef int32_t t
    cdef LexState* parent
    cdef LexState* state
    cdef Crossing crossing
    if path.size() <= <size_t>nodes[top].depth:
        path.resize(2 * <size_t>nodes[top].depth + 16, NULL)
    path[0][nodes[top].depth] = start
    while node < last:
        if deadline_passed(&mask.index.deadline):
            return
        depth = nodes[node].depth
        if depth >= path.size():
            path.resize(2 * depth, NULL)
        parent = <LexState*>path[0][depth - 1]
        state = lex_next(parent, nodes[node].byte)
        if parent.tag != NO_TAG and depth > 1:
            crossing.tag = parent.tag
            crossing.byte = nodes[node].byte
            crossing.node = node
            crossing.lookahead = NULL
            mask.crossing.push_back(crossing)
        if state == LEX_DEAD:
            node = nodes[node].end
            continue
        for t in range(nodes[node].token, nodes[node + 1].token):
            mask.inside.push_back(trie.tokens[t])
        path[0][depth] = state
        node += 1


cdef string lexmask_key(LexState* state, int32_t longest) noexcept nogil:
    # Names what a token of at most `longest` characters can tell of a state: its items, their counts
    # as distances to the bounds, which are all alike beyond the length of a token.
    cdef LazyDfa* dfa = state.automaton.dfa
    cdef vector[int32_t] out
    cdef string key
    cdef uint64_t item
    cdef int32_t count, room, missing
    cdef size_t i
    out.push_back(state.form)
    out.push_back(state.left)
    out.push_back(state.low)
    for item in state.dfa_state.items:
        count = <int32_t><uint32_t>item
        out.push_back(<int32_t>(item >> 32))
        for i in range(dfa.loop_min.size()):
            room = -1
            if dfa.loop_max[i] >= 0:
                room = dfa.loop_max[i] - count
                if room > longest + 1:
                    room = longest + 1
            missing = dfa.loop_min[i] - count
            if missing < 0:
                missing = 0
            if missing > longest + 1:
                missing = longest + 1
            out.push_back(room)
            out.push_back(missing)
    key.assign(<const char*>out.data(), out.size() * sizeof(int32_t))
    return key


cdef void lexmask_forget_crossing(LexMask* mask, int32_t tag) noexcept nogil:
    # Leave out the crossings with a tag.
    cdef size_t i, kept = 0
    for i in range(mask.crossing.size()):
        if mask.crossing[i].tag != tag:
            mask.crossing[kept] = mask.crossing[i]
            kept += 1
    mask.crossing.resize(kept)
    mask.crossing.shrink_to_fit()


cdef void lexmask_ungroup(LexMask* mask) noexcept nogil:
    # Back to single crossings.
    cdef CrossingGroup group
    cdef Crossing crossing
    cdef uint32_t i
    for group in mask.crossings:
        crossing.tag = group.tag
        crossing.byte = group.byte
        crossing.lookahead = group.lookahead
        for i in range(group.first, group.last):
            crossing.node = mask.nodes[i]
            mask.crossing.push_back(crossing)
    mask.crossings.clear()
    mask.nodes.clear()


cdef cbool lexmask_open(LexMask* mask, LexState* state) noexcept nogil:
    # Add the crossings that were left out, now that something can follow them; False when time is up.
    cdef LexMask* walked = lexmask_new(mask.index)
    cdef size_t i
    cdef pair[int64_t, Trie*] entry
    lexmask_walk(walked, state, 0)
    if not mask.index.deadline.passed:
        lexmask_ungroup(mask)
        for i in range(walked.crossing.size()):
            if walked.crossing[i].tag == mask.open_tag:
                mask.crossing.push_back(walked.crossing[i])
        mask.open_tag = NO_TAG
        mask.index.cache.bytes.subtract(mask.bytes)
        for entry in mask.merged:
            del entry.second
        mask.merged.clear()
        lexmask_finish(mask)
    lexmask_release(walked)
    return not mask.index.deadline.passed


cdef ResidualView lexmask_residual(LexMask* mask, size_t number) noexcept nogil:
    # The residuals of a group of crossings.
    return lexmask_view(mask, number, mask.merged, <int64_t>number, &mask.bytes)


cdef ResidualView lexmask_view(const LexMask* mask, size_t number, unordered_map[int64_t, Trie*]& known, int64_t key,
                               int64_t* bytes) noexcept nogil:
    # The same; merged residuals are kept in `known`.
    cdef const Trie* trie = mask.trie
    cdef CrossingGroup group = mask.crossings[number]
    cdef ResidualView view
    cdef vector[uint32_t] nodes
    cdef Trie* merged
    cdef int64_t size
    if group.last - group.first == 1:
        view.trie = trie
        view.first = mask.nodes[group.first]
        view.last = trie.nodes[view.first].end
        view.depth = trie.nodes[view.first].depth - 1
        return view
    found = known.find(key)
    if found != known.end():
        merged = dereference(found).second
    else:
        nodes.assign(mask.nodes.begin() + group.first, mask.nodes.begin() + group.last)
        merged = new Trie()
        trie_merge(trie, merged, nodes)
        known[key] = merged
        size = trie_size(merged)
        bytes[0] += size
        mask.index.cache.bytes.add(size)
    view.trie = merged
    view.first = 1
    view.last = merged.nodes[0].end
    view.depth = 0
    return view


# --- Masks of keysets: only where a name is still possible; elsewhere the mask of the automaton for other keys holds.
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
        if keys.texts.names[i].size() == <size_t>at.depth:
            i += 1
            continue
        byte = <uint8_t>keys.texts.names[i][at.depth]
        bits_set(ahead, byte)
        # On to the first name with another byte.
        behind = at[0]
        behind.first = i
        key_narrow(keys, &behind, byte)
        i = behind.last
    if at.used_left > 0:
        keys.keyset.used.next(at.used, at.used_at, used)
        for byte in used:
            bits_set(ahead, byte)


cdef void key_walk_closed(LexMask* mask, uint32_t node, int32_t tag) noexcept nogil:
    # A name ends at `node`.
    cdef Override override
    if mask.base == NULL:
        self_loop_close(mask, node, tag)
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


cdef inline cbool key_until_quote(const KeyPlace* place) noexcept nogil:
    # Whether nothing is refused before a quote or a backslash: keys may not be among some that were used, and may be any others.
    return (place.base != NULL and place.base.form == FORM_TEXT and place.at.first == place.at.last and place.at.escape == 0
            and dfa_has_any(place.base.automaton.dfa, place.base.dfa_state))


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
    cdef cbool at_quotes
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
        i = index.by_char.child_first[each.node]
        last = index.by_char.child_first[each.node + 1]
        if i == last:
            continue
        key_ahead(start.automaton, &each.place.at, ahead)
        at_quotes = key_until_quote(&each.place)
        for word in range(4):
            bits = ahead[word]
            while bits:
                byte = <uint8_t>(64 * word + countr_zero(bits))
                bits &= bits - 1
                i = index_child_from(index, i, last, byte)
                if (i < last and index.by_char.child_bytes[i] == byte
                        and (not at_quotes or index_escapes(index, index.by_char.child_nodes[i]))):
                    key_walk_child(mask, start.automaton, each, index.by_char.child_nodes[i], work)


cdef void words_walk(LexMask* mask, LexState* start) noexcept nogil:
    # Tokens that stay inside, and crossings, as in lexmask_walk.
    cdef const Automaton* words = start.automaton
    cdef const Trie* trie = mask.index.trie
    cdef vector[WordPlace] work
    cdef WordPlace place, behind
    cdef Crossing crossing
    cdef uint32_t child
    cdef int32_t i, t
    cdef uint8_t byte
    crossing.lookahead = NULL
    work.push_back(words_place(start))
    while not work.empty():
        if deadline_passed(&mask.index.deadline):
            return
        place = work.back()
        work.pop_back()
        i = place.first
        if place.node > 0:
            for t in range(trie.nodes[place.node].token, trie.nodes[place.node + 1].token):
                mask.inside.push_back(trie.tokens[t])
        if word_length(words, i) == place.depth:
            child = place.node + 1
            while place.node > 0 and child < trie.nodes[place.node].end:
                crossing.tag = word_tag(words, i)
                crossing.byte = trie.nodes[child].byte
                crossing.node = child
                mask.crossing.push_back(crossing)
                child = trie.nodes[child].end
            i += 1
        # Children come in the order of their bytes, as texts do.
        child = place.node + 1
        while i < place.last and child < trie.nodes[place.node].end:
            byte = word_byte(words, i, place.depth)
            if trie.nodes[child].byte < byte:
                child = trie.nodes[child].end
                continue
            behind.first = i
            i = words_behind(words, i, place.last, place.depth, byte)
            if trie.nodes[child].byte == byte:
                behind.last = i
                behind.depth = place.depth + 1
                behind.node = child
                work.push_back(behind)
                child = trie.nodes[child].end


cdef void self_loop_close(LexMask* mask, uint32_t node, int32_t tag) noexcept nogil:
    # A closing quote at `node`: nothing of the lexeme comes behind it.
    cdef const TrieNode* nodes = mask.index.trie.nodes.data()
    cdef Crossing crossing
    cdef uint32_t child = node + 1
    cdef int32_t t
    for t in range(nodes[node].token, nodes[child].token):
        mask.inside.push_back(mask.index.trie.tokens[t])
    crossing.tag = tag
    crossing.lookahead = NULL
    while child < nodes[node].end:
        crossing.byte = nodes[child].byte
        crossing.node = child
        mask.crossing.push_back(crossing)
        child = nodes[child].end
