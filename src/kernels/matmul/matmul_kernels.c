/* Matrix products of one instruction set; compiled once per ISA with -DISA=<name>, and with
 * -DHALF_ONLY where they would be no better than those of the ISA below.
 * Everything is static but the table, as in elementwise.c. */
#include "matmul_kernels.h"

#include "kernels/vector.h"

#ifdef HALF_ONLY
static const struct matmul_kernel *const all_rows[] = {NULL};
#else
#include "kernels/half_convert.h"

#include "matmul_bits.h"
#include "matmul_tiles.h"
#include "matmul_transpose.h"

/* ---- integers ---- */

#define PLAIN_PRODUCT(c, a, b) (c) + (a) * (b)

#define DTYPE uint8
#define ELEMENT uint8_t
#define WIDE unsigned
#define ADD_PRODUCT PLAIN_PRODUCT
#define ADD_PRODUCTS PLAIN_PRODUCT
#define NARROWEST 4
#define WIDEST VECTOR_BYTES
#define SHORT_LANE uint16_t
#include "matmul_direct.h"

#define DTYPE uint16
#define ELEMENT uint16_t
#define WIDE unsigned
#define ADD_PRODUCT PLAIN_PRODUCT
#define ADD_PRODUCTS PLAIN_PRODUCT
#define NARROWEST 8
#define WIDEST VECTOR_BYTES
#define SHORT_LANE uint16_t
#include "matmul_direct.h"

#define DTYPE uint32
#define ELEMENT uint32_t
#define WIDE uint32_t
#define ADD_PRODUCT PLAIN_PRODUCT
#define ADD_PRODUCTS PLAIN_PRODUCT
#define NARROWEST 8
#define WIDEST VECTOR_BYTES
#define SHORT_LANE uint32_t
#include "matmul_direct.h"

#define DTYPE uint64
#define ELEMENT uint64_t
#define WIDE uint64_t
#define ADD_PRODUCT PLAIN_PRODUCT
#define ADD_PRODUCTS PLAIN_PRODUCT
#define NARROWEST 16
#define WIDEST VECTOR_BYTES
#define SHORT_LANE uint64_t
#include "matmul_direct.h"

#define DTYPE uint8
#define ELEMENT uint8_t
#define LANE LANE_8_BITS
#define GROUP GROUP_8_BITS
#define ROWS ROWS_8_BITS
#define VECTORS TILE_VECTORS
#define A_WORDS ROW_WORDS_8_BITS
#define B_WORDS 1
#define ENCODE_A ENCODE_ROWS_8_BITS
#define ENCODE_B ENCODE_8_BITS
#define SUMS 1
#define STEPS 1
#define STEP STEP_8_BITS
#define TOTAL TOTAL_8_BITS
#define SUM uint8_t
#define A_AS_WORDS (GROUP_8_BITS == 4 && ROW_WORDS_8_BITS == 1)
#define B_AS_WORDS (GROUP_8_BITS == 4)
#define IN_PAIRS 0
#define IN_ORDER 0
#define KIND 'i'
#define FINISH NULL
#include "matmul_dtype.h"

#define DTYPE uint16
#define ELEMENT uint16_t
#define LANE LANE_16_BITS
#define GROUP GROUP_16_BITS
#define ROWS TILE_ROWS
#define VECTORS TILE_VECTORS
#define A_WORDS 1
#define B_WORDS 1
#define ENCODE_A ENCODE_16_BITS
#define ENCODE_B ENCODE_16_BITS
#define SUMS 1
#define STEPS 1
#define STEP STEP_16_BITS
#define TOTAL ONLY
#define SUM uint16_t
#define A_AS_WORDS (GROUP_16_BITS == 2)
#define B_AS_WORDS (GROUP_16_BITS == 2)
#define IN_PAIRS 0
#define IN_ORDER 0
#define KIND 'i'
#define FINISH NULL
#include "matmul_dtype.h"

#define DTYPE uint32
#define ELEMENT uint32_t
#define LANE uint32_t
#define GROUP GROUP_32_BITS
#define ROWS ROWS_32_BITS
#define VECTORS VECTORS_32_BITS
#define A_WORDS WORDS_32_BITS
#define B_WORDS WORDS_32_BITS
#define ENCODE_A ENCODE_ROWS_32_BITS
#define ENCODE_B ENCODE_COLUMNS_32_BITS
#define SUMS SUMS_32_BITS
#define STEPS STEPS_32_BITS
#define STEP STEP_32_BITS
#define TOTAL TOTAL_32_BITS
#define SUM uint32_t
#define A_AS_WORDS 0
#define B_AS_WORDS 0
#define IN_PAIRS PAIRS_32_BITS
#define IN_ORDER 0
#define KIND 'i'
#define FINISH NULL
#include "matmul_dtype.h"

