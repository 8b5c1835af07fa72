// Deterministic automata: subset construction, products, trimming and minimisation.
//
// Symbols are the minterms of an alphabet, numbers from 0.  States are numbers from 0, which is the start.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace maskwright {

constexpr int32_t kDead = -1;
// Elements of state sets, or transitions, that may be computed for each state allowed.
constexpr int64_t kWorkPerState = 4;

using DfaRow = std::vector<std::pair<int32_t, int32_t>>;  // (symbol, target), by symbol

struct Rows {
    std::vector<DfaRow> rows;
    std::vector<char> accepting;
};

inline std::string key_of(const std::vector<int32_t> &numbers) {
    return std::string(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(int32_t));
}

// Numbers of keys, in the order in which they were seen first.
class Numbering {
public:
    // The number of a key, and whether it is new.
    std::pair<int32_t, bool> number(const std::vector<int32_t> &key) {
        auto [at, fresh] = ids_.emplace(key_of(key), static_cast<int32_t>(ids_.size()));
        return {at->second, fresh};
    }

private:
    std::unordered_map<std::string, int32_t> ids_;
};

// The deterministic automaton of an NFA with one accepting state, by lazy subset construction.
class Subsets {
public:
    Subsets(int32_t states, int32_t accept, int64_t max_states)
        : max_states_(max_states), accept_(accept), edges_(states), epsilons_(states), stamps_(states, 0) {}

    void add_set(const std::vector<int32_t> &symbols) {
        sets_.push_back(symbols);
        for (int32_t symbol : symbols)
            if (symbol >= static_cast<int32_t>(reached_.size())) reached_.resize(symbol + 1);
    }
    void add_edge(int32_t source, int32_t set, int32_t target) { edges_[source].emplace_back(set, target); }
    void add_epsilon(int32_t source, int32_t target) { epsilons_[source].push_back(target); }
    void start(int32_t state) { intern({state}); }

    bool accepting(int32_t state) const { return states_[state].accepting; }

    // What follows a state; empty when a limit is passed.
    const DfaRow &row(int32_t state) {
        if (!states_[state].expanded) expand(state);
        return states_[state].row;
    }

    size_t size() const { return states_.size(); }

    // What was needed when it was more than `max_states` (states, or work for them); else 0.
    int64_t exceeded() const { return exceeded_; }

private:
    struct State {
        std::vector<int32_t> members;
        DfaRow row;
        bool accepting = false, expanded = false;
    };

    void expand(int32_t state) {
        std::vector<int32_t> touched;
        for (int32_t q : states_[state].members)
            for (auto [set, target] : edges_[q])
                for (int32_t symbol : sets_[set]) {
                    if (reached_[symbol].empty()) touched.push_back(symbol);
                    reached_[symbol].push_back(target);
                }
        count_work(touched.size());
        std::sort(touched.begin(), touched.end());
        DfaRow row;
        // Symbols mostly go together: close each distinct set once.
        std::unordered_map<std::string, int32_t> closed;
        for (int32_t symbol : touched) {
            auto &targets = reached_[symbol];
            std::sort(targets.begin(), targets.end());
            targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
            auto [at, fresh] = closed.emplace(key_of(targets), 0);
            if (fresh && !exceeded_) at->second = intern(targets);
            row.emplace_back(symbol, at->second);
            targets.clear();
        }
        if (exceeded_) return;
        states_[state].row = std::move(row);
        states_[state].expanded = true;
    }

    int32_t intern(std::vector<int32_t> work) {
        ++stamp_;
        std::vector<int32_t> key;
        int64_t size = 0;
        for (int32_t q : work) stamps_[q] = stamp_;
        while (!work.empty()) {
            int32_t q = work.back();
            work.pop_back();
            ++size;
            if (!edges_[q].empty() || q == accept_) key.push_back(q);
            for (int32_t target : epsilons_[q])
                if (stamps_[target] != stamp_) {
                    stamps_[target] = stamp_;
                    work.push_back(target);
                }
        }
        count_work(size);
        std::sort(key.begin(), key.end());
        auto [id, fresh] = ids_.number(key);
        if (fresh) {
            states_.emplace_back();
            states_.back().accepting = std::binary_search(key.begin(), key.end(), accept_);
            states_.back().members = std::move(key);
            check(states_.size());
        }
        return id;
    }

    void count_work(int64_t amount) {
        work_ += amount;
        check(work_ / kWorkPerState);
    }
    void check(int64_t given) {
        if (given > max_states_ && !exceeded_) exceeded_ = given;
    }

