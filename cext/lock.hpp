// The lock of a vocabulary: shared to read, exclusive to compute; whoever computes for long can let others in between.
#pragma once

#include <atomic>
#include <chrono>
#include <new>
#include <shared_mutex>
#include <thread>

namespace maskwright {

class TurnLock {
public:
    void lock() {
        if (!mutex_.try_lock()) {
            ++waiting_;
            mutex_.lock();
            --waiting_;
        }
        turns_.fetch_add(1, std::memory_order_relaxed);
    }

    bool try_lock() { return mutex_.try_lock(); }

    void unlock() { mutex_.unlock(); }

    void lock_shared() {
        if (!mutex_.try_lock_shared()) {
            ++waiting_;
            mutex_.lock_shared();
            --waiting_;
        }
        turns_.fetch_add(1, std::memory_order_relaxed);
    }

    bool try_lock_shared() { return mutex_.try_lock_shared(); }

    void unlock_shared() { mutex_.unlock_shared(); }

    // Whether somebody waits; a hint.
    bool is_wanted() const { return waiting_.load(std::memory_order_relaxed) > 0; }

    // Lets go until one of those who wait has had the lock: to unlock and lock again would be too quick for them.
    void give_way() {
        const unsigned before = turns_.load(std::memory_order_relaxed);
        mutex_.unlock();
        while (is_wanted() && turns_.load(std::memory_order_relaxed) == before) rest();
        lock();
    }

    // Lets go for a moment.  Who does so waits for something else than the lock, and does not count as one of those who want it.
    void stand_back() {
        mutex_.unlock();
        rest();
        mutex_.lock();
    }

    // As if nobody had ever held it: in a child process, where those who did are not there.
    void renew() { new (this) TurnLock; }

private:
    static void rest() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

    std::shared_mutex mutex_;
    std::atomic<int> waiting_{0};
    std::atomic<unsigned> turns_{0};
};

}  // namespace maskwright
