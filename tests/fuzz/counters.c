/* Counts what compiled code does, for libFuzzer: gcc calls the function below wherever a block of code begins.
   A block's address, hashed, is the number of its counter. */
#include <stdint.h>

enum { COUNT = 1 << 16 };
uint8_t maskwright_counters[COUNT];
uintptr_t maskwright_blocks[2 * COUNT]; /* libFuzzer wants to know where each block is; nobody looks. */

void __sanitizer_cov_trace_pc(void) {
    uintptr_t at = (uintptr_t)__builtin_return_address(0);
    maskwright_counters[(at * 0x9E3779B97F4A7C15u) >> 48]++;
}

/* Comparisons of integers are libFuzzer's own; it has none of floating-point numbers. */
void __sanitizer_cov_trace_cmpf(float a, float b) { (void)a, (void)b; }
void __sanitizer_cov_trace_cmpd(double a, double b) { (void)a, (void)b; }
