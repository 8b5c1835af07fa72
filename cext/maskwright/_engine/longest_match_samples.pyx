# Samples of a lexer's terminals, and whether rows of them are read as what they are (longest_match.pyx).
#
# Which threads can be completed is a question of the context.  Each terminal has a *sample*, a text of
# its own.  The lexer is *safe* when samples in a row are always read as what they are, those that may follow each
# other directly or with an ignored text, the *gap*, between them: then whatever the grammar accepts can be written,
# and a thread is alive as soon as its lexeme can be left.  Rows that the grammar can always do without (line ends
# behind line ends, say; maskwright.ir.adjacency) do not count.

from maskwright._engine.turns cimport turn_late
from maskwright._engine.lexemes cimport Automaton, LazyDfa
from maskwright._engine.lexeme_texts cimport LEX_DEAD
from maskwright._engine.shortest_match cimport NEAR_STATES, nearest_match
from maskwright._engine.longest_match cimport (
    column_tag, lexer_begin, lexer_follows, lexer_gap_passes, lexer_matched, lexer_of, lexer_opens, lexer_start, lexer_start_set,
    lookahead_passes, serves_all, terminals_add
)

cdef enum:
    SAMPLE_STATES = 4096   # looked at for the sample of one terminal


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
    while head < queue.size() and not (head & 7 == 7 and turn_late(start.automaton.index)):
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


cdef cbool lexer_gap_serves(const Lexer* lexer, const string& gap, vector[char]& serves) noexcept nogil:
    # Before which terminals a gap may stand: some of them?
    cdef cbool any_of_them = False
    cdef size_t i
    serves.assign(lexer.samples.texts.size(), 0)
    for i in range(lexer.samples.texts.size()):
        if turn_late(lexer.every.automaton.index):
            return False
        if lexer.ignored[i]:
            continue
        serves[i] = lexer_pair(lexer, gap, lexer.samples.texts[i])
        any_of_them = any_of_them or serves[i]
    return any_of_them


cdef void lexer_find_gaps(Lexer* lexer) noexcept nogil:
    # Those that may stand before some terminals; where one may stand before all, such ones alone.
    cdef vector[string] texts, gaps
    cdef vector[char] serves
    cdef LexState* state
    cdef string text
    cdef cbool whole = False
    cdef size_t i
    for i in range(lexer.ignored_ones.size() + 2):
        if i < 2:
            text.assign(1, <char>(32 if i == 0 else 10))
        else:
            text = lexer.samples.texts[lexer.ignored_ones[i - 2]]
        state = lexer_read(lexer.every, text)
        if not text.empty() and state != LEX_DEAD and lexer_matched(state) and lexer.ignored[state.tag]:
            texts.push_back(text)
    for text in texts:
        lexer.samples.gaps.assign(1, text)
        # What is known depends on the gap.
        lexer.cache.harmless.clear()
        if not lexer_gap_serves(lexer, text, serves):
            continue
        if serves_all(lexer, serves) and not whole:
            whole = True
            gaps.clear()
            lexer.samples.serves.clear()
        if serves_all(lexer, serves) or not whole:
            gaps.push_back(text)
            lexer.samples.serves.push_back(serves)
    lexer.samples.gaps = gaps
    lexer.cache.harmless.clear()


