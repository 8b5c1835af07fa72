// Hash tables whose growth nobody notices: large ones grow in parts, small ones are plain arrays.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "compiler.hpp"

namespace maskwright {

// Numbers of keys, which are bytes: open addressing, linear probing; the keys lie one behind another.  A large
// table is cut into parts, because growing moves all that a part has.
class Interner {
public:
    // The number of a key, or -1.
    int32_t find(const void *key, size_t size) const {
        const uint64_t hash = hash_of(key, size);
        return parts_.empty() ? whole_.find(hash, key, size) : part(hash).find(hash, key, size);
    }

    // The key is not there yet.
    void insert(const void *key, size_t size, int32_t id) {
        const uint64_t hash = hash_of(key, size);
        if (parts_.empty() && whole_.count() >= kSplitAt) split();
        Part &into = parts_.empty() ? whole_ : part(hash);
        const size_t before = into.bytes();
        into.insert(hash, key, size, id);
        bytes_ += into.bytes() - before;
    }

    void clear() { *this = Interner(); }

    // What it takes on the heap.
    size_t bytes() const { return bytes_; }

    int32_t find(const std::string &key) const { return find(key.data(), key.size()); }
    void insert(const std::string &key, int32_t id) { insert(key.data(), key.size(), id); }

private:
    class Part {
    public:
        int32_t find(uint64_t hash, const void *key, size_t size) const {
            if (slots_.empty()) return -1;
            for (size_t i = hash & mask();; i = (i + 1) & mask()) {
                const Slot &slot = slots_[i];
                if (slot.id < 0) return -1;
                if (slot.hash == hash && slot.size == size && (size == 0 || std::memcmp(bytes_.data() + slot.at, key, size) == 0))
                    return slot.id;
            }
        }

        void insert(uint64_t hash, const void *key, size_t size, int32_t id) {
            if (4 * (count_ + 1) > 3 * slots_.size()) grow();
            const char *data = static_cast<const char *>(key);
            place({hash, bytes_.size(), size, id});
            bytes_.insert(bytes_.end(), data, data + size);
            ++count_;
        }

        size_t count() const { return count_; }
        size_t bytes() const { return slots_.capacity() * sizeof(Slot) + bytes_.capacity(); }

        template <class Visit> void visit(Visit visit) const {
            for (const Slot &slot : slots_)
                if (slot.id >= 0) visit(slot.hash, bytes_.data() + slot.at, slot.size, slot.id);
        }

    private:
        struct Slot {
            uint64_t hash = 0;
            size_t at = 0, size = 0;
            int32_t id = -1;
        };

        size_t mask() const { return slots_.size() - 1; }

        void place(const Slot &slot) {
            size_t i = slot.hash & mask();
            while (slots_[i].id >= 0) i = (i + 1) & mask();
            slots_[i] = slot;
        }

        void grow() {
            std::vector<Slot> before(slots_.empty() ? 8 : 2 * slots_.size());
            before.swap(slots_);
            for (const Slot &slot : before)
                if (slot.id >= 0) place(slot);
        }

        std::vector<Slot> slots_;
        std::vector<char> bytes_;
        size_t count_ = 0;
    };

    static constexpr size_t kSplitAt = 2048, kParts = 64;

    static uint64_t hash_of(const void *key, size_t size) {
        const char *at = static_cast<const char *>(key);
        uint64_t hash = 0x9E3779B97F4A7C15u ^ size, word;
        for (; size >= 8; at += 8, size -= 8) {
            std::memcpy(&word, at, 8);
            hash = mix(hash ^ word);
        }
        word = 0;
        if (size > 0) std::memcpy(&word, at, size);
        return mix(hash ^ word);
    }

    static uint64_t mix(uint64_t value) {
        // Both halves of a product depend on all bits.
        return folded_product(value, 0xD6E8FEB86659FD93u);
    }

    // The low bits choose the slot inside a part.
    const Part &part(uint64_t hash) const { return parts_[(hash >> 40) % kParts]; }
    Part &part(uint64_t hash) { return parts_[(hash >> 40) % kParts]; }

    void split() {
        parts_.resize(kParts);
        whole_.visit([this](uint64_t hash, const char *key, size_t size, int32_t id) {
            part(hash).insert(hash, key, size, id);
        });
        whole_ = Part();
        bytes_ = parts_.capacity() * sizeof(Part);
        for (const Part &each : parts_) bytes_ += each.bytes();
    }

