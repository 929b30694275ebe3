/* Decides which chunk is copied next, and starts products whose operands are uploaded. */
#include "schedule.h"

#include "device_cutoffs.h"
#include "threads/clock.h"
#include "threads/spin.h"

#include <sched.h>

enum {
    PAUSES = 50000,                  /* 2 ms, if there is a processor for each thread; then */
    YIELDS = 2000,                   /* so often, then threads sleep */
    MOST_DOWNLOADS = RING_SLOTS / 2, /* of one thread at a time: the other slots are for uploads */
};

double schedule_seconds(const struct schedule *schedule)
{
    return 1e-9 * (double)(clock_ns() - schedule->started);
}

static void announce(struct schedule *schedule)
{
    schedule->changes++;
    if (schedule->sleeping > 0) {
        pthread_cond_broadcast(&schedule->changed);
    }
}

static void fail(struct schedule *schedule, enum status status)
{
    if (schedule->status == STATUS_OK) {
        schedule->status = status;
    }
    announce(schedule);
}

bool schedule_holds(struct schedule *schedule, enum status status)
{
    if (status != STATUS_OK) {
        fail(schedule, status);
    }
    return status == STATUS_OK;
}

ptrdiff_t schedule_result_depth(const struct schedule *schedule)
{
    return schedule->plan->panels[OPERAND_C].depth;
}

static struct event *multiplied_event(const struct schedule *schedule, ptrdiff_t tile)
{
    return schedule->session->multiplied[tile % schedule_result_depth(schedule)];
}

bool schedule_is_direct(const struct schedule *schedule, enum operand operand,
                        const struct panel *panel)
{
    return schedule->pinned[operand] &&
           (panel_is_contiguous(panel, schedule->size) || panel_has_rows(panel, schedule->size));
}

/* The last tile is cut finer, so that all threads share its download. */
static ptrdiff_t chunk_end(const struct schedule *schedule, const struct transfer *transfer)
{
    const ptrdiff_t elements = panel_elements(&transfer->panel), left = elements - transfer->first;
    ptrdiff_t chunk = schedule->chunk;
    if (transfer->direct) {
        chunk = panel_is_contiguous(&transfer->panel, schedule->size)
                    ? DIRECT_CHUNK_BYTES / (ptrdiff_t)schedule->size
                    : elements;
    } else if (transfer->operand == OPERAND_C && transfer->tile == schedule->plan->tiles - 1) {
        const ptrdiff_t share = elements / schedule->threads + 1;
        const ptrdiff_t least = LEAST_LAST_CHUNK_BYTES / (ptrdiff_t)schedule->size;
        chunk = share > chunk ? chunk : share > least ? share : least;
    }
    return transfer->first + (left < chunk ? left : chunk);
}

/* Goes on to the next panel that has to be uploaded: of b first, then of a. */
static void next_upload(struct schedule *schedule)
{
    schedule->up_element = 0;
    do {
        if (schedule->up_operand == OPERAND_B) {
            schedule->up_operand = OPERAND_A;
        } else {
            schedule->up_operand = OPERAND_B;
            schedule->up_tile++;
        }
    } while (schedule->up_tile < schedule->plan->tiles &&
             !plan_tile_is_first(schedule->plan, schedule->up_tile, schedule->up_operand));
}

/* Whether the buffer that the next panel goes to may be overwritten once the upload stream gets there. */
static bool buffer_is_free(struct schedule *schedule)
{
    const struct panels *panels = &schedule->plan->panels[schedule->up_operand];
    const ptrdiff_t panel =
        plan_tile(schedule->plan, schedule->up_tile).panel[schedule->up_operand];
    if (schedule->up_element > 0 || panel < panels->depth) {
        return true;
    }
    const ptrdiff_t last_use = (panel - panels->depth + 1) * panels->uses - 1;
    return last_use < schedule->multiplied &&
           schedule_holds(schedule,
                          schedule->device->follow(schedule->device, schedule->session->upload,
                                                   multiplied_event(schedule, last_use)));
}

static bool take_upload(struct schedule *schedule, struct transfer *transfer)
{
    if (schedule->up_tile == schedule->plan->tiles || !buffer_is_free(schedule)) {
        return false;
    }
    transfer->kind = TRANSFER_UPLOAD;
    transfer->tile = schedule->up_tile;
    transfer->operand = schedule->up_operand;
    transfer->panel = plan_panel(schedule->plan, transfer->tile, transfer->operand);
    transfer->direct = schedule_is_direct(schedule, transfer->operand, &transfer->panel);
    transfer->first = schedule->up_element;
    transfer->end = chunk_end(schedule, transfer);
    schedule->up_element = transfer->end;
    if (transfer->end == panel_elements(&transfer->panel)) {
        next_upload(schedule);
    }
    return true;
}

static bool take_download(struct schedule *schedule, struct transfer *transfer)
{
    if (schedule->down_tile == schedule->multiplied) {
        return false;
    }
    transfer->kind = TRANSFER_DOWNLOAD;
    transfer->tile = schedule->down_tile;
    transfer->operand = OPERAND_C;
    transfer->panel = plan_panel(schedule->plan, transfer->tile, OPERAND_C);
    transfer->direct = schedule_is_direct(schedule, OPERAND_C, &transfer->panel);
    transfer->first = schedule->down_element;
    transfer->end = chunk_end(schedule, transfer);
    if (transfer->first == 0 &&
        !schedule_holds(schedule,
                        schedule->device->follow(schedule->device, schedule->session->download,
                                                 multiplied_event(schedule, transfer->tile)))) {
        return false;
    }
    schedule->coming++;
    schedule->down_element = transfer->end;
    if (transfer->end == panel_elements(&transfer->panel)) {
        schedule->down_element = 0;
        schedule->down_tile++;
        if (schedule->down_tile == schedule->plan->tiles) {
            announce(schedule); /* wakes those who wait for work: there is none left */
        }
    }
    return true;
}

