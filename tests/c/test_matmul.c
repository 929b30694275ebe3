/* Every matrix kernel of one instruction set against three nested loops.
 * Usage: test_matmul [--time | --quick] [ISA]; without an ISA all that this processor has. */
#include "elements.h"
#include "expect.h"
#include "kernels/kernels.h"
#include "upper_halves.h"

#include <fenv.h>
#include <math.h>
#include <string.h>
#include <time.h>

#ifdef AMX_IN_SOFTWARE
#define IN_SOFTWARE(dtype) matmul_##dtype##_amx_in_software
extern const struct matmul_kernel IN_SOFTWARE(uint8), IN_SOFTWARE(uint16), IN_SOFTWARE(uint32),
    IN_SOFTWARE(uint64);
static const struct matmul_kernel *const in_software[] = {
    &IN_SOFTWARE(uint8), &IN_SOFTWARE(uint16), &IN_SOFTWARE(uint32), &IN_SOFTWARE(uint64)};
#endif

enum { LARGEST_ROOM = 1 << 20, GUARD = 256, TIMED_K = 512 };

static _Alignas(64) char room_a[LARGEST_ROOM], room_b[LARGEST_ROOM], room_c[LARGEST_ROOM];
static _Alignas(64) char expected[LARGEST_ROOM], panel_a[LARGEST_ROOM], panel_b[LARGEST_ROOM];
static _Alignas(64) char sums[LARGEST_ROOM];

static void fill(char *room, size_t bytes, const struct matmul_kernel *kernel)
{
    /* Sums of a few products of these are exact in float. */
    static const double halves[] = {0, -0.0, 1, -1, 2, 0.5, 3, -5, 0.25, 1.5};
    for (size_t at = 0; at + kernel->item_size <= bytes; at += kernel->item_size) {
        const uint64_t bits = random_bits();
        const double value = (double)(int)random_below(64) - 32;
        if (kernel->kind == 'i' || kernel->kind == 'b') {
            memcpy(room + at, &bits, kernel->item_size);
        } else {
            write_element(kernel, room + at,
                          kernel->kind == 'e' ? halves[random_below(10)] : value);
        }
    }
}

static void reference_element(const struct matmul_kernel *kernel, const char *a, const char *b,
                              ptrdiff_t a_k, ptrdiff_t b_k, ptrdiff_t k, char *c)
{
    uint64_t integer = 0;
    double real = 0;
    for (ptrdiff_t i = 0; i < k; i++) {
        uint64_t x = 0, y = 0;
        if (kernel->kind == 'i') {
            memcpy(&x, a + i * a_k, kernel->item_size);
            memcpy(&y, b + i * b_k, kernel->item_size);
            integer += x * y;
        } else {
            real += read_element(kernel, a + i * a_k) * read_element(kernel, b + i * b_k);
        }
    }
    if (kernel->kind == 'i') {
        memcpy(c, &integer, kernel->item_size);
    } else {
        write_element(kernel, c, real);
    }
}

static void reference(const struct matmul_kernel *kernel, const struct product *x)
{
    for (ptrdiff_t i = 0; i < x->m; i++) {
        for (ptrdiff_t j = 0; j < x->n; j++) {
            reference_element(kernel, x->a.data + i * x->a.row_step,
                              x->b.data + j * x->b.column_step, x->a.column_step, x->b.row_step,
                              x->k, x->c.data + i * x->c.row_step + j * x->c.column_step);
        }
    }
}

static bool same_elements(const struct matmul_kernel *kernel, const char *found, const char *wanted,
                          size_t bytes)
{
    const size_t size = kernel->item_size;
    for (size_t at = 0; at + size <= bytes; at += size) {
        if (memcmp(found + at, wanted + at, element_bytes(kernel)) != 0) {
            return false;
        }
    }
    return true;
}

