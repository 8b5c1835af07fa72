# A lexeme that few texts end.
#
# Text that must not hold a word, or of several words just one, dies only where a word has been read to its end.  Over a set of classes of
# characters, the *distance* of a DFA state is the least number of characters behind which the lexeme may be dead.  A token of fewer
# bytes cannot end it.
#
#     not "maker":    at the start: 5    behind "mak": 2
#
# Most tokens lead back to one state, the *usual* one, from which only a token can end the lexeme that has all characters that are needed for
# it: the letters of "maker".  The vocabulary knows which tokens have a character, so these few are read.  The others, which never come to
# the usual state, are looked for in the trie, below nodes that tokens go through that are long enough.

from libc.stdint cimport int64_t, uint16_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.bit cimport countr_zero, popcount

from maskwright._engine.limits cimport deadline_passed
from maskwright._engine.trie cimport TrieNode
from maskwright._engine.vocabulary cimport Index, TallNode
from maskwright._engine.char_index cimport (
    bits_owned, bits_remove, index_clear_below, tall_below, tall_kind
)
from maskwright._engine.lazy_dfa cimport DFA_DEAD, dfa_next
from maskwright._engine.lexeme_texts cimport BACKSLASH, FORM_TEXT, LEX_DEAD, QUOTE
from maskwright._engine.lexeme_state cimport lex_next

cdef enum:
    MEASURED_STATES = 256  # at most; where they end, the lexeme is as good as dead one character behind
    DEAD_BEHIND = -1
    FEW_TOKENS = 16384     # that are read one by one
    FEW_NEEDS = 32         # different sets of characters that are needed
    MANY_STEPS = 4 * MEASURED_STATES


cdef void ends_measure(LazyDfa* dfa, DfaState* start, Ends* ends) noexcept nogil:
    # Over `ends.classes`.
    cdef vector[int32_t] places            # by the id of a state, one more than its position
    cdef DfaState* target
    cdef size_t i = 0, at, measured, width = ends.classes.size()
    cdef int32_t least
    cdef cbool more = True
    ends.states.clear()
    ends.moves.clear()
    ends.states.push_back(start)
    places.resize(dfa.states.size(), 0)
    places[start.id] = 1
    while i < ends.states.size() and i < MEASURED_STATES:
        for at in range(width):
            target = dfa_next(dfa, ends.states[i], ends.classes[at])
            if target == DFA_DEAD:
                ends.moves.push_back(DEAD_BEHIND)
                continue
            if places.size() < dfa.states.size():
                places.resize(dfa.states.size(), 0)
            if places[target.id] == 0:
                ends.states.push_back(target)
                places[target.id] = <int32_t>ends.states.size()
            ends.moves.push_back(places[target.id] - 1)
        i += 1
    measured = i
    ends.distances.assign(dfa.states.size(), 0)
    for i in range(ends.states.size()):
        ends.distances[ends.states[i].id] = FAR_FROM_ENDS if i < measured else 1
    while more:
        more = False
        for i in range(measured, 0, -1):
            least = ends.distances[ends.states[i - 1].id]
            for at in range((i - 1) * width, i * width):
                if ends.moves[at] == DEAD_BEHIND:
                    least = 1
                elif ends.distances[ends.states[ends.moves[at]].id] < least - 1:
                    least = ends.distances[ends.states[ends.moves[at]].id] + 1
            more = more or least < ends.distances[ends.states[i - 1].id]
            ends.distances[ends.states[i - 1].id] = least


cdef void ends_remove(LexMask* mask, LexState* start, uint32_t top, const Ends* ends) noexcept nogil:
    # Of the tokens below node `top`, at which the lexeme stands in `start`, without those that end it.
    cdef vector[uint32_t] tokens
    cdef int32_t place = usual_state(ends)
    cdef const DfaState* usual = NULL
    if top == 0 and tokens_with_needs(mask.index, start.automaton.dfa, ends, place, tokens):
        ends_among(mask, start, tokens)
        usual = ends.states[place]
    if start.dfa_state != usual:
        ends_below(mask, start, top, ends.distances[start.dfa_state.id], -1, 0, ends, usual)


