# The mask of a lexer state: made, kept, and let go of; from slices of the vocabulary where the state loops on many characters.

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint32_t
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.string cimport string

from maskwright._engine.sizes cimport set_add, set_has
from maskwright._engine.limits cimport deadline_passed
from maskwright._engine.trie cimport Trie, TrieNode
from maskwright._engine.vocabulary cimport Bits, Exit, LAST_CODE_POINT, Slice
from maskwright._engine.char_index cimport (
    bits_hold, bits_owned, bits_unite, index_count, index_first, index_first_part, index_text, text_point
)
from maskwright._engine.slices cimport (
    index_slice, slice_below, slice_cut_below, slice_exit, slice_exits, slice_left_inside, slice_limited
)
from maskwright._engine.lexemes cimport LazyDfa, KIND_TEXT, KIND_WORDS, NO_CLASS, NO_TAG
from maskwright._engine.lazy_dfa cimport DFA_DEAD, dfa_next, dfa_sustained, dfa_class
from maskwright._engine.lexeme_texts cimport (
    BACKSLASH, FORM_TEXT, LEX_DEAD, QUOTE, SPELLING_UTF8, text_after, text_state
)
from maskwright._engine.lexeme_state cimport lex_next
from maskwright._engine.lexeme_ends cimport ends_measure, ends_remove, FAR_FROM_ENDS
from maskwright._engine.lexeme_walks cimport (
    self_loop_close, key_walk, lexmask_finish, lexmask_forget_crossing, lexmask_key, lexmask_new, lexmask_release,
    lexmask_walk, masktable_add, words_walk
)

# --- Masks of lexer states that loop on many characters, without a walk of the whole trie.
#
# A state has a *self-loop* over a set C of characters when every text over C leaves the lexeme alive (or
# every text of at most `room` characters, and no longer one).  Then the tokens over C are a slice,
# and only those with a first character outside C, the *exits*, have to be followed.
#
# C is found in one of four ways.  A single item of a state that comes back to itself over C sustains
# any state that holds it (a pattern that may match anywhere).  Else C is grown greedily, classes
# with the most trie nodes first, as long as few states are reached; or, where characters are
# counted, all classes of C lead through the same states up to the bound.  Where many states are reached (keys of which some
# match a pattern), C is all classes, and the few tokens that end the lexeme are left out (ends_remove).
#
# Plain text may be *open* in a self-loop: the lexeme may end anywhere in it.  Then nearly every token has a crossing at every
# byte; these are looked for only when something can follow (lexmask_open).

cdef struct ClassMass:
    int32_t cls
    int32_t mass


cdef cbool mass_before(const ClassMass& a, const ClassMass& b) noexcept nogil:
    return a.mass > b.mass or (a.mass == b.mass and a.cls < b.cls)


cdef cbool raw_in_text(const Automaton* automaton, int32_t point) noexcept nogil:
    # Whether a character stands for itself.
    return automaton.spelling == SPELLING_UTF8 or (point >= 0x20 and point != QUOTE and point != BACKSLASH)


cdef void self_loop_count(Automaton* automaton, const Index* index) noexcept nogil:
    # Trie nodes by class.
    cdef LazyDfa* dfa = automaton.dfa
    cdef int32_t point, high
    cdef size_t i
    automaton.class_mass.resize(<size_t>dfa.classes, 0)
    for point in range(128):
        if dfa.ascii_class[point] != NO_CLASS and raw_in_text(automaton, point):
            automaton.class_mass[dfa.ascii_class[point]] += index_count(index, point, point)
    for i in range(dfa.range_low.size()):
        if dfa.range_class[i] != NO_CLASS:
            high = dfa.range_low[i + 1] - 1 if i + 1 < dfa.range_low.size() else LAST_CODE_POINT
            automaton.class_mass[dfa.range_class[i]] += index_count(index, dfa.range_low[i], high)


cdef cbool self_loop_accepts_alike(const Automaton* automaton, SelfLoop* self_loop, const DfaState* target) noexcept nogil:
    # Whether a state behind a character accepts as the others do.
    if automaton.spelling != SPELLING_UTF8:
        return True
    if self_loop.tag == NOT_KNOWN:
        self_loop.tag = target.tag
    return self_loop.tag == target.tag