/* A matrix whose rows, or columns, or neither, are next to each other. */
static void random_layout(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t size, ptrdiff_t *row,
                          ptrdiff_t *column, ptrdiff_t *offset)
{
    const ptrdiff_t gap = 1 + (ptrdiff_t)random_below(2), pad = (ptrdiff_t)random_below(3);
    if (random_below(2) != 0) {
        *column = gap * size;
        *row = (columns * gap + pad) * size;
    } else {
        *row = gap * size;
        *column = (rows * gap + pad) * size;
    }
    *offset = 0;
    if (random_below(4) == 0) {
        *offset += *row * (rows > 0 ? rows - 1 : 0);
        *row = -*row;
    }
    if (random_below(4) == 0) {
        *offset += *column * (columns > 0 ? columns - 1 : 0);
        *column = -*column;
    }
}

static struct product random_matrices(ptrdiff_t m, ptrdiff_t k, ptrdiff_t n, ptrdiff_t size)
{
    struct product x = {.batch = 1, .m = m, .k = k, .n = n};
    ptrdiff_t offset;
    random_layout(m, k, size, &x.a.row_step, &x.a.column_step, &offset);
    x.a.data = room_a + GUARD + offset;
    random_layout(k, n, size, &x.b.row_step, &x.b.column_step, &offset);
    x.b.data = room_b + GUARD + offset;
    random_layout(m, n, size, &x.c.row_step, &x.c.column_step, &offset);
    x.c.data = room_c + GUARD + offset;
    return x;
}

static void begin_tiles(const struct matmul_kernel *kernel)
{
    if (kernel->begin != NULL) {
        kernel->begin();
    }
}

static void end_tiles(const struct matmul_kernel *kernel)
{
    if (kernel->end != NULL) {
        kernel->end();
    }
}

/* All of a product as one tile: packed, computed in two parts of k, and finished. */
static void packed_product(const struct matmul_kernel *kernel, const struct product *x)
{
    const ptrdiff_t half_k = x->k / 2 / kernel->group * kernel->group;
    const ptrdiff_t tile_row = kernel->columns * (ptrdiff_t)kernel->sum_size;
    for (int part = 0; part < 2; part++) {
        const ptrdiff_t first = part == 0 ? 0 : half_k;
        const ptrdiff_t k = part == 0 ? half_k : x->k - half_k;
        kernel->pack_a(panel_a, x->a.data + first * x->a.column_step, x->a.row_step,
                       x->a.column_step, x->m, k);
        expect_clean_upper_halves("pack_a");
        kernel->pack_b(panel_b, x->b.data + first * x->b.row_step, x->b.column_step, x->b.row_step,
                       x->n, k);
        const ptrdiff_t groups = (k + kernel->group - 1) / kernel->group + kernel->extra_groups;
        begin_tiles(kernel);
        kernel->tile(panel_a, panel_b, groups, sums, tile_row, part != 0);
        end_tiles(kernel);
        expect_clean_upper_halves("tile");
    }
    if (kernel->finish != NULL) {
        kernel->finish(sums, tile_row, x->c.data, x->c.row_step, x->c.column_step, x->m, x->n);
        return;
    }
    for (ptrdiff_t i = 0; i < x->m; i++) {
        for (ptrdiff_t j = 0; j < x->n; j++) {
            memcpy(x->c.data + i * x->c.row_step + j * x->c.column_step,
                   sums + i * tile_row + j * (ptrdiff_t)kernel->sum_size, kernel->item_size);
        }
    }
}

