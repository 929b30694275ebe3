/* CPU quotas and memory of control groups, in a made-up /proc and /sys. */
#include "expect.h"
#include "made_up_root.h"
#include "threads/cgroup.h"

#include <limits.h>

/* The first file is /proc/self/cgroup, unless it has a name of its own. */
static void check(const char *what, int cpus, const struct file files[])
{
    make_root();
    for (int i = 0; files[i].name != NULL; i++) {
        write_file(files[i].name, files[i].text);
    }
    const int found = cgroup_cpus(root);
    expect(found == cpus, "%s: %d CPUs, not %d", what, found, cpus);
    remove_root();
}

#define GROUP "proc/self/cgroup"
#define V2 "sys/fs/cgroup/"
#define V1 "sys/fs/cgroup/cpu/"
#define V1_BOTH "sys/fs/cgroup/cpu,cpuacct/"

static void check_v2(void)
{
    typedef const struct file files[8];
    check("v2", 3, (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "300000 100000\n"}});
    check("v2, rounded up", 2, (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "150000 100000\n"}});
    check("v2, part of a CPU", 1, (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "1000 100000\n"}});
    check("v2, other period", 4, (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "40000 10000\n"}});
    check("v2, max", 0, (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "max 100000\n"}});
    check("v2, at the root", 5, (files){{GROUP, "0::/\n"}, {V2 "cpu.max", "500000 100000\n"}});
    check("v2, the parent binds", 2,
          (files){{GROUP, "0::/a/b\n"},
                  {V2 "a/cpu.max", "200000 100000\n"},
                  {V2 "a/b/cpu.max", "800000 100000\n"}});
    check("v2, the child binds", 2,
          (files){{GROUP, "0::/a/b\n"},
                  {V2 "a/cpu.max", "800000 100000\n"},
                  {V2 "a/b/cpu.max", "200000 100000\n"}});
    check("v2, only the grandparent has a quota", 6,
          (files){{GROUP, "0::/a/b/c\n"},
                  {V2 "a/cpu.max", "600000 100000\n"},
                  {V2 "a/b/cpu.max", "max 100000\n"},
                  {V2 "a/b/c/cpu.max", "max 100000\n"}});
    check("v2, the host's path in a container", 7,
          (files){{GROUP, "0::/kubepods/pod1/c1\n"}, {V2 "cpu.max", "700000 100000\n"}});
    check("v2, no newline", 3, (files){{GROUP, "0::/a"}, {V2 "a/cpu.max", "300000 100000"}});
    check("v2, a colon in the name", 3,
          (files){{GROUP, "0::/a:b\n"}, {V2 "a:b/cpu.max", "300000 100000\n"}});
}

static void check_v1(void)
{
    typedef const struct file files[8];
    check("v1", 3,
          (files){{GROUP, "4:cpu:/a\n"},
                  {V1 "a/cpu.cfs_quota_us", "300000\n"},
                  {V1 "a/cpu.cfs_period_us", "100000\n"}});
    check("v1, no quota", 0,
          (files){{GROUP, "4:cpu:/a\n"},
                  {V1 "a/cpu.cfs_quota_us", "-1\n"},
                  {V1 "a/cpu.cfs_period_us", "100000\n"}});
    check("v1, cpu,cpuacct", 2,
          (files){{GROUP, "9:memory:/m\n4:cpu,cpuacct:/a\n"},
                  {V1_BOTH "a/cpu.cfs_quota_us", "150000\n"},
                  {V1_BOTH "a/cpu.cfs_period_us", "100000\n"}});
    check("v1, cpuacct,cpu", 2,
          (files){{GROUP, "4:cpuacct,cpu:/a\n"},
                  {V1 "a/cpu.cfs_quota_us", "200000\n"},
                  {V1 "a/cpu.cfs_period_us", "100000\n"}});
    check("v1, the parent binds", 1,
          (files){{GROUP, "4:cpu:/a/b\n"},
                  {V1 "a/cpu.cfs_quota_us", "100000\n"},
                  {V1 "a/cpu.cfs_period_us", "100000\n"},
                  {V1 "a/b/cpu.cfs_quota_us", "400000\n"},
                  {V1 "a/b/cpu.cfs_period_us", "100000\n"}});
    check("v1, cpuset is not cpu", 0,
          (files){{GROUP, "4:cpuset:/a\n5:cpuacct:/a\n6:name=cpux:/a\n"},
                  {V1 "a/cpu.cfs_quota_us", "300000\n"},
                  {V1 "a/cpu.cfs_period_us", "100000\n"}});
    check("v1, no period", 0,
          (files){{GROUP, "4:cpu:/a\n"}, {V1 "a/cpu.cfs_quota_us", "300000\n"}});
    check("v1 and v2, the lesser binds", 2,
          (files){{GROUP, "4:cpu:/a\n0::/b\n"},
                  {V1 "a/cpu.cfs_quota_us", "200000\n"},
                  {V1 "a/cpu.cfs_period_us", "100000\n"},
                  {V2 "b/cpu.max", "300000 100000\n"}});
}

