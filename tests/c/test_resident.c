/* Products of operands in pinned and managed memory, on the fake device. */
#include "device/pipeline.h"
#include "device/resident.h"
#include "fake_device.h"
#include "kernels/matmul/product_steps.h"
#include "problem.h"
#include "threads/limit.h"

#include <string.h>
#include <unistd.h>

enum { MOST_SECONDS = 100, RANDOM_TASKS = 250 };

/* Moves an operand there; it stays where it is if that fails. */
static void give(struct device *device, struct operand_memory *operand, enum host_memory kind)
{
    char *ordinary = operand->memory;
    void *given = NULL;
    const enum status status = kind == HOST_PINNED
                                   ? device->alloc_pinned(device, operand->bytes, &given)
                                   : device->alloc_managed(device, operand->bytes, &given);
    if (status == STATUS_OK) {
        memcpy(given, ordinary, operand->bytes);
        operand->at.data = (char *)given + (operand->at.data - ordinary);
        operand->memory = given;
    }
}

static void take_back(struct device *device, struct operand_memory *operand, char *ordinary,
                      enum host_memory kind)
{
    if (operand->memory != ordinary) {
        void (*release)(struct device *, void *) =
            kind == HOST_PINNED ? device->release_pinned : device->release_managed;
        operand->at.data = ordinary + (operand->at.data - operand->memory);
        release(device, operand->memory);
        operand->memory = ordinary;
    }
}

static long resident_products; /* where nothing is copied */
static long pipelined_products;

/* With operands in these kinds of memory. Ends the device. */
static enum status multiply_given(struct device *device, struct problem *problem,
                                  const enum host_memory kinds[3], const char *what)
{
    struct pipeline *pipeline = pipeline_new(device, 0);
    struct operand_memory *const of[] = {&problem->a, &problem->b, &problem->c};
    struct strided *const at[] = {&problem->task.product.a, &problem->task.product.b,
                                  &problem->task.product.c};
    char *ordinary[3];
    for (int i = 0; i < 3; i++) {
        ordinary[i] = of[i]->memory;
        if (kinds[i] != HOST_ORDINARY) {
            give(device, of[i], kinds[i]);
        }
        *at[i] = of[i]->at;
    }
    resident_products += resident_is_possible(device, &problem->task);
    struct pipeline_report report = {0};
    const enum status status = pipeline_matmul(pipeline, &problem->task, &report);
    pipelined_products += report.times.last_upload > 0;
    check_memory(problem, status, what);
    for (int i = 0; i < 3; i++) {
        take_back(device, of[i], ordinary[i], kinds[i]);
    }
    pipeline_delete(pipeline);
    expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
    fake_delete(device);
    return status;
}

static bool has_no_gaps(const struct strided *operand, ptrdiff_t size, ptrdiff_t columns)
{
    return operand->column_step == size && operand->row_step == columns * size;
}

static bool are_without_gaps(const struct product *x, ptrdiff_t size)
{
    return has_no_gaps(&x->a, size, x->k) && has_no_gaps(&x->b, size, x->n) &&
           has_no_gaps(&x->c, size, x->n);
}

/* The device copies them itself: rows that are long enough may have gaps between them. */
static bool are_by_rows(const struct product *x, ptrdiff_t size)
{
    return x->a.column_step == size && x->a.row_step >= x->k * size &&
           has_no_gaps(&x->b, size, x->n) && has_no_gaps(&x->c, size, x->n);
}

/* The same of the transposed product. */
static bool are_by_columns(const struct product *x, ptrdiff_t size)
{
    const struct product turned = product_transposed(x);
    return are_by_rows(&turned, size);
}

static struct problem reached_problem(int i)
{
    const ptrdiff_t m = 1 + (ptrdiff_t)random_below(40), n = 250 + (ptrdiff_t)random_below(50);
    switch (i % 8) {
    case 0:
        return problem_that(are_without_gaps, (struct element_type){ELEMENT_INTEGER, 8}, 1, 30, 20,
                            10);
    case 1: /* with rows that are copied by themselves */
        return make_problem((struct element_type){ELEMENT_FLOAT, 8}, 1, m, n, 20);
    default:
        return random_problem();
    }
}

static void check_reached_memory(void)
{
    for (int i = 0; i < RANDOM_TASKS; i++) {
        struct problem problem = reached_problem(i);
        enum host_memory kinds[3];
        for (int operand = 0; operand < 3; operand++) {
            kinds[operand] = i % 2 == 0 ? HOST_MANAGED : (enum host_memory)random_below(3);
        }
        threads_set_for_this_thread(1 + (int)random_below(4));
        const enum status status =
            multiply_given(fake_new((size_t)1 << 30), &problem, kinds, "reached memory");
        expect(status == STATUS_OK, "reached memory: status %d", (int)status);
        free_problem(&problem);
    }
    expect(resident_products >= RANDOM_TASKS / 10, "%ld resident products", resident_products);
}

static const enum host_memory all_pinned[] = {HOST_PINNED, HOST_PINNED, HOST_PINNED},
                              all_managed[] = {HOST_MANAGED, HOST_MANAGED, HOST_MANAGED};

static void check_pinned(bool (*suits)(const struct product *, ptrdiff_t), struct element_type type,
                         ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    const long before = pipelined_products;
    struct problem problem = problem_that(suits, type, 1, m, n, k);
    const enum status status =
        multiply_given(fake_new((size_t)1 << 30), &problem, all_pinned, "pinned");
    expect(status == STATUS_OK, "pinned: status %d", (int)status);
    expect(pipelined_products == before, "it went through the pipeline");
    free_problem(&problem);
}

static void check_all_pinned(void)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const struct element_type type = types[i];
        const ptrdiff_t longer = 512 + (ptrdiff_t)random_below(500),
                        shorter = 2 + (ptrdiff_t)random_below(4),
                        k = 700 + (ptrdiff_t)random_below(800);
        if (type.kind >= ELEMENT_FLOAT) {
            check_pinned(are_by_rows, type, longer, shorter, k);
            check_pinned(are_by_columns, type, shorter, longer, k);
        }
    }
}

static void check_failures(enum status failure, struct problem problem,
                           const enum host_memory kinds[3], const char *what)
{
    enum { CALLS = 80 }; /* more than it takes */
    long failed = 0;
    for (long n = 1; n <= CALLS; n++) {
        struct device *device = fake_new((size_t)1 << 24);
        fake_fail(device, n, failure);
        const enum status status = multiply_given(device, &problem, kinds, what);
        expect(status == STATUS_OK || status == failure, "%s: status %d", what, (int)status);
        failed += status != STATUS_OK;
    }
    free_problem(&problem);
    expect(failed > 5, "%s: %ld failures", what, failed);
}

int main(void)
{
    static const struct element_type complex_type = {ELEMENT_COMPLEX, 8};
    alarm(MOST_SECONDS); /* a hang is a failure, not a wait */
    threads_initialize(0, "");
    check_reached_memory();
    check_all_pinned();
    for (enum status failure = STATUS_FAILED; failure <= STATUS_LOST; failure++) {
        check_failures(failure, problem_that(are_without_gaps, complex_type, 1, 9, 7, 600),
                       all_managed, "managed, a failure");
        check_failures(
            failure,
            problem_that(are_by_rows, (struct element_type){ELEMENT_FLOAT, 8}, 1, 513, 1, 360),
            all_pinned, "pinned, a failure");
    }
    return expect_result("resident");
}
