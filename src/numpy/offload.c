/* Decides where a product is computed, and computes it there: on a device; on the processor by our kernels or
 * NumPy's loop, as the engine plans, also if a device fails. */
#include "offload.h"

#include "call_record.h"
#include "device/device_cutoffs.h"
#include "device/nonfinite.h"
#include "device/resident.h"
#include "device_failure.h"
#include "devices.h"
#include "engine/matmul_join.h"
#include "errors.h"
#include "measured_rates.h"
#include "memory/kept_blocks.h"
#include "options.h"
#include "policy_in_use.h"
#include "threads/blas_threads.h"
#include "threads/limit.h"

#include <fenv.h>
#include <stdatomic.h>
#include <stdio.h>

_Thread_local struct pipeline_times offload_times;
_Thread_local struct gufunc_counts gufunc_counts;

/* An exception was set by a call of this thread, and may still be. */
static _Thread_local bool raised;

static const char op[] = "matmul";

/* By type: a loop of that type, for measuring the processor's rate. */
static const struct gufunc_loop *_Atomic loops[RATE_TYPES];

/* The state of one call. */
struct attempt {
    const struct gufunc_loop *loop;
    struct matmul_task task;
    bool forbidden, forced;
    int device;     /* its number */
    int exceptions; /* floating-point ones, that the device's result tells of */
};

/* ---- the processor ---- */

static void compute_on_processor(const void *loop, const struct product *product);

/* Returns whether NumPy's loop has computed it on this thread. */
static bool plan_and_compute(const struct gufunc_loop *loop, const struct product *product)
{
    struct matmul_plan plan;
    matmul_plan(&plan, &policy_in_use, &loop->dtype, product);
    if (plan.way != MATMUL_FALLBACK) {
        gufunc_counts.ours++;
        matmul_run(&plan);
        return false;
    }
    if (matmul_join_copies(&policy_in_use, &loop->dtype, product, compute_on_processor, loop)) {
        return false;
    }
    gufunc_counts.numpys++;
    gufunc_by_numpy(loop, product, &plan);
    return plan.stack_threads == 1;
}

static void compute_on_processor(const void *loop, const struct product *product)
{
    plan_and_compute(loop, product);
}

void offload_know(const struct gufunc_loop *loop)
{
    if (loop->has_devices) {
        loops[rates_type(loop->device_type)] = loop;
    }
}

void offload_forget(const struct gufunc_loop *loop)
{
    for (int type = 0; type < RATE_TYPES; type++) {
        const struct gufunc_loop *forgotten = loop;
        atomic_compare_exchange_strong(&loops[type], &forgotten, NULL);
    }
}

bool offload_on_processor(const struct matmul_task *task)
{
    const struct gufunc_loop *loop = loops[rates_type(task->type)];
    if (loop != NULL) {
        compute_on_processor(loop, &task->product);
    }
    return loop != NULL;
}

/* ---- the device ---- */

/* Whether an exception that a call of this thread set is still there. */
static bool is_raising(void)
{
    if (raised) {
        const PyGILState_STATE gil = PyGILState_Ensure();
        raised = PyErr_Occurred() != NULL;
        PyGILState_Release(gil);
    }
    return raised;
}

static enum status run_on_device(struct attempt *attempt, struct pipeline_report *report, char *why,
                                 size_t size)
{
    const struct matmul_task *task = &attempt->task;
    struct device *device = device_of(attempt->device);
    const char *unsupported;
    const enum status status = pipeline_matmul(device_pipeline(attempt->device), task, report);
    if (status == STATUS_OK && report->nonfinite) {
        attempt->exceptions = nonfinite_exceptions(task);
    } else if (status == STATUS_UNSUPPORTED && !device->supports(device, task, &unsupported)) {
        snprintf(why, size, "%s", unsupported);
    } else if (status != STATUS_OK) {
        device_failure_explain(attempt->device, status, why, size);
    }
    return status;
}

/* Whether to compute on the device; otherwise `why` says why not. */
static bool device_computes(const struct attempt *attempt, int threads, char *why, size_t size)
{
    const enum device_state state = attempt->forced
                                        ? device_start(attempt->device, true)
                                        : device_start_in_background(attempt->device, why, size);
    if (state == DEVICE_UNAVAILABLE || state == DEVICE_GONE) {
        device_reason(attempt->device, why, size);
    }
    if (state != DEVICE_UP || attempt->forced) {
        return state == DEVICE_UP;
    }
    struct rates rates;
    const enum status status = measured_rates_get(offload_on_processor, &rates);
    if (status == STATUS_UNAVAILABLE) {
        snprintf(why, size, "another thread is measuring the device");
        return false;
    }
    if (status != STATUS_OK) {
        device_failure_explain(attempt->device, status, why, size);
        return false;
    }
    snprintf(why, size, "sooner done on the processor");
    const bool is_resident = resident_is_possible(device_of(attempt->device), &attempt->task);
    return placement_is_device(&rates, &attempt->task, threads, is_resident);
}

