/* Every kernel of this build, and the best of them for a dtype. */
#include "matmul_kernels.h"

#include "kernels/kernels.h"

#include <string.h>

/* isas.h and matmul_isas.h are written by Meson from its tables. */
enum {
#define ISA(name, supported) ISA_##name,
#include "kernels/isas.h"
#undef ISA
};

#define MATMUL(dtype, isa) extern const struct matmul_kernel matmul_##dtype##_##isa;
#include "kernels/matmul_isas.h"
#undef MATMUL

/* In ascending order of instruction sets. */
static const struct {
    int isa;
    const struct matmul_kernel *kernel;
} rows[] = {
#define MATMUL(dtype, isa) {ISA_##isa, &matmul_##dtype##_##isa},
#include "kernels/matmul_isas.h"
#undef MATMUL
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

const struct matmul_kernel *matmul_kernel_find(char kind, size_t item_size, bool large)
{
    for (int row = ROW_COUNT - 1; row >= 0; row--) {
        const struct matmul_kernel *kernel = rows[row].kernel;
        if (kernel->kind == kind && kernel->item_size == item_size &&
            large == (kernel->prepare != NULL) && kernels_isa_is_selected(rows[row].isa)) {
            return kernel;
        }
    }
    return NULL;
}

const struct matmul_kernel *matmul_kernel_of_isa(const char *isa, int index)
{
    for (int row = 0; row < ROW_COUNT; row++) {
        if (strcmp(kernels_isa(rows[row].isa), isa) == 0 && index-- == 0) {
            const struct matmul_kernel *kernel = rows[row].kernel;
            const bool is_usable =
                kernels_of_isa(isa) != NULL && (kernel->prepare == NULL || kernel->prepare());
            return is_usable ? kernel : NULL;
        }
    }
    return NULL;
}
