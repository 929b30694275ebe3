/* All reductions of one instruction set: sums of every dtype, products of integers. Floats are not
 * multiplied here: where a partial product overflows depends on the order. */
#ifndef NUMC_REDUCE_H
#define NUMC_REDUCE_H

#include "kernels/kernels.h"
#include "kernels/vector.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

enum {
    /* Additions one after the other before sums are added in pairs: as many as in NumPy's. */
    PIECE_TURNS = 16,
    /* Rows of which a column is read at once, and how much of a row: the sums stay in the second-level
     * cache. With shorter runs, or fetched ahead by software, rows come more slowly from memory. Short
     * rows come one by one: their sums stay in the first-level cache. */
    SOME_ROWS = 4,
    MANY_ROWS = 8,
    SHORT_ROW_BYTES = 8192,
    VERY_SHORT_ROW_BYTES = 256, /* two of which are next to each other, as good as one */
    ROW_COLUMNS = ROW_BYTES / sizeof(uint64_t),
    /* Sums of two bytes fit into 16 bits so often; side by side, none waits for the one before. */
    RUN_BYTES = 128 * VECTOR_BYTES,
    SUMS = 4,
    SHORT_SUM = 16,
    PRODUCTS = 8,
};
#define LANE_VECTORS (64 / VECTOR_BYTES)
_Static_assert(LANE_VECTORS *VECTOR_BYTES == ACCUMULATORS_BYTES, "lanes are whole vectors");

#define SAME(x) (x)

typedef float float_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef double double_vector __attribute__((vector_size(VECTOR_BYTES)));

INLINE float_vector load_floats(const char *from)
{
    float_vector loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

INLINE double_vector load_doubles(const char *from)
{
    double_vector loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

#if defined(__F16C__)
#define HALF uint16_t
#define HALF_ZERO 0x8000
INLINE float_vector load_halves(const char *from)
{
    return (float_vector)_mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
}
INLINE float float_of_half(uint16_t x)
{
    return _cvtsh_ss(x);
}
INLINE uint16_t half_of_float(float x)
{
    return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}
#elif defined(__aarch64__)
#define HALF __fp16
#define HALF_ZERO (__fp16)-0.0f
INLINE float_vector load_halves(const char *from)
{
    float16x4_t loaded;
    memcpy(&loaded, from, sizeof loaded);
    return (float_vector)vcvt_f32_f16(loaded);
}
INLINE float float_of_half(__fp16 x)
{
    return x;
}
INLINE __fp16 half_of_float(float x)
{
    return (__fp16)x;
}
#endif

#define DTYPE float32
#define KIND 'f'
#define STORED float
#define SUM float
#define BITS uint32_t
#define PARTS 1
#define LOAD load_floats
#define ZERO -0.0f
#define WIDEN SAME
#define NARROW SAME
#include "reduce_floats_template.h"

#define DTYPE complex64
#define KIND 'c'
#define STORED float
#define SUM float
#define BITS uint32_t
#define PARTS 2
#define LOAD load_floats
#define ZERO -0.0f
#define WIDEN SAME
#define NARROW SAME
#include "reduce_floats_template.h"

#define DTYPE float64
#define KIND 'f'
#define STORED double
#define SUM double
#define BITS uint64_t
#define PARTS 1
#define LOAD load_doubles
#define ZERO -0.0
#define WIDEN SAME
#define NARROW SAME
#include "reduce_floats_template.h"

#define DTYPE complex128
#define KIND 'c'
#define STORED double
#define SUM double
#define BITS uint64_t
#define PARTS 2
#define LOAD load_doubles
#define ZERO -0.0
#define WIDEN SAME
#define NARROW SAME
#include "reduce_floats_template.h"

#if defined(HALF)
#define DTYPE float16
#define KIND 'f'
#define STORED HALF
#define SUM float
#define BITS uint32_t
#define PARTS 1
#define LOAD load_halves
#define ZERO HALF_ZERO
#define WIDEN float_of_half
#define NARROW half_of_float
#include "reduce_floats_template.h"
#endif

typedef uint64_t wide_vector __attribute__((vector_size(4 * sizeof(uint64_t))));

/* Reads and writes an integer of 1, 2, 4 or 8 bytes. */
INLINE uint64_t load_one(const char *from, size_t size)
{
    return size == 1   ? *(const uint8_t *)from
           : size == 2 ? *(const uint16_t *)from
           : size == 4 ? *(const uint32_t *)from
                       : *(const uint64_t *)from;
}

INLINE void store_one(uint64_t value, char *to, size_t size)
{
    switch (size) {
    case 1:
        *(uint8_t *)to = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)to = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)to = (uint32_t)value;
        break;
    default:
        *(uint64_t *)to = value;
    }
}

#define DTYPE uint8
#define KIND 'u'
#define STORED uint8_t
#define UNSIGNED uint8_t
#define PAIR uint16_t
#include "reduce_integers_template.h"

#define DTYPE int8
#define KIND 'i'
#define STORED int8_t
#define UNSIGNED uint8_t
#define PAIR uint16_t
#include "reduce_integers_template.h"

#define DTYPE uint16
#define KIND 'u'
#define STORED uint16_t
#define UNSIGNED uint16_t
#define PAIR uint32_t
#include "reduce_integers_template.h"

#define DTYPE int16
#define KIND 'i'
#define STORED int16_t
#define UNSIGNED uint16_t
#define PAIR uint32_t
#include "reduce_integers_template.h"

#define DTYPE uint32
#define KIND 'u'
#define STORED uint32_t
#define UNSIGNED uint32_t
#define PAIR uint64_t
#include "reduce_integers_template.h"

#define DTYPE int32
#define KIND 'i'
#define STORED int32_t
#define UNSIGNED uint32_t
#define PAIR uint64_t
#include "reduce_integers_template.h"

#define DTYPE uint64
#define KIND 'u'
#define STORED uint64_t
#define UNSIGNED uint64_t
#define PAIR uint64_t
#include "reduce_integers_template.h"

#define DTYPE int64
#define KIND 'i'
#define STORED int64_t
#define UNSIGNED uint64_t
#define PAIR uint64_t
#include "reduce_integers_template.h"

static const struct reduction_kernel *const reductions[] = {
#if defined(HALF)
    &reduction_add_float16,
#endif
    &reduction_add_float32,
    &reduction_add_float64,
    &reduction_add_complex64,
    &reduction_add_complex128,
#define BOTH(dtype) &reduction_add_##dtype, &reduction_multiply_##dtype
    BOTH(uint8),
    BOTH(int8),
    BOTH(uint16),
    BOTH(int16),
    BOTH(uint32),
    BOTH(int32),
    BOTH(uint64),
    BOTH(int64),
#undef BOTH
    NULL,
};

#endif
