# Where a lexeme of a grammar that has a lexer can be left: whether a thread can be completed, whatever the context.
#
# Of a safe lexer (lexing.pxi) this is a flag of the lexer state, found once: some sample or gap may stand behind it, and no watch
# that lives on refuses that.

cdef cbool lexer_gap_passes(LexState* watch) noexcept nogil:
    # Whether a watch lets some gap pass.
    cdef Lexer* lexer = watch.automaton.lexer
    cdef size_t i
    for i in range(lexer.gaps.size()):
        if watch_passes(watch, lexer.gaps[i]):
            return True
    return False


cdef cbool lexer_leaves(LexState* state) noexcept nogil:
    # Of a safe lexer: whether the watch that begins here lets something pass in any context.
    cdef Lexer* lexer = state.automaton.lexer
    cdef size_t i
    if state.leaves == 0:
        state.leaves = 1
        if lex_goes_on(state) and not lexer_gap_passes(state):
            for i in range(lexer.samples.size()):
                if not lexer.ignored[i] and not watch_passes(state, lexer.samples[i]):
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
        target = text_state(start.automaton, start.code, FORM_TEXT, 0, 0)
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


cdef char lexer_pair_verdict(LexState* start, LexState* watching) noexcept nogil:
    # Of a lexeme under way in `start` and a watch: 1 when it can be completed in any context, 2 when in none, because
    # the watch would always end first or with it.  0: it depends on the context, or is not found among CLOSE_STATES.
    cdef Lexer* lexer = start.automaton.lexer
    cdef vector[pair[int32_t, int32_t]] queue
    cdef unordered_map[int64_t, char] seen
    cdef LexState* lex
    cdef LexState* watch
    cdef size_t head = 0
    cdef uint8_t byte
    cdef char verdict = 2
    cdef int64_t key = (<int64_t>start.id << 32) | watching.id
    found = lexer.pairs.find(key)
    if found != lexer.pairs.end():
        return dereference(found).second
    queue.push_back(pair[int32_t, int32_t](start.id, watching.id))
    seen[key] = 1
    while head < queue.size() and verdict != 1:
        for byte in start.automaton.class_byte:
            watch = start.automaton.states[queue[head].second]
            lex = lex_next(start.automaton.states[queue[head].first], byte)
            if lex == LEX_DEAD or not watch_step(&watch, byte):
                continue
            if watch == NULL or lexer_matched(lex) or queue.size() == CLOSE_STATES:
                verdict = 0
                if watch == NULL and lexer.safe and (lexer_closes(lex) or (lexer_matched(lex) and lexer_leaves(lex))):
                    verdict = 1
                    break
                continue
            if seen.count((<int64_t>lex.id << 32) | watch.id) == 0:
                seen[(<int64_t>lex.id << 32) | watch.id] = 1
                queue.push_back(pair[int32_t, int32_t](lex.id, watch.id))
        head += 1
    lexer.pairs[key] = verdict
    return verdict


cdef cbool lexer_useful(const Lexer* lexer, const CodeState* code) noexcept nogil:
    cdef size_t i
    for i in range(code.items.size()):
        if lexer.useful[<size_t>(code.items[i] >> 32)]:
            return True
    return False


cdef cbool lexer_never(LexState* lex) noexcept nogil:
    # Whether only a match of no terminal is possible any more.
    cdef Lexer* lexer = lex.automaton.lexer
    cdef CodeAutomaton* codes = lex.automaton.codes
    cdef CodeState* target
    cdef int32_t first, last
    cdef size_t i
    if lex.hopeless != 0:
        return lex.hopeless == 1
    lex.hopeless = 2 if lexer_useful(lexer, lex.code) else 1
    if lex.hopeless == 2 and lex.form == FORM_UTF8:
        # Of those that the character may become.
        first = utf8_first(lex.low, lex.left)
        last = utf8_last(lex.low, lex.left)
        lex.hopeless = 1
        i = codes_range_of(codes, first)
        while i < codes.range_low.size() and codes.range_low[i] <= last:
            target = code_next(codes, lex.code, codes.range_class[i])
            if target != CODE_DEAD and lexer_useful(lexer, target):
                lex.hopeless = 2
                break
            i += 1
    return lex.hopeless == 1


cdef inline cbool lexer_hopeless(LexState* lex, LexState* watch) noexcept nogil:
    # Whether a lexeme under way cannot be completed in any context.
    return lexer_never(lex) or (watch != NULL and lexer_pair_verdict(lex, watch) == 2)


cdef cbool lexer_is_sure(const Hypothesis& each) noexcept nogil:
    # Whether a thread (one that stands in `lex`, with `watch`) can be completed in any context.  Before a
    # lexeme, `lex` is NULL.
    if each.lex == NULL:
        return each.watch == NULL or (each.watch.form == FORM_TEXT and lexer_leaves(each.watch))
    return lexer_closes(each.lex) if each.watch == NULL else lexer_pair_verdict(each.lex, each.watch) == 1
