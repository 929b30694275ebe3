/* The CPU quota and the memory of the control group that this process is in. */
#include "cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not inlined: the calling thread's stack may be small, and several paths too much for it. */
static __attribute__((noinline)) FILE *open_file(const char *root, const char *folder,
                                                 const char *group, const char *file)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s%s%s%s", root, folder, group, file);
    return length >= 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
}

static bool read_line(char *line, size_t size, const char *root, const char *folder,
                      const char *group, const char *file)
{
    FILE *stream = open_file(root, folder, group, file);
    if (stream == NULL) {
        return false;
    }
    const bool read = fgets(line, (int)size, stream) != NULL;
    fclose(stream);
    return read;
}

/* ---- the groups that bind ---- */

/* What a controller grants by one group, noted where it is less than what was found before. */
typedef void look_function(const char *root, const char *group, void *found);

/* A group is bound by its ancestors, too. In a container the path may be the host's and not exist
 * here; the walk then ends at the mounted root, which is the container's own group. */
static void look_up_to_root(look_function *look, const char *root, char *group, void *found)
{
    for (;;) {
        look(root, group, found);
        char *last = strrchr(group, '/');
        if (last == NULL) {
            return;
        }
        *last = '\0';
    }
}

/* Whether a controller is one of the comma-separated names. */
static bool names_controller(const char *names, const char *controller)
{
    const size_t wanted = strlen(controller);
    for (const char *name = names; *name != '\0';) {
        const size_t length = strcspn(name, ",");
        if (length == wanted && strncmp(name, controller, wanted) == 0) {
            return true;
        }
        name += length + (name[length] == ',');
    }
    return false;
}

static void look_at_groups(const char *root, const char *controller, look_function *look_v2,
                           look_function *look_v1, void *found)
{
    FILE *stream = open_file(root, "/proc/self/cgroup", "", "");
    if (stream == NULL) {
        return;
    }
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stream) >= 0) {
        /* hierarchy:controllers:group, the controllers empty for v2 */
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':');
        char *group = names != NULL ? strchr(names + 1, ':') : NULL;
        if (group == NULL) {
            continue;
        }
        *group++ = '\0';
        names++;
        if (*names == '\0') {
            look_up_to_root(look_v2, root, group, found);
        } else if (names_controller(names, controller)) {
            look_up_to_root(look_v1, root, group, found);
        }
    }
    free(line);
    fclose(stream);
}

/* ---- CPUs ---- */

static void note_cpus(long long quota, long long period, int *least)
{
    if (quota <= 0 || period <= 0) {
        return;
    }
    const long long exact = quota / period + (quota % period != 0);
    const int cpus = exact < INT_MAX ? (int)exact : INT_MAX;
    *least = *least == 0 || cpus < *least ? cpus : *least;
}

static void look_at_quota_v2(const char *root, const char *group, void *least)
{
    char line[128];
    long long quota, period;
    if (read_line(line, sizeof line, root, "/sys/fs/cgroup", group, "/cpu.max") &&
        sscanf(line, "%lld %lld", &quota, &period) == 2) { /* "max 100000": no quota */
        note_cpus(quota, period, least);
    }
}

static void look_at_quota_v1(const char *root, const char *group, void *least)
{
    static const char *const folders[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char quota[64], period[64];
        if (read_line(quota, sizeof quota, root, folders[i], group, "/cpu.cfs_quota_us") &&
            read_line(period, sizeof period, root, folders[i], group, "/cpu.cfs_period_us")) {
            note_cpus(atoll(quota), atoll(period), least);
            return;
        }
    }
}

int cgroup_cpus(const char *root)
{
    int least = 0;
    look_at_groups(root, "cpu", look_at_quota_v2, look_at_quota_v1, &least);
    return least;
}

/* ---- memory ---- */

static bool read_bytes(const char *root, const char *folder, const char *group, const char *file,
                       size_t *bytes)
{
    char line[64];
    unsigned long long number;
    if (!read_line(line, sizeof line, root, folder, group, file) || *line < '0' || *line > '9' ||
        sscanf(line, "%llu", &number) != 1) { /* "max": no limit */
        return false;
    }
    *bytes = number < SIZE_MAX ? (size_t)number : SIZE_MAX;
    return true;
}

/* Pages of files count as used, but the kernel drops them before it refuses memory. */
static size_t read_cached(const char *root, const char *folder, const char *group)
{
    FILE *stream = open_file(root, folder, group, "/memory.stat");
    size_t cached = 0;
    char line[128], name[64];
    unsigned long long bytes;
    while (stream != NULL && fgets(line, sizeof line, stream) != NULL) {
        if (sscanf(line, "%63s %llu", name, &bytes) == 2 &&
            (strcmp(name, "inactive_file") == 0 || strcmp(name, "active_file") == 0)) {
            cached += (size_t)bytes;
        }
    }
    if (stream != NULL) {
        fclose(stream);
    }
    return cached;
}

static void note_memory(const char *root, const char *folder, const char *group,
                        const char *limit_file, const char *usage_file, struct cgroup_memory *least)
{
    size_t limit, usage;
    if (!read_bytes(root, folder, group, limit_file, &limit) ||
        !read_bytes(root, folder, group, usage_file, &usage)) {
        return;
    }
    const size_t cached = read_cached(root, folder, group);
    const size_t in_use = usage > cached ? usage - cached : 0;
    const size_t available = limit > in_use ? limit - in_use : 0;
    least->limit = limit < least->limit ? limit : least->limit;
    least->available = available < least->available ? available : least->available;
}

static void look_at_memory_v2(const char *root, const char *group, void *least)
{
    note_memory(root, "/sys/fs/cgroup", group, "/memory.max", "/memory.current", least);
}

static void look_at_memory_v1(const char *root, const char *group, void *least)
{
    note_memory(root, "/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes",
                "/memory.usage_in_bytes", least);
}

struct cgroup_memory cgroup_memory(const char *root)
{
    struct cgroup_memory least = {SIZE_MAX, SIZE_MAX};
    look_at_groups(root, "memory", look_at_memory_v2, look_at_memory_v1, &least);
    return least;
}
