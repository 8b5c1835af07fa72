# What a mover does in small steps (moves.pyx).
#
# A task is to move one thing: a node of a set, a value, a group.  It waits for those that the thing is made of, which lie above it in
# the work; so whatever is as deep as a text is followed without recursion, and the work can be left at any time and gone on with.
# Tasks for frames and GSS nodes only find what they are made of.
#
# Texts of arrays and objects are digests of their contents (values.pyx), the same in all cores: so sets move node by node.
# Of the indices of groups, those go along that the next value at a place would begin with.

from cpython.ref cimport Py_DECREF
from libcpp.algorithm cimport sort

from maskwright._engine.containers cimport TextSets
from maskwright._engine.limits cimport NO_LIMIT, deferred_free_breathe, deferred_free_take
from maskwright._engine.vocabulary cimport Index
from maskwright._engine.lexemes cimport Automaton
from maskwright._engine.lexeme_sets cimport lexsets_free
from maskwright._engine.program cimport ACCEPT, DottedItem, LOCAL_RECORD, ParserState, GssNode, UNKNOWN
from maskwright._engine.rules cimport parse_free, record_register
from maskwright._engine.tracked cimport (
    Cell, Frame, Group, IndexEntry, is_tracked, tracked_state, Tracker, Value, VALUE_ARRAY, VALUE_OBJECT,
    Values
)
from maskwright._engine.values cimport cell_intern, value_list, value_scalar
from maskwright._engine.item_groups cimport group_with, index_know
from maskwright._engine.tracker cimport tracker_free
from maskwright._engine.core cimport Thread
from maskwright._engine.states cimport mask_free
from maskwright._engine.frame_masks cimport framemasks_forget
from maskwright._engine.lexed_masks cimport plans_forget


cdef void mover_meets(Mover* mover, Automaton* old, Automaton* fresh) noexcept nogil:
    # What the automaton of a lexeme is called where the mover leads.
    if old != fresh:
        mover.lexemes[old] = fresh
        if old.keyset.base != NULL:
            mover_meets(mover, old.keyset.base, fresh.keyset.base)


cdef Mover* mover_of(Core* old, Core* fresh) except NULL:
    # The one of a core.  It leads where it did when it began, until it has ended; so a long text gets somewhere.
    cdef Mover* mover = <Mover*>old.generation.mover
    cdef size_t i
    if mover != NULL and mover.users == 0 and not mover.begun and mover.fresh != fresh:
        # It is not the last holder: the grammar lets go of a generation only when nobody else is in it.
        mover.fresh.generation.holders -= 1
        deferred_free_take(old.index, mover, mover_free)
        mover = NULL
    if mover == NULL:
        mover = new Mover()
        mover.old = old
        mover.fresh = fresh
        mover.known.resize(MOVE_KINDS)
        for i in range(old.program.given.size()):
            mover_meets(mover, old.program.given[i], fresh.program.given[i])
        mover_meets(mover, old.program.lexer, fresh.program.lexer)
        mover.entries = 0
        mover.bytes = -1
        mover.begun = False
        mover.users = 0
        fresh.generation.holders += 1
        old.generation.mover = mover
    return mover


cdef Core* mover_target(void* mover) noexcept nogil:
    return (<Mover*>mover).fresh


cdef void mover_free(void* freed) noexcept nogil:
    cdef Mover* mover = <Mover*>freed
    del mover


# --- work ---------------------------------------------------------------------------------------

cdef void mover_needs(Mover* mover, int32_t kind, int32_t id) noexcept nogil:
    cdef MoveTask task
    # Nothing: of lists and frames below zero, of others 0, but there is a value 0, a frame 0, an entry 0 and a node 0.
    if id < 0 or (id == 0 and (kind <= MOVE_INDEX or kind == MOVE_GROUP or kind == MOVE_INDICES)):
        return
    if mover.known[kind].find(id) == UNKNOWN:
        task.kind = kind
        task.id = task.root = id
        mover.work.push_back(task)


