/* Random products for tests: operands in any order and with gaps, and what they should give. */
#ifndef NUMC_PROBLEM_H
#define NUMC_PROBLEM_H

#include "expect.h"
#include "fake_device.h"
#include "threads/policy.h"

#include <string.h>

enum { GUARD = 64 };

/* An operand in memory of its own, with gaps and in any order. */
struct operand_memory {
    char *memory, *copy;
    size_t bytes;
    struct strided at;
};

static ptrdiff_t random_gap(void)
{
    return random_below(3) == 0 ? (ptrdiff_t)random_below(3) : 0;
}

static void place(struct operand_memory *operand, size_t size, ptrdiff_t batch, ptrdiff_t rows,
                  ptrdiff_t columns, bool may_repeat)
{
    const ptrdiff_t extent[3] = {batch, rows, columns};
    ptrdiff_t step[3];
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
    operand->at = (struct strided){operand->memory + first, step[0], step[1], step[2]};
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
static char *packed(const struct strided *from, size_t size, ptrdiff_t rows, ptrdiff_t columns)
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
    struct strided a = task->product.a, b = task->product.b, c = task->product.c;
    char *product = malloc((size_t)(task->product.m * task->product.n) * size);
    problem->expected = malloc(problem->c.bytes);
    memcpy(problem->expected, problem->c.memory, problem->c.bytes);
    const struct gemm gemm = {.type = task->type,
                              .batch = 1,
                              .m = task->product.m,
                              .n = task->product.n,
                              .k = task->product.k};
    for (ptrdiff_t i = 0; i < task->product.batch; i++) {
        char *pa = packed(&a, size, task->product.m, task->product.k),
             *pb = packed(&b, size, task->product.k, task->product.n);
        fake_multiply(&gemm, pa, pb, product);
        char *to = problem->expected + (c.data - problem->c.memory);
        for (ptrdiff_t e = 0; e < task->product.m * task->product.n; e++) {
            memcpy(to + e / task->product.n * c.row_step + e % task->product.n * c.column_step,
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

static const struct policy production;

static void free_memory_of(const struct operand_memory *operand)
{
    free(operand->memory);
    free(operand->copy);
}

/* With operands that suit: only their places are known then. */
static struct problem problem_that(bool (*suits)(const struct product *, ptrdiff_t size),
                                   struct element_type type, ptrdiff_t batch, ptrdiff_t m,
                                   ptrdiff_t n, ptrdiff_t k)
{
    struct problem problem = {.task = {.policy = &production,
                                       .type = type,
                                       .precision = PRECISION_IEEE,
                                       .kernel = GEMM_AUTO,
                                       .product.batch = batch,
                                       .product.m = m,
                                       .product.n = n,
                                       .product.k = k}};
    for (;;) {
        place(&problem.a, type.size, batch, m, k, true);
        place(&problem.b, type.size, batch, k, n, true);
        place(&problem.c, type.size, batch, m, n, false);
        problem.task.product.a = problem.a.at;
        problem.task.product.b = problem.b.at;
        problem.task.product.c = problem.c.at;
        if (suits(&problem.task.product, (ptrdiff_t)type.size)) {
            break;
        }
        free_memory_of(&problem.a);
        free_memory_of(&problem.b);
        free_memory_of(&problem.c);
    }
    fill(&problem.a, type, batch, m, k);
    fill(&problem.b, type, batch, k, n);
    fill(&problem.c, type, batch, m, n);
    expect_product(&problem);
    return problem;
}

static bool any_suits(const struct product *product, ptrdiff_t size)
{
    (void)product, (void)size;
    return true;
}

static struct problem make_problem(struct element_type type, ptrdiff_t batch, ptrdiff_t m,
                                   ptrdiff_t n, ptrdiff_t k)
{
    return problem_that(any_suits, type, batch, m, n, k);
}

static void free_problem(struct problem *problem)
{
    free_memory_of(&problem->a);
    free_memory_of(&problem->b);
    free_memory_of(&problem->c);
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
               what, (int)task->type.kind, task->type.size, task->product.batch, task->product.m,
               task->product.n, task->product.k, task->product.a.batch_step,
               task->product.a.row_step, task->product.a.column_step, task->product.b.batch_step,
               task->product.b.row_step, task->product.b.column_step, task->product.c.batch_step,
               task->product.c.row_step, task->product.c.column_step);
    }
}

static const struct element_type types[] = {
    {ELEMENT_BOOL, 1},    {ELEMENT_INTEGER, 1}, {ELEMENT_INTEGER, 2},
    {ELEMENT_INTEGER, 4}, {ELEMENT_INTEGER, 8}, {ELEMENT_FLOAT, 4},
    {ELEMENT_FLOAT, 8},   {ELEMENT_COMPLEX, 8}, {ELEMENT_COMPLEX, 16}};

/* Of any type, mostly small. */
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

#endif