cdef void lexer_find_served(Lexer* lexer) noexcept nogil:
    # Of a placed lexer: texts of ignored terminals, and before which terminals each may stand.
    cdef Automaton* automaton = lexer.every.automaton
    cdef vector[int32_t] owners, context
    cdef vector[char] serves
    cdef string text
    cdef LexState* state
    cdef int32_t owner, terminal
    cdef size_t i, j, count = lexer.samples.texts.size()
    for owner in lexer.ignored_ones:
        for i in range(3):
            text = lexer.samples.texts[owner]
            if i < 2:
                text.assign(1, <char>(32 if i == 0 else 10))
            context.assign(1, owner)
            if not text.empty() and (i < 2 or text.size() > 1 or text[0] not in (32, 10)) and lexer_reads_as(
                    lexer_begin(automaton, context), text, owner):
                lexer.samples.gaps.push_back(text)
                owners.push_back(owner)
    for i in range(lexer.samples.gaps.size()):
        serves.assign(count, 0)
        for j in range(count):
            for terminal in lexer.beside[j]:
                if terminal == owners[i]:
                    serves[j] = 1
        lexer.samples.serves.push_back(serves)
    for j in range(lexer.follow.size()):
        context = lexer.follow[j]
        if context.empty():
            continue
        for i in range(lexer.samples.gaps.size()):
            if turn_late(automaton.index):
                return
            state = lexer_read(lexer_start(automaton, context), lexer.samples.gaps[i])
            for terminal in lexer.follow[j]:
                # One that is ignored too but ranks higher may not be waited for elsewhere, and then others rank between.
                if lexer.samples.serves[i][terminal] and (state == LEX_DEAD or state.tag != owners[i]
                                                  or not lookahead_passes(state, lexer.samples.texts[terminal])):
                    lexer.samples.serves[i][terminal] = 0


cdef cppclass Contexts:
    # `Lexer.follow`, looked up the other way round.
    vector[vector[int32_t]] waiting    # by terminal: the contexts that have it
    vector[vector[uint64_t]] sets      # by context: its terminals as bits


cdef void contexts_index(Lexer* lexer, Contexts& contexts) noexcept nogil:
    cdef int32_t terminal
    cdef size_t i
    contexts.waiting.resize(lexer.first.size())
    contexts.sets.resize(lexer.follow.size())
    for i in range(lexer.follow.size()):
        for terminal in lexer.follow[i]:
            if contexts.waiting[terminal].empty() or contexts.waiting[terminal].back() != <int32_t>i:
                contexts.waiting[terminal].push_back(<int32_t>i)
            terminals_add(contexts.sets[i], terminal)


cdef void contexts_join(Contexts& contexts, vector[int32_t]& some, vector[uint64_t]& out) noexcept nogil:
    # Add the terminals of some contexts.
    cdef int32_t i
    cdef size_t j
    for i in some:
        if out.size() < contexts.sets[i].size():
            out.resize(contexts.sets[i].size(), 0)
        for j in range(contexts.sets[i].size()):
            out[j] |= contexts.sets[i][j]


cdef void lexer_find_next(Lexer* lexer, Contexts& contexts) noexcept nogil:
    # Behind ignored text of a placed lexer comes what could have come in its place.
    cdef vector[uint64_t] bits
    cdef vector[vector[int32_t]] behind
    cdef size_t i, j, k
    behind.resize(lexer.samples.texts.size())
    for j in range(lexer.after.size()):
        if lexer.after[j] >= 0:
            behind[lexer.after[j]].push_back(<int32_t>j)
    lexer.samples.next.resize(lexer.samples.texts.size())
    for i in range(lexer.samples.texts.size()):
        bits.clear()
        contexts_join(contexts, contexts.waiting[i] if lexer.ignored[i] else behind[i], bits)
        for k in range(64 * bits.size()):
            if (bits[k >> 6] >> (k & 63)) & 1:
                lexer.samples.next[i].push_back(<int32_t>k)


cdef cbool lexer_reads_sample(Automaton* automaton, Contexts& contexts, int32_t terminal) noexcept nogil:
    # Whether a terminal's sample is read as itself wherever the terminal may come.
    cdef Lexer* lexer = lexer_of(automaton)
    cdef vector[uint64_t] context
    cdef int32_t i
    if lexer.samples.texts[terminal].empty():
        return False
    if lexer_reads_as(lexer.every, lexer.samples.texts[terminal], terminal):
        return True
    for i in contexts.waiting[terminal]:
        if turn_late(automaton.index):
            return False
        context = contexts.sets[i]
        if not lexer_reads_as(lexer_start_set(automaton, context), lexer.samples.texts[terminal], terminal):
            return False
    # One that nobody waits for is read as another one everywhere (``algebra.lexers`` counts on that).
    return not contexts.waiting[terminal].empty()


