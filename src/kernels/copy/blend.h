/* Copies that leave out what a mask does not let through. */
#ifndef NUMC_BLEND_H
#define NUMC_BLEND_H

#include <stddef.h>

/* Copies n items of `size` bytes, `step` bytes apart, to contiguous ones, which have the bytes of `neutral` where the
 * mask, bools, is false. */
void blend_items(size_t size, char *to, const char *from, ptrdiff_t step, const char *mask,
                 ptrdiff_t mask_step, const char *neutral, ptrdiff_t n);

#endif
