// Deterministic automata: subset construction and products.
//
// Symbols are the minterms of an alphabet, numbers from 0.  States are numbers from 0, which is the start.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace maskwright {

constexpr int32_t kDead = -1;
// Elements of state sets, or transitions, that may be computed for each state allowed.
constexpr int64_t kWorkPerState = 4;

struct Move {
    int32_t symbol, target;
};

// A deterministic automaton: by state, its moves in any order, one for a symbol at most.
struct Graph {
    Csr<Move> rows;
    std::vector<char> accepting;
};

// Numbers of keys, which are texts of numbers, in the order in which they were seen first.
class Numbering {
public:
    size_t size() const { return ends_.size(); }
    size_t bytes() const {
        return items_.size() * sizeof(int32_t) + ends_.size() * (sizeof(size_t) + sizeof(uint64_t)) + slots_.size() * sizeof(int32_t);
    }

    // Valid until a key is added.
    Span<const int32_t> key(int32_t id) const {
        return {items_.data() + (id == 0 ? 0 : ends_[id - 1]), items_.data() + ends_[id]};
    }

    // The number of a key, and whether it is new.
    std::pair<int32_t, bool> number(const int32_t *first, size_t size) {
        if (2 * ends_.size() >= slots_.size()) grow();
        const uint64_t hash = hash_of(first, size);
        size_t at = hash & (slots_.size() - 1);
        for (; slots_[at] >= 0; at = (at + 1) & (slots_.size() - 1)) {
            if (hashes_[slots_[at]] != hash) continue;
            Span<const int32_t> known = key(slots_[at]);
            if (known.size() == size && std::equal(first, first + size, known.begin())) return {slots_[at], false};
        }
        slots_[at] = static_cast<int32_t>(ends_.size());
        hashes_.push_back(hash);
        items_.insert(items_.end(), first, first + size);
        ends_.push_back(items_.size());
        return {slots_[at], true};
    }
    std::pair<int32_t, bool> number(const std::vector<int32_t> &key) { return number(key.data(), key.size()); }

private:
    static uint64_t hash_of(const int32_t *first, size_t size) {
        uint64_t hash = size;
        for (size_t i = 0; i < size; ++i) {
            hash = (hash ^ static_cast<uint32_t>(first[i])) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 32;
        }
        return hash;
    }
    void grow() {
        slots_.assign(std::max<size_t>(16, 2 * slots_.size()), -1);
        for (size_t id = 0; id < hashes_.size(); ++id) {
            size_t at = hashes_[id] & (slots_.size() - 1);
            while (slots_[at] >= 0) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = static_cast<int32_t>(id);
        }
    }

    std::vector<int32_t> items_;
    std::vector<size_t> ends_;
    std::vector<uint64_t> hashes_;
    std::vector<int32_t> slots_;  // by hash; a power of two of them, at most half of them used
};

// The deterministic automaton of an NFA with one accepting state, by lazy subset construction.
class Subsets {
public:
    Subsets(size_t symbols, int32_t states, int32_t accept, int64_t max_states)
        : max_states_(max_states), accept_(accept), group_of_(symbols, 0), stamps_(states, 0), single_(states, kDead) {}

    void add_set(const std::vector<int32_t> &symbols) { sets_.push_back(symbols); }
    void add_edge(int32_t source, int32_t set, int32_t target) { new_edges_.push_back({source, {set, target}}); }
    void add_epsilon(int32_t source, int32_t target) { new_epsilons_.emplace_back(source, target); }
    // Once, when all edges are there.
    void start(int32_t state) {
        edges_ = by_owner(stamps_.size(), new_edges_);
        epsilons_ = by_owner(stamps_.size(), new_epsilons_);
        new_edges_ = {};
        new_epsilons_ = {};
        find_absorbing();
        targets_.assign(1, state);
        intern();
    }

    // The state from which every text is accepted, once it is known; else kDead.
    int32_t every_text() const { return every_text_; }

    bool accepting(int32_t state) const { return states_[state].accepting; }

