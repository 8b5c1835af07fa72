# Rules: what each place inside a rule waits for.
#
# A *local* state is a place inside one rule together with the rule's register (how many items,
# which members), as a number.  Expanding one says which lexemes and which rules may come next
# and whether the rule may end.  The data of stacks and parser states is declared here as well.

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.limits cimport deferred_free_breathe
from maskwright._engine.lexemes cimport KIND_BOUNDARY, KIND_KEYSET, KIND_TOKENS, NO_TAG
from maskwright._engine.lexeme_texts cimport automaton_new, LEX_DEAD
from maskwright._engine.keyset cimport key_may_run_out, key_start
from maskwright._engine.shortest_match cimport UNREACHED
from maskwright._engine.longest_match cimport terminals_add
from maskwright._engine.longest_match_walks cimport lex_free
from maskwright._engine.program cimport (
    ANY_KEY, Call, cost_add, INDENTED_AFTER, INDENTED_BEFORE, INDENTED_DONE, INDENTED_INSIDE, KEY_ENTRY,
    LOCAL_INDENTED, LOCAL_RECORD, LOCAL_REPEATED, NO_STATE, RECORD_AFTER, RECORD_COLON, RECORD_DONE,
    RECORD_FIRST_KEY, RECORD_NEXT_KEY, RECORD_OPEN, RECORD_VALUE, RepeatedDef
)


cdef void parse_free(Program* program) noexcept nogil:
    cdef size_t i
    while program.locals.drop() or program.nodes.drop() or program.states.drop():
        deferred_free_breathe()
    for i in range(program.keysets.size()):
        lex_free(program.keysets[i])
    del program.column
    del program


# --- dotted items ---------------------------------------------------------------------------

cdef int32_t parse_local(Program* program, int32_t kind, int32_t index, int32_t phase,
                         int32_t count) noexcept nogil:
    cdef int32_t fields[4]
    cdef int32_t known
    cdef DottedItem* local
    fields[0] = kind
    fields[1] = index
    fields[2] = phase
    fields[3] = count
    known = program.dotted_ids.find(fields, sizeof(fields))
    if known >= 0:
        return known
    program.dotted_ids.insert(fields, sizeof(fields), <int32_t>program.locals.size())
    local = program.locals.add()
    local.kind = kind
    local.index = index
    local.phase = phase
    local.count = count
    return <int32_t>program.locals.size() - 1


cdef int32_t parse_rule_start(Program* program, int32_t rule) noexcept nogil:
    cdef int32_t place = 0
    if program.rules[rule].kind == LOCAL_RECORD:
        place = record_start(&program.records[program.rules[rule].index])
    return parse_local(program, program.rules[rule].kind, program.rules[rule].index, 0, place)


cdef Automaton* keyset_of(Program* program, int32_t place) noexcept nogil:
    # The automaton of a record's keys.  What its states say of keys that came belongs to texts, and not to the language: of such
    # a keyset, a program has a copy.
    cdef Automaton* given = program.automata[place]
    cdef Automaton* own
    if not given.keyset.unique or given.keyset.used != NULL:
        return given
    own = automaton_new(program.index, KIND_KEYSET, given)
    own.uid = given.uid
    own.spelling = given.spelling
    own.keyset.other_tag = given.keyset.other_tag
    own.kinds = given.kinds
    own.keyset.base = given.keyset.base
    own.keyset.unique = True
    own.keyset.used = &program.key_sets
    own.keyset.held = &program.held
    own.keyset.place = place
    program.keysets.push_back(own)
    program.automata[place] = own
    own.start = key_start(own, 0, <int32_t>0x7FFFFFFF, own.keyset.base != NULL, NULL, 0, False)
    return own


cdef void parse_add_term(Program* program, DottedItem* local, int32_t automaton) noexcept nogil:
    if program.automata[automaton].kind == KIND_TOKENS:
        local.tokens.push_back(program.automata[automaton].start)
    elif program.automata[automaton].kind == KIND_BOUNDARY:
        local.boundaries.push_back(program.automata[automaton].start)
    elif program.automata[automaton].start != LEX_DEAD:
        local.terms.push_back(program.automata[automaton].start)


