// Containers that spare allocations: much of what a grammar reaches is many small objects with a few items each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace maskwright {

// A vector of plain items; two words of them lie in the object itself, more on the heap.
template <class T>
class SmallVector {
    static_assert(std::is_trivially_copyable<T>::value, "items are copied as bytes");

public:
    SmallVector() = default;
    SmallVector(const SmallVector &other) { copy(other.begin(), other.size()); }
    SmallVector &operator=(const SmallVector &other) {
        if (this != &other) copy(other.begin(), other.size());
        return *this;
    }
    void assign(const std::vector<T> &items) { copy(items.data(), items.size()); }
    ~SmallVector() { release(); }

    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T *begin() { return data(); }
    T *end() { return data() + size_; }
    const T *begin() const { return data(); }
    const T *end() const { return data() + size_; }
    T &operator[](size_t i) { return data()[i]; }
    const T &operator[](size_t i) const { return data()[i]; }

    void push_back(T item) {
        if (size_ == room_) grow(2 * static_cast<size_t>(room_));
        data()[size_++] = item;
    }

    std::vector<T> copied() const { return std::vector<T>(begin(), end()); }

    // What it takes on the heap.
    size_t bytes() const { return on_heap() ? room_ * sizeof(T) : 0; }

private:
    static constexpr uint32_t kWithin = sizeof(T) < 2 * sizeof(void *) ? 2 * sizeof(void *) / sizeof(T) : 1;

    bool on_heap() const { return room_ > kWithin; }
    T *data() { return on_heap() ? heap_ : reinterpret_cast<T *>(within_); }
    const T *data() const { return on_heap() ? heap_ : reinterpret_cast<const T *>(within_); }

    void copy(const T *first, size_t size) {
        size_ = 0;
        if (size > room_) grow(size);
        if (size) std::memcpy(data(), first, size * sizeof(T));
        size_ = static_cast<uint32_t>(size);
    }

    void grow(size_t room) {
        T *larger = static_cast<T *>(::operator new(room * sizeof(T)));
        if (size_) std::memcpy(larger, data(), size_ * sizeof(T));
        release();
        heap_ = larger;
        room_ = static_cast<uint32_t>(room);
    }

    void release() {
        if (on_heap()) ::operator delete(heap_);
    }

    uint32_t size_ = 0, room_ = kWithin;
    union {
        T *heap_;
        alignas(T) unsigned char within_[kWithin * sizeof(T)];
    };
};

// Objects that stay where they are, by number.  The first ones lie in small blocks: most grammars have few.  Later ones lie in larger
// ones: when these are freed, the C library joins what was freed before, so that no request has to.
template <class T>
class BlockPool {
public:
    size_t size() const { return size_; }
    T *operator[](size_t i) const {
        if (i < kFew) return &blocks_[i / kSmall][i % kSmall];
        if (i < kMany) return &blocks_[kSmalls + (i - kFew) / kMiddle][(i - kFew) % kMiddle];
        return &blocks_[kMiddles + (i - kMany) / kLarge][(i - kMany) % kLarge];
    }

    // A new one, behind the others; its numbers are 0.
    T *add() {
        if (size_ == room(blocks_.size())) {
            const size_t count = room(blocks_.size() + 1) - size_;
            blocks_.push_back(std::make_unique<T[]>(count));
        }
        return (*this)[size_++];
    }

    // Free some of the last ones; false: there were none.
    bool drop() {
        if (blocks_.empty()) return false;
        blocks_.pop_back();
        size_ = room(blocks_.size());
        return true;
    }

private:
    // What is large comes in pairs.
    static constexpr size_t kSmall = sizeof(T) > 128 ? 2 : 8, kMiddle = 64, kLarge = 512;
    static constexpr size_t kFew = 128, kMany = 2048;
    static constexpr size_t kSmalls = kFew / kSmall, kMiddles = kSmalls + (kMany - kFew) / kMiddle;

    // How many so many blocks have.
    static size_t room(size_t blocks) {
        if (blocks <= kSmalls) return blocks * kSmall;
        if (blocks <= kMiddles) return kFew + (blocks - kSmalls) * kMiddle;
        return kMany + (blocks - kMiddles) * kLarge;
    }

    std::vector<std::unique_ptr<T[]>> blocks_;
    size_t size_ = 0;
};

}  // namespace maskwright
