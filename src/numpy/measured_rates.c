#include "measured_rates.h"

#include "devices.h"
#include "policy_in_use.h"
#include "threads/clock.h"

#include <pthread.h>

/* A disturbed measurement is repeated by later processes, up to this many times; the best rates
 * are kept. */
enum { ENOUGH_DISTURBED = 3, KEY_BYTES = 1024 };

struct time_lost measured_time_lost;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these: */
static struct rates known;                               /* no threads: unknown */
static double (*test_clock)(void);

double measured_clock(void)
{
    return test_clock != NULL ? test_clock() : 1e-9 * (double)clock_ns();
}

/* Under the lock. What fails is not kept: the next process tries again. */
static enum status measure(int threads, on_processor *processor, const char *path, const char *key,
                           int disturbed_before, bool *disturbed)
{
    const struct rates_source source = {&policy_in_use, device_pipeline(0), processor, threads,
                                        measured_clock};
    struct rates rates;
    const enum status status = rates_measure(&source, &rates, disturbed);
    if (status == STATUS_OK) {
        if (disturbed_before > 0) {
            rates_keep_best(&rates, &known);
        }
        known = rates;
        rates_save(path, key, &rates, *disturbed ? disturbed_before + 1 : 0);
    }
    return status;
}

static void file_and_key(int threads, char path[RATES_PATH_BYTES], char key[KEY_BYTES])
{
    rates_path(path, RATES_PATH_BYTES);
    rates_key(key, KEY_BYTES, threads, device_of(0)->model, NUMC_VERSION);
}

void measured_rates_get(int threads, on_processor *processor, struct rates *rates)
{
    pthread_mutex_lock(&lock);
    if (known.threads == 0) {
        char path[RATES_PATH_BYTES], key[KEY_BYTES];
        int disturbed_before = 0;
        bool disturbed;
        file_and_key(threads, path, key);
        const bool found = rates_load(path, key, &known, &disturbed_before);
        if ((!found || (disturbed_before > 0 && disturbed_before < ENOUGH_DISTURBED)) &&
            measure(threads, processor, path, key, disturbed_before, &disturbed) != STATUS_OK &&
            !found) {
            known = rates_assumed;
        }
    }
    *rates = known;
    pthread_mutex_unlock(&lock);
}

enum status measured_rates_renew(int threads, on_processor *processor, struct rates *rates,
                                 bool *disturbed)
{
    char path[RATES_PATH_BYTES], key[KEY_BYTES];
    pthread_mutex_lock(&lock);
    file_and_key(threads, path, key);
    const enum status status = measure(threads, processor, path, key, 0, disturbed);
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
