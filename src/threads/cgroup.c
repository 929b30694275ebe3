/* The CPU quota of the control group that this process is in. */
#include "cgroup.h"

#include <limits.h>
#include <stdbool.h>
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

static int cpus_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) {
        return 0;
    }
    const long long cpus = quota / period + (quota % period != 0);
    return cpus < INT_MAX ? (int)cpus : INT_MAX;
}

static int quota_v2(const char *root, const char *group)
{
    char line[128];
    long long quota, period;
    if (!read_line(line, sizeof line, root, "/sys/fs/cgroup", group, "/cpu.max") ||
        sscanf(line, "%lld %lld", &quota, &period) != 2) { /* "max 100000": no quota */
        return 0;
    }
    return cpus_of(quota, period);
}

static int quota_v1(const char *root, const char *group)
{
    static const char *const folders[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char quota[64], period[64];
        if (read_line(quota, sizeof quota, root, folders[i], group, "/cpu.cfs_quota_us") &&
            read_line(period, sizeof period, root, folders[i], group, "/cpu.cfs_period_us")) {
            return cpus_of(atoll(quota), atoll(period));
        }
    }
    return 0;
}

/* A group is bound by its ancestors, too. In a container the path may be the host's and not exist
 * here; the walk then ends at the mounted root, which is the container's own group. */
static int least_up_to_root(int (*quota)(const char *, const char *), const char *root, char *group)
{
    int least = 0;
    for (;;) {
        const int cpus = quota(root, group);
        if (cpus != 0 && (least == 0 || cpus < least)) {
            least = cpus;
        }
        char *last = strrchr(group, '/');
        if (last == NULL) {
            return least;
        }
        *last = '\0';
    }
}

/* Whether "cpu" is one of the comma-separated names. */
static bool names_cpu(const char *controllers)
{
    for (const char *name = controllers; *name != '\0';) {
        const size_t length = strcspn(name, ",");
        if (length == 3 && strncmp(name, "cpu", 3) == 0) {
            return true;
        }
        name += length + (name[length] == ',');
    }
    return false;
}

int cgroup_cpus(const char *root)
{
    FILE *stream = open_file(root, "/proc/self/cgroup", "", "");
    if (stream == NULL) {
        return 0;
    }
    int least = 0;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stream) >= 0) {
        /* hierarchy:controllers:group, the controllers empty for v2 */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) {
            continue;
        }
        *group++ = '\0';
        controllers++;
        int cpus = 0;
        if (*controllers == '\0') {
            cpus = least_up_to_root(quota_v2, root, group);
        } else if (names_cpu(controllers)) {
            cpus = least_up_to_root(quota_v1, root, group);
        }
        if (cpus != 0 && (least == 0 || cpus < least)) {
            least = cpus;
        }
    }
    free(line);
    fclose(stream);
    return least;
}
