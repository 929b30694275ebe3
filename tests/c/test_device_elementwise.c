/* Element-wise calls on the fake device, from several threads at once: operands in all kinds of memory, with
 * axes of all kinds, against one loop; and every failure of the device. */
#include "device/device_elementwise.h"
#include "device/element_pieces.h"
#include "device/pipeline.h"
#include "expect.h"
#include "fake_device.h"
#include "threads/limit.h"
#include "threads/policy.h"
#include "threads/region.h"

#include <pthread.h>
#include <string.h>

enum { CALLERS = 3, CALLS = 20, ROOM = 2 << 20, OUT = ELEMENTWISE_INPUTS };

static const struct policy policy = {.threshold = 1, .awaits_workers = true};
static struct device *device;
static struct pipeline *pipeline;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of random numbers and expectations */

static size_t random_below_locked(size_t bound)
{
    pthread_mutex_lock(&lock);
    const size_t number = random_below(bound);
    pthread_mutex_unlock(&lock);
    return number;
}

/* Of int32. The output has no gaps: what lies in them would be compared, too. */
static void make_work(struct elementwise_work *work)
{
    *work = (struct elementwise_work){.op = ELEMENTWISE_SUBTRACT,
                                      .type = {ELEMENT_INTEGER, 4},
                                      .axes = 1 + (int)random_below_locked(4)};
    ptrdiff_t step[ELEMENTWISE_OPERANDS] = {4, 4, 4}, left = ROOM / 16;
    for (int i = work->axes - 1; i >= 0; i--) {
        struct elementwise_axis *axis = &work->axis[i];
        axis->n = 1 + (ptrdiff_t)random_below_locked(i == 0 ? (size_t)left : 30);
        left /= axis->n;
        for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
            const bool repeats = op != OUT && random_below_locked(4) == 0;
            const ptrdiff_t gap = op != OUT && random_below_locked(3) == 0 ? 2 : 1;
            axis->step[op] = repeats ? 0 : gap * step[op];
            step[op] *= repeats ? 1 : gap * axis->n;
            if (step[op] > ROOM / 2) { /* no room for what is left: repeated */
                axis->step[op] = op == OUT ? axis->step[op] : 0;
                step[op] = op == OUT ? step[op] : ROOM / 4;
            }
        }
        left = left > 0 ? left : 1;
    }
}

static void *new_memory(enum host_memory kind)
{
    void *data = NULL;
    if (kind == HOST_ORDINARY) {
        data = malloc(ROOM);
    } else if (kind == HOST_PINNED) {
        device->alloc_pinned(device, ROOM, &data);
    } else {
        device->alloc_managed(device, ROOM, &data);
    }
    return data;
}

static void free_memory(enum host_memory kind, void *data)
{
    if (kind == HOST_ORDINARY) {
        free(data);
    } else if (kind == HOST_PINNED) {
        device->release_pinned(device, data);
    } else {
        device->release_managed(device, data);
    }
}

/* Whether the device writes nothing there now that the call is over. */
static bool is_left_alone(const char *data, char *before)
{
    memcpy(before, data, ROOM);
    return device->finish(device) == STATUS_OK && memcmp(data, before, ROOM) == 0;
}

/* A call with operands in `memory`, during which the device's call `failing` fails (0: none); whether it was
 * right. */
static bool check_call(const enum host_memory memory[ELEMENTWISE_OPERANDS], long failing,
                       enum status *status)
{
    struct elementwise_task task = {.policy = &policy};
    struct elementwise_report report;
    char *data[ELEMENTWISE_OPERANDS], *expected = malloc(ROOM);
    make_work(&task.work);
    bool made = expected != NULL;
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        data[op] = new_memory(memory[op]);
        made = made && data[op] != NULL;
        for (int i = 0; made && i < ROOM / 4; i++) {
            const int32_t value = i * (op + 3);
            memcpy(data[op] + 4 * (size_t)i, &value, sizeof value);
        }
        task.work.at[op] = device_address_of(data[op]);
        task.memory[op] = memory[op];
        task.moves[op] = memory[op] == HOST_MANAGED;
    }
    bool right = made;
    if (made) {
        uint32_t raised[RAISED_WORDS] = {0};
        memcpy(expected, data[OUT], ROOM);
        fake_compute(&task.work, (char *[]){data[0], data[1], expected}, raised);
        if (failing > 0) {
            fake_fail(device, failing, STATUS_FAILED);
        }
        *status = device_elementwise(pipeline, &task, &report);
        if (failing > 0) {
            fake_fail(device, 0, STATUS_OK);
        }
        right = *status == STATUS_OK ? memcmp(data[OUT], expected, ROOM) == 0
                                     : is_left_alone(data[OUT], expected);
    }
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        free_memory(memory[op], data[op]);
    }
    free(expected);
    return right;
}

static void *call_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < CALLS; i++) {
        enum host_memory memory[ELEMENTWISE_OPERANDS];
        enum status status = STATUS_FAILED;
        for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
            memory[op] = (enum host_memory)random_below_locked(3);
        }
        const bool right = check_call(memory, 0, &status);
        pthread_mutex_lock(&lock);
        expect(right && status == STATUS_OK, "memory %d %d %d: status %d", (int)memory[0],
               (int)memory[1], (int)memory[2], (int)status);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void check_callers(void)
{
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        pthread_create(&threads[i], NULL, call_often, NULL);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void check_failures(void)
{
    for (enum host_memory kind = HOST_ORDINARY; kind <= HOST_MANAGED; kind++) {
        const enum host_memory memory[] = {kind, kind, kind};
        for (long call = 1; call < 25; call++) {
            enum status status = STATUS_OK;
            expect(check_call(memory, call, &status), "memory %d: call %ld fails", (int)kind, call);
            expect(check_call(memory, 0, &status) && status == STATUS_OK,
                   "memory %d: after call %ld", (int)kind, call);
        }
    }
}

int main(void)
{
    threads_initialize(0, "/");
    threads_set_for_process(4);
    device = fake_new((size_t)1 << 30);
    pipeline = device != NULL ? pipeline_new(device, 0) : NULL;
    expect(pipeline != NULL, "no memory");
    if (pipeline != NULL) {
        check_callers();
        check_failures();
        pipeline_delete(pipeline);
        expect(fake_alive(device) == 0, "%ld objects are left", fake_alive(device));
    }
    fake_delete(device);
    return expect_result("device elementwise");
}
