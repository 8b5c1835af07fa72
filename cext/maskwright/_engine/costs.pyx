# What the cheapest way out of each state costs.
#
# Costs are in bytes.  A rule's cost is that of its shortest text; costs of rules are found together by relaxation, those of GSS nodes on demand.

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.containers cimport by_owner, priority_queue, Csr
from maskwright._engine.sizes cimport bits_has
from maskwright._engine.limits cimport deadline_passed
from maskwright._engine.turns cimport turn_late, turn_passed
from maskwright._engine.lexemes cimport (
    Automaton, LazyDfa, DfaState, KEY_BODY, KEY_START, KIND_BOUNDARY, KIND_KEYSET, KIND_TEXT, KIND_TOKENS, KIND_WORDS, NO_CLASS, NO_TAG
)
from maskwright._engine.lazy_dfa cimport DFA_DEAD, dfa_next
from maskwright._engine.lexeme_texts cimport BACKSLASH, FORM_TEXT, LEX_DEAD, QUOTE
from maskwright._engine.keyset cimport key_allows, key_code_point, key_escape_fits, key_escape_rest, key_spelling, key_text
from maskwright._engine.lexeme_state cimport lex_first, lex_keeps_text, lex_next, words_shortest, words_tags
from maskwright._engine.shortest_match cimport NEAR_STATES, nearest_match, UNREACHED
from maskwright._engine.program cimport (
    ACCEPT, ANY_KEY, Call, cost_add, INDENTED_INSIDE, Item, DottedItem, LOCAL_INDENTED, LOCAL_PLAIN, LOCAL_RECORD,
    LOCAL_REPEATED, NO_KEY, NO_STATE, ParserState, PlainTerm, RECORD_AFTER, RECORD_COLON, RECORD_DONE,
    RECORD_FIRST_KEY, RECORD_OPEN, RECORD_VALUE, RecordDef, RecordRegister, RecordValue, RepeatedDef, Return, RuleStart
)
from maskwright._engine.rules cimport (
    parse_rule_start, parse_term_start, record_complete, record_has_others, record_is_keyless, record_key_alive, record_register,
    record_search, record_skip, record_take, RecordWeights
)
from maskwright._engine.stacks cimport state_goto, state_goto_guarded
from maskwright._engine.values cimport UNKNOWN_TEXT
from maskwright._engine.threads cimport thread_quoted, tokens_spell

cdef struct PlainWay:
    int32_t state
    int32_t before                 # the way that it goes on from, or -1
    int32_t distance
    cbool done


cdef cbool text_plain_does(LexState* state) noexcept nogil:
    # Between two characters: whether one byte leads wherever an escape or several bytes of UTF-8 do.
    cdef LazyDfa* dfa = state.automaton.dfa
    cdef vector[char] seen
    cdef unordered_map[int64_t, char] targets
    cdef DfaState* target
    cdef int32_t byte, cls
    if state.automaton.kind != KIND_TEXT or state.form != FORM_TEXT:
        return False
    seen.resize(dfa.classes, 0)
    for byte in range(0x20, 0x80):
        cls = dfa.ascii_class[byte]
        if cls != NO_CLASS and byte != QUOTE and byte != BACKSLASH and not seen[cls]:
            seen[cls] = 1
            targets[<int64_t>dfa_next(dfa, state.dfa_state, cls)] = 1
    for cls in range(dfa.classes):
        if not seen[cls]:
            target = dfa_next(dfa, state.dfa_state, cls)
            if target != DFA_DEAD and targets.count(<int64_t>target) == 0:
                return False
    return True


