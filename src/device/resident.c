/* The device uses the addresses of the arrays. Pages that are not there are moved in bulk, which takes a fraction
 * of the time that faults take. */
#include "resident.h"

#include "host_memory.h"
#include "kernels/matmul/product_steps.h"
#include "last_use.h"
#include "mirror.h"
#include "threads/clock.h"

#include <stdlib.h>

/* An operand as the device takes it. */
struct placed {
    struct stored stored;
    struct extent extent;
};

/* Whether it is managed, and a matrix or a stack of them without gaps. Kernels load whole elements, which NumPy's
 * complex numbers need not be aligned to. */
static bool place(struct device *device, const struct strided *operand, ptrdiff_t size,
                  ptrdiff_t batch, ptrdiff_t rows, ptrdiff_t columns, struct placed *placed)
{
    const bool by_rows = (operand->column_step == size || columns == 1) &&
                         (operand->row_step == columns * size || rows == 1);
    const bool by_columns = (operand->row_step == size || rows == 1) &&
                            (operand->column_step == rows * size || columns == 1);
    const bool is_shared = batch == 1 || operand->batch_step == 0;
    *placed = (struct placed){
        .stored = {.at = device_address_of(operand->data),
                   .transposed = !by_rows,
                   .batch_step = is_shared ? 0 : rows * columns},
        .extent = host_memory_extent(operand, (size_t)size, is_shared ? 1 : batch, rows, columns),
    };
    const bool is_aligned = (uintptr_t)operand->data % (uintptr_t)size == 0;
    return is_aligned && (by_rows || by_columns) &&
           (is_shared || operand->batch_step == rows * columns * size) &&
           host_memory_of_extent(device, placed->extent) == HOST_MANAGED;
}

struct resident {
    struct placed a, b, c;
    struct gemm gemm;
};

static bool describe(struct device *device, const struct matmul_task *task,
                     struct resident *resident)
{
    const ptrdiff_t size = (ptrdiff_t)task->type.size;
    const struct product x = product_stored_by_rows(&task->product, size);
    if (device->no_managed != NULL || !place(device, &x.a, size, x.batch, x.m, x.k, &resident->a) ||
        !place(device, &x.b, size, x.batch, x.k, x.n, &resident->b) ||
        !place(device, &x.c, size, x.batch, x.m, x.n, &resident->c) ||
        resident->c.stored.transposed || (x.batch > 1 && x.c.batch_step == 0)) {
        return false;
    }
    resident->gemm = (struct gemm){
        .type = task->type,
        .precision = task->precision,
        .kernel = task->kernel,
        .batch = x.batch,
        .m = x.m,
        .n = x.n,
        .k = x.k,
        .a = resident->a.stored,
        .b = resident->b.stored,
        .c = resident->c.stored.at,
    };
    return true;
}

bool resident_is_possible(struct device *device, const struct matmul_task *task)
{
    struct resident resident;
    return describe(device, task, &resident);
}

/* It is no matter whether a move succeeds. One that has nothing to do takes 0.8 ms for each GiB. */
static void move_there(struct device *device, struct stream *stream, struct extent extent)
{
    if (!last_use_left_on(extent, device)) {
        device->move(device, stream, (const void *)extent.first, extent.end - extent.first, true);
        last_use_note(extent, device);
    }
}

static enum status run(struct device *device, struct session *session,
                       const struct matmul_task *task, struct resident *resident)
{
    struct gemm *gemm = &resident->gemm;
    struct stream *stream = session->compute[0];
    enum status status = STATUS_OK;
    if (gemm_has_spare(gemm->type, gemm->k)) {
        const struct extent c = resident->c.extent;
        status = device->alloc(device, stream, c.end - c.first, &gemm->spare);
    }
    if (status != STATUS_OK) {
        return status;
    }
    move_there(device, stream, resident->a.extent);
    move_there(device, stream, resident->b.extent);
    move_there(device, stream, resident->c.extent);
    status = device->multiply(device, stream, gemm);
    if (status == STATUS_OK && matmul_is_symmetric(task)) {
        status = device->mirror(device, stream, gemm);
    }
    if (status == STATUS_OK && gemm->type.kind >= ELEMENT_FLOAT) {
        status = device->scan(device, stream, gemm->type, gemm->c, gemm->batch * gemm->m * gemm->n,
                              session->nonfinite);
    }
    device->release(device, stream, gemm->spare);
    const enum status drained = stream_settle(device, stream);
    return status != STATUS_OK ? status : drained;
}

enum status resident_matmul(struct device *device, struct resources *resources,
                            const struct matmul_task *task, struct pipeline_report *report)
{
    struct resident resident;
    const int64_t started = clock_ns();
    const int before = device->enter(device);
    enum status status = STATUS_UNSUPPORTED;
    if (describe(device, task, &resident)) {
        struct session *session = NULL;
        status = session_take(resources, &session);
        if (status == STATUS_OK) {
            status = run(device, session, task, &resident);
            *report = (struct pipeline_report){
                .threads = 1,
                .nonfinite = *session->nonfinite,
                .times.end = 1e-9 * (double)(clock_ns() - started),
            };
            session_give_back(resources, session);
        }
    }
    device->leave(device, before);
    return status;
}
