/* Signals are for threads that know of them; those of a fault in this thread can be nobody else's, and would
 * end the process without a word if they were blocked. */
#include "quiet_thread.h"

#include <signal.h>
#include <stddef.h>

bool quiet_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                         void *context)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sigdelset(&blocked, faults[i]);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const bool runs = pthread_create(thread, attributes, run, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return runs;
}
