// Alphabets: code points, divided into largest classes that some sets do not tell apart (minterms).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "subsets.hpp"

namespace maskwright {

struct Range {
    int32_t low, high;  // both included
};

// Classes are symbols, numbered from 0 in the order of their least code points.
class Partition {
public:
    struct Part {
        int32_t low, high, symbol;
    };

    Partition() = default;

    // sets: each in order and disjoint; the first one is the universe
    explicit Partition(const Csr<Range> &sets) {
        std::vector<std::pair<int32_t, int32_t>> toggles;  // where a set begins or ends, set
        for (size_t set = 0; set < sets.size(); ++set)
            for (Range range : sets[set]) {
                toggles.emplace_back(range.low, static_cast<int32_t>(set));
                toggles.emplace_back(range.high + 1, static_cast<int32_t>(set));
            }
        std::sort(toggles.begin(), toggles.end());
        std::vector<int32_t> inside;  // the sets that we are in, in order
        Numbering classes;
        for (size_t i = 0; i < toggles.size();) {
            const int32_t at = toggles[i].first;
            for (; i < toggles.size() && toggles[i].first == at; ++i) {
                const auto place = std::lower_bound(inside.begin(), inside.end(), toggles[i].second);
                if (place != inside.end() && *place == toggles[i].second)
                    inside.erase(place);
                else
                    inside.insert(place, toggles[i].second);
            }
            if (!inside.empty() && inside[0] == 0) add(at, toggles[i].first - 1, classes.number(inside).first);
        }
        size_ = classes.size();
        std::vector<std::pair<int32_t, int32_t>> members;
        for (size_t symbol = 0; symbol < size_; ++symbol)
            for (int32_t set : classes.key(static_cast<int32_t>(symbol)))
                members.emplace_back(set, static_cast<int32_t>(symbol));
        members_ = by_owner(sets.size(), members);
    }

    // The coarsest one that is finer than each (all of one universe); coarser: by partition and symbol, its symbol there.
    Partition(const std::vector<const Partition *> &each, std::vector<std::vector<int32_t>> &coarser) {
        Numbering classes;
        std::vector<size_t> at(each.size(), 0);
        std::vector<int32_t> key(each.size());
        int32_t low = 0;
        while (at[0] < each[0]->parts_.size()) {
            int32_t high = INT32_MAX;
            for (size_t i = 0; i < each.size(); ++i) {
                const Part &part = each[i]->parts_[at[i]];
                low = std::max(low, part.low);
                high = std::min(high, part.high);
                key[i] = part.symbol;
            }
            add(low, high, classes.number(key).first);
            for (size_t i = 0; i < each.size(); ++i)
                if (each[i]->parts_[at[i]].high == high) ++at[i];
            low = high + 1;
        }
        size_ = classes.size();
        coarser.assign(each.size(), std::vector<int32_t>(size_));
        for (size_t symbol = 0; symbol < size_; ++symbol)
            for (size_t i = 0; i < each.size(); ++i)
                coarser[i][symbol] = classes.key(static_cast<int32_t>(symbol))[i];
    }

    // The classes of another one, some of them together.  classes: by symbol, its new one
    Partition(const Partition &finer, const std::vector<int32_t> &classes) {
        for (Part part : finer.parts_) add(part.low, part.high, classes[part.symbol]);
        for (int32_t symbol : classes) size_ = std::max<size_t>(size_, symbol + 1);
    }

    size_t size() const { return size_; }
    Span<const Part> parts() const { return {parts_.data(), parts_.data() + parts_.size()}; }

    // The symbols that make up a set that it was made of; none for other sets.
    Span<const int32_t> members(size_t set) const { return std::as_const(members_)[set]; }

    // kDead: outside the universe.
    int32_t symbol_of(int32_t code) const {
        auto after = std::upper_bound(parts_.begin(), parts_.end(), code,
                                      [](int32_t value, const Part &part) { return value < part.low; });
        if (after == parts_.begin() || (after - 1)->high < code) return kDead;
        return (after - 1)->symbol;
    }

    // The code points of some symbols, in order.
    std::vector<Range> ranges(const std::vector<int32_t> &symbols) const {
        if (by_symbol_.size() != size_) {
            std::vector<std::pair<int32_t, int32_t>> places;
            for (size_t i = 0; i < parts_.size(); ++i) places.emplace_back(parts_[i].symbol, static_cast<int32_t>(i));
            by_symbol_ = by_owner(size_, places);
        }
        std::vector<int32_t> places;
        for (int32_t symbol : symbols)
            places.insert(places.end(), by_symbol_[symbol].begin(), by_symbol_[symbol].end());
        if (symbols.size() > 1) std::sort(places.begin(), places.end());
        std::vector<Range> out;
        for (int32_t place : places) {
            const Part &part = parts_[place];
            if (!out.empty() && out.back().high + 1 == part.low)
                out.back().high = part.high;
            else
                out.push_back({part.low, part.high});
        }
        return out;
    }

private:
    void add(int32_t low, int32_t high, int32_t symbol) {
        if (!parts_.empty() && parts_.back().symbol == symbol && parts_.back().high + 1 == low)
            parts_.back().high = high;
        else
            parts_.push_back({low, high, symbol});
    }

    size_t size_ = 0;
    std::vector<Part> parts_;  // in order
    Csr<int32_t> members_;
    mutable Csr<int32_t> by_symbol_;  // places in `parts_`, once asked for
};

}  // namespace maskwright
