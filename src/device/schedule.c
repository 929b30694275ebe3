/* What can be done now: which piece is to be copied next, and which products can be started. */
#include "run.h"

#include <sched.h>

enum {
    DIRECT_CHUNK = 32 << 20, /* between pinned memory and the device */
    LEAST_LAST_CHUNK = 64 << 10,
    SPINS = 2000,
    MOST_DOWNLOADS = LANE_SLOTS / 2, /* that a thread waits for while it could upload */
    FIRST_CHUNKS = 4, /* in the place of one: the device has something to do sooner */
};

static void announce(struct run *run)
{
    run->changes++;
    if (run->sleeping > 0) {
        pthread_cond_broadcast(&run->changed);
    }
}

static void fail(struct run *run, enum status status)
{
    if (run->status == STATUS_OK) {
        run->status = status;
    }
    announce(run);
}

bool run_holds(struct run *run, enum status status)
{
    if (status != STATUS_OK) {
        fail(run, status);
    }
    return status == STATUS_OK;
}

ptrdiff_t run_result_depth(const struct run *run)
{
    return run->plan->slots[OPERAND_C].depth;
}

static struct event *multiplied_event(const struct run *run, ptrdiff_t tile)
{
    return run->session->multiplied[tile % run_result_depth(run)];
}

/* The last tile is cut finer: all threads take part in its way back. */
static ptrdiff_t chunk_end(const struct run *run, const struct work *work)
{
    const ptrdiff_t elements = part_elements(&work->part), left = elements - work->first;
    ptrdiff_t chunk = run->chunk;
    if (work->direct) {
        chunk = DIRECT_CHUNK / (ptrdiff_t)run->size;
    } else if (work->operand == OPERAND_C && work->tile == run->plan->tiles - 1) {
        const ptrdiff_t share = elements / run->threads + 1;
        const ptrdiff_t least = LEAST_LAST_CHUNK / (ptrdiff_t)run->size;
        chunk = share > chunk ? chunk : share > least ? share : least;
    }
    return work->first + (left < chunk ? left : chunk);
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
             !plan_tile_is_first(run->plan, run->up_tile, run->up_operand));
}

/* Whether the slot that the next part goes to may be overwritten once the upload queue gets there. */
static bool slot_is_free(struct run *run)
{
    const struct slots *slots = &run->plan->slots[run->up_operand];
    const ptrdiff_t part = plan_tile(run->plan, run->up_tile).part[run->up_operand];
    if (run->up_element > 0 || part < slots->depth) {
        return true;
    }
    const ptrdiff_t last_use = (part - slots->depth + 1) * slots->uses - 1;
    return last_use < run->multiplied &&
           run_holds(run, run->device->follow(run->device, run->session->upload,
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
    work->end = chunk_end(run, work);
    run->up_element = work->end;
    if (work->end == part_elements(&work->part)) {
        next_upload(run);
    }
    return true;
}

static bool take_download(struct run *run, struct work *work)
{
    if (run->down_tile == run->multiplied) {
        return false;
    }
    work->kind = WORK_DOWNLOAD;
    work->tile = run->down_tile;
    work->operand = OPERAND_C;
    work->part = plan_part(run->plan, work->tile, OPERAND_C);
    work->direct = run->pinned[OPERAND_C] && part_is_contiguous(&work->part, run->size);
    work->first = run->down_element;
    work->end = chunk_end(run, work);
    if (work->first == 0 &&
        !run_holds(run, run->device->follow(run->device, run->session->download,
                                            multiplied_event(run, work->tile)))) {
        return false;
    }
    run->coming++;
    run->down_element = work->end;
    if (work->end == part_elements(&work->part)) {
        run->down_element = 0;
        run->down_tile++;
        if (run->down_tile == run->plan->tiles) {
            announce(run); /* it is over for those who wait */
        }
    }
    return true;
}

/* Called with the lock. Most changes come so soon that falling asleep and waking up would take longer. */
static void wait_for_change(struct run *run)
{
    const unsigned seen = run->changes;
    pthread_mutex_unlock(&run->lock);
    for (int i = 0; i < SPINS && run->changes == seen; i++) {
        sched_yield();
    }
    pthread_mutex_lock(&run->lock);
    while (run->changes == seen) {
        run->sleeping++;
        pthread_cond_wait(&run->changed, &run->lock);
        run->sleeping--;
    }
}

struct work run_take_work(struct run *run, int downloads)
{
    struct work work = {.kind = WORK_LATER};
    pthread_mutex_lock(&run->lock);
    for (;;) {
        if (run->status != STATUS_OK || run->down_tile == run->plan->tiles) {
            work.kind = WORK_OVER;
            break;
        }
        /* Whoever waits for a piece will store it: nobody takes more than others. */
        const bool may_download = downloads * run->threads <= run->coming;
        if ((may_download && downloads < MOST_DOWNLOADS && take_download(run, &work)) ||
            take_upload(run, &work) || (may_download && take_download(run, &work))) {
            break;
        }
        if (run->status == STATUS_OK) {
            if (downloads > 0) {
                break;
            }
            wait_for_change(run);
        }
    }
    pthread_mutex_unlock(&run->lock);
    return work;
}

/* ---- products ---- */

static bool may_multiply(const struct run *run)
{
    const ptrdiff_t tile = run->multiplied, depth = run_result_depth(run);
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
        .at = plan_address(plan, run->memory, operand, part.number),
        .transposed = plan->slots[operand].transposed,
        .batch_step = part.batch > 1 ? part.rows * part.columns : 0,
    };
}

static enum status multiply(const struct run *run, ptrdiff_t tile)
{
    struct device *device = run->device;
    struct session *session = run->session;
    const struct plan *plan = run->plan;
    struct queue *queue = session->compute[tile % PLAN_QUEUES];
    const ptrdiff_t depth = run_result_depth(run);
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
        .spare = plan_spare(plan, run->memory, tile),
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

void run_multiply(struct run *run)
{
    while (may_multiply(run)) {
        run->multiplying = true;
        pthread_mutex_unlock(&run->lock);
        const enum status status = multiply(run, run->multiplied);
        pthread_mutex_lock(&run->lock);
        run->multiplying = false;
        if (run_holds(run, status)) {
            run->multiplied++;
            run->times.last_product = run_seconds(run);
            announce(run);
        }
    }
}