static void check_broken(void)
{
    typedef const struct file files[8];
    check("no /proc/self/cgroup", 0, (files){{V2 "cpu.max", "300000 100000\n"}});
    check("no /sys", 0, (files){{GROUP, "0::/a\n"}});
    check("empty", 0, (files){{GROUP, ""}, {V2 "cpu.max", "300000 100000\n"}});
    check("garbage", 0, (files){{GROUP, "nonsense\n:\n"}, {V2 "cpu.max", "300000 100000\n"}});
    check("empty cpu.max", 0, (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", ""}});
    check("negative", 0, (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "-5 100000\n"}});
    check("period 0", 0, (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "100000 0\n"}});
    check("huge", INT_MAX,
          (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "9000000000000000000 1\n"}});
    check("largest", INT_MAX,
          (files){{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "9223372036854775807 2\n"}});
}

static void check_memory(const char *what, size_t limit, size_t available,
                         const struct file files[])
{
    make_root();
    for (int i = 0; files[i].name != NULL; i++) {
        write_file(files[i].name, files[i].text);
    }
    const struct cgroup_memory found = cgroup_memory(root);
    expect(found.limit == limit, "%s: limit %zu, not %zu", what, found.limit, limit);
    expect(found.available == available, "%s: %zu available, not %zu", what, found.available,
           available);
    remove_root();
}

#define V1_MEMORY "sys/fs/cgroup/memory/"

static void check_memories(void)
{
    typedef const struct file files[8];
    check_memory("v2", 1000, 700,
                 (files){{GROUP, "0::/a\n"},
                         {V2 "a/memory.max", "1000\n"},
                         {V2 "a/memory.current", "300\n"}});
    check_memory("v2, max", SIZE_MAX, SIZE_MAX,
                 (files){{GROUP, "0::/a\n"},
                         {V2 "a/memory.max", "max\n"},
                         {V2 "a/memory.current", "300\n"}});
    check_memory(
        "v2, files in memory", 1000, 830,
        (files){{GROUP, "0::/a\n"},
                {V2 "a/memory.max", "1000\n"},
                {V2 "a/memory.current", "300\n"},
                {V2 "a/memory.stat", "anon 7\ninactive_file 100\nactive_file 30\nfile 9"}});
    check_memory("v2, one group has the limit, another uses it up", 1000, 50,
                 (files){{GROUP, "0::/a/b\n"},
                         {V2 "a/memory.max", "2000\n"},
                         {V2 "a/memory.current", "1950\n"},
                         {V2 "a/b/memory.max", "1000\n"},
                         {V2 "a/b/memory.current", "300\n"}});
    check_memory(
        "v2, beyond the limit", 1000, 0,
        (files){{GROUP, "0::/\n"}, {V2 "memory.max", "1000\n"}, {V2 "memory.current", "1300\n"}});
    check_memory("v1", 1000, 700,
                 (files){{GROUP, "4:cpu:/b\n5:memory:/a\n"},
                         {V1_MEMORY "a/memory.limit_in_bytes", "1000\n"},
                         {V1_MEMORY "a/memory.usage_in_bytes", "300\n"}});
    check_memory("v1, another controller", SIZE_MAX, SIZE_MAX,
                 (files){{GROUP, "4:cpu:/a\n"},
                         {V1_MEMORY "a/memory.limit_in_bytes", "1000\n"},
                         {V1_MEMORY "a/memory.usage_in_bytes", "300\n"}});
    check_memory("no usage", SIZE_MAX, SIZE_MAX,
                 (files){{GROUP, "0::/\n"}, {V2 "memory.max", "1000\n"}});
    check_memory("garbage", SIZE_MAX, SIZE_MAX,
                 (files){{GROUP, "0::/\n"}, {V2 "memory.max", "\n"}, {V2 "memory.current", "x\n"}});
    check_memory("nothing", SIZE_MAX, SIZE_MAX, (files){{GROUP, ""}});
}

int main(void)
{
    check_v2();
    check_v1();
    check_broken();
    check_memories();
    expect(cgroup_cpus("") >= 0, "the real control group");
    expect(cgroup_cpus("/nonexistent") == 0, "a root that does not exist");
    return expect_result("cgroup");
}
