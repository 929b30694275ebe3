/* One call: threads take pieces of work, whichever can be done. Nobody waits for anybody while there
 * is something to do, and whatever is put into a queue follows work that is in a queue already. */
#include "pipeline.h"

#include "kernels.h"
#include "parallel.h"
#include "part.h"
#include "plan.h"
#include "resources.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    MOST_THREADS = 12, /* that copy: more gain nothing */
    MOST_LANES = 24,   /* of all calls at once */
    LEAST_CHUNK = 256 << 10,
    DIRECT_CHUNK = 32 << 20, /* between pinned memory and the device */
    LEAST_BUDGET = 1 << 16,
};

struct pipeline {
    struct device *device;
    struct resources *resources;
    _Atomic size_t memory;
};

struct run {
    struct device *device;
    struct resources *resources;
    const struct plan *plan;
    struct session *session;
    device_address memory;
    size_t size; /* of an element */
    ptrdiff_t chunk;
    bool pinned[OPERANDS];
    bool scans; /* the result for infinities and NaNs */
    _Atomic bool nonfinite;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    enum status status;
    int threads;
    ptrdiff_t up_tile, up_element; /* the next piece to be uploaded */
    enum operand up_operand;
    ptrdiff_t *up_left[OPERANDS]; /* elements of each part that are not in the queue */
    ptrdiff_t multiplied;         /* tiles that are in a queue, */
    bool multiplying;             /* and one is being put there */
    ptrdiff_t computed;           /* tiles that are known to be done */
    ptrdiff_t down_tile, down_element;
    ptrdiff_t *down_left; /* elements of each tile that are not in the queue */
    int downloading;      /* pieces on their way */
};

enum work_kind { WORK_NONE, WORK_UPLOAD, WORK_DOWNLOAD, WORK_LATER, WORK_OVER };

struct work {
    enum work_kind kind;
    bool direct;
    ptrdiff_t tile;
    enum operand operand;
    struct part part;
    ptrdiff_t first, end;
};

/* ---- what can be done now; all under the lock ---- */

static void fail(struct run *run, enum status status)
{
    if (run->status == STATUS_OK) {
        run->status = status;
    }
    pthread_cond_broadcast(&run->changed);
}

static bool holds(struct run *run, enum status status)
{
    if (status != STATUS_OK) {
        fail(run, status);
    }
    return status == STATUS_OK;
}

static ptrdiff_t depth_of_result(const struct run *run)
{
    return run->plan->slots[OPERAND_C].depth;
}

static struct event *multiplied_event(const struct run *run, ptrdiff_t tile)
{
    return run->session->multiplied[tile % depth_of_result(run)];
}

static ptrdiff_t chunk_end(const struct run *run, const struct part *part, ptrdiff_t first,
                           bool direct)
{
    const ptrdiff_t chunk = direct ? DIRECT_CHUNK / (ptrdiff_t)run->size : run->chunk;
    const ptrdiff_t left = part_elements(part) - first;
    return first + (left < chunk ? left : chunk);
}

/* Goes on to the next part that has to be uploaded: of b first, then of a. */
static void next_upload(struct run *run)
{
    run->up_element = 0;
    do {
        if (run->up_operand == OPERAND_B) {
            run->up_operand = OPERAND_A;
        } else {
            run->up_operand = OPERAND_B;
            run->up_tile++;
        }
    } while (run->up_tile < run->plan->tiles &&
             run->up_tile % run->plan->slots[run->up_operand].uses != 0);
}

/* Whether the slot that the next part goes to may be overwritten once the upload queue gets there. */
static bool slot_is_free(struct run *run)
{
    const struct slots *slots = &run->plan->slots[run->up_operand];
    const ptrdiff_t part = run->up_tile / slots->uses;
    if (run->up_element > 0 || part < slots->depth) {
        return true;
    }
    const ptrdiff_t last_use = (part - slots->depth + 1) * slots->uses - 1;
    return last_use < run->multiplied &&
           holds(run, run->device->follow(run->device, run->session->upload,
                                          multiplied_event(run, last_use)));
}

