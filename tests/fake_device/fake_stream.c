/* What is put into a stream stays there until somebody waits for it, but for some that is done at
 * random: a missing dependency shows as a wrong result. */
#include "fake_stream.h"

#include "fake_device.h"

#include <stdlib.h>
#include <string.h>

/* Added to a pointer it gives an address that no process has. */
static const uintptr_t OFFSET = (uintptr_t)1 << 62;

device_address fake_address(const char *pointer)
{
    return (uintptr_t)pointer + OFFSET;
}

char *fake_pointer(device_address address)
{
    return (char *)(address >= OFFSET ? address - OFFSET : address);
}

void fake_free(struct fake *fake, char *block)
{
    size_t bytes;
    memcpy(&bytes, block - HEADER, sizeof bytes);
    fake->used -= bytes;
    fake->alive--;
    free(block - HEADER);
}

void fake_run_until(struct fake *fake, struct stream *stream, uint64_t ticket)
{
    while (stream->done < ticket) {
        const struct operation operation = stream->operations[stream->done - stream->base];
        if (operation.kind == FOLLOW && !fake->lost) {
            fake_run_until(fake, operation.stream, operation.ticket);
        } else if (operation.kind == COPY && !fake->lost) {
            for (size_t row = 0; row < operation.rows; row++) {
                memcpy(operation.to + row * operation.to_step,
                       operation.from + row * operation.from_step, operation.bytes);
            }
        } else if (operation.kind == MULTIPLY && !fake->lost) {
            const struct gemm *gemm = &operation.gemm;
            if (gemm->spare != 0) {
                const size_t elements = (size_t)(gemm->batch * gemm->m * gemm->n);
                memset(fake_pointer(gemm->spare), 0xFF, elements * gemm->type.size);
            }
            fake_multiply(gemm, fake_pointer(gemm->a.at), fake_pointer(gemm->b.at),
                          fake_pointer(gemm->c));
        } else if (operation.kind == SCAN && !fake->lost) {
            if (!fake_is_finite(&operation.gemm, fake_pointer(operation.gemm.c))) {
                *operation.nonfinite = true;
            }
        } else if (operation.kind == MIRROR && !fake->lost) {
            fake_mirror(&operation.gemm, fake_pointer(operation.gemm.c));
        } else if (operation.kind == COMPUTE && !fake->lost) {
            char *data[ELEMENTWISE_OPERANDS];
            for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
                data[op] = fake_pointer(operation.work.at[op]);
            }
            fake_compute(&operation.work, data, operation.raised);
        } else if (operation.kind == RELEASE) {
            fake_free(fake, operation.to);
        }
        stream->done++;
    }
}

static uint64_t random_below(struct fake *fake, uint64_t bound)
{
    fake->random = fake->random * 6364136223846793005u + 1442695040888963407u;
    return (fake->random >> 33) % bound;
}

void fake_run_some(struct fake *fake)
{
    for (struct stream *stream = fake->streams; stream != NULL; stream = stream->next) {
        const uint64_t left = stream->count - stream->done;
        if (left > 0 && random_below(fake, 4) == 0) {
            fake_run_until(fake, stream, stream->done + 1 + random_below(fake, left));
        }
    }
}

void fake_run_all(struct fake *fake)
{
    for (struct stream *stream = fake->streams; stream != NULL; stream = stream->next) {
        fake_run_until(fake, stream, stream->count);
    }
}

enum status fake_put(struct fake *fake, struct stream *stream, const struct operation *operation)
{
    if (stream->done == stream->count) {
        stream->base = stream->count;
    }
    if (stream->count - stream->base == stream->room) {
        const uint64_t room = 2 * stream->room;
        struct operation *operations = realloc(stream->operations, room * sizeof *operations);
        if (operations == NULL) {
            return STATUS_NO_HOST_MEMORY;
        }
        stream->operations = operations;
        stream->room = room;
    }
    stream->operations[stream->count++ - stream->base] = *operation;
    fake_run_some(fake);
    return STATUS_OK;
}
