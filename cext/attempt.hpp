// Running out of memory as an answer.
#pragma once

#include <new>
#include <stdexcept>

namespace maskwright {

using Attempted = void (*)(void *);

// False when there was not enough memory for it.
inline bool attempt(Attempted function, void *argument) {
    try {
        function(argument);
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    } catch (const std::length_error &) {
        return false;
    }
}

}  // namespace maskwright
