// Contents of any size as 16 bytes: SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012), with a key that each process draws.
//
// Two contents out of 2^40 are taken for one with a probability below 2^-48, whoever chose them: that they are equal cannot be
// brought about without the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

namespace maskwright {

class Digests {
public:
    static constexpr size_t kSize = 16;

    static std::string of(const std::string &content) {
        const Key &key = drawn();
        uint64_t v[4] = {key.low ^ 0x736F6D6570736575u, key.high ^ 0x646F72616E646F6Du ^ 0xEEu, key.low ^ 0x6C7967656E657261u,
                         key.high ^ 0x7465646279746573u};
        const char *at = content.data();
        size_t left = content.size();
        uint64_t word;
        for (; left >= 8; at += 8, left -= 8) {
            std::memcpy(&word, at, 8);
            mix(v, word);
        }
        word = 0;
        if (left > 0) std::memcpy(&word, at, left);
        mix(v, word | static_cast<uint64_t>(content.size()) << 56);
        uint64_t out[2];
        v[2] ^= 0xEEu;
        turn(v, 4);
        out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
        v[1] ^= 0xDDu;
        turn(v, 4);
        out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
        return std::string(reinterpret_cast<const char *>(out), sizeof out);
    }

private:
    struct Key {
        uint64_t low, high;
    };

    static const Key &drawn() {
        static const Key key = [] {
            std::random_device device;
            const auto word = [&device] { return static_cast<uint64_t>(device()) << 32 | device(); };
            const uint64_t low = word();
            return Key{low, word()};
        }();
        return key;
    }

    static uint64_t left(uint64_t value, int by) { return value << by | value >> (64 - by); }

    static void turn(uint64_t (&v)[4], int rounds) {
        for (; rounds > 0; --rounds) {
            v[0] += v[1], v[1] = left(v[1], 13) ^ v[0], v[0] = left(v[0], 32);
            v[2] += v[3], v[3] = left(v[3], 16) ^ v[2];
            v[0] += v[3], v[3] = left(v[3], 21) ^ v[0];
            v[2] += v[1], v[1] = left(v[1], 17) ^ v[2], v[2] = left(v[2], 32);
        }
    }

    static void mix(uint64_t (&v)[4], uint64_t word) {
        v[3] ^= word;
        turn(v, 2);
        v[0] ^= word;
    }
};

}  // namespace maskwright