    // Compute what follows a state; not done when a limit is passed.
    void expand(int32_t state) {
        if (states_[state].first == kUnknown) follow(state);
    }
    // How many states of the NFA one stands for.
    size_t members(int32_t state) const { return ids_.key(state).size(); }
    // What follows an expanded state, in any order; valid until another one is expanded.
    Span<const Move> row(int32_t state) const {
        const State &at = states_[state];
        return {moves_.data() + at.first, moves_.data() + at.last};
    }

    size_t size() const { return states_.size(); }
    // About what it takes: the NFA, and what was determinised of it.
    size_t bytes() const {
        return stamps_.size() * (sizeof(int64_t) + sizeof(int32_t) + 2 * sizeof(size_t) + 1) + edges_.items() * sizeof(Edge) +
               epsilons_.items() * sizeof(int32_t) + ids_.bytes() + states_.size() * sizeof(State) + moves_.size() * sizeof(Move);
    }

    // What was needed when it was more than `max_states` (states, or work for them); else 0.
    int64_t exceeded() const { return exceeded_; }

private:
    static constexpr size_t kUnknown = SIZE_MAX;

    struct Edge {
        int32_t set, target;
    };
    struct State {
        size_t first = kUnknown, last = kUnknown;  // of `moves_`
        bool accepting = false;
    };
    // Symbols over which the same edges were found: those of `before`, and one to `target`.
    struct Group {
        int32_t before, target;
        int32_t seen_by = -1, with = 0;  // the last edge that was found over some of them, and their group since
        int32_t state = kDead;           // where they lead
    };

    // States of the NFA that accept and that every symbol leads back to: beside one of them, others count for nothing.
    void find_absorbing() {
        absorbing_.assign(stamps_.size(), 0);
        for (size_t q = 0; q < absorbing_.size(); ++q)
            for (auto [set, target] : edges_[q]) {
                if (target != static_cast<int32_t>(q) || sets_[set].size() != group_of_.size()) continue;
                for (int32_t end : epsilons_[q]) absorbing_[q] |= end == accept_;
                if (absorbing_[q] && any_ == kDead) any_ = target;
            }
    }

    void follow(int32_t state) {
        groups_.assign(1, Group{0, kDead});
        touched_.clear();
        int32_t edge = 0;
        for (int32_t q : ids_.key(state))
            for (auto [set, target] : edges_[q]) {
                for (int32_t symbol : sets_[set]) {
                    int32_t group = group_of_[symbol];
                    if (group == 0) touched_.push_back(symbol);
                    if (groups_[group].seen_by != edge) {
                        groups_[group].seen_by = edge;
                        groups_[group].with = static_cast<int32_t>(groups_.size());
                        groups_.push_back(Group{group, target});
                    }
                    group_of_[symbol] = groups_[group].with;
                }
                ++edge;
            }
        count_work(touched_.size());
        const size_t first = moves_.size();
        for (int32_t symbol : touched_) {
            Group &group = groups_[group_of_[symbol]];
            group_of_[symbol] = 0;
            if (exceeded_) continue;
            if (group.state == kDead) {
                targets_.clear();
                for (const Group *at = &group; at != groups_.data(); at = &groups_[at->before])
                    targets_.push_back(at->target);
                group.state = intern();
            }
            moves_.push_back({symbol, group.state});
        }
        if (exceeded_) return;
        states_[state].first = first;
        states_[state].last = moves_.size();
    }

