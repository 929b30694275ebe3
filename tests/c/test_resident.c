/* Products of operands in pinned and managed memory, on the fake device. */
#include "device/pipeline.h"
#include "device/resident.h"
#include "fake_device.h"
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
    struct pipeline_report report;
    const enum status status = pipeline_matmul(pipeline, &problem->task, &report);
    check_memory(problem, status, what);
    for (int i = 0; i < 3; i++) {
        take_back(device, of[i], ordinary[i], kinds[i]);
    }
    pipeline_delete(pipeline);
    expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
    fake_delete(device);
    return status;
}

static bool is_plain(const struct strided *operand, size_t size, ptrdiff_t columns)
{
    return operand->column_step == (ptrdiff_t)size &&
           operand->row_step == columns * (ptrdiff_t)size;
}

/* Matrices without gaps. */
static struct problem plain_problem(struct element_type type, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    for (;;) {
        struct problem problem = make_problem(type, 1, m, n, k);
        const struct product *x = &problem.task.product;
        if (is_plain(&x->a, type.size, k) && is_plain(&x->b, type.size, n) &&
            is_plain(&x->c, type.size, n)) {
            return problem;
        }
        free_problem(&problem);
    }
}

static struct problem reached_problem(int i)
{
    const ptrdiff_t m = 1 + (ptrdiff_t)random_below(40), n = 250 + (ptrdiff_t)random_below(50);
    switch (i % 8) {
    case 0:
        return plain_problem((struct element_type){ELEMENT_INTEGER, 8}, 30, 20, 10);
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
        const bool all_managed = i % 2 == 0;
        enum host_memory kinds[3];
        for (int operand = 0; operand < 3; operand++) {
            kinds[operand] = all_managed ? HOST_MANAGED : (enum host_memory)random_below(3);
        }
        threads_set_for_this_thread(1 + (int)random_below(4));
        const enum status status =
            multiply_given(fake_new((size_t)1 << 30), &problem, kinds, "reached memory");
        expect(status == STATUS_OK, "reached memory: status %d", (int)status);
        free_problem(&problem);
    }
    expect(resident_products >= RANDOM_TASKS / 10, "%ld resident products", resident_products);
}

static void check_failures_of_managed(enum status failure)
{
    static const enum host_memory kinds[] = {HOST_MANAGED, HOST_MANAGED, HOST_MANAGED};
    enum { CALLS = 80 }; /* more than it takes */
    struct problem problem = plain_problem((struct element_type){ELEMENT_COMPLEX, 8}, 9, 7, 600);
    long failed = 0;
    for (long n = 1; n <= CALLS; n++) {
        struct device *device = fake_new((size_t)1 << 24);
        fake_fail(device, n, failure);
        const enum status status = multiply_given(device, &problem, kinds, "managed, a failure");
        expect(status == STATUS_OK || status == failure, "status %d", (int)status);
        failed += status != STATUS_OK;
    }
    free_problem(&problem);
    expect(failed > 5, "%ld failures", failed);
}

int main(void)
{
    alarm(MOST_SECONDS); /* a hang is a failure, not a wait */
    threads_initialize(0, "");
    check_reached_memory();
    check_failures_of_managed(STATUS_FAILED);
    check_failures_of_managed(STATUS_LOST);
    return expect_result("resident");
}