    int64_t max_states_, work_ = 0, exceeded_ = 0;
    int32_t accept_;
    std::vector<std::vector<int32_t>> sets_;
    std::vector<std::vector<std::pair<int32_t, int32_t>>> edges_;  // (set, target)
    std::vector<std::vector<int32_t>> epsilons_;
    std::vector<State> states_;
    Numbering ids_;
    // scratch
    std::vector<std::vector<int32_t>> reached_;  // targets by symbol
    std::vector<int64_t> stamps_;
    int64_t stamp_ = 0;
};

// An automaton, read over a finer alphabet.
class View {
public:
    // finer: by symbol of the automaton, the symbols that it is made of
    View(Subsets *automaton, std::vector<std::vector<int32_t>> finer)
        : automaton_(automaton), finer_(std::move(finer)) {}

    bool accepting(int32_t state) const { return automaton_->accepting(state); }
    int64_t exceeded() const { return automaton_->exceeded(); }

    const DfaRow &row(int32_t state) {
        auto [at, fresh] = rows_.try_emplace(state);
        if (fresh) {
            for (auto [symbol, target] : automaton_->row(state))
                for (int32_t part : finer_[symbol]) at->second.emplace_back(part, target);
            std::sort(at->second.begin(), at->second.end());
        }
        return at->second;
    }

private:
    Subsets *automaton_;
    std::vector<std::vector<int32_t>> finer_;
    std::unordered_map<int32_t, DfaRow> rows_;  // its elements stay where they are
};

// The states of several automata run side by side.
struct Product {
    std::vector<DfaRow> rows;
    std::vector<int32_t> kinds;               // by state: which of the automata accept, as an index below
    std::vector<std::vector<int32_t>> accepting;  // by kind: by automaton, 0 or 1
    int64_t exceeded = 0;                     // see Subsets
};

// A state where an automaton is dead that is `needed` is left out.
inline void explore(std::vector<View> &automata, const std::vector<char> &needed, int64_t max_states,
                    Product &out) {
    const size_t count = automata.size();
    Numbering ids, kinds;
    std::vector<std::vector<int32_t>> order{std::vector<int32_t>(count, 0)};
    ids.number(order[0]);
    int64_t transitions = 0;
    std::vector<const DfaRow *> below(count);
    std::vector<size_t> at(count);
    std::vector<int32_t> inside(count), target(count);
    static const DfaRow nothing;
    for (size_t state = 0; state < order.size(); ++state) {
        for (size_t i = 0; i < count; ++i) {
            int32_t q = order[state][i];
            inside[i] = q != kDead && automata[i].accepting(q);
            below[i] = q == kDead ? &nothing : &automata[i].row(q);
            at[i] = 0;
            if (automata[i].exceeded()) {
                out.exceeded = automata[i].exceeded();
                return;
            }
        }
        auto [kind, new_kind] = kinds.number(inside);
        if (new_kind) out.accepting.push_back(inside);
        out.kinds.push_back(kind);
        DfaRow row;
        for (;;) {
            int32_t symbol = INT32_MAX;
            for (size_t i = 0; i < count; ++i)
                if (at[i] < below[i]->size()) symbol = std::min(symbol, (*below[i])[at[i]].first);
            if (symbol == INT32_MAX) break;
            bool hopeless = false;
            for (size_t i = 0; i < count; ++i) {
                target[i] = kDead;
                if (at[i] < below[i]->size() && (*below[i])[at[i]].first == symbol)
                    target[i] = (*below[i])[at[i]++].second;
                hopeless = hopeless || (needed[i] && target[i] == kDead);
            }
            if (hopeless) continue;
            auto [id, fresh] = ids.number(target);
            if (fresh) order.push_back(target);
            row.emplace_back(symbol, id);
        }
        transitions += row.size();
        out.rows.push_back(std::move(row));
        int64_t given = std::max<int64_t>(order.size(), transitions / kWorkPerState);
        if (given > max_states) {
            out.exceeded = given;
            return;
        }
    }
}

// Keep the states that reach an accepting one, in their order; nothing when the start does not.
inline void trim(Rows &dfa) {
    const size_t n = dfa.rows.size();
    std::vector<std::vector<int32_t>> before(n);
    for (size_t state = 0; state < n; ++state)
        for (auto [symbol, target] : dfa.rows[state]) before[target].push_back(state);
    std::vector<int32_t> work, renumbered(n, kDead);
    for (size_t state = 0; state < n; ++state)
        if (dfa.accepting[state]) {
            renumbered[state] = 0;
            work.push_back(state);
        }
    while (!work.empty()) {
        int32_t state = work.back();
        work.pop_back();
        for (int32_t source : before[state])
            if (renumbered[source] == kDead) {
                renumbered[source] = 0;
                work.push_back(source);
            }
    }
    int32_t kept = 0;
    for (int32_t &number : renumbered)
        if (number != kDead) number = kept++;
    Rows out;
    for (size_t state = 0; state < n && renumbered[0] != kDead; ++state) {
        if (renumbered[state] == kDead) continue;
        DfaRow row;
        for (auto [symbol, target] : dfa.rows[state])
            if (renumbered[target] != kDead) row.emplace_back(symbol, renumbered[target]);
        out.rows.push_back(std::move(row));
        out.accepting.push_back(dfa.accepting[state]);
    }
    dfa = std::move(out);
}

