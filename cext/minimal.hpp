// Minimal deterministic automata, with the symbols between two states together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "alphabet.hpp"
#include "subsets.hpp"

namespace maskwright {

using Step = std::pair<int32_t, int32_t>;  // from, to

// By state, whether some of the `work` lead to it.
inline std::vector<char> reached(size_t states, const std::vector<Step> &steps, std::vector<int32_t> work) {
    const Csr<int32_t> after = by_owner(states, steps);
    std::vector<char> out(states, 0);
    for (int32_t state : work) out[state] = 1;
    while (!work.empty()) {
        int32_t state = work.back();
        work.pop_back();
        for (int32_t target : after[state]) {
            if (out[target]) continue;
            out[target] = 1;
            work.push_back(target);
        }
    }
    return out;
}

// By state, whether it is a start or on a path from one to an accepting state.
inline std::vector<char> between(size_t states, const std::vector<Step> &steps, const std::vector<int32_t> &starts,
                                 const std::vector<int32_t> &accepts) {
    const std::vector<char> forward = reached(states, steps, starts);
    std::vector<Step> back;
    for (Step step : steps)
        if (forward[step.first]) back.emplace_back(step.second, step.first);
    std::vector<int32_t> ends;
    for (int32_t state : accepts)
        if (forward[state]) ends.push_back(state);
    std::vector<char> useful = reached(states, back, std::move(ends));
    for (int32_t state : starts) useful[state] = 1;
    return useful;
}

// Keep the states that the start reaches and that reach an accepting one, in their order; nothing for no text.
inline void trim(Graph &dfa) {
    const size_t n = dfa.rows.size();
    if (n == 0) return;
    std::vector<Step> steps;
    std::vector<int32_t> accepts, from(n, kDead);
    for (size_t state = 0; state < n; ++state) {
        const int32_t source = static_cast<int32_t>(state);
        if (dfa.accepting[state]) accepts.push_back(source);
        for (Move move : dfa.rows[state]) {
            if (from[move.target] != source) steps.emplace_back(source, move.target);
            from[move.target] = source;
        }
    }
    const std::vector<char> useful = between(n, steps, {0}, accepts);
    if (n > 1 && std::count(useful.begin(), useful.end(), 1) == static_cast<int64_t>(n)) return;
    // The start may be the only state that is kept for its own sake.
    bool any = dfa.accepting[0];
    for (size_t state = 1; state < n; ++state) any = any || useful[state];
    Graph out;
    if (any) {
        std::vector<int32_t> renumbered(n, kDead);
        int32_t count = 0;
        for (size_t state = 0; state < n; ++state)
            if (useful[state]) renumbered[state] = count++;
        std::vector<Move> row;
        for (size_t state = 0; state < n; ++state) {
            if (!useful[state]) continue;
            row.clear();
            for (Move move : dfa.rows[state])
                if (useful[move.target]) row.push_back({move.symbol, renumbered[move.target]});
            out.rows.push_back(row);
            out.accepting.push_back(dfa.accepting[state]);
        }
    }
    dfa = std::move(out);
}

// Numbers from 0, divided into blocks that are split by marking some of their members.
class Blocks {
public:
    // kinds: by member, the block that it is in at first
    explicit Blocks(std::vector<int32_t> kinds)
        : members_(kinds.size()), place_(kinds.size()), block_(std::move(kinds)) {
        for (int32_t kind : block_) {
            if (kind >= size()) last_.resize(kind + 1, 0), first_.resize(kind + 1, 0);
            ++last_[kind];
        }
        marked_.assign(first_.size(), 0);
        int32_t at = 0;
        for (size_t block = 0; block < first_.size(); ++block) {
            first_[block] = at;
            at += last_[block];
            last_[block] = first_[block];
        }
        for (size_t member = 0; member < block_.size(); ++member) {
            place_[member] = last_[block_[member]]++;
            members_[place_[member]] = static_cast<int32_t>(member);
        }
    }

