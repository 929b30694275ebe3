#include "overlap.h"

#include "kernels/extent.h"

/* Whether two operands with one step interleave without touching, as the real and imaginary parts of
 * an array do: the other one lies in the gaps that the output leaves. */
static bool interleave(const char *out, size_t out_size, const char *other, size_t other_size,
                       size_t stride)
{
    const ptrdiff_t distance = (ptrdiff_t)((uintptr_t)other - (uintptr_t)out);
    const ptrdiff_t remainder = distance % (ptrdiff_t)stride;
    const size_t offset = (size_t)(remainder < 0 ? remainder + (ptrdiff_t)stride : remainder);
    return offset >= out_size && offset + other_size <= stride;
}

/* Whether an output and another operand, whose extents meet, share no byte of different elements. */
static bool independent(const char *out, ptrdiff_t out_step, size_t out_size, const char *other,
                        ptrdiff_t other_step, size_t other_size)
{
    const size_t stride = (size_t)(out_step < 0 ? -out_step : out_step);
    return out_step == other_step &&
           ((out == other && other_size <= stride) || /* element k touches only what k touches */
            interleave(out, out_size, other, other_size, stride));
}

bool elements_commute(int inputs, int operands, char *const data[], const ptrdiff_t step[],
                      const size_t item_size[], ptrdiff_t n)
{
    for (int out = inputs; out < operands; out++) {
        const size_t stride = (size_t)(step[out] < 0 ? -step[out] : step[out]);
        if (stride < item_size[out]) {
            return false; /* a reduction, or an output that overlaps itself */
        }
        const struct extent written = extent_of(data[out], item_size[out], 1, &n, &step[out]);
        for (int other = 0; other < out; other++) {
            const struct extent touched =
                extent_of(data[other], item_size[other], 1, &n, &step[other]);
            if (extents_meet(written, touched) &&
                !independent(data[out], step[out], item_size[out], data[other], step[other],
                             item_size[other])) {
                return false;
            }
        }
    }
    return true;
}