    // The state of `targets_` and what is reached from them without reading.
    int32_t intern() {
        const int32_t only = targets_.size() == 1 ? targets_[0] : kDead;
        if (only != kDead && single_[only] != kDead) return single_[only];
        ++stamp_;
        key_.clear();
        int64_t size = 0;
        for (int32_t q : targets_) stamps_[q] = stamp_;
        size_t distinct = 0;
        for (int32_t q : targets_)
            if (stamps_[q] == stamp_) {
                stamps_[q] = -stamp_;
                targets_[distinct++] = q;
            }
        targets_.resize(distinct);
        while (!targets_.empty()) {
            int32_t q = targets_.back();
            targets_.pop_back();
            ++size;
            if (!edges_[q].empty() || q == accept_) key_.push_back(q);
            for (int32_t target : epsilons_[q])
                if (stamps_[target] != -stamp_) {
                    stamps_[target] = -stamp_;
                    targets_.push_back(target);
                }
        }
        count_work(size);
        std::sort(key_.begin(), key_.end());
        bool accepting = std::binary_search(key_.begin(), key_.end(), accept_), any = false;
        for (int32_t q : key_) any = any || absorbing_[q];
        if (any) key_.assign(1, any_);
        auto [id, fresh] = ids_.number(key_);
        if (fresh) {
            states_.emplace_back();
            states_.back().accepting = accepting;
            if (any) every_text_ = id;
            check(states_.size());
        }
        if (only != kDead) single_[only] = id;
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
    int32_t any_ = kDead;         // one of the absorbing states of the NFA
    int32_t every_text_ = kDead;  // the state of it
    std::vector<char> absorbing_;
    std::vector<std::vector<int32_t>> sets_;
    std::vector<std::pair<int32_t, Edge>> new_edges_;  // by source, before the start
    std::vector<std::pair<int32_t, int32_t>> new_epsilons_;
    Csr<Edge> edges_;
    Csr<int32_t> epsilons_;
    Numbering ids_;  // of the states, by their members
    std::vector<State> states_;
    std::vector<Move> moves_;
    // scratch
    std::vector<int32_t> targets_, key_, touched_;
    std::vector<Group> groups_;
    std::vector<int32_t> group_of_;  // by symbol
    std::vector<int64_t> stamps_;
    std::vector<int32_t> single_;  // by state of the NFA, the state of it alone, when it is known
    int64_t stamp_ = 0;
};

// An automaton, read over a finer alphabet.
class View {
public:
    View() = default;
    // coarser: by symbol, the one of the automaton's `symbols` that it is a part of
    View(Subsets *automaton, std::vector<int32_t> coarser, size_t symbols)
        : automaton_(automaton), coarser_(std::move(coarser)), targets_(symbols), stamps_(symbols, 0) {
        std::vector<std::pair<int32_t, int32_t>> parts;
        for (size_t part = 0; part < coarser_.size(); ++part)
            parts.emplace_back(coarser_[part], static_cast<int32_t>(part));
        finer_ = by_owner(symbols, parts);
    }

    int64_t exceeded() const { return automaton_->exceeded(); }
    int32_t every_text() const { return automaton_->every_text(); }
    size_t symbols() const { return coarser_.size(); }
    Span<const int32_t> parts(int32_t symbol) const { return finer_[symbol]; }

    // The state that is looked at.
    void expand(int32_t state) {
        if (state != kDead) automaton_->expand(state);
    }
    bool accepting(int32_t state) const { return state != kDead && automaton_->accepting(state); }
    Span<const Move> row(int32_t state) const {
        return state == kDead ? Span<const Move>() : automaton_->row(state);
    }
    void stand(int32_t state) {
        if (state == standing_) return;
        standing_ = state;
        ++stamp_;
        for (Move move : row(state)) {
            targets_[move.symbol] = move.target;
            stamps_[move.symbol] = stamp_;
        }
    }
    // Where a symbol of the finer alphabet leads from there.
    int32_t target(int32_t part) const {
        const int32_t symbol = coarser_[part];
        return stamps_[symbol] == stamp_ ? targets_[symbol] : kDead;
    }

private:
    Subsets *automaton_ = nullptr;
    Csr<int32_t> finer_;
    std::vector<int32_t> coarser_;
    std::vector<int32_t> targets_;
    std::vector<int64_t> stamps_;
    int64_t stamp_ = 1;
    int32_t standing_ = kDead;
};

// The states of several automata run side by side.
struct Product {
    Csr<Move> rows;
    std::vector<char> accepted;  // by state: whether the automata do what is wanted of them
    std::vector<int32_t> kinds;  // by state: which of the automata accept, as an index below
    Numbering accepting;         // by kind: by automaton, 0 or 1
    int64_t exceeded = 0;        // see Subsets
};

// What is asked of an automaton: that it accepts, that it does not, or nothing.
enum Wanted : char { kRefuses = 0, kAccepts = 1, kEither = 2 };

class Explorer {
public:
    // States are left out behind which there is nothing that is wanted, as far as one automaton tells.
    // seconds: that it may take; 0: no limit
    Explorer(std::vector<View> &automata, const std::vector<char> &wanted, int64_t max_states, double seconds)
        : automata_(automata), wanted_(wanted), max_states_(max_states), until_(seconds > 0 ? now() + seconds : std::numeric_limits<double>::infinity()), here_(automata.size(), 0),
          inside_(here_), target_(here_), last_(automata.size(), kDead) {
        ids_.number(here_);
    }

