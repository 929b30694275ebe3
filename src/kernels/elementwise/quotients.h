/* Quotients of integers: made doubles, a piece at a time, and divided by the kernel for those. */
enum { PIECE = 512 }; /* elements: two pieces of doubles stay in the first-level cache */

typedef void converter(const char *from, ptrdiff_t step, ptrdiff_t n, double *to);

INLINE void divide(converter *convert, elementwise_kernel *run, char *const data[],
                   const ptrdiff_t step[], ptrdiff_t n)
{
    double piece[2][PIECE];
    char *const pieces[] = {(char *)piece[0], (char *)piece[1]};
    ptrdiff_t piece_step[3] = {0, 0, step[2]};
    for (int i = 0; i < 2; i++) {
        if (step[i] == 0) {
            convert(data[i], 0, 1, piece[i]);
        } else {
            piece_step[i] = sizeof(double);
        }
    }
    for (ptrdiff_t done = 0; done < n; done += PIECE) {
        const ptrdiff_t count = n - done < PIECE ? n - done : PIECE;
        for (int i = 0; i < 2; i++) {
            if (step[i] != 0) {
                convert(data[i] + done * step[i], step[i], count, piece[i]);
            }
        }
        char *const now[] = {pieces[0], pieces[1], data[2] + done * step[2]};
        run(now, piece_step, count);
    }
}

/* As the conversion itself does it, of which only AVX-512 and NEON have vectors: the halves of x become
 * the lowest bits of 2^84 + 2^63 and of 2^52, what they add is taken away again, and the one rounding
 * is that of the sum. */
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
/* Where these come from far apart, the conversion of one is sooner done. */
#define CONVERTED_ALONE sizeof(uint64_t)
#else
#define double_of_uint64(x) (x)
#define double_of_int64(x) (x)
#define CONVERTED_ALONE 0
#endif

/* Elements that do not lie next to each other are brought together first: vectors convert the rest. */
#define DEFINE(name, kind, type, value)                                                            \
    SCALAR static void convert_alone_##name(const char *from, ptrdiff_t step, ptrdiff_t n,         \
                                            double *to)                                            \
    {                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            to[i] = (double)*(const type *)(from + i * step);                                      \
        }                                                                                          \
    }                                                                                              \
    static void convert_##name(const char *from, ptrdiff_t step, ptrdiff_t n, double *to)          \
    {                                                                                              \
        if (sizeof(type) == CONVERTED_ALONE && step != sizeof(type)) {                             \
            convert_alone_##name(from, step, n, to);                                               \
            return;                                                                                \
        }                                                                                          \
        type near[PIECE];                                                                          \
        if (step != sizeof(type)) {                                                                \
            _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i < n; i++)                              \
            {                                                                                      \
                near[i] = *(const type *)(from + i * step);                                        \
            }                                                                                      \
            from = (const char *)near;                                                             \
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
#undef CONVERTED_ALONE