static bool take_upload(struct run *run, struct work *work)
{
    if (run->up_tile == run->plan->tiles || !slot_is_free(run)) {
        return false;
    }
    work->kind = WORK_UPLOAD;
    work->tile = run->up_tile;
    work->operand = run->up_operand;
    work->part = plan_part(run->plan, work->tile, work->operand);
    work->direct = run->pinned[work->operand] && part_is_contiguous(&work->part, run->size);
    work->first = run->up_element;
    work->end = chunk_end(run, &work->part, work->first, work->direct);
    run->up_element = work->end;
    if (work->end == part_elements(&work->part)) {
        next_upload(run);
    }
    return true;
}

static bool is_computed(struct run *run)
{
    if (run->down_tile < run->computed) {
        return true;
    }
    bool happened = false;
    if (holds(run,
              run->device->poll(run->device, multiplied_event(run, run->down_tile), &happened)) &&
        happened) {
        run->computed = run->down_tile + 1;
    }
    return happened;
}

/* With `patient`, also what the device has not computed yet. */
static bool take_download(struct run *run, struct work *work, bool patient)
{
    if (run->down_tile == run->multiplied ||
        (!patient && (run->downloading >= run->threads || !is_computed(run)))) {
        return false;
    }
    work->kind = WORK_DOWNLOAD;
    work->tile = run->down_tile;
    work->operand = OPERAND_C;
    work->part = plan_part(run->plan, work->tile, OPERAND_C);
    work->direct = run->pinned[OPERAND_C] && part_is_contiguous(&work->part, run->size);
    work->first = run->down_element;
    work->end = chunk_end(run, &work->part, work->first, work->direct);
    if (work->first == 0 && !holds(run, run->device->follow(run->device, run->session->download,
                                                            multiplied_event(run, work->tile)))) {
        return false;
    }
    run->downloading++;
    run->down_element = work->end;
    if (work->end == part_elements(&work->part)) {
        run->down_element = 0;
        run->down_tile++;
        if (run->down_tile == run->plan->tiles) {
            pthread_cond_broadcast(&run->changed); /* it is over for those who wait */
        }
    }
    return true;
}

/* With `wait`, does not return WORK_LATER. */
static struct work take_work(struct run *run, bool wait)
{
    struct work work = {.kind = WORK_LATER};
    pthread_mutex_lock(&run->lock);
    for (;;) {
        if (run->status != STATUS_OK || run->down_tile == run->plan->tiles) {
            work.kind = WORK_OVER;
            break;
        }
        if (take_download(run, &work, false) || take_upload(run, &work) ||
            take_download(run, &work, true)) {
            break;
        }
        if (run->status == STATUS_OK) {
            if (!wait) {
                break;
            }
            pthread_cond_wait(&run->changed, &run->lock);
        }
    }
    pthread_mutex_unlock(&run->lock);
    return work;
}

/* ---- products ---- */

static bool may_multiply(const struct run *run)
{
    const ptrdiff_t tile = run->multiplied, depth = depth_of_result(run);
    if (run->status != STATUS_OK || run->multiplying || tile == run->plan->tiles) {
        return false;
    }
    const struct tile_of_plan of = plan_tile(run->plan, tile);
    return run->up_left[OPERAND_A][of.part[OPERAND_A]] == 0 &&
           run->up_left[OPERAND_B][of.part[OPERAND_B]] == 0 &&
           (tile < depth || run->down_left[tile - depth] == 0);
}

static struct stored stored_part(const struct run *run, ptrdiff_t tile, enum operand operand)
{
    const struct plan *plan = run->plan;
    const struct part part = plan_part(plan, tile, operand);
    return (struct stored){
        .at = plan_address(plan, run->memory, operand, tile / plan->slots[operand].uses),
        .transposed = plan->slots[operand].transposed,
        .batch_step = part.batch > 1 ? part.rows * part.columns : 0,
    };
}

