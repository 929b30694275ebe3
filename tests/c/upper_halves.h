/* Functions leave the upper halves of vector registers clean: from Ice Lake on, each SSE instruction after one that
 * does not takes as long as some hundred. */
#ifndef NUMC_TEST_UPPER_HALVES_H
#define NUMC_TEST_UPPER_HALVES_H

#include "expect.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Of the parts of the processor's state that are in use, see XINUSE. */
static inline bool upper_halves_are_in_use(void)
{
    enum { YMM = 4 };
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (low & YMM) != 0;
}

/* Not all processors that have AVX tell. */
static inline bool upper_halves_are_known(void)
{
    enum { TELLS_USE = 4 };
    unsigned a, b, c, d;
    if (!__builtin_cpu_supports("avx") || !__get_cpuid_count(0xd, 1, &a, &b, &c, &d) ||
        (a & TELLS_USE) == 0) {
        return false;
    }
    __asm__ volatile("vpcmpeqd %%xmm0, %%xmm0, %%xmm0\n\tvinsertf128 $1, %%xmm0, %%ymm0, %%ymm0"
                     :
                     :
                     : "xmm0");
    const bool is_seen = upper_halves_are_in_use();
    __asm__ volatile("vzeroupper");
    return is_seen && !upper_halves_are_in_use();
}

/* Right after a function that was called: what compares memory may clean them. */
static inline void expect_clean_upper_halves(const char *of)
{
    static int known = -1;
    known = known < 0 ? upper_halves_are_known() : known;
    if (known) {
        const bool are_in_use = upper_halves_are_in_use();
        expect(!are_in_use, "%s: the upper halves of vector registers are left in use", of);
    }
}
#else
#define expect_clean_upper_halves(of) (void)(of)
#endif

#endif
