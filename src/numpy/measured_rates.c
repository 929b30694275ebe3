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
#include <string.h>

/* A disturbed measurement is repeated by later processes, up to this many times; the best rates
 * are kept. */
enum { ENOUGH_DISTURBED = 3, KEY_BYTES = 1024 };

struct time_lost measured_time_lost;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these: */
static struct rates known;                               /* no threads: unknown */
static double (*test_clock)(void);
static char build[256]; /* of this package and NumPy, and what limits BLAS: rates depend on it */

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
        snprintf(build, sizeof build, "%s, %s, NumPy %s, BLAS %s %s %s", NUMC_VERSION,
                 kernels_selected_isa(), text, limit_of_blas("OPENBLAS_NUM_THREADS"),
                 limit_of_blas("MKL_NUM_THREADS"), limit_of_blas("OMP_NUM_THREADS"));
        for (char *c = build; *c != '\0'; c++) {
            *c = *c == '\t' || *c == '\n' ? ' ' : *c; /* the file's separators */
        }
    }
    Py_XDECREF(version);
    Py_XDECREF(numpy);
    return text != NULL ? 0 : -1;
}

/* That calls outside of config() may use: rates do not depend on the call that needs them first. */
static int usual_threads(void)
{
    const int of_block = threads_of_this_thread();
    threads_set_for_this_thread(0);
    const int threads = threads_limit().threads;
    threads_set_for_this_thread(of_block);
    return threads;
}

double measured_clock(void)
{
    return test_clock != NULL ? test_clock() : 1e-9 * (double)clock_ns();
}

/* Under the lock. What fails is not kept: the next process tries again. */
static enum status measure(on_processor *processor, const char *path, const char *key,
                           int disturbed_before, bool *disturbed)
{
    const struct rates_source source = {&policy_in_use, device_pipeline(0), processor,
                                        usual_threads(), measured_clock};
    struct rates rates;
    const int of_block = threads_of_this_thread();
    threads_set_for_this_thread(0);
    const enum status status = rates_measure(&source, &rates, disturbed);
    threads_set_for_this_thread(of_block);
    if (status == STATUS_OK) {
        if (disturbed_before > 0) {
            rates_keep_best(&rates, &known);
        }
        known = rates;
        rates_save(path, key, &rates, *disturbed ? disturbed_before + 1 : 0);
    }
    return status;
}

static void file_and_key(char path[RATES_PATH_BYTES], char key[KEY_BYTES])
{
    rates_path(path, RATES_PATH_BYTES);
    rates_key(key, KEY_BYTES, usual_threads(), device_of(0)->model, build);
}

void measured_rates_get(on_processor *processor, struct rates *rates)
{
    pthread_mutex_lock(&lock);
    if (known.threads == 0) {
        char path[RATES_PATH_BYTES], key[KEY_BYTES];
        int disturbed_before = 0;
        bool disturbed;
        file_and_key(path, key);
        const bool found = rates_load(path, key, &known, &disturbed_before);
        if ((!found || (disturbed_before > 0 && disturbed_before < ENOUGH_DISTURBED)) &&
            measure(processor, path, key, disturbed_before, &disturbed) != STATUS_OK && !found) {
            known = rates_assumed;
        }
    }
    *rates = known;
    pthread_mutex_unlock(&lock);
}

enum status measured_rates_renew(on_processor *processor, struct rates *rates, bool *disturbed)
{
    char path[RATES_PATH_BYTES], key[KEY_BYTES];
    pthread_mutex_lock(&lock);
    file_and_key(path, key);
    const enum status status = measure(processor, path, key, 0, disturbed);
    *rates = known;
    pthread_mutex_unlock(&lock);
    return status;
}

void measured_rates_replace(const struct rates *rates)
{
    pthread_mutex_lock(&lock);
    known = rates != NULL ? *rates : (struct rates){.threads = 0};
    measured_time_lost.seconds = 0;
    pthread_mutex_unlock(&lock);
}

void measured_clock_replace(double (*clock)(void))
{
    test_clock = clock;
}
