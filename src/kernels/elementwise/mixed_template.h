/* Kernels of inputs of other dtypes, which are converted in registers; a part of binary_template.h. */

/* An element, and a vector, of another dtype. GCC converts integers shorter than int one by one unless they become
 * ints before. */
#define LOAD(source, kind, type, target, to_kind, to_type, value, op)                              \
    INLINE element JOIN(element_of_##source, DTYPE)(const char *from)                              \
    {                                                                                              \
        const type x = *(const type *)from;                                                        \
        return (element)(value);                                                                   \
    }                                                                                              \
    INLINE vector JOIN(vector_of_##source, DTYPE)(const char *from)                                \
    {                                                                                              \
        enum { LANES = sizeof(vector) / sizeof(element) };                                         \
        const type *elements = (const type *)from;                                                 \
        element converted[LANES];                                                                  \
        vector v;                                                                                  \
        if (kind == 'f' && sizeof(type) == sizeof(uint16_t)) {                                     \
            float singles[LANES];                                                                  \
            few_halves_to_floats((const uint16_t *)from, singles, LANES);                          \
            for (int i = 0; i < LANES; i++) {                                                      \
                converted[i] = (element)singles[i];                                                \
            }                                                                                      \
        } else if (to_kind == 'f' && sizeof(type) < sizeof(int32_t)) {                             \
            int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t)))), extended[LANES];   \
            for (int i = 0; i < LANES; i++) {                                                      \
                const type x = elements[i];                                                        \
                extended[i] = (int32_t)(value);                                                    \
            }                                                                                      \
            memcpy(&ints, extended, sizeof ints);                                                  \
            for (int i = 0; i < LANES; i++) {                                                      \
                converted[i] = (element)ints[i];                                                   \
            }                                                                                      \
        } else {                                                                                   \
            for (int i = 0; i < LANES; i++) {                                                      \
                const type x = elements[i];                                                        \
                converted[i] = (element)(value);                                                   \
            }                                                                                      \
        }                                                                                          \
        memcpy(&v, converted, sizeof v);                                                           \
        return v;                                                                                  \
    }
MIXED_WITH(LOAD, )
#undef LOAD

INLINE element JOIN(element_of_same, DTYPE)(const char *from)
{
    return *(const element *)from;
}

