/* How fast this machine's processor and its device multiply, and the file of the user's that keeps it. */
#ifndef NUMC_RATES_H
#define NUMC_RATES_H

#include "device.h"

enum { RATE_TYPES = 10 };

/* Doubles only, of whole numbers, as they are in the file: no rounding, and no decimal point that a
 * locale could change. */
struct rates {
    double threads;             /* of the processor, with which its rates were measured */
    double product[RATE_TYPES]; /* operations per second of the processor, by type, */
    double stack[RATE_TYPES];   /* and in a stack of small products */
    double memory;              /* bytes per second that it reads */
    double device[RATE_TYPES];  /* operations per second of the device */
    double transfer;            /* bytes per second between both */
    double latency_ns;          /* of a product of some bytes on the device */
};

enum { RATE_COUNT = sizeof(struct rates) / sizeof(double) };

/* What is assumed before anything is measured: the processor as fast as the best is, the device a
 * modest one. */
extern const struct rates rates_assumed;

/* The types that devices multiply. */
extern const struct element_type rates_types[RATE_TYPES];
extern const char *const rates_type_names[RATE_TYPES];
int rates_type(struct element_type type);

/* Of two measurements the better: what disturbs makes slower only. */
void rates_keep_best(struct rates *rates, const struct rates *other);

/* Rounds all to whole numbers, at least 1. */
void rates_round(struct rates *rates);

/* ---- the file ---- */

/* What rates belong to: processor, threads, device and version of this package. One line. */
void rates_key(char *key, size_t size, int threads, const char *device, const char *version);

/* "" where there is none: neither XDG_CACHE_HOME nor HOME is set. */
void rates_path(char *path, size_t size);

/* What was saved under `key`, one line of text; false if nothing that makes sense was. `disturbed`: by
 * how many measurements, of which it is the best; 0: by one that was not disturbed. */
bool rates_load(const char *path, const char *key, struct rates *rates, int *disturbed);

/* Replaces the file as a whole; makes its folder. False if it cannot be written. */
bool rates_save(const char *path, const char *key, const struct rates *rates, int disturbed);

#endif