// The minimal automaton of a trimmed one, by partition refinement (Hopcroft 1971).
//
// Missing transitions need no dead state: a trimmed state is never equivalent to it, and splitting on
// every block's predecessors tells present transitions from missing ones.
inline void minimise(Rows &dfa) {
    const int32_t n = static_cast<int32_t>(dfa.rows.size());
    if (n < 2) return;
    std::vector<std::vector<std::pair<int32_t, int32_t>>> before(n);  // (symbol, source)
    for (int32_t state = 0; state < n; ++state)
        for (auto [symbol, target] : dfa.rows[state]) before[target].emplace_back(symbol, state);
    // First blocks: accepting or not, and over which symbols there is a transition.
    std::vector<std::vector<int32_t>> blocks;
    std::vector<int32_t> block_of(n), place(n);
    {
        Numbering kinds;
        std::vector<int32_t> kind;
        for (int32_t state = 0; state < n; ++state) {
            kind.assign(1, dfa.accepting[state]);
            for (auto [symbol, target] : dfa.rows[state]) kind.push_back(symbol);
            int32_t block = kinds.number(kind).first;
            if (block == static_cast<int32_t>(blocks.size())) blocks.emplace_back();
            block_of[state] = block;
            place[state] = blocks[block].size();
            blocks[block].push_back(state);
        }
    }
    std::vector<int32_t> waiting;
    std::vector<char> waits(blocks.size(), 1);
    for (size_t block = 0; block < blocks.size(); ++block) waiting.push_back(block);
    std::vector<std::pair<int32_t, int32_t>> entering;
    std::vector<int32_t> marked(blocks.size(), 0), touched;
    while (!waiting.empty()) {
        int32_t splitter = waiting.back();
        waiting.pop_back();
        waits[splitter] = 0;
        entering.clear();
        for (int32_t target : blocks[splitter])
            entering.insert(entering.end(), before[target].begin(), before[target].end());
        std::sort(entering.begin(), entering.end());
        for (size_t first = 0; first < entering.size();) {
            size_t last = first;
            touched.clear();
            // Move the states that enter over this symbol to the front of their blocks.
            for (; last < entering.size() && entering[last].first == entering[first].first; ++last) {
                int32_t state = entering[last].second, block = block_of[state];
                if (marked[block] == 0) touched.push_back(block);
                int32_t other = blocks[block][marked[block]];
                std::swap(blocks[block][place[state]], blocks[block][marked[block]]);
                std::swap(place[state], place[other]);
                ++marked[block];
            }
            for (int32_t block : touched) {
                int32_t part = marked[block];
                marked[block] = 0;
                if (part == static_cast<int32_t>(blocks[block].size())) continue;
                int32_t made = static_cast<int32_t>(blocks.size());
                blocks.emplace_back(blocks[block].begin(), blocks[block].begin() + part);
                blocks[block].erase(blocks[block].begin(), blocks[block].begin() + part);
                for (size_t i = 0; i < blocks[made].size(); ++i) {
                    block_of[blocks[made][i]] = made;
                    place[blocks[made][i]] = i;
                }
                for (size_t i = 0; i < blocks[block].size(); ++i) place[blocks[block][i]] = i;
                marked.push_back(0);
                waits.push_back(0);
                int32_t next = made;
                if (!waits[block] && blocks[block].size() < blocks[made].size()) next = block;
                if (!waits[next]) {
                    waits[next] = 1;
                    waiting.push_back(next);
                }
            }
            first = last;
        }
    }
    if (static_cast<int32_t>(blocks.size()) == n) return;
    // Blocks are numbered by their first state, so that the start stays 0.
    std::vector<int32_t> number(blocks.size(), kDead);
    int32_t count = 0;
    for (int32_t state = 0; state < n; ++state)
        if (number[block_of[state]] == kDead) number[block_of[state]] = count++;
    Rows out;
    out.rows.resize(count);
    out.accepting.resize(count);
    std::vector<char> done(count, 0);
    for (int32_t state = 0; state < n; ++state) {
        int32_t index = number[block_of[state]];
        if (done[index]) continue;
        done[index] = 1;
        for (auto [symbol, target] : dfa.rows[state])
            out.rows[index].emplace_back(symbol, number[block_of[target]]);
        out.accepting[index] = dfa.accepting[state];
    }
    dfa = std::move(out);
}

}  // namespace maskwright
