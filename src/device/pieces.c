/* The threads of a call, which copy pieces of the operands to the device and of the result back. */
#include "run.h"

#include "kernels/copy/tile_unpack.h"

#include <sched.h>

/* A thread with its lane. */
struct worker {
    struct run *run;
    struct lane *lane;
    struct work pending[LANE_SLOTS]; /* what each slot is in use for, */
    unsigned since[LANE_SLOTS];      /* and since which piece */
    unsigned pieces;
    int downloads; /* that are pending */
};

static bool is_older(const struct worker *worker, int slot, int than)
{
    return than < 0 || worker->since[slot] < worker->since[than];
}

/* A slot in use for that, the one that has been longest; -1: none. */
static int oldest(const struct worker *worker, enum work_kind kind)
{
    int found = -1;
    for (int slot = 0; slot < LANE_SLOTS; slot++) {
        if (worker->pending[slot].kind == kind && is_older(worker, slot, found)) {
            found = slot;
        }
    }
    return found;
}

static void store_result(struct run *run, const struct work *work, const char *slot)
{
    const char *from =
        work->direct ? work->part.from.data + work->first * (ptrdiff_t)run->size : slot;
    const int floats = run->plan->task.type.kind == ELEMENT_COMPLEX ? 2 : 1;
    if (run->scans && !run->nonfinite &&
        !floats_are_finite(run->size / (size_t)floats, from, (work->end - work->first) * floats)) {
        run->nonfinite = true;
    }
    if (!work->direct) {
        part_scatter(&work->part, run->size, work->first, work->end, from);
    }
}

static enum status finish(struct worker *worker, int slot)
{
    struct run *run = worker->run;
    const struct work work = worker->pending[slot];
    worker->pending[slot].kind = WORK_NONE;
    if (work.kind == WORK_DOWNLOAD) {
        worker->downloads--;
        run->coming--;
    }
    const enum status status = run->device->wait(run->device, worker->lane->event[slot]);
    if (status == STATUS_OK && work.kind == WORK_DOWNLOAD) {
        store_result(run, &work, worker->lane->slot[slot]);
    }
    return status;
}

static void note_pending(struct worker *worker, const struct work *work, int slot)
{
    worker->pending[slot] = *work;
    worker->since[slot] = worker->pieces++;
    worker->downloads += work->kind == WORK_DOWNLOAD;
}

static enum status upload(struct worker *worker, const struct work *work, int slot)
{
    struct run *run = worker->run;
    struct device *device = run->device;
    const ptrdiff_t size = (ptrdiff_t)run->size, n = work->end - work->first;
    const ptrdiff_t part = work->part.number;
    const device_address to =
        plan_address(run->plan, run->memory, work->operand, part) + (size_t)(work->first * size);
    const char *from = worker->lane->slot[slot];
    if (work->direct) {
        from = work->part.from.data + work->first * size;
    } else {
        part_gather(&work->part, run->size, work->first, work->end, worker->lane->slot[slot],
                    run->reuses_slots);
    }
    enum status status = device->upload(device, run->session->upload, to, from, (size_t)(n * size));
    if (status == STATUS_OK) {
        status = device->record(device, worker->lane->event[slot], run->session->upload);
    }
    if (status == STATUS_OK) {
        note_pending(worker, work, slot);
    }
    pthread_mutex_lock(&run->lock);
    if (run_holds(run, status)) {
        run->up_left[work->operand][part] -= n;
        run->times.last_upload = run_seconds(run);
        run_multiply(run);
    }
    pthread_mutex_unlock(&run->lock);
    return status;
}

static enum status download(struct worker *worker, const struct work *work, int slot)
{
    struct run *run = worker->run;
    struct device *device = run->device;
    const ptrdiff_t size = (ptrdiff_t)run->size, n = work->end - work->first;
    const device_address from =
        plan_address(run->plan, run->memory, OPERAND_C, work->tile) + (size_t)(work->first * size);
    char *to = work->direct ? work->part.from.data + work->first * size : worker->lane->slot[slot];
    enum status status =
        device->download(device, run->session->download, to, from, (size_t)(n * size));
    if (status == STATUS_OK) {
        status = device->record(device, worker->lane->event[slot], run->session->download);
    }
    if (status == STATUS_OK) {
        note_pending(worker, work, slot);
    }
    pthread_mutex_lock(&run->lock);
    if (status == STATUS_OK && run->down_left[work->tile] == n) {
        status =
            device->record(device, run->session->downloaded[work->tile % run_result_depth(run)],
                           run->session->download);
    }
    if (run_holds(run, status)) {
        run->down_left[work->tile] -= n;
        run->times.last_download = run_seconds(run);
        run_multiply(run);
    }
    pthread_mutex_unlock(&run->lock);
    return status;
}

