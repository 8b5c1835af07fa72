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
    const Rows<int32_t> after = by_owner(states, steps);
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
    std::vector<int32_t> accepts;
    for (size_t state = 0; state < n; ++state) {
        const int32_t source = static_cast<int32_t>(state);
        if (dfa.accepting[state]) accepts.push_back(source);
        int32_t last = kDead;
        for (Move move : dfa.rows[state]) {
            if (move.target != last) steps.emplace_back(source, move.target);
            last = move.target;
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

// Numbers from 0, divided into blocks that are split by marking some of their members (Valmari, 2012).
class Blocks {
public:
    Blocks(std::vector<int32_t> members, std::vector<int32_t> firsts)
        : members_(std::move(members)), place_(members_.size()), block_(members_.size()), first_(std::move(firsts)) {
        const int32_t n = static_cast<int32_t>(members_.size());
        for (size_t block = 0; block < first_.size(); ++block) {
            last_.push_back(block + 1 < first_.size() ? first_[block + 1] : n);
            for (int32_t i = first_[block]; i < last_[block]; ++i) {
                place_[members_[i]] = i;
                block_[members_[i]] = static_cast<int32_t>(block);
            }
        }
        marked_.assign(first_.size(), 0);
    }

    int32_t size() const { return static_cast<int32_t>(first_.size()); }
    int32_t block(int32_t member) const { return block_[member]; }
    Strip<const int32_t> members(int32_t block) const {
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

    // The smaller part of each block of which some are marked becomes a new block.
    void split() {
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
        }
        touched_.clear();
    }

private:
    std::vector<int32_t> members_, place_, block_, first_, last_, marked_, touched_;
};

// The minimal automaton of a trimmed one, by partition refinement of states and of moves (Valmari, 2012).
//
// Missing transitions need no dead state: a trimmed state is never equivalent to it.
inline void minimise(Graph &dfa) {
    const int32_t n = static_cast<int32_t>(dfa.rows.size());
    if (n < 2) return;
    std::vector<std::pair<int32_t, int32_t>> by_symbol, by_target;
    std::vector<int32_t> sources;
    size_t symbols = 0;
    for (int32_t state = 0; state < n; ++state)
        for (Move move : dfa.rows[state]) {
            const int32_t index = static_cast<int32_t>(sources.size());
            sources.push_back(state);
            by_symbol.emplace_back(move.symbol, index);
            by_target.emplace_back(move.target, index);
            symbols = std::max<size_t>(symbols, move.symbol + 1);
        }
    // Moves by symbol, and within a symbol those that lead to one block.
    std::vector<int32_t> members, firsts;
    const Rows<int32_t> over = by_owner(symbols, by_symbol), entering = by_owner(n, by_target);
    for (size_t symbol = 0; symbol < symbols; ++symbol) {
        if (over[symbol].empty()) continue;
        firsts.push_back(static_cast<int32_t>(members.size()));
        members.insert(members.end(), over[symbol].begin(), over[symbol].end());
    }
    Blocks moves(std::move(members), std::move(firsts));
    std::vector<int32_t> all(n);
    for (int32_t state = 0; state < n; ++state) all[state] = state;
    Blocks states(std::move(all), {0});
    for (int32_t state = 0; state < n; ++state)
        if (dfa.accepting[state]) states.mark(state);
    states.split();
    int32_t done = 1;
    for (int32_t each = 0; each < moves.size(); ++each) {
        for (int32_t move : moves.members(each)) states.mark(sources[move]);
        states.split();
        for (; done < states.size(); ++done) {
            for (int32_t state : states.members(done))
                for (int32_t move : entering[state]) moves.mark(move);
            moves.split();
        }
    }
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
    Rows<Edge> edges;  // by source
    std::vector<char> accepting;
    Numbering labels;  // sets of symbols, in order

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
    const Rows<int32_t> inside = by_owner(alphabet.size(), labelled);
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

// The minimal automaton of a deterministic one; no states for no text.
inline Table table_of(Graph &dfa, const Partition &alphabet) {
    trim(dfa);
    minimise(dfa);
    Table out;
    const size_t n = dfa.rows.size();
    std::vector<int32_t> number(n, kDead), order, place(n, kDead), targets;
    std::vector<std::vector<int32_t>> symbols;  // by place
    std::vector<Move> row;
    std::vector<Table::Edge> edges;
    if (n > 0) {
        number[0] = 0;
        order.push_back(0);
    }
    for (size_t source = 0; source < order.size(); ++source) {
        Strip<Move> moves = dfa.rows[order[source]];
        row.assign(moves.begin(), moves.end());
        const auto earlier = [](Move a, Move b) { return a.symbol < b.symbol; };
        if (!std::is_sorted(row.begin(), row.end(), earlier)) std::sort(row.begin(), row.end(), earlier);
        targets.clear();
        for (Move move : row) {
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