cdef LexState* lexer_along(Automaton* automaton, Contexts& contexts, int32_t terminal) noexcept nogil:
    # Before all that may be waited for with a terminal.
    cdef vector[uint64_t] along
    contexts_join(contexts, contexts.waiting[terminal], along)
    return lexer_of(automaton).every if along.empty() else lexer_start_set(automaton, along)


cdef void lexer_clash(Lexer* lexer, int32_t before, int32_t behind) noexcept nogil:
    cdef pair[int32_t, int32_t] clash = pair[int32_t, int32_t](before, behind)
    cdef size_t i
    lexer.samples.clean[before] = 0
    for i in range(lexer.samples.avoided.size()):
        if lexer.samples.avoided[i] == clash:
            return
    for i in range(lexer.samples.clashes.size()):
        if lexer.samples.clashes[i] == clash:
            return
    lexer.samples.clashes.push_back(clash)


cdef void lexer_check(Automaton* automaton, Contexts& contexts) noexcept nogil:
    # Find what clashes.  The number of terminals stands for a lexeme that no lexer reads.
    cdef Lexer* lexer = lexer_of(automaton)
    cdef LexState* ended
    cdef int32_t i, behind
    cdef size_t j
    lexer.samples.clean.assign(lexer.samples.texts.size(), 0)
    lexer.samples.unread.assign(lexer.samples.texts.size(), 0)
    for i in range(<int32_t>lexer.samples.texts.size()):
        # Ignored text may be left out, and so may a line break, but not where rules say that it comes before a lexeme that no lexer reads.
        if lexer.ignored[i] or i == lexer.line_break:
            ended = lexer_read(lexer_along(automaton, contexts, i), lexer.samples.texts[i])
            if ended != LEX_DEAD and not lexer_opens(ended, i):
                lexer_clash(lexer, i, <int32_t>lexer.first.size())
            continue
        if turn_late(automaton.index):
            break
        lexer.samples.clean[i] = 1
        ended = lexer_read(lexer_along(automaton, contexts, i), lexer.samples.texts[i])
        if not lexer_reads_sample(automaton, contexts, i):
            lexer.samples.unread[i] = 1
            lexer_clash(lexer, i, NO_TAG)
            continue
        if not (ended == LEX_DEAD or lexer_opens(ended, i)):
            lexer_clash(lexer, i, <int32_t>lexer.first.size())
            for behind in lexer.ignored_ones:
                if not lookahead_passes(ended, lexer.samples.texts[behind]):
                    lexer_clash(lexer, i, behind)
        if lexer.placed or not lexer_gap_passes(ended):
            if lexer.follow.empty():
                lexer_clash(lexer, i, i)
                continue
            for j in range(lexer.follow.size()):
                if lexer.after[j] != i:
                    continue
                for behind in lexer.follow[j]:
                    if turn_late(automaton.index):
                        break
                    if not (lexer.ignored[behind] or behind == lexer.line_break or lexer_follows(ended, behind)):
                        lexer_clash(lexer, i, behind)


cdef void nfa_graph(const LazyDfa* dfa, vector[vector[int32_t]]& after, vector[vector[int32_t]]& before) noexcept nogil:
    # By NFA state, those next to it.
    cdef size_t i, j
    after.resize(dfa.edges.size())
    before.resize(dfa.edges.size())
    for i in range(dfa.edges.size()):
        for j in range(dfa.edges[i].size()):
            after[i].push_back(dfa.edges[i][j].target)
        for j in range(dfa.epsilons[i].size()):
            after[i].push_back(dfa.epsilons[i][j].target)
        for j in range(after[i].size()):
            before[after[i][j]].push_back(<int32_t>i)


cdef void nfa_reach(const vector[vector[int32_t]]& graph, vector[int32_t]& work, vector[char]& reached) noexcept nogil:
    # Those in `work`, and what the graph leads to.
    cdef int32_t state
    reached.assign(graph.size(), 0)
    while not work.empty():
        state = work.back()
        work.pop_back()
        if not reached[state]:
            reached[state] = 1
            work.insert(work.end(), graph[state].begin(), graph[state].end())


