# Stacks and parser states of many texts: return addresses to one place become one, with the union of what is below.

cdef enum:
    MERGE_DEPTH = 500      # levels of stacks
    UNDER_WAY = -5


cdef void stack_expand(Sets* sets, int32_t node, vector[int32_t]& out) noexcept nogil:
    # The nodes that a merged node stands for.
    found = sets.parts.find(node)
    if found == sets.parts.end():
        out.push_back(node)
    else:
        out.insert(out.end(), dereference(found).second.begin(), dereference(found).second.end())


cdef int32_t stack_plain(Core* core, Sets* sets, int32_t node, int32_t depth) noexcept nogil:
    # A stack without cycles, with different return addresses at every level.
    cdef Program* program = core.program
    cdef vector[Return] returns, merged
    cdef Return back
    cdef size_t i = 0
    cdef int32_t below
    found = sets.plain.find(node)
    if found != sets.plain.end():
        return dereference(found).second
    returns = program.nodes[node].returns.copied()
    if depth == MERGE_DEPTH or sets_stop(core, sets):
        return node
    while i < returns.size():
        back = returns[i]
        if back.local != ACCEPT:
            back.node = stack_plain(core, sets, back.node, depth + 1)
        i += 1
        while i < returns.size() and returns[i].local == back.local:
            if back.local != ACCEPT:
                below = stack_plain(core, sets, returns[i].node, depth + 1)
                back.node = stack_union(core, sets, back.node, below, depth + 1)
            i += 1
        merged.push_back(back)
    below = node_intern(program, merged)
    sets.plain[node] = below
    sets.plain[below] = below
    return below


cdef int32_t stack_union(Core* core, Sets* sets, int32_t a, int32_t b, int32_t depth) noexcept nogil:
    # The union of two such stacks as one such.  They are interned from the bottom, so equal unions are one node.
    cdef Program* program = core.program
    cdef const Few[Return]* left
    cdef const Few[Return]* right
    cdef vector[Return] merged
    cdef Return back
    cdef size_t i = 0, j = 0
    cdef int64_t key
    cdef int32_t id
    if a == b:
        return a
    if a > b:
        a, b = b, a
    key = pair_key(a, b)
    found = sets.unions.find(key)
    if found != sets.unions.end():
        return dereference(found).second
    if depth == MERGE_DEPTH or sets_stop(core, sets):
        return node_union(program, a, b)
    left = &program.nodes[a].returns
    right = &program.nodes[b].returns
    while i < left.size() or j < right.size():
        if j == right.size() or (i < left.size() and left[0][i].local < right[0][j].local):
            merged.push_back(left[0][i])
            i += 1
        elif i == left.size() or right[0][j].local < left[0][i].local:
            merged.push_back(right[0][j])
            j += 1
        else:
            back = left[0][i]
            if back.local != ACCEPT:
                back.node = stack_union(core, sets, back.node, right[0][j].node, depth + 1)
            merged.push_back(back)
            i += 1
            j += 1
    id = node_intern(program, merged)
    sets.unions[key] = id
    sets.plain[id] = id
    return id


cdef int32_t stack_merge(Core* core, Sets* sets, vector[int32_t]& nodes, int32_t depth) noexcept nogil:
    # The union of stacks as one whose return addresses differ, down to the bottom.  `nodes` are sorted here.
    cdef size_t i
    cdef int32_t id
    numbers_normalize(nodes)
    for id in nodes:
        if core.program.nodes[id].cyclic:
            return stack_merge_cyclic(core, sets, nodes, depth)
    id = stack_plain(core, sets, nodes[0], depth)
    for i in range(1, nodes.size()):
        id = stack_union(core, sets, id, stack_plain(core, sets, nodes[i], depth), depth)
    return id


cdef int32_t stack_merge_cyclic(Core* core, Sets* sets, vector[int32_t]& nodes, int32_t depth) noexcept nogil:
    # The same where stacks have cycles: a subset construction, with stack nodes as states.
    cdef Program* program = core.program
    cdef vector[Return] returns, merged
    cdef vector[int32_t] below
    cdef Return back
    cdef string key
    cdef size_t i = 0
    cdef int32_t id, count
    if nodes.size() == 1:
        return nodes[0]
    key.assign(<const char*>nodes.data(), nodes.size() * sizeof(int32_t))
    found = sets.merged.find(key)
    if found != sets.merged.end() and dereference(found).second != UNDER_WAY:
        return dereference(found).second
    if found != sets.merged.end():
        # A cycle (left recursion): the node comes first, what it holds later.
        id = node_reserve(program)
        sets.merged[key] = id
        sets.parts[id] = nodes
        return id
    for id in nodes:
        returns.insert(returns.end(), program.nodes[id].returns.begin(), program.nodes[id].returns.end())
    returns_normalize(returns)
    if depth == MERGE_DEPTH or sets_stop(core, sets):
        return node_intern(program, returns)
    sets.merged[key] = UNDER_WAY
    sets.held += <int64_t>key.size()
    while i < returns.size():
        back = returns[i]
        below.clear()
        while i < returns.size() and returns[i].local == back.local:
            stack_expand(sets, returns[i].node, below)
            i += 1
        if back.local != ACCEPT:
            back.node = stack_merge(core, sets, below, depth + 1)
        merged.push_back(back)
    id = sets.merged[key]
    if id != UNDER_WAY:
        program.nodes[id].returns.assign(merged)
        return id
    count = <int32_t>program.nodes.size()
    id = node_intern(program, merged)
    sets.merged[key] = id
    if id == count and program.nodes[id].cyclic:
        sets.parts[id] = nodes
    return id


cdef int32_t parsers_merge(Core* core, Sets* sets, vector[int32_t]& ids) noexcept nogil:
    # The union of parser states, at least one; they are sorted here.
    cdef Program* program = core.program
    cdef vector[Item] items, merged
    cdef vector[int32_t] nodes
    cdef Item item
    cdef string key
    cdef size_t i = 0
    cdef int32_t id
    cdef cbool complete = False
    numbers_normalize(ids)
    if ids.size() == 1:
        return ids[0]
    key.assign(<const char*>ids.data(), ids.size() * sizeof(int32_t))
    found = sets.parsers.find(key)
    if found != sets.parsers.end():
        return dereference(found).second
    for id in ids:
        items.insert(items.end(), program.states[id].items.begin(), program.states[id].items.end())
        complete = complete or program.states[id].complete
    sort(items.begin(), items.end(), &item_before)
    while i < items.size():
        item = items[i]
        nodes.clear()
        while i < items.size() and items[i].local == item.local:
            stack_expand(sets, items[i].node, nodes)
            i += 1
        item.node = stack_merge(core, sets, nodes, 0)
        merged.push_back(item)
    id = state_intern(program, merged, complete)
    sets.parsers[key] = id
    sets.held += <int64_t>key.size()
    return id
