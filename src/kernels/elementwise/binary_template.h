/* Kernels of all binary ops for one dtype; included once per dtype. Parameters:
 *   DTYPE    suffix of the names, CLASS its class in binary_ops.def (INTEGER or FLOAT), KIND 'i' or 'f'
 *   ELEMENT  the C type, unsigned for integers: signed overflow is undefined in C, unsigned wraps
 *   WIDE     the type that computes one element: ELEMENT, or unsigned where C would promote to int
 * and, only where elements are stored otherwise than computed:
 *   BYTES, WIDE_VECTOR                 size of a vector as stored, and the type that computes it
 *   WIDEN, NARROW and their _VECTOR    from stored to computed, and back
 *   RAISE and RAISE_VECTOR             raise flags that neither arithmetic nor NARROW does
 * and, for kernels of mixed dtypes, which there are if HAS_MIXED is defined:
 *   MIXED_WITH(DO, op)                 what is converted to the dtype, a list as in convert.h
 *   MIXED_PAIRS(DO, op)                of these, inputs that are both converted: DO(its source, type, the
 *                                      other's source, type, op) */
#ifndef BYTES
#define BYTES VECTOR_BYTES
#define WIDE_VECTOR vector
#define WIDEN_VECTOR(x) (x)
#define NARROW_VECTOR(x) (x)
#endif
#ifndef WIDEN
#define WIDEN(x) (x)
#define NARROW(x) (x)
#endif
#ifndef RAISE
#define RAISE(op, a, b, value) (void)0
#define RAISE_VECTOR(op, a, b, value) (void)0
#endif

#ifndef HAS_MIXED
#undef MIXED_WITH
#undef MIXED_PAIRS
#endif
#ifndef MIXED_WITH
#define MIXED_WITH(DO, op)
#endif
#ifndef MIXED_PAIRS
#define MIXED_PAIRS(DO, op)
#endif

#define element JOIN(element, DTYPE)
#define vector JOIN(vector, DTYPE)
#define element_at JOIN(element_at, DTYPE)
#define vector_at JOIN(vector_at, DTYPE)
#define store JOIN(store, DTYPE)
#define splat JOIN(splat, DTYPE)
#define contiguous JOIN(contiguous, DTYPE)
#define load_partial JOIN(load_partial, DTYPE)
#define partial_vectors JOIN(partial_vectors, DTYPE)
#define strided JOIN(strided, DTYPE)
#define repeated JOIN(repeated, DTYPE)
#define run JOIN(run, DTYPE)
#define run_mixed JOIN(run_mixed, DTYPE)
#define mixed_input JOIN(mixed_input, DTYPE)

typedef ELEMENT element;
typedef ELEMENT vector __attribute__((vector_size(BYTES)));

/* An operand with step 0 does not vary: all elements are `one`. */
INLINE element element_at(const char *operand, ptrdiff_t at, bool varies, element one)
{
    return varies ? *(const element *)(operand + at) : one;
}

INLINE vector vector_at(const char *operand, ptrdiff_t at, bool varies, vector all_one)
{
    vector v = all_one;
    if (varies) {
        memcpy(&v, operand + at, sizeof v);
    }
    return v;
}

INLINE void store(char *to, vector v, bool stream)
{
    if (stream) {
        stream_vector(to, &v, BYTES);
    } else {
        memcpy(to, &v, sizeof v);
    }
}

INLINE vector splat(element x)
{
    vector v;
    for (size_t lane = 0; lane < sizeof(vector) / sizeof(element); lane++) {
        v[lane] = x;
    }
    return v;
}

/* Loads the first `bytes`, 8 or 16, of a vector, word by word: GCC's memcpy goes through the stack, where
 * the load of the vector would wait for the stores of its parts. */
INLINE vector load_partial(vector v, const char *from, ptrdiff_t bytes)
{
    uint64_t words __attribute__((vector_size(sizeof v))), word;
    memcpy(&words, &v, sizeof v);
    for (int i = 0; i < bytes / 8; i++) {
        memcpy(&word, from + 8 * i, sizeof word);
        words[i] = word;
    }
    memcpy(&v, &words, sizeof v);
    return v;
}

/* Computes a row shorter than a vector: its first and its last `bytes`, which may overlap. Both are read
 * before one is written, since `out` may be an operand. Unused lanes compute the first element again. */
INLINE void partial_vectors(const char *a, const char *b, char *out, ptrdiff_t end, ptrdiff_t bytes,
                            bool a_varies, bool b_varies, vector (*vector_value)(vector, vector))
{
    const ptrdiff_t last = end - bytes;
    const vector a_one = splat(*(const element *)a), b_one = splat(*(const element *)b);
    const vector first_value = vector_value(a_varies ? load_partial(a_one, a, bytes) : a_one,
                                            b_varies ? load_partial(b_one, b, bytes) : b_one);
    const vector last_value = vector_value(a_varies ? load_partial(a_one, a + last, bytes) : a_one,
                                           b_varies ? load_partial(b_one, b + last, bytes) : b_one);
    memcpy(out, &first_value, (size_t)bytes);
    memcpy(out + last, &last_value, (size_t)bytes);
}

