/* A device computes what it is asked for in whatever memory it lies. Unasked, it computes where all operands
 * are managed memory that is on it, or that is large enough to be moved there. Results are the same
 * to the bit, so the choice may depend on earlier calls. */
#include "elementwise_offload.h"

#include "call_record.h"
#include "complex_rounding.h"
#include "device_failure.h"
#include "devices.h"
#include "measured_rates.h"
#include "memory/kept_blocks.h"
#include "policy_in_use.h"

#include "device/device_cutoffs.h"
#include "device/host_memory.h"
#include "device/last_use.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

enum { OUT = ELEMENTWISE_INPUTS };

static const char *const names[] = {"add", "subtract", "multiply", "divide"};

int elementwise_offload_op(const char *name)
{
    for (int op = 0; name != NULL && op < (int)(sizeof names / sizeof names[0]); op++) {
        if (strcmp(name, names[op]) == 0) {
            return op;
        }
    }
    return -1;
}

/* ---- whether ---- */

/* By op, and size of the elements: 8 or 16 bytes. */
static enum complex_rounding rounding_of(const struct elementwise *loop, enum elementwise_op op)
{
    static _Atomic int known[2][2]; /* one more than the answer */
    const bool divides = op == ELEMENTWISE_DIVIDE;
    _Atomic int *answer = &known[divides][loop->item_size[0] == 16];
    if (*answer == 0) {
        fenv_t environment;
        feholdexcept(&environment);
        *answer = 1 + (int)complex_rounding(loop, divides);
        fesetenv(&environment);
    }
    return (enum complex_rounding)(*answer - 1);
}

static bool runs_backwards(const struct ufunc_call *call)
{
    bool runs = false;
    for (int i = 0; i < ELEMENTWISE_OPERANDS; i++) {
        PyArrayObject *array = call->array[i];
        for (int axis = 0; array != NULL && axis < PyArray_NDIM(array); axis++) {
            runs = runs || (PyArray_STRIDE(array, axis) < 0 && PyArray_DIM(array, axis) > 1);
        }
    }
    return runs;
}

/* NULL, or why no device has the call's results. */
static const char *describe(const struct ufunc_call *call, struct elementwise_work *work)
{
    const struct call_row *row = call->row;
    const int type = row->input->type_num;
    work->op = (enum elementwise_op)call->table->device_op;
    if (row->output->type_num != type || !device_has_type(type, &work->type)) {
        return "no device computes this dtype";
    }
    if (call->is_resolved || call->mask != NULL) {
        return "devices compute calls without casts, masks and other keywords than out";
    }
    if (fegetround() != FE_TONEAREST) {
        return "devices round to the nearest number";
    }
    if (work->type.kind == ELEMENT_COMPLEX && work->op >= ELEMENTWISE_MULTIPLY) {
        const enum complex_rounding rounding = rounding_of(&row->loop->engine, work->op);
        work->fuses = rounding == ROUNDING_FUSED;
        /* Operands that run backwards are not for NumPy's vectors, which fuse. */
        return rounding == ROUNDING_UNKNOWN || (work->fuses && runs_backwards(call))
                   ? "NumPy rounds otherwise than devices do"
                   : NULL;
    }
    return NULL;
}

static const char too_small[] = "too small to be moved to the device";

/* NULL, or why the processor is to compute a call that asked for no device, as far as is known before the output
 * is made. */
static const char *choose(const struct ufunc_call *call, npy_intp n)
{
    const npy_intp size = call->row->output->elsize;
    PyArrayObject *out = call->array[OUT];
    const struct device *device = device_state(0) == DEVICE_UP ? device_of(0) : NULL;
    size_t bytes = (size_t)(n * size);
    bool were_there = device != NULL;
    for (int i = 0; i <= ELEMENTWISE_INPUTS; i++) {
        if (call->array[i] == NULL) {
            continue;
        }
        const int kind = kept_device_kind(PyArray_DATA(call->array[i]));
        if (kind != KEPT_MANAGED) {
            return kind == KEPT_PINNED ? "pinned memory is with the processor"
                                       : "ordinary memory is with the processor";
        }
        const struct extent extent = array_extent(call->array[i]);
        if (i != OUT) {
            bytes += extent.end - extent.first;
            were_there = were_there && last_use_is(extent, device);
        }
    }
    if (out == NULL &&
        (options_in_effect().memory != MEMORY_MANAGED || n * size < KEPT_DEVICE_FROM_BYTES)) {
        return "its output is to be ordinary memory";
    }
    if (device == NULL) {
        return "the device is lost";
    }
    return were_there || bytes >= LEAST_MOVED_BYTES ? NULL : too_small;
}

