/* Products through the pipeline on the fake device, against plain loops; then with every call of the
 * device failing once. */
#include "expect.h"
#include "fake.h"
#include "parallel.h"
#include "pipeline.h"
#include "plan.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { GUARD = 64, MOST_SECONDS = 100, RANDOM_TASKS = 250, CALLERS = 6 };

static const struct element_type types[] = {
    {ELEMENT_BOOL, 1},    {ELEMENT_INTEGER, 1}, {ELEMENT_INTEGER, 2},
    {ELEMENT_INTEGER, 4}, {ELEMENT_INTEGER, 8}, {ELEMENT_FLOAT, 4},
    {ELEMENT_FLOAT, 8},   {ELEMENT_COMPLEX, 8}, {ELEMENT_COMPLEX, 16}};

/* ---- operands ---- */

/* An operand in memory of its own, with gaps and in any order. */
struct operand_memory {
    char *memory, *copy;
    size_t bytes;
    struct matrices at;
};

static ptrdiff_t random_gap(void)
{
    return random_below(3) == 0 ? (ptrdiff_t)random_below(3) : 0;
}

static void place(struct operand_memory *operand, size_t size, ptrdiff_t batch, ptrdiff_t rows,
                  ptrdiff_t columns, bool may_repeat)
{
    ptrdiff_t extent[3] = {batch, rows, columns}, step[3];
    int order[3] = {0, 1, 2};
    if (random_below(2) == 0) {
        order[1] = 2, order[2] = 1;
    }
    if (random_below(5) == 0) {
        const int last = order[2];
        order[2] = order[0], order[0] = last;
    }
    ptrdiff_t next = (ptrdiff_t)size, first = GUARD;
    for (int i = 2; i >= 0; i--) {
        const int axis = order[i];
        if (i == 2 && random_below(4) == 0) {
            next += (ptrdiff_t)size * (1 + random_gap());
        }
        const bool repeats = may_repeat && random_below(axis == 0 ? 3 : 12) == 0;
        step[axis] = repeats ? 0 : next;
        if (!repeats) {
            next *= extent[axis];
            next += random_gap() * (ptrdiff_t)size;
        }
        if (random_below(6) == 0) {
            first += (extent[axis] - 1) * step[axis];
            step[axis] = -step[axis];
        }
    }
    operand->bytes = (size_t)next + 2 * GUARD;
    operand->memory = malloc(operand->bytes);
    operand->copy = malloc(operand->bytes);
    operand->at = (struct matrices){operand->memory + first, step[0], step[1], step[2]};
}

/* Small integers in every type: sums are exact, in whatever order. */
static void store(struct element_type type, char *to, int value)
{
    const float single[2] = {(float)value, (float)(value % 3)};
    const double wide[2] = {value, value % 3};
    const int64_t integer = type.kind == ELEMENT_BOOL ? value & 1 : value;
    memcpy(to,
           type.kind <= ELEMENT_INTEGER                            ? (const void *)&integer
           : type.size == (type.kind == ELEMENT_COMPLEX ? 8u : 4u) ? (const void *)single
                                                                   : (const void *)wide,
           type.size);
}

static void fill(const struct operand_memory *operand, struct element_type type, ptrdiff_t batch,
                 ptrdiff_t rows, ptrdiff_t columns)
{
    memset(operand->memory, 0x5A, operand->bytes);
    for (ptrdiff_t i = 0; i < batch; i++) {
        for (ptrdiff_t r = 0; r < rows; r++) {
            for (ptrdiff_t c = 0; c < columns; c++) {
                store(type,
                      operand->at.data + i * operand->at.batch_step + r * operand->at.row_step +
                          c * operand->at.column_step,
                      (int)random_below(17) - 8);
            }
        }
    }
    memcpy(operand->copy, operand->memory, operand->bytes);
}

struct problem {
    struct matmul_task task;
    struct operand_memory a, b, c;
    char *expected; /* all of c's memory */
};

/* The fake device's own product serves as the plain loop, matrix by matrix and packed: it is the
 * movement of data that is under test. Python's tests look at the product itself. */