INLINE void contiguous(const char *a, const char *b, char *out, ptrdiff_t n, bool a_varies,
                       bool b_varies, bool stream, element (*value)(element, element),
                       vector (*vector_value)(vector, vector))
{
    const ptrdiff_t size = sizeof(element), bytes = BYTES;
    const ptrdiff_t end = n * size;
    const element a_one = *(const element *)a, b_one = *(const element *)b;
    const vector a_all = splat(a_one), b_all = splat(b_one);
    ptrdiff_t at = 0;
    if (end < bytes) {
        if (bytes > 16 && end >= 16) {
            partial_vectors(a, b, out, end, 16, a_varies, b_varies, vector_value);
        } else if (bytes > 8 && size < 8 && end >= 8) {
            partial_vectors(a, b, out, end, 8, a_varies, b_varies, vector_value);
        } else {
            for (; at < end; at += size) {
                *(element *)(out + at) =
                    value(element_at(a, at, a_varies, a_one), element_at(b, at, b_varies, b_one));
            }
        }
        return;
    }
    /* The last vector of a short row may overlap the one before it, so it is read before that is written. Long
     * rows are read in order, for the prefetcher. */
    const bool is_long = stream || end >= ALIGNED_FROM_BYTES;
    const ptrdiff_t stop = is_long ? end : end - 1;
    vector last = a_all;
    if (is_long) {
        for (; at < end && (uintptr_t)(out + at) % bytes != 0; at += size) {
            *(element *)(out + at) =
                value(element_at(a, at, a_varies, a_one), element_at(b, at, b_varies, b_one));
        }
        for (; at + bytes <= end && (uintptr_t)(out + at) % LINE_BYTES != 0; at += bytes) {
            const vector v =
                vector_value(vector_at(a, at, a_varies, a_all), vector_at(b, at, b_varies, b_all));
            store(out + at, v, stream);
        }
    } else {
        last = vector_value(vector_at(a, end - bytes, a_varies, a_all),
                            vector_at(b, end - bytes, b_varies, b_all));
    }
    for (; at + LINE_BYTES <= stop; at += LINE_BYTES) {
        vector line[LINE_BYTES / BYTES];
        for (int i = 0; i < LINE_BYTES / bytes; i++) {
            line[i] = vector_value(vector_at(a, at + i * bytes, a_varies, a_all),
                                   vector_at(b, at + i * bytes, b_varies, b_all));
        }
        for (int i = 0; i < LINE_BYTES / bytes; i++) {
            store(out + at + i * bytes, line[i], stream);
        }
    }
    for (; at + bytes <= stop; at += bytes) {
        const vector v =
            vector_value(vector_at(a, at, a_varies, a_all), vector_at(b, at, b_varies, b_all));
        store(out + at, v, stream);
    }
    if (!is_long) {
        memcpy(out + end - bytes, &last, sizeof last);
    }
    for (; is_long && at < end; at += size) {
        *(element *)(out + at) =
            value(element_at(a, at, a_varies, a_one), element_at(b, at, b_varies, b_one));
    }
}

INLINE void strided(char *const data[], const ptrdiff_t step[], ptrdiff_t n,
                    element (*value)(element, element))
{
    const char *a = data[0], *b = data[1];
    char *out = data[2];
    for (ptrdiff_t k = 0; k < n; k++) {
        *(element *)out = value(*(const element *)a, *(const element *)b);
        a += step[0];
        b += step[1];
        out += step[2];
    }
}

/* All elements have one value: of broadcast operands. */
INLINE void repeated(char *const data[], ptrdiff_t n, element (*value)(element, element))
{
    const element one = value(*(const element *)data[0], *(const element *)data[1]);
    element *out = (element *)data[2];
    for (ptrdiff_t k = 0; k < n; k++) {
        out[k] = one;
    }
}

/* Inlined with constant functions: each op gets loops of its own. */
INLINE void run(char *const data[], const ptrdiff_t step[], ptrdiff_t n, bool stream,
                element (*value)(element, element), vector (*vector_value)(vector, vector))
{
    const ptrdiff_t size = sizeof(element);
    const char *a = data[0], *b = data[1];
    char *out = data[2];
    if (step[2] == size && step[0] == size && step[1] == size) {
        contiguous(a, b, out, n, true, true, stream, value, vector_value);
    } else if (step[2] == size && step[0] == size && step[1] == 0) {
        contiguous(a, b, out, n, true, false, stream, value, vector_value);
    } else if (step[2] == size && step[0] == 0 && step[1] == size) {
        contiguous(a, b, out, n, false, true, stream, value, vector_value);
    } else if (step[2] == size && step[0] == 0 && step[1] == 0) {
        repeated(data, n, value);
    } else {
        strided(data, step, n, value);
    }
}

