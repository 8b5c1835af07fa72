// What compilers have in different ways; all else is C++20.
#pragma once

#include <cstdint>

#if defined(_MSC_VER) && !defined(__clang__)
#define MASKWRIGHT_INLINE __forceinline
#else
#define MASKWRIGHT_INLINE inline __attribute__((always_inline))
#endif

// For functions of which the compiler makes several, for vectors that not every machine has; one is chosen when the program is loaded.
#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MASKWRIGHT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MASKWRIGHT_CLONES
#endif

namespace maskwright {

// Both halves of a product of 128 bits, xored.
constexpr uint64_t folded_product_of_halves(uint64_t a, uint64_t b) {
    const uint64_t low = a & 0xFFFFFFFFu, high = a >> 32, below = b & 0xFFFFFFFFu, above = b >> 32;
    const uint64_t first = low * below, middle = high * below + (first >> 32);
    const uint64_t second = low * above + (middle & 0xFFFFFFFFu);
    return (second << 32 | (first & 0xFFFFFFFFu)) ^ (high * above + (middle >> 32) + (second >> 32));
}

inline uint64_t folded_product(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
    return folded_product_of_halves(a, b);
#endif
}

// 0xFFFFFFFFFFFFFFFF squared is 0xFFFFFFFFFFFFFFFE 0000000000000001; the other product was made with Python.
static_assert(folded_product_of_halves(~uint64_t{0}, ~uint64_t{0}) == 0xFFFFFFFFFFFFFFFFu);
static_assert(folded_product_of_halves(0x0123456789ABCDEFu, 0xD6E8FEB86659FD93u) == 0xB9EC210FE9D601DBu);

}  // namespace maskwright
