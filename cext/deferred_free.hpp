// A thread that frees what nobody uses any more, so that no request waits for it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#ifndef _WIN32
#include <pthread.h>
#include <sched.h>
#endif

namespace maskwright {

// A number that requests and the thread that frees count up and down at once.
class AtomicCounter {
public:
    void set(int64_t to) { number_.store(to, std::memory_order_relaxed); }
    void add(int64_t more) { number_.fetch_add(more, std::memory_order_relaxed); }
    void subtract(int64_t less) { number_.fetch_sub(less, std::memory_order_relaxed); }
    int64_t value() const { return number_.load(std::memory_order_acquire); }
    // One less; what is left.
    int64_t drop() { return number_.fetch_sub(1, std::memory_order_acq_rel) - 1; }

private:
    std::atomic<int64_t> number_{0};
};

class DeferredFree {
public:
    using Free = void (*)(void *thing);

    // Frees a thing soon.  What it refers to is kept until then by an owner, who calls `finish`.
    void take(const void *owner, void *thing, Free free) {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            if (dead_.size() < kMost && start()) {
                follow();
                dead_.push_back({owner, thing, free});
                waiting_.add(1);
                thing = nullptr;
            }
        }
        if (thing == nullptr)
            wake_->notify_one();
        else
            free(thing);
    }

    // To be called between the parts of a long `free`.  In the thread, which shares a core with whoever brings things,
    // it lets others go on every now and then: they must not wait for all of it.  Unless somebody does, or much is left.
    // It sleeps: to yield is not to wait, and the scheduler gives equal shares, in pieces of some milliseconds.  What takes
    // long gets longer turns, else more would come than goes.
    static void breathe() {
        if (!turn_.limited || ++turn_.parts % kParts || instance().hurried() || Clock::now() < turn_.end) return;
        std::this_thread::sleep_for(kRest);
        const auto now = Clock::now();
        turn_.end = now + std::clamp<Clock::duration>((now - turn_.began) / kTurns, kShortTurn, kLongTurn);
    }

    // Everything of an owner is freed when this returns.
    void finish(const void *owner) {
        lock_work();
        std::lock_guard<std::mutex> one_at_a_time(work_, std::adopt_lock);
        Dead dead;
        while (pop(owner, dead)) dead.free(dead.thing);
    }

    // The one of this process, never destroyed: its thread may outlive everything else.
    static DeferredFree &instance() {
        static DeferredFree *only = [] {
            auto *made = new DeferredFree;
#ifndef _WIN32
            pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork(false); },
                           [] { instance().after_fork(true); });
#endif
            return made;
        }();
        return *only;
    }

private:
    struct Dead {
        const void *owner;
        void *thing;
        Free free;
    };
    static constexpr size_t kMost = 64;  // that wait; whoever brings more frees it himself
    static constexpr int64_t kMany = 16;  // of these: no more rests

    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::microseconds kRest{1};  // at least; in fact what a timer takes
    static constexpr std::chrono::microseconds kShortTurn{50}, kLongTurn{1000};
    static constexpr int kTurns = 64;  // about, in the time since it began
    static constexpr unsigned kParts = 32;  // between two looks at the clock
    struct Turn {
        bool limited;
        unsigned parts;
        Clock::time_point began;
        Clock::time_point end;
    };
    static inline thread_local Turn turn_{};

    bool hurried() const { return awaited_.value() > 0 || waiting_.value() >= kMany; }

    void lock_work() {
        awaited_.add(1);
        work_.lock();
        awaited_.subtract(1);
    }

    bool start() {
        if (running_) return true;
        try {
            std::thread thread(&DeferredFree::work, this);
            thread_ = thread.native_handle();
            thread.detach();
        } catch (const std::system_error &) {
            return false;  // the process may have no more threads
        }
        return running_ = true;
    }

    // To the core that brings something, which has it in its caches.  On another core, freeing would hold the locks of
    // malloc while this one goes on, and waking that core takes long.
    void follow() {
#ifdef __linux__
        const int core = sched_getcpu();
        if (core < 0 || core == core_ || core >= CPU_SETSIZE) return;
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(core, &only);
        if (pthread_setaffinity_np(thread_, sizeof only, &only) == 0) core_ = core;
#endif
    }

    void work() {
#ifdef SCHED_BATCH
        sched_param none{};
        pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);  // it must not push others aside when it wakes
#endif
        turn_.limited = true;
        for (;;) {
            {
                std::unique_lock<std::mutex> guard(mutex_);
                wake_->wait(guard, [this] { return !dead_.empty(); });
            }
            std::lock_guard<std::mutex> one_at_a_time(work_);
            Dead dead;
            if (!pop(nullptr, dead)) continue;
            turn_.began = Clock::now();
            dead.free(dead.thing);
        }
    }

    // The next one of an owner, or of anyone.
    bool pop(const void *owner, Dead &dead) {
        std::lock_guard<std::mutex> guard(mutex_);
        for (size_t i = 0; i < dead_.size(); ++i) {
            if (owner != nullptr && dead_[i].owner != owner) continue;
            dead = dead_[i];
            dead_.erase(dead_.begin() + i);
            waiting_.subtract(1);
            return true;
        }
        return false;
    }

    // A child process has no such thread; it goes on with what waits.
    void before_fork() {
        lock_work();
        mutex_.lock();
    }
    void after_fork(bool child) {
        if (child) {
            running_ = false;
            core_ = -1;
            awaited_.set(0);
            wake_ = new std::condition_variable;  // a thread that is gone may wait for the other one
        }
        mutex_.unlock();
        work_.unlock();
    }

    std::mutex work_;   // held while something is freed; taken before the other
    std::mutex mutex_;  // of what follows
    std::condition_variable *wake_ = new std::condition_variable;
    std::deque<Dead> dead_;
    AtomicCounter waiting_;  // of these
    AtomicCounter awaited_;  // those who wait for `work_`
    bool running_ = false;
    std::thread::native_handle_type thread_{};
    int core_ = -1;  // where it runs
};

}  // namespace maskwright