cdef void lex_shortest(LexState* start, int32_t tag, vector[uint8_t]& out, cbool* found) noexcept nogil:
    # Appends the shortest bytes, none for a boundary, from `start` to a state that accepts `tag` (NO_TAG: any): breadth first among few states.
    cdef vector[LexState*] queue
    cdef vector[pair[int32_t, uint8_t]] origin
    cdef unordered_map[int64_t, char] seen
    cdef vector[uint8_t] reversed_path
    cdef const uint64_t* first = NULL
    cdef LexState* target
    cdef size_t head = 0
    cdef int32_t byte, at
    cdef cbool plain
    found[0] = False
    if start == LEX_DEAD or turn_late(start.automaton.index):
        return
    if start.automaton.kind == KIND_WORDS:
        words_shortest(start, tag, out, found)
        return
    if start.automaton.kind in (KIND_TOKENS, KIND_BOUNDARY):
        if start.automaton.kind == KIND_TOKENS:
            tokens_spell(start.automaton.token_set.ids[0], out)
        found[0] = True
        return
    queue.push_back(start)
    origin.push_back(pair[int32_t, uint8_t](-1, 0))
    while head < queue.size() and not turn_passed(start.automaton.index):
        if head == NEAR_STATES:
            nearest_match(start, tag, 0, out, found)
            return
        plain = text_plain_does(queue[head])
        if not plain:
            first = lex_first(queue[head])
        for byte in range(256):
            if (byte >= 0x80 or byte == BACKSLASH) if plain else not bits_has(first, <uint8_t>byte):
                continue
            target = lex_next(queue[head], <uint8_t>byte)
            if target == LEX_DEAD or seen.count(<int64_t>target):
                continue
            seen[<int64_t>target] = 1
            queue.push_back(target)
            origin.push_back(pair[int32_t, uint8_t](<int32_t>head, <uint8_t>byte))
            if target.tag != NO_TAG and (tag == NO_TAG or target.tag == tag):
                found[0] = True
                at = <int32_t>queue.size() - 1
                while at > 0:
                    reversed_path.push_back(origin[at].second)
                    at = origin[at].first
                while not reversed_path.empty():
                    out.push_back(reversed_path.back())
                    reversed_path.pop_back()
                return
        head += 1


cdef int32_t cost_lexeme(Costs* costs, LexState* start) noexcept nogil:
    cdef vector[uint8_t] path
    cdef cbool found = False
    if start == LEX_DEAD:
        return UNREACHED
    known = costs.lexemes.find(<int64_t>start)
    if known != costs.lexemes.end():
        return dereference(known).second
    lex_shortest(start, NO_TAG, path, &found)
    if not start.automaton.index.deadline.passed:
        costs.lexemes[<int64_t>start] = <int32_t>path.size() if found else UNREACHED
        if path.size() > <size_t>NEAR_STATES:
            cost_rests(costs, start, path)
    return <int32_t>path.size() if found else UNREACHED


cdef void cost_rests(Costs* costs, LexState* state, const vector[uint8_t]& path) noexcept nogil:
    # What is left of a shortest text is a shortest one: a search that reads it asks behind each of its bytes.
    cdef size_t i
    for i in range(1, path.size()):
        state = lex_next(state, path[i - 1])
        if state == LEX_DEAD or turn_passed(state.automaton.index):
            return
        costs.lexemes[<int64_t>state] = <int32_t>(path.size() - i)


cdef int32_t cost_term(Program* program, Costs* costs, const PlainTerm& term) noexcept nogil:
    cdef Automaton* automaton
    cdef int64_t key
    cdef vector[uint8_t] path
    cdef cbool found = False
    if term.tag == NO_TAG:
        return cost_lexeme(costs, parse_term_start(program, term.automaton))
    automaton = program.automata[term.automaton]
    key = (<int64_t>automaton.uid << 32) | <uint32_t>term.tag
    known = costs.tagged.find(key)
    if known != costs.tagged.end():
        return dereference(known).second
    lex_shortest(automaton.start, term.tag, path, &found)
    if not automaton.index.deadline.passed:
        costs.tagged[key] = <int32_t>path.size() if found else UNREACHED
    return <int32_t>path.size() if found else UNREACHED


cdef int32_t cost_colon(Program* program, Costs* costs, const RecordDef* record) noexcept nogil:
    return 0 if record.bare or record_is_keyless(record) else cost_lexeme(costs, program.automata[record.colon].start)


cdef int32_t cost_record_from(Program* program, Costs* costs, int32_t index, RecordRegister place, cbool first) noexcept nogil:
    # What the members still needed and the close cost; `first`: none came before.
    cdef RecordDef* record = &program.records[index]
    cdef RecordWeights weights
    cdef int32_t i, total = 0
    weights.comma = cost_lexeme(costs, program.automata[record.comma].start)
    weights.colon = cost_colon(program, costs, record)
    if record.simple and record.ordered:
        i = record.next_required[place.position]
        while i < record.count:
            if not first:
                total = cost_add(total, weights.comma)
            total = cost_add(total, record.key_bytes[i] + weights.colon)
            total = cost_add(total, cost_value(costs, record, i))
            first = False
            i = record.next_required[i + 1]
    else:
        if first and record_complete(record, place):
            return cost_lexeme(costs, program.automata[record.close_empty].start)
        if record_has_others(record):
            cost_other_key(program, record, 0)
        total = record_search(record, place, costs, &weights, first)
        first = False
    if first:
        return cost_add(total, cost_lexeme(costs, program.automata[record.close_empty].start))
    return cost_add(total, cost_lexeme(costs, program.automata[record.close].start))


