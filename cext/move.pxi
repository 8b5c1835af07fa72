# Matchers that move from one core to another of the same grammar (generations.pxi).
#
# A state is moved by content: what it is made of is interned anew where the matcher goes, from the bottom up, so that equal
# states are one number there, too.  Numbers of rules, plain states, records, automata and guards are those of the tables, and so
# the same in both; lexer states are, too, but those of keysets that a core has of its own.  Whatever is as deep as a text (stacks,
# values) is followed without recursion.

cdef cppclass Mover:
    Core* old
    Core* fresh
    Edges[int32_t] states          # of matchers, and so on: the number in the old core -> that in the new one
    Edges[int32_t] parsers
    Edges[int32_t] nodes
    Edges[int32_t] texts           # of the tracker
    Edges[int32_t] frames
    Edges[int32_t] values
    Edges[int32_t] cells
    Edges[int32_t] keys            # sets of keys
    Edges[int32_t] items           # sets of items
    Edges[int32_t] groups


# --- places, stacks, parser states ------------------------------------------------------------

cdef int32_t move_keys(Mover* mover, int32_t used) noexcept nogil:
    return mover.old.program.key_sets.moved(used, mover.fresh.program.key_sets, mover.keys)


cdef int32_t move_local(Mover* mover, int32_t id) noexcept nogil:
    cdef const Local* local = mover.old.program.locals[id]
    cdef const RecordDef* record
    cdef RecordDef* target
    cdef RecordRegister place
    cdef int32_t count = local.count
    if local.kind == LOCAL_RECORD:
        record = &mover.old.program.records[local.index]
        target = &mover.fresh.program.records[local.index]
        place = record_register(record, count)
        place.used = move_keys(mover, place.used)
        if place.taken:
            place.taken = record_taken_intern(target, record.taken[place.taken])
        count = record_register_id(target, place)
    return parse_local(mover.fresh.program, local.kind, local.index, local.phase, count)


cdef Return move_return(Mover* mover, Return back, int32_t first, int32_t last) noexcept nogil:
    # A return address of which the node was moved; one of the cycle of nodes [first, last) is told as cycle_intern wants it.
    if back.local != ACCEPT:
        back.local = move_local(mover, back.local)
        back.node = -1 - (back.node - first) if first <= back.node < last else mover.nodes.find(back.node)
    return back


cdef cbool move_wait(Mover* mover, int32_t at, int32_t first, int32_t last, vector[int32_t]& work) noexcept nogil:
    # Whether nodes below one have to be moved before it; they are added to the work.
    cdef const StackNode* node = mover.old.program.nodes[at]
    cdef size_t i, before = work.size()
    cdef Return back
    for i in range(node.returns.size()):
        back = node.returns[i]
        if back.local != ACCEPT and not first <= back.node < last and mover.nodes.find(back.node) == UNKNOWN:
            work.push_back(back.node)
    return work.size() > before


cdef void move_cycle(Mover* mover, int32_t first, int32_t last) noexcept nogil:
    # Nodes that refer to each other, together.
    cdef vector[int32_t] rules
    cdef vector[vector[Return]] contents
    cdef vector[Return] returns
    cdef Return back
    cdef int32_t at, base
    cdef size_t i
    for at in range(first, last):
        rules.push_back(mover.old.program.cycle_rule.find(at))
        returns.clear()
        for i in range(mover.old.program.nodes[at].returns.size()):
            back = mover.old.program.nodes[at].returns[i]
            returns.push_back(move_return(mover, back, first, last))
        contents.push_back(returns)
    base = cycle_intern(mover.fresh.program, rules, contents)
    for at in range(first, last):
        mover.nodes.insert(at, base + (at - first))