cdef void mover_step(Mover* mover) noexcept nogil:
    cdef MoveTask task = mover.work.back()
    if mover.known[task.kind].find(task.id) != UNKNOWN:
        mover.work.pop_back()
    elif task.kind == MOVE_KEYS:
        step_set(mover, task, &mover.old.program.key_sets, &mover.fresh.program.key_sets)
    elif task.kind == MOVE_ITEMS or task.kind == MOVE_INDEX:
        step_set(mover, task, &mover.old.tracker.items, &mover.fresh.tracker.items)
    elif task.kind == MOVE_VALUE:
        step_value(mover, task.id)
    elif task.kind == MOVE_CELLS:
        step_cells(mover, task.id)
    elif task.kind == MOVE_GROUP:
        step_group(mover, task.id)
    elif task.kind == MOVE_ENTRY:
        step_entry(mover, task.id)
    elif task.kind == MOVE_INDICES:
        mover.work.pop_back()
        step_indices(mover, task)
    elif task.kind == MOVE_FRAME:
        mover.known[MOVE_FRAME].insert(task.id, 0)
        step_frame(mover, task.id)
    else:
        mover.known[MOVE_NODE].insert(task.id, 0)
        step_node(mover, task.id)


cdef cbool mover_run(Mover* mover, int64_t* steps) noexcept nogil:
    # Whether all tasks were done in so many steps.
    cdef size_t before
    while not mover.work.empty():
        if steps[0] <= 0:
            return False
        before = mover.work.size()
        mover_step(mover)
        steps[0] -= 1
        if mover.work.size() > before:
            steps[0] -= <int64_t>(mover.work.size() - before) // 4
    return True


cdef int32_t mover_whole(Mover* mover, int32_t kind, int32_t id) noexcept nogil:
    # The number of a thing where the mover leads, which is moved at once if it has not been.
    cdef int64_t steps = NO_LIMIT
    cdef size_t before = mover.work.size()
    mover_needs(mover, kind, id)
    if mover.work.size() > before:
        mover_run(mover, &steps)
    elif id < 0 or (id == 0 and (kind <= MOVE_INDEX or kind == MOVE_GROUP)):
        return id
    return mover.known[kind].find(id)


# --- sets, values -------------------------------------------------------------------------------

cdef void step_set(Mover* mover, const MoveTask& task, const TextSets* old, TextSets* fresh) noexcept nogil:
    cdef size_t i, before = mover.work.size()
    cdef int32_t note = old.own_note(task.id)
    for i in range(old.children(task.id)):
        mover_needs(mover, task.kind, old.child(task.id, i))
    if task.kind == MOVE_INDEX:
        mover_needs(mover, MOVE_GROUP, note)
        mover_needs(mover, MOVE_INDICES, note)
    if mover.work.size() == before:
        if task.kind == MOVE_INDEX and note:
            note = mover.known[MOVE_GROUP].find(note)
        mover.known[task.kind].insert(task.id, old.moved(task.id, note, fresh[0], mover.known[task.kind]))


cdef cbool cell_behind(const Cell& a, const Cell& b) noexcept nogil:
    return a.key > b.key


cdef int32_t cells_intern(Values* fresh, vector[Cell]& list) noexcept nogil:
    # Of a list, its last one first.  Sets are in the order of their keys' numbers.
    cdef int32_t moved = -1
    if not list.empty() and list.back().key >= 0:
        sort(list.begin(), list.end(), &cell_behind)
    while not list.empty():
        moved = cell_intern(fresh, moved, list.back().key, list.back().value)
        list.pop_back()
    return moved


cdef void step_value(Mover* mover, int32_t id) noexcept nogil:
    cdef Values* fresh = &mover.fresh.tracker.store
    cdef const Value* value = mover.old.tracker.store.values[id]
    cdef Renumbered* values = &mover.known[MOVE_VALUE]
    cdef vector[Cell] list
    cdef Cell cell
    cdef size_t i, before = mover.work.size()
    if value.kind != VALUE_ARRAY and value.kind != VALUE_OBJECT:
        values.insert(id, value_scalar(fresh, value.kind, value.text))
        return
    for i in range(value.items.size()):
        mover_needs(mover, MOVE_VALUE, value.items[i])
    for i in range(value.keys.size()):
        mover_needs(mover, MOVE_VALUE, value.keys[i])
    if mover.work.size() > before:
        return
    cell.before = 0
    for i in range(value.items.size(), 0, -1):
        cell.value = values.find(value.items[i - 1])
        cell.key = values.find(value.keys[i - 1]) if value.kind == VALUE_OBJECT else -1
        list.push_back(cell)
    values.insert(id, value_list(fresh, value.kind == VALUE_OBJECT, cells_intern(fresh, list)))


