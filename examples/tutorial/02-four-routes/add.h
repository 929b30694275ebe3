#ifndef ADD_H
#define ADD_H
#include <stddef.h>

/* out[i] = a[i] + b[i] */
void add(const double *a, const double *b, double *out, size_t n);

#endif
