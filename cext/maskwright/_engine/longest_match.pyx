# The lexer of a grammar that has one: contextual, with maximal munch (maskwright.ir.grammar.Lexing).
#
# All terminals are one automaton.  Where a lexeme begins, the parser state waits for a set of terminals;
# the lexer starts in the set of their first states, so that a lexer state tells what these terminals
# alone do, and its tag is the best of those that match.  Which keyword beats which identifier is static.
#
# A match must be the longest one.  When a terminal ends, its lexer state lives on as a *lookahead*: it reads
# what follows as well, and as soon as it accepts, there is a longer match and the thread dies.
# A lookahead that is dead lookaheads nothing and is dropped, mostly at the next byte.  Several lookaheads are
# joined: a state of this automaton is a set.
#
# Which threads can be completed is a question of the context, and of what samples of terminals in a row are read as
# (longest_match_samples.pyx).

from cython.operator cimport dereference
from libc.stdint cimport uint32_t

from maskwright._engine.sizes cimport bits_has
from maskwright._engine.limits cimport deadline_passed
from maskwright._engine.lexemes cimport DfaState, LazyDfa
from maskwright._engine.lazy_dfa cimport DFA_DEAD, dfa_intern, dfa_next, dfa_range_of
from maskwright._engine.lexeme_texts cimport FORM_TEXT, FORM_UTF8, FORM_UTF8_SETTLED, text_state, utf8_first, utf8_last
from maskwright._engine.lexeme_state cimport lex_goes_on

cdef enum:
    CLOSE_STATES = 64      # looked at to find where a lexeme can be left in any context


cdef cbool guard_is_idle(const RefusalGuard& guard, const vector[char]& waited) noexcept nogil:
    # Whether a terminal may come beside which nothing is refused.
    cdef size_t i
    for i in range(guard.unless.size()):
        if waited[guard.unless[i]]:
            return True
    return False


cdef LexState* lexer_begin(Automaton* automaton, const vector[int32_t]& terminals) noexcept nogil:
    # Before any of some terminals.
    cdef Lexer* lexer = lexer_of(automaton)
    cdef vector[uint64_t] items
    cdef vector[char] waited
    cdef size_t i
    for i in range(terminals.size()):
        items.push_back((<uint64_t>lexer.first[terminals[i]]) << 32)
    if not lexer.guards.empty():
        waited.resize(lexer.first.size(), 0)
        for i in range(terminals.size()):
            waited[terminals[i]] = 1
        for i in range(lexer.guards.size()):
            if waited[lexer.guards[i].owner] and not guard_is_idle(lexer.guards[i], waited):
                items.push_back((<uint64_t>lexer.guards[i].start) << 32)
    return text_state(automaton, dfa_intern(automaton.dfa, items), FORM_TEXT, 0, 0)


cdef LexState* lexer_start(Automaton* automaton, vector[int32_t]& terminals) noexcept nogil:
    # Before any of some terminals, or an ignored one.
    cdef vector[uint64_t] bits
    cdef int32_t terminal
    for terminal in terminals:
        terminals_add(bits, terminal)
    return lexer_start_set(automaton, bits)


cdef LexState* lexer_start_set(Automaton* automaton, vector[uint64_t]& bits) noexcept nogil:
    # The same for a set of terminals.
    cdef Lexer* lexer = lexer_of(automaton)
    cdef vector[int32_t] terminals
    cdef string key
    cdef int32_t known, terminal
    if not lexer.placed:
        for terminal in lexer.ignored_ones:
            terminals_add(bits, terminal)
    while not bits.empty() and bits.back() == 0:
        bits.pop_back()
    key.assign(<const char*>bits.data(), bits.size() * sizeof(uint64_t))
    known = lexer.start_ids.find(key)
    if known < 0:
        known = <int32_t>lexer.starts.size()
        lexer.start_ids.insert(key, known)
        for terminal in range(64 * <int32_t>bits.size()):
            if (bits[<size_t>(terminal >> 6)] >> (terminal & 63)) & 1:
                terminals.push_back(terminal)
        lexer.starts.push_back(lexer_begin(automaton, terminals))
    return lexer.starts[known]


