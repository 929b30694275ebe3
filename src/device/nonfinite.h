/* The floating-point exceptions of a product on a device, which raises no flags. */
#ifndef NUMC_NONFINITE_H
#define NUMC_NONFINITE_H

#include "device.h"

/* FE_OVERFLOW and FE_INVALID for infinities and NaNs of the result that do not come from the
 * operands. */
int nonfinite_exceptions(const struct matmul_task *task);

#endif
