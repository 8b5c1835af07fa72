# Arrays of different items: which threads can be completed, and the masks of states inside such arrays.
#
# A thread whose text is tracked (tracker.pxi) is *easy* when its current item will be new whatever
# follows.  Any other one is alive when a search over bytes finds a way to an easy state, or out of
# the array; what is known about a thread is kept.
#
# A mask starts from what the lexer state allows in any context.  Only along the bytes that stay
# compatible with earlier items may a token inside the lexeme be wrong; those are followed one by
# one.  So are tokens that run past the end of the lexeme, unless it is a string: then its value is left open,
# so that what is behind it is asked once for all of them, and only tokens that go on into an item that may be
# equal to it are read one by one.

cdef enum:
    # what a search looks for; each is also reached where the outermost array ends
    SEARCH_ALIVE = 0       # a thread that is known to be alive
    SEARCH_OUT = 1         # nothing else: the way out of the array
    SEARCH_APART = 2       # the same, with all threads told apart
    SEARCH_TEXT = 3        # a whole text, taking nothing for granted
    HEAD_START = 40        # what being like an earlier item is worth, in bytes
    LONG_STRING = 8        # characters of a string that came, before it counts that it is long
    SEARCH_SHORT = 2000    # states of one that may as well fail

cdef struct DistinctNode:
    Thread thread
    int32_t parent
    uint8_t byte           # by which it was reached
    cbool typed            # in an escape that was begun before the search
    int32_t owed           # the most arrays that needed two equal items at a time, on the way here
    int32_t paid           # those that got them, but no more than were ever owed
    int32_t due            # arrays that needed them where the search began
    int32_t owing          # bytes in another one that still needs them
    int32_t put_off        # how often the cheapest way to end an easy item was not taken
    cbool easy             # for a completion only
    cbool begun            # what comes first has been tried, the rest not (see distinct_waits)


# --- alive ----------------------------------------------------------------------------------

cdef inline cbool distinct_decided(const Core* core, const Thread& thread) noexcept nogil:
    # Whether it is decided already what follows an item, a comma or the end.
    cdef TrackerState at = core.tracker.states[-1 - thread.text]
    return thread.lex != NULL and at.mode == TRACK_AFTER and core.tracker.frames[at.frame].guard != 0


cdef cbool distinct_alive(Core* core, const Thread& thread) noexcept nogil:
    cdef int32_t known
    if thread.text >= 0 or (tracker_alive(&core.tracker, thread.text) and not distinct_decided(core, thread)):
        return True
    if distinct_endless(core, thread):
        return True
    known = core.alive.find(thread_key(thread))
    if known >= 0:
        return known == 1
    if twins_lost(core, thread):
        return False
    if distinct_careless(core, thread):
        return True
    return distinct_search(core, &thread, 1, SEARCH_ALIVE, 0, NULL)


cdef cbool distinct_careless(Core* core, const Thread& thread) noexcept nogil:
    # Whether a string under way may become any: two equal items are needed, none must differ, and they are found
    # behind a string that is like nothing else.
    cdef TrackerState at = core.tracker.states[-1 - thread.text]
    cdef const Frame* frame = core.tracker.frames[at.frame]
    cdef const Automaton* automaton
    cdef Thread behind
    cdef string name
    cdef int32_t known
    if at.mode != TRACK_STRING or not frame.owes or frame.must_differ:
        return False
    automaton = thread.lex.automaton
    if automaton.kind != KIND_TEXT or automaton.spelling == SPELLING_UTF8:
        return False
    behind = thread_at(state_goto(core.program, thread.parser, automaton, 0, NO_KEY), NULL)
    behind.text = tracker_unknown(&core.tracker, thread.text)
    if behind.parser == NO_STATE or behind.text == TEXT_WRONG:
        return False
    name = thread_key(behind)
    known = core.careless.find(name)
    if known < 0:
        known = 1 if distinct_search(core, &behind, 1, SEARCH_ALIVE, SEARCH_SHORT, NULL) else 0
        core.careless.insert(name, known)
    return known == 1


cdef void distinct_clean(Core* core, vector[Thread]& threads) noexcept nogil:
    # Join what stands at the start of a lexeme behind the same text; drop what cannot be completed.
    cdef size_t i, j, kept = 0
    cdef Thread thread
    for i in range(threads.size()):
        thread = threads[i]
        for j in range(kept if thread.lex == NULL else 0):
            if threads[j].lex == NULL and threads[j].text == thread.text:
                threads[j].parser = state_union(core.program, threads[j].parser, thread.parser)
                break
        else:
            threads[kept] = thread
            kept += 1
    threads.resize(kept)
    kept = 0
    for i in range(threads.size()):
        thread = threads[i]
        if distinct_alive(core, thread):
            threads[kept] = thread
            kept += 1
    threads.resize(kept)