#include "mixed_template.h"

/* One op: its value for scalars and vectors, and the kernels made of them. */
#define KERNELS(op, expression)                                                                    \
    INLINE element JOIN(op##_value, DTYPE)(element a_, element b_)                                 \
    {                                                                                              \
        const WIDE a = WIDEN(a_), b = WIDEN(b_), value = expression;                               \
        RAISE(#op, a, b, value);                                                                   \
        return (element)NARROW(value);                                                             \
    }                                                                                              \
    INLINE vector JOIN(op##_vector, DTYPE)(vector a_, vector b_)                                   \
    {                                                                                              \
        const WIDE_VECTOR a = WIDEN_VECTOR(a_), b = WIDEN_VECTOR(b_), value = expression;          \
        RAISE_VECTOR(#op, a, b, value);                                                            \
        return NARROW_VECTOR(value);                                                               \
    }                                                                                              \
    static void JOIN(op, DTYPE)(char *const data[], const ptrdiff_t step[], ptrdiff_t n)           \
    {                                                                                              \
        run(data, step, n, false, JOIN(op##_value, DTYPE), JOIN(op##_vector, DTYPE));              \
    }                                                                                              \
    static void JOIN(op##_streaming, DTYPE)(char *const data[], const ptrdiff_t step[],            \
                                            ptrdiff_t n)                                           \
    {                                                                                              \
        run(data, step, n, CAN_STREAM, JOIN(op##_value, DTYPE), JOIN(op##_vector, DTYPE));         \
    }                                                                                              \
    MIXED_PAIRS(MIXED_KERNELS, op)                                                                 \
    MIXED_WITH(MIXED_KERNELS_OF, op)                                                               \
    static const struct mixed_kernel JOIN(op##_mixed, DTYPE)[] = {                                 \
        MIXED_PAIRS(MIXED_PAIR_ROW, op) MIXED_WITH(MIXED_ROWS, op){{NULL, NULL}, NULL, NULL},      \
    };

/* BINARY_OP(add, FLOAT, a + b) becomes FLOAT_IN_FLOAT(add, a + b) for a dtype of class FLOAT, and
 * FLOAT_IN_INTEGER(add, a + b), which is nothing, for another. */
#define BINARY_OP(op, class, value) BINARY_OP_IN(op, class, CLASS, value)
#define BINARY_OP_IN(op, class, dtype_class, value) BINARY_OP_IN_(op, class, dtype_class, value)
#define BINARY_OP_IN_(op, class, dtype_class, value) class##_IN_##dtype_class(op, value)
#define INTEGER_IN_FLOAT(op, expression)
#define FLOAT_IN_INTEGER(op, expression)

#define INTEGER_IN_INTEGER(op, expression) KERNELS(op, expression)
#define FLOAT_IN_FLOAT(op, expression) KERNELS(op, expression)
#include "binary_ops.def"
#undef INTEGER_IN_INTEGER
#undef FLOAT_IN_FLOAT

#define STREAMING(op) CAN_STREAM ? JOIN(op##_streaming, DTYPE) : NULL
#define ROW(op)                                                                                    \
    {#op, KIND, sizeof(element), JOIN(op, DTYPE), STREAMING(op), JOIN(op##_mixed, DTYPE)},
#define INTEGER_IN_INTEGER(op, expression) ROW(op)
#define FLOAT_IN_FLOAT(op, expression) ROW(op)
static const struct kernel JOIN(rows, DTYPE)[] = {
#include "binary_ops.def"
    {NULL, 0, 0, NULL, NULL, NULL},
};
#undef INTEGER_IN_INTEGER
#undef FLOAT_IN_FLOAT
#undef INTEGER_IN_FLOAT
#undef FLOAT_IN_INTEGER
#undef ROW
#undef STREAMING
#undef BINARY_OP
#undef BINARY_OP_IN
#undef BINARY_OP_IN_
#undef KERNELS
#undef MIXED_KERNELS
#undef MIXED_KERNELS_OF
#undef MIXED_ROW
#undef MIXED_ROWS
#undef MIXED_PAIR_ROW

#undef element
#undef vector
#undef element_at
#undef vector_at
#undef store
#undef splat
#undef contiguous
#undef load_partial
#undef partial_vectors
#undef strided
#undef repeated
#undef run
#undef run_mixed
#undef mixed_input
#undef MIXED_WITH
#undef MIXED_PAIRS
#undef DTYPE
#undef CLASS
#undef KIND
#undef ELEMENT
#undef WIDE
#undef BYTES
#undef WIDE_VECTOR
#undef WIDEN
#undef WIDEN_VECTOR
#undef NARROW
#undef NARROW_VECTOR
#undef RAISE
#undef RAISE_VECTOR