/* A slot that is not in use, -1 after a failure. Who has to wait for one makes memory ready meanwhile. */
static int free_slot(struct worker *worker, enum status *status)
{
    struct run *run = worker->run;
    int slot = oldest(worker, WORK_NONE);
    bool happened = false;
    while (slot < 0 && *status == STATUS_OK) {
        const int sent = oldest(worker, WORK_UPLOAD);
        const int wanted = sent >= 0 ? sent : oldest(worker, WORK_DOWNLOAD);
        *status = run->device->poll(run->device, worker->lane->event[wanted], &happened);
        if (*status == STATUS_OK && (happened || !fresh_touch_some(&run->fresh))) {
            *status = finish(worker, wanted);
            slot = wanted;
        }
    }
    return *status == STATUS_OK ? slot : -1;
}

/* Stores a piece of the result that is there. */
static enum status finish_what_came(struct worker *worker)
{
    const int slot = oldest(worker, WORK_DOWNLOAD);
    bool happened = false;
    enum status status = STATUS_OK;
    if (slot >= 0) {
        struct device *device = worker->run->device;
        status = device->poll(device, worker->lane->event[slot], &happened);
    }
    return status == STATUS_OK && happened ? finish(worker, slot) : status;
}

/* What was uploaded is there before any of the result is: waiting for it first costs nothing. */
static enum status finish_all(struct worker *worker)
{
    static const enum work_kind kinds[] = {WORK_UPLOAD, WORK_DOWNLOAD};
    enum status status = STATUS_OK;
    for (int i = 0; i < 2; i++) {
        int slot = oldest(worker, kinds[i]);
        while (slot >= 0 && status == STATUS_OK) {
            status = finish(worker, slot);
            slot = oldest(worker, kinds[i]);
        }
    }
    return status;
}

static enum status work_with_lane(struct worker *worker)
{
    struct run *run = worker->run;
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        status = finish_what_came(worker);
        const int slot = status == STATUS_OK ? free_slot(worker, &status) : -1;
        if (slot < 0) {
            break;
        }
        const struct work work = run_take_work(run, worker->downloads);
        switch (work.kind) {
        case WORK_UPLOAD:
            status = upload(worker, &work, slot);
            break;
        case WORK_DOWNLOAD:
            status = download(worker, &work, slot);
            break;
        case WORK_OVER:
            return finish_all(worker);
        default: /* later */
            if (!fresh_touch_some(&run->fresh)) {
                sched_yield();
            }
            break;
        }
    }
    return status;
}

/* Whoever gives a lane back may not leave copies behind that use it. */
static void settle(const struct run *run)
{
    struct device *device = run->device;
    struct queue *const queues[] = {run->session->upload, run->session->download};
    for (int i = 0; i < 2; i++) {
        if (device->drain(device, queues[i]) != STATUS_OK) {
            device->drain(device, queues[i]);
        }
    }
}

void run_share(void *context, int index)
{
    struct run *run = context;
    struct worker worker = {.run = run};
    if (index >= run->threads) {
        while (fresh_touch_some(&run->fresh)) {
        }
        return;
    }
    const int before = run->device->enter(run->device);
    /* There are threads enough where a lane is missing, but one must go on. */
    enum status status = lane_take(run->resources, index == 0, &worker.lane);
    if (worker.lane != NULL) {
        status = work_with_lane(&worker);
        pthread_mutex_lock(&run->lock);
        run_holds(run, status);
        const bool failed = run->status != STATUS_OK;
        pthread_mutex_unlock(&run->lock);
        if (failed) {
            settle(run);
        }
        lane_give_back(run->resources, worker.lane);
    } else if (index == 0) {
        pthread_mutex_lock(&run->lock);
        run_holds(run, status);
        pthread_mutex_unlock(&run->lock);
    }
    run->device->leave(run->device, before);
}
