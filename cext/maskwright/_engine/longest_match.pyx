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
# Which threads can be completed is a question of the context.  Each terminal has a *sample*, a text of
# its own.  The lexer is *safe* when samples in a row are always read as what they are, those that may follow each
# other directly or with an ignored text, the *gap*, between them: then whatever the grammar accepts can be written,
# and a thread is alive as soon as its lexeme can be left.  Rows that the grammar can always do without (line ends
# behind line ends, say; maskwright.compiling.adjacency) do not count.

from cython.operator cimport dereference

from maskwright._engine.limits cimport deadline_look, deadline_passed
from maskwright._engine.lexemes cimport LazyDfa, DfaState
from maskwright._engine.lazy_dfa cimport DFA_DEAD, dfa_intern, dfa_next, dfa_range_of
from maskwright._engine.lexeme_texts cimport FORM_TEXT, FORM_UTF8, FORM_UTF8_SETTLED, text_state, utf8_first, utf8_last
from maskwright._engine.lexeme_state cimport lex_goes_on
from maskwright._engine.shortest_match cimport NEAR_STATES, nearest_match

cdef enum:
    SAMPLE_STATES = 4096   # looked at for the sample of one terminal
    CLOSE_STATES = 64      # looked at to find where a lexeme can be left in any context


cdef LexState* lexer_begin(Automaton* automaton, const vector[int32_t]& terminals) noexcept nogil:
    # Before any of some terminals.
    cdef vector[uint64_t] items
    cdef size_t i
    for i in range(terminals.size()):
        items.push_back((<uint64_t>lexer_of(automaton).first[terminals[i]]) << 32)
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
    items = lookahead.dfa_state.items
    items.insert(items.end(), ended.dfa_state.items.begin(), ended.dfa_state.items.end())
    return text_state(ended.automaton, dfa_intern(ended.automaton.dfa, items), FORM_TEXT, 0, 0)


cdef cbool lookahead_read(LexState** lookahead, const string& text) noexcept nogil:
    cdef size_t i
    for i in range(text.size()):
        if not lookahead_step(lookahead, <uint8_t>text[i]):
            return False
    return True


cdef cbool lookahead_passes(LexState* lookahead, const string& text) noexcept nogil:
    # Whether a lookahead lets a text pass, and samples behind it.  Dead: what comes before is not read at all, as
    # another terminal ends it (Lexing.early).
    if lookahead == LEX_DEAD:
        return False
    return lookahead_read(&lookahead, text) and (lookahead == NULL or lookahead_is_harmless(lookahead))


cdef cbool lookahead_is_harmless(LexState* start) noexcept nogil:
    # Whether no row of samples, with gaps or without, is matched from here.
    cdef Lexer* lexer = lexer_of(start.automaton)
    cdef vector[LexState*] work
    cdef unordered_map[int64_t, char] seen
    cdef LexState* lookahead
    cdef size_t head = 0, i
    if start.harmless != 0:
        return start.harmless == 1
    start.harmless = 2
    work.push_back(start)
    seen[<int64_t>start] = 1
    while head < work.size():
        for i in range(lexer.samples.size() + 1):
            if i < lexer.samples.size() and lexer.ignored[i]:
                continue
            if deadline_passed(&start.automaton.index.deadline):
                start.harmless = 0
                return False
            lookahead = work[head]
            if not lookahead_read(&lookahead, lexer.samples[i] if i < lexer.samples.size() else lexer.gap):
                return False
            if lookahead != NULL and seen.count(<int64_t>lookahead) == 0:
                if work.size() == CLOSE_STATES:
                    return False
                seen[<int64_t>lookahead] = 1
                work.push_back(lookahead)
        head += 1
    for i in range(work.size()):
        work[i].harmless = 1
    return True


# --- samples --------------------------------------------------------------------------------

cdef LexState* lexer_read(LexState* state, const string& text) noexcept nogil:
    cdef size_t i
    for i in range(text.size()):
        state = lex_next(state, <uint8_t>text[i])
        if state == LEX_DEAD:
            break
    return state


cdef cbool lexer_reads_as(LexState* start, const string& text, int32_t terminal) noexcept nogil:
    cdef LexState* state = lexer_read(start, text)
    return state != LEX_DEAD and state.tag == terminal


