/* What the memory of this machine can do. */
#ifndef NUMC_BANDWIDTH_H
#define NUMC_BANDWIDTH_H

#include <stddef.h>

/* Bytes per second, read and written, of arrays of `bytes` each: the best of several passes.
 * 0 when there is no memory for them. */
enum bandwidth {
    BANDWIDTH_COPY,         /* ordinary stores */
    BANDWIDTH_STREAMING_ADD /* two arrays read, one written past the cache */
};
double bandwidth_measure(enum bandwidth what, size_t bytes, int threads);

#endif