cdef void parse_expand_repeated(Program* program, DottedItem* local) noexcept nogil:
    cdef RepeatedDef repeated = program.repeated[local.index]
    cdef Call call
    cdef int32_t saturation
    local.final = local.count >= repeated.low
    if repeated.high < 0 or local.count < repeated.high:
        saturation = repeated.high
        if saturation < 0:
            saturation = repeated.low if repeated.low > 1 else 1
        call.rule = repeated.first if local.count == 0 else repeated.rest
        call.back = parse_local(program, LOCAL_REPEATED, local.index, 0,
                                local.count + 1 if local.count < saturation else saturation)
        local.calls.push_back(call)


cdef void parse_expand_plain(Program* program, DottedItem* local) noexcept nogil:
    cdef size_t i
    cdef Call call
    for i in range(program.plain_terms[local.index].size()):
        if program.plain_terms[local.index][i].automaton < 0:
            local.terminals.push_back(-1 - program.plain_terms[local.index][i].automaton)
            terminals_add(local.terminal_set, local.terminals.back())
        else:
            parse_add_term(program, local, program.plain_terms[local.index][i].automaton)
    for i in range(program.plain_calls[local.index].size()):
        call.rule = program.plain_calls[local.index][i].rule
        call.back = parse_local(program, LOCAL_PLAIN, program.plain_calls[local.index][i].back, 0, 0)
        local.calls.push_back(call)
    local.final = program.plain_final[local.index] != 0


cdef DottedItem* parse_expand(Program* program, int32_t id) noexcept nogil:
    cdef DottedItem* local = program.locals[id]
    if not local.expanded:
        local.expanded = True
        local.final = local.may_run_out = False
        if local.kind == LOCAL_PLAIN:
            parse_expand_plain(program, local)
        elif local.kind == LOCAL_REPEATED:
            parse_expand_repeated(program, local)
        elif local.kind == LOCAL_INDENTED:
            parse_expand_indented(program, local)
        else:
            record_expand(program, local)
        local.pure_final = local.final and not dotted_waits(local) and local.calls.empty()
    return local


cdef inline cbool parse_is_term(const Program* program, int32_t term, const Automaton* automaton,
                                int32_t tag) noexcept nogil:
    if term < 0:
        return automaton == program.lexer and tag == -1 - term
    return program.automata[term] == automaton


cdef void parse_advance(Program* program, int32_t id, const Automaton* automaton, int32_t tag, int32_t key,
                        vector[int32_t]& out) noexcept nogil:
    # The dotted items behind a lexeme.
    cdef DottedItem* local = program.locals[id]
    cdef size_t i
    cdef int32_t phase, count
    if local.kind == LOCAL_PLAIN:
        for i in range(program.plain_terms[local.index].size()):
            if program.plain_terms[local.index][i].tag not in (NO_TAG, tag):
                continue
            if parse_is_term(program, program.plain_terms[local.index][i].automaton, automaton, tag):
                out.push_back(parse_local(program, LOCAL_PLAIN,
                                          program.plain_terms[local.index][i].target, 0, 0))
    elif local.kind == LOCAL_RECORD:
        phase = record_phase_after(program, local, automaton, tag, key, &count)
        if phase != NO_STATE:
            out.push_back(parse_local(program, LOCAL_RECORD, local.index, phase, count))


# --- Records: members by key, in their order or in any, counted, and with obligations to reach.
#
# The register of a record says how far it is: the next member, or the set of those that came; the
# number of members; the obligations still missing; the other keys that came.  Only keys and values are
# offered from which the record can be completed.

cdef RecordRegister record_register(const RecordDef* record, int32_t id) noexcept nogil:
    cdef RecordRegister place
    if id > record.count:
        return record.registers[id - record.count - 1]
    memset(&place, 0, sizeof(place))
    place.position = id
    return place


