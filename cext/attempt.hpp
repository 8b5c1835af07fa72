// Running out of memory as an answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>

namespace maskwright {

using Attempted = void (*)(void *);

// Memory that is set aside and never touched.  The first allocation that fails gets it, so that what is under way can
// come to an end in good order: it asks `gone`.
class Reserve {
public:
    // Set it aside, if it is not, for as long as the object lives; `whole` tells whether that was possible.
    Reserve() {
        const std::lock_guard<std::mutex> guard(mutex());
        if (users()++ == 0) before() = std::set_new_handler(release);
        if (block() == nullptr) block() = std::malloc(kSize);
        whole = block() != nullptr;
        start_ = releases();
    }

    ~Reserve() {
        const std::lock_guard<std::mutex> guard(mutex());
        if (--users() == 0) std::set_new_handler(before());
    }

    Reserve(const Reserve &) = delete;
    Reserve &operator=(const Reserve &) = delete;

    bool used() const { return releases() != start_; }

    // How often it was given away, in this process.
    static std::atomic<int64_t> &releases() {
        static std::atomic<int64_t> count{0};
        return count;
    }

    bool whole;

private:
    static constexpr size_t kSize = size_t(16) << 20;

    static void release() {
        void *given = block().exchange(nullptr);
        if (given == nullptr) throw std::bad_alloc();
        std::free(given);
        ++releases();
    }

    static std::atomic<void *> &block() {
        static std::atomic<void *> kept{nullptr};
        return kept;
    }
    static std::mutex &mutex() {
        static std::mutex one;
        return one;
    }
    static int &users() {
        static int count = 0;
        return count;
    }
    static std::new_handler &before() {
        static std::new_handler handler = nullptr;
        return handler;
    }

    int64_t start_;
};

// False when there was not enough memory.
inline bool attempt(Attempted function, void *argument) {
    const Reserve reserve;
    if (!reserve.whole) return false;
    try {
        function(argument);
    } catch (const std::bad_alloc &) {
        return false;
    } catch (const std::length_error &) {
        return false;
    }
    return !reserve.used();
}

// Changes when memory has run out.
inline int64_t memory_releases() { return Reserve::releases(); }

}  // namespace maskwright
