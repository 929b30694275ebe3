#include "host_memory.h"

#include "memory/kept_blocks.h"

enum host_memory host_memory_of(struct device *device, const void *data)
{
    const int kind = kept_device_kind(data);
    return kind == KEPT_PINNED    ? HOST_PINNED
           : kind == KEPT_MANAGED ? HOST_MANAGED
                                  : device->memory_of(device, data);
}
