/* How calls are split among threads: all zero in production, tests set something else. */
#ifndef NUMC_POLICY_H
#define NUMC_POLICY_H

#include <stdbool.h>
#include <stddef.h>

struct policy {
    ptrdiff_t threshold; /* elements from which a call uses threads; 0: the measured break-even */
    bool awaits_workers; /* the caller begins when all workers that it called have come */
    bool small_blocks;   /* as small as results allow, so that few elements are many blocks */
};

#endif
