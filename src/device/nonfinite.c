/* Derives floating-point flags from the infinities and NaNs of a product: the device raises none,
 * but result and operands show which ones a processor would have raised. */
#include "nonfinite.h"

#include "threads/limit.h"
#include "threads/region.h"

#include <fenv.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = 0, KNOWN = 1, HAS_INFINITY = 2, HAS_NAN = 4 };
enum { SERIAL_ELEMENTS = 1 << 16 };

struct search {
    const struct matmul_task *task;
    struct strided a, b, c; /* of one matrix */
    _Atomic unsigned char *row,
        *column; /* UNKNOWN, or KNOWN with flags, per row of a and column of b */
    _Atomic int exceptions;
    _Atomic ptrdiff_t next; /* row of c */
};

static unsigned char classify_float(const char *at, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    const int mantissa = size == 2 ? 10 : size == 4 ? 23 : 52;
    const uint64_t ones = ((uint64_t)1 << (size * 8 - 1)) - 1; /* all but the sign */
    const uint64_t infinity = ones >> mantissa << mantissa;
    bits &= ones;
    return bits < infinity ? 0 : bits == infinity ? HAS_INFINITY : HAS_NAN;
}

static unsigned char classify(struct element_type type, const char *at)
{
    if (type.kind == ELEMENT_COMPLEX) {
        return classify_float(at, type.size / 2) |
               classify_float(at + type.size / 2, type.size / 2);
    }
    return classify_float(at, type.size);
}

static unsigned char classify_line(struct element_type type, const char *at, ptrdiff_t step,
                                   ptrdiff_t n, _Atomic unsigned char *known)
{
    unsigned char found = *known;
    if (found == UNKNOWN) {
        found = KNOWN;
        for (ptrdiff_t i = 0; i < n; i++) {
            found |= classify(type, at + i * step);
        }
        *known = found; /* a race is harmless: all threads find the same */
    }
    return found;
}

static void search_row(struct search *search, ptrdiff_t row)
{
    const struct matmul_task *task = search->task;
    const char *c = search->c.data + row * search->c.row_step;
    for (ptrdiff_t column = 0; column < task->product.n; column++, c += search->c.column_step) {
        const unsigned char result = classify(task->type, c);
        if (result == 0) {
            continue;
        }
        const unsigned char operands =
            classify_line(task->type, search->a.data + row * search->a.row_step,
                          search->a.column_step, task->product.k, &search->row[row]) |
            classify_line(task->type, search->b.data + column * search->b.column_step,
                          search->b.row_step, task->product.k, &search->column[column]);
        if ((operands & HAS_NAN) != 0) {
            continue; /* a NaN operand explains any result */
        }
        if ((operands & HAS_INFINITY) == 0) {
            search->exceptions |= FE_OVERFLOW;
        }
        if ((result & HAS_NAN) != 0) {
            search->exceptions |= FE_INVALID;
        }
    }
}

static void search_rows(void *context, int index)
{
    (void)index;
    struct search *search = context;
    ptrdiff_t row;
    while ((row = atomic_fetch_add(&search->next, 1)) < search->task->product.m) {
        search_row(search, row);
    }
}

int nonfinite_exceptions(const struct matmul_task *task)
{
    struct search search = {
        .task = task, .a = task->product.a, .b = task->product.b, .c = task->product.c};
    search.row = malloc((size_t)task->product.m);
    search.column = malloc((size_t)task->product.n);
    if (search.row == NULL || search.column == NULL) {
        search.exceptions = 0;
        goto done;
    }
    const int threads =
        task->product.m * task->product.n > SERIAL_ELEMENTS ? threads_limit().threads : 1;
    for (ptrdiff_t i = 0; i < task->product.batch; i++) {
        memset((void *)search.row, UNKNOWN, (size_t)task->product.m);
        memset((void *)search.column, UNKNOWN, (size_t)task->product.n);
        search.next = 0;
        region_run(task->policy, threads, search_rows, &search);
        search.a.data += task->product.a.batch_step;
        search.b.data += task->product.b.batch_step;
        search.c.data += task->product.c.batch_step;
    }
done:
    free((void *)search.row);
    free((void *)search.column);
    return search.exceptions;
}
