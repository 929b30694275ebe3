/* Products of matrices and their own transposes, which are symmetric. */
#ifndef NUMC_MIRROR_H
#define NUMC_MIRROR_H

#include "device.h"

bool matmul_is_symmetric(const struct matmul_task *task);

/* Copies the upper triangle of the result to the lower one. */
void matmul_mirror(const struct matmul_task *task);

#endif
