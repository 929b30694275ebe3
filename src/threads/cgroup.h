/* What the control group grants: CPUs and memory. */
#ifndef NUMC_CGROUP_H
#define NUMC_CGROUP_H

#include <stddef.h>

/* CPUs that the control group's quota (v1 or v2) grants, rounded up; 0 when there is no quota.
 * Reads /proc and /sys below `root`, "" but in tests. */
int cgroup_cpus(const char *root);

/* Bytes, of the groups (v1 or v2) that bind most; SIZE_MAX when none does. */
struct cgroup_memory {
    size_t limit;
    size_t available; /* of the limit; without what the kernel would drop first */
};
struct cgroup_memory cgroup_memory(const char *root);

#endif