# --- tokens with all that is needed

cdef int32_t usual_state(const Ends* ends) noexcept nogil:
    # The position of the state to which most classes lead from the first one.
    cdef vector[int32_t] count
    cdef int32_t best = 0
    cdef size_t i
    count.resize(ends.states.size(), 0)
    for i in range(ends.classes.size()):
        if ends.moves[i] >= 0:
            count[ends.moves[i]] += 1
            if count[ends.moves[i]] > count[best]:
                best = ends.moves[i]
    return best


cdef int32_t only_character(const LazyDfa* dfa, int32_t cls) noexcept nogil:
    # The one character of a class, where that is in ASCII; else -1.
    cdef int32_t point, found = -1
    cdef size_t i
    for point in range(128):
        if dfa.ascii_class[point] == cls:
            if found >= 0:
                return -1
            found = point
    for i in range(dfa.range_class.size()):
        if dfa.range_class[i] == cls:
            return -1
    return found


cdef cbool needs_add(vector[uint64_t]& needs, uint64_t need) noexcept nogil:
    # Keep a set of classes in place of larger ones; False where there is a smaller one.
    cdef size_t i, kept = 0
    for i in range(needs.size()):
        if needs[i] & ~need == 0:
            return False
    for i in range(needs.size()):
        if need & ~needs[i] != 0:
            needs[kept] = needs[i]
            kept += 1
    needs.resize(kept)
    needs.push_back(need)
    return True


cdef cbool needs_end(vector[uint64_t]& needs, uint64_t need) noexcept nogil:
    # A set with which the lexeme ends; False when there are too many, or it says next to nothing.
    return not needs_add(needs, need) or (popcount[uint64_t](need) > 1 and needs.size() <= FEW_NEEDS)


cdef cbool find_needs(const LazyDfa* dfa, const Ends* ends, int32_t usual, vector[uint64_t]& needs) noexcept nogil:
    # The least sets of classes, as bits, of which one is in every text that ends the lexeme from the usual state.  False when there are
    # too many, or one says next to nothing.
    cdef vector[vector[uint64_t]] before   # by state: the same for texts that lead there
    cdef vector[uint64_t] bits
    cdef vector[uint64_t] here
    cdef vector[int32_t] work
    cdef size_t at, i, steps = 0, width = ends.classes.size()
    cdef int32_t state, target
    cdef uint64_t need
    bits.resize(width, 0)
    for at in range(width if width < 64 else 64):
        if only_character(dfa, ends.classes[at]) >= 0:
            bits[at] = <uint64_t>1 << at
    before.resize(ends.states.size())
    before[usual].push_back(0)
    work.push_back(usual)
    while not work.empty():
        state = work.back()
        work.pop_back()
        here = before[state]
        if state * width >= ends.moves.size():
            for i in range(here.size()):
                if not needs_end(needs, here[i]):
                    return False
            continue
        for at in range(width):
            target = ends.moves[state * width + at]
            for i in range(here.size()):
                need = here[i] | bits[at]
                if target == DEAD_BEHIND:
                    if not needs_end(needs, need):
                        return False
                elif needs_add(before[target], need):
                    work.push_back(target)
                    if before[target].size() > FEW_NEEDS:
                        return False
        steps += 1
        if steps > MANY_STEPS:
            return False
    return True


