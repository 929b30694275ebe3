/* The floating-point exceptions of a product on a device, which raises no flags. */
#ifndef NUMC_NONFINITE_H
#define NUMC_NONFINITE_H

#include "device.h"

/* FE_OVERFLOW and FE_INVALID, as the infinities and NaNs of a result tell that the operands do not
 * explain. */
int nonfinite_exceptions(const struct matmul_task *task);

#endif