cdef int32_t record_register_id(RecordDef* record, RecordRegister place) noexcept nogil:
    cdef string key
    cdef int32_t id
    if record.simple and place.position <= record.count and not (place.used or place.pending or place.taken):
        return place.position
    key.assign(<const char*>&place, sizeof(RecordRegister))
    id = record.register_ids.find(key)
    if id < 0:
        id = <int32_t>record.registers.size() + record.count + 1
        record.registers.push_back(place)
        record.register_ids.insert(key, id)
        record.held[0] += 3 * sizeof(RecordRegister) + KEY_ENTRY
    return id


cdef int32_t record_start(RecordDef* record) noexcept nogil:
    cdef RecordRegister place
    memset(&place, 0, sizeof(place))
    place.missing = record.obligations
    return record_register_id(record, place)


cdef inline cbool record_has_taken(const RecordDef* record, const RecordRegister& place, int32_t member) noexcept nogil:
    return place.taken != 0 and record.taken[place.taken][member] != 0


cdef int32_t record_taken_with(RecordDef* record, int32_t before, int32_t member) noexcept nogil:
    # The set of members with one more.
    cdef vector[char] members
    if before == 0:
        members.resize(record.count, 0)
    else:
        members = record.taken[before]
    members[member] = 1
    return record_taken_intern(record, members)


cdef int32_t record_taken_intern(RecordDef* record, const vector[char]& members) noexcept nogil:
    cdef vector[char] nobody
    cdef string name
    cdef int32_t id
    if record.taken.empty():
        nobody.resize(record.count, 0)
        record.taken.push_back(nobody)
    name.assign(members.data(), members.size())
    id = record.taken_ids.find(name)
    if id < 0:
        id = <int32_t>record.taken.size()
        record.taken.push_back(members)
        record.taken_ids.insert(name, id)
        record.held[0] += 3 * record.count + KEY_ENTRY
    return id


cdef cbool record_count(const RecordDef* record, RecordRegister* place, const RecordValue& value) noexcept nogil:
    # Note one more member and the obligations that its value reaches; False when there are too many.
    place.missing &= ~value.obligations
    if record.most >= 0:
        place.members += 1
        return place.members <= record.most
    if place.members < record.least:
        place.members += 1
    return True


cdef cbool record_take(RecordDef* record, RecordRegister* place, const RecordValue& value) noexcept nogil:
    # Move behind the member at `position`, written as `value`; False when there are too many.
    if record.ordered:
        place.position = place.position + 1 if place.position < record.count else record.count
    else:
        if place.position < record.count:
            place.taken = record_taken_with(record, place.taken, place.position)
        place.position = 0
    return record_count(record, place, value)


cdef void record_skip(const RecordDef* record, RecordRegister* place, int32_t to) noexcept nogil:
    # Leave members out: those up to another one, in order; all others, at the end.
    cdef int32_t i
    for i in range(place.position, to if place.missing else place.position):
        if not record_has_taken(record, place[0], i):
            place.missing &= ~record.absent[i]
    place.position = to


cdef int32_t record_required(const RecordDef* record, const RecordRegister& place) noexcept nogil:
    # How many members still have to come.
    cdef int32_t i, total = record.required_from[place.position]
    if place.taken:
        for i in range(record.count):
            if record.next_required[i] == i and record.taken[place.taken][i]:
                total -= 1
    return total


cdef cbool record_complete(const RecordDef* record, RecordRegister place) noexcept nogil:
    # Whether the record may end.
    if record_required(record, place) > 0:
        return False
    record_skip(record, &place, record.count)
    return place.missing == 0 and place.members >= record.least


cdef cbool record_alive(RecordDef* record, RecordRegister place) noexcept nogil:
    # Whether the record can be completed from here.
    cdef int32_t required, left, id, i
    cdef cbool result
    if record.simple:
        return True
    if place.missing == 0:
        required = record_required(record, place)
        if record.most >= 0 and place.members + required > record.most:
            return False
        left = record.count - place.position
        for i in range(record.count if place.taken else 0):
            left -= record.taken[place.taken][i]
        return record_has_others(record) or place.members + left >= record.least
    id = record_register_id(record, place)
    found = record.alive.find(id)
    if found != record.alive.end():
        return dereference(found).second
    result = record_search(record, place, NULL, NULL, False) < UNREACHED
    record.alive[id] = result
    return result


