// A flag by which one thread ends what another one computes: it is looked at wherever that one looks at the clock.
#pragma once

#include <atomic>

namespace maskwright {

class StopFlag {
public:
    void set() { flag.store(true, std::memory_order_relaxed); }
    bool is_set() const { return flag.load(std::memory_order_relaxed); }

private:
    std::atomic<bool> flag{false};
};

inline const StopFlag*& watched_flag() {
    static thread_local const StopFlag* watched = nullptr;
    return watched;
}

// Whoever calls this looks at the flag from now on; null: at none.  What was watched before.
inline const StopFlag* watch_flag(const StopFlag* flag) {
    const StopFlag* before = watched_flag();
    watched_flag() = flag;
    return before;
}

inline bool told_to_stop() {
    const StopFlag* flag = watched_flag();
    return flag != nullptr && flag->is_set();
}

}  // namespace maskwright
