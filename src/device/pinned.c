/* Rows of a and rows of b are uploaded in turn, and each is multiplied by what is there of the other: rows of a by all of
 * k so far, rows of b (a part of k) by all rows of a so far. So the device begins early, and all copies are of whole rows.
 * b goes faster, because no row of c is complete before all of b has arrived. */
#include "pinned.h"

#include "device_cutoffs.h"
#include "host_memory.h"
#include "kernels/matmul/product_steps.h"
#include "kernels/sizes.h"
#include "mirror.h"
#include "slabs.h"
#include "threads/clock.h"

struct pinned {
    struct device *device;
    struct session *session;
    const struct matmul_task *task;
    struct product product; /* with c stored by rows */
    ptrdiff_t size;         /* of an element */
    ptrdiff_t rows, depth;  /* of a and of b that are uploaded at a time, */
    ptrdiff_t lead;         /* so many bytes of b for each of a */
    ptrdiff_t rows_there, depth_there;
    device_address a, b, c, spare; /* on the device */
};

static bool lies_by_rows(struct device *device, const struct strided *operand, ptrdiff_t size,
                         ptrdiff_t rows, ptrdiff_t columns)
{
    const struct panel all = {*operand, 1, rows, columns, 0};
    const struct extent extent = host_memory_extent(operand, (size_t)size, 1, rows, columns);
    return (panel_is_contiguous(&all, (size_t)size) || panel_has_rows(&all, (size_t)size)) &&
           host_memory_of_extent(device, extent) != HOST_ORDINARY;
}

/* A multiple of `unit`, so many at least that there are not too many pieces. */
static ptrdiff_t piece(ptrdiff_t extent, ptrdiff_t unit)
{
    return ceiling(extent, unit * PINNED_MOST_PIECES) * unit;
}

static bool describe(struct pinned *pinned, struct device *device, const struct matmul_task *task)
{
    const ptrdiff_t size = (ptrdiff_t)task->type.size;
    const struct product x = product_stored_by_rows(&task->product, size);
    const bool is_long = plan_gains_by_alternating(task);
    const bool has_many_slabs = task->type.kind == ELEMENT_COMPLEX;
    const ptrdiff_t together = slabs_together(task->type, x.k);
    *pinned = (struct pinned){
        .device = device,
        .task = task,
        .product = x,
        .size = size,
        .rows = piece(x.m, is_long || has_many_slabs ? PINNED_ROWS_OF_LONG : PINNED_ROWS),
        .depth = piece(x.k, together),
        .lead = is_long ? PINNED_LEAD_OF_LONG : PINNED_LEAD,
    };
    /* Integers and halves have one slab: their sums are not continued. Where c is larger than a, the link is busy
     * longer with c: b has to be there first. */
    return x.batch == 1 && x.n <= x.k && x.m >= 2 * LEAST_PANEL_ROWS && together < x.k &&
           !matmul_is_symmetric(task) && lies_by_rows(device, &x.a, size, x.m, x.k) &&
           lies_by_rows(device, &x.b, size, x.k, x.n) && lies_by_rows(device, &x.c, size, x.m, x.n);
}

static size_t aligned_bytes(const struct pinned *pinned, ptrdiff_t rows, ptrdiff_t columns)
{
    return plan_aligned((size_t)(rows * columns * pinned->size));
}

static struct copied_rows rows_of(const struct pinned *pinned, const struct strided *operand,
                                  ptrdiff_t rows, ptrdiff_t columns)
{
    const struct panel some = {*operand, 1, rows, columns, 0};
    return panel_copied_rows(&some, (size_t)pinned->size);
}

static enum status upload(const struct pinned *pinned, const struct strided *operand,
                          device_address to, ptrdiff_t first, ptrdiff_t rows, ptrdiff_t columns)
{
    struct device *device = pinned->device;
    struct session *session = pinned->session;
    const enum status status = device->upload(
        device, session->upload, to + (size_t)(first * columns * pinned->size),
        operand->data + first * operand->row_step, rows_of(pinned, operand, rows, columns));
    return status == STATUS_OK ? device->record(device, session->uploaded, session->upload)
                               : status;
}

/* Rows of a and a part of k, as far as they have been uploaded. */
struct part {
    ptrdiff_t row, rows, first, depth;
};

static enum status multiply(const struct pinned *pinned, struct stream *stream, struct part part)
{
    struct device *device = pinned->device;
    const struct product *x = &pinned->product;
    const ptrdiff_t size = pinned->size;
    const size_t of_c = (size_t)(part.row * x->n * size);
    const struct gemm gemm = {
        .type = pinned->task->type,
        .precision = pinned->task->precision,
        .kernel = pinned->task->kernel,
        .batch = 1,
        .m = part.rows,
        .n = x->n,
        .k = part.depth,
        .a.at = pinned->a + (size_t)((part.row * x->k + part.first) * size),
        .a_row = x->k,
        .b.at = pinned->b + (size_t)(part.first * x->n * size),
        .c = pinned->c + of_c,
        .adds = part.first > 0,
        .spare = pinned->spare != 0 ? pinned->spare + of_c : 0,
    };
    const enum status status = device->follow(device, stream, pinned->session->uploaded);
    return status == STATUS_OK ? device->multiply(device, stream, &gemm) : status;
}