static enum status multiply(const struct run *run, ptrdiff_t tile)
{
    struct device *device = run->device;
    struct session *session = run->session;
    const struct plan *plan = run->plan;
    struct queue *queue = session->compute[tile % COMPUTE_QUEUES];
    const ptrdiff_t depth = depth_of_result(run);
    const struct tile_of_plan of = plan_tile(plan, tile);
    const struct gemm gemm = {
        .type = plan->task.type,
        .precision = plan->task.precision,
        .kernel = plan->task.kernel,
        .batch = of.batch,
        .m = of.m,
        .n = of.n,
        .k = plan->task.k,
        .a = stored_part(run, tile, OPERAND_A),
        .b = stored_part(run, tile, OPERAND_B),
        .c = plan_address(plan, run->memory, OPERAND_C, tile),
    };
    enum status status = device->record(device, session->uploaded, session->upload);
    if (status == STATUS_OK) {
        status = device->follow(device, queue, session->uploaded);
    }
    if (status == STATUS_OK && tile >= depth) {
        status = device->follow(device, queue, session->downloaded[tile % depth]);
    }
    if (status == STATUS_OK) {
        status = device->multiply(device, queue, &gemm);
    }
    return status == STATUS_OK ? device->record(device, multiplied_event(run, tile), queue)
                               : status;
}

/* Puts all products into queues whose operands are there, in order. Called with the lock, which is
 * not held meanwhile. */
static void multiply_what_is_there(struct run *run)
{
    while (may_multiply(run)) {
        run->multiplying = true;
        pthread_mutex_unlock(&run->lock);
        const enum status status = multiply(run, run->multiplied);
        pthread_mutex_lock(&run->lock);
        run->multiplying = false;
        if (holds(run, status)) {
            run->multiplied++;
            pthread_cond_broadcast(&run->changed);
        }
    }
}

/* ---- pieces ---- */

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
    if (holds(run, status)) {
        const ptrdiff_t part = work->tile / run->plan->slots[work->operand].uses;
        run->up_left[work->operand][part] -= n;
        multiply_what_is_there(run);
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
        status = device->record(device, run->session->downloaded[work->tile % depth_of_result(run)],
                                run->session->download);
    }
    if (holds(run, status)) {
        run->down_left[work->tile] -= n;
        multiply_what_is_there(run);
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
        const struct work work = take_work(worker->run, !has_pending(worker));
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

static void share(void *context, int index, int count)
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
        holds(run, status);
        const bool failed = run->status != STATUS_OK;
        pthread_mutex_unlock(&run->lock);
        if (failed) {
            settle(run);
        }
        lane_give_back(run->resources, worker.lane);
    } else if (index == 0) {
        pthread_mutex_lock(&run->lock);
        holds(run, status);
        pthread_mutex_unlock(&run->lock);
    }
    run->device->leave(run->device, before);
}

/* ---- the call ---- */

static bool count_elements(struct run *run)
{
    const struct plan *plan = run->plan;
    for (int operand = OPERAND_A; operand <= OPERAND_C; operand++) {
        const struct slots *slots = &plan->slots[operand];
        ptrdiff_t *left = malloc((size_t)slots->parts * sizeof *left);
        if (left == NULL) {
            return false;
        }
        for (ptrdiff_t part = 0; part < slots->parts; part++) {
            const struct part of = plan_part(plan, part * slots->uses, (enum operand)operand);
            left[part] = part_elements(&of);
        }
        *(operand == OPERAND_C ? &run->down_left : &run->up_left[operand]) = left;
    }
    return true;
}

