/* out[i] = a[i] + b[i] in several ways; `read_inputs` is the limit that they are held against. */
#ifndef ADDS_H
#define ADDS_H
#include <stddef.h>

int has_avx(void);

void add_plain(const float *a, const float *b, float *out, ptrdiff_t n);
void add_avx(const float *a, const float *b, float *out, ptrdiff_t n);
void add_threads(const float *a, const float *b, float *out, ptrdiff_t n, int threads);
void add_streaming(const float *a, const float *b, float *out, ptrdiff_t n, int threads);

/* Reads two arrays. The result is good for nothing but to keep the compiler from leaving it out. */
float read_inputs(const float *a, const float *b, ptrdiff_t n, int threads);

#endif
