# Records: members by key, in their order or in any, counted, and with goals to reach.
#
# The register of a record says how far it is: the next member, or the set of those that came; the
# number of members; the goals still missing; the other keys that came.  Only keys and values are
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


cdef inline cbool record_has_others(const RecordDef* record) noexcept nogil:
    return <int32_t>record.values.size() > record.count


cdef int32_t record_start(RecordDef* record) noexcept nogil:
    cdef RecordRegister place
    memset(&place, 0, sizeof(place))
    place.missing = record.goals
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
    # Note one more member and the goals that its value reaches; False when there are too many.
    place.missing &= ~value.goals
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


cdef void record_expand(Program* program, Local* local) noexcept nogil:
    cdef RecordDef* record = &program.records[local.index]
    cdef RecordRegister place = record_register(record, local.count)
    cdef RecordRegister after
    cdef LexState* keys = LEX_DEAD
    cdef Call call
    cdef size_t i
    if local.phase in (RECORD_FIRST_KEY, RECORD_NEXT_KEY, RECORD_AFTER):
        keys = record_key_start(program, record, place)
    if local.phase == RECORD_OPEN:
        parse_add_term(program, local, record.open)
    elif local.phase == RECORD_FIRST_KEY:
        if keys != LEX_DEAD:
            local.terms.push_back(keys)
        if record_complete(record, place):
            parse_add_term(program, local, record.close_empty)
    elif local.phase == RECORD_NEXT_KEY:
        if keys != LEX_DEAD:
            local.terms.push_back(keys)
    elif local.phase == RECORD_COLON:
        parse_add_term(program, local, record.colon)
    elif local.phase == RECORD_VALUE:
        for i in range(record.values[place.position].size()):
            after = place
            if record_take(record, &after, record.values[place.position][i]) and record_alive(record, after):
                call.rule = record.values[place.position][i].rule
                call.back = parse_local(program, LOCAL_RECORD, local.index, RECORD_AFTER,
                                        record_register_id(record, after))
                local.calls.push_back(call)
    elif local.phase == RECORD_AFTER:
        if keys != LEX_DEAD:
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


cdef int32_t record_phase_after(Program* program, const Local* local, const Automaton* automaton,
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
        if (automaton == program.automata[record.comma]
                and record_key_start(program, record, place) != LEX_DEAD):
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

cdef struct RecordWeights:
    int32_t comma
    int32_t colon


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
    # Others: at most as many as there are goals; then, for members that are missing, the cheapest again and again.
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