    Part whole_;
    std::vector<Part> parts_;
    size_t bytes_ = 0;
};

// Numbers of numbers, for work that is done again and again: emptying it costs nothing.
class ScratchIds {
public:
    // The number of a key, or -1.
    int32_t find(int64_t key) const {
        if (slots_.empty()) return -1;
        for (size_t i = home(key);; i = (i + 1) & (slots_.size() - 1)) {
            if (slots_[i].round != round_) return -1;
            if (slots_[i].key == key) return slots_[i].id;
        }
    }

    // The key is not there yet.
    void insert(int64_t key, int32_t id) {
        if (2 * (count_ + 1) > slots_.size()) grow();
        place(key, id);
        ++count_;
    }

    void clear() {
        ++round_;
        count_ = 0;
    }

    // The same, and its memory is given back.
    void drop() {
        std::vector<Slot>().swap(slots_);
        count_ = 0;
    }

    // What it takes on the heap.
    size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

private:
    struct Slot {
        int64_t key = 0;
        int32_t id = -1;
        uint64_t round = 0;
    };

    size_t home(int64_t key) const {
        return (static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1);
    }

    void place(int64_t key, int32_t id) {
        size_t i = home(key);
        while (slots_[i].round == round_) i = (i + 1) & (slots_.size() - 1);
        slots_[i] = {key, id, round_};
    }

    void grow() {
        std::vector<Slot> before(slots_.empty() ? 16 : 2 * slots_.size());
        before.swap(slots_);
        for (const Slot &slot : before)
            if (slot.round == round_) place(slot.key, slot.id);
    }

    std::vector<Slot> slots_;
    size_t count_ = 0;
    uint64_t round_ = 1;
};

// Where a state leads over tokens, or other numbers from 0.  Most states lead on in one way or two: these lie in the object itself,
// more on the heap (open addressing, linear probing).
template <class Key>
class Edges {
public:
    static constexpr int32_t kUnknown = -3;

    Edges() = default;
    Edges(const Edges &other) { copy(other); }
    Edges &operator=(const Edges &other) {
        if (this != &other) {
            clear();
            copy(other);
        }
        return *this;
    }
    ~Edges() { clear(); }

    int32_t find(Key key) const {
        if (room_ == kWithin) {
            for (uint32_t i = 0; i < count_; ++i)
                if (within_[i].key == key) return within_[i].target;
            return kUnknown;
        }
        for (size_t i = home(key);; i = (i + 1) & (room_ - 1)) {
            if (heap_[i].key == key) return heap_[i].target;
            if (heap_[i].key < 0) return kUnknown;
        }
    }

    // `key` is not there yet.
    void insert(Key key, int32_t target) {
        if (room_ == kWithin && count_ < kWithin) {
            within_[count_++] = {key, target};
            return;
        }
        if (room_ == kWithin || 4 * (count_ + 1) > 3 * room_) grow();
        place(key, target);
        ++count_;
    }

    void clear() {
        if (room_ != kWithin) delete[] heap_;
        room_ = kWithin;
        count_ = 0;
    }

    size_t count() const { return count_; }
    // What it takes on the heap.
    size_t bytes() const { return room_ == kWithin ? 0 : room_ * sizeof(Slot); }

private:
    struct Slot {
        Key key;
        int32_t target;
    };
    static constexpr uint32_t kWithin = 16 / sizeof(Slot), kFirst = 4 * kWithin;

    size_t home(Key key) const {
        return (static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u >> 32) & (room_ - 1);
    }

    void place(Key key, int32_t target) {
        size_t i = home(key);
        while (heap_[i].key >= 0) i = (i + 1) & (room_ - 1);
        heap_[i] = {key, target};
    }

    void grow() {
        Slot few[kWithin];
        const bool within = room_ == kWithin;
        const uint32_t before = within ? count_ : room_;
        if (within) std::memcpy(few, within_, sizeof few);
        Slot *slots = within ? few : heap_;
        room_ = within ? kFirst : 2 * room_;
        heap_ = empty(room_);
        for (uint32_t i = 0; i < before; ++i)
            if (slots[i].key >= 0) place(slots[i].key, slots[i].target);
        if (!within) delete[] slots;
    }

    static Slot *empty(uint32_t room) {
        Slot *slots = new Slot[room];
        for (uint32_t i = 0; i < room; ++i) slots[i] = {-1, kUnknown};
        return slots;
    }

    void copy(const Edges &other) {
        if (other.room_ == kWithin) {
            std::memcpy(within_, other.within_, sizeof within_);
        } else {
            heap_ = new Slot[other.room_];
            std::memcpy(heap_, other.heap_, other.room_ * sizeof(Slot));
        }
        room_ = other.room_;
        count_ = other.count_;
    }

    uint32_t count_ = 0, room_ = kWithin;
    union {
        Slot *heap_;
        Slot within_[kWithin];
    };
};

}  // namespace maskwright
