# Columns: the rules called at one text position, and the GSS nodes that stand for them.
#
# A rule that is called where others are becomes a node together with them (an Earley column).  Where rules return to each
# other (left recursion), their nodes do, and such a cycle is interned as a whole.

from libc.stdint cimport int64_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.sizes cimport vector_bytes
from maskwright._engine.limits cimport deadline_heavy, deadline_worked
from maskwright._engine.turns cimport turn_passed
from maskwright._engine.program cimport ACCEPT, Call, ColumnItem, DottedItem, LOCAL_INDENTED, NO_STATE, GssNode
from maskwright._engine.rules cimport dotted_waits, parse_expand, parse_rule_start


cdef void column_push(Column* column, int32_t local, int32_t node) noexcept nogil:
    cdef int64_t key = (<int64_t>local << 32) | <uint32_t>node
    cdef ColumnItem item
    if column.seen.find(key) < 0:
        column.seen.insert(key, 1)
        item.local = local
        item.node = node
        column.work.push_back(item)


cdef void column_call(Program* program, Column* column, ColumnItem item, Call call) noexcept nogil:
    cdef int32_t position = column.index.find(call.rule)
    cdef size_t i
    cdef Return back
    if position < 0:
        position = <int32_t>column.rules.size()
        column.index.insert(call.rule, position)
        column.rules.push_back(call.rule)
        if column.returns.size() < column.rules.size():
            column.returns.resize(column.rules.size())
        column.returns[position].clear()
        column.resolved.push_back(NO_STATE)
        column_push(column, parse_rule_start(program, call.rule), -1 - position)
    if item.node >= 0 and parse_expand(program, call.back).pure_final:
        column.called += program.nodes[item.node].returns.size()
        deadline_worked(&program.index.deadline, program.nodes[item.node].returns.size())
        for i in range(program.nodes[item.node].returns.size()):
            column.returns[position].push_back(program.nodes[item.node].returns[i])
    else:
        back.local = call.back
        back.node = item.node
        column.called += 1
        column.returns[position].push_back(back)
    if program.rules[call.rule].nullable:
        column_push(column, call.back, item.node)


cdef void column_return(Program* program, Column* column, int32_t node) noexcept nogil:
    cdef size_t i
    cdef Return back
    if node < 0:
        return
    deadline_worked(&program.index.deadline, program.nodes[node].returns.size())
    for i in range(program.nodes[node].returns.size()):
        back = program.nodes[node].returns[i]
        if back.local == ACCEPT:
            column.complete = True
        else:
            column_push(column, back.local, back.node)


cdef cbool column_late(Program* program, Column* column) noexcept nogil:
    # Whether the operation has no time, or no memory, to go on with this column.
    cdef int64_t bytes = <int64_t>(column.called * sizeof(Return) + column.kept.size() * sizeof(ColumnItem) + column.seen.bytes())
    if bytes > program.index.deadline.most_bytes:
        deadline_heavy(&program.index.deadline, bytes)
    return turn_passed(program.index)


cdef void column_forget(Column* column) noexcept nogil:
    # What a column that was given up takes.
    cdef vector[vector[Return]] returns
    cdef vector[ColumnItem] kept, work
    column.returns.swap(returns)
    column.kept.swap(kept)
    column.work.swap(work)
    column.seen.drop()


cdef void column_close(Program* program, Column* column) noexcept nogil:
    # A nullable rule that ends where it was called needs no return: its caller went on already.
    cdef ColumnItem item
    cdef DottedItem* local
    cdef size_t i
    while not column.work.empty() and not column_late(program, column):
        item = column.work.back()
        column.work.pop_back()
        local = parse_expand(program, item.local)
        if dotted_waits(local):
            column.kept.push_back(item)
        if local.final:
            column_return(program, column, item.node)
        for i in range(local.calls.size()):
            column_call(program, column, item, local.calls[i])


