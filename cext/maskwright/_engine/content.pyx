# Sources, automata and tables as plain content: for keys, and to make equal ones elsewhere; what a matcher has read; stopping a thread.

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t, uintptr_t
from libc.string cimport memcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright.base.deadline import check_time
from maskwright.errors import MaskwrightError

from maskwright._engine.sizes cimport bits_has, set_has
from maskwright._engine.containers cimport StopFlag
from maskwright._engine.limits cimport NO_LIMIT, stop_watch
from maskwright._engine.vocabulary cimport CodeRange, LAST_CODE_POINT
from maskwright._engine.lexemes cimport (
    Automaton, LazyDfa, DfaEdge, KIND_BOUNDARY, KIND_KEYSET, KIND_TOKENS, KIND_WORDS, NfaEpsilon, NO_CLASS, NO_TAG
)
from maskwright._engine.longest_match cimport Lexer, lexer_of
from maskwright._engine.program cimport Call, PlainTerm, RecordDef, RepeatedDef
from maskwright._engine.engine cimport AutomatonHandle, handle_bytes
from maskwright._engine.tables cimport Tables
from maskwright._engine.matcher cimport Matcher

# --- Plain data as a key: its content as bytes.

# Data that is nested deeper has no key: the walk recurses.
cdef int MOST_NESTING = 1000


def content_key(source, int64_t most):
    """The content of data as bytes, equal exactly where the data, its types and the order of members are; what is shared is
    written each time.

    None where there are more than ``most`` values below ``source``, 1000 levels of them, or anything but exactly dict
    (with str as keys), list, str, int, float, bool and None: other types may say something else the next time.
    """
    cdef string out
    return <bytes>out if write_plain(out, source, &most, 0, None, None, NULL) else None


def content_keys(source, int64_t most, str name):
    """``content_key``, and by id those of the values that are called ``name`` in a dict of it: they are parts of it."""
    cdef string out
    spans = {}
    if not write_plain(out, source, &most, 0, name, spans, NULL):
        return None, {}
    whole = <bytes>out
    return whole, {value: whole[span] for value, span in spans.items()}


def repeated(source, int64_t most, dict holds, dict annotations):
    """The dicts inside of a schema that are there more than once, by id: a list for all of equal content, which is empty.

    ``holds``: by keyword, 1 where its value is a dict of schemas, 2 where it is no schema.  ``annotations``: by keyword, the type of
    what is not compared.  Empty for what has no key (``content_key``).
    """
    cdef string out
    cdef vector[DictSpan] dicts
    cdef DictSpan each
    cdef dict first = {}, found = {}
    cdef object place
    cdef size_t seen = 0
    if not write_plain(out, source, &most, 0, None, None, &dicts, SCHEMAS, holds, annotations):
        return found
    for each in dicts:
        seen += 1
        if seen & 63 == 0:
            check_time()
        content = out.data()[each.begin:each.end]
        place = each.id
        known = first.setdefault(content, place)
        if known is not place:
            if type(known) is int:
                found[known] = first[content] = known = []
            found[place] = known
    return found


cdef struct DictSpan:
    uintptr_t id
    size_t begin
    size_t end


cdef enum:
    SCHEMAS = 0            # dicts are schemas, as far as this is known
    NAMES = 1              # a dict whose members are schemas
    VALUES = 2             # no schemas

