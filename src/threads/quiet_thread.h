/* Threads that no signal is delivered to. */
#ifndef NUMC_QUIET_THREAD_H
#define NUMC_QUIET_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* As pthread_create(). False: it was refused. */
bool quiet_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                         void *context);

#endif
