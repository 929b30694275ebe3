/* Products of every type by the CUDA device's kernels, against plain loops; `--time`: how fast they
 * are without copies. Arguments besides are paths of libcublas. Exit status 77: no GPU. */
#include "fake_device.h"
#include "on_gpu.h"

#include <math.h>
#include <string.h>

enum { MOST_PATHS = 8 };

/* Integers so small that sums are exact in every type. No zeros: whether a product of one is -0 or,
 * added to a sum, 0, is left open. */
static void fill(struct element_type type, char *data, ptrdiff_t count)
{
    static const uint16_t halves[] = {0x4200, 0x3C00, 0xBC00, 0x4000, 0xC000}; /* as `values` */
    static const int values[] = {3, 1, -1, 2, -2};
    const size_t parts = type.kind == ELEMENT_COMPLEX ? 2 : 1, size = type.size / parts;
    for (ptrdiff_t i = 0; i < count * (ptrdiff_t)parts; i++) {
        const uint64_t which = random_below(5);
        const float single = (float)values[which];
        const double wide = values[which];
        const int64_t integer = type.kind == ELEMENT_BOOL ? which > 2 : values[which];
        memcpy(data + (size_t)i * size,
               type.kind <= ELEMENT_INTEGER ? (const void *)&integer
               : size == 2                  ? (const void *)&halves[which]
               : size == 4                  ? (const void *)&single
                                            : (const void *)&wide,
               size);
    }
}

struct buffers {
    char *a, *b, *c, *expected; /* pinned */
    device_address on_device;
    size_t a_bytes, b_bytes, c_bytes;
};

static bool make_buffers(struct buffers *of, const struct gemm *gemm)
{
    const size_t size = gemm->type.size;
    const ptrdiff_t a = (gemm->a.batch_step != 0 ? gemm->batch : 1) * gemm->m * gemm_a_row(gemm);
    const ptrdiff_t b = (gemm->b.batch_step != 0 ? gemm->batch : 1) * gemm->k * gemm->n;
    of->a_bytes = size * (size_t)a;
    of->b_bytes = size * (size_t)b;
    of->c_bytes = size * (size_t)(gemm->batch * gemm->m * gemm->n);
    void *pinned = NULL;
    const size_t bytes = of->a_bytes + of->b_bytes + of->c_bytes;
    const size_t spare_bytes = gemm_has_spare(gemm->type, gemm->k) ? of->c_bytes : 0;
    if (!works(device->alloc_pinned(device, bytes + 64, &pinned), "pinned memory") ||
        !works(device->alloc(device, stream, bytes + spare_bytes + 1024, &of->on_device),
               "device memory")) {
        device->release_pinned(device, pinned);
        return false;
    }
    of->a = pinned;
    of->b = of->a + of->a_bytes;
    of->c = of->b + of->b_bytes;
    of->expected = malloc(of->c_bytes);
    fill(gemm->type, of->a, a);
    fill(gemm->type, of->b, b);
    memset(of->c, 0x5A, of->c_bytes);
    if (gemm->adds) {
        fill(gemm->type, of->c, gemm->batch * gemm->m * gemm->n);
    }
    memcpy(of->expected, of->c, of->c_bytes);
    return true;
}