cdef cbool distinct_fillable(Core* core, int32_t rule, int32_t guard) noexcept nogil:
    # Whether a rule, an array with a guard, has a text.
    cdef int32_t start = state_start(core.program, rule)
    cdef const ParserState* state
    cdef Thread thread = thread_at(NO_STATE, NULL)
    cdef size_t i
    if start == NO_STATE:
        return False
    state = core.program.states[start]
    thread.text = tracker_open(&core.tracker, 0, guard)
    for i in range(state.starts.size()):
        thread.parser = state_goto_guarded(core.program, start, state.starts[i].automaton, 0, guard)
        if thread.parser != NO_STATE and distinct_search(core, &thread, 1, SEARCH_TEXT, 0, NULL):
            return True
    return False


cdef int64_t distinct_rank(Core* core, const Thread& thread, int32_t goal, cbool like) noexcept nogil:
    # What is higher is looked at first.  Two equal items are found where one is `like` an earlier one.
    # Where other items can always be found, few states are compatible; elsewhere the cheapest way out
    # of the grammar leads the search; a completion tries no long spellings of a number that came, nor very long strings.
    cdef int32_t after, cost
    cdef int64_t first = -1
    cdef cbool out = goal == SEARCH_OUT or goal == SEARCH_APART
    cdef TrackerState at
    if tracker_owes(&core.tracker, thread.text):
        at = core.tracker.states[-1 - thread.text]
        if like:
            # What is still missing counts: a long string is not repeated where a short item can be.
            first = max(0, HEAD_START - tracker_missing(&core.tracker, thread.text))
        if at.mode >= TRACK_STRING and (not like or at.mode == TRACK_NUMBER):
            # A number longer than an earlier one is hardly its first spelling; what is like nothing earlier should end soon.
            first -= HEAD_START // 8 * max(0, text_characters(&core.tracker.store.texts, at.text)
                                           - (tracker_spelled(&core.tracker, thread.text) if like else 0))
    elif goal == SEARCH_ALIVE and tracker_free_behind(&core.tracker, thread.text):
        return 0
    elif out:
        # No worse than what still owes.
        first = HEAD_START
        at = core.tracker.states[-1 - thread.text]
        if at.mode >= TRACK_STRING and tracker_compatible(&core.tracker, thread.text):
            first -= text_characters(&core.tracker.store.texts, at.text) // (1 if at.mode == TRACK_NUMBER else LONG_STRING)
    costs_prepare(core)
    if core.index.deadline.passed:
        return 0
    if thread.lex == NULL:
        cost = cost_parser(core.program, core.costs, thread.parser)
    else:
        cost = cost_lexeme(core.costs, thread.lex)
        after = thread.parser
        if thread.lex.automaton.kind == KIND_TEXT:
            after = state_goto(core.program, thread.parser, thread.lex.automaton, 0, NO_KEY)
        if after != NO_STATE:
            cost = cost_add(cost, cost_parser(core.program, core.costs, after))
    return first - cost


cdef cbool distinct_skips(const TrackerState& at, uint8_t byte, cbool typed) noexcept nogil:
    # Other spellings of the same string: a search needs one of each.
    if at.mode != TRACK_STRING or at.escape == 0 or typed:
        return False
    if at.escape == 1:
        return byte == 47
    if at.escape <= 3:
        return byte != 48
    if at.escape == 4:
        return byte != 48 and byte != 49
    return 65 <= byte <= 70


cdef void distinct_first(const uint64_t* first, cbool inside, uint64_t* out) noexcept nogil:
    # Add the bytes that lead on from one lexer state.  White space changes nothing where something else
    # may come in the same lexeme.
    cdef uint64_t blank[4]
    cdef uint64_t others = 0
    cdef size_t i
    memset(blank, 0, 32)
    if not inside:
        for i in range(33):
            if is_blank(<uint8_t>i):
                bits_set(blank, <uint8_t>i)
        for i in range(4):
            others |= first[i] & ~blank[i]
        if others == 0:
            memset(blank, 0, 32)
    for i in range(4):
        out[i] |= first[i] & ~blank[i]