cdef void step_cells(Mover* mover, int32_t id) noexcept nogil:
    # A list under way.  What is before an element moves on its own; members may come in another order.
    cdef const Values* old = &mover.old.tracker.store
    cdef Renumbered* values = &mover.known[MOVE_VALUE]
    cdef vector[Cell] list
    cdef Cell cell
    cdef int32_t at = id
    cdef size_t i, before = mover.work.size()
    while at >= 0:
        cell = old.cells[at]
        mover_needs(mover, MOVE_VALUE, cell.value)
        if cell.key < 0:
            mover_needs(mover, MOVE_CELLS, cell.before)
            list.push_back(cell)
            break
        mover_needs(mover, MOVE_VALUE, cell.key)
        list.push_back(cell)
        at = cell.before
    if mover.work.size() > before:
        return
    for i in range(list.size()):
        list[i].value = values.find(list[i].value)
        if list[i].key >= 0:
            list[i].key = values.find(list[i].key)
    if list[0].key >= 0:
        at = cells_intern(&mover.fresh.tracker.store, list)
    else:
        at = list[0].before if list[0].before < 0 else mover.known[MOVE_CELLS].find(list[0].before)
        at = cell_intern(&mover.fresh.tracker.store, at, -1, list[0].value)
    mover.known[MOVE_CELLS].insert(id, at)


# --- groups and their indices ----------------------------------------------------------------------

cdef void step_group(Mover* mover, int32_t id) noexcept nogil:
    cdef Group* old = &mover.old.tracker.groups[id]
    cdef Group* fresh
    cdef size_t before = mover.work.size()
    cdef int32_t moved
    mover_needs(mover, MOVE_VALUE, old.value)
    mover_needs(mover, MOVE_GROUP, old.before)
    if mover.work.size() > before:
        return
    moved = group_with(&mover.fresh.tracker, mover.known[MOVE_GROUP].find(old.before) if old.before else 0,
                       mover.known[MOVE_VALUE].find(old.value))
    fresh = &mover.fresh.tracker.groups[moved]
    fresh.listed = max(fresh.listed, old.listed)
    mover.known[MOVE_GROUP].insert(id, moved)


cdef void step_indices(Mover* mover, MoveTask task) noexcept nogil:
    # Of each place, the last index among a group and those before it.
    cdef Tracker* old = &mover.old.tracker
    cdef int32_t fields[2]
    cdef int32_t entry, looks = 0
    fields[0] = task.root
    while task.id > 0 and looks < MOVE_SLICE and mover.known[MOVE_INDICES].find(task.id) == UNKNOWN:
        mover.known[MOVE_INDICES].insert(task.id, 0)
        entry = old.groups[task.id].entry
        while entry > 0:
            fields[1] = old.entries[entry].place
            if mover.places.find(&fields, sizeof(fields)) < 0:
                mover.places.insert(&fields, sizeof(fields), 1)
                mover_needs(mover, MOVE_ENTRY, entry)
            entry = old.entries[entry].next
        task.id = old.groups[task.id].before
        looks += 1
    if looks == MOVE_SLICE:
        mover.work.push_back(task)


cdef void step_entry(Mover* mover, int32_t id) noexcept nogil:
    cdef const IndexEntry* entry = &mover.old.tracker.entries[id]
    cdef Tracker* fresh = &mover.fresh.tracker
    cdef size_t before = mover.work.size()
    # The place of a member is its key.
    cdef cbool keyed = (entry.place >= 0 and mover.old.tracker.store.values[mover.old.tracker.groups[entry.group].value].kind
                        == VALUE_OBJECT)
    if keyed:
        mover_needs(mover, MOVE_VALUE, entry.place)
    mover_needs(mover, MOVE_GROUP, entry.group)
    mover_needs(mover, MOVE_INDEX, entry.set)
    if mover.work.size() > before:
        return
    index_know(fresh, mover.known[MOVE_GROUP].find(entry.group),
               mover.known[MOVE_VALUE].find(entry.place) if keyed else entry.place,
               mover.known[MOVE_INDEX].find(entry.set) if entry.set else 0)
    mover.known[MOVE_ENTRY].insert(id, 0)


# --- what states are made of ------------------------------------------------------------------------