static void compare(const struct matmul_kernel *kernel, const char *isa, bool packed)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    const bool thin = !packed && random_below(2) != 0;
    const ptrdiff_t m = 1 + (ptrdiff_t)random_below(packed ? (size_t)kernel->rows : 20);
    const ptrdiff_t n = 1 + (ptrdiff_t)random_below(packed ? (size_t)kernel->columns
                                                    : thin ? 4
                                                           : 140);
    const ptrdiff_t k = (packed ? 2 * kernel->group : 1) + (ptrdiff_t)random_below(thin ? 12 : 70);
    struct product x = random_matrices(m, k, n, size);
    memset(room_c, 0x5a, sizeof room_c / 8);
    memcpy(expected, room_c, sizeof room_c / 8);
    struct product wanted = x;
    wanted.c.data = expected + (x.c.data - room_c);
    reference(kernel, &wanted);
    feclearexcept(FE_ALL_EXCEPT);
    if (packed) {
        packed_product(kernel, &x);
    } else {
        kernel->direct(&x);
    }
    expect_clean_upper_halves(isa);
    expect(same_elements(kernel, room_c, expected, sizeof room_c / 8),
           "%s %c%zu %s: %td x %td x %td, steps %td %td %td %td %td %td", isa, kernel->kind,
           kernel->item_size, packed ? "packed" : "direct", m, k, n, x.a.row_step, x.a.column_step,
           x.b.row_step, x.b.column_step, x.c.row_step, x.c.column_step);
    expect(fetestexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO) == 0, "%s %c%zu: flags", isa,
           kernel->kind, kernel->item_size);
}

/* A stack is what its products are one by one. */
static void compare_stack(const struct matmul_kernel *kernel, const char *isa)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size, count = 1 + (ptrdiff_t)random_below(5);
    const ptrdiff_t m = 4 * (1 + (ptrdiff_t)random_below(5)), k = 1 + (ptrdiff_t)random_below(20);
    const ptrdiff_t n = (kernel->stack_row_bytes << random_below(2)) / size;
    const ptrdiff_t row = n * size + (ptrdiff_t)random_below(3) * size;
    const struct product x = {
        .batch = count,
        .m = m,
        .n = n,
        .k = k,
        .a = {room_a, m * k * size, k * size, size},
        .b = {room_b, (ptrdiff_t)random_below(2) * k * row, row, size},
        .c = {room_c, m * row, row, size},
    };
    memset(room_c, 0x5a, sizeof room_c / 8);
    memcpy(expected, room_c, sizeof room_c / 8);
    kernel->stack(&x);
    expect_clean_upper_halves(isa);
    struct product single = x;
    single.c.data = expected;
    for (ptrdiff_t i = 0; i < count; i++) {
        kernel->direct(&single);
        single.a.data += x.a.batch_step;
        single.b.data += x.b.batch_step;
        single.c.data += x.c.batch_step;
    }
    expect(same_elements(kernel, room_c, expected, sizeof room_c / 8),
           "%s %c%zu stack of %td: %td x %td x %td, row of %td", isa, kernel->kind,
           kernel->item_size, count, m, k, n, row);
}

/* Dots of contiguous k, or sums along contiguous rows, added to what is there or not; nothing else is written. */
static void compare_thin(const struct matmul_kernel *kernel, const char *isa, bool dots)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    struct thin_product x = {
        .a = room_a + GUARD + random_below(4) * (size_t)size,
        .b = room_b + GUARD + random_below(4) * (size_t)size,
        .sums = room_c + GUARD + random_below(4) * (size_t)size,
        .rows = 1 + (ptrdiff_t)random_below(dots ? 11 : 70),
        .columns = 1 + (ptrdiff_t)random_below(19),
        .k = (dots ? kernel->thin->least_k : 1) + (ptrdiff_t)random_below(70),
        .accumulate = random_below(2) != 0,
    };
    x.a_step = ((dots ? x.k : x.rows) + (ptrdiff_t)random_below(3)) * size;
    x.b_step = (x.k + (ptrdiff_t)random_below(3)) * size;
    x.sums_step = ((dots ? x.columns : x.rows) + (ptrdiff_t)random_below(3)) * size;
    const struct product product = {
        .m = x.rows,
        .n = x.columns,
        .k = x.k,
        .a = {(char *)x.a, 0, dots ? x.a_step : size, dots ? size : x.a_step},
        .b = {(char *)x.b, 0, size, x.b_step},
        .c = {expected + (x.sums - room_c), 0, dots ? x.sums_step : size,
              dots ? size : x.sums_step},
    };
    for (size_t at = 0; at < sizeof room_c / 8; at += (size_t)size) {
        write_element(kernel, room_c + at, 3);
    }
    memcpy(expected, room_c, sizeof room_c / 8);
    reference(kernel, &product);
    for (ptrdiff_t row = 0; x.accumulate && row < x.rows; row++) {
        for (ptrdiff_t column = 0; column < x.columns; column++) {
            char *sum = product.c.data + row * product.c.row_step + column * product.c.column_step;
            write_element(kernel, sum, read_element(kernel, sum) + 3);
        }
    }
    (dots ? kernel->thin->dots : kernel->thin->sums)(&x);
    expect_clean_upper_halves(isa);
    expect(same_elements(kernel, room_c, expected, sizeof room_c / 8),
           "%s float%zu thin %s: %td x %td x %td, %d", isa, 8 * kernel->item_size,
           dots ? "dots" : "sums", x.rows, x.k, x.columns, x.accumulate);
}