cdef inline cbool distinct_waits(Core* core, const DistinctNode& node) noexcept nogil:
    # Whether most bytes may be left for later: in a string, it may end first, or go on like an earlier one; what is easy
    # may end in the cheapest way.
    cdef TrackerState at = core.tracker.states[-1 - node.thread.text]
    return node.easy or (at.mode == TRACK_STRING and at.escape == 0)


cdef void distinct_bytes(Core* core, const DistinctNode& node, vector[uint8_t]& out) noexcept nogil:
    # The bytes to go on with.
    cdef TrackerState at = core.tracker.states[-1 - node.thread.text]
    cdef cbool inside = at.mode == TRACK_STRING
    cdef cbool plain = inside and at.escape == 0
    cdef const ParserState* state = core.program.states[node.thread.parser]
    cdef uint64_t first[4]
    cdef uint64_t ahead[4]
    cdef int32_t byte
    cdef size_t i
    out.clear()
    if node.easy and not node.begun:
        byte = shortest_byte(core, node.thread)
        if byte >= 0:
            out.push_back(<uint8_t>byte)
        return
    memset(first, 0, 32)
    memset(ahead, 0, 32)
    if plain and not node.easy:
        if tracker_compatible(&core.tracker, node.thread.text):
            tracker_ahead(&core.tracker, node.thread.text, ahead)
        bits_set(ahead, QUOTE)
    if plain and not node.begun:
        # Few bytes: those that lead nowhere are soon seen.
        memcpy(first, ahead, 32)
    elif node.thread.lex != NULL:
        distinct_first(lex_first(node.thread.lex), inside, first)
        if node.parent >= 0 and node.thread.lex.tag != NO_TAG and not inside:
            # White space adds nothing where the lexeme may end: another node has what comes behind it.
            for i in range(33):
                if is_blank(<uint8_t>i):
                    first[0] &= ~(<uint64_t>1 << i)
    else:
        for i in range(state.starts.size()):
            distinct_first(lex_first(state.starts[i]), inside, first)
    for i in range(4 if node.begun else 0):
        first[i] &= ~ahead[i]
    # Of equals, the last is looked at first.  Where a character may stand for itself, escapes add nothing.
    if plain and bits_has(first, BACKSLASH):
        out.push_back(BACKSLASH)
    for byte in range(256):
        if bits_has(first, <uint8_t>byte) and not distinct_skips(at, <uint8_t>byte, node.typed):
            if byte != BACKSLASH or not plain:
                out.push_back(<uint8_t>byte)


cdef void distinct_path(const vector[DistinctNode]& nodes, int32_t at, uint8_t last, vector[uint8_t]& out) noexcept nogil:
    cdef vector[uint8_t] reversed_path
    reversed_path.push_back(last)
    while nodes[at].parent >= 0:
        reversed_path.push_back(nodes[at].byte)
        at = nodes[at].parent
    while not reversed_path.empty():
        out.push_back(reversed_path.back())
        reversed_path.pop_back()


cdef cbool distinct_add(Core* core, vector[DistinctNode]& nodes, KeyIds* seen, priority_queue[pair[int64_t, int32_t]]* queue,
                      const Thread& thread, int32_t parent, uint8_t byte, int32_t goal) noexcept nogil:
    # Note a thread that is reached; True when it is a goal.
    cdef DistinctNode node
    cdef TrackerState at
    cdef int32_t known
    cdef string name
    cdef Thread same
    cdef int32_t owes, paid
    if thread.text >= 0:
        return True
    if distinct_decided(core, thread):
        pass
    elif goal == SEARCH_ALIVE and (tracker_alive(&core.tracker, thread.text) or distinct_endless(core, thread)):
        return True
    if goal != SEARCH_TEXT:
        known = core.alive.find(thread_key(thread))
        if known == 0:
            return False
        if known == 1 and goal == SEARCH_ALIVE:
            return True
    if twins_lost(core, thread):
        return False
    name = thread_key(thread)
    if goal == SEARCH_OUT and tracker_any(&core.tracker, thread.text):
        same = thread
        same.text = UNKNOWN_TEXT
        name = thread_key(same)
    if seen.find(name) >= 0:
        return False
    seen.insert(name, 1)
    node.thread = thread
    node.parent = parent
    node.byte = byte
    at = core.tracker.states[-1 - thread.text]
    node.typed = at.mode == TRACK_STRING and at.escape != 0 and (parent < 0 or nodes[parent].typed)
    node.begun = False
    owes = tracker_owes(&core.tracker, thread.text)
    node.owed = owes
    node.paid = 0
    node.due = owes
    node.owing = 0
    node.put_off = 0
    node.easy = (goal == SEARCH_OUT and owes == core.tracker.frames[at.frame].tied and tracker_easy(&core.tracker, thread.text))
    if parent >= 0:
        node.put_off = nodes[parent].put_off
        # An array more with two equal items is no step forward where none is needed.
        node.owed = max(owes, nodes[parent].owed)
        node.due = nodes[parent].due
        node.owing = nodes[parent].owing + 1 if owes > node.due else 0
        paid = tracker_owes(&core.tracker, nodes[parent].thread.text) - owes
        node.paid = min(nodes[parent].paid + max(paid, 0), node.owed)
    nodes.push_back(node)
    distinct_push(core, nodes, queue, <int32_t>nodes.size() - 1, goal)
    return False