static void free_buffers(struct buffers *of)
{
    device->release(device, stream, of->on_device);
    works(device->drain(device, stream), "draining");
    device->release_pinned(device, of->a);
    free(of->expected);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static void check(int type, struct gemm gemm)
{
    struct buffers of;
    if (!make_buffers(&of, &gemm)) {
        return;
    }
    gemm.a.at = of.on_device;
    gemm.b.at = gemm.a.at + aligned(of.a_bytes);
    gemm.c = gemm.b.at + aligned(of.b_bytes);
    gemm.spare = gemm_has_spare(gemm.type, gemm.k) ? gemm.c + aligned(of.c_bytes) : 0;
    fake_multiply(&gemm, of.a, of.b, of.expected);
    if (works(device->upload(device, stream, gemm.a.at, of.a, one_row(of.a_bytes)), "copying a") &&
        works(device->upload(device, stream, gemm.b.at, of.b, one_row(of.b_bytes)), "copying b") &&
        works(device->upload(device, stream, gemm.c, of.c, one_row(of.c_bytes)), "copying c") &&
        works(device->multiply(device, stream, &gemm), types[type].name) &&
        works(device->download(device, stream, of.c, gemm.c, one_row(of.c_bytes)), "copying c") &&
        works(device->drain(device, stream), types[type].name)) {
        expect(memcmp(of.c, of.expected, of.c_bytes) == 0,
               "%s, kernel %d: batch %td, %td x %td x %td, rows of %td, adds %d, transposed %d %d, "
               "shared %d %d",
               types[type].name, (int)gemm.kernel, gemm.batch, gemm.m, gemm.n, gemm.k,
               gemm_a_row(&gemm), gemm.adds, gemm.a.transposed, gemm.b.transposed,
               gemm.a.batch_step == 0, gemm.b.batch_step == 0);
    }
    free_buffers(&of);
}

/* Both kernels, edges of all tiles, both orders, batches. */
static void check_products(bool quick)
{
    static const ptrdiff_t extents[] = {1, 2, 7, 8, 9, 31, 33, 63, 64, 65, 127, 129, 200};
    const uint64_t count = sizeof extents / sizeof extents[0];
    for (int type = 0; type < TYPES; type++) {
        for (int i = 0; i < (quick ? 6 : 60); i++) {
            struct gemm gemm = {
                .type = types[type].type,
                .precision = PRECISION_IEEE,
                .kernel = i % 2 == 0 || types[type].type.kind <= ELEMENT_INTEGER ? GEMM_TILED
                                                                                 : GEMM_CUBLAS,
                .batch = random_below(3) == 0 ? 1 + (ptrdiff_t)random_below(9) : 1,
                .m = extents[random_below(count)],
                .n = extents[random_below(count)],
                .k = random_below(8) == 0 ? 500 + (ptrdiff_t)random_below(1000) /* parts of sums */
                                          : extents[random_below(count)],
            };
            gemm.a.transposed = random_below(2) == 0;
            gemm.b.transposed = random_below(2) == 0;
            gemm.a_row =
                gemm.a.transposed || gemm.batch > 1 ? 0 : gemm.k + (ptrdiff_t)random_below(9);
            gemm.adds =
                gemm.type.kind >= ELEMENT_FLOAT && gemm.type.size > 2 && random_below(2) == 0;
            gemm.a.batch_step = gemm.batch > 1 && random_below(3) > 0 ? gemm.m * gemm.k : 0;
            gemm.b.batch_step = gemm.batch > 1 && random_below(3) > 0 ? gemm.k * gemm.n : 0;
            const struct matmul_task task = {
                .type = gemm.type, .precision = gemm.precision, .kernel = gemm.kernel};
            const char *why;
            if (!device->supports(device, &task, &why)) {
                printf("left out: %s\n", why);
                return;
            }
            check(type, gemm);
        }
    }
}

/* ---- what is done with results ---- */

/* Contiguous on the device, with gaps on the host. */
static void check_rows(char *pinned, device_address on_device)
{
    enum { BYTES = 3000, COUNT = 17, STEP = 4096 };
    char *back = pinned + COUNT * STEP;
    for (size_t i = 0; i < (size_t)COUNT * STEP; i++) {
        pinned[i] = (char)random_below(100);
    }
    memset(back, 100, (size_t)COUNT * STEP);
    const struct copied_rows rows = {BYTES, COUNT, STEP};
    if (works(device->upload(device, stream, on_device, pinned, rows), "copying rows") &&
        works(device->download(device, stream, back, on_device, rows), "copying rows back") &&
        works(device->drain(device, stream), "copying rows")) {
        for (size_t i = 0; i < COUNT; i++) {
            expect(memcmp(back + i * STEP, pinned + i * STEP, BYTES) == 0, "row %zu", i);
            expect(back[i * STEP + BYTES] == 100, "what is behind row %zu", i);
        }
    }
}

/* One number that is none, or infinite, at each end. */
static void check_scan(int type, struct gemm gemm, char *pinned)
{
    static const uint64_t exponents[] = {0x7C00, 0x7F800000, 0x7FF0000000000000};
    const size_t parts = gemm.type.kind == ELEMENT_COMPLEX ? 2 : 1, size = gemm.type.size / parts;
    const size_t count = (size_t)(gemm.batch * gemm.m * gemm.n) * parts;
    const uint64_t infinity = exponents[size == 2 ? 0 : size == 4 ? 1 : 2];
    bool *found = (bool *)(pinned + count * size);
    for (int i = 0; i < 5; i++) {
        const size_t at = i == 1 ? 0 : i == 2 ? count - 1 : (size_t)random_below(count);
        const uint64_t bits = infinity | (uint64_t)(i % 2) | (uint64_t)(i > 2) << (8 * size - 1);
        fill(gemm.type, pinned, (ptrdiff_t)(count / parts));
        if (i > 0) {
            memcpy(pinned + at * size, &bits, size);
        }
        *found = false;
        if (works(device->upload(device, stream, gemm.c, pinned, one_row(count * size)), "c") &&
            works(device->scan(device, stream, gemm.type, gemm.c, gemm.batch * gemm.m * gemm.n,
                               found),
                  "scanning") &&
            works(device->drain(device, stream), "scanning")) {
            expect(*found == (i > 0), "%s: case %d, element %zu of %zu", types[type].name, i, at,
                   count);
        }
    }
}

static void check_mirror(int type, struct gemm gemm, char *pinned)
{
    const size_t bytes = gemm.type.size * (size_t)(gemm.batch * gemm.m * gemm.n);
    char *expected = malloc(bytes);
    fill(gemm.type, pinned, gemm.batch * gemm.m * gemm.n);
    memcpy(expected, pinned, bytes);
    fake_mirror(&gemm, expected);
    if (works(device->upload(device, stream, gemm.c, pinned, one_row(bytes)), "c") &&
        works(device->mirror(device, stream, &gemm), "mirroring") &&
        works(device->download(device, stream, pinned, gemm.c, one_row(bytes)), "c back") &&
        works(device->drain(device, stream), "mirroring")) {
        expect(memcmp(pinned, expected, bytes) == 0, "%s: mirror of %td x %td", types[type].name,
               gemm.batch, gemm.n);
    }
    free(expected);
}

static void check_results(void)
{
    enum { BYTES = 1 << 20 };
    static const ptrdiff_t extents[] = {1, 2, 31, 32, 33, 64, 95};
    void *pinned = NULL;
    struct gemm gemm = {.batch = 1};
    if (works(device->alloc_pinned(device, BYTES, &pinned), "pinned memory") &&
        works(device->alloc(device, stream, BYTES, &gemm.c), "device memory")) {
        check_rows(pinned, gemm.c);
        for (int type = 0; type < TYPES; type++) {
            gemm.type = types[type].type;
            for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
                gemm.m = gemm.n = extents[i];
                gemm.batch = 1 + (ptrdiff_t)(i % 3);
                if (gemm.type.kind >= ELEMENT_FLOAT) {
                    check_scan(type, gemm, pinned);
                    check_mirror(type, gemm, pinned);
                }
            }
        }
    }
    device->release(device, stream, gemm.c);
    works(device->drain(device, stream), "draining");
    device->release_pinned(device, pinned);
}

