// A persistent pool of threads for work that never touches Python, and the clock of time limits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace maskwright {

inline double seconds_now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

class Pool {
public:
    using Task = void (*)(void *context, size_t item);

    // Calls task(context, i) for each i below `items`, on up to `threads` threads, the caller's among them; on fewer where
    // the process may have no more.  One batch at a time; a second caller waits.
    void run(Task task, void *context, size_t items, size_t threads) {
        if (threads > items) threads = items;
        if (threads < 2) {
            for (size_t i = 0; i < items; ++i) task(context, i);
            return;
        }
        std::lock_guard<std::mutex> one_batch(batch_);
        share(task, context, items, threads);
    }

    // The same without waiting for a second caller, who may wait for a lock that this one holds: alone then.
    void run_or_alone(Task task, void *context, size_t items, size_t threads) {
        std::unique_lock<std::mutex> one_batch(batch_, std::defer_lock);
        if (threads > 1 && items > 1 && one_batch.try_lock()) {
            share(task, context, items, threads < items ? threads : items);
        } else {
            for (size_t i = 0; i < items; ++i) task(context, i);
        }
    }

    // The pool of this process: threads do not survive a fork, which Windows does not have.
    static Pool &instance() {
        static std::atomic<Pool *> pool{new Pool};
#ifndef _WIN32
        static std::atomic<pid_t> owner{getpid()};
        if (owner.load() != getpid()) {
            pool.store(new Pool);
            owner.store(getpid());
        }
#endif
        return *pool.load();
    }

private:
    void share(Task task, void *context, size_t items, size_t threads) {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            while (workers_ + 1 < threads && add_worker()) ++workers_;
            task_ = task;
            context_ = context;
            items_ = items;
            helpers_ = threads - 1 < workers_ ? threads - 1 : workers_;
            busy_ = helpers_;
            next_.store(0);
            ++generation_;
        }
        wake_.notify_all();
        drain();
        std::unique_lock<std::mutex> guard(mutex_);
        done_.wait(guard, [this] { return busy_ == 0; });
    }

    bool add_worker() {
        try {
            std::thread(&Pool::work, this, workers_, generation_).detach();
        } catch (const std::system_error &) {
            return false;
        }
        return true;
    }

    void drain() {
        for (size_t i = next_.fetch_add(1); i < items_; i = next_.fetch_add(1)) task_(context_, i);
    }

    void work(size_t number, unsigned long seen) {
        std::unique_lock<std::mutex> guard(mutex_);
        for (;;) {
            wake_.wait(guard, [&] { return generation_ != seen; });
            seen = generation_;
            if (number >= helpers_) continue;
            guard.unlock();
            drain();
            guard.lock();
            if (--busy_ == 0) done_.notify_one();
        }
    }

    std::mutex batch_, mutex_;
    std::condition_variable wake_, done_;
    size_t workers_ = 0, helpers_ = 0, busy_ = 0, items_ = 0;
    unsigned long generation_ = 0;
    std::atomic<size_t> next_{0};
    Task task_ = nullptr;
    void *context_ = nullptr;
};

}  // namespace maskwright