cdef void distinct_push(Core* core, vector[DistinctNode]& nodes, priority_queue[pair[int64_t, int32_t]]* queue, int32_t at,
                        int32_t goal) noexcept nogil:
    # Where whatever came makes no difference, no more is needed than the grammar says: that goes before what looks for two
    # equal items.
    cdef const Thread* thread = &nodes[at].thread
    cdef const Frame* frame = core.tracker.frames[core.tracker.states[-1 - thread.text].frame]
    cdef cbool like = not nodes[at].begun and tracker_seeks(&core.tracker, thread.text)
    # So does an item that is known to be like an earlier one.
    cdef cbool ready = goal == SEARCH_OUT and (tracker_any(&core.tracker, thread.text)
                                               or (like and frame.twin and frame.owes == frame.tied))
    queue.push(pair[int64_t, int32_t](distinct_rank(core, thread[0], goal, like) - nodes[at].owing
                                      + 4 * <int64_t>UNREACHED * (nodes[at].paid + ready - nodes[at].put_off), at))


cdef cbool distinct_search(Core* core, const Thread* roots, size_t count, int32_t goal, int64_t most,
                           vector[uint8_t]* path) noexcept nogil:
    # Whether one of some threads can reach a goal; `path`, if given, gets the bytes.  `most`, if not 0: looks at so many states,
    # and finds nothing behind them.
    cdef vector[DistinctNode] nodes
    cdef KeyIds seen
    cdef priority_queue[pair[int64_t, int32_t]] queue
    cdef vector[uint8_t] bytes
    cdef vector[Thread] out
    cdef Thread thread
    cdef size_t i
    cdef int32_t at
    cdef uint8_t byte
    cdef cbool found
    for i in range(count):
        if distinct_add(core, nodes, &seen, &queue, roots[i], -1, 0, goal):
            return True
    while not queue.empty():
        if most and <int64_t>nodes.size() > most:
            return False
        # A mask asks for many searches, most of which end at once: each is bounded.
        if <int64_t>nodes.size() > core.max_search:
            core.index.deadline.searched = <int64_t>nodes.size()
            core.index.deadline.passed = True
        if deadline_look(&core.index.deadline):
            # Nothing that follows from this answer is kept.
            return True
        at = queue.top().second
        queue.pop()
        distinct_bytes(core, nodes[at], bytes)
        for byte in bytes:
            out.clear()
            thread = nodes[at].thread
            found = thread_step(core, thread, byte, NO_STATE, out) != NO_STATE
            for i in range(out.size()):
                found = found or distinct_add(core, nodes, &seen, &queue, out[i], at, byte, goal)
            if core.index.deadline.passed:
                return True
            if found:
                if path != NULL:
                    distinct_path(nodes, at, byte, path[0])
                while at >= 0 and goal != SEARCH_TEXT:
                    core_learn(core, nodes[at].thread, 1)
                    at = nodes[at].parent
                return True
        if not nodes[at].begun and distinct_waits(core, nodes[at]):
            nodes[at].begun = True
            nodes[at].put_off += nodes[at].easy
            distinct_push(core, nodes, &queue, at, goal)
    for i in range(nodes.size() if goal == SEARCH_ALIVE or goal == SEARCH_APART else 0):
        core_learn(core, nodes[i].thread, 0)
    return False


# --- masks ----------------------------------------------------------------------------------

cdef struct TokenSpan:
    int32_t first          # indices into Trie.tokens
    int32_t last