cdef cbool lexer_find(LexState* start, int32_t tag, size_t most, string* out) noexcept nogil:
    # The shortest text from `start` that is matched with a tag, if `most` states are enough to find it: breadth first
    # as long as there are few.
    cdef vector[LexState*] queue
    cdef vector[pair[int32_t, uint8_t]] origin
    cdef unordered_map[int64_t, char] seen
    cdef vector[uint8_t] path
    cdef string reversed_text
    cdef LexState* target
    cdef size_t head = 0, i
    cdef int32_t at
    cdef uint8_t byte
    cdef cbool found = False
    queue.push_back(start)
    origin.push_back(pair[int32_t, uint8_t](-1, 0))
    while head < queue.size() and not (head & 7 == 7 and deadline_look(&start.automaton.index.deadline)):
        if head == NEAR_STATES:
            nearest_match(start, tag, <int64_t>most, path, &found)
            if found:
                out.assign(<const char*>path.data(), path.size())
            return found
        for byte in start.automaton.class_byte:
            target = lex_next(queue[head], byte)
            if target == LEX_DEAD or seen.count(<int64_t>target):
                continue
            seen[<int64_t>target] = 1
            queue.push_back(target)
            origin.push_back(pair[int32_t, uint8_t](<int32_t>head, byte))
            if target.tag == tag:
                at = <int32_t>queue.size() - 1
                while at > 0:
                    reversed_text.push_back(<char>origin[at].second)
                    at = origin[at].first
                out.clear()
                for i in range(reversed_text.size(), 0, -1):
                    out.push_back(reversed_text[i - 1])
                return True
        head += 1
    return False


cdef inline cbool lexer_pair(const Lexer* lexer, const string& before, const string& behind) noexcept nogil:
    # Whether two texts in a row are read as what they are.
    return lookahead_passes(lexer_read(lexer.every, before), behind)


cdef int32_t lexer_gap_serves(const Lexer* lexer, const string& gap) noexcept nogil:
    # How many terminals may come before it; -1 when not all may come behind it.
    cdef int32_t count = 0
    cdef size_t i
    for i in range(lexer.samples.size()):
        if deadline_passed(&lexer.every.automaton.index.deadline):
            return -1
        if lexer.ignored[i]:
            continue
        if not lexer_pair(lexer, gap, lexer.samples[i]):
            return -1
        count += lexer_pair(lexer, lexer.samples[i], gap)
    return count


cdef void lexer_find_gap(Lexer* lexer) noexcept nogil:
    cdef string text, gap
    cdef LexState* state
    cdef size_t i
    cdef int32_t best = 0, serves
    for i in range(lexer.ignored_ones.size() + 2):
        if i < 2:
            text.assign(1, <char>(32 if i == 0 else 10))
        else:
            text = lexer.samples[lexer.ignored_ones[i - 2]]
        state = lexer_read(lexer.every, text)
        if not text.empty() and state != LEX_DEAD and lexer_matched(state) and lexer.ignored[state.tag]:
            lexer.gap = text
            lexer_forget_answers(lexer.every.automaton)
            serves = lexer_gap_serves(lexer, text)
            if serves >= 0:
                lexer.gaps.push_back(text)
            if serves > best:
                best = serves
                gap = text
    lexer.gap = gap


cdef void lexer_forget_answers(Automaton* automaton) noexcept nogil:
    # They depend on the gap.
    cdef size_t i
    for i in range(automaton.states.size()):
        automaton.states[i].harmless = 0


cdef cbool lexer_reads_sample(Automaton* automaton, int32_t terminal) noexcept nogil:
    # Whether a terminal's sample is read as itself wherever the terminal may come.
    cdef Lexer* lexer = lexer_of(automaton)
    cdef vector[int32_t] context
    cdef size_t i, j
    if lexer.samples[terminal].empty():
        return False
    if lexer_reads_as(lexer.every, lexer.samples[terminal], terminal):
        return True
    for i in range(lexer.follow.size()):
        for j in range(lexer.follow[i].size()):
            if lexer.follow[i][j] == terminal:
                context = lexer.follow[i]
                if not lexer_reads_as(lexer_start(automaton, context), lexer.samples[terminal], terminal):
                    return False
                break
    return not lexer.follow.empty()