static bool try_device_raising(struct attempt *attempt, int threads, char *why, size_t size)
{
    /* Perhaps: by a signal's handler, while Python is asked where libraries are. */
    raised = device_state(attempt->device) != DEVICE_UP;
    const bool computes = device_computes(attempt, threads, why, size);
    if (is_raising()) {
        return true;
    }
    enum status status = STATUS_UNAVAILABLE;
    struct pipeline_report report = {.threads = 0};
    const double before = measured_clock();
    if (computes) {
        status = run_on_device(attempt, &report, why, size);
    }
    if (status == STATUS_OK) {
        offload_times = report.times;
        call_record_set(op, device_of(attempt->device)->name,
                        attempt->forced ? "asked for" : "sooner done there",
                        measured_clock() - before, report.threads);
    } else if (attempt->forced) {
        raised = true;
        device_failure_raise(op, attempt->device, status, why);
    }
    return status == STATUS_OK || attempt->forced;
}

/* True: the call is over, with a result or an exception. Otherwise `why` says why not. The driver and
 * cuBLAS divide by zero and the like for purposes of their own: nobody is told. */
static bool try_device(struct attempt *attempt, int threads, char *why, size_t size)
{
    fenv_t environment;
    feholdexcept(&environment);
    const bool over = try_device_raising(attempt, threads, why, size);
    fesetenv(&environment);
    feraiseexcept(attempt->exceptions);
    return over;
}

/* Whether to try the device; otherwise `why` says why not. */
static bool tries_device(const struct attempt *attempt, int threads, char *why, size_t size)
{
    if (attempt->forbidden) {
        snprintf(why, size, "asked for");
        return false;
    }
    switch (device_state(attempt->device)) {
    case DEVICE_UNUSED:
        snprintf(why, size, "starting a device would take longer");
        return attempt->forced ||
               placement_pays_start(&measured_time_lost, &attempt->task, threads);
    case DEVICE_UP:
        return true;
    default:
        device_reason(attempt->device, why, size);
        return attempt->forced;
    }
}

static void run_attempt(struct attempt *attempt)
{
    char why[REASON_BYTES];
    const int threads = threads_limit().threads;
    if (tries_device(attempt, threads, why, sizeof why) &&
        try_device(attempt, threads, why, sizeof why)) {
        return;
    }
    /* BLAS gives each thread an equal share: that of a thread whose processor starts a device would take twice
     * as long. */
    const bool spares = device_is_being_started() && threads_cpus() >= LEAST_SPARING_CPUS;
    const double before = measured_clock();
    if (spares) {
        blas_threads_hold(threads_cpus() - 1);
    }
    compute_on_processor(attempt->loop, &attempt->task.product);
    if (spares) {
        blas_threads_release();
    }
    const double seconds = measured_clock() - before;
    if (!attempt->forbidden && device_state(attempt->device) == DEVICE_UNUSED) {
        placement_note_seconds(&measured_time_lost, &attempt->task, seconds);
    }
    call_record_set(op, "cpu", why, seconds, threads);
}

bool offload_run(const struct gufunc_loop *loop, const struct product *product)
{
    if (!loop->has_devices) {
        return plan_and_compute(loop, product);
    }
    if (is_raising()) {
        return false; /* the rest of a stack, one product of which failed */
    }
    const struct options options = options_in_effect();
    const double operations =
        2.0 * (double)product->batch * (double)product->m * (double)product->k * (double)product->n;
    const double least = loop->device_type.kind <= ELEMENT_INTEGER ? LEAST_INTEGER_OPERATIONS
                                                                   : LEAST_FLOAT_OPERATIONS;
    const bool forced = options.device >= OFFLOAD_DEVICE;
    if (operations == 0 || (!forced && operations < least)) {
        const bool is_numpys = plan_and_compute(loop, product);
        call_record_short(op, "too small for a device");
        return is_numpys;
    }
    struct attempt attempt = {
        .loop = loop,
        .task =
            {
                .policy = &policy_in_use,
                .type = loop->device_type,
                .precision = (enum precision)options.precision,
                .kernel = (enum gemm_kernel)options.kernel,
                .product = *product,
            },
        .forbidden = options.device == OFFLOAD_CPU,
        .forced = forced,
        .device = forced ? options.device - OFFLOAD_DEVICE : 0,
    };
    /* NumPy keeps the GIL for small calls, but starting a device may wait for other threads that
     * need it. */
    struct failure failure = {.threads_run = false};
    failure_before_threads(&failure);
    run_attempt(&attempt);
    failure_after_threads(&failure);
    return false;
}
