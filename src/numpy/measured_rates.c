#include "measured_rates.h"

#include "numpy_api.h"

#include "devices.h"
#include "kernels/kernels.h"
#include "policy_in_use.h"
#include "threads/clock.h"
#include "threads/limit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A disturbed measurement is repeated by later processes, up to this many times; the best rates
 * are kept. */
enum { ENOUGH_DISTURBED = 3, KEY_BYTES = 2048 };

struct time_lost measured_time_lost;

static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER; /* of who finds the rates out */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;      /* of these two: */
static struct rates known;
static bool is_known;
static double (*test_clock)(void);

/* As they were at import, so that rates do not depend on the call that needs them first. */
static int machine_threads;
static char path[RATES_PATH_BYTES];
static char build[KEY_BYTES / 2]; /* this package and NumPy, and what limits BLAS */

static const char *limit_of_blas(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "-";
}

int measured_rates_initialize(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *version = numpy != NULL ? PyObject_GetAttrString(numpy, "__version__") : NULL;
    const char *text = version != NULL ? PyUnicode_AsUTF8(version) : NULL;
    if (text != NULL) {
        snprintf(build, sizeof build, "%s, %s, NumPy %s, BLAS %d %s %s %s", NUMC_VERSION,
                 kernels_selected_isa(), text, threads_cpus(),
                 limit_of_blas("OPENBLAS_NUM_THREADS"), limit_of_blas("MKL_NUM_THREADS"),
                 limit_of_blas("OMP_NUM_THREADS"));
    }
    Py_XDECREF(version);
    Py_XDECREF(numpy);
    machine_threads = threads_limit_by_default().threads;
    rates_path(path, sizeof path);
    return text != NULL ? 0 : -1;
}

const char *measured_rates_file(void)
{
    return path;
}

double measured_clock(void)
{
    return test_clock != NULL ? test_clock() : 1e-9 * (double)clock_ns();
}

static bool get_known(struct rates *rates)
{
    pthread_mutex_lock(&lock);
    const bool found = is_known;
    *rates = known;
    pthread_mutex_unlock(&lock);
    return found;
}

static void set_known(const struct rates *rates)
{
    pthread_mutex_lock(&lock);
    is_known = rates != NULL;
    known = rates != NULL ? *rates : rates_assumed;
    pthread_mutex_unlock(&lock);
}

static void make_key(char key[KEY_BYTES])
{
    rates_key(key, KEY_BYTES, machine_threads, device_of(0)->model, build);
}

/* Measures and saves. `before`: the best of so many disturbed measurements, or NULL. */
static enum status measure(on_processor *processor, const struct rates *before,
                           int disturbed_before, struct rates *rates, bool *disturbed)
{
    const struct rates_source source = {&policy_in_use, device_pipeline(0), processor,
                                        machine_threads, measured_clock};
    const int of_block = threads_of_this_thread();
    threads_set_for_this_thread(machine_threads);
    const enum status status = rates_measure(&source, rates, disturbed);
    threads_set_for_this_thread(of_block);
    if (status == STATUS_OK) {
        char key[KEY_BYTES];
        make_key(key);
        if (before != NULL) {
            rates_keep_best(rates, before);
        }
        rates_save(path, key, rates, *disturbed ? disturbed_before + 1 : 0);
        set_known(rates);
    }
    return status;
}

static enum status load_or_measure(on_processor *processor, struct rates *rates)
{
    char key[KEY_BYTES];
    struct rates saved;
    int disturbed_before = 0;
    bool disturbed;
    make_key(key);
    const bool found =
        rates_load(path, key, &saved, &disturbed_before) && saved.threads == machine_threads;
    if (found && (disturbed_before == 0 || disturbed_before >= ENOUGH_DISTURBED)) {
        *rates = saved;
        set_known(rates);
        return STATUS_OK;
    }
    const enum status status =
        measure(processor, found ? &saved : NULL, found ? disturbed_before : 0, rates, &disturbed);
    if (status == STATUS_OK || status == STATUS_LOST || status == STATUS_NO_HOST_MEMORY) {
        return status; /* out of memory: the next call may have more luck */
    }
    *rates = found ? saved : rates_assumed;
    set_known(rates);
    return STATUS_OK;
}

enum status measured_rates_get(on_processor *processor, struct rates *rates)
{
    if (get_known(rates)) {
        return STATUS_OK;
    }
    if (pthread_mutex_trylock(&measuring) != 0) {
        return STATUS_UNAVAILABLE;
    }
    const enum status status = get_known(rates) ? STATUS_OK : load_or_measure(processor, rates);
    pthread_mutex_unlock(&measuring);
    return status;
}

enum status measured_rates_renew(on_processor *processor, struct rates *rates, bool *disturbed)
{
    pthread_mutex_lock(&measuring);
    const enum status status = measure(processor, NULL, 0, rates, disturbed);
    pthread_mutex_unlock(&measuring);
    return status;
}

void measured_rates_replace(const struct rates *rates)
{
    set_known(rates);
    measured_time_lost.seconds = 0;
}

void measured_clock_replace(double (*clock)(void))
{
    test_clock = clock;
}