static enum status download(const struct pinned *pinned, struct stream *stream, ptrdiff_t row,
                            ptrdiff_t rows)
{
    struct device *device = pinned->device;
    struct session *session = pinned->session;
    const struct product *x = &pinned->product;
    struct event *multiplied = session->multiplied[0];
    const device_address from = pinned->c + (size_t)(row * x->n * pinned->size);
    enum status status =
        device->scan(device, stream, pinned->task->type, from, rows * x->n, session->nonfinite);
    if (status == STATUS_OK) {
        status = device->record(device, multiplied, stream);
    }
    if (status == STATUS_OK) {
        status = device->follow(device, session->download, multiplied);
    }
    return status == STATUS_OK
               ? device->download(device, session->download, x->c.data + row * x->c.row_step, from,
                                  rows_of(pinned, &x->c, rows, x->n))
               : status;
}

/* The last rows of b complete the rows of c so far. */
static enum status go_on_with_b(struct pinned *pinned)
{
    const struct product *x = &pinned->product;
    struct stream *stream = pinned->session->compute[0];
    const struct part part = {0, pinned->rows_there, pinned->depth_there,
                              size_min(pinned->depth, x->k - pinned->depth_there)};
    enum status status = upload(pinned, &x->b, pinned->b, part.first, part.depth, x->n);
    pinned->depth_there += part.depth;
    if (status == STATUS_OK && part.rows > 0) {
        status = multiply(pinned, stream, part);
    }
    return status == STATUS_OK && part.rows > 0 && pinned->depth_there == x->k
               ? download(pinned, stream, 0, part.rows)
               : status;
}

/* Once b is there, rows of c do not depend on any other product: small ones run side by side. */
static enum status go_on_with_a(struct pinned *pinned)
{
    const struct product *x = &pinned->product;
    const bool is_complete = pinned->depth_there == x->k;
    const ptrdiff_t panel = is_complete ? pinned->rows_there / pinned->rows : 0;
    struct stream *stream = pinned->session->compute[panel % PLAN_STREAMS];
    const struct part part = {pinned->rows_there, size_min(pinned->rows, x->m - pinned->rows_there),
                              0, pinned->depth_there};
    enum status status = upload(pinned, &x->a, pinned->a, part.row, part.rows, x->k);
    pinned->rows_there += part.rows;
    if (status == STATUS_OK && part.depth > 0) {
        status = multiply(pinned, stream, part);
    }
    return status == STATUS_OK && is_complete ? download(pinned, stream, part.row, part.rows)
                                              : status;
}

static enum status tell_everything(struct pinned *pinned)
{
    const struct product *x = &pinned->product;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && (pinned->rows_there < x->m || pinned->depth_there < x->k)) {
        const bool is_turn_of_b =
            pinned->depth_there * x->n <= pinned->lead * pinned->rows_there * x->k;
        const bool goes_on_with_b =
            pinned->depth_there < x->k && (is_turn_of_b || pinned->rows_there == x->m);
        status = goes_on_with_b ? go_on_with_b(pinned) : go_on_with_a(pinned);
    }
    return status;
}

static void settle(struct device *device, const struct session *session)
{
    stream_settle(device, session->upload);
    for (int i = 0; i < PLAN_STREAMS; i++) {
        stream_settle(device, session->compute[i]);
    }
    stream_settle(device, session->download);
}

static enum status run(struct pinned *pinned, size_t budget)
{
    struct device *device = pinned->device;
    const struct product *x = &pinned->product;
    const size_t a = aligned_bytes(pinned, x->m, x->k), b = aligned_bytes(pinned, x->k, x->n),
                 c = aligned_bytes(pinned, x->m, x->n);
    const bool has_spare = gemm_has_spare(pinned->task->type, x->k);
    const size_t bytes = a + b + c + (has_spare ? c : 0);
    if (bytes > budget) {
        return STATUS_UNSUPPORTED;
    }
    struct stream *stream = pinned->session->upload;
    enum status status = device->alloc(device, stream, bytes, &pinned->a);
    if (status != STATUS_OK) {
        return status;
    }
    pinned->b = pinned->a + a;
    pinned->c = pinned->b + b;
    pinned->spare = has_spare ? pinned->c + c : 0;
    status = tell_everything(pinned);
    if (status == STATUS_OK) {
        status = device->drain(device, pinned->session->download);
    }
    if (status != STATUS_OK) {
        settle(device, pinned->session);
    }
    device->release(device, stream, pinned->a);
    return status;
}

enum status pinned_matmul(struct device *device, struct resources *resources,
                          const struct matmul_task *task, size_t budget,
                          struct pipeline_report *report)
{
    struct pinned pinned;
    const int64_t started = clock_ns();
    const int before = device->enter(device);
    enum status status = STATUS_UNSUPPORTED;
    if (describe(&pinned, device, task)) {
        status = session_take(resources, &pinned.session);
        if (status == STATUS_OK) {
            status = run(&pinned, budget);
            *report = (struct pipeline_report){
                .threads = 1,
                .nonfinite = *pinned.session->nonfinite,
                .times.end = 1e-9 * (double)(clock_ns() - started),
            };
            session_give_back(resources, pinned.session);
        }
    }
    device->leave(device, before);
    return status;
}
