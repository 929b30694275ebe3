/* All kernels of one instruction set but matrix products; compiled once per ISA with -DISA=<name>, and
 * with -DHALF_ONLY or -DMATMUL_ONLY where the others would be no better than those of the ISA below.
 * Everything is static but the table: two copies of an inline function, compiled with different
 * flags, must never meet in the linker. */
#include "kernels.h"
#include "kernels/reduction/reduction_kernels.h"
#include "vector.h"

#ifdef MATMUL_ONLY
static const struct kernel *const rows[] = {NULL};
#else
#ifndef HALF_ONLY
#include "kernels/elementwise/convert.h"

#define DTYPE uint8
#define MIXED_WITH TO_UINT8
#define CLASS INTEGER
#define KIND 'i'
#define ELEMENT uint8_t
#define WIDE unsigned
#include "kernels/elementwise/binary_template.h"

#define DTYPE uint16
#define MIXED_WITH TO_UINT16
#define MIXED_PAIRS PAIRS_UINT16
#define CLASS INTEGER
#define KIND 'i'
#define ELEMENT uint16_t
#define WIDE unsigned
#include "kernels/elementwise/binary_template.h"

#define DTYPE uint32
#define MIXED_WITH TO_UINT32
#define MIXED_PAIRS PAIRS_UINT32
#define CLASS INTEGER
#define KIND 'i'
#define ELEMENT uint32_t
#define WIDE uint32_t
#include "kernels/elementwise/binary_template.h"

#define DTYPE uint64
#define MIXED_WITH TO_UINT64
#define MIXED_PAIRS PAIRS_UINT64
#define CLASS INTEGER
#define KIND 'i'
#define ELEMENT uint64_t
#define WIDE uint64_t
#include "kernels/elementwise/binary_template.h"

#define DTYPE float32
#define MIXED_WITH MIXED_FLOAT32
#define CLASS FLOAT
#define KIND 'f'
#define ELEMENT float
#define WIDE float
#include "kernels/elementwise/binary_template.h"

#define DTYPE float64
#define MIXED_WITH MIXED_FLOAT64
#define MIXED_PAIRS PAIRS_FLOAT64
#define CLASS FLOAT
#define KIND 'f'
#define ELEMENT double
#define WIDE double
#include "kernels/elementwise/binary_template.h"

#endif

#include "kernels/elementwise/half_kernels.h"

#ifndef HALF_ONLY
#include "kernels/elementwise/quotients.h"
#endif

static const struct kernel *const rows[] = {
#ifndef HALF_ONLY
    rows_uint8, rows_uint16, rows_uint32, rows_uint64, rows_float32, rows_float64, rows_quotients,
#endif
#if HAS_HALF
    rows_half,
#endif
    NULL,
};
#endif

static const struct reduction_kernel *const reductions[] = {
#if !defined(HALF_ONLY) && !defined(MATMUL_ONLY)
#if HAS_HALF_SUMS
    &REDUCTION(add, float16),
#endif
    &REDUCTION(add, float32),
    &REDUCTION(add, float64),
    &REDUCTION(add, complex64),
    &REDUCTION(add, complex128),
    &REDUCTION(add, bool8),
    &REDUCTION(add, int8),
    &REDUCTION(add, int16),
    &REDUCTION(add, int32),
    &REDUCTION(add, int64),
    &REDUCTION(add, uint8),
    &REDUCTION(add, uint16),
    &REDUCTION(add, uint32),
    &REDUCTION(add, uint64),
    &REDUCTION(multiply, bool8),
    &REDUCTION(multiply, int8),
    &REDUCTION(multiply, int16),
    &REDUCTION(multiply, int32),
    &REDUCTION(multiply, int64),
    &REDUCTION(multiply, uint8),
    &REDUCTION(multiply, uint16),
    &REDUCTION(multiply, uint32),
    &REDUCTION(multiply, uint64),
#endif
    NULL,
};

#if defined(HALF_ONLY) || defined(MATMUL_ONLY)
static const struct element_conversion conversions[] = {{0, 0, 0, 0, NULL}};
#endif

const struct kernels JOIN(kernels, ISA) = {STRING(ISA), rows, conversions, reductions};
