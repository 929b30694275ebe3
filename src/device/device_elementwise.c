/* What the device reaches is computed where it lies, by one kernel. Ordinary memory goes in pieces through
 * slots of the pinned ring, which kernels read and write themselves: both directions of the link are in
 * use without anything that copies there, and no memory of the device is needed. */
#include "device_elementwise.h"

#include "copy_threads.h"
#include "element_pieces.h"
#include "fresh.h"
#include "pipeline.h"
#include "resources.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdatomic.h>
#include <string.h>

struct extent elementwise_extent(const struct elementwise_work *work, int operand)
{
    ptrdiff_t n[ELEMENTWISE_MOST_AXES], step[ELEMENTWISE_MOST_AXES];
    for (int i = 0; i < work->axes; i++) {
        n[i] = work->axis[i].n;
        step[i] = work->axis[i].step[operand];
    }
    return extent_of((const void *)work->at[operand], work->type.size, work->axes, n, step);
}

static unsigned raised_by(const uint32_t words[RAISED_WORDS])
{
    unsigned raised = 0;
    for (int i = 0; i < RAISED_WORDS; i++) {
        raised |= (words[i] != 0 ? 1U : 0U) << i;
    }
    return raised;
}

/* ---- where the operands lie ---- */

static enum status compute_in_place(struct device *device, struct session *session,
                                    const struct elementwise_task *task,
                                    struct elementwise_report *report)
{
    struct stream *stream = session->compute[0];
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        if (task->moves[op]) {
            const struct extent extent = elementwise_extent(&task->work, op);
            const enum status status = device->move(device, stream, (const void *)extent.first,
                                                    extent.end - extent.first, true);
            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    report->began = true;
    const enum status status = device->compute(device, stream, &task->work, session->raised);
    return status == STATUS_OK ? stream_settle(device, stream) : status;
}

/* ---- through the ring ---- */

enum { MOST_SETS = RING_SLOTS };

struct ring_call {
    struct device *device;
    struct resources *resources;
    struct session *session;
    struct element_pieces pieces;
    int slots[ELEMENTWISE_OPERANDS]; /* of each set; that of an operand, -1: it needs none */
    int slots_of_set;
    struct fresh fresh;
    _Atomic ptrdiff_t next; /* piece */
    _Atomic int status;     /* the first failure */
};

/* A thread with its ring, whose slots are used in sets: one of each operand. */
struct ring_worker {
    struct ring_call *call;
    struct ring *ring;
    struct stream *stream;
    struct elementwise_work pending[MOST_SETS];
    bool is_pending[MOST_SETS];
};

static char *slot_of(const struct ring_worker *worker, int set, int operand)
{
    const struct ring_call *call = worker->call;
    return worker->ring->slot[set * call->slots_of_set + call->slots[operand]];
}

static struct event *event_of(const struct ring_worker *worker, int set)
{
    return worker->ring->event[set * worker->call->slots_of_set];
}

static enum status begin_piece(struct ring_worker *worker, int set, ptrdiff_t index)
{
    struct ring_call *call = worker->call;
    struct elementwise_work *piece = &worker->pending[set];
    element_pieces_get(&call->pieces, index, piece);
    struct elementwise_work work = *piece;
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        if (call->slots[op] >= 0) {
            char *slot = slot_of(worker, set, op);
            if (op < ELEMENTWISE_INPUTS) {
                element_piece_pack(piece, op, slot);
            }
            element_piece_place(&work, op, slot);
        }
    }
    element_axes_join(&work);
    enum status status =
        call->device->compute(call->device, worker->stream, &work, call->session->raised);
    if (status == STATUS_OK) {
        status = call->device->record(call->device, event_of(worker, set), worker->stream);
    }
    worker->is_pending[set] = status == STATUS_OK;
    return status;
}

/* While it waits, populates pages of the result. */
static enum status finish_piece(struct ring_worker *worker, int set)
{
    struct ring_call *call = worker->call;
    struct device *device = call->device;
    if (!worker->is_pending[set]) {
        return STATUS_OK;
    }
    worker->is_pending[set] = false;
    bool happened = false;
    enum status status = device->poll(device, event_of(worker, set), &happened);
    while (status == STATUS_OK && !happened && fresh_touch_some(&call->fresh)) {
        status = device->poll(device, event_of(worker, set), &happened);
    }
    if (status == STATUS_OK && !happened) {
        status = device->wait(device, event_of(worker, set));
    }
    if (status == STATUS_OK && call->slots[ELEMENTWISE_INPUTS] >= 0) {
        element_piece_unpack(&worker->pending[set], slot_of(worker, set, ELEMENTWISE_INPUTS));
    }
    return status;
}