/* Called with the lock. Spins before sleeping: most changes come sooner than a sleeper wakes. */
static void wait_for_change(struct schedule *schedule)
{
    const unsigned seen = schedule->changes;
    const int pauses = schedule->has_cpus ? PAUSES : 0;
    pthread_mutex_unlock(&schedule->lock);
    for (int i = 0; i < pauses && schedule->changes == seen; i++) {
        spin_pause();
    }
    for (int i = 0; i < YIELDS && schedule->changes == seen; i++) {
        sched_yield();
    }
    spin_lock(&schedule->lock);
    while (schedule->changes == seen) {
        schedule->sleeping++;
        pthread_cond_wait(&schedule->changed, &schedule->lock);
        schedule->sleeping--;
    }
}

struct transfer schedule_take(struct schedule *schedule, int downloads)
{
    struct transfer transfer = {.kind = TRANSFER_LATER};
    spin_lock(&schedule->lock);
    for (;;) {
        if (schedule->status != STATUS_OK || schedule->down_tile == schedule->plan->tiles) {
            transfer.kind = TRANSFER_OVER;
            break;
        }
        /* The thread that asks for a chunk also stores it: downloads are taken evenly. */
        const bool may_download = downloads * schedule->threads <= schedule->coming;
        if ((may_download && downloads < MOST_DOWNLOADS && take_download(schedule, &transfer)) ||
            take_upload(schedule, &transfer) ||
            (may_download && take_download(schedule, &transfer))) {
            break;
        }
        if (schedule->status == STATUS_OK) {
            if (downloads > 0) {
                break;
            }
            wait_for_change(schedule);
        }
    }
    pthread_mutex_unlock(&schedule->lock);
    return transfer;
}

/* ---- products ---- */

static bool may_multiply(const struct schedule *schedule)
{
    const ptrdiff_t tile = schedule->multiplied, depth = schedule_result_depth(schedule);
    if (schedule->status != STATUS_OK || schedule->multiplying || tile == schedule->plan->tiles) {
        return false;
    }
    const struct plan_tile of = plan_tile(schedule->plan, tile);
    return schedule->up_left[OPERAND_A][of.panel[OPERAND_A]] == 0 &&
           schedule->up_left[OPERAND_B][of.panel[OPERAND_B]] == 0 &&
           (tile < depth || schedule->down_left[tile - depth] == 0);
}

static struct stored stored_panel(const struct schedule *schedule, ptrdiff_t tile,
                                  enum operand operand)
{
    const struct device_plan *plan = schedule->plan;
    const struct panel panel = plan_panel(plan, tile, operand);
    return (struct stored){
        .at = plan_address(plan, schedule->memory, operand, panel.number),
        .transposed = plan->panels[operand].transposed,
        .batch_step = panel.batch > 1 ? panel.rows * panel.columns : 0,
    };
}

static enum status multiply(const struct schedule *schedule, ptrdiff_t tile)
{
    struct device *device = schedule->device;
    struct session *session = schedule->session;
    const struct device_plan *plan = schedule->plan;
    struct stream *stream = session->compute[tile % PLAN_STREAMS];
    const ptrdiff_t depth = schedule_result_depth(schedule);
    const struct plan_tile of = plan_tile(plan, tile);
    const struct gemm gemm = {
        .type = plan->task.type,
        .precision = plan->task.precision,
        .kernel = plan->task.kernel,
        .batch = of.batch,
        .m = of.m,
        .n = of.n,
        .k = plan->task.product.k,
        .a = stored_panel(schedule, tile, OPERAND_A),
        .b = stored_panel(schedule, tile, OPERAND_B),
        .c = plan_address(plan, schedule->memory, OPERAND_C, tile),
        .spare = plan_spare(plan, schedule->memory, tile),
    };
    enum status status = device->record(device, session->uploaded, session->upload);
    if (status == STATUS_OK) {
        status = device->follow(device, stream, session->uploaded);
    }
    if (status == STATUS_OK && tile >= depth) {
        status = device->follow(device, stream, session->downloaded[tile % depth]);
    }
    if (status == STATUS_OK) {
        status = device->multiply(device, stream, &gemm);
    }
    const struct panel c = plan_panel(plan, tile, OPERAND_C);
    if (status == STATUS_OK && schedule->scans && schedule_is_direct(schedule, OPERAND_C, &c)) {
        status =
            device->scan(device, stream, gemm.type, gemm.c, panel_elements(&c), session->nonfinite);
    }
    return status == STATUS_OK ? device->record(device, multiplied_event(schedule, tile), stream)
                               : status;
}

void schedule_multiply(struct schedule *schedule)
{
    while (may_multiply(schedule)) {
        schedule->multiplying = true;
        pthread_mutex_unlock(&schedule->lock);
        const enum status status = multiply(schedule, schedule->multiplied);
        spin_lock(&schedule->lock);
        schedule->multiplying = false;
        if (schedule_holds(schedule, status)) {
            schedule->multiplied++;
            schedule->times.last_product = schedule_seconds(schedule);
            announce(schedule);
        }
    }
}
