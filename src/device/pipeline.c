/* One call: makes the plan and lets threads carry it out, with smaller tiles if memory lacks. */
#include "pipeline.h"

#include "choice.h"
#include "run.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdlib.h>

enum {
    /* That copy: more gain nothing, and while little is to be copied they only get into each other's
     * way in the driver (H200, 16 cores: float32 2048 takes 1.4 ms with 6 threads, 1.7 with 12). */
    LEAST_THREADS = 5,
    MOST_THREADS = 12,
    BYTES_OF_ONE_MORE = 32 << 20,
    MOST_SPARE_THREADS = 4, /* that do not copy; the rest is for other callers */
    MOST_LANES = 24,        /* of all calls at once */
    LEAST_CHUNK = 512 << 10,
    LEAST_BUDGET = 1 << 16,
};

struct pipeline {
    struct device *device;
    struct resources *resources;
    _Atomic size_t memory;
};

double run_seconds(const struct run *run)
{
    return choice_clock() - run->started;
}

static bool count_elements(struct run *run)
{
    const struct plan *plan = run->plan;
    for (enum operand operand = OPERAND_A; operand < OPERANDS; operand++) {
        ptrdiff_t *left = malloc((size_t)plan->slots[operand].parts * sizeof *left);
        if (left == NULL) {
            return false;
        }
        for (ptrdiff_t tile = 0; tile < plan->tiles; tile++) {
            if (plan_tile_is_first(plan, tile, operand)) {
                const struct part part = plan_part(plan, tile, operand);
                left[part.number] = part_elements(&part);
            }
        }
        *(operand == OPERAND_C ? &run->down_left : &run->up_left[operand]) = left;
    }
    return true;
}

static ptrdiff_t bytes_of(const struct matmul_task *task, const struct strided *operand,
                          ptrdiff_t rows, ptrdiff_t columns)
{
    return (operand->batch_step == 0 ? 1 : task->batch) * rows * columns *
           (ptrdiff_t)task->type.size;
}

static void choose_threads(struct run *run)
{
    const struct matmul_task *task = &run->plan->task;
    const ptrdiff_t up = bytes_of(task, &task->a, task->m, task->k) +
                         bytes_of(task, &task->b, task->k, task->n),
                    bytes = up + bytes_of(task, &task->c, task->m, task->n);
    const ptrdiff_t pieces = bytes / LEAST_CHUNK + 1, more = bytes / BYTES_OF_ONE_MORE;
    int threads = threads_limit().threads;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    threads = LEAST_THREADS + more < threads ? LEAST_THREADS + (int)more : threads;
    run->threads = pieces > threads ? threads : (int)pieces;
    /* Some pieces for everybody, so that all end at about the same time. */
    ptrdiff_t chunk = bytes / (6 * run->threads) / LEAST_CHUNK * LEAST_CHUNK;
    chunk = chunk > SLOT_BYTES ? SLOT_BYTES : chunk < LEAST_CHUNK ? LEAST_CHUNK : chunk;
    run->chunk = chunk / (ptrdiff_t)run->size;
    run->reuses_slots = up > (ptrdiff_t)run->threads * LANE_SLOTS * SLOT_BYTES;
}

/* They make the pages of the result before the first of it comes back. */
static int spare_threads(const struct run *run)
{
    const int left = threads_limit().threads - run->threads, steps = fresh_steps(&run->fresh);
    const int spare = left < MOST_SPARE_THREADS ? left : MOST_SPARE_THREADS;
    return run->threads == 1 ? 0 : spare < steps ? spare : steps;
}

/* Users can pin a part of an array: both of its ends are asked for. */
static bool is_pinned(struct device *device, const struct strided *of, ptrdiff_t batch,
                      ptrdiff_t rows, ptrdiff_t columns)
{
    const ptrdiff_t reach[] = {(batch - 1) * of->batch_step, (rows - 1) * of->row_step,
                               (columns - 1) * of->column_step};
    const char *first = of->data, *last = of->data;
    for (int i = 0; i < 3; i++) {
        first += reach[i] < 0 ? reach[i] : 0;
        last += reach[i] > 0 ? reach[i] : 0;
    }
    return device->is_pinned(device, first) && device->is_pinned(device, last);
}

static void find_pinned(struct run *run)
{
    const struct matmul_task *task = &run->plan->task;
    struct device *device = run->device;
    run->pinned[OPERAND_A] = is_pinned(device, &task->a, task->batch, task->m, task->k);
    run->pinned[OPERAND_B] = is_pinned(device, &task->b, task->batch, task->k, task->n);
    run->pinned[OPERAND_C] = is_pinned(device, &task->c, task->batch, task->m, task->n);
}

static enum status run_on_threads(struct run *run, struct pipeline_report *report)
{
    struct device *device = run->device;
    if (!run->pinned[OPERAND_C]) {
        fresh_initialize(&run->fresh, &run->plan->task);
    }
    choose_threads(run);
    const int threads =
        region_run(run->plan->task.policy, run->threads + spare_threads(run), run_share, run);
    report->threads = threads < run->threads ? threads : run->threads;
    report->nonfinite = run->nonfinite;
    report->times = run->times;
    report->times.end = run_seconds(run);
    /* What failed may still be at work. A queue may have its own failure to tell first. */
    for (int i = 0; i < PLAN_QUEUES && run->status != STATUS_OK; i++) {
        if (device->drain(device, run->session->compute[i]) != STATUS_OK) {
            device->drain(device, run->session->compute[i]);
        }
    }
    return run->status;
}

enum status pipeline_run(struct pipeline *pipeline, const struct plan *plan,
                         struct pipeline_report *report)
{
    struct device *device = pipeline->device;
    const int before = device->enter(device);
    struct run run = {
        .started = choice_clock(),
        .device = device,
        .resources = pipeline->resources,
        .plan = plan,
        .size = plan->task.type.size,
        .scans = plan->task.type.kind >= ELEMENT_FLOAT,
        .up_operand = OPERAND_B,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    find_pinned(&run);
    enum status status = count_elements(&run) ? STATUS_OK : STATUS_NO_HOST_MEMORY;
    if (status == STATUS_OK) {
        status = session_take(pipeline->resources, &run.session);
    }
    if (status == STATUS_OK) {
        status = device->alloc(device, run.session->upload, plan->bytes, &run.memory);
    }
    if (status == STATUS_OK) {
        status = run_on_threads(&run, report);
        device->release(device, run.session->upload, run.memory);
    }
    if (run.session != NULL) {
        session_give_back(pipeline->resources, run.session);
    }
    for (int i = 0; i < OPERANDS; i++) {
        free(run.up_left[i]);
    }
    free(run.down_left);
    device->leave(device, before);
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
    enum status status;
    struct plan plan;
    /* Others use the device, too: what it lacks may be enough for smaller tiles. */
    do {
        status = STATUS_NO_DEVICE_MEMORY;
        if (!plan_make(&plan, task, budget)) {
            break;
        }
        budget = (plan.bytes < budget ? plan.bytes : budget) / 2;
        status = pipeline_run(pipeline, &plan, report);
    } while (status == STATUS_NO_DEVICE_MEMORY && budget >= LEAST_BUDGET);
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
