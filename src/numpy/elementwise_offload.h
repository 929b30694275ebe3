/* Element-wise calls on a device: where that is asked for, or where all operands are managed memory. */
#ifndef NUMC_ELEMENTWISE_OFFLOAD_H
#define NUMC_ELEMENTWISE_OFFLOAD_H

#include "operands.h"
#include "options.h"

#include "device/device_elementwise.h"
#include "device_memory.h"

/* The kernel of devices for a ufunc of ours with that name; -1: none. */
int elementwise_offload_op(const char *name);

/* A call that a device is to compute. */
struct elementwise_offload {
    int device; /* its number */
    bool is_forced;
    struct elementwise_task task;
};

/* Whether a call of a ufunc that has a kernel may be one: else nothing more is looked at. */
static inline bool elementwise_offload_is_possible(void)
{
    const int blocks = atomic_load_explicit(&options_open_blocks, memory_order_relaxed);
    const int named = atomic_load_explicit(&options_name_device, memory_order_relaxed);
    const int memory = atomic_load_explicit(&device_memory_in_use, memory_order_relaxed);
    return __builtin_expect((blocks | named | memory) != 0, 0);
}

/* Whether a device is to compute the call, of n elements; `overlaps`: the order of its elements matters. If not,
 * last_call() tells why. */
bool elementwise_offload_begin(const struct ufunc_call *call, npy_intp n, bool overlaps,
                               struct elementwise_offload *offload);

/* Lets input i be a number of the call, or an array. */
void elementwise_offload_input(const struct ufunc_call *call, int i, char *data,
                               struct elementwise_offload *offload);

/* Computes, once task.work is complete. True: the call is over, and *raised are its floating-point
 * exceptions; or a Python exception is set. False: the processor has to compute it. */
bool elementwise_offload_run(const struct ufunc_call *call, PyArrayObject *out,
                             struct elementwise_offload *offload, int *raised);

#endif