bool elementwise_offload_begin(const struct ufunc_call *call, npy_intp n, bool overlaps,
                               struct elementwise_offload *offload)
{
    const int device = options_in_effect().device;
    offload->is_forced = device >= OFFLOAD_DEVICE;
    offload->device = offload->is_forced ? device - OFFLOAD_DEVICE : 0;
    if (n == 0 || (device == OFFLOAD_AUTO && !device_memory_in_use)) {
        return false;
    }
    offload->task = (struct elementwise_task){.policy = &policy_in_use};
    const char *why = device == OFFLOAD_CPU ? "asked for"
                      : overlaps            ? "its output overlaps an input, or itself"
                                            : describe(call, &offload->task.work);
    if (why == NULL && !offload->is_forced) {
        why = choose(call, n);
    }
    if (why == NULL) {
        return true;
    }
    for (int i = 0; i <= ELEMENTWISE_INPUTS; i++) {
        if (call->array[i] != NULL && device_memory_in_use &&
            kept_device_kind(PyArray_DATA(call->array[i])) == KEPT_MANAGED) {
            last_use_note(array_extent(call->array[i]), NULL);
        }
    }
    call_record_short(names[call->table->device_op], why);
    return false;
}

/* ---- how ---- */

void elementwise_offload_input(const struct ufunc_call *call, int i, char *data,
                               struct elementwise_offload *offload)
{
    struct elementwise_work *work = &offload->task.work;
    if (call->array[i] != NULL) {
        work->at[i] = device_address_of(data);
    } else {
        memcpy(work->number[i], call->scalar[i].bytes, work->type.size);
    }
}

static bool is_managed(const struct elementwise_task *task, int operand)
{
    return task->work.at[operand] != 0 && task->memory[operand] == HOST_MANAGED;
}

/* What kind of memory each operand is in. Numbers that the device does not reach go with the call. */
static void find_memory(struct elementwise_offload *offload, struct device *device)
{
    struct elementwise_task *task = &offload->task;
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        if (task->work.at[op] == 0) {
            continue;
        }
        const struct extent extent = elementwise_extent(&task->work, op);
        const void *first = (const void *)extent.first, *last = (const void *)(extent.end - 1);
        const enum host_memory memory = host_memory_of(device, first);
        task->memory[op] =
            memory == host_memory_of(device, last) ? memory : HOST_ORDINARY; /* a part of it */
        if (op != OUT && memory == HOST_ORDINARY &&
            extent.end - extent.first == task->work.type.size) {
            memcpy(task->work.number[op], first, task->work.type.size);
            task->work.at[op] = 0;
        }
    }
}

/* Which operands are to be moved. NULL, or why the processor is to compute a call that asked for no device. */
static const char *find_moves(struct elementwise_offload *offload, struct device *device)
{
    struct elementwise_task *task = &offload->task;
    size_t bytes = 0;
    bool moves_input = false, came_back = false;
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        if (!is_managed(task, op)) {
            continue;
        }
        const struct extent extent = elementwise_extent(&task->work, op);
        bytes += extent.end - extent.first;
        task->moves[op] = !last_use_left_on(extent, device);
        moves_input = moves_input || (op != OUT && task->moves[op]);
        came_back = came_back || (task->moves[op] && last_use_is(extent, device));
    }
    if (offload->is_forced) {
        return NULL;
    }
    if (!is_managed(task, OUT)) {
        return "its output is ordinary memory";
    }
    if (bytes < LEAST_MOVED_BYTES) {
        return moves_input || came_back ? too_small : NULL;
    }
    if (!moves_input && !came_back) {
        last_use_stayed();
        return NULL;
    }
    return last_use_may_move(came_back) ? NULL : "the processor used what was moved before";
}