cdef int32_t move_node(Mover* mover, int32_t id) noexcept nogil:
    cdef Program* program = mover.old.program
    cdef vector[int32_t] work
    cdef vector[Return] returns
    cdef Return back
    cdef int32_t at, first, last
    cdef size_t i
    cdef cbool waits
    work.push_back(id)
    while not work.empty():
        at = work.back()
        if mover.nodes.find(at) != UNKNOWN:
            work.pop_back()
            continue
        first = last = program.cycle_first.find(at)
        if first == UNKNOWN:
            if not move_wait(mover, at, 0, 0, work):
                returns.clear()
                for i in range(program.nodes[at].returns.size()):
                    back = program.nodes[at].returns[i]
                    returns.push_back(move_return(mover, back, 0, 0))
                mover.nodes.insert(at, node_intern(mover.fresh.program, returns))
            continue
        while program.cycle_first.find(last) == first:
            last += 1
        waits = False
        for at in range(first, last):
            waits = move_wait(mover, at, first, last, work) or waits
        if not waits:
            move_cycle(mover, first, last)
    return mover.nodes.find(id)


cdef int32_t move_parser(Mover* mover, int32_t id) noexcept nogil:
    cdef const ParserState* state
    cdef vector[Item] items
    cdef Item item
    cdef int32_t moved
    cdef size_t i
    if id == mover.old.program.first_line and id != NO_STATE:
        return mover.fresh.program.first_line
    moved = mover.parsers.find(id)
    if moved == UNKNOWN:
        state = mover.old.program.states[id]
        for i in range(state.items.size()):
            item.local = move_local(mover, state.items[i].local)
            item.node = move_node(mover, state.items[i].node)
            items.push_back(item)
        moved = state_intern(mover.fresh.program, items, state.complete)
        mover.parsers.insert(id, moved)
    return moved


# --- lexer states, texts ------------------------------------------------------------------------

cdef LexState* move_lex(Mover* mover, LexState* state) noexcept nogil:
    cdef Automaton* keys
    cdef KeyPlace place
    if state == NULL or state.automaton.used == NULL:
        return state
    keys = keyset_of(mover.fresh.program, state.automaton.place)
    place = key_place(state)
    place.at.used = move_keys(mover, place.at.used)
    if place.at.filter:
        place.at.filter = key_filter_intern(keys, state.automaton.filters[place.at.filter])
    return key_intern(keys, place)


cdef int32_t move_letters(Mover* mover, int32_t text) noexcept nogil:
    # A text by number (values.pxi).
    cdef string letters
    cdef size_t i
    cdef int32_t moved = 0
    if text == UNKNOWN_TEXT:
        return text
    letters = text_bytes(&mover.old.tracker.store.texts, text)
    for i in range(letters.size()):
        moved = text_append(&mover.fresh.tracker.store.texts, moved, <uint8_t>letters[i])
    return moved


cdef int32_t move_cells(Mover* mover, int32_t cells) noexcept nogil:
    # A list whose values were moved.  Sets are in the order of their keys' new numbers.
    cdef const Values* old = &mover.old.tracker.store
    cdef Values* fresh = &mover.fresh.tracker.store
    cdef vector[Cell] list
    cdef Cell cell
    cdef int32_t at = cells, moved
    if cells < 0:
        return cells
    moved = mover.cells.find(cells)
    if moved != UNKNOWN:
        return moved
    while at >= 0:
        cell = old.cells[at]
        at = cell.before
        cell.before = 0
        cell.value = mover.values.find(cell.value)
        if cell.key >= 0:
            cell.key = mover.values.find(cell.key)
        list.push_back(cell)
    if list.back().key >= 0:
        sort(list.begin(), list.end(), &cell_behind)
    moved = -1
    while not list.empty():
        moved = cell_intern(fresh, moved, list.back().key, list.back().value)
        list.pop_back()
    mover.cells.insert(cells, moved)
    return moved


cdef cbool cell_behind(const Cell& a, const Cell& b) noexcept nogil:
    return a.key > b.key


