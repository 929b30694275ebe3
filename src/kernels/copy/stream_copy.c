#include "stream_copy.h"

#include "kernels/vector.h"

void copy_past_cache(char *to, const char *from, size_t bytes)
{
    const size_t head = -(uintptr_t)to % LINE_BYTES;
    if (!CAN_STREAM || bytes < head + LINE_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, head);
    size_t done = head;
    for (; done + LINE_BYTES <= bytes; done += LINE_BYTES) {
        for (size_t i = 0; i < LINE_BYTES; i += VECTOR_BYTES) {
            stream_vector(to + done + i, from + done + i, VECTOR_BYTES);
        }
    }
    memcpy(to + done, from + done, bytes - done);
    stream_fence();
}
