/* Products through the pipeline on the fake device, against plain loops; then with every call of the
 * device failing once. */
#include "device/device_plan.h"
#include "device/nonfinite.h"
#include "device/pipeline.h"
#include "fake_device.h"
#include "problem.h"
#include "threads/limit.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SECONDS = 100, RANDOM_TASKS = 250, CALLERS = 6 };

static size_t least_memory(const struct matmul_task *task)
{
    struct device_plan plan;
    size_t bytes = 256;
    while (!plan_make(&plan, task, bytes)) {
        bytes += 256;
    }
    return bytes;
}

/* The pipeline is done with the device, and so is the test. */
static void delete_both(struct pipeline *pipeline, struct device *device)
{
    pipeline_delete(pipeline);
    expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
    fake_delete(device);
}

/* Ends the device and the problem. */
static void check_product(struct device *device, struct problem *problem, size_t limit,
                          const char *what)
{
    struct pipeline *pipeline = pipeline_new(device, limit);
    threads_set_for_this_thread(1 + (int)random_below(5));
    struct pipeline_report report;
    const enum status status = pipeline_matmul(pipeline, &problem->task, &report);
    expect(status == STATUS_OK, "%s: status %d", what, (int)status);
    check_memory(problem, status, what);
    delete_both(pipeline, device);
    free_problem(problem);
}

static void check_random_tasks(void)
{
    long tiles = 0;
    for (int i = 0; i < RANDOM_TASKS; i++) {
        struct problem problem = random_problem();
        struct device *device = fake_new((size_t)1 << 30);
        const size_t limits[] = {0, least_memory(&problem.task),
                                 least_memory(&problem.task) * (1 + random_below(8))};
        const size_t limit = limits[random_below(3)];
        struct device_plan plan;
        tiles +=
            plan_make(&plan, &problem.task, limit != 0 ? limit : device->memory) ? plan.tiles : 0;
        if (random_below(4) == 0) {
            const struct operand_memory *const of[] = {&problem.a, &problem.b, &problem.c};
            const struct operand_memory *pinned = of[random_below(3)];
            fake_pin(device, pinned->memory, pinned->bytes);
        }
        check_product(device, &problem, limit, "random");
    }
    printf("%d random products of %ld tiles\n", RANDOM_TASKS, tiles);
    expect(tiles > 20 * RANDOM_TASKS, "too few tiles: %ld", tiles);
}

/* Several chunks and panels each. Workers are awaited: those that come late may find nothing left. */
static void check_large_tasks(void)
{
    static const struct policy awaiting = {.awaits_workers = true};
    static const ptrdiff_t shapes[][4] = {
        {1, 3000, 5, 160}, {1, 5, 3000, 170},  {40, 200, 190, 3},
        {1, 100000, 3, 2}, {1, 100000, 3, 60}, /* more than the ring holds */
        {3, 700, 900, 3}};
    struct device *device = fake_new((size_t)1 << 30);
    struct pipeline *pipeline = pipeline_new(device, 0);
    threads_set_for_this_thread(4);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const ptrdiff_t *of = shapes[i];
        struct problem problem =
            make_problem((struct element_type){ELEMENT_FLOAT, 8}, of[0], of[1], of[2], of[3]);
        struct pipeline_report report;
        problem.task.policy = &awaiting;
        const enum status status = pipeline_matmul(pipeline, &problem.task, &report);
        expect(status == STATUS_OK, "large: status %d", (int)status);
        expect(report.threads > 1 && !report.nonfinite, "large: %d threads", report.threads);
        check_memory(&problem, status, "large");
        free_problem(&problem);
    }
    delete_both(pipeline, device);
}

static struct matmul_task task_without_data(struct element_type type, ptrdiff_t m, ptrdiff_t n,
                                            ptrdiff_t k)
{
    const ptrdiff_t size = (ptrdiff_t)type.size;
    return (struct matmul_task){
        .type = type,
        .product.batch = 1,
        .product.m = m,
        .product.n = n,
        .product.k = k,
        .product.a = {NULL, 0, size * k, size},
        .product.b = {NULL, 0, size * n, size},
        .product.c = {NULL, 0, size * n, size},
    };
}