cdef inline cbool distinct_settled(Core* core, const Thread& thread, cbool begun) noexcept nogil:
    # Whether nothing inside a lexeme matters: it is part of an item that will be new, or may be.  Behind an item,
    # there may be a comma.
    cdef int32_t mode
    if thread.text >= 0:
        return True
    mode = core.tracker.states[-1 - thread.text].mode
    if mode == TRACK_AFTER or not (begun or mode != TRACK_NUMBER):
        return False
    return tracker_easy(&core.tracker, thread.text) or (begun and distinct_careless(core, thread))


cdef void distinct_inside(Core* core, const Thread& thread, cbool begun, cbool opaque, vector[TokenSpan]& gone,
                          vector[uint32_t]& ends) noexcept nogil:
    # The tokens inside the lexeme that its own mask allows and earlier items do not.  Strings that end like an earlier one are
    # listed in `ends` instead, as trie nodes of their closing quotes, if they are `opaque` or can always become new ones.
    cdef const Trie* trie = core.index.trie
    cdef vector[Thread] path, out
    cdef vector[uint64_t] ahead
    cdef uint32_t node = 1, last = trie.nodes[0].end
    cdef int32_t joined
    cdef size_t depth, i
    cdef LexState* lex
    cdef Thread pending
    cdef TokenSpan span
    cdef uint8_t byte
    cdef cbool alive
    if distinct_settled(core, thread, begun):
        return
    if begun and distinct_endless(core, thread):
        distinct_ends(core, thread, 0, ends)
        return
    path.push_back(thread)
    while node < last:
        if deadline_passed(&core.index.deadline):
            return
        depth = trie.nodes[node].depth
        byte = trie.nodes[node].byte
        path.resize(depth)
        if ahead.size() < 4 * depth:
            # The first child of its parent.
            ahead.resize(4 * depth)
            if tracker_free_behind(&core.tracker, path[depth - 1].text):
                tracker_ahead(&core.tracker, path[depth - 1].text, &ahead[4 * depth - 4])
            else:
                memset(&ahead[4 * depth - 4], 255, 32)
        ahead.resize(4 * depth)
        lex = LEX_DEAD
        if bits_has(&ahead[4 * depth - 4], byte):
            lex = lex_next(path[depth - 1].lex, byte)
        if opaque and byte == QUOTE and lex != LEX_DEAD and core.tracker.states[-1 - path[depth - 1].text].escape == 0:
            ends.push_back(node)
            lex = LEX_DEAD
        if lex == LEX_DEAD:
            node = trie.nodes[node].end
            continue
        out.clear()
        joined = thread_step(core, path[depth - 1], byte, NO_STATE, out)
        distinct_clean(core, out)
        alive = False
        for i in range(out.size()):
            if out[i].lex == lex:
                alive = True
                pending = out[i]
        if alive and not distinct_settled(core, pending, True):
            if not distinct_endless(core, pending):
                path.push_back(pending)
                node += 1
                continue
            distinct_ends(core, pending, node, ends)
        if not alive:
            span.last = trie.nodes[trie.nodes[node].end].token
            # Tokens that end the lexeme here may be good though none that goes on is.
            span.first = trie.nodes[node if joined == NO_STATE and out.empty() else node + 1].token
            if span.first < span.last and (lex_goes_on(lex) or span.first == trie.nodes[node].token):
                gone.push_back(span)
        node = trie.nodes[node].end


cdef void distinct_crossing(Core* core, const Thread& thread, const vector[uint32_t]& nodes, vector[int32_t]& added) noexcept nogil:
    # Add the tokens at trie nodes (sorted) and below that the thread allows.
    cdef const Trie* trie = core.index.trie
    cdef const uint8_t* data
    cdef vector[uint8_t] prefix
    cdef uint32_t node, last = 0
    cdef size_t i, depth, before
    cdef int32_t t
    core.stack[0].clear()
    core.stack[0].push_back(thread)
    for i in range(nodes.size()):
        node = nodes[i]
        if node < last:
            continue
        last = trie.nodes[node].end
        before = <size_t>trie.nodes[node].depth - 1
        data = index_text(core.index, node)
        # stack[k] stands behind prefix[:k].
        depth = 0
        while depth < before and depth < prefix.size() and prefix[depth] == data[depth]:
            depth += 1
        prefix.resize(depth)
        while depth < before and not core.stack[depth].empty():
            threads_step(core, core.stack[depth], data[depth], core.stack[depth + 1])
            prefix.push_back(data[depth])
            depth += 1
        if depth < before or core.stack[before].empty():
            continue
        while node < last:
            if deadline_passed(&core.index.deadline):
                return
            depth = trie.nodes[node].depth
            threads_step(core, core.stack[depth - 1], trie.nodes[node].byte, core.stack[depth])
            if core.stack[depth].empty():
                node = trie.nodes[node].end
                continue
            for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
                added.push_back(trie.tokens[t])
            node += 1


