# The mask of a lexer state: made, kept, and let go of; from slices of the vocabulary where the state loops on many characters.

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint32_t
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.limits cimport deadline_passed
from maskwright._engine.trie cimport Trie, TrieNode
from maskwright._engine.vocabulary cimport Exit, LAST_CODE_POINT, Slice
from maskwright._engine.char_index cimport (
    bits_hold, bits_owned, bits_unite, index_count, index_first, index_first_part, index_text, text_point
)
from maskwright._engine.slices cimport (
    index_slice, slice_below, slice_exit, slice_exits, slice_left_inside, slice_limited
)
from maskwright._engine.lexemes cimport CodeAutomaton, KIND_TEXT, KIND_WORDS, NO_CLASS, NO_TAG
from maskwright._engine.lazy_dfa cimport CODE_DEAD, code_next, code_sustained, codes_class, set_add, set_has
from maskwright._engine.lexeme_texts cimport (
    BACKSLASH, FORM_TEXT, LEX_DEAD, QUOTE, SPELLING_UTF8, text_after, text_state
)
from maskwright._engine.lexeme_state cimport lex_next
from maskwright._engine.lexeme_walks cimport (
    home_close, key_walk, lexmask_finish, lexmask_forget_crossing, lexmask_key, lexmask_new, lexmask_release,
    lexmask_walk, words_walk
)

# --- Masks of lexer states that loop on many characters, without a walk of the whole trie.
#
# A state is *at home* with a set C of characters when every text over C leaves the lexeme alive (or
# every text of at most `room` characters, and no longer one).  Then the tokens over C are a slice,
# and only those with a first character outside C, the *exits*, have to be followed.
#
# C is found in one of four ways.  A single item of a state that comes back to itself over C sustains
# any state that holds it (a pattern that may match anywhere).  Else C is grown greedily, classes
# with the most trie nodes first, as long as few states are reached; or, where characters are
# counted, all classes of C lead through the same states up to the bound.  Where many states are reached (keys of which some
# match a pattern), it is enough that all are alive over all classes.
#
# Plain text may be *open* at home: the lexeme may end anywhere in it.  Then nearly every token has a crossing at every
# byte; these are looked for only when something can follow (lexmask_open).

cdef struct ClassMass:
    int32_t cls
    int32_t mass


cdef cbool mass_before(const ClassMass& a, const ClassMass& b) noexcept nogil:
    return a.mass > b.mass or (a.mass == b.mass and a.cls < b.cls)


cdef cbool raw_in_text(const Automaton* automaton, int32_t point) noexcept nogil:
    # Whether a character stands for itself.
    return automaton.spelling == SPELLING_UTF8 or (point >= 0x20 and point != QUOTE and point != BACKSLASH)


cdef void home_count(Automaton* automaton, const Index* index) noexcept nogil:
    # Trie nodes by class.
    cdef CodeAutomaton* codes = automaton.codes
    cdef int32_t point, high
    cdef size_t i
    automaton.class_mass.resize(<size_t>codes.classes, 0)
    for point in range(128):
        if codes.ascii_class[point] != NO_CLASS and raw_in_text(automaton, point):
            automaton.class_mass[codes.ascii_class[point]] += index_count(index, point, point)
    for i in range(codes.range_low.size()):
        if codes.range_class[i] != NO_CLASS:
            high = codes.range_low[i + 1] - 1 if i + 1 < codes.range_low.size() else LAST_CODE_POINT
            automaton.class_mass[codes.range_class[i]] += index_count(index, codes.range_low[i], high)


cdef cbool home_accepts_alike(const Automaton* automaton, Home* home, const CodeState* target) noexcept nogil:
    # Whether a state behind a character accepts as the others do.
    if automaton.spelling != SPELLING_UTF8:
        return True
    if home.tag == NOT_KNOWN:
        home.tag = target.tag
    return home.tag == target.tag


