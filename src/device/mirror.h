/* Products of matrices and their own transposes, which are symmetric. */
#ifndef NUMC_MIRROR_H
#define NUMC_MIRROR_H

#include "device.h"

bool matmul_is_symmetric(const struct matmul_task *task);

/* Copies the half of the result above the diagonal to the other. */
void matmul_mirror(const struct matmul_task *task);

#endif