#define DTYPE uint64
#define ELEMENT uint64_t
#define LANE uint64_t
#define GROUP GROUP_64_BITS
#define ROWS ROWS_64_BITS
#define VECTORS VECTORS_64_BITS
#define A_WORDS WORDS_64_BITS
#define B_WORDS WORDS_64_BITS
#define ENCODE_A ENCODE_ROWS_64_BITS
#define ENCODE_B ENCODE_COLUMNS_64_BITS
#define SUMS SUMS_64_BITS
#define STEPS 1
#define STEP STEP_64_BITS
#define TOTAL TOTAL_64_BITS
#define SUM uint64_t
#define A_AS_WORDS 0
#define B_AS_WORDS 0
#define IN_PAIRS PAIRS_64_BITS
#define IN_ORDER 0
#define KIND 'i'
#define FINISH NULL
#include "matmul_dtype.h"

/* ---- half: packed as floats ---- */

static void finish_half(const char *sums, ptrdiff_t sums_row, char *c, ptrdiff_t c_row,
                        ptrdiff_t c_column, ptrdiff_t rows, ptrdiff_t columns)
{
    int flags = 0;
    for (ptrdiff_t row = 0; row < rows; row++) {
        const float *from = (const float *)(sums + row * sums_row);
        char *to = c + row * c_row;
        for (ptrdiff_t column = 0; column < columns; column += HALF_BLOCK) {
            const ptrdiff_t left = columns - column;
            if (left >= HALF_BLOCK && c_column == sizeof(uint16_t)) {
                floats_to_halves(from + column, (uint16_t *)(to + column * c_column), &flags);
                continue;
            }
            for (ptrdiff_t i = column; i < columns && i < column + HALF_BLOCK; i++) {
                uint32_t bits;
                memcpy(&bits, from + i, sizeof bits);
                *(uint16_t *)(to + i * c_column) = float_to_half(bits, &flags);
            }
        }
    }
    if (flags != 0) {
        feraiseexcept(flags);
    }
}

static void direct_half(const struct product *x)
{
    for (ptrdiff_t row = 0; row < x->m; row++) {
        for (ptrdiff_t column = 0; column < x->n; column++) {
            const char *a = x->a.data + row * x->a.row_step,
                       *b = x->b.data + column * x->b.column_step;
            float sum = 0;
            for (ptrdiff_t k = 0; k < x->k; k++) {
                const float y = half_to_float(*(const uint16_t *)(b + k * x->b.row_step));
                sum = ADD_PRODUCT_FLOAT(
                    sum, half_to_float(*(const uint16_t *)(a + k * x->a.column_step)), y);
            }
            finish_half((const char *)&sum, 0,
                        x->c.data + row * x->c.row_step + column * x->c.column_step, 0, 0, 1, 1);
        }
    }
}

#define DTYPE half
#define ELEMENT uint16_t
#define LANE float
#define GROUP 1
#define ROWS TILE_ROWS
#define VECTORS TILE_VECTORS
#define A_WORDS 1
#define B_WORDS 1
#define PACKING "matmul_pack_half.h"
#define SUMS 1
#define STEPS 1
#define STEP STEP_FLOAT
#define TOTAL ONLY
#define SUM float
#define A_AS_WORDS 0
#define B_AS_WORDS 0
#define IN_PAIRS 0
#define IN_ORDER 1
#define KIND 'e'
#define FINISH finish_half
#define STACK NULL
#include "matmul_dtype.h"

/* ---- float and double: only what is too small for BLAS ---- */

#define DTYPE float32
#define ELEMENT float
#define WIDE float
#define ADD_PRODUCT ADD_PRODUCT_FLOAT
#define ADD_PRODUCTS ADD_PRODUCTS_FLOAT
#define NARROWEST 16
#define WIDEST WIDEST_FLOAT
#define SHORT_LANE float
#include "matmul_direct.h"

#define DTYPE float64
#define ELEMENT double
#define WIDE double
#define ADD_PRODUCT ADD_PRODUCT_DOUBLE
#define ADD_PRODUCTS ADD_PRODUCTS_DOUBLE
#define NARROWEST 16
#define WIDEST WIDEST_FLOAT
#define SHORT_LANE double
#include "matmul_direct.h"

/* They have no tiles. */
static const struct matmul_kernel matmul_float32 = {.kind = 'f',
                                                    .item_size = sizeof(float),
                                                    .direct = direct_float32,
                                                    .stack_row_bytes = VECTOR_BYTES,
                                                    .stack = stack_float32};
static const struct matmul_kernel matmul_float64 = {.kind = 'f',
                                                    .item_size = sizeof(double),
                                                    .direct = direct_float64,
                                                    .stack_row_bytes = VECTOR_BYTES,
                                                    .stack = stack_float64};

/* ---- long double: no instruction set adds anything to the baseline ---- */

#if !defined(__AVX2__)
#include "matmul_long_double.h"
#endif

static const struct matmul_bits truth_values = {pack_bits, multiply_bits, dots_of_bits,
                                                direct_bool};
static const struct matmul_kernel matmul_bool = {
    .kind = 'b', .item_size = 1, .bits = &truth_values};

static const struct matmul_kernel *const all_rows[] = {
    &matmul_bool,
    &matmul_uint8,
    &matmul_uint16,
    &matmul_uint32,
    &matmul_uint64,
    &matmul_half,
    &matmul_float32,
    &matmul_float64,
#if !defined(__AVX2__)
    &matmul_long_double,
#endif
    NULL,
};

#endif

const struct matmul_kernels JOIN(matmul, ISA) = {.rows = all_rows};