cdef cbool self_loop_reach(Automaton* automaton, SelfLoop* self_loop, DfaState* start) noexcept nogil:
    # Find the states reached over C; False when one dies, accepts unlike another, or there are too many.
    cdef LazyDfa* dfa = automaton.dfa
    cdef DfaState* target
    cdef size_t i, j
    cdef int32_t cls
    cdef cbool known
    self_loop.states.clear()
    self_loop.states.push_back(start)
    self_loop.tag = NOT_KNOWN
    i = 0
    while i < self_loop.states.size():
        for cls in range(dfa.classes):
            if not set_has(self_loop.classes, cls):
                continue
            target = dfa_next(dfa, self_loop.states[i], cls)
            if target == DFA_DEAD or not self_loop_accepts_alike(automaton, self_loop, target):
                return False
            known = False
            for j in range(self_loop.states.size()):
                known = known or self_loop.states[j] == target
            if not known:
                if self_loop.states.size() == SELF_LOOP_STATES:
                    return False
                self_loop.states.push_back(target)
        i += 1
    return True


cdef void self_loop_grow(Automaton* automaton, SelfLoop* self_loop, DfaState* start,
                    vector[ClassMass]& order) noexcept nogil:
    # Texts of any length.
    cdef ClassMass each
    cdef vector[DfaState*] before
    cdef int32_t tag = NOT_KNOWN
    self_loop.room = -1
    for each in order:
        set_add(self_loop.classes, each.cls)
        before = self_loop.states
        if self_loop_reach(automaton, self_loop, start):
            self_loop.mass += each.mass
            tag = self_loop.tag
        else:
            self_loop.classes[<size_t>each.cls >> 6] &= ~((<uint64_t>1) << (each.cls & 63))
            self_loop.states.swap(before)
    self_loop.tag = tag


cdef void self_loop_follow(Automaton* automaton, SelfLoop* self_loop, DfaState* start, vector[ClassMass]& order,
                      int32_t longest) noexcept nogil:
    # Texts up to a length: all classes of C lead through the same states.
    cdef LazyDfa* dfa = automaton.dfa
    cdef DfaState* state = start
    cdef DfaState* target
    cdef ClassMass each
    cdef size_t i
    cdef cbool agrees
    self_loop.counting = True
    self_loop.tag = NOT_KNOWN
    while state != DFA_DEAD and <int32_t>self_loop.states.size() <= longest:
        if not self_loop.states.empty() and not self_loop_accepts_alike(automaton, self_loop, state):
            return
        self_loop.states.push_back(state)
        state = dfa_next(dfa, state, order[0].cls)
    # No token is longer than `longest`: then it is as if there were no bound.
    self_loop.room = -1 if state != DFA_DEAD else <int32_t>self_loop.states.size() - 1
    if self_loop.room == 0:
        return
    for each in order:
        agrees = True
        for i in range(self_loop.states.size()):
            target = self_loop.states[i + 1] if i + 1 < self_loop.states.size() else state
            if dfa_next(dfa, self_loop.states[i], each.cls) != target:
                agrees = False
                break
        if agrees:
            set_add(self_loop.classes, each.cls)
            self_loop.mass += each.mass


cdef void self_loop_sustain(Automaton* automaton, SelfLoop* self_loop, DfaState* start) noexcept nogil:
    # An item that comes back to itself: what the others do cannot end the lexeme.
    cdef LazyDfa* dfa = automaton.dfa
    cdef const vector[uint64_t]* own
    cdef int32_t cls, mass
    cdef uint64_t item
    for item in start.items:
        own = dfa_sustained(dfa, <int32_t>(item >> 32))
        mass = 0
        for cls in range(dfa.classes):
            if set_has(own[0], cls):
                mass += automaton.class_mass[cls]
        if mass > self_loop.mass:
            self_loop.mass = mass
            self_loop.classes = own[0]
    self_loop_leave_any(automaton, self_loop)


cdef cbool self_loop_spread(Automaton* automaton, SelfLoop* self_loop, DfaState* start, vector[ClassMass]& order,
                       const Index* index) noexcept nogil:
    # Many states: all classes, when few texts of the length of a token end the lexeme.
    cdef ClassMass each
    cdef DfaState* target
    cdef int32_t near = 0
    for each in order:
        set_add(self_loop.classes, each.cls)
        self_loop.mass += each.mass
        self_loop.ends.classes.push_back(each.cls)
    self_loop_leave_any(automaton, self_loop)
    if not self_loop_pays(self_loop, index):
        return False
    ends_measure(automaton.dfa, start, &self_loop.ends)
    if self_loop.ends.distances[start.id] == FAR_FROM_ENDS:
        self_loop.ends.distances.clear()
        return True
    # Below such characters, nearly all tokens are looked at.
    for each in order:
        target = dfa_next(automaton.dfa, start, each.cls)
        if target == DFA_DEAD or self_loop.ends.distances[target.id] <= NEAR_ENDS:
            near += each.mass
    return <int64_t>near * NEAR_COST <= self_loop.mass


