/* How fast this machine's processor and device multiply, and the user's cache file of these rates. */
#ifndef NUMC_RATES_H
#define NUMC_RATES_H

#include "device.h"

enum { RATE_TYPES = 10, RATES_OF_A_CORE = 0 };

/* Doubles only, since the file is read and written as an array of them. Whole numbers: exact in
 * text, and without a decimal point, which depends on the locale. */
struct rates {
    double threads;             /* with which the processor was measured, or RATES_OF_A_CORE */
    double product[RATE_TYPES]; /* operations per second of the processor, by type, */
    double stack[RATE_TYPES];   /* the same for a stack of small products */
    double memory;              /* bytes per second that it reads */
    double device[RATE_TYPES];  /* operations per second of the device */
    double transfer;            /* bytes per second between host and device */
    double latency_ns;          /* of the smallest product on the device */
};

enum { RATE_COUNT = sizeof(struct rates) / sizeof(double) };

/* Assumed where nothing can be measured: a fast processor and a modest device, so that offload is
 * rarely chosen. */
extern const struct rates rates_assumed;

/* The types that devices multiply. */
extern const struct element_type rates_types[RATE_TYPES];
extern const char *const rates_type_names[RATE_TYPES];
int rates_type(struct element_type type);

/* Takes the better of two measurements of each rate: disturbances only slow things down. */
void rates_keep_best(struct rates *rates, const struct rates *other);

/* Rounds all to whole numbers that the file may have, at least 1. */
void rates_round(struct rates *rates);

/* ---- the file ---- */

/* The key of this machine's rates, one line without a tab: processor, threads, device, `build`
 * (versions, and what else rates depend on). */
void rates_key(char *key, size_t size, int threads, const char *device, const char *build);

/* "" where neither XDG_CACHE_HOME nor HOME is set. */
void rates_path(char *path, size_t size);

/* Reads the rates saved under `key`; false if there is no valid line. `disturbed`: the best of so
 * many disturbed measurements; 0: of an undisturbed one. */
bool rates_load(const char *path, const char *key, struct rates *rates, int *disturbed);

/* Replaces the file as a whole; makes its folder. False if it cannot be written. */
bool rates_save(const char *path, const char *key, const struct rates *rates, int disturbed);

#endif
