/* Ranges of addresses, found by any address within: by any number of threads, without a lock. */
#ifndef NUMC_ADDRESS_RANGES_H
#define NUMC_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>

/* Those that change ranges must not meet; `kind` is more than 0. False: there is no room for another. */
bool address_ranges_add(const void *data, size_t bytes, int kind);
/* The range that begins there. */
void address_ranges_remove(const void *data);
void address_ranges_remove_kind(int kind);

/* The kind of the range that has this address, which must not be removed meanwhile; 0: none has. */
int address_ranges_find(const void *data);

#endif
