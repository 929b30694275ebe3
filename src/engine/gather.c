#include "gather.h"

#include <string.h>

enum { LINE_BYTES = 64 };

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

size_t gather_bytes(const struct conversion *conversion, ptrdiff_t n)
{
    return whole_lines((size_t)n * conversion->to_size);
}

/* `size` is a constant where it is inlined. */
static inline __attribute__((always_inline)) void
copy_items(char *to, const char *from, ptrdiff_t step, ptrdiff_t n, size_t size)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy(to, from, size);
        to += size;
        from += step;
    }
}

static void copy_strided(char *to, const char *from, ptrdiff_t step, ptrdiff_t n, size_t size)
{
    if (step == (ptrdiff_t)size) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1:
        copy_items(to, from, step, n, 1);
        break;
    case 2:
        copy_items(to, from, step, n, 2);
        break;
    case 4:
        copy_items(to, from, step, n, 4);
        break;
    case 8:
        copy_items(to, from, step, n, 8);
        break;
    default:
        copy_items(to, from, step, n, 16);
    }
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
        copy_strided(to, from, axis.step, axis.n, conversion->to_size);
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