cdef void column_intern_one(Program* program, Column* column, size_t position) noexcept nogil:
    # Intern a called rule's node when everything below it is interned, but for itself.  A return address that
    # would only return again is replaced by where it leads.
    cdef vector[Return] returns
    cdef Return back
    cdef cbool recursive = False
    cdef size_t i, j
    cdef int32_t node
    for i in range(column.returns[position].size()):
        back = column.returns[position][i]
        if back.node < 0:
            node = column.resolved[-1 - back.node]
            if node == NO_STATE:
                # The commonest cycle.
                recursive = True
                continue
            if parse_expand(program, back.local).pure_final:
                deadline_worked(&program.index.deadline, program.nodes[node].returns.size())
                for j in range(program.nodes[node].returns.size()):
                    returns.push_back(program.nodes[node].returns[j])
                continue
            back.node = node
        returns.push_back(back)
    if recursive:
        column_intern_cycle(program, column, column.members)
    else:
        column.resolved[position] = node_intern(program, returns)


cdef void column_intern_cycle(Program* program, Column* column, vector[size_t]& members) noexcept nogil:
    # Left recursion: nodes that refer to each other, interned by their joint content.
    cdef vector[pair[int32_t, size_t]] order
    cdef vector[vector[Return]] contents
    cdef vector[int32_t] rules
    cdef unordered_map[int32_t, int32_t] dotted_index
    cdef vector[Return] returns
    cdef Return back
    cdef size_t i, j
    cdef int32_t base, target
    for i in range(members.size()):
        order.push_back(pair[int32_t, size_t](column.rules[members[i]], members[i]))
    sort(order.begin(), order.end())
    for i in range(order.size()):
        dotted_index[<int32_t>order[i].second] = <int32_t>i
    for i in range(order.size()):
        returns.clear()
        for j in range(column.returns[order[i].second].size()):
            back = column.returns[order[i].second][j]
            if back.node < 0:
                target = -1 - back.node
                if column.resolved[target] != NO_STATE:
                    back.node = column.resolved[target]
                else:
                    back.node = -1 - dotted_index[target]
            returns.push_back(back)
        contents.push_back(returns)
        rules.push_back(order[i].first)
    base = cycle_intern(program, rules, contents)
    for i in range(order.size()):
        column.resolved[order[i].second] = base + <int32_t>i


cdef int32_t cycle_intern(Program* program, const vector[int32_t]& rules, vector[vector[Return]]& contents) noexcept nogil:
    # The first of the nodes, one a rule, that return to each other: -1 - the number of one of them.
    cdef string key
    cdef GssNode* node
    cdef size_t i, j
    cdef int32_t base, count, indent
    cdef cbool changed = True
    for i in range(rules.size()):
        returns_normalize(contents[i])
        count = <int32_t>contents[i].size()
        key.append(<const char*>&rules[i], sizeof(int32_t))
        key.append(<const char*>&count, sizeof(int32_t))
        key.append(<const char*>contents[i].data(), contents[i].size() * sizeof(Return))
    base = program.cycle_ids.find(key)
    if base >= 0:
        return base
    base = <int32_t>program.nodes.size()
    program.cycle_ids.insert(key, base)
    for i in range(rules.size()):
        program.cycle_first.insert(base + <int32_t>i, base)
        program.cycle_rule.insert(base + <int32_t>i, rules[i])
        node = program.nodes.add()
        node.returns.assign(contents[i])
        for j in range(node.returns.size()):
            if node.returns[j].node < 0:
                node.returns[j].node = base + (-1 - node.returns[j].node)
        program.held += vector_bytes(node.returns.bytes(), 1)
        node.cyclic = True
    while changed:
        # What is below the cycle reaches every node of it.
        changed = False
        for i in range(rules.size()):
            node = program.nodes[base + <int32_t>i]
            indent = returns_indent(program, node.returns.copied())
            changed = changed or indent != node.indent
            node.indent = indent
    return base


