/* Where products are placed by made-up rates, what is measured by a made-up clock, and the file. */
#include "device/measure_rates.h"
#include "device/placement.h"
#include "expect.h"
#include "fake_device.h"
#include "threads/limit.h"
#include "threads/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct rates made_up_rates(double speedup)
{
    struct rates rates = {.threads = 4, .memory = 20e9, .transfer = 10e9, .latency_ns = 50e3};
    for (int type = 0; type < RATE_TYPES; type++) {
        rates.product[type] = rates.stack[type] = 100e9;
        rates.device[type] = 100e9 * speedup;
    }
    return rates;
}

static struct matmul_task task_of(struct element_type type, ptrdiff_t batch, ptrdiff_t m,
                                  ptrdiff_t n, ptrdiff_t k)
{
    const ptrdiff_t size = (ptrdiff_t)type.size;
    return (struct matmul_task){
        .type = type,
        .product.batch = batch,
        .product.m = m,
        .product.n = n,
        .product.k = k,
        .product.a = {NULL, m * k * size, k * size, size},
        .product.b = {NULL, k * n * size, n * size, size},
        .product.c = {NULL, m * n * size, n * size, size},
    };
}

/* From break-even on the device computes all larger squares. With more threads of ours break-even is later;
 * BLAS has threads of its own. */
static void check_break_even(struct element_type type)
{
    const struct rates rates = made_up_rates(50);
    const bool by_blas = type.kind >= ELEMENT_FLOAT && type.size > 2;
    ptrdiff_t before = 0;
    for (int threads = 1; threads <= 16; threads *= 4) {
        ptrdiff_t break_even = 0;
        for (ptrdiff_t n = 8; n <= 8192; n += n / 8) {
            const struct matmul_task task = task_of(type, 1, n, n, n);
            const bool there = placement_is_device(&rates, &task, threads, false);
            expect(there == placement_is_device(&rates, &task, threads, false), "%td: it changed",
                   n);
            expect(there || break_even == 0, "%td is the processor's again", n);
            break_even = there && break_even == 0 ? n : break_even;
        }
        expect(by_blas && before > 0 ? break_even == before : break_even > before,
               "%d threads: break-even at %td", threads, break_even);
        before = break_even;
    }
}

static void check_placement(void)
{
    const struct element_type type = {ELEMENT_FLOAT, 4};
    struct rates rates = made_up_rates(50);
    struct matmul_task task = task_of(type, 1, 4096, 1, 4096);
    expect(!placement_is_device(&rates, &task, 4, false), "a vector is all transfer");
    expect(placement_is_device(&rates, &task, 4, true), "but not one that lies there");
    task = task_of(type, 1000, 64, 16, 64);
    expect(!placement_is_device(&rates, &task, 4, false), "a stack that is all transfer");
    rates.stack[rates_type(type)] = 1e9;
    expect(placement_is_device(&rates, &task, 4, false), "a stack of which the processor is slow");
    task.product.b.batch_step = task.product.a.batch_step = 0;
    expect(placement_upload_seconds(&rates, &task) == (64.0 * 64 + 64 * 16) * 4 / rates.transfer,
           "what a stack shares is uploaded once");
    rates = made_up_rates(0.5);
    task = task_of(type, 1, 8192, 8192, 8192);
    expect(!placement_is_device(&rates, &task, 4, false), "the device is slower");
    rates = made_up_rates(1e6);
    rates.transfer = rates.memory = 1e18;
    rates.latency_ns = 1;
    task = task_of(type, 1, 64, 64, 64);
    expect(!placement_is_device(&rates, &task, 4, false), "too short for any device");
}

static void check_start(void)
{
    const struct matmul_task small =
        task_of((struct element_type){ELEMENT_FLOAT, 4}, 1, 300, 300, 300);
    const struct matmul_task large =
        task_of((struct element_type){ELEMENT_INTEGER, 8}, 1, 8192, 8192, 8192);
    struct time_lost lost = {0};
    expect(!placement_pays_start(&lost, &small, 1), "nothing was lost yet");
    expect(placement_pays_start(&lost, &large, 1), "this one alone is worth it");
    placement_note_seconds(&lost, &small, 0);
    expect(lost.seconds == 0, "nothing can be gained");
    placement_note_seconds(&lost, &small, 0.3);
    placement_note_seconds(&lost, &small, 0.3);
    expect(lost.seconds > 0.5 && placement_pays_start(&lost, &small, 1), "enough was lost");
}

/* ---- measuring ---- */

static double now, growth, clock_step = 1e-3;

/* Each look is later than the one before by more and more. */
static double growing_clock(void)
{
    clock_step *= growth;
    return now += clock_step;
}

static int processed;
static ptrdiff_t largest; /* side of what was */

static bool processor(const struct matmul_task *task)
{
    processed++;
    if (task->product.n > 1 && task->product.m > largest) { /* no vector */
        largest = task->product.m;
    }
    return task->product.m > 0;
}

