/* Measures the rates of the processor and of a device that is up. */
#ifndef NUMC_MEASURE_RATES_H
#define NUMC_MEASURE_RATES_H

#include "pipeline.h"
#include "rates.h"

/* What is measured, and by which clock. */
struct rates_source {
    const struct policy *policy;
    struct pipeline *pipeline;
    /* Computes a product without a device; false if it cannot. */
    bool (*processor)(const struct matmul_task *task);
    int threads;
    double (*clock)(void); /* seconds */
};

/* Takes about a second, little more than ten if the machine is slow: that counts as disturbed. With STATUS_OK all rates are set; `disturbed` says whether times
 * varied so much that something else must have used the machine. */
enum status rates_measure(const struct rates_source *source, struct rates *rates, bool *disturbed);

#endif