/* ---- memory of the host ---- */

static void check_memory_of(void)
{
    char local;
    void *pinned = NULL;
    if (works(device->alloc_pinned(device, 1 << 20, &pinned), "pinned memory")) {
        expect(device->memory_of(device, pinned) == HOST_PINNED, "pinned");
        expect(device->memory_of(device, (char *)pinned + 99999) == HOST_PINNED, "within");
    }
    device->release_pinned(device, pinned);
    expect(device->memory_of(device, &local) == HOST_ORDINARY, "the stack");
}

/* The host writes, the device multiplies, the host reads: before, between and after moves. */
static void check_managed(void)
{
    enum { N = 256, ALL = N * N };
    void *data = NULL;
    size_t before = 0, after = 0;
    if (device->no_managed != NULL) {
        printf("left out: %s\n", device->no_managed);
        return;
    }
    if (!works(device->free_memory(device, &before), "free memory") ||
        !works(device->alloc_managed(device, 4 * sizeof(double) * ALL, &data), "managed memory")) {
        return;
    }
    double *a = data, *b = a + ALL, *c = b + ALL, *expected = c + ALL;
    const struct element_type type = {ELEMENT_FLOAT, 8};
    struct gemm gemm = {.type = type,
                        .precision = PRECISION_IEEE,
                        .kernel = GEMM_TILED,
                        .batch = 1,
                        .m = N,
                        .n = N,
                        .k = N,
                        .a.at = device_address_of(a),
                        .b.at = device_address_of(b),
                        .c = device_address_of(c)};
    expect(device->memory_of(device, a) == HOST_MANAGED, "managed");
    expect(device->memory_of(device, c + 77) == HOST_MANAGED, "within managed memory");
    for (int i = 0; i < 4; i++) {
        const bool moves = i % 2 == 1;
        fill(type, (char *)a, ALL);
        fill(type, (char *)b, ALL);
        fake_multiply(&gemm, (char *)a, (char *)b, (char *)expected);
        if (moves) {
            works(device->move(device, stream, a, 3 * sizeof(double) * ALL, true), "moving there");
        }
        works(device->multiply(device, stream, &gemm), "multiplying");
        if (moves) {
            works(device->drain(device, stream), "multiplying");
            works(device->free_memory(device, &after), "free memory");
            works(device->move(device, stream, a, 3 * sizeof(double) * ALL, false), "moving back");
        }
        works(device->drain(device, stream), "multiplying");
        expect(memcmp(c, expected, sizeof(double) * ALL) == 0, "managed product %d", i);
    }
    expect(before > 0 && after > 0 && before <= device->memory, "%zu, then %zu bytes are free",
           before, after);
    device->release_managed(device, data);
}

