/* Cache sizes from sysfs: sysconf(_SC_LEVEL3_CACHE_SIZE) is the sum over the package on AMD. */
#include "caches.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_CACHES = 16,
    FALLBACK_BYTES = 32 << 20,
    /* A virtual machine of few CPUs is told its host's whole cache, most of which is its neighbours': with
     * 480 MiB for 2 CPUs, streaming stores pay from 32 MiB on (docs/measurements/short-calls.md). */
    MOST_BYTES_OF_CPU = 16 << 20,
};

static bool read_field(const char *root, int cpu, int index, const char *field, char *line,
                       int size)
{
    char path[PATH_MAX];
    const int length =
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/cache/index%d/%s", root, cpu,
                 index, field);
    FILE *stream = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    if (stream == NULL) {
        return false;
    }
    const bool read = fgets(line, size, stream) != NULL;
    fclose(stream);
    return read;
}

/* "32768K" or "32M", with or without a newline; 0 for what is no size. */
static size_t parse_size(const char *text)
{
    unsigned long long number;
    char unit = 'B';
    if (*text < '0' || *text > '9' || sscanf(text, "%llu%c", &number, &unit) < 1) {
        return 0;
    }
    const int shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
    const bool is_size = shift != 0 || unit == 'B' || unit == '\n';
    return is_size && number <= SIZE_MAX >> shift ? (size_t)number << shift : 0;
}

/* How many CPUs a list such as "0-3,8" names. */
static size_t count_cpus(const char *list)
{
    size_t count = 0;
    unsigned first, last;
    int length;
    while (sscanf(list, "%u%n", &first, &length) == 1) {
        list += length;
        last = first;
        if (sscanf(list, "-%u%n", &last, &length) == 1) {
            list += length;
        }
        count += last >= first ? last - first + 1 : 0;
        if (*list != ',') {
            break;
        }
        list++;
    }
    return count;
}

size_t cache_last_level_in(const char *root, int cpu)
{
    int last_level = 0;
    size_t bytes = 0;
    char line[256];
    for (int index = 0; index < MOST_CACHES; index++) {
        if (!read_field(root, cpu, index, "level", line, sizeof line)) {
            continue;
        }
        const int level = atoi(line);
        const bool holds_data = !read_field(root, cpu, index, "type", line, sizeof line) ||
                                strncmp(line, "Instruction", strlen("Instruction")) != 0;
        const size_t size =
            read_field(root, cpu, index, "size", line, sizeof line) ? parse_size(line) : 0;
        if (holds_data && level > last_level && size > 0) {
            const size_t cpus = read_field(root, cpu, index, "shared_cpu_list", line, sizeof line)
                                    ? count_cpus(line)
                                    : 0;
            const size_t most = cpus * MOST_BYTES_OF_CPU;
            last_level = level;
            bytes = cpus > 0 && most < size ? most : size;
        }
    }
    return bytes;
}

size_t cache_last_level(void)
{
    static _Atomic size_t known;
    size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes == 0) {
        const int cpu = sched_getcpu();
        bytes = cache_last_level_in("", cpu >= 0 ? cpu : 0);
        const long of_system = bytes == 0 ? sysconf(_SC_LEVEL3_CACHE_SIZE) : 0;
        bytes = bytes > 0 ? bytes : of_system > 0 ? (size_t)of_system : FALLBACK_BYTES;
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}
