/* What tests of the CUDA device have in common: all types, and device and stream of the test. */
#ifndef NUMC_ON_GPU_H
#define NUMC_ON_GPU_H

#include "device/cuda/cuda_device.h"
#include "expect.h"

#include <time.h>

static const struct {
    const char *name;
    struct element_type type;
} types[] = {
    {"bool", {ELEMENT_BOOL, 1}},         {"int8", {ELEMENT_INTEGER, 1}},
    {"int16", {ELEMENT_INTEGER, 2}},     {"int32", {ELEMENT_INTEGER, 4}},
    {"int64", {ELEMENT_INTEGER, 8}},     {"float16", {ELEMENT_FLOAT, 2}},
    {"float32", {ELEMENT_FLOAT, 4}},     {"float64", {ELEMENT_FLOAT, 8}},
    {"complex64", {ELEMENT_COMPLEX, 8}}, {"complex128", {ELEMENT_COMPLEX, 16}},
};
enum { TYPES = sizeof types / sizeof types[0] };

static struct device *device;
static struct stream *stream;

static bool works(enum status status, const char *what)
{
    char problem[256] = "";
    if (status != STATUS_OK) {
        device->explain(device, problem, sizeof problem);
    }
    expect(status == STATUS_OK, "%s: %s", what, problem);
    return status == STATUS_OK;
}

/* False, and a message: there is no GPU. */
static bool open_gpu(const char *const blas[])
{
    const struct device_library *library = numc_cuda_library(DEVICE_VERSION);
    char why[400];
    const bool is_there = library->count(why, sizeof why) > 0 &&
                          library->open(0, blas, &device, why, sizeof why) == STATUS_OK;
    if (!is_there) {
        printf("no GPU: %s\n", why);
    }
    return is_there;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