cdef cbool record_value_alive(RecordDef* record, RecordRegister place, const RecordValue& value) noexcept nogil:
    return record_take(record, &place, value) and record_alive(record, place)


cdef cbool record_key_alive(RecordDef* record, RecordRegister place, int32_t member) noexcept nogil:
    # Whether `member` may come next.
    cdef size_t i
    cdef int32_t required
    if record.ordered:
        required = record.next_required[place.position]
        if member < record.count:
            if not place.position <= member <= required:
                return False
        elif required < record.count:
            return False
        record_skip(record, &place, member if member < record.count else record.count)
    elif member < record.count and record_has_taken(record, place, member):
        return False
    if record.simple:
        return True
    place.position = member
    for i in range(record.values[member].size()):
        if record_value_alive(record, place, record.values[member][i]):
            return True
    return False


cdef LexState* record_key_start(Program* program, RecordDef* record, RecordRegister place) noexcept nogil:
    # The keys that may come next.  In order, that is any declared member from here up to the next
    # required one; others once none is required.
    cdef int32_t last = record.next_required[place.position] if record.ordered else record.count
    cdef int32_t kinds = <int32_t>record.values.size() - record.count
    cdef cbool others = last == record.count and kinds > 0
    cdef vector[char] allowed
    cdef size_t allowed_sorts = 0
    cdef int32_t i
    if record.simple and place.taken == 0:
        return key_start(keyset_of(program, record.keys.back()), place.position, last, others, NULL,
                         place.used, place.pending)
    allowed.resize(record.count, 0)
    for i in range(place.position, last + 1 if last < record.count else record.count):
        allowed[i] = record_key_alive(record, place, i)
    if record.simple and others:
        return key_start(keyset_of(program, record.keys.back()), place.position, last, True, &allowed,
                         place.used, place.pending)
    for i in range(kinds if others else 0):
        if record_key_alive(record, place, record.count + i):
            allowed_sorts |= <size_t>1 << record.sorts[i]
    if allowed_sorts == 0:
        return key_start(keyset_of(program, record.keys.back()), place.position, last, False, &allowed, 0, False)
    return key_start(keyset_of(program, record.keys[allowed_sorts]), place.position, last, True, &allowed,
                     place.used, place.pending)


cdef inline cbool record_goes_on(Program* program, RecordDef* record, const RecordRegister& place) noexcept nogil:
    # Whether another member may come.
    if record_is_keyless(record):
        return record_key_alive(record, place, 0)
    return record_key_start(program, record, place) != LEX_DEAD


cdef void record_offer_value(Program* program, DottedItem* local, RecordDef* record, const RecordRegister& place) noexcept nogil:
    # The ways to write the member at `position`.
    cdef RecordRegister after
    cdef Call call
    cdef size_t i
    for i in range(record.values[place.position].size()):
        after = place
        if record_take(record, &after, record.values[place.position][i]) and record_alive(record, after):
            call.rule = record.values[place.position][i].rule
            call.back = parse_local(program, LOCAL_RECORD, local.index, RECORD_AFTER,
                                    record_register_id(record, after))
            local.calls.push_back(call)