cdef int32_t cost_value(const Costs* costs, const RecordDef* record, int32_t member) noexcept nogil:
    cdef int32_t best = UNREACHED
    cdef size_t i
    for i in range(record.values[member].size()):
        if costs.rules[record.values[member][i].rule] < best:
            best = costs.rules[record.values[member][i].rule]
    return best


cdef int32_t cost_other_key(Program* program, RecordDef* record, int32_t kind) noexcept nogil:
    cdef vector[uint8_t] path
    cdef cbool found = False
    cdef int32_t i, cost
    # One too many says that time was up, and that they have to be found again.
    if record.other_key_bytes.size() != record.values.size() - <size_t>record.count:
        record.other_key_bytes.clear()
        for i in range(record.count, <int32_t>record.values.size()):
            path.clear()
            if not record_is_keyless(record):
                lex_shortest(program.automata[record.keys.back()].start, i, path, &found)
            cost = <int32_t>path.size() if found or record_is_keyless(record) else UNREACHED
            record.other_key_bytes.push_back(cost)
        if program.index.deadline.passed:
            record.other_key_bytes.push_back(UNREACHED)
    return record.other_key_bytes[kind]


cdef int32_t cost_record_member(Program* program, Costs* costs, int32_t index, RecordRegister place) noexcept nogil:
    # The value of the member at `position`, and everything behind it.
    cdef RecordDef* record = &program.records[index]
    cdef RecordRegister after
    cdef int32_t best = UNREACHED, cost
    cdef size_t i
    for i in range(record.values[place.position].size()):
        after = place
        if record_take(record, &after, record.values[place.position][i]):
            cost = cost_add(costs.rules[record.values[place.position][i].rule],
                            cost_record_from(program, costs, index, after, False))
            if cost < best:
                best = cost
    return best


cdef int32_t cost_record_local(Program* program, Costs* costs, DottedItem* local) noexcept nogil:
    # A record from any of its phases to its end.
    cdef RecordDef* record = &program.records[local.index]
    cdef RecordRegister place = record_register(record, local.count)
    cdef RecordRegister at
    cdef int32_t best = UNREACHED, key, rest, colon
    if local.phase == RECORD_OPEN:
        return cost_add(cost_lexeme(costs, program.automata[record.open].start),
                        cost_record_from(program, costs, local.index, place, True))
    if local.phase == RECORD_AFTER:
        return cost_record_from(program, costs, local.index, place, False)
    if local.phase == RECORD_DONE:
        return 0
    colon = cost_colon(program, costs, record)
    if local.phase in (RECORD_COLON, RECORD_VALUE):
        rest = cost_record_member(program, costs, local.index, place)
        return cost_add(rest, colon) if local.phase == RECORD_COLON else rest
    # A key is due, or the end: the cheapest of what is allowed here.
    if local.phase == RECORD_FIRST_KEY and record_complete(record, place):
        best = cost_lexeme(costs, program.automata[record.close_empty].start)
    for key in range(place.position, <int32_t>record.values.size()):
        if turn_late(program.index):
            return UNREACHED
        if not record_key_alive(record, place, key):
            continue
        at = place
        if record.ordered:
            record_skip(record, &at, key if key < record.count else record.count)
        at.position = key
        rest = cost_add(record.key_bytes[key] if key < record.count else cost_other_key(program, record, key - record.count), colon)
        rest = cost_add(rest, cost_record_member(program, costs, local.index, at))
        if rest < best:
            best = rest
    return best