cdef void column_find(Column* column, size_t position) noexcept nogil:
    column.found[position] = column.lowest[position] = <int32_t>column.open.size() + 1
    column.edge[position] = 0
    column.path.push_back(position)
    column.open.push_back(position)


cdef void column_resolve(Program* program, Column* column) noexcept nogil:
    # Intern the nodes of the rules called here, those first to which others return.  Rules that return to each other are the
    # strongly connected components of a graph: Tarjan's algorithm finds each behind all that it leads to (R. Tarjan,
    # Depth-first search and linear graph algorithms, 1972).  A number in `found` is the place in `open`: so it grows along the path.
    cdef size_t start, at, target
    cdef cbool deeper
    cdef Return back
    column.found.assign(column.rules.size(), 0)
    column.lowest.resize(column.rules.size())
    column.edge.resize(column.rules.size())
    for start in range(column.rules.size()):
        if column.resolved[start] != NO_STATE:
            continue
        column_find(column, start)
        while not column.path.empty():
            if turn_passed(program.index):
                column.path.clear()
                column.open.clear()
                return
            at = column.path.back()
            deeper = False
            while column.edge[at] < column.returns[at].size():
                back = column.returns[at][column.edge[at]]
                target = <size_t>(-1 - back.node)
                if back.node < 0 and column.resolved[target] == NO_STATE:
                    if column.found[target] == 0:
                        column_find(column, target)
                        deeper = True
                        break
                    column.lowest[at] = min(column.lowest[at], column.lowest[target])
                column.edge[at] += 1
            if deeper:
                continue
            column.path.pop_back()
            deadline_worked(&program.index.deadline, column.returns[at].size())
            if column.lowest[at] == column.found[at]:
                column_intern_members(program, column, at)


cdef void column_intern_members(Program* program, Column* column, size_t first) noexcept nogil:
    # A component is complete: what was found since its first rule.
    column.members.clear()
    while column.members.empty() or column.members.back() != first:
        column.members.push_back(column.open.back())
        column.open.pop_back()
    if column.members.size() == 1:
        column_intern_one(program, column, first)
    else:
        column_intern_cycle(program, column, column.members)


cdef cbool return_before(const Return& a, const Return& b) noexcept nogil:
    return a.local < b.local or (a.local == b.local and a.node < b.node)


cdef void returns_normalize(vector[Return]& returns) noexcept nogil:
    # Sorted, each once.
    cdef size_t i, j = 0
    sort(returns.begin(), returns.end(), &return_before)
    for i in range(returns.size()):
        if j == 0 or returns[i].local != returns[j - 1].local or returns[i].node != returns[j - 1].node:
            returns[j] = returns[i]
            j += 1
    returns.resize(j)


cdef int32_t node_intern(Program* program, vector[Return]& returns) noexcept nogil:
    cdef int32_t known
    cdef GssNode* node
    cdef Return back
    returns_normalize(returns)
    known = program.node_ids.find(returns.data(), returns.size() * sizeof(Return))
    if known >= 0:
        return known
    program.node_ids.insert(returns.data(), returns.size() * sizeof(Return), <int32_t>program.nodes.size())
    node = program.nodes.add()
    node.returns.assign(returns)
    node.indent = returns_indent(program, returns)
    for back in returns:
        node.cyclic = node.cyclic or (back.local != ACCEPT and program.nodes[back.node].cyclic)
    program.held += vector_bytes(node.returns.bytes(), 1)
    return <int32_t>program.nodes.size() - 1


cdef int32_t returns_indent(const Program* program, const vector[Return]& returns) noexcept nogil:
    # The column of the innermost open block.
    cdef int32_t indent = 0, other
    cdef const DottedItem* local
    cdef size_t i
    for i in range(returns.size()):
        if returns[i].local == ACCEPT:
            continue
        local = program.locals[returns[i].local]
        other = local.count if local.kind == LOCAL_INDENTED else program.nodes[returns[i].node].indent
        if other > indent:
            indent = other
    return indent
