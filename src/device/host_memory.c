#include "host_memory.h"

#include "memory/kept_blocks.h"

enum host_memory host_memory_of(struct device *device, const void *data)
{
    const int kind = kept_device_kind(data);
    return kind == KEPT_PINNED    ? HOST_PINNED
           : kind == KEPT_MANAGED ? HOST_MANAGED
                                  : device->memory_of(device, data);
}

void host_memory_reach(const struct strided *operand, ptrdiff_t batch, ptrdiff_t rows,
                       ptrdiff_t columns, const char **first, const char **last)
{
    const ptrdiff_t reach[] = {(batch - 1) * operand->batch_step, (rows - 1) * operand->row_step,
                               (columns - 1) * operand->column_step};
    *first = *last = operand->data;
    for (int i = 0; i < 3; i++) {
        *first += reach[i] < 0 ? reach[i] : 0;
        *last += reach[i] > 0 ? reach[i] : 0;
    }
}

enum host_memory host_memory_of_operand(struct device *device, const struct strided *operand,
                                        ptrdiff_t batch, ptrdiff_t rows, ptrdiff_t columns)
{
    const char *first, *last;
    host_memory_reach(operand, batch, rows, columns, &first, &last);
    const enum host_memory of_first = host_memory_of(device, first);
    if (of_first == HOST_ORDINARY || first == last) {
        return of_first;
    }
    const enum host_memory of_last = host_memory_of(device, last);
    return of_last == HOST_ORDINARY || of_first == of_last ? of_last : HOST_PINNED;
}
