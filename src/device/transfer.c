/* A chunk that is being copied occupies a slot until its event has happened. */
#include "transfer.h"

#include "kernels/copy/stream_copy.h"
#include "kernels/copy/tile_pack.h"
#include "kernels/copy/tile_unpack.h"
#include "schedule.h"
#include "threads/spin.h"

#include <string.h>

/* ---- between matrices and slots ---- */

/* The longest tile that begins at element `first`: a part of one row, or whole rows of one matrix. */
static struct tile next_tile(const struct panel *panel, ptrdiff_t first, ptrdiff_t end)
{
    const struct strided *from = &panel->from;
    const ptrdiff_t line = first / panel->columns, column = first % panel->columns;
    const ptrdiff_t row = line % panel->rows;
    struct tile tile = {
        .data = from->data + line / panel->rows * from->batch_step + row * from->row_step +
                column * from->column_step,
        .rows = 1,
        .columns = panel->columns - column,
        .row_step = from->row_step,
        .column_step = from->column_step,
    };
    if (tile.columns > end - first) {
        tile.columns = end - first;
    } else if (column == 0) {
        const ptrdiff_t whole = (end - first) / panel->columns;
        tile.rows = whole < panel->rows - row ? whole : panel->rows - row;
    }
    return tile;
}

static void copy(char *to, const char *from, size_t bytes, bool cached)
{
    if (cached) {
        memcpy(to, from, bytes);
    } else {
        copy_past_cache(to, from, bytes);
    }
}

static void gather_tile(const struct tile *tile, size_t size, char *to, bool cached)
{
    const size_t row_bytes = (size_t)tile->columns * size;
    if (tile->column_step != (ptrdiff_t)size && tile->columns > 1) {
        tile_pack(size, tile, to);
    } else if (tile->row_step == (ptrdiff_t)row_bytes) {
        copy(to, tile->data, (size_t)tile->rows * row_bytes, cached);
    } else {
        for (ptrdiff_t r = 0; r < tile->rows; r++) {
            copy(to + (size_t)r * row_bytes, tile->data + r * tile->row_step, row_bytes, cached);
        }
    }
}

static void gather(const struct panel *panel, size_t size, ptrdiff_t first, ptrdiff_t end, char *to,
                   bool cached)
{
    if (panel_is_contiguous(panel, size)) {
        copy(to, panel->from.data + first * (ptrdiff_t)size, (size_t)(end - first) * size, cached);
        return;
    }
    while (first < end) {
        const struct tile tile = next_tile(panel, first, end);
        gather_tile(&tile, size, to, cached);
        to += (size_t)(tile.rows * tile.columns) * size;
        first += tile.rows * tile.columns;
    }
}

static void scatter(const struct panel *panel, size_t size, ptrdiff_t first, ptrdiff_t end,
                    const char *from)
{
    if (panel_is_contiguous(panel, size)) {
        memcpy(panel->from.data + first * (ptrdiff_t)size, from, (size_t)(end - first) * size);
        return;
    }
    while (first < end) {
        struct tile tile = next_tile(panel, first, end);
        char *to = (char *)tile.data;
        tile.data = from;
        tile_unpack(size, &tile, to);
        from += (size_t)(tile.rows * tile.columns) * size;
        first += tile.rows * tile.columns;
    }
}

/* ---- the threads of a call ---- */

/* A thread with its ring. */
struct copier {
    struct schedule *schedule;
    struct ring *ring;
    struct transfer pending[RING_SLOTS]; /* by slot; TRANSFER_NONE: free */
    unsigned since[RING_SLOTS];          /* by slot: number of the chunk in it */
    unsigned chunks;
    int downloads; /* pending ones */
};

static bool is_older(const struct copier *copier, int slot, int than)
{
    return than < 0 || copier->since[slot] < copier->since[than];
}

/* The slot with the oldest transfer of that kind; -1: none. */
static int oldest(const struct copier *copier, enum transfer_kind kind)
{
    int found = -1;
    for (int slot = 0; slot < RING_SLOTS; slot++) {
        if (copier->pending[slot].kind == kind && is_older(copier, slot, found)) {
            found = slot;
        }
    }
    return found;
}