cdef void self_loop_leave_any(Automaton* automaton, SelfLoop* self_loop) noexcept nogil:
    # Where it is not known which states are reached, all else may lead on.
    cdef int32_t cls
    self_loop.room = -1
    self_loop.closing = True
    self_loop.exits = 0
    for cls in range(automaton.dfa.classes):
        if not set_has(self_loop.classes, cls):
            set_add(self_loop.leaving, cls)
            self_loop.exits += automaton.class_mass[cls]


cdef void self_loop_leave(Automaton* automaton, SelfLoop* self_loop) noexcept nogil:
    # What leads out of the states reached.
    cdef LazyDfa* dfa = automaton.dfa
    cdef DfaState* state
    cdef int32_t cls
    self_loop.closing = False
    self_loop.exits = 0
    self_loop.leaving.assign(self_loop.classes.size(), 0)
    for state in self_loop.states:
        self_loop.closing = self_loop.closing or state.tag != NO_TAG
        for cls in range(dfa.classes):
            if not set_has(self_loop.classes, cls) and not set_has(self_loop.leaving, cls) \
                    and dfa_next(dfa, state, cls) != DFA_DEAD:
                set_add(self_loop.leaving, cls)
                self_loop.exits += automaton.class_mass[cls]


cdef cbool self_loop_pays(const SelfLoop* self_loop, const Index* index) noexcept nogil:
    if self_loop.mass == 0:
        return False
    return index.self_loop_least == 0 or (self_loop.mass >= index.self_loop_least
                                     and <int64_t>self_loop.exits * EXIT_COST <= self_loop.mass)


cdef cbool self_loop_is_cheap(const SelfLoop* self_loop, const Index* index) noexcept nogil:
    # Whether looking for another one would cost more than its exits.
    return self_loop_pays(self_loop, index) and self_loop.exits * FEW_EXITS <= index.self_loop_least


cdef void self_loop_forget(SelfLoop* self_loop) noexcept nogil:
    self_loop.mass = 0
    self_loop.counting = False
    self_loop.states.clear()
    self_loop.ends.classes.clear()
    self_loop.ends.distances.clear()
    self_loop.classes.assign(self_loop.classes.size(), 0)
    self_loop.leaving = self_loop.classes


cdef cbool self_loop_find(Automaton* automaton, const Index* index, DfaState* start, SelfLoop* self_loop) noexcept nogil:
    # One with few exits, or else all classes where few tokens end the lexeme, if that has fewer.
    cdef LazyDfa* dfa = automaton.dfa
    cdef vector[ClassMass] order
    cdef ClassMass each
    cdef SelfLoop found
    self_loop.classes.resize(<size_t>(dfa.classes >> 6) + 1)
    self_loop_forget(self_loop)
    if automaton.class_mass.empty():
        self_loop_count(automaton, index)
    if automaton.spelling != SPELLING_UTF8:
        self_loop_sustain(automaton, self_loop, start)
        if self_loop_is_cheap(self_loop, index):
            return True
    for each.cls in range(dfa.classes):
        each.mass = automaton.class_mass[each.cls]
        # Characters in few tokens are cheap to follow.
        if each.mass * 8 > index.self_loop_least and dfa_next(dfa, start, each.cls) != DFA_DEAD:
            order.push_back(each)
    sort(order.begin(), order.end(), &mass_before)
    if not self_loop_pays(self_loop, index):
        if order.empty():
            return False
        self_loop_forget(self_loop)
        self_loop_come_back(automaton, self_loop, start, order, index)
    found.mass = 0
    if self_loop_pays(self_loop, index):
        if self_loop_is_cheap(self_loop, index) or order.empty() or automaton.spelling == SPELLING_UTF8:
            return True
        found = self_loop[0]
    elif automaton.spelling == SPELLING_UTF8:
        return False
    self_loop_forget(self_loop)
    # What ends the lexeme here and nowhere else.
    for each.cls in range(dfa.classes if not order.empty() else 0):
        each.mass = automaton.class_mass[each.cls]
        if (each.mass * 8 > index.self_loop_least and dfa_next(dfa, start, each.cls) == DFA_DEAD
                and dfa_next(dfa, dfa_next(dfa, start, order[0].cls), each.cls) != DFA_DEAD):
            order.push_back(each)
    if self_loop_spread(automaton, self_loop, start, order, index) and (found.mass == 0 or self_loop.exits < found.exits):
        return True
    if found.mass == 0:
        self_loop_forget(self_loop)
        return False
    self_loop[0] = found
    return True


