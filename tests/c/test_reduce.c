/* Every reduction of one instruction set against plain C: integers exactly, sums of floats against long
 * double, and bit by bit against the baseline's and against themselves when they are cut.
 * Usage: test_reduce [--quick] [ISA]; without an ISA all that this processor has. --quick computes the
 * large sums of contiguous elements only, for emulators and sanitizers. */
#include "expect.h"
#include "kernels/kernels.h"

#include <fenv.h>
#include <float.h>
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
               kernel->kind == 'i' || kernel->kind == 'u' ? (const void *)&bits
               : size == sizeof half                      ? (const void *)&half
               : size == sizeof single                    ? (const void *)&single
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
    return kernel->kind == 'i' ? (value ^ sign) - sign : value;
}

static uint64_t combined(const struct reduction_kernel *kernel, uint64_t a, uint64_t b)
{
    return kernel->op[0] == 'a' ? a + b : a * b;
}

static double sum_at(const struct reduction_kernel *kernel, const void *sums, size_t index)
{
    return kernel->sum_size / parts_of(kernel) == sizeof(double) ? ((const double *)sums)[index]
                                                                 : ((const float *)sums)[index];
}

/* Whether an accumulator is what n elements come to. */
static bool is_right(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                     ptrdiff_t n, const void *sums)
{
    if (kernel->kind == 'i' || kernel->kind == 'u') {
        uint64_t result = integer_at(data, kernel), found;
        for (ptrdiff_t k = 1; k < n; k++) {
            result = combined(kernel, result, integer_at(data + k * step, kernel));
        }
        memcpy(&found, sums, sizeof found);
        return found == result;
    }
    const size_t size = part_size(kernel);
    const double eps =
        kernel->sum_size / parts_of(kernel) == sizeof(double) ? DBL_EPSILON : FLT_EPSILON;
    bool right = true;
    for (size_t part = 0; part < parts_of(kernel); part++) {
        long double sum = 0, magnitude = 0;
        for (ptrdiff_t k = 0; k < n; k++) {
            const long double value = float_at(data + k * step + part * size, size);
            sum += value;
            magnitude += fabsl(value);
        }
        const long double depth = 20 + log2((double)n);
        const long double off = fabsl(sum_at(kernel, sums, part) - sum);
        right = right && off <= depth / 2 * eps * magnitude;
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

/* One size and step: in one go, several times, and cut into blocks that are combined in pairs. */
static void check_elements(const struct reduction_kernel *kernel,
                           const struct reduction_kernel *baseline, ptrdiff_t step, ptrdiff_t n)
{
    static _Alignas(64) char accumulators[LARGEST / 64 + 8][ACCUMULATORS_BYTES];
    _Alignas(64) char sum[16] = {0}, other[16] = {0}, each[32] = {0};
    const char *data = first_of(step, n);
    feclearexcept(FE_ALL_EXCEPT);
    kernel->reduce(data, step, n, accumulators[0]);
    kernel->fold(accumulators[0], sum);
    expect(fetestexcept(EXCEPTIONS) == 0, "%s, n %td: raises", name_of(kernel), n);
    expect(is_right(kernel, data, step, n, sum), "%s, step %td, n %td: wrong", name_of(kernel),
           step, n);

    kernel->reduce_each(data, step, n, 0, 2, each);
    expect(is_right(kernel, data, step, n, each), "%s, n %td: the first of two is wrong",
           name_of(kernel), n);
    expect(memcmp(each, each + kernel->sum_size, kernel->sum_size) == 0,
           "%s, n %td: the second of two differs", name_of(kernel), n);
    if (baseline != NULL) {
        baseline->reduce_each(data, step, n, 0, 1, other);
        expect(memcmp(each, other, kernel->sum_size) == 0,
               "%s, step %td, n %td: not the baseline's bits", name_of(kernel), step, n);
    }
    const ptrdiff_t block = kernel->leaf << random_below(3), blocks = (n + block - 1) / block;
    for (ptrdiff_t i = 0; i < blocks; i++) {
        const ptrdiff_t left = n - i * block;
        kernel->reduce(data + i * block * step, step, left < block ? left : block, accumulators[i]);
    }
    for (ptrdiff_t apart = 1; apart < blocks; apart *= 2) {
        for (ptrdiff_t i = 0; i + apart < blocks; i += 2 * apart) {
            kernel->combine(accumulators[i], accumulators[i + apart], ACCUMULATORS_BYTES);
        }
    }
    kernel->fold(accumulators[0], other);
    expect(memcmp(sum, other, kernel->sum_size) == 0, "%s, step %td, n %td: cut at %td differs",
           name_of(kernel), step, n, block);
}

static void check_rows(const struct reduction_kernel *kernel,
                       const struct reduction_kernel *baseline, ptrdiff_t rows, ptrdiff_t columns,
                       ptrdiff_t spread)
{
    static _Alignas(64) char sums[COLUMNS * 16 + 64], scratch[5 * ROW_BYTES + 64];
    const ptrdiff_t next = spread * (ptrdiff_t)kernel->item_size;
    const ptrdiff_t step = (columns + 3) * next;
    const size_t bytes = (size_t)columns * kernel->sum_size;
    memset(sums, 0x5a, sizeof sums);
    const bool from_memory = rows % 2 != 0;
    const size_t scratch_bytes = reduction_scratch_bytes(rows, bytes);
    memset(scratch + scratch_bytes, 0x5a, 64);
    kernel->reduce_rows(room, step, rows, next, columns, from_memory, scratch, sums);
    expect(scratch[scratch_bytes] == 0x5a, "%s, %td columns: writes past its scratch",
           name_of(kernel), columns);
    for (ptrdiff_t k = 0; k < columns; k += columns < 100 ? 1 : 7) {
        expect(is_right(kernel, room + k * next, step, rows, sums + (size_t)k * kernel->sum_size),
               "%s, %td x %td, spread %td: column %td is wrong", name_of(kernel), rows, columns,
               spread, k);
    }
    expect(sums[bytes] == 0x5a, "%s, %td columns: writes past the end", name_of(kernel), columns);
    if (baseline != NULL) {
        static _Alignas(64) char other[COLUMNS * 16];
        baseline->reduce_rows(room, step, rows, next, columns, !from_memory, scratch, other);
        expect(memcmp(sums, other, bytes) == 0, "%s, %td x %td: not the baseline's bits",
               name_of(kernel), rows, columns);
    }
}

/* What is stored is the sum, or what was there combined with it. */
static void check_store(const struct reduction_kernel *kernel)
{
    const bool is_integer = kernel->kind == 'i' || kernel->kind == 'u';
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size;
    _Alignas(64) char sums[64], out[256];
    kernel->reduce_each(room, item, 1, item, 3, sums);
    for (ptrdiff_t step = item; step <= 3 * item; step += item) {
        memset(out, 0, sizeof out);
        kernel->store(sums, 3, out, step, kernel->item_size, false);
        for (ptrdiff_t k = 0; k < 3; k++) {
            expect(memcmp(out + k * step, room + k * item, kernel->item_size) == 0,
                   "%s: stores something else", name_of(kernel));
        }
        kernel->store(sums, 3, out, step, kernel->item_size, true);
        for (ptrdiff_t k = 0; k < 3 && is_integer; k++) {
            const uint64_t value = integer_at(room + k * item, kernel);
            const uint64_t twice = combined(kernel, value, value);
            expect(memcmp(out + k * step, &twice, kernel->item_size) == 0,
                   "%s: stores something else on top", name_of(kernel));
        }
        for (ptrdiff_t k = 0; k < 3 * (ptrdiff_t)parts_of(kernel) && !is_integer; k++) {
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
    static char out[1000 * 8 * 3], in[1000 * 8 * 3];
    const ptrdiff_t step = spread * (ptrdiff_t)kernel->item_size;
    memcpy(in, room, sizeof in);
    memcpy(out, room, sizeof out);
    uint64_t carry = random_bits();
    kernel->accumulate(carry, in_place ? out : in, step, out, step, 1000);
    for (ptrdiff_t k = 0; k < 1000; k++) {
        carry = combined(kernel, carry, integer_at(in + k * step, kernel));
        expect(memcmp(out + k * step, &carry, kernel->item_size) == 0, "%s: element %td of a run",
               name_of(kernel), k);
    }
}

static void check(const struct reduction_kernel *kernel, const struct reduction_kernel *baseline,
                  bool quick)
{
    static const ptrdiff_t large[] = {1000, 4095, 4096, 4097, 16384, 20000, 65537, LARGEST};
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size;
    const ptrdiff_t steps[] = {item, -item, 2 * item, 3 * item, -2 * item, 0};
    for (int positive = 0; positive < 2; positive++) {
        fill(kernel, positive);
        for (int s = 0; s < 6; s++) {
            for (ptrdiff_t n = 1; n < 700; n += 1 + (ptrdiff_t)random_below(n < 70 ? 1 : 40)) {
                check_elements(kernel, baseline, steps[s], n);
            }
            for (int i = 0; i < 8 && !(quick && s > 0); i++) {
                check_elements(kernel, baseline, steps[s], large[i]);
            }
        }
        for (ptrdiff_t rows = 1; rows <= ROWS; rows++) {
            check_rows(kernel, baseline, rows, 1 + (ptrdiff_t)random_below(70), 1);
            check_rows(kernel, baseline, rows, 1 + (ptrdiff_t)random_below(70), 2);
        }
        check_rows(kernel, baseline, 17, COLUMNS, 1);
        check_rows(kernel, baseline, 3, COLUMNS, 2);
        check_rows(kernel, baseline, MOST_ROWS, 100, 1);
        check_rows(kernel, baseline, MOST_ROWS - 1, 33, 3);
    }
    check_store(kernel);
    for (int spread = 1; kernel->accumulate != NULL && spread <= 3; spread++) {
        check_accumulate(kernel, spread, false);
        check_accumulate(kernel, spread, true);
    }
}

static const struct reduction_kernel *same_of(const struct kernels *kernels,
                                              const struct reduction_kernel *other)
{
    for (const struct reduction_kernel *const *row = kernels->reductions; *row != NULL; row++) {
        if ((*row)->kind == other->kind && (*row)->item_size == other->item_size &&
            strcmp((*row)->op, other->op) == 0) {
            return *row;
        }
    }
    return NULL;
}

int main(int argc, char *argv[])
{
    const struct kernels *const baseline = kernels_of_isa(kernels_isa(0));
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
            check(*row, i > 0 ? same_of(baseline, *row) : NULL, quick);
            expect(reduction_kernel_find((*row)->op, (*row)->kind, (*row)->item_size) == *row,
                   "%s: not found among those of %s", name_of(*row), kernels->isa);
        }
        kernels_restrict(NULL);
    }
    return ran ? expect_result("reduce") : SKIPPED;
}