static char *packed(const struct matrices *from, size_t size, ptrdiff_t rows, ptrdiff_t columns)
{
    char *copy = malloc((size_t)(rows * columns) * size);
    for (ptrdiff_t r = 0; r < rows; r++) {
        for (ptrdiff_t c = 0; c < columns; c++) {
            memcpy(copy + (size_t)(r * columns + c) * size,
                   from->data + r * from->row_step + c * from->column_step, size);
        }
    }
    return copy;
}

static void expect_product(struct problem *problem)
{
    const struct matmul_task *task = &problem->task;
    const size_t size = task->type.size;
    struct matrices a = task->a, b = task->b, c = task->c;
    char *product = malloc((size_t)(task->m * task->n) * size);
    problem->expected = malloc(problem->c.bytes);
    memcpy(problem->expected, problem->c.memory, problem->c.bytes);
    const struct gemm gemm = {
        .type = task->type, .batch = 1, .m = task->m, .n = task->n, .k = task->k};
    for (ptrdiff_t i = 0; i < task->batch; i++) {
        char *pa = packed(&a, size, task->m, task->k), *pb = packed(&b, size, task->k, task->n);
        fake_multiply(&gemm, pa, pb, product);
        char *to = problem->expected + (c.data - problem->c.memory);
        for (ptrdiff_t e = 0; e < task->m * task->n; e++) {
            memcpy(to + e / task->n * c.row_step + e % task->n * c.column_step,
                   product + (size_t)e * size, size);
        }
        free(pa);
        free(pb);
        a.data += a.batch_step;
        b.data += b.batch_step;
        c.data += c.batch_step;
    }
    free(product);
}

static struct problem make_problem(struct element_type type, ptrdiff_t batch, ptrdiff_t m,
                                   ptrdiff_t n, ptrdiff_t k)
{
    struct problem problem = {.task = {.type = type,
                                       .precision = PRECISION_IEEE,
                                       .kernel = GEMM_AUTO,
                                       .batch = batch,
                                       .m = m,
                                       .n = n,
                                       .k = k}};
    place(&problem.a, type.size, batch, m, k, true);
    place(&problem.b, type.size, batch, k, n, true);
    place(&problem.c, type.size, batch, m, n, false);
    fill(&problem.a, type, batch, m, k);
    fill(&problem.b, type, batch, k, n);
    fill(&problem.c, type, batch, m, n);
    problem.task.a = problem.a.at;
    problem.task.b = problem.b.at;
    problem.task.c = problem.c.at;
    expect_product(&problem);
    return problem;
}

static void free_problem(struct problem *problem)
{
    struct operand_memory *const of[] = {&problem->a, &problem->b, &problem->c};
    for (int i = 0; i < 3; i++) {
        free(of[i]->memory);
        free(of[i]->copy);
    }
    free(problem->expected);
}

static void check_memory(const struct problem *problem, enum status status, const char *what)
{
    const struct matmul_task *task = &problem->task;
    const bool inputs = memcmp(problem->a.memory, problem->a.copy, problem->a.bytes) == 0 &&
                        memcmp(problem->b.memory, problem->b.copy, problem->b.bytes) == 0;
    expect(inputs, "%s: an input was written to", what);
    if (status == STATUS_OK) {
        expect(memcmp(problem->c.memory, problem->expected, problem->c.bytes) == 0,
               "%s: wrong result: kind %d size %zu, batch %td, %td x %td x %td, "
               "a %td %td %td, b %td %td %td, c %td %td %td",
               what, (int)task->type.kind, task->type.size, task->batch, task->m, task->n, task->k,
               task->a.batch_step, task->a.row_step, task->a.column_step, task->b.batch_step,
               task->b.row_step, task->b.column_step, task->c.batch_step, task->c.row_step,
               task->c.column_step);
    }
}

static struct problem random_problem(void)
{
    const struct element_type type = types[random_below(sizeof types / sizeof types[0])];
    const ptrdiff_t batch = random_below(2) == 0 ? 1 : 1 + (ptrdiff_t)random_below(7);
    ptrdiff_t extent[3];
    for (int i = 0; i < 3; i++) {
        extent[i] = 1 + (ptrdiff_t)random_below(random_below(3) == 0 ? 3 : 40);
    }
    return make_problem(type, batch, extent[0], extent[1], extent[2]);
}

/* ---- tests ---- */