cdef cbool home_reach(Automaton* automaton, Home* home, CodeState* start) noexcept nogil:
    # Find the states reached over C; False when one dies, accepts unlike another, or there are too many.
    cdef CodeAutomaton* codes = automaton.codes
    cdef CodeState* target
    cdef size_t i, j
    cdef int32_t cls
    cdef cbool known
    home.states.clear()
    home.states.push_back(start)
    home.tag = NOT_KNOWN
    i = 0
    while i < home.states.size():
        for cls in range(codes.classes):
            if not set_has(home.classes, cls):
                continue
            target = code_next(codes, home.states[i], cls)
            if target == CODE_DEAD or not home_accepts_alike(automaton, home, target):
                return False
            known = False
            for j in range(home.states.size()):
                known = known or home.states[j] == target
            if not known:
                if home.states.size() == HOME_STATES:
                    return False
                home.states.push_back(target)
        i += 1
    return True


cdef void home_grow(Automaton* automaton, Home* home, CodeState* start,
                    vector[ClassMass]& order) noexcept nogil:
    # Texts of any length.
    cdef ClassMass each
    cdef vector[CodeState*] before
    cdef int32_t tag = NOT_KNOWN
    home.room = -1
    for each in order:
        set_add(home.classes, each.cls)
        before = home.states
        if home_reach(automaton, home, start):
            home.mass += each.mass
            tag = home.tag
        else:
            home.classes[<size_t>each.cls >> 6] &= ~((<uint64_t>1) << (each.cls & 63))
            home.states.swap(before)
    home.tag = tag


cdef void home_follow(Automaton* automaton, Home* home, CodeState* start, vector[ClassMass]& order,
                      int32_t longest) noexcept nogil:
    # Texts up to a length: all classes of C lead through the same states.
    cdef CodeAutomaton* codes = automaton.codes
    cdef CodeState* state = start
    cdef CodeState* target
    cdef ClassMass each
    cdef size_t i
    cdef cbool agrees
    home.counting = True
    home.tag = NOT_KNOWN
    while state != CODE_DEAD and <int32_t>home.states.size() <= longest:
        if not home.states.empty() and not home_accepts_alike(automaton, home, state):
            return
        home.states.push_back(state)
        state = code_next(codes, state, order[0].cls)
    # No token is longer than `longest`: then it is as if there were no bound.
    home.room = -1 if state != CODE_DEAD else <int32_t>home.states.size() - 1
    if home.room == 0:
        return
    for each in order:
        agrees = True
        for i in range(home.states.size()):
            target = home.states[i + 1] if i + 1 < home.states.size() else state
            if code_next(codes, home.states[i], each.cls) != target:
                agrees = False
                break
        if agrees:
            set_add(home.classes, each.cls)
            home.mass += each.mass


cdef void home_sustain(Automaton* automaton, Home* home, CodeState* start) noexcept nogil:
    # An item that comes back to itself: what the others do cannot end the lexeme.
    cdef CodeAutomaton* codes = automaton.codes
    cdef const vector[uint64_t]* own
    cdef int32_t cls, mass
    cdef uint64_t item
    for item in start.items:
        own = code_sustained(codes, <int32_t>(item >> 32))
        mass = 0
        for cls in range(codes.classes):
            if set_has(own[0], cls):
                mass += automaton.class_mass[cls]
        if mass > home.mass:
            home.mass = mass
            home.classes = own[0]
    home_leave_any(automaton, home)


cdef cbool home_spread(Automaton* automaton, Home* home, CodeState* start, vector[ClassMass]& order,
                       const Index* index) noexcept nogil:
    # Many states: all classes, when no text of the length of a token ends the lexeme.
    cdef CodeAutomaton* codes = automaton.codes
    cdef unordered_map[int64_t, char] known
    cdef vector[CodeState*] states
    cdef CodeState* target
    cdef ClassMass each
    cdef size_t i = 0, last
    cdef int32_t depth
    for each in order:
        set_add(home.classes, each.cls)
        home.mass += each.mass
    home_leave_any(automaton, home)
    if not home_pays(home, index):
        return False
    states.push_back(start)
    known[<int64_t>start] = 1
    for depth in range(index.longest):
        last = states.size()
        while i < last:
            for each in order:
                target = code_next(codes, states[i], each.cls)
                if target == CODE_DEAD or states.size() > SPREAD_STATES:
                    return False
                if known.count(<int64_t>target) == 0:
                    known[<int64_t>target] = 1
                    states.push_back(target)
            i += 1
        if last == states.size():
            break
    return True


