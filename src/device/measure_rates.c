/* Each product is repeated until its two shortest times agree. */
#include "measure_rates.h"

#include "device_cutoffs.h"
#include "placement.h"
#include "threads/clock.h"
#include "threads/pool.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACK_SIDE = 64,
    STACK_COUNT = 64,
    SLOW_SIDE = 256, /* of a product on the processor; `sides` if that is fast */
    SIDES = 2,
    DEVICE_SIDE = 1024,
    VECTOR_SIDE = 2048,
    LATENCY_SIDE = 64,
    MOST_ELEMENT_BYTES = 16,
    LEAST_RUNS = 3,
    MOST_RUNS = 6,
    WORKERS_SPIN_MS = 2 * WORKER_SPIN_US / 1000,
};

/* A faster product on the processor is far from the break-even: the next side is measured. */
static const double FAST_SECONDS = 5e-4;
static const ptrdiff_t sides[SIDES] = {512, 1024};
static const double MOST_SECONDS = 10; /* of all together */
static const double AGREEMENT = 1.15;  /* of the two shortest times */

struct measurement {
    const struct rates_source *source;
    char *memory;
    double now, end; /* by the source's clock */
    bool disturbed;
    enum status status;
};

/* A task whose operands lie in the buffer one after the other: a, b, c. */
static struct matmul_task task_of(const struct measurement *measurement, struct element_type type,
                                  ptrdiff_t batch, ptrdiff_t side, ptrdiff_t n)
{
    const ptrdiff_t size = (ptrdiff_t)type.size, a = side * side * size, b = side * n * size;
    char *data = measurement->memory;
    return (struct matmul_task){
        .policy = measurement->source->policy,
        .type = type,
        .precision = PRECISION_IEEE,
        .kernel = GEMM_AUTO,
        .product.batch = batch,
        .product.m = side,
        .product.n = n,
        .product.k = side,
        .product.a = {data, a, side * size, size},
        .product.b = {data + batch * a, b, n * size, size},
        .product.c = {data + batch * (a + b), b, n * size, size},
    };
}

static double seconds_of_run(struct measurement *measurement, const struct matmul_task *task,
                             bool on_device)
{
    const struct rates_source *source = measurement->source;
    struct pipeline_report report;
    const double before = source->clock();
    if (on_device) {
        measurement->status = pipeline_matmul(source->pipeline, task, &report);
    } else if (!source->processor(task)) {
        measurement->status = STATUS_UNSUPPORTED;
    }
    measurement->now = source->clock();
    return measurement->now - before;
}

/* The shortest time of several runs. The first one does not count: libraries initialize
 * themselves. */
static double shortest(struct measurement *measurement, const struct matmul_task *task,
                       bool on_device)
{
    double first = INFINITY, second = INFINITY;
    for (int i = -1; i < MOST_RUNS && measurement->status == STATUS_OK; i++) {
        const double seconds = seconds_of_run(measurement, task, on_device);
        if (i < 0) {
            continue;
        }
        if (measurement->now >= measurement->end) { /* one run each from now on */
            first = fmin(first, seconds);
            break;
        }
        second = fmin(second, fmax(first, seconds));
        first = fmin(first, seconds);
        if (i + 1 >= LEAST_RUNS && second <= AGREEMENT * first) {
            return first;
        }
    }
    measurement->disturbed = true;
    return fmax(first, 1e-9);
}

/* Threads that spin after their last product take the processors from those of the next: products of
 * BLAS among workers that spin last up to a hundred times as long. */
static void measure_processor(struct measurement *measurement, int type, struct rates *rates)
{
    clock_sleep_ms(WORKERS_SPIN_MS);
    struct matmul_task task = task_of(measurement, rates_types[type], 1, SLOW_SIDE, SLOW_SIDE);
    double seconds = shortest(measurement, &task, false);
    for (int i = 0; i < SIDES && seconds < FAST_SECONDS; i++) {
        task = task_of(measurement, rates_types[type], 1, sides[i], sides[i]);
        seconds = shortest(measurement, &task, false);
    }
    rates->product[type] = placement_operations(&task) / seconds;
    task = task_of(measurement, rates_types[type], STACK_COUNT, STACK_SIDE, STACK_SIDE);
    rates->stack[type] = placement_operations(&task) / shortest(measurement, &task, false);
}

/* Solves placement_device_seconds() for the rate of products. A product that the upload hides is
 * taken to last as long as the upload. */
static void measure_device(struct measurement *measurement, int type, struct rates *rates)
{
    const struct matmul_task task =
        task_of(measurement, rates_types[type], 1, DEVICE_SIDE, DEVICE_SIDE);
    const double seconds = shortest(measurement, &task, true);
    rates->device[type] = INFINITY;
    const double rest =
        placement_device_seconds(rates, &task) - placement_upload_seconds(rates, &task);
    rates->device[type] = placement_operations(&task) / fmax(seconds - rest, seconds / 10);
}

/* A product with a vector is all transfer. */
static struct matmul_task vector_task(const struct measurement *measurement, ptrdiff_t side)
{
    return task_of(measurement, (struct element_type){ELEMENT_FLOAT, 4}, 1, side, 1);
}

static const double VECTOR_BYTES = 4.0 * VECTOR_SIDE * VECTOR_SIDE;

static void measure_transfer(struct measurement *measurement, struct rates *rates)
{
    const struct matmul_task large = vector_task(measurement, VECTOR_SIDE),
                             small = vector_task(measurement, LATENCY_SIDE);
    const double seconds = shortest(measurement, &large, true);
    const double latency = shortest(measurement, &small, true);
    rates->latency_ns = 1e9 * latency;
    rates->transfer = VECTOR_BYTES / fmax(seconds - latency, seconds / 10);
}

/* The upload reads what it transfers and writes it to the pinned ring: no machine's memory is slower. */
static void measure_memory(struct measurement *measurement, struct rates *rates)
{
    const struct matmul_task large = vector_task(measurement, VECTOR_SIDE);
    clock_sleep_ms(WORKERS_SPIN_MS);
    rates->memory = fmax(VECTOR_BYTES / shortest(measurement, &large, false), 2 * rates->transfer);
}

enum status rates_measure(const struct rates_source *source, struct rates *rates, bool *disturbed)
{
    const size_t bytes = (size_t)3 * DEVICE_SIDE * DEVICE_SIDE * MOST_ELEMENT_BYTES;
    struct measurement measurement = {.source = source, .memory = malloc(bytes)};
    measurement.end = source->clock() + MOST_SECONDS;
    if (measurement.memory == NULL) {
        return STATUS_NO_HOST_MEMORY;
    }
    memset(measurement.memory, 0, bytes);
    fenv_t environment;
    feholdexcept(&environment);
    *rates = (struct rates){.threads = source->threads};
    clock_sleep_ms(BLAS_SPINS_MS);
    measure_transfer(&measurement, rates);
    for (int type = 0; type < RATE_TYPES && measurement.status == STATUS_OK; type++) {
        measure_device(&measurement, type, rates);
    }
    measure_memory(&measurement, rates);
    for (int type = 0; type < RATE_TYPES && measurement.status == STATUS_OK; type++) {
        measure_processor(&measurement, type, rates);
    }
    fesetenv(&environment);
    free(measurement.memory);
    rates_round(rates);
    *disturbed = measurement.disturbed;
    return measurement.status;
}
