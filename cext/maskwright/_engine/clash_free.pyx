# Behind a lexer that is not safe: threads that a look shows to be alive.
#
# Where some samples in a row are not read as what they are (longest_match_samples.pyx), most terminals still have none of these
# *clashes*.  A text of terminals without clashes is read as written.  So a thread is alive if the lexeme under way can end, and what is
# missing behind it can be written with such terminals alone:
#
#     rest of the rule            a plain state from which they lead to an end; found once for a grammar
#     rests of its callers        a GSS node that returns to such states, up to the end of the text
#
# Nothing is said of a thread without such a way: a search decides (alive.pyx).

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.limits cimport deadline_look
from maskwright._engine.lexemes cimport LexState, NO_TAG
from maskwright._engine.lexeme_texts cimport LEX_DEAD
from maskwright._engine.lexeme_state cimport lex_next
from maskwright._engine.longest_match cimport Lexer, lexer_follows, lexer_matched, lexer_of
from maskwright._engine.program cimport (
    ACCEPT, DottedItem, Item, LOCAL_PLAIN, LOCAL_REPEATED, NO_KEY, NO_STATE, PlainTerm, Program, Return
)
from maskwright._engine.stacks cimport state_goto
from maskwright._engine.costs cimport lex_shortest

cdef enum:
    END_STATES = 8         # lexer states looked at for an end of the lexeme under way
    NOT_ASKED = 0          # of a GSS node
    LEADS_ON = 1
    DOUBTFUL = 2
    UNDER_WAY = 3


cdef cbool repeated_is_free(const Core* core, int32_t index, int32_t count) noexcept nogil:
    # Whether a repetition can go on to its end behind so many.
    cdef const Program* program = core.program
    if count >= program.repeated[index].low:
        return True
    if count == 0 and not core.facts.free_rules[program.repeated[index].first]:
        return False
    return count + 1 >= program.repeated[index].low or core.facts.free_rules[program.repeated[index].rest] != 0


cdef cbool plain_is_free(const Core* core, size_t state) noexcept nogil:
    cdef const Program* program = core.program
    cdef const Lexer* lexer = lexer_of(program.lexer)
    cdef size_t i
    if program.plain_final[state]:
        return True
    for i in range(program.plain_terms[state].size()):
        if program.plain_terms[state][i].automaton < 0 and core.facts.free[program.plain_terms[state][i].target] and (
                lexer.samples.clean[-1 - program.plain_terms[state][i].automaton]):
            return True
    for i in range(program.plain_calls[state].size()):
        if core.facts.free_rules[program.plain_calls[state][i].rule] and core.facts.free[program.plain_calls[state][i].back]:
            return True
    return False


cdef cbool local_is_free(const Core* core, int32_t kind, int32_t index, int32_t count) noexcept nogil:
    # Whether a rule of a kind (LOCAL_*) can be left from a dotted item; where it begins, the count is 0.
    if kind == LOCAL_PLAIN:
        return core.facts.free[index] != 0
    return kind == LOCAL_REPEATED and repeated_is_free(core, index, count)


cdef cbool core_find_free(Core* core) noexcept nogil:
    # From which plain states, and for which rules, terminals without clashes lead to the end; False when time is up.
    cdef Program* program = core.program
    cdef vector[int32_t] begins
    cdef cbool more = core.facts.free.size() < program.plain_terms.size() or core.facts.free_rules.size() < program.rules.size()
    cdef size_t i
    if not more:
        return True
    core.facts.free.assign(program.plain_terms.size(), 0)
    core.facts.free_rules.assign(program.rules.size(), 0)
    begins.assign(program.plain_terms.size(), -1)
    for i in range(program.rules.size()):
        if program.rules[i].kind == LOCAL_PLAIN:
            begins[program.rules[i].index] = <int32_t>i
    while more:
        more = False
        # Most rules call later ones.
        for i in range(program.plain_terms.size(), 0, -1):
            if i & 1023 == 0 and deadline_look(&core.index.deadline):
                core.facts.free.clear()
                return False
            if not core.facts.free[i - 1] and plain_is_free(core, i - 1):
                core.facts.free[i - 1] = 1
                more = True
                if begins[i - 1] >= 0:
                    core.facts.free_rules[begins[i - 1]] = 1
        for i in range(program.rules.size(), 0, -1):
            if not core.facts.free_rules[i - 1] and local_is_free(core, program.rules[i - 1].kind, program.rules[i - 1].index, 0):
                core.facts.free_rules[i - 1] = 1
                more = True
    return True