cdef LexState* lexer_ended(Automaton* automaton, int32_t terminal) noexcept nogil:
    # Behind a terminal's sample, read along with all that may be waited for with it.
    cdef Lexer* lexer = lexer_of(automaton)
    cdef vector[int32_t] along
    cdef cbool among
    cdef size_t i, j
    for i in range(lexer.follow.size()):
        among = False
        for j in range(lexer.follow[i].size()):
            among = among or lexer.follow[i][j] == terminal
        if among:
            along.insert(along.end(), lexer.follow[i].begin(), lexer.follow[i].end())
    return lexer_read(lexer.every if along.empty() else lexer_start(automaton, along), lexer.samples[terminal])


cdef void lexer_clash(Lexer* lexer, int32_t before, int32_t behind) noexcept nogil:
    cdef pair[int32_t, int32_t] clash = pair[int32_t, int32_t](before, behind)
    cdef size_t i
    for i in range(lexer.avoided.size()):
        if lexer.avoided[i] == clash:
            return
    lexer.clashes.push_back(clash)


cdef void lexer_check(Automaton* automaton) noexcept nogil:
    # Find what clashes.
    cdef Lexer* lexer = lexer_of(automaton)
    cdef LexState* ended
    cdef int32_t i, behind
    for i in range(<int32_t>lexer.samples.size()):
        # A line break may be left out.
        if lexer.ignored[i] or i == lexer.line_break:
            continue
        if deadline_passed(&automaton.index.deadline):
            break
        ended = lexer_ended(automaton, i)
        if not lexer_reads_sample(automaton, i):
            lexer_clash(lexer, i, NO_TAG)
        elif lexer.gap.empty() or not lookahead_passes(ended, lexer.gap):
            if lexer.follow.empty():
                lexer_clash(lexer, i, i)
                continue
            for behind in lexer.follow[i]:
                if deadline_passed(&automaton.index.deadline):
                    break
                if not (lexer.ignored[behind] or behind == lexer.line_break
                        or lookahead_passes(ended, lexer.samples[behind])):
                    lexer_clash(lexer, i, behind)
    lexer.safe = lexer.clashes.empty()


cdef void lexer_reach(LazyDfa* dfa, vector[int32_t]& work, vector[char]& reached) noexcept nogil:
    # The NFA states behind those in `work`.
    cdef int32_t state
    cdef size_t j
    reached.resize(dfa.edges.size(), 0)
    while not work.empty():
        state = work.back()
        work.pop_back()
        if reached[state]:
            continue
        reached[state] = 1
        for j in range(dfa.edges[state].size()):
            work.push_back(dfa.edges[state][j].target)
        for j in range(dfa.epsilons[state].size()):
            work.push_back(dfa.epsilons[state][j].target)


cdef void lexer_find_useful(Automaton* automaton) noexcept nogil:
    cdef LazyDfa* dfa = automaton.dfa
    cdef Lexer* lexer = lexer_of(automaton)
    cdef vector[vector[int32_t]] before
    cdef vector[int32_t] work
    cdef int32_t i, state
    cdef size_t j
    before.resize(dfa.edges.size())
    for i in range(<int32_t>dfa.edges.size()):
        for j in range(dfa.edges[i].size()):
            before[dfa.edges[i][j].target].push_back(i)
        for j in range(dfa.epsilons[i].size()):
            before[dfa.epsilons[i][j].target].push_back(i)
        if dfa.accept[i] not in (NO_TAG, <int32_t>lexer.first.size()):
            work.push_back(i)
    lexer.useful.assign(dfa.edges.size(), 0)
    while not work.empty():
        state = work.back()
        work.pop_back()
        if not lexer.useful[state]:
            lexer.useful[state] = 1
            work.insert(work.end(), before[state].begin(), before[state].end())