static size_t least_memory(const struct matmul_task *task)
{
    struct plan plan;
    size_t bytes = 256;
    while (!plan_make(&plan, task, bytes)) {
        bytes += 256;
    }
    return bytes;
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
        struct plan plan;
        tiles +=
            plan_make(&plan, &problem.task, limit != 0 ? limit : device->memory) ? plan.tiles : 0;
        if (random_below(4) == 0) {
            struct operand_memory *const of[] = {&problem.a, &problem.b, &problem.c};
            const struct operand_memory *pinned = of[random_below(3)];
            fake_pin(device, pinned->memory, pinned->bytes);
        }
        struct pipeline *pipeline = pipeline_new(device, limit);
        threads_set_for_this_thread(1 + (int)random_below(5));
        struct pipeline_report report;
        const enum status status = pipeline_matmul(pipeline, &problem.task, &report);
        expect(status == STATUS_OK, "status %d", (int)status);
        check_memory(&problem, status, "random");
        pipeline_delete(pipeline);
        expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
        fake_delete(device);
        free_problem(&problem);
    }
    printf("%d random products of %ld tiles\n", RANDOM_TASKS, tiles);
    expect(tiles > 20 * RANDOM_TASKS, "too few tiles: %ld", tiles);
}

/* Several pieces and panels each. */
static void check_large_tasks(void)
{
    static const ptrdiff_t shapes[][4] = {{1, 3000, 5, 160},
                                          {1, 5, 3000, 170},
                                          {40, 200, 190, 3},
                                          {1, 100000, 3, 2},
                                          {3, 700, 900, 3}};
    struct device *device = fake_new((size_t)1 << 30);
    struct pipeline *pipeline = pipeline_new(device, 0);
    threads_set_for_this_thread(4);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const ptrdiff_t *of = shapes[i];
        struct problem problem =
            make_problem((struct element_type){ELEMENT_FLOAT, 8}, of[0], of[1], of[2], of[3]);
        struct pipeline_report report;
        const enum status status = pipeline_matmul(pipeline, &problem.task, &report);
        expect(status == STATUS_OK, "large: status %d", (int)status);
        expect(report.threads > 1 && !report.nonfinite, "large: %d threads", report.threads);
        check_memory(&problem, status, "large");
        free_problem(&problem);
    }
    pipeline_delete(pipeline);
    expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
    fake_delete(device);
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
        pipeline_delete(pipeline);
        expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
        fake_delete(device);
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
    struct queue *queue;
    device_address other;
    expect(device->new_queue(device, &queue) == STATUS_OK &&
               device->alloc(device, queue, 5 << 20, &other) == STATUS_OK,
           "no queue");
    pipeline = pipeline_new(device, 0);
    status = pipeline_matmul(pipeline, &problem.task, &report);
    expect(status == STATUS_OK, "half of the memory: status %d", (int)status);
    check_memory(&problem, status, "half of the memory");
    device->release(device, queue, other);
    device->release_queue(device, queue);
    pipeline_delete(pipeline);
    expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
    fake_delete(device);
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
    pipeline_delete(pipeline);
    expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
    fake_delete(device);
}

/* ---- infinities and NaNs ---- */

static void check_exceptions(const char *what, double a, double b, bool nonfinite, int exceptions)
{
    double x[2] = {a, 1}, y[2] = {b, 1}, z;
    const struct matmul_task task = {
        .type = {ELEMENT_FLOAT, 8},
        .precision = PRECISION_IEEE,
        .kernel = GEMM_AUTO,
        .batch = 1,
        .m = 1,
        .n = 1,
        .k = 2,
        .a = {(char *)x, 0, 16, 8},
        .b = {(char *)y, 0, 8, 8},
        .c = {(char *)&z, 0, 8, 8},
    };
    struct device *device = fake_new((size_t)1 << 20);
    struct pipeline *pipeline = pipeline_new(device, 0);
    struct pipeline_report report;
    feclearexcept(FE_ALL_EXCEPT);
    expect(pipeline_matmul(pipeline, &task, &report) == STATUS_OK, "%s: no result", what);
    expect(fetestexcept(FE_ALL_EXCEPT) == 0, "%s: the pipeline raised a flag", what);
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
    check_too_little_memory();
    check_callers();
    for (int threads = 1; threads <= 3; threads += 2) {
        check_failures(STATUS_FAILED, threads);
        check_failures(STATUS_LOST, threads);
    }
    return expect_result("pipeline");
}