cdef inline cbool distinct_opaque(Core* core, const Thread& thread, cbool begun) noexcept nogil:
    # Whether a lexeme under way is a string that need not be known, unless it is like an earlier one.
    cdef const Automaton* automaton = thread.lex.automaton
    if automaton.kind != KIND_KEYSET and (automaton.kind != KIND_TEXT or automaton.spelling == SPELLING_UTF8):
        return False
    return (begun and core.tracker.states[-1 - thread.text].mode == TRACK_STRING
            and tracker_owes(&core.tracker, thread.text) == 0 and tracker_free_behind(&core.tracker, thread.text))


cdef void distinct_mask(Core* core, Mask* mask, const Thread& thread, cbool begun, cbool alone) noexcept nogil:
    # Add what a thread inside such an array allows.  `begun`: its lexeme was, else it starts here.
    cdef LexMask* own = lexmask_get(thread.lex, core.index)
    cdef LexMask* base
    cdef vector[TokenSpan] gone
    cdef TokenSpan span
    cdef vector[uint32_t] nodes, exact
    cdef vector[Thread] behind, threads
    cdef vector[int32_t] added, crossing
    cdef CrossingGroup group
    cdef Override override
    cdef uint64_t first[4]
    cdef int32_t known = NO_TAG, key, tag, t
    cdef uint32_t node
    cdef size_t i, j
    cdef Mask part
    cdef cbool opaque = distinct_opaque(core, thread, begun)
    if own == NULL:
        return
    base = own if own.base == NULL else own.base
    distinct_inside(core, thread, begun, opaque, gone, exact)
    key = ANY_KEY if lex_keeps_text(thread.lex) else NO_KEY
    if not mask_open(core, base, thread.lex, thread.parser):
        return
    threads.push_back(thread)
    for i in range(base.crossings.size()):
        group = base.crossings[i]
        if group.tag != known:
            known = group.tag
            tag = known if thread.lex.base == NULL else thread.lex.automaton.other_tag + known
            mask_behind(core, thread.lex, tag, thread.parser, key, behind, first)
            for j in range(behind.size() if opaque else 0):
                behind[j].text = tracker_unknown(&core.tracker, thread.text)
        if bits_has(first, group.byte):
            if opaque:
                mask_walk(core, threads, lexmask_residual(base, i), behind, crossing)
            else:
                nodes.insert(nodes.end(), base.nodes.begin() + group.first, base.nodes.begin() + group.last)
    for override in own.overrides:
        exact.push_back(override.node)
    for node in exact:
        span.first = core.index.trie.nodes[node].token
        span.last = core.index.trie.nodes[core.index.trie.nodes[node].end].token
        gone.push_back(span)
        nodes.push_back(node)
    sort(nodes.begin(), nodes.end())
    distinct_crossing(core, thread, nodes, added)
    if gone.empty():
        mask_join_bits(core, mask, own.bits)
        mask_join_bits(core, mask, base.bits)
        mask.added.insert(mask.added.end(), own.inside.begin(), own.inside.end())
        if base != own:
            mask.added.insert(mask.added.end(), base.inside.begin(), base.inside.end())
        mask.added.insert(mask.added.end(), crossing.begin(), crossing.end())
        mask.added.insert(mask.added.end(), added.begin(), added.end())
        return
    part.bits = NULL
    mask_join_bits(core, &part, own.bits)
    mask_join_bits(core, &part, base.bits)
    part.base.insert(part.base.end(), own.inside.begin(), own.inside.end())
    if base != own:
        part.base.insert(part.base.end(), base.inside.begin(), base.inside.end())
    part.base.insert(part.base.end(), crossing.begin(), crossing.end())
    for span in gone:
        for t in range(span.first, span.last):
            part.removed.push_back(core.index.trie.tokens[t])
    part.added.swap(added)
    if alone:
        mask.bits = part.bits
        mask.base.swap(part.base)
        mask.removed.swap(part.removed)
        mask.added.swap(part.added)
        return
    mask_flatten(core, &part)
    mask_join_bits(core, mask, part.bits)
    bits_release(core.index, part.bits)
