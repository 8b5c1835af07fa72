// Cutting logits by a row of a bitmask.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler.hpp"

namespace maskwright {

// A table of numbers: rows of `width` numbers, distances in numbers of `T`.
template <class T>
MASKWRIGHT_INLINE void cut_row(T *numbers, ptrdiff_t step, size_t width, const uint32_t *mask, size_t words, T lowest) {
    size_t covered = words * 32 < width ? words * 32 : width;
    for (size_t word = 0; word * 32 < covered; ++word) {
        uint32_t allowed = mask[word];
        if (allowed == ~0u) continue;
        T *first = numbers + static_cast<ptrdiff_t>(word) * 32 * step;
        size_t count = covered - word * 32 < 32 ? covered - word * 32 : 32;
        if (count == 32 && step == 1) {
            // Writing all 32 lets the compiler use vectors.
            if (allowed == 0)
                for (int i = 0; i < 32; ++i) first[i] = lowest;
            else
                for (int i = 0; i < 32; ++i) first[i] = (allowed >> i) & 1 ? first[i] : lowest;
        } else {
            for (size_t i = 0; i < count; ++i)
                if (!((allowed >> i) & 1)) first[static_cast<ptrdiff_t>(i) * step] = lowest;
        }
    }
    for (size_t i = covered; i < width; ++i) numbers[static_cast<ptrdiff_t>(i) * step] = lowest;
}

// `bytes` is the size of a number, `lowest` the bits of minus infinity.
MASKWRIGHT_CLONES static void cut_row_of(void *numbers, int bytes, ptrdiff_t step, size_t width, const uint32_t *mask,
                       size_t words, uint64_t lowest) {
    if (bytes == 2)
        cut_row(static_cast<uint16_t *>(numbers), step, width, mask, words, static_cast<uint16_t>(lowest));
    else if (bytes == 4)
        cut_row(static_cast<uint32_t *>(numbers), step, width, mask, words, static_cast<uint32_t>(lowest));
    else
        cut_row(static_cast<uint64_t *>(numbers), step, width, mask, words, lowest);
}

}  // namespace maskwright
