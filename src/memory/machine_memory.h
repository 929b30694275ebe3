/* The memory of the machine. */
#ifndef NUMC_MACHINE_MEMORY_H
#define NUMC_MACHINE_MEMORY_H

#include <stddef.h>

/* Bytes, by /proc below `root`, "" but in tests; SIZE_MAX where that says nothing. */
struct machine_memory {
    size_t total;
    size_t available; /* without swapping */
};
struct machine_memory machine_memory(const char *root);

#endif