/* An infinity in one matrix must not meet the padding of the other. */
static void check_padding(const struct matmul_kernel *kernel, const char *isa)
{
    uint16_t infinities[8] = {0x7c00, 0x7c00, 0x7c00, 0x7c00, 0x7c00, 0x7c00, 0x7c00, 0x7c00};
    uint16_t ones[8] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00};
    uint16_t c[9] = {0};
    const struct product x = {
        .m = 2,
        .n = 2,
        .k = 2,
        .a = {(char *)infinities, 0, 2, 4},
        .b = {(char *)ones, 0, 2, 4},
        .c = {(char *)c, 0, 4, 2},
    };
    feclearexcept(FE_ALL_EXCEPT);
    packed_product(kernel, &x);
    expect(c[0] == 0x7c00 && c[3] == 0x7c00 && fetestexcept(FE_INVALID) == 0,
           "%s half: padding meets infinity", isa);
    c[0] = c[3] = 0;
    kernel->direct(&x);
    expect(c[0] == 0x7c00 && c[3] == 0x7c00 && fetestexcept(FE_INVALID) == 0,
           "%s half: lanes without a column meet infinity", isa);
}

/* Every float near a half: values, overflow and underflow as NumPy has them. */
static void check_rounding(const struct matmul_kernel *kernel, const char *isa)
{
    for (uint32_t half = 0; half < 0x7c00; half++) {
        for (int nudge = -2; nudge <= 2; nudge++) {
            const double here = (double)float_of_half((uint16_t)half);
            const double next =
                half == 0x7bff ? 65536 : (double)float_of_half((uint16_t)(half + 1));
            float value = (float)((here + next) / 2);
            for (int i = 0; i < abs(nudge); i++) {
                value = nextafterf(value, nudge < 0 ? 0 : INFINITY);
            }
            value = half & 1 ? -value : value;
            float block[16];
            uint16_t found[16];
            for (int i = 0; i < 16; i++) {
                block[i] = value;
            }
            feclearexcept(FE_ALL_EXCEPT);
            kernel->finish((const char *)block, 0, (char *)found, 0, 2, 1, 16);
            const int raised = fetestexcept(FE_OVERFLOW | FE_UNDERFLOW);
            const uint16_t wanted = half_of_float(value);
            const bool tiny = fabsf(value) < 0x1p-14f && float_of_half(wanted) != value;
            const int flags = (wanted & 0x7fff) == 0x7c00 ? FE_OVERFLOW : tiny ? FE_UNDERFLOW : 0;
            expect(found[0] == wanted && found[15] == wanted, "%s half: %a becomes %#x, not %#x",
                   isa, (double)value, found[0], wanted);
            expect(raised == flags, "%s half: %a raises %#x", isa, (double)value, (unsigned)raised);
        }
    }
}

