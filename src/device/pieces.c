/* The threads of a call, which copy pieces of the operands to the device and of the result back. */
#include "run.h"

#include "kernels.h"

/* A thread with its lane, whose slots it uses in turn. */
struct worker {
    struct run *run;
    struct lane *lane;
    struct work pending[LANE_SLOTS]; /* what each slot is in use for */
    int next;
};

static enum status finish(struct worker *worker, int slot)
{
    struct run *run = worker->run;
    struct work *work = &worker->pending[slot];
    if (work->kind == WORK_NONE) {
        return STATUS_OK;
    }
    const enum work_kind kind = work->kind;
    work->kind = WORK_NONE;
    enum status status = run->device->wait(run->device, worker->lane->event[slot]);
    if (kind == WORK_DOWNLOAD) {
        const char *from = work->direct ? work->part.from.data + work->first * (ptrdiff_t)run->size
                                        : worker->lane->slot[slot];
        const int floats = run->plan->task.type.kind == ELEMENT_COMPLEX ? 2 : 1;
        if (status == STATUS_OK && run->scans && !run->nonfinite &&
            !floats_are_finite(run->size / (size_t)floats, from,
                               (work->end - work->first) * floats)) {
            run->nonfinite = true;
        }
        if (status == STATUS_OK && !work->direct) {
            part_scatter(&work->part, run->size, work->first, work->end, from);
        }
        pthread_mutex_lock(&run->lock);
        run->downloading--;
        pthread_mutex_unlock(&run->lock);
    }
    return status;
}

static enum status upload(struct worker *worker, const struct work *work, int slot)
{
    struct run *run = worker->run;
    struct device *device = run->device;
    const ptrdiff_t size = (ptrdiff_t)run->size, n = work->end - work->first;
    const device_address to = plan_address(run->plan, run->memory, work->operand,
                                           work->tile / run->plan->slots[work->operand].uses) +
                              (size_t)(work->first * size);
    const char *from = worker->lane->slot[slot];
    if (work->direct) {
        from = work->part.from.data + work->first * size;
    } else {
        part_gather(&work->part, run->size, work->first, work->end, worker->lane->slot[slot]);
    }
    enum status status = device->upload(device, run->session->upload, to, from, (size_t)(n * size));
    if (status == STATUS_OK) {
        status = device->record(device, worker->lane->event[slot], run->session->upload);
    }
    if (status == STATUS_OK) {
        worker->pending[slot] = *work;
    }
    pthread_mutex_lock(&run->lock);
    if (run_holds(run, status)) {
        const ptrdiff_t part = work->tile / run->plan->slots[work->operand].uses;
        run->up_left[work->operand][part] -= n;
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
        worker->pending[slot] = *work;
    }
    pthread_mutex_lock(&run->lock);
    if (status == STATUS_OK && run->down_left[work->tile] == n) {
        status =
            device->record(device, run->session->downloaded[work->tile % run_result_depth(run)],
                           run->session->download);
    }
    if (run_holds(run, status)) {
        run->down_left[work->tile] -= n;
        run_multiply(run);
    }
    pthread_mutex_unlock(&run->lock);
    return status;
}

static bool has_pending(const struct worker *worker)
{
    for (int i = 0; i < LANE_SLOTS; i++) {
        if (worker->pending[i].kind != WORK_NONE) {
            return true;
        }
    }
    return false;
}

static enum status finish_oldest(struct worker *worker)
{
    const int slot = worker->next;
    worker->next = (slot + 1) % LANE_SLOTS;
    return finish(worker, slot);
}

static enum status work_with_lane(struct worker *worker)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        const struct work work = run_take_work(worker->run, !has_pending(worker));
        const int slot = worker->next;
        status = finish_oldest(worker);
        if (work.kind == WORK_OVER && !has_pending(worker)) {
            break;
        }
        if (status == STATUS_OK && work.kind == WORK_UPLOAD) {
            status = upload(worker, &work, slot);
        } else if (status == STATUS_OK && work.kind == WORK_DOWNLOAD) {
            status = download(worker, &work, slot);
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

void run_share(void *context, int index, int count)
{
    struct run *run = context;
    struct worker worker = {.run = run};
    (void)count;
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