cdef void cost_plain_reach(unordered_map[int32_t, int32_t]& index, vector[PlainWay]& ways,
                           priority_queue[pair[int64_t, int32_t]]& queue, int32_t state, int32_t distance,
                           int32_t before) noexcept nogil:
    # A way to a plain state; kept when it is a cheaper one.
    cdef PlainWay way
    found = index.find(state)
    way.state = state
    way.before = before
    way.distance = distance
    way.done = False
    if found == index.end():
        index[state] = <int32_t>ways.size()
        queue.push(pair[int64_t, int32_t](-<int64_t>distance, <int32_t>ways.size()))
        ways.push_back(way)
    elif distance < ways[dereference(found).second].distance:
        ways[dereference(found).second] = way
        queue.push(pair[int64_t, int32_t](-<int64_t>distance, dereference(found).second))


cdef int32_t cost_plain(Program* program, Costs* costs, int32_t state) noexcept nogil:
    # Shortest way through a rule body: Dijkstra over its plain states, as far as a state whose cost is known.  What lies on
    # that way is known then, so that following it costs nothing more.
    cdef vector[PlainWay] ways
    cdef unordered_map[int32_t, int32_t] index
    cdef priority_queue[pair[int64_t, int32_t]] queue
    cdef PlainWay way
    cdef PlainTerm term
    cdef Call call
    cdef int32_t at, goal = -1, total = UNREACHED, weight
    known = costs.plain.find(state)
    if known != costs.plain.end():
        return dereference(known).second
    cost_plain_reach(index, ways, queue, state, 0, -1)
    while not queue.empty() and not deadline_passed(&program.index.deadline):
        at = queue.top().second
        weight = <int32_t>-queue.top().first
        queue.pop()
        way = ways[at]
        if weight >= total:
            break
        if way.done:
            continue
        ways[at].done = True
        known = costs.plain.find(way.state)
        weight = UNREACHED
        if program.plain_final[way.state]:
            weight = way.distance
        elif known != costs.plain.end():
            weight = cost_add(way.distance, dereference(known).second)
        if weight < total:
            total = weight
            goal = at
        if program.plain_final[way.state] or known != costs.plain.end():
            continue
        for term in program.plain_terms[way.state]:
            weight = cost_add(way.distance, cost_term(program, costs, term))
            if weight < total:
                cost_plain_reach(index, ways, queue, term.target, weight, at)
        for call in program.plain_calls[way.state]:
            weight = cost_add(way.distance, costs.rules[call.rule])
            if weight < total:
                cost_plain_reach(index, ways, queue, call.back, weight, at)
    if costs.settled and not program.index.deadline.passed:
        costs.plain[state] = total
        while goal >= 0:
            costs.plain[ways[goal].state] = total - ways[goal].distance
            goal = ways[goal].before
    return total


cdef int32_t cost_repeated(Program* program, Costs* costs, const RepeatedDef& repeated, int32_t count) noexcept nogil:
    cdef int64_t total = 0
    if count >= repeated.low:
        return 0
    if count == 0:
        total = costs.rules[repeated.first]
        count = 1
    return cost_add(total, <int64_t>costs.rules[repeated.rest] * (repeated.low - count)
                    if repeated.low > count else 0)


cdef int32_t cost_local(Program* program, Costs* costs, int32_t id) noexcept nogil:
    # Bytes from a dotted item to the end of its rule.
    cdef DottedItem* local = program.locals[id]
    if local.kind == LOCAL_PLAIN:
        return cost_plain(program, costs, local.index)
    if local.kind == LOCAL_REPEATED:
        return cost_repeated(program, costs, program.repeated[local.index], local.count)
    if local.kind == LOCAL_INDENTED:
        return costs.rules[program.indented[local.index]] if local.phase <= INDENTED_INSIDE else 0
    return cost_record_local(program, costs, local)


cdef void cost_uses(Program* program, int32_t rule, vector[pair[int32_t, int32_t]]& uses) noexcept nogil:
    # Note which rules the cost of a rule depends on, as (that one, this one).
    cdef RuleStart start = program.rules[rule]
    cdef vector[int32_t] work
    cdef unordered_map[int32_t, char] seen
    cdef int32_t state
    cdef size_t i
    cdef PlainTerm term
    cdef Call call
    cdef RecordValue value
    if start.kind == LOCAL_REPEATED:
        uses.push_back(pair[int32_t, int32_t](program.repeated[start.index].first, rule))
        uses.push_back(pair[int32_t, int32_t](program.repeated[start.index].rest, rule))
    elif start.kind == LOCAL_INDENTED:
        uses.push_back(pair[int32_t, int32_t](program.indented[start.index], rule))
    elif start.kind == LOCAL_RECORD:
        for i in range(program.records[start.index].values.size()):
            for value in program.records[start.index].values[i]:
                uses.push_back(pair[int32_t, int32_t](value.rule, rule))
    else:
        work.push_back(start.index)
        seen[start.index] = 1
        while not work.empty():
            state = work.back()
            work.pop_back()
            for term in program.plain_terms[state]:
                if seen.count(term.target) == 0:
                    seen[term.target] = 1
                    work.push_back(term.target)
            for call in program.plain_calls[state]:
                uses.push_back(pair[int32_t, int32_t](call.rule, rule))
                if seen.count(call.back) == 0:
                    seen[call.back] = 1
                    work.push_back(call.back)


