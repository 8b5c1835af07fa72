# The containers of the headers, and what else they have that every module may use.  What a header keeps for a whole process (the
# pool of threads, deferred frees) is not here: it belongs to one module (limits).

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.vector cimport vector

cdef extern from "tables.hpp" namespace "maskwright" nogil:
    cdef cppclass Interner:
        int32_t find(const string&)        # -1: not there
        int32_t find(const void*, size_t)
        void insert(const string&, int32_t)
        void insert(const void*, size_t, int32_t)
        void clear()
        size_t bytes()
    cdef cppclass ScratchIds:
        int32_t find(int64_t)              # -1: not there
        void insert(int64_t, int32_t)
        void clear()
        void drop()
        size_t bytes()
    cdef cppclass Edges[K]:
        int32_t find(K)                    # -3: not there
        void insert(K, int32_t)
        void clear()
        size_t count()
        size_t bytes()

cdef extern from "segmented.hpp" namespace "maskwright" nogil:
    cdef cppclass SegmentedVector[T]:
        size_t size()
        bint empty()
        T& operator[](size_t)
        void push_back(const T&)
        size_t bytes()
    cdef cppclass Arena[T]:
        T* add(const T*, size_t)
        T* zeros(size_t)
        bint drop()
    cdef cppclass Renumbered:
        int32_t find(int32_t)              # -3: not there
        void insert(int32_t, int32_t)

cdef extern from "textsets.hpp" namespace "maskwright" nogil:
    cdef cppclass TextSets:
        int32_t name(const string&)
        string named(int32_t)
        int32_t with_text "with"(int32_t, const string&)
        int32_t with_note "with"(int32_t, const string&, int32_t)
        int32_t of(const vector[pair[string, int32_t]]&)
        int32_t count(int32_t)
        bint ends(int32_t, int32_t)
        int32_t note(int32_t, int32_t)
        bint step(int32_t&, int32_t&, uint8_t)
        void next(int32_t, int32_t, vector[uint8_t]&)
        void rests(int32_t, int32_t, vector[string]&)
        size_t children(int32_t)
        int32_t child(int32_t, size_t)
        int32_t own_note(int32_t)
        int32_t moved(int32_t, int32_t, TextSets&, const Renumbered&)
        size_t bytes()

cdef extern from "rows.hpp" namespace "maskwright" nogil:
    cdef cppclass Span[T]:
        Span()
        Span(T*, T*)
        size_t size()
        bint empty()
        T* begin()
        T* end()
        T& operator[](size_t)
    cdef cppclass Csr[T]:
        size_t size()
        Span[T] operator[](size_t)          # valid until a row is added
        void push_back(const vector[T]&)
        void append(const Csr[T]&)
    Csr[T] by_owner[T](size_t, const vector[pair[int32_t, T]]&)

cdef extern from "blocks.hpp" namespace "maskwright" nogil:
    cdef cppclass SmallVector[T]:
        void assign(const vector[T]&)
        size_t size()
        bint empty()
        T* begin()
        T* end()
        T& operator[](size_t)
        void push_back(T)
        vector[T] copied()
        size_t bytes()
    cdef cppclass BlockPool[T]:
        size_t size()
        T* operator[](size_t)
        T* add()
        bint drop()

cdef extern from "lock.hpp" namespace "maskwright" nogil:
    cdef cppclass TurnLock:
        void lock()
        cbool try_lock()
        void unlock()
        void lock_shared()
        cbool try_lock_shared()
        void unlock_shared()
        cbool is_wanted()
        void give_way()
        void stand_back()
        void renew()

cdef extern from "pool.hpp" namespace "maskwright" nogil:
    double seconds_now()

cdef extern from "deferred_free.hpp" namespace "maskwright" nogil:
    cdef cppclass AtomicCounter:
        void set(int64_t to)
        void add(int64_t more)
        void subtract(int64_t less)
        int64_t value()
        int64_t drop()

cdef extern from "stop.hpp" namespace "maskwright" nogil:
    cdef cppclass StopFlag:
        void set()
        cbool is_set()

cdef extern from "<queue>" namespace "std" nogil:
    cdef cppclass priority_queue[T]:
        void push(const T&)
        void pop()
        const T& top()
        cbool empty()