cdef bint write_plain(string& out, value, int64_t* most, int depth, str called, dict spans, vector[DictSpan]* dicts,
                      int place=SCHEMAS, dict holds=None, dict annotations=None) except -1:
    # `spans`: where values that are called so stand, by id; None: nobody asks.  `dicts`: where the dicts of a schema stand, which are
    # written without annotations; NULL: nobody asks.
    # Each value begins with a letter (a text with the width of its characters) and how long it is: none begins another one.
    cdef int64_t number
    cdef size_t begin, i
    cdef double real
    cdef int overflow = 0
    cdef DictSpan span
    kind = type(value)
    if kind is str:
        write_text(out, value)
    elif kind is dict:
        check_time()
        most[0] -= len(<dict>value)
        if most[0] < 0 or depth == MOST_NESTING:
            return False
        span.id = <uintptr_t><void*>value
        span.begin = out.size()
        # Of those that lack something, the end is told, not the length.
        write_number(out, b"d", 0 if dicts != NULL else len(<dict>value))
        for name, item in (<dict>value).items():
            if type(name) is not str:
                return False
            if dicts != NULL and place == SCHEMAS and name in annotations and isinstance(item, annotations[name]):
                continue
            write_text(out, name)
            begin = out.size()
            i = place if place == VALUES else SCHEMAS
            if dicts != NULL and place == SCHEMAS and name in holds:
                i = holds[name]
            if not write_plain(out, item, most, depth + 1, called, spans, dicts, i, holds, annotations):
                return False
            if spans is not None and <str>name == called:
                spans[id(item)] = slice(begin, out.size())
        if dicts != NULL:
            out.push_back(b"e")
            span.end = out.size()
            dicts.push_back(span)
    elif kind is list:
        check_time()
        most[0] -= len(<list>value)
        if most[0] < 0 or depth == MOST_NESTING:
            return False
        write_number(out, b"l", len(<list>value))
        for i, item in enumerate(<list>value):
            if i & 255 == 255:
                check_time()
            if not write_plain(out, item, most, depth + 1, called, spans, dicts, place, holds, annotations):
                return False
    elif kind is bool:
        out.push_back(b"t" if value is True else b"f")
    elif value is None:
        out.push_back(b"n")
    elif kind is int:
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            out.push_back(b"I")
            write_text(out, f"{value:x}")
        else:
            write_number(out, b"i", number)
    elif kind is float:
        real = value
        memcpy(&number, &real, sizeof(double))
        write_number(out, b"r", number)
    else:
        return False
    return True


cdef inline void write_number(string& out, char letter, int64_t number):
    # Seven bits in a byte: most numbers are lengths, and small.
    cdef char[11] written
    cdef size_t size = 1
    cdef uint64_t left = <uint64_t>number
    written[0] = letter
    while left > 0x7F:
        written[size] = <char>(left & 0x7F | 0x80)
        left >>= 7
        size += 1
    written[size] = <char>left
    out.append(written, size + 1)


cdef inline void write_text(string& out, text):
    # As it is in memory, with 1, 2 or 4 bytes for each character: as few as the text allows.
    cdef int width = PyUnicode_KIND(text)
    write_number(out, <char>width, PyUnicode_GET_LENGTH(text))
    out.append(<char*>PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text) * width)


# --- What automata, tables and matchers were made of: read off them, so that nothing is kept for it.
#
# From this, equal ones are made in another process and for another vocabulary (maskwright.compiling.packed_tables, maskwright.compiling.compiled).

cdef tuple SPELLINGS = ("utf8", "quoted", "printed")


cdef list ranges_of_sets(LazyDfa* dfa):
    # The sets of code points that edges are labelled with: each as ranges, ascending and not adjacent.
    cdef vector[CodeRange] spans
    cdef vector[int32_t] classes
    cdef CodeRange span
    cdef int32_t code = 0, low, high
    cdef size_t i, j
    while code < 128:
        span.low = code
        while code < 128 and dfa.ascii_class[code] == dfa.ascii_class[span.low]:
            code += 1
        span.high = code - 1
        spans.push_back(span)
        classes.push_back(dfa.ascii_class[span.low])
    for i in range(dfa.range_low.size()):
        span.low = dfa.range_low[i]
        span.high = dfa.range_low[i + 1] - 1 if i + 1 < dfa.range_low.size() else LAST_CODE_POINT
        spans.push_back(span)
        classes.push_back(dfa.range_class[i])
    found = []
    for j in range(dfa.sets.size()):
        ranges = []
        low = high = -2
        for i in range(spans.size()):
            if classes[i] == NO_CLASS or not set_has(dfa.sets[j], classes[i]):
                continue
            if spans[i].low != high + 1:
                if high >= 0:
                    ranges.append((low, high))
                low = spans[i].low
            high = spans[i].high
        if high >= 0:
            ranges.append((low, high))
        found.append(tuple(ranges))
    return found


