/* Plans one call and carries it out on several threads; again with smaller tiles if device memory
 * runs out. */
#include "pipeline.h"

#include "copy_threads.h"
#include "device_cutoffs.h"
#include "host_memory.h"
#include "mirror.h"
#include "pinned.h"
#include "resident.h"
#include "schedule.h"
#include "threads/clock.h"
#include "threads/limit.h"
#include "threads/region.h"
#include "transfer.h"

#include <stdlib.h>

enum { LEAST_BUDGET_BYTES = 1 << 16 };

struct pipeline {
    struct device *device;
    struct resources *resources;
    _Atomic size_t memory;
};

static bool count_elements(struct schedule *schedule)
{
    const struct device_plan *plan = schedule->plan;
    for (enum operand operand = OPERAND_A; operand < OPERANDS; operand++) {
        ptrdiff_t *left = malloc((size_t)plan->panels[operand].count * sizeof *left);
        if (left == NULL) {
            return false;
        }
        for (ptrdiff_t tile = 0; tile < plan->tiles; tile++) {
            if (plan_tile_is_first(plan, tile, operand)) {
                const struct panel panel = plan_panel(plan, tile, operand);
                left[panel.number] = panel_elements(&panel);
            }
        }
        *(operand == OPERAND_C ? &schedule->down_left : &schedule->up_left[operand]) = left;
    }
    return true;
}

static ptrdiff_t bytes_of(const struct matmul_task *task, const struct strided *operand,
                          ptrdiff_t rows, ptrdiff_t columns)
{
    return (operand->batch_step == 0 ? 1 : task->product.batch) * rows * columns *
           (ptrdiff_t)task->type.size;
}

static void find_pinned(struct schedule *schedule)
{
    const struct product *x = &schedule->plan->task.product;
    const struct extent extent[OPERANDS] = {
        [OPERAND_A] = host_memory_extent(&x->a, schedule->size, x->batch, x->m, x->k),
        [OPERAND_B] = host_memory_extent(&x->b, schedule->size, x->batch, x->k, x->n),
        [OPERAND_C] = host_memory_extent(&x->c, schedule->size, x->batch, x->m, x->n),
    };
    for (int i = 0; i < OPERANDS; i++) {
        schedule->pinned[i] = host_memory_of_extent(schedule->device, extent[i]) != HOST_ORDINARY;
    }
}

/* Then one thread is enough to tell the device of it. */
static bool copies_nothing(const struct schedule *schedule)
{
    bool is_direct = true;
    for (enum operand operand = OPERAND_A; operand < OPERANDS; operand++) {
        const struct panel panel = plan_panel(schedule->plan, 0, operand);
        is_direct = is_direct && schedule_is_direct(schedule, operand, &panel);
    }
    return is_direct;
}

static void choose_threads(struct schedule *schedule, int most)
{
    const struct matmul_task *task = &schedule->plan->task;
    const ptrdiff_t up = bytes_of(task, &task->product.a, task->product.m, task->product.k) +
                         bytes_of(task, &task->product.b, task->product.k, task->product.n),
                    bytes = up + bytes_of(task, &task->product.c, task->product.m, task->product.n);
    schedule->threads = copies_nothing(schedule) ? 1 : copy_threads(bytes, most);
    schedule->has_cpus = schedule->threads <= threads_cpus();
    /* Several chunks per thread, so that all end at about the same time. */
    ptrdiff_t chunk = bytes / (6 * schedule->threads) / LEAST_CHUNK_BYTES * LEAST_CHUNK_BYTES;
    chunk = chunk > SLOT_BYTES ? SLOT_BYTES : chunk < LEAST_CHUNK_BYTES ? LEAST_CHUNK_BYTES : chunk;
    schedule->chunk = chunk / (ptrdiff_t)schedule->size;
    schedule->reuses_slots = up > (ptrdiff_t)schedule->threads * RING_SLOTS * SLOT_BYTES;
}