static enum status work_with_ring(struct ring_worker *worker)
{
    struct ring_call *call = worker->call;
    const int sets = RING_SLOTS / call->slots_of_set;
    enum status status = STATUS_OK;
    int set = 0;
    while (status == STATUS_OK && call->status == STATUS_OK) {
        status = finish_piece(worker, set);
        const ptrdiff_t index = status == STATUS_OK ? call->next++ : call->pieces.count;
        if (index >= call->pieces.count) {
            break;
        }
        status = begin_piece(worker, set, index);
        set = (set + 1) % sets;
    }
    for (int i = 0; i < sets && status == STATUS_OK; i++) {
        status = finish_piece(worker, (set + i) % sets);
    }
    return status;
}

static void ring_share(void *context, int index)
{
    struct ring_call *call = context;
    struct device *device = call->device;
    struct ring_worker worker = {.call = call,
                                 .stream = call->session->compute[index % PLAN_STREAMS]};
    const int before = device->enter(device);
    /* When all rings are in use, this thread does without one; one thread is enough for progress. */
    enum status status = ring_take(call->resources, index == 0, &worker.ring);
    if (worker.ring != NULL) {
        status = work_with_ring(&worker);
    } else if (index > 0) {
        status = STATUS_OK;
    }
    int none = STATUS_OK;
    if (status != STATUS_OK) {
        atomic_compare_exchange_strong(&call->status, &none, (int)status);
    }
    if (worker.ring != NULL) {
        if (call->status != STATUS_OK) { /* kernels must not use the ring of somebody else */
            stream_settle(device, worker.stream);
        }
        ring_give_back(call->resources, worker.ring);
    }
    device->leave(device, before);
}

static enum status compute_through_ring(struct ring_call *call, const struct elementwise_task *task,
                                        struct elementwise_report *report)
{
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        const bool is_number = op < ELEMENTWISE_INPUTS && task->work.at[op] == 0;
        const bool needs_slot = !is_number && task->memory[op] == HOST_ORDINARY;
        call->slots[op] = needs_slot ? call->slots_of_set++ : -1;
    }
    if (call->slots[ELEMENTWISE_INPUTS] >= 0) {
        const struct extent extent = elementwise_extent(&task->work, ELEMENTWISE_INPUTS);
        fresh_cover(&call->fresh, (const void *)extent.first, extent.end - extent.first);
    }
    const ptrdiff_t bytes = elementwise_count(&task->work) * (ptrdiff_t)task->work.type.size;
    int threads = copy_threads(bytes * call->slots_of_set, threads_limit().threads);
    element_pieces_make(&call->pieces, &task->work, bytes / threads);
    threads = call->pieces.count < threads ? (int)call->pieces.count : threads;
    report->began = true;
    report->threads = region_run(task->policy, threads, ring_share, call);
    return (enum status)call->status;
}

/* ---- a call ---- */

static bool is_reached(const struct elementwise_task *task)
{
    bool reached = true;
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        reached = reached && (task->memory[op] != HOST_ORDINARY ||
                              (op < ELEMENTWISE_INPUTS && task->work.at[op] == 0));
    }
    return reached;
}

enum status device_elementwise(struct pipeline *pipeline, const struct elementwise_task *task,
                               struct elementwise_report *report)
{
    struct ring_call call = {.device = pipeline_device(pipeline),
                             .resources = pipeline_resources(pipeline)};
    struct device *device = call.device;
    const int before = device->enter(device);
    *report = (struct elementwise_report){.threads = 1};
    enum status status = session_take(call.resources, &call.session);
    if (status == STATUS_OK) {
        memset(call.session->raised, 0, RAISED_WORDS * sizeof *call.session->raised);
        status = is_reached(task) ? compute_in_place(device, call.session, task, report)
                                  : compute_through_ring(&call, task, report);
        report->raised = raised_by(call.session->raised);
        session_give_back(call.resources, call.session);
    }
    device->leave(device, before);
    return status;
}