cdef void step_frame(Mover* mover, int32_t id) noexcept nogil:
    cdef const Frame* frame = mover.old.tracker.frames[id]
    cdef size_t i
    mover_needs(mover, MOVE_FRAME, frame.parent)
    mover_needs(mover, MOVE_CELLS, frame.cells)
    mover_needs(mover, MOVE_VALUE, frame.key)
    mover_needs(mover, MOVE_ITEMS, frame.items)
    mover_needs(mover, MOVE_INDICES, frame.arrays)
    mover_needs(mover, MOVE_INDICES, frame.objects)
    mover_needs(mover, MOVE_GROUP, frame.arrays)
    mover_needs(mover, MOVE_GROUP, frame.objects)
    for i in range(frame.candidates.size()):
        mover_needs(mover, MOVE_VALUE, frame.candidates[i])
    for i in range(frame.groups.size()):
        mover_needs(mover, MOVE_INDICES, frame.groups[i])
        mover_needs(mover, MOVE_GROUP, frame.groups[i])


cdef void dotted_needs(Mover* mover, int32_t id) noexcept nogil:
    cdef const DottedItem* local = mover.old.program.locals[id]
    if local.kind == LOCAL_RECORD:
        mover_needs(mover, MOVE_KEYS, record_register(&mover.old.program.records[local.index], local.count).used)


cdef void step_node(Mover* mover, int32_t id) noexcept nogil:
    cdef const GssNode* node = mover.old.program.nodes[id]
    cdef size_t i
    for i in range(node.returns.size()):
        if node.returns[i].local != ACCEPT:
            dotted_needs(mover, node.returns[i].local)
            mover_needs(mover, MOVE_NODE, node.returns[i].node)


cdef void state_needs(Mover* mover, int32_t id) noexcept nogil:
    # What a matcher's state is made of.
    cdef const ParserState* parser
    cdef Thread thread
    cdef size_t i, j
    if id < 0 or id == mover.old.opening or mover.states.find(id) != UNKNOWN:
        return
    for i in range(mover.old.states[id].threads.size()):
        thread = mover.old.states[id].threads[i]
        if thread.lex != NULL and thread.lex.automaton.keyset.used != NULL:
            mover_needs(mover, MOVE_KEYS, thread.lex.key.used)
        if is_tracked(thread.memory):
            mover_needs(mover, MOVE_FRAME, mover.old.tracker.states[tracked_state(thread.memory)].frame)
        # Thousands of threads may be in one.
        if mover.followed.find(thread.parser) != UNKNOWN:
            continue
        mover.followed.insert(thread.parser, 0)
        parser = mover.old.program.states[thread.parser]
        for j in range(parser.items.size()):
            dotted_needs(mover, parser.items[j].local)
            mover_needs(mover, MOVE_NODE, parser.items[j].node)


cdef void core_free(void* freed) noexcept nogil:
    # In another thread (limits.pyx).
    cdef Core* core = <Core*>freed
    cdef size_t i
    framemasks_forget(core)
    plans_forget(core)
    for i in range(core.states.size()):
        core.index.cache.bytes.subtract(core.states[i].edges.bytes())
        mask_free(core, core.states[i].mask)
        deferred_free_breathe()
    while core.states.drop():
        deferred_free_breathe()
    parse_free(core.program)
    tracker_free(&core.tracker)
    mover_free(core.generation.mover)
    del core.costs
    del core


cdef void core_let_go(Core* core) noexcept:
    # One less is in it.  Holders are counted under the interpreter's lock.
    cdef Index* index = core.index
    cdef Core* target = NULL
    cdef size_t i
    core.generation.holders -= 1
    if core.generation.holders > 0:
        return
    if core.generation.mover != NULL:
        target = mover_target(core.generation.mover)
    with nogil:
        index.lock.lock()
        for i in range(index.cache.cores.size()):
            if index.cache.cores[i] == core:
                index.cache.cores[i] = index.cache.cores.back()
                index.cache.cores.pop_back()
                break
        for i in range(core.program.keysets.size()):
            lexsets_free(core.program.keysets[i])
        index.lock.unlock()
    if core.handles != NULL:
        # Those that nobody else has are freed with all their states: eviction does not come by any more, which looks at the lexer.
        Py_DECREF(<object>core.handles)
        core.handles = NULL
    with nogil:
        deferred_free_take(index, core, core_free)
    if target != NULL:
        core_let_go(target)
