// Hash tables whose growth nobody notices: large ones grow in parts, small ones are plain arrays.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace maskwright {

// Numbers of keys.  A table of std would move all its entries at once when it grows, which takes
// milliseconds for a hundred thousand of them.
class KeyIds {
public:
    // The number of a key, or -1.
    int32_t find(const std::string &key) const {
        const auto &part = parts_[part_of(key)];
        auto found = part.find(key);
        return found == part.end() ? -1 : found->second;
    }

    void insert(const std::string &key, int32_t id) {
        if (parts_.size() == 1 && parts_[0].size() >= kSplitAt) split();
        parts_[part_of(key)].emplace(key, id);
    }

private:
    static constexpr size_t kSplitAt = 2048, kParts = 64;

    size_t part_of(const std::string &key) const {
        // The low bits choose the bucket inside a part.
        return parts_.size() == 1 ? 0 : (std::hash<std::string>{}(key) >> 40) % kParts;
    }

    void split() {
        std::vector<std::unordered_map<std::string, int32_t>> parts(kParts);
        parts.swap(parts_);
        for (auto &entry : parts[0]) parts_[part_of(entry.first)].emplace(entry.first, entry.second);
    }

    std::vector<std::unordered_map<std::string, int32_t>> parts_{1};
};

// Where tokens lead from one state: open addressing, linear probing.
class TokenEdges {
public:
    static constexpr int32_t kUnknown = -3;

    int32_t find(int32_t token) const {
        if (slots_.empty()) return kUnknown;
        for (size_t i = home(token);; i = (i + 1) & (slots_.size() - 1)) {
            if (slots_[i].token == token) return slots_[i].target;
            if (slots_[i].token < 0) return kUnknown;
        }
    }

    // `token` is not there yet.
    void insert(int32_t token, int32_t target) {
        if (4 * (count_ + 1) > 3 * slots_.size()) grow();
        place(token, target);
        ++count_;
    }

    void clear() {
        std::vector<Slot>().swap(slots_);
        count_ = 0;
    }

    size_t count() const { return count_; }
    size_t bytes() const { return slots_.size() * sizeof(Slot); }

private:
    struct Slot {
        int32_t token = -1;
        int32_t target = kUnknown;
    };

    size_t home(int32_t token) const {
        return (static_cast<uint32_t>(token) * 2654435769u >> 7) & (slots_.size() - 1);
    }

    void place(int32_t token, int32_t target) {
        size_t i = home(token);
        while (slots_[i].token >= 0) i = (i + 1) & (slots_.size() - 1);
        slots_[i].token = token;
        slots_[i].target = target;
    }

    void grow() {
        std::vector<Slot> before(slots_.empty() ? 4 : 2 * slots_.size());
        before.swap(slots_);
        for (const Slot &slot : before)
            if (slot.token >= 0) place(slot.token, slot.target);
    }

    std::vector<Slot> slots_;
    size_t count_ = 0;
};

}  // namespace maskwright