    int32_t size() const { return static_cast<int32_t>(first_.size()); }
    int32_t block(int32_t member) const { return block_[member]; }
    Span<const int32_t> members(int32_t block) const {
        return {members_.data() + first_[block], members_.data() + last_[block]};
    }

    // Each member once between two splits.
    void mark(int32_t member) {
        const int32_t block = block_[member], from = place_[member], to = first_[block] + marked_[block];
        members_[from] = members_[to];
        place_[members_[from]] = from;
        members_[to] = member;
        place_[member] = to;
        if (marked_[block]++ == 0) touched_.push_back(block);
    }

    // The smaller part of each block of which some are marked becomes a new block; appends which block it was taken from.
    void split(std::vector<int32_t> &from) {
        for (int32_t block : touched_) {
            const int32_t middle = first_[block] + marked_[block];
            marked_[block] = 0;
            if (middle == last_[block]) continue;
            const int32_t made = size();
            if (middle - first_[block] <= last_[block] - middle) {
                first_.push_back(first_[block]);
                last_.push_back(middle);
                first_[block] = middle;
            } else {
                first_.push_back(middle);
                last_.push_back(last_[block]);
                last_[block] = middle;
            }
            marked_.push_back(0);
            for (int32_t i = first_[made]; i < last_[made]; ++i) block_[members_[i]] = made;
            from.push_back(block);
        }
        touched_.clear();
    }

private:
    std::vector<int32_t> members_, place_, block_, first_, last_, marked_, touched_;
};

// The coarsest partition of the states of a trimmed automaton that its moves respect (Hopcroft, 1971).
//
// Of the parts of a block, the one that more moves enter is never looked at, nor is the block that most enter at first:
// so the moves to a state where most texts end cost nothing.  Missing moves need no dead state, since states that differ
// in the symbols that they have are told apart at once.
class Refinement {
public:
    explicit Refinement(const Graph &dfa) : states_(kinds_of(dfa)) {
        const size_t n = dfa.rows.size();
        entering_ = grouped<Entry>(n, [&](const auto &take) {
            for (size_t source = 0; source < n; ++source)
                for (Move move : dfa.rows[source]) take(move.target, Entry{move.symbol, static_cast<int32_t>(source)});
        });
        int32_t symbols = 0;
        for (size_t state = 0; state < n; ++state)
            for (Entry entry : entering_[state]) symbols = std::max(symbols, entry.symbol + 1);
        first_over_.assign(symbols, kDead);
        int32_t heaviest = 0;
        for (int32_t block = 0; block < states_.size(); ++block) {
            weights_.push_back(weight(block));
            waiting_.push_back(true);
            if (weights_[block] > weights_[heaviest]) heaviest = block;
        }
        waiting_[heaviest] = false;
        for (int32_t block = 0; block < states_.size(); ++block)
            if (waiting_[block]) work_.push_back(block);
        while (!work_.empty() && states_.size() < static_cast<int32_t>(n)) {
            const int32_t block = work_.back();
            work_.pop_back();
            waiting_[block] = false;
            split_by(block);
        }
    }

    const Blocks &states() const { return states_; }

private:
    struct Entry {
        int32_t symbol, source;
    };
    struct Link {
        int32_t source, next;
    };

    // By state, states that agree on acceptance and the symbols of their moves, which are in order.
    static std::vector<int32_t> kinds_of(const Graph &dfa) {
        Numbering kinds;
        std::vector<int32_t> out, key;
        for (size_t state = 0; state < dfa.rows.size(); ++state) {
            key.assign(1, dfa.accepting[state]);
            for (Move move : dfa.rows[state]) key.push_back(move.symbol);
            out.push_back(kinds.number(key).first);
        }
        return out;
    }

    // How many moves enter a block.
    int64_t weight(int32_t block) const {
        int64_t sum = 0;
        for (int32_t state : states_.members(block)) sum += entering_[state].size();
        return sum;
    }