cdef cbool tokens_with_needs(const Index* index, const LazyDfa* dfa, const Ends* ends, int32_t usual,
                             vector[uint32_t]& tokens) noexcept nogil:
    # The tokens with all characters of one of these sets, as a row of a bitmask; False where they are not known, or many.
    cdef vector[uint64_t] needs
    cdef vector[uint32_t] with_all
    cdef const uint32_t* having
    cdef uint64_t left
    cdef size_t i, at, count = 0
    if not find_needs(dfa, ends, usual, needs):
        return False
    tokens.assign(index.words, 0)
    for at in range(needs.size()):
        with_all.assign(index.words, <uint32_t>0xFFFFFFFF)
        left = needs[at]
        while left:
            having = index.by_char.containing[only_character(dfa, ends.classes[countr_zero(left)])].words.data()
            for i in range(index.words):
                with_all[i] &= having[i]
            left &= left - 1
        for i in range(index.words):
            tokens[i] |= with_all[i]
    for i in range(index.words):
        count += popcount[uint32_t](tokens[i])
    return count <= FEW_TOKENS


cdef void ends_among(LexMask* mask, LexState* start, const vector[uint32_t]& tokens) noexcept nogil:
    # Read tokens, and leave out those that end the lexeme.
    cdef const Index* index = mask.index
    cdef LexState* state
    cdef uint32_t left
    cdef size_t i
    cdef int64_t at
    cdef int32_t token
    for i in range(tokens.size()):
        left = tokens[i] & mask.bits.words[i]
        while left:
            token = <int32_t>(i << 5) + countr_zero(left)
            left &= left - 1
            state = start
            for at in range(index.token_starts[token], index.token_starts[token + 1]):
                state = lex_next(state, index.token_data[at])
                if state == LEX_DEAD:
                    mask.bits = bits_owned(mask.index, mask.bits)
                    bits_remove(mask.bits, token)
                    break


# --- the trie

cdef void ends_below(LexMask* mask, LexState* state, uint32_t top, int32_t distance, int32_t before, size_t at, const Ends* ends,
                     const DfaState* usual) noexcept nogil:
    # The lexeme may be dead `distance` bytes behind `top`, and no sooner.  `at`: the position of `top` in list `before` of tall nodes.
    cdef const TrieNode* nodes = mask.index.trie.nodes.data()
    cdef const uint16_t* heights = mask.index.by_char.heights.data()
    cdef const vector[TallNode]* tall
    cdef int32_t kind = tall_kind(distance)
    cdef uint32_t node = top + 1, last = nodes[top].end
    if deadline_passed(&mask.index.deadline):
        return
    if kind < 0:
        while node < last:
            if heights[node] + 1 >= distance:
                ends_at(mask, state, node, nodes[node].byte, heights[node], distance, -1, 0, ends, usual)
            node = nodes[node].end
        return
    tall = &mask.index.by_char.tall[kind]
    at = at + 1 if kind == before else tall_below(tall, top)
    while at < tall.size() and tall[0][at].node < last:
        if tall[0][at].height + 1 >= distance:
            ends_at(mask, state, tall[0][at].node, tall[0][at].byte, tall[0][at].height, distance, kind, at, ends, usual)
        at = tall[0][at].end


cdef void ends_at(LexMask* mask, LexState* parent, uint32_t node, uint8_t byte, int32_t height, int32_t distance, int32_t kind, size_t at,
                  const Ends* ends, const DfaState* usual) noexcept nogil:
    # One child of a node, at which the lexeme stands in `parent`.
    cdef LexState* state
    if byte == QUOTE or byte == BACKSLASH:
        # No characters that stand for themselves.
        return
    state = lex_next(parent, byte)
    if state == LEX_DEAD:
        mask.bits = bits_owned(mask.index, mask.bits)
        index_clear_below(mask.index, mask.bits, node)
        return
    distance -= 1
    if state.form == FORM_TEXT:
        # Of what is not measured, nothing is known.
        distance = 1
        if state.dfa_state == usual:
            distance = FAR_FROM_ENDS
        elif <size_t>state.dfa_state.id < ends.distances.size() and ends.distances[state.dfa_state.id] > 0:
            distance = ends.distances[state.dfa_state.id]
    if height >= distance:
        ends_below(mask, state, node, distance, kind, at, ends, usual)