cdef void costs_fill_rules(Program* program, Costs* costs) noexcept nogil:
    # Relax until nothing changes; a rule's shortest text never needs the rule itself.  A round looks only at rules that use
    # one that has changed since: in a chain of rules, few.
    cdef vector[pair[int32_t, int32_t]] uses
    cdef Csr[int32_t] users
    cdef vector[int32_t] work, later
    cdef vector[char] waits
    cdef int32_t rule, user, cost
    cdef size_t count = program.rules.size()
    costs.rules.assign(count, UNREACHED)
    waits.assign(count, 1)
    for rule in range(<int32_t>count):
        cost_uses(program, rule, uses)
        work.push_back(rule)
    users = by_owner[int32_t](count, uses)
    while not work.empty():
        later.clear()
        for rule in work:
            if turn_late(program.index):
                return
            waits[rule] = 0
            cost = cost_local(program, costs, parse_rule_start(program, rule))
            if cost >= costs.rules[rule]:
                continue
            costs.rules[rule] = cost
            for user in users[rule]:
                if not waits[user]:
                    waits[user] = 1
                    later.push_back(user)
        # In one order, whatever changed first.
        sort(later.begin(), later.end())
        work.swap(later)
    costs.settled = not program.index.deadline.passed


cdef int32_t cost_node(Program* program, Costs* costs, int32_t start) noexcept nogil:
    # Bytes needed once the rule on top has ended: for all nodes below that are new, by relaxation.
    # Nodes lie above older ones but in cycles, so the order by number needs few rounds.
    cdef vector[int32_t] work, fresh
    cdef int32_t node, best, below
    cdef cbool changed = True
    cdef Return back
    work.push_back(start)
    while not work.empty():
        node = work.back()
        work.pop_back()
        if costs.nodes.count(node):
            continue
        costs.nodes[node] = UNREACHED
        fresh.push_back(node)
        for back in program.nodes[node].returns:
            if back.local != ACCEPT:
                work.push_back(back.node)
    sort(fresh.begin(), fresh.end())
    while changed and not turn_late(program.index):
        changed = False
        for node in fresh:
            best = UNREACHED
            for back in program.nodes[node].returns:
                below = 0
                if back.local != ACCEPT:
                    below = cost_add(cost_local(program, costs, back.local), costs.nodes[back.node])
                if below < best:
                    best = below
            if best < costs.nodes[node]:
                costs.nodes[node] = best
                changed = True
    best = costs.nodes[start]
    if program.index.deadline.passed:
        for node in fresh:
            costs.nodes.erase(node)
    return best


cdef int32_t cost_parser(Program* program, Costs* costs, int32_t id) noexcept nogil:
    cdef int32_t best = UNREACHED, cost
    cdef Item item
    if program.states[id].complete:
        return 0
    for item in program.states[id].items:
        cost = cost_add(cost_local(program, costs, item.local), cost_node(program, costs, item.node))
        if cost < best:
            best = cost
    return best


cdef void costs_prepare(Core* core) noexcept nogil:
    if core.costs.rules.empty():
        costs_fill_rules(core.program, core.costs)
        if core.index.deadline.passed:
            core.costs.rules.clear()


