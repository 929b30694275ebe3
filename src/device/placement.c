/* Predicts times as bytes and operations over rates; break-even is where CPU and device take
 * equally long. */
#include "placement.h"

#include "device_cutoffs.h"

#include <math.h>

double placement_operations(const struct matmul_task *task)
{
    return (task->type.kind == ELEMENT_COMPLEX ? 8.0 : 2.0) * (double)task->product.batch *
           (double)task->product.m * (double)task->product.n * (double)task->product.k;
}

/* An operand that all products of a stack share (batch_step 0) is uploaded once. */
static double input_bytes(const struct matmul_task *task)
{
    const double a = (double)task->product.m * (double)task->product.k,
                 b = (double)task->product.k * (double)task->product.n;
    const double batch = (double)task->product.batch;
    return (double)task->type.size * ((task->product.a.batch_step == 0 ? a : batch * a) +
                                      (task->product.b.batch_step == 0 ? b : batch * b));
}

static double output_bytes(const struct matmul_task *task)
{
    return (double)task->type.size * (double)task->product.batch * (double)task->product.m *
           (double)task->product.n;
}

static bool is_small(const struct matmul_task *task)
{
    return (double)task->product.m * (double)task->product.n * (double)task->product.k <
           SMALL_PRODUCT_MULTIPLICATIONS;
}

double placement_processor_seconds(const struct rates *rates, const struct matmul_task *task,
                                   int threads)
{
    const int type = rates_type(task->type);
    const bool is_stack = task->product.batch > 1 && is_small(task);
    const double rate = is_stack ? rates->stack[type] : rates->product[type];
    /* BLAS has threads of its own, all of which were measured. */
    const bool by_blas = task->type.kind >= ELEMENT_FLOAT && task->type.size > 2 && !is_stack;
    const double scale = rates->threads == RATES_OF_A_CORE ? threads
                         : by_blas                         ? 1
                                                           : threads / rates->threads;
    return fmax(placement_operations(task) / (rate * scale),
                (input_bytes(task) + output_bytes(task)) / rates->memory);
}

double placement_upload_seconds(const struct rates *rates, const struct matmul_task *task)
{
    return input_bytes(task) / rates->transfer;
}

static double compute_seconds(const struct rates *rates, const struct matmul_task *task)
{
    return placement_operations(task) / rates->device[rates_type(task->type)];
}

/* Upload and products overlap: the longer of the two counts. Of the download, only the part after
 * the last product counts (DOWNLOAD_SHARE). */
double placement_device_seconds(const struct rates *rates, const struct matmul_task *task)
{
    return 1e-9 * rates->latency_ns +
           fmax(placement_upload_seconds(rates, task), compute_seconds(rates, task)) +
           DOWNLOAD_SHARE * output_bytes(task) / rates->transfer;
}

bool placement_is_device(const struct rates *rates, const struct matmul_task *task, int threads,
                         bool is_resident)
{
    const double processor = placement_processor_seconds(rates, task, threads);
    const double device = is_resident ? 1e-9 * rates->latency_ns + compute_seconds(rates, task)
                                      : placement_device_seconds(rates, task);
    return processor >= LEAST_PROCESSOR_SECONDS && processor >= LEAST_SPEEDUP * device;
}

bool placement_pays_start(const struct time_lost *lost, const struct matmul_task *task, int threads)
{
    const double gain = placement_processor_seconds(&rates_assumed, task, threads) -
                        placement_device_seconds(&rates_assumed, task);
    return gain > 0 && lost->seconds + gain > STARTUP_SECONDS;
}

void placement_note_seconds(struct time_lost *lost, const struct matmul_task *task, double seconds)
{
    const double gain = seconds - placement_device_seconds(&rates_assumed, task);
    if (gain > 0) {
        lost->seconds =
            lost->seconds + gain; /* not atomic: an estimate may miss what another thread adds */
    }
}
