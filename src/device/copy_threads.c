#include "copy_threads.h"

#include "device_cutoffs.h"

int copy_threads(ptrdiff_t bytes, int most)
{
    const ptrdiff_t chunks = bytes / LEAST_CHUNK_BYTES + 1, more = bytes / BYTES_PER_COPY_THREAD;
    int threads = most < MOST_COPY_THREADS ? most : MOST_COPY_THREADS;
    threads = LEAST_COPY_THREADS + more < threads ? LEAST_COPY_THREADS + (int)more : threads;
    return chunks > threads ? threads : (int)chunks;
}
