// Rows of different lengths, one behind another: two blocks of memory, however many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace maskwright {

template <class T>
class Span {
public:
    Span() = default;
    Span(T *first, T *last) : first_(first), last_(last) {}

    size_t size() const { return static_cast<size_t>(last_ - first_); }
    bool empty() const { return first_ == last_; }
    T *begin() const { return first_; }
    T *end() const { return last_; }
    T &operator[](size_t i) const { return first_[i]; }

private:
    T *first_ = nullptr;
    T *last_ = nullptr;
};

template <class T>
class Csr {
public:
    Csr() = default;
    // ends: by row, where it ends
    Csr(std::vector<T> items, std::vector<size_t> ends) : items_(std::move(items)), ends_(std::move(ends)) {}

    size_t size() const { return ends_.size(); }
    // Of all rows together.
    size_t items() const { return items_.size(); }

    // Valid until a row is added.
    Span<T> operator[](size_t i) { return {items_.data() + begin(i), items_.data() + ends_[i]}; }
    Span<const T> operator[](size_t i) const { return {items_.data() + begin(i), items_.data() + ends_[i]}; }

    void push_back(const std::vector<T> &row) {
        items_.insert(items_.end(), row.begin(), row.end());
        ends_.push_back(items_.size());
    }

    void append(const Csr &more) {
        const size_t before = items_.size();
        items_.insert(items_.end(), more.items_.begin(), more.items_.end());
        for (size_t end : more.ends_) ends_.push_back(before + end);
    }

private:
    size_t begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }

    std::vector<T> items_;
    std::vector<size_t> ends_;
};

// Items by owner, one behind another; in the order in which they come.  each: calls what it is given with all owners and
// items, the same ones each time
template <class T, class Each>
Csr<T> grouped(size_t owners, const Each &each) {
    std::vector<size_t> at(owners + 1, 0);
    each([&](int32_t owner, const T &) { ++at[owner + 1]; });
    for (size_t i = 0; i < owners; ++i) at[i + 1] += at[i];
    std::vector<size_t> ends(at.begin() + 1, at.end());
    std::vector<T> sorted(at[owners]);
    each([&](int32_t owner, const T &item) { sorted[at[owner]++] = item; });
    return Csr<T>(std::move(sorted), std::move(ends));
}
template <class T>
Csr<T> by_owner(size_t owners, const std::vector<std::pair<int32_t, T>> &items) {
    return grouped<T>(owners, [&](const auto &take) {
        for (const auto &item : items) take(item.first, item.second);
    });
}

}  // namespace maskwright
