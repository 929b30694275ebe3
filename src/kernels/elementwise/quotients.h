/* Quotients of integers: converted to double in buffers, then divided by the float64 kernel. */
enum { BUFFER_ELEMENTS = 512 }; /* two buffers of doubles stay in the first-level cache */

INLINE void divide(convert_elements *convert, elementwise_kernel *run, char *const data[],
                   const ptrdiff_t step[], ptrdiff_t n)
{
    double buffer[2][BUFFER_ELEMENTS];
    ptrdiff_t buffer_step[3] = {0, 0, step[2]};
    for (int i = 0; i < 2; i++) {
        if (step[i] == 0) {
            convert(data[i], 0, buffer[i], 1);
        } else {
            buffer_step[i] = sizeof(double);
        }
    }
    for (ptrdiff_t done = 0; done < n; done += BUFFER_ELEMENTS) {
        const ptrdiff_t count = n - done < BUFFER_ELEMENTS ? n - done : BUFFER_ELEMENTS;
        for (int i = 0; i < 2; i++) {
            if (step[i] != 0) {
                convert(data[i] + done * step[i], step[i], buffer[i], count);
            }
        }
        char *const now[] = {(char *)buffer[0], (char *)buffer[1], data[2] + done * step[2]};
        run(now, buffer_step, count);
    }
}

#define DEFINE(source, kind, type, target, to_kind, to_type, value)                                \
    static void divide_##source(char *const data[], const ptrdiff_t step[], ptrdiff_t n)           \
    {                                                                                              \
        divide(convert_##source##_##target, JOIN(divide, float64), data, step, n);                 \
    }                                                                                              \
    static void divide_streaming_##source(char *const data[], const ptrdiff_t step[], ptrdiff_t n) \
    {                                                                                              \
        divide(convert_##source##_##target, JOIN(divide_streaming, float64), data, step, n);       \
    }
INTEGERS_TO_FLOAT64(DEFINE)

#define ROW(source, kind, type, target, to_kind, to_type, value)                                   \
    {"divide", kind, sizeof(type), divide_##source, CAN_STREAM ? divide_streaming_##source : NULL},
static const struct kernel rows_quotients[] = {INTEGERS_TO_FLOAT64(ROW){NULL, 0, 0, NULL, NULL}};
#undef ROW
#undef DEFINE
#undef INTEGERS_TO_FLOAT64
