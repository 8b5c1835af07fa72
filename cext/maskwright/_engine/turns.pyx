# Operations of different grammars take turns.
#
# Who holds the vocabulary's lock keeps everybody else on that vocabulary waiting.  A search for a shortest completion may take all of its
# time limit; so may a long text, or a lexer that is made ready.  Such an operation looks, between two of its steps, whether somebody waits.
# After a *turn* of half a millisecond it puts its deadline aside, lets them in, and goes on when one of them has had the lock.  It is
# *away* meanwhile.  What others may do then:
#
#   another grammar         everything; automata that both have only get more states
#   the same, or its lexer  read what is known; whoever wants to compute stands back until the operation is over
#   eviction                passes by what belongs to the grammar and its lexer
#   a fork                  waits, and nobody else goes away meanwhile
#
# So a place for this (`turn_late`) is one where what the grammar has interned is whole, and no scratch of an automaton is in use.  A mask
# of a lexeme that is borrowed there is held, and whole: nobody adds to it (lexmask_open).
#
# The time limit goes on meanwhile.  But whoever comes back too late has LEAST_SECONDS of its own: what is done in a moment is not
# refused because others took long.

from libc.stdint cimport int64_t

from maskwright._engine.containers cimport seconds_now
from maskwright._engine.limits cimport TURN_SECONDS

cdef double LEAST_SECONDS = 0.02    # of processing, for each operation that has a time limit

cdef struct Aside:
    # Of a deadline, while others have the lock.
    double at
    double turns_took
    double ask_at
    int64_t most_states
    int64_t most_bytes
    int64_t searched
    cbool swollen
    cbool* away


cdef void turns_begin(Index* index, cbool* away) noexcept nogil:
    # The operation that has just begun takes turns; `away` says to others of its grammar that it has not ended.
    index.deadline.away = away


cdef void turn_over(Index* index) noexcept nogil:
    # Let somebody else in, if this turn has been long enough.
    cdef Aside aside
    cdef double now = seconds_now()
    if index.forks or now < index.deadline.turn_began + TURN_SECONDS:
        return
    aside.turns_took = index.deadline.turns_took + now - index.deadline.turn_began
    aside.at = index.deadline.at
    aside.ask_at = index.deadline.ask_at
    aside.most_states = index.deadline.most_states
    aside.most_bytes = index.deadline.most_bytes
    aside.searched = index.deadline.searched
    aside.swollen = index.deadline.swollen
    aside.away = index.deadline.away
    aside.away[0] = True
    index.deadline.away = NULL
    index.away += 1
    index.lock.give_way()
    index.away -= 1
    aside.away[0] = False
    now = seconds_now()
    index.deadline.turns_took = aside.turns_took
    index.deadline.at = max(aside.at, now + LEAST_SECONDS - aside.turns_took) if aside.at > 0 else 0
    index.deadline.ask_at = aside.ask_at
    index.deadline.most_states = aside.most_states
    index.deadline.most_bytes = aside.most_bytes
    index.deadline.searched = aside.searched
    index.deadline.swollen = aside.swollen
    index.deadline.passed = index.deadline.interrupted = False
    index.deadline.crowded = index.deadline.heavy = 0
    index.deadline.turn_began = now
    turns_begin(index, aside.away)
