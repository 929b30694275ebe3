/* Per thread: what the last call of a generalized ufunc did. */
#ifndef NUMC_CALL_RECORD_H
#define NUMC_CALL_RECORD_H

/* A call that was not worth a look at the clock; the texts are constants. */
void call_record_short(const char *op, const char *reason);

void call_record_set(const char *op, const char *device, const char *reason, double seconds,
                     int threads);

#endif