cdef void home_leave_any(Automaton* automaton, Home* home) noexcept nogil:
    # Where it is not known which states are reached, all else may lead on.
    cdef int32_t cls
    home.room = -1
    home.closing = True
    home.exits = 0
    for cls in range(automaton.codes.classes):
        if not set_has(home.classes, cls):
            set_add(home.leaving, cls)
            home.exits += automaton.class_mass[cls]


cdef void home_leave(Automaton* automaton, Home* home) noexcept nogil:
    # What leads out of the states reached.
    cdef CodeAutomaton* codes = automaton.codes
    cdef CodeState* state
    cdef int32_t cls
    home.closing = False
    home.exits = 0
    home.leaving.assign(home.classes.size(), 0)
    for state in home.states:
        home.closing = home.closing or state.tag != NO_TAG
        for cls in range(codes.classes):
            if not set_has(home.classes, cls) and not set_has(home.leaving, cls) \
                    and code_next(codes, state, cls) != CODE_DEAD:
                set_add(home.leaving, cls)
                home.exits += automaton.class_mass[cls]


cdef cbool home_pays(const Home* home, const Index* index) noexcept nogil:
    if home.mass == 0:
        return False
    return index.home_least == 0 or (home.mass >= index.home_least
                                     and <int64_t>home.exits * EXIT_COST <= home.mass)


cdef void home_forget(Home* home) noexcept nogil:
    home.mass = 0
    home.counting = False
    home.states.clear()
    home.classes.assign(home.classes.size(), 0)
    home.leaving = home.classes


cdef cbool home_find(Automaton* automaton, const Index* index, CodeState* start, Home* home) noexcept nogil:
    cdef CodeAutomaton* codes = automaton.codes
    cdef vector[ClassMass] order
    cdef ClassMass each
    cdef CodeState* state = start
    cdef int32_t steps = 0
    home.classes.resize(<size_t>(codes.classes >> 6) + 1)
    home_forget(home)
    if automaton.class_mass.empty():
        home_count(automaton, index)
    if automaton.spelling != SPELLING_UTF8:
        home_sustain(automaton, home, start)
        if home_pays(home, index):
            return True
        home_forget(home)
    for each.cls in range(codes.classes):
        each.mass = automaton.class_mass[each.cls]
        # Characters in few tokens are cheap to follow.
        if each.mass * 8 > index.home_least and code_next(codes, start, each.cls) != CODE_DEAD:
            order.push_back(each)
    if order.empty():
        return False
    sort(order.begin(), order.end(), &mass_before)
    # Does the heaviest class come back to a state, or does it count?
    while state != CODE_DEAD and steps < HOME_STATES:
        state = code_next(codes, state, order[0].cls)
        if state != CODE_DEAD and code_next(codes, state, order[0].cls) == state:
            home_grow(automaton, home, start, order)
            break
        steps += 1
    else:
        home_follow(automaton, home, start, order, index.longest)
    home_leave(automaton, home)
    if home_pays(home, index):
        return True
    if automaton.spelling == SPELLING_UTF8:
        return False
    home_forget(home)
    return home_spread(automaton, home, start, order, index)


# --- the mask -------------------------------------------------------------------------------

