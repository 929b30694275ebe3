/* The cost model: bytes and operations over rates, which give way to what calls were seen to take. */
#include "choice.h"

#include "threads/clock.h"

#include <math.h>
#include <stdatomic.h>

/* Conservative: the processor as fast as the best is, the device as slow as a modest one. */
static const double STARTUP_SECONDS = 0.5;
static const double DEVICE_LATENCY = 100e-6, DEVICE_TRANSFER_RATE = 20e9;
static const double DEVICE_FLOAT_RATE = 8e12, DEVICE_DOUBLE_RATE = 4e12, DEVICE_INTEGER_RATE = 2e12;
static const double CORE_FLOAT_RATE = 100e9, CORE_DOUBLE_RATE = 50e9, CORE_INTEGER_RATE = 20e9;
static const double MEMORY_RATE = 100e9;
/* Predictions that differ by less may be wrong, and the first calls of a kind may be slow. */
static const double CLOSE = 3;
/* What is done so soon stays on the processor: no device is reached in less. */
static const double SHORT_SECONDS = 60e-6;
/* OpenBLAS's threads spin so long after their work, in the way of the other side's. */
static const double SPINNING_SECONDS = 0.06;
/* The other side must be faster by so much to be worth a change, which sets threads spinning. */
static const double WORTH_CHANGING = 1.07;
/* What a call is worth as a measurement, if threads of the other side may be in the way 1; and how much
 * is enough. */
enum { UNDISTURBED = 32, KNOWN = 3 * UNDISTURBED };

double choice_clock(void)
{
    return 1e-9 * (double)clock_ns();
}

void choice_initialize(struct choice *choice)
{
    choice->clock = choice_clock;
}

/* Additions and multiplications. */
static double matmul_operations(const struct matmul_task *task)
{
    return (task->type.kind == ELEMENT_COMPLEX ? 8.0 : 2.0) * (double)task->batch *
           (double)task->m * (double)task->n * (double)task->k;
}

static double input_bytes(const struct matmul_task *task)
{
    const double a = (double)task->m * (double)task->k, b = (double)task->k * (double)task->n;
    const double batch = (double)task->batch;
    return (double)task->type.size *
           ((task->a.batch_step == 0 ? a : batch * a) + (task->b.batch_step == 0 ? b : batch * b));
}

static double output_bytes(const struct matmul_task *task)
{
    return (double)task->type.size * (double)task->batch * (double)task->m * (double)task->n;
}

/* ---- what was measured ---- */

static int type_index(struct element_type type)
{
    const int size = type.size >= 16  ? 4
                     : type.size >= 8 ? 3
                     : type.size >= 4 ? 2
                     : type.size >= 2 ? 1
                                      : 0;
    switch (type.kind) {
    case ELEMENT_BOOL:
        return 0;
    case ELEMENT_INTEGER:
        return 1 + size;
    case ELEMENT_FLOAT:
        return 4 + size;
    default:
        return 5 + size;
    }
}

struct place {
    int type, operations, bytes;
};

static int octave(double x, int first, int count)
{
    const int exponent = ilogb(x) - first;
    return exponent < 0 ? 0 : exponent < count ? exponent : count - 1;
}

/* Operations and bytes tell shapes apart as far as it matters. */
static struct place place_of(const struct matmul_task *task)
{
    return (struct place){
        type_index(task->type),
        octave(matmul_operations(task), 12, CHOICE_OPERATIONS),
        octave(input_bytes(task) + output_bytes(task), 8, CHOICE_BYTES),
    };
}

static bool is_known(const struct measured *measured, struct place at)
{
    return measured->worth[at.type][at.operations][at.bytes] >= KNOWN;
}

/* Whether threads of the other side may have been in the way of a call of this one. */
static bool is_disturbed(const struct choice *choice, const struct measured *measured,
                         double seconds, double end)
{
    const bool on_device = measured == &choice->device;
    const struct measured *other = on_device ? &choice->processor : &choice->device;
    return seconds < SPINNING_SECONDS && end - seconds < other->used + SPINNING_SECONDS;
}

/* The shortest time is what it takes; the others had something else to wait for, now or always. If the
 * calls after a change of sides counted as well, two sides that are about equal would take turns for
 * ever, and all calls be ten times as slow. */