cdef void move_values(Mover* mover, vector[int32_t]& work) noexcept nogil:
    # Values, and all that they are made of, those at the end first.
    cdef Values* fresh = &mover.fresh.tracker.store
    cdef const Value* value
    cdef int32_t at, list
    cdef size_t i, before
    while not work.empty():
        at = work.back()
        if mover.values.find(at) != UNKNOWN:
            work.pop_back()
            continue
        value = mover.old.tracker.store.values[at]
        if value.kind != VALUE_ARRAY and value.kind != VALUE_OBJECT:
            mover.values.insert(at, value_scalar(fresh, value.kind, value.text))
            continue
        before = work.size()
        for i in range(value.items.size()):
            if mover.values.find(value.items[i]) == UNKNOWN:
                work.push_back(value.items[i])
        for i in range(value.keys.size()):
            if mover.values.find(value.keys[i]) == UNKNOWN:
                work.push_back(value.keys[i])
        if work.size() == before:
            mover.values.insert(at, value_list(fresh, value.kind == VALUE_OBJECT, move_list(mover, value)))


cdef int32_t move_list(Mover* mover, const Value* value) noexcept nogil:
    # The list of an array or object whose parts were moved.
    cdef Values* fresh = &mover.fresh.tracker.store
    cdef vector[Cell] list
    cdef Cell cell
    cdef size_t i
    cdef int32_t moved = -1
    cell.before = 0
    for i in range(value.items.size()):
        cell.value = mover.values.find(value.items[i])
        cell.key = mover.values.find(value.keys[i]) if value.kind == VALUE_OBJECT else -1
        list.push_back(cell)
    if value.kind == VALUE_OBJECT:
        sort(list.begin(), list.end(), &cell_behind)
        for i in range(list.size(), 0, -1):
            moved = cell_intern(fresh, moved, list[i - 1].key, list[i - 1].value)
    else:
        for i in range(list.size()):
            moved = cell_intern(fresh, moved, list[i].key, list[i].value)
    return moved


cdef int32_t move_items(Mover* mover, int32_t items) noexcept nogil:
    # A set of items, of which the arrays and objects were moved: these are known by their numbers.
    cdef vector[int32_t] values
    cdef vector[string] texts
    cdef vector[pair[string, int32_t]] notes
    cdef size_t i
    items_values(&mover.old.tracker, items, VALUE_ARRAY, values)
    items_values(&mover.old.tracker, items, VALUE_OBJECT, values)
    if values.empty():
        return mover.old.tracker.items.moved(items, mover.fresh.tracker.items, mover.items)
    mover.old.tracker.items.rests(items, 0, texts)
    for i in range(texts.size()):
        if texts[i][0] != item_letter(VALUE_ARRAY) and texts[i][0] != item_letter(VALUE_OBJECT):
            notes.push_back(pair[string, int32_t](texts[i], 1))
    for i in range(values.size()):
        notes.push_back(pair[string, int32_t](item_text(&mover.fresh.tracker, mover.values.find(values[i])), 1))
    sort(notes.begin(), notes.end())
    return mover.fresh.tracker.items.of(notes)


cdef int32_t move_group(Mover* mover, int32_t group) noexcept nogil:
    # A group whose values were moved.  Indices are made again: they have the numbers of groups in them.
    cdef vector[int32_t] work
    cdef int32_t moved = 0
    while group > 0 and mover.groups.find(group) == UNKNOWN:
        work.push_back(group)
        group = mover.old.tracker.groups[group].before
    if group > 0:
        moved = mover.groups.find(group)
    while not work.empty():
        group = work.back()
        work.pop_back()
        moved = group_with(&mover.fresh.tracker, moved, mover.values.find(mover.old.tracker.groups[group].value))
        mover.fresh.tracker.groups[moved].listed = mover.old.tracker.groups[group].listed
        mover.groups.insert(group, moved)
    return moved


