# Arrays of different items: whether they can be filled at all, and what their threads allow of all tokens.

from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.string cimport memset
from libcpp.algorithm cimport lower_bound, sort
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport bits_has
from maskwright._engine.turns cimport turn_passed, turns_pause
from maskwright._engine.trie cimport Trie
from maskwright._engine.char_index cimport bits_release, index_text
from maskwright._engine.lexemes cimport (
    Automaton, CrossingGroup, KIND_KEYSET, KIND_TEXT, LexMask, LexState, NO_TAG, Override
)
from maskwright._engine.lexeme_texts cimport BACKSLASH, LEX_DEAD, QUOTE, SPELLING_UTF8
from maskwright._engine.keyset cimport ESCAPE_BAD, ESCAPE_OPEN, escape_read, key_spelling
from maskwright._engine.lexeme_state cimport lex_goes_on, lex_keeps_text, lex_next
from maskwright._engine.lexeme_walks cimport lexmask_release, lexmask_residual
from maskwright._engine.lexeme_mask cimport lexmask_borrow
from maskwright._engine.program cimport ANY_KEY, NO_KEY, NO_STATE, ParserState
from maskwright._engine.stacks cimport state_goto_guarded, state_start
from maskwright._engine.tracked cimport (
    is_tracked, TRACK_AFTER, TRACK_NUMBER, TRACK_STRING, tracked_state, Tracker, TrackerState, Value,
    VALUE_STRING
)
from maskwright._engine.values cimport text_bytes
from maskwright._engine.item_groups cimport frame_sets, frame_targets, ITEM_STRING, items_step
from maskwright._engine.tracker cimport (
    tracker_ahead, tracker_easy, tracker_free_behind, tracker_open, tracker_owes, tracker_unknown
)
from maskwright._engine.core cimport thread_at
from maskwright._engine.threads cimport thread_step
from maskwright._engine.distinct cimport (
    distinct_careless, distinct_clean, distinct_endless, distinct_search, SEARCH_TEXT, TextPlace
)
from maskwright._engine.alive cimport threads_step
from maskwright._engine.states cimport mask_behind, mask_flatten, mask_join_bits, mask_open, mask_walk


cdef cbool ends_like(const Tracker* tracker, const vector[TextPlace]& places, const vector[string]& rests, const string& text) noexcept nogil:
    # Whether an earlier string ends behind some more text.
    cdef TextPlace place
    cdef size_t i
    for i in range(places.size()):
        place = places[i]
        if items_step(tracker, &place.set, &place.at, text) and tracker.items.ends(place.set, place.at):
            return True
    for i in range(rests.size()):
        if rests[i] == text:
            return True
    return False


cdef void distinct_ends(Core* core, const Thread& thread, uint32_t top, vector[uint32_t]& ends) noexcept nogil:
    # List the trie nodes below one at which a string under way is closed when it is like an earlier one.
    cdef const Trie* trie = core.index.trie
    cdef Tracker* tracker = &core.tracker
    cdef TrackerState at = tracker.states[tracked_state(thread.memory)]
    cdef vector[uint32_t]* quotes = &core.index.by_char.quotes
    cdef vector[TextPlace] places
    cdef vector[string] rests
    cdef vector[int32_t] targets, sets
    cdef const Value* value
    cdef const uint8_t* data
    cdef string read = text_bytes(&tracker.store.texts, at.text), begun, text
    cdef TextPlace place
    cdef int32_t target, escape, point
    cdef uint32_t half, node, first = top + 1, last = trie.nodes[top].end
    cdef size_t i, j, depth
    begun.push_back(<char>ITEM_STRING)
    begun.append(read)
    frame_targets(tracker, at.frame, targets)
    frame_sets(tracker, at.frame, sets)
    for place.set in sets:
        place.at = 0
        if items_step(tracker, &place.set, &place.at, begun):
            places.push_back(place)
    for target in targets:
        value = tracker.store.values[target]
        if value.kind == VALUE_STRING and value.text.size() >= read.size() and value.text.compare(0, read.size(), read) == 0:
            rests.push_back(value.text.substr(read.size()))
    if places.empty() and rests.empty():
        return
    i = <size_t>(lower_bound(quotes.begin(), quotes.end(), first) - quotes.begin())
    while i < quotes.size() and quotes[0][i] < last:
        node = quotes[0][i]
        i += 1
        data = index_text(core.index, node)
        depth = <size_t>trie.nodes[node].depth - 1
        escape = at.escape
        half = at.value
        text.clear()
        point = ESCAPE_OPEN
        for j in range(<size_t>trie.nodes[top].depth, depth):
            if escape == 0 and data[j] != BACKSLASH:
                text.push_back(<char>data[j])
                continue
            if escape == 0:
                escape = 1
                continue
            point = escape_read(&escape, &half, data[j])
            if point == ESCAPE_BAD:
                break
            if point != ESCAPE_OPEN:
                text.append(key_spelling(point))
                escape = 0
                half = 0
        if point == ESCAPE_BAD or escape != 0:
            continue
        if ends_like(tracker, places, rests, text):
            ends.push_back(node)
        # Behind it, there is another lexeme.
        while i < quotes.size() and quotes[0][i] < trie.nodes[node].end:
            i += 1


