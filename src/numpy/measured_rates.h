/* What placement goes by in this process: the rates of the machine, from the user's file or measured at
 * the first call that needs them, and the time that was lost before a device was up. */
#ifndef NUMC_MEASURED_RATES_H
#define NUMC_MEASURED_RATES_H

#include "device/measure_rates.h"
#include "device/placement.h"

enum { RATES_PATH_BYTES = 1024 };

/* Called once, at import. -1 with an exception. */
int measured_rates_initialize(void);

/* Computes a product without a device; false if it cannot. */
typedef bool on_processor(const struct matmul_task *task);

/* Of device 0, which is up. STATUS_UNAVAILABLE: another thread is measuring them. Not under the GIL. */
enum status measured_rates_get(on_processor *processor, struct rates *rates);

/* Measures now, whatever is in the file. Waits for others who measure. */
enum status measured_rates_renew(on_processor *processor, struct rates *rates, bool *disturbed);

/* The file that keeps them, "" if none can. */
const char *measured_rates_file(void);

/* Before device 0 is up. */
extern struct time_lost measured_time_lost;

/* The time in seconds, by the clock of this process or that of a test. */
double measured_clock(void);

/* For tests: these rates, or NULL: as if nothing had been asked yet; and a clock, NULL: the real one. */
void measured_rates_replace(const struct rates *rates);
void measured_clock_replace(double (*clock)(void));

#endif