static void note_operands(const struct elementwise_task *task, const struct device *device)
{
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        if (is_managed(task, op)) {
            last_use_note(elementwise_extent(&task->work, op), device);
        }
    }
}

static bool overlaps_input(const struct ufunc_call *call, PyArrayObject *out)
{
    bool overlaps = false;
    for (int i = 0; i < ELEMENTWISE_INPUTS; i++) {
        overlaps = overlaps || (call->array[i] != NULL &&
                                extents_meet(array_extent(call->array[i]), array_extent(out)));
    }
    return overlaps;
}

/* Whether a failed call can be computed by the processor: its inputs are as they were, and can be read. */
static bool can_repeat(const struct elementwise_offload *offload, bool in_place, enum status status,
                       const struct elementwise_report *report)
{
    bool any_is_managed = false;
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        any_is_managed = any_is_managed || is_managed(&offload->task, op);
    }
    return !offload->is_forced && !(in_place && report->began) &&
           !(status == STATUS_LOST && any_is_managed);
}

/* Without the GIL. Without STATUS_OK, `why` says why the device has not computed it. */
static enum status compute(struct elementwise_offload *offload, struct elementwise_report *report,
                           char *why, size_t size)
{
    struct elementwise_task *task = &offload->task;
    if (device_start(offload->device, offload->is_forced) != DEVICE_UP) {
        device_reason(offload->device, why, size);
        return STATUS_UNAVAILABLE;
    }
    struct device *device = device_of(offload->device);
    const int before = device->enter(device);
    find_memory(offload, device);
    const char *stays = find_moves(offload, device);
    device->leave(device, before);
    if (stays != NULL) {
        snprintf(why, size, "%s", stays);
        note_operands(task, NULL);
        return STATUS_UNAVAILABLE;
    }
    const enum status status = device_elementwise(device_pipeline(offload->device), task, report);
    if (status == STATUS_OK) {
        note_operands(task, device);
    } else {
        device_failure_explain(offload->device, status, why, size);
    }
    return status;
}

static bool run(struct elementwise_offload *offload, bool in_place,
                struct elementwise_report *report)
{
    const char *op = names[offload->task.work.op];
    const double before = measured_clock();
    char why[REASON_BYTES] = "";
    *report = (struct elementwise_report){.threads = 0};
    const enum status status = compute(offload, report, why, sizeof why);
    if (status == STATUS_OK) {
        call_record_set(op, device_of(offload->device)->name,
                        offload->is_forced ? "asked for" : "its operands are managed memory",
                        measured_clock() - before, report->threads);
        return true;
    }
    if (!can_repeat(offload, in_place, status, report)) {
        device_failure_raise(op, offload->device, status, why);
        return true;
    }
    call_record_set(op, "cpu", why, -1, 0);
    return false;
}

bool elementwise_offload_run(const struct ufunc_call *call, PyArrayObject *out,
                             struct elementwise_offload *offload, int *raised)
{
    static const int flags[RAISED_WORDS] = {FE_INVALID, FE_DIVBYZERO, FE_OVERFLOW, FE_UNDERFLOW};
    const bool in_place = overlaps_input(call, out);
    struct elementwise_report report;
    fenv_t environment;
    /* The driver divides by zero and the like for purposes of its own. */
    feholdexcept(&environment);
    PyThreadState *released = PyEval_SaveThread();
    const bool is_over = run(offload, in_place, &report);
    PyEval_RestoreThread(released);
    fesetenv(&environment);
    *raised = 0;
    for (int i = 0; i < RAISED_WORDS; i++) {
        *raised |= (report.raised >> i & 1) != 0 ? flags[i] : 0;
    }
    return is_over || PyErr_Occurred() != NULL;
}
