/* Counts what a test expected and did not find. */
#ifndef NUMC_EXPECT_H
#define NUMC_EXPECT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SKIPPED = 77, MOST_REPORTS = 20 };

static _Atomic long expectations, failures;

__attribute__((format(printf, 2, 3))) static void expect(bool holds, const char *format, ...)
{
    expectations++;
    if (holds || failures++ >= MOST_REPORTS) {
        return;
    }
    va_list values;
    va_start(values, format);
    fputs("FAILED: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
}

/* What main returns. */
static int expect_result(const char *what)
{
    printf("%s: %ld comparisons, %ld failed\n", what, expectations, failures);
    return failures == 0 && expectations > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* xorshift64*: the same sequence on every machine. */
static uint64_t random_state = 0x9E3779B97F4A7C15u;

static inline uint64_t random_bits(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545F4914F6CDD1Du;
}

static inline size_t random_below(size_t bound)
{
    return (size_t)(random_bits() >> 11) % bound;
}

#endif