cdef void terminal_sets(const uint8_t* rows, size_t size, size_t count, vector[vector[int32_t]]& out) noexcept nogil:
    # Sets of numbers below `count`, from rows of bits.
    cdef size_t i, j, width = (count + 7) // 8
    out.resize(size // width)
    for i in range(out.size()):
        for j in range(count):
            if rows[i * width + j // 8] >> (j & 7) & 1:
                out[i].push_back(<int32_t>j)


cdef cbool lexer_skips(const LexState* state) noexcept nogil:
    # Whether this may become an ignored terminal.
    cdef size_t i
    for i in range(state.dfa_state.items.size()):
        if lexer_of(state.automaton).skips[<size_t>(state.dfa_state.items[i] >> 32)]:
            return True
    return False


# --- lookaheads --------------------------------------------------------------------------------

cdef LexState* lookahead_join(LexState* lookahead, LexState* ended) noexcept nogil:
    # The lookahead behind a terminal that ended in `ended`.  Both are between two characters.
    cdef vector[uint64_t] items
    if not lex_goes_on(ended):
        return lookahead
    if lookahead == NULL or lookahead == ended:
        return ended
    items.assign(lookahead.dfa_state.items.begin(), lookahead.dfa_state.items.end())
    items.insert(items.end(), ended.dfa_state.items.begin(), ended.dfa_state.items.end())
    return text_state(ended.automaton, dfa_intern(ended.automaton.dfa, items), FORM_TEXT, 0, 0)


cdef cbool lookahead_read(LexState** lookahead, const string& text) noexcept nogil:
    cdef size_t i
    for i in range(text.size()):
        if not lookahead_step(lookahead, <uint8_t>text[i]):
            return False
    return True


cdef cbool lookahead_passes(LexState* lookahead, const string& text) noexcept nogil:
    # Whether a lookahead lets an ignored text pass, and samples behind it.  Dead: what comes before is not read at all, as
    # another terminal ends it (Lexing.early).
    if lookahead == LEX_DEAD or not lookahead_read(&lookahead, text):
        return False
    return lookahead == NULL or (lexer_opens(lookahead, NO_TAG) and lookahead_is_harmless(lookahead, NO_TAG))


cdef cbool lookahead_passes_terminal(LexState* lookahead, int32_t terminal) noexcept nogil:
    # Whether a lookahead lets a terminal's sample pass, and samples that may come behind it.
    if lookahead == LEX_DEAD or not lookahead_read(&lookahead, lexer_of(lookahead.automaton).samples.texts[terminal]):
        return False
    return lookahead == NULL or (lexer_opens(lookahead, terminal)
                                 and (lookahead_is_harmless(lookahead, NO_TAG) or lookahead_is_harmless(lookahead, terminal)))


cdef cbool lookahead_passes_both(LexState* lookahead, const string& gap, int32_t terminal) noexcept nogil:
    # Whether it lets a gap and a terminal's sample pass.  In a lexer of several grammars, samples of others never come behind the gap.
    return lookahead != LEX_DEAD and lookahead_read(&lookahead, gap) and (
        lookahead == NULL or lookahead_passes_terminal(lookahead, terminal))


cdef cbool lexer_opens(LexState* ended, int32_t terminal) noexcept nogil:
    # Whether the lookahead behind a terminal (NO_TAG: not known) lets pass the lexemes that no lexer reads and that may come there: it
    # dies at their first byte.
    cdef LexerSamples* samples = &lexer_of(ended.automaton).samples
    cdef LexState* lookahead
    cdef int32_t byte
    if samples.opens.empty() or (terminal != NO_TAG and not samples.opens[terminal]):
        return True
    for byte in range(256):
        lookahead = ended
        if bits_has(samples.first, <uint8_t>byte) and not (lookahead_step(&lookahead, <uint8_t>byte) and lookahead == NULL):
            return False
    return True


cdef cbool lookahead_is_harmless(LexState* start, int32_t terminal) noexcept nogil:
    # Whether no row of samples that may come behind a terminal (NO_TAG: none that may come anywhere) is matched from here, with gaps or
    # without.  Behind the blanks of a line of Markdown, no line end makes an empty line of it.
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef vector[pair[int32_t, int32_t]] work
    cdef unordered_map[int64_t, char] seen
    cdef pair[int32_t, int32_t] place
    cdef int64_t key = harmless_key(start, terminal)
    cdef int32_t behind
    cdef size_t head = 0, i
    cdef cbool passes = True
    cdef char verdict = 2
    if terminal != NO_TAG and (lexer.follow.empty() or lexer.samples.next.empty()):
        return False
    found = lexer.cache.harmless.find(key)
    if found != lexer.cache.harmless.end():
        return dereference(found).second == 1
    work.push_back(pair[int32_t, int32_t](start.id, terminal))
    seen[key] = 1
    while passes and head < work.size():
        place = work[head]
        head += 1
        for i in range(lexer.samples.gaps.size()):
            passes = passes and lookahead_goes_on(start.automaton, place.first, lexer.samples.gaps[i], NO_TAG, place.second, work, seen)
        if place.second != NO_TAG:
            for behind in lexer.samples.next[place.second]:
                passes = passes and (lexer.ignored[behind] or lookahead_goes_on(
                    start.automaton, place.first, lexer.samples.texts[behind], behind, behind, work, seen))
            continue
        for i in range(lexer.samples.texts.size()):
            passes = passes and (lexer.ignored[i] or lookahead_goes_on(
                start.automaton, place.first, lexer.samples.texts[i], <int32_t>i, NO_TAG, work, seen))
    if passes:
        verdict = 1
    if not deadline_passed(&start.automaton.index.deadline):
        lexer.cache.harmless[key] = verdict
    for i in range(work.size() if passes else 0):
        lexer.cache.harmless[harmless_key(start.automaton.states[work[i].first], work[i].second)] = 1
    return passes


cdef inline int64_t harmless_key(const LexState* lookahead, int32_t terminal) noexcept nogil:
    return (<int64_t>lookahead.id << 32) | <uint32_t>terminal


cdef cbool lookahead_goes_on(Automaton* automaton, int32_t state, const string& text, int32_t read, int32_t terminal,
                             vector[pair[int32_t, int32_t]]& work, unordered_map[int64_t, char]& seen) noexcept nogil:
    # Whether a lookahead lets a text pass, that of a terminal (NO_TAG: a gap); where it lives on, what comes behind it is left to look at.
    cdef LexState* lookahead = automaton.states[state]
    cdef int64_t key
    if deadline_passed(&automaton.index.deadline) or not lookahead_read(&lookahead, text):
        return False
    if lookahead == NULL:
        return True
    key = harmless_key(lookahead, terminal)
    if seen.count(key) == 0:
        if work.size() == CLOSE_STATES or not lexer_opens(lookahead, read):
            return False
        seen[key] = 1
        work.push_back(pair[int32_t, int32_t](lookahead.id, terminal))
    return True


# --- Where a lexeme of a grammar that has a lexer can be left: whether a thread can be completed, whatever the context.
#
# Of a safe lexer (longest_match.pyx) this is a flag of the lexer state, found once: some sample or gap may stand behind it, and no lookahead
# that lives on refuses that.

cdef cbool serves_all(const Lexer* lexer, const vector[char]& serves) noexcept nogil:
    # Whether a gap may stand before every terminal.
    cdef size_t i
    for i in range(serves.size()):
        if not (serves[i] or lexer.ignored[i]):
            return False
    return True


cdef cbool lexer_gap_passes(LexState* lookahead) noexcept nogil:
    # Whether a lookahead lets some gap pass that may stand before every terminal.
    cdef Lexer* lexer = lexer_of(lookahead.automaton)
    cdef size_t i
    for i in range(lexer.samples.gaps.size()):
        if serves_all(lexer, lexer.samples.serves[i]) and lookahead_passes(lookahead, lexer.samples.gaps[i]):
            return True
    return False


cdef cbool lexer_follows(LexState* ended, int32_t behind) noexcept nogil:
    # Whether a terminal may come behind one that ended, directly or with a gap between.
    cdef Lexer* lexer = lexer_of(ended.automaton)
    cdef size_t i
    if lookahead_passes_terminal(ended, behind):
        return True
    for i in range(lexer.samples.gaps.size()):
        if lexer.samples.serves[i][behind] and (
                lookahead_passes(ended, lexer.samples.gaps[i]) or lookahead_passes_both(ended, lexer.samples.gaps[i], behind)):
            return True
    return False


cdef inline int32_t lexer_ended(const LexState* state) noexcept nogil:
    # The terminal that ends here, or NO_TAG.  A newline says in which column it ends (stacks.pyx).
    if not lexer_matched(state):
        return NO_TAG
    return state.tag if state.tag < <int32_t>lexer_of(state.automaton).first.size() else lexer_of(state.automaton).newline


cdef cbool lexer_leaves_placed(LexState* state) noexcept nogil:
    # The same of a placed lexer: whether everything that may come next can.  Of a lookahead between two terminals,
    # it is not known what ended.
    cdef Lexer* lexer = lexer_of(state.automaton)
    cdef vector[int32_t] every
    cdef vector[int32_t]* behind = &every
    cdef int32_t terminal
    if not lex_goes_on(state):
        return True
    if lexer_matched(state):
        behind = &lexer.samples.next[lexer_ended(state)]
    else:
        for terminal in range(<int32_t>lexer.samples.texts.size()):
            every.push_back(terminal)
    for terminal in behind[0]:
        if not (lexer.ignored[terminal] or terminal == lexer.line_break or lexer_follows(state, terminal)):
            return False
    return True


cdef cbool lexer_look_leaves(LexState* state) noexcept nogil:
    # `lexer_leaves`, not known yet.
    cdef Lexer* lexer = lexer_of(state.automaton)
    cdef cbool leaves = not lex_goes_on(state) or lexer_opens(state, lexer_ended(state))
    cdef size_t i
    if leaves and lexer.placed:
        leaves = lexer_leaves_placed(state)
    elif leaves and lex_goes_on(state) and not lexer_gap_passes(state):
        for i in range(lexer.samples.texts.size()):
            leaves = leaves and (lexer.ignored[i] or lexer_follows(state, <int32_t>i))
    state.leaves = 1 if leaves else 2
    return leaves


cdef cbool lexer_look_closes(LexState* start) noexcept nogil:
    # `lexer_closes`, not known yet.  What is not found among CLOSE_STATES states is left to the context.
    cdef vector[LexState*] queue
    cdef vector[size_t] origin
    cdef unordered_map[int64_t, char] seen
    cdef LexState* target
    cdef size_t head = 0, at
    cdef uint8_t byte
    if start.form == FORM_UTF8_SETTLED:
        # Whichever character this becomes, what comes behind it is the same.
        target = text_state(start.automaton, start.dfa_state, FORM_TEXT, 0, 0)
        start.closes = 1 if lexer_closes(target) or (lexer_matched(target) and lexer_leaves(target)) else 2
        return start.closes == 1
    if lexer_matched(start) and lexer_leaves(start):
        start.closes = 1
        return True
    start.closes = 2
    queue.push_back(start)
    origin.push_back(0)
    while head < queue.size():
        target = queue[head]
        if target.closes == 1 or (lexer_matched(target) and lexer_leaves(target)):
            at = head
            while True:
                queue[at].closes = 1
                if at == 0:
                    return True
                at = origin[at]
        for byte in start.automaton.class_byte:
            target = lex_next(queue[head], byte)
            if target != LEX_DEAD and seen.count(<int64_t>target) == 0 and queue.size() < CLOSE_STATES:
                seen[<int64_t>target] = 1
                queue.push_back(target)
                origin.push_back(head)
        head += 1
    return False


cdef char lexer_pair_verdict(LexState* start, LexState* ahead) noexcept nogil:
    # Of a lexeme under way in `start` and a lookahead: 1 when it can be completed in any context, 2 when in none, because
    # the lookahead would always end first or with it.  0: it depends on the context, or is not found among CLOSE_STATES.
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef vector[pair[int32_t, int32_t]] queue
    cdef unordered_map[int64_t, char] seen
    cdef LexState* lex
    cdef LexState* lookahead
    cdef size_t head = 0
    cdef uint8_t byte
    cdef char verdict = 2
    cdef int64_t key = (<int64_t>start.id << 32) | ahead.id
    found = lexer.cache.pairs.find(key)
    if found != lexer.cache.pairs.end():
        return dereference(found).second
    queue.push_back(pair[int32_t, int32_t](start.id, ahead.id))
    seen[key] = 1
    while head < queue.size() and verdict != 1:
        for byte in start.automaton.class_byte:
            lookahead = start.automaton.states[queue[head].second]
            lex = lex_next(start.automaton.states[queue[head].first], byte)
            if lex == LEX_DEAD or not lookahead_step(&lookahead, byte):
                continue
            if lookahead == NULL or lexer_matched(lex) or queue.size() == CLOSE_STATES:
                verdict = 0
                if lookahead == NULL and lexer.samples.safe and (lexer_closes(lex) or (lexer_matched(lex) and lexer_leaves(lex))):
                    verdict = 1
                    break
                continue
            if seen.count((<int64_t>lex.id << 32) | lookahead.id) == 0:
                seen[(<int64_t>lex.id << 32) | lookahead.id] = 1
                queue.push_back(pair[int32_t, int32_t](lex.id, lookahead.id))
        head += 1
    lexer.cache.pairs[key] = verdict
    return verdict


cdef cbool lexer_useful(const Lexer* lexer, const DfaState* dfa_state) noexcept nogil:
    cdef size_t i
    for i in range(dfa_state.items.size()):
        if lexer.useful[<size_t>(dfa_state.items[i] >> 32)]:
            return True
    return False


cdef cbool lexer_look_never(LexState* lex) noexcept nogil:
    # `lexer_never`, not known yet.
    cdef Lexer* lexer = lexer_of(lex.automaton)
    cdef LazyDfa* dfa = lex.automaton.dfa
    cdef DfaState* target
    cdef int32_t first, last
    cdef size_t i
    lex.hopeless = 2 if lexer_useful(lexer, lex.dfa_state) else 1
    if lex.hopeless == 2 and lex.form == FORM_UTF8:
        # Of those that the character may become.
        first = utf8_first(lex.low, lex.left)
        last = utf8_last(lex.low, lex.left)
        lex.hopeless = 1
        i = dfa_range_of(dfa, first)
        while i < dfa.range_low.size() and dfa.range_low[i] <= last:
            target = dfa_next(dfa, lex.dfa_state, dfa.range_class[i])
            if target != DFA_DEAD and lexer_useful(lexer, target):
                lex.hopeless = 2
                break
            i += 1
    return lex.hopeless == 1


cdef cbool lexer_is_sure(const Hypothesis& each) noexcept nogil:
    # Whether a thread (one that stands in `lex`, with `lookahead`) can be completed in any context.  Before a
    # lexeme, `lex` is NULL.
    if each.lex == NULL:
        return each.lookahead == NULL or (each.lookahead.form == FORM_TEXT and lexer_leaves(each.lookahead))
    return lexer_closes(each.lex) if each.lookahead == NULL else lexer_pair_verdict(each.lex, each.lookahead) == 1
