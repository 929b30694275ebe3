/* Cache sizes, in a made-up /sys. */
#include "expect.h"
#include "made_up_root.h"
#include "memory/caches.h"

#define CPU(cpu) "sys/devices/system/cpu/cpu" #cpu "/cache/"
#define CACHE(cpu, index, cache_level, cache_type, cache_size)                                     \
    {CPU(cpu) "index" #index "/level", cache_level},                                               \
        {CPU(cpu) "index" #index "/type", cache_type},                                             \
    {                                                                                              \
        CPU(cpu) "index" #index "/size", cache_size                                                \
    }

enum { MOST_FILES = 32 };

static void check(const char *what, int cpu, size_t bytes, const struct file files[])
{
    make_root();
    for (int i = 0; i < MOST_FILES && files[i].name != NULL; i++) {
        write_file(files[i].name, files[i].text);
    }
    const size_t found = cache_last_level_in(root, cpu);
    expect(found == bytes, "%s: %zu bytes, not %zu", what, found, bytes);
    remove_root();
}

typedef const struct file files[MOST_FILES];

static void check_processors(void)
{
    const struct file two_dies[MOST_FILES] = {
        CACHE(0, 0, "1\n", "Data\n", "48K\n"),       CACHE(0, 1, "1\n", "Instruction\n", "32K\n"),
        CACHE(0, 2, "2\n", "Unified\n", "1024K\n"),  CACHE(0, 3, "3\n", "Unified\n", "32768K\n"),
        CACHE(8, 0, "3\n", "Unified\n", "98304K\n"),
    };
    check("one die of several", 0, (size_t)32 << 20, two_dies);
    check("a die with a larger cache", 8, (size_t)96 << 20, two_dies);
    check("another CPU", 1, 0, two_dies);
    check("no third level", 3, (size_t)2 << 20,
          (files){CACHE(3, 0, "1\n", "Data\n", "32K\n"), CACHE(3, 2, "2\n", "Unified\n", "2M\n")});
    check(
        "a fourth level", 0, (size_t)1 << 30,
        (files){CACHE(0, 3, "3\n", "Unified\n", "8M\n"), CACHE(0, 4, "4\n", "Unified\n", "1G\n")});
    check(
        "in descending order", 0, (size_t)8 << 20,
        (files){CACHE(0, 0, "3\n", "Unified\n", "8192K\n"), CACHE(0, 1, "1\n", "Data\n", "32K\n")});
}

static void check_sizes(void)
{
    check("no newline", 0, (size_t)8 << 20, (files){CACHE(0, 3, "3", "Unified", "8M")});
    check("bytes", 0, 65536, (files){CACHE(0, 0, "1\n", "Data\n", "65536\n")});
    check("no unit that is known", 0, 0, (files){CACHE(0, 0, "1\n", "Data\n", "64Q\n")});
    check("no number", 0, 0, (files){CACHE(0, 0, "1\n", "Data\n", "large\n")});
    check("negative", 0, 0, (files){CACHE(0, 0, "1\n", "Data\n", "-1K\n")});
    check("too large", 0, 0, (files){CACHE(0, 0, "1\n", "Data\n", "18446744073709551615G\n")});
    check(
        "zero, as some hypervisors say", 0, (size_t)1 << 20,
        (files){CACHE(0, 2, "2\n", "Unified\n", "1M\n"), CACHE(0, 3, "3\n", "Unified\n", "0K\n")});
}

/* A cache of 480 MiB and those that share it: 16 MiB for each are taken for theirs. */
static void check_sharing(void)
{
    static const struct {
        const char *list;
        size_t mebibytes;
    } cases[] = {{"0-1\n", 32},   {"0\n", 16},     {"0,4\n", 32}, {"0-3,8-9\n", 96},
                 {"0-63\n", 480}, {"none\n", 480}, {"3-1\n", 480}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check(cases[i].list, 0, cases[i].mebibytes << 20,
              (files){CACHE(0, 3, "3\n", "Unified\n", "480M\n"),
                      {CPU(0) "index3/shared_cpu_list", cases[i].list}});
    }
}

static void check_missing_files(void)
{
    check("nothing", 0, 0, (files){{"sys/devices/system/cpu/online", "0-1\n"}});
    check("no size", 0, (size_t)1 << 20,
          (files){CACHE(0, 2, "2\n", "Unified\n", "1M\n"), {CPU(0) "index3/level", "3\n"}});
    check("empty files", 0, 0, (files){CACHE(0, 3, "", "", "")});
    check("no level", 0, 0, (files){{CPU(0) "index3/size", "8M\n"}});
    check("no type", 0, (size_t)8 << 20,
          (files){{CPU(0) "index3/level", "3\n"}, {CPU(0) "index3/size", "8M\n"}});
    check("only instructions", 0, 0, (files){CACHE(0, 1, "1\n", "Instruction\n", "32K\n")});
}

int main(void)
{
    check_processors();
    check_sizes();
    check_sharing();
    check_missing_files();
    expect(cache_last_level_in("/nonexistent", 0) == 0, "a root that does not exist");
    expect(cache_last_level() >= 1 << 14, "the real cache: %zu bytes", cache_last_level());
    return expect_result("caches");
}