cdef cbool node_is_free(Core* core, int32_t start) noexcept nogil:
    # Whether terminals without clashes lead from a return to a GSS node to the end of the text.
    cdef Program* program = core.program
    cdef vector[int32_t] work
    cdef vector[size_t] tried      # of each, so many returns led nowhere
    cdef Return back
    cdef DottedItem* local
    cdef int32_t node
    cdef size_t i
    cdef char verdict
    if core.facts.free_nodes.size() < program.nodes.size():
        core.facts.free_nodes.resize(program.nodes.size(), NOT_ASKED)
    if core.facts.free_nodes[start] != NOT_ASKED:
        return core.facts.free_nodes[start] == LEADS_ON
    work.push_back(start)
    tried.push_back(0)
    while not work.empty() and not deadline_look(&core.index.deadline):
        node = work.back()
        i = tried.back()
        core.facts.free_nodes[node] = UNDER_WAY
        verdict = DOUBTFUL
        while not program.nodes[node].cyclic and i < program.nodes[node].returns.size():
            back = program.nodes[node].returns[i]
            if back.local == ACCEPT:
                verdict = LEADS_ON
                break
            local = program.locals[back.local]
            if back.node >= 0 and local_is_free(core, local.kind, local.index, local.count):
                verdict = core.facts.free_nodes[back.node]
                if verdict in (NOT_ASKED, LEADS_ON):
                    break
                # Round a cycle, another return has to lead on.
                verdict = DOUBTFUL
            i += 1
        if verdict == NOT_ASKED:
            tried[tried.size() - 1] = i
            work.push_back(back.node)
            tried.push_back(0)
        else:
            core.facts.free_nodes[node] = verdict
            work.pop_back()
            tried.pop_back()
    # Time is up: another operation asks them again.
    for node in work:
        core.facts.free_nodes[node] = NOT_ASKED
    return core.facts.free_nodes[start] == LEADS_ON


cdef const vector[int32_t]* free_terminals(Core* core, int32_t parser, cbool clean) noexcept nogil:
    # The terminals that a parser state waits for and behind which terminals without clashes lead to the end of the text; `clean`: of
    # those without clashes only.
    cdef Program* program = core.program
    cdef Lexer* lexer = lexer_of(program.lexer)
    cdef vector[char] listed
    cdef Item item
    cdef PlainTerm term
    cdef vector[int32_t]* found
    if clean:
        found = &core.facts.free_next[parser]
    else:
        found = &core.facts.free_behind[parser]
    if not found.empty():
        return found
    listed.resize(lexer.samples.clean.size(), 0)
    for item in program.states[parser].items:
        if program.locals[item.local].kind != LOCAL_PLAIN or not node_is_free(core, item.node):
            continue
        for term in program.plain_terms[program.locals[item.local].index]:
            if (term.automaton < 0 and core.facts.free[term.target] and not listed[-1 - term.automaton]
                    and (not clean or lexer.samples.clean[-1 - term.automaton])):
                listed[-1 - term.automaton] = 1
                found.push_back(-1 - term.automaton)
    # A mark that there are no more, and that they were looked for.
    found.push_back(NO_TAG)
    return found