cdef void self_loop_come_back(Automaton* automaton, SelfLoop* self_loop, DfaState* start, vector[ClassMass]& order,
                              const Index* index) noexcept nogil:
    # Does the heaviest class come back to a state, or does it count?
    cdef LazyDfa* dfa = automaton.dfa
    cdef DfaState* state = start
    cdef int32_t steps = 0
    while state != DFA_DEAD and steps < SELF_LOOP_STATES:
        state = dfa_next(dfa, state, order[0].cls)
        if state != DFA_DEAD and dfa_next(dfa, state, order[0].cls) == state:
            self_loop_grow(automaton, self_loop, start, order)
            break
        steps += 1
    else:
        self_loop_follow(automaton, self_loop, start, order, index.by_char.longest)
    self_loop_leave(automaton, self_loop)


# --- the mask -------------------------------------------------------------------------------

cdef void self_loop_points(Automaton* automaton, const vector[uint64_t]& classes,
                      vector[CodeRange]& points) noexcept nogil:
    # The characters of a set of classes that stand for themselves, as ranges.
    cdef LazyDfa* dfa = automaton.dfa
    cdef int32_t point
    cdef size_t i
    cdef CodeRange span
    for point in range(128):
        if dfa.ascii_class[point] != NO_CLASS and set_has(classes, dfa.ascii_class[point]) \
                and raw_in_text(automaton, point):
            if not points.empty() and points.back().high == point - 1:
                points.back().high = point
            else:
                span.low = span.high = point
                points.push_back(span)
    for i in range(dfa.range_low.size()):
        if dfa.range_class[i] == NO_CLASS or not set_has(classes, dfa.range_class[i]):
            continue
        span.low = dfa.range_low[i]
        span.high = dfa.range_low[i + 1] - 1 if i + 1 < dfa.range_low.size() else LAST_CODE_POINT
        if not points.empty() and points.back().high == span.low - 1:
            points.back().high = span.high
        else:
            points.push_back(span)


cdef LexState* self_loop_enter(LexState* start, const uint8_t* text, size_t end) noexcept nogil:
    # The lexer state behind text[:end], characters of C but for the last one, which may be cut short; LEX_DEAD when they
    # are more than the lexeme takes.
    cdef Automaton* automaton = start.automaton
    cdef LazyDfa* dfa = automaton.dfa
    cdef DfaState* dfa_state = start.dfa_state
    cdef LexState* state
    cdef size_t at = 0, before
    cdef int32_t point
    while True:
        before = at
        point = text_point(text, end, &at)
        if at == end:
            break
        dfa_state = dfa_next(dfa, dfa_state, dfa_class(dfa, point))
        if dfa_state == DFA_DEAD:
            return LEX_DEAD
    state = text_state(automaton, dfa_state, FORM_TEXT, 0, 0)
    while before < end and state != LEX_DEAD:
        state = lex_next(state, text[before])
        before += 1
    return state


cdef void self_loop_walk(LexMask* mask, LexState* state, uint32_t node, cbool below) noexcept nogil:
    # The tokens at a node (and below), where the lexeme stands in `state`.
    cdef const Trie* trie = mask.index.trie
    cdef int32_t t
    for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
        mask.inside.push_back(trie.tokens[t])
    if below and node + 1 < trie.nodes[node].end and not self_loop_fill_below(mask, state, node):
        lexmask_walk(mask, state, node)


cdef DfaState* self_loop_after(const SelfLoop* self_loop, int32_t count) noexcept nogil:
    # The state behind `count` characters of C; NULL when it depends on them.
    if self_loop.counting:
        return self_loop.states[count] if count < <int32_t>self_loop.states.size() else DFA_DEAD
    return self_loop.states[0] if self_loop.states.size() == 1 else NULL


