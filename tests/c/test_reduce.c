/* Every reduction of one instruction set against plain C, bit by bit: sums of floats in NumPy's order.
 * Usage: test_reduce [--quick] [ISA]; without an ISA all that this processor has. --quick computes the
 * large sums of contiguous elements only, for emulators and sanitizers. */
#include "expect.h"
#include "kernels/kernels.h"
#include "upper_halves.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

enum {
    LARGEST = 70000,
    ROOM_BYTES = LARGEST * 16 * 3 + 64,
    COLUMNS = 9000,
    ROWS = 40,
    EXCEPTIONS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW
};

static _Alignas(64) char room[ROOM_BYTES];

static float half_to_float(uint16_t half)
{
    const float magnitude = (half & 0x7c00) == 0
                                ? ldexpf((float)(half & 0x3ff), -24)
                                : ldexpf((float)((half & 0x3ff) | 0x400), (half >> 10 & 31) - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

static size_t parts_of(const struct reduction_kernel *kernel)
{
    return kernel->kind == 'c' ? 2 : 1;
}

static bool is_integer(const struct reduction_kernel *kernel)
{
    return strchr("biu", kernel->kind) != NULL;
}

static size_t part_size(const struct reduction_kernel *kernel)
{
    return kernel->item_size / parts_of(kernel);
}

/* Numbers of all magnitudes between 2^-8 and 2^8, of both signs or of one. */
static void fill(const struct reduction_kernel *kernel, bool positive)
{
    const size_t size = part_size(kernel);
    for (size_t at = 0; at + size <= sizeof room; at += size) {
        const uint64_t bits = random_bits();
        const bool negative = !positive && bits % 2 != 0;
        const float value = ldexpf((float)(1024 + bits % 1024) / 1024, (int)(bits >> 32) % 16 - 8);
        const float single = negative ? -value : value;
        const double twice = (negative ? -1 : 1) * (value + (double)(bits >> 40) * 0x1p-40);
        const uint16_t half = (uint16_t)(bits % 0x2000 + 0x2800 + (negative ? 0x8000 : 0));
        memcpy(room + at,
               is_integer(kernel)      ? (const void *)&bits
               : size == sizeof half   ? (const void *)&half
               : size == sizeof single ? (const void *)&single
                                       : (const void *)&twice,
               size);
    }
}

static long double float_at(const char *part, size_t size)
{
    union {
        uint16_t half;
        float single;
        double twice;
    } value;
    memcpy(&value, part, size);
    return size == sizeof value.half     ? half_to_float(value.half)
           : size == sizeof value.single ? value.single
                                         : value.twice;
}

static uint64_t integer_at(const char *element, const struct reduction_kernel *kernel)
{
    uint64_t value = 0;
    memcpy(&value, element, kernel->item_size); /* both architectures are little-endian */
    const uint64_t sign = (uint64_t)1 << (8 * kernel->item_size - 1);
    return kernel->kind == 'b' ? value != 0 : kernel->kind == 'i' ? (value ^ sign) - sign : value;
}

static uint64_t combined(const struct reduction_kernel *kernel, uint64_t a, uint64_t b)
{
    return kernel->op[0] == 'a' ? a + b : a * b;
}

/* ---- NumPy's order, in plain C ---- */

/* The sum of two floats is rounded to the accumulator's type; doing so after a sum of doubles is the same. */
static double plus(const struct reduction_kernel *kernel, double a, double b)
{
    const bool is_double = kernel->sum_size / parts_of(kernel) == sizeof(double);
    return is_double ? a + b : (float)(a + b);
}

/* Of one part of n elements, of which eight parts are added side by side. */
static double pairwise(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                       ptrdiff_t n)
{
    const ptrdiff_t parts = (ptrdiff_t)parts_of(kernel), lanes = 8 / parts;
    const size_t size = part_size(kernel);
    if (n * parts > 128) {
        const ptrdiff_t half = (n * parts / 2 - n * parts / 2 % 8) / parts;
        return plus(kernel, pairwise(kernel, data, step, half),
                    pairwise(kernel, data + half * step, step, n - half));
    }
    double result = -0.0, lane[8];
    ptrdiff_t k = 0;
    if (n >= lanes) {
        for (; k + lanes <= n; k += lanes) {
            for (ptrdiff_t i = 0; i < lanes; i++) {
                const double value = (double)float_at(data + (k + i) * step, size);
                lane[i] = k == 0 ? value : plus(kernel, lane[i], value);
            }
        }
        for (ptrdiff_t width = lanes; width > 1; width /= 2) { /* neighbours first */
            for (ptrdiff_t i = 0; i < width / 2; i++) {
                lane[i] = plus(kernel, lane[2 * i], lane[2 * i + 1]);
            }
        }
        result = lane[0];
    }
    for (; k < n; k++) {
        result = plus(kernel, result, (double)float_at(data + k * step, size));
    }
    return result;
}

/* To the values of a half, which has eleven bits. */
static double round_to_half(double x)
{
    int exponent;
    frexp(x, &exponent);
    const double unit = ldexp(1, exponent - 11 > -24 ? exponent - 11 : -24);
    return nearbyint(x / unit) * unit;
}

/* Of one part of a column, row after row. */
static double one_by_one(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                         ptrdiff_t n)
{
    const size_t size = part_size(kernel);
    double result = (double)float_at(data, size);
    for (ptrdiff_t k = 1; k < n; k++) {
        result = plus(kernel, result, (double)float_at(data + k * step, size));
        result = size == 2 ? round_to_half(result) : result;
    }
    return result;
}

static uint64_t combined_all(const struct reduction_kernel *kernel, const char *data,
                             ptrdiff_t step, ptrdiff_t n)
{
    uint64_t result = integer_at(data, kernel);
    for (ptrdiff_t k = 1; k < n; k++) {
        result = combined(kernel, result, integer_at(data + k * step, kernel));
    }
    return result;
}

/* Whether an accumulator is what n elements come to, `as_row` if they are one row, else a column. */
static bool is_right(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                     ptrdiff_t n, bool as_row, const char *found)
{
    const size_t size = kernel->sum_size / parts_of(kernel);
    bool right = true;
    for (size_t part = 0; part < parts_of(kernel); part++) {
        const char *first = data + part * part_size(kernel);
        const uint64_t all = kernel->any_order ? combined_all(kernel, first, step, n) : 0;
        const double twice = kernel->any_order ? 0
                             : as_row          ? pairwise(kernel, first, step, n)
                                               : one_by_one(kernel, first, step, n);
        const float single = (float)twice;
        const void *expected = kernel->any_order      ? (const void *)&all
                               : size == sizeof twice ? (const void *)&twice
                                                      : (const void *)&single;
        right = right && memcmp(found + part * size, expected, size) == 0;
    }
    return right;
}

static const char *name_of(const struct reduction_kernel *kernel)
{
    static char name[64];
    snprintf(name, sizeof name, "%s %c%zu", kernel->op, kernel->kind, kernel->item_size);
    return name;
}

static const char *first_of(ptrdiff_t step, ptrdiff_t n)
{
    return step < 0 ? room - step * (n - 1) : room;
}

/* One size and step: twice in one call, and in halves. */
static void check_elements(const struct reduction_kernel *kernel, ptrdiff_t step, ptrdiff_t n)
{
    _Alignas(64) char each[32] = {0};
    const char *data = first_of(step, n);
    feclearexcept(FE_ALL_EXCEPT);
    kernel->reduce_each(kernel, data, step, n, 0, 2, false, each);
    expect_clean_upper_halves(name_of(kernel));
    expect(fetestexcept(EXCEPTIONS) == 0, "%s, n %td: raises", name_of(kernel), n);
    expect(is_right(kernel, data, step, n, true, each), "%s, step %td, n %td: wrong",
           name_of(kernel), step, n);
    expect(memcmp(each, each + kernel->sum_size, kernel->sum_size) == 0,
           "%s, n %td: the second of two differs", name_of(kernel), n);
    const int parts = reduction_parts(kernel);
    if (n * parts > REDUCTION_LEAF_PARTS) {
        char other[16];
        const ptrdiff_t half = reduction_half(n * parts) / parts;
        kernel->reduce_each(kernel, data, step, half, 0, 1, true, other);
        kernel->reduce_each(kernel, data + half * step, step, n - half, 0, 1, false,
                            each + kernel->sum_size);
        kernel->combine(kernel, other, each + kernel->sum_size, kernel->sum_size);
        expect(memcmp(each, other, kernel->sum_size) == 0, "%s, step %td, n %td: halves differ",
               name_of(kernel), step, n);
    }
}

/* In one call, and in two, the second of which goes on where the first one ended. */
static void check_rows(const struct reduction_kernel *kernel, ptrdiff_t rows, ptrdiff_t columns,
                       ptrdiff_t spread)
{
    static _Alignas(64) char sums[COLUMNS * 16 + 64], other[COLUMNS * 16 + 64];
    const ptrdiff_t next = spread * (ptrdiff_t)kernel->item_size;
    const ptrdiff_t step = (columns + 3) * next,
                    first = 1 + (ptrdiff_t)random_below((uint64_t)rows);
    const size_t bytes = (size_t)columns * kernel->sum_size;
    memset(sums, 0x5a, sizeof sums);
    const bool from_memory = rows % 2 != 0;
    kernel->reduce_rows(kernel, room, step, rows, next, columns, from_memory, false, sums);
    expect_clean_upper_halves(name_of(kernel));
    for (ptrdiff_t k = 0; k < columns; k += columns < 100 ? 1 : 7) {
        expect(is_right(kernel, room + k * next, step, rows, false,
                        sums + (size_t)k * kernel->sum_size),
               "%s, %td x %td, spread %td: column %td is wrong", name_of(kernel), rows, columns,
               spread, k);
    }
    expect(sums[bytes] == 0x5a, "%s, %td columns: writes past the end", name_of(kernel), columns);
    kernel->reduce_rows(kernel, room, step, first, next, columns, from_memory, false, other);
    if (rows > first) {
        kernel->reduce_rows(kernel, room + first * step, step, rows - first, next, columns,
                            from_memory, true, other);
    }
    expect(memcmp(sums, other, bytes) == 0, "%s, %td x %td: cut at %td differs", name_of(kernel),
           rows, columns, first);
}

/* Segments of all lengths, of none, and of lengths that are negative: the first element, combined with the
 * reduction of the others. */
static void check_segments(const struct reduction_kernel *kernel, ptrdiff_t step)
{
    enum { SEGMENTS = 60, APART = 3 * 16 };
    static _Alignas(64) char out[(SEGMENTS + 1) * APART];
    ptrdiff_t bounds[SEGMENTS + 1] = {0};
    for (int k = 1; k <= SEGMENTS; k++) {
        const ptrdiff_t length = (ptrdiff_t)random_below(k % 4 != 0 ? 30 : 700) - 3;
        bounds[k] = bounds[k - 1] + (bounds[k - 1] + length < 0 ? 0 : length);
    }
    const char *data = first_of(step, 20000);
    const ptrdiff_t apart = APART - (step < 0 ? 16 : 0);
    memset(out, 0x5a, sizeof out);
    kernel->reduce_segments(kernel, data, step, bounds, SEGMENTS, false, out, apart,
                            kernel->item_size);
    expect_clean_upper_halves(name_of(kernel));
    for (int k = 0; k < SEGMENTS; k++) {
        const char *first = data + bounds[k] * step;
        const ptrdiff_t n = bounds[k + 1] - bounds[k];
        _Alignas(16) char expected[16];
        const uint64_t alone = kernel->kind == 'b' ? integer_at(first, kernel) : 0;
        memcpy(expected, kernel->kind == 'b' ? (const void *)&alone : first, kernel->item_size);
        if (n > 1) {
            _Alignas(16) char rest[16];
            kernel->reduce_each(kernel, first + step, step, n - 1, 0, 1, true, rest);
            kernel->store(kernel, rest, 1, expected, 0, kernel->item_size, true);
        }
        expect(memcmp(out + k * apart, expected, kernel->item_size) == 0,
               "%s, step %td: segment %d of %td elements", name_of(kernel), step, k, n);
        expect(out[k * apart + (ptrdiff_t)kernel->item_size] == 0x5a, "%s: writes past a result",
               name_of(kernel));
    }
}

/* What is stored is the sum, or what was there combined with it. */
static void check_store(const struct reduction_kernel *kernel)
{
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size;
    _Alignas(64) char sums[64], out[256];
    kernel->reduce_each(kernel, room, item, 1, item, 3, false, sums);
    for (ptrdiff_t step = item; step <= 3 * item; step += item) {
        memset(out, 0, sizeof out);
        kernel->store(kernel, sums, 3, out, step, kernel->item_size, false);
        for (ptrdiff_t k = 0; k < 3; k++) {
            const bool is_bool = kernel->kind == 'b';
            const uint64_t value = is_bool ? integer_at(room + k * item, kernel) : 0;
            const void *wanted = is_bool ? (const void *)&value : room + k * item;
            expect(memcmp(out + k * step, wanted, kernel->item_size) == 0,
                   "%s: stores something else", name_of(kernel));
        }
        kernel->store(kernel, sums, 3, out, step, kernel->item_size, true);
        for (ptrdiff_t k = 0; k < 3 && is_integer(kernel); k++) {
            const uint64_t value = integer_at(room + k * item, kernel);
            const uint64_t twice = combined(kernel, value, value);
            expect(memcmp(out + k * step, &twice, kernel->item_size) == 0,
                   "%s: stores something else on top", name_of(kernel));
        }
        for (ptrdiff_t k = 0; k < 3 * (ptrdiff_t)parts_of(kernel) && !is_integer(kernel); k++) {
            const size_t parts = parts_of(kernel), size = part_size(kernel);
            const size_t part = (size_t)k % parts * size;
            const long double found = float_at(out + k / (ptrdiff_t)parts * step + part, size);
            const long double value = float_at(room + k * (ptrdiff_t)size, size);
            expect(found == 2 * value, "%s: adds something else", name_of(kernel));
        }
    }
}

static void check_accumulate(const struct reduction_kernel *kernel, ptrdiff_t spread, bool in_place)
{
    enum { ELEMENTS = 1003 };
    static char out[ELEMENTS * 8 * 3], in[ELEMENTS * 8 * 3];
    const ptrdiff_t step = spread * (ptrdiff_t)kernel->item_size;
    memcpy(in, room, sizeof in);
    memcpy(out, room, sizeof out);
    const uint64_t before = random_bits();
    uint64_t carry = integer_at((const char *)&before, kernel);
    kernel->accumulate((const char *)&before, in_place ? out : in, step, out, step, ELEMENTS);
    for (ptrdiff_t k = 0; k < ELEMENTS; k++) {
        carry = combined(kernel, carry, integer_at(in + k * step, kernel));
        expect(memcmp(out + k * step, &carry, kernel->item_size) == 0, "%s: element %td of a run",
               name_of(kernel), k);
    }
}

static void check(const struct reduction_kernel *kernel, bool quick)
{
    static const ptrdiff_t large[] = {1000, 4095, 4096, 4097, 16384, 20000, 65537, LARGEST};
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size;
    const ptrdiff_t steps[] = {item, -item, 2 * item, 3 * item, -2 * item, 0};
    for (int positive = 0; positive < 2; positive++) {
        fill(kernel, positive);
        for (int s = 0; s < 6; s++) {
            for (ptrdiff_t n = 1; n < 700; n += 1 + (ptrdiff_t)random_below(n < 70 ? 1 : 40)) {
                check_elements(kernel, steps[s], n);
            }
            check_segments(kernel, steps[s]);
            for (int i = 0; i < 8 && !(quick && s > 0); i++) {
                check_elements(kernel, steps[s], large[i]);
            }
        }
        for (ptrdiff_t rows = 1; rows <= ROWS; rows++) {
            check_rows(kernel, rows, 1 + (ptrdiff_t)random_below(70), 1);
            check_rows(kernel, rows, 1 + (ptrdiff_t)random_below(70), 2);
        }
        check_rows(kernel, 17, COLUMNS, 1);
        check_rows(kernel, 3, COLUMNS, 2);
        check_rows(kernel, 256, 100, 1);
        check_rows(kernel, 255, 33, 3);
        check_rows(kernel, 11, 1500, 1);
    }
    check_store(kernel);
    for (int spread = 1; kernel->accumulate != NULL && spread <= 3; spread++) {
        check_accumulate(kernel, spread, false);
        check_accumulate(kernel, spread, true);
    }
}

int main(int argc, char *argv[])
{
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const char *only = argc > 1 + quick ? argv[1 + quick] : NULL;
    bool ran = false;
    for (int i = 0; kernels_isa(i) != NULL; i++) {
        const struct kernels *kernels = kernels_of_isa(kernels_isa(i));
        if (kernels == NULL || *kernels->reductions == NULL ||
            (only != NULL && strcmp(only, kernels->isa) != 0)) {
            continue;
        }
        ran = true;
        kernels_restrict(kernels->isa);
        for (const struct reduction_kernel *const *row = kernels->reductions; *row != NULL; row++) {
            check(*row, quick);
            expect(reduction_kernel_find((*row)->op, (*row)->kind, (*row)->item_size) == *row,
                   "%s: not found among those of %s", name_of(*row), kernels->isa);
        }
        kernels_restrict(NULL);
    }
    return ran ? expect_result("reduce") : SKIPPED;
}
