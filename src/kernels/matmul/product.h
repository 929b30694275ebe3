/* A product of matrices: the one description of it from NumPy's call to a kernel or a device. */
#ifndef NUMC_PRODUCT_H
#define NUMC_PRODUCT_H

#include <stddef.h>

/* Element (r, c) of matrix i lies at data + i * batch_step + r * row_step + c * column_step, all in
 * bytes, of either sign or 0. */
struct strided {
    char *data;
    ptrdiff_t batch_step, row_step, column_step;
};

/* c = a b, `batch` times: a is m by k, b is k by n. c shares no byte with a or b, nor with itself. */
struct product {
    ptrdiff_t batch, m, n, k;
    struct strided a, b, c;
};

#endif