cdef void self_loop_exit(LexMask* mask, LexState* start, const uint8_t* text, uint32_t node, uint32_t top,
                    cbool below) noexcept nogil:
    # The tokens at a node (and below) that are reached over C and one more character from `top`, where `start` stands.
    # `text`: the bytes from the root to the node.
    cdef const TrieNode* nodes = mask.index.trie.nodes.data()
    cdef LexState* state
    if deadline_passed(&mask.index.deadline):
        return
    state = self_loop_enter(start, text + nodes[top].depth, <size_t>nodes[node].depth - nodes[top].depth)
    if state != LEX_DEAD:
        self_loop_walk(mask, state, node, below)


cdef void self_loop_leave_at(LexMask* mask, LexState* start, SelfLoop* self_loop, const Exit& exit,
                        int32_t point, uint32_t top) noexcept nogil:
    # A character outside C behind characters of C, from `top` on.
    cdef Automaton* automaton = start.automaton
    cdef DfaState* dfa_state = self_loop_after(self_loop, exit.count)
    cdef LexState* state
    if dfa_state == NULL or deadline_passed(&mask.index.deadline):
        self_loop_exit(mask, start, exit.text, exit.node, top, True)
    elif dfa_state == DFA_DEAD:
        return
    elif raw_in_text(automaton, point):
        state = text_after(automaton, dfa_state, point)
        if state != LEX_DEAD:
            self_loop_walk(mask, state, exit.node, True)
    elif point == QUOTE:
        if dfa_state.tag != NO_TAG:
            self_loop_close(mask, exit.node, dfa_state.tag)
    else:
        state = lex_next(text_state(automaton, dfa_state, FORM_TEXT, 0, 0), BACKSLASH)
        if state != LEX_DEAD:
            self_loop_walk(mask, state, exit.node, True)


cdef void self_loop_leave_over(LexMask* mask, LexState* start, SelfLoop* self_loop, Slice* slice, int32_t point, uint32_t top) noexcept nogil:
    cdef const vector[Exit]* exits = slice_exits(mask.index, slice, point, top)
    cdef size_t i
    for i in range(exits.size()):
        self_loop_leave_at(mask, start, self_loop, exits[0][i], point, top)


cdef void self_loop_exits(LexMask* mask, LexState* start, SelfLoop* self_loop, Slice* slice, uint32_t top) noexcept nogil:
    # What leads out of C below a trie node, at which the lexeme stands in `start`.
    cdef Index* index = mask.index
    cdef LazyDfa* dfa = start.automaton.dfa
    cdef vector[CodeRange] points
    cdef CodeRange span
    cdef Exit exit
    cdef size_t i, position
    cdef uint32_t end = index.trie.nodes[top].end
    cdef int32_t cls, point
    cdef cbool wide = False
    self_loop_points(start.automaton, self_loop.leaving, points)
    for span in points:
        # SmallVector characters, with many nodes each; the others are many with few.
        for point in range(span.low, 128):
            if point <= span.high:
                self_loop_leave_over(mask, start, self_loop, slice, point, top)
        position = index_first(index, span.low if span.low > 128 else 128)
        while position < index.by_char.chars.size() and index.by_char.chars[position].point <= span.high:
            if (top < index.by_char.chars[position].node < end
                    and slice_exit(index, slice, position, top, &exit)):
                self_loop_leave_at(mask, start, self_loop, exit, index.by_char.chars[position].point, top)
            position += 1
    if start.automaton.spelling != SPELLING_UTF8:
        self_loop_leave_over(mask, start, self_loop, slice, BACKSLASH, top)
        if self_loop.closing:
            self_loop_leave_over(mask, start, self_loop, slice, QUOTE, top)
    for cls in dfa.range_class:
        wide = wide or (cls != NO_CLASS and (set_has(self_loop.leaving, cls) or set_has(self_loop.classes, cls)))
    if not wide:
        return
    for i in range(index_first_part(index, top), index_first_part(index, end - 1)):
        if slice_left_inside(index, slice, index.by_char.parts[i], top):
            self_loop_exit(mask, start, index_text(index, index.by_char.parts[i].node), index.by_char.parts[i].node, top, False)