cdef void shortest_try(Core* core, Costs* costs, LexState* lex, int32_t parser, int32_t text, int32_t tag,
                       vector[uint8_t]& path, int32_t* best, int32_t* best_after,
                       vector[uint8_t]& best_path) noexcept nogil:
    # Keep `path`, which matches `lex` with `tag`, when it leads to a cheaper completion.
    cdef int32_t after, guard, key = NO_KEY
    cdef string quoted
    if lex_keeps_text(lex) and tag >= lex.automaton.keyset.other_tag:
        if text != UNKNOWN_TEXT:
            quoted = thread_quoted(core, text)
        quoted.append(<const char*>path.data(), path.size())
        key = ANY_KEY if text == UNKNOWN_TEXT else lex.automaton.keyset.used.name(key_text(quoted))
    shortest_keep(core, costs, state_goto(core.program, parser, lex.automaton, tag, key), path, best, best_after, best_path)
    for guard in core.program.states[parser].guards:
        after = state_goto_guarded(core.program, parser, lex.automaton, tag, guard)
        shortest_keep(core, costs, after, path, best, best_after, best_path)


cdef void shortest_keep(Core* core, Costs* costs, int32_t after, vector[uint8_t]& path, int32_t* best,
                        int32_t* best_after, vector[uint8_t]& best_path) noexcept nogil:
    cdef int32_t cost
    if after == NO_STATE:
        return
    cost = cost_add(<int64_t>path.size(), cost_parser(core.program, costs, after))
    if cost < best[0]:
        best[0] = cost
        best_after[0] = after
        best_path = path


cdef void shortest_try_lexeme(Core* core, Costs* costs, LexState* lex, int32_t parser, int32_t text,
                              int32_t* best, int32_t* best_after,
                              vector[uint8_t]& best_path) noexcept nogil:
    cdef vector[uint8_t] path
    cdef Automaton* keys = lex.automaton
    cdef vector[int32_t] tags
    cdef cbool found = False
    cdef int32_t i
    if keys.kind != KIND_KEYSET:
        if keys.kind == KIND_WORDS:
            words_tags(lex, tags)
        else:
            for i in range(keys.kinds):
                tags.push_back(i)
        for i in tags:
            path.clear()
            lex_shortest(lex, i, path, &found)
            if found:
                shortest_try(core, costs, lex, parser, text, i, path, best, best_after, best_path)
        return
    if lex.key.where in (KEY_START, KEY_BODY):
        for i in range(lex.key.first, lex.key.last):
            if turn_late(core.index):
                return
            if key_allows(keys, &lex.key, keys.texts.tags[i]) and key_rest(lex, i, path):
                shortest_try(core, costs, lex, parser, text, keys.texts.tags[i], path, best, best_after, best_path)
    if lex.key.other == 1:
        for i in range(keys.keyset.other_tag, keys.keyset.other_tag + keys.kinds):
            path.clear()
            lex_shortest(lex, i, path, &found)
            if found:
                shortest_try(core, costs, lex, parser, text, i, path, best, best_after, best_path)


cdef cbool key_rest(LexState* lex, int32_t index, vector[uint8_t]& path) noexcept nogil:
    # The bytes from a keyset state to the end of one of its names; False when an escape is under
    # way that spells another character.
    cdef const string* name = &lex.automaton.texts.names[index]
    cdef string rest
    cdef size_t j, at = <size_t>lex.key.depth
    cdef int32_t c
    path.clear()
    if lex.key.where == KEY_START:
        path.push_back(QUOTE)
    if lex.key.escape != 0:
        if at >= name.size():
            return False
        c = key_code_point(name[0], at)
        if not key_escape_fits(lex.automaton.spelling, c, lex.key.escape, lex.key.value):
            return False
        rest = key_escape_rest(c, lex.key.escape)
        path.insert(path.end(), rest.begin(), rest.end())
        at += key_spelling(c).size()
    for j in range(at, name.size()):
        path.push_back(<uint8_t>name[0][j])
    path.push_back(QUOTE)
    return True


cdef int32_t shortest_byte(Core* core, const Thread& thread) noexcept nogil:
    # The next byte of the shortest completion as if items might repeat; -1 where a lexeme may end here.
    cdef vector[uint8_t] path
    cdef int32_t best = UNREACHED, after = NO_STATE
    cdef const ParserState* state = core.program.states[thread.parser]
    cdef size_t i
    costs_prepare(core)
    if core.index.deadline.passed:
        return -1
    if thread.lex != NULL:
        shortest_try_lexeme(core, core.costs, thread.lex, thread.parser, thread.memory, &best, &after, path)
    else:
        for i in range(state.starts.size()):
            shortest_try_lexeme(core, core.costs, state.starts[i], thread.parser, 0, &best, &after, path)
    return -1 if path.empty() else path[0]