    // Tell states apart by the symbols over which they enter a block.
    void split_by(int32_t block) {
        links_.clear();
        symbols_.clear();
        for (int32_t state : states_.members(block))
            for (Entry entry : entering_[state]) {
                int32_t &first = first_over_[entry.symbol];
                if (first == kDead) symbols_.push_back(entry.symbol);
                links_.push_back({entry.source, first});
                first = static_cast<int32_t>(links_.size()) - 1;
            }
        for (int32_t symbol : symbols_) {
            for (int32_t at = first_over_[symbol]; at != kDead; at = links_[at].next) states_.mark(links_[at].source);
            first_over_[symbol] = kDead;
            from_.clear();
            states_.split(from_);
            for (int32_t old : from_) add(static_cast<int32_t>(weights_.size()), old);
        }
    }

    // A new block, which was a part of an old one.
    void add(int32_t made, int32_t old) {
        weights_.push_back(weight(made));
        weights_[old] -= weights_[made];
        waiting_.push_back(false);
        const int32_t chosen = (waiting_[old] || weights_[made] <= weights_[old]) ? made : old;
        waiting_[chosen] = true;
        work_.push_back(chosen);
    }

    Blocks states_;
    Csr<Entry> entering_;          // by target
    std::vector<int64_t> weights_;  // by block
    std::vector<char> waiting_;     // by block: whether it is among the next
    std::vector<int32_t> work_;
    std::vector<int32_t> first_over_;  // by symbol, in `links_`
    std::vector<Link> links_;
    std::vector<int32_t> symbols_, from_;
};

// The minimal automaton of a trimmed one, the moves of which are in order.
inline void minimise(Graph &dfa) {
    const int32_t n = static_cast<int32_t>(dfa.rows.size());
    if (n < 2) return;
    const Refinement refinement(dfa);
    const Blocks &states = refinement.states();
    if (states.size() == n) return;
    // Blocks are numbered by their first state, so that the start stays 0.
    std::vector<int32_t> number(states.size(), kDead), kept;
    for (int32_t state = 0; state < n; ++state) {
        int32_t &index = number[states.block(state)];
        if (index != kDead) continue;
        index = static_cast<int32_t>(kept.size());
        kept.push_back(state);
    }
    Graph out;
    std::vector<Move> row;
    for (int32_t state : kept) {
        row.clear();
        for (Move move : dfa.rows[state]) row.push_back({move.symbol, number[states.block(move.target)]});
        out.rows.push_back(row);
        out.accepting.push_back(dfa.accepting[state]);
    }
    dfa = std::move(out);
}

// An automaton with one edge for each pair of states.
//
// Equal languages have equal tables: states are numbered as they are met, symbols in order, and no two symbols
// are in the same labels.
struct Table {
    struct Edge {
        int32_t label, target;
    };
    Partition alphabet;
    Csr<Edge> edges;  // by source
    std::vector<char> accepting;
    Numbering labels;  // sets of symbols, in order

    // How many ranges of code points its labels have, those of neighbouring symbols apart; symbols: its alphabet.
    size_t ranges(const Partition &symbols) const {
        std::vector<size_t> of_symbol(symbols.size(), 0);
        for (const Partition::Part &part : symbols.parts()) ++of_symbol[part.symbol];
        size_t total = 0;
        for (size_t label = 0; label < labels.size(); ++label)
            for (int32_t symbol : labels.key(static_cast<int32_t>(label))) total += of_symbol[symbol];
        return total;
    }

    // By state, the least number of edges to an accepting one, which every state leads to.
    std::vector<int32_t> distances() const {
        std::vector<Step> back;
        std::vector<int32_t> found(edges.size(), kDead), queue;
        for (size_t state = 0; state < edges.size(); ++state) {
            for (Edge edge : edges[state]) back.emplace_back(edge.target, static_cast<int32_t>(state));
            if (!accepting[state]) continue;
            found[state] = 0;
            queue.push_back(static_cast<int32_t>(state));
        }
        const Csr<int32_t> before = by_owner(edges.size(), back);
        for (size_t i = 0; i < queue.size(); ++i) {
            const int32_t state = queue[i];
            for (int32_t source : before[state]) {
                if (found[source] != kDead) continue;
                found[source] = found[state] + 1;
                queue.push_back(source);
            }
        }
        return found;
    }