cdef void home_points(Automaton* automaton, const vector[uint64_t]& classes,
                      vector[CodeRange]& points) noexcept nogil:
    # The characters of a set of classes that stand for themselves, as ranges.
    cdef CodeAutomaton* codes = automaton.codes
    cdef int32_t point
    cdef size_t i
    cdef CodeRange span
    for point in range(128):
        if codes.ascii_class[point] != NO_CLASS and set_has(classes, codes.ascii_class[point]) \
                and raw_in_text(automaton, point):
            if not points.empty() and points.back().high == point - 1:
                points.back().high = point
            else:
                span.low = span.high = point
                points.push_back(span)
    for i in range(codes.range_low.size()):
        if codes.range_class[i] == NO_CLASS or not set_has(classes, codes.range_class[i]):
            continue
        span.low = codes.range_low[i]
        span.high = codes.range_low[i + 1] - 1 if i + 1 < codes.range_low.size() else LAST_CODE_POINT
        if not points.empty() and points.back().high == span.low - 1:
            points.back().high = span.high
        else:
            points.push_back(span)


cdef LexState* home_enter(LexState* start, const uint8_t* text, size_t end) noexcept nogil:
    # The lexer state behind text[:end], characters of C but for the last one, which may be cut short; LEX_DEAD when they
    # are more than the lexeme takes.
    cdef Automaton* automaton = start.automaton
    cdef CodeAutomaton* codes = automaton.codes
    cdef CodeState* code = start.code
    cdef LexState* state
    cdef size_t at = 0, before
    cdef int32_t point
    while True:
        before = at
        point = text_point(text, end, &at)
        if at == end:
            break
        code = code_next(codes, code, codes_class(codes, point))
        if code == CODE_DEAD:
            return LEX_DEAD
    state = text_state(automaton, code, FORM_TEXT, 0, 0)
    while before < end and state != LEX_DEAD:
        state = lex_next(state, text[before])
        before += 1
    return state


cdef void home_walk(LexMask* mask, LexState* state, uint32_t node, cbool below) noexcept nogil:
    # The tokens at a node (and below), where the lexeme stands in `state`.
    cdef const Trie* trie = mask.index.trie
    cdef int32_t t
    for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
        mask.inside.push_back(trie.tokens[t])
    if below and node + 1 < trie.nodes[node].end and not home_fill_below(mask, state, node):
        lexmask_walk(mask, state, node)


cdef CodeState* home_after(const Home* home, int32_t count) noexcept nogil:
    # The state behind `count` characters of C; NULL when it depends on them.
    if home.counting:
        return home.states[count] if count < <int32_t>home.states.size() else CODE_DEAD
    return home.states[0] if home.states.size() == 1 else NULL


cdef void home_exit(LexMask* mask, LexState* start, const uint8_t* text, uint32_t node, uint32_t top,
                    cbool below) noexcept nogil:
    # The tokens at a node (and below) that are reached over C and one more character from `top`, where `start` stands.
    # `text`: the bytes from the root to the node.
    cdef const TrieNode* nodes = mask.index.trie.nodes.data()
    cdef LexState* state
    if deadline_passed(&mask.index.deadline):
        return
    state = home_enter(start, text + nodes[top].depth, <size_t>nodes[node].depth - nodes[top].depth)
    if state != LEX_DEAD:
        home_walk(mask, state, node, below)


cdef void home_leave_at(LexMask* mask, LexState* start, Home* home, const Exit& exit,
                        int32_t point, uint32_t top) noexcept nogil:
    # A character outside C behind characters of C, from `top` on.
    cdef Automaton* automaton = start.automaton
    cdef CodeState* code = home_after(home, exit.count)
    cdef LexState* state
    if code == NULL or deadline_passed(&mask.index.deadline):
        home_exit(mask, start, exit.text, exit.node, top, True)
    elif code == CODE_DEAD:
        return
    elif raw_in_text(automaton, point):
        state = text_after(automaton, code, point)
        if state != LEX_DEAD:
            home_walk(mask, state, exit.node, True)
    elif point == QUOTE:
        if code.tag != NO_TAG:
            home_close(mask, exit.node, code.tag)
    else:
        state = lex_next(text_state(automaton, code, FORM_TEXT, 0, 0), BACKSLASH)
        if state != LEX_DEAD:
            home_walk(mask, state, exit.node, True)


