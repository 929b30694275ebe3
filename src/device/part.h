/* Copies between host matrices and their parts as they are sent, see struct part. */
#ifndef NUMC_PART_H
#define NUMC_PART_H

#include "plan.h"

ptrdiff_t part_elements(const struct part *part);

/* Whether the elements lie on the host as they are sent. */
bool part_is_contiguous(const struct part *part, size_t size);

/* Elements [first, end), counted in the order in which they are sent. `to` is cached: the processor
 * has it in its caches, and will use it again. */
void part_gather(const struct part *part, size_t size, ptrdiff_t first, ptrdiff_t end, char *to,
                 bool cached);
void part_scatter(const struct part *part, size_t size, ptrdiff_t first, ptrdiff_t end,
                  const char *from);

#endif
