/* Which device used managed memory last, as far as we know: hints for where to compute next. What nobody has
 * told of is taken to be with the processor. */
#ifndef NUMC_LAST_USE_H
#define NUMC_LAST_USE_H

#include "device.h"
#include "kernels/extent.h"

/* NULL: the processor. */
void last_use_note(struct extent extent, const struct device *device);
bool last_use_is(struct extent extent, const struct device *device);

/* Whether it is on the device, of which it is managed memory: used there last, and not by the processor
 * since, of whose uses most are not known here. */
bool last_use_left_on(struct extent extent, struct device *device);

/* All of it: another device takes the place of the first. */
void last_use_forget(void);

/* ---- programs that alternate ---- */

/* Whether a call may move its operands to the device. `came_back`: the processor has used some that were
 * moved there before. Then not for a while, longer each time. */
bool last_use_may_move(bool came_back);

/* A call found all that it would have moved on the device. */
void last_use_stayed(void);

#endif