    // The length of a shortest text; kDead: there is none.
    int64_t least() const {
        std::vector<char> seen(edges.size(), 0);
        std::vector<int32_t> level{0}, below;
        if (!seen.empty()) seen[0] = 1;
        for (int64_t length = 0; !seen.empty() && !level.empty(); ++length) {
            below.clear();
            for (int32_t state : level) {
                if (accepting[state]) return length;
                for (Edge edge : edges[state]) {
                    if (seen[edge.target]) continue;
                    seen[edge.target] = 1;
                    below.push_back(edge.target);
                }
            }
            level.swap(below);
        }
        return kDead;
    }
};

// Together, the symbols that no label tells apart.
inline void merge_symbols(Table &table, const Partition &alphabet) {
    std::vector<std::pair<int32_t, int32_t>> labelled;
    const int32_t labels = static_cast<int32_t>(table.labels.size());
    for (int32_t label = 0; label < labels; ++label)
        for (int32_t symbol : table.labels.key(label)) labelled.emplace_back(symbol, label);
    const Csr<int32_t> inside = by_owner(alphabet.size(), labelled);
    Numbering classes;
    std::vector<int32_t> merged(alphabet.size());
    for (size_t symbol = 0; symbol < merged.size(); ++symbol)
        merged[symbol] = classes.number(inside[symbol].begin(), inside[symbol].size()).first;
    table.alphabet = Partition(alphabet, merged);
    if (classes.size() == merged.size()) return;
    Numbering coarser;
    std::vector<int32_t> key;
    for (int32_t label = 0; label < labels; ++label) {
        key.clear();
        for (int32_t symbol : table.labels.key(label))
            if (key.empty() || merged[symbol] > key.back()) key.push_back(merged[symbol]);
        coarser.number(key);
    }
    table.labels = std::move(coarser);
}

// The minimal automaton of a deterministic one, which is taken apart; no states for no text.
inline Table table_of(Graph &dfa, const Partition &alphabet) {
    const auto earlier = [](Move a, Move b) { return a.symbol < b.symbol; };
    for (size_t state = 0; state < dfa.rows.size(); ++state) {
        const Span<Move> row = dfa.rows[state];
        if (!std::is_sorted(row.begin(), row.end(), earlier)) std::sort(row.begin(), row.end(), earlier);
    }
    trim(dfa);
    minimise(dfa);
    Table out;
    const size_t n = dfa.rows.size();
    std::vector<int32_t> number(n, kDead), order, place(n, kDead), targets;
    std::vector<std::vector<int32_t>> symbols;  // by place
    std::vector<Table::Edge> edges;
    if (n > 0) {
        number[0] = 0;
        order.push_back(0);
    }
    for (size_t source = 0; source < order.size(); ++source) {
        targets.clear();
        for (Move move : dfa.rows[order[source]]) {
            int32_t &at = place[move.target];
            if (at == kDead) {
                at = static_cast<int32_t>(targets.size());
                targets.push_back(move.target);
                if (symbols.size() < targets.size()) symbols.emplace_back();
                symbols[at].clear();
            }
            symbols[at].push_back(move.symbol);
        }
        edges.clear();
        for (size_t i = 0; i < targets.size(); ++i) {
            place[targets[i]] = kDead;
            int32_t &target = number[targets[i]];
            if (target == kDead) {
                target = static_cast<int32_t>(order.size());
                order.push_back(targets[i]);
            }
            edges.push_back({out.labels.number(symbols[i]).first, target});
        }
        out.edges.push_back(edges);
        out.accepting.push_back(dfa.accepting[order[source]]);
    }
    merge_symbols(out, alphabet);
    return out;
}

}  // namespace maskwright
