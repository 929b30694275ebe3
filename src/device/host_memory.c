#include "host_memory.h"

enum host_memory host_memory_of(struct device *device, const void *data)
{
    return device->memory_of(device, data);
}