static void check_what_gains_by_alternating(void)
{
    static const struct {
        struct element_type type;
        ptrdiff_t m, n, k;
        bool gains;
    } cases[] = {
        {{ELEMENT_FLOAT, 4}, 4096, 4096, 4096, true},
        {{ELEMENT_FLOAT, 4}, 4096, 4096, 32, false},
        {{ELEMENT_FLOAT, 4}, 32, 4096, 4096, false},
        {{ELEMENT_FLOAT, 8}, 4096, 4096, 4096, false},
        {{ELEMENT_FLOAT, 8}, 8192, 9000, 8192, true},
        {{ELEMENT_FLOAT, 2}, 16384, 16384, 16384, false},
        {{ELEMENT_INTEGER, 8}, 4096, 4096, 4096, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct matmul_task task =
            task_without_data(cases[i].type, cases[i].m, cases[i].n, cases[i].k);
        struct device_plan plan;
        expect(plan_make(&plan, &task, (size_t)1 << 40), "no plan");
        expect(plan.alternates == cases[i].gains, "case %zu: alternates", i);
        const size_t too_little = plan.panels[OPERAND_A].bytes + plan.panels[OPERAND_B].bytes;
        expect(plan_make(&plan, &task, too_little) && !plan.alternates, "case %zu: they fit?", i);
    }
}

/* Every tile once, and every part of an operand first at the tile that says so. */
static void check_alternating_order(ptrdiff_t m, ptrdiff_t n)
{
    const struct matmul_task task =
        task_without_data((struct element_type){ELEMENT_FLOAT, 4}, m, n, 1);
    struct device_plan plan;
    expect(plan_make_alternating(&plan, &task, (size_t)1 << 40), "does not alternate");
    bool *done = calloc((size_t)plan.tiles, sizeof *done);
    ptrdiff_t elements = 0, panels[] = {0, 0};
    for (ptrdiff_t tile = 0; tile < plan.tiles; tile++) {
        const struct plan_tile of = plan_tile(&plan, tile);
        bool *here = &done[of.panel[OPERAND_A] * plan.column_count + of.panel[OPERAND_B]];
        expect(!*here, "tile %td: again", tile);
        *here = true;
        elements += of.m * of.n;
        for (enum operand operand = OPERAND_A; operand <= OPERAND_B; operand++) {
            const bool is_next = of.panel[operand] == panels[operand];
            expect(plan_tile_is_first(&plan, tile, operand) == is_next, "tile %td", tile);
            panels[operand] += is_next;
        }
    }
    expect(elements == m * n, "%td elements", elements);
    free(done);
}

static void check_alternating_products(void)
{
    struct device *device = fake_new((size_t)1 << 30);
    struct pipeline *pipeline = pipeline_new(device, 0);
    for (int i = 0; i < 30; i++) {
        const ptrdiff_t m = 1 + (ptrdiff_t)random_below(300), n = 1 + (ptrdiff_t)random_below(300);
        struct problem problem =
            make_problem(types[random_below(sizeof types / sizeof types[0])], 1, m, n, 3);
        struct device_plan plan;
        expect(plan_make_alternating(&plan, &problem.task, device->memory), "does not alternate");
        threads_set_for_this_thread(1 + (int)random_below(5));
        struct pipeline_report report;
        const enum status status = pipeline_run(pipeline, &plan, &report);
        expect(status == STATUS_OK, "alternating: status %d", (int)status);
        check_memory(&problem, status, "alternating");
        free_problem(&problem);
    }
    delete_both(pipeline, device);
}

/* Memory to compute in, which the fake device fills with NaNs. */
static void check_spare_memory(void)
{
    ptrdiff_t most_tiles = 0;
    for (int i = 0; i < 12; i++) {
        const struct element_type type = {ELEMENT_COMPLEX, random_below(2) == 0 ? 8 : 16};
        const ptrdiff_t m = 1 + (ptrdiff_t)random_below(12), n = 1 + (ptrdiff_t)random_below(12);
        struct problem problem = make_problem(type, 1, m, n, 513);
        const size_t limit = least_memory(&problem.task) * (1 + random_below(8));
        struct device_plan plan;
        expect(plan_make(&plan, &problem.task, limit), "no plan");
        for (ptrdiff_t tile = 0; tile < plan.tiles; tile++) {
            const struct plan_tile of = plan_tile(&plan, tile);
            const size_t spare = plan_spare(&plan, 1, tile) - 1;
            expect(spare > 0 && spare + (size_t)(of.batch * of.m * of.n) * type.size <= plan.bytes,
                   "tile %td: spare memory from %zu of %zu on", tile, spare, plan.bytes);
            expect(tile == 0 || plan_spare(&plan, 1, tile - 1) != spare + 1,
                   "tile %td: the same as the one before", tile);
        }
        most_tiles = plan.tiles > most_tiles ? plan.tiles : most_tiles;
        check_product(fake_new((size_t)1 << 30), &problem, limit, "spare");
    }
    expect(most_tiles > PLAN_STREAMS, "at most %td tiles", most_tiles);
}

static void check_failures(enum status failure, int threads)
{
    long failed = 0, right = 0;
    struct problem problem = make_problem((struct element_type){ELEMENT_INTEGER, 4}, 2, 37, 23, 11);
    threads_set_for_this_thread(threads);
    for (long n = 1;; n++) {
        struct device *device = fake_new((size_t)1 << 20);
        struct pipeline *pipeline = pipeline_new(device, 40 * least_memory(&problem.task));
        memcpy(problem.c.memory, problem.c.copy, problem.c.bytes);
        fake_fail(device, n, failure);
        struct pipeline_report report;
        enum status status = pipeline_matmul(pipeline, &problem.task, &report);
        const bool over = fake_calls(device) < n;
        expect(status == STATUS_OK || status == failure, "status %d instead of %d", (int)status,
               (int)failure);
        check_memory(&problem, status, "after a failure");
        failed += status != STATUS_OK;
        right += status == STATUS_OK;
        /* And the next call works, unless the device is gone. */
        memcpy(problem.c.memory, problem.c.copy, problem.c.bytes);
        status = pipeline_matmul(pipeline, &problem.task, &report);
        expect(over || status == (failure == STATUS_LOST ? STATUS_LOST : STATUS_OK),
               "the call after a failure: status %d", (int)status);
        check_memory(&problem, status, "the call after");
        delete_both(pipeline, device);
        if (over) {
            break;
        }
    }
    printf("status %d, %d threads: %ld calls failed, %ld gave a result\n", (int)failure, threads,
           failed, right);
    free_problem(&problem);
}

static void check_too_little_memory(void)
{
    struct problem problem = make_problem((struct element_type){ELEMENT_FLOAT, 8}, 1, 64, 64, 4096);
    struct device *device = fake_new(30 << 10); /* not even a row and a column */
    struct pipeline *pipeline = pipeline_new(device, 0);
    struct pipeline_report report;
    enum status status = pipeline_matmul(pipeline, &problem.task, &report);
    expect(status == STATUS_NO_DEVICE_MEMORY, "too little memory: status %d", (int)status);
    check_memory(&problem, status, "too little memory");
    pipeline_delete(pipeline);
    /* Half of what it says that it has: the first plan fails, the second does not. */
    device->memory = 8 << 20;
    struct stream *stream;
    device_address other = 0;
    expect(device->new_stream(device, &stream) == STATUS_OK &&
               device->alloc(device, stream, 5 << 20, &other) == STATUS_OK,
           "no stream");
    pipeline = pipeline_new(device, 0);
    status = pipeline_matmul(pipeline, &problem.task, &report);
    expect(status == STATUS_OK, "half of the memory: status %d", (int)status);
    check_memory(&problem, status, "half of the memory");
    device->release(device, stream, other);
    device->release_stream(device, stream);
    delete_both(pipeline, device);
    free_problem(&problem);
}

struct caller {
    struct pipeline *pipeline;
    struct problem problem;
};

static void *call_often(void *context)
{
    struct caller *caller = context;
    threads_set_for_this_thread(3);
    for (int i = 0; i < 20; i++) {
        struct pipeline_report report;
        memcpy(caller->problem.c.memory, caller->problem.c.copy, caller->problem.c.bytes);
        const enum status status =
            pipeline_matmul(caller->pipeline, &caller->problem.task, &report);
        expect(status == STATUS_OK, "a caller's status %d", (int)status);
        check_memory(&caller->problem, status, "callers");
    }
    return NULL;
}

static void check_callers(void)
{
    struct device *device = fake_new((size_t)1 << 30);
    struct pipeline *pipeline = pipeline_new(device, 0);
    pthread_t threads[CALLERS];
    struct caller callers[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){pipeline, random_problem()};
        pthread_create(&threads[i], NULL, call_often, &callers[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        free_problem(&callers[i].problem);
    }
    delete_both(pipeline, device);
}

/* ---- infinities and NaNs ---- */

static void check_exceptions(const char *what, double a, double b, bool nonfinite, int exceptions)
{
    double x[2] = {a, 1}, y[2] = {b, 1}, z;
    const struct matmul_task task = {
        .policy = &production,
        .type = {ELEMENT_FLOAT, 8},
        .precision = PRECISION_IEEE,
        .kernel = GEMM_AUTO,
        .product.batch = 1,
        .product.m = 1,
        .product.n = 1,
        .product.k = 2,
        .product.a = {(char *)x, 0, 16, 8},
        .product.b = {(char *)y, 0, 8, 8},
        .product.c = {(char *)&z, 0, 8, 8},
    };
    struct device *device = fake_new((size_t)1 << 20);
    struct pipeline *pipeline = pipeline_new(device, 0);
    struct pipeline_report report;
    expect(pipeline_matmul(pipeline, &task, &report) == STATUS_OK, "%s: no result", what);
    expect(report.nonfinite == nonfinite, "%s: nonfinite is %d", what, report.nonfinite);
    expect(!nonfinite || nonfinite_exceptions(&task) == exceptions, "%s: exceptions %#x", what,
           (unsigned)nonfinite_exceptions(&task));
    pipeline_delete(pipeline);
    fake_delete(device);
}

static void check_nonfinite(void)
{
    check_exceptions("finite", 3, 4, false, 0);
    check_exceptions("largest", 1.7e308, 1, false, 0);
    check_exceptions("overflow", 1e300, 1e300, true, FE_OVERFLOW);
    check_exceptions("infinite", INFINITY, -2, true, 0);
    check_exceptions("infinite times 0", INFINITY, 0, true, FE_INVALID);
    check_exceptions("not a number", NAN, 0, true, 0);
    check_exceptions("not a number, infinite", INFINITY, NAN, true, 0);
}

int main(void)
{
    alarm(MOST_SECONDS); /* a hang is a failure, not a wait */
    threads_initialize(0, "");
    check_nonfinite();
    check_random_tasks();
    check_large_tasks();
    check_what_gains_by_alternating();
    check_alternating_order(4096, 4096);
    check_alternating_order(4100, 30000);
    check_alternating_order(30000, 4100);
    check_alternating_order(9000, 13001);
    check_alternating_products();
    check_spare_memory();
    check_too_little_memory();
    check_callers();
    for (int threads = 1; threads <= 3; threads += 2) {
        check_failures(STATUS_FAILED, threads);
        check_failures(STATUS_LOST, threads);
    }
    return expect_result("pipeline");
}