cdef void home_leave_over(LexMask* mask, LexState* start, Home* home, Slice* slice, int32_t point, uint32_t top) noexcept nogil:
    cdef const vector[Exit]* exits = slice_exits(mask.index, slice, point, top)
    cdef size_t i
    for i in range(exits.size()):
        home_leave_at(mask, start, home, exits[0][i], point, top)


cdef void home_exits(LexMask* mask, LexState* start, Home* home, Slice* slice, uint32_t top) noexcept nogil:
    # What leads out of C below a trie node, at which the lexeme stands in `start`.
    cdef Index* index = mask.index
    cdef CodeAutomaton* codes = start.automaton.codes
    cdef vector[CodeRange] points
    cdef CodeRange span
    cdef Exit exit
    cdef size_t i, position
    cdef uint32_t end = index.trie.nodes[top].end
    cdef int32_t cls, point
    cdef cbool wide = False
    home_points(start.automaton, home.leaving, points)
    for span in points:
        # Few characters, with many nodes each; the others are many with few.
        for point in range(span.low, 128):
            if point <= span.high:
                home_leave_over(mask, start, home, slice, point, top)
        position = index_first(index, span.low if span.low > 128 else 128)
        while position < index.chars.size() and index.chars[position].point <= span.high:
            if (top < index.chars[position].node < end
                    and slice_exit(index, slice, position, top, &exit)):
                home_leave_at(mask, start, home, exit, index.chars[position].point, top)
            position += 1
    if start.automaton.spelling != SPELLING_UTF8:
        home_leave_over(mask, start, home, slice, BACKSLASH, top)
        if home.closing:
            home_leave_over(mask, start, home, slice, QUOTE, top)
    for cls in codes.range_class:
        wide = wide or (cls != NO_CLASS and (set_has(home.leaving, cls) or set_has(home.classes, cls)))
    if not wide:
        return
    for i in range(index_first_part(index, top), index_first_part(index, end - 1)):
        if slice_left_inside(index, slice, index.parts[i], top):
            home_exit(mask, start, index_text(index, index.parts[i].node), index.parts[i].node, top, False)


cdef cbool home_fill(LexMask* mask, LexState* start) noexcept nogil:
    # The mask of a state between two characters that is at home somewhere; False when it is not.
    cdef Home home
    cdef Slice* slice
    cdef vector[CodeRange] points
    if start.form != FORM_TEXT or not home_find(start.automaton, mask.index, start.code, &home):
        return False
    home_points(start.automaton, home.classes, points)
    slice = index_slice(mask.index, points)
    mask.bits = bits_hold(slice_limited(mask.index, slice, home.room))
    home_exits(mask, start, &home, slice, 0)
    if start.automaton.spelling == SPELLING_UTF8 and home.tag >= 0:
        mask.open_tag = home.tag
        lexmask_forget_crossing(mask, mask.open_tag)
    return True


cdef cbool home_fill_below(LexMask* mask, LexState* state, uint32_t top) noexcept nogil:
    # The tokens below a node at which the lexeme stands in `state`, where that is at home; False when it is not.
    cdef Index* index = mask.index
    cdef Home home
    cdef vector[CodeRange] points
    cdef Slice* slice
    if (<int64_t>(index.trie.nodes[top].end - top) <= index.home_least or state.form != FORM_TEXT
            or state.automaton.spelling == SPELLING_UTF8
            or not home_find(state.automaton, index, state.code, &home) or home.room >= 0):
        return False
    home_points(state.automaton, home.classes, points)
    slice = index_slice(index, points)
    mask.bits = bits_owned(index, mask.bits)
    bits_unite(mask.bits, slice_below(index, slice, top))
    home_exits(mask, state, &home, slice, top)
    return True


cdef LexMask* lexmask_make(LexState* state, Index* index) noexcept nogil:
    cdef LexMask* mask = lexmask_new(index)
    if state.automaton.kind == KIND_TEXT:
        if not home_fill(mask, state):
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
        key = lexmask_key(state, index.longest)
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
        table.masks[key] = mask
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