cdef void move_frame(Mover* mover, int32_t id, int32_t parent) noexcept nogil:
    # A frame of which the one around it was moved.
    cdef const Frame* frame = mover.old.tracker.frames[id]
    cdef Frame content
    cdef vector[int32_t] work
    cdef int32_t at = frame.cells
    cdef int32_t group
    cdef size_t i
    content.parent = parent
    content.is_object = frame.is_object
    content.guard = frame.guard
    content.count = frame.count
    content.size = frame.size
    content.unknown = frame.unknown
    content.doubtful = frame.doubtful
    while at >= 0:
        work.push_back(mover.old.tracker.store.cells[at].value)
        if mover.old.tracker.store.cells[at].key >= 0:
            work.push_back(mover.old.tracker.store.cells[at].key)
        at = mover.old.tracker.store.cells[at].before
    work.insert(work.end(), frame.candidates.begin(), frame.candidates.end())
    for i in range(frame.groups.size()):
        group = frame.groups[i]
        while group > 0:
            work.push_back(mover.old.tracker.groups[group].value)
            group = mover.old.tracker.groups[group].before
    if frame.key >= 0:
        work.push_back(frame.key)
    items_values(&mover.old.tracker, frame.items, VALUE_ARRAY, work)
    items_values(&mover.old.tracker, frame.items, VALUE_OBJECT, work)
    move_values(mover, work)
    content.items = move_items(mover, frame.items)
    content.arrays = move_group(mover, frame.arrays)
    content.objects = move_group(mover, frame.objects)
    content.cells = move_cells(mover, frame.cells)
    content.key = mover.values.find(frame.key) if frame.key >= 0 else -1
    for i in range(frame.candidates.size()):
        content.candidates.push_back(mover.values.find(frame.candidates[i]))
    for i in range(frame.groups.size()):
        content.groups.push_back(move_group(mover, frame.groups[i]))
    mover.frames.insert(id, frame_intern(&mover.fresh.tracker, content))


cdef int32_t move_text(Mover* mover, int32_t text) noexcept nogil:
    # What a thread has read of a key, or of an array of different items.
    cdef TrackerState at
    cdef vector[int32_t] around
    cdef int32_t frame, moved
    if text >= 0:
        return 0 if text == 0 else move_letters(mover, text)
    moved = mover.texts.find(-1 - text)
    if moved != UNKNOWN:
        return -1 - moved
    at = mover.old.tracker.states[-1 - text]
    frame = at.frame
    while frame >= 0 and mover.frames.find(frame) == UNKNOWN:
        around.push_back(frame)
        frame = mover.old.tracker.frames[frame].parent
    while not around.empty():
        move_frame(mover, around.back(), mover.frames.find(frame) if frame >= 0 else -1)
        frame = around.back()
        around.pop_back()
    moved = tracker_state(&mover.fresh.tracker, mover.frames.find(frame), at.mode, move_letters(mover, at.text), at.escape, at.value)
    mover.texts.insert(-1 - text, -1 - moved)
    return moved


# --- states of matchers ---------------------------------------------------------------------------

cdef int32_t move_state(Mover* mover, int32_t id) noexcept nogil:
    # A state whose threads can all be completed.
    cdef vector[Thread] threads
    cdef Thread thread
    cdef size_t i
    cdef int32_t moved
    if id < 0:
        return id
    if id == mover.old.opening:
        return mover.fresh.opening
    moved = mover.states.find(id)
    if moved != UNKNOWN:
        return moved
    for i in range(mover.old.states[id].threads.size()):
        thread = mover.old.states[id].threads[i]
        thread.lex = move_lex(mover, thread.lex)
        thread.parser = move_parser(mover, thread.parser)
        thread.text = move_text(mover, thread.text)
        threads.push_back(thread)
        if mover.fresh.program.lexer != NULL:
            core_learn(mover.fresh, thread, 1)
    moved = threads_intern(mover.fresh, threads)
    mover.states.insert(id, moved)
    return moved
