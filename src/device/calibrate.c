/* What the cost model has to know of a device that has just come up. */
#include "choice.h"
#include "threads/policy.h"

#include <math.h>
#include <stdlib.h>

enum { SMALL = 64, LARGE = 2048, RUNS = 4 };

/* The shortest time of some products of a matrix of `n` rows and a vector; INFINITY if one fails. */
static double shortest(struct pipeline *pipeline, float *a, float *b, float *c, ptrdiff_t n)
{
    const ptrdiff_t size = sizeof *a;
    static const struct policy policy; /* production's */
    const struct matmul_task task = {
        .policy = &policy,
        .type = {ELEMENT_FLOAT, sizeof *a},
        .precision = PRECISION_IEEE,
        .kernel = GEMM_AUTO,
        .batch = 1,
        .m = n,
        .n = 1,
        .k = n,
        .a = {(char *)a, 0, n * size, size},
        .b = {(char *)b, 0, size, size},
        .c = {(char *)c, 0, size, size},
    };
    double best = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        struct pipeline_report report;
        const double before = choice_clock();
        if (pipeline_matmul(pipeline, &task, &report) != STATUS_OK) {
            return INFINITY;
        }
        best = fmin(best, choice_clock() - before);
    }
    return best;
}

void choice_calibrate(struct pipeline *pipeline, struct device *device)
{
    const size_t elements = (size_t)LARGE * LARGE;
    float *memory = calloc(elements + 2 * (size_t)LARGE, sizeof *memory);
    if (memory == NULL) {
        return; /* with what is built in */
    }
    float *b = memory + elements, *c = b + LARGE;
    const double large = shortest(pipeline, memory, b, c, LARGE);
    const double small = shortest(pipeline, memory, b, c, SMALL);
    if (isfinite(large) && isfinite(small)) {
        device->latency = small;
        device->transfer_rate = (double)(elements * sizeof *memory) / fmax(large - small, 1e-6);
    }
    free(memory);
}