static void store_result(struct schedule *schedule, const struct transfer *transfer,
                         const char *slot)
{
    const int floats = schedule->plan->task.type.kind == ELEMENT_COMPLEX ? 2 : 1;
    if (schedule->scans && !schedule->nonfinite &&
        !floats_are_finite(schedule->size / (size_t)floats, slot,
                           (transfer->end - transfer->first) * floats)) {
        schedule->nonfinite = true;
    }
    scatter(&transfer->panel, schedule->size, transfer->first, transfer->end, slot);
}

/* What is copied at once: as it lies in a slot or in the user's memory. */
static struct copied_rows rows_of(const struct transfer *transfer, size_t size)
{
    const struct panel *panel = &transfer->panel;
    const bool at_once = !transfer->direct || panel_is_contiguous(panel, size);
    return at_once ? one_row((size_t)(transfer->end - transfer->first) * size)
                   : panel_copied_rows(panel, size);
}

static enum status finish(struct copier *copier, int slot)
{
    struct schedule *schedule = copier->schedule;
    const struct transfer transfer = copier->pending[slot];
    copier->pending[slot].kind = TRANSFER_NONE;
    if (transfer.kind == TRANSFER_DOWNLOAD) {
        copier->downloads--;
        schedule->coming--;
    }
    const enum status status = schedule->device->wait(schedule->device, copier->ring->event[slot]);
    if (status == STATUS_OK && transfer.kind == TRANSFER_DOWNLOAD && !transfer.direct) {
        store_result(schedule, &transfer, copier->ring->slot[slot]);
    }
    return status;
}

static void note_pending(struct copier *copier, const struct transfer *transfer, int slot)
{
    copier->pending[slot] = *transfer;
    copier->since[slot] = copier->chunks++;
    copier->downloads += transfer->kind == TRANSFER_DOWNLOAD;
}

static enum status upload(struct copier *copier, const struct transfer *transfer, int slot)
{
    struct schedule *schedule = copier->schedule;
    struct device *device = schedule->device;
    const ptrdiff_t size = (ptrdiff_t)schedule->size, n = transfer->end - transfer->first;
    const ptrdiff_t panel = transfer->panel.number;
    const device_address to =
        plan_address(schedule->plan, schedule->memory, transfer->operand, panel) +
        (size_t)(transfer->first * size);
    const char *from = copier->ring->slot[slot];
    if (transfer->direct) {
        from = transfer->panel.from.data + transfer->first * size;
    } else {
        gather(&transfer->panel, schedule->size, transfer->first, transfer->end,
               copier->ring->slot[slot], schedule->reuses_slots);
    }
    enum status status = device->upload(device, schedule->session->upload, to, from,
                                        rows_of(transfer, schedule->size));
    if (status == STATUS_OK) {
        status = device->record(device, copier->ring->event[slot], schedule->session->upload);
    }
    if (status == STATUS_OK) {
        note_pending(copier, transfer, slot);
    }
    spin_lock(&schedule->lock);
    if (schedule_holds(schedule, status)) {
        schedule->up_left[transfer->operand][panel] -= n;
        schedule->times.last_upload = schedule_seconds(schedule);
        schedule_multiply(schedule);
    }
    pthread_mutex_unlock(&schedule->lock);
    return status;
}

static enum status download(struct copier *copier, const struct transfer *transfer, int slot)
{
    struct schedule *schedule = copier->schedule;
    struct device *device = schedule->device;
    const ptrdiff_t size = (ptrdiff_t)schedule->size, n = transfer->end - transfer->first;
    const device_address from =
        plan_address(schedule->plan, schedule->memory, OPERAND_C, transfer->tile) +
        (size_t)(transfer->first * size);
    char *to = transfer->direct ? transfer->panel.from.data + transfer->first * size
                                : copier->ring->slot[slot];
    enum status status = device->download(device, schedule->session->download, to, from,
                                          rows_of(transfer, schedule->size));
    if (status == STATUS_OK) {
        status = device->record(device, copier->ring->event[slot], schedule->session->download);
    }
    if (status == STATUS_OK) {
        note_pending(copier, transfer, slot);
    }
    spin_lock(&schedule->lock);
    if (status == STATUS_OK && schedule->down_left[transfer->tile] == n) {
        status = device->record(
            device, schedule->session->downloaded[transfer->tile % schedule_result_depth(schedule)],
            schedule->session->download);
    }
    if (schedule_holds(schedule, status)) {
        schedule->down_left[transfer->tile] -= n;
        schedule->times.last_download = schedule_seconds(schedule);
        schedule_multiply(schedule);
    }
    pthread_mutex_unlock(&schedule->lock);
    return status;
}