/* Extra threads that populate pages of the result before the first download arrives. */
static int page_threads(const struct schedule *schedule, int most)
{
    const int left = most - schedule->threads, steps = fresh_steps(&schedule->fresh);
    const int count = left < MOST_PAGE_THREADS ? left : MOST_PAGE_THREADS;
    return schedule->threads == 1 ? 0 : count < steps ? count : steps;
}

static enum status run_on_threads(struct schedule *schedule, struct pipeline_report *report)
{
    if (!schedule->pinned[OPERAND_C]) {
        fresh_initialize(&schedule->fresh, &schedule->plan->task);
    }
    const int most = threads_limit().threads;
    choose_threads(schedule, most);
    const int threads =
        region_run(schedule->plan->task.policy, schedule->threads + page_threads(schedule, most),
                   transfer_share, schedule);
    report->threads = threads < schedule->threads ? threads : schedule->threads;
    report->nonfinite = schedule->nonfinite || *schedule->session->nonfinite;
    report->times = schedule->times;
    report->times.end = schedule_seconds(schedule);
    /* After a failure, products may still be running. */
    for (int i = 0; i < PLAN_STREAMS && schedule->status != STATUS_OK; i++) {
        stream_settle(schedule->device, schedule->session->compute[i]);
    }
    return schedule->status;
}

enum status pipeline_run(struct pipeline *pipeline, const struct device_plan *plan,
                         struct pipeline_report *report)
{
    struct device *device = pipeline->device;
    const int before = device->enter(device);
    struct schedule schedule = {
        .started = clock_ns(),
        .device = device,
        .resources = pipeline->resources,
        .plan = plan,
        .size = plan->task.type.size,
        .scans = plan->task.type.kind >= ELEMENT_FLOAT,
        .up_operand = OPERAND_B,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    find_pinned(&schedule);
    enum status status = count_elements(&schedule) ? STATUS_OK : STATUS_NO_HOST_MEMORY;
    if (status == STATUS_OK) {
        status = session_take(pipeline->resources, &schedule.session);
    }
    if (status == STATUS_OK) {
        status = device->alloc(device, schedule.session->upload, plan->bytes, &schedule.memory);
    }
    if (status == STATUS_OK) {
        status = run_on_threads(&schedule, report);
        device->release(device, schedule.session->upload, schedule.memory);
    }
    if (schedule.session != NULL) {
        session_give_back(pipeline->resources, schedule.session);
    }
    for (int i = 0; i < OPERANDS; i++) {
        free(schedule.up_left[i]);
    }
    free(schedule.down_left);
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
    enum status status = resident_matmul(device, pipeline->resources, task, report);
    if (status == STATUS_UNSUPPORTED) {
        status = pinned_matmul(device, pipeline->resources, task, budget, report);
    }
    if (status != STATUS_UNSUPPORTED && status != STATUS_NO_DEVICE_MEMORY) {
        return status;
    }
    struct device_plan plan;
    /* Other programs use the device, too: retry with smaller tiles while memory is short. */
    do {
        status = STATUS_NO_DEVICE_MEMORY;
        if (!plan_make(&plan, task, budget)) {
            break;
        }
        budget = (plan.bytes < budget ? plan.bytes : budget) / 2;
        status = pipeline_run(pipeline, &plan, report);
    } while (status == STATUS_NO_DEVICE_MEMORY && budget >= LEAST_BUDGET_BYTES);
    if (status == STATUS_OK && matmul_is_symmetric(task)) {
        matmul_mirror(task);
    }
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
    pipeline->resources = resources_new(device, MOST_RINGS);
    if (pipeline->resources == NULL) {
        free(pipeline);
        return NULL;
    }
    return pipeline;
}

void pipeline_prepare(struct pipeline *pipeline)
{
    const int before = pipeline->device->enter(pipeline->device);
    rings_prepare(pipeline->resources, copy_threads(PTRDIFF_MAX, threads_limit().threads));
    pipeline->device->leave(pipeline->device, before);
}

struct device *pipeline_device(const struct pipeline *pipeline)
{
    return pipeline->device;
}

struct resources *pipeline_resources(const struct pipeline *pipeline)
{
    return pipeline->resources;
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