    void all(Product &out) {
        for (size_t state = 0; state < ids_.size() && stand(state); ++state) {
            out.kinds.push_back(out.accepting.number(inside_).first);
            out.accepted.push_back(is_wanted());
            follow();
            out.rows.push_back(row_);
        }
        out.exceeded = exceeded_;
    }

    // The length of a shortest text of those that are wanted; kDead: there is none.
    int64_t shortest() {
        int64_t length = 0;
        size_t level_end = 1;
        for (size_t state = 0; state < ids_.size(); ++state) {
            if (state == level_end) {
                level_end = ids_.size();
                ++length;
            }
            if (!stand(state)) break;
            if (is_wanted()) return length;
            follow();
        }
        return kDead;
    }

    // See Subsets.
    int64_t exceeded() const { return exceeded_; }

    // Whether there was not enough time.
    bool late() const { return late_; }

private:
    // Seconds.  Python's clock may be another one, which stands still while a machine sleeps.
    static double now() {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }

    // Look at a state; false: a limit is passed.
    bool stand(size_t state) {
        if (exceeded_) return false;
        late_ = now() > until_;
        if (late_) return false;
        here_.assign(ids_.key(state).begin(), ids_.key(state).end());
        for (size_t i = 0; i < here_.size(); ++i) {
            automata_[i].expand(here_[i]);
            exceeded_ = automata_[i].exceeded();
            if (exceeded_) return false;
        }
        for (size_t i = 0; i < here_.size(); ++i) {
            automata_[i].stand(here_[i]);
            inside_[i] = automata_[i].accepting(here_[i]);
        }
        return true;
    }

    bool is_wanted() const {
        for (size_t i = 0; i < inside_.size(); ++i)
            if (wanted_[i] != kEither && wanted_[i] != inside_[i]) return false;
        return true;
    }

    // What is behind the state that is looked at.
    void follow() {
        row_.clear();
        last_.assign(last_.size(), kDead);
        // Only symbols over which the automaton with the fewest moves lives on can lead anywhere.
        const View *lead = nullptr;
        Span<const Move> moves;
        for (size_t i = 0; i < here_.size(); ++i)
            if (wanted_[i] == kAccepts && (!lead || automata_[i].row(here_[i]).size() < moves.size())) {
                lead = &automata_[i];
                moves = lead->row(here_[i]);
            }
        if (!lead) {
            for (size_t symbol = 0; symbol < automata_[0].symbols(); ++symbol) step(static_cast<int32_t>(symbol));
        } else {
            for (Move move : moves)
                for (int32_t part : lead->parts(move.symbol)) step(part);
        }
        transitions_ += row_.size();
        const int64_t given = std::max<int64_t>(ids_.size(), transitions_ / kWorkPerState);
        if (given > max_states_) exceeded_ = given;
    }

    void step(int32_t symbol) {
        bool alive = false, same = true;
        for (size_t i = 0; i < here_.size(); ++i) {
            const int32_t target = automata_[i].target(symbol);
            if (target != kDead) {
                alive = true;
                if (wanted_[i] == kRefuses && target == automata_[i].every_text()) return;
            } else if (wanted_[i] == kAccepts) {
                return;
            }
            same = same && target == last_[i];
            target_[i] = target;
        }
        if (!alive) return;
        // Neighbours mostly lead to the same state.
        if (!same) {
            last_ = target_;
            last_id_ = ids_.number(target_).first;
        }
        row_.push_back({symbol, last_id_});
    }

    std::vector<View> &automata_;
    const std::vector<char> &wanted_;
    const int64_t max_states_;
    const double until_;
    bool late_ = false;
    int64_t transitions_ = 0, exceeded_ = 0;
    Numbering ids_;
    std::vector<int32_t> here_, inside_, target_, last_;
    int32_t last_id_ = kDead;
    std::vector<Move> row_;
};

}  // namespace maskwright