INLINE vector JOIN(vector_of_same, DTYPE)(const char *from)
{
    vector v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* How an input is loaded. */
struct mixed_input {
    ptrdiff_t size; /* bytes of an element */
    element (*element_of)(const char *);
    vector (*vector_of)(const char *);
};

/* Whether it is one element, of the kernel's dtype, which is read again and again. */
INLINE bool JOIN(is_one, DTYPE)(const struct mixed_input *input, ptrdiff_t step)
{
    return step == 0 && input->vector_of == JOIN(vector_of_same, DTYPE);
}

/* There are so many of these kernels that each has one loop of vectors. */
INLINE void run_mixed(char *const data[], const ptrdiff_t step[], ptrdiff_t n, bool stream,
                      const struct mixed_input *a, const struct mixed_input *b,
                      element (*value)(element, element), vector (*vector_value)(vector, vector))
{
    const ptrdiff_t size = sizeof(element), lanes = BYTES / size;
    const ptrdiff_t a_step = step[0], b_step = step[1], out_step = step[2], end = n - lanes;
    const bool a_is_one = JOIN(is_one, DTYPE)(a, a_step), b_is_one = JOIN(is_one, DTYPE)(b, b_step);
    const bool has_vectors =
        out_step == size && (a_step == a->size || a_is_one) && (b_step == b->size || b_is_one);
    const char *a_next = data[0], *b_next = data[1];
    char *out = data[2];
    /* Long rows as in contiguous(). */
    const bool is_long = stream || n * size >= ALIGNED_FROM_BYTES;
    const ptrdiff_t to_vector = is_long ? (ptrdiff_t)(-(uintptr_t)out % BYTES) / size : 0;
    const ptrdiff_t first = has_vectors && to_vector <= end ? to_vector : n;
    ptrdiff_t k = 0;
    for (; k < first; k++) {
        *(element *)(out + k * out_step) = value(a->element_of(a_next), b->element_of(b_next));
        a_next += a_step;
        b_next += b_step;
    }
    if (k == n) {
        return;
    }
    vector a_all, b_all;
    if (a_is_one) {
        a_all = splat(a->element_of(a_next));
        a_next = (const char *)&a_all;
    }
    if (b_is_one) {
        b_all = splat(b->element_of(b_next));
        b_next = (const char *)&b_all;
    }
    const ptrdiff_t stop = is_long ? end : end - 1;
    vector last;
    if (!is_long) {
        last =
            vector_value(a->vector_of(a_next + end * a_step), b->vector_of(b_next + end * b_step));
    }
    for (; k <= stop; k += lanes) {
        store(out + k * size, vector_value(a->vector_of(a_next), b->vector_of(b_next)), stream);
        a_next += lanes * a_step;
        b_next += lanes * b_step;
    }
    if (!is_long) {
        memcpy(out + end * size, &last, sizeof last);
        return;
    }
    for (; k < n; k++) {
        *(element *)(out + k * size) = value(a->element_of(a_next), b->element_of(b_next));
        a_next += a_is_one ? 0 : a_step;
        b_next += b_is_one ? 0 : b_step;
    }
}

/* Not inlined into the two kernels, which pass `stream`. */
#define MIXED_KERNELS(a, a_type, b, b_type, op)                                                    \
    NOINLINE void JOIN(op##_##a##_##b, DTYPE)(char *const data[], const ptrdiff_t step[],          \
                                              ptrdiff_t n, bool stream)                            \
    {                                                                                              \
        const struct mixed_input first = {sizeof(a_type), JOIN(element_of_##a, DTYPE),             \
                                          JOIN(vector_of_##a, DTYPE)};                             \
        const struct mixed_input second = {sizeof(b_type), JOIN(element_of_##b, DTYPE),            \
                                           JOIN(vector_of_##b, DTYPE)};                            \
        run_mixed(data, step, n, stream, &first, &second, JOIN(op##_value, DTYPE),                 \
                  JOIN(op##_vector, DTYPE));                                                       \
    }                                                                                              \
    static void JOIN(op##_##a##_##b##_cached, DTYPE)(char *const data[], const ptrdiff_t step[],   \
                                                     ptrdiff_t n)                                  \
    {                                                                                              \
        JOIN(op##_##a##_##b, DTYPE)(data, step, n, false);                                         \
    }                                                                                              \
    static void JOIN(op##_##a##_##b##_streaming, DTYPE)(char *const data[],                        \
                                                        const ptrdiff_t step[], ptrdiff_t n)       \
    {                                                                                              \
        JOIN(op##_##a##_##b, DTYPE)(data, step, n, CAN_STREAM);                                    \
    }
#define MIXED_ROW(a, b, op, ...)                                                                   \
    {{__VA_ARGS__},                                                                                \
     JOIN(op##_##a##_##b##_cached, DTYPE),                                                         \
     CAN_STREAM ? JOIN(op##_##a##_##b##_streaming, DTYPE) : NULL},

#define MIXED_KERNELS_OF(source, kind, type, target, to_kind, to_type, value, op)                  \
    MIXED_KERNELS(source, type, same, element, op) MIXED_KERNELS(same, element, source, type, op)
#define MIXED_ROWS(source, kind, type, target, to_kind, to_type, value, op)                        \
    MIXED_ROW(source, same, op, JOIN(convert_##source, DTYPE), NULL)                               \
    MIXED_ROW(same, source, op, NULL, JOIN(convert_##source, DTYPE))
#define MIXED_PAIR_ROW(a, a_type, b, b_type, op)                                                   \
    MIXED_ROW(a, b, op, JOIN(convert_##a, DTYPE), JOIN(convert_##b, DTYPE))
