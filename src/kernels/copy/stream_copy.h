/* A copy whose result nobody reads from the cache. */
#ifndef NUMC_STREAM_COPY_H
#define NUMC_STREAM_COPY_H

#include <stddef.h>

/* memcpy for what the processor does not read again: past its caches where it can do that. */
void copy_past_cache(char *to, const char *from, size_t bytes);

#endif