cdef void record_expand(Program* program, DottedItem* local) noexcept nogil:
    cdef RecordDef* record = &program.records[local.index]
    cdef RecordRegister place = record_register(record, local.count)
    cdef LexState* keys
    if place.pending and local.phase in (RECORD_NEXT_KEY, RECORD_AFTER) and not record_is_keyless(record):
        local.may_run_out = key_may_run_out(record_key_start(program, record, place))
    if local.phase == RECORD_OPEN:
        parse_add_term(program, local, record.open)
    elif local.phase in (RECORD_FIRST_KEY, RECORD_NEXT_KEY):
        if record_is_keyless(record):
            record_offer_value(program, local, record, place)
        else:
            keys = record_key_start(program, record, place)
            if keys != LEX_DEAD:
                local.terms.push_back(keys)
        if local.phase == RECORD_FIRST_KEY and record_complete(record, place):
            parse_add_term(program, local, record.close_empty)
    elif local.phase == RECORD_COLON:
        parse_add_term(program, local, record.colon)
    elif local.phase == RECORD_VALUE:
        record_offer_value(program, local, record, place)
    elif local.phase == RECORD_AFTER:
        if record_goes_on(program, record, place):
            parse_add_term(program, local, record.comma)
        if record_complete(record, place):
            parse_add_term(program, local, record.close)
    else:
        local.final = True


cdef cbool record_owns_keys(const Program* program, const RecordDef* record, const Automaton* automaton) noexcept nogil:
    cdef size_t i
    for i in range(record.keys.size()):
        if record.keys[i] >= 0 and program.automata[record.keys[i]] == automaton:
            return True
    return False


cdef int32_t record_phase_after(Program* program, const DottedItem* local, const Automaton* automaton,
                                int32_t tag, int32_t key, int32_t* count) noexcept nogil:
    # The phase behind a lexeme, or NO_STATE when the record does not wait for it.
    cdef RecordDef* record = &program.records[local.index]
    cdef RecordRegister place = record_register(record, local.count)
    count[0] = local.count
    if local.phase == RECORD_OPEN:
        return RECORD_FIRST_KEY if automaton == program.automata[record.open] else NO_STATE
    if local.phase == RECORD_COLON:
        return RECORD_VALUE if automaton == program.automata[record.colon] else NO_STATE
    if local.phase == RECORD_AFTER:
        if automaton == program.automata[record.close] and record_complete(record, place):
            return RECORD_DONE
        if automaton == program.automata[record.comma] and record_goes_on(program, record, place):
            return RECORD_NEXT_KEY
        return NO_STATE
    if record_owns_keys(program, record, automaton):
        if not record_key_alive(record, place, tag):
            return NO_STATE
        if record.ordered:
            record_skip(record, &place, tag if tag < record.count else record.count)
        place.position = tag
        if key >= 0:
            place.used = program.key_sets.with_text(place.used, program.key_sets.named(key))
        elif key == ANY_KEY:
            place.pending = 1
        if record.bare:
            record_take(record, &place, record.values[tag][0])
            count[0] = record_register_id(record, place)
            return RECORD_AFTER
        count[0] = record_register_id(record, place)
        return RECORD_COLON
    if (local.phase == RECORD_FIRST_KEY and record_complete(record, place)
            and automaton == program.automata[record.close_empty]):
        return RECORD_DONE
    return NO_STATE


# --- the cheapest way out -------------------------------------------------------------------

cdef uint64_t record_search_key(const RecordRegister& place, cbool first) noexcept nogil:
    return (<uint64_t>place.missing << 32) | (<uint64_t>place.members << 1) | first


cdef void record_search_add(unordered_map[uint64_t, int32_t]* states, const RecordRegister& place,
                            cbool first, int32_t cost) noexcept nogil:
    cdef uint64_t key = record_search_key(place, first)
    found = states.find(key)
    if found == states.end():
        states[0][key] = cost
    elif cost < dereference(found).second:
        states[0][key] = cost