/* A free slot; -1 after a failure. While all are in use, populates pages of the result. */
static int free_slot(struct copier *copier, enum status *status)
{
    struct schedule *schedule = copier->schedule;
    int slot = oldest(copier, TRANSFER_NONE);
    bool happened = false;
    while (slot < 0 && *status == STATUS_OK) {
        const int sent = oldest(copier, TRANSFER_UPLOAD);
        const int wanted = sent >= 0 ? sent : oldest(copier, TRANSFER_DOWNLOAD);
        *status = schedule->device->poll(schedule->device, copier->ring->event[wanted], &happened);
        if (*status == STATUS_OK && (happened || !fresh_touch_some(&schedule->fresh))) {
            *status = finish(copier, wanted);
            slot = wanted;
        }
    }
    return *status == STATUS_OK ? slot : -1;
}

/* Stores the oldest downloaded chunk if its copy is done. */
static enum status finish_what_came(struct copier *copier)
{
    const int slot = oldest(copier, TRANSFER_DOWNLOAD);
    bool happened = false;
    enum status status = STATUS_OK;
    if (slot >= 0) {
        struct device *device = copier->schedule->device;
        status = device->poll(device, copier->ring->event[slot], &happened);
    }
    return status == STATUS_OK && happened ? finish(copier, slot) : status;
}

/* Uploads first: the result depends on them, so they are done before any download. */
static enum status finish_all(struct copier *copier)
{
    static const enum transfer_kind kinds[] = {TRANSFER_UPLOAD, TRANSFER_DOWNLOAD};
    enum status status = STATUS_OK;
    for (int i = 0; i < 2; i++) {
        int slot = oldest(copier, kinds[i]);
        while (slot >= 0 && status == STATUS_OK) {
            status = finish(copier, slot);
            slot = oldest(copier, kinds[i]);
        }
    }
    return status;
}

static enum status work_with_ring(struct copier *copier)
{
    struct schedule *schedule = copier->schedule;
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        status = finish_what_came(copier);
        const int slot = status == STATUS_OK ? free_slot(copier, &status) : -1;
        if (slot < 0) {
            break;
        }
        const struct transfer transfer = schedule_take(schedule, copier->downloads);
        switch (transfer.kind) {
        case TRANSFER_UPLOAD:
            status = upload(copier, &transfer, slot);
            break;
        case TRANSFER_DOWNLOAD:
            status = download(copier, &transfer, slot);
            break;
        case TRANSFER_OVER:
            return finish_all(copier);
        default: /* TRANSFER_LATER */
            if (!fresh_touch_some(&schedule->fresh)) {
                spin_pause();
            }
            break;
        }
    }
    return status;
}

/* After a failure: waits for copies that still use the ring, before it is given back. */
static void settle(const struct schedule *schedule)
{
    stream_settle(schedule->device, schedule->session->upload);
    stream_settle(schedule->device, schedule->session->download);
}

void transfer_share(void *context, int index)
{
    struct schedule *schedule = context;
    struct copier copier = {.schedule = schedule};
    if (index >= schedule->threads) {
        while (fresh_touch_some(&schedule->fresh)) {
        }
        return;
    }
    const int before = schedule->device->enter(schedule->device);
    /* When all rings are in use, this thread does without one. Only thread 0 waits: one is enough
     * for progress. */
    enum status status = ring_take(schedule->resources, index == 0, &copier.ring);
    if (copier.ring != NULL) {
        status = work_with_ring(&copier);
        spin_lock(&schedule->lock);
        schedule_holds(schedule, status);
        const bool failed = schedule->status != STATUS_OK;
        pthread_mutex_unlock(&schedule->lock);
        if (failed) {
            settle(schedule);
        }
        ring_give_back(schedule->resources, copier.ring);
    } else if (index == 0) {
        spin_lock(&schedule->lock);
        schedule_holds(schedule, status);
        pthread_mutex_unlock(&schedule->lock);
    }
    schedule->device->leave(schedule->device, before);
}
