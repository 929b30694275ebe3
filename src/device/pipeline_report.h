/* What is told of a product that a device computed. */
#ifndef NUMC_PIPELINE_REPORT_H
#define NUMC_PIPELINE_REPORT_H

#include <stdbool.h>

/* Seconds since the start of the call when the last of each was put into its stream. */
struct pipeline_times {
    double last_upload, last_product, last_download, end;
};

struct pipeline_report {
    int threads;    /* that copied */
    bool nonfinite; /* the result has infinities or NaNs */
    struct pipeline_times times;
};

#endif
