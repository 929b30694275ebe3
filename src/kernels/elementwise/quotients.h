/* Quotients of integers: converted to double in buffers, then divided by the float64 kernel. */
enum { BUFFER_ELEMENTS = 512 }; /* two buffers of doubles stay in the first-level cache */

typedef void converter(const char *from, ptrdiff_t step, ptrdiff_t n, double *to);

INLINE void divide(converter *convert, elementwise_kernel *run, char *const data[],
                   const ptrdiff_t step[], ptrdiff_t n)
{
    double buffer[2][BUFFER_ELEMENTS];
    ptrdiff_t buffer_step[3] = {0, 0, step[2]};
    for (int i = 0; i < 2; i++) {
        if (step[i] == 0) {
            convert(data[i], 0, 1, buffer[i]);
        } else {
            buffer_step[i] = sizeof(double);
        }
    }
    for (ptrdiff_t done = 0; done < n; done += BUFFER_ELEMENTS) {
        const ptrdiff_t count = n - done < BUFFER_ELEMENTS ? n - done : BUFFER_ELEMENTS;
        for (int i = 0; i < 2; i++) {
            if (step[i] != 0) {
                convert(data[i] + done * step[i], step[i], count, buffer[i]);
            }
        }
        char *const now[] = {(char *)buffer[0], (char *)buffer[1], data[2] + done * step[2]};
        run(now, buffer_step, count);
    }
}

/* int64 to double without AVX512DQ, by magic numbers: the upper half of x becomes the lowest bits of
 * 2^84, the lower half those of 2^52; the constants are subtracted exactly, only the last addition
 * rounds. (For signed x, 2^63 is added to the upper half and subtracted again.) */
#if defined(__x86_64__) && !defined(__AVX512DQ__)
INLINE double double_of_halves(uint64_t upper, uint64_t lower, double added)
{
    double high, low;
    memcpy(&high, &upper, sizeof high);
    memcpy(&low, &lower, sizeof low);
    return (high - added) + low;
}
INLINE double double_of_uint64(uint64_t x)
{
    return double_of_halves(x >> 32 | 0x4530000000000000u, (x & 0xffffffffu) | 0x4330000000000000u,
                            0x1p84 + 0x1p52);
}
INLINE double double_of_int64(int64_t x)
{
    return double_of_halves((uint64_t)x >> 32 ^ 0x4530000080000000u,
                            ((uint64_t)x & 0xffffffffu) | 0x4330000000000000u,
                            0x1p84 + 0x1p63 + 0x1p52);
}
/* Strided, they are converted one by one by the scalar instruction: gathering them costs more. */
#define SCALAR_CONVERSION_SIZE sizeof(uint64_t)
#else
#define double_of_uint64(x) (x)
#define double_of_int64(x) (x)
#define SCALAR_CONVERSION_SIZE 0
#endif

/* Strided elements are gathered first, so that the conversion is vectorized. */
#define DEFINE(name, kind, type, value)                                                            \
    SCALAR static void convert_each_##name(const char *from, ptrdiff_t step, ptrdiff_t n,          \
                                           double *to)                                             \
    {                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            to[i] = (double)*(const type *)(from + i * step);                                      \
        }                                                                                          \
    }                                                                                              \
    static void convert_##name(const char *from, ptrdiff_t step, ptrdiff_t n, double *to)          \
    {                                                                                              \
        if (sizeof(type) == SCALAR_CONVERSION_SIZE && step != sizeof(type)) {                      \
            convert_each_##name(from, step, n, to);                                                \
            return;                                                                                \
        }                                                                                          \
        type gathered[BUFFER_ELEMENTS];                                                            \
        if (step != sizeof(type)) {                                                                \
            _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i < n; i++)                              \
            {                                                                                      \
                gathered[i] = *(const type *)(from + i * step);                                    \
            }                                                                                      \
            from = (const char *)gathered;                                                         \
        }                                                                                          \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            const type x = ((const type *)from)[i];                                                \
            to[i] = (double)(value);                                                               \
        }                                                                                          \
    }                                                                                              \
    static void divide_##name(char *const data[], const ptrdiff_t step[], ptrdiff_t n)             \
    {                                                                                              \
        divide(convert_##name, JOIN(divide, float64), data, step, n);                              \
    }                                                                                              \
    static void divide_streaming_##name(char *const data[], const ptrdiff_t step[], ptrdiff_t n)   \
    {                                                                                              \
        divide(convert_##name, JOIN(divide_streaming, float64), data, step, n);                    \
    }

#define FOR_ALL_TYPES(DO)                                                                          \
    DO(truth, 'b', uint8_t, x != 0)                                                                \
    DO(int8, 'i', int8_t, x)                                                                       \
    DO(int16, 'i', int16_t, x)                                                                     \
    DO(int32, 'i', int32_t, x)                                                                     \
    DO(int64, 'i', int64_t, double_of_int64(x))                                                    \
    DO(uint8, 'u', uint8_t, x)                                                                     \
    DO(uint16, 'u', uint16_t, x)                                                                   \
    DO(uint32, 'u', uint32_t, x)                                                                   \
    DO(uint64, 'u', uint64_t, double_of_uint64(x))

FOR_ALL_TYPES(DEFINE)

#define ROW(name, kind, type, value)                                                               \
    {"divide", kind, sizeof(type), divide_##name, CAN_STREAM ? divide_streaming_##name : NULL},
static const struct kernel rows_quotients[] = {FOR_ALL_TYPES(ROW){NULL, 0, 0, NULL, NULL}};
#undef ROW
#undef FOR_ALL_TYPES
#undef DEFINE
#undef SCALAR_CONVERSION_SIZE
