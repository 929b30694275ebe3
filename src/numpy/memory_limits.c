#include "memory_limits.h"

#include "memory/kept_blocks.h"
#include "memory/machine_memory.h"
#include "threads/cgroup.h"
#include "threads/clock.h"

#include <stdio.h>

enum { PARTS = 8 };

static char root_in_use[256];
static struct kept_system in_use;
static size_t limit_set; /* 0: by the memory there is */

static size_t available(void)
{
    const size_t machines = machine_memory(root_in_use).available;
    const size_t groups = cgroup_memory(root_in_use).available;
    return machines < groups ? machines : groups;
}

static size_t limit(void)
{
    const size_t machines = machine_memory(root_in_use).total;
    const size_t groups = cgroup_memory(root_in_use).limit;
    return limit_set != 0 ? limit_set : (machines < groups ? machines : groups) / PARTS;
}

void memory_limits_initialize(size_t bytes)
{
    limit_set = bytes;
    in_use = (struct kept_system){clock_ns, available};
    kept_initialize(&in_use, limit());
}

void memory_limits_read(const char *root)
{
    snprintf(root_in_use, sizeof root_in_use, "%s", root != NULL ? root : "");
    kept_set_limit(limit());
}

void memory_limits_replace_clock(int64_t (*clock)(void))
{
    in_use.clock = clock != NULL ? clock : clock_ns;
    kept_replace_system(&in_use);
}