cdef int32_t record_search(RecordDef* record, RecordRegister place, const Costs* costs,
                           const RecordWeights* weights, cbool first) noexcept nogil:
    # The least that members, keys and commas from here to the close cost; without `costs`, 0 when there
    # is a way.  `first`: no member has come before; the close is not counted.  UNREACHED: no way.
    cdef unordered_map[uint64_t, int32_t] states, after
    cdef pair[uint64_t, int32_t] entry
    cdef RecordRegister at, next
    cdef int32_t i, kind, cost, best = UNREACHED, rounds, cheapest
    cdef cbool is_first
    cdef RecordValue value
    record_search_add(&states, place, first, 0)
    for i in range(place.position, record.count):
        if record_has_taken(record, place, i):
            continue
        after.clear()
        for entry in states:
            record_search_read(entry.first, i, &at, &is_first)
            if record.next_required[i] != i:
                next = at
                next.missing &= ~record.absent[i]
                record_search_add(&after, next, is_first, entry.second)
            for value in record.values[i]:
                next = at
                if record_count(record, &next, value):
                    cost = entry.second
                    if costs != NULL:
                        cost = cost_add(cost, costs.rules[value.rule])
                        cost = cost_add(cost, record.key_bytes[i] + weights.colon + (0 if is_first else weights.comma))
                    if cost < UNREACHED:
                        record_search_add(&after, next, False, cost)
        states.swap(after)
    # Others: at most as many as there are obligations; then, for members that are missing, the cheapest again and again.
    cheapest = record_cheapest_other(record, costs, weights)
    rounds = 0
    while True:
        after.clear()
        for entry in states:
            record_search_read(entry.first, record.count, &at, &is_first)
            if at.missing == 0:
                cost = record_filled_up(record, at, entry.second, cheapest)
                if costs != NULL and is_first and cost < UNREACHED and at.members < record.least:
                    cost -= weights.comma
                best = min(best, cost)
        if not record_has_others(record) or rounds > 32:
            return best
        for entry in states:
            record_search_read(entry.first, record.count, &at, &is_first)
            if at.missing == 0 or entry.second >= best:
                continue
            for kind in range(record.count, <int32_t>record.values.size()):
                for value in record.values[kind]:
                    next = at
                    if not record_count(record, &next, value):
                        continue
                    if next.missing == at.missing and next.members == at.members:
                        continue
                    cost = entry.second
                    if costs != NULL:
                        cost = cost_add(cost, costs.rules[value.rule])
                        cost = cost_add(cost, record.other_key_bytes[kind - record.count] + weights.colon + (0 if is_first else weights.comma))
                    if cost < best:
                        record_search_add(&after, next, False, cost)
        if after.empty():
            return best
        states.swap(after)
        rounds += 1


cdef int32_t record_cheapest_other(RecordDef* record, const Costs* costs, const RecordWeights* weights) noexcept nogil:
    # What the cheapest member that is not declared costs, with a comma; UNREACHED where there is none.
    cdef int32_t kind, cost, best = UNREACHED
    cdef RecordValue value
    for kind in range(record.count, <int32_t>record.values.size()):
        for value in record.values[kind]:
            cost = 0
            if costs != NULL:
                cost = cost_add(costs.rules[value.rule], record.other_key_bytes[kind - record.count] + weights.colon + weights.comma)
            best = min(best, cost)
    return best


cdef int32_t record_filled_up(const RecordDef* record, const RecordRegister& place, int32_t cost, int32_t cheapest) noexcept nogil:
    # The cost with as many of the cheapest others as members are missing; UNREACHED where they may not come.
    cdef int64_t total
    if place.members >= record.least:
        return cost
    if cheapest >= UNREACHED or (record.most >= 0 and record.least > record.most):
        return UNREACHED
    total = cost + <int64_t>(record.least - place.members) * cheapest
    return <int32_t>min(total, <int64_t>UNREACHED)


cdef void record_search_read(uint64_t key, int32_t position, RecordRegister* place, cbool* first) noexcept nogil:
    memset(place, 0, sizeof(RecordRegister))
    place.position = position
    place.missing = <uint32_t>(key >> 32)
    place.members = <int32_t>((key & <uint64_t>0xFFFFFFFF) >> 1)
    first[0] = (key & 1) != 0


cdef void parse_expand_indented(Program* program, DottedItem* local) noexcept nogil:
    cdef Call call
    if local.phase == INDENTED_INSIDE:
        call.rule = program.indented[local.index]
        call.back = parse_local(program, LOCAL_INDENTED, local.index, INDENTED_AFTER, local.count)
        local.calls.push_back(call)
    local.final = local.phase == INDENTED_DONE
    local.waits_for_line = local.phase == INDENTED_BEFORE or local.phase == INDENTED_AFTER
