/* A copy for results that are not read again soon. */
#ifndef NUMC_STREAM_COPY_H
#define NUMC_STREAM_COPY_H

#include <stddef.h>

/* memcpy with streaming stores where the processor has them. */
void copy_past_cache(char *to, const char *from, size_t bytes);

#endif
