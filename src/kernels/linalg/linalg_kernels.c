/* Every kernel for stacks of this build, and the best of them for a gufunc and dtype. */
#include "linalg_kernels.h"

#include "kernels/kernels.h"

#include <string.h>

/* isas.h and linalg_isas.h are written by Meson from its tables. */
enum {
#define ISA(name, supported) ISA_##name,
#include "kernels/isas.h"
#undef ISA
};

#define LINALG(dtype, isa) extern const struct linalg_dtype linalg_##dtype##_##isa;
#include "kernels/linalg_isas.h"
#undef LINALG

/* In ascending order of instruction sets. */
static const struct {
    int isa;
    const struct linalg_dtype *dtype;
} tables[] = {
#define LINALG(dtype, isa) {ISA_##isa, &linalg_##dtype##_##isa},
#include "kernels/linalg_isas.h"
#undef LINALG
};

enum { TABLE_COUNT = sizeof tables / sizeof tables[0] };

const struct linalg_row *linalg_kernel_find(const char *gufunc, char kind, size_t item_size,
                                            ptrdiff_t n)
{
    for (int i = TABLE_COUNT - 1; i >= 0; i--) {
        const struct linalg_dtype *dtype = tables[i].dtype;
        if (dtype->kind != kind || dtype->item_size != item_size ||
            !kernels_isa_is_selected(tables[i].isa)) {
            continue;
        }
        for (const struct linalg_row *row = dtype->rows; row->gufunc != NULL; row++) {
            if (n <= row->most_n && strcmp(row->gufunc, gufunc) == 0) {
                return row;
            }
        }
    }
    return NULL;
}

const struct linalg_dtype *linalg_dtype_of_isa(const char *isa, int index)
{
    for (int i = 0; i < TABLE_COUNT; i++) {
        if (strcmp(kernels_isa(tables[i].isa), isa) == 0 && index-- == 0) {
            return kernels_of_isa(isa) != NULL ? tables[i].dtype : NULL;
        }
    }
    return NULL;
}