cdef cbool distinct_fillable(Core* core, int32_t rule, int32_t guard) noexcept nogil:
    # Whether a rule, an array with a guard, has a text.
    cdef int32_t start = state_start(core.program, rule)
    cdef const ParserState* state
    cdef Thread thread = thread_at(NO_STATE, NULL)
    cdef size_t i
    if start == NO_STATE:
        return False
    state = core.program.states[start]
    thread.memory = tracker_open(&core.tracker, 0, guard)
    for i in range(state.starts.size()):
        thread.parser = state_goto_guarded(core.program, start, state.starts[i].automaton, 0, guard)
        if thread.parser != NO_STATE and distinct_search(core, &thread, 1, SEARCH_TEXT, 0, NULL):
            return True
    return False


cdef struct TokenSpan:
    int32_t first          # indices into Trie.tokens
    int32_t last


cdef inline cbool distinct_settled(Core* core, const Thread& thread, cbool begun) noexcept nogil:
    # Whether nothing inside a lexeme matters: it is part of an item that will be new, or may be.  Behind an item,
    # there may be a comma.
    cdef int32_t mode
    if not is_tracked(thread.memory):
        return True
    mode = core.tracker.states[tracked_state(thread.memory)].mode
    if mode == TRACK_AFTER or not (begun or mode != TRACK_NUMBER):
        return False
    return tracker_easy(&core.tracker, thread.memory) or (begun and distinct_careless(core, thread))


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
        if turn_passed(core.index):
            return
        depth = trie.nodes[node].depth
        byte = trie.nodes[node].byte
        path.resize(depth)
        if ahead.size() < 4 * depth:
            # The first child of its parent.
            ahead.resize(4 * depth)
            if tracker_free_behind(&core.tracker, path[depth - 1].memory):
                tracker_ahead(&core.tracker, path[depth - 1].memory, &ahead[4 * depth - 4])
            else:
                memset(&ahead[4 * depth - 4], 255, 32)
        ahead.resize(4 * depth)
        lex = LEX_DEAD
        if bits_has(&ahead[4 * depth - 4], byte):
            lex = lex_next(path[depth - 1].lex, byte)
        if opaque and byte == QUOTE and lex != LEX_DEAD and core.tracker.states[tracked_state(path[depth - 1].memory)].escape == 0:
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
    core.scratch.stack[0].clear()
    core.scratch.stack[0].push_back(thread)
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
        while depth < before and not core.scratch.stack[depth].empty():
            threads_step(core, core.scratch.stack[depth], data[depth], core.scratch.stack[depth + 1])
            prefix.push_back(data[depth])
            depth += 1
        if depth < before or core.scratch.stack[before].empty():
            continue
        while node < last:
            if turn_passed(core.index):
                return
            depth = trie.nodes[node].depth
            threads_step(core, core.scratch.stack[depth - 1], trie.nodes[node].byte, core.scratch.stack[depth])
            if core.scratch.stack[depth].empty():
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
    return (begun and core.tracker.states[tracked_state(thread.memory)].mode == TRACK_STRING
            and tracker_owes(&core.tracker, thread.memory) == 0 and tracker_free_behind(&core.tracker, thread.memory))


cdef void distinct_mask(Core* core, Mask* mask, const Thread& thread, cbool begun, cbool alone) noexcept nogil:
    # Add what a thread inside such an array allows.  `begun`: its lexeme was, else it starts here.
    cdef LexMask* own = lexmask_borrow(thread.lex, core.index)
    if own == NULL:
        return
    distinct_join(core, mask, own, thread, begun, alone)
    lexmask_release(own)


cdef void distinct_join(Core* core, Mask* mask, LexMask* own, const Thread& thread, cbool begun, cbool alone) noexcept nogil:
    # The same, with the mask of its lexeme.
    cdef LexMask* base = own if own.base == NULL else own.base
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
    cdef cbool* away
    cdef cbool opaque = distinct_opaque(core, thread, begun)
    distinct_inside(core, thread, begun, opaque, gone, exact)
    key = ANY_KEY if lex_keeps_text(thread.lex) else NO_KEY
    if not mask_open(core, base, thread.lex, thread.parser):
        return
    away = turns_pause(core.index, base.open_tag != NO_TAG)
    threads.push_back(thread)
    for i in range(base.crossings.size()):
        group = base.crossings[i]
        if group.tag != known:
            known = group.tag
            tag = known if thread.lex.base == NULL else thread.lex.automaton.keyset.other_tag + known
            mask_behind(core, thread.lex, tag, thread.parser, key, behind, first)
            for j in range(behind.size() if opaque else 0):
                behind[j].memory = tracker_unknown(&core.tracker, thread.memory)
        if bits_has(first, group.byte):
            if opaque:
                mask_walk(core, threads, lexmask_residual(base, i), behind, crossing)
            else:
                nodes.insert(nodes.end(), base.nodes.begin() + group.first, base.nodes.begin() + group.last)
    core.index.deadline.away = away
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
