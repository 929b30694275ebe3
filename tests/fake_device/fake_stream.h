/* What the fake device has, and what is in its streams. */
#ifndef NUMC_FAKE_STREAM_H
#define NUMC_FAKE_STREAM_H

#include "device/device.h"

#include <pthread.h>

enum operation_kind { FOLLOW, COPY, MULTIPLY, SCAN, MIRROR, COMPUTE, RELEASE };

struct operation {
    enum operation_kind kind;
    struct stream *stream; /* FOLLOW: until so much of it is done */
    uint64_t ticket;
    char *to;
    const char *from;
    size_t bytes, rows, to_step, from_step;
    struct gemm gemm;
    bool *nonfinite; /* SCAN: of gemm.c */
    struct elementwise_work work;
    uint32_t *raised;
};

struct stream {
    struct stream *next;
    struct operation *operations; /* from the one with ticket `base` on */
    uint64_t base, done, count, room;
};

struct event {
    struct stream *stream;
    uint64_t ticket;
};

/* Pinned or managed memory that was given. */
struct fake_memory {
    struct fake_memory *next;
    char *data;
    size_t bytes;
    enum host_memory kind;
    bool is_there; /* managed: its pages are on the device */
};

struct fake {
    struct device device;
    pthread_mutex_t lock;
    struct stream *streams;
    uint64_t random;
    size_t used;
    long calls, fail_at, alive;
    enum status failure;
    bool lost;
    struct fake_memory *given;
    const char *pinned; /* memory of others */
    size_t pinned_bytes;
};

enum { HEADER = 64 }; /* in front of what is allocated: its size */

/* All under the lock. */

device_address fake_address(const char *pointer);
/* Of memory of the device, or of pinned and managed memory. */
char *fake_pointer(device_address address);
void fake_free(struct fake *fake, char *block);

enum status fake_put(struct fake *fake, struct stream *stream, const struct operation *operation);

/* Does what is in the stream, up to a ticket; some of what is in any stream; all. */
void fake_run_until(struct fake *fake, struct stream *stream, uint64_t ticket);
void fake_run_some(struct fake *fake);
void fake_run_all(struct fake *fake);

#endif
