/* Packed products where memory is short: blocks get smaller, and nothing is computed unpacked. */
#include "elements.h"
#include "engine/matmul_packed.h"
#include "expect.h"
#include "kernels/kernels.h"
#include "memory/workspace.h"
#include "threads/limit.h"

#include <errno.h>
#include <string.h>

enum { SIDE_M = 150, SIDE_N = 170, SIDE_K = 700 };

static size_t most_bytes; /* that are granted at once */
static size_t refused;
static const struct policy policy;

/* Stands in for the library's. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = NULL;
    if (bytes > most_bytes || posix_memalign(&memory, alignment, bytes) != 0) {
        refused++;
        errno = ENOMEM;
        return NULL;
    }
    return memory;
}

static _Alignas(64) char a[SIDE_M * SIDE_K * LARGEST_ELEMENT], b[SIDE_K * SIDE_N * LARGEST_ELEMENT];
static _Alignas(64) char wanted[SIDE_M * SIDE_N * LARGEST_ELEMENT];
static _Alignas(64) char found[2 * SIDE_M * SIDE_N * LARGEST_ELEMENT];

/* Small values, whose sums are exact in every type. */
static void fill(char *to, ptrdiff_t count, const struct matmul_kernel *kernel)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        write_element(kernel, to + i * (ptrdiff_t)kernel->item_size, (double)random_below(3) - 1);
    }
}

static void check(const struct matmul_kernel *kernel, const char *isa)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    const struct product whole = {
        .m = SIDE_M,
        .n = SIDE_N,
        .k = SIDE_K,
        .a = {a, 0, SIDE_K * size, size},
        .b = {b, 0, SIDE_N * size, size},
        .c = {wanted, 0, SIDE_N * size, size},
    };
    fill(a, (ptrdiff_t)SIDE_M * SIDE_K, kernel);
    fill(b, (ptrdiff_t)SIDE_K * SIDE_N, kernel);
    memset(wanted, 0, sizeof wanted);
    most_bytes = SIZE_MAX;
    matmul_packed(&policy, kernel, &whole, 1);
    static const size_t bytes[] = {100 << 10, 25 << 10, 5 << 10, 0};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        most_bytes = bytes[i];
        for (int step = 1; step <= 2; step++) {
            /* What was kept is too small for this, and goes. */
            (void)workspace_take(SIZE_MAX / 2);
            struct product x = whole;
            x.c = (struct strided){found, 0, step * SIDE_N * size, step * size};
            memset(found, 0, sizeof found);
            refused = 0;
            matmul_packed(&policy, kernel, &x, 1 + (int)(i % 2));
            bool same = true;
            for (ptrdiff_t e = 0; e < (ptrdiff_t)SIDE_M * SIDE_N && same; e++) {
                same =
                    memcmp(found + e * step * size, wanted + e * size, element_bytes(kernel)) == 0;
            }
            expect(same && refused > 0, "%s %c%zu with %zu bytes, %zu times refused", isa,
                   kernel->kind, kernel->item_size, bytes[i], refused);
        }
    }
}

int main(void)
{
    threads_initialize(0, "");
    for (int i = 0; kernels_isa(i) != NULL; i++) {
        const struct matmul_kernel *kernel;
        for (int row = 0; (kernel = matmul_kernel_of_isa(kernels_isa(i), row)) != NULL; row++) {
            if (kernel->rows > 0) {
                check(kernel, kernels_isa(i));
            }
        }
    }
    return expect_result("packed");
}
