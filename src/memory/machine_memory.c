#include "machine_memory.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Not inlined: the calling thread's stack may be small. */
static __attribute__((noinline)) FILE *open_meminfo(const char *root)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/proc/meminfo", root);
    return length >= 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
}

struct machine_memory machine_memory(const char *root)
{
    struct machine_memory memory = {SIZE_MAX, SIZE_MAX};
    FILE *stream = open_meminfo(root);
    char line[128], name[64];
    unsigned long long kib;
    while (stream != NULL && fgets(line, sizeof line, stream) != NULL) {
        if (sscanf(line, "%63[^:]: %llu kB", name, &kib) != 2 || kib > SIZE_MAX >> 10) {
            continue;
        }
        if (strcmp(name, "MemTotal") == 0) {
            memory.total = (size_t)kib << 10;
        } else if (strcmp(name, "MemAvailable") == 0) {
            memory.available = (size_t)kib << 10;
            break; /* it comes after the total */
        }
    }
    if (stream != NULL) {
        fclose(stream);
    }
    return memory;
}