static bool truth(const struct product *x, ptrdiff_t row, ptrdiff_t column)
{
    for (ptrdiff_t k = 0; k < x->k; k++) {
        if (x->a.data[row * x->a.row_step + k * x->a.column_step] != 0 &&
            x->b.data[k * x->b.row_step + column * x->b.column_step] != 0) {
            return true;
        }
    }
    return false;
}

static void expect_truth(const struct product *x)
{
    for (ptrdiff_t i = 0; i < x->m; i++) {
        for (ptrdiff_t j = 0; j < x->n; j++) {
            expected[x->c.data - room_c + i * x->c.row_step + j * x->c.column_step] =
                truth(x, i, j);
        }
    }
}

enum way { PACKED, DIRECT, DOTS, WAYS };

static void compare_bits(const struct matmul_bits *kernel, const char *isa, enum way way)
{
    static const char *const names[] = {"packed", "direct", "dots"};
    const ptrdiff_t m = 1 + (ptrdiff_t)random_below(way == DOTS ? MOST_DOT_ROWS : 90);
    const ptrdiff_t n = 1 + (ptrdiff_t)random_below(random_below(2) == 0 ? 9 : 700);
    const ptrdiff_t k = 1 + (ptrdiff_t)random_below(random_below(4) == 0 ? 20 : 400);
    struct product x = random_matrices(m, k, n, 1);
    if (way == DOTS) {
        x.b.data = room_b + GUARD + random_below(64);
        x.b.row_step = 1;
        x.b.column_step = k + (ptrdiff_t)random_below(5);
    }
    const size_t odds = random_below(4) == 0 ? 2 : 40;
    for (size_t i = 0; i < sizeof room_a; i++) {
        room_a[i] = random_below(odds) == 0 ? (char)(1 << random_below(8)) : 0;
        room_b[i] = random_below(odds) == 0 ? (char)(1 << random_below(8)) : 0;
    }
    memset(room_c, 2, sizeof room_c);
    memset(expected, 2, sizeof expected);
    if (way == DIRECT) {
        x.batch = 1 + (ptrdiff_t)random_below(2);
        x.a.batch_step = (ptrdiff_t)random_below(2);
        x.b.batch_step = (ptrdiff_t)random_below(3);
        x.c.batch_step = LARGEST_ROOM / 4;
    }
    struct product one = x;
    for (ptrdiff_t i = 0; i < x.batch; i++) {
        expect_truth(&one);
        one.a.data += x.a.batch_step;
        one.b.data += x.b.batch_step;
        one.c.data += x.c.batch_step;
    }
    if (way == PACKED) {
        const ptrdiff_t a_words = (k + 63) / 64, b_words = (n + 63) / 64;
        kernel->pack((uint64_t *)panel_a, a_words, x.a.data, x.a.row_step, x.a.column_step, m, k);
        kernel->pack((uint64_t *)panel_b, b_words, x.b.data, x.b.row_step, x.b.column_step, k, n);
        const bool all_true =
            kernel->multiply((uint64_t *)panel_a, a_words, (uint64_t *)panel_b, b_words, &x, 0, m);
        bool expected_true = true;
        for (ptrdiff_t i = 0; i < m * n; i++) {
            expected_true =
                expected_true && x.c.data[i / n * x.c.row_step + i % n * x.c.column_step] == 1;
        }
        expect(all_true == expected_true, "%s bool: all true is %d", isa, all_true);
    } else if (way == DOTS) {
        kernel->dots(&x, (uint64_t *)panel_a);
    } else {
        kernel->direct(&x);
    }
    expect_clean_upper_halves(isa);
    expect(memcmp(room_c, expected, sizeof room_c) == 0,
           "%s bool %s: %td x %td x %td, steps %td %td %td %td %td %td", isa, names[way], m, k, n,
           x.a.row_step, x.a.column_step, x.b.row_step, x.b.column_step, x.c.row_step,
           x.c.column_step);
}