cdef cbool leads_on(Core* core, int32_t parser, int32_t terminal) noexcept nogil:
    # Whether it is ignored, or terminals without clashes lead to the end behind it.
    cdef const vector[int32_t]* behind
    cdef size_t i
    if lexer_of(core.program.lexer).ignored[terminal]:
        return True
    behind = free_terminals(core, parser, False)
    for i in range(behind.size() - 1):
        if dereference(behind)[i] == terminal:
            return True
    return False


cdef cbool end_is_free(Core* core, LexState* ended, int32_t parser) noexcept nogil:
    # Whether they lead to the end from a parser state, behind a lexeme that ended (NULL: none, or what follows cannot make it longer).
    cdef const vector[int32_t]* following
    cdef size_t i
    if core.program.states[parser].complete:
        return True
    following = free_terminals(core, parser, True)
    for i in range(following.size() - 1):
        if ended == NULL or lexer_follows(ended, dereference(following)[i]):
            return True
    return False


cdef const vector[LexState*]* free_ends(Core* core, LexState* start) noexcept nogil:
    # The first states behind one in which the lexeme may end, and the nearest one; the last one is none.
    cdef vector[LexState*] queue
    cdef vector[uint8_t] path
    cdef unordered_map[int64_t, char] seen
    cdef LexState* target
    cdef size_t head = 0
    cdef uint8_t byte
    cdef cbool ends = False
    cdef vector[LexState*]* found = &core.facts.free_ends[<int64_t>start]
    if not found.empty():
        return found
    queue.push_back(start)
    while head < queue.size():
        for byte in start.automaton.class_byte:
            target = lex_next(queue[head], byte)
            if target == LEX_DEAD or queue.size() == END_STATES or seen.count(<int64_t>target):
                continue
            if lexer_matched(target):
                found.push_back(target)
            seen[<int64_t>target] = 1
            queue.push_back(target)
        head += 1
    # Many states may be as near as those, the beginnings of characters beyond ASCII in a comment.
    lex_shortest(start, NO_TAG, path, &ends)
    if ends:
        target = start
        for byte in path:
            target = lex_next(target, byte)
        if lexer_matched(target) and seen.count(<int64_t>target) == 0:
            found.push_back(target)
    found.push_back(NULL)
    return found


cdef cbool lexeme_is_free(Core* core, const Thread& thread) noexcept nogil:
    # Whether they lead to the end from a thread in a lexeme, which has to end first.  Where it ends in the state under way, another
    # thread has ended it: this one reads a byte more.
    cdef const vector[LexState*]* ends = free_ends(core, thread.lex)
    cdef LexState* ended
    cdef int32_t parser
    cdef size_t i
    for i in range(ends.size() - 1):
        ended = dereference(ends)[i]
        if leads_on(core, thread.parser, ended.tag):
            parser = state_goto(core.program, thread.parser, core.program.lexer, ended.tag, NO_KEY)
            if parser != NO_STATE and end_is_free(core, ended, parser):
                return True
    return False


cdef cbool thread_is_free(Core* core, const Thread& thread) noexcept nogil:
    # Whether a thread can be completed with terminals without clashes, as far as a look tells.
    cdef int64_t key
    cdef int32_t known
    if thread.lex != NULL and (thread.lookahead != NULL or thread.lex.automaton != core.program.lexer):
        return False
    if lexer_of(core.program.lexer).newline >= 0 or not core_find_free(core):
        return False
    if thread.lex == NULL:
        return end_is_free(core, thread.lookahead, thread.parser)
    key = (<int64_t>thread.parser << 32) | <uint32_t>thread.lex.id
    known = core.facts.free_threads.find(key)
    if known < 0:
        known = (core.program.states[thread.parser].complete or free_terminals(core, thread.parser, False).size() > 1) and (
            lexeme_is_free(core, thread))
        if core.index.deadline.passed:
            # What was found on the way may have been cut short.
            core.facts.free_ends.clear()
            core.facts.free_next.clear()
            core.facts.free_behind.clear()
        else:
            core.facts.free_threads.insert(key, known)
    return known == 1
