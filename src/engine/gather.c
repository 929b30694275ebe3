#include "gather.h"

#include "kernels/copy/copy_items.h"

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

size_t gather_bytes(const struct conversion *conversion, ptrdiff_t n)
{
    return whole_lines((size_t)n * conversion->to_size);
}

static void gather_from(const struct conversion *conversion, const struct axes *axes, int count,
                        const char *from, char *to)
{
    const struct axis axis = axes->axis[count - 1];
    if (count == 1 && conversion->convert != NULL) {
        conversion->convert(from, axis.step, to, axis.n, false);
        return;
    }
    if (count == 1) {
        copy_items(conversion->to_size, to, (ptrdiff_t)conversion->to_size, from, axis.step,
                   axis.n);
        return;
    }
    ptrdiff_t bytes = (ptrdiff_t)conversion->to_size;
    for (int i = 0; i < count - 1; i++) {
        bytes *= axes->axis[i].n;
    }
    for (ptrdiff_t i = 0; i < axis.n; i++) {
        gather_from(conversion, axes, count - 1, from + i * axis.step, to + i * bytes);
    }
}

const char *gather(const struct conversion *conversion, const struct axes *axes, const char *data,
                   char *scratch)
{
    gather_from(conversion, axes, axes->count, data, scratch);
    return scratch;
}