cdef tuple dfa_content(LazyDfa* dfa):
    # An NFA as ``Engine.add_automaton`` takes it: states, sets, edges (bytes), epsilons, loops, accepts.
    cdef vector[int32_t] edges
    cdef DfaEdge edge
    cdef NfaEpsilon epsilon
    cdef int32_t state, count = <int32_t>dfa.edges.size()
    cdef size_t i
    epsilons = []
    accepts = []
    for state in range(count):
        for i in range(dfa.edges[state].size()):
            edge = dfa.edges[state][i]
            edges.push_back(state)
            edges.push_back(edge.set)
            edges.push_back(edge.target)
        for i in range(dfa.epsilons[state].size()):
            epsilon = dfa.epsilons[state][i]
            epsilons.append((state, epsilon.target, epsilon.op, epsilon.loop))
        if dfa.accept[state] != NO_TAG:
            accepts.append((state, dfa.accept[state]))
    loops = [(dfa.loop_min[i], dfa.loop_max[i]) for i in range(dfa.loop_min.size())]
    return (count, ranges_of_sets(dfa), (<const char*>edges.data())[:edges.size() * sizeof(int32_t)], epsilons, loops, accepts)


cdef bytes rows_of_sets(vector[vector[int32_t]]& sets, size_t count):
    # Sets of numbers below `count` as rows of bits.
    cdef string bits
    cdef size_t i, width = (count + 7) // 8
    cdef int32_t number
    bits.resize(sets.size() * width)
    with nogil:
        for i in range(sets.size()):
            for number in sets[i]:
                bits[i * width + number // 8] |= <char>(1 << (number & 7))
    return bits


def automaton_content(AutomatonHandle handle not None):
    """What an automaton was made of: its kind ("text", "lexer", "keyset", "words", "tokens" or "boundary") and the arguments of the method of
    ``Engine`` that makes such a one, without the key; of a keyset, the automaton for other keys is one of them."""
    cdef Automaton* a = handle.automaton
    cdef Lexer* lexer = lexer_of(a)
    cdef size_t i
    if a.kind == KIND_KEYSET:
        names = [a.texts.names[i] for i in range(a.texts.names.size())]
        return "keyset", (names, list(a.texts.tags), a.keyset.other_tag, handle.base, a.kinds, SPELLINGS[a.spelling])
    if a.kind == KIND_WORDS:
        return "words", ((<const char*>a.texts.data.data())[:a.texts.data.size()],
                         (<const char*>a.texts.starts.data())[:a.texts.starts.size() * sizeof(int64_t)],
                         (<const char*>a.texts.tags.data())[:a.texts.tags.size() * sizeof(int32_t)])
    if a.kind == KIND_TOKENS:
        return "tokens", (list(a.token_set.ids),)
    if a.kind == KIND_BOUNDARY:
        return "boundary", (a.opens_line,)
    states, sets, edges, epsilons, loops, accepts = dfa_content(a.dfa)
    if lexer == NULL:
        return "text", (states, a.dfa.first, sets, edges, epsilons, loops, accepts, SPELLINGS[a.spelling])
    early = [i for i in range(a.dfa.early.size()) if a.dfa.early[i]]
    follow = rows_of_sets(lexer.follow, lexer.first.size()) if not lexer.follow.empty() else None
    return "lexer", (states, list(lexer.first), sets, edges, epsilons, loops, accepts, list(lexer.ignored_ones), follow,
                     tuple(lexer.samples.avoided), handle.names, lexer.newline, lexer.line_break, lexer.columns,
                     lexer.quote, early, lexer.placed, list(lexer.after), list(lexer.beside),
                     [(guard.start, guard.owner, list(guard.unless)) for guard in lexer.guards],
                     [i for i in range(lexer.samples.opens.size()) if lexer.samples.opens[i]],
                     [i for i in range(256) if bits_has(lexer.samples.first, <uint8_t>i)])


cdef tuple record_content(RecordDef* record):
    cdef int32_t i
    cdef size_t j, k
    values = [[(record.values[j][k].rule, record.values[j][k].obligations) for k in range(record.values[j].size())]
              for j in range(record.values.size())]
    required = [record.required_from[i] > record.required_from[i + 1] for i in range(record.count)]
    return (list(record.keys), list(record.sorts), values, list(record.absent), list(record.key_bytes), required, record.least,
            record.most, record.obligations, record.ordered, record.unique, record.bare, record.open, record.close_empty, record.colon,
            record.comma, record.close)


def tables_content(Tables tables not None):
    """What tables were made of: the arguments of ``Tables`` behind the engine."""
    cdef size_t i, j
    terms = [[(tables.plain_terms[i][j].automaton, tables.plain_terms[i][j].target, tables.plain_terms[i][j].tag)
              for j in range(tables.plain_terms[i].size())] for i in range(tables.plain_terms.size())]
    calls = [[(tables.plain_calls[i][j].rule, tables.plain_calls[i][j].back) for j in range(tables.plain_calls[i].size())]
             for i in range(tables.plain_calls.size())]
    final = (<const char*>tables.plain_final.data())[:tables.plain_final.size()]
    guards = [(tables.guards[i].free, tables.guards[i].least, tables.guards[i].repeats != 0, tables.guards[i].most,
               tables.guards[i].first, tables.guards[i].second) for i in range(tables.guards.size())]
    rules = [(tables.rules[i].kind, tables.rules[i].index, tables.rules[i].nullable != 0) for i in range(tables.rules.size())]
    repeated = [(tables.repeated[i].first, tables.repeated[i].rest, tables.repeated[i].low, tables.repeated[i].high)
                for i in range(tables.repeated.size())]
    records = [record_content(&tables.records[i]) for i in range(tables.records.size())]
    return (list(tables.handles), tables.lexer, terms, calls, final, list(tables.plain_guard), guards, rules, repeated, records,
            list(tables.indented), tables.start_rule, list(tables.imports), list(tables.names))


def tables_bytes(Tables tables not None):
    """About what tables take, without their automata, which others share (bytes)."""
    cdef size_t i, total = tables.plain_final.size() * 128
    for i in range(tables.plain_terms.size()):
        total += tables.plain_terms[i].size() * sizeof(PlainTerm) + tables.plain_calls[i].size() * sizeof(Call)
    for i in range(tables.records.size()):
        total += sizeof(RecordDef) + tables.records[i].values.size() * 64
    return total + tables.rules.size() * 128 + tables.repeated.size() * sizeof(RepeatedDef)


def automata_bytes(Tables tables not None, bint states=True):
    """About what its automata take, of which others share some (bytes); not ``states``: without those that texts have reached."""
    cdef int64_t total = 0 if tables.lexer is None else handle_bytes(tables.lexer, states)
    for i, handle in enumerate(tables.handles):
        if i & 1023 == 1023:
            check_time()
        total += handle_bytes(handle, states)
    return total


def history_of(Matcher matcher not None):
    """What a matcher has read, from the start: (ids, and bytes where bytes were accepted; its ``max_rollback``; the most tokens that
    there ever were).  Raises ``MaskwrightError`` where it let go of the beginning."""
    if matcher.past.marks[0].position > 0:
        raise MaskwrightError(
            f"this matcher cannot be sent: it let go of its first {matcher.past.marks[0].position} tokens (max_rollback); send the grammar "
            "and the tokens, and accept them there")
    read = [matcher.given[i] if token < 0 else token for i, token in enumerate(list(matcher.past.tokens))]
    return read, None if matcher.window < 0 else matcher.window, matcher.past.reached


def replay_history(Matcher matcher not None, read, int64_t reached):
    """Bring a new matcher to where another one is, by its ``history_of``; whether it gets there."""
    for each in read:
        if not (matcher.accept_bytes(each) if isinstance(each, bytes) else matcher.accept_token(each)):
            return False
    matcher.past.reached = max(matcher.past.reached, min(reached, NO_LIMIT))
    return True


cdef class Stop:
    """A flag by which another thread ends what is computed ``with`` it: engine operations that are under way raise
    ``KeyboardInterrupt``, as if the user had interrupted them."""

    cdef StopFlag flag
    cdef const StopFlag* before

    def set(self):
        """Stop it soon.  To be called from any thread, at any time."""
        self.flag.set()

    @property
    def is_set(self):
        """Whether it was."""
        return self.flag.is_set()

    def __enter__(self):
        self.before = stop_watch(&self.flag)
        return self

    def __exit__(self, *_):
        stop_watch(self.before)
