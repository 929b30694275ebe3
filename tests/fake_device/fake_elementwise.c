/* The element-wise work of the fake device: C's own operations, one element at a time, with the flags
 * that the processor raises. */
#include "fake_device.h"

#include "kernels/half_convert.h"

#include <fenv.h>
#include <math.h>

/* Not inlined: else they might be computed before flags are cleared, or after they are read. */
#define REAL(type, name, fma_of)                                                                   \
    __attribute__((noinline)) static type name(enum elementwise_op op, type a, type b)             \
    {                                                                                              \
        switch (op) {                                                                              \
        case ELEMENTWISE_ADD:                                                                      \
            return a + b;                                                                          \
        case ELEMENTWISE_SUBTRACT:                                                                 \
            return a - b;                                                                          \
        case ELEMENTWISE_MULTIPLY:                                                                 \
            return a * b;                                                                          \
        default:                                                                                   \
            return a / b;                                                                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    __attribute__((noinline)) static void name##_product(bool fuses, const type a[2],              \
                                                         const type b[2], type to[2])              \
    {                                                                                              \
        const type imaginaries = a[1] * b[1], crossed = a[1] * b[0];                               \
        to[0] = fuses ? fma_of(a[0], b[0], -imaginaries) : a[0] * b[0] - imaginaries;              \
        to[1] = fuses ? fma_of(a[0], b[1], crossed) : a[0] * b[1] + crossed;                       \
    }                                                                                              \
                                                                                                   \
    __attribute__((noinline)) static void name##_quotient(const type a[2], const type b[2],        \
                                                          type to[2])                              \
    {                                                                                              \
        const type real = b[0] < 0 ? -b[0] : b[0], imaginary = b[1] < 0 ? -b[1] : b[1];            \
        if (real == 0 && imaginary == 0) {                                                         \
            to[0] = a[0] / (b[0] * b[0]);                                                          \
            to[1] = a[1] / (b[0] * b[0]);                                                          \
        } else if (real >= imaginary) {                                                            \
            const type ratio = b[1] / b[0], scale = 1 / (b[0] + b[1] * ratio);                     \
            to[0] = (a[0] + a[1] * ratio) * scale;                                                 \
            to[1] = (a[1] - a[0] * ratio) * scale;                                                 \
        } else {                                                                                   \
            const type ratio = b[0] / b[1], scale = 1 / (b[1] + b[0] * ratio);                     \
            to[0] = (a[0] * ratio + a[1]) * scale;                                                 \
            to[1] = (a[1] * ratio - a[0]) * scale;                                                 \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void name##_complex(const struct elementwise_work *work, const type a[2],               \
                               const type b[2], type to[2])                                        \
    {                                                                                              \
        if (work->op == ELEMENTWISE_MULTIPLY) {                                                    \
            name##_product(work->fuses, a, b, to);                                                 \
        } else if (work->op == ELEMENTWISE_DIVIDE) {                                               \
            name##_quotient(a, b, to);                                                             \
        } else {                                                                                   \
            to[0] = name(work->op, a[0], b[0]);                                                    \
            to[1] = name(work->op, a[1], b[1]);                                                    \
        }                                                                                          \
    }

REAL(float, of_floats, fmaf)
REAL(double, of_doubles, fma)

static uint16_t of_halves(enum elementwise_op op, uint16_t a, uint16_t b)
{
    const float result = of_floats(op, half_to_float(a), half_to_float(b));
    uint32_t bits;
    int flags = 0;
    memcpy(&bits, &result, sizeof bits);
    const uint16_t half = float_to_half(bits, &flags);
    feraiseexcept(flags);
    return half;
}

static uint64_t of_integers(enum elementwise_op op, uint64_t a, uint64_t b)
{
    return op == ELEMENTWISE_ADD ? a + b : op == ELEMENTWISE_SUBTRACT ? a - b : a * b;
}

union element_of_fake {
    uint8_t byte;
    uint16_t half;
    float real[2];
    double wide[2];
    uint64_t integer[2];
};

static void compute(const struct elementwise_work *work, const union element_of_fake *a,
                    const union element_of_fake *b, union element_of_fake *to)
{
    const size_t size = work->type.size;
    const bool adds = work->op == ELEMENTWISE_ADD;
    switch (work->type.kind) {
    case ELEMENT_BOOL:
        to->byte = adds ? a->byte != 0 || b->byte != 0 : a->byte != 0 && b->byte != 0;
        break;
    case ELEMENT_INTEGER:
        to->integer[0] = of_integers(work->op, a->integer[0], b->integer[0]);
        break;
    case ELEMENT_FLOAT:
        if (size == 2) {
            to->half = of_halves(work->op, a->half, b->half);
        } else if (size == 4) {
            to->real[0] = of_floats(work->op, a->real[0], b->real[0]);
        } else {
            to->wide[0] = of_doubles(work->op, a->wide[0], b->wide[0]);
        }
        break;
    default:
        if (size == 8) {
            of_floats_complex(work, a->real, b->real, to->real);
        } else {
            of_doubles_complex(work, a->wide, b->wide, to->wide);
        }
    }
}

static void note_flags(uint32_t raised[RAISED_WORDS])
{
    static const int flags[RAISED_WORDS] = {FE_INVALID, FE_DIVBYZERO, FE_OVERFLOW, FE_UNDERFLOW};
    for (int i = 0; i < RAISED_WORDS; i++) {
        if (fetestexcept(flags[i])) {
            raised[i] = 1;
        }
    }
}

void fake_compute(const struct elementwise_work *work, char *const data[ELEMENTWISE_OPERANDS],
                  uint32_t raised[RAISED_WORDS])
{
    const size_t size = work->type.size;
    ptrdiff_t index[ELEMENTWISE_MOST_AXES] = {0}, offset[ELEMENTWISE_OPERANDS] = {0};
    fenv_t environment;
    feholdexcept(&environment);
    int axis;
    do {
        union element_of_fake in[ELEMENTWISE_INPUTS], out;
        memset(in, 0, sizeof in);
        for (int op = 0; op < ELEMENTWISE_INPUTS; op++) {
            const void *from = work->at[op] != 0 ? (const void *)(data[op] + offset[op])
                                                 : (const void *)work->number[op];
            memcpy(&in[op], from, size);
        }
        compute(work, &in[0], &in[1], &out);
        memcpy(data[ELEMENTWISE_INPUTS] + offset[ELEMENTWISE_INPUTS], &out, size);
        for (axis = work->axes - 1; axis >= 0; axis--) {
            const struct elementwise_axis *of = &work->axis[axis];
            const bool is_over = ++index[axis] == of->n;
            for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
                offset[op] += is_over ? -(of->n - 1) * of->step[op] : of->step[op];
            }
            if (!is_over) {
                break;
            }
            index[axis] = 0;
        }
    } while (axis >= 0);
    note_flags(raised);
    fesetenv(&environment);
}
