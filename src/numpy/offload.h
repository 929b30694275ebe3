/* Where a product is computed: on a device where that is asked for or pays, else on the processor. */
#ifndef NUMC_OFFLOAD_H
#define NUMC_OFFLOAD_H

#include "matmul_loop.h"

#include "device/pipeline.h"

/* Computes a product. Returns whether NumPy's loop has done so on this thread: it does the same for others that differ
 * only in where they lie. */
bool offload_run(const struct gufunc_loop *loop, const struct product *product);

/* Makes a loop known to offload_on_processor(), until it is about to be freed. */
void offload_know(const struct gufunc_loop *loop);
void offload_forget(const struct gufunc_loop *loop);

/* Computes a product by the loop of its type; false if none is known. */
bool offload_on_processor(const struct matmul_task *task);

/* How many products our kernels computed on this thread so far, and how many NumPy's own loops did. */
extern _Thread_local struct gufunc_counts {
    unsigned long long ours, numpys;
} gufunc_counts;

/* Of this thread's last product on a device. */
extern _Thread_local struct pipeline_times offload_times;

#endif