cdef void lexer_prepare(Automaton* automaton) noexcept nogil:
    cdef Lexer* lexer = lexer_of(automaton)
    cdef vector[int32_t] terminals, work
    cdef LexState* start
    cdef int32_t i
    for i in lexer.ignored_ones:
        work.push_back(lexer.first[i])
    lexer_reach(automaton.dfa, work, lexer.skips)
    lexer_find_useful(automaton)
    if lexer.newline >= 0:
        work.assign(1, lexer.first[lexer.newline])
        lexer_reach(automaton.dfa, work, lexer.lines)
        terminals.assign(1, lexer.newline)
        start = lexer_read(lexer_begin(automaton, terminals), string(<const char*>b"\n\n"))
        lexer.restarts = start != LEX_DEAD and start.tag == lexer.newline
        terminals.clear()
    for i in range(<int32_t>lexer.first.size()):
        terminals.push_back(i)
    lexer.every = lexer_start(automaton, terminals)
    lexer.samples.resize(lexer.first.size())
    for i in range(<int32_t>lexer.first.size()):
        if deadline_passed(&automaton.index.deadline):
            return
        terminals.assign(1, i)
        start = lexer_begin(automaton, terminals)
        if start == LEX_DEAD or not lexer_find(start, i, SAMPLE_STATES, &lexer.samples[i]):
            continue
        if not lexer_reads_as(lexer.every, lexer.samples[i], i):
            # Found in vain, the sample stays: it may do where the other terminals do not come.
            lexer_find(lexer.every, i, SAMPLE_STATES, &lexer.samples[i])
    lexer_find_gap(lexer)
    lexer_forget_answers(automaton)
    lexer_check(automaton)


# --- Where a lexeme of a grammar that has a lexer can be left: whether a thread can be completed, whatever the context.
#
# Of a safe lexer (longest_match.pyx) this is a flag of the lexer state, found once: some sample or gap may stand behind it, and no lookahead
# that lives on refuses that.

cdef cbool lexer_gap_passes(LexState* lookahead) noexcept nogil:
    # Whether a lookahead lets some gap pass.
    cdef Lexer* lexer = lexer_of(lookahead.automaton)
    cdef size_t i
    for i in range(lexer.gaps.size()):
        if lookahead_passes(lookahead, lexer.gaps[i]):
            return True
    return False


cdef cbool lexer_leaves(LexState* state) noexcept nogil:
    # Of a safe lexer: whether the lookahead that begins here lets something pass in any context.
    cdef Lexer* lexer = lexer_of(state.automaton)
    cdef size_t i
    if state.leaves == 0:
        state.leaves = 1
        if lex_goes_on(state) and not lexer_gap_passes(state):
            for i in range(lexer.samples.size()):
                if not lexer.ignored[i] and not lookahead_passes(state, lexer.samples[i]):
                    state.leaves = 2
                    break
    return state.leaves == 1


cdef cbool lexer_closes(LexState* start) noexcept nogil:
    # Of a safe lexer: whether the lexeme under way can be completed in any context.  What is not found among
    # CLOSE_STATES states is left to the context.
    cdef vector[LexState*] queue
    cdef vector[size_t] origin
    cdef unordered_map[int64_t, char] seen
    cdef LexState* target
    cdef size_t head = 0, at
    cdef uint8_t byte
    if start.closes != 0:
        return start.closes == 1
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
    found = lexer.pairs.find(key)
    if found != lexer.pairs.end():
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
                if lookahead == NULL and lexer.safe and (lexer_closes(lex) or (lexer_matched(lex) and lexer_leaves(lex))):
                    verdict = 1
                    break
                continue
            if seen.count((<int64_t>lex.id << 32) | lookahead.id) == 0:
                seen[(<int64_t>lex.id << 32) | lookahead.id] = 1
                queue.push_back(pair[int32_t, int32_t](lex.id, lookahead.id))
        head += 1
    lexer.pairs[key] = verdict
    return verdict


cdef cbool lexer_useful(const Lexer* lexer, const DfaState* dfa_state) noexcept nogil:
    cdef size_t i
    for i in range(dfa_state.items.size()):
        if lexer.useful[<size_t>(dfa_state.items[i] >> 32)]:
            return True
    return False


cdef cbool lexer_never(LexState* lex) noexcept nogil:
    # Whether only a match of no terminal is possible any more.
    cdef Lexer* lexer = lexer_of(lex.automaton)
    cdef LazyDfa* dfa = lex.automaton.dfa
    cdef DfaState* target
    cdef int32_t first, last
    cdef size_t i
    if lex.hopeless != 0:
        return lex.hopeless == 1
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
