#include "host_memory.h"

#include "memory/kept_blocks.h"

enum host_memory host_memory_of(struct device *device, const void *data)
{
    const int kind = kept_device_kind(data);
    return kind == KEPT_PINNED    ? HOST_PINNED
           : kind == KEPT_MANAGED ? HOST_MANAGED
                                  : device->memory_of(device, data);
}

struct extent host_memory_extent(const struct strided *operand, size_t size, ptrdiff_t batch,
                                 ptrdiff_t rows, ptrdiff_t columns)
{
    const ptrdiff_t n[] = {batch, rows, columns},
                    step[] = {operand->batch_step, operand->row_step, operand->column_step};
    return extent_of(operand->data, size, 3, n, step);
}

enum host_memory host_memory_of_extent(struct device *device, struct extent extent)
{
    const enum host_memory of_first = host_memory_of(device, (const void *)extent.first);
    if (of_first == HOST_ORDINARY) {
        return of_first;
    }
    const enum host_memory of_last = host_memory_of(device, (const void *)(extent.end - 1));
    return of_last == HOST_ORDINARY || of_first == of_last ? of_last : HOST_PINNED;
}
