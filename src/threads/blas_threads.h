/* The threads of libraries for linear algebra, while ours call their routines. */
#ifndef NUMC_BLAS_THREADS_H
#define NUMC_BLAS_THREADS_H

/* Every BLAS and LAPACK that the process has loaded computes on so many threads at most, the calling one
 * among them, until as many calls of blas_threads_release(): for all threads of the process, because
 * OpenBLAS knows no other way. Of several callers the one that wants the fewest counts. */
void blas_threads_hold(int most);
void blas_threads_release(void);

#endif
