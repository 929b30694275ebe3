/* How many threads copy between ordinary memory and the pinned ring. */
#ifndef NUMC_COPY_THREADS_H
#define NUMC_COPY_THREADS_H

#include <stddef.h>

/* For a call that copies so many bytes, and may use up to `most` threads. */
int copy_threads(ptrdiff_t bytes, int most);

#endif