/* Seconds of a product alone, the shortest of some runs. */
static double shortest(const struct gemm *gemm)
{
    double best = INFINITY;
    for (int i = 0; i < 5; i++) {
        const double before = now();
        works(device->multiply(device, stream, gemm), "multiplying");
        works(device->drain(device, stream), "draining");
        best = fmin(best, now() - before);
    }
    return best;
}

static void time_kernels(ptrdiff_t n)
{
    for (int type = 0; type < TYPES; type++) {
        const size_t bytes = types[type].type.size * (size_t)(n * n);
        const bool spare = gemm_has_spare(types[type].type, n);
        const double operations =
            (types[type].type.kind == ELEMENT_COMPLEX ? 8.0 : 2.0) * pow((double)n, 3);
        struct gemm gemm = {.type = types[type].type,
                            .precision = PRECISION_IEEE,
                            .batch = 1,
                            .m = n,
                            .n = n,
                            .k = n};
        if (!works(device->alloc(device, stream, 4 * bytes, &gemm.a.at), "device memory")) {
            return;
        }
        gemm.b.at = gemm.a.at + bytes;
        gemm.c = gemm.b.at + bytes;
        gemm.spare = spare ? gemm.c + bytes : 0;
        gemm.kernel = GEMM_TILED;
        printf("%-10s %td: tiled %6.2f T/s", types[type].name, n,
               operations / shortest(&gemm) / 1e12);
        if (types[type].type.kind >= ELEMENT_FLOAT) {
            gemm.kernel = GEMM_CUBLAS;
            printf(", cublas %6.2f", operations / shortest(&gemm) / 1e12);
        }
        printf("\n");
        device->release(device, stream, gemm.a.at);
    }
}

int main(int count, char **arguments)
{
    const char *paths[MOST_PATHS + 3] = {NULL};
    int path_count = 0;
    bool quick = false, timed = false;
    for (int i = 1; i < count; i++) {
        quick |= strcmp(arguments[i], "--quick") == 0;
        timed |= strcmp(arguments[i], "--time") == 0;
        if (arguments[i][0] != '-' && path_count < MOST_PATHS) {
            paths[path_count++] = arguments[i];
        }
    }
    paths[path_count++] = "libcublas.so.13";
    paths[path_count] = "/usr/local/cuda/lib64/libcublas.so.13";
    if (!open_gpu(paths)) {
        return SKIPPED;
    }
    const int before = device->enter(device);
    if (works(device->new_stream(device, &stream), "a stream")) {
        if (timed) {
            time_kernels(2048);
            time_kernels(4096);
        } else {
            check_memory_of();
            check_managed();
            check_results();
            check_products(quick);
        }
        device->release_stream(device, stream);
    }
    device->leave(device, before);
    return expect_result("cuda");
}
