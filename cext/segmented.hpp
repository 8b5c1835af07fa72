// Tables that grow in parts, so that growth stops nobody: what is large is never copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace maskwright {

// A vector of plain items.  Its first part grows as a vector does, others are added.
template <class T>
class SegmentedVector {
    static_assert(std::is_trivially_copyable<T>::value, "items are copied as bytes");

public:
    SegmentedVector() = default;
    SegmentedVector(const SegmentedVector &other) { append(other); }
    SegmentedVector &operator=(const SegmentedVector &other) {
        if (this != &other) {
            parts_.clear();
            size_ = room_ = 0;
            append(other);
        }
        return *this;
    }

    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T &operator[](size_t i) { return parts_[i / kPart][i % kPart]; }
    const T &operator[](size_t i) const { return parts_[i / kPart][i % kPart]; }

    void push_back(const T &item) {
        const T added = item;  // which may be one of these
        if (size_ == room_) grow();
        (*this)[size_++] = added;
    }

    // What it takes on the heap.
    size_t bytes() const { return room_ * sizeof(T); }

private:
    static constexpr size_t kFirst = 8, kPart = 2048;

    void append(const SegmentedVector &other) {
        for (size_t i = 0; i < other.size_; ++i) push_back(other[i]);
    }

    void grow() {
        const size_t room = room_ == 0 ? kFirst : room_ < kPart ? 2 * room_ : room_ + kPart;
        std::unique_ptr<T[]> part(new T[std::min(room, kPart)]);
        if (room <= kPart) {
            if (size_) std::memcpy(static_cast<void *>(part.get()), parts_[0].get(), size_ * sizeof(T));
            parts_.clear();
        }
        parts_.push_back(std::move(part));
        room_ = room;
    }

    std::vector<std::unique_ptr<T[]>> parts_;
    size_t size_ = 0, room_ = 0;
};

// Spans of plain items that stay where they are.
template <class T>
class Arena {
public:
    T *add(const T *items, size_t count) {
        if (count == 0) return nullptr;
        T *to = take(count);
        std::memcpy(to, items, count * sizeof(T));
        return to;
    }

    // So many items that are 0.
    T *zeros(size_t count) {
        if (count == 0) return nullptr;
        T *to = take(count);
        std::memset(static_cast<void *>(to), 0, count * sizeof(T));
        return to;
    }

    // Free the last part, when no more will be added; false: there was none.
    bool drop() {
        if (parts_.empty()) return false;
        parts_.pop_back();
        used_ = room_ = 0;
        return true;
    }

    // What it takes on the heap.
    size_t bytes() const { return bytes_; }

private:
    static constexpr size_t kFirst = 64, kMost = size_t{1} << 15;

    T *take(size_t count) {
        if (room_ - used_ < count) {
            room_ = std::max(count, std::min(kMost, std::max<size_t>(2 * room_, kFirst)));
            parts_.emplace_back(new T[room_]);
            bytes_ += room_ * sizeof(T);
            used_ = 0;
        }
        T *to = parts_.back().get() + used_;
        used_ += count;
        return to;
    }

    std::vector<std::unique_ptr<T[]>> parts_;
    size_t used_ = 0, room_ = 0, bytes_ = 0;  // of the last part, and of all
};

// Numbers by number, from 0 on, where many are not there.
class Renumbered {
public:
    static constexpr int32_t kUnknown = -3;

    int32_t find(int32_t from) const {
        const size_t part = static_cast<size_t>(from) / kPart;
        return part < parts_.size() && parts_[part] ? parts_[part][from % kPart] : kUnknown;
    }

    void insert(int32_t from, int32_t to) {
        const size_t part = static_cast<size_t>(from) / kPart;
        if (part >= parts_.size()) parts_.resize(part + 1);
        if (!parts_[part]) {
            parts_[part].reset(new int32_t[kPart]);
            std::fill_n(parts_[part].get(), kPart, kUnknown);
        }
        parts_[part][from % kPart] = to;
    }

private:
    static constexpr int32_t kPart = 256;

    std::vector<std::unique_ptr<int32_t[]>> parts_;
};

}  // namespace maskwright