static int choose_threads(struct run *run)
{
    const struct matmul_task *task = &run->plan->task;
    const ptrdiff_t bytes =
        (ptrdiff_t)run->size * (task->m * task->k + task->k * task->n + task->m * task->n);
    const ptrdiff_t pieces = bytes / LEAST_CHUNK + 1;
    int threads = threads_limit().threads;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    threads = task->batch > 1 || pieces > threads ? threads : (int)pieces;
    /* Some pieces for everybody, so that all end at about the same time. */
    ptrdiff_t chunk = bytes / (4 * threads) / LEAST_CHUNK * LEAST_CHUNK;
    chunk = task->batch > 1 || chunk > SLOT_BYTES ? SLOT_BYTES
            : chunk < LEAST_CHUNK                 ? LEAST_CHUNK
                                                  : chunk;
    run->chunk = chunk / (ptrdiff_t)run->size;
    return threads;
}

static enum status run_plan(struct pipeline *pipeline, const struct plan *plan,
                            struct pipeline_report *report)
{
    struct device *device = pipeline->device;
    struct run run = {
        .device = device,
        .resources = pipeline->resources,
        .plan = plan,
        .size = plan->task.type.size,
        .scans = plan->task.type.kind >= ELEMENT_FLOAT,
        .up_operand = OPERAND_B,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    const struct matrices *const of[] = {&plan->task.a, &plan->task.b, &plan->task.c};
    for (int i = 0; i < OPERANDS; i++) {
        run.pinned[i] = device->is_pinned(device, of[i]->data);
    }
    enum status status = count_elements(&run) ? STATUS_OK : STATUS_NO_HOST_MEMORY;
    if (status == STATUS_OK) {
        status = session_take(pipeline->resources, &run.session);
    }
    if (status == STATUS_OK) {
        status = device->alloc(device, run.session->upload, plan->bytes, &run.memory);
    }
    if (status == STATUS_OK) {
        run.threads = choose_threads(&run);
        report->threads = region_run(run.threads, share, &run);
        report->nonfinite = run.nonfinite;
        status = run.status;
        for (int i = 0; i < COMPUTE_QUEUES && status != STATUS_OK; i++) {
            if (device->drain(device, run.session->compute[i]) != STATUS_OK) {
                device->drain(device, run.session->compute[i]);
            }
        }
        device->release(device, run.session->upload, run.memory);
    }
    if (run.session != NULL) {
        session_give_back(pipeline->resources, run.session);
    }
    for (int i = 0; i < OPERANDS; i++) {
        free(run.up_left[i]);
    }
    free(run.down_left);
    return status;
}

enum status pipeline_matmul(struct pipeline *pipeline, const struct matmul_task *task,
                            struct pipeline_report *report)
{
    struct device *device = pipeline->device;
    const char *why;
    if (!device->supports(device, task, &why)) {
        return STATUS_UNSUPPORTED;
    }
    const size_t limit = pipeline->memory;
    size_t budget = device->memory / 10 * 9;
    budget = limit != 0 && limit < budget ? limit : budget;
    const int before = device->enter(device);
    enum status status;
    struct plan plan;
    /* Others use the device, too: what it lacks may be enough for smaller tiles. */
    do {
        status = STATUS_NO_DEVICE_MEMORY;
        if (!plan_make(&plan, task, budget)) {
            break;
        }
        budget = (plan.bytes < budget ? plan.bytes : budget) / 2;
        status = run_plan(pipeline, &plan, report);
    } while (status == STATUS_NO_DEVICE_MEMORY && budget >= LEAST_BUDGET);
    device->leave(device, before);
    return status;
}

struct pipeline *pipeline_new(struct device *device, size_t memory)
{
    struct pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (pipeline == NULL) {
        return NULL;
    }
    pipeline->device = device;
    pipeline->memory = memory;
    pipeline->resources = resources_new(device, MOST_LANES);
    if (pipeline->resources == NULL) {
        free(pipeline);
        return NULL;
    }
    return pipeline;
}

void pipeline_limit_memory(struct pipeline *pipeline, size_t memory)
{
    pipeline->memory = memory;
}

void pipeline_delete(struct pipeline *pipeline)
{
    if (pipeline != NULL) {
        const int before = pipeline->device->enter(pipeline->device);
        resources_delete(pipeline->resources);
        pipeline->device->leave(pipeline->device, before);
        free(pipeline);
    }
}
