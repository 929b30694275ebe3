/* The CPU quota of the control group. */
#ifndef NUMC_CGROUP_H
#define NUMC_CGROUP_H

/* CPUs that the control group's quota (v1 or v2) grants, rounded up; 0 when there is no quota.
 * Reads /proc and /sys below `root`, "" but in tests. */
int cgroup_cpus(const char *root);

#endif