static void compare_kernel(const struct matmul_kernel *kernel, const char *isa, bool quick)
{
    const int cases = quick ? 60 : 600;
    for (int i = 0; kernel->bits != NULL && i < cases / 4; i++) {
        compare_bits(kernel->bits, isa, (enum way)(i % WAYS));
    }
    fill(room_a, sizeof room_a, kernel);
    fill(room_b, sizeof room_b, kernel);
    for (int i = 0; i < cases; i++) {
        if (kernel->direct != NULL) {
            compare(kernel, isa, false);
        }
        if (kernel->thin != NULL) {
            compare_thin(kernel, isa, i % 2 == 0);
        }
        if (kernel->stack != NULL) {
            compare_stack(kernel, isa);
        }
        if (kernel->rows > 0) {
            compare(kernel, isa, true);
        }
    }
    if (kernel->kind == 'e') {
        check_padding(kernel, isa);
        check_rounding(kernel, isa);
    }
}

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* ns per element that is packed, and operations per ns of a tile. */
static void time_kernel(const struct matmul_kernel *kernel, const char *isa)
{
    if (kernel->rows == 0) {
        return;
    }
    fill(room_a, sizeof room_a, kernel);
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    double best[5] = {1e9, 1e9, 1e9, 1e9, 1e9};
    for (int sample = 0; sample < 200; sample++) {
        for (int what = 0; what < 5; what++) {
            const bool along_k = what % 2 == 0;
            const ptrdiff_t units = what < 2 ? kernel->rows : kernel->columns;
            begin_tiles(kernel);
            const int64_t start = now_ns();
            if (what == 4) {
                kernel->tile(panel_a, panel_b, TIMED_K / kernel->group, sums,
                             kernel->columns * (ptrdiff_t)kernel->sum_size, true);
            } else {
                (what < 2 ? kernel->pack_a : kernel->pack_b)(
                    what < 2 ? panel_a : panel_b, room_a, along_k ? TIMED_K * size : size,
                    along_k ? size : units * size, units, TIMED_K);
            }
            best[what] = fmin(best[what], (double)(now_ns() - start));
            end_tiles(kernel);
        }
    }
    const double a = (double)kernel->rows * TIMED_K, b = (double)kernel->columns * TIMED_K;
    printf("%-10s %c%-2zu ns to pack an element of a: %.2f along k, %.2f along m; of b: %.2f, "
           "%.2f along n; tile %td x %td: %.1f GOP/s\n",
           isa, kernel->kind, kernel->item_size, best[0] / a, best[1] / a, best[2] / b, best[3] / b,
           kernel->rows, kernel->columns, 2 * a * (double)kernel->columns / best[4]);
}

int main(int argc, char *argv[])
{
    const bool timed = argc > 1 && strcmp(argv[1], "--time") == 0;
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const int options = timed || quick;
    const char *only = argc > 1 + options ? argv[1 + options] : NULL;
    bool ran = false;
    for (int i = 0; kernels_isa(i) != NULL; i++) {
        const char *isa = kernels_isa(i);
        const struct matmul_kernel *kernel;
        for (int row = 0; (only == NULL || strcmp(only, isa) == 0) &&
                          (kernel = matmul_kernel_of_isa(isa, row)) != NULL;
             row++) {
            ran = true;
            if (timed) {
                time_kernel(kernel, isa);
            } else {
                compare_kernel(kernel, isa, quick);
            }
        }
    }
#ifdef AMX_IN_SOFTWARE
    for (int i = 0; i < 4 && !timed && matmul_kernel_of_isa("amx", 0) == NULL &&
                    (only == NULL || strcmp(only, "amx") == 0);
         i++) {
        ran = true;
        compare_kernel(in_software[i], "amx in software", quick);
    }
#endif
    if (!ran) {
        return SKIPPED;
    }
    return timed ? EXIT_SUCCESS : expect_result("matmul");
}