cdef cbool self_loop_fill(LexMask* mask, LexState* start) noexcept nogil:
    # The mask of a state between two characters that is in a self-loop somewhere; False when it is not.
    cdef SelfLoop self_loop
    cdef Slice* slice
    cdef vector[CodeRange] points
    if start.form != FORM_TEXT or not self_loop_find(start.automaton, mask.index, start.dfa_state, &self_loop):
        return False
    self_loop_points(start.automaton, self_loop.classes, points)
    slice = index_slice(mask.index, points)
    mask.bits = bits_hold(slice_limited(mask.index, slice, self_loop.room))
    if not self_loop.ends.distances.empty():
        ends_remove(mask, start, 0, &self_loop.ends)
    self_loop_exits(mask, start, &self_loop, slice, 0)
    if start.automaton.spelling == SPELLING_UTF8 and self_loop.tag >= 0:
        mask.open_tag = self_loop.tag
        lexmask_forget_crossing(mask, mask.open_tag)
    return True


cdef cbool self_loop_fill_below(LexMask* mask, LexState* state, uint32_t top) noexcept nogil:
    # The tokens below a node at which the lexeme stands in `state`, where that is in a self-loop; False when it is not.
    cdef Index* index = mask.index
    cdef SelfLoop self_loop
    cdef vector[CodeRange] points
    cdef Slice* slice
    cdef Bits* below
    if (<int64_t>(index.trie.nodes[top].end - top) <= index.self_loop_least or state.form != FORM_TEXT
            or state.automaton.spelling == SPELLING_UTF8
            or not self_loop_find(state.automaton, index, state.dfa_state, &self_loop)):
        return False
    self_loop_points(state.automaton, self_loop.classes, points)
    slice = index_slice(index, points)
    mask.bits = bits_owned(index, mask.bits)
    below = slice_below(index, slice, top)
    bits_unite(mask.bits, below)
    slice_cut_below(index, mask.bits, below, top, self_loop.room)
    if not self_loop.ends.distances.empty():
        ends_remove(mask, state, top, &self_loop.ends)
    self_loop_exits(mask, state, &self_loop, slice, top)
    return True


cdef LexMask* lexmask_make(LexState* state, Index* index) noexcept nogil:
    cdef LexMask* mask = lexmask_new(index)
    if state.automaton.kind == KIND_TEXT:
        if not self_loop_fill(mask, state):
            lexmask_walk(mask, state, 0)
    elif state.automaton.kind == KIND_WORDS:
        words_walk(mask, state)
    else:
        if state.base != NULL:
            mask.base = lexmask_get(state.base, index)
            if mask.base == NULL:
                return mask
            mask.base.holders.add(1)
        key_walk(mask, state)
    lexmask_finish(mask)
    return mask


cdef LexMask* lexmask_get(LexState* state, Index* index) noexcept nogil:
    # NULL when time is up: an unfinished mask is never kept.
    cdef MaskTable* table = state.automaton.counted if state.automaton.kind == KIND_TEXT else NULL
    cdef LexMask* mask = state.mask
    cdef string key
    if mask != NULL:
        mask.used = True
        return mask
    if table != NULL:
        key = lexmask_key(state, index.by_char.longest)
        found = table.masks.find(key)
        if found != table.masks.end():
            state.mask = dereference(found).second
            state.mask.holders.add(1)
            return state.mask
    mask = lexmask_make(state, index)
    if index.deadline.passed:
        lexmask_release(mask)
        return NULL
    state.mask = mask
    if table != NULL:
        masktable_add(table, key, mask)
    return mask


cdef LexMask* lexmask_borrow(LexState* state, Index* index) noexcept nogil:
    # The same, held until it is released: others may have their turn meanwhile, and let go of masks that are not used.
    cdef LexMask* mask = lexmask_get(state, index)
    if mask != NULL:
        mask.holders.add(1)
    return mask


cdef cbool evict_lexmask(LexMask* mask, cbool all_of_them) noexcept nogil:
    # Whether it was let go of.
    if mask.used and not all_of_them:
        mask.used = False
        return False
    lexmask_release(mask)
    return True


cdef void evict_lexstate(LexState* state, cbool all_of_them) noexcept nogil:
    if state.mask != NULL and evict_lexmask(state.mask, all_of_them):
        state.mask = NULL


cdef void masktable_evict(MaskTable* table, cbool all_of_them) noexcept nogil:
    cdef vector[string] gone
    cdef pair[string, LexMask*] entry
    cdef size_t i
    for entry in table.masks:
        if evict_lexmask(entry.second, all_of_them):
            gone.push_back(entry.first)
    for i in range(gone.size()):
        table.masks.erase(gone[i])