static void learn(struct choice *choice, struct measured *measured, const struct matmul_task *task,
                  double seconds, double predicted)
{
    const double end = choice->clock();
    const bool disturbed = is_disturbed(choice, measured, seconds, end);
    const struct place at = place_of(task);
    _Atomic float *cell = &measured->cell[at.type][at.operations][at.bytes];
    _Atomic unsigned char *worth = &measured->worth[at.type][at.operations][at.bytes];
    _Atomic float *correction = &measured->correction[at.type];
    const float now = (float)(seconds / predicted), before = *cell;
    const bool first = before == 0; /* tells little: libraries load what it needs */
    *cell = first ? now : fminf(now, disturbed ? before : 1.02F * before);
    if (!first && !disturbed) {
        *correction = *correction == 0 ? now : 0.75F * *correction + 0.25F * now;
    }
    const int more = *worth + (first || disturbed ? 1 : UNDISTURBED);
    *worth = (unsigned char)(more < KNOWN ? more : KNOWN);
    measured->used = end;
}

static double seconds_of(const struct measured *measured, const struct matmul_task *task,
                         double predicted)
{
    const struct place at = place_of(task);
    const float correction = measured->correction[at.type];
    if (is_known(measured, at)) {
        return predicted * (double)measured->cell[at.type][at.operations][at.bytes];
    }
    return predicted * (double)(correction != 0 ? correction : 1);
}

/* ---- what is predicted ---- */

static bool is_double(struct element_type type)
{
    return type.size == (type.kind == ELEMENT_COMPLEX ? 16u : 8u);
}

static double predict_processor(const struct matmul_task *task, int threads)
{
    const double core = task->type.kind <= ELEMENT_INTEGER || task->type.size == 2
                            ? CORE_INTEGER_RATE
                        : is_double(task->type) ? CORE_DOUBLE_RATE
                                                : CORE_FLOAT_RATE;
    return matmul_operations(task) / (core * threads) +
           (input_bytes(task) + output_bytes(task)) / MEMORY_RATE;
}

static double predict_device(const struct matmul_task *task, const struct device *device)
{
    const double transfer = device != NULL ? device->transfer_rate : DEVICE_TRANSFER_RATE;
    const double latency = device != NULL ? device->latency : DEVICE_LATENCY;
    double rate = device != NULL ? device->float_rate : DEVICE_FLOAT_RATE;
    if (task->type.kind <= ELEMENT_INTEGER) {
        rate = device != NULL ? device->integer_rate : DEVICE_INTEGER_RATE;
    } else if (is_double(task->type)) {
        rate = device != NULL ? device->double_rate : DEVICE_DOUBLE_RATE;
    }
    const double upload = input_bytes(task) / transfer, compute = matmul_operations(task) / rate;
    const double download = output_bytes(task) / transfer;
    return latency + fmax(upload, compute) + 0.25 * download;
}

double choice_processor_seconds(const struct choice *choice, const struct matmul_task *task,
                                int threads)
{
    return seconds_of(&choice->processor, task, predict_processor(task, threads));
}

double choice_device_seconds(const struct choice *choice, const struct matmul_task *task,
                             const struct device *device)
{
    return seconds_of(&choice->device, task, predict_device(task, device));
}

/* ---- decisions ---- */

bool choice_is_worth_starting(const struct choice *choice, const struct matmul_task *task,
                              int threads)
{
    const double gain =
        choice_processor_seconds(choice, task, threads) - choice_device_seconds(choice, task, NULL);
    return gain > 0 && choice->lost + gain > STARTUP_SECONDS;
}

bool choice_prefers_device(const struct choice *choice, const struct matmul_task *task, int threads,
                           const struct device *device)
{
    const double processor = choice_processor_seconds(choice, task, threads);
    const double on_device = choice_device_seconds(choice, task, device);
    if (processor < SHORT_SECONDS) {
        return false;
    }
    const struct place at = place_of(task);
    if (on_device < CLOSE * processor && !is_known(&choice->device, at)) {
        return true;
    }
    if (processor < CLOSE * on_device && !is_known(&choice->processor, at)) {
        return false;
    }
    return choice->device.used > choice->processor.used ? on_device < WORTH_CHANGING * processor
                                                        : WORTH_CHANGING * on_device < processor;
}

void choice_note_processor(struct choice *choice, const struct matmul_task *task, double seconds,
                           int threads, bool device_is_up)
{
    learn(choice, &choice->processor, task, seconds, predict_processor(task, threads));
    const double gain = seconds - choice_device_seconds(choice, task, NULL);
    if (!device_is_up && gain > 0) {
        choice->lost = choice->lost + gain; /* what another thread adds meanwhile may get lost */
    }
}

void choice_note_device(struct choice *choice, const struct matmul_task *task, double seconds,
                        const struct device *device)
{
    learn(choice, &choice->device, task, seconds, predict_device(task, device));
}