static void check_measuring(void)
{
    static const struct policy policy;
    struct device *device = fake_new((size_t)1 << 30);
    struct pipeline *pipeline = pipeline_new(device, 0);
    const struct rates_source source = {&policy, pipeline, processor, 3, growing_clock};
    struct rates rates;
    bool disturbed = true;
    growth = 1;
    expect(rates_measure(&source, &rates, &disturbed) == STATUS_OK && !disturbed, "undisturbed");
    expect(rates.threads == 3 && fabs(rates.latency_ns - 1e6) < 10, "latency %g", rates.latency_ns);
    expect(processed > 3 * RATE_TYPES, "%d products of the processor", processed);
    expect(largest == 256, "side %td on a slow processor", largest);
    clock_step = 1e-4;
    expect(rates_measure(&source, &rates, &disturbed) == STATUS_OK && !disturbed, "undisturbed");
    expect(largest == 1024, "side %td on a fast processor", largest);
    clock_step = 1e-3;
    growth = 0.8; /* every product is faster than the one before: no two agree */
    expect(rates_measure(&source, &rates, &disturbed) == STATUS_OK && disturbed, "disturbed");
    growth = 1;
    clock_step = 0.4;
    processed = 0;
    disturbed = false;
    expect(rates_measure(&source, &rates, &disturbed) == STATUS_OK && disturbed, "a slow machine");
    expect(processed < 6 * RATE_TYPES, "one run each that counts, not %d in all", processed);
    fake_fail(device, 3, STATUS_FAILED);
    expect(rates_measure(&source, &rates, &disturbed) == STATUS_FAILED, "a failure");
    pipeline_delete(pipeline);
    expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
    fake_delete(device);
}

/* ---- the file ---- */

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    expect(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "cannot write %s", path);
}

static void check_file(const char *folder)
{
    char path[300], key[1000], text[1000];
    struct rates rates = made_up_rates(3), found;
    int disturbed = -1;
    snprintf(path, sizeof path, "%s/a/b/rates.txt", folder);
    rates_key(key, sizeof key, 8, "a GPU", "1.2.3");
    expect(strstr(key, "8 threads, a GPU, 1.2.3") != NULL, "key %s", key);
    expect(!rates_load(path, key, &found, &disturbed), "there is no file");
    rates.latency_ns = 0.3; /* becomes 1 */
    rates.transfer = INFINITY;
    rates_round(&rates);
    expect(rates_save(path, key, &rates, 2), "not saved");
    expect(rates_load(path, key, &found, &disturbed), "not found");
    expect(memcmp(&found, &rates, sizeof rates) == 0 && disturbed == 2, "not as they were");

    struct stat made;
    snprintf(text, sizeof text, "%s/a", folder);
    expect(stat(text, &made) == 0 && (made.st_mode & 077) == 0, "others may read folder a");

    const struct rates other = made_up_rates(7);
    expect(rates_save(path, "another machine", &other, 0), "not saved");
    expect(rates_load(path, key, &found, &disturbed) && found.device[3] == rates.device[3] &&
               rates_load(path, "another machine", &found, &disturbed) &&
               found.device[3] == other.device[3],
           "one machine's rates replace another's");
    expect(rates_save(path, key, &other, 0) && rates_load(path, key, &found, &disturbed) &&
               found.device[3] == other.device[3] && disturbed == 0,
           "not replaced");
    expect(!rates_load(path, "another", &found, &disturbed), "a part of a key is no key");

    static const char *const corrupt[] = {"", "rates\n", "numc_ufuncs rates 1\n",
                                          "numc_ufuncs rates 1\nkey\t0\t1 2 3\n",
                                          "numc_ufuncs rates 1\nkey\t0\tnan inf -1 x\n"};
    for (size_t i = 0; i < sizeof corrupt / sizeof corrupt[0]; i++) {
        write_text(path, corrupt[i]);
        expect(!rates_load(path, "key", &found, &disturbed), "corrupt file %zu", i);
        expect(rates_save(path, "key", &other, 0) && rates_load(path, "key", &found, &disturbed),
               "corrupt file %zu is not replaced", i);
    }
    static const char *const wrong[] = {"0.5", "0", "-1", "1e18", "inf", "nan"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        size_t used = (size_t)snprintf(text, sizeof text, "numc_ufuncs rates 1\nkey\t0\t");
        for (int n = 1; n < RATE_COUNT; n++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%d ", n);
        }
        snprintf(text + used, sizeof text - used, "7\n");
        write_text(path, text);
        expect(rates_load(path, "key", &found, &disturbed), "right rates");
        snprintf(text + used, sizeof text - used, "%s\n", wrong[i]);
        write_text(path, text);
        expect(!rates_load(path, "key", &found, &disturbed), "a rate of %s", wrong[i]);
    }
    expect(rates_save(path, "key", &other, 0), "not saved");
    expect(truncate(path, 300) == 0, "not cut off");
    expect(!rates_load(path, "key", &found, &disturbed), "a file that was cut off");
    /* A folder in the place of a file cannot be written to, even by root. */
    expect(!rates_save("/proc/numc_ufuncs/rates.txt", "key", &other, 0), "saved in /proc");
    expect(!rates_save("", "key", &other, 0), "saved nowhere");
}

static void check_path(void)
{
    char path[100];
    setenv("XDG_CACHE_HOME", "/cache", 1);
    rates_path(path, sizeof path);
    expect(strcmp(path, "/cache/numc_ufuncs/rates.txt") == 0, "path %s", path);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/home/me", 1);
    rates_path(path, sizeof path);
    expect(strcmp(path, "/home/me/.cache/numc_ufuncs/rates.txt") == 0, "path %s", path);
    unsetenv("HOME");
    rates_path(path, sizeof path);
    expect(path[0] == '\0', "path %s", path);
}

int main(void)
{
    threads_initialize(0, "");
    for (int type = 0; type < RATE_TYPES; type++) {
        check_break_even(rates_types[type]);
    }
    check_placement();
    check_start();
    check_measuring();
    char folder[] = "/tmp/numc_placement.XXXXXX";
    expect(mkdtemp(folder) != NULL, "no folder");
    check_file(folder);
    char path[300];
    static const char *const below[] = {"/a/b/rates.txt", "/a/b", "/a", ""};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", folder, below[i]);
        expect(remove(path) == 0, "%s is left", path);
    }
    check_path();
    return expect_result("placement");
}
