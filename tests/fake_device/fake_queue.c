/* What is put into a queue stays there until somebody waits for it, but for some that is done at
 * random: a missing dependency shows as a wrong result. */
#include "fake_queue.h"

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
    return (char *)(address - OFFSET);
}

void fake_free(struct fake *fake, char *block)
{
    size_t bytes;
    memcpy(&bytes, block - HEADER, sizeof bytes);
    fake->used -= bytes;
    fake->alive--;
    free(block - HEADER);
}

void fake_run_until(struct fake *fake, struct queue *queue, uint64_t ticket)
{
    while (queue->done < ticket) {
        const struct operation operation = queue->operations[queue->done - queue->base];
        if (operation.kind == FOLLOW && !fake->lost) {
            fake_run_until(fake, operation.queue, operation.ticket);
        } else if (operation.kind == COPY && !fake->lost) {
            memcpy(operation.to, operation.from, operation.bytes);
        } else if (operation.kind == MULTIPLY && !fake->lost) {
            const struct gemm *gemm = &operation.gemm;
            if (gemm->spare != 0) {
                const size_t elements = (size_t)(gemm->batch * gemm->m * gemm->n);
                memset(fake_pointer(gemm->spare), 0xFF, elements * gemm->type.size);
            }
            fake_multiply(gemm, fake_pointer(gemm->a.at), fake_pointer(gemm->b.at),
                          fake_pointer(gemm->c));
        } else if (operation.kind == RELEASE) {
            fake_free(fake, operation.to);
        }
        queue->done++;
    }
}

static uint64_t random_below(struct fake *fake, uint64_t bound)
{
    fake->random = fake->random * 6364136223846793005u + 1442695040888963407u;
    return (fake->random >> 33) % bound;
}

void fake_run_some(struct fake *fake)
{
    for (struct queue *queue = fake->queues; queue != NULL; queue = queue->next) {
        const uint64_t left = queue->count - queue->done;
        if (left > 0 && random_below(fake, 4) == 0) {
            fake_run_until(fake, queue, queue->done + 1 + random_below(fake, left));
        }
    }
}

void fake_run_all(struct fake *fake)
{
    for (struct queue *queue = fake->queues; queue != NULL; queue = queue->next) {
        fake_run_until(fake, queue, queue->count);
    }
}

enum status fake_put(struct fake *fake, struct queue *queue, const struct operation *operation)
{
    if (queue->done == queue->count) {
        queue->base = queue->count;
    }
    if (queue->count - queue->base == queue->room) {
        const uint64_t room = 2 * queue->room;
        struct operation *operations = realloc(queue->operations, room * sizeof *operations);
        if (operations == NULL) {
            return STATUS_NO_HOST_MEMORY;
        }
        queue->operations = operations;
        queue->room = room;
    }
    queue->operations[queue->count++ - queue->base] = *operation;
    fake_run_some(fake);
    return STATUS_OK;
}