cdef cbool columns_stay_open(Automaton* automaton, const vector[vector[int32_t]]& before) noexcept nogil:
    # Whether a newline under way may still tell any of its columns.  `/(\n *)+/` may, by another line end; `/\n */` may not.
    cdef Lexer* lexer = lexer_of(automaton)
    cdef LazyDfa* dfa = automaton.dfa
    cdef vector[int32_t] work
    cdef vector[char] reached
    cdef int32_t column
    cdef size_t i
    for column in range(lexer.columns):
        for i in range(dfa.accept.size()):
            if lexer.lines[i] and dfa.accept[i] == column_tag(lexer, column):
                work.push_back(<int32_t>i)
        if work.empty():
            continue
        nfa_reach(before, work, reached)
        for i in range(reached.size()):
            if lexer.lines[i] and lexer.useful[i] and not reached[i]:
                return False
    return True


cdef void lexer_prepare(Automaton* automaton) noexcept nogil:
    cdef Lexer* lexer = lexer_of(automaton)
    cdef vector[int32_t] terminals, work
    cdef vector[vector[int32_t]] after, before
    cdef Contexts contexts
    cdef LexState* start
    cdef int32_t i
    contexts_index(lexer, contexts)
    nfa_graph(automaton.dfa, after, before)
    for i in lexer.ignored_ones:
        work.push_back(lexer.first[i])
    nfa_reach(after, work, lexer.skips)
    for i in range(<int32_t>automaton.dfa.accept.size()):
        if automaton.dfa.accept[i] not in (NO_TAG, <int32_t>lexer.first.size()):
            work.push_back(i)
    nfa_reach(before, work, lexer.useful)
    if lexer.newline >= 0:
        work.push_back(lexer.first[lexer.newline])
        nfa_reach(after, work, lexer.lines)
    for i in range(<int32_t>lexer.first.size()):
        terminals.push_back(i)
    lexer.every = lexer_start(automaton, terminals)
    lexer.samples.texts.resize(lexer.first.size())
    for i in range(<int32_t>lexer.first.size()):
        if turn_late(automaton.index):
            return
        terminals.assign(1, i)
        start = lexer_begin(automaton, terminals)
        if start == LEX_DEAD or not lexer_find(start, i, SAMPLE_STATES, &lexer.samples.texts[i]):
            continue
        if lexer.placed:
            if not lexer_reads_sample(automaton, contexts, i):
                lexer_find(lexer_along(automaton, contexts, i), i, SAMPLE_STATES, &lexer.samples.texts[i])
        elif not lexer_reads_as(lexer.every, lexer.samples.texts[i], i):
            # Found in vain, the sample stays: it may do where the other terminals do not come.
            lexer_find(lexer.every, i, SAMPLE_STATES, &lexer.samples.texts[i])
    if not lexer.placed:
        lexer_find_gaps(lexer)
    elif not lexer.follow.empty():
        lexer_find_served(lexer)
    lexer_find_next(lexer, contexts)
    lexer_check(automaton, contexts)
    lexer.samples.safe = lexer.samples.clashes.empty() and (lexer.newline < 0 or columns_stay_open(automaton, before))


cdef void lexer_again(Automaton* fresh, const Automaton* other) noexcept nogil:
    # Of a lexeme that was made again (lexeme_again): the lexer of the other one, without its states.
    cdef const Lexer* known = lexer_of(other)
    cdef Lexer* lexer = new Lexer()
    cdef vector[int32_t] terminals
    cdef int32_t i
    fresh.lexer = lexer
    lexer.first = known.first
    lexer.guards = known.guards
    lexer.ignored = known.ignored
    lexer.ignored_ones = known.ignored_ones
    lexer.placed = known.placed
    lexer.follow = known.follow
    lexer.after = known.after
    lexer.beside = known.beside
    lexer.newline = known.newline
    lexer.line_break = known.line_break
    lexer.columns = known.columns
    lexer.quote = known.quote
    lexer.skips = known.skips
    lexer.useful = known.useful
    lexer.lines = known.lines
    lexer.samples = known.samples
    lexer.stops = lexer.away = False
    for i in range(<int32_t>lexer.first.size()):
        terminals.push_back(i)
    lexer.every = lexer_start(fresh, terminals)
